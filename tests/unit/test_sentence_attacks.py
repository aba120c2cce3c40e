"""Attacks on releases of whole sentences."""

import numpy as np
import pytest

from hf_dxprivacy import SentencePool, SentencePrivatizer
from hf_dxprivacy.errors import InvalidValueError
from hf_dxprivacy.evaluation import (
    BayesAdversary,
    averaging,
    membership_inference,
    reconstruct_texts,
    reconstruction,
)
from hf_dxprivacy.mechanisms import ExactMechanism
from hf_dxprivacy.randomness import keyed_generator
from small_pools import LABELS, SENTENCES, small_pool

# Public texts, as an adversary has them: many about soup, one about nothing in the pool.
PRIOR = dict.fromkeys(SENTENCES, 1.0)
PRIOR |= {"The soup was cold!": 30.0, "a cold soup, and late": 10.0, "日本語だけ": 5.0}


@pytest.fixture(scope="module")
def pool() -> SentencePool:
    return small_pool()


def test_the_prior_of_texts_becomes_one_of_entries(pool: SentencePool) -> None:
    adversary = BayesAdversary(SentencePrivatizer(pool, epsilon=1.0), PRIOR)
    entries = pool.look_up(["The soup was cold!", "a cold soup, and late"])
    weights = np.ones(len(SENTENCES))
    np.add.at(weights, entries, [30.0, 10.0])
    found = np.zeros(len(SENTENCES))
    found[adversary.candidates] = adversary.prior
    np.testing.assert_allclose(found, weights / weights.sum())
    assert adversary.exact


@pytest.mark.parametrize("mechanism", ["hierarchical", "tem", "krr", "laplace"])
def test_reconstruction_is_that_of_the_law(pool: SentencePool, mechanism: str) -> None:
    privatizer = SentencePrivatizer(pool, mechanism, 1.2)
    found = reconstruction(privatizer, PRIOR, tops=(1, 3), bands=(), rng=keyed_generator(1))
    law = privatizer.mechanism
    success = found.results[0].value
    if isinstance(law, ExactMechanism):
        adversary = BayesAdversary(privatizer, PRIOR)
        joint = law.probabilities(adversary.candidates) * adversary.prior[:, None]
        assert success == pytest.approx(joint.max(axis=0).sum())
    assert found.results[0].metric == "top-1"
    assert max(BayesAdversary(privatizer, PRIOR).prior) - 0.05 < success < 0.9
    assert set(found.words) == set(SENTENCES)


def test_what_is_found_in_releases_is_what_was_computed(pool: SentencePool) -> None:
    privatizer = SentencePrivatizer(pool, epsilon=1.5)
    adversary = BayesAdversary(privatizer, PRIOR)
    rng = keyed_generator(2)
    draws = rng.choice(adversary.candidates, 4000, p=adversary.prior)
    # Written in another way, with the entry that they are drawn by.
    texts = [f"{SENTENCES[row].upper()}, unheard-of!" for row in draws.tolist()]
    released = privatizer.privatize(texts)
    assert None not in released
    found = reconstruct_texts(adversary, texts, [str(r) for r in released])
    expected = reconstruction(privatizer, PRIOR, tops=(1, 10), bands=()).results
    for measured, computed in zip(found[:2], expected, strict=True):
        # Five standard deviations of 4000 draws.
        assert abs(measured.value - computed.value) < 5 * 0.5 / 4000**0.5
    assert (found[0].mechanism, found[0].epsilon) == ("hierarchical", 1.5)
    # A text with an entry that no release can tell is not counted.
    more = [*texts[:3], "日本語だけ"]
    again = reconstruct_texts(adversary, more, [str(r) for r in privatizer.privatize(more)])
    assert again[0].repeats == 3


def test_several_releases_say_more_and_repeated_ones_do_not(pool: SentencePool) -> None:
    texts = SENTENCES * 10
    privatizer = SentencePrivatizer(pool, epsilon=0.8)
    prior = dict.fromkeys(SENTENCES, 1.0)
    adversary = BayesAdversary(privatizer, prior)
    fresh = [[str(r) for r in privatizer.privatize(texts)] for _ in range(20)]
    values = [r.value for r in averaging(adversary, texts, fresh, counts=[1, 20])]
    assert values[1] > values[0] + 0.3
    memoized = SentencePrivatizer(
        pool, epsilon=0.8, memoize="user", user_column="who", key=bytes(range(40))
    )
    rows = {"text": texts, "who": list(range(len(texts)))}
    same = [memoized(rows)["text"] for _ in range(20)]
    values = [r.value for r in averaging(adversary, texts, same, counts=[1, 20])]
    assert values[1] == values[0]


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"unit": "sentence"}, "got unit='sentence'; split the texts"),
        ({"refill": True}, "got refill=True; leave it out"),
        ({"label_column": "topic"}, r"got label_column=; attack the texts of one label"),
    ],
)
def test_settings_that_have_no_entry_for_a_text(
    pool: SentencePool, settings: dict[str, object], match: str
) -> None:
    with pytest.raises(InvalidValueError, match=match):
        BayesAdversary(SentencePrivatizer(pool, epsilon=1.0, **settings), PRIOR)  # type: ignore[arg-type]


def test_the_texts_of_a_label_are_attacked_in_its_part(pool: SentencePool) -> None:
    part = SentencePrivatizer(pool.with_label("film"), epsilon=1.0)
    found = reconstruction(part, PRIOR, tops=(1,))
    assert {*found.words} <= {s for s, label in zip(SENTENCES, LABELS, strict=True) if "film" in s}


def test_releases_of_another_pool_are_refused(pool: SentencePool) -> None:
    adversary = BayesAdversary(SentencePrivatizer(pool, epsilon=1.0), PRIOR)
    with pytest.raises(InvalidValueError, match="another one in row 1; were the texts released"):
        reconstruct_texts(adversary, ["a", "b"], [SENTENCES[0], "no sentence of it"])
    with pytest.raises(InvalidValueError, match="expected no language_model of words"):
        reconstruct_texts(adversary, ["a"], SENTENCES[:1], language_model=object())  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError, match="expected columns of the same length"):
        reconstruct_texts(adversary, ["a"], SENTENCES[:2])
    with pytest.raises(InvalidValueError, match="finite and not below 0"):
        BayesAdversary(SentencePrivatizer(pool, epsilon=1.0), PRIOR | {"soup": -1.0})


def test_membership_is_told_from_originals_and_not_from_sentences(pool: SentencePool) -> None:
    """Labels that can only be learned by heart: a coin for each text of words of its own."""
    pytest.importorskip("torch", reason="torch is not installed (extra: models)")
    rng = keyed_generator(3)
    mine = [f"word{k}" for k in range(300)]
    texts = [f"{' '.join(rng.choice(mine, 8))} {SENTENCES[k % 30]}" for k in range(240)]
    labels = rng.integers(2, size=len(texts)).tolist()
    privatizer = SentencePrivatizer(pool, epsilon=1.0)
    released = [str(r) for r in privatizer.privatize(texts)]
    open_ = membership_inference(texts, texts, labels, repeats=1, rng=keyed_generator(4))
    hidden = membership_inference(texts, released, labels, repeats=1, rng=keyed_generator(4))
    assert open_[0].value > 0.8
    # Of 60 members and as many others, twice: four standard deviations.
    assert abs(hidden[0].value - 0.5) < 0.15
