"""Statistics from which an ε is chosen: how often a word stays, and how many words it may become.

After Feyisetan et al., WSDM 2020 (N_w, S_w, entropies), Xu et al., PrivateNLP 2020, and Feyisetan,
Diethe, Drake, ICDM 2019 (K_w).
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy._notebook import DETAILS, ReprHTML
from hf_dxprivacy.mechanisms import ExactMechanism, Hierarchical, Mechanism
from hf_dxprivacy.results import share_bounds

if TYPE_CHECKING:
    from datasets import Dataset

PERCENTILES = (5, 25, 50, 75, 95)
# Words that stay most often, of which a print names so many.
OFTEN = 5


@dataclass(frozen=True)
class Summary(ReprHTML):
    """Distribution of the statistics over the words. Prints as a Markdown table.

    Attributes:
        words: Number of words, or of sentences of a pool.
        rows: By statistic, its mean, standard deviation, least and largest value and percentiles,
            by the name of the column.
        entries: "words" or "sentences".
    """

    words: int
    rows: Mapping[str, Mapping[str, float]]
    entries: str = "words"

    def __str__(self) -> str:
        names = list(next(iter(self.rows.values())))
        head = [f"{self.words:,} {self.entries}", *names]
        lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * len(names)]
        lines += [
            "| " + " | ".join([name, *(f"{value:.4g}" for value in row.values())]) + " |"
            for name, row in self.rows.items()
        ]
        return "\n".join(lines)


@dataclass(frozen=True, eq=False, repr=False)
class PrivacyStatistics(ReprHTML):
    """Privacy statistics N_w, S_w and K_w of m words under a mechanism.

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
        entries: What the words are: "words", or "sentences" of a pool.
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
    entries: str = "words"

    def __str__(self) -> str:
        how = "exactly" if self.exact else f"by {self.runs:,} draws of each"
        often = np.argsort(-self.kept, kind="stable")[:OFTEN].tolist()
        return "\n".join(
            [
                f"Statistics of {len(self.words):,} {self.entries}, {how}",
                str(self.summary()),
                DETAILS,
                f"  {self.entries} that stay most often:",
                *(f"  - {self.words[row]}: {self.kept[row]:.1%}" for row in often),
            ]
        )

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
        """Return a `datasets.Dataset` with a row for each word, in "word", or else "sentence".

        Raises:
            MissingExtraError: If the figures come from draws and SciPy is not installed.
        """
        from datasets import Dataset

        low, high = self.kept_interval()
        columns = {self.entries[:-1]: list(self.words), "kept_low": low, "kept_high": high}
        return Dataset.from_dict({**columns, "support_low": self.support_low, **self._figures()})

    def summary(self) -> Summary:
        """Return mean, standard deviation, extremes and percentiles of each statistic.

        Raises:
            InvalidValueError: If there are no words.
        """
        rows = {}
        for name, values in self._figures().items():
            percentiles = np.percentile(values, PERCENTILES)
            rows[name] = {
                "mean": float(values.mean()),
                "std": float(values.std()),
                "least": float(values.min()),
                **{f"{p} %": float(v) for p, v in zip(PERCENTILES, percentiles, strict=True)},
                "largest": float(values.max()),
            }
        return Summary(len(self.words), rows, self.entries)

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


# Probabilities that make up 1−η exactly may miss it by their rounding; so may equal ones.
ROUNDING = 1e-12
SAME = 1.0 - 1e-9


