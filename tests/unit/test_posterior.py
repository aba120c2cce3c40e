"""`posterior` of privatizers: how releases are read, priors, and what is refused."""

import pickle
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer, models

from hf_dxprivacy import EmbeddingSpace, SentencePool, SentencePrivatizer
from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError
from hf_dxprivacy.privatizers.text_privatizer import DxPrivatizer
from hf_dxprivacy.privatizers.token_privatizer import TokenPrivatizer
from hf_dxprivacy.slots import ContentWordSelector
from hf_dxprivacy.slots.slot_privatizer import SlotPrivatizer
from hf_dxprivacy.verify.posterior import UNKNOWN_SHARE, frequencies


@pytest.fixture(scope="module")
def english() -> EmbeddingSpace:
    return EmbeddingSpace.from_pretrained("english")


def made(space: EmbeddingSpace, **options: Any) -> DxPrivatizer:
    return DxPrivatizer(space, "hierarchical", 1.5, **options)


def test_a_text_is_read_word_by_word(english: EmbeddingSpace) -> None:
    found = made(english).posterior("call Mcbride, 20391 of zzyzxq!", k=2)
    assert [each.word for each in found] == ["call", "Mcbride", "20391", "of", "zzyzxq"]
    call, name, number, of, strange = found
    assert 0.3 < of.probability < 1.0
    assert of.originals[0] == ("of", pytest.approx(of.probability))
    assert call.originals[0][1] > call.originals[1][1] > 0.0
    # A rendering is drawn afresh: no word, but what kind of word it was.
    assert (name.probability, name.originals[0][0]) == (0.0, "<name>")
    assert (number.probability, number.originals[0][0]) == (0.0, "<number:5>")
    assert strange == ("zzyzxq", None, ())


def test_forms_of_a_release(english: EmbeddingSpace) -> None:
    privatizer = made(english)
    rows = privatizer.posterior([None, "", " … ", ["soup", None, "."], "日本語 soup"])
    assert [None if row is None else len(row) for row in rows] == [None, 0, 0, 1, 2]
    assert rows[3][0] == rows[4][1] == privatizer.posterior("soup")[0]
    assert rows[4][0].probability is None
    assert b"_laws" not in pickle.dumps(privatizer)
    assert pickle.loads(pickle.dumps(privatizer)).posterior("soup") == [rows[3][0]]


def test_a_copied_letter_case_is_looked_through(english: EmbeddingSpace) -> None:
    lower = made(english).posterior("soup for mcbride")
    (soup, _, name) = made(english, case="preserve").posterior("SOUP for mcbride")
    assert soup.probability == lower[0].probability
    assert name.probability == lower[2].probability


def test_stop_words_are_near_certain_and_never_the_original_of_others(
    english: EmbeddingSpace,
) -> None:
    stopped = made(english, stopwords=["of", "Zzyzxq"])
    of, number, own, soup = stopped.posterior("of OF zzyzxq and", k=30)
    # Some word may have become it, rarely.
    assert made(english).posterior("of")[0].probability < 0.6 < of.probability < 1.0
    assert number.probability == of.probability
    assert own.probability == 1.0
    assert "of" not in dict(soup.originals)


def test_words_that_are_kept_are_certain(english: EmbeddingSpace) -> None:
    kept, drawn, name = made(english, oov="keep").posterior("zzyzxq heck 20391")
    assert kept.probability == 1.0
    # No unknown word became another one.
    assert drawn.probability > made(english).posterior("heck")[0].probability
    assert name.probability == 0.0


def test_masks_say_which_words_are_of_slots(english: EmbeddingSpace) -> None:
    selector = ContentWordSelector()
    privatizer = SlotPrivatizer(
        english, "hierarchical", 1.5, selector=selector, mask_column="mask", seed=7
    )
    texts = ["The soup was cold.", None, "Call the doctor"]
    released = privatizer({"text": texts})
    rows = privatizer.posterior(released["text"], masks=released["mask"])
    for row, mask in zip(rows, released["mask"], strict=True):
        assert row is None or [each.probability == 1.0 for each in row] == [not own for own in mask]
    tokens = privatizer.posterior([["soup", ".", "the"]], masks=[[True, False, False]])[0]
    assert [each.probability == 1.0 for each in tokens] == [False, True]
    with pytest.raises(InvalidValueError, match=r"expected masks= with a privatizer of slots"):
        privatizer.posterior(["soup"])
    with pytest.raises(InvalidValueError, match=r"a mask of 1 words in row 0, got 2; mask_column="):
        privatizer.posterior(["soup"], masks=[[True, True]])
    with pytest.raises(InvalidValueError, match=r"expected a mask for each of 1 rows, got 2"):
        privatizer.posterior(["soup"], masks=[[True], [True]])
    with pytest.raises(InvalidValueError, match=r"expected masks= with a privatizer of slots"):
        made(english).posterior(["soup"], masks=[[True]])


