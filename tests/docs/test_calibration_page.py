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
from hf_dxprivacy.mechanisms import Mahalanobis
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
