"""The Metropolis-Hastings walk: right when corrected, another law as printed in the paper."""

import numpy as np
import pytest
from scipy import stats

from hf_dxprivacy.noise import metropolis_hastings
from hf_dxprivacy.randomness import keyed_generator
from hyperbolic_reference import LogDensity, lebesgue, radial_cdf, uncorrected_walk
from laws import Array, RejectedError, check_law, check_law_and_scale, check_uncorrelated

# The autocorrelation time of ln ρ is 14 to 18 states at (2, 6), 33 at (3, 2) and 95 at (10, 12).
CASES = [(3, 2.0, 250, 1500), (10, 12.0, 600, 500)]


def thinned_walk(
    dim: int, epsilon: float, thinning: int, *, corrected: bool = True, size: int = 1500
) -> tuple[Array, Array]:
    """Return distances and points, far enough apart to count as independent."""
    points = metropolis_hastings(
        keyed_generator(dim), size * thinning, dim, epsilon, corrected=corrected
    )[::thinning]
    return 2 * np.arctanh(np.linalg.norm(points, axis=1)), points


@pytest.mark.parametrize(("dim", "epsilon", "thinning", "size"), CASES, ids=["dim3", "dim10"])
def test_corrected_walk_has_the_law_of_equation_7(
    dim: int, epsilon: float, thinning: int, size: int
) -> None:
    radii, points = thinned_walk(dim, epsilon, thinning, size=size)
    check_uncorrelated(radii[:-1], radii[1:])
    check_law_and_scale(radii, radial_cdf(lebesgue(dim, epsilon)))
    along = points[:, 0] / np.linalg.norm(points, axis=1)
    check_law(along**2, stats.beta(0.5, (dim - 1) / 2).cdf)
    if dim == 3:
        reject_a_correction_short_of_one_factor(radii, lebesgue(dim, epsilon))


def reject_a_correction_short_of_one_factor(radii: Array, true: LogDensity) -> None:
    """Reject the laws that a Jacobian without its cosh(ρ), or one 1+cosh(ρ), would give."""
    for factor in (np.cosh, lambda rho: 1 + np.cosh(rho)):
        with pytest.raises(RejectedError, match=f"n={len(radii)}"):
            check_law(radii, radial_cdf(lambda rho, f=factor: true(rho) + np.log(f(rho)), 500))


def test_walk_as_printed_has_another_law() -> None:
    radii, _ = thinned_walk(2, 6.0, 120, corrected=False)
    check_uncorrelated(radii[:-1], radii[1:])
    with pytest.raises(RejectedError, match="n=1500"):
        check_law(radii, radial_cdf(lebesgue(2, 6.0)))
    check_law_and_scale(radii, radial_cdf(uncorrected_walk(2, 6.0)))


def test_walk_as_printed_drifts_to_the_boundary_for_small_epsilon() -> None:
    cdf = radial_cdf(lebesgue(3, 1.0))
    drifted, settled = (
        np.linalg.norm(
            metropolis_hastings(
                keyed_generator(0), 1000, 3, 1.0, corrected=corrected, burn_in=60_000
            ),
            axis=1,
        )
        for corrected in (False, True)
    )
    assert (cdf(2 * np.arctanh(drifted)) > 0.999).all()
    assert (cdf(2 * np.arctanh(settled)) < 0.999).mean() > 0.9


def test_successive_states_are_correlated() -> None:
    points = metropolis_hastings(keyed_generator(1), 5000, 2, 6.0)
    with pytest.raises(RejectedError, match="rank correlation: n=4999"):
        check_uncorrelated(points[:-1, 0], points[1:, 0])
