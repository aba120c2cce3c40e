"""Refilled sentences: numbers, dates and names of people in a sentence, drawn afresh.

A reader of a public sentence in place of a text may take its numbers and names for facts of the
text; drawn anew they state none. What is refilled is found in the sentence alone, by rules that
keep a word where in doubt: rates such as "8/10", codes such as "B2B", and names that are also
places or ordinary words stay.
"""

import re
from collections.abc import Iterator
from functools import cache

import numpy as np

from hf_dxprivacy.text.segmentation import RowReader, TextRow
from hf_dxprivacy.text.shapes import public_names, render, shape_of

# Names that go with any pronoun, and surnames.
GIVEN = (
    *("Alex", "Andy", "Avery", "Bobby", "Casey", "Charlie", "Chris", "Dana", "Eddie", "Frankie"),
    *("Jackie", "Jamie", "Jesse", "Kelly", "Kim", "Lee", "Leslie", "Max", "Morgan", "Nicky"),
    *("Pat", "Quinn", "Riley", "Robin", "Rowan", "Sam", "Stevie", "Taylor", "Terry", "Tracy"),
)
SURNAMES = (
    *("Adams", "Allen", "Anderson", "Brown", "Campbell", "Clark", "Davis", "Evans", "Garcia"),
    *("Gonzalez", "Harris", "Hernandez", "Jackson", "Johnson", "Jones", "Lewis", "Lopez"),
    *("Martin", "Martinez", "Miller", "Mitchell", "Moore", "Nguyen", "Perez", "Roberts"),
    *("Robinson", "Sanchez", "Scott", "Smith", "Thomas", "Thompson", "Walker", "Wilson", "Wright"),
)
# Names that are seldom a person where they stand alone.
_AMBIGUOUS = frozenset(
    "Alexandria Amber Angel April Archer Austin Autumn Baker Barber Bass Bean Beard Bell Bird"
    " Bishop Bond Booth Branch Bridges Brock Brooks Buck Burns Bush Carter Chad Chan Chandler"
    " Charlotte Chase Chelsea Christian Cook Crystal Dakota Dawn Dean Destiny Diamond Drew Duke"
    " Duran English Farmer Fisher Ford Francisco French Frost Gates Gilmore Golden Grace Grant"
    " Hall Hardy Heather Hill Holland Holly Hood Horn Houston Hunter Jackson Jade Jasmine Jean"
    " Jesus Jordan Joy Kent King Knight Lamb Lane Lin Madison Mann Mario Marks Marsh Marshall"
    " Mason Max Meadows Melody Mercedes Mercer Mills Misty Moon Moss Noble Oscar Parker Parks"
    " Pitts Pope Porter Potter Powers Prince Ray Reed Rice Rivers Robin Roman Rose Rush Sandy"
    " Santiago Santos Savannah Sharp Shepherd Shields Sierra Silva Skinner Sparks Stark Stout"
    " Summers Sydney Tiffany Turner Valentine Victoria Villa Virginia Wade Walls Washington"
    " Waters Wells Wise Wolf Wolfe Woods York".split()
)
_TITLES = frozenset({"mr", "mrs", "ms", "miss", "dr", "doctor", "professor", "prof", "sir", "aunt"})
_MONTHS = re.compile(
    r"(?:jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)\w{0,6}|march|april|may|june|july", re.I
)
_PLAIN_NAME = re.compile(r"([A-Z][a-z]+)(['’]s)?")
_REFILLED = re.compile(r"<(?:number:[1-9]|year|ordinal|time|date|amount|decimal)>")
# Every sentence with something to refill matches.
_MAYBE = re.compile(r"\d|[A-Z][a-z]")
# A number up to the next space, or what may be a name.
_REFILLABLE = re.compile(r"\d\S*|[A-Z][a-z]+")
# More capitalized words in a row are taken for a headline.
LONGEST_NAME = 3


