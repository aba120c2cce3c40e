"""Guarantees of mechanisms, privatizers and released n-grams, to read, print and store."""

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, Context
from typing import Any

from hf_dxprivacy._notebook import DETAILS, Shown
from hf_dxprivacy.errors import require_positive

_ORDINALS = {1: "1st", 10: "10th", 100: "100th"}
# What a sentence names as not covered, up to its end, which is none within quotes.
_UNCOVERED = re.compile(r"\bNot covered[^:]*: ((?:'[^']*'|.)+?)\.(?: |$)")

LogRatioBound = Callable[[Any, Any], float]

# See `agreed`. The slack is far below `levels.LEVEL_MARGIN`, so that levels stay upper bounds.
AGREED_DIGITS, AGREED_SLACK = 7, 1e-10

# True of every release by this package, whatever its options (mathematics: Pr is over the noise).
ALWAYS = (
    "The noise of different words is independent; bounds of several words, columns or releases "
    "of the same text add up.",
    "The embedding space is public and was not made from the private text.",
    "Arithmetic is treated as exact, though noise and probabilities are floating-point numbers.",
)

_BESIDE_THE_ROWS = (
    "Not covered: other columns, and what `datasets` keeps beside the rows. That is fingerprints, "
    "sizes and checksums of the originals in a save_to_disk folder, and the originals in its "
    "cache: publish what hf_dxprivacy.publishable(dataset) returns."
)

_OUT_OF_VOCABULARY = {
    "centroid": "Words out of vocabulary are replaced too: all of them are one input, {unknown}.",
    "drop": "Words out of vocabulary are removed. Not covered: where words out of vocabulary "
    "were. The statement holds for inputs that have them at the same places.",
    "keep": "HOLE: words out of vocabulary are released unchanged, without any guarantee. Not "
    'covered: words out of vocabulary (oov="keep").',
}

_SHAPES = (
    "{kinds} out of vocabulary are inputs by their shape: "
    "all of one shape are one input, and a shape that comes out is released as a random word of it."
)
# What a space has shapes for, by one of them.
_KINDS = {
    "<decimal>": "numbers",
    "<email>": "codes, addresses",
    "<name>": "capitalized words",
}

_SEGMENTED = (
    "Runs without spaces are split into words by a public segmenter ({segmenter}). Where a word "
    "ends depends on what is beside it, so that another word there may change its neighbours or "
    "their number. The statement is about the words that are found: it holds for inputs that "
    "have as many of them, with the same text between them."
)

_SEEDED = (
    "Seeded noise: the statement holds only while the seed stays secret. Not covered: which rows "
    "are equal, and everything once the seed is known. Rows of a column that have the same words, "
    "whatever stands between them, and the same index, or none, get equal noise: without "
    "with_indices=True any two of them; with it those that have one index in two splits, files, "
    "tables or shards of a stream, each of which counts from 0. The statement holds for inputs "
    "that agree in this."
)

_MEMOIZED = {
    "row": "Memoized noise: equal rows become equal rows in every release under one key, ε, "
    "mechanism, space (with its lists of neighbours) and version of this package, which costs no "
    "more than the first. Rows are equal if all that is released as it is, and the words that are "
    "drawn anew, are the same in the same order. Not covered: which rows are equal, and everything "
    "once the key is known. The statement holds for inputs that agree in this, and only while the "
    "key stays secret.",
    "user": "Memoized noise: a word of a user becomes the same word everywhere, in every release "
    "under one key, ε, mechanism, space (with its lists of neighbours) and version of this "
    "package, which costs no more than the first. Bounds add up over the different words of a "
    "user. Not covered: which words of a user are equal, and so how often each comes, and "
    "everything once the key is known. The statement holds for inputs that agree in this, and only "
    "while the key stays secret.",
}


def text_disclosures(
    oov: str,
    case: str,
    stopwords: int,
    seeded: bool,
    memoize: str | None = None,
    *,
    unknown: str = "at the centroid of the space",
    shapes: Collection[str] = (),
    segmenter: str | None = None,
) -> tuple[str, ...]:
    """Return sentences on what a privatizer of texts releases beside the words.

    Args:
        oov: Treatment of words out of vocabulary: "centroid", "drop" or "keep".
        case: "lower" or "preserve".
        stopwords: How many words of the language are kept as they are.
        seeded: Whether the noise comes from a fixed seed.
        memoize: What is always released in the same way: "row", "user", or nothing.
        unknown: Where the input that stands for words out of vocabulary is.
        shapes: The entries of the space for shapes of words.
        segmenter: What splits runs without spaces, if anything does.
    """
    sentences = [
        "Not covered, released as it is: the number of words and what stands between them "
        "(spaces, punctuation, symbols).",
        _OUT_OF_VOCABULARY[oov].format(unknown=unknown),
        _BESIDE_THE_ROWS,
    ]
    if segmenter is not None:
        sentences.append(_SEGMENTED.format(segmenter=segmenter))
    if shapes:
        kinds = [kind for shape, kind in _KINDS.items() if shape in shapes] or ["dates, times"]
        listed = " and ".join(filter(None, [", ".join(kinds[:-1]), kinds[-1]]))
        sentences.append(_SHAPES.format(kinds=listed[:1].upper() + listed[1:]))
    if stopwords:
        sentences.append(
            f"Not covered, released as they are: {stopwords} stop words. The statement holds for "
            "inputs that have the same ones at the same places."
        )
    if case == "preserve":
        sentences.append(
            "Not covered, released: the letter case of every word (lower, Title or UPPER)."
        )
    if seeded:
        sentences.append(_SEEDED)
    if memoize is not None:
        sentences.append(_MEMOIZED[memoize])
    return tuple(sentences)


