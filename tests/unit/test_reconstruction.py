"""The Bayes-optimal adversary: exact success, the same by simulation, and its limits."""

import numpy as np
import pytest
from numpy.typing import NDArray

from hf_dxprivacy.errors import InvalidValueError
from hf_dxprivacy.evaluation import BayesAdversary, averaging, reconstruct_texts, reconstruction
from hf_dxprivacy.evaluation import adversary as likelihood
from hf_dxprivacy.evaluation.adversary import EstimatedDistribution, ExactDistribution
from hf_dxprivacy.mechanisms import Mechanism, TruncatedExponential, create_mechanism
from hf_dxprivacy.privatizers.text_privatizer import DxPrivatizer
from hf_dxprivacy.randomness import RowStreams
from hf_dxprivacy.results import share_interval
from hf_dxprivacy.spaces import EmbeddingSpace
from hf_dxprivacy.text.shapes import FAMILIES

RNG = np.random.default_rng
SURE = 1 - 1e-6


class Opaque(Mechanism):
    """Draws as TEM does, and does not tell its law."""

    name = "opaque"

    def _draw(
        self, ids: NDArray[np.int64], streams: RowStreams, positions: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        return TruncatedExponential(self.space, self.epsilon)._draw(ids, streams, positions)


@pytest.fixture(scope="module")
def prior(euclidean_space: EmbeddingSpace) -> dict[str, float]:
    """Return Zipfian frequencies of every other word, and of one that the space lacks."""
    words = euclidean_space.words[::2]
    return {"elsewhere": 5.0, **{word: 1.0 / i for i, word in enumerate(words, start=1)}}


@pytest.mark.parametrize("name", ["tem", "calibrated"])
@pytest.mark.parametrize("epsilon", [0.5, 3.0])
@pytest.mark.parametrize("entries", [0, likelihood.TABLE_ENTRIES])
def test_exact_success_is_what_bayes_rule_gives(
    euclidean_space: EmbeddingSpace,
    prior: dict[str, float],
    name: str,
    epsilon: float,
    entries: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Large vocabularies are worked out output by output.
    monkeypatch.setattr(likelihood, "TABLE_ENTRIES", entries)
    mechanism = create_mechanism(name, euclidean_space, epsilon)
    found = reconstruction(mechanism, prior, tops=(1, 10))
    law = mechanism.probabilities(euclidean_space.ids(found.words))  # type: ignore[attr-defined]
    success = np.zeros_like(found.success)
    for column in law.T:
        ranked = np.argsort(-(column * found.prior))
        for k, top in enumerate(found.tops):
            success[ranked[:top], k] += column[ranked[:top]]
    np.testing.assert_allclose(found.success, success, atol=1e-9)
    assert found.exact
    overall = found.results.where(metric="top-1")[0]
    assert overall.low == overall.value == overall.high
    assert overall.value == pytest.approx(found.prior @ success[:, 0])


@pytest.mark.parametrize("name", ["tem", "calibrated"])
def test_exact_success_is_the_simulated_one_within_its_interval(
    euclidean_space: EmbeddingSpace, prior: dict[str, float], name: str
) -> None:
    mechanism = create_mechanism(name, euclidean_space, 2.0)
    adversary = BayesAdversary(mechanism, prior)
    at = RNG(0).choice(len(adversary.prior), 20_000, p=adversary.prior)
    outputs = mechanism.sample(adversary.candidates[at], RNG(1))
    guesses = adversary.guess(outputs, 10)
    exact = reconstruction(mechanism, prior).results
    for metric, hits in (
        ("top-1", guesses[:, 0] == at),
        ("top-10", (guesses == at[:, None]).any(axis=1)),
    ):
        interval = share_interval(int(hits.sum()), len(at), SURE)
        assert interval.low < exact.where(metric=metric)[0].value < interval.high


def test_drawn_success_is_at_most_the_exact_one_and_near_it(
    euclidean_space: EmbeddingSpace, prior: dict[str, float]
) -> None:
    mechanism = create_mechanism("tem", euclidean_space, 3.0)
    exact = reconstruction(mechanism, prior).results.where(metric="top-1")[0].value
    drawn = reconstruction(Opaque(euclidean_space, 3.0), prior, draws=2000, rng=RNG(0))
    assert not drawn.exact
    overall = drawn.results.where(metric="top-1")[0]
    assert overall.low - 0.01 < exact
    assert overall.value == pytest.approx(exact, abs=0.02)
    assert 0 < overall.high - overall.low < 0.02


def test_drawn_laws_come_near_the_exact_one(euclidean_space: EmbeddingSpace) -> None:
    mechanism = create_mechanism("tem", euclidean_space, 3.0)
    inputs, outputs = np.arange(20), np.arange(500)
    prior = np.full(20, 0.05)
    exact = ExactDistribution(mechanism, inputs).likelihoods(outputs)  # type: ignore[arg-type]
    drawn = EstimatedDistribution(mechanism, inputs, prior, 20_000, RNG(0)).likelihoods(outputs)
    np.testing.assert_allclose(drawn.sum(axis=0), 1.0)
    np.testing.assert_allclose(drawn, exact, atol=0.02)


def test_without_privacy_every_word_is_known_and_with_much_only_the_most_frequent(
    euclidean_space: EmbeddingSpace, prior: dict[str, float]
) -> None:
    open_ = reconstruction(create_mechanism("tem", euclidean_space, 200.0), prior)
    assert open_.success.min() > 0.99
    closed = reconstruction(create_mechanism("tem", euclidean_space, 1e-6), prior)
    assert closed.results.where(metric="top-1")[0].value == pytest.approx(closed.prior.max())
    top = closed.results.where(metric="top-10")[0].value
    assert top == pytest.approx(np.sort(closed.prior)[-10:].sum(), rel=1e-3)


def test_laplace_leaks_more_the_larger_epsilon_and_never_less_than_the_prior(
    euclidean_space: EmbeddingSpace, prior: dict[str, float]
) -> None:
    found = [
        reconstruction(
            create_mechanism("laplace", euclidean_space, epsilon), prior, draws=100, rng=RNG(0)
        )
        for epsilon in (0.1, 3.0, 30.0)
    ]
    values = [each.results.where(metric="top-1")[0].value for each in found]
    # Who learns from few draws must not take chance for knowledge.
    assert values[0] > 0.9 * found[0].prior.max()
    assert values[0] < 1.5 * found[0].prior.max()
    assert values[0] < values[1] < values[2]


def test_bands_add_up_to_the_whole(
    euclidean_space: EmbeddingSpace, prior: dict[str, float]
) -> None:
    found = reconstruction(create_mechanism("tem", euclidean_space, 2.0), prior, bands=(10, 100))
    names = [r.metric for r in found.results]
    assert names[::2] == [
        "top-1",
        "top-1, words 1–10",
        "top-1, words 11–100",
        "top-1, words 101–250",
    ]
    masses = [part.sum() for part in np.split(found.prior, [10, 100])]
    parts = [r.value for r in found.results[2::2]]
    assert np.dot(masses, parts) == pytest.approx(found.results[0].value)
    assert list(found.prior) == sorted(found.prior, reverse=True)
    assert "elsewhere" not in found.words


def test_a_band_that_is_named_twice_is_one(
    euclidean_space: EmbeddingSpace, prior: dict[str, float]
) -> None:
    mechanism = create_mechanism("tem", euclidean_space, 2.0)
    once, twice = (reconstruction(mechanism, prior, bands=b).results for b in ((10,), (10, 10)))
    assert once == twice


def test_a_few_draws_make_nothing_certain() -> None:
    space = EmbeddingSpace.from_vectors(list("abcd"), 10.0 * np.eye(4))
    drawn = reconstruction(Opaque(space, 50.0), dict.fromkeys("abcd", 1.0), draws=9, rng=RNG(0))
    (known, *_) = drawn.results
    assert known.value == known.high == 1.0
    assert 0.85 < known.low < 0.95, "as Clopper–Pearson has it, 0.90 for 36 of 36"


def test_posteriors_add_up_to_one_and_follow_a_given_prior(
    euclidean_space: EmbeddingSpace, prior: dict[str, float]
) -> None:
    adversary = BayesAdversary(create_mechanism("tem", euclidean_space, 1.0), prior)
    outputs = np.array([3, 400])
    assert adversary.posterior(outputs).sum(axis=1) == pytest.approx(1.0)
    certain = np.zeros((2, len(adversary.prior)))
    certain[0, 7] = certain[1, 9] = 1.0
    assert adversary.guess(outputs, 1, certain)[:, 0].tolist() == [7, 9]


def test_words_of_texts_are_guessed_as_often_as_expected(
    euclidean_space: EmbeddingSpace, prior: dict[str, float]
) -> None:
    mechanism = create_mechanism("calibrated", euclidean_space, 3.0)
    adversary = BayesAdversary(mechanism, prior)
    words = np.array(euclidean_space.words)[adversary.candidates]
    texts = [" ".join(RNG(i).choice(words, 50, p=adversary.prior)) + ", Zzz!" for i in range(200)]
    released = DxPrivatizer(euclidean_space, mechanism, seed=1).privatize(texts)
    found = reconstruct_texts(adversary, texts, [str(text) for text in released])
    expected = reconstruction(mechanism, prior).results
    for metric in ("top-1", "top-10"):
        result = found.where(metric=metric)[0]
        interval = share_interval(round(result.value * result.repeats), result.repeats, SURE)
        assert interval.low < expected.where(metric=metric)[0].value < interval.high
    assert found[0].repeats == 200 * 50
    (counted,) = found.where(metric="counted")
    assert (counted.value, counted.repeats) == (pytest.approx(50 / 51), 200 * 51)
    assert found.where(metric="unchanged")[0].value < found.where(metric="top-1")[0].value


@pytest.fixture(scope="module")
def shaped(euclidean_space: EmbeddingSpace) -> EmbeddingSpace:
    """Return words with shapes among them."""
    return euclidean_space.with_shapes(dict.fromkeys(FAMILIES, euclidean_space.words[40:60]))


@pytest.mark.parametrize("epsilon", [1e-6, 4.0, 200.0])
def test_redrawn_numbers_are_neither_kept_nor_guessed(
    shaped: EmbeddingSpace, epsilon: float
) -> None:
    texts = [["waaa", f"{k}", "waab", f"{k}.5", "Waac", "zzz"] for k in range(1000, 1200)]
    mechanism = create_mechanism("tem", shaped, epsilon)
    # Most words are numbers: who guessed their shape would never be right.
    prior = {"<number:4>": 9.0, "<decimal>": 9.0, "waaa": 1.0, "waab": 1.0, "waac": 1.0}
    adversary = BayesAdversary(mechanism, prior)
    released = DxPrivatizer(shaped, mechanism, seed=2).privatize(texts)
    found = reconstruct_texts(adversary, texts, released)  # type: ignore[arg-type]
    guessed, _, same, both, counted, *names = found
    assert both.value <= min(guessed.value, same.value)
    # Of numbers the prior has none, and "Waac" is a name that the space has.
    asked = [(r.metric, r.repeats) for r in names]
    assert asked == [
        ("top-1 of numbers", 400), ("top-10 of numbers", 400),
        ("top-1 of names", 200), ("top-10 of names", 200),
    ]  # fmt: skip
    assert [r.value for r in names[:2]] == [0.0, 0.0]
    assert names[3].value == 1.0
    assert [(r.metric, r.repeats) for r in (guessed, same, counted)] == [
        ("top-1", 600), ("unchanged", 600), ("counted", 1200)
    ]  # fmt: skip
    assert counted.value == 0.5
    assert guessed.high >= max(same.value, 1 / 3)
    if epsilon == 200.0:
        assert same.value == 1.0


@pytest.mark.parametrize("name", ["tem", "laplace"])
def test_numbers_and_names_have_rows_of_their_own(shaped: EmbeddingSpace, name: str) -> None:
    """Without privacy who knows the commonest number and name gets these, and words it has."""
    tokens = ["waab", "Waac", "1234", "Kowalska", "I", "Waad", "waae"]
    texts = [tokens] * 30 + [["waab", "Waac", "5678", "Lindqvist"]] * 10
    prior = {**dict.fromkeys(("waab", "waac", "waae"), 10.0), "1234": 30.0, "5678": 10.0}
    prior |= {"Kowalska": 30.0, "Lindqvist": 10.0}
    for epsilon in (300.0, 1e-6):
        mechanism = create_mechanism(name, shaped, epsilon)
        adversary = BayesAdversary(mechanism, prior, draws=50, rng=RNG(1))
        assert {word for _, word in adversary.hidden} == {"1234", "5678", "kowalska", "lindqvist"}
        released = DxPrivatizer(shaped, mechanism, seed=3).privatize(texts)
        found = reconstruct_texts(adversary, texts, released, tops=(1, 3))  # type: ignore[arg-type]
        of = {r.metric: (r.value, r.repeats) for r in found}
        assert (of["top-1 of numbers"][1], of["top-1 of names"][1]) == (40, 110)
        if epsilon > 1.0:
            assert (of["top-1 of numbers"][0], of["top-3 of numbers"][0]) == (0.75, 1.0)
            # "Waac" and "Kowalska", but neither "Waad", which the prior lacks, nor "Lindqvist".
            # A name that is drawn may look like a word at its place.
            assert 40 / 110 <= of["top-1 of names"][0] <= 70 / 110
            assert of["top-1"][0] == pytest.approx(110 / 140)
        else:
            assert of["top-1 of numbers"][0] in (0.0, 0.75)


def test_texts_of_another_length_are_refused_without_quoting_them(
    euclidean_space: EmbeddingSpace, prior: dict[str, float]
) -> None:
    adversary = BayesAdversary(create_mechanism("tem", euclidean_space, 1.0), prior)
    with pytest.raises(
        InvalidValueError, match="in 1 of 2 rows, first in row 1; are the"
    ) as caught:
        reconstruct_texts(adversary, ["waaa", "secret plan"], ["waab", "waac"])
    assert "secret" not in str(caught.value)
    with pytest.raises(InvalidValueError, match="words of the space in the texts"):
        reconstruct_texts(adversary, ["unknown"], ["waac"])


def test_releases_that_do_not_fit_are_left_out_and_lists_of_tokens_fit(
    caplog: pytest.LogCaptureFixture,
) -> None:
    words = ["pg", "soup", "1837", "13", "rock-roll", ","]
    space = EmbeddingSpace.from_vectors(words, RNG(0).normal(size=(6, 3)))
    adversary = BayesAdversary(create_mechanism("krr", space, 2.0), dict.fromkeys(words, 1.0))
    # One word less, one less and one more, and as many words between other separators.
    odd = {3: "1837-13 soup", 5: "1837-13 rock-roll", 7: "13-pg, soup"}
    texts = ["pg-13 soup"] * 40
    released = [odd.get(at, "soup-pg pg") for at in range(40)]
    found = reconstruct_texts(adversary, texts, released)
    assert found[0].repeats == 37 * 3
    assert "3 of 40 releases have other words" in caplog.text
    other = ["13-pg soup", "1837-13 soup", *released[2:]]
    assert averaging(adversary, texts, [released, other])[0].repeats == 36 * 3
    with pytest.raises(InvalidValueError, match="others in 40 of 40 rows, first in row 0"):
        reconstruct_texts(adversary, texts, ["1837-13 soup"] * 40)
    tokens = [["pg", "-", "13", None], None]
    found = reconstruct_texts(adversary, tokens, [[",", "-", "rock-roll", None], None])
    assert found[0].repeats == 2
    with pytest.raises(InvalidValueError, match="in 1 of 2 rows, first in row 0"):
        reconstruct_texts(adversary, tokens, [["pg", "13"], None])


def test_impossible_priors_are_refused(euclidean_space: EmbeddingSpace) -> None:
    mechanism = create_mechanism("tem", euclidean_space, 1.0)
    with pytest.raises(InvalidValueError, match="2 words of which it has none"):
        BayesAdversary(mechanism, {"Elsewhere": 1.0, "nowhere": 2.0})
    with pytest.raises(InvalidValueError, match="finite and not below 0"):
        BayesAdversary(mechanism, {"waaa": -1.0})
    for tops in ((0,), ()):
        with pytest.raises(InvalidValueError, match="tops >= 1, got tops=0"):
            reconstruction(mechanism, {"waaa": 1.0}, tops=tops)
