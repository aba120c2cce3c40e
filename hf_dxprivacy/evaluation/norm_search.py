"""Choice of λ, which shapes the norm of "mahalanobis", by a grid search in the public space."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from tqdm import tqdm

from hf_dxprivacy._notebook import ReprHTML
from hf_dxprivacy.calibration.measuring import (
    PATIENCE,
    entry_space,
    generator,
    privacy_statistics,
)
from hf_dxprivacy.calibration.sweep import Step
from hf_dxprivacy.errors import InvalidValueError, require_one_of, require_within
from hf_dxprivacy.guarantee import upward
from hf_dxprivacy.mechanisms import Mahalanobis
from hf_dxprivacy.mechanisms.local_bound import bracket
from hf_dxprivacy.randomness import KEY_BYTES, generator_from_key
from hf_dxprivacy.sentences import SentencePool
from hf_dxprivacy.spaces import EmbeddingSpace

# Relative precision of the ε at which as many words stay, on average.
SAME_KEPT = 0.005
# A λ > 0 has to be better in this many fresh sets of draws, by so many standard errors of the mean.
REPEATS, SURE = 8, 3.0


def worst_of(share: float, words: int) -> int:
    """Return how many words a share of them is, at least one."""
    return max(1, round(share * words))


@dataclass(frozen=True, eq=False, repr=False)
class LambdaSuggestion(ReprHTML):
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
        words = len(self.steps[0].statistics.words)
        entries = self.steps[0].mechanism.space.item_kind
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
            asked = bracket(partial(kept, lam), share, epsilon, SAME_KEPT)[0]
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
