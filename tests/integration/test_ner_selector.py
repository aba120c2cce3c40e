"""Slots found by a token classification model, inside `datasets` and with a Hub."""

import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import datasets
import pytest
import tiny_models
import tiny_tagger
import transformers
from datasets import Dataset
from datasets.fingerprint import Hasher
from huggingface_hub import HfApi

from hf_dxprivacy.errors import ArtifactError, InvalidTypeError, InvalidValueError
from hf_dxprivacy.slots import ContentWordSelector, LowTransitionSelector, NerSelector
from hf_dxprivacy.slots.slot_privatizer import SlotPrivatizer
from hf_dxprivacy.spaces import EmbeddingSpace
from hf_dxprivacy.text import RowReader
from hub_server import HubServer

pytestmark = pytest.mark.slow

NAMES = {"doctor": "B-PER", "fox": "I-PER", "hospital": "B-LOC", "2019": "I-LOC"}
TEXT = "The doctor (a FOX) in the hospital, in 2019."


@pytest.fixture(scope="module", autouse=True)
def _quiet() -> Iterator[None]:
    datasets.disable_progress_bars()
    yield
    datasets.enable_progress_bars()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tagger")
    tiny_tagger.save(path, NAMES)
    return path


def selected(selector: NerSelector, *cells: Any) -> list[list[str] | None]:
    rows = [RowReader().read(cell) for cell in cells]
    return [
        None if row is None or mask is None else [w for w, s in zip(row, mask, strict=True) if s]
        for row, mask in zip(rows, selector.masks(rows), strict=True)
    ]


# What is found


def test_texts_and_tokens(folder: Path) -> None:
    selector = NerSelector(folder)
    tokens = ["The", "doctor", ",", None, "a", "fox"]
    assert selected(selector, TEXT, None, "", "!", tokens, []) == [
        ["doctor", "FOX", "hospital", "2019"], None, [], [], ["doctor", "fox"], [],
    ]  # fmt: skip
    assert selector.masks([None, ["a", "doctor"]])[1].tolist() == [False, True]  # type: ignore[union-attr]
    assert selector.masks([]) == []
    assert selector.masks([None]) == [None]


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["PER"], ["doctor", "FOX"]),
        ({"LOC"}, ["hospital", "2019"]),
        (("PER", "LOC"), ["doctor", "FOX", "hospital", "2019"]),
        (["B-PER"], ["doctor"]),
        (None, ["doctor", "FOX", "hospital", "2019"]),
    ],
)
def test_labels(folder: Path, labels: Any, expected: list[str]) -> None:
    assert selected(NerSelector(folder, labels=labels), TEXT) == [expected]


def test_a_word_is_a_slot_if_a_part_of_it_is_a_name(folder: Path) -> None:
    """To us a word ends at white space and most punctuation; to the tokenizer, elsewhere."""
    text = "doctor's the_hospital_in x-fox doctor/guide 31.2019"
    found = [["doctor's", "the_hospital_in", "fox", "doctor", "31.2019"]]
    assert selected(NerSelector(folder), text) == found


@pytest.mark.parametrize("window", [None, 8, 9, 16])
@pytest.mark.parametrize("batch_size", [1, 32])
def test_nothing_of_a_long_text_is_lost(folder: Path, window: int | None, batch_size: int) -> None:
    """Longer than the 40 positions of the model, with names wherever windows may end."""
    words = ["fox" if at % 7 in (0, 3) else "guide" for at in range(500)]
    selector = NerSelector(folder, window=window, batch_size=batch_size)
    rows = [RowReader().read(" ".join(words)), RowReader().read(words), RowReader().read("a fox")]
    long, tokens, short = (mask.tolist() for mask in selector.masks(rows))  # type: ignore[union-attr]
    assert long == tokens == [word == "fox" for word in words]
    assert short == [False, True]


def test_what_is_found_does_not_depend_on_the_batch(folder: Path) -> None:
    texts = [" ".join(["guide"] * n + ["fox"] * (n % 3)) for n in range(60)]
    selector = NerSelector(folder, batch_size=7)
    assert selected(selector, *texts) == [selected(selector, text)[0] for text in texts]


# Models


@pytest.mark.parametrize("make", [tiny_models.byte_level, tiny_models.unigram, tiny_models.llama])
def test_tokenizers_without_padding(tmp_path: Path, make: Any) -> None:
    """With random weights; texts of many lengths, of which the longest are windowed."""
    tiny_models.save(make(), tmp_path, head="AutoModelForTokenClassification")
    texts = ["", *(" ".join(tiny_models.CORPUS[: n % 5 + 1]) for n in range(9)), "a  fox\nread"]
    selector = NerSelector(tmp_path, labels=["LABEL_1"], window=24, batch_size=4)
    found = selected(selector, *texts)
    assert found == [selected(selector, text)[0] for text in texts]
    shares = [
        len(words) / len(text.split()) for words, text in zip(found, texts, strict=True) if words
    ]
    assert 0.05 < min(shares) < max(shares) <= 1.0