def test_priors(euclidean_space: EmbeddingSpace) -> None:
    space = euclidean_space.build_hierarchy(progress=False)
    words = {"Waab": 2.0, "waac": 6.0, "elsewhere": 2.0}
    prior, unknown = frequencies(space, words)
    assert unknown == pytest.approx(0.2)
    assert prior[space.ids(["waab", "waac"])].tolist() == pytest.approx([0.2, 0.6])
    zipf, unknown = frequencies(space, "zipf")
    assert unknown == pytest.approx(UNKNOWN_SHARE)
    assert zipf.sum() + unknown == pytest.approx(1.0)
    assert (np.diff(zipf) < 0).all()
    privatizer = made(space)
    # The order of its rows is not known.
    assert privatizer.posterior("waab") == privatizer.posterior("waab", "uniform")
    assert privatizer.posterior("waab", np.ones(len(space))) == privatizer.posterior("waab")
    two = privatizer.posterior("waaz", words, k=5)[0]
    assert two.probability == 0.0
    assert {word for word, _ in two.originals} == {"waab", "waac"}


def test_tokens(euclidean_space: EmbeddingSpace) -> None:
    names = ["[UNK]", "[CLS]", "zzz", *euclidean_space.words]
    tokenizer = Tokenizer(models.WordLevel({n: i for i, n in enumerate(names)}, unk_token="[UNK]"))
    tokenizer.add_special_tokens(["[UNK]", "[CLS]"])
    privatizer = TokenPrivatizer(euclidean_space, tokenizer, "krr", 8.0)
    special, unknown, other, word = privatizer.posterior([1, 0, 2, 10], k=2)
    assert (special.word, special.probability) == (1, 1.0)
    assert unknown.probability is other.probability is None
    assert word.probability == pytest.approx(np.exp(8.0) / (np.exp(8.0) + 499))
    assert word.originals[0] == (10, pytest.approx(word.probability))
    assert privatizer.posterior([[1, 10], None]) == [[special, (10, word.probability, ())], None]
    with pytest.raises(InvalidValueError, match=r"masks= is for a SlotPrivatizer"):
        privatizer.posterior([[1]], masks=[[True]])


def test_sentences(euclidean_space: EmbeddingSpace) -> None:
    sentences = [
        f"{a} {b} {c}" for a in ("waaa", "waab") for b in ("waac", "waad") for c in ("waae",)
    ]
    pool = SentencePool.from_sentences(sentences, euclidean_space, progress=False)
    privatizer = SentencePrivatizer(pool, epsilon=1.0)
    ((entry,), (strange,)) = privatizer.posterior([sentences[2], "no entry"], k=4)
    law = privatizer.mechanism.probabilities(np.arange(4))  # type: ignore[attr-defined]
    column = law[:, pool.sentences.index(sentences[2])]
    assert entry.probability == pytest.approx(max(column) / column.sum())
    assert {word for word, _ in entry.originals} == set(sentences)
    assert sum(share for _, share in entry.originals) == pytest.approx(1.0)
    assert strange == ("no entry", None, ())
    labelled = SentencePool.from_sentences(
        sentences, euclidean_space, labels=[*"aabb"], progress=False
    )
    by_label = SentencePrivatizer(labelled, epsilon=1.0, label_column="topic")
    with pytest.raises(InvalidValueError, match=r"label_column='topic' .*pool\.with_label"):
        by_label.posterior(sentences)


def test_what_is_refused(euclidean_space: EmbeddingSpace) -> None:
    laplace = DxPrivatizer(euclidean_space, "laplace", 3.0)
    with pytest.raises(InvalidValueError, match=r"law of mechanism 'laplace' .*BayesAdversary"):
        laplace.posterior("waaa")
    privatizer = DxPrivatizer(euclidean_space, "tem", 3.0)
    for prior, said in (
        ("zipff", r"expected prior to be one of 'zipf', 'uniform'; got prior='zipff'"),
        ({"nowhere": 1.0}, r"expected a prior that has words of the space"),
        ({"waaa": -1.0}, r"expected 1 finite numbers not below 0 in prior"),
        ([1.0, 2.0], r"expected 500 finite numbers .* of shape \(2,\)"),
    ):
        with pytest.raises(InvalidValueError, match=said):
            privatizer.posterior("waaa", prior)
    with pytest.raises(InvalidTypeError, match=r"expected prior to be 'zipf', .* got a object"):
        privatizer.posterior("waaa", object())
    with pytest.raises(InvalidValueError, match=r"expected k >= 0, got k=-1"):
        privatizer.posterior("waaa", k=-1)
    for released in ({"text": ["waaa"]}, b"waaa", 3):
        with pytest.raises(InvalidTypeError, match=r"hand over a column"):
            privatizer.posterior(released)
    with pytest.raises(InvalidTypeError, match=r"column 'released', row 0 of the batch"):
        privatizer.posterior([3])
