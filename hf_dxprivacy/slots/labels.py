"""Labels of slots, and the prefixes that tags put before them."""

import re
from collections.abc import Collection, Iterable

from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError

OUTSIDE = "O"

# Begin, inside, last or end, unit or single: IOB1, IOB2, BIOES and BILOU.
_PREFIX = re.compile(r"^[BILEUS]-(?=.)")


def selects(tag: str, labels: Collection[str] | None) -> bool:
    """Tell whether a tag, such as "B-PER", has one of the labels, or any if they are None."""
    if labels is None:
        return tag != OUTSIDE
    return not labels_of(tag).isdisjoint(labels)


def labels_of(tag: str) -> set[str]:
    """Return what a tag may be called: itself, and itself without prefix; "O" is no label."""
    return {tag, _PREFIX.sub("", tag, count=1)} - {OUTSIDE}


def chosen_labels(
    labels: Collection[str] | None, tags: Iterable[str] | None
) -> tuple[str, ...] | None:
    """Return labels in a fixed order, after a check.

    Args:
        labels: What a user asked for; None for all.
        tags: All tags that there are, if known.

    Raises:
        InvalidTypeError: If it is no collection of strings.
        InvalidValueError: If it is empty, or there is no tag with one of the labels.
    """
    if labels is None:
        return None
    if isinstance(labels, str) or not all(isinstance(label, str) for label in labels):
        raise InvalidTypeError(f'expected labels to be names, as in ["PER", "LOC"], got {labels!r}')
    if not labels:
        raise InvalidValueError("expected at least one label, or None for all")
    known = set(labels) if tags is None else set[str]().union(*map(labels_of, tags))
    if unknown := sorted(set(labels) - known):
        raise InvalidValueError(
            f"there is no label {unknown[0]!r}; there are {', '.join(map(repr, sorted(known)))}"
        )
    return tuple(sorted(set(labels)))
