"""The adapters for spaCy: the component of a pipeline, and the selector of its entities."""

import pickle
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import datasets
import pytest
from datasets import Dataset

from hf_dxprivacy import DxPrivatizer, EmbeddingSpace, SlotPrivatizer
from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError, MissingExtraError
from hf_dxprivacy.integrations import _tools
from hf_dxprivacy.integrations.redaction import RedactingPrivatizer
from hf_dxprivacy.text import RowReader

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not find_spec("spacy"), reason="the extra spacy is missing"),
]

ROOT = Path(__file__).parents[2]
CONFIG = {"space": "wordnet-gloss", "mechanism": "krr", "epsilon": 1e-6}
TEXT = "The doctor asked Lindqvist, née Waab: 日本 😀?"


@pytest.fixture(scope="module", autouse=True)
def _quiet() -> Iterator[None]:
    datasets.disable_progress_bars()
    yield
    datasets.enable_progress_bars()


@pytest.fixture(scope="module")
def spacy() -> Any:
    import spacy

    import_module("hf_dxprivacy.integrations.spacy")
    return spacy


def blank(**config: Any) -> Any:
    import spacy

    nlp = spacy.blank("en")
    nlp.add_pipe("dxprivacy", config=CONFIG | config)
    return nlp


def with_people() -> Any:
    """Return a pipeline that finds people and a city."""
    import spacy

    nlp = spacy.blank("en")
    people = [{"label": "PERSON", "pattern": name} for name in ("Lindqvist", "Ann Roe")]
    nlp.add_pipe("entity_ruler").add_patterns([*people, {"label": "GPE", "pattern": "Waab"}])
    return nlp


def words(text: str) -> list[str]:
    return RowReader().read_text(text).words


# The component


def test_a_document_has_its_release(spacy: Any) -> None:
    nlp = blank()
    doc = nlp(TEXT)
    assert doc.text == TEXT
    old, new = RowReader().read_text(TEXT), RowReader().read_text(doc._.private_text)
    assert old.separators == new.separators
    space = nlp.get_pipe("dxprivacy").privatizer.space
    assert {*new} <= {*space.words}
    assert [doc._.private_text for doc in nlp.pipe(["", " "])] == ["", " "]
    assert [context for _, context in nlp.pipe([(TEXT, 1), ("a", 2)], as_tuples=True)] == [1, 2]
    assert nlp.analyze_pipes()["summary"]["dxprivacy"]["assigns"] == ["doc._.private_text"]


def test_workers_share_no_noise(spacy: Any) -> None:
    nlp, text = blank(), " ".join(["doctor"] * 20)
    docs = list(nlp.pipe([text] * 40, n_process=2, batch_size=10))
    assert len({doc._.private_text for doc in docs}) == 40
    streams = [words(doc._.private_text) for doc in docs]
    # The first words of two batches would be equal, if two workers had begun alike.
    assert len({tuple(stream[:3]) for stream in streams}) == 40


def test_a_pipeline_is_stored_as_its_settings(spacy: Any, tmp_path: Path) -> None:
    blank(attribute="released", options={"oov": "drop"}).to_disk(tmp_path / "pipeline")
    nlp = spacy.load(tmp_path / "pipeline")
    component = nlp.get_pipe("dxprivacy")
    assert component.privatizer.oov == "drop"
    assert component.privatizer.guarantee.epsilon == pytest.approx(1e-6)
    released = nlp("doctor qwertzuiop")._.released
    assert len(words(released)) == 1
    assert nlp.from_bytes(nlp.to_bytes())("a doctor")._.released


def test_a_stored_privatizer(spacy: Any, tmp_path: Path) -> None:
    DxPrivatizer("wordnet-gloss", "tem", 5.0, stopwords="english").save_pretrained(tmp_path / "p")
    config = {"privatizer": str(tmp_path / "p"), "space": None, "mechanism": None, "epsilon": None}
    nlp = blank(**config)
    assert nlp("the of")._.private_text == "the of"
    assert nlp.get_pipe("dxprivacy").privatizer.guarantee.epsilon == 5.0
    with pytest.raises(InvalidValueError, match="brings its own settings, got epsilon= beside"):
        blank(**config | {"epsilon": 5.0})


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"space": None}, "the component dxprivacy needs privatizer=.*or space="),
        ({"epsilon": None}, "epsilon"),
        ({"mechanism": "krrr"}, "did you mean 'krr'"),
        ({"options": {"seed": 7}}, "seed= would be written to config.cfg"),
        ({"options": {"memoize": "row"}}, "memoize= would be written to config.cfg"),
    ],
)
def test_bad_settings(spacy: Any, config: Any, message: str) -> None:
    with pytest.raises((InvalidValueError, InvalidTypeError), match=message):
        blank(**config)