@dataclass(frozen=True)
class Terms:
    """Settings of the statistics of a word.

    Attributes:
        runs: R, draws for each word.
        eta: η, the probability that S_w may leave out.
        confidence: Of bounds that come from draws.
        count_inputs: Whether the outputs of each word are kept, to count K_w.
    """

    runs: int
    eta: float
    confidence: float
    count_inputs: bool

    @property
    def loose_eta(self) -> float:
        """A share of the draws, at least η, that the true S_w outputs do not leave out.

        Of R draws at most η·R are expected outside the likeliest S_w outputs, and with the stated
        confidence no more than this times R are. So the least number of outputs that hold the
        other draws is at most S_w, with that confidence.
        """
        outside = np.arange(self.runs + 1)
        log_factorials = np.cumsum(np.log(np.maximum(outside, 1)))
        log_choices = log_factorials[-1] - log_factorials - log_factorials[::-1]
        log_law = log_choices + outside * math.log(self.eta)
        log_law += (self.runs - outside) * math.log1p(-self.eta)
        most = int(np.searchsorted(np.cumsum(np.exp(log_law)), self.confidence))
        return min(most, self.runs) / self.runs

    def row(self, size: int) -> np.dtype[np.void]:
        """Return the type of a word's figures, in a vocabulary of a size.

        These are the columns of `PrivacyStatistics`, and `outputs`, those that S_w counts, as
        packed bits: V/8 bytes, or none if they are not asked for.
        """
        return np.dtype(
            [
                ("kept", np.float64),
                ("support", np.int64),
                ("support_low", np.int64),
                ("distinct", np.float64),
                ("likeliest", np.float64),
                ("outputs", np.uint8, (-(-size // 8) if self.count_inputs else 0,)),
            ]
        )


def by_law(mechanism: ExactMechanism, ids: NDArray[np.int64], terms: Terms) -> NDArray[np.void]:
    """Compute the statistics of words, (m,) of `Terms.row`, from the exact law of their outputs."""
    rows = []
    for word, law in zip(ids, mechanism.probabilities(ids), strict=True):
        support, least = _holding(law, terms.eta)
        outputs, seen = _packed(law >= SAME * least, terms), _seen(law, terms.runs).sum()
        rows.append((law[word], support, support, seen, law.max(), outputs))
    return np.array(rows, dtype=terms.row(len(mechanism.space)))


def by_tree(mechanism: Hierarchical, ids: NDArray[np.int64], terms: Terms) -> NDArray[np.void]:
    """Compute what `by_law` does from the clusters around each word, in O(depth) for each."""
    size, enough = len(mechanism.space), 1.0 - terms.eta - ROUNDING
    rows = []
    for word in ids.tolist():
        counts, law = mechanism.rings(word)
        held, seen = np.cumsum(counts * law), counts @ _seen(law, terms.runs)
        last = min(int(np.searchsorted(held, enough)), len(law) - 1)
        missing = enough - (held[last - 1] if last else 0.0)
        support = int(counts[:last].sum())
        support += min(max(1, math.ceil(missing / law[last])), int(counts[last]))
        outputs = np.zeros(size if terms.count_inputs else 0, dtype=np.bool_)
        if terms.count_inputs:
            # Words of the last ring are equally likely, and count all.
            chain = mechanism.tree.chain(word)
            outputs[mechanism.tree.members(chain[last - 1]) if last else word] = True
        rows.append((law[0], support, support, seen, law[0], _packed(outputs, terms)))
    return np.array(rows, dtype=terms.row(size))


def by_draws(
    mechanism: Mechanism, ids: NDArray[np.int64], terms: Terms, rng: np.random.Generator
) -> NDArray[np.void]:
    """Estimate the statistics of words from draws."""
    drawn = mechanism.sample_repeatedly(ids, terms.runs, rng)
    loose_eta, size = terms.loose_eta, len(mechanism.space)
    rows = []
    for word, outputs in zip(ids, drawn, strict=True):
        values, counts = np.unique(outputs, return_counts=True)
        shares = counts / terms.runs
        support, least = _holding(shares, terms.eta)
        low = _holding(shares, loose_eta)[0]
        held = np.zeros(size if terms.count_inputs else 0, dtype=np.bool_)
        if terms.count_inputs:
            held[values[shares >= SAME * least]] = True
        kept = np.count_nonzero(outputs == word) / terms.runs
        rows.append((kept, support, low, len(values), shares.max(), _packed(held, terms)))
    return np.array(rows, dtype=terms.row(size))


def _seen(law: NDArray[np.float64], runs: int) -> NDArray[np.float64]:
    """Return with which probability each output comes up in some draws."""
    with np.errstate(divide="ignore"):
        # 1−(1−p)^runs, to full precision for small p; ln 0 is right for p = 1.
        seen: NDArray[np.float64] = -np.expm1(runs * np.log1p(-law))
    return seen


def _holding(law: NDArray[np.float64], eta: float) -> tuple[int, float]:
    """Return the least number of entries that add up to 1−η or more, and the least of them."""
    # All that are below η/V add up to less than η: without them there is enough.
    large = law[law >= eta / len(law)]
    large[::-1].sort()
    fewer = np.searchsorted(np.cumsum(large), 1.0 - eta - ROUNDING)
    number = min(int(fewer) + 1, len(large))
    return number, float(large[number - 1])


def _packed(held: NDArray[np.bool_], terms: Terms) -> NDArray[np.uint8]:
    return np.packbits(held if terms.count_inputs else held[:0])


def least_inputs(
    outputs: NDArray[np.uint8],
    size: int,
    ids: NDArray[np.int64],
    depths: NDArray[np.float64] | None = None,
) -> NDArray[np.int64]:
    """Return, for each word, the least number of words that share one of its outputs.

    Args:
        outputs: (m, V/8) uint8, the outputs of each word as packed bits.
        size: V.
        ids: (m,) the words.
        depths: (V,) how deep each word of the vocabulary is in a hierarchy. With them, a word
            shares only those outputs that it is below, i.e. deeper than.

    Returns:
        (m,) int64, where the word itself counts; 0 if it has no output that it is below.
    """

    def rows() -> Iterator[NDArray[np.bool_]]:
        for word, packed in zip(ids, outputs, strict=True):
            held = np.unpackbits(packed, count=size).view(np.bool_)
            yield held if depths is None else held & (depths < depths[word])

    counts = np.zeros(size, dtype=np.int64)
    for row in rows():
        counts += row
    return np.array([counts[row].min() if row.any() else 0 for row in rows()], dtype=np.int64)