def shared_by_inputs(label: bool, seeded: bool, memoize: str | None) -> str:
    """Return what two inputs have to share for a statement to hold; nothing where it is empty."""
    equal = "inputs that agree in which rows are equal" if seeded or memoize == "row" else ""
    return ", in ".join(filter(None, ["one label" if label else "", equal]))


def token_disclosures(seeded: bool, unknown: str) -> tuple[str, ...]:
    """Return sentences on what a privatizer of token ids releases beside the tokens."""
    sentences = (
        "A word is protected by the sum over its tokens, since one word may be several of them.",
        "Not covered, released as it is: the number of tokens, which special tokens (start, "
        "separator, padding, mask, …) there are, and where.",
        "Not covered, left as they are: other columns made from the text, such as the text itself, "
        "offset_mapping, or labels that hold token ids.",
        "Tokens that the space lacks are replaced too, the one for unknown words among them: all "
        f"of them are one input, {unknown}.",
        _BESIDE_THE_ROWS,
    )
    return (*sentences, _SEEDED) if seeded else sentences


def nested_disclosures(
    paths: Mapping[str, str], roles: Sequence[str] | None, memoize: str | None
) -> tuple[str, ...]:
    """Return sentences on what a privatizer of texts in lists of dicts releases beside them.

    Args:
        paths: The path to the texts of each column.
        roles: The roles whose texts are covered; None for all.
        memoize: What is always released in the same way: "row", "user", or nothing.
    """
    sentences = [
        f"Not covered, released as it is: all of column {column!r} but the texts at {path!r}. That "
        "is how many messages and parts there are and which have no text, roles, names, times, "
        "reasoning in fields of its own, calls of tools with their arguments, results of tools in "
        "parts of their own, images, and every other field; they may quote the texts."
        for column, path in paths.items()
    ]
    sentences.append(
        "The bounds of the texts of a row add up. The statement holds for inputs that have as many "
        "texts at the same places."
    )
    if roles is not None:
        named = " or ".join(map(repr, roles))
        sentences.append(
            f"Only texts of the role {named} are perturbed. Not covered, released as they are: the "
            "texts of every other role, which may quote them, as answers do."
        )
    if memoize == "row":
        sentences.append(
            "Rows are equal here if their perturbed texts are, in the same order, whatever else "
            "is in the column. A chat to which a message was added is another row, released anew."
        )
    return tuple(sentences)


_SEEDED_TEXTS = (
    "Seeded noise: the statement holds only while the seed stays secret. Not covered: which rows "
    "are equal, and everything once the seed is known. Rows of a column that have the same text "
    "and the same index, or none, get equal noise: without with_indices=True any two of them; with "
    "it those that have one index in two splits, files, tables or shards of a stream. The "
    "statement holds for inputs that agree in this."
)

_MEMOIZED_TEXTS = {
    "row": "Memoized noise: rows with equal entries become equal rows in every release under one "
    "key, ε, mechanism, pool and version of this package, which costs no more than the first. "
    "Not covered: which rows have equal entries, and everything once the key is known. The "
    "statement holds for inputs that agree in this, and only while the key stays secret.",
    "user": "Memoized noise: {units} of a user with one entry become the same sentence in every "
    "release under one key, ε, mechanism, pool and version of this package, which costs no more "
    "than the first. Bounds add up over the different entries of a user. Not covered: which "
    "{units} of a user have one entry, and so how often each comes, and everything once the key is "
    "known. The statement holds for inputs that agree in this, and only while the key stays "
    "secret.",
}

_OF_ENTRIES = (
    ("a word that it lacks is one more word", "the unknown entry is one more"),
    (r"\b([Aa]) word\b", r"\1n entry"),
    (r"\bwords\b", "entries"),
    (r"\bword\b", "entry"),
    (r"\b([Tt]he|this) space\b", r"\1 pool"),
)


def of_entries(sentence: str) -> str:
    """Return what a mechanism says of words and its space, said of entries and a pool."""
    for pattern, entry in _OF_ENTRIES:
        sentence = re.sub(pattern, entry, sentence)
    return sentence


