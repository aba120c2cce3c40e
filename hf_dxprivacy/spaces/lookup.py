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
    missing = np.flatnonzero(ids < 0).tolist()
    for at, form in enumerate(LOOKUP_FORMS):
        ids[missing] = space.ids([form(words[i]) for i in missing])
        missing = [i for i in missing if ids[i] < 0]
        if at:
            # In ASCII the other forms change a possessive only.
            missing = [i for i in missing if "'" in words[i] or not words[i].isascii()]
    if space.shapes:
        starts = [*accumulate(map(len, present), initial=0)]
        for i in np.flatnonzero(ids < 0).tolist():
            at = bisect_right(starts, i) - 1
            place = i - starts[at]
            shape = shape_of(words[i], present[at].before(place), first=place == 0)
            ids[i] = space.ids([shape or ""])[0] if shape in space.shapes else -1
    return ids
