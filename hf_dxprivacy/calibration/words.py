"""Words that stand for a vocabulary."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy import _validate
from hf_dxprivacy.errors import InvalidTypeError
from hf_dxprivacy.randomness import process_generator
from hf_dxprivacy.spaces import EmbeddingSpace

By = Literal["frequency", "sparsity"]

# Which neighbour's distance says how sparse the surroundings of a word are.
NEIGHBOUR = 10
# Words whose neighbours are looked for, by the size of the sample; and at once, in bytes.
POOL = 10
BLOCK_BYTES = 1 << 26


def sample_words(
    space: EmbeddingSpace,
    size: int,
    by: By = "frequency",
    rng: np.random.Generator | None = None,
) -> tuple[str, ...]:
    """Draw words from as many strata of equal size, one from each, without replacement.

    Args:
        space: Where the words lie.
        size: How many; all words if there are not so many.
        by: "frequency" makes the strata by the row of a word, the most frequent first in most
            spaces. "sparsity" makes them by the distance to the 10th neighbour, the densest
            surroundings first, among 10·size words drawn uniformly.
        rng: Source of randomness; this process's own by default.

    Returns:
        The words in the order of their strata.

    Raises:
        InvalidTypeError: If `size` is no whole number, or `rng` no generator.
        InvalidValueError: If `size` is below 1, or `by` another word.
    """
    _validate.at_least(1, size=size)
    _validate.one_of(("frequency", "sparsity"), by=by)
    source = process_generator() if rng is None else rng
    if not isinstance(source, np.random.Generator):
        raise InvalidTypeError(
            f"expected rng to be a numpy.random.Generator, got a {type(rng).__name__}"
        )
    order = np.arange(len(space))
    if by == "sparsity":
        pool = source.permutation(order)[: POOL * size]
        order = pool[np.argsort(_sparsity(space, pool), kind="stable")]
    edges = np.linspace(0, len(order), min(size, len(order)) + 1).round().astype(np.int64)
    return tuple(space.words[row] for row in order[source.integers(edges[:-1], edges[1:])])


def _sparsity(space: EmbeddingSpace, ids: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the distance of each word to its 10th neighbour, or to the farthest if there is none.

    A word is its own nearest, so that the neighbour comes one place later.
    """
    rank = min(NEIGHBOUR, len(space) - 1)
    step = max(1, BLOCK_BYTES // (8 * len(space)))
    return np.concatenate(
        [
            np.partition(space.distances(ids[start : start + step]), rank, axis=1)[:, rank]
            for start in range(0, len(ids), step)
        ]
    )
