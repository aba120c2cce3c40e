"""Euclidean word vectors from the glosses and relations of WordNet.

Words that occur near each other in glosses (definitions and example sentences), that define each
other, or that WordNet links, are counted; the positive pointwise mutual information of the counts
is factorised; every row is scaled to the same length. Lengths would otherwise follow frequency,
and a few short vectors of rare words would be the neighbours of everything ("hubs"), which a
mechanism that works with Euclidean distances turns into the same few output words.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy._runtime import require
from hf_dxprivacy.errors import InvalidValueError, require_at_least, require_positive
from hf_dxprivacy.spaces.space import EmbeddingSpace
from hf_dxprivacy.training.wordnet import (
    DEFAULT_PATH,
    LETTERS,
    PARTS_OF_SPEECH,
    Morphology,
    Synset,
    is_word,
    read_morphology,
    read_senses,
    read_synsets,
    read_tag_counts,
    words_of,
)

# Hypernym, derivation, similar, also see, verb group, participle, pertainym. Hyponyms are left out:
# the sum over the many kinds of a thing says little about the thing.
RELATED = frozenset({"@", "+", "&", "^", "$", "<", "\\"})

# Columns drawn beyond the requested rank, and passes over the matrix, of the randomized SVD.
OVERSAMPLING = 30
PASSES = 4


@dataclass(frozen=True)
class GlossConfig:
    """Settings of `train_gloss`.

    Attributes:
        size: Number of words, the most frequent ones of the database.
        dim: Number of dimensions n.
        window: Largest distance, in words, of words that are counted as near each other.
        context_exponent: Smoothing of the context distribution.
        definition_weight: Count for a word and each word of its own gloss, at any distance.
        relation_weight: Count for two words that are synonyms or related, as first senses.
        inflection_share: How much of its base forms' information a word is given, and vice versa.
        relation_share: How much of its related words' average information a word is given.
        singular_exponent: Power of the singular values.
        seed: Of the randomized factorisation.
    """

    size: int = 25_000
    dim: int = 100
    window: int = 10
    context_exponent: float = 0.75
    definition_weight: float = 0.3
    relation_weight: float = 2.0
    inflection_share: float = 0.2
    relation_share: float = 0.2
    singular_exponent: float = 0.5
    seed: int = 0

    def __post_init__(self) -> None:
        require_at_least(2, size=self.size)
        require_at_least(1, dim=self.dim, window=self.window)
        require_positive(context_exponent=self.context_exponent)


def train_gloss(
    path: str | Path = DEFAULT_PATH, config: GlossConfig | None = None
) -> EmbeddingSpace:
    """Train Euclidean vectors for the words of WordNet's texts.

    Args:
        path: Folder of the WordNet database files.
        config: Settings; the default ones take about a minute.

    Returns:
        A space of float32 vectors that float16 holds without loss, most frequent word first, with
        a median distance of 1 to the nearest neighbour.

    Raises:
        ArtifactError: If a database file is missing or malformed.
        InvalidValueError: If the database has too few words for `config.dim`.
    """
    config = config or GlossConfig()
    synsets, morphology = read_synsets(path), read_morphology(path)
    words = frequent_words(synsets, morphology, read_tag_counts(path), config.size)
    if len(words) <= config.dim:
        raise InvalidValueError(
            f"expected more than dim={config.dim} words, found {len(words)}; lower dim"
        )
    information = _information(words, synsets, morphology, path, config)
    left, values = factors(information, config.dim, config.seed)
    vectors = left * values**config.singular_exponent
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    if lengths.min() <= 1e-9 * lengths.max():
        word = words[int(np.argmin(lengths))]
        raise InvalidValueError(f"the word {word!r} stands near no other word; lower size")
    vectors = vectors / lengths
    nearest = EmbeddingSpace.from_vectors(words, vectors).neighbour_distances((1,))[1]
    stored = (vectors / nearest).astype(np.float16)
    return EmbeddingSpace.from_vectors(words, stored, provenance={"recipe": asdict(config)})


def frequent_words(
    synsets: Sequence[Synset], morphology: Morphology, tags: Counter[str], size: int
) -> list[str]:
    """Return the most frequent words of the database, most frequent first.

    A word counts where it stands in a gloss, less where it is part of a lemma, and where a text
    tagged by WordNet's authors used it; an inflected form that occurs at all counts a tenth of its
    base form on top, since the glosses are poor in forms that other texts use.
    """
    counts: Counter[str] = Counter()
    for synset in synsets:
        for word in words_of(synset.gloss):
            counts[word] += 10
        for lemma in synset.lemmas:
            for word in words_of(lemma):
                counts[word] += 3
    counts.update({word: 10 * tags[word] for word in counts})
    score = dict(counts)
    for word in counts:
        bases = [] if word.endswith("'s") else morphology.bases(word)
        score[word] += max((counts[base] // 10 for base in bases), default=0)
    return sorted(score, key=lambda word: (-score[word], word))[:size]


def _information(
    words: list[str],
    synsets: Sequence[Synset],
    morphology: Morphology,
    path: str | Path,
    config: GlossConfig,
) -> Any:
    """Return the (V, V) mutual information of words with those near, defining or linked to them."""
    index, size = {word: row for row, word in enumerate(words)}, len(words)
    texts = [words_of(" ".join((*synset.lemmas, synset.gloss))) for synset in synsets]
    ids = np.array([index.get(word, -1) for text in texts for word in text], dtype=np.int64)
    numbers = np.repeat(np.arange(len(texts)), [len(text) for text in texts])
    members = _members(synsets, index, path)
    relations = weighted_links(
        (
            (row, column, weight * other)
            for synset in synsets
            for target in (synset.key, *synset.linked(RELATED))
            for row, weight in members[synset.key]
            for column, other in members[target]
        ),
        size,
    )
    definitions = weighted_links(
        (
            (row, index[word], 1.0)
            for synset in synsets
            for row, _ in members[synset.key]
            for word in words_of(synset.gloss)
            if word in index
        ),
        size,
    )
    counts = window_counts(ids, numbers, size, config.window)
    counts = counts + config.definition_weight * (definitions + definitions.T)
    counts = counts + config.relation_weight * relations
    information = positive_information(counts, config.context_exponent)
    inflections = weighted_links(
        (
            (row, index[base], 1.0)
            for word, row in index.items()
            for base in morphology.bases(word)
            if base in index
        ),
        size,
    )
    return (
        information
        + config.inflection_share * (averaging(inflections + inflections.T) @ information)
        + config.relation_share * (averaging(relations) @ information)
    )


def _members(
    synsets: Sequence[Synset], index: dict[str, int], path: str | Path
) -> dict[tuple[str, int], list[tuple[int, float]]]:
    """Return the rows of each synset's words with weights that fall with the rank of the sense."""
    ranks = {
        (lemma, (LETTERS[part], offset)): rank
        for part in PARTS_OF_SPEECH
        for lemma, offsets in read_senses(path, part).items()
        for rank, offset in enumerate(offsets, start=1)
    }
    return {
        synset.key: [
            (index[lemma], 1.0 / ranks.get((lemma, synset.key), 10))
            for lemma in map(str.lower, synset.lemmas)
            if is_word(lemma) and lemma in index
        ]
        for synset in synsets
    }


