"""WordSpace: words, their vectors and a metric, and what can be asked of them."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy import _validate
from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError
from hf_dxprivacy.hub import HubCommit, folder, tensors
from hf_dxprivacy.search import VectorIndex
from hf_dxprivacy.search.devices import CPU
from hf_dxprivacy.spaces import checks, nearest
from hf_dxprivacy.spaces.cells import CELLS, Cells
from hf_dxprivacy.spaces.distances import Distances
from hf_dxprivacy.spaces.listing import NeighbourLists
from hf_dxprivacy.spaces.torch_cells import TorchCells

NEIGHBOUR_RANKS = (1, 10, 100)


@dataclass(frozen=True, eq=False, repr=False)
class WordSpace:
    """Words as points; immutable.

    Attributes:
        words: V distinct words, in row order.
        vectors: (V, n) float32 or float64, read-only. Used as it is, without a copy.
        metric: "euclidean" or "poincare".
        scale: Factor on every distance; 1.0 for the Euclidean metric.
        provenance: Source, licence and settings the vectors come from.
        certificates: What calibration has computed for this space.
        figures: What its model card shows, as far as it was measured.
        location: Folder or built-in name it was loaded from; None in memory.
        commit: The commit on the Hub it was loaded from.
        index: For approximate search; None unless it was built or asked for.
        neighbour_lists: How near every word is to others; None unless built or asked for.
    """

    words: tuple[str, ...]
    vectors: NDArray[np.floating]
    metric: str = "euclidean"
    scale: float = 1.0
    provenance: dict[str, Any] = field(default_factory=dict)
    certificates: dict[str, Any] = field(default_factory=dict)
    figures: dict[str, Any] = field(default_factory=dict)
    location: str | None = None
    commit: HubCommit | None = None
    index: VectorIndex | None = None
    neighbour_lists: NeighbourLists | None = None

    def __post_init__(self) -> None:
        checks.check_metric(self.metric, self.scale)
        vectors = checks.as_matrix(self.vectors).view()
        vectors.setflags(write=False)
        object.__setattr__(self, "words", checks.as_words(self.words))
        object.__setattr__(self, "vectors", vectors)
        object.__setattr__(self, "scale", float(self.scale))
        self.__dict__["_rows"] = checks.index_of(self.words)
        checks.check_vectors(self.words, vectors, self.metric)

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self._rows

    def __repr__(self) -> str:
        name = str(self.commit) if self.commit else self.location
        origin = f", {name!r}" if name else ""
        size = f"{len(self)} words x {self.dim} dimensions"
        return f"{type(self).__name__}({size}, {self.metric}{origin})"

    def __copy__(self) -> "WordSpace":
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> "WordSpace":
        return self

    @property
    def dim(self) -> int:
        """Number of dimensions n."""
        return int(self.vectors.shape[1])

    @cached_property
    def digest(self) -> str:
        """SHA-256 in hexadecimal that binds the vectors, the vocabulary, the metric and the scale.

        Saving and loading does not change it.
        """
        bound = [self.vectors_sha256, self._vocabulary_sha256, self.metric, self.scale]
        return hashlib.sha256(json.dumps(bound).encode()).hexdigest()

    @cached_property
    def vectors_sha256(self) -> str:
        """SHA-256 of the vectors as they would be saved, in hexadecimal."""
        return tensors.sha256(self.vectors)

    @property
    def centroid(self) -> NDArray[np.float64]:
        """(n,) mean of the vectors, or origin of the ball: where unknown words are."""
        return self._distances.centroid

    @property
    def radius(self) -> float:
        """Largest distance of a word from the centroid; the diameter is at most twice that."""
        return self._distances.radius

    def ids(self, words: Iterable[str]) -> NDArray[np.int64]:
        """Return the row of each word, (m,) int64; −1 for a word that is not in the vocabulary."""
        if isinstance(words, str):
            raise InvalidTypeError("expected a sequence of words, got a single string; pass a list")
        find = self._rows.get
        return np.array([find(word, -1) for word in words], dtype=np.int64)

    def points(self, ids: NDArray[np.integer] | Sequence[int]) -> NDArray[np.float64]:
        """Return the vectors of ids in float64, (m, n); the centroid for −1."""
        return self._distances.points(np.asarray(ids))

    def distance(self, a: str | int, b: str | int) -> float:
        """Return the distance between two words, each given by itself or by its id.

        Raises:
            InvalidValueError: If a word is not in the vocabulary.
        """
        return float(self.pair_distances([self._id(a)], [self._id(b)])[0])

    def distances(
        self, ids: NDArray[np.integer] | Sequence[int], block: slice = slice(None)
    ) -> NDArray[np.float64]:
        """Return the distances from ids to a block of consecutive words.

        Args:
            ids: (m,) rows; −1 is the centroid.
            block: The words, as a slice of rows.

        Returns:
            (m, words of the block) float64, exactly 0 between identical vectors.
        """
        return self._distances.rows(np.asarray(ids), block)

    def pair_distances(
        self,
        a_ids: NDArray[np.integer] | Sequence[int],
        b_ids: NDArray[np.integer] | Sequence[int],
    ) -> NDArray[np.float64]:
        """Return the distance between matching entries of two lists of ids, (m,) float64."""
        return self._distances.pairs(np.asarray(a_ids), np.asarray(b_ids))

    def pair_bounds(
        self, a_ids: NDArray[np.int64], b_ids: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return lower and upper bounds of `pair_distances`, much faster; see `Distances`."""
        return self._distances.pair_bounds(a_ids, b_ids)

    def cells(self, device: str = CPU) -> Cells:
        """Return groups of near words, as they are stored or as they are worked out.

        Args:
            device: Where to compare; see `Mechanism.to`.
        """
        stored = self.neighbour_lists
        if (device, stored) not in self._cells:
            count, order = (CELLS, None) if stored is None else (stored.k, stored.order)
            count = min(count, len(self))
            self._cells[device, stored] = (
                Cells(self._distances, count, order)
                if device == CPU
                else TorchCells(self._distances, device, count, order)
            )
        return self._cells[device, stored]

    def cell_bounds(self, ids: NDArray[np.int64], device: str = CPU) -> NDArray[np.float32]:
        """Return lower bounds of the distances to the words of each cell, much faster than those.

        Args:
            ids: (m,) rows; −1 is the centroid.
            device: Where to compare; see `Mechanism.to`.

        Returns:
            (m, cells) float32, below the distances to all words of a cell but the input itself.
        """
        ids = self._distances.checked(ids)
        if self.neighbour_lists is None:
            return self.cells(device).bounds(ids)
        bounds, unknown = self.neighbour_lists.lower[ids], ids < 0
        bounds[unknown] = self.cells(device).bounds(ids[unknown])
        return bounds

    def neighbours(self, word: str | int, k: int) -> list[tuple[str, float]]:
        """Return the k nearest other words of a word with their distances, nearest first.

        Args:
            word: A word of the vocabulary, or its id.
            k: How many; fewer come back if the vocabulary is smaller.
        """
        _validate.at_least(1, k=k)
        rows, distances = nearest.nearest(self._distances, self._id(word), k)
        return [(self.words[row], float(d)) for row, d in zip(rows, distances, strict=True)]

    def neighbour_distances(self, ks: Sequence[int] = NEIGHBOUR_RANKS) -> dict[int, float]:
        """Return the median distance to the k-th nearest other word, for each k.

        The median is over at most 1000 words, evenly spaced in row order. k beyond the number of
        other words stands for the farthest one. Computed once; stored by `save_pretrained`.
        """
        for k in ks:
            _validate.at_least(1, k=k)
        if missing := [k for k in ks if k not in self._neighbours]:
            sampled = self.sampled_neighbour_distances(missing)
            self._neighbours.update({k: float(np.median(d)) for k, d in sampled.items()})
        return {k: self._neighbours[k] for k in ks}

    def sampled_neighbour_distances(
        self, ks: Sequence[int] = NEIGHBOUR_RANKS
    ) -> dict[int, NDArray[np.float64]]:
        """Return the distances over which `neighbour_distances` takes its median.

        Returns:
            (m,) float64 by k; entries of the same place are of the same word.
        """
        if missing := [k for k in ks if k not in self._sampled]:
            self._sampled.update(nearest.sampled_distances(self._distances, missing))
        return {k: self._sampled[k] for k in ks}

    @cached_property
    def _distances(self) -> Distances:
        return Distances(self.vectors, self.metric, self.scale)

    @cached_property
    def _cells(self) -> dict[tuple[str, NeighbourLists | None], Cells]:
        return {}

    @cached_property
    def _rows(self) -> dict[str, int]:
        return checks.index_of(self.words)

    @cached_property
    def _neighbours(self) -> dict[int, float]:
        return {}

    @cached_property
    def _sampled(self) -> dict[int, NDArray[np.float64]]:
        return {}

    @cached_property
    def _vocabulary_sha256(self) -> str:
        return hashlib.sha256(folder.vocabulary_bytes(self.words)).hexdigest()

    def _id(self, word: str | int) -> int:
        if isinstance(word, str) and word not in self._rows:
            raise InvalidValueError("the word is not in the vocabulary; check with `in` first")
        return int(self._rows[word] if isinstance(word, str) else word)
