"""Sweeps of mechanisms over ε, and mechanisms side by side at an equal guarantee or worst case."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from tqdm import tqdm

from hf_dxprivacy._notebook import Shown
from hf_dxprivacy.calibration.measuring import (
    PATIENCE,
    entry_space,
    generator,
    privacy_statistics,
)
from hf_dxprivacy.calibration.statistics import PrivacyStatistics
from hf_dxprivacy.calibration.suggest import suggest_epsilon
from hf_dxprivacy.errors import InvalidValueError, require_one_of, require_within
from hf_dxprivacy.guarantee import upward
from hf_dxprivacy.mechanisms import Mahalanobis, Mechanism, create_mechanism
from hf_dxprivacy.mechanisms.local_bound import narrowed
from hf_dxprivacy.randomness import KEY_BYTES, generator_from_key
from hf_dxprivacy.results import Interval, Result, Results
from hf_dxprivacy.sentences import SentencePool
from hf_dxprivacy.spaces import EmbeddingSpace

if TYPE_CHECKING:
    from datasets import Dataset

HEADINGS = (
    "ε",
    "certified ε",
    "local ε",
    "ε·d, nearest",
    "N_w, mean",
    "median",
    "largest",
    "S_w, mean",
    "median",
    "least",
)


@dataclass(frozen=True, eq=False)
class Step:
    """A mechanism at one ε, and N_w and S_w of each word."""

    mechanism: Mechanism
    statistics: PrivacyStatistics

    @property
    def spread(self) -> NDArray[Any]:
        """(m,) S_w: exactly, or the different outputs among the draws."""
        found = self.statistics
        return found.support if found.exact else found.distinct

    def cells(self) -> list[str]:
        """Return a row of the table, as `HEADINGS` says; the last column of each is the worst."""
        kept, spread, guarantee = self.statistics.kept, self.spread, self.mechanism.guarantee
        return [
            f"{self.mechanism.epsilon:g}",
            upward(guarantee.epsilon),
            upward(guarantee.ldp_epsilon, 3),
            upward(guarantee.neighbour_epsilon[1], 3),
            *(f"{value:.3f}" for value in (kept.mean(), np.median(kept), kept.max())),
            *(f"{value:,.0f}" for value in (spread.mean(), np.median(spread), spread.min())),
        ]


@dataclass(frozen=True, eq=False, repr=False)
class Sweep(Shown):
    """One mechanism at several ε, in ascending order, on the same words.

    Attributes:
        steps: What was measured at each ε; at least one.
    """

    steps: tuple[Step, ...]

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism at the first ε; its name, space and options are those of all."""
        return self.steps[0].mechanism

    @property
    def statistics(self) -> PrivacyStatistics:
        """The statistics at the first ε; words, draws, η and `exact` are the same at every ε."""
        return self.steps[0].statistics

    @property
    def entries(self) -> str:
        """What was looked at: "words" or "sentences"."""
        return self.mechanism.space.item_kind

    @property
    def spread_name(self) -> str:
        """Definition of S_w in these figures, as words."""
        found = self.statistics
        if found.exact:
            return f"outputs that together hold {1.0 - found.eta:.0%} of the probability"
        return f"different outputs in {found.runs:,} draws"

    def __str__(self) -> str:
        rows = [HEADINGS, ["---:"] * len(HEADINGS), *(step.cells() for step in self.steps)]
        words = f"{len(self.statistics.words):,} {self.entries}"
        return "\n".join(
            [
                f"{self.mechanism.name} at {len(self.steps)} values of ε, {words}",
                *(f"| {' | '.join(cells)} |" for cells in rows),
                f"N_w is how often one stays; S_w, the number of {self.spread_name}.",
            ]
        )

    def to_dataset(self) -> "Dataset":
        """Return a `datasets.Dataset` with a row for each ε and word.

        Raises:
            MissingExtraError: If the figures come from draws and SciPy is not installed.
        """
        from datasets import Dataset, concatenate_datasets

        tables = []
        for step in self.steps:
            table = step.statistics.to_dataset()
            about = {
                "mechanism": step.mechanism.name,
                "epsilon": step.mechanism.epsilon,
                "certified_epsilon": step.mechanism.guarantee.epsilon,
            }
            head = Dataset.from_dict({name: [value] * len(table) for name, value in about.items()})
            tables.append(concatenate_datasets([head, table], axis=1))
        return concatenate_datasets(tables)


