"""Other weights than exp(−s·d_γ) for `calibrated`, at the same exact level in the same metric d_γ.

For each family of weights, the largest s is taken whose level over all pairs of inputs, the
centroid among them, is at most ε, by bisection. γ of the metric is that of `calibrated`. Compared
are N_w (probability that a word stays as it is) and the mean distance of the output, both exact and
weighted by how often a word stands in movie reviews (MR), and the accuracy on MR of a logistic
regression on averaged vectors, trained on privatized and tested on plain sentences. Vectors: the
most frequent words of GloVe 840B 300-d; time and memory grow with the square of their number.

    python benchmarks/calibrated_variants.py --words 1500 --epsilons 1 1.5 2 --draws 3
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

import common
from hf_dxprivacy import EmbeddingSpace
from hf_dxprivacy.mechanisms.certificate import truncation_weight
from hf_dxprivacy.mechanisms.levels import grid_value
from hf_dxprivacy.text import RowReader
from mr_accuracy import accuracy

Array = NDArray[np.float64]
# ln of the weights for a slope and the distances between all inputs, (V+1, V+1): the last one is
# the centroid, which is no output, so that its column counts for nothing but differences.
Family = Callable[[float, Array], Array]
BETA = 0.001


def metric(transform: Callable[[Array], Array]) -> Family:
    """Weigh by a concave transform of the distance, which is a metric too."""
    return lambda slope, distances: -slope * transform(distances)


def other_beta(beta: float) -> Family:
    """Truncate the weights, and not the metric, at the γ of another β."""

    def weigh(slope: float, distances: Array) -> Array:
        exponent = -math.log(truncation_weight(len(distances) - 1, beta))
        return -np.minimum(slope * distances, exponent)

    return weigh


def balanced(steps: int, rate: float = 0.3) -> Family:
    """Give each output a weight of its own, in steps that level the normalisers of the inputs."""

    def weigh(slope: float, distances: Array) -> Array:
        weights = -slope * distances
        own = np.zeros(len(distances))
        for _ in range(steps):
            sums = _log_sums(weights + own)
            own -= rate * (sums - sums.mean())
        return weights + own

    return weigh


def sparse_slopes(change: float) -> Family:
    """Weigh outputs by a slope of their own, up to s, less by this share in sparse regions."""

    def weigh(slope: float, distances: Array) -> Array:
        nearest = _nearest(distances)
        rank = np.argsort(np.argsort(nearest)) / len(nearest)
        return -slope * (1.0 - change * rank) * distances

    return weigh


def kept(share: float) -> Family:
    """Raise a word's own weight by a share of s times the distance of its nearest neighbour."""

    def weigh(slope: float, distances: Array) -> Array:
        nearest = _nearest(distances)
        return -slope * distances + np.diag(share * slope * nearest)

    return weigh


def _log_sums(logs: Array) -> Array:
    sums: Array = np.log(np.exp(logs[:, :-1]).sum(axis=1))
    return sums


def _nearest(distances: Array) -> Array:
    nearest: Array = np.where(distances > 0, distances, np.inf)[:, :-1].min(axis=1)
    return nearest


OWN = metric(lambda d: d)
SPARSE = sparse_slopes(0.1)
FAMILIES: dict[str, Family] = {
    "exp(−s·d), `calibrated`": OWN,
    "the same, fitted unknown word": metric(lambda d: d),
    "β = 0.1": other_beta(0.1),
    "β = 10⁻⁶": other_beta(1e-6),
    "d^0.9": metric(lambda d: d**0.9),
    "d^0.7": metric(lambda d: d**0.7),
    "30·ln(1+d/30)": metric(lambda d: 30.0 * np.log1p(d / 30.0)),
    "10·(1−e^(−d/10))": metric(lambda d: -10.0 * np.expm1(-d / 10.0)),
    "output weights, 5 steps": balanced(5),
    "output weights, 20 steps": balanced(20),
    "output weights, 5 steps, fitted unknown word": balanced(5),
    "output weights, 20 steps, fitted unknown word": balanced(20),
    "slopes 10 % less where sparse": SPARSE,
    "own weight + 0.05·s·d(1st)": kept(0.05),
    "own weight + 0.2·s·d(1st)": kept(0.2),
}


# Those that leave the unknown word a law of its own, whatever fits those of all words.
FITTED = tuple(family for name, family in FAMILIES.items() if name.endswith("fitted unknown word"))


@dataclass(frozen=True)
class Law:
    """Probabilities of the outputs for each word, (V, V), and the level."""

    slope: float
    level: float
    probabilities: Array


def fits(logs: Array, to_centroid: Array, epsilon: float) -> bool:
    """Tell whether some law of the unknown word is within ε·d_γ of those of all words.

    Args:
        logs: (V, V) log-probabilities.
        to_centroid: (V,) distances d_γ of the words.
        epsilon: ε.

    Returns:
        Whether the probabilities that all words allow for each output, from max P(y|w)·exp(−ε·d) to
        min P(y|w)·exp(ε·d), leave room for a sum of 1.
    """
    least = np.exp((logs - epsilon * to_centroid[:, None]).max(axis=0)).sum()
    most = np.exp((logs + epsilon * to_centroid[:, None]).min(axis=0)).sum()
    return bool(least <= 1.0 <= most)


