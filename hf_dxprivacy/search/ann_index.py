"""Approximate nearest neighbour in L2: candidates from a faiss index, ranked exactly."""

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import faiss
import numpy as np
import threadpoolctl
from numpy.typing import NDArray

from hf_dxprivacy._runtime import lazy_property, limit_in_worker
from hf_dxprivacy.errors import ArtifactError, InvalidTypeError, InvalidValueError
from hf_dxprivacy.search.knn import compare_all, nearest_euclidean, rank

# Candidates of which the nearest is found exactly; codes are coarse and need more.
SHORTLIST, CODED_SHORTLIST = 10, 64

# Dimensions that four bits of a code stand for at the most, and how many times four bits a code has
# at least, if there are as many dimensions.
CODED, CODES = 4, 32
# Queries that are compared with all codes in one pass: twice four, a third faster than by default.
PASS = 0x44

# How much of an index is looked at: cells of an inverted file, and candidates of a graph, of words
# or of cells.
PROBES = 32
EXPLORED = 128

# Vectors for each cell that k-means learns the cells from: a sample, if there are more.
TRAINING_VECTORS = 64

# Factories without cells or links, which end the process instead of raising.
FATAL = re.compile(r"(IVF0|HNSW[01]|NSG0)(?!\d)")


@dataclass(frozen=True, eq=False, repr=False)
class VectorIndex:
    """A faiss index over the vectors of a space; immutable.

    Attributes:
        kind: What was asked for: "flat", "ivf", "hnsw", "pq" or a faiss factory string.
        factory: The faiss factory string that the kind stands for.
        content: The index as faiss serialises it, uint8; used in place, without a copy.
        vectors: (V, n) float32, those that were indexed; the candidates are ranked by them.
        quality: How it compares with exact search, as far as that was measured.
        faiss_version: Version of faiss that built it.
        stored_sha256: SHA-256 of the content if a digest check has found it already: computing it
            again would fill memory with all the pages that are mapped.

    Raises:
        ArtifactError: If faiss cannot read the content, or it does not index V vectors of n
            dimensions by L2 distance.
    """

    kind: str
    factory: str
    content: NDArray[np.uint8]
    vectors: NDArray[np.float32]
    quality: dict[str, Any] = field(default_factory=dict)
    faiss_version: str = faiss.__version__
    stored_sha256: str | None = None

    def __post_init__(self) -> None:
        index = self._index
        shape = (index.ntotal, index.d)
        if shape != self.vectors.shape or index.metric_type != faiss.METRIC_L2:
            raise ArtifactError(
                f"expected an L2 index of {self.vectors.shape[0]} vectors of "
                f"{self.vectors.shape[1]} dimensions, got {shape[0]} of {shape[1]}, metric "
                f"{index.metric_type}"
            )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.kind!r}, {self.factory!r})"

    @lazy_property
    def sha256(self) -> str:
        """SHA-256 of the content, in hexadecimal."""
        return self.stored_sha256 or hashlib.sha256(self.content.data).hexdigest()

    @property
    def pieces(self) -> Iterable[bytes | memoryview]:
        """The content, to be written to a file."""
        return [self.content.data]

    @property
    def described(self) -> dict[str, Any]:
        """What ``config.json`` says of it beside digests."""
        return {
            "kind": self.kind,
            "factory": self.factory,
            "faiss": self.faiss_version,
            "quality": self.quality,
        }

    @classmethod
    def restored(
        cls, content: NDArray[np.uint8], entry: Mapping[str, Any], vectors: NDArray[np.floating]
    ) -> "VectorIndex":
        """Make an index of a file that a digest check has passed.

        Args:
            content: Its bytes.
            entry: What `described` was, and "sha256" of the file.
            vectors: (V, n), those of the space.

        Raises:
            ArtifactError: As for the class.
        """
        return cls(
            entry["kind"],
            entry["factory"],
            content,
            np.ascontiguousarray(vectors, dtype=np.float32),
            entry["quality"],
            entry["faiss"],
            entry["sha256"],
        )

    def search(self, queries: NDArray[np.floating]) -> NDArray[np.int64]:
        """Return the row of the nearest vector for each query, as far as the index finds it.

        The candidates are ranked in float64, the lowest row wins a tie. A query for which the
        index has no candidate at all, or that float32 cannot square, is compared with all vectors.
        For "ivf", "hnsw" and "pq" the answer depends neither on the number of queries in a call nor
        on that of threads.

        Args:
            queries: (m, n) finite vectors; taken in float32.

        Returns:
            (m,) int64 rows of `vectors`.
        """
        queries = np.ascontiguousarray(queries, dtype=np.float32)
        found = self.candidates(queries, CODED_SHORTLIST if self.kind == "pq" else SHORTLIST)
        with np.errstate(over="ignore"):
            beyond = ~np.isfinite(np.einsum("ij,ij->i", queries, queries))
        none = beyond | (found[:, 0] < 0)
        found = np.where(found < 0, np.where(none, 0, found[:, 0])[:, None], found)
        nearest = rank(queries, self.vectors, found)
        nearest[none] = compare_all(queries[none], self.vectors)
        return nearest

    def candidates(self, queries: NDArray[np.float32], size: int) -> NDArray[np.int64]:
        """Return the rows that the index finds for each query, in its own order.

        Args:
            queries: (m, n) float32, C-contiguous.
            size: How many.

        Returns:
            (m, size) int64 rows of `vectors`; −1 at the end where the index finds fewer.
        """
        limit_in_worker()
        found: NDArray[np.int64] = self._index.search(queries, size)[1]
        return found

    @lazy_property
    def _index(self) -> Any:
        try:
            start = faiss.swig_ptr(self.content)
            reader = faiss.ZeroCopyIOReader(start, self.content.size)  # type: ignore[attr-defined]
            index = faiss.read_index(reader)
        except RuntimeError as error:
            raise ArtifactError(f"not an index that faiss can read: {_reason(error)}") from error
        # faiss checks all but the last item, of which it would read what lies behind the content.
        # Another version may write the same index in another length.
        if self.faiss_version == faiss.__version__:
            written: list[int] = []
            writer = faiss.PyCallbackIOWriter(  # type: ignore[attr-defined]
                lambda block: written.append(len(block))
            )
            faiss.write_index(index, writer)
            if sum(written) != self.content.size:
                raise ArtifactError(
                    f"expected an index of {sum(written)} bytes, got {self.content.size}; it is "
                    "truncated or has something appended"
                )
        return index


