"""Rows of a vocabulary for the words of texts."""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy.spaces.space import EmbeddingSpace
from hf_dxprivacy.text import LOOKUP_FORMS, Row, shape_of


def look_up_rows(rows: Sequence[Row | None], space: EmbeddingSpace) -> NDArray[np.int64]:
    """Return (m,) rows of the vocabulary of the words of all rows.

    A word is looked up as it is, then in each of `LOOKUP_FORMS`, then by its shape if the space
    has shapes.

    Args:
        rows: Segmented cells; None for a missing one.
        space: Where to look; −1 stands for a word that it lacks in every form, and whose shape is
            none or not among its own.
    """
    present = [row for row in rows if row is not None]
    words = [word for row in present for word in row.words]
    ids = space.ids(words)
    unknown = np.flatnonzero(ids < 0).tolist()
    missing = dict.fromkeys((words[i] for i in unknown), -1)
    left = [*missing]
    for at, form in enumerate(LOOKUP_FORMS):
        missing.update(zip(left, space.ids(map(form, left)).tolist(), strict=True))
        left = [word for word in left if missing[word] < 0]
        if at:
            # In ASCII the other forms change a possessive only.
            left = [word for word in left if "'" in word or not word.isascii()]
    ids[unknown] = [missing[words[i]] for i in unknown]
    if space.shapes:
        starts = [*accumulate(map(len, present), initial=0)]
        for i in np.flatnonzero(ids < 0).tolist():
            at = bisect_right(starts, i) - 1
            place = i - starts[at]
            shape = shape_of(words[i], present[at].before(place), first=place == 0)
            ids[i] = space.ids([shape or ""])[0] if shape in space.shapes else -1
    return ids
