"""Writes a WordNet database of a few synsets, in the format of wndb(5WN)."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

PARTS = {"n": "noun", "v": "verb", "a": "adj", "r": "adv"}
HEADER = "  1 This stands where the licence does.  \n  2 It has two lines.  \n"


class Entry(NamedTuple):
    """A synset; pointers are (symbol, offset, part of speech)."""

    part: str
    offset: int
    lemmas: Sequence[str]
    gloss: str
    pointers: Sequence[tuple[str, int, str]] = ()

    def line(self) -> str:
        """Return its line of the data file."""
        words = " ".join(f"{lemma} 0" for lemma in self.lemmas)
        links = "".join(f"{symbol} {at:08d} {part} 0000 " for symbol, at, part in self.pointers)
        head = f"{self.offset:08d} 03 {self.part} {len(self.lemmas):02x} {words}"
        return f"{head} {len(self.pointers):03d} {links}| {self.gloss}  \n"


# entity > object > (food > (cheese > brie), dog = hound), (place > city > Paris); a second sense of
# food is a place, so that words and synsets differ.
NOUNS = (
    Entry("n", 1, ("entity",), "that which exists"),
    Entry("n", 2, ("object",), "an entity one can touch", [("@", 1, "n")]),
    Entry("n", 3, ("food", "solid_food"), "an object one can eat", [("@", 2, "n")]),
    Entry("n", 4, ("cheese",), 'food made of milk; "Brie is a cheese"', [("@", 3, "n")]),
    Entry("n", 5, ("Brie",), "soft cheese", [("@", 4, "n")]),
    Entry("n", 6, ("dog", "hound"), "an object that barks", [("@", 2, "n")]),
    Entry("n", 7, ("place",), "an entity to be at", [("@", 1, "n")]),
    Entry("n", 8, ("city",), "a large place", [("@", 7, "n")]),
    Entry("n", 9, ("Paris", "City_of_Light"), "a city in France", [("@i", 8, "n")]),
    Entry("n", 10, ("canteen", "food"), "a place to eat at", [("@", 7, "n")]),
)
OTHERS = (
    Entry("v", 1, ("eat",), 'take in food; "dogs don\'t eat cheese"'),
    Entry("a", 1, ("soft(p)",), "not hard; said of cheese"),
    Entry("r", 1, ("softly",), "in a soft way", [("\\", 1, "a")]),
)
EXCEPTIONS = {"verb": "ate eat\neaten eat\n"}


def write_wordnet(
    folder: Path,
    entries: Sequence[Entry] = NOUNS + OTHERS,
    tags: str = "dog%1:03:00:: 1 5\nparis%1:15:00:: 1 2\n",
    exceptions: Mapping[str, str] = EXCEPTIONS,
) -> Path:
    """Write all files of a database into a folder, which is created, and return it."""
    folder.mkdir(parents=True, exist_ok=True)
    for letter, part in PARTS.items():
        of_part = [entry for entry in entries if entry.part == letter]
        lines = "".join(entry.line() for entry in of_part)
        (folder / f"data.{part}").write_text(HEADER + lines)
        (folder / f"index.{part}").write_text(HEADER + _index(of_part, letter))
        (folder / f"{part}.exc").write_text(exceptions.get(part, ""))
    (folder / "cntlist.rev").write_text(tags)
    return folder


def _index(entries: Sequence[Entry], letter: str) -> str:
    senses: dict[str, list[int]] = {}
    for entry in entries:
        for lemma in entry.lemmas:
            senses.setdefault(lemma.partition("(")[0].lower(), []).append(entry.offset)
    return "".join(
        f"{lemma} {letter} {len(at)} 0 {len(at)} 0 {' '.join(f'{o:08d}' for o in at)}  \n"
        for lemma, at in sorted(senses.items())
    )
