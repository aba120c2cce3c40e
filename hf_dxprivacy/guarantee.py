"""Guarantees of mechanisms, privatizers and released n-grams, to read, print and store."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, Context
from typing import Any, Literal, NamedTuple

from hf_dxprivacy._notebook import DETAILS, ReprHTML
from hf_dxprivacy.errors import require_positive

_ORDINALS = {1: "1st", 10: "10th", 100: "100th"}

LogRatioBound = Callable[[Any, Any], float]

# See `agreed`. The slack is far below `levels.LEVEL_MARGIN`, so that levels stay upper bounds.
AGREED_DIGITS, AGREED_SLACK = 7, 1e-10

# A record says what its statement rests on; names the exact level, what is in clear, what shows to
# be equal (the noise is a function of a secret), what stays with the owner's copy; says that the
# statement promises little, or nothing of a part.
Kind = Literal[
    "condition", "exact_level", "in_clear", "equality_shows", "traces", "warning", "hole"
]
# Kinds whose subjects are not covered.
UNCOVERED: tuple[Kind, ...] = ("in_clear", "equality_shows", "traces", "hole")


@dataclass(frozen=True)
class Disclosure:
    """One thing that a guarantee says.

    Attributes:
        text: All of it, in whole sentences.
        kind: What it does to the statement.
        subject: What it names, as it reads in a list; "" if it stands in none.
    """

    text: str
    kind: Kind = "condition"
    subject: str = ""


def uncovered(
    subject: str, more: str = "", *, before: str = "", how: str = "", kind: Kind = "in_clear"
) -> Disclosure:
    """Return a record of what is not covered, with sentences before and after."""
    named = f"Not covered{how}: {subject}."
    return Disclosure(" ".join(filter(None, [before, named, more])), kind, subject)


def marked(said: Disclosure | str) -> Disclosure:
    """Return a record; a bare sentence, of a report before 0.4 or a user's selector, has marks.

    No sentence that is made here is read so.
    """
    if isinstance(said, Disclosure):
        return said
    marks: dict[str, Kind] = {"WARNING": "warning", "HOLE": "hole", "publishable(": "traces"}
    marks["Not covered"] = "in_clear"
    kind: Kind = next((kind for mark, kind in marks.items() if mark in said), "condition")
    return Disclosure(said, kind, said.removesuffix(".") if kind in UNCOVERED else "")


class Noun(NamedTuple):
    """What the inputs of a mechanism are called, and where they are from."""

    one: str
    many: str
    space: str
    lacking: str


WORD = Noun("word", "words", "space", "a word that it lacks is one more word")
TOKEN = Noun("token", "tokens", "space", "a token that it lacks is one more token")
ENTRY = Noun("entry", "entries", "pool", "the unknown entry is one more")

_EXACT = Disclosure(
    "Arithmetic is treated as exact, though noise and probabilities are floating-point numbers."
)
# True of every release, whatever its options (mathematics: Pr is over the noise). Of a pool more is
# said where it is released.
ALWAYS = {ENTRY: (_EXACT,)} | {
    noun: (
        Disclosure(
            f"The noise of different {noun.many} is independent; bounds of several {noun.many}, "
            "columns or releases of the same text add up."
        ),
        Disclosure("The embedding space is public and was not made from the private text."),
        _EXACT,
    )
    for noun in (WORD, TOKEN)
}


def upward(value: float, digits: int = 4) -> str:
    """Print an upper bound to so many digits, rounded up: never less than what holds."""
    text = f"{value:.{digits}g}"
    if float(text) < value:
        above = Context(prec=digits, rounding=ROUND_CEILING).create_decimal_from_float(value)
        text = f"{float(above):.{digits}g}"
    return f"{float(text):.0f}" if "e+" in text and value < 1e15 else text


def agreed(value: float) -> float:
    """Round a level or a distance upward to the digits that are the same on every processor.

    Processors add in different orders, so that the last digits of sums and products differ: as a
    rule by a part of 1e-14, and by 1e-9, to which distances are right, at the very most. What is
    written to files, or decides a digest, is made of fewer digits. A value that is less than a part
    of `AGREED_SLACK` above one of so few digits is taken for that one: the median of a space that
    was scaled to 1 is computed as a little more or less than 1.
    """
    return float(upward(value * (1.0 - AGREED_SLACK), AGREED_DIGITS))


def at_most(epsilon: float) -> str:
    """Say by what odds may change: exp(ε), rounded up to two figures, or to a power of ten."""
    if math.isinf(epsilon):
        return "without any bound"
    shown = f"10^{math.ceil(epsilon / math.log(10))}"
    if epsilon <= math.log(1e9):
        value = float(upward(math.exp(epsilon), 2))
        shown = f"{value:,.{1 if value < 10 else 0}f}"
    return f"by a factor of at most {shown}"


def _unbounded(_a: object, _b: object) -> float:
    return math.inf


class _Stated(ReprHTML):
    """Base of statements with disclosures."""

    disclosures: tuple[Disclosure, ...]

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the statement rests on and what it does not cover, as sentences."""
        return (*[each.text for each in self.disclosures],)


