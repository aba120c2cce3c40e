"""`SentencePool`: public sentences as the entries of a space, and how a text finds its entry."""

import hashlib
import json
import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy._runtime import lazy_property
from hf_dxprivacy.errors import (
    ArtifactError,
    InvalidValueError,
    require_at_least,
)
from hf_dxprivacy.hub import HubOptions, Publishable, cards, is_builtin, resolve, tensors
from hf_dxprivacy.hub.artifact import (
    CONFIG,
    ENCODER,
    read_config,
    read_record,
    require_fields,
)
from hf_dxprivacy.hub.atomic import atomic_write
from hf_dxprivacy.hub.writing import write_record
from hf_dxprivacy.search import ExactSearch
from hf_dxprivacy.sentences.cleaning import (
    WORDS,
    cells_of,
    clean_sentences,
    lines_of,
    plain,
    split_sentences,
)
from hf_dxprivacy.sentences.encoders import ENCODERS, SentenceEncoder, WordEncoder
from hf_dxprivacy.sentences.labels import (
    as_label,
    label_arrays,
    labelled_texts,
    rows_of_label,
    stored_labels,
)
from hf_dxprivacy.sentences.projection import (
    encode_blocks,
    held_back_cosines,
    label_axes,
    principal_axes,
    projected,
    quartiles,
)
from hf_dxprivacy.spaces import EmbeddingSpace, space_artifact
from hf_dxprivacy.spaces.checks import folded
from hf_dxprivacy.spaces.stored_space import item_kind
from hf_dxprivacy.text import RowReader

logger = logging.getLogger(__name__)

ARRAYS = "encoder.safetensors"
DIMENSIONS = 64
# A sentence of which the encoder knows a smaller share of the words is in another language.
KNOWN = 0.7


def is_pool(name_or_path: str | Path) -> bool:
    """Tell whether a stored space is that of a pool of sentences, without loading it.

    Args:
        name_or_path: As for `EmbeddingSpace.from_pretrained`.

    Raises:
        InvalidValueError: If there is no such space.
        HubError: If the Hub refuses it or cannot be reached.
    """
    source = resolve(name_or_path, (CONFIG,), what="a space or a pool of sentences")
    if (source.folder / ENCODER).is_file():
        return True
    # Asking the Hub for a file that spaces lack would fail without a network.
    with source.errors_named():
        return item_kind(read_config(source.folder).get("provenance")) == "sentences"


