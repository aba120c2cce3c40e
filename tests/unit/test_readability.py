"""The n-gram model that readability is measured by: its law, its file, and what it says."""

import gzip
import json
import math
import random
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from hf_dxprivacy import DxPrivatizer
from hf_dxprivacy.errors import ArtifactError, InvalidTypeError, InvalidValueError
from hf_dxprivacy.evaluation import NgramModel, readability
from hf_dxprivacy.evaluation.perplexity import FILE, OTHER, STEP, read_words
from hf_dxprivacy.mechanisms import Mechanism, create_mechanism
from hf_dxprivacy.spaces import EmbeddingSpace
from hf_dxprivacy.training.wordnet import DEFAULT_PATH

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import build_ngram_model  # noqa: E402

TEXTS = (ROOT / "examples" / "demo_sentences.txt").read_text("utf-8").splitlines()


@pytest.fixture(scope="module")
def model() -> NgramModel:
    return NgramModel.load()


def reference(model: NgramModel, before: list[int], word: int) -> float:
    """Return ln p(w|u,v) by the recursion that defines it, from the stored numbers."""
    size, (two, three) = len(model.words), model.keys
    row_of, logs3 = {key: row for row, key in enumerate(two.tolist())}, three.tolist()
    *_, v = before
    row = row_of.get(v * size + word)
    found = model.logs[1][row] if row is not None else model.weights[0][v] + model.logs[0][word]
    if len(before) > 1 and (context := row_of.get(before[-2] * size + v)) is not None:
        key = context * size + word
        if key in logs3:
            return float(model.logs[2][logs3.index(key)])
        found += model.weights[1][context]
    return float(found)


def test_log_probabilities_are_those_of_the_recursion(model: NgramModel) -> None:
    text = "The act of moving to one of the banks in a zzyzx of the same kind, by 3 of them."
    ids = [0, *model.ids(read_words([text])[0]).tolist()]
    found = model.log_probabilities(np.array(ids))
    for at, log in enumerate(found.tolist(), 1):
        others = math.log(model.others) if ids[at] == OTHER else 0.0
        assert log == pytest.approx(reference(model, ids[:at], ids[at]) - others)
    assert model.perplexity([text]) == pytest.approx(math.exp(-found.mean()))
    # Some of each kind were among them.
    assert OTHER in ids
    assert {model.words[k] for k in ids} >= {"act", "the", "<number>"}


@pytest.mark.parametrize("context", ["", "the", "one of", "in the", "zzyzx", "of zzyzx"])
def test_probabilities_add_up_to_one(model: NgramModel, context: str) -> None:
    before = [0, *model.ids(context.split()).tolist()][-2:]
    # Each word after these two, which are all that it depends on.
    places = [[*before, word] for word in range(len(model.words))]
    logs = model.log_probabilities(np.array(places).ravel())[len(before) - 1 :: len(before) + 1]
    assert logs[7] == model.log_probabilities(np.array([*before, 7]))[-1]
    logs[OTHER] += math.log(model.others)
    # Weights are rounded to a sixteenth: 3 %.
    assert np.exp(logs).sum() == pytest.approx(1.0, abs=0.03)


def test_order_and_choice_of_words_count(model: NgramModel) -> None:
    rng = random.Random(1)
    words = EmbeddingSpace.from_pretrained("english").words
    shuffled = [" ".join(rng.sample(text.split(), len(text.split()))) for text in TEXTS]
    drawn = [" ".join(rng.choice(words) for _ in text.split()) for text in TEXTS]
    read = [model.perplexity(texts) for texts in (TEXTS, shuffled, drawn)]
    assert read[0] * 1.5 < read[1]
    assert read[1] * 10 < read[2]
    assert readability(TEXTS, TEXTS) == 1.0
    assert readability(TEXTS, shuffled) == pytest.approx(read[1] / read[0])
    # Case, punctuation and the number itself do not count.
    assert model.perplexity(["THE 5, of -- them!"]) == model.perplexity(["the 17 of them"])


@pytest.fixture(scope="module")
def mechanisms() -> list[Mechanism]:
    english = EmbeddingSpace.from_pretrained("english")
    return [create_mechanism("hierarchical", english, epsilon) for epsilon in (1.0, 1.5, 2.0, 4.0)]


