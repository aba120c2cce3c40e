"""Pictures of the report: they show the numbers they are given, and say so in words."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from hf_dxprivacy.errors import InvalidValueError
from hf_dxprivacy.randomness import keyed_generator
from hf_dxprivacy.report import (
    Picture,
    Sweep,
    draw_distances,
    draw_histograms,
    draw_percentiles,
    draw_results,
    draw_tradeoff,
    draw_word,
    sweep,
)
from hf_dxprivacy.report.poincare_disk import RINGS
from hf_dxprivacy.results import Result, Results
from hf_dxprivacy.spaces import EmbeddingSpace
from hf_dxprivacy.training import Relations


@pytest.fixture(scope="module")
def swept(euclidean_space: EmbeddingSpace) -> Sweep:
    return sweep(euclidean_space, "tem", [4.0, 1.0, 16.0], euclidean_space.words[:100])


def test_percentiles_are_those_of_the_words(swept: Sweep) -> None:
    picture = draw_percentiles(swept)
    kept, spread = picture.figure.axes
    for axes, rows, worst in (
        (kept, [s.statistics.kept for s in swept.steps], np.max),
        (spread, [s.statistics.support for s in swept.steps], np.min),
    ):
        median, extreme = axes.lines
        np.testing.assert_allclose(median.get_xdata(), [1.0, 4.0, 16.0])
        np.testing.assert_allclose(axes.get_xticks(), [1.0, 4.0, 16.0])
        np.testing.assert_allclose(median.get_ydata(), [np.median(row) for row in rows])
        np.testing.assert_allclose(extreme.get_ydata(), [worst(row) for row in rows])
        outer, inner = (band.get_paths()[0].get_extents() for band in axes.collections)
        # A band reaches from its lowest to its highest percentile over all ε.
        assert outer.y0 == pytest.approx(min(np.percentile(row, 5) for row in rows))
        assert inner.y1 == pytest.approx(max(np.percentile(row, 75) for row in rows))
    assert "From ε = 1 to 16" in picture.alt


def test_histograms_count_every_word_at_every_epsilon(swept: Sweep) -> None:
    picture = draw_histograms(swept)
    assert len(picture.figure.axes) == 6
    for axes in picture.figure.axes:
        assert sum(bar.get_height() for bar in axes.patches) == 100
    kept = swept.steps[1].statistics.kept
    in_first_bin = int((kept < 1 / 20).sum())
    assert picture.figure.axes[2].patches[0].get_height() == in_first_bin
    assert "3 values of ε" in picture.alt


def test_distances_are_those_of_the_space(euclidean_space: EmbeddingSpace) -> None:
    picture = draw_distances(euclidean_space)
    (axes,) = picture.figure.axes
    ranks, medians = axes.lines[0].get_data()
    assert list(ranks) == [1, 2, 5, 10, 20, 50, 100, 200]
    known = euclidean_space.neighbour_distances([1, 10, 100])
    # The space states them rounded up, to digits that all processors share.
    np.testing.assert_allclose([medians[0], medians[3], medians[6]], [*known.values()], rtol=1e-6)
    assert axes.get_ylabel() == "Euclidean distance"


def result(mechanism: str, epsilon: float | None, value: float, metric: str = "accuracy") -> Result:
    task = "sentiment" if metric == "accuracy" else "attack"
    return Result(task, "reviews", mechanism, epsilon, metric, value, value - 0.1, value + 0.05)


UTILITY = Results(
    [
        result("tem", 4.0, 0.7),
        result("tem", 2.0, 0.6),
        result("laplace", 4.0, 0.5),
        result("none", None, 0.9),
        result("random", None, 0.4),
    ]
)
PRIVACY = Results([result("tem", 2.0, 0.2, "success"), result("tem", 4.0, 0.3, "success")])


def test_results_are_drawn_in_the_order_of_epsilon_with_their_intervals() -> None:
    picture = draw_results(UTILITY + PRIVACY, "accuracy")
    (axes,) = picture.figure.axes
    bars = {bar.get_label(): bar for bar in axes.containers}
    assert set(bars) == {"tem", "laplace"}
    line, _, (interval,) = bars["tem"].lines
    assert line.get_data()[0].tolist() == [2.0, 4.0]
    assert line.get_data()[1].tolist() == [0.6, 0.7]
    np.testing.assert_allclose(interval.get_segments()[0], [[2.0, 0.5], [2.0, 0.65]])
    level = {line.get_label(): line.get_ydata()[0] for line in axes.lines if len(line.get_xdata())}
    assert (level["original"], level["random"]) == (0.9, 0.4)
    (legend,) = picture.figure.legends
    assert {t.get_text() for t in legend.get_texts()} == {"tem", "laplace", "original", "random"}
    assert "sentiment on reviews" in picture.alt
    assert bars["tem"].lines[0].get_marker() != bars["laplace"].lines[0].get_marker()


def test_a_trade_off_pairs_figures_of_the_same_mechanism_and_epsilon() -> None:
    picture = draw_tradeoff(UTILITY, PRIVACY)
    (axes,) = picture.figure.axes
    (bar,) = axes.containers
    assert bar.lines[0].get_xydata().tolist() == [[0.2, 0.6], [0.3, 0.7]]
    assert [text.get_text() for text in axes.texts] == ["2", "4"]
    assert axes.get_xlabel() == "success (attack, reviews)"


def test_results_that_can_not_be_drawn_are_refused() -> None:
    with pytest.raises(InvalidValueError, match="metric to be one of 'accuracy'; got metric='F1'"):
        draw_results(UTILITY, "F1")
    with pytest.raises(InvalidValueError, match="exactly one task, dataset and metric"):
        draw_tradeoff(UTILITY + PRIVACY, PRIVACY)
    with pytest.raises(InvalidValueError, match="share no mechanism at an ε"):
        draw_tradeoff(UTILITY.where(mechanism="laplace"), PRIVACY)


def places(picture: Picture, names: Sequence[str]) -> dict[str, np.ndarray]:
    texts = {text.get_text(): np.array(text.xy) for text in picture.figure.axes[0].texts}
    return {name: texts[name] for name in names}


def test_distances_from_the_word_in_the_middle_are_true(poincare_space: EmbeddingSpace) -> None:
    word, *outputs = poincare_space.words[:30]
    found = places(draw_word(poincare_space, word, outputs), [word, *outputs])
    np.testing.assert_allclose(found.pop(word), 0.0, atol=1e-12)
    for name, place in found.items():
        distance = poincare_space.distance(word, name)
        assert np.linalg.norm(place) == pytest.approx(np.tanh(distance / 2.0))
    # They lie all around it, though seen from it most are on one side.
    angles = np.degrees(np.arctan2(*np.array(list(found.values())).T))
    assert np.ptp(angles) > 180.0


def test_classes_are_drawn_with_lines_to_what_is_below_them(poincare_space: EmbeddingSpace) -> None:
    word, output, other, above, unrelated = poincare_space.words[:5]
    pairs = [(word, above), (output, above), (output, "elsewhere"), (other, unrelated)]
    picture = draw_word(
        poincare_space, word, [output, output], Relations.from_names(pairs, poincare_space.words)
    )
    found = places(picture, [word, output, above])
    lines = [line.get_xydata().tolist() for line in picture.figure.axes[0].lines]
    assert lines == [[found[n].tolist(), found[above].tolist()] for n in (word, output)]
    assert len(picture.figure.axes[0].texts) == 3 + len(RINGS)
    assert f"Most often: {output} (2)." in picture.alt
    assert "1 of their classes" in picture.alt


def test_words_are_drawn_in_two_dimensions_and_alone(poincare_space: EmbeddingSpace) -> None:
    points = np.array([[0.1, 0.2], [0.5, -0.2], [-0.6, 0.7]])
    disk = EmbeddingSpace.from_vectors(["a", "b", "c"], points, "poincare")
    found = places(draw_word(disk, "a", ["b", "c"]), ["a", "b"])
    assert np.linalg.norm(found["b"]) == pytest.approx(np.tanh(disk.distance("a", "b") / 2.0))
    assert "0 words it became in 0 draws" in draw_word(disk, "a", []).alt
    with pytest.raises(InvalidValueError, match="1 of 2 words to draw are not in the space"):
        draw_word(poincare_space, poincare_space.words[0], ["mouse"])
    with pytest.raises(InvalidValueError, match="the Poincaré metric, got 'euclidean'"):
        draw_word(EmbeddingSpace.from_vectors(["a"], np.zeros((1, 2))), "a", [])


def test_the_same_picture_is_the_same_file(swept: Sweep, tmp_path: Path) -> None:
    picture = draw_histograms(swept)
    first = picture.svg()
    assert first == draw_histograms(swept).svg()
    assert first.startswith(b"<?xml")
    # Letters are drawn, so that no font is needed.
    assert b"<text" not in first
    picture.save(tmp_path / "picture.png")
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")


def test_pyplot_is_not_touched() -> None:
    code = (
        "import sys, numpy as np\n"
        "from hf_dxprivacy.report import draw_distances\n"
        "from hf_dxprivacy.spaces import EmbeddingSpace\n"
        "space = EmbeddingSpace.from_vectors(['a', 'b', 'c'], np.eye(3))\n"
        "draw_distances(space).svg()\n"
        "print('matplotlib' in sys.modules, 'matplotlib.pyplot' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "False"]


def test_a_sweep_needs_an_epsilon_and_a_word(euclidean_space: EmbeddingSpace) -> None:
    with pytest.raises(InvalidValueError, match="one ε and one word, got 0 and 1"):
        sweep(euclidean_space, "tem", [], euclidean_space.words[:1])
    with pytest.raises(InvalidValueError, match="one ε and one word, got 1 and 0"):
        sweep(euclidean_space, "tem", [1.0], [])


def test_a_sweep_is_a_table_and_a_dataset(euclidean_space: EmbeddingSpace) -> None:
    words = euclidean_space.words[:20]
    rng = keyed_generator(3, "sweep")
    found = sweep(euclidean_space, "laplace", [8.0, 2.0], words, runs=50, rng=rng)
    assert found.spread_name == "different outputs in 50 draws"
    low, high = found.steps
    assert low.mechanism.epsilon == 2.0
    kept, distinct = high.statistics.kept, high.statistics.distinct
    assert high.cells()[:2] == ["8", "8"]
    assert high.cells()[4:7] == [f"{f(kept):.3f}" for f in (np.mean, np.median, np.max)]
    assert high.cells()[7:] == [f"{f(distinct):,.0f}" for f in (np.mean, np.median, np.min)]
    rows = found.to_dataset()
    assert rows["epsilon"] == [2.0] * 20 + [8.0] * 20
    assert rows["word"] == [*words, *words]
    np.testing.assert_allclose(rows["kept"], [*low.statistics.kept, *kept])
    assert set(rows["mechanism"]) == {"laplace"}