def sweep(
    space: EmbeddingSpace | SentencePool,
    mechanism: str,
    epsilons: Iterable[float],
    words: Sequence[str],
    *,
    runs: int = 1000,
    eta: float = 0.05,
    rng: np.random.Generator | None = None,
    progress: bool = True,
    **options: Any,
) -> Sweep:
    """Measure a mechanism at several ε on the same words.

    Args:
        space: Where the words lie.
        mechanism: A key of `mechanisms.MECHANISMS`.
        epsilons: Values of ε > 0; the order does not matter.
        words: Words of the space; see `calibration.sample_words`.
        runs: Draws for each word.
        eta: The probability that S_w leaves out.
        rng: Source of the draws; this process's own by default.
        progress: Show a bar on a terminal for what takes long.
        **options: The mechanism's own options.

    Raises:
        InvalidValueError: If there is no ε or no word, or one that does not suit.
    """
    space, grid = entry_space(space), sorted(set(epsilons))
    if not grid or not words:
        raise InvalidValueError(
            f"expected at least one ε and one word, got {len(grid)} and {len(words)}"
        )
    # All are made first, so that an ε for which there is no such noise costs no time.
    mechanisms = [create_mechanism(mechanism, space, epsilon, **options) for epsilon in grid]
    return Sweep(
        tuple(
            Step(made, privacy_statistics(made, words, runs, eta, rng, progress=progress))
            for made in mechanisms
        )
    )


def compare_mechanisms(
    space: EmbeddingSpace | SentencePool,
    mechanisms: Sequence[str] | Mapping[str, Mapping[str, Any]],
    *,
    epsilon: float | None = None,
    max_nw: float | None = None,
    words: Sequence[str] | None = None,
    epsilons: ArrayLike | None = None,
    runs: int = 1000,
    rng: np.random.Generator | None = None,
    progress: bool = True,
) -> Results:
    """Compare mechanisms at an equal guarantee, or at an equal worst-case N_w.

    Args:
        space: Where the words lie.
        mechanisms: Names, or names with the options of each.
        epsilon: Each mechanism is taken at the ε that proves this one per unit of the space's own
            distance: a smaller one for "mahalanobis" and for ``noise="lebesgue"``.
        max_nw: Instead: each is taken at the largest ε that `suggest_epsilon` finds for this N_w.
        words: Words of the space to look at; by default all of them.
        epsilons: With `max_nw`, the ε to try.
        runs: Draws for each word where the law is not known, and for the number of distinct
            outputs.
        rng: Source of the draws; this process's own by default.
        progress: Show bars on the standard error stream if that is a terminal.

    Returns:
        For each mechanism the certified ε, mean and largest N_w, and mean and least number S_w of
        distinct outputs in `runs` draws. `epsilon` is the one to ask for, `repeats` the number of
        words. Means come without intervals: the words of a block may share noise.

    Raises:
        InvalidValueError: If not exactly one of `epsilon` and `max_nw` is given, or a mechanism
            cannot be reached at it, as those whose metric is their own cannot at an `epsilon`.
    """
    if (epsilon is None) == (max_nw is None):
        raise InvalidValueError("expected exactly one of epsilon and max_nw")
    space = entry_space(space)
    named = mechanisms if isinstance(mechanisms, Mapping) else {name: {} for name in mechanisms}
    shared: dict[str, Any] = {"words": words, "runs": runs, "rng": rng, "progress": progress}
    results = Results()
    for name, options in named.items():
        if epsilon is not None:
            mechanism = certified_at(space, name, epsilon, options)
        else:
            answer = suggest_epsilon(
                space, name, max_nw=max_nw, epsilons=epsilons, **shared, **options
            )
            mechanism = create_mechanism(name, space, answer.epsilon, **options)
        statistics = privacy_statistics(mechanism, **shared)
        values = {
            "certified ε": mechanism.space_epsilon,
            "mean N_w": float(statistics.kept.mean()),
            "largest N_w": float(statistics.kept.max()),
            "mean S_w": float(statistics.distinct.mean()),
            "least S_w": float(statistics.distinct.min()),
        }
        found = Results(
            Result.of(
                f"spread of {space.item_kind}",
                metric,
                Interval(value, value, value),
                len(statistics.words),
            )
            for metric, value in values.items()
        )
        results += found.replace(
            dataset=space.location or "space", mechanism=name, epsilon=mechanism.epsilon
        )
    return results


