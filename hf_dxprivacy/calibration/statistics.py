"""Statistics from which an ε is chosen: how often a word stays, and how many words it may become.

After Feyisetan et al., WSDM 2020 (N_w, S_w, entropies), Xu et al., PrivateNLP 2020, and Feyisetan,
Diethe, Drake, ICDM 2019 (K_w).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy.results import share_bounds

if TYPE_CHECKING:
    from datasets import Dataset

PERCENTILES = (5, 25, 50, 75, 95)


@dataclass(frozen=True)
class Summary:
    """How statistics are spread over the words. Prints as a Markdown table.

    Attributes:
        words: Number of words.
        rows: By statistic, its mean, standard deviation, least and largest value and percentiles,
            by the name of the column.
    """

    words: int
    rows: Mapping[str, Mapping[str, float]]

    def __str__(self) -> str:
        names = list(next(iter(self.rows.values())))
        head = [f"{self.words:,} words", *names]
        lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * len(names)]
        lines += [
            "| " + " | ".join([name, *(f"{value:.4g}" for value in row.values())]) + " |"
            for name, row in self.rows.items()
        ]
        return "\n".join(lines)


@dataclass(frozen=True, eq=False)
class PrivacyStatistics:
    """How a mechanism spreads each of m words over the vocabulary.

    Attributes:
        words: The m input words.
        kept: (m,) float64 N_w = Pr[M(w) = w], or the share of the draws in which w stays.
        support: (m,) int64 S_w, the least number of outputs that together hold a probability, or a
            share of the draws, of at least 1−η. From draws it is at most their number, and too
            small where it comes near that.
        distinct: (m,) float64, S_w as the papers count it: the number of distinct outputs in `runs`
            draws. Its expectation where the law is known.
        exact: Whether the law was known; otherwise the figures come from draws.
        runs: Draws for each word.
        eta: η.
        likeliest: (m,) float64, the probability of the likeliest output; from draws the largest
            share, which is too large on average.
        support_low: (m,) int64, at most the true `support` with `confidence`, for each word by
            itself. Draws give no upper bound: what was never drawn may be any number of outputs.
        confidence: Of the bounds and intervals.
        inputs: (m,) int64 K_w: for each output that `support` counts (equally likely ones with
            it), how many of the m words have that output, and the least of these numbers. Over
            all words it would be larger. None unless asked for.
        inputs_below: (m,) int64, the same in the reading of the hyperbolic paper: a word counts for
            an output only if it is below it, farther from the origin; 0 for a word that is below
            none of its outputs. None outside the Poincaré ball.
    """

    words: tuple[str, ...]
    kept: NDArray[np.float64]
    support: NDArray[np.int64]
    distinct: NDArray[np.float64]
    exact: bool
    runs: int
    eta: float
    likeliest: NDArray[np.float64]
    support_low: NDArray[np.int64]
    confidence: float
    inputs: NDArray[np.int64] | None = None
    inputs_below: NDArray[np.int64] | None = None

    @property
    def hartley_entropy(self) -> NDArray[np.float64]:
        """(m,) H₀ in bits, as log₂ S_w: the logarithm of how many outputs there are."""
        return np.log2(self.support)

    @property
    def min_entropy(self) -> NDArray[np.float64]:
        """(m,) H_∞ in bits: minus log₂ of the likeliest output's probability."""
        # Adding 0 turns −0 into 0.
        return -np.log2(self.likeliest) + 0.0

    def kept_interval(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the ends of the Clopper–Pearson interval of N_w, for each word by itself.

        Returns:
            (m,) lower and (m,) upper ends; N_w itself where it is exact.

        Raises:
            MissingExtraError: If it comes from draws and SciPy is not installed.
        """
        if self.exact:
            return self.kept, self.kept
        stayed = np.rint(self.kept * self.runs).astype(np.int64)
        return share_bounds(stayed, self.runs, self.confidence)

    def to_dataset(self) -> "Dataset":
        """Return a `datasets.Dataset` with a row for each word.

        Raises:
            MissingExtraError: If the figures come from draws and SciPy is not installed.
        """
        from datasets import Dataset

        low, high = self.kept_interval()
        columns = {"word": list(self.words), "kept_low": low, "kept_high": high}
        return Dataset.from_dict({**columns, "support_low": self.support_low, **self._figures()})

    def summary(self) -> Summary:
        """Return mean, standard deviation, extremes and percentiles of each statistic.

        Raises:
            InvalidValueError: If there are no words.
        """
        return Summary(len(self.words), {name: _spread(v) for name, v in self._figures().items()})

    def _figures(self) -> dict[str, NDArray[np.float64] | NDArray[np.int64]]:
        figures = {
            "kept": self.kept,
            "support": self.support,
            "distinct": self.distinct,
            "hartley_entropy": self.hartley_entropy,
            "min_entropy": self.min_entropy,
            "inputs": self.inputs,
            "inputs_below": self.inputs_below,
        }
        return {name: values for name, values in figures.items() if values is not None}


def _spread(values: NDArray[np.float64] | NDArray[np.int64]) -> dict[str, float]:
    row = {
        "mean": float(values.mean()),
        "std": float(values.std()),
        "least": float(values.min()),
    }
    percentiles = np.percentile(values, PERCENTILES)
    row |= {f"{p} %": float(v) for p, v in zip(PERCENTILES, percentiles, strict=True)}
    return {**row, "largest": float(values.max())}
