"""Relations held out of training, to see whether a space foresees them."""

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy import _validate
from hf_dxprivacy._optional import require
from hf_dxprivacy.errors import InvalidValueError
from hf_dxprivacy.training.relations import Relations


def split_relations(
    relations: Relations, share: float = 0.05, seed: int = 0
) -> tuple[Relations, Relations]:
    """Hold relations out at random without leaving nodes alone or taking a part off the others.

    Args:
        relations: All relations.
        share: How many to hold out, as a share of all.
        seed: Of the draw.

    Returns:
        The relations to train on, by which nodes are joined, perhaps through others, that were
        joined before, and those held out. Both have all nodes.

    Raises:
        InvalidValueError: If fewer than the share can be held out, or none.
        MissingExtraError: If SciPy is not installed.
    """
    _validate.between(0.0, 1.0, share=share)
    _validate.at_least(0, seed=seed)
    wanted = round(share * len(relations))
    rng = np.random.default_rng(seed)
    spare = _spare(relations, rng)
    if not wanted or len(spare) < wanted:
        raise InvalidValueError(
            f"expected to hold out {wanted} of {len(relations)} relations (share={share}), but "
            f"{len(spare)} can be spared; choose another share"
        )
    held = np.zeros(len(relations), dtype=bool)
    held[rng.choice(spare, wanted, replace=False)] = True
    kept = Relations(relations.nodes, relations.pairs[~held])
    return kept, Relations(relations.nodes, relations.pairs[held])


def _spare(relations: Relations, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return the rows of all relations but those of a random tree over each part."""
    require("scipy", "train")
    from scipy import sparse

    rows = rng.permutation(len(relations))
    # Of two relations between the same nodes the tree can have one.
    ends, first = np.unique(np.sort(relations.pairs[rows], axis=1), axis=0, return_index=True)
    size = (len(relations.nodes), len(relations.nodes))
    links = sparse.coo_array((first + 1.0, (ends[:, 0], ends[:, 1])), shape=size)
    tree = sparse.csgraph.minimum_spanning_tree(links)
    return np.setdiff1d(np.arange(len(relations)), rows[tree.data.astype(np.int64) - 1])