@dataclass(frozen=True)
class PrivacyGuarantee(_Stated):
    """A metric differential privacy (dχ-privacy) statement.

    For all inputs w, w' and every output y, Pr[M(w)=y] ≤ exp(ε·d(w, w'))·Pr[M(w')=y].

    Attributes:
        epsilon: ε, per unit of `metric`.
        metric: Name of the metric d. An ε means nothing without it.
        ldp_epsilon: The same promise as pure local differential privacy per word: an upper bound
            of ε·d over all pairs of inputs (∞ if there is none).
        neighbour_epsilon: ε·d at the median distance to the 1st, 10th and 100th neighbour (∞ if
            there is no bound).
        unit: What one application of the mechanism protects.
        disclosures: What the statement rests on and what it does not cover.
        among: What two inputs have to share for the statement to hold, if it is more than their
            length, such as "one label".
    """

    epsilon: float
    metric: str
    ldp_epsilon: float
    neighbour_epsilon: Mapping[int, float] = field(hash=False)
    unit: str = "word"
    disclosures: tuple[Disclosure, ...] = ()
    among: str = ""
    log_ratio_bound: LogRatioBound = field(default=_unbounded, repr=False, compare=False)

    def __post_init__(self) -> None:
        require_positive(epsilon=self.epsilon)

    def bound(self, text_a: Any, text_b: Any) -> float:
        """Bound how much more likely one text makes any release than another text.

        Args:
            text_a: A text; a word, for the guarantee of a bare mechanism; a sequence of token ids,
                for that of a `TokenPrivatizer`; a row, as a mapping of columns, for that of a
                `SentencePrivatizer` with labels.
            text_b: Another one.

        Returns:
            An upper bound of |ln Pr[M(a)=y]/Pr[M(b)=y]| over all outputs y: the sum of ε·d over
            the words (tokens), or infinity where the statement does not cover the pair (another
            number of them, or a difference in something that is released as it is).
        """
        return self.log_ratio_bound(text_a, text_b)

    def to_dict(self) -> dict[str, Any]:
        """Return the statement as JSON-ready values.

        Levels without a bound become None, and "among" is there only if it says something.
        """
        return {
            "epsilon": self.epsilon,
            "metric": self.metric,
            "ldp_epsilon": self.ldp_epsilon if math.isfinite(self.ldp_epsilon) else None,
            "neighbour_epsilon": {
                str(k): v if math.isfinite(v) else None for k, v in self.neighbour_epsilon.items()
            },
            "unit": self.unit,
            **({"among": self.among} if self.among else {}),
            "assumptions": [each.text for each in self.disclosures],
            "disclosures": [dict(vars(each)) for each in self.disclosures],
        }

    @property
    def plain(self) -> tuple[str, str, str]:
        """The guarantee in three plain lines: near inputs, any inputs, and what is not covered.

        Factors are exp(ε·d), rounded up. Those of neighbours are at the median distance.
        """
        unit, near = self.unit, self.neighbour_epsilon
        entry = f"{unit}'s public sentence" if unit in ("text", "sentence") else unit
        names = {1: "its nearest neighbour", 10: "the 10th nearest"}
        factors = [f"against {name} {at_most(near[k])}" for k, name in names.items() if k in near]
        factors[1:] = [each.replace("a factor of ", "") for each in factors[1:]]
        any_two = f"any two {unit}s{f' of {self.among}' if self.among else ''}"
        local = f"{at_most(self.ldp_epsilon)} (pure local DP: ε ≤ {upward(self.ldp_epsilon)})"
        if math.isinf(self.ldp_epsilon):
            local = "without any bound (no pure local DP), so that some can be told for certain"
        said = self.disclosures
        warnings = "".join(f" {each.text}" for each in said if each.kind == "warning")
        left = [each.subject for each in said if each.kind in UNCOVERED and each.subject]
        return (
            f"Near {unit}s: a release changes the odds of a {entry} {', '.join(factors)} (at the "
            "median distance).",
            f"Any {unit}s: the odds of {any_two} change {local}. Factors of several {unit}s and "
            f"releases multiply.{warnings}",
            f"Not covered: {'; '.join(left) or f'whatever is released beside the {unit}s'}.",
        )

    @property
    def statement(self) -> str:
        """The statement in one line, in the terms of its theory."""
        stated = f"ε = {upward(self.epsilon, 6)} per unit of {self.metric}"
        return f"ε·d-private per {self.unit}: {stated}"

    def __str__(self) -> str:
        neighbours = ", ".join(
            f"{'∞' if math.isinf(bound) else upward(bound, 3)} at the "
            f"{_ORDINALS.get(k, f'{k}-th')} neighbour"
            for k, bound in self.neighbour_epsilon.items()
        )
        other = f" of {self.among}" if self.among else ""
        bounded = math.isfinite(self.ldp_epsilon)
        local = f"ε ≤ {upward(self.ldp_epsilon)}" if bounded else "none, nothing bounds it"
        lines = [
            *(*self.plain, DETAILS, f"  {self.statement}"),
            f"  ε·d at the median distance: {neighbours}",
            f"  as pure local DP, any {self.unit} against any other{other}: {local}",
        ]
        # Warnings stand in the plain lines.
        lines += [f"  - {each.text}" for each in self.disclosures if each.kind != "warning"]
        return "\n".join(lines)


