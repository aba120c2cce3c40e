"""What privatizers of texts and tokens release beside what they draw."""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from hf_dxprivacy.guarantee import TOKEN, Disclosure, uncovered, upward
from hf_dxprivacy.text.segmenters import WORDS

if TYPE_CHECKING:
    from hf_dxprivacy.privatizers.privatizer import Privatizer
    from hf_dxprivacy.privatizers.text_privatizer import DxPrivatizer
    from hf_dxprivacy.privatizers.token_privatizer import TokenPrivatizer

AS_IT_IS, AS_THEY_ARE = ", released as it is", ", released as they are"
# What two inputs have to share under a seed, or a key for rows.
EQUAL_ROWS = "inputs that agree in which rows are equal"

BESIDE_THE_ROWS = uncovered(
    "other columns, and what `datasets` keeps beside the rows",
    "That is fingerprints, sizes and checksums of the originals in a save_to_disk folder, and the "
    "originals in its cache: publish what hf_dxprivacy.publishable(dataset, privatizer) returns.",
    kind="traces",
)
_OUT_OF_VOCABULARY = {
    "drop": uncovered(
        "where words out of vocabulary were",
        "The statement holds for inputs that have them at the same places.",
        before="Words out of vocabulary are removed.",
    ),
    "keep": uncovered(
        'words out of vocabulary (oov="keep")',
        before="HOLE: words out of vocabulary are released unchanged, without any guarantee.",
        kind="hole",
    ),
}
# What a space has shapes for, by one of them.
_KINDS = {"<decimal>": "numbers", "<email>": "codes, addresses", "<name>": "capitalized words"}


def _shaped(shapes: Collection[str]) -> Disclosure:
    kinds = [kind for shape, kind in _KINDS.items() if shape in shapes] or ["dates, times"]
    listed = " and ".join(filter(None, [", ".join(kinds[:-1]), kinds[-1]]))
    text = (
        f"{listed[:1].upper()}{listed[1:]} out of vocabulary are inputs by their shape: all of one "
        "shape are one input, and a shape that comes out is released as a random word of it."
    )
    if "<name>" in shapes:
        text += (
            " A capitalized word at the start of a text, or after one of . ! ? : ; …, a quotation "
            "mark, an opening bracket or a line break (as in 'Dr. Xu'), has no shape: it is an "
            "input as any other word out of vocabulary."
        )
    return Disclosure(text)


def seeded(same: str) -> Disclosure:
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


def memoized(memoize: str, unit: str, new: str, where: str, alike: str = "") -> Disclosure:
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


def of_texts(privatizer: "DxPrivatizer") -> list[Disclosure]:
    """Return what a privatizer of texts releases beside the words."""
    shapes, oov = privatizer.space.shapes, privatizer.oov
    unknown = privatizer.mechanism.unknown_input()
    replaced = f"Words out of vocabulary are replaced too: all of them are one input, {unknown}."
    between = "the number of words and what stands between them (spaces, punctuation, symbols)"
    found = [
        uncovered(between, how=AS_IT_IS),
        _OUT_OF_VOCABULARY.get(oov, Disclosure(replaced)),
        BESIDE_THE_ROWS,
    ]
    if privatizer.segmenter != WORDS:
        split = (
            "Runs without spaces are split into words by a public segmenter "
            f"({privatizer.segmenter}). Where a word ends depends on what is beside it, so that "
            "another word there may change its neighbours or their number. The statement is about "
            "the words that are found: it holds for inputs that have as many of them, with the "
            "same text between them."
        )
        found.append(Disclosure(split))
    if shapes:
        found.append(_shaped(shapes))
    if privatizer.stopwords:
        more = "The statement holds for inputs that have the same ones at the same places."
        found.append(uncovered(f"{len(privatizer.stopwords)} stop words", more, how=AS_THEY_ARE))
    if privatizer.case == "preserve":
        letters = "the letter case of every word (lower, Title or UPPER)"
        found.append(uncovered(letters, how=", released"))
    if privatizer.seed is not None:
        # Shapes depend on what stands before a word.
        too = ", looked up as the same entries" * bool(shapes)
        found.append(seeded(f"the same words{too}, whatever stands between them,"))
    if privatizer.memoize is not None:
        alike = ": a word in several letter cases"
        if shapes:
            alike += ", all words out of vocabulary of one shape, such as numbers of one length"
        if oov == "centroid":
            alike += f", all {'other ' * bool(shapes)}words out of vocabulary"
        where = "space (with its lists of neighbours)"
        found.append(memoized(privatizer.memoize, "word", "word", where, alike))
    return found


def of_tokens(privatizer: "TokenPrivatizer") -> list[Disclosure]:
    """Return what a privatizer of token ids releases beside the tokens."""
    return [
        Disclosure(
            "A word is protected by the sum over its tokens, since one word may be several of them."
        ),
        uncovered(
            "the number of tokens, which special tokens (start, separator, padding, mask, …) there "
            "are, and where",
            how=AS_IT_IS,
        ),
        uncovered(
            "other columns made from the text, such as the text itself, offset_mapping, or labels "
            "that hold token ids",
            how=", left as they are",
        ),
        Disclosure(
            "Tokens that the space lacks are replaced too, the one for unknown words among them: "
            f"all of them are one input, {privatizer.mechanism.unknown_input(TOKEN)}."
        ),
        BESIDE_THE_ROWS,
        *[seeded("the same tokens, special ones too,")] * (privatizer.seed is not None),
    ]


# What is not covered of calls of tools, without and with a path into them.
_CALLS = ("calls of tools with their arguments", "all else in calls of tools")


def of_nested(privatizer: "Privatizer", paths: Mapping[str, object]) -> list[Disclosure]:
    """Return what is released beside texts in lists of dicts, by their paths."""
    found = [
        uncovered(
            f"all of column {column!r} but the texts at {str(path)!r}",
            "That is how many messages and parts there are and which have no text, roles, names, "
            f"times, reasoning in fields of its own, {_CALLS['_call' in str(path)]}, results of "
            "tools in parts of their own, images, and every other field; they may quote the texts.",
            how=AS_IT_IS,
        )
        for column, path in paths.items()
    ]
    places = (
        "The bounds of the texts of a row add up. The statement holds for inputs that have as many "
        "texts at the same places."
    )
    found.append(Disclosure(places))
    if privatizer.roles is not None:
        only = f"Only texts of the role {' or '.join(map(repr, privatizer.roles))} are perturbed."
        others = "the texts of every other role, which may quote them, as answers do"
        found.append(uncovered(others, before=only, how=AS_THEY_ARE))
    if privatizer.seed is not None or privatizer.memoize == "row":
        equal = (
            "What makes rows equal is said of their perturbed texts here, one after the other, "
            "whatever else is in the column. A chat to which a message was added is another row, "
            "released anew."
        )
        found.append(Disclosure(equal))
    return found


def of_fits(epsilon: float) -> Disclosure:
    """Say what n-grams add that were released from the same texts, with ε_g = `epsilon` in all."""
    one, two = upward(epsilon, 6), upward(2 * epsilon, 6)
    return uncovered(
        "what a text tells through the n-grams, if it is one of their corpus",
        f"Every release then depends on it: to each log-ratio ε_g = {one} is added for a text that "
        f"is there or not, and 2·ε_g = {two} for one that is another. `bound` adds {two} for each "
        "text that differs, whether the corpus holds it or not.",
        how=" by ε·d",
    )
