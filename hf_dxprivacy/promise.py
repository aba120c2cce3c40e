"""What a privatizer of texts promises."""

import json
import math
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy.budget import PrivacyBudget
from hf_dxprivacy.guarantees import PrivacyGuarantee, text_disclosures
from hf_dxprivacy.mechanisms import Mechanism
from hf_dxprivacy.memo import Memo, one_of_each
from hf_dxprivacy.plan import Case, OutOfVocabulary, Plan
from hf_dxprivacy.spaces import EmbeddingSpace
from hf_dxprivacy.stored import StoredPrivatizer
from hf_dxprivacy.text import RowReader


class PromisingPrivatizer(StoredPrivatizer):
    """The part of a privatizer that says what holds for its releases."""

    mechanism: Mechanism
    stopwords: frozenset[str]
    oov: OutOfVocabulary
    case: Case
    seed: int | None
    memo: Memo | None
    budget: PrivacyBudget | None

    @property
    def space(self) -> EmbeddingSpace:
        """The embedding space."""
        return self.mechanism.space

    @property
    def epsilon(self) -> float:
        """ε as it was asked for; `guarantee` says what is certified."""
        return self.mechanism.epsilon

    @cached_property
    def guarantee(self) -> PrivacyGuarantee:
        """What holds for each word that goes through this privatizer, and what it rests on."""
        bare = self.mechanism.guarantee
        return replace(
            bare,
            ldp_epsilon=bare.ldp_epsilon if self._hides_every_word else math.inf,
            assumptions=(
                *bare.assumptions,
                *self._disclosures,
            ),
            log_ratio_bound=self._bound,
        )

    @property
    def _not_stored(self) -> tuple[str, ...]:
        kept = ("memoize and its key", self.memo), ("the budget", self.budget)
        return tuple(name for name, value in kept if value is not None)

    @property
    def _disclosures(self) -> tuple[str, ...]:
        memoize = None if self.memo is None else self.memo.unit
        seeded = self.seed is not None
        return text_disclosures(self.oov, self.case, len(self.stopwords), seeded, memoize)

    @property
    def _hides_every_word(self) -> bool:
        """Whether any word might have been any other, as far as a release shows for certain."""
        covered = self.oov == "centroid" and self.case == "lower" and not self.stopwords
        # A word that is equal to another one of its text can be told from one that is not.
        return covered and (self.memo is None or self.memo.unit == "row")

    @cached_property
    def _law(self) -> str:
        """All that decides by which law a word is drawn."""
        return json.dumps([self.space.digest, self.mechanism.law])

    @cached_property
    def _settings(self) -> str:
        """All that decides what is drawn, for which word and by which law."""
        kept = sorted(self.stopwords)
        return json.dumps([self.space.digest, self.mechanism.law, self.oov, kept])

    @cached_property
    def _reader(self) -> RowReader:
        return RowReader()

    def _bound(self, text_a: Any, text_b: Any) -> float:
        """Bound the log-ratio of two texts; see `PrivacyGuarantee.bound`."""
        visible_a, ids_a = self._visible(text_a)
        visible_b, ids_b = self._visible(text_b)
        if visible_a != visible_b:
            return math.inf
        if self.memo is None or self.memo.unit == "row":
            return self.mechanism.id_bound(ids_a, ids_b)
        distinct = one_of_each(ids_a, ids_b)
        return math.inf if distinct is None else self.mechanism.id_bound(*distinct)

    def _visible(self, text: Any) -> tuple[list[Any], NDArray[np.int64]]:
        """Return what a release of a text shows for certain, and the inputs of the words drawn."""
        row = self._reader.read_text(text)
        plan = Plan.of(row.words, self.space, self.stopwords, self.oov)
        return plan.visible(row, self.oov, self.case), plan.ids[plan.drawn]