def refill(sentence: str, rng: np.random.Generator) -> str:
    """Return a sentence with its numbers, dates and names of people drawn afresh.

    Equal names stay equal to each other. A sentence without any of them is returned as it is.

    Args:
        sentence: A public sentence.
        rng: Source of what is drawn.
    """
    if not _MAYBE.search(sentence):
        return sentence
    row = _reader().read_text(sentence)
    words = list(row.words)
    for at, word in enumerate(row.words):
        shape = shape_of(word, row.before(at), at == 0) if word[0].isdecimal() else None
        if shape is not None and _REFILLED.fullmatch(shape) and not _is_rate(row, at):
            words[at] = _number(row, at, shape, rng)
    names: dict[str, str] = {}
    for run, is_surname in _people(row):
        for place, at in enumerate(run):
            found = _PLAIN_NAME.fullmatch(row.words[at])
            assert found is not None
            last = is_surname or (place > 0 and place == len(run) - 1)
            if found[1] not in names:
                choices = SURNAMES if last else GIVEN
                names[found[1]] = choices[rng.integers(len(choices))]
            words[at] = names[found[1]] + (found[2] or "")
    return row.detokenize(words)


def masked(sentence: str) -> str:
    """Return a sentence without whatever `refill` may change, and the same of it refilled."""
    return _REFILLABLE.sub(lambda found: "0" if found[0][0].isdecimal() else "A", sentence)


@cache
def _reader() -> RowReader:
    return RowReader()


def _is_rate(row: TextRow, at: int) -> bool:
    """Whether a number is one of two that belong together, as in "7 out of 10"."""
    between = [row.words[k : k + 2] for k in (at + 1, max(0, at - 2))]
    return ["out", "of"] in [[word.lower() for word in pair] for pair in between]


def _number(row: TextRow, at: int, shape: str, rng: np.random.Generator) -> str:
    """Draw a number in the place of one: percents are below 100, days of a month below 29."""
    word, after = row.words[at], row.separators[at + 1]
    beside = (row.words[k] for k in (at - 1, at + 1) if 0 <= k < len(row.words))
    if shape in ("<number:1>", "<number:2>", "<number:3>") and after.startswith("%"):
        return str(rng.integers(1, 100))
    if shape == "<number:2>" and any(map(_MONTHS.fullmatch, beside)):
        return str(rng.integers(10, 29))
    if shape == "<number:1>":
        # Neither none of a thing nor a single one, whose noun has another form.
        return word if word in "01" else str(rng.integers(2, 10))
    if shape == "<year>":
        year = int(rng.integers(1950, 2025))
        return f"{year - year % 10}{word[4:]}" if word[4:] else str(year)
    if shape in ("<decimal>", "<amount>"):
        # As large as it was; a zero before the point stays.
        return re.sub(r"(?<!^)\d|[1-9]", lambda d: str(rng.integers(int(not d.start()), 10)), word)
    if shape == "<time>" and word[-1] in "mM":
        return f"{rng.integers(1, 13)}{word[-2:]}"
    return render(shape, rng.random(12).tolist())


def _people(row: TextRow) -> Iterator[tuple[range, bool]]:
    """Return the runs of words that are names of people, and whether each is a bare surname."""
    words, at = row.words, 0
    while at < len(words):
        stop = at
        while stop < len(words) and _PLAIN_NAME.fullmatch(words[stop]):
            stop += 1
            # A possessive ends a name, and so does anything but a single space.
            if words[stop - 1][-2:] in ("'s", "’s") or row.separators[stop] != " ":
                break
        if stop > at:
            starts = at + (stop - at > 1 and words[at].lower() in _TITLES)
            titled = starts > at or (at > 0 and words[at - 1].lower() in _TITLES)
            first = words[starts].removesuffix("'s").removesuffix("’s")
            known = first in public_names() and first not in _AMBIGUOUS
            joined = "-" in (row.separators[at][-1:], row.separators[stop][:1])
            if stop - starts <= LONGEST_NAME and (titled or known) and not joined:
                yield range(starts, stop), titled and stop - starts == 1
        at = max(stop, at + 1)
