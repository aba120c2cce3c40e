"""`GuaranteeCheck`: what the verification of a guarantee found."""

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal

from hf_dxprivacy._notebook import ReprHTML

# How many words of a set of outputs are printed.
NAMED = 5


@dataclass(frozen=True)
class GuaranteeCheck(ReprHTML):
    """Result of a check of ln Pr[M(a) ∈ S]/Pr[M(b) ∈ S] ≤ ε·d(a, b) on pairs of inputs.

    Attributes:
        passed: Whether nothing above ε·d, and no false statement, was found. By draws that is no
            proof that the guarantee holds.
        method: "exact" compares probabilities, "sampling" infers them from draws.
        worst: The pair of inputs (a, b) that comes nearest to what it may reach, or exceeds it.
        outputs: The set S of outputs that tells them apart.
        log_ratio: The log-ratio of that pair and set; by draws, a lower bound of it.
        allowed: ε·d of that pair.
        inputs: How many inputs were compared.
        pairs: How many pairs of them.
        scope: Which inputs and outputs were looked at, in words.
        false_alarm_rate: With which probability, at most, a mechanism that keeps its guarantee does
            not pass; 0 if nothing was drawn.
        draws: How many words were drawn, at most.
        false_statements: A sentence for each number that a mechanism or privatizer states too
            small: ε, local DP, neighbours, bounds of pairs, or the exact level; or another metric.
        not_checked: What is stated and was compared with nothing.
    """

    passed: bool
    method: Literal["exact", "sampling"]
    worst: tuple[str, str]
    outputs: tuple[str, ...]
    log_ratio: float
    allowed: float
    inputs: int
    pairs: int
    scope: str
    false_alarm_rate: float = 0.0
    draws: int = 0
    false_statements: tuple[str, ...] = ()
    not_checked: tuple[str, ...] = ()

    @property
    def slack(self) -> float:
        """ε·d minus the log-ratio at the worst pair; below zero if that is broken."""
        # Nothing is broken where nothing is promised, not even by ∞.
        return math.inf if self.allowed == math.inf else self.allowed - self.log_ratio

    def to_dict(self) -> dict[str, Any]:
        """Return the fields and the slack as JSON-ready values; infinity becomes None."""
        values = {**asdict(self), "slack": self.slack}
        return {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in values.items()
        }

    def __str__(self) -> str:
        exceeded = not self.passed and (self.slack < 0 or not self.false_statements)
        verdict = "BROKEN: a log-ratio above ε·d" if exceeded else "nothing above ε·d"
        if self.false_statements:
            verdict += "; BROKEN: a false statement"
        shown = ", ".join(map(repr, self.outputs[:NAMED]))
        more = f", … ({len(self.outputs)} words)" if len(self.outputs) > NAMED else ""
        bound = "at least " if self.method == "sampling" else ""
        first, second = self.worst
        lines = [
            f"{verdict} ({self.method})",
            f"  worst pair: {first!r} against {second!r}, coming out as one of: {shown}{more}",
            f"  log-ratio {bound}{self.log_ratio:.4g}, allowed {self.allowed:.4g}, "
            f"slack {self.slack:.4g}",
            f"  looked at {self.pairs:,} pairs of {self.inputs:,} inputs: {self.scope}",
        ]
        if self.method == "sampling":
            lines.append(
                f"  {self.draws:,} draws; a mechanism that keeps its guarantee fails with "
                f"probability {self.false_alarm_rate:g} at most"
            )
        lines += [f"  stated: {s}" for s in self.false_statements]
        return "\n".join([*lines, *(f"  not checked: {s}" for s in self.not_checked)])
