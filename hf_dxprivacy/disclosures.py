"""What a guarantee says beside its numbers, as records; `hf_dxprivacy.guarantee` prints them."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

# What a record does to its statement: it says what it rests on or means; names the exact level;
# names what is released, or left, without cover, what shows to be equal since noise is a function
# of a secret, or what stays with the owner's copy and is no concern to others; says that it
# promises little, or nothing at all of a part.
Kind = Literal[
    "condition", "exact_level", "in_clear", "equality_shows", "traces", "warning", "hole"
]
# Kinds whose subjects are not covered.
UNCOVERED: tuple[Kind, ...] = ("in_clear", "equality_shows", "traces", "hole")


@dataclass(frozen=True)
class Disclosure:
    """One thing that a guarantee says.

    Attributes:
        kind: What it does to the statement.
        subject: What it names, as it reads in a list; "" if it stands in none.
        text: All of it, in whole sentences.
    """

    kind: Kind
    subject: str
    text: str


Said = Disclosure | str


def conditions(said: Iterable[Said]) -> tuple[Disclosure, ...]:
    """Return records, in which bare sentences are conditions."""
    return tuple(Disclosure("condition", "", s) if isinstance(s, str) else s for s in said)


def marked(said: Said) -> Disclosure:
    """Return a record; a bare sentence, of a report before 0.4 or a user's selector, has marks.

    No sentence that is made here is read so.
    """
    if isinstance(said, Disclosure):
        return said
    marks: dict[str, Kind] = {"WARNING": "warning", "HOLE": "hole", "publishable(": "traces"}
    marks["Not covered"] = "in_clear"
    kind: Kind = next((kind for mark, kind in marks.items() if mark in said), "condition")
    return Disclosure(kind, said.removesuffix(".") if kind in UNCOVERED else "", said)


def uncovered(
    subject: str, more: str = "", *, before: str = "", how: str = "", kind: Kind = "in_clear"
) -> Disclosure:
    """Return a record of what is not covered, with sentences before and after."""
    named = f"Not covered{how}: {subject}."
    return Disclosure(kind, subject, " ".join(filter(None, [before, named, more])))


class Noun(NamedTuple):
    """What the inputs of a mechanism are called, and where they are from."""

    one: str
    many: str
    space: str
    lacking: str


WORD = Noun("word", "words", "space", "a word that it lacks is one more word")
TOKEN = Noun("token", "tokens", "space", "a token that it lacks is one more token")
ENTRY = Noun("entry", "entries", "pool", "the unknown entry is one more")


def exact_level(level: str, slope: float, noun: Noun) -> Disclosure:
    """Return a record of the exact level of a mechanism, as a printed number."""
    text = f"The exact level over all pairs of {noun.many} is {level} (s = {slope:.4g})."
    return Disclosure("exact_level", level, text)


def always(noun: Noun) -> tuple[str, ...]:
    """Return what is true of every release, whatever its options (Pr is over the noise)."""
    exact = "Arithmetic is treated as exact, though noise and probabilities are floating-point "
    if noun is ENTRY:  # a pool is more than a space: see `sentence_disclosures`
        return (f"{exact}numbers.",)
    return (
        f"The noise of different {noun.many} is independent; bounds of several {noun.many}, "
        "columns or releases of the same text add up.",
        "The embedding space is public and was not made from the private text.",
        f"{exact}numbers.",
    )


_AS_IT_IS, _AS_THEY_ARE = ", released as it is", ", released as they are"

_BESIDE_THE_ROWS = uncovered(
    "other columns, and what `datasets` keeps beside the rows",
    "That is fingerprints, sizes and checksums of the originals in a save_to_disk folder, and the "
    "originals in its cache: publish what hf_dxprivacy.publishable(dataset) returns.",
    kind="traces",
)

# What a space has shapes for, by one of them.
_KINDS = {
    "<decimal>": "numbers",
    "<email>": "codes, addresses",
    "<name>": "capitalized words",
}


def _out_of_vocabulary(oov: str, unknown: str) -> Said:
    if oov == "drop":
        return uncovered(
            "where words out of vocabulary were",
            "The statement holds for inputs that have them at the same places.",
            before="Words out of vocabulary are removed.",
        )
    if oov == "keep":
        return uncovered(
            'words out of vocabulary (oov="keep")',
            before="HOLE: words out of vocabulary are released unchanged, without any guarantee.",
            kind="hole",
        )
    return f"Words out of vocabulary are replaced too: all of them are one input, {unknown}."


def _shaped(shapes: Collection[str]) -> str:
    kinds = [kind for shape, kind in _KINDS.items() if shape in shapes] or ["dates, times"]
    listed = " and ".join(filter(None, [", ".join(kinds[:-1]), kinds[-1]]))
    within = (
        " A capitalized word at the start of a text, or after one of . ! ? : ; …, a quotation "
        "mark, an opening bracket or a line break (as in 'Dr. Xu'), has no shape: it is an input "
        "as any other word out of vocabulary."
    )
    return (
        f"{listed[:1].upper()}{listed[1:]} out of vocabulary are inputs by their shape: all of one "
        "shape are one input, and a shape that comes out is released as a random word of it."
        f"{within * ('<name>' in shapes)}"
    )


def _seeded(same: str) -> Disclosure:
    """Say which rows share seeded noise: those that have the same of something."""
    return uncovered(
        "which rows are equal, and everything once the seed is known",
        f"Rows of a column that have {same} and the same index, or none, get equal noise: without "
        "with_indices=True any two of them; with it those that have one index in two splits, "
        "files, tables or shards of a stream, each of which counts from 0. The statement holds for "
        "inputs that agree in this.",
        before="Seeded noise: the statement holds only while the seed stays secret.",
        kind="equality_shows",
    )


def _memoized(memoize: str, unit: str, new: str, where: str, alike: str = "") -> Disclosure:
    """Say what a key makes equal, and as what it is looked up."""
    entry = f"One entry may stand for several {unit}s{alike}."
    if memoize == "row":
        same, subject = "equal rows become equal rows", "which rows are equal"
        equal = (
            f"Rows are equal if all that is released as it is, and the entries that the {unit}s "
            f"that are drawn anew are looked up as, are the same in the same order. {entry}"
        )
    else:
        same = f"a {unit} of a user becomes the same {new} everywhere,"
        subject = f"which {unit}s of a user are equal, and so how often each comes"
        equal = (
            f"{unit.capitalize()}s of a user are equal if they are looked up as the same entry. "
            f"{entry} Bounds add up over the different entries of a user."
        )
    return uncovered(
        f"{subject}, and everything once the key is known",
        "The statement holds for inputs that agree in this, and only while the key stays secret.",
        before=f"Memoized noise: {same} in every release under one key, ε, mechanism, {where} and "
        f"version of this package, which costs no more than the first. {equal}",
        kind="equality_shows",
    )


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
) -> tuple[Disclosure, ...]:
    """Return what a privatizer of texts releases beside the words.

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
    found: list[Said] = [
        uncovered(
            "the number of words and what stands between them (spaces, punctuation, symbols)",
            how=_AS_IT_IS,
        ),
        _out_of_vocabulary(oov, unknown),
        _BESIDE_THE_ROWS,
    ]
    if segmenter is not None:
        found.append(
            f"Runs without spaces are split into words by a public segmenter ({segmenter}). "
            "Where a word ends depends on what is beside it, so that another word there may "
            "change its neighbours or their number. The statement is about the words that are "
            "found: it holds for inputs that have as many of them, with the same text between "
            "them."
        )
    if shapes:
        found.append(_shaped(shapes))
    if stopwords:
        more = "The statement holds for inputs that have the same ones at the same places."
        found.append(uncovered(f"{stopwords} stop words", more, how=_AS_THEY_ARE))
    if case == "preserve":
        letters = "the letter case of every word (lower, Title or UPPER)"
        found.append(uncovered(letters, how=", released"))
    if seeded:
        # Shapes depend on what stands before a word.
        too = ", looked up as the same entries" * bool(shapes)
        found.append(_seeded(f"the same words{too}, whatever stands between them,"))
    if memoize is not None:
        alike = ": a word in several letter cases"
        if shapes:
            alike += ", all words out of vocabulary of one shape, such as numbers of one length"
        if oov == "centroid":
            alike += f", all {'other ' * bool(shapes)}words out of vocabulary"
        where = "space (with its lists of neighbours)"
        found.append(_memoized(memoize, "word", "word", where, alike))
    return conditions(found)


