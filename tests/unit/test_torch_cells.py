"""Bounds of the distances to cells from a device of torch: the same, and so are the draws.

"cpu:0" is torch on the processor, which runs everywhere what "cuda" runs on a GPU.
"""

import numpy as np
import pytest

from hf_dxprivacy.mechanisms import TruncatedExponential
from hf_dxprivacy.privatizers.text_privatizer import DxPrivatizer
from hf_dxprivacy.spaces import EmbeddingSpace
from hf_dxprivacy.spaces.partition import Partition, TorchPartition

torch = pytest.importorskip("torch", reason="the extra gpu is not installed")

no_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch finds no CUDA here")


@pytest.fixture(params=["cpu:0", pytest.param("cuda", marks=no_cuda)])
def device(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["euclidean", "poincare"])
def space(request: pytest.FixtureRequest) -> EmbeddingSpace:
    space: EmbeddingSpace = request.getfixturevalue(f"{request.param}_space")
    return space


@pytest.mark.parametrize("count", [1, 12, 90, 500])
def test_bounds_are_the_same_on_a_device(space: EmbeddingSpace, count: int, device: str) -> None:
    ids = np.arange(-1, len(space))
    here = Partition(space, count)
    there = TorchPartition(space, device, count)
    np.testing.assert_array_equal(there.order, here.order)
    np.testing.assert_array_equal(there.bounds(ids), here.bounds(ids))


def test_a_seed_gives_the_same_words(device: str) -> None:
    vectors = np.random.default_rng(1).normal(size=(3000, 8)).astype(np.float32)
    space = EmbeddingSpace.from_vectors([f"w{k}" for k in range(3000)], vectors)
    texts = [" ".join(space.words[start : start + 100]) for start in range(0, 3000, 100)] * 4
    mechanism = TruncatedExponential(space, 9.0)
    here, there = (
        " ".join(DxPrivatizer(space, each, seed=1).privatize(texts)).split()
        for each in (mechanism, mechanism.to(device))
    )
    assert here == there
    assert len(here) == 12_000
    assert 0.05 < np.mean([a == b for a, b in zip(here, " ".join(texts).split(), strict=True)])
