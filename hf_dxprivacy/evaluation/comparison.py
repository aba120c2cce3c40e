"""`Comparison`: what was measured, as a table, a sentence, a picture and a report."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy._notebook import DETAILS, ReprHTML
from hf_dxprivacy._runtime import lazy_property
from hf_dxprivacy.errors import InvalidValueError, require_one_of
from hf_dxprivacy.evaluation.curves import Curve, Difference, difference, headline
from hf_dxprivacy.guarantee import upward
from hf_dxprivacy.results import ORIGINAL, Interval, Result, Results

if TYPE_CHECKING:
    from datasets import Dataset

    from hf_dxprivacy.report import Picture

# Figures by their names in tables and files, with what they are.
FIGURES = {
    "stays": "share of running words that come out as they were, but for case and accents",
    "near": "of the changed words that the space has, share that became one of their 100 nearest",
    "kept": "share of the words of a text that stay or are near",
    "trained": "accuracy on originals of a classifier that the release trained",
    "read": "accuracy on the release of a classifier that originals trained",
    "both": "accuracy on the release of a classifier that the release trained",
    "similarity": "cosine of a text and its release, by the encoder",
    "readability": "perplexity of the release over that of the originals; 1 reads as well",
    "b1": "of the most frequent words that the space has, share that the Bayes adversary guesses",
    "b10": "the same with ten guesses",
    "author": "share of texts whose author is found by one who has others as they were written",
    "author_adaptive": "the same by one who has privatized these others",
    "membership": "AUC of the membership attack; 0.5 is chance",
    "gain": "relative gain: what is left of the utility less what is left of the attack",
}
# What mechanisms are compared at the same of, in words.
ATTACKS = {
    "author": "success of the author attack",
    "b1": "success of the Bayes adversary",
    "local": "local DP bound of a text",
}
# Columns of tables by their names, with their headings; a figure only where it was measured.
HEADS = {
    **{"mechanism": "mechanism", "epsilon": "ε", "verified": "verified"},
    **{"local": "local DP", "text": "per text", "stays": "stays", "near": "near"},
    **{"trained": "trained", "read": "read", "both": "both", "similarity": "similar"},
    **{"readability": "perplexity", "b1": "b1", "b10": "b10", "author": "author"},
    **{"author_adaptive": "adaptive", "membership": "member", "gain": "gain"},
}
# Width of the table in a terminal, and columns in the order in which they go if it is narrower.
WIDTH = 120
NO_ACCURACY = "no accuracy: "
NOTHING_LEARNED = (
    "the classifier learns nothing from the originals: its accuracy on releases says nothing"
)
_LEAST = ("readability", "similarity", "membership", "both", "text", "b10", "near")
# States of a claim, and their marks in tables.
EXACT, BY_DRAWS, FALSE = "exact", "draws", "claim not true"
MARKS = {EXACT: "exact", BY_DRAWS: "draws", FALSE: "NOT TRUE"}


@dataclass(frozen=True, eq=False)
class Compared:
    """A mechanism, pool or other at one ε.

    Attributes:
        mechanism: Its name; "none" for the texts as they are.
        epsilon: ε as asked for; None where there is none.
        unit: What one bound is for: "word", "sentence" or "text".
        claim: The guarantee as claimed.
        verified: "exact", "draws", "claim not true" or "not checked".
        verification: How it was verified, or why not.
        local: Claim as pure local DP of one unit; ∞ for no bound, None if unknown.
        local_text: The same for a text of the median number of words.
        in_clear: What is released as it is.
        figures: By the names in `FIGURES`, as far as they were measured. "b1" and "b10" are lower
            bounds, with 1 as the upper end, for a mechanism whose law is known by draws only.
        samples: Figures of single texts, for intervals of differences. As private as the texts.
    """

    mechanism: str
    epsilon: float | None
    unit: str
    claim: str
    verified: str
    verification: str
    local: float | None
    local_text: float | None
    in_clear: str
    figures: Mapping[str, Interval]
    samples: Mapping[str, NDArray[np.float64]] = field(default_factory=dict, repr=False)

    def value(self, name: str) -> float | None:
        """Return a figure, None if it was not measured."""
        return self.figures[name].value if name in self.figures else None

    def is_lower_bound(self, name: str) -> bool:
        """Tell whether the best adversary may have more than a figure says."""
        found = self.figures.get(name) if name in ("b1", "b10") else None
        return found is not None and found.value < found.high == 1.0

    def to_dict(self) -> dict[str, Any]:
        """Return all but `samples` as JSON-ready values; ∞ becomes "inf"."""
        values = _plain(self)
        for name in ("local", "local_text"):
            if values[name] is not None and math.isinf(values[name]):
                values[name] = "inf"
        return values | {"figures": {k: list(v) for k, v in self.figures.items()}}


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(ReprHTML):
    """What mechanisms cost and hide on some texts. Prints as a table; computed from private data.

    Attributes:
        rows: One for each mechanism and ε; the first is that of the texts as they are.
        utility: Name of the figure that counts as use.
        weak: Attacks that fail on the texts as they are.
        parts: Of each text of the figure of use, the part whose errors it shares.
        about: What it was measured on, as sentences.
        notes: What was left out, and why.
    """

    rows: tuple[Compared, ...]
    utility: str
    weak: tuple[str, ...]
    parts: NDArray[np.float64] = field(repr=False)
    about: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def headline(self) -> str:
        """The result in a sentence, at the same success of the attack."""
        false = dict.fromkeys(row.mechanism for row in self.rows if row.verified == FALSE)
        accused = f"CLAIM NOT TRUE: {', '.join(false)}. " if false else ""
        idle = (note for note in self.notes if note.startswith((NO_ACCURACY, NOTHING_LEARNED)))
        return accused + "".join(f"{n.capitalize()}. " for n in idle) + self.sentences[0]

    @lazy_property
    def sentences(self) -> tuple[str, ...]:
        """The result at the same success of each attack, and at the same bound of a text."""
        found = (
            headline(self.curves(attack), self.utility_name, ATTACKS[attack])
            for attack in self.attacks
        )
        return tuple(dict.fromkeys(found)) or (headline((), "", ""),)

    @lazy_property
    def attacks(self) -> tuple[str, ...]:
        """What mechanisms can be compared at the same of, the first one first: in `ATTACKS`."""
        return tuple(
            name
            for name in ATTACKS
            if name not in self.weak
            and any(self.leaked(r, name) and self.utility in r.figures for r in self.rows[1:])
        )

    @property
    def utility_name(self) -> str:
        """What counts as use, in words."""
        named = {"trained": "accuracy", "kept": "words the same or near"}
        return named.get(self.utility, self.utility)

    def curves(self, attack: str) -> list[Curve]:
        """Return a curve for each mechanism that has both figures."""
        points: dict[str, list[tuple[Interval, NDArray[np.float64]]]] = {}
        for row in self.rows[1:]:
            leaked = self.leaked(row, attack)
            if leaked and self.utility in row.samples:
                points.setdefault(row.mechanism, []).append((leaked, row.samples[self.utility]))
        return [Curve.of(name, found, self.parts) for name, found in points.items()]

    def leaked(self, row: Compared, attack: str) -> Interval | None:
        """Return the success of an attack, of the author attack in its stronger form."""
        if attack == "local":
            bound = math.inf if row.local_text is None else row.local_text
            return Interval(bound, bound, bound) if math.isfinite(bound) else None
        if row.is_lower_bound(attack):
            return None  # an adversary that may be beaten says nothing about who hides more
        names = ("author", "author_adaptive") if attack == "author" else (attack,)
        found = [row.figures[name] for name in names if name in row.figures]
        return max(found, key=lambda interval: interval.value) if found else None

    def difference(self, first: str, second: str, attack: str | None = None) -> Difference | None:
        """Compare two mechanisms at the same success of an attack; None where that is nowhere.

        The interval is of 95 % for this pair; those of `sentences` hold all together.

        Args:
            first: A mechanism.
            second: Another one.
            attack: A key of `ATTACKS`; by default the one of the headline.

        Raises:
            InvalidValueError: If one of them has no curve, or there is no such attack.
        """
        attack = self._measured_attack(attack)
        named = {curve.name: curve for curve in self.curves(attack)}
        require_one_of(named, first=first, second=second)
        return difference(named[first], named[second])

    def _measured_attack(self, attack: str | None) -> str:
        if not self.attacks:
            raise InvalidValueError("no attack was measured; name a user column or mechanisms")
        attack = attack or self.attacks[0]
        require_one_of(self.attacks, attack=attack)
        return attack

    def _measured(self) -> list[str]:
        return [name for name in FIGURES if any(name in row.figures for row in self.rows)]

    def to_dataset(self) -> "Dataset":
        """Return a `datasets.Dataset` with a row for each mechanism and ε, and flat columns."""
        from datasets import Dataset

        rows = [_plain(row) for row in self.rows]
        for name in self._measured():
            for flat, row in zip(rows, self.rows, strict=True):
                found = row.figures.get(name, (None, None, None))
                flat |= dict(zip((name, f"{name}_low", f"{name}_high"), found, strict=True))
        return Dataset.from_list(rows)

    def to_json(self) -> str:
        """Return everything but figures of single texts."""
        content = {
            "headline": self.headline,
            "sentences": self.sentences,
            "utility": self.utility,
            "about": self.about,
            "notes": self.notes,
            "figures": {name: FIGURES[name] for name in self._measured()},
            "rows": [row.to_dict() for row in self.rows],
        }
        return json.dumps(content, ensure_ascii=False, indent=1, allow_nan=False)

    def table(self) -> tuple[dict[str, str], list[dict[str, str]]]:
        """Return the headings of the table by their names, and its rows as texts."""
        shown = self._measured()
        heads = {name: head for name, head in HEADS.items() if name in shown or name not in FIGURES}
        return heads, [_cells(row, heads) for row in self.rows]

    def to_markdown(self) -> str:
        """Return headline, table and notes."""
        heads, rows = self.table()
        first, *lines = (f"| {' | '.join(row[name] for name in heads)} |" for row in (heads, *rows))
        table = "\n".join([first, f"|---{'|---:' * (len(heads) - 1)}|", *lines])
        notes = "\n".join(f"- {note}" for note in (*self.about, *self.notes))
        return "\n\n".join([self.headline, *self.sentences[1:], table, notes]) + "\n"

    def _shown(self) -> str:
        # The notes are the last paragraph.
        return f"\n\n{DETAILS}\n".join(self.to_markdown().rsplit("\n\n", 1))

    def __str__(self) -> str:
        heads, rows = self.table()
        least = [name for name in _LEAST if name in heads]
        while (lines := _aligned(heads, rows)) and len(lines[0]) > WIDTH and least:
            del heads[least.pop(0)]
        legend = [f"  {heads[name]}: {text}" for name, text in FIGURES.items() if name in heads]
        notes = [f"  {note}" for note in (*self.about, *self.notes)]
        return "\n".join([self.headline, *self.sentences[1:], "", *lines, "", *legend, "", *notes])

    def figure(self, attack: str | None = None) -> "Picture":
        """Draw utility against the success of an attack, a curve for each mechanism.

        Args:
            attack: A key of `ATTACKS`; by default the one of the headline.

        Raises:
            InvalidValueError: If there is no such attack.
            MissingExtraError: If matplotlib is not installed.
        """
        from hf_dxprivacy.report.figures import draw_frontier

        attack = self._measured_attack(attack)
        leaking, useful = [], []
        for row in self.rows:
            leaked, used = self.leaked(row, attack), row.figures.get(self.utility)
            if used is None or (leaked is None and row.mechanism != ORIGINAL):
                continue
            about: dict[str, Any] = {"mechanism": row.mechanism, "epsilon": row.epsilon}
            useful.append(Result.of("frontier", self.utility, used, **about))
            if leaked is not None:
                leaking.append(Result.of("frontier", self.utility, leaked, **about))
        results = Results(useful), Results(leaking)
        return draw_frontier(*results, self.utility_name, ATTACKS[attack])

    def report(self) -> str:
        """Return a page with the sentences, the pictures and the table, as one HTML file.

        Raises:
            MissingExtraError: If matplotlib is not installed.
        """
        from hf_dxprivacy._version import __version__
        from hf_dxprivacy.report.html import rendered

        heads, cells = self.table()
        # What fits a telephone.
        attack = "author_adaptive" if "author" in self.attacks else "b1"
        short = ("mechanism", "epsilon", "stays", self.utility, attack, "verified")
        return rendered(
            "comparison.html",
            version=__version__,
            comparison=self,
            pictures=[self.figure(attack) for attack in self.attacks],
            heads=heads,
            rows=list(zip(self.rows, cells, strict=True)),
            short=[name for name in short if name in heads],
            figures={heads[name]: FIGURES[name] for name in FIGURES if name in heads},
        )


def _plain(row: Compared) -> dict[str, Any]:
    """Return what is neither a figure nor a sample."""
    return {name: value for name, value in vars(row).items() if name not in ("figures", "samples")}


def _cells(row: Compared, heads: Mapping[str, str]) -> dict[str, str]:
    """Return the cells of a row of the table."""
    cells = {"mechanism": "original", "epsilon": "", "verified": "", "local": "", "text": ""}
    if row.mechanism != ORIGINAL:
        mark = MARKS.get(row.verified, "–")
        if row.local == math.inf and row.verified in (EXACT, BY_DRAWS):
            mark = "in part"  # finite for some pairs only
        cells = {
            "mechanism": row.mechanism,
            "epsilon": "" if row.epsilon is None else f"{row.epsilon:.4g}",
            "verified": mark,
            "local": _bound(row.local),
            "text": _bound(row.local_text),
        }
    formats = {"readability": ".1f", "gain": "+.2f"}
    for name in heads:
        if name not in cells:
            value = row.value(name)
            shown = "–" if value is None else format(value, formats.get(name, ".3f"))
            shown = shown.replace("-", "−") if name == "gain" else shown
            cells[name] = f"≥ {shown}" if row.is_lower_bound(name) else shown
    return cells


def _bound(value: float | None) -> str:
    if value is None or math.isinf(value):
        return "–" if value is None else "∞"
    return upward(value, 3) if value < 1000 else f"{math.ceil(value):,}"


def _aligned(heads: Mapping[str, str], rows: Sequence[Mapping[str, str]]) -> list[str]:
    table = [[row[name] for name in heads] for row in (heads, *rows)]
    first, *widths = (max(map(len, column)) for column in zip(*table, strict=True))
    return [
        "  ".join([cell.ljust(first), *(map(str.rjust, others, widths))]) for cell, *others in table
    ]
