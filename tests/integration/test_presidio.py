"""The adapters for Presidio: the operator, the selector, and redaction of what it finds."""

import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pytest
from datasets import Dataset
from datasets.fingerprint import Hasher

from hf_dxprivacy import DxPrivatizer, EmbeddingSpace, SlotPrivatizer
from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError, MissingExtraError
from hf_dxprivacy.integrations import _tools
from hf_dxprivacy.integrations.redaction import RedactingPrivatizer
from hf_dxprivacy.text import RowReader

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not find_spec("presidio_anonymizer"), reason="the extra presidio is missing"
    ),
]

CARD = "4111 1111 1111 1111"
TEXTS = [
    f"waaa Waab waad ({CARD}), waae.",
    None,
    "",
    "waaf: née Zork Waac's waag 😀 日本",
    "waah waai",
]
ENTITIES = ["CREDIT_CARD", "PERSON"]


@pytest.fixture(scope="module", autouse=True)
def _quiet() -> Iterator[None]:
    datasets.disable_progress_bars()
    yield
    datasets.enable_progress_bars()


@pytest.fixture(scope="module")
def parts() -> Any:
    import presidio_parts

    return presidio_parts


@pytest.fixture(scope="module")
def privatizer(euclidean_space: EmbeddingSpace) -> DxPrivatizer:
    return DxPrivatizer(euclidean_space, "krr", 1e-6)


def words(text: Any) -> list[str]:
    return RowReader().read_text(text).words


# The operator


def test_entities_are_perturbed_and_the_rest_is_as_presidio_leaves_it(
    parts: Any, privatizer: DxPrivatizer
) -> None:
    seen = set()
    for _ in range(30):
        released = parts.anonymize(f"waaa Waab waad ({CARD}) zork Zork Waac!", privatizer)
        first, person, *rest, given, family = released.text.split(" ")
        assert [first, *rest] == ["waaa", "waad", "(<CREDIT_CARD>)", "zork"]
        assert {person, given, family.removesuffix("!")} <= {*privatizer.space.words}
        assert [item.operator for item in released.items].count("dxprivacy") == 2
        seen.add(person)
    assert len(seen) > 20


def test_an_entity_has_exactly_the_noise_of_the_privatizer(
    parts: Any, euclidean_space: EmbeddingSpace
) -> None:
    seeded = DxPrivatizer(euclidean_space, "laplace", 2.0, seed=2**70)
    released = parts.DxPrivacyOperator().operate("waab waac, waad", {"privatizer": seeded})
    assert released == str(seeded.privatize("I waab waac, waad")).partition(" ")[2]


def test_nothing_of_the_helper_word_is_in_an_entity(parts: Any) -> None:
    """Not in a space whose entries hold blanks either, where it may become two words."""
    words = ["new york", "fish", "san marino city", "i"]
    points = np.array([[0, 1], [1, 0], [1, 1], [0, 0]], dtype=np.float32)
    privatizer = DxPrivatizer(EmbeddingSpace.from_vectors(words, points), "krr", 1e-3)
    operate = parts.DxPrivacyOperator().operate
    assert {operate("fish", {"privatizer": privatizer}) for _ in range(99)} == {*words}
    found = operate("fish 'n' Fish", {"privatizer": privatizer})
    assert found.count(" '") == 1 == found.count("' ")
    dropped = DxPrivatizer(privatizer.space, "krr", 1e-3, oov="drop")
    assert operate("zork", {"privatizer": dropped}) == ""


def test_a_name_is_a_name_though_it_is_the_first_word_of_the_entity(parts: Any) -> None:
    config = {"privatizer": DxPrivatizer("english", "hierarchical", 30.0)}
    names = {parts.DxPrivacyOperator().operate("Qwertzuiop", config) for _ in range(5)}
    assert all(name.isalpha() and name[0].isupper() for name in names)
    assert "Qwertzuiop" not in names


def test_a_stored_privatizer(parts: Any, tmp_path: Path) -> None:
    DxPrivatizer("english", "hierarchical", 1e-3).save_pretrained(tmp_path / "stored")
    folder = str(tmp_path / "stored")
    assert len({parts.anonymize("x Waab", folder).text for _ in range(20)}) > 15
    stated = parts.DxPrivacyOperator.guarantee(folder)
    assert (stated.epsilon, stated.ldp_epsilon) == (pytest.approx(1e-3), float("inf"))
    assert "What is not found is released as it is." in str(stated)


