"""docs/results/calibration.md: the shapes it speaks of, and some of its figures measured again."""

import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from numpy.typing import NDArray

from hf_dxprivacy.calibration import privacy_statistics, sample_words
from hf_dxprivacy.mechanisms import Mahalanobis, create_mechanism
from hf_dxprivacy.randomness import keyed_generator
from hf_dxprivacy.spaces import EmbeddingSpace

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "results" / "calibration.md").read_text("utf-8")


def table(name: str) -> list[list[str]]:
    """Return the cells of a table without its head."""
    marked = re.search(f"<!-- {name}: made by .*?-->(.*?)<!-- end of {name} -->", PAGE, re.DOTALL)
    assert marked is not None
    lines = marked.group(1).strip().splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def means(name: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the ε and the means by ε and λ of a table of means and deviations."""
    rows = table(name)
    epsilons = np.array([float(row[0]) for row in rows])
    return epsilons, np.array([[float(cell.split("±")[0]) for cell in row[1:]] for row in rows])


def test_words_stay_less_and_spread_more_with_lambda() -> None:
    """For ε from 5 to 20; at 5 nearly all draws differ, whatever λ."""
    epsilons, kept = means("mahalanobis N_w")
    assert epsilons.tolist() == [5, 10, 15, 20, 40]
    assert (np.diff(kept, axis=1) < 0).all()
    assert (np.diff(kept, axis=0) > 0).all()
    _, spread = means("mahalanobis S_w")
    assert (np.diff(spread[1:4], axis=1) > 0).all()
    assert spread[0].min() > 97


def test_words_of_the_ball_stay_least_often_where_the_worst_are_equal() -> None:
    ball, gloss, glove = (
        [float(cell.split()[0]) for cell in row[2:]] for row in table("hierarchy tem")
    )
    assert np.less(ball, glove).all()
    assert np.less(2 * np.array(ball[:3]), gloss[:3]).all()


def test_lambda_hides_lonely_words_little_better_where_as_many_stay() -> None:
    rows = [row for row in table("lambdas grid") if row[0] == "GloVe"]
    assert rows[0][1] == "**0**"
    kept, densest, loneliest, worst = (
        np.array([float(row[at]) for row in rows]) for at in range(4, 8)
    )
    assert np.ptp(kept) < 0.01
    assert (np.diff(densest) > 0).all()
    assert (np.diff(loneliest) < 0).all()
    assert loneliest[-1] > 0.95 * loneliest[0]
    assert worst.min() > worst[0] / 1.05
    proven = [float(row[3]) for row in rows]
    assert proven == sorted(proven)
    assert proven[-1] > 8 * proven[0]


def test_fifty_dimensions_hide_more_at_the_same_relative_length() -> None:
    for row in table("dimensions N_w"):
        many, few = (float(row[at].split(" / ")[1]) for at in (2, 5))
        assert few < many / 4
        assert int(row[6]) >= int(row[3])


def test_exact_inputs_of_an_output_come_out_again(tables: ModuleType) -> None:
    """And fall with ε, as the least does in GloVe; noise leaves a word of GloVe alone earlier."""
    rows = [[cell.replace(",", "") for cell in row] for row in table("inputs K_w")]
    exact = [row for row in rows if row[1] == "tem"]
    for name in ("wordnet-gloss", "GloVe"):
        least = [int(row[5]) for row in exact if row[0] == name]
        assert least == sorted(least, reverse=True)
    least_of = {(row[0], row[1], row[2]): int(row[5]) for row in rows}
    assert least_of["GloVe", "laplace", "15"] == 1
    assert least_of["wordnet-gloss", "laplace", "32"] > 10
    gloss = EmbeddingSpace.from_pretrained("wordnet-gloss")
    space = tables.within(gloss, gloss.words[:3000])
    found = privacy_statistics(create_mechanism("tem", space, 8.0), runs=500, count_inputs=True)
    assert found.inputs is not None
    (row,) = (row for row in exact if row[0] == "wordnet-gloss" and row[2] == "8")
    stated = [float(cell) for cell in row[3:]]
    measured = [found.kept.mean(), np.median(found.distinct), found.inputs.min()]
    measured += np.percentile(found.inputs, (5, 50, 95)).tolist()
    assert stated == pytest.approx(measured, abs=0.51, rel=1e-3)
    assert stated[0] == pytest.approx(measured[0], abs=6e-4)


@pytest.fixture(scope="module")
def tables() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "benchmarks")
        yield importlib.import_module("calibration_tables")


@pytest.fixture(scope="module")
def space(data: Path, tables: ModuleType) -> EmbeddingSpace:
    """GloVe over the words of SMS spam and disaster tweets."""
    found: EmbeddingSpace = tables.short_texts(data)
    return found


@pytest.mark.realdata
def test_the_density_of_glove_comes_out_again(space: EmbeddingSpace) -> None:
    """Of 200 other words of the short texts: 5, 50 and 95 % of the distance to the 10th one."""
    (row,) = (row for row in table("density distances") if row[0] == "GloVe of short texts")
    near = np.sort(space.distances(np.arange(11, len(space), len(space) // 200)), axis=1)[:, 10]
    stated = [float(value) for value in row[4].split(" / ")]
    assert np.percentile(near, (5, 50, 95)) == pytest.approx(stated, rel=0.06)


@pytest.mark.realdata
@pytest.mark.parametrize("lam", [0.0, 1.0])
def test_figures_come_out_again(space: EmbeddingSpace, lam: float) -> None:
    """300 words at ε = 10: within five standard errors of what the page says for 2,000."""
    assert f"({len(space):,} of its words)" in PAGE
    words = sample_words(space, 300, rng=keyed_generator(7))
    found = privacy_statistics(Mahalanobis(space, 10.0, lam), words, 100, rng=keyed_generator(7))
    column = {0.0: 0, 1.0: -1}[lam]
    for name, measured in (("N_w", 100 * found.kept), ("S_w", found.distinct)):
        stated = means(f"mahalanobis {name}")[1][1, column]
        # Words of a block share their noise, which makes a mean less certain than its words.
        assert measured.mean() == pytest.approx(stated, abs=5 * measured.std() / np.sqrt(100))


def test_rendering_puts_tables_between_their_marks(tables: ModuleType) -> None:
    rows = [{"ε": 5.0, "λ = 0": "1 ± 2", "words": 12345}]
    page = tables.on_page(PAGE, {"mahalanobis": {"N_w": rows}})
    assert "| ε | λ = 0 | words |\n| --- | ---: | ---: |\n| 5 | 1 ± 2 | 12,345 |\n" in page
    assert page.replace("| 5 | 1 ± 2 | 12,345 |", "") != PAGE
    assert page.count("made by benchmarks/calibration_tables.py") == PAGE.count("made by bench")
