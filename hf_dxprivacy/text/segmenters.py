"""Segmenters of scripts without spaces: Chinese words by the dictionary of jieba.

A segmenter is public, and pinned by its identity: the version of the library and a digest of its
dictionary. Words are those of the dictionary on the likeliest path through a run of characters, and
single characters where it has none. The hidden Markov model that joins such characters to new words
is off: these would be out of any vocabulary.
"""

import hashlib
import re
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError, require

WORDS = "words"
NAMES = (WORDS, "jieba")

_HAN = "[\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af]"
_SOME = re.compile(_HAN)
_RUNS = re.compile(f"({_HAN}+)")
# What only words that are addresses hold.
_ADDRESS = re.compile(r"@|://|www\.", re.IGNORECASE)
# jieba keeps some hundred bytes for each character of a run; a longer one is cut.
LONGEST = 10_000


def identity(segmenter: str) -> str:
    """Return the identity of an installed segmenter, as in "jieba 0.42.1, dictionary 7197c3211dd".

    Args:
        segmenter: A name, or an identity, which must be the installed one.

    Raises:
        InvalidValueError: If there is no such segmenter, or another version is installed.
        MissingExtraError: If it is not installed.
    """
    if not isinstance(segmenter, str):
        raise InvalidTypeError(
            f"expected segmenter to be a name, got a {type(segmenter).__name__}; texts that other "
            "programs have split go in as lists of tokens"
        )
    name = segmenter.partition(" ")[0]
    if name not in NAMES:
        raise InvalidValueError(
            f"expected segmenter to be one of {', '.join(map(repr, NAMES))}, got {segmenter!r}; "
            "texts that other programs have split go in as lists of tokens"
        )
    found = WORDS if name == WORDS else _jieba()[1]
    if segmenter not in (name, found):
        raise InvalidValueError(
            f"expected the segmenter {segmenter!r}, which decides where words end, got {found!r}, "
            f"which is installed; run: pip install {segmenter.partition(',')[0].replace(' ', '==')}"
        )
    return found


def splitter(segmenter: str) -> Callable[[list[str]], list[str]] | None:
    """Return a function that splits the words of separators and words in turn; None if none needs.

    Args:
        segmenter: As for `identity`, and with the same errors.
    """
    if identity(segmenter) == WORDS:
        return None
    tokenizer = _jieba()[0]()

    def cut(run: str) -> list[str]:
        parts = (run[start : start + LONGEST] for start in range(0, len(run), LONGEST))
        return [word for part in parts for word in tokenizer.cut(part, HMM=False)]

    def split(pieces: list[str]) -> list[str]:
        found = pieces[:1]
        for word, after in zip(pieces[1::2], pieces[2::2], strict=True):
            parts = [word] if _SOME.search(word) is None else _parts(word, cut)
            for part in parts:
                found += [part, ""]
            found[-1] = after
        return found

    return split


def _parts(word: str, cut: Callable[[str], list[str]]) -> list[str]:
    """Split a word that has Han characters; of an address, those before and after it."""
    runs = _RUNS.split(word)
    if _ADDRESS.search(word):
        start, stop = 2 * (not runs[0]), len(runs) - 2 * (not runs[-1])
        runs[start:stop] = ["".join(runs[start:stop])]
    return [part for run in runs for part in (cut(run) if _SOME.match(run) else [run]) if part]


@cache
def _jieba() -> tuple[Callable[[], Any], str]:
    """Return what makes a tokenizer of its own, and the identity.

    jieba's global tokenizer may have words of the user's, and a cache in the folder for temporary
    files, where others can put one.
    """
    with warnings.catch_warnings():
        # Of its own syntax and of pkg_resources.
        warnings.simplefilter("ignore")
        jieba = require("jieba", "chinese")
    with jieba.Tokenizer().get_dict_file() as file:
        digest = hashlib.sha256(file.read()).hexdigest()

    @cache
    def make() -> Any:
        tokenizer = jieba.Tokenizer()
        words = jieba.Tokenizer.gen_pfdict(tokenizer.get_dict_file())
        tokenizer.FREQ, tokenizer.total = words
        tokenizer.initialized = True
        return tokenizer

    return make, f"jieba {jieba.__version__}, dictionary {digest[:12]}"