def test_spacy_finds_the_component_where_the_package_is_installed(spacy: Any) -> None:
    import hf_dxprivacy.integrations.spacy as adapter

    project = (ROOT / "pyproject.toml").read_text("utf-8")
    entry = 'spacy_factories]\ndxprivacy = "hf_dxprivacy.integrations.spacy:make_component"\n'
    assert entry in project
    assert adapter.make_component is spacy.registry.factories.get("dxprivacy")


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "spacy", None)
    monkeypatch.delitem(sys.modules, "hf_dxprivacy.integrations.spacy", raising=False)
    with pytest.raises(MissingExtraError, match=r"'spacy'.*hf-dxprivacy\[spacy\]"):
        import hf_dxprivacy.integrations.spacy  # noqa: F401


# The selector


@pytest.fixture
def selector_of(spacy: Any) -> Any:
    return import_module("hf_dxprivacy.slots").SpacySelector


def test_slots_are_the_entities_of_a_pipeline(selector_of: Any, tmp_path: Path) -> None:
    nlp = with_people()
    nlp.to_disk(tmp_path / "people")
    texts = [TEXT, "nobody", "Ann Roe's"]
    for source in (nlp, with_people, tmp_path / "people", str(tmp_path / "people")):
        selector = selector_of(source, ["PERSON"], batch_size=2)
        assert selector.spans(texts) == [[(17, 26, "PERSON")], [], [(0, 7, "PERSON")]]
        masks = selector.masks([RowReader().read(cell) for cell in (*texts, None, "")])
        assert [None if m is None else m.nonzero()[0].tolist() for m in masks] == [
            *([3], [], [0, 1], None, []),
        ]
    assert {"GPE", "PERSON"} == {label for *_, label in selector_of(nlp).spans([TEXT])[0]}


def test_labels_that_no_component_has(selector_of: Any, spacy: Any) -> None:
    with pytest.raises(InvalidValueError, match="no label 'ORG'; there are 'GPE', 'PERSON'"):
        selector_of(with_people, ["ORG"])
    with pytest.raises(InvalidValueError, match="no component of this pipeline finds entities"):
        selector_of(blank())
    with pytest.raises(InvalidTypeError, match="expected a Language, or a function that makes one"):
        selector_of(3)

    @spacy.Language.component("finds_anything")
    def finds_anything(doc: Any) -> Any:
        doc.ents = [spacy.tokens.Span(doc, 0, 1, label="ANY")]
        return doc

    nlp = with_people()
    nlp.add_pipe("finds_anything")
    assert selector_of(nlp, ["ANY"]).spans(["a b"]) == [[(0, 1, "ANY")]]


def test_map_in_several_processes(
    selector_of: Any, euclidean_space: EmbeddingSpace, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = Dataset.from_dict({"text": [TEXT, None, "", "Ann Roe's waab"] * 3})
    for source in (with_people(), with_people):
        selector = selector_of(source, ["PERSON"])
        slots = SlotPrivatizer(euclidean_space, "krr", 1e-6, selector=selector)
        redacting = RedactingPrivatizer(euclidean_space, "krr", 1e-6, redact=selector)
        released = rows.map(slots, batched=True, num_proc=2)["text"][:]
        assert released[1:3] == [None, ""]
        assert all(text.startswith("The doctor asked wa") for text in released[::4])
        assert len({*released[::4]}) == 3
        texts = rows.map(redacting, batched=True, num_proc=2)["text"][:]
        assert all(text.startswith("<PERSON> wa") for text in texts[3::4])
    states = [pickle.dumps(selector_of(source)) for source in (with_people(), with_people)]
    assert max(map(len, states)) < 1000
    monkeypatch.setattr(_tools, "_TOOLS", {})
    with pytest.raises(InvalidValueError, match="give SpacySelector a function that makes one"):
        pickle.loads(states[0]).spans([TEXT])
    assert len(pickle.loads(states[1]).spans([TEXT])[0]) == 2