def test_loaded_models_and_pipelines(folder: Path) -> None:
    model = transformers.AutoModelForTokenClassification.from_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    pipeline = transformers.pipeline("token-classification", model=model, tokenizer=tokenizer)
    for loaded in ((model, tokenizer), pipeline):
        selector = NerSelector(loaded, labels=["LOC"])
        assert selected(selector, TEXT) == [["hospital", "2019"]]
        again = pickle.loads(pickle.dumps(selector))
        assert selected(again, TEXT) == [["hospital", "2019"]]
        assert "BertForTokenClassification" in repr(selector)
        with pytest.raises(InvalidValueError, match="in memory only; save it and its tokenizer"):
            selector.to_dict()


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"labels": ["GPE"]}, InvalidValueError, "no label 'GPE'; there are .*'LOC', 'PER'"),
        ({"labels": ["PER", "O"]}, InvalidValueError, "no label 'O'"),
        ({"labels": []}, InvalidValueError, "at least one label"),
        ({"labels": "PER"}, InvalidTypeError, "expected labels to be names"),
        ({"batch_size": 0}, InvalidValueError, "expected batch_size >= 1"),
        ({"window": 2}, InvalidValueError, "expected window >= 8"),
        ({"revision": "main"}, InvalidValueError, "is a local folder"),
    ],
)
def test_arguments_are_checked(
    folder: Path, options: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        NerSelector(folder, **options)


@pytest.mark.parametrize("model", [None, 5, ("model", "tokenizer"), object()])
def test_other_objects_are_refused(model: Any) -> None:
    with pytest.raises(InvalidTypeError, match=r"pair \(model, tokenizer\), got a"):
        NerSelector(model)


def test_a_loaded_model_stays_where_it_is(folder: Path) -> None:
    model = transformers.AutoModelForTokenClassification.from_pretrained(folder)
    with pytest.raises(InvalidTypeError, match="revision= and device= are for folders"):
        NerSelector((model, None), device="cpu")
    with pytest.raises(InvalidTypeError, match=r"tells the offsets of its tokens.*got a NoneType"):
        NerSelector((model, None))


def test_a_model_without_a_label_for_other_words(tmp_path: Path) -> None:
    """As one that was never trained for this: its labels are LABEL_0 and LABEL_1."""
    tiny_models.save(tiny_models.word_pieces(), tmp_path, "bert")
    with pytest.raises(InvalidValueError, match=r"no label 'O'.*'LABEL_0', 'LABEL_1'"):
        NerSelector(tmp_path)


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError, match="transformers cannot load the config"):
        NerSelector(tmp_path)


# In Dataset.map


@pytest.fixture
def privatizer(folder: Path, euclidean_space: EmbeddingSpace) -> SlotPrivatizer:
    selector = NerSelector(folder)
    return SlotPrivatizer(euclidean_space, "laplace", 1e-6, selector=selector, mask_column="mask")


def check(rows: Any) -> None:
    for row in rows:
        words = RowReader().read_text(row["text"]).words
        assert row["mask"] == [False, True, False, True]
        assert (words[0], words[2]) == ("The", "guide")
        assert words[1] != "doctor"


def test_several_processes(privatizer: SlotPrivatizer) -> None:
    rows = Dataset.from_dict({"text": ["The doctor, guide fox!"] * 40})
    for options in ({"batched": True, "batch_size": 7}, {"batched": False}):
        check(rows.map(privatizer, num_proc=2, load_from_cache_file=False, **options))


def test_a_model_that_was_used_before_a_fork_does_not_hang(privatizer: SlotPrivatizer) -> None:
    """Its threads are those of the parent; texts are long, so that there is work for several."""
    texts = [" ".join(["guide"] * 900 + ["fox"])] * 8
    privatizer.privatize(texts)
    mapped = Dataset.from_dict({"text": texts}).map(privatizer, batched=True, num_proc=2)
    assert [sum(mask) for mask in mapped["mask"]] == [1] * 8


def test_a_loaded_model_in_several_processes(folder: Path, euclidean_space: EmbeddingSpace) -> None:
    model = transformers.AutoModelForTokenClassification.from_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    selector = NerSelector((model, tokenizer))
    privatizer = SlotPrivatizer(
        euclidean_space, "laplace", 1e-6, selector=selector, mask_column="mask"
    )
    privatizer.privatize("The doctor")
    rows = Dataset.from_dict({"text": ["The doctor, guide fox!"] * 8})
    check(rows.map(privatizer, batched=True, num_proc=2))


def test_only_the_name_of_a_model_travels(folder: Path) -> None:
    selector = NerSelector(folder)
    before = pickle.dumps(selector)
    selected(selector, TEXT)
    assert pickle.dumps(selector) == before
    assert len(before) < 2000
    assert selected(pickle.loads(before), TEXT) == selected(selector, TEXT)


