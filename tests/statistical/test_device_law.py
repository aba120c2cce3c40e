"""Exponential mechanisms on a device of torch draw by the law that is worked out on the processor.

"cpu:0" is torch on the processor, which runs everywhere what "cuda" runs on a GPU.
"""

import numpy as np
import pytest

from hf_dxprivacy.mechanisms import TruncatedExponential
from hf_dxprivacy.mechanisms.sampler import RejectionSampler
from hf_dxprivacy.randomness import RowStreams, keyed_generator
from hf_dxprivacy.spaces import EmbeddingSpace
from hf_dxprivacy.spaces.partition import TorchPartition
from hf_dxprivacy.spaces.stored_space import SpaceCache
from laws import check_frequencies

torch = pytest.importorskip("torch", reason="the extra gpu is not installed")

INPUTS = (-1, 0, 7, 123)
DRAWS = 60_000

no_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch finds no CUDA here")


def with_cells(space: EmbeddingSpace, device: str, cells: int) -> EmbeddingSpace:
    """Return a space that works out the bounds of so many cells on a device."""
    known = {(device, None): TorchPartition(space, device, cells)}
    return space._with(cache=SpaceCache(partitions=known))


@pytest.mark.parametrize("device", ["cpu:0", pytest.param("cuda", marks=no_cuda)])
@pytest.mark.parametrize("cells", [5, 40, 500])
@pytest.mark.parametrize("name", ["euclidean_space", "poincare_space"])
def test_bounds_from_a_device(
    name: str, cells: int, device: str, request: pytest.FixtureRequest
) -> None:
    space: EmbeddingSpace = request.getfixturevalue(name)
    space = with_cells(space, device, cells)
    mechanism = TruncatedExponential(space, 3.0)
    sampler = RejectionSampler(space, mechanism._weights, device=device)
    rng = keyed_generator(cells)
    for word in INPUTS:
        ids = np.full(DRAWS, word)
        drawn = sampler.draw(ids, RowStreams.single(rng, DRAWS), np.arange(DRAWS))
        counts = np.bincount(drawn, minlength=len(space))
        check_frequencies(counts, mechanism.probabilities([word])[0])
