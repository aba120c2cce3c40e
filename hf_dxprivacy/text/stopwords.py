"""Stop words: words that a caller may choose to keep.

The list is part of what a guarantee says (these words are released), so it is short, fixed and kept
here: the function words of English, and no word that has a content of its own. Published lists
differ between versions and contain words such as "bill", "computer" or "fire".
"""

from collections.abc import Iterable

from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError
from hf_dxprivacy.text.segmentation import RowReader, plain_apostrophes
from hf_dxprivacy.text.segmenters import WORDS

ENGLISH = frozenset(
    """
    a about above after again against all am an and any are aren't as at be because been before
    being below between both but by can can't cannot could couldn't did didn't do does doesn't doing
    don't down during each few for from further had hadn't has hasn't have haven't having he he'd
    he'll he's her here here's hers herself him himself his how how's i i'd i'll i'm i've if in into
    is isn't it it's its itself let's me more most mustn't my myself no nor not of off on once only
    or other ought our ours ourselves out over own same shan't she she'd she'll she's should
    shouldn't so some such than that that's the their theirs them themselves then there there's
    these they they'd they'll they're they've this those through to too under until up very was
    wasn't we we'd we'll we're we've were weren't what what's when when's where where's which while
    who who's whom why why's will with won't would wouldn't you you'd you'll you're you've your
    yours yourself yourselves
    """.split()
)


def stop_words(
    choice: str | Iterable[str] | None, tokens: bool = True, segmenter: str = WORDS
) -> frozenset[str]:
    """Return the words that are released as they are, in the form in which they are compared.

    Args:
        choice: None for no word, "english" for the list of this module, or words.
        tokens: Whether they may be tokens, which hold what would split a text.
        segmenter: What splits texts.

    Returns:
        The words, normalized, in lower case and with typewriter apostrophes.

    Raises:
        InvalidValueError: If a name other than "english" is given, or a word is none.
        InvalidTypeError: If it is neither None, a name nor strings.
    """
    if choice is None:
        return frozenset()
    if isinstance(choice, str):
        if choice != "english":
            raise InvalidValueError(
                f"expected stopwords to be None, 'english' or words; got {choice!r}; pass words as "
                f"a list, as in [{choice!r}]"
            )
        return ENGLISH
    words = list(choice) if isinstance(choice, Iterable) else [None]
    if not all(isinstance(word, str) for word in words):
        raise InvalidTypeError(
            "expected stopwords to be None, 'english' or strings, as in ['the', 'of']; "
            f"got a {type(choice).__name__}"
        )
    normal = frozenset(map(RowReader.normalize, words))
    segment = RowReader(segmenter).segment
    never = [] if tokens else [repr(w) for w in sorted(normal) if segment(w) != ["", w, ""]]
    if never:
        shown = ", ".join(never[:5] + ["…"] * (len(never) > 5))
        raise InvalidValueError(
            f"stopwords has what is never one word of a text: {shown}; texts are "
            "split at spaces, hyphens and other punctuation, and by segmenter=; give stopwords= "
            "one word at a time, or say is_split_into_words=True if the data are lists of tokens"
        )
    return frozenset(map(plain_apostrophes, normal))
