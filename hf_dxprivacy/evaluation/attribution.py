"""Author attribution by character 4-grams (Koppel, Schler, Argamon, 2011)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy._runtime import require
from hf_dxprivacy.errors import (
    InvalidValueError,
    require_at_least,
    require_positive,
    require_within,
)
from hf_dxprivacy.evaluation.shadow import require_aligned
from hf_dxprivacy.randomness import process_generator
from hf_dxprivacy.results import EXTRA, Result, Results, share_interval

GRAM = 4
# Between authors who are equally near, as all are to a text without any known feature, chance
# decides.
TIE = 1e-9


@dataclass(frozen=True, eq=False)
class Attribution:
    """Attribution of m texts to authors.

    Attributes:
        candidates: The a known authors.
        wins: (m, a) float64, the share of the feature subsets in which each was the nearest.
        threshold: σ*, the share of wins from which on the attacker names an author.
        results: "accuracy" in the closed set, where the nearest author is always named; and in the
            open set "named", the share of texts for which the best share of wins reaches σ*,
            "precision", the share of the named ones that is right, and "recall", the share of the
            texts by known authors that is named rightly.
    """

    candidates: tuple[str, ...]
    wins: NDArray[np.float64]
    threshold: float
    results: Results

    @property
    def nearest(self) -> list[str]:
        """The nearest author of each text."""
        return [self.candidates[best] for best in self.wins.argmax(axis=1).tolist()]

    @property
    def named(self) -> list[str | None]:
        """The named author of each text, None where the attacker abstains."""
        sure = (self.wins.max(axis=1) >= self.threshold).tolist()
        return [name if said else None for name, said in zip(self.nearest, sure, strict=True)]


def author_attribution(
    known: Sequence[str],
    known_authors: Sequence[str],
    texts: Sequence[str],
    authors: Sequence[str],
    *,
    subsets: int = 100,
    share: float = 0.4,
    threshold: float = 0.9,
    rng: np.random.Generator | None = None,
) -> Attribution:
    """Attribute texts to the authors of other texts.

    All known texts of an author make one vector of character 4-grams (within words, in lower case,
    weighted by tf-idf over the known texts). For each of many random subsets of the features, the
    author with the largest cosine wins; the share of wins is the score. The attacker of Koppel et
    al. has texts as they were written; give privatized ones as `known` for one who has privatized
    them himself to look alike.

    Args:
        known: Texts whose authors the attacker knows.
        known_authors: As many names.
        texts: Texts to attribute, such as privatized ones.
        authors: Who really wrote them. One who is not known counts in the open set only, where
            abstaining is right.
        subsets: k, how many subsets.
        share: Share of the features in each, in (0, 1].
        threshold: σ* in [0, 1].
        rng: Source of the subsets; this process's own by default.

    Raises:
        InvalidValueError: If there are no texts, no author is known, or lengths differ.
        MissingExtraError: If scikit-learn is not installed.
    """
    require_at_least(1, known=len(known), texts=len(texts))
    require_aligned(known=len(known), known_authors=len(known_authors))
    require_aligned(texts=len(texts), authors=len(authors))
    require_at_least(1, subsets=subsets)
    require_within(0.0, 1.0, threshold=threshold, share=share)
    require_positive(share=share)
    candidates = tuple(sorted(set(known_authors)))
    places = {name: place for place, name in enumerate(candidates)}
    vectorizer = require("sklearn.feature_extraction.text", EXTRA).TfidfVectorizer(
        analyzer=_grams, norm=None, dtype=np.float64
    )
    try:
        vectors = vectorizer.fit_transform(known)
    except ValueError as error:
        raise InvalidValueError(
            "expected known texts with words in them, found not one; is it the right column?"
        ) from error
    owned = [places[name] for name in known_authors], np.arange(len(known))
    owners = require("scipy.sparse", EXTRA).csr_matrix((np.ones(len(known)), owned))
    # (a, f) profiles of the authors, and sparse (m, f) vectors of the texts.
    profiles, vectors = (owners @ vectors).toarray(), vectorizer.transform(texts)
    wins = np.zeros((len(texts), len(candidates)))
    kept = max(1, round(share * profiles.shape[1]))
    rng = rng or process_generator()
    for _ in range(subsets):
        subset = np.sort(rng.choice(profiles.shape[1], kept, replace=False))
        part = np.zeros_like(profiles)
        part[:, subset] = profiles[:, subset]
        norms = np.linalg.norm(part, axis=1, keepdims=True)
        # But for the norms of the texts, which change no order.
        cosines = vectors @ (part / np.where(norms > 0, norms, 1.0)).T
        best = (cosines + TIE * rng.random(cosines.shape)).argmax(axis=1)
        wins[np.arange(len(texts)), best] += 1.0 / subsets
    # A sum of many shares may miss the threshold by its rounding.
    wins = np.round(wins, 9)
    truth = np.array([places.get(name, -1) for name in authors])
    return Attribution(candidates, wins, threshold, _scores(wins, truth, threshold))


def _grams(text: str) -> list[str]:
    """Return the 4-grams within words, and words that are shorter."""
    return [
        word[start : start + GRAM]
        for word in text.lower().split()
        for start in range(max(1, len(word) - GRAM + 1))
    ]


def _scores(wins: NDArray[np.float64], truth: NDArray[np.int64], threshold: float) -> Results:
    right, inside = wins.argmax(axis=1) == truth, truth >= 0
    named = wins.max(axis=1) >= threshold
    shares = {
        "accuracy": (right[inside].sum(), inside.sum()),
        "named": (named.sum(), len(truth)),
        "precision": ((right & named).sum(), named.sum()),
        "recall": ((right & named)[inside].sum(), inside.sum()),
    }
    return Results(
        Result.of("attribution", metric, share_interval(int(hits), int(trials)), int(trials))
        for metric, (hits, trials) in shares.items()
        if trials
    )
