"""Lists of near words from a device of torch: valid bounds, and nearly always the same draws.

"cpu:0" is torch on the processor, which runs everywhere what "cuda" runs on a GPU.
"""

import numpy as np
import pytest

from hf_dxprivacy.mechanisms import TruncatedExponential
from hf_dxprivacy.privatizer import DxPrivatizer
from hf_dxprivacy.spaces import EmbeddingSpace

torch = pytest.importorskip("torch", reason="the extra gpu is not installed")

from hf_dxprivacy.search import devices  # noqa: E402

no_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch finds no CUDA here")


@pytest.fixture(params=["cpu:0", pytest.param("cuda", marks=no_cuda)])
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return a device, which works in blocks of a few words."""
    monkeypatch.setattr(devices, "PROCESSOR_BYTES", 1 << 17)
    monkeypatch.setattr(devices, "BLOCK_BYTES", 1 << 17)
    return str(request.param)


@pytest.fixture(params=["euclidean", "poincare"])
def space(request: pytest.FixtureRequest) -> EmbeddingSpace:
    space: EmbeddingSpace = request.getfixturevalue(f"{request.param}_space")
    return space


@pytest.mark.parametrize("k", [1, 12, 90, 500])
def test_no_word_is_nearer_than_its_bound(space: EmbeddingSpace, k: int, device: str) -> None:
    ids = np.arange(-1, len(space))
    lists = space.shortlists(ids, k, device)
    distances = space.distances(ids)
    listed = np.zeros(distances.shape, dtype=bool)
    for row, (words, lower) in enumerate(zip(lists.words, lists.lower, strict=True)):
        held = np.isfinite(lower)
        assert len(np.unique(words[held])) == held.sum()
        listed[row, words[held]] = True
        assert (lower[held] <= distances[row, words[held]]).all()
    assert (np.where(listed, np.inf, distances).min(axis=1) >= lists.beyond).all()
    here = space.shortlists(ids, k)
    same = (here.words == lists.words).all(axis=1)
    assert same.mean() > 0.99
    np.testing.assert_allclose(lists.lower[same], here.lower[same], rtol=1e-4, atol=1e-3)


def test_a_seed_gives_the_same_words_but_for_a_few_in_a_million(device: str) -> None:
    vectors = np.random.default_rng(1).normal(size=(3000, 8)).astype(np.float32)
    space = EmbeddingSpace.from_vectors([f"w{k}" for k in range(3000)], vectors)
    texts = [" ".join(space.words[start : start + 100]) for start in range(0, 3000, 100)] * 4
    mechanism = TruncatedExponential(space, 9.0)
    here, there = (
        " ".join(DxPrivatizer(space, each, seed=1).privatize(texts)).split()
        for each in (mechanism, mechanism.to(device))
    )
    assert len(here) == len(there) == 12_000
    assert sum(a != b for a, b in zip(here, there, strict=True)) <= 2
    assert 0.05 < np.mean([a == b for a, b in zip(here, " ".join(texts).split(), strict=True)])