@dataclass(frozen=True, eq=False, repr=False)
class SentencePool(Publishable):
    """Public sentences, their points, a tree over them, and the encoder that finds a text's entry.

    A text is encoded, its vector projected, and the nearest point taken: a function of the text
    alone, as looking a word up is, so that the guarantee of a mechanism over the entries holds for
    texts. A text that the encoder has nothing for is the unknown entry, one more input.

    Attributes:
        space: An `EmbeddingSpace` whose words are the sentences.
        encoder: What encodes texts, the sentences and private ones alike.
        offset: (d,) is subtracted from a vector of the encoder.
        projection: (d, n) is multiplied with it; then its length is made 1.
        labels: For each sentence a public label, such as its topic; None if there are none.
    """

    space: EmbeddingSpace
    encoder: SentenceEncoder
    offset: NDArray[np.float32]
    projection: NDArray[np.float32]
    labels: tuple[str, ...] | None = None

    published_files: ClassVar[tuple[str, ...]] = (*space_artifact.FILES, ENCODER, ARRAYS)

    @classmethod
    def from_sentences(
        cls,
        sentences: Iterable[str],
        encoder: "SentenceEncoder | EmbeddingSpace | SentencePool | str | Path" = "english",
        *,
        labels: Sequence[str | int] | None = None,
        dimensions: int = DIMENSIONS,
        method: str = "ward",
        words: tuple[int, int] = WORDS,
        labelled: tuple[Sequence[str], Sequence[Any]] | None = None,
        held_back: Sequence[str] | None = None,
        provenance: Mapping[str, Any] | None = None,
        progress: bool = True,
    ) -> "SentencePool":
        """Make a pool of public sentences.

        They are cleaned (`clean_sentences`); with word vectors, those are left out too of which
        fewer than 70 % of the words are known ("language"). Then they are encoded, reduced to their
        principal components, or to the directions that labels of public texts depend on, and laid
        out in a tree. Everything is made from the sentences, so these must be public: a release is
        one of them, word by word.

        Args:
            sentences: The sentences, 10,000 or more for a pool that says something. From 40,000 on
                the tree is built by parts.
            encoder: A `SentenceEncoder`, or a space whose word vectors are averaged, or its name;
                or another pool, to encode and project as that one does, so that both can be joined.
            labels: A public label of each sentence, such as its topic, by which a
                `SentencePrivatizer` can restrict the pool. Of a repeated sentence the first counts.
            dimensions: At most so many components.
            method: How the tree is built; see `EmbeddingSpace.build_hierarchy`.
            words: The least and the largest number of words of a sentence.
            labelled: Public texts and their labels. Their components by partial least squares take
                the place of principal ones, so that texts of one label are near to each other.
            held_back: Public texts of the kind that will be released; the card says how near they
                are (`coverage`). Without them some sentences are held back in turn for that.
            provenance: Where the sentences come from, and under which licence.
            progress: Show a progress bar.

        Raises:
            InvalidValueError: If no sentence is left that the encoder has a vector for.
            InvalidTypeError: If an entry is no string.
            MissingExtraError: With `labelled`, if scikit-learn is not installed.
        """
        require_at_least(1, dimensions=dimensions)
        if labels is not None and not isinstance(sentences, str):
            sentences = list(sentences)
        known = encoder.encoder if isinstance(encoder, SentencePool) else encoder
        kept, left_out = clean_sentences(sentences, words, getattr(known, "segmenter", "words"))
        label_of = None if labels is None else labelled_texts(map(plain, sentences), labels)
        like = encoder if isinstance(encoder, SentencePool) else None
        if isinstance(encoder, SentencePool):
            encoder = encoder.encoder
        if not isinstance(encoder, SentenceEncoder):
            encoder = WordEncoder(encoder)
        encoder = encoder.fitted(kept)
        shares = encoder.known_shares(kept)
        vectors = encode_blocks(encoder, kept)
        known = (shares >= KNOWN) & np.any(vectors != 0, axis=1)
        left_out |= {"language": int((shares < KNOWN).sum())}
        left_out |= {"unknown": len(kept) - left_out["language"] - int(known.sum())}
        left_out = _told(left_out)
        if not known.any():
            reasons = ", ".join(f"{count} {reason}" for reason, count in left_out.items())
            raise InvalidValueError(f"no sentence is left for a pool: {reasons or 'there is none'}")
        kept, vectors = [kept[i] for i in np.flatnonzero(known)], vectors[known]
        if like is not None:
            offset, projection = like.offset, like.projection
        elif labelled is None:
            offset, projection = principal_axes(vectors, dimensions)
        else:
            offset, projection = label_axes(
                encoder.encode_public(labelled[0]), labelled[1], dimensions
            )
        points = projected(vectors, offset, projection)
        del vectors
        described = dict(provenance or {}) | {"entries": "sentences", "left_out": left_out}
        space = EmbeddingSpace(tuple(kept), points, provenance=described)
        known_labels = None if label_of is None else tuple(label_of[text] for text in kept)
        tree = space.build_hierarchy(method, progress)
        pool = cls(tree, encoder, offset, projection, known_labels)
        return pool._covering(held_back)

    @classmethod
    def union(
        cls, pools: Sequence["SentencePool"], *, method: str = "ward", progress: bool = True
    ) -> "SentencePool":
        """Join pools of one encoder and one projection to a pool of all their sentences.

        The tree is built anew, so that near sentences of different pools are near in it too; below
        a common root the trees as they are would put each at the largest distance from all others.
        The guarantee is that of one pool with as many entries.

        Args:
            pools: Two or more. ``from_sentences(sentences, pool)`` makes one to join with `pool`.
                A sentence of several is taken once, with its first label.
            method: How the tree is built; see `EmbeddingSpace.build_hierarchy`.
            progress: Show a progress bar.

        Raises:
            InvalidValueError: If there are fewer than two, they encode or project texts in
                different ways, or only some have labels.
        """
        pools = list(pools)
        if not all(isinstance(pool, SentencePool) for pool in pools) or len(pools) < 2:
            raise InvalidValueError(f"expected two or more pools to join, got {len(pools)}")
        if len({pool._mapping for pool in pools}) > 1:
            raise InvalidValueError(
                "expected pools with one encoder and one projection, got different ones; make each "
                "with SentencePool.from_sentences(sentences, pool), pool being the first of them"
            )
        if len({pool.labels is None for pool in pools}) > 1:
            raise InvalidValueError("some of the pools have labels and others have none")
        first: dict[str, int] = {}
        for row, text in enumerate(text for pool in pools for text in pool.sentences):
            first.setdefault(text, row)
        rows = list(first.values())
        points = np.concatenate([pool.space.vectors for pool in pools])[rows]
        labels = [label for pool in pools for label in pool.labels or ()]
        licences = {str(pool.space.provenance.get("licence")) for pool in pools}
        parts = [{"digest": pool.digest, **pool.space.provenance} for pool in pools]
        described: dict[str, Any] = {"entries": "sentences", "pools": parts}
        if licences != {"None"} and len(licences) == 1:
            described["licence"] = licences.pop()
        space = EmbeddingSpace.from_vectors(list(first), points, provenance=described)
        return replace(
            pools[0],
            space=space.build_hierarchy(method, progress),
            labels=tuple(labels[row] for row in rows) if labels else None,
        )

    def with_label(self, label: str | int) -> "SentencePool":
        """Return the pool of the sentences of one label, with the tree that this one induces.

        Raises:
            InvalidValueError: If the pool has no labels, or no such one.
        """
        label = as_label(label)
        rows = rows_of_label(self.labels, label)
        return replace(self, space=self.space._among(rows), labels=(label,) * len(rows))

    def without(self, words: Iterable[str]) -> "SentencePool":
        """Return this pool less the sentences that hold one of some words, in any letter case.

        The tree is the one that this one induces. Texts with such a word still find their entry by
        it, which is another one. A word that no sentence holds makes no difference.

        Args:
            words: A public list; each form of a word is one entry of it.

        Raises:
            InvalidValueError: If no sentence is left.
            InvalidTypeError: If it is a single string.
        """
        unwanted, reader = folded(words), RowReader(getattr(self.encoder, "segmenter", "words"))
        held = (map(str.casefold, reader.read_text(text).words) for text in self.sentences)
        kept = [unwanted.isdisjoint(word.removesuffix("'s") for word in row) for row in held]
        part = self.space._less(kept)
        if part is self.space:
            return self
        labels = self.labels and tuple(compress(self.labels, kept))
        return replace(self, space=part, labels=labels)._covering(None)

    @classmethod
    def from_dataset(
        cls,
        dataset: Iterable[Mapping[str, Any]],
        column: str = "text",
        label_column: str | None = None,
        **arguments: Any,
    ) -> "SentencePool":
        """Make a pool of the sentences of a column of a public `Dataset`.

        Args:
            dataset: Rows; a stream will do.
            column: A column of texts, each of which is split into its sentences.
            label_column: A column of public labels, which the sentences of a text have.
            **arguments: As for `from_sentences`.

        Raises:
            InvalidValueError: If there is no such column.
            InvalidTypeError: If a cell is no text and not missing.
            MissingExtraError: If sentencex is not installed.
        """
        columns = (column,) if label_column is None else (column, label_column)
        pairs = (
            (sentence, label)
            for text, *label in cells_of(dataset, columns)
            for sentence in split_sentences(text or "")
        )
        if label_column is None:
            return cls.from_sentences((sentence for sentence, _ in pairs), **arguments)
        # All of them, since their labels are known only then.
        found = list(pairs)
        return cls.from_sentences(
            [sentence for sentence, _ in found],
            labels=[label for _, (label,) in found],
            **arguments,
        )

    @classmethod
    def from_file(cls, path: str | Path, **arguments: Any) -> "SentencePool":
        """Make a pool of the sentences of a public text file.

        Args:
            path: A file in UTF-8, plain or compressed by gzip, each line of which is a sentence or
                a paragraph, which is split into its sentences.
            **arguments: As for `from_sentences`.

        Raises:
            InvalidValueError: If it cannot be read, is truncated or in another encoding; names the
                line.
            MissingExtraError: If sentencex is not installed.
        """
        sentences = (sentence for line in lines_of(path) for sentence in split_sentences(line))
        return cls.from_sentences(sentences, **arguments)

    def __len__(self) -> int:
        return len(self.space)

    def __repr__(self) -> str:
        return f"SentencePool({len(self)} sentences, {self.encoder.kind!r})"

    @property
    def sentences(self) -> tuple[str, ...]:
        """The entries, in row order."""
        return self.space.words

    def points(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return (m, n) float32 points of length 1; zeros for a text the encoder has nothing for.

        Args:
            texts: Any texts.
        """
        return projected(self.encoder.encode(texts), self.offset, self.projection)

    def look_up(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Return (m,) int64 rows of the nearest entries; −1, the unknown entry, for no vector.

        The nearest is found exactly, in float64; of entries at one place the first is taken.

        Args:
            texts: Any texts.
        """
        return self.nearest(texts)[0]

    def nearest(self, texts: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return what `look_up` does, and (m,) cosines to the entries; 0 for the unknown one.

        Args:
            texts: Any texts.
        """
        points = self.points(texts)
        rows, cosines = np.full(len(points), -1, dtype=np.int64), np.zeros(len(points))
        known = np.any(points != 0, axis=1)
        if known.any():
            rows[known] = self._search.nearest(points[known])
            cosines[known] = np.sum(points[known] * self.space.vectors[rows[known]], axis=1)
        return rows, cosines

    def coverage(self, texts: Sequence[str]) -> dict[str, float]:
        """Measure how near public texts are to the pool; for private ones the result is private.

        Args:
            texts: Texts of the kind that will be released, none of them from the pool.

        Returns:
            "unknown", the share of texts that the encoder has nothing for, and the quartiles
            "25%", "50%", "75%" of the cosine between a text and its entry.
        """
        rows, cosines = self.nearest(texts)
        known = rows >= 0
        found = {"unknown": float(1 - known.mean()) if len(rows) else 0.0}
        found |= quartiles(cosines[known])
        return found

    def _covering(self, texts: Sequence[str] | None) -> "SentencePool":
        """Return this pool with a measurement of `coverage` in its provenance."""
        if texts is None:
            cosines = held_back_cosines(self.space.vectors)
            found = {"of": "its own sentences, each held back in turn", "texts": len(cosines)}
            found |= quartiles(cosines)
        else:
            found = {"of": "public texts held back", "texts": len(texts), **self.coverage(texts)}
        provenance = self.space.provenance | {"coverage": found}
        return replace(self, space=self.space._with(provenance=provenance))

    @lazy_property
    def _search(self) -> ExactSearch:
        return ExactSearch(np.ascontiguousarray(self.space.vectors, dtype=np.float32))

    @lazy_property
    def _arrays(self) -> dict[str, NDArray[Any]]:
        arrays = {"offset": self.offset, "projection": self.projection, **self.encoder.tensors}
        return arrays | label_arrays(self.labels)

    @property
    def _mapping(self) -> tuple[str, ...]:
        """Digests of all that decides the point of a text."""
        bare = replace(self, labels=None)
        return self.encoder.kind, self.encoder.digest, tensors.sha256(bare._arrays)

    @lazy_property
    def digest(self) -> str:
        """SHA-256 in hexadecimal of the entries, and of all that decides which one a text finds."""
        bound = [self.space.digest, self.encoder.kind, self.encoder.digest]
        return hashlib.sha256(
            json.dumps([*bound, tensors.sha256(self._arrays)]).encode()
        ).hexdigest()

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
    ) -> "SentencePool":
        """Load a pool that ships with the package, from a folder, or from the Hub.

        Its encoder is loaded from where the pool says, and must not have changed.

        Args:
            name_or_path: Name of a built-in pool such as "wordnet-sentences", a local folder, or a
                repository "namespace/name".
            revision: Branch, tag or commit on the Hub; the main branch by default.
            cache_dir: Cache of the Hub's files; ``$HF_HUB_CACHE`` by default.
            token: A token for the Hub, True for the stored one, False for none.
            local_files_only: Use what the cache has, and no network.
            force_download: Fetch again what the cache has.

        Raises:
            InvalidValueError: If there is no such pool.
            HubError: If the Hub refuses it or cannot be reached.
            ArtifactError: If a file is missing, altered or of a newer format, or the encoder has
                changed; names it.
        """
        access = HubOptions(cache_dir, token, local_files_only, force_download)
        return cls.read(name_or_path, revision, access)

    @classmethod
    def read(
        cls, name_or_path: str | Path, revision: str | None, access: HubOptions
    ) -> "SentencePool":
        """Load a pool; see `from_pretrained`."""
        files = (*space_artifact.READ, ENCODER, ARRAYS)
        source = resolve(name_or_path, files, revision, access, what="a pool of sentences")
        path = source.folder / ENCODER
        if source.commit is None and not is_pool(name_or_path):
            raise ArtifactError(
                f"{name_or_path}: expected a pool of sentences, got a space of words; make a pool "
                "of it with SentencePool.from_sentences, or pass it to DxPrivatizer"
            )
        with source.errors_named():
            entries = read_record(path, "expected the folder of a pool of sentences")
            require_fields(
                path, entries, {"kind": str, "encoder": dict, "sha256": str, "space": str}
            )
            arrays = tensors.read(source.folder / ARRAYS, entries["sha256"])
        space = space_artifact.load(EmbeddingSpace, source, None, False)
        if space.digest != entries["space"]:
            raise ArtifactError(f"{path} was made for other sentences than those beside it")
        if entries["kind"] not in ENCODERS:
            raise ArtifactError(
                f"{path}: there is no encoder {entries['kind']!r}; encoders are "
                f"{', '.join(ENCODERS)} (a newer version may have more: "
                "run: pip install --upgrade hf-dxprivacy)"
            )
        offset, projection = (arrays.pop(name, np.empty(0)) for name in ("offset", "projection"))
        if projection.shape != (len(offset), space.dim):
            raise ArtifactError(f"{source.folder / ARRAYS}: this is no projection for {path}")
        labels = stored_labels(arrays, len(space), source.folder / ARRAYS)
        try:
            encoder = ENCODERS[entries["kind"]].restored(entries["encoder"], arrays, source.options)
        except (KeyError, TypeError) as error:
            raise ArtifactError(f"{path}: the reference to the encoder is damaged") from error
        return cls(space, encoder, offset, projection, labels)

    def __reduce__(self) -> tuple[Any, ...]:
        # The space travels by its digest; so does that of a word encoder.
        parts = (self.space, self.encoder, self.offset, self.projection)
        # As numbers: equal strings pickle to other bytes if they are one object in this process.
        return _unpickled, (*parts, label_arrays(self.labels))

    def _save(self, folder: Path) -> None:
        reference = self.encoder.reference
        self.space._save(folder)
        atomic_write(folder / ARRAYS, tensors.pieces(self._arrays))
        write_record(
            folder / ENCODER,
            {
                "kind": self.encoder.kind,
                "encoder": reference,
                "sha256": tensors.sha256(self._arrays),
                "space": self.space.digest,
            },
        )

    def _write_card(self, folder: Path, *, license: str | None, name: str) -> None:
        cards.write_space_card(
            folder,
            self.digest,
            commit=self.space.commit,
            license=license,
            name=name,
            encoder={
                "kind": self.encoder.kind,
                "labels": sorted(Counter(self.labels or ()).items()),
                **self.encoder.reference,
            },
            measured=self.space.digest,
        )

    def _check_publishable(self, license: str | None) -> None:
        cards.require_licence(license, self.space.provenance)
        reference = self.encoder.reference
        if reference["commit"] is None and not is_builtin(reference["name"]):
            raise InvalidValueError(
                f"the encoder is in the local folder {reference['name']!r}, where no other machine "
                "finds it; push it, load it from the Hub, and make the pool with that"
            )


def _unpickled(
    space: EmbeddingSpace,
    encoder: SentenceEncoder,
    offset: NDArray[np.float32],
    projection: NDArray[np.float32],
    labels: dict[str, NDArray[Any]],
) -> SentencePool:
    stored = stored_labels(labels, len(space), Path("labels"))
    return SentencePool(space, encoder, offset, projection, stored)


def _told(left_out: Mapping[str, int]) -> dict[str, int]:
    """Return the counts above zero, having logged them."""
    counts = {reason: count for reason, count in left_out.items() if count}
    if counts:
        logger.info("left out of the pool: %s", counts)
    if counts.get("personal data"):
        logger.warning(
            "left %d sentences with an e-mail address, handle or long number out of the pool; "
            "names and addresses of people are not recognised, so look for them before you publish",
            counts["personal data"],
        )
    return counts
