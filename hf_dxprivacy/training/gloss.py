"""Euclidean word vectors from the glosses and relations of WordNet.

Words that occur near each other in glosses (definitions and example sentences), that define each
other, or that WordNet links, are counted; the positive pointwise mutual information of the counts
is factorised; every row is scaled to the same length. Lengths would otherwise follow frequency,
and a few short vectors of rare words would be the neighbours of everything ("hubs"), which a
mechanism that works with Euclidean distances turns into the same few output words.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy import _validate
from hf_dxprivacy.errors import InvalidValueError
from hf_dxprivacy.spaces.space import EmbeddingSpace
from hf_dxprivacy.training import cooccurrence
from hf_dxprivacy.training.morphology import Morphology, read_morphology
from hf_dxprivacy.training.wordnet import (
    DEFAULT_PATH,
    LETTERS,
    PARTS_OF_SPEECH,
    Synset,
    is_word,
    read_senses,
    read_synsets,
    read_tag_counts,
    words_of,
)

# Hypernym, derivation, similar, also see, verb group, participle, pertainym. Hyponyms are left out:
# the sum over the many kinds of a thing says little about the thing.
RELATED = frozenset({"@", "+", "&", "^", "$", "<", "\\"})


@dataclass(frozen=True)
class GlossRecipe:
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
        _validate.at_least(2, size=self.size)
        _validate.at_least(1, dim=self.dim, window=self.window)
        _validate.positive(context_exponent=self.context_exponent)


def train_gloss(
    path: str | Path = DEFAULT_PATH, recipe: GlossRecipe | None = None
) -> EmbeddingSpace:
    """Train Euclidean vectors for the words of WordNet's texts.

    Args:
        path: Folder of the WordNet database files.
        recipe: Settings; the default ones take about a minute.

    Returns:
        A space of float32 vectors that float16 holds without loss, most frequent word first, with
        a median distance of 1 to the nearest neighbour.

    Raises:
        ArtifactError: If a database file is missing or malformed.
        InvalidValueError: If the database has too few words for the recipe.
    """
    recipe = recipe or GlossRecipe()
    synsets, morphology = read_synsets(path), read_morphology(path)
    words = frequent_words(synsets, morphology, read_tag_counts(path), recipe.size)
    if len(words) <= recipe.dim:
        raise InvalidValueError(
            f"expected more than dim={recipe.dim} words, found {len(words)}; lower dim"
        )
    information = _information(words, synsets, morphology, _sense_ranks(path), recipe)
    left, values = cooccurrence.factors(information, recipe.dim, recipe.seed)
    vectors = _equal_lengths(words, left * values**recipe.singular_exponent)
    return _at_unit_distance(words, vectors, {"recipe": asdict(recipe)})


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
    ranks: dict[tuple[str, tuple[str, int]], int],
    recipe: GlossRecipe,
) -> Any:
    index = {word: row for row, word in enumerate(words)}
    size = len(words)
    ids, texts = _tokens(synsets, index)
    members = {synset.key: _members(synset, index, ranks) for synset in synsets}
    relations = cooccurrence.weighted_links(_relations(synsets, members), size)
    definitions = cooccurrence.weighted_links(_definitions(synsets, members, index), size)
    counts = cooccurrence.window_counts(ids, texts, size, recipe.window)
    counts = counts + recipe.definition_weight * (definitions + definitions.T)
    counts = counts + recipe.relation_weight * relations
    information = cooccurrence.positive_information(counts, recipe.context_exponent)
    inflections = cooccurrence.weighted_links(_inflections(index, morphology), size)
    return (
        information
        + recipe.inflection_share * (cooccurrence.averaging(inflections) @ information)
        + recipe.relation_share * (cooccurrence.averaging(relations) @ information)
    )


def _tokens(
    synsets: Sequence[Synset], index: dict[str, int]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    texts = [words_of(" ".join((*synset.lemmas, synset.gloss))) for synset in synsets]
    ids = [index.get(word, -1) for text in texts for word in text]
    numbers = np.repeat(np.arange(len(texts)), [len(text) for text in texts])
    return np.array(ids, dtype=np.int64), numbers.astype(np.int64)


def _members(
    synset: Synset, index: dict[str, int], ranks: dict[tuple[str, tuple[str, int]], int]
) -> list[tuple[int, float]]:
    """Return the rows of a synset's words with weights that fall with the rank of the sense."""
    lemmas = [lemma.lower() for lemma in synset.lemmas if is_word(lemma)]
    return [
        (index[lemma], 1.0 / ranks.get((lemma, synset.key), 10))
        for lemma in lemmas
        if lemma in index
    ]


def _definitions(
    synsets: Sequence[Synset],
    members: dict[tuple[str, int], list[tuple[int, float]]],
    index: dict[str, int],
) -> Iterator[tuple[int, int, float]]:
    for synset in synsets:
        gloss = [index[word] for word in words_of(synset.gloss) if word in index]
        for row, _ in members[synset.key]:
            yield from ((row, column, 1.0) for column in gloss)


def _relations(
    synsets: Sequence[Synset], members: dict[tuple[str, int], list[tuple[int, float]]]
) -> Iterator[tuple[int, int, float]]:
    for synset in synsets:
        related = [link.target for link in synset.pointers if link.symbol in RELATED]
        for target in (synset.key, *related):
            for row, weight in members[synset.key]:
                yield from ((row, column, weight * other) for column, other in members[target])


def _inflections(index: dict[str, int], morphology: Morphology) -> Iterator[tuple[int, int, float]]:
    for word, row in index.items():
        for base in morphology.bases(word):
            if base in index:
                yield row, index[base], 1.0
                yield index[base], row, 1.0


def _sense_ranks(path: str | Path) -> dict[tuple[str, tuple[str, int]], int]:
    return {
        (lemma, (LETTERS[part], offset)): rank
        for part in PARTS_OF_SPEECH
        for lemma, offsets in read_senses(path, part).items()
        for rank, offset in enumerate(offsets, start=1)
    }


def _equal_lengths(words: list[str], vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    if lengths.min() <= 1e-9 * lengths.max():
        word = words[int(np.argmin(lengths))]
        raise InvalidValueError(f"the word {word!r} stands near no other word; lower size")
    equal: NDArray[np.float64] = vectors / lengths
    return equal


def _at_unit_distance(
    words: list[str], vectors: NDArray[np.float64], provenance: dict[str, Any]
) -> EmbeddingSpace:
    nearest = EmbeddingSpace.from_vectors(words, vectors).neighbour_distances((1,))[1]
    stored = (vectors / nearest).astype(np.float16)
    return EmbeddingSpace.from_vectors(words, stored, provenance=provenance)
