"""Ways of releasing texts that a task compares: mechanisms, selectors of slots, and baselines."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from hf_dxprivacy.errors import require_one_of
from hf_dxprivacy.mechanisms import Mahalanobis, TruncatedExponential
from hf_dxprivacy.privatizers.text_privatizer import DxPrivatizer
from hf_dxprivacy.results import ORIGINAL
from hf_dxprivacy.slots import ContentWordSelector, LowTransitionSelector, Selector
from hf_dxprivacy.slots.slot_privatizer import SlotPrivatizer
from hf_dxprivacy.spaces import EmbeddingSpace

# What stands in the place of a mechanism in results.
RANDOM = "random"
# So small that no distance between words changes a probability by a billionth of itself.
EPSILON = 1e-12


def make_privatizer(
    space: EmbeddingSpace | str | Path,
    mechanism: str,
    epsilon: float,
    *,
    selector: Selector | None = None,
    **options: Any,
) -> DxPrivatizer:
    """Return a privatizer of every word, or of the slots that a selector finds.

    Args:
        space: As for `DxPrivatizer`, and so the other arguments.
        mechanism: Its name.
        epsilon: ε > 0, per unit of the mechanism's metric.
        selector: What finds the slots; None for every word.
        **options: All others.
    """
    if selector is None:
        return DxPrivatizer(space, mechanism, epsilon, **options)
    return SlotPrivatizer(space, mechanism, epsilon, selector=selector, **options)


def random_words(
    space: EmbeddingSpace | str | Path, *, selector: Selector | None = None, **options: Any
) -> DxPrivatizer:
    """Return a callable for `Dataset.map` that replaces words by words drawn at random.

    Every word of the space is equally likely, whatever the word replaced: the limit of an
    exponential mechanism for ε → 0, and the baseline of Feyisetan, Diethe, Drake (ICDM 2019).

    Args:
        space: As for `make_privatizer`.
        selector: What finds the words to replace; None for every word.
        **options: All others of `DxPrivatizer`.
    """
    name = TruncatedExponential.name
    return make_privatizer(space, name, EPSILON, selector=selector, **options)


SELECTORS = ("every-word", "content-words", "low-transition")
# Words whose n-grams are counted: the most frequent ones of a public space, with the small words
# that carrier phrases are made of. More of them would need larger counts.
ALPHABET, ALPHABET_SIZE = "wordnet-gloss", 5000


def make_selector(name: str, texts: Iterable[str], epsilon: float | None) -> Selector | None:
    """Return a selector of slots.

    Args:
        name: "every-word" for no selector; "content-words" for all but stop words;
            "low-transition" for words that the released n-grams of the texts do not lead to.
        texts: What n-grams of the 5,000 most frequent words of "wordnet-gloss" are released from.
        epsilon: ε_g for one text, for "low-transition"; None counts exactly and promises nothing.

    Raises:
        InvalidValueError: If there is no such selector, or nothing is released.
    """
    require_one_of(SELECTORS, selector=name)
    if name == "content-words":
        return ContentWordSelector()
    if name == "low-transition":
        alphabet = EmbeddingSpace.from_pretrained(ALPHABET).words[:ALPHABET_SIZE]
        return LowTransitionSelector.fit(texts, epsilon=epsilon, alphabet=alphabet)
    return None


BASELINES = (ORIGINAL, RANDOM)


@dataclass(frozen=True, eq=False)
class Version:
    """A version of the texts: as they are, random, or privatized.

    Attributes:
        name: The mechanism, with λ if it has one, or the baseline.
        epsilon: None for a baseline.
        privatizer: None for texts as they are.
        options: Of the mechanism.
    """

    name: str
    epsilon: float | None = None
    privatizer: DxPrivatizer | None = None
    options: dict[str, float] = field(default_factory=dict)


def versions(
    space: EmbeddingSpace,
    mechanisms: Iterable[str],
    epsilons: Iterable[float],
    *,
    baselines: Iterable[str] = BASELINES,
    lams: Iterable[float] = (1.0,),
    **options: Any,
) -> Iterator[Version]:
    """Return the baselines, then all mechanisms at all ε.

    Args:
        space: As for `DxPrivatizer`.
        mechanisms: Names, as for `DxPrivatizer`.
        epsilons: ε > 0, each for every mechanism, per unit of its metric.
        baselines: "none" for texts as they are, "random" for random words.
        lams: λ in [0, 1], each for "mahalanobis" alone.
        **options: Those of `make_privatizer` that all privatizers have.

    Raises:
        InvalidValueError: If a baseline or a mechanism is unknown, or a number out of range.
    """
    for name in baselines:
        require_one_of(BASELINES, baseline=name)
        yield Version(name, None, random_words(space, **options) if name == RANDOM else None)
    lams, epsilons = tuple(lams), tuple(epsilons)
    for name in mechanisms:
        for lam, epsilon in product(lams if name == Mahalanobis.name else (None,), epsilons):
            own: dict[str, Any] = {} if lam is None else {"lam": lam}
            label = name if lam is None else f"{name}, λ={lam:g}"
            privatizer = make_privatizer(space, name, epsilon, **options, **own)
            yield Version(label, epsilon, privatizer, own)
