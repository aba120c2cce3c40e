"""Statistics of mechanisms: by hand, against a naive reading of their definition, and by draws."""

import numpy as np
import pytest
from opaque import Opaque

from hf_dxprivacy.calibration import PrivacyStatistics, measuring, privacy_statistics
from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError
from hf_dxprivacy.mechanisms import MultivariateLaplace, TruncatedExponential
from hf_dxprivacy.randomness import keyed_generator
from hf_dxprivacy.spaces import EmbeddingSpace


@pytest.fixture
def line() -> TruncatedExponential:
    """Words at 0, 1 and 3 with weights 2^−d: 8, 4, 1 of 13; 2, 4, 1 of 7; 1, 2, 8 of 11."""
    space = EmbeddingSpace.from_vectors(["zero", "one", "three"], [[0.0], [1.0], [3.0]])
    return TruncatedExponential(space, 2.0 * np.log(2.0), gamma=5.0)


def as_rows(statistics: PrivacyStatistics) -> list[tuple[object, ...]]:
    return list(
        zip(
            statistics.words,
            statistics.kept.tolist(),
            statistics.support.tolist(),
            statistics.distinct.tolist(),
            strict=True,
        )
    )


def test_three_words_by_hand(line: TruncatedExponential) -> None:
    found = privacy_statistics(line, runs=2, eta=0.1)
    assert found.words == ("zero", "one", "three")
    assert found.kept == pytest.approx([8 / 13, 4 / 7, 8 / 11])
    # 12/13 and 10/11 of the probability are enough, 6/7 is not.
    assert found.support.tolist() == [2, 3, 2]
    # Σ 1−(1−p)² = 2 − Σp².
    expected = [2 - 81 / 169, 2 - 21 / 49, 2 - 69 / 121]
    assert found.distinct == pytest.approx(expected)
    assert (found.exact, found.runs, found.eta) == (True, 2, 0.1)


def test_words_are_looked_at_in_the_order_given(line: TruncatedExponential) -> None:
    forward, backward = privacy_statistics(line), privacy_statistics(line, ["three", "zero"])
    assert as_rows(backward) == [as_rows(forward)[2], as_rows(forward)[0]]
    assert as_rows(privacy_statistics(line, [])) == []


def test_support_that_holds_exactly_what_it_must() -> None:
    space = EmbeddingSpace.from_vectors([f"w{i}" for i in range(20)], np.ones((20, 2)))
    found = privacy_statistics(TruncatedExponential(space, 1.0), eta=0.05)
    assert set(found.support.tolist()) == {19}
    assert found.kept == pytest.approx(1 / 20)


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 4.0, 30.0, 1000.0])
@pytest.mark.parametrize("eta", [1e-6, 0.05, 0.5, 0.999])
def test_support_is_the_least_number_that_holds_enough(
    euclidean_space: EmbeddingSpace, epsilon: float, eta: float
) -> None:
    mechanism = TruncatedExponential(euclidean_space, epsilon)
    found = privacy_statistics(mechanism, euclidean_space.words[:40], eta=eta)
    descending = -np.sort(-mechanism.probabilities(np.arange(40)), axis=1)
    for held, least in zip(np.cumsum(descending, axis=1), found.support, strict=True):
        assert held[least - 1] >= 1 - eta - 1e-9
        assert least == 1 or held[least - 2] < 1 - eta + 1e-9


def test_blocks_do_not_change_the_figures(
    euclidean_space: EmbeddingSpace, monkeypatch: pytest.MonkeyPatch
) -> None:
    mechanism = TruncatedExponential(euclidean_space, 3.0)
    whole = privacy_statistics(mechanism)
    monkeypatch.setattr(measuring, "BLOCK_ENTRIES", 7 * len(euclidean_space))
    parts = privacy_statistics(mechanism)
    assert (parts.words, parts.support.tolist()) == (whole.words, whole.support.tolist())
    np.testing.assert_allclose(parts.kept, whole.kept, rtol=1e-9)
    np.testing.assert_allclose(parts.distinct, whole.distinct, rtol=1e-9)


@pytest.mark.parametrize("epsilon", [1.0, 4.0, 8.0])
def test_draws_agree_with_the_law(euclidean_space: EmbeddingSpace, epsilon: float) -> None:
    mechanism, words, runs = TruncatedExponential(euclidean_space, epsilon), 60, 400
    chosen = euclidean_space.words[:words]
    exact = privacy_statistics(mechanism, chosen, runs)
    drawn = privacy_statistics(Opaque(mechanism), chosen, runs, rng=keyed_generator(1))
    assert (exact.exact, drawn.exact) == (True, False)
    deviation = np.sqrt(exact.kept * (1 - exact.kept) / runs)
    assert (np.abs(drawn.kept - exact.kept) <= 5 * deviation + 1e-9).all()
    # A count of outputs that occur varies less than a Poisson variable of that mean.
    assert (np.abs(drawn.distinct - exact.distinct) <= 5 * np.sqrt(exact.distinct)).all()
    assert abs((drawn.distinct - exact.distinct).sum()) <= 5 * np.sqrt(exact.distinct.sum())
    assert (drawn.support <= np.minimum(exact.support + 20, runs)).all()


def test_draws_follow_their_generator(euclidean_space: EmbeddingSpace) -> None:
    mechanism, words = MultivariateLaplace(euclidean_space, 5.0), euclidean_space.words[:30]
    first, again, other, fresh = (
        as_rows(privacy_statistics(mechanism, words, 50, rng=rng))
        for rng in (keyed_generator(1), keyed_generator(1), keyed_generator(2), None)
    )
    assert first == again
    assert first != other
    assert fresh not in (first, other)


def test_extremes_of_the_noise(euclidean_space: EmbeddingSpace) -> None:
    words = euclidean_space.words[:10]
    silent = privacy_statistics(MultivariateLaplace(euclidean_space, 1e9), words, 100)
    assert {row[1:] for row in as_rows(silent)} == {(1.0, 1, 1.0)}
    loud = privacy_statistics(MultivariateLaplace(euclidean_space, 0.05), words, 100)
    assert loud.kept.max() < 0.2
    assert loud.distinct.min() > 20


def test_unknown_words_are_counted_and_not_repeated(line: TruncatedExponential) -> None:
    with pytest.raises(InvalidValueError, match="got 1 of 2 that it lacks") as caught:
        privacy_statistics(line, ["one", "secret"])
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"words": "one"}, InvalidTypeError, "got a single string"),
        ({"runs": 0}, InvalidValueError, "expected runs >= 1, got runs=0"),
        ({"runs": 10.0}, InvalidTypeError, "expected runs to be an integer"),
        ({"eta": 0.0}, InvalidValueError, r"expected 0\.0 < eta < 1\.0"),
        ({"eta": 1.0}, InvalidValueError, r"expected 0\.0 < eta < 1\.0"),
    ],
)
def test_arguments_are_checked(
    line: TruncatedExponential, arguments: dict[str, object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        privacy_statistics(line, **arguments)  # type: ignore[arg-type]