@pytest.mark.parametrize("given", [1.5, None, b"english"])
def test_the_operator_needs_a_privatizer(parts: Any, given: Any) -> None:
    with pytest.raises(InvalidTypeError, match="expected privatizer to be a DxPrivatizer"):
        parts.anonymize("Waab", given)


# The selector


def selected(selector: Any, cells: list[Any]) -> list[Any]:
    rows = [RowReader().read(cell) for cell in cells]
    return [
        None if mask is None or row is None else [w for w, m in zip(row, mask, strict=True) if m]
        for row, mask in zip(rows, selector.masks(rows), strict=True)
    ]


def test_slots_are_what_presidio_finds(parts: Any) -> None:
    analyzer = parts.make()
    found = selected(parts.PresidioSelector(analyzer, ENTITIES), TEXTS)
    assert found == [["Waab", *CARD.split()], None, [], ["Zork", "Waac's"], []]
    assert selected(parts.PresidioSelector(analyzer, ["PERSON"]), TEXTS)[0] == ["Waab"]
    assert selected(parts.PresidioSelector(analyzer), TEXTS) == found
    # Decomposed letters before a span move it, unless it is looked for in what is released.
    cells = ["ne\u0301e\u0301 Waab", ["a", None, "Waab"]]
    assert selected(parts.PresidioSelector(analyzer), cells) == [["Waab"], ["Waab"]]


def test_threshold_and_language(parts: Any) -> None:
    analyzer, text = parts.in_two_languages(), ["Wort 12"]
    assert selected(parts.PresidioSelector(analyzer), text) == [["12"]]
    assert selected(parts.PresidioSelector(analyzer, score_threshold=0.4), text) == [[]]
    german = parts.PresidioSelector(analyzer, ["WORT"], language="de", score_threshold=0.4)
    assert selected(german, text) == [["Wort"]]
    assert german.disclosures[0].text == (
        "Slots are what Presidio takes for WORT with a score of 0.4 or more (language 'de')."
    )
    with pytest.raises(InvalidValueError, match="there is no label 'WORT'; there are 'NUMBER'"):
        parts.PresidioSelector(analyzer, ["WORT"])


def test_entities_of_a_pipeline(parts: Any) -> None:
    labels = ["ORGANIZATION", "CREDIT_CARD"]
    selector = parts.PresidioSelector(parts.with_pipeline, labels, batch_size=2)
    assert selected(selector, TEXTS) == [["Waab", *CARD.split()], None, [], [], []]
    other = parts.PresidioSelector(parts.with_pipeline("Waac"), labels)
    assert selector.digest != other.digest


@pytest.mark.parametrize(
    ("given", "options", "error", "message"),
    [
        ("analyzer", {}, InvalidTypeError, "expected an AnalyzerEngine, or a function that makes"),
        (dict, {}, InvalidTypeError, "got a dict"),
        (None, {"entities": ["PERSONS"]}, InvalidValueError, "there is no label 'PERSONS'"),
        (None, {"entities": []}, InvalidValueError, "at least one label"),
        (None, {"language": "fr"}, InvalidValueError, "expected language to be"),
        (None, {"score_threshold": 1.5}, InvalidValueError, "score_threshold"),
        (None, {"batch_size": 0}, InvalidValueError, "batch_size"),
    ],
)
def test_bad_arguments(
    parts: Any, given: Any, options: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        parts.PresidioSelector(given or parts.make, **options)


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "presidio_analyzer", None)
    monkeypatch.delitem(sys.modules, "hf_dxprivacy.integrations.presidio", raising=False)
    with pytest.raises(MissingExtraError, match=r"'presidio_analyzer'.*hf-dxprivacy\[presidio\]"):
        import hf_dxprivacy.integrations.presidio  # noqa: F401


# Between processes