def law(
    family: Family, slope: float, weighed: Array, distances: Array, epsilon: float
) -> Law | None:
    """Work out a law and its level; None if the level is above ε.

    Args:
        family: What gives the weights.
        slope: s.
        weighed: (V+1, V+1) the distances that are weighed.
        distances: (V+1, V+1) the metric d_γ of the guarantee.
        epsilon: ε.

    Returns:
        The law. The level is reached at y = w for words; it is an upper bound for pairs with the
        centroid, and for slopes that differ between outputs.
    """
    logs = family(slope, weighed)
    sums = _log_sums(logs)
    gained = slope * weighed if family is SPARSE else np.diag(logs)[:, None] - logs.T
    ratios = gained + sums[None, :] - sums[:, None]
    np.divide(ratios, distances, out=ratios, where=distances > 0)
    ratios[distances == 0] = 0.0
    logs = (logs - sums[:, None])[:-1, :-1]
    if family in FITTED:
        ratios = ratios[:-1, :-1]
        if not fits(logs, distances[-1, :-1], epsilon):
            return None
    level = float(ratios.max())
    return Law(slope, level, np.exp(logs)) if level <= epsilon else None


def steepest(
    family: Family, epsilon: float, weighed: Callable[[float], Array], distances: Array | None
) -> Law:
    """Return the law of the largest slope, on the grid of `calibrated`, with a level within ε."""
    low, high = -160, 160
    found = None
    while high - low > 1:
        middle = (low + high) // 2
        slope = grid_value(middle)
        points = weighed(slope)
        truncated = points if distances is None else distances
        candidate = law(family, slope, points, truncated, epsilon)
        if candidate is None:
            high = middle
        else:
            low, found = middle, candidate
    if found is None:
        raise SystemExit(f"no slope of the grid has a level within ε = {epsilon}")
    return found


@dataclass(frozen=True)
class Reviews:
    """Movie reviews as ids of words, with the vectors of the words."""

    sentences: list[NDArray[np.int64]]
    labels: list[str]
    vectors: Array

    def features(self, sentences: list[NDArray[np.int64]]) -> Array:
        """Return the mean vector of each sentence."""
        return np.stack([self.vectors[ids].mean(axis=0) for ids in sentences])

    def accuracy(self, probabilities: Array, number: int) -> float:
        """Privatize a part of the sentences, train on it, and test on the others."""
        train, test = train_test_split(
            np.arange(len(self.sentences)), test_size=0.2, random_state=number, stratify=self.labels
        )
        rng = np.random.default_rng(number)
        originals = np.concatenate([self.sentences[i] for i in train])
        released = np.empty_like(originals)
        for word in np.unique(originals):
            here = np.flatnonzero(originals == word)
            cumulative = np.cumsum(probabilities[word])
            released[here] = np.searchsorted(cumulative / cumulative[-1], rng.random(len(here)))
        ends = np.cumsum([len(self.sentences[i]) for i in train])[:-1]
        return accuracy(
            self.features(np.split(released, ends)),
            [self.labels[i] for i in train],
            self.features([self.sentences[i] for i in test]),
            [self.labels[i] for i in test],
        )


def read_reviews(examples: list[dict[str, str]], space: EmbeddingSpace) -> Reviews:
    """Keep of each review the words of the space, and the reviews that have some."""
    reader = RowReader()
    found = [space.ids(reader.read_text(example["text"]).words) for example in examples]
    pairs = [(ids[ids >= 0], e["label"]) for ids, e in zip(found, examples, strict=True)]
    pairs = [(ids, label) for ids, label in pairs if len(ids)]
    return Reviews([p[0] for p in pairs], [p[1] for p in pairs], space.vectors.astype(np.float64))


def input_distances(space: EmbeddingSpace) -> Array:
    """Return the distances between all words and the centroid, (V+1, V+1)."""
    rows = space.distances(np.append(np.arange(len(space)), -1))
    return np.column_stack([rows, np.append(rows[-1], 0.0)])


def compare(
    epsilon: float, names: list[str], distances: Array, reviews: Reviews, draws: int
) -> Iterator[dict[str, object]]:
    """Yield a row for each family of weights."""
    share = np.bincount(np.concatenate(reviews.sentences), minlength=len(distances) - 1)
    share = share / share.sum()
    exponent = -math.log(truncation_weight(len(share), BETA))
    reference = steepest(OWN, epsilon, lambda s: np.minimum(distances, exponent / s), None)
    truncated = np.minimum(distances, exponent / reference.slope)
    for name in names:
        points = distances if name.startswith("β") else truncated
        chosen = steepest(FAMILIES[name], epsilon, lambda _, points=points: points, truncated)
        moved = (chosen.probabilities * distances[:-1, :-1]).sum(axis=1)
        scores = [reviews.accuracy(chosen.probabilities, number) for number in range(draws)]
        yield {
            "ε": f"{epsilon:g}",
            "weights": name,
            "s/ε": chosen.slope / epsilon,
            "level": chosen.level,
            "N_w": float(share @ np.diag(chosen.probabilities)),
            "distance": float(share @ moved),
            "accuracy": float(np.mean(scores)),
            "±": float(np.std(scores, ddof=1)) if draws > 1 else 0.0,
        }


def main() -> None:
    """Compare all families and print the table."""
    arguments = common.parser(__doc__)
    arguments.add_argument("--epsilons", type=float, nargs="+", default=[1.0, 1.5, 2.0])
    arguments.add_argument("--words", type=int, default=1500)
    arguments.add_argument("--draws", type=int, default=3)
    arguments.add_argument("--weights", nargs="*", default=list(FAMILIES), help="families")
    options = arguments.parse_args()
    glove = common.glove(options.data)
    space = EmbeddingSpace.from_vectors(
        glove.words[: options.words], glove.vectors[: options.words]
    )
    reviews = read_reviews(common.jsonl(options.data / "utility" / "mr.jsonl.gz"), space)
    distances = input_distances(space)
    rows = []
    for epsilon in options.epsilons:
        for row in compare(epsilon, options.weights, distances, reviews, options.draws):
            rows.append(row)
            print(row, flush=True)
    common.report("Weights of the calibrated mechanism", rows, options.json)


if __name__ == "__main__":
    main()