def sentence_disclosures(
    unit: str,
    sizes: Sequence[int],
    bare: tuple[str, ...],
    *,
    seeded: bool,
    memoize: str | None = None,
    label_column: str | None = None,
    refilled: bool = False,
) -> tuple[str, ...]:
    """Say what a privatizer of whole texts or sentences rests on, and what it releases.

    Args:
        unit: "text" or "sentence".
        sizes: How many entries the pool has; with labels, how many of each.
        bare: The same of the mechanism, in terms of words.
        seeded: Whether the noise comes from a fixed seed.
        memoize: What is always released in the same way: "row", "user", or nothing.
        label_column: The column of public labels by which the pool is restricted.
        refilled: Whether numbers, dates and names in what is released are drawn afresh.
    """
    units = f"{unit}s"
    among = " among those of its label" if label_column else ""
    found = [
        f"A {unit}, however long, is one input: its entry, which is the nearest of "
        f"{sum(sizes):,} public sentences{among}. Two {units} are as far apart as their entries. A "
        f"{unit} that the encoder has nothing for (empty, or in another script) has one more "
        "entry, the unknown one.",
        "The sentences, the encoder, its projection and the tree are public and were not made "
        f"from the private text, so that no {unit} changes the entry of another.",
        f"The noise of different {units} is independent; bounds of several {units} of one person, "
        "columns and releases add up.",
    ]
    found += [of_entries(sentence) for sentence in bare if sentence not in ALWAYS[:2]]
    if label_column:
        counts = " to ".join(f"{size:,}" for size in sorted({min(sizes), max(sizes)}))
        found.append(
            f"Not covered, released as it is: the label of each row in column {label_column!r}, "
            f"one of {len(sizes)}, with {counts} entries each. The statement holds for "
            f"{units} of one label, and nothing is promised between labels. Each figure is the "
            "largest that it is for any label."
        )
    if unit == "sentence":
        found.append(
            "Not covered, released as it is: the number of sentences of each text. The bounds of "
            "the sentences of a text add up."
        )
    if refilled:
        found.append(
            "Numbers, dates and names of people in a sentence that came out are drawn afresh, from "
            "noise of their own; that is post-processing and changes no bound."
        )
    found += ["Not covered, released as it is: which texts are missing.", _BESIDE_THE_ROWS]
    if seeded:
        found.append(_SEEDED_TEXTS)
    if memoize is not None:
        found.append(_MEMOIZED_TEXTS[memoize].format(units=units))
    return tuple(found)


def upward(value: float, digits: int = 4) -> str:
    """Print an upper bound to so many digits, rounded up: never less than what holds."""
    text = f"{value:.{digits}g}"
    if float(text) < value:
        above = Context(prec=digits, rounding=ROUND_CEILING).create_decimal_from_float(value)
        text = f"{float(above):.{digits}g}"
    return text


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


def _printed(assumptions: Sequence[str], *head: str) -> str:
    return "\n".join([*head, *[f"  - {sentence}" for sentence in assumptions]])


@dataclass(frozen=True)
class PrivacyGuarantee(Shown):
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
        assumptions: What the statement rests on and what it does not cover, one sentence each.
        among: What two inputs have to share for the statement to hold, if it is more than their
            length, such as "one label".
    """

    epsilon: float
    metric: str
    ldp_epsilon: float
    neighbour_epsilon: Mapping[int, float] = field(hash=False)
    unit: str = "word"
    assumptions: tuple[str, ...] = ()
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
            "assumptions": list(self.assumptions),
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
        warnings = "".join(f" {each}" for each in self.assumptions if each.startswith("WARNING"))
        left = [found for each in self.assumptions for found in _UNCOVERED.findall(each)]
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
            [
                f"{'∞' if math.isinf(value) else upward(value, 3)} at the "
                f"{_ORDINALS.get(k, f'{k}-th')} neighbour"
                for k, value in self.neighbour_epsilon.items()
            ]
        )
        other = f" of {self.among}" if self.among else ""
        bounded = math.isfinite(self.ldp_epsilon)
        local = f"ε ≤ {upward(self.ldp_epsilon)}" if bounded else "none, nothing bounds it"
        return _printed(
            [each for each in self.assumptions if not each.startswith("WARNING")],
            *self.plain,
            DETAILS,
            f"  {self.statement}",
            f"  ε·d at the median distance: {neighbours}",
            f"  as pure local DP, any {self.unit} against any other{other}: {local}",
        )


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
class CorpusGuarantee(Shown):
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
        """Assumptions of the statement, one sentence each."""
        return _EXACT if self.epsilon is None else _RESTS_ON

    def to_dict(self) -> dict[str, Any]:
        """Return the statement as JSON-ready values."""
        stated = {"epsilon": self.epsilon, "unit": self.unit}
        return {**stated, "assumptions": list(self.assumptions)}

    def __str__(self) -> str:
        head = f"no guarantee per {self.unit} of the corpus"
        if self.epsilon is not None:
            bound = upward(self.epsilon, 6)
            head = f"ε_g-differentially private per {self.unit} of the corpus: ε_g = {bound}"
        return _printed(self.assumptions, head)
