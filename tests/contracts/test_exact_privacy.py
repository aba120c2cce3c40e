"""The exponential mechanisms keep ε·d_γ for every pair of inputs and every output, exactly.

Nothing is sampled: the laws of all inputs, the unknown word at the centroid among them, are
compared output by output. Distances, weights and partition functions are computed anew, naively.
"""

import functools
import math

import numpy as np
import pytest
from scipy.spatial.distance import pdist, squareform

from hf_dxprivacy.mechanisms import CalibratedExponential, TruncatedExponential, create_mechanism
from hf_dxprivacy.mechanisms import levels as levels_module
from hf_dxprivacy.mechanisms.certificate import truncation_weight
from hf_dxprivacy.mechanisms.exponential import ExponentialMechanism
from hf_dxprivacy.mechanisms.levels import grid_value, privacy_curve
from hf_dxprivacy.spaces import EmbeddingSpace

# Extended precision where the platform has it, so that the reference is the better number.
Real = np.longdouble
SLACK = 1e-9


@pytest.fixture(scope="module", params=["euclidean", "poincare"])
def space(request: pytest.FixtureRequest) -> EmbeddingSpace:
    return request.getfixturevalue(f"{request.param}_space")


@functools.cache
def naive_distances(space: EmbeddingSpace) -> np.ndarray:
    """Return the distances between all inputs, the last of which is the centroid."""
    points = np.concatenate([space.vectors.astype(Real), space.centroid.astype(Real)[None]])
    squared = np.stack([((points - point) ** 2).sum(axis=1) for point in points])
    if space.metric == "euclidean":
        return np.sqrt(squared)
    gaps = 1 - (points**2).sum(axis=1)
    return space.scale * np.arccosh(1 + 2 * squared / gaps / gaps[:, None])


def log_law(distances: np.ndarray, rate: float, gamma: float) -> np.ndarray:
    """Return ln Pr[M(w)=y] for all inputs w and all words y, from the definition."""
    scores = -rate * np.minimum(distances[:, :-1], gamma)
    return scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))


def largest_ratios(logs: np.ndarray) -> np.ndarray:
    """Return, for all pairs of inputs, the largest |ln Pr[M(w)=y]/Pr[M(w')=y]| over outputs y."""
    logs = logs.astype(np.float64)
    # A probability of 0, or none at all, would be passed over in the search for the largest.
    assert np.isfinite(logs).all()
    return squareform(pdist(logs, "chebyshev"))


def level_of(logs: np.ndarray, distances: np.ndarray) -> float:
    """Return the least ε for which the law is ε·d-private."""
    ratios, distances = largest_ratios(logs), distances.astype(np.float64)
    apart = distances > 0
    assert (ratios[~apart] <= SLACK).all()
    return float((ratios[apart] / distances[apart]).max())


def violation(logs: np.ndarray, distances: np.ndarray, epsilon: float) -> float:
    """Return the largest log-ratio over ε·d; the law is ε·d-private if it is at most 1."""
    return level_of(logs, distances) / epsilon


def with_bottom(
    distances: np.ndarray, epsilon: float, gamma: float, faulty: bool = False
) -> np.ndarray:
    """Return ln of TEM's law as its paper has it: near words, and ⊥ that stands for the others.

    ⊥ has the score −γ + 2·ln|W∖L|/ε, L being the words within γ; the faulty score, found in public
    code, has |W|/|L| in place of |W∖L|.
    """
    near = distances[:, :-1] < gamma
    others = (~near).sum(axis=1, keepdims=True)
    size = near.shape[1] / np.maximum(near.sum(axis=1, keepdims=True), 1) if faulty else others
    bottom = np.where(others > 0, np.exp(-epsilon / 2 * gamma) * size, 0.0)
    near_weights = np.where(near, np.exp(-epsilon / 2 * distances[:, :-1]), 0.0)
    total = near_weights.sum(axis=1, keepdims=True) + bottom
    shared = bottom / np.maximum(others, 1)
    return np.log(np.where(near, near_weights, shared) / total)


LEVELS = [(0.5, 0.001), (2.0, 0.001), (2.0, 0.2), (8.0, 0.001)]