def test_the_fingerprint_is_that_of_the_settings(
    parts: Any, euclidean_space: EmbeddingSpace
) -> None:
    def state(selector: Any) -> str:
        return str(Hasher.hash(SlotPrivatizer(euclidean_space, "krr", 1.0, selector=selector)))

    fresh, used, other = parts.make(), parts.make(), parts.make(["Waad"])
    used.analyze("Waab 4111", "en")
    hashes = [state(parts.PresidioSelector(each)) for each in (fresh, used, other)]
    assert hashes[0] == hashes[1] != hashes[2]
    narrower = parts.PresidioSelector(fresh, ["PERSON"])
    assert state(narrower) not in hashes
    assert len(pickle.dumps(narrower)) < 1000


def test_the_digest_is_the_same_in_every_process(parts: Any) -> None:
    code = (
        "from presidio_parts import PresidioSelector, make, with_pipeline\n"
        "print(PresidioSelector(make).digest, "
        "PresidioSelector(with_pipeline).digest)"
    )
    paths = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    env = {**os.environ, "PYTHONHASHSEED": "1", "PYTHONPATH": paths}
    command = [sys.executable, "-W", "ignore", "-c", code]
    printed = subprocess.run(command, env=env, capture_output=True, check=True, text=True).stdout
    analyzers = (parts.make(), parts.with_pipeline())
    assert printed.split() == [parts.PresidioSelector(each).digest for each in analyzers]


def test_an_engine_that_was_changed_is_refused(parts: Any) -> None:
    engine = parts.make()
    selector = parts.PresidioSelector(engine)
    engine.registry.recognizers.pop()
    with pytest.raises(InvalidValueError, match="the AnalyzerEngine was changed after"):
        pickle.dumps(selector)
    pickle.dumps(parts.PresidioSelector(engine))


def test_a_process_without_the_engine(parts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """As one that was started anew, where nothing has been made yet."""
    sources = parts.make(), parts.make
    states = [pickle.dumps(parts.PresidioSelector(each, ["PERSON"])) for each in sources]
    monkeypatch.setattr(_tools, "_TOOLS", {})
    lost, found = map(pickle.loads, states)
    with pytest.raises(InvalidValueError, match="give PresidioSelector a function that makes one"):
        lost.spans(["Waab"])
    assert found.spans(["Waab"]) == [[(0, 4, "PERSON")]]


def test_a_function_that_makes_another_engine(parts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["Waab"]
    selector = parts.PresidioSelector(lambda: parts.make(names))
    monkeypatch.setattr(_tools, "_TOOLS", {})
    names.append("Waac")
    with pytest.raises(InvalidValueError, match="makes another one in this process"):
        selector.spans(["Waab"])


@pytest.mark.parametrize("by_function", [True, False])
def test_map_in_several_processes(
    parts: Any, euclidean_space: EmbeddingSpace, tmp_path: Path, by_function: bool
) -> None:
    Dataset.from_dict({"text": TEXTS * 4}).save_to_disk(tmp_path)
    rows = datasets.load_from_disk(tmp_path)
    selector = parts.PresidioSelector(parts.make if by_function else parts.make(), ENTITIES)
    slots = SlotPrivatizer(euclidean_space, "krr", 1e-6, selector=selector, mask_column="mask")
    redacting = RedactingPrivatizer(euclidean_space, "krr", 1e-6, redact=selector)
    for batched, workers in ((False, None), (True, 2)):
        released = rows.map(slots, batched=batched, num_proc=workers)
        for old, new in zip(rows, released, strict=True):
            if old["text"] is None:
                assert (new["text"], new["mask"]) == (None, None)
                continue
            pairs = zip(words(old["text"]), words(new["text"]), new["mask"], strict=True)
            assert all(b in euclidean_space if slot else a == b for a, b, slot in pairs)
        texts = rows.map(redacting, batched=batched, num_proc=workers)["text"][:]
        assert texts[1:3] == [None, ""]
        assert all(text.count("<PERSON> ") == 1 for text in texts[::5] + texts[3::5])
        assert all(" (<CREDIT_CARD>), " in text for text in texts[::5])
        assert len({*texts[::5]}) == 4
    again = rows.map(redacting, batched=True, num_proc=2)
    assert again["text"][:] == texts  # the cached release, and no second one
