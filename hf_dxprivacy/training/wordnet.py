"""Reader of the database files of WordNet: synsets, their words, pointers and glosses.

The format is that of wndb(5WN); Debian's ``wordnet-base`` puts the files in ``/usr/share/wordnet``.
Every reader takes the folder of the files and raises `ArtifactError` if one that it needs is
missing or not in this format.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from hf_dxprivacy.errors import ArtifactError

LICENCE_FILE = "LICENSE-WordNet.txt"
DEFAULT_PATH = "/usr/share/wordnet"
PARTS_OF_SPEECH = ("noun", "verb", "adj", "adv")
LETTERS = {"noun": "n", "verb": "v", "adj": "a", "adv": "r"}
HYPERNYM_POINTERS = frozenset({"@", "@i"})

_REMEDY = (
    "expected the WordNet 3.0 database files, which Debian's package wordnet-base "
    "installs in /usr/share/wordnet"
)
_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)*")
_SYNTACTIC_MARKER = re.compile(r"\((?:a|p|ip)\)$")


class Pointer(NamedTuple):
    """A link between two synsets, or between one word of each.

    Attributes:
        symbol: The relation, e.g. ``"@"`` for hypernym.
        target: ``(part of speech, offset)`` of the synset pointed to.
    """

    symbol: str
    target: tuple[str, int]


@dataclass(frozen=True)
class Synset:
    """One entry of the database.

    Attributes:
        key: ``(part of speech, offset)``, which no other synset has.
        lemmas: The words of the set as written, with underscores between the parts.
        pointers: Links to other synsets.
        gloss: Definition and example sentences.
    """

    key: tuple[str, int]
    lemmas: tuple[str, ...]
    pointers: tuple[Pointer, ...]
    gloss: str

    def linked(self, symbols: Set[str]) -> list[tuple[str, int]]:
        """Return the keys of the synsets that these relations lead to."""
        return [link.target for link in self.pointers if link.symbol in symbols]

    def hypernyms(self) -> list[tuple[str, int]]:
        """Return the keys of the synsets that this one is a kind, or an instance, of."""
        return self.linked(HYPERNYM_POINTERS)


def words_of(text: str) -> list[str]:
    """Return the words of a text in lower case: letters, with apostrophes only between letters."""
    return _WORD.findall(text.lower())


def is_word(text: str) -> bool:
    """Return whether a text is one such word, and nothing else."""
    return _WORD.fullmatch(text.lower()) is not None


def read_licence(path: str | Path) -> str:
    """Return the licence, which WordNet prints with line numbers at the head of every file."""
    file = Path(path) / "data.noun"
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise ArtifactError(f"{file}: cannot be read ({error.strerror})") from error
    head = [line[2:].lstrip("0123456789 ").rstrip() for line in lines if line.startswith("  ")]
    return "\n".join(head) + "\n"


def wordnet_origin(path: str | Path) -> dict[str, Any]:
    """Return the provenance of WordNet's relations, with the licence that copies have to bear."""
    return {
        "source": "WordNet 3.0 (Princeton University)",
        "licence": "WordNet",
        "licence_file": LICENCE_FILE,
        "licence_text": read_licence(path),
        "language": "en",
    }


def read_synsets(path: str | Path, parts: tuple[str, ...] = PARTS_OF_SPEECH) -> list[Synset]:
    """Read the synsets of the files ``data.*``, part by part, in their order there.

    Raises:
        ArtifactError: Also if a synset points to one that is not there.
    """
    folder = Path(path)
    synsets: list[Synset] = []
    for part in parts:
        file, before = folder / f"data.{part}", len(synsets)
        for number, line in _lines(file):
            try:
                synsets.append(_parse(line))
            except (ValueError, IndexError) as error:
                raise _garbled(file, number) from error
        if len(synsets) == before:
            raise ArtifactError(f"{file} holds no synset; {_REMEDY}")
    known = {synset.key for synset in synsets}
    if len(known) != len(synsets):
        raise ArtifactError(f"two synsets in {folder} share one offset; {_REMEDY}")
    there = {part for part, _ in known}
    for synset in synsets:
        for _, (part, offset) in synset.pointers:
            if part in there and (part, offset) not in known:
                raise ArtifactError(
                    f"{folder}: synset {synset.key[1]:08d} ({synset.key[0]}) points to "
                    f"{offset:08d} ({part}), which is not there; {_REMEDY}"
                )
    return synsets


def _parse(line: str) -> Synset:
    head, bar, gloss = line.partition(" | ")
    if not bar:
        raise ValueError("a synset line without a gloss")
    fields = head.split()
    pointer_at = 4 + 2 * int(fields[3], 16)
    pointers = []
    for start in range(pointer_at + 1, pointer_at + 1 + 4 * int(fields[pointer_at]), 4):
        symbol, offset, part, words = fields[start : start + 4]
        int(words, 16)  # the words at either end, 0000 for the whole synsets
        pointers.append(Pointer(symbol, (_part(part), int(offset))))
    return Synset(
        key=(_part(fields[2]), int(fields[0])),
        lemmas=tuple(_SYNTACTIC_MARKER.sub("", word) for word in fields[4:pointer_at:2]),
        pointers=tuple(pointers),
        gloss=gloss.strip(),
    )