@pytest.mark.realdata
@pytest.mark.parametrize("name", ["mr", "sst5", "trec6", "sms_spam"])
def test_real_texts_read_better_than_shuffled_ones(
    model: NgramModel, mechanisms: list[Mechanism], data: Path, name: str
) -> None:
    with gzip.open(data / "utility" / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        texts = [json.loads(line)["text"] for line in lines][:500]
    rng = random.Random(2)
    shuffled = [" ".join(rng.sample(text.split(), len(text.split()))) for text in texts]
    assert model.perplexity(texts) * 1.5 < model.perplexity(shuffled)
    ratios = [
        readability(texts, DxPrivatizer(mechanism.space, mechanism).privatize(texts))
        for mechanism in mechanisms
    ]
    assert ratios == sorted(ratios, reverse=True)
    assert ratios[0] > 10
    assert 1.0 < ratios[-1] < 1.6


def test_texts_are_read_one_by_one(model: NgramModel) -> None:
    rows = [np.append(0, model.ids(words)) for words in read_words(TEXTS) if words]
    logs = np.concatenate([model.log_probabilities(ids) for ids in rows])
    assert model.perplexity([*TEXTS, "", None]) == pytest.approx(math.exp(-logs.mean()))


def test_model_is_that_of_its_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kneser–Ney by hand, of texts with all words and n-grams stored."""
    monkeypatch.setattr(build_ngram_model, "LEAST", 1)
    rng = random.Random(3)
    letters = "abcdefghijklmno"
    weights = [1 / k for k in range(1, 16)]
    texts = [rng.choices(letters, weights, k=rng.randint(1, 6)) for _ in range(150)]
    model = build_ngram_model.train(texts)
    assert model.words[3:] == tuple(letters)
    pairs = Counter(p for t in texts for p in zip(["<start>", *t], t))  # noqa: B905
    triples = {p for t in texts for p in zip(["<start>", *t], t, t[1:])}  # noqa: B905
    kinds = Counter((v, w) for _, v, w in triples)
    counts = {p: n if p[0] == "<start>" else kinds[p] for p, n in pairs.items()}
    seen = [*counts.values()]
    discount = seen.count(1) / (seen.count(1) + 2 * seen.count(2))
    after = Counter(w for _, w in counts)
    # Two of the special words are never seen, and the start is no word.
    below = {w: (after[w] + 0.5) / (len(counts) + 0.5 * 17) for w in letters}
    for before in ("<start>", "a"):
        total = sum(n for (v, _), n in counts.items() if v == before)
        varied = sum(v == before for v, _ in counts)
        for word in letters:
            # What is left for words that never follow is rounded away; weights make up for it.
            if (before, word) in counts:
                count = counts[before, word] - discount + discount * varied * below[word]
                places = [model.words.index(before), model.words.index(word)]
                found = reference(model, places[:1], places[1])
                assert found == pytest.approx(math.log(count / total), abs=0.51 * STEP)


def test_file_comes_back(model: NgramModel, tmp_path: Path) -> None:
    model.save(tmp_path / "model.npz")
    again = NgramModel.load(tmp_path / "model.npz")
    assert again.words == model.words
    for name in ("logs", "weights", "keys"):
        for ours, theirs in zip(getattr(model, name), getattr(again, name), strict=True):
            np.testing.assert_array_equal(ours, theirs)
    assert FILE.stat().st_size < 500_000
    assert "Princeton" in FILE.with_name("LICENSE-WordNet.txt").read_text("utf-8")


@pytest.mark.slow
@pytest.mark.skipif(not Path(DEFAULT_PATH).exists(), reason="needs Debian's package wordnet-base")
def test_shipped_model_is_built_again(
    model: NgramModel, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "argv", ["build", "--output", str(tmp_path / "model.npz")])
    build_ngram_model.main()
    built = NgramModel.load(tmp_path / "model.npz")
    assert built.words == model.words
    for name in ("logs", "weights", "keys"):
        for ours, theirs in zip(getattr(model, name), getattr(built, name), strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_bad_input_is_an_error(model: NgramModel, tmp_path: Path) -> None:
    for texts in ([], ["", None, " ...!"]):
        with pytest.raises(InvalidValueError, match="at least one word"):
            model.perplexity(texts)
    with pytest.raises(InvalidTypeError, match="expected texts, got a int"):
        model.perplexity([3])  # type: ignore[list-item]
    for text in ("語 emoji 🙂 \ud83d", "x" * 100_000, None, ""):
        assert math.isfinite(model.perplexity([text, "a word"]))
    whole = FILE.read_bytes()
    for content in (b"", b"{}", whole[:1000], whole[:-1000]):
        (tmp_path / "other.npz").write_bytes(content)
        with pytest.raises(ArtifactError, match="is no n-gram model"):
            NgramModel.load(tmp_path / "other.npz")
    with pytest.raises(ArtifactError, match="is no n-gram model"):
        NgramModel.load(tmp_path / "missing.npz")
