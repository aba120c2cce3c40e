"""Relations held out of training, to see whether a space foresees them."""

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy import _validate
from hf_dxprivacy.errors import InvalidValueError
from hf_dxprivacy.training.relations import Relations


def split_relations(
    relations: Relations, share: float = 0.05, seed: int = 0
) -> tuple[Relations, Relations]:
    """Hold relations out at random without leaving a node alone.

    Args:
        relations: All relations.
        share: How many to hold out, as a share of all.
        seed: Of the draw.

    Returns:
        The relations to train on, in which every node has at least one that it had before, and
        those held out. Both have all nodes.

    Raises:
        InvalidValueError: If fewer than the share can be held out, or none.
    """
    _validate.between(0.0, 1.0, share=share)
    _validate.at_least(0, seed=seed)
    wanted = round(share * len(relations))
    order = np.random.default_rng(seed).permutation(len(relations))
    held = _spare(relations, order, wanted)
    if not wanted or held.sum() < wanted:
        raise InvalidValueError(
            f"expected to hold out {wanted} of {len(relations)} relations (share={share}), but "
            f"{held.sum()} can be spared; choose another share"
        )
    kept = Relations(relations.nodes, relations.pairs[~held])
    return kept, Relations(relations.nodes, relations.pairs[held])


def _spare(relations: Relations, order: NDArray[np.int64], wanted: int) -> NDArray[np.bool_]:
    """Mark relations, taken in order, whose two ends keep another one."""
    left = relations.degrees()
    held = np.zeros(len(relations), dtype=bool)
    for place in order:
        if wanted == 0:
            break
        ends = relations.pairs[place]
        if (left[ends] > 1).all():
            held[place] = True
            left[ends] -= 1
            wanted -= 1
    return held
