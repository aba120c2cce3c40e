"""Which nodes are nearest to each node without being classes of it; compiled by numba in part."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import threadpoolctl
from numpy.typing import NDArray

from hf_dxprivacy._optional import require
from hf_dxprivacy.spaces.poincare import lorentz_image
from hf_dxprivacy.training.negatives import Graph
from hf_dxprivacy.training.recipe import PoincareRecipe

if TYPE_CHECKING:
    from hf_dxprivacy.training.descent import State

numba: Any = require("numba", "train")

# How many are listed for each node, and for how many epochs: as the points move, others come near.
LISTED = 256
EPOCHS = 10

# Nodes at once: a row has a distance to every node. The same for any number of threads, since sums
# in other blocks may be rounded in another way.
BLOCK = 32

# One key in so many of a row is in the sample of it.
SPACING = 64


class NearestLists:
    """Keeps the lists of a training, which are made anew every few epochs of its refinement.

    Args:
        graph: Relations.
        recipe: Settings.
        threads: Threads to make lists with.
        in_ball: Maps the coordinates that are trained to the ball.
    """

    def __init__(
        self,
        graph: Graph,
        recipe: PoincareRecipe,
        threads: int,
        in_ball: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    ) -> None:
        self._graph = graph
        self._recipe = recipe
        self._threads = threads
        self._in_ball = in_ball
        self._points: NDArray[np.float64] | None = None
        self._lists = graph.nearest

    def at(self, state: "State") -> NDArray[np.int32]:
        """Return the lists for the next epoch, without columns before the refinement."""
        if not self._recipe.refines(state.epoch):
            return self._graph.nearest
        if (state.epoch - self._recipe.epochs) % EPOCHS == 0:
            state.listed = state.points.copy()
        # A training that goes on from a checkpoint makes the same lists as the one that wrote it.
        if self._points is not state.listed and state.listed is not None:
            self._points = state.listed
            self._lists = nearest_others(self._in_ball(state.listed), self._graph, self._threads)
        return self._lists


def nearest_others(
    points: NDArray[np.float64], graph: Graph, threads: int, listed: int = LISTED
) -> NDArray[np.int32]:
    """Return the nearest nodes that are neither the node itself nor classes of it, in order.

    Args:
        points: (N, n) points of the ball.
        graph: Relations.
        threads: Threads; the lists are the same for any number.
        listed: How many for each node; fewer if a node has not that many others.

    Returns:
        (N, k) rows.
    """
    images = lorentz_image(points)
    others = len(points) - 1 - int((graph.starts[1:] - graph.starts[:-1]).max())
    lists = np.empty((len(points), min(listed, others)), dtype=np.int32)
    # cosh d = t·t' − x·x'. Far out it is rounded coarsely, which is good enough for drawing.
    mirrored = np.ascontiguousarray(np.concatenate([images[:, :1], -images[:, 1:]], axis=1).T)

    def work(start: int) -> None:
        block = slice(start, start + BLOCK)
        pick(images[block] @ mirrored, start, graph, lists)

    with threadpoolctl.threadpool_limits(1), ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, range(0, len(points), BLOCK)))
    return lists


def _pick(keys: NDArray[np.float64], first: int, graph: Graph, lists: NDArray[np.int32]) -> None:
    """Fill the lists of the nodes from `first` on with the smallest keys of each row."""
    wanted = lists.shape[1]
    places = np.empty(keys.shape[1], dtype=np.int64)
    for offset in range(len(keys)):
        node, row = first + offset, keys[offset]
        row[node] = np.inf
        for place in range(graph.starts[node], graph.starts[node + 1]):
            row[graph.classes[place]] = np.inf
        # A sample says below which key about twice as many are as wanted.
        sample = np.sort(row[node % SPACING :: SPACING])
        rank = 2 * wanted // SPACING + 2
        count = 0
        while count < wanted:
            limit = sample[rank] if rank < len(sample) else np.inf
            count = 0
            for place in range(len(row)):
                places[count] = place
                # Not "<=", by which an undefined key would never be counted.
                count += 1 - (row[place] > limit)
            rank *= 2
        order = np.argsort(row[places[:count]])
        for place in range(wanted):
            lists[node, place] = places[order[place]]


pick = numba.njit(_pick, nogil=True)