@pytest.mark.parametrize(("epsilon", "beta"), LEVELS)
@pytest.mark.parametrize("name", ["tem", "calibrated"])
def test_no_log_ratio_exceeds_the_certificate(
    space: EmbeddingSpace, name: str, epsilon: float, beta: float
) -> None:
    mechanism = create_mechanism(name, space, epsilon, beta=beta)
    assert isinstance(mechanism, ExponentialMechanism)
    inputs = np.append(np.arange(len(space)), -1)
    logs = np.log(mechanism.probabilities(inputs))
    distances = naive_distances(space)
    truncated = np.minimum(distances, mechanism.radius)
    np.testing.assert_allclose(
        logs,
        log_law(distances, mechanism.inverse_temperature, mechanism.radius).astype(float),
        atol=1e-8,
    )

    worst = violation(logs, truncated, mechanism.guarantee.epsilon)
    print(f"{name} {space.metric} ε={epsilon} β={beta}: largest log-ratio {worst:.6f} of ε·d_γ")
    assert worst <= 1

    # The certified level is the true one, and so a steeper law must be caught at that level.
    exact = mechanism.exact_epsilon()
    level = level_of(logs, truncated)
    assert level <= exact <= level * (1 + 1e-5)
    assert exact <= epsilon
    steeper = log_law(distances, 1.05 * mechanism.inverse_temperature, mechanism.radius)
    assert violation(steeper, truncated, exact) > 1.01
    if name == "calibrated":
        assert violation(steeper, truncated, epsilon) > 1


@pytest.mark.parametrize(("epsilon", "beta"), LEVELS)
def test_tem_has_slack_that_calibration_uses(
    space: EmbeddingSpace, epsilon: float, beta: float
) -> None:
    tem = TruncatedExponential(space, epsilon, beta)
    calibrated = CalibratedExponential(space, epsilon, beta)
    print(
        f"{space.metric} ε={epsilon} β={beta}: TEM's level {tem.exact_epsilon() / epsilon:.4f}ε, "
        f"calibrated s {calibrated.inverse_temperature / epsilon:.4f}ε "
        f"at {calibrated.exact_epsilon():.6f}"
    )
    assert tem.exact_epsilon() < epsilon
    assert tem.inverse_temperature == epsilon / 2
    assert epsilon / 2 * grid_value(-1) <= calibrated.inverse_temperature < epsilon
    assert calibrated.exact_epsilon() <= epsilon


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 8.0])
def test_calibration_takes_the_largest_slope_of_the_grid(
    space: EmbeddingSpace, epsilon: float
) -> None:
    chosen = CalibratedExponential(space, epsilon)
    steeper = [k for k in range(-80, 120) if chosen.inverse_temperature < grid_value(k) <= epsilon]
    floor = truncation_weight(len(space), 0.001)
    assert steeper
    assert min(privacy_curve(space, steeper, floor).values()) > epsilon
    assert privacy_curve(space, [0], floor, chosen.inverse_temperature)[0] == pytest.approx(
        chosen.exact_epsilon(), rel=1e-9
    )


@pytest.mark.parametrize("epsilon", [0.5, 8.0])
def test_tem_is_the_law_of_its_paper(space: EmbeddingSpace, epsilon: float) -> None:
    mechanism = TruncatedExponential(space, epsilon)
    assert mechanism.radius == pytest.approx(2 / epsilon * math.log(0.999 * 499 / 0.001))
    expected = with_bottom(naive_distances(space), epsilon, mechanism.radius)
    inputs = np.append(np.arange(len(space)), -1)
    np.testing.assert_allclose(
        np.log(mechanism.probabilities(inputs)), expected.astype(float), atol=1e-8
    )


@pytest.mark.parametrize("mutation", ["skipped half", "squared distance", "faulty bottom"])
def test_known_faults_of_other_code_are_caught(space: EmbeddingSpace, mutation: str) -> None:
    # A γ beyond which some words have few others and some have nearly all.
    epsilon, gamma = 8.0, TruncatedExponential(space, 8.0).radius
    distances = naive_distances(space)
    truncated = np.minimum(distances, gamma)
    assert violation(with_bottom(distances, epsilon, gamma), truncated, epsilon) <= 1
    mutant = {
        "skipped half": lambda: log_law(distances, epsilon, gamma),
        "squared distance": lambda: log_law(distances**2, epsilon / 2, gamma**2),
        "faulty bottom": lambda: with_bottom(distances, epsilon, gamma, faulty=True),
    }[mutation]()
    found = violation(mutant, truncated, epsilon)
    print(f"{mutation}, {space.metric}: {found:.3f} of ε·d_γ")
    assert found > 1.01


def test_given_gamma_is_certified_too(space: EmbeddingSpace) -> None:
    distances = naive_distances(space)
    for gamma in (1e-6, 0.5, 5.0):
        mechanism = TruncatedExponential(space, 4.0, gamma=gamma)
        truncated = np.minimum(distances, gamma)
        level = level_of(log_law(distances, 2.0, gamma), truncated)
        assert mechanism.guarantee.ldp_epsilon <= 4.0 * gamma
        assert level * (1 - 1e-9) <= mechanism.exact_epsilon() <= 4.0
        assert mechanism.exact_epsilon() <= level * (1 + 1e-5) + 2e-11 / gamma