def test_the_fingerprint_is_that_of_the_model(
    tmp_path: Path, folder: Path, privatizer: SlotPrivatizer
) -> None:
    fingerprint = Hasher.hash(privatizer.selector)
    selected(NerSelector(folder), TEXT)
    code = (
        "import sys; from datasets.fingerprint import Hasher\n"
        "from hf_dxprivacy.slots import NerSelector\n"
        f"print(Hasher.hash(NerSelector({str(folder)!r})))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "3"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    assert done.stdout.strip() == fingerprint
    assert Hasher.hash(NerSelector(folder, labels=["PER"])) != fingerprint
    tiny_tagger.save(tmp_path, NAMES)
    one = Hasher.hash(NerSelector(tmp_path))
    tiny_tagger.save(tmp_path, NAMES | {"guide": "B-PER"})
    assert Hasher.hash(NerSelector(tmp_path)) != one


# Stored, and on a Hub


@pytest.fixture
def space(tmp_path: Path, euclidean_space: EmbeddingSpace) -> EmbeddingSpace:
    euclidean_space.save_pretrained(tmp_path / "space")
    return EmbeddingSpace.from_pretrained(tmp_path / "space")


def test_a_privatizer_with_a_local_model(tmp_path: Path, space: EmbeddingSpace) -> None:
    tiny_tagger.save(tmp_path / "tagger", NAMES)
    selector = NerSelector(tmp_path / "tagger", labels=["PER"])
    privatizer = SlotPrivatizer(space, "laplace", 2.0, selector=selector, seed=3)
    privatizer.save_pretrained(tmp_path / "stored")
    loaded = SlotPrivatizer.from_pretrained(tmp_path / "stored", seed=3)
    assert loaded.privatize([TEXT] * 5) == privatizer.privatize([TEXT] * 5)
    tiny_tagger.save(tmp_path / "tagger", {"guide": "B-PER"})
    with pytest.raises(ArtifactError, match=r"the model in .* was changed"):
        SlotPrivatizer.from_pretrained(tmp_path / "stored")


def test_models_and_privatizers_on_a_hub(
    hub: HubServer, folder: Path, euclidean_space: EmbeddingSpace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", hub.token)
    HfApi().create_repo("me/tagger")
    commit = HfApi().upload_folder(repo_id="me/tagger", folder_path=folder).oid
    euclidean_space.push_to_hub("me/space", license="mit")
    space = EmbeddingSpace.from_pretrained("me/space")

    local = SlotPrivatizer(space, "tem", 2.0, selector=NerSelector(folder))
    with pytest.raises(InvalidValueError, match="which finds the slots, is not on the Hub"):
        local.push_to_hub("me/privatizer", license="mit")

    selector = NerSelector("me/tagger", labels=["PER"])
    assert selector.name == f"me/tagger@{commit}"
    privatizer = SlotPrivatizer(space, "tem", 2.0, selector=selector, seed=3)
    assert any(f"me/tagger@{commit}" in s for s in privatizer.guarantee.assumptions)
    privatizer.push_to_hub("me/privatizer", license="mit")
    # A later commit of the model is none of this privatizer.
    HfApi().delete_file("model.safetensors", "me/tagger")
    loaded = SlotPrivatizer.from_pretrained("me/privatizer", seed=3)
    assert loaded.privatize([TEXT] * 5) == privatizer.privatize([TEXT] * 5)


def test_a_fitted_selector_on_a_hub(
    hub: HubServer, euclidean_space: EmbeddingSpace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", hub.token)
    euclidean_space.push_to_hub("me/space", license="mit")
    space = EmbeddingSpace.from_pretrained("me/space")
    fitted = LowTransitionSelector.fit(
        ["play waab on waac"] * 3000, epsilon=50.0, alphabet=["play", "on"], l_max=4, n_max=2
    )
    privatizer = SlotPrivatizer(
        space, "tem", 2.0, selector=fitted | fitted.replace(mode="coverage"), seed=3
    )
    privatizer.push_to_hub("me/privatizer", license="mit")
    privatizer.push_to_hub("me/privatizer", license="mit")
    assert "selector/1/grams.jsonl" in hub.repo("me/privatizer").files()
    loaded = SlotPrivatizer.from_pretrained("me/privatizer", seed=3)
    text = "play waab on waac"
    assert loaded.privatize([text] * 9) == privatizer.privatize([text] * 9)
    # Nothing of it is left behind by one that has no n-grams.
    other = SlotPrivatizer(space, "tem", 2.0, selector=ContentWordSelector())
    other.push_to_hub("me/privatizer", license="mit")
    left = hub.repo("me/privatizer").files()
    assert sorted(name for name in left if not name.startswith(".")) == [
        "README.md", "privatizer.json",
    ]  # fmt: skip


def test_a_real_model_trained_for_something_else_is_refused() -> None:
    with pytest.raises(InvalidValueError, match="LABEL_0"):
        NerSelector(tiny_models.minilm())