def shared_by_inputs(label: bool, seeded: bool, memoize: str | None) -> str:
    """Return what two inputs have to share for a statement to hold; nothing where it is empty."""
    equal = "inputs that agree in which rows are equal" if seeded or memoize == "row" else ""
    return ", in ".join(filter(None, ["one label" if label else "", equal]))


def token_disclosures(seeded: bool, unknown: str) -> tuple[Disclosure, ...]:
    """Return what a privatizer of token ids releases beside the tokens."""
    found: list[Said] = [
        "A word is protected by the sum over its tokens, since one word may be several of them.",
        uncovered(
            "the number of tokens, which special tokens (start, separator, padding, mask, …) there "
            "are, and where",
            how=_AS_IT_IS,
        ),
        uncovered(
            "other columns made from the text, such as the text itself, offset_mapping, or labels "
            "that hold token ids",
            how=", left as they are",
        ),
        "Tokens that the space lacks are replaced too, the one for unknown words among them: "
        f"all of them are one input, {unknown}.",
        _BESIDE_THE_ROWS,
        *[_seeded("the same tokens, special ones too,")] * seeded,
    ]
    return conditions(found)


def nested_disclosures(
    paths: Mapping[str, str], roles: Sequence[str] | None, seeded: bool, memoize: str | None
) -> tuple[Disclosure, ...]:
    """Return what a privatizer of texts in lists of dicts releases beside them.

    Args:
        paths: The path to the texts of each column.
        roles: The roles whose texts are covered; None for all.
        seeded: Whether the noise comes from a fixed seed.
        memoize: What is always released in the same way: "row", "user", or nothing.
    """
    found: list[Said] = [
        uncovered(
            f"all of column {column!r} but the texts at {path!r}",
            "That is how many messages and parts there are and which have no text, roles, names, "
            "times, reasoning in fields of its own, calls of tools with their arguments, results "
            "of tools in parts of their own, images, and every other field; they may quote the "
            "texts.",
            how=_AS_IT_IS,
        )
        for column, path in paths.items()
    ]
    found.append(
        "The bounds of the texts of a row add up. The statement holds for inputs that have as "
        "many texts at the same places."
    )
    if roles is not None:
        found.append(
            uncovered(
                "the texts of every other role, which may quote them, as answers do",
                before=f"Only texts of the role {' or '.join(map(repr, roles))} are perturbed.",
                how=_AS_THEY_ARE,
            )
        )
    if seeded or memoize == "row":
        found.append(
            "What makes rows equal is said of their perturbed texts here, one after the other, "
            "whatever else is in the column. A chat to which a message was added is another "
            "row, released anew."
        )
    return conditions(found)