@pytest.mark.parametrize("tile", [1, 7, 250, 499, 500, 501])
def test_tiles_do_not_change_the_level(
    space: EmbeddingSpace, tile: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = EmbeddingSpace.from_vectors(
        space.words[:60] if tile == 1 else space.words,
        space.vectors[:60] if tile == 1 else space.vectors,
        space.metric,
        space.scale,
    )
    floor = truncation_weight(len(small), 0.01)
    monkeypatch.setattr(levels_module, "TILE", tile)
    monkeypatch.setattr(levels_module, "COLUMNS", tile)
    levels = privacy_curve(small, [-20, 0, 77], floor, base=1.3)
    distances = naive_distances(small)
    for step, certified in levels.items():
        rate = 1.3 * grid_value(step)
        gamma = -math.log(floor) / rate
        level = level_of(log_law(distances, rate, gamma), np.minimum(distances, gamma))
        assert level <= certified <= level * (1 + 1e-5)


def awkward_space(metric: str, kind: str) -> EmbeddingSpace:
    """Make 40 words some of which (nearly) coincide, or that lie far from the origin."""
    rng = np.random.default_rng(11)
    vectors = rng.normal(size=(40, 3)) * (0.2 if metric == "poincare" else 2.0)
    if metric == "poincare":
        vectors /= np.maximum(1.0, np.linalg.norm(vectors, axis=1, keepdims=True) / 0.95)
    if kind == "equal":
        vectors[10:20] = vectors[0]
    elif kind.startswith("near"):
        vectors[10:20] = vectors[:10]
        vectors[10:20, 0] += float(kind.removeprefix("near "))
    elif kind == "far":
        vectors = vectors + 1e5 if metric == "euclidean" else vectors * 0.1 + 0.5
    elif kind == "single":
        vectors = vectors.astype(np.float32)
    return EmbeddingSpace.from_vectors([f"w{k}" for k in range(40)], vectors, metric)


@pytest.mark.parametrize("kind", ["equal", "near 1e-6", "near 1e-9", "near 1e-12", "far", "single"])
@pytest.mark.parametrize("metric", ["euclidean", "poincare"])
def test_level_is_never_below_the_true_one(metric: str, kind: str) -> None:
    space = awkward_space(metric, kind)
    distances = naive_distances(space)
    for epsilon in (0.7, 4.0):
        mechanism = CalibratedExponential(space, epsilon)
        truncated = np.minimum(distances, mechanism.radius)
        logs = log_law(distances, mechanism.inverse_temperature, mechanism.radius)
        # Log-ratios of words that nearly coincide are lost to rounding: use the closed form.
        sums = -logs[np.arange(40), np.arange(40)]
        gaps = np.abs(np.append(sums, 0.0)[:40, None] - sums)
        apart = truncated[:40, :40] > 0
        level = mechanism.inverse_temperature + float(
            (gaps[apart] / truncated[:40, :40][apart]).max()
        )
        assert level * (1 - 1e-9) <= mechanism.exact_epsilon() <= epsilon
        assert mechanism.inverse_temperature >= epsilon / 2 * grid_value(-1)


@pytest.mark.parametrize("metric", ["euclidean", "poincare"])
@pytest.mark.parametrize("size", [2, 3, 60])
def test_unknown_words_count_as_an_input(metric: str, size: int) -> None:
    # On a ring all words have the same normaliser, and only the centroid differs.
    angles = 2 * np.pi * np.arange(size) / size
    ring = 0.6 * np.column_stack([np.cos(angles), np.sin(angles)])
    space = EmbeddingSpace.from_vectors([f"w{k}" for k in range(size)], ring, metric)
    floor = truncation_weight(size, 0.001)
    levels = privacy_curve(space, [-106, 0, 64, 138, 189], floor)
    distances = naive_distances(space)
    for step, certified in levels.items():
        rate = grid_value(step)
        gamma = -math.log(floor) / rate
        logs, truncated = log_law(distances, rate, gamma), np.minimum(distances, gamma)
        level = level_of(logs, truncated)
        assert level * (1 - 1e-9) <= certified <= level * (1 + 1e-5)
        among_words = level_of(logs[:-1], truncated[:-1, :-1])
        assert among_words == pytest.approx(rate)
        if rate <= 4 and size != 3:
            assert level > among_words * (1 + 1e-3)


def test_truncation_at_zero_leaves_the_uniform_law(euclidean_space: EmbeddingSpace) -> None:
    for name in ("tem", "calibrated"):
        mechanism = create_mechanism(name, euclidean_space, 1.0, beta=0.999)
        assert isinstance(mechanism, ExponentialMechanism)
        assert str(mechanism.radius) == "0.0"
        np.testing.assert_allclose(mechanism.probabilities([-1, 0, 7]), 1 / 500, rtol=1e-14)
        assert mechanism.guarantee.ldp_epsilon == 0.0
        assert mechanism.exact_epsilon() <= 1.0
