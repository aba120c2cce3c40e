"""Exact noise in the Poincaré ball against the Metropolis–Hastings walk of the paper.

Both draw the law of Eq. 7 of Feyisetan, Diethe and Drake (ICDM 2019), "lebesgue"; the walk is
corrected, as its printed form has another law. Successive states of a walk are correlated: n of
them are worth n/τ independent ones, with τ the integrated autocorrelation time, by Geyer's initial
monotone sequence (Statistical Science 7, 1992) and the largest among the distance from the origin
and the coordinates. "of walk" compares independent draws a second. "of fresh walks" compares with
one walk of 1,000 steps for each draw, which is what independent noise for each word takes without
an estimate of τ. "riemannian" is the law that the library uses by default. ε = 2n. "numbers alone"
is "of walk" if a draw took no longer than its random numbers: a bound for this way of drawing.

    python benchmarks/hyperbolic_noise.py
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import common
from hf_dxprivacy.noise import (
    ball_points,
    lebesgue_radius,
    metropolis_hastings,
    riemannian_laplace_radius,
)
from hf_dxprivacy.randomness import keyed_generator

DIMENSIONS = (2, 5, 10, 50)
BURN_IN = 1_000
COORDINATES = 5


def autocorrelation_time(series: NDArray[np.float64]) -> float:
    """Return the integrated autocorrelation time of a stationary series, 1 if independent."""
    centered = series - series.mean()
    # Padded to twice the length, so that the end does not meet the beginning.
    transform = np.fft.rfft(centered, 2 * len(series))
    covariance = np.fft.irfft(np.abs(transform) ** 2)[: len(series) // 2 * 2]
    pairs = (covariance / covariance[0]).reshape(-1, 2).sum(axis=1)
    # For a reversible chain sums of neighbouring lags are positive and fall; noise is neither.
    ends = np.flatnonzero(pairs <= 0.0)
    pairs = np.minimum.accumulate(pairs[: ends[0] if len(ends) else len(pairs)])
    return max(1.0, 2.0 * float(pairs.sum()) - 1.0)


def slowest(points: NDArray[np.float64]) -> float:
    """Return the largest autocorrelation time of what describes a point."""
    distances = 2.0 * np.arctanh(np.linalg.norm(points, axis=1))
    series = [distances, *points[:, :COORDINATES].T]
    return max(autocorrelation_time(each) for each in series)


def rate(draw: Callable[[int], object], size: int, rounds: int) -> float:
    """Return draws a second of processor time, the median of some rounds."""
    taken = []
    for _ in range(rounds):
        start = time.process_time()
        draw(size)
        taken.append(time.process_time() - start)
    return size / float(np.median(taken))


def compare(dim: int, steps: int, draws: int, rounds: int) -> dict[str, Any]:
    """Return the row of one dimension."""
    epsilon, rng = 2.0 * dim, keyed_generator(dim)

    def exact(size: int) -> object:
        return ball_points(rng, lebesgue_radius(rng, size, dim, epsilon), dim)

    def default(size: int) -> object:
        return ball_points(rng, riemannian_laplace_radius(rng, size, dim, epsilon), dim)

    def walk(size: int) -> NDArray[np.float64]:
        return metropolis_hastings(rng, size, dim, epsilon, burn_in=0)

    def numbers(size: int) -> None:
        # As many as `lebesgue_radius` proposes, and a direction for each that is kept.
        for shape in (dim, epsilon):
            rng.standard_gamma(shape, size * 9 // 8)
        rng.standard_exponential((2, size * 9 // 8))
        rng.standard_normal((size, dim))

    tau = slowest(metropolis_hastings(rng, steps, dim, epsilon, burn_in=BURN_IN))
    speed, paces = rate(exact, draws, rounds), rate(walk, steps // 5, rounds)
    return {
        "n": dim,
        "riemannian draws/s": rate(default, draws, rounds),
        "lebesgue draws/s": speed,
        "walk steps/s": paces,
        "τ": tau,
        "of walk": speed / (paces / tau),
        "numbers alone": rate(numbers, draws, rounds) / (paces / tau),
        "of fresh walks": speed / (paces / BURN_IN),
    }


def main() -> None:
    """Run everything and print the table."""
    arguments = common.parser(__doc__)
    arguments.add_argument("--steps", type=int, default=100_000, help="of the walk, to find τ")
    arguments.add_argument("--draws", type=int, default=200_000, help="timed together")
    arguments.add_argument("--rounds", type=int, default=5)
    options = arguments.parse_args()
    rows = [compare(dim, options.steps, options.draws, options.rounds) for dim in DIMENSIONS]
    common.report("Noise in the Poincaré ball", rows, options.json)


if __name__ == "__main__":
    main()
