"""Privacy statistics of many words: sampled words, blocks, a progress bar, a folder to go on from.

Statistics are exact where the law of the mechanism is known, and estimated from draws elsewhere.
"""

import hashlib
import io
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from hf_dxprivacy.calibration.statistics import (
    Block,
    PrivacyStatistics,
    Terms,
    by_draws,
    by_law,
    by_tree,
    joined,
    least_inputs,
)
from hf_dxprivacy.errors import (
    ArtifactError,
    InvalidTypeError,
    InvalidValueError,
    require_at_least,
    require_between,
    require_one_of,
)
from hf_dxprivacy.hub.artifact import read_json, to_json
from hf_dxprivacy.hub.atomic import atomic_write
from hf_dxprivacy.mechanisms import ExactMechanism, Hierarchical, Mechanism
from hf_dxprivacy.randomness import KEY_BYTES, generator_from_key, process_generator
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
    require_at_least(1, size=size)
    require_one_of(("frequency", "sparsity"), by=by)
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


_ABOUT = "about.json"


class Checkpoint:
    """Blocks of words that are done, one file each. Files appear whole or not at all.

    Args:
        folder: Where; made if it is not there.
        about: What the blocks belong to, as JSON-ready values.

    Raises:
        InvalidValueError: If the folder holds the blocks of something else.
        ArtifactError: If it is damaged, or holds other files but no checkpoint.
    """

    def __init__(self, folder: str | Path, about: dict[str, Any]) -> None:
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        if not any(self.folder.iterdir()):
            atomic_write(self.folder / _ABOUT, [to_json(about)])
        known = read_json(self.folder / _ABOUT, "expected a checkpoint of statistics")
        if differing := [name for name, value in about.items() if known.get(name) != value]:
            raise InvalidValueError(
                f"{self.folder} is the checkpoint of statistics with other "
                f"{' and '.join(differing)}; name another folder, or delete it to start again"
            )

    def load(self, number: int) -> Block | None:
        """Return a block, or None if it is not done.

        Raises:
            ArtifactError: If its file is damaged.
        """
        path = self._path(number)
        if not path.exists():
            return None
        try:
            with np.load(path, allow_pickle=False) as stored:
                return Block(**stored)
        except (OSError, ValueError, TypeError, zipfile.BadZipFile, EOFError) as error:
            raise ArtifactError(
                f"{path} is not a whole block of statistics; delete it to have it done again"
            ) from error

    def save(self, number: int, block: Block) -> None:
        """Keep a block."""
        content = io.BytesIO()
        np.savez_compressed(content, **asdict(block))
        atomic_write(self._path(number), [content.getbuffer()])

    def _path(self, number: int) -> Path:
        return self.folder / f"block-{number:06d}.npz"


# Probabilities, or draws, that are held at once.
BLOCK_ENTRIES = 1 << 22
# Words that may be drawn for with the same noise. More of them save little time.
BLOCK_WORDS = 256
# Seconds until a bar appears.
PATIENCE = 2.0