def _part(letter: str) -> str:
    # Satellite adjectives (s) live in data.adj under the same offsets as head adjectives (a).
    if letter not in ("n", "v", "a", "s", "r"):
        raise ValueError(f"unknown part of speech {letter!r}")
    return "a" if letter == "s" else letter


def _lines(file: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a database file with their numbers, without its licence."""
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise ArtifactError(f"{file} is missing; {_REMEDY}") from error
    except (OSError, UnicodeDecodeError) as error:
        raise ArtifactError(f"{file} cannot be read as WordNet text; {_REMEDY}") from error
    for number, line in enumerate(text.splitlines(), start=1):
        # The licence at the head of every file is indented by two blanks.
        if line and not line.startswith("  "):
            yield number, line


def _garbled(file: Path, number: int) -> ArtifactError:
    return ArtifactError(f"{file}, line {number}: not in the WordNet format; {_REMEDY}")


def read_senses(path: str | Path, part: str) -> dict[str, tuple[int, ...]]:
    """Read ``index.*``: for every lemma its synset offsets, most frequent sense first."""
    file = Path(path) / f"index.{part}"
    senses = {}
    for number, line in _lines(file):
        fields = line.split()
        try:
            # Lemma, part of speech, number of synsets, pointer symbols, two counts, offsets.
            offsets = tuple(map(int, fields[6 + int(fields[3]) :]))
            complete = int(fields[2]) == len(offsets) > 0
        except (ValueError, IndexError) as error:
            raise _garbled(file, number) from error
        if not complete:
            raise _garbled(file, number)
        senses[fields[0]] = offsets
    return senses


def read_tag_counts(path: str | Path) -> Counter[str]:
    """Read ``cntlist.rev``: uses of each single word in the texts that WordNet's authors tagged."""
    file = Path(path) / "cntlist.rev"
    counts: Counter[str] = Counter()
    for number, line in _lines(file):
        try:
            sense, _, uses = line.split()
            counts[sense.partition("%")[0]] += int(uses)
        except ValueError as error:
            raise _garbled(file, number) from error
    return Counter({word: uses for word, uses in counts.items() if is_word(word)})


# Endings of inflected forms, and those of the base form.
_ENDINGS = {
    "noun": "s: ses:s xes:x zes:z ches:ch shes:sh men:man ies:y",
    "verb": "s: ies:y es:e es: ed:e ed: ing:e ing:",
    "adj": "er: est: er:e est:e",
    "adv": "",
}
SUFFIX_RULES: Mapping[str, tuple[tuple[str, ...], ...]] = {
    part: tuple(tuple(rule.split(":")) for rule in rules.split())
    for part, rules in _ENDINGS.items()
}


@dataclass(frozen=True)
class Morphology:
    """Lemmas and exceptions that base forms are found with.

    Attributes:
        lemmas: For each part of speech, the words that WordNet defines.
        exceptions: For each part of speech, irregular forms with their base forms.
    """

    lemmas: Mapping[str, frozenset[str]]
    exceptions: Mapping[str, Mapping[str, tuple[str, ...]]]

    def bases(self, word: str, parts: Iterable[str] = PARTS_OF_SPEECH) -> list[str]:
        """Return the base forms of a word in lower case, sorted; the word itself is not one.

        A possessive has the word before its apostrophe as a base.
        """
        found = {word[:-2]} if word.endswith("'s") else set()
        for part in parts:
            found.update(self._bases(word, part))
        return sorted(found - {word})

    def _bases(self, word: str, part: str) -> list[str]:
        if word in self.exceptions[part]:
            return list(self.exceptions[part][word])
        stems = (
            word.removesuffix(suffix) + ending
            for suffix, ending in SUFFIX_RULES[part]
            if word.endswith(suffix) and len(word) > len(suffix) + 1
        )
        return [stem for stem in stems if stem in self.lemmas[part]]


def read_morphology(path: str | Path) -> Morphology:
    """Read the files ``index.*`` and ``*.exc`` of the four parts of speech."""
    exceptions: dict[str, dict[str, tuple[str, ...]]] = {part: {} for part in PARTS_OF_SPEECH}
    for part in PARTS_OF_SPEECH:
        file = Path(path) / f"{part}.exc"
        for number, line in _lines(file):
            form, *bases = line.split()
            if not bases:
                raise _garbled(file, number)
            exceptions[part][form] = tuple(bases)
    lemmas = {part: frozenset(read_senses(path, part)) for part in PARTS_OF_SPEECH}
    return Morphology(lemmas, exceptions)
