"""What is promised to the records of the corpus that a selector was fitted on."""

from dataclasses import dataclass
from typing import Any

from hf_dxprivacy.guarantees import upward

_EXACT = (
    "HOLE: the counts of the n-grams are exact (epsilon=None). Nothing is promised to the corpus "
    "they come from, which has to be public.",
)
_RESTS_ON = (
    "The alphabet of words is public and was not made from that corpus; so are n_max, l_max and "
    "the smallest count.",
    "The records of one person, and several releases from the same corpus, add up.",
    "Arithmetic is treated as exact, though noise is a floating-point number before it is rounded "
    "to a whole one.",
)


@dataclass(frozen=True)
class CorpusGuarantee:
    """Differential privacy of released n-grams, for the corpus they were counted in.

    For all corpora D, D' that differ by one record, and every set S of releases,
    Pr[M(D) ∈ S] ≤ exp(ε_g)·Pr[M(D') ∈ S].

    Attributes:
        epsilon: ε_g; None if the counts are exact and nothing holds.
        unit: What is added or removed.
    """

    epsilon: float | None
    unit: str = "record"

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the statement rests on, one sentence each."""
        return _EXACT if self.epsilon is None else _RESTS_ON

    def to_dict(self) -> dict[str, Any]:
        """Return the statement as JSON-ready values."""
        return {
            "epsilon": self.epsilon,
            "unit": self.unit,
            "assumptions": list(self.assumptions),
        }

    def __str__(self) -> str:
        head = (
            f"no guarantee per {self.unit} of the corpus"
            if self.epsilon is None
            else f"ε_g-differentially private per {self.unit} of the corpus: "
            f"ε_g = {upward(self.epsilon, 6)}"
        )
        return "\n".join([head, *(f"  - {sentence}" for sentence in self.assumptions)])