def build_index(vectors: NDArray[np.float32], kind: str) -> VectorIndex:
    """Index vectors; the same vectors and kind give the same bytes.

    Args:
        vectors: (V, n) float32, C-contiguous.
        kind: "flat"; "ivf", cells of which the nearest few are searched; "hnsw", a graph that is
            walked towards the query; "pq", short codes of the vectors (product quantization; André
            et al., VLDB 2015), all of which are compared with the query; or a faiss factory string
            such as "IVF256,PQ50".

    Raises:
        InvalidTypeError: If the kind is not a string.
        InvalidValueError: If faiss refuses the factory string for these vectors, or the index does
            not search by L2 distance.
    """
    if not isinstance(kind, str):
        raise InvalidTypeError(f"expected the kind of index to be a string, got {kind!r}")
    cells = max(1, min(round(4 * len(vectors) ** 0.5), len(vectors) // 4))
    # The cells are found through a graph: a comparison with all of them is a matrix product, whose
    # rounding, and so the choice of the last cells, depends on the number of queries in a call.
    ivf = f"IVF{cells}_HNSW32,Flat"
    coded = max(1, min(CODED, vectors.shape[1] // CODES))
    codes = -(-vectors.shape[1] // coded)
    pq = f"Pad{coded * codes},PQ{codes}x4fs" if len(vectors) > CODED_SHORTLIST else "Flat"
    factory = {"flat": "Flat", "ivf": ivf, "hnsw": "HNSW32", "pq": pq}.get(kind, kind)
    if fatal := FATAL.search(factory):
        raise InvalidValueError(
            f"the index {kind!r} has no cells or links: {fatal[0]!r}; take more"
        )
    try:
        # HNSW links vectors in the order in which threads get to them, so one thread it is.
        with threadpoolctl.threadpool_limits(1):
            index = faiss.index_factory(vectors.shape[1], factory, faiss.METRIC_L2)
            _require_euclidean(index, kind)
            _configure(index, kind)
            index.train(vectors)
            index.add(vectors)
            index.search(vectors[:1], 1)
    except RuntimeError as error:
        raise InvalidValueError(
            f"faiss cannot build the index {kind!r} for {len(vectors)} vectors of "
            f"{vectors.shape[1]} dimensions: {_reason(error)}; 'ivf' and 'hnsw' suit any"
        ) from error
    return VectorIndex(kind, factory, faiss.serialize_index(index), vectors)


def _configure(index: Any, kind: str) -> None:
    """Set parameters of training and search that no factory string holds."""
    graphs = [index]
    if kind == "pq" and isinstance(index, faiss.IndexPreTransform):
        codes: Any = faiss.downcast_index(index.index)
        codes.qbs, codes.pq.cp.min_points_per_centroid = PASS, 1
    cells = faiss.try_extract_index_ivf(index)
    if cells is not None:
        cells.nprobe = min(PROBES, cells.nlist)
        graphs.append(faiss.downcast_index(cells.quantizer))
        cells.cp.max_points_per_centroid = TRAINING_VECTORS
        # Few vectors for a cell are no reason to write a warning to the terminal.
        cells.cp.min_points_per_centroid = 1
    for graph in graphs:
        if isinstance(graph, faiss.IndexHNSW):
            graph.hnsw.efSearch = EXPLORED


def _require_euclidean(index: Any, kind: str) -> None:
    parts = [index]
    while isinstance(index, faiss.IndexPreTransform):
        chain: Any = index.chain
        parts += [faiss.downcast_VectorTransform(chain.at(i)) for i in range(chain.size())]
        index = faiss.downcast_index(index.index)
        parts.append(index)
    for part in parts:
        if isinstance(part, (faiss.NormalizationTransform, faiss.IndexLSH)):
            measure = "bits" if isinstance(part, faiss.IndexLSH) else "angle"
            raise InvalidValueError(
                f"the index {kind!r} searches by {measure}, not by L2 distance; 'ivf' and 'hnsw' do"
            )


def _reason(error: RuntimeError) -> str:
    """Return the message of a faiss error without its place in the source."""
    return re.sub(r"^Error in .*? at \S+:\d+: (Error: )?", "", str(error), flags=re.DOTALL).strip()


def compare_with_flat(index: VectorIndex, queries: NDArray[np.floating]) -> dict[str, float]:
    """Compare an index with exact search.

    Args:
        index: The index.
        queries: (m, n) finite vectors, m >= 1.

    Returns:
        Parts of 1: "recall_at_1", how often the first candidate is the nearest vector;
        "recall_at_10", how many of the ten nearest are among the ten candidates; and
        "changed_outputs", how often another vector is found in the end.
    """
    queries = np.ascontiguousarray(queries, dtype=np.float32)
    nearest = nearest_euclidean(queries, index.vectors)
    _, ten = faiss.knn(queries, index.vectors, min(10, len(index.vectors)))
    found = index.candidates(queries, SHORTLIST)
    return {
        "recall_at_1": float((found[:, 0] == nearest).mean()),
        "recall_at_10": float((ten[:, :, None] == found[:, None, :]).any(axis=2).mean()),
        "changed_outputs": float((index.search(queries) != nearest).mean()),
    }
