"""Selectors of slots by name, for command lines."""

from collections.abc import Iterable

from hf_dxprivacy import _validate
from hf_dxprivacy.slots import ContentWordSelector, LowTransitionSelector, Selector
from hf_dxprivacy.spaces import EmbeddingSpace

SELECTORS = ("every-word", "content-words", "low-transition")
# Words whose n-grams are counted: the most frequent ones of a public space, with the small words
# that carrier phrases are made of. More of them would need larger counts.
ALPHABET, ALPHABET_SIZE = "wordnet-gloss", 5000


def make_selector(name: str, texts: Iterable[str], epsilon: float | None) -> Selector | None:
    """Return what finds the slots.

    Args:
        name: "every-word" for no selector; "content-words" for all but stop words;
            "low-transition" for words that the released n-grams of the texts do not lead to.
        texts: What n-grams of the 5,000 most frequent words of "wordnet-gloss" are released from.
        epsilon: ε_g for one text, for "low-transition"; None counts exactly and promises nothing.

    Raises:
        InvalidValueError: If there is no such selector, or nothing is released.
    """
    _validate.one_of(SELECTORS, selector=name)
    if name == "content-words":
        return ContentWordSelector()
    if name == "low-transition":
        alphabet = EmbeddingSpace.from_pretrained(ALPHABET).words[:ALPHABET_SIZE]
        return LowTransitionSelector.fit(texts, epsilon=epsilon, alphabet=alphabet)
    return None
