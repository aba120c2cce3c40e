"""EmbeddingSpace: words, their vectors and a metric."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hf_dxprivacy._runtime import CPU
from hf_dxprivacy.errors import (
    InvalidValueError,
    require_at_least,
    require_between,
    require_one_of,
    require_positive,
)
from hf_dxprivacy.guarantee import agreed
from hf_dxprivacy.hub import HubOptions, Publishable
from hf_dxprivacy.hub.download import resolve
from hf_dxprivacy.spaces import checks, metrics, space_artifact
from hf_dxprivacy.spaces.distances import PRODUCT_ROWS, Distances, sample_rows
from hf_dxprivacy.spaces.shared_bounds import BLOCKS
from hf_dxprivacy.spaces.stored_space import StoredSpace
from hf_dxprivacy.text.shapes import FAMILIES

if TYPE_CHECKING:
    from hf_dxprivacy.spaces.hierarchy import Hierarchy
    from hf_dxprivacy.spaces.models import Scripts
    from hf_dxprivacy.spaces.partition import Partition

NEIGHBOUR_RANKS = (1, 10, 100)
METRIC_NAMES = {"euclidean": "Euclidean distance", "poincare": "hyperbolic distance"}


# So that what is derived of it, such as the digest, stays as well.
@dataclass(frozen=True, eq=False, repr=False)
class EmbeddingSpace(StoredSpace, Distances, Publishable):
    """A vocabulary with one vector per word and a metric; immutable.

    Make one with `from_pretrained`, `from_vectors`, `from_text_vectors`, `from_transformers` or
    `from_static`. Words are kept as they are given; two that differ only in Unicode normalisation
    are two words. It pickles to a path and a digest, never to its matrix: an in-memory space is
    first saved in the user's cache (``$HF_DXPRIVACY_CACHE``), and workers map it from there.

    Attributes:
        words: V distinct words, in row order.
        vectors: (V, n) float32 or float64, read-only. Used as it is, without a copy.
        metric: "euclidean" or "poincare".
        scale: Factor on every distance; 1.0 for the Euclidean metric.
        provenance: Source, licence and settings the vectors come from.
        figures: Measurements that its model card shows.
        location: Folder or built-in name it was loaded from; None in memory.
        commit: The commit on the Hub it was loaded from.
        index: For approximate search; None unless it was built or asked for.
        neighbour_lists: Stored bounds of distances; None unless built or asked for.
        hierarchy: A tree over the words; None unless it was built, or stored with the space.
        shapes: Words of the vocabulary that stand for all unknown words of a shape, such as
            "<number:3>"; see `hf_dxprivacy.text.shapes`.
        stored_sha256: Digests of "vectors" and "vocabulary" that loading has checked.
        cache: Values computed from the space.
    """

    published_files: ClassVar[tuple[str, ...]] = space_artifact.FILES

    @classmethod
    def from_vectors(
        cls,
        words: Iterable[str],
        vectors: ArrayLike,
        metric: str = "euclidean",
        scale: float = 1.0,
        provenance: Mapping[str, Any] | None = None,
    ) -> EmbeddingSpace:
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
    ) -> EmbeddingSpace:
        """Read a file of word vectors as float32: GloVe, word2vec (text, binary) or fastText text.

        Plain or gzip; the format is recognised from the content.

        Args:
            path: The file.
            limit: Read at most this many words from the top, which are usually the most frequent.
            progress: Show a progress bar over the bytes of the file.

        Raises:
            InvalidValueError: If the file is malformed; names the file and the line.
        """
        from hf_dxprivacy.spaces import vector_readers

        words, vectors = vector_readers.read_vectors(path, limit=limit, progress=progress)
        return cls(tuple(words), vectors, provenance={"source": Path(path).name, "limit": limit})

    @classmethod
    def from_transformers(
        cls,
        model_id: str | Path,
        *,
        revision: str | None = None,
        cache_dir: str | Path | None = None,
        token: str | bool | None = None,
        local_files_only: bool = False,
        subwords: bool = False,
        scripts: Scripts = "main",
    ) -> EmbeddingSpace:
        """Take the input embedding of a `transformers` model, as it is stored, in float32.

        The words are those that are exactly one token of the model's tokenizer in running text;
        special tokens and pieces of words are left out. Only the configuration, the tokenizer and
        the safetensors file with the embedding are read, all from one commit, which the provenance
        names. No code of a repository is run. Nothing is scaled; to make ε count steps to the
        nearest neighbour, as in the built-in spaces:

        >>> space = EmbeddingSpace.from_transformers("sentence-transformers/all-MiniLM-L6-v2")
        >>> space = space.rescale(1 / space.neighbour_distances()[1])

        Args:
            model_id: A repository on the Hub or a local folder.
            revision: This and the next three are as for `from_pretrained`.
            cache_dir: See there.
            token: See there.
            local_files_only: See there.
            subwords: Take every token that is not special, by its name in the tokenizer ("##ing",
                "Ġthe"), as a `TokenPrivatizer` needs it; also those that no text becomes, such as
                "[unused1]" of BERT. Tokens that hold a line break are left out.
            scripts: Take only tokens whose letters are of these scripts, by the first word of
                their Unicode names in lower case ("latin", "cyrillic", "greek", "cjk", …), so that
                pieces of foreign words do not come out in a text. "main" is the script of most
                tokens. None takes all, also parts of characters. What is left out is unknown as
                an input, and no output. Digits and signs are of every script.

        Raises:
            InvalidValueError: If `transformers` cannot load the model or its tokenizer, there are
                no such words, or tokenizer and embedding do not belong together.
            InvalidTypeError: If the tokenizer is not backed by the `tokenizers` library.
            HubError: If the Hub refuses it or cannot be reached.
            ArtifactError: If there are no safetensors files, or they do not fit the model.
            MissingExtraError: If torch or transformers is not installed.
        """
        from hf_dxprivacy.spaces import models

        access = HubOptions(cache_dir, token, local_files_only)
        words, vectors, provenance = models.read_transformers(
            model_id, revision, access, subwords, scripts
        )
        return cls(words, vectors, provenance=provenance)

    @classmethod
    def from_static(cls, model: Any, scripts: Scripts = "main") -> EmbeddingSpace:
        """Take the vectors of a static model of model2vec.

        The words are those that are exactly one token of the model's tokenizer in running text,
        each with the vector (times its weight) that the model adds up for it.

        Args:
            model: A `model2vec.StaticModel`, the folder of one, or a repository on the Hub such as
                "minishlab/potion-base-8M", of which the main branch is read.
            scripts: As for `from_transformers`.

        Raises:
            InvalidValueError: If model2vec cannot load it, its parts do not fit together, or
                there are no such words.
            InvalidTypeError: If it is something else.
            HubError: If the Hub refuses it or cannot be reached.
            MissingExtraError: If model2vec is not installed.
        """
        from hf_dxprivacy.spaces import models

        words, vectors, provenance = models.read_static(model, scripts)
        return cls(words, vectors, provenance=provenance)

    @classmethod
    def from_pretrained(
        cls,
        name_or_path: str | Path,
        *,
        revision: str | None = None,
        cache_dir: str | Path | None = None,
        token: str | bool | None = None,
        local_files_only: bool = False,
        force_download: bool = False,
        index: str | None = None,
        neighbour_lists: bool = False,
    ) -> EmbeddingSpace:
        """Load a space that ships with the package, from a folder, or from the Hub.

        The vectors are memory-mapped, so that processes share them; all digests are checked. From
        the Hub everything is read from one commit, the attribute `commit`.

        Args:
            name_or_path: Name of a built-in space such as "wordnet-gloss", a local folder, or a
                repository "namespace/name". A folder of that path comes before the repository.
            revision: Branch, tag or commit on the Hub; the main branch by default.
            cache_dir: Cache of the Hub's files; ``$HF_HUB_CACHE`` by default.
            token: A token for the Hub, True for the stored one, False for none.
            local_files_only: Use what the cache has, and no network.
            force_download: Fetch again what the cache has.
            index: Kind of the index to load too, as it was given to `build_index`. faiss reads
                it, in C++, from a file that only a digest protects: a publisher could publish one
                that crashes this process or worse, so ask for it only from a publisher whom you
                trust. Without this argument none is fetched or read.
            neighbour_lists: Load what `build_neighbours` made too. A false list would break the
                guarantee, and only a digest protects them: again, from a publisher you trust.

        Raises:
            InvalidValueError: If there is no such space.
            HubError: If the Hub refuses it or cannot be reached.
            ArtifactError: If a file is missing, altered or of a newer format, or there is no index
                of that kind, or no lists, for these vectors; names the file.
        """
        access = HubOptions(cache_dir, token, local_files_only, force_download)
        source = resolve(name_or_path, space_artifact.READ, revision, access)
        return space_artifact.load(cls, source, index, neighbour_lists)

    def build_index(self, kind: str) -> EmbeddingSpace:
        """Return this space with an index for approximate search, which is saved and pushed too.

        "laplace" and "mahalanobis" use it if they get the same ``index=``; it changes what they
        release, not their guarantee. It pays for 100,000 words and more. Its agreement with exact
        search under noise of several sizes is measured: `index.quality`, and the model card. The
        same vectors and kind give the same index.

        Args:
            kind: "pq" for 100 dimensions and more, "ivf", "hnsw", a faiss factory string such as
                "IVF256,PQ50", or "flat", which is exact and not faster than no index.

        Raises:
            InvalidTypeError: If it is not a string.
            InvalidValueError: If the space is not Euclidean, or faiss cannot build such an index.
        """
        from hf_dxprivacy.spaces import index_quality

        step = self.neighbour_distances()[1]
        index = index_quality.build(self, step, kind)
        return self._with(index=index, location=None, commit=None)

    def build_neighbours(self, k: int = BLOCKS, progress: bool = True) -> EmbeddingSpace:
        """Return this space with stored bounds of distances, saved and pushed too.

        The words are partitioned into k blocks of near ones, and for each word and block a lower
        bound of the distance is stored: 4·k·V bytes, after V²·n multiplications. With them "tem"
        and "calibrated" start on a text at once, whatever their ε, and all workers share one copy;
        what is drawn keeps its law. It pays for texts with many different words.

        Args:
            k: Number of blocks, at most V. More make single draws faster at small ε.
            progress: Show a progress bar.
        """
        from hf_dxprivacy.spaces.partition import Partition

        require_at_least(1, k=k)
        bounds = Partition(self, min(k, len(self))).all_bounds(progress)
        return self._with(neighbour_lists=bounds, location=None, commit=None)

    def build_hierarchy(
        self,
        method: str = "average",
        progress: bool = True,
        *,
        relations: Iterable[tuple[str, str]] | None = None,
    ) -> EmbeddingSpace:
        """Return this space with a tree over its words, as "hierarchical" needs it.

        The tree is made from the vectors, saved and pushed with them, and changes no guarantee:
        the metric of "hierarchical" is the tree's own. What it changes is which words are near.

        Args:
            method: "average" linkage, of cosine distances or, in the ball, of hyperbolic cosines;
                "ward", of vectors of length 1; or "parts", average linkage inside parts of 20,000
                words that k-means makes, and of these parts. From 40,000 words on the first two go
                by parts as well, except in the ball. 33,860 words take half a minute.
            progress: Show a progress bar.
            relations: Take the classes of a taxonomy as clusters instead, in place of a method:
                pairs of a name and its class, such as ("dog", "animal").

        Raises:
            InvalidValueError: If there is no such method for the metric of the space.
        """
        from hf_dxprivacy.spaces import linkage

        if relations is not None:
            tree = linkage.from_relations(self.words, relations)
        else:
            tree = linkage.build(self.vectors, self.metric, method, progress)
        return self.with_hierarchy(tree)

    def with_hierarchy(self, tree: Hierarchy | None) -> EmbeddingSpace:
        """Return this space with another tree over its words, or with none.

        Raises:
            InvalidValueError: If the tree is over another number of words.
        """
        if tree is not None and len(tree) != len(self):
            raise InvalidValueError(
                f"expected a tree over {len(self)} words, got one over {len(tree)}"
            )
        figures, measured = self.figures, self.figures.get("mechanisms")
        if isinstance(measured, dict):
            # Those of "hierarchical" were measured with the tree before.
            kept = {name: points for name, points in measured.items() if name != "hierarchical"}
            figures = figures | {"mechanisms": kept}
        return self._with(hierarchy=tree, figures=figures, location=None, commit=None)

    def without(self, words: Iterable[str]) -> EmbeddingSpace:
        """Return this space less some words, with the tree that this one induces over the others.

        As inputs they are unknown words from then on, and no mechanism draws them. Each is meant in
        any letter case, but not in other forms; one that the space lacks makes no difference.
        `provenance["excluded"]` counts those that left. An index and neighbour lists do not stay.

        Args:
            words: A public list: what a vocabulary lacks is as public as what it has.

        Raises:
            InvalidValueError: If no word is left.
            InvalidTypeError: If it is a single string.
        """
        unwanted = checks.folded(words)
        return self._less([word.casefold() not in unwanted for word in self.words])

    def _less(self, kept: Sequence[bool]) -> EmbeddingSpace:
        """Return this space less the rows that are not kept."""
        rows = np.flatnonzero(kept)
        if len(rows) == len(self):
            return self
        if not len(rows):
            raise InvalidValueError(f"none of {len(self)} {self.item_kind} is left; exclude fewer")
        excluded = self.provenance.get("excluded", 0) + len(self) - len(rows)
        return self._among(rows, excluded=excluded)

    def _among(self, rows: NDArray[np.int64], **described: Any) -> EmbeddingSpace:
        """Return the space of some rows, with the tree that this one induces over them."""
        words, provenance = [self.words[row] for row in rows.tolist()], self.provenance | described
        part = EmbeddingSpace(tuple(words), self.vectors[rows], self.metric, self.scale, provenance)
        tree = None if self.hierarchy is None else self.hierarchy.restricted(rows)
        return part._with(hierarchy=tree, shapes=tuple(s for s in self.shapes if s in part))

    def rescale(self, factor: float) -> EmbeddingSpace:
        """Return a space with every distance multiplied by a factor; a tree stays as it is.

        Euclidean vectors are multiplied; a Poincaré space keeps its points and multiplies `scale`.
        """
        require_positive(factor=factor)
        before = self.provenance.get("rescaled_by", 1.0)
        require_positive(**{"provenance['rescaled_by']": before})
        total = float(factor) * before
        provenance = self.provenance | {"rescaled_by": total}
        vectors, scale = self.vectors, self.scale
        if self.metric == "poincare":
            scale *= factor
        else:
            vectors = metrics.scaled(vectors, factor)
        scaled = EmbeddingSpace(self.words, vectors, self.metric, scale, provenance)
        return scaled._with(hierarchy=self.hierarchy, shapes=self.shapes)

    def contract(self, factor: float) -> EmbeddingSpace:
        """Return a ball whose points lie `factor` times as far from its origin as here.

        The noise of "hyperbolic" cannot be longer than its floor allows, and words that lie far out
        are out of its reach. No distance grows by more than `factor` (a ball is CAT(0)), so that
        what is ε·d-private for the new ball is (factor·ε)·d-private for this one. A tree stays.

        Args:
            factor: Above 0 and below 1; docs/hyperbolic.md has figures.

        Raises:
            InvalidValueError: If the space is no ball, or the factor is out of range.
        """
        if self.metric != "poincare":
            raise InvalidValueError("only a Poincaré ball can be contracted; see rescale()")
        require_between(0.0, 1.0, hint="begin with 0.5; smaller changes more words", factor=factor)
        total = float(factor) * (self._contracted_by or 1.0)
        vectors = metrics.contracted(self.vectors, factor)
        provenance = self.provenance | {"contracted_by": total}
        ball = EmbeddingSpace(self.words, vectors, self.metric, self.scale, provenance)
        return ball._with(hierarchy=self.hierarchy, shapes=self.shapes)

    def with_figures(self, figures: Mapping[str, Any]) -> EmbeddingSpace:
        """Return this space with measured figures for its card; see `report.measure`."""
        return self._with(figures=dict(figures))

    @property
    def metric_name(self) -> str:
        """Name of the distance in guarantees; that of a contracted ball is another one."""
        name, factor = METRIC_NAMES[self.metric], self._contracted_by
        return name if factor is None else f"{name} in the ball contracted by {factor:.6g}"

    @property
    def _contracted_by(self) -> float | None:
        factor: float | None = self.provenance.get("contracted_by")
        if factor is not None:
            require_between(0.0, 1.0, contracted_by=factor)
        return factor

    def __repr__(self) -> str:
        name = str(self.commit) if self.commit else self.location
        origin = f", {name!r}" if name else ""
        size = f"{len(self)} words x {self.dim} dimensions"
        return f"{type(self).__name__}({size}, {self.metric}{origin})"

    def __copy__(self) -> EmbeddingSpace:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> EmbeddingSpace:
        return self

    def with_shapes(self, kin: Mapping[str, Sequence[str]]) -> EmbeddingSpace:
        """Return this space with entries that stand for all unknown words of a shape.

        An entry lies at the mean of the vectors of its kin. In a tree, if there is one, the entries
        of a family form a cluster in the least cluster that holds half of their kin: numbers lie
        beside number words, and names among names. What a text then becomes: its unknown numbers
        mostly other numbers, its unknown names other names; see `hf_dxprivacy.text.shapes`.

        Args:
            kin: Words of the vocabulary by family, a key of `hf_dxprivacy.text.shapes.FAMILIES`.
                All shapes of a family become entries. Words that the space lacks are left out.

        Raises:
            InvalidValueError: If there is no such family, the space has no kin for it, or it has
                shapes already.
        """
        if self.shapes:
            raise InvalidValueError("the space has shapes already; start from one without")
        require_one_of(FAMILIES, **{f"kin[{name!r}]": name for name in kin})
        groups = {
            name: np.unique(found[found >= 0])
            for name, found in ((name, self.ids(words)) for name, words in kin.items())
        }
        empty = [name for name, rows in groups.items() if not len(rows)]
        if empty or not groups:
            names = ", ".join(empty or FAMILIES)
            raise InvalidValueError(f"expected words of the space as kin of {names}")
        shapes = tuple(shape for name in groups for shape in FAMILIES[name])
        places = [self.vectors[rows].mean(axis=0) for rows in groups.values()]
        counts = [len(FAMILIES[name]) for name in groups]
        vectors = np.concatenate([self.vectors, np.repeat(places, counts, axis=0)])
        grown = EmbeddingSpace(
            (*self.words, *shapes),
            vectors.astype(self.vectors.dtype),
            self.metric,
            self.scale,
            self.provenance,
            shapes=shapes,
        )
        if self.hierarchy is None:
            return grown
        families = [
            (self.hierarchy.cluster_of(rows), count)
            for rows, count in zip(groups.values(), counts, strict=True)
        ]
        return grown._with(hierarchy=self.hierarchy.with_leaves(families))

    def __reduce__(self) -> tuple[Any, ...]:
        # `Dataset.map` pickles before it forks. What workers of an earlier one shared goes with it.
        self.cache.share(len(self))
        return _restore, space_artifact.reference(self)

    def distance(self, a: str | int, b: str | int) -> float:
        """Return the distance between two words, each given by itself or by its id.

        Raises:
            InvalidValueError: If a word is not in the vocabulary.
        """
        return float(self.pair_distances([self._id(a)], [self._id(b)])[0])

    def partition(self, device: str = CPU) -> Partition:
        """Return the partition of the vocabulary into blocks of near words, stored or computed.

        Args:
            device: Where to compare; see `Mechanism.to`.
        """
        from hf_dxprivacy.spaces.partition import Partition, TorchPartition

        key = device, self.neighbour_lists
        if key not in self.cache.partitions:
            order, count = None, min(BLOCKS, len(self))
            if self.neighbour_lists is not None:
                order, count = self.neighbour_lists.order, self.neighbour_lists.k
            # Not the space itself, which the cache would keep alive.
            distances = Distances(self.vectors, self.metric, self.scale)
            self.cache.partitions[key] = (
                Partition(distances, count, order)
                if device == CPU
                else TorchPartition(distances, device, count, order)
            )
        return self.cache.partitions[key]

    def block_bounds(self, ids: NDArray[np.int64], device: str = CPU) -> NDArray[np.float32]:
        """Return lower bounds of the distances to the words of each block; see `Partition.bounds`.

        Args:
            ids: (m,) rows; −1 is the centroid.
            device: Where to compare; see `Mechanism.to`.
        """
        ids = self.checked_ids(ids)
        if self.neighbour_lists is None:
            compute, shared = self.partition(device).bounds, self.cache.shared
            return compute(ids) if shared is None else shared.complete(ids, compute)
        bounds, unknown = self.neighbour_lists.lower[ids], ids < 0
        # Lists of version 0.2 end with the last word.
        if len(self.neighbour_lists.lower) == len(self) and unknown.any():
            bounds[unknown] = self.partition(device).bounds(ids[unknown])
        return bounds

    def neighbours(self, word: str | int, k: int) -> list[tuple[str, float]]:
        """Return the k nearest other words of a word with their distances, nearest first.

        Args:
            word: A word of the vocabulary, or its id.
            k: How many; fewer come back if the vocabulary is smaller.
        """
        require_at_least(1, k=k)
        row = self._id(word)
        distances = self.distances([row])[0]
        # Ties by row.
        order = np.argsort(distances, kind="stable")
        return [(self.words[at], float(distances[at])) for at in order[order != row][:k]]

    def neighbour_distances(self, ks: Sequence[int] = NEIGHBOUR_RANKS) -> dict[int, float]:
        """Return the median distance to the k-th nearest other word, for each k.

        The median is over at most 1000 words, evenly spaced in row order. k beyond the number of
        other words stands for the farthest one. Computed once; stored by `save_pretrained`. Rounded
        upward to seven digits, which are the same on every processor.
        """
        for k in ks:
            require_at_least(1, k=k)
        medians = self.cache.neighbour_distances
        if missing := [k for k in ks if k not in medians]:
            sampled = self.sampled_neighbour_distances(missing)
            medians.update({k: agreed(float(np.median(d))) for k, d in sampled.items()})
        return {k: medians[k] for k in ks}

    def sampled_neighbour_distances(
        self, ks: Sequence[int] = NEIGHBOUR_RANKS
    ) -> dict[int, NDArray[np.float64]]:
        """Return the distances of which `neighbour_distances` are medians, (m,) float64 by k.

        Entries of the same place are of the same word.
        """
        samples = self.cache.samples
        if missing := [k for k in ks if k not in samples]:
            rows = sample_rows(len(self))
            ranks = {k: min(k, len(self) - 1) for k in missing}
            keep = max(ranks.values()) + 1
            best = np.empty((len(rows), 0))
            for block in metrics.blocks(0, len(self), PRODUCT_ROWS):
                best = np.concatenate([best, self.distances(rows, block)], axis=1)
                if best.shape[1] > keep:
                    best = np.partition(best, keep - 1, axis=1)[:, :keep]
            # Each row is among its own nearest, at 0, so that column k is its k-th neighbour.
            best.sort(axis=1)
            samples.update({k: best[:, rank].copy() for k, rank in ranks.items()})
        return {k: samples[k] for k in ks}

    @property
    def unit_distance(self) -> float:
        """Median distance to the nearest neighbour, or to the next one at another place; or 0."""
        return next((d for d in self.neighbour_distances().values() if d > 0), 0.0)

    def _id(self, word: str | int) -> int:
        if not isinstance(word, str):
            return int(word)
        if word not in self._rows:
            raise InvalidValueError("the word is not in the vocabulary; check with `in` first")
        return self._rows[word]

    def _save(self, folder: Path) -> None:
        self.neighbour_distances()
        space_artifact.write(self, folder)

    def _write_card(self, folder: Path, *, license: str | None, name: str) -> None:
        from hf_dxprivacy.hub import cards
        from hf_dxprivacy.spaces.tree_text import branches

        tree = self.hierarchy
        drawn = None if tree is None else branches(tree, self.words)
        cards.write_space_card(
            folder, self.digest, commit=self.commit, license=license, name=name, branches=drawn
        )

    def _check_publishable(self, license: str | None) -> None:
        from hf_dxprivacy.hub import cards

        cards.require_licence(license, self.provenance)


def _restore(*arguments: Any) -> EmbeddingSpace:
    return space_artifact.restore(EmbeddingSpace, *arguments)
