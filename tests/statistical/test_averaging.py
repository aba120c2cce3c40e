"""The averaging attack succeeds as often as it can, and no more often with memoized noise."""

from collections import Counter
from itertools import product

import numpy as np
import pytest

from hf_dxprivacy.errors import InvalidValueError
from hf_dxprivacy.evaluation import BayesAdversary, averaging
from hf_dxprivacy.mechanisms import Mechanism, TruncatedExponential
from hf_dxprivacy.privatizers.text_privatizer import DxPrivatizer
from hf_dxprivacy.results import Results
from hf_dxprivacy.spaces import EmbeddingSpace
from hf_dxprivacy.verify import inputs
from laws import check_rate

PRIOR = {"waaa": 5.0, "waab": 2.0, "waac": 2.0, "waad": 1.0}


@pytest.fixture(scope="module")
def mechanism() -> TruncatedExponential:
    vectors = np.array([[0, 0], [1, 0], [0, 2], [3, 1]], dtype=np.float32)
    return TruncatedExponential(EmbeddingSpace.from_vectors(list(PRIOR), vectors), 1.5)


def texts_of(prior: dict[str, float], words: int) -> list[str]:
    rng = np.random.default_rng(11)
    weights = np.array(list(prior.values()))
    drawn = rng.choice(list(prior), size=words, p=weights / weights.sum())
    return [" ".join(row) for row in np.array_split(drawn, 10)]


def releases_of(mechanism: Mechanism, texts: list[str], count: int) -> list[list[str]]:
    privatizers = (DxPrivatizer(mechanism.space, mechanism, seed=at) for at in range(count))
    return [privatizer({"text": texts}, range(10))["text"] for privatizer in privatizers]


def best_success(mechanism: TruncatedExponential, count: int) -> float:
    """Return how often the best guess is right: the sum over all outputs of the largest joint."""
    law = mechanism.probabilities(mechanism.space.ids(list(PRIOR)))
    weights = np.array(list(PRIOR.values()))
    outputs = product(range(len(law)), repeat=count)
    return sum(
        float((weights * law[:, list(each)].prod(axis=1)).max()) for each in outputs
    ) / float(weights.sum())


def values(results: Results) -> list[float]:
    return [result.value for result in results]


def test_success_is_that_of_the_best_adversary(mechanism: TruncatedExponential) -> None:
    texts = texts_of(PRIOR, 30_000)
    releases = releases_of(mechanism, texts, 4)
    adversary = BayesAdversary(mechanism, PRIOR)
    for result in averaging(adversary, texts, releases, counts=[1, 2, 3, 4]):
        expected = best_success(mechanism, int(result.metric[-1]))
        check_rate(round(result.value * 30_000), 30_000, expected, name=result.metric)
        assert result.low < result.value < result.high
    assert best_success(mechanism, 4) > best_success(mechanism, 1) + 0.1


@pytest.mark.parametrize("name", ["tem", "laplace"])
def test_success_grows_with_the_releases(euclidean_space: EmbeddingSpace, name: str) -> None:
    prior = dict.fromkeys(euclidean_space.words[:60], 1.0)
    mechanism = DxPrivatizer(euclidean_space, name, 2.0).mechanism
    rng = np.random.default_rng(3)
    adversary = BayesAdversary(mechanism, prior, draws=300, rng=rng)
    texts = texts_of(prior, 400)
    releases = releases_of(mechanism, texts, 16)
    found = values(averaging(adversary, texts, releases, counts=[1, 4, 16]))
    assert found[0] + 0.1 < found[1] < found[2] - 0.02
    shuffled = [" ".join(rng.permutation(text.split())) for text in texts]
    (wrong,) = averaging(adversary, shuffled, releases)
    assert wrong.value < 0.1, "about 1 in 40 by chance"


def test_memoized_releases_give_nothing_more(euclidean_space: EmbeddingSpace) -> None:
    prior = Counter(euclidean_space.words[:60])
    texts = texts_of(dict(prior), 400)
    plain = DxPrivatizer(euclidean_space, "tem", 2.0)
    adversary = BayesAdversary(plain.mechanism, prior)
    rows = {"text": texts, "who": list(range(10))}
    key = bytes(range(32))
    for privatizer in (
        DxPrivatizer(euclidean_space, "tem", 2.0, memoize="row", key=key),
        DxPrivatizer(euclidean_space, "tem", 2.0, memoize="user", user_column="who", key=key),
    ):
        releases = [privatizer(rows)["text"] for _ in range(8)]
        found = values(averaging(adversary, texts, releases, counts=[1, 2, 8]))
        assert len(set(found)) == 1
    (fresh,) = averaging(adversary, texts, [plain(rows)["text"] for _ in range(8)])
    assert fresh.value > found[0] + 0.2


def test_what_the_figures_say(mechanism: TruncatedExponential) -> None:
    texts = texts_of(PRIOR, 50)
    adversary = BayesAdversary(mechanism, PRIOR)
    releases = releases_of(mechanism, texts, 2)
    (result,) = averaging(adversary, texts, releases)
    assert (result.task, result.metric, result.repeats) == ("averaging", "top-1 of 2", 50)
    assert (result.dataset, result.mechanism, result.epsilon) == ("texts", "tem", 1.5)


@pytest.mark.parametrize("block", [1, 1 << 24])
def test_only_a_whole_release_that_is_equal_tells_nothing_new(
    mechanism: TruncatedExponential, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parts of different releases agree by chance, and count nevertheless."""
    monkeypatch.setattr(inputs, "BLOCK_BYTES", block)
    rows = mechanism.probabilities(mechanism.space.ids(list(PRIOR)))
    weights = np.array(list(PRIOR.values()))
    adversary = BayesAdversary(mechanism, PRIOR)
    outputs = ["waab waaa", "waab waac", "waab waac", "waab waad"]
    for word in PRIOR:
        expected = (weights * rows[:, 1] ** 3).argmax() == list(PRIOR).index(word)
        other = weights * rows[:, 0] * rows[:, 2] * rows[:, 3]
        expected = expected + int(other.argmax() == 0)
        (found,) = averaging(adversary, [f"{word} waaa"], [[each] for each in outputs])
        assert found.value == expected / 2


def test_what_does_not_fit_is_refused(mechanism: TruncatedExponential) -> None:
    adversary = BayesAdversary(mechanism, PRIOR)
    for counts in ([], [0], [3]):
        with pytest.raises(InvalidValueError, match="expected counts from 1 to 2, as many as"):
            averaging(adversary, ["waaa"], [["waaa"], ["waab"]], counts=counts)
    with pytest.raises(InvalidValueError, match="got 0 releases of 1 texts"):
        averaging(adversary, ["waaa"], [])
    with pytest.raises(InvalidValueError, match="got 1 releases of 1 texts without one"):
        averaging(adversary, ["Oslo"], [["waaa"]])
    with pytest.raises(InvalidValueError, match="same length, got originals: 1, released: 2"):
        averaging(adversary, ["waaa"], [["waaa", "waab"]])
    with pytest.raises(InvalidValueError, match="the same separators, with as many words"):
        averaging(adversary, ["waaa"], [["waaa waaa"]])
    with pytest.raises(InvalidValueError, match="releases whose words are all of the space"):
        averaging(adversary, ["waaa waab"], [["waaa waab"], ["waaa Oslo"]])