_EXACT_COUNTS = Disclosure(
    "HOLE: the counts of the n-grams are exact (epsilon=None). Nothing is promised to the corpus "
    "they come from, which has to be public.",
    "hole",
)
_RESTS_ON = (
    "The alphabet of words is public and was not made from that corpus; so are n_max, l_max and "
    "the smallest count.",
    "The records of one person, and several releases from the same corpus, add up.",
    "Arithmetic is treated as exact, though noise is a floating-point number before it is rounded "
    "to a whole one.",
)


@dataclass(frozen=True)
class CorpusGuarantee(_Stated):
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
    def disclosures(self) -> tuple[Disclosure, ...]:  # type: ignore[override]
        """What the statement rests on."""
        return (_EXACT_COUNTS,) if self.epsilon is None else (*map(Disclosure, _RESTS_ON),)

    def to_dict(self) -> dict[str, Any]:
        """Return the statement as JSON-ready values."""
        records = [dict(vars(each)) for each in self.disclosures]
        stated = {"epsilon": self.epsilon, "unit": self.unit}
        return {**stated, "assumptions": [*self.assumptions], "disclosures": records}

    @property
    def statement(self) -> str:
        """The statement in one line."""
        if self.epsilon is None:
            return f"no guarantee per {self.unit} of the corpus"
        bound = upward(self.epsilon, 6)
        return f"ε_g-differentially private per {self.unit} of the corpus: ε_g = {bound}"

    def __str__(self) -> str:
        return "\n".join([self.statement, *[f"  - {text}" for text in self.assumptions]])
