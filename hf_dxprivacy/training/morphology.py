"""Base forms of inflected English words, by the exception lists and suffix rules of WordNet.

The rules are those of morphy(7WN).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hf_dxprivacy.training.wordnet import PARTS_OF_SPEECH, data_lines, garbled, read_senses

SUFFIX_RULES: Mapping[str, tuple[tuple[str, str], ...]] = {
    "noun": (
        ("s", ""),
        ("ses", "s"),
        ("xes", "x"),
        ("zes", "z"),
        ("ches", "ch"),
        ("shes", "sh"),
        ("men", "man"),
        ("ies", "y"),
    ),
    "verb": (
        ("s", ""),
        ("ies", "y"),
        ("es", "e"),
        ("es", ""),
        ("ed", "e"),
        ("ed", ""),
        ("ing", "e"),
        ("ing", ""),
    ),
    "adj": (("er", ""), ("est", ""), ("er", "e"), ("est", "e")),
    "adv": (),
}


@dataclass(frozen=True)
class Morphology:
    """What is needed to find base forms.

    Attributes:
        lemmas: For each part of speech, the words that WordNet defines.
        exceptions: For each part of speech, irregular forms with their base forms.
    """

    lemmas: Mapping[str, frozenset[str]]
    exceptions: Mapping[str, Mapping[str, tuple[str, ...]]]

    def bases(self, word: str) -> list[str]:
        """Return the base forms of a word in lower case, sorted; the word itself is not one.

        A possessive has the word before its apostrophe as a base.
        """
        found = {word[:-2]} if word.endswith("'s") else set()
        for part in PARTS_OF_SPEECH:
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
    """Read the index and exception files of a WordNet database.

    Args:
        path: Folder with ``index.*`` and ``*.exc`` for the four parts of speech.

    Raises:
        ArtifactError: If a file is missing or not a WordNet file.
    """
    return Morphology(
        lemmas={part: frozenset(read_senses(path, part)) for part in PARTS_OF_SPEECH},
        exceptions={part: _read_exceptions(Path(path) / f"{part}.exc") for part in PARTS_OF_SPEECH},
    )


def _read_exceptions(file: Path) -> dict[str, tuple[str, ...]]:
    exceptions = {}
    for number, line in data_lines(file):
        form, *bases = line.split()
        if not bases:
            raise garbled(file, number)
        exceptions[form] = tuple(bases)
    return exceptions
