"""The baseline that every mechanism should beat: random words."""

from pathlib import Path
from typing import Any

from hf_dxprivacy.mechanisms import TruncatedExponential
from hf_dxprivacy.privatizer import DxPrivatizer
from hf_dxprivacy.slot_privatizer import SlotPrivatizer
from hf_dxprivacy.slots import Selector
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
        space: As for `DxPrivatizer`.
        mechanism: As for `DxPrivatizer`.
        epsilon: ε > 0, per unit of the mechanism's metric.
        selector: What finds the slots; None for every word.
        **options: All others of `DxPrivatizer`.
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
        space: As for `DxPrivatizer`.
        selector: What finds the words to replace; None for every word.
        **options: All others of `DxPrivatizer`.
    """
    name = TruncatedExponential.name
    return make_privatizer(space, name, EPSILON, selector=selector, **options)