def sentence_disclosures(
    unit: str,
    sizes: Sequence[int],
    bare: Sequence[Disclosure],
    *,
    seeded: bool,
    memoize: str | None = None,
    label_column: str | None = None,
    refilled: bool = False,
) -> tuple[Disclosure, ...]:
    """Say what a privatizer of whole texts or sentences rests on, and what it releases.

    Args:
        unit: "text" or "sentence".
        sizes: How many entries the pool has; with labels, how many of each.
        bare: What the mechanism says, of entries.
        seeded: Whether the noise comes from a fixed seed.
        memoize: What is always released in the same way: "row", "user", or nothing.
        label_column: The column of public labels by which the pool is restricted.
        refilled: Whether numbers, dates and names in what is released are drawn afresh.
    """
    units = f"{unit}s"
    among = " among those of its label" if label_column else ""
    found: list[Said] = [
        f"A {unit}, however long, is one input: its entry, which is the nearest of "
        f"{sum(sizes):,} public sentences{among}. Two {units} are as far apart as their "
        f"entries. A {unit} that the encoder has nothing for (empty, or in another script) has "
        "one more entry, the unknown one.",
        "The sentences, the encoder, its projection and the tree are public and were not made "
        f"from the private text, so that no {unit} changes the entry of another.",
        f"The noise of different {units} is independent; bounds of several {units} of one "
        "person, columns and releases add up.",
        *bare,
    ]
    if label_column:
        counts = " to ".join(f"{size:,}" for size in sorted({min(sizes), max(sizes)}))
        found.append(
            uncovered(
                f"the label of each row in column {label_column!r}, one of {len(sizes)}, with "
                f"{counts} entries each",
                f"The statement holds for {units} of one label, and nothing is promised between "
                "labels. Each figure is the largest that it is for any label.",
                how=_AS_IT_IS,
            )
        )
    if unit == "sentence":
        more = "The bounds of the sentences of a text add up."
        found.append(uncovered("the number of sentences of each text", more, how=_AS_IT_IS))
    if refilled:
        found.append(
            "Numbers, dates and names of people in a sentence that came out are drawn afresh, "
            "from noise of their own; that is post-processing and changes no bound."
        )
    found += [uncovered("which texts are missing", how=_AS_IT_IS), _BESIDE_THE_ROWS]
    if seeded:
        between = "s, whatever stands between them," if unit == "sentence" else ""
        found.append(_seeded(f"the same {unit}{between}"))
    if memoize is not None:
        found.append(_memoized(memoize, unit, "sentence", "pool"))
    return conditions(found)
