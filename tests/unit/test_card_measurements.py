"""Figures of a card: what they are, that they stay with their space, what is never worked out."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hf_dxprivacy.calibration import privacy_statistics
from hf_dxprivacy.calibration.epsilons import FEW_OF_NOISE
from hf_dxprivacy.hub.cards import stored_figures
from hf_dxprivacy.mechanisms import TruncatedExponential, certificate
from hf_dxprivacy.mechanisms.certificate import certify
from hf_dxprivacy.report import card_measurements, measure
from hf_dxprivacy.report.card_measurements import PROTOCOL
from hf_dxprivacy.spaces import EmbeddingSpace


def make_space(size: int = 40, scale: float = 1.0, **fields: Any) -> EmbeddingSpace:
    vectors = np.random.default_rng(3).normal(size=(size, 3)) * scale
    return EmbeddingSpace(tuple(f"w{k}" for k in range(size)), vectors, **fields)


def measured(space: EmbeddingSpace) -> dict[str, Any]:
    figures = stored_figures(measure(space).figures, space.digest)
    assert figures is not None
    return figures


def refuse(*_: Any, **__: Any) -> None:
    """Stand in for what must not be called."""
    raise AssertionError("called")


def test_distances_are_percentiles_of_what_the_space_says(euclidean_space: EmbeddingSpace) -> None:
    figures = measured(euclidean_space)
    matrix = np.sort(euclidean_space.distances(np.arange(500)), axis=1)
    assert list(figures["distances"]) == ["1", "10", "100", "pairs"]
    for k in (1, 10, 100):
        expected = np.percentile(matrix[:, k], PROTOCOL["percentiles"])
        assert figures["distances"][str(k)] == pytest.approx(expected, rel=1e-3)
    apart = np.percentile(matrix[:, 1:], PROTOCOL["percentiles"])
    assert figures["distances"]["pairs"] == pytest.approx(apart, rel=0.05)
    assert figures["unit"] == pytest.approx(euclidean_space.neighbour_distances()[1], rel=1e-3)
    assert (figures["words"], figures["neighbour_words"]) == (50, 500)


def test_points_are_statistics_of_evenly_spaced_words(euclidean_space: EmbeddingSpace) -> None:
    figures = measured(euclidean_space)
    assert list(figures["mechanisms"]) == ["tem", "calibrated", "laplace"]
    rows = np.linspace(0, 499, 50).round().astype(int)
    words = [euclidean_space.words[row] for row in rows]
    for point, steps in zip(figures["mechanisms"]["tem"], (1, 2, 4, 6, 8, 12, 16), strict=True):
        assert point["epsilon"] * figures["unit"] == pytest.approx(steps, rel=0.01)
        found = privacy_statistics(
            TruncatedExponential(euclidean_space, point["epsilon"]), words, 100
        )
        assert point["kept"] == pytest.approx((found.kept.mean(), found.kept.max()), abs=6e-4)
        assert point["support"] is not None
        assert point["support"] == pytest.approx(
            (found.support.mean(), found.support.min()), abs=0.6
        )
        assert point["distinct"] == pytest.approx(
            (found.distinct.mean(), found.distinct.min()), abs=0.6
        )
    assert all(point["support"] is None for point in figures["mechanisms"]["laplace"])


def test_more_epsilon_keeps_more_words(poincare_space: EmbeddingSpace) -> None:
    figures = measured(poincare_space)
    assert {"tem", "calibrated"} < set(figures["mechanisms"])
    for points in figures["mechanisms"].values():
        assert [p["kept"][0] for p in points] == sorted(p["kept"][0] for p in points)
        assert points[-1]["kept"][0] > 0.9
        assert all(
            p["kept"][0] <= p["kept"][1] and p["distinct"][0] >= p["distinct"][1] for p in points
        )


def test_hyperbolic_noise_is_measured_above_its_floor_only() -> None:
    vectors = np.random.default_rng(5).normal(size=(60, 9))
    vectors *= 0.95 / np.linalg.norm(vectors, axis=1, keepdims=True)
    space = EmbeddingSpace(tuple(f"w{k}" for k in range(60)), vectors, "poincare", scale=10.0)
    figures = measured(space)
    floor = 8 / 10.0
    grid = [steps / figures["unit"] for steps in FEW_OF_NOISE]
    assert min(grid) < floor < max(grid)
    points = figures["mechanisms"]["hyperbolic"]
    assert len(points) == sum(epsilon > floor for epsilon in grid)
    assert all(point["epsilon"] > floor for point in points)


def test_equal_spaces_have_equal_figures_that_are_json() -> None:
    first, second = measure(make_space()), measure(make_space())
    assert first.figures == second.figures
    assert json.loads(json.dumps(first.figures)) == json.loads(json.dumps(second.figures))


def test_what_is_stored_is_not_measured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measure(make_space()).save_pretrained(tmp_path)
    loaded = EmbeddingSpace.from_pretrained(tmp_path)
    before = json.dumps(loaded.figures)
    monkeypatch.setattr(card_measurements, "privacy_statistics", refuse)
    assert json.dumps(measure(loaded).figures) == before
    with pytest.raises(AssertionError, match="called"):
        measure(make_space(scale=2.0))


def test_figures_of_another_space_are_not_taken_over() -> None:
    small = measure(make_space())
    large = make_space(scale=2.0, figures=dict(small.figures))
    assert stored_figures(large.figures, large.digest) is None
    figures = measured(large)
    assert figures["distances"]["1"] == pytest.approx(
        [2 * d for d in small.figures["distances"]["1"]], rel=1e-3
    )


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("digest",), "0" * 64),
        (("settings",), {}),
        (("unit",), "one"),
        (("words",), None),
        (("distances",), [1.0]),
        (("distances", "1"), [1.0, "x"]),
        (("mechanisms",), None),
        (("mechanisms", "tem"), [{"epsilon": 1.0}]),
        (("mechanisms", "tem", 0, "kept"), [0.5]),
        (("mechanisms", "tem", 0, "support"), 3),
    ],
)
def test_damaged_figures_are_measured_anew(path: tuple[str | int, ...], value: object) -> None:
    space = measure(make_space())
    whole = measured(space)
    damaged: Any = json.loads(json.dumps(space.figures))
    inside = damaged
    for key in path[:-1]:
        inside = inside[key]
    inside[path[-1]] = value
    assert stored_figures(damaged, space.digest) is None
    assert measured(make_space(figures=damaged)) == whole


@pytest.mark.parametrize("figures", [{}, {"digest": 1}, {"mechanisms": {}}])
def test_no_figures_are_none(figures: dict[str, object]) -> None:
    assert stored_figures(figures, "") is None


def test_mechanisms_that_nobody_knows_are_not_shown() -> None:
    space = measure(make_space())
    space.figures["mechanisms"]["<script>"] = space.figures["mechanisms"]["tem"]
    figures = stored_figures(space.figures, space.digest)
    assert figures is not None
    assert "<script>" not in figures["mechanisms"]


def test_levels_of_a_large_space_are_never_worked_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificate, "privacy_curve", refuse)
    figures = measured(make_space(card_measurements.CERTIFIED_HERE + 1))
    assert set(figures["mechanisms"]) == {"tem", "laplace"}
    with pytest.raises(AssertionError, match="called"):
        measure(make_space(card_measurements.CERTIFIED_HERE))


def test_levels_that_are_known_later_add_their_mechanism(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(card_measurements, "CERTIFIED_HERE", 10)
    space = make_space(300, scale=1.7)
    before = measured(space)
    assert "calibrated" not in before["mechanisms"]
    grid = [point["epsilon"] for point in before["mechanisms"]["tem"]]
    certify(space, grid[2], grid[4], progress=False)
    after = measured(space)
    assert [point["epsilon"] for point in after["mechanisms"]["calibrated"]] == grid[2:5]
    assert {**after["mechanisms"], "calibrated": ()} == {**before["mechanisms"], "calibrated": ()}


def test_levels_of_another_space_are_no_reason_to_fail() -> None:
    space = make_space(scale=3.0)
    space.cache.certificates.update({"digest": "another", "beta=0.001": {}})
    figures = measured(space)
    assert set(figures["mechanisms"]) == {"tem", "laplace"}


@pytest.mark.parametrize(
    ("vectors", "ranks"),
    [
        ([[1.0, 2.0]], []),
        ([[1.0, 2.0], [1.0, 2.0]], ["1", "pairs"]),
        ([[0.0, 0.0]] * 30, ["1", "10", "pairs"]),
    ],
)
def test_words_at_one_place_have_no_scale_for_epsilon(
    vectors: list[list[float]], ranks: list[str]
) -> None:
    words = [f"w{k}" for k in range(len(vectors))]
    figures = measured(EmbeddingSpace.from_vectors(words, vectors))
    assert (figures["unit"], figures["mechanisms"], list(figures["distances"])) == (0.0, {}, ranks)


def test_many_equal_words_count_in_the_next_distance_that_is_one() -> None:
    vectors = np.repeat(np.random.default_rng(0).normal(size=(20, 3)), 5, axis=0)
    figures = measured(EmbeddingSpace.from_vectors([f"w{k}" for k in range(100)], vectors))
    assert figures["distances"]["1"] == [0.0] * 5
    assert figures["unit"] == pytest.approx(figures["distances"]["10"][2], rel=1e-3)


@pytest.mark.parametrize("scale", [1e-12, 1e-3, 1e6, 1e12])
def test_grid_goes_with_the_distances(scale: float) -> None:
    plain, scaled = measured(make_space()), measured(make_space(scale=scale))
    assert scaled["unit"] == pytest.approx(scale * plain["unit"], rel=2e-3)
    for one, other in zip(plain["mechanisms"]["tem"], scaled["mechanisms"]["tem"], strict=True):
        assert other["epsilon"] * scaled["unit"] == pytest.approx(
            one["epsilon"] * plain["unit"], rel=0.02
        )
        assert other["kept"] == pytest.approx(one["kept"], abs=0.05)


def test_large_spaces_are_measured_on_fewer_words() -> None:
    words = [
        card_measurements._sample_size(size, dim)
        for size, dim in ((7, 3), (25_000, 100), (33_860, 300), (100_000, 300), (400_000, 300))
    ]
    assert words == [7, 50, 50, 35, 10]
