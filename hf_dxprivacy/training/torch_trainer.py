"""Poincaré training on a device of torch, such as a GPU, in batches.

Loss, draws and coordinates are those of `kernels`; the gradient is torch's. All nodes of a batch
step at the same time, from where the batch found them, and a class that many of them share takes
their steps as one.
"""

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy._runtime import require
from hf_dxprivacy.errors import InvalidValueError
from hf_dxprivacy.training import kernels
from hf_dxprivacy.training.descent import Descent, State
from hf_dxprivacy.training.hyperparameters import PoincareConfig
from hf_dxprivacy.training.relations import Relations

torch: Any = require("torch", "gpu")

# Nodes of a batch as a share of all, so that small hierarchies have many steps as well, and at most
# so many: a node has hundreds of distances.
SHARE, LARGEST = 1 / 32, 4096

# cosh d − 1 of points without a direction from each other, as in `kernels`.
COINCIDENT = 5e-15

# In the place of a logarithm of 0, of which torch knows no gradient.
NOTHING = -1e9


class TorchDescent(Descent):
    """Relations on a device.

    Raises:
        InvalidValueError: If torch has no such device with numbers in float64.
    """

    def __init__(self, relations: Relations, config: PoincareConfig, device: str) -> None:
        try:
            torch.empty(1, dtype=torch.float64, device=device)
        except (AssertionError, NotImplementedError, RuntimeError, TypeError) as error:
            raise InvalidValueError(
                f"expected a device that torch has and that computes in float64, got {device!r}: "
                f"{str(error).splitlines()[0]}"
            ) from error
        super().__init__(relations, config, os.cpu_count() or 1)
        self.device, self.size = device, len(relations.nodes)
        self.batch = min(LARGEST, max(1, int(SHARE * len(self.nodes))))
        starts, classes, member_starts, members, nearest = self.graph
        self.starts, self.classes = self._put(starts), self._put(classes)
        self.member_starts, self.members = self._put(member_starts), self._put(members)
        self.nearest = self._put(nearest)
        # The relations as sorted numbers, to look them up.
        self.keys = self.classes + self.size * torch.repeat_interleave(self.starts.diff())
        degrees = relations.degrees().astype(np.float64)
        self.burn_in_weights = self._put(np.cumsum(degrees**config.burn_in_exponent))
        self.weights = self._put(np.cumsum(degrees**config.negative_exponent))

    def run(self, state: State) -> float:
        """See `Descent.run`."""
        random = torch.Generator(self.device)
        order = self._put(state.rng.permutation(self.nodes))
        random.manual_seed(int(state.rng.integers(2**62)))
        points, loss = self._put(state.points), 0.0
        self.nearest = self._put(self.near_lists(state))
        for nodes in order.split(self.batch):
            loss += self._step(points, nodes, state.epoch, random)
        state.points[:] = points.cpu().numpy()
        return float(loss)

    def _put(self, array: NDArray[Any]) -> Any:
        return torch.from_numpy(array).to(self.device)

    def _step(self, points: Any, nodes: Any, number: int, random: Any) -> Any:
        """Take the steps of a batch; return the sum of its losses."""
        owner, classes = self._classes(nodes)
        drawn = self._draw(nodes, number, random)
        rows, places = torch.cat((nodes, classes, drawn.ravel())).unique(return_inverse=True)
        here, above, others = places.split((len(nodes), len(classes), drawn.numel()))
        near = points[rows].requires_grad_()
        sharpness = self.config.sharpness_at(number)
        pull = -sharpness * _distances(near[here][:, None], near[others.view_as(drawn)])
        pull = pull.masked_fill(self._is_above(nodes, drawn), NOTHING)
        against = pull.logsumexp(dim=1)
        push = sharpness * _distances(near[here[owner]], near[above])
        loss = torch.nn.functional.softplus(push + against[owner]).sum()
        whole = loss
        if weight := self.config.ranks(number):
            even = pull[:, self.config.near(number) :]
            behind = torch.nn.functional.softplus(push[:, None] + even[owner])
            whole = loss + weight / sharpness * behind.sum()
        (gradient,) = torch.autograd.grad(whole, near)
        points[rows] = _moved(near.detach(), -self.config.rate(number) * gradient)
        return loss.detach()

    def _classes(self, nodes: Any) -> tuple[Any, Any]:
        """Return each relation of the nodes: which of them it is of, and the class."""
        counts = self.starts[nodes + 1] - self.starts[nodes]
        owner = torch.repeat_interleave(counts)
        first = self.starts[nodes] - counts.cumsum(0) + counts
        return owner, self.classes[first[owner] + torch.arange(len(owner), device=self.device)]

    def _draw(self, nodes: Any, number: int, random: Any) -> Any:
        """Return the nodes to compare each node with, near ones first, (len(nodes), negatives)."""
        config = self.config
        weights = self.burn_in_weights if number < config.burn_in else self.weights

        def uniform(number: int) -> Any:
            shape = (len(nodes), number)
            return torch.rand(shape, dtype=torch.float64, device=self.device, generator=random)

        def member(lists: Any, starts: Any, which: Any) -> Any:
            counts = starts[which + 1] - starts[which]
            return lists[starts[which] + (uniform(count) * counts).long()]

        count = config.near(number)
        drawn = uniform(config.negatives - count) * weights[-1]
        drawn = torch.searchsorted(weights, drawn, right=True)
        if listed := self.nearest.shape[1]:
            near = self.nearest[nodes[:, None], (uniform(count) * listed).long()].long()
        else:
            above = member(self.classes, self.starts, nodes[:, None])
            near = member(self.members, self.member_starts, above)
        return torch.cat((near, drawn), dim=1)

    def _is_above(self, nodes: Any, drawn: Any) -> Any:
        """Mark the drawn nodes that are no negatives: classes of the node, and itself."""
        wanted = nodes[:, None] * self.size + drawn
        place = torch.searchsorted(self.keys, wanted).clamp_max(len(self.keys) - 1)
        return (self.keys[place] == wanted) | (drawn == nodes[:, None])


def _distances(u: Any, v: Any) -> Any:
    """Return hyperbolic distances along the last axis; see `kernels.measure`."""
    a = 1.0 + (1.0 + u.square().sum(-1, keepdim=True)).sqrt()
    b = 1.0 + (1.0 + v.square().sum(-1, keepdim=True)).sqrt()
    excess = ((b * u - a * v).square() / (2.0 * a * b)).sum(-1).clamp_min(COINCIDENT)
    return (excess + (excess * (excess + 2.0)).sqrt()).log1p()


def _moved(points: Any, slopes: Any) -> Any:
    """Follow derivatives by the coordinates in space along geodesics; see `kernels.descend`."""
    tangents = slopes + points * (points * slopes).sum(-1, keepdim=True)
    own = points.square().sum(-1, keepdim=True).clamp_min(1e-300)
    product = (points * tangents).sum(-1, keepdim=True)
    across = (tangents - product / own * points).square().sum(-1, keepdim=True)
    length = across + product.square() / (own * (1.0 + own))
    moved = (1.0 + length).sqrt() * points + tangents
    norms = moved.norm(dim=-1, keepdim=True)
    return moved * (kernels.LARGEST_NORM / norms).clamp_max(1.0)
