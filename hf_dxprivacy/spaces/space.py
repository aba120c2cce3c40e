"""EmbeddingSpace: where a space of words comes from, and where it goes."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from hf_dxprivacy import _validate
from hf_dxprivacy._immutable import Immutable
from hf_dxprivacy.errors import ArtifactError, InvalidTypeError, InvalidValueError
from hf_dxprivacy.hub import HubAccess, HubCommit, Publishable, folder, tensors, update_config
from hf_dxprivacy.spaces import checks, euclidean, indexing, listing, models, persistence, readers
from hf_dxprivacy.spaces.base import WordSpace
from hf_dxprivacy.spaces.cells import CELLS, Cells
from hf_dxprivacy.spaces.locate import Place, locate
from hf_dxprivacy.spaces.persistence import Extras


class EmbeddingSpace(WordSpace, Publishable, Immutable):
    """A vocabulary with one vector per word and a metric; immutable.

    Make one with `from_pretrained`, `from_vectors`, `from_text_vectors`, `from_transformers` or
    `from_static`. Words are kept as they are given; two that differ only in Unicode normalisation
    are two words.

    It pickles to a path and a digest, never to its matrix: an in-memory space is first saved in
    the user's cache (``$HF_DXPRIVACY_CACHE``), and worker processes map it from there.
    """

    published_files: ClassVar[tuple[str, ...]] = persistence.FILES

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
    def from_transformers(
        cls,
        model_id: str | Path,
        *,
        revision: str | None = None,
        cache_dir: str | Path | None = None,
        token: str | bool | None = None,
        local_files_only: bool = False,
        subwords: bool = False,
    ) -> "EmbeddingSpace":
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
            revision: Branch, tag or commit on the Hub; the main branch by default.
            cache_dir: Cache of the Hub's files; ``$HF_HUB_CACHE`` by default.
            token: A token for the Hub, True for the stored one, False for none.
            local_files_only: Use what the cache has, and no network.
            subwords: Take every token that is not special, by its name in the tokenizer ("##ing",
                "Ġthe"), as a `TokenPrivatizer` needs it; also those that no text becomes, such as
                "[unused1]" of BERT. Tokens that hold a line break are left out.

        Raises:
            InvalidValueError: If `transformers` can not load the model or its tokenizer, there are
                no such words, or tokenizer and embedding do not belong together.
            InvalidTypeError: If the tokenizer is not backed by the `tokenizers` library.
            HubError: If the Hub refuses it or can not be reached.
            ArtifactError: If there are no safetensors files, or they do not fit the model.
            MissingExtraError: If torch or transformers is not installed.
        """
        access = HubAccess(cache_dir, token, local_files_only)
        words, vectors, source = models.read_transformers(model_id, revision, access, subwords)
        return cls(words, vectors, provenance=source)

    @classmethod
    def from_static(cls, model: Any) -> "EmbeddingSpace":
        """Take the vectors of a static model of model2vec.

        The words are those that are exactly one token of the model's tokenizer in running text,
        each with the vector (times its weight) that the model adds up for it.

        >>> space = EmbeddingSpace.from_static("minishlab/potion-base-8M")

        Args:
            model: A `model2vec.StaticModel`, the folder of one, or a repository on the Hub, of
                which the main branch is read.

        Raises:
            InvalidValueError: If model2vec can not load it, its parts do not fit together, or
                there are no such words.
            InvalidTypeError: If it is something else.
            HubError: If the Hub refuses it or can not be reached.
            MissingExtraError: If model2vec is not installed.
        """
        words, vectors, source = models.read_static(model)
        return cls(words, vectors, provenance=source)

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
    ) -> "EmbeddingSpace":
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
                it, in C++, from a file that only a digest protects: whoever publishes a space
                could publish an index that crashes this process or worse, so ask for one only
                from whom you trust. Without this argument none is fetched or read.
            neighbour_lists: Load what `build_neighbours` made too. A false list would break the
                guarantee, and only a digest protects them: again, from whom you trust.

        Raises:
            InvalidValueError: If there is no such space.
            HubError: If the Hub refuses it or can not be reached.
            ArtifactError: If a file is missing, altered or of a newer format, or there is no index
                of that kind, or no lists, for these vectors; names the file.
        """
        access = HubAccess(cache_dir, token, local_files_only, force_download)
        place = locate(name_or_path, persistence.READ, revision, access)
        return cls._at(place, Extras(index, neighbour_lists), access)

    def build_index(self, kind: str) -> "EmbeddingSpace":
        """Return this space with an index for approximate search, which is saved and pushed too.

        "laplace" and "mahalanobis" use it if they are asked to, by the same ``index=``; it changes
        what they release, not their guarantee. It pays for 100,000 words and more. How well it
        agrees with exact search is measured under noise of several sizes, and stands in
        `index.quality` and on the model card. The same vectors and kind give the same index.

        Args:
            kind: "ivf", "hnsw", a faiss factory string such as "IVF256,PQ50", or "flat", which is
                exact and not faster than no index.

        Raises:
            InvalidTypeError: If it is not a string.
            InvalidValueError: If the space is not Euclidean, or faiss can not build such an index.
        """
        return self._with(index=indexing.build(self, kind), location=None, commit=None)

    def build_neighbours(self, k: int = CELLS, progress: bool = True) -> "EmbeddingSpace":
        """Return this space with lists of how near every word is to others, saved and pushed too.

        The words are put into k groups of near ones, and a list says how near the nearest word of
        each is. With them "tem" and "calibrated" start on a text at once, whatever their ε, and all
        worker processes share one copy; what is drawn keeps its law. They take 4·k·V bytes, and
        once the time of V²·n multiplications: it pays for texts with many different words.

        Args:
            k: Length of the lists, at most V. Longer ones make single draws faster at small ε.
            progress: Show a progress bar.
        """
        _validate.at_least(1, k=k)
        lists = listing.build(Cells(self._distances, min(k, len(self))), progress)
        return self._with(neighbour_lists=lists, location=None, commit=None)

    def __reduce__(self) -> tuple[Any, ...]:
        persistence.remember(self)
        location = self.location or str(persistence.stash(self, self._neighbours))
        return _restore, (location, self.commit, persistence.identity(self), Extras.of(self))

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

    @classmethod
    def _at(cls, place: Place, extras: Extras, access: HubAccess) -> "EmbeddingSpace":
        with place.named():
            artifact = folder.read_artifact(place.folder)
        try:
            known = persistence.known_results(artifact.config)
            description = persistence.fields(artifact.config)
            space = cls(
                artifact.words,
                artifact.vectors,
                location=place.location,
                commit=place.commit,
                **description,
            )
        except (InvalidValueError, InvalidTypeError) as error:
            raise ArtifactError(f"{place.folder / folder.CONFIG}: {error}") from error
        tensors.release(artifact.vectors)
        space.__dict__.update(known)
        space = space._with(**extras.load(space, artifact.config, place, access))
        persistence.remember(space)
        return space

    def _with(self, **changes: Any) -> "EmbeddingSpace":
        # Everything else is shared, also what was computed.
        space = object.__new__(EmbeddingSpace)
        vars(space).update(vars(self), **changes)
        return space

    def _save(self, folder: Path) -> None:
        persistence.write(self, folder, self.neighbour_distances() | self._neighbours)

    def _write_card(self, folder: Path, *, license: str | None, name: str) -> None:
        # The card shows mechanisms at work, of which a space knows nothing.
        from hf_dxprivacy import cards

        cards.measure(self)
        update_config(folder, {"figures": self.figures, "certificates": self.certificates})
        cards.write_space_card(self, folder, license=license, name=name)

    def _check_publishable(self, license: str | None) -> None:
        from hf_dxprivacy import cards

        cards.require_licence(license, self.provenance)


def _restore(
    location: str, commit: HubCommit | None, identity: str, extras: Extras
) -> EmbeddingSpace:
    space = persistence.recall(identity)
    if space is None:
        place = Place.again(location, commit, extras.files)
        space = EmbeddingSpace._at(place, extras, HubAccess())
        if persistence.identity(space) != identity:
            raise persistence.mismatch(location, identity, persistence.identity(space))
    persistence.remember(space, keep=True)
    return space
