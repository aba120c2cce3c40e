"""Search on a device of torch: the answers of the processor, on inputs that rounding could decide.

"cpu:0" is torch on the processor, which runs everywhere what "cuda" runs on a GPU.
"""

from collections.abc import Iterator

import numpy as np
import pytest

from hf_dxprivacy.search import nearest_euclidean, nearest_poincare
from hf_dxprivacy.spaces.metrics import boundary_gap

torch = pytest.importorskip("torch", reason="the extra gpu is not installed")

from hf_dxprivacy import _devices  # noqa: E402
from hf_dxprivacy.search import knn  # noqa: E402
from hf_dxprivacy.search.torch_search import TorchEuclidean, TorchPoincare  # noqa: E402

no_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch finds no CUDA here")


@pytest.fixture(params=["cpu:0", pytest.param("cuda", marks=no_cuda)])
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return a device, which works in blocks of a few rows."""
    monkeypatch.setattr(_devices, "PROCESSOR_BYTES", 1 << 17)
    monkeypatch.setattr(_devices, "BLOCK_BYTES", 1 << 17)
    return str(request.param)


def hard_vectors() -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Return names, vectors and queries of which some can not be told apart in float32."""
    rng = np.random.default_rng(1)
    vectors = rng.normal(size=(700, 20)).astype(np.float32)
    queries = rng.normal(size=(300, 20))
    yield "ordinary", vectors, queries
    yield "few", vectors[:3], queries
    yield "one", vectors[:1], queries
    yield "none", vectors, queries[:0]
    yield "copies", np.tile(vectors[:10], (70, 1)), queries
    yield "themselves", vectors, vectors.astype(np.float64)
    yield "offset", vectors + np.float32(1e3), queries + 1e3
    yield "one dimension", vectors[:, :1].copy(), queries[:, :1]
    for length in (1e4, 1e8, 1e20, 1e32):
        yield f"length {length:g}", vectors, queries * length
    axis = np.arange(-4.0, 5.0, dtype=np.float32)
    lattice = np.stack(np.meshgrid(axis, axis, axis), axis=-1).reshape(-1, 3)
    # Eight corners are exactly as near to the middle of a cell.
    yield "ties", rng.permutation(lattice), lattice[:200] + 0.5


EUCLIDEAN = {name: (vectors, queries) for name, vectors, queries in hard_vectors()}


@pytest.mark.parametrize("case", EUCLIDEAN)
def test_euclidean_search_answers_as_on_the_processor(case: str, device: str) -> None:
    vectors, queries = EUCLIDEAN[case]
    found = TorchEuclidean(vectors, device).nearest(queries)
    assert found.dtype == np.int64
    np.testing.assert_array_equal(found, nearest_euclidean(queries, vectors))


@pytest.mark.parametrize("depth", [0.5, 8.0, 20.0, 30.0])
@pytest.mark.parametrize("copies", [1, 3])
def test_poincare_search_answers_as_on_the_processor(
    depth: float, copies: int, device: str
) -> None:
    rng = np.random.default_rng(2)
    rays = rng.normal(size=(2, 300, 4))
    rays[1, :150] = rays[0, :150]
    rays /= np.linalg.norm(rays, axis=2, keepdims=True)
    points, queries = rays * np.tanh((depth + rng.uniform(-0.4, 2, size=(2, 300, 1))) / 2)
    queries[-5:] = rays[1, -5:]
    points = np.tile(points, (copies, 1))
    gaps = boundary_gap(points)
    found = TorchPoincare(points, gaps, device).nearest(queries)
    np.testing.assert_array_equal(found, nearest_poincare(queries, points, gaps))
    assert TorchPoincare(points, gaps, device).nearest(queries[:0]).shape == (0,)


def test_most_answers_come_from_the_device(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compared = []
    compare_all = knn.compare_all
    monkeypatch.setattr(
        knn, "compare_all", lambda q, v: (compared.append(len(q)), compare_all(q, v))[1]
    )
    TorchEuclidean(*EUCLIDEAN["ordinary"][:1], device).nearest(EUCLIDEAN["ordinary"][1])
    assert compared == [0]


@pytest.mark.parametrize("allowed", ["highest", "high", "medium"])
def test_products_are_full_float32_whatever_is_allowed(allowed: str) -> None:
    backends = [torch.backends.cuda, torch.backends.mkldnn]
    matmuls = [backend.matmul for backend in backends if hasattr(backend, "matmul")]

    def precisions() -> list[object]:
        return [getattr(m, "fp32_precision", None) or m.allow_tf32 for m in matmuls]

    before = torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision(allowed)
        chosen = precisions()
        with _devices.full_float32(torch):
            assert set(precisions()) <= {"ieee", False}
        assert precisions() == chosen
    finally:
        torch.set_float32_matmul_precision(before)


@pytest.mark.parametrize("length", [1e18, 1e19, 1e25])
def test_vectors_whose_squares_overflow(length: float) -> None:
    directions = np.random.default_rng(0).standard_normal((50, 4))
    vectors = (length * directions).astype(np.float32)
    queries = vectors + np.float32(1e-3 * length)
    nearest = nearest_euclidean(queries, vectors)
    np.testing.assert_array_equal(nearest, np.arange(50))
    np.testing.assert_array_equal(TorchEuclidean(vectors, "cpu:0").nearest(queries), nearest)