def privacy_statistics(
    mechanism: Mechanism,
    words: Sequence[str] | None = None,
    runs: int = 1000,
    eta: float = 0.05,
    rng: np.random.Generator | None = None,
    *,
    confidence: float = 0.95,
    count_inputs: bool = False,
    checkpoint: str | Path | None = None,
    progress: bool = True,
) -> PrivacyStatistics:
    """Work out N_w, S_w and K_w, exactly for the exponential mechanisms and else from draws.

    With the Laplace and Mahalanobis mechanisms up to 256 words are drawn for with the same noise
    vectors, each word being under all of them. The figures of one word are what they would be by
    itself, but means over few words are less certain than so many independent draws would be.

    Args:
        mechanism: What to look at.
        words: Words of its space; see `sample_words`. By default all of them, which takes time
            quadratic in their number.
        runs: Draws for each word, at least 1.
        eta: η in (0, 1), the probability that S_w may leave out.
        rng: Source of the draws; this process's own by default.
        confidence: In (0, 1), of the bounds that draws give for each word.
        count_inputs: Whether to count K_w too, which takes V/8 bytes for each word.
        checkpoint: Folder that keeps what is done. The same call goes on from there after an
            interruption, and with an `rng` in the same state the result is the same.
        progress: Show a bar on the standard error stream if that is a terminal.

    Raises:
        InvalidValueError: If a word is not in the space, a number is out of range, or the
            checkpoint belongs to other statistics.
        InvalidTypeError: If the words are a single string, or `runs` is no whole number.
        ArtifactError: If the checkpoint is damaged.
    """
    require_at_least(1, runs=runs)
    require_between(0.0, 1.0, eta=eta, confidence=confidence)
    terms = Terms(runs, eta, confidence, count_inputs)
    space = mechanism.space
    given = space.words if words is None else words
    ids = known_ids(space, given)
    work = _Work(mechanism, ids, terms, rng)
    store = None if checkpoint is None else Checkpoint(checkpoint, work.about())
    found = joined(list(_with_bar(work, store, progress)))
    inputs = least_inputs(found.outputs, len(space), ids) if count_inputs else None
    below = None
    if count_inputs and space.metric == "poincare":
        depths = space.distances(np.array([-1]))[0]
        below = least_inputs(found.outputs, len(space), ids, depths)
    return PrivacyStatistics(
        tuple(given),
        found.kept,
        found.support,
        found.distinct,
        work.exact,
        runs,
        eta,
        found.likeliest,
        found.support_low,
        confidence,
        inputs,
        below,
    )


def known_ids(space: EmbeddingSpace, words: Sequence[str]) -> NDArray[np.int64]:
    """Return the rows of words, all of which the space must have.

    Raises:
        InvalidValueError: If it lacks one.
        InvalidTypeError: If the words are a single string.
    """
    ids = space.ids(words)
    if unknown := np.count_nonzero(ids < 0):
        raise InvalidValueError(
            f"expected words of the space, got {unknown} of {len(ids)} that it lacks; leave them "
            "out (`in` tells which)"
        )
    return ids


class _Work:
    """The words cut into blocks, each with a generator of its own.

    Args:
        mechanism: What to look at.
        ids: (m,) words.
        terms: What to work out.
        rng: Where the blocks' keys come from; this process's own if None.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        ids: NDArray[np.int64],
        terms: Terms,
        rng: np.random.Generator | None,
    ) -> None:
        self._mechanism, self._ids, self._terms = mechanism, ids, terms
        self.exact = isinstance(mechanism, ExactMechanism)
        held = BLOCK_ENTRIES // (len(mechanism.space) if self.exact else terms.runs)
        self._step = max(1, held if self.exact else min(held, BLOCK_WORDS))
        self._keys = b""
        if not self.exact:
            self._keys = (rng or process_generator()).bytes(len(self) * KEY_BYTES)
        self._seeded = rng is not None

    def __len__(self) -> int:
        return max(1, -(-len(self._ids) // self._step))

    def block(self, number: int) -> Block:
        """Work out one block."""
        ids = self._ids[number * self._step : (number + 1) * self._step]
        if isinstance(self._mechanism, Hierarchical):
            return by_tree(self._mechanism, ids, self._terms)
        if isinstance(self._mechanism, ExactMechanism):
            return by_law(self._mechanism, ids, self._terms)
        key = self._keys[number * KEY_BYTES : (number + 1) * KEY_BYTES]
        return by_draws(self._mechanism, ids, self._terms, generator_from_key(key))

    def about(self) -> dict[str, Any]:
        """Return what decides the result, as JSON-ready values."""
        return {
            "mechanism": self._mechanism.parameters,
            "space": self._mechanism.space.digest,
            "words": hashlib.sha256(self._ids.tobytes()).hexdigest(),
            "settings": {**asdict(self._terms), "step": self._step},
            # The keys themselves stay out: they tell what else the generator gave.
            "seed": hashlib.sha256(self._keys).hexdigest() if self._seeded else None,
        }


def _with_bar(work: _Work, store: Checkpoint | None, progress: bool) -> Iterator[Block]:
    for number in tqdm(
        range(len(work)), desc="Calibrating", delay=PATIENCE, disable=not progress or None
    ):
        block = store.load(number) if store else None
        if block is None:
            block = work.block(number)
            if store:
                store.save(number, block)
        yield block
