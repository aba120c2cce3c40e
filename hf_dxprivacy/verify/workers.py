"""Test that rows, batches and worker processes draw independent noise.

``Dataset.map(num_proc=…)`` copies the function it maps into every worker. One that holds a
generator then draws the same noise in all of them, and two rows with one noise cancel it out.
No log-ratio of single words shows that.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy._notebook import ReprHTML
from hf_dxprivacy.errors import (
    InvalidValueError,
    require_at_least,
    require_between,
)
from hf_dxprivacy.randomness import process_generator

# Permutations that agree as much as the releases do, after which no more are needed.
ENOUGH = 20


@dataclass(frozen=True)
class WorkersCheck(ReprHTML):
    """Result of a test that releases of one text by several processes are independent.

    Attributes:
        passed: Whether no two releases agree more than independent ones do.
        shared: The share of equal outputs where it is farthest above that of independent releases:
            of two releases place by place, or of equal inputs at one distance in all of them.
        expected: The same of independent releases, about.
        p_value: How often releases that were dealt out anew agreed as much, at most.
        false_alarm_rate: With which probability, at most, independent releases do not pass.
        releases: How many there were.
        workers: How many processes made them, beside the one that asked.
    """

    passed: bool
    shared: float
    expected: float
    p_value: float
    false_alarm_rate: float
    releases: int
    workers: int

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON-ready values."""
        return asdict(self)

    def __str__(self) -> str:
        verdict = "no shared noise found" if self.passed else "BROKEN: releases share their noise"
        return (
            f"{verdict} (num_proc={self.workers}, {self.releases} releases of one text)\n"
            f"  two of them agree in {self.shared:.1%} of their words; independent ones would in "
            f"about {self.expected:.1%}, p = {self.p_value:.2g}\n"
            f"  independent releases fail with probability {self.false_alarm_rate:g} at most"
        )


def verify_workers(
    privatizer: Callable[..., Any],
    text: str,
    *,
    num_proc: int = 2,
    rows: int = 4,
    column: str = "text",
    alpha: float = 1e-3,
    rng: np.random.Generator | None = None,
) -> WorkersCheck:
    """Release one text many times under `Dataset.map` and in this process, and compare.

    Rows go through the privatizer before the workers start, in batches of two in each worker, and
    afterwards. If all are independent, then at each place of the text the words of the releases
    are drawn from one law, and dealing them out anew among the releases changes nothing. The test
    deals them out often, and compares how far the two releases that are most alike agree: a
    permutation test, which is exact for any mechanism and text.

    >>> privatizer = DxPrivatizer("wordnet-gloss", "calibrated", 6.0)
    >>> verify_workers(privatizer, " ".join(space.words[:200]))

    Args:
        privatizer: A function of a batch for `Dataset.map` with ``batched=True``; unseeded.
        text: Words with spaces between; a hundred or more, which seldom come out unchanged.
        num_proc: How many worker processes.
        rows: How many rows for each of them, and for this process.
        column: The column that the privatizer reads and writes.
        alpha: False-alarm rate in (0, 1).
        rng: What deals out the words; this process's own by default.

    Raises:
        InvalidValueError: If a number is out of range, two releases have not as many words, or all
            are the same, so that nothing can be told from them.
    """
    from datasets import Dataset

    require_between(0.0, 1.0, alpha=alpha)
    require_at_least(2, "one worker has no other to share noise with", num_proc=num_proc)
    require_at_least(1, rows=rows)
    batch = {column: [text] * rows}
    texts = list(privatizer(batch)[column])
    mapped = Dataset.from_dict({column: [text] * (rows * num_proc)}).map(
        privatizer, batched=True, batch_size=2, num_proc=num_proc, load_from_cache_file=False
    )
    texts += [*mapped[column], *privatizer(batch)[column]]
    words = [each.split() for each in texts]
    if len(sizes := {len(row) for row in words}) != 1:
        raise InvalidValueError(
            f"expected releases with as many words each, got {min(sizes)} to {max(sizes)}; take "
            "words that are not split or dropped"
        )
    codes = np.unique(words, return_inverse=True)[1].reshape(len(words), -1)
    if (codes == codes[0]).all():
        raise InvalidValueError(
            f"all {len(codes)} releases are the same: either all rows get the same noise, as with "
            "a seed and no row numbers, or ε is so large that nothing changes; take a smaller one"
        )
    return compare_releases(codes, num_proc, alpha, rng or process_generator())


def compare_releases(
    codes: NDArray[np.int64],
    workers: int,
    alpha: float,
    rng: np.random.Generator,
    asked: NDArray[np.int64] | None = None,
) -> WorkersCheck:
    """Test releases, (releases, places) as numbers, by permutations of each place.

    Two releases are compared place by place, and within all releases the places of equal inputs
    that are equally far apart: noise that rows 2k and 2k+1 share makes neighbours agree.

    Permutations end once `ENOUGH` agree as much, by which the p-value stays exact (Besag and
    Clifford, *Sequential Monte Carlo p-values*, 1991).

    Args:
        codes: What came out.
        workers: How many processes made them.
        alpha: False-alarm rate.
        rng: What permutes.
        asked: (places,) what went in, as numbers; by default another input at each place.
    """
    asked = np.arange(codes.shape[1]) if asked is None else asked
    rows = np.triu_indices(len(codes), k=1)
    first, second = np.triu_indices(len(asked), k=1)
    same = asked[first] == asked[second]
    first, second = first[same], second[same]
    lags = np.unique(second - first, return_inverse=True)[1]
    pairs = np.bincount(lags)
    # How often two independent releases of an input agree, about: what is looked at is the excess.
    chance = np.array([_agreement(codes[:, asked == of]) for of in range(asked.max() + 1)])
    usual = np.repeat(chance[asked].mean(), len(rows[0]))
    usual = np.append(usual, np.bincount(lags, chance[asked[first]]) / pairs)
    weight = np.sqrt(np.append(np.full(len(rows[0]), len(asked)), pairs * len(codes)))

    def most_alike(dealt: NDArray[np.int64]) -> tuple[float, int, float]:
        both = (dealt[rows[0]] == dealt[rows[1]]).mean(axis=1)
        within = (dealt[:, first] == dealt[:, second]).mean(axis=0)
        shares = np.append(both, np.bincount(lags, within) / pairs)
        # Rounded, so that ties count as such.
        excess = np.round((shares - usual) * weight, 9)
        worst = int(excess.argmax())
        return float(excess[worst]), worst, float(shares[worst])

    (largest, worst, shared), as_much, count = most_alike(codes), 0, 0
    # So many at most that the least possible p-value, 1/(count + 1), is below alpha.
    while as_much < ENOUGH and count < 1 / alpha:
        as_much += most_alike(rng.permuted(codes, axis=0))[0] >= largest
        count += 1
    p_value = as_much / count if as_much == ENOUGH else (1 + as_much) / (1 + count)
    return WorkersCheck(
        passed=p_value > alpha,
        shared=shared,
        expected=float(usual[worst]),
        p_value=p_value,
        false_alarm_rate=alpha,
        releases=len(codes),
        workers=workers,
    )


def _agreement(codes: NDArray[np.int64]) -> float:
    """Return the share of pairs of releases of one input that are equal."""
    counts = np.unique(codes, return_counts=True)[1]
    return float((counts @ counts - codes.size) / max(1, codes.size**2 - codes.size))