def certified_at(
    space: EmbeddingSpace, name: str, epsilon: float, options: Mapping[str, Any]
) -> Mechanism:
    """Return the mechanism of a name that proves an ε per unit of the space's own distance.

    What a mechanism proves is at most a factor and an addend away from the ε asked for.

    Raises:
        InvalidValueError: If its metric is another one.
    """
    asked = create_mechanism(name, space, epsilon, **options)
    if asked.own_metric:
        raise InvalidValueError(
            f"mechanism {name!r} has a metric of its own, in which the same epsilon is another "
            "guarantee; compare at max_nw="
        )
    if asked.space_epsilon == epsilon:
        return asked
    twice = create_mechanism(name, space, 2.0 * epsilon, **options).space_epsilon
    slope = (twice - asked.space_epsilon) / epsilon
    return create_mechanism(
        name, space, epsilon - (asked.space_epsilon - epsilon) / slope, **options
    )


# Relative precision of the ε at which as many words stay, on average.
SAME_KEPT = 0.005
# A λ > 0 has to be better in this many fresh sets of draws, by so many standard errors of the mean.
REPEATS, SURE = 8, 3.0


def worst_of(share: float, words: int) -> int:
    """Return how many words a share of them is, at least one."""
    return max(1, round(share * words))


@dataclass(frozen=True, eq=False, repr=False)
class LambdaSuggestion(Shown):
    """The smallest λ of a grid with which the worst words are hidden about as well as with any.

    Attributes:
        lam: λ to ask for.
        epsilon: ε to ask for with it, per unit of its own norm.
        by: The statistic compared, "kept" (N_w) or "distinct" (S_w).
        worst: The share of the words that `figures` are means of.
        figures: For each λ, in ascending order, the mean N_w or S_w of the worst words.
        steps: The mechanism, and the statistics of the words, for each of them.
    """

    lam: float
    epsilon: float
    by: str
    worst: float
    figures: Mapping[float, float]
    steps: tuple[Step, ...]

    def __str__(self) -> str:
        head = ["λ", "ε", "Euclidean ε", "N_w, mean", "largest", "S_w, mean", "least", "compared"]
        rows = [head, ["---:"] * len(head)]
        for (lam, figure), step in zip(self.figures.items(), self.steps, strict=True):
            kept, spread = step.statistics.kept, step.spread
            rows.append(
                [f"{lam:g}", f"{step.mechanism.epsilon:.4g}", upward(step.mechanism.space_epsilon)]
                + [f"{value:.3f}" for value in (kept.mean(), kept.max())]
                + [f"{value:,.0f}" for value in (spread.mean(), spread.min())]
                + [f"{figure:.3g}"]
            )
        words, entries = (
            len(self.steps[0].statistics.words),
            self.steps[0].mechanism.space.item_kind,
        )
        name, least = {"kept": ("N_w", min), "distinct": ("S_w", max)}[self.by]
        proven = upward(self.steps[[*self.figures].index(self.lam)].mechanism.space_epsilon)
        title = (
            f"λ = {self.lam:g} at ε = {self.epsilon:.4g} (Euclidean ε = {proven}): {name} of the "
            f"worst {worst_of(self.worst, words):,} of {words:,} {entries} is "
            f"{self.figures[self.lam]:.3g} on average"
        )
        if others := [lam for lam in self.figures if lam]:
            other = 0.0 if self.lam else least(others, key=self.figures.__getitem__)
            title += f"; with λ = {other:g} it is {self.figures[other]:.3g}"
            if not self.lam and least(self.figures, key=self.figures.__getitem__):
                title += ", not surely better by the margin"
        return "\n".join([title, *(f"| {' | '.join(row)} |" for row in rows)])


