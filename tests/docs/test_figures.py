"""Figures that the pages state, measured again."""

import re
import runpy
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from hf_dxprivacy.mechanisms import create_mechanism
from hf_dxprivacy.randomness import keyed_generator
from hf_dxprivacy.spaces import EmbeddingSpace
from hf_dxprivacy.text import RowReader

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def space() -> EmbeddingSpace:
    return EmbeddingSpace.from_pretrained("wordnet-gloss")


@pytest.fixture(scope="module")
def ids(space: EmbeddingSpace) -> NDArray[np.int64]:
    """Words of the demo's sentences that the space has."""
    lines = (ROOT / "examples" / "demo_sentences.txt").read_text("utf-8").splitlines()
    reader = RowReader()
    words = [w.lower() for line in lines for w in reader.read_text(line.split("\t")[1]).words]
    found = space.ids(words)
    return found[found >= 0]


@pytest.mark.parametrize("name", ["wordnet-gloss", "wordnet-poincare"])
def test_one_is_the_median_distance_to_the_nearest_neighbour(name: str) -> None:
    """docs/guarantee.md; worked out again, not read from the config."""
    stored = EmbeddingSpace.from_pretrained(name)
    again = EmbeddingSpace.from_vectors(stored.words, stored.vectors, stored.metric, stored.scale)
    assert again.neighbour_distances((1,))[1] == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize(
    ("name", "epsilon", "kept", "near"),
    [("calibrated", 7.0, 0.67, 0.15), ("laplace", 32.0, 0.62, 0.47)],
)
def test_words_come_out_unchanged_or_far_away(
    space: EmbeddingSpace,
    ids: NDArray[np.int64],
    name: str,
    epsilon: float,
    kept: float,
    near: float,
) -> None:
    """docs/limitations.md: shares of words that stay, and of changed ones among the 100 nearest."""
    outputs = create_mechanism(name, space, epsilon).sample(ids, keyed_generator(0))
    inputs, outputs = ids[outputs != ids], outputs[outputs != ids]
    distances = space.distances(inputs)
    to_output = distances[np.arange(len(outputs)), outputs]
    nearer = (distances < to_output[:, None]).sum(axis=1)
    assert 1 - len(inputs) / len(ids) == pytest.approx(kept, abs=0.05)
    assert np.mean(nearer <= 100) == pytest.approx(near, abs=0.06)


@pytest.mark.realdata
def test_the_built_in_spaces_lack_many_words(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """docs/limitations.md and README.md, by the script."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    monkeypatch.setattr("sys.argv", ["missing_words.py", "--data", str(data)])
    runpy.run_path(str(ROOT / "benchmarks" / "missing_words.py"), run_name="__main__")
    shares = re.compile(r"^ *\| [^|]+ \| (\d+) ?% \| (\d+) ?% \|$", re.MULTILINE)
    measured = shares.findall(capsys.readouterr().out)
    assert len(measured) == 4
    assert shares.findall((ROOT / "docs" / "limitations.md").read_text("utf-8")) == measured
    film, _, sms, tweets = (gloss for gloss, _ in measured)
    said = re.sub(r"\s+", " ", (ROOT / "README.md").read_text("utf-8"))
    assert f"{film} % of those of film reviews, {sms} % of SMS and {tweets} % of tweets" in said
