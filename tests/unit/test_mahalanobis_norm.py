"""The regularized Mahalanobis norm against its definition."""

import numpy as np
import pytest

from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError
from hf_dxprivacy.mechanisms.mahalanobis import regularized_mahalanobis

LAMBDAS = [0.0, 0.1, 0.5, 0.9, 1.0]


@pytest.fixture(scope="module")
def vectors() -> np.ndarray:
    """5000 vectors of very uneven spread around a center far from the origin."""
    rng = np.random.default_rng(1)
    spread = 10.0 ** np.linspace(-2, 1, 6)
    mixing = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    return ((rng.normal(size=(5000, 6)) * spread) @ mixing + 50.0).astype(np.float32)


def matrix_of(vectors: np.ndarray, lam: float) -> np.ndarray:
    covariance = np.cov(vectors.astype(np.float64), rowvar=False)
    return lam * covariance * 6 / np.trace(covariance) + (1 - lam) * np.eye(6)


@pytest.mark.parametrize("lam", LAMBDAS)
def test_roots_are_those_of_the_matrix(vectors: np.ndarray, lam: float) -> None:
    norm = regularized_mahalanobis(vectors, lam)
    expected = matrix_of(vectors, lam)
    np.testing.assert_allclose(norm.root @ norm.root, expected, atol=1e-8)
    np.testing.assert_allclose(norm.root @ norm.inverse_root, np.eye(6), atol=1e-10)
    np.testing.assert_allclose(norm.root, norm.root.T, atol=1e-12)
    assert norm.root.dtype == norm.inverse_root.dtype == np.float64


@pytest.mark.parametrize("lam", LAMBDAS)
def test_eigenvalues_are_those_of_the_scaled_covariance(vectors: np.ndarray, lam: float) -> None:
    norm = regularized_mahalanobis(vectors, lam)
    expected = np.linalg.eigvalsh(matrix_of(vectors, 1.0))
    np.testing.assert_allclose(norm.eigenvalues, expected, rtol=1e-5)
    assert norm.eigenvalues.sum() == pytest.approx(6.0)
    assert (np.diff(norm.eigenvalues) >= 0).all()


@pytest.mark.parametrize("lam", LAMBDAS)
def test_the_norm_is_the_quadratic_form(vectors: np.ndarray, lam: float) -> None:
    norm = regularized_mahalanobis(vectors, lam)
    x = np.random.default_rng(2).normal(size=(100, 6))
    inverse = np.linalg.inv(matrix_of(vectors, lam))
    expected = np.sqrt(np.einsum("ij,jk,ik->i", x, inverse, x))
    np.testing.assert_allclose(norm.norm(x), expected, rtol=1e-5)


@pytest.mark.parametrize("lam", LAMBDAS)
def test_the_euclidean_factor_is_a_tight_upper_bound(vectors: np.ndarray, lam: float) -> None:
    norm = regularized_mahalanobis(vectors, lam)
    assert norm.euclidean_factor == pytest.approx(
        1 / np.sqrt(lam * norm.eigenvalues[0] + 1 - lam), rel=1e-6
    )
    x = np.random.default_rng(3).normal(size=(1000, 6))
    worst = np.linalg.eigh(norm.inverse_root)[1][:, -1:].T
    ratios = [norm.norm(y) / np.linalg.norm(y, axis=1) for y in (x, worst)]
    assert max(ratios[0]) <= norm.euclidean_factor * (1 + 1e-12)
    assert ratios[1][0] == pytest.approx(norm.euclidean_factor, rel=1e-6)


def test_lambda_zero_is_exactly_euclidean(vectors: np.ndarray) -> None:
    norm = regularized_mahalanobis(vectors, 0.0)
    np.testing.assert_array_equal(norm.root, np.eye(6))
    np.testing.assert_array_equal(norm.inverse_root, np.eye(6))
    assert norm.euclidean_factor == 1.0


def test_equal_spread_in_all_directions_changes_nothing() -> None:
    corners = np.array(np.meshgrid([-3, 3], [-3, 3], [-3, 3])).reshape(3, -1).T.astype(np.float64)
    norm = regularized_mahalanobis(corners + 7, 0.8)
    np.testing.assert_allclose(norm.root, np.eye(3), atol=1e-12)
    assert norm.euclidean_factor == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize("lam", [-0.1, 1.1, float("nan")])
def test_lambda_is_between_zero_and_one(vectors: np.ndarray, lam: float) -> None:
    with pytest.raises(InvalidValueError, match=r"expected 0.0 <= lam <= 1.0, got lam="):
        regularized_mahalanobis(vectors, lam)


def test_lambda_is_a_number(vectors: np.ndarray) -> None:
    with pytest.raises(InvalidTypeError, match="expected lam to be a number, got lam='1'"):
        regularized_mahalanobis(vectors, "1")  # type: ignore[arg-type]


def test_flat_vectors_need_regularization() -> None:
    flat = np.random.default_rng(4).normal(size=(50, 3)) * [1.0, 1.0, 0.0]
    message = "expected vectors that span all 3 dimensions for lam=1.0, .* choose lam < 1"
    with pytest.raises(InvalidValueError, match=message):
        regularized_mahalanobis(flat, 1.0)
    norm = regularized_mahalanobis(flat, 0.75)
    assert norm.euclidean_factor == pytest.approx(2.0)


def test_vectors_that_are_all_equal_have_no_norm() -> None:
    with pytest.raises(InvalidValueError, match="differ from each other, but their covariance is"):
        regularized_mahalanobis(np.ones((5, 3)), 0.5)