def window_counts(ids: NDArray[np.int64], texts: NDArray[np.int64], size: int, window: int) -> Any:
    """Count pairs of words at most `window` tokens apart in a text, by 1/distance; symmetric.

    Of all tokens in order `ids`, (m,), are the words, or −1 for none, and `texts`, (m,), the texts.
    """
    sparse = require("scipy.sparse", "train")
    counts = sparse.csr_matrix((size, size))
    for distance in range(1, window + 1):
        left, right = ids[:-distance], ids[distance:]
        pairs = (texts[:-distance] == texts[distance:]) & (left >= 0) & (right >= 0)
        weights = np.full(int(pairs.sum()), 1.0 / distance)
        counts += sparse.csr_matrix((weights, (left[pairs], right[pairs])), shape=(size, size))
    return counts + counts.T


def weighted_links(links: Iterable[tuple[int, int, float]], size: int) -> Any:
    """Sum weights of (row, column) pairs into a matrix; pairs on the diagonal are left out."""
    kept = [link for link in links if link[0] != link[1]]
    rows, columns, weights = zip(*kept, strict=True) if kept else ((), (), ())
    sparse = require("scipy.sparse", "train")
    return sparse.csr_matrix((weights, (rows, columns)), shape=(size, size), dtype=np.float64)


def averaging(links: Any) -> Any:
    """Scale every row of a matrix of links to sum 1; rows without links stay zero."""
    sums = np.asarray(links.sum(axis=1)).ravel()
    sparse = require("scipy.sparse", "train")
    return sparse.diags(1.0 / np.where(sums > 0, sums, 1.0)) @ links


def positive_information(counts: Any, context_exponent: float) -> Any:
    """Return positive pointwise mutual information with smoothed contexts.

    Levy, Goldberg & Dagan, "Improving distributional similarity with lessons learned from word
    embeddings" (TACL 2015): log(p(w, c) / (p(w) q(c))) where q(c) ∝ p(c)**context_exponent.
    """
    entries = counts.tocoo()
    words = np.asarray(counts.sum(axis=1)).ravel()
    contexts = np.asarray(counts.sum(axis=0)).ravel() ** context_exponent
    contexts /= contexts.sum()
    information = np.log(entries.data / (words[entries.row] * contexts[entries.col]))
    entries.data = np.where(information > 0, information, 0.0)
    found = entries.tocsr()
    found.eliminate_zeros()
    return found


def factors(matrix: Any, dim: int, seed: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the leading left singular vectors, (V, dim), and singular values, (dim,).

    Randomized subspace iteration (Halko, Martinsson & Tropp, SIAM Review 2011, algorithm 4.4);
    the same seed gives the same factors up to the rounding of the linear algebra library.
    """
    matrix = matrix.astype(np.float32)
    columns = min(dim + OVERSAMPLING, *matrix.shape)
    start = np.random.default_rng(seed).standard_normal((matrix.shape[1], columns))
    basis = np.linalg.qr(matrix @ start.astype(np.float32)).Q
    for _ in range(PASSES):
        basis = np.linalg.qr(matrix @ np.linalg.qr(matrix.T @ basis).Q).Q
    left, values, _ = np.linalg.svd((matrix.T @ basis).T.astype(np.float64), full_matrices=False)
    return (basis @ left)[:, :dim], values[:dim]