def suggest_lambda(
    space: EmbeddingSpace | SentencePool,
    epsilon: float,
    *,
    lams: ArrayLike = (0.0, 0.25, 0.5, 0.75, 1.0),
    equal: Literal["kept", "epsilon"] = "kept",
    by: Literal["kept", "distinct"] = "kept",
    worst: float = 0.05,
    margin: float = 0.05,
    words: Sequence[str] | None = None,
    runs: int = 1000,
    rng: np.random.Generator | None = None,
    progress: bool = True,
) -> LambdaSuggestion:
    """Choose λ of "mahalanobis" (Xu et al., PrivateNLP 2020) by a grid search in the public space.

    All λ get the same draws. λ tells nothing of a text as long as no text decides on `words`.

    Args:
        space: Where the words lie; of a pool its sentences are looked at.
        epsilon: ε > 0 of Laplace noise, which is λ = 0, to compare with.
        lams: λ in [0, 1] to try; 0 always is.
        equal: "kept": each λ is taken at the ε at which as many words stay, on average, as of
            Laplace noise. "epsilon": all are taken at `epsilon`, each in its own norm, as in the
            paper; a λ may then win because it changes more words.
        by: What is compared: "kept" (N_w), the less the better, or "distinct" (S_w).
        worst: The share in [0, 1] of the words, the worst of them, whose mean is compared; at least
            one word.
        margin: The least relative gain for which a larger λ is taken, as what it proves of
            Euclidean distances is weaker. A λ > 0 has to gain that much over λ = 0 on average of
            eight fresh sets of draws, by three standard errors, so that it is not chosen by chance.
        words: Words of the space to look at; by default all of them.
        runs: Draws for each word and mechanism.
        rng: Source of the draws; this process's own by default.
        progress: Show a bar on the standard error stream if that is a terminal.

    Raises:
        InvalidValueError: If there is no λ or word, a number is out of range, the space does not
            allow a λ, or at `epsilon` all words always stay, or none ever.
    """
    require_one_of(("kept", "epsilon"), equal=equal)
    require_one_of(("kept", "distinct"), by=by)
    require_within(0.0, 1.0, worst=worst, margin=margin)
    space = entry_space(space)
    grid: list[float] = np.unique(np.asarray(lams, dtype=np.float64)).tolist()
    if not grid or (words is not None and len(words) == 0):
        raise InvalidValueError(f"expected λ to try, and {space.item_kind} to look at, got none")
    grid = sorted({0.0, *grid})
    # First, so that a λ that the space does not allow costs no time.
    made = {(lam, epsilon): Mahalanobis(space, epsilon, lam) for lam in grid}
    rng = generator(rng)
    first, *fresh = (rng.bytes(KEY_BYTES) for _ in range(1 + REPEATS))

    @cache
    def at(lam: float, asked: float, key: bytes = first) -> Step:
        found = made.get((lam, asked)) or Mahalanobis(space, asked, lam)
        source = generator_from_key(key)
        return Step(found, privacy_statistics(found, words, runs, rng=source, progress=False))

    def kept(lam: float, asked: float) -> float:
        return float(at(lam, asked).statistics.kept.mean())

    if equal == "kept" and not 0.0 < (share := kept(0.0, epsilon)) < 1.0:
        raise InvalidValueError(
            f"expected an epsilon at which some words stay, and not all, got {epsilon:g}, at which "
            f"{share:.0%} do; choose a {'smaller' if share else 'larger'} one"
        )
    steps: list[Step] = []
    for lam in tqdm(grid, desc="λ", delay=PATIENCE, disable=not progress or None):
        asked = epsilon
        if equal == "kept" and lam:
            asked = narrowed(partial(kept, lam), share, epsilon, SAME_KEPT)[0]
        steps.append(at(lam, asked))

    def figure(step: Step) -> float:
        values = np.sort(getattr(step.statistics, by))[:: -1 if by == "kept" else 1]
        return float(values[: worst_of(worst, len(values))].mean())

    def loss(step: Step) -> float:
        return 1.0 / figure(step) if by == "distinct" else figure(step)

    def is_surely_better(step: Step) -> bool:
        lam, asked = step.mechanism.parameters["lam"], step.mechanism.epsilon
        gains = [
            loss(at(0.0, epsilon, key)) - (1.0 + margin) * loss(at(lam, asked, key))
            for key in fresh
        ]
        return bool(np.mean(gains) > SURE * np.std(gains, ddof=1) / np.sqrt(REPEATS))

    figures, losses = [figure(step) for step in steps], [loss(step) for step in steps]
    near = [i for i, value in enumerate(losses) if value <= (1.0 + margin) * min(losses)]
    chosen = next((i for i in near if not i or is_surely_better(steps[i])), 0)
    return LambdaSuggestion(
        grid[chosen],
        steps[chosen].mechanism.epsilon,
        by,
        worst,
        dict(zip(grid, figures, strict=True)),
        tuple(steps),
    )
