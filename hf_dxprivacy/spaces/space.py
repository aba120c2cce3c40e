"""EmbeddingSpace: words, their vectors and a metric."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hf_dxprivacy import _validate
from hf_dxprivacy.errors import ArtifactError, InvalidTypeError, InvalidValueError
from hf_dxprivacy.hub import folder, tensors
from hf_dxprivacy.spaces import builtin, checks, euclidean, nearest, persistence, readers
from hf_dxprivacy.spaces.distances import Distances

NEIGHBOUR_RANKS = (1, 10, 100)


@dataclass(frozen=True, eq=False, repr=False)
class EmbeddingSpace:
    """A vocabulary with one vector per word and a metric; immutable.

    Make one with `from_vectors`, `from_text_vectors` or `from_pretrained`. Words are kept as they
    are given; two that differ only in Unicode normalisation are two words.

    It pickles to a path and a digest, never to its matrix: an in-memory space is first saved in
    the user's cache (``$HF_DXPRIVACY_CACHE``), and worker processes map it from there.

    Attributes:
        words: V distinct words, in row order.
        vectors: (V, n) float32 or float64, read-only. Used as it is, without a copy.
        metric: "euclidean" or "poincare".
        scale: Factor on every distance; 1.0 for the Euclidean metric.
        provenance: Source, licence and settings the vectors come from.
        certificates: What calibration has computed for this space.
        location: Folder or built-in name it was loaded from; None in memory.
    """

    words: tuple[str, ...]
    vectors: NDArray[np.floating]
    metric: str = "euclidean"
    scale: float = 1.0
    provenance: dict[str, Any] = field(default_factory=dict)
    certificates: dict[str, Any] = field(default_factory=dict)
    location: str | None = None

    def __post_init__(self) -> None:
        checks.check_metric(self.metric, self.scale)
        vectors = checks.as_matrix(self.vectors).view()
        vectors.setflags(write=False)
        object.__setattr__(self, "words", checks.as_words(self.words))
        object.__setattr__(self, "vectors", vectors)
        object.__setattr__(self, "scale", float(self.scale))
        self.__dict__["_index"] = checks.index_of(self.words)
        checks.check_vectors(self.words, vectors, self.metric)

    @classmethod
    def from_vectors(
        cls,
        words: Iterable[str],
        vectors: ArrayLike,
        metric: str = "euclidean",
        scale: float = 1.0,
        provenance: Mapping[str, Any] | None = None,
    ) -> "EmbeddingSpace":
        """Make a space from arrays, which are copied.

        Args:
            words: V distinct, non-empty words without line breaks.
            vectors: (V, n) real numbers. float32 and float64 are kept, float16 becomes float32,
                integers become float64.
            metric: "euclidean", or "poincare" for points inside the unit ball.
            scale: Factor on every distance, for the Poincaré metric only.
            provenance: JSON-serialisable description of where the vectors come from.

        Raises:
            InvalidValueError: If words and vectors do not make up a space; says which word.
            InvalidTypeError: If a word is not a string or an entry not a real number.
        """
        matrix = checks.as_matrix(vectors)
        if not isinstance(vectors, list) and np.may_share_memory(matrix, np.asarray(vectors)):
            matrix = matrix.copy()
        return cls(checks.as_words(words), matrix, metric, scale, dict(provenance or {}))

    @classmethod
    def from_text_vectors(
        cls, path: str | Path, limit: int | None = None, progress: bool = True
    ) -> "EmbeddingSpace":
        """Read a file of word vectors in one of the usual formats; they become float32.

        GloVe text, word2vec text (with a header), word2vec binary and fastText ``.vec``, each plain
        or gzip-compressed; what it is, is recognised from the content.

        Args:
            path: The file.
            limit: Read at most this many words from the top, which are usually the most frequent.
            progress: Show a progress bar over the bytes of the file.

        Raises:
            InvalidValueError: If the file is malformed; names the file and the line.
        """
        words, vectors = readers.read_vectors(path, limit=limit, progress=progress)
        return cls(tuple(words), vectors, provenance={"source": Path(path).name, "limit": limit})

    @classmethod
    def from_pretrained(cls, name_or_path: str | Path) -> "EmbeddingSpace":
        """Load a space that ships with the package, or one saved by `save_pretrained`.

        The vectors are memory-mapped, so that processes share them; all digests are checked.

        Args:
            name_or_path: Name of a built-in space such as "wordnet-gloss", or a local folder.

        Raises:
            InvalidValueError: If there is no such space.
            ArtifactError: If a file is missing, altered or of a newer format; names the file.
        """
        found, name = builtin.locate(name_or_path)
        artifact = folder.read_artifact(found)
        config, location = artifact.config, name or str(found.resolve())
        try:
            known = persistence.known_results(config)
            description = persistence.fields(config)
            space = cls(artifact.words, artifact.vectors, location=location, **description)
        except (InvalidValueError, InvalidTypeError) as error:
            raise ArtifactError(f"{found / folder.CONFIG}: {error}") from error
        space.__dict__.update(known)
        persistence.remember(space)
        return space

    def save_pretrained(self, directory: str | Path) -> None:
        """Save the space into a folder, from which `from_pretrained` loads it.

        Args:
            directory: Created if missing; the files of a space already there are replaced.
        """
        persistence.write(self, Path(directory), self.neighbour_distances() | self._neighbours)

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self._index

    def __repr__(self) -> str:
        origin = f", {self.location!r}" if self.location else ""
        return f"EmbeddingSpace({len(self)} words x {self.dim} dimensions, {self.metric}{origin})"

    @property
    def dim(self) -> int:
        """Number of dimensions n."""
        return int(self.vectors.shape[1])

    @cached_property
    def digest(self) -> str:
        """SHA-256 in hexadecimal that binds the vectors, the vocabulary, the metric and the scale.

        Saving and loading does not change it.
        """
        bound = [self._vectors_sha256, self._vocabulary_sha256, self.metric, self.scale]
        return hashlib.sha256(json.dumps(bound).encode()).hexdigest()

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
        find = self._index.get
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
            self._neighbours.update(nearest.median_distances(self._distances, missing))
        return {k: self._neighbours[k] for k in ks}

    def rescale(self, factor: float) -> "EmbeddingSpace":
        """Return a space with every distance multiplied by a factor.

        Euclidean vectors are multiplied; a Poincaré space keeps its points and multiplies `scale`.
        """
        _validate.positive(factor=factor)
        total = float(factor) * self.provenance.get("rescaled_by", 1.0)
        provenance = self.provenance | {"rescaled_by": total}
        if self.metric == "poincare":
            scale = self.scale * factor
            return EmbeddingSpace(self.words, self.vectors, self.metric, scale, provenance)
        vectors = euclidean.scaled(self.vectors, factor)
        return EmbeddingSpace(self.words, vectors, provenance=provenance)

    def __copy__(self) -> "EmbeddingSpace":
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> "EmbeddingSpace":
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        persistence.remember(self)
        location = self.location or str(persistence.stash(self, self._neighbours))
        return _restore, (location, self.digest)

    @cached_property
    def _distances(self) -> Distances:
        return Distances(self.vectors, self.metric, self.scale)

    @cached_property
    def _index(self) -> dict[str, int]:
        return checks.index_of(self.words)

    @cached_property
    def _neighbours(self) -> dict[int, float]:
        return {}

    @cached_property
    def _vectors_sha256(self) -> str:
        return tensors.sha256(self.vectors)

    @cached_property
    def _vocabulary_sha256(self) -> str:
        return hashlib.sha256(folder.vocabulary_bytes(self.words)).hexdigest()

    def _id(self, word: str | int) -> int:
        if isinstance(word, str) and word not in self._index:
            raise InvalidValueError("the word is not in the vocabulary; check with `in` first")
        return int(self._index[word] if isinstance(word, str) else word)


def _restore(location: str, digest: str) -> EmbeddingSpace:
    space = persistence.recall(digest)
    if space is None:
        space = EmbeddingSpace.from_pretrained(location)
        if space.digest != digest:
            raise persistence.mismatch(location, digest, space.digest)
    persistence.remember(space, keep=True)
    return space
