"""Privacy statistics of many words, in blocks, with a checkpoint; samples of words.

Statistics are exact where the law of the mechanism is known, and estimated from draws elsewhere.
"""

import hashlib
import io
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from hf_dxprivacy.calibration.statistics import (
    PrivacyStatistics,
    Terms,
    by_draws,
    by_law,
    by_tree,
    least_inputs,
)
from hf_dxprivacy.errors import (
    ArtifactError,
    InvalidTypeError,
    InvalidValueError,
    a_kind,
    require_at_least,
    require_between,
    require_one_of,
)
from hf_dxprivacy.hub.artifact import UNREADABLE, read_json, to_json
from hf_dxprivacy.hub.atomic import atomic_write
from hf_dxprivacy.mechanisms import ExactMechanism, Hierarchical, Mechanism
from hf_dxprivacy.randomness import KEY_BYTES, generator_from_key, process_generator
from hf_dxprivacy.sentences import SentencePool
from hf_dxprivacy.spaces import EmbeddingSpace

By = Literal["frequency", "sparsity"]

# Which neighbour's distance says how sparse the surroundings of a word are.
NEIGHBOUR = 10
# Words whose neighbours are looked for, by the size of the sample; and at once, in bytes.
POOL = 10
BLOCK_BYTES = 1 << 26


def entry_space(space: EmbeddingSpace | SentencePool) -> EmbeddingSpace:
    """Return a space as it is, and of a pool the space of its sentences."""
    return space.space if isinstance(space, SentencePool) else space


def sample_words(
    space: EmbeddingSpace | SentencePool,
    size: int,
    by: By = "frequency",
    rng: np.random.Generator | None = None,
) -> tuple[str, ...]:
    """Draw words from as many strata of equal size, one from each, without replacement.

    Args:
        space: Where the words lie; of a pool its sentences are drawn.
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
    space = entry_space(space)
    require_at_least(1, size=size)
    require_one_of(("frequency", "sparsity"), by=by)
    source = generator(rng)
    order = np.arange(len(space))
    if by == "sparsity":
        order = source.permutation(order)[: POOL * size]
        # A word is its own nearest, so that the neighbour comes one place later.
        rank = min(NEIGHBOUR, len(space) - 1)
        step = max(1, BLOCK_BYTES // (8 * len(space)))
        reach = [
            np.partition(space.distances(order[start : start + step]), rank, axis=1)[:, rank]
            for start in range(0, len(order), step)
        ]
        order = order[np.argsort(np.concatenate(reach), kind="stable")]
    edges = np.linspace(0, len(order), min(size, len(order)) + 1).round().astype(np.int64)
    return tuple(space.words[row] for row in order[source.integers(edges[:-1], edges[1:])])


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

    def block(
        self, number: int, row: np.dtype[np.void], compute: Callable[[], NDArray[np.void]]
    ) -> NDArray[np.void]:
        """Return a block of rows: the one that is kept, or else a new one, which is kept.

        Raises:
            ArtifactError: If its file is damaged.
        """
        path = self.folder / f"block-{number:06d}.npz"
        names = row.names or ()
        if not path.exists():
            block, content = compute(), io.BytesIO()
            columns: dict[str, Any] = {name: block[name] for name in names}
            np.savez_compressed(content, **columns)
            atomic_write(path, [content.getbuffer()])
            return block
        try:
            with np.load(path, allow_pickle=False) as stored:
                block = np.empty(len(stored["kept"]), dtype=row)
                for name in names:
                    block[name] = stored[name]
                return block
        except UNREADABLE as error:
            raise ArtifactError(
                f"{path} is not a whole block of statistics; delete it to have it done again"
            ) from error


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
    """Compute N_w, S_w and K_w, exactly for the exponential mechanisms and else from draws.

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
        InvalidTypeError: If the words are a single string, `runs` is no whole number,
            or `rng` no generator.
        ArtifactError: If the checkpoint is damaged.
    """
    if not isinstance(mechanism, Mechanism):
        raise InvalidTypeError(
            f"expected a Mechanism, got {a_kind(mechanism)}; a privatizer has one: pass "
            "privatizer.mechanism"
        )
    require_at_least(1, runs=runs)
    require_between(0.0, 1.0, eta=eta, confidence=confidence)
    terms = Terms(runs, eta, confidence, count_inputs)
    space, exact = mechanism.space, isinstance(mechanism, ExactMechanism)
    given = space.words if words is None else words
    ids = known_ids(space, given)
    step = BLOCK_ENTRIES // (len(space) if exact else runs)
    step = max(1, step if exact else min(step, BLOCK_WORDS))
    starts = range(0, max(1, len(ids)), step)
    # Each block has a generator of its own.
    source = generator(rng)
    keys = b"" if exact else source.bytes(len(starts) * KEY_BYTES)
    about = {
        "mechanism": mechanism.parameters,
        "space": space.digest,
        # Which the digest of the space leaves out.
        "tree": mechanism.tree.sha256 if isinstance(mechanism, Hierarchical) else None,
        "words": hashlib.sha256(ids.tobytes()).hexdigest(),
        "settings": {**asdict(terms), "step": step},
        # The keys themselves stay out: they tell what else the generator gave.
        "seed": None if rng is None else hashlib.sha256(keys).hexdigest(),
    }
    store = None if checkpoint is None else Checkpoint(checkpoint, about)
    blocks, row = [], terms.row(len(space))
    numbers = tqdm(
        range(len(starts)), desc="Calibrating", delay=PATIENCE, disable=not progress or None
    )
    for number in numbers:
        part, key = ids[starts[number] :][:step], keys[number * KEY_BYTES :][:KEY_BYTES]
        compute = partial(_measure, mechanism, part, terms, key)
        blocks.append(store.block(number, row, compute) if store else compute())
    found = np.concatenate(blocks)
    inputs = least_inputs(found["outputs"], len(space), ids) if count_inputs else None
    below = None
    if count_inputs and space.metric == "poincare":
        depths = space.distances(np.array([-1]))[0]
        below = least_inputs(found["outputs"], len(space), ids, depths)
    columns = {name: found[name].copy() for name in (row.names or ()) if name != "outputs"}
    return PrivacyStatistics(
        words=tuple(given),
        entries=space.item_kind,
        exact=exact,
        runs=runs,
        eta=eta,
        confidence=confidence,
        inputs=inputs,
        inputs_below=below,
        **columns,
    )


def _measure(
    mechanism: Mechanism, ids: NDArray[np.int64], terms: Terms, key: bytes
) -> NDArray[np.void]:
    if isinstance(mechanism, Hierarchical):
        return by_tree(mechanism, ids, terms)
    if isinstance(mechanism, ExactMechanism):
        return by_law(mechanism, ids, terms)
    return by_draws(mechanism, ids, terms, generator_from_key(key))


def generator(rng: np.random.Generator | None) -> np.random.Generator:
    """Return a source of randomness, this process's own if none is given."""
    if rng is not None and not isinstance(rng, np.random.Generator):
        raise InvalidTypeError(
            f"expected rng to be a numpy.random.Generator, got {a_kind(rng)}; "
            "numpy.random.default_rng(seed) makes one"
        )
    return process_generator() if rng is None else rng


def known_ids(space: EmbeddingSpace, words: Sequence[str]) -> NDArray[np.int64]:
    """Return the rows of words, all of which the space must have.

    Raises:
        InvalidValueError: If it lacks one.
        InvalidTypeError: If the words are a single string.
    """
    ids = space.ids(words)
    if unknown := np.count_nonzero(ids < 0):
        raise InvalidValueError(
            f"expected {space.item_kind} of the space, got {unknown} of {len(ids)} that it lacks; "
            "leave them "
            "out (`in` tells which)"
        )
    return ids
