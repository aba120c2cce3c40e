"""Figures that the pages state, and examples that they show, measured and run again."""

import contextlib
import importlib
import io
import re
import runpy
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hf_dxprivacy import DxPrivatizer
from hf_dxprivacy.evaluation import reconstruction
from hf_dxprivacy.mechanisms import CalibratedExponential, create_mechanism
from hf_dxprivacy.randomness import keyed_generator
from hf_dxprivacy.spaces import EmbeddingSpace
from hf_dxprivacy.text import RowReader
from hf_dxprivacy.training import read_wordnet
from hf_dxprivacy.training.wordnet import DEFAULT_PATH
from machine import PATIENCE

ROOT = Path(__file__).parents[2]


def text_of(page: str) -> str:
    """Return the text of a page in docs/."""
    return (ROOT / "docs" / page).read_text("utf-8")


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
    shares = re.compile(r"^ *\| [^|]+ \| (\d+) ?% \| (\d+) ?% \| (\d+) ?% \|$", re.MULTILINE)
    measured = shares.findall(capsys.readouterr().out)
    assert len(measured) == 4
    assert shares.findall((ROOT / "docs" / "limitations.md").read_text("utf-8")) == measured
    film, _, sms, tweets = (english for english, *_ in measured)
    said = re.sub(r"\s+", " ", (ROOT / "README.md").read_text("utf-8"))
    assert f"{film} % of the words of film reviews, {sms} % of SMS and {tweets} % of tweets" in said


@pytest.mark.parametrize(
    ("name", "pattern"),
    [("tem", r"([\d.]+) for TEM"), ("calibrated", r"([\d.]+) for the calibrated")],
)
def test_one_guess_at_the_same_certified_epsilon(name: str, pattern: str) -> None:
    space, reader = EmbeddingSpace.from_pretrained("wordnet-gloss"), RowReader()
    lines = (ROOT / "examples" / "demo_sentences.txt").read_text("utf-8").splitlines()
    words = [w.lower() for line in lines for w in reader.read_text(line.split("\t")[1]).words]
    prior = {word: float(count) for word, count in Counter(words).items()}
    found = reconstruction(create_mechanism(name, space, 6.0), prior).results[0]
    (stated,) = re.findall(f"right with probability.*?{pattern}", text_of("attacks.md"), re.DOTALL)
    assert found.value == pytest.approx(float(stated), abs=6e-4)


def test_the_example_of_the_calibrated_mechanism() -> None:
    page = text_of("calibrated.md")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (stated,) = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "calibrated.md", "exec"), {})
    assert printed.getvalue() == stated


def test_the_curve_of_the_built_in_space_is_the_one_it_brings() -> None:
    space = EmbeddingSpace.from_pretrained("wordnet-gloss")
    section = text_of("calibrated.md").split("## The curve s(ε)")[1].split("\n## ")[0]
    rows = re.findall(r"^\| ([\d.]+) \| ([\d.]+) \|", section, re.MULTILINE)
    assert len(rows) == 7
    for epsilon, share in rows:
        rate = CalibratedExponential(space, float(epsilon)).inverse_temperature
        assert rate / float(epsilon) == pytest.approx(float(share), abs=6e-4)


def test_resampling_promises_what_plain_noise_does() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", text_of("resampling.md"), re.DOTALL)
    made: dict[str, Any] = {}
    exec(compile(code, "resampling.md", "exec"), made)
    plain = DxPrivatizer.from_pretrained("wordnet-gloss", mechanism="laplace", epsilon=40.0)
    resampled = made["privatizer"].guarantee
    assert resampled.ldp_epsilon == plain.guarantee.ldp_epsilon
    assert resampled.neighbour_epsilon == plain.guarantee.neighbour_epsilon
    assert any("i up to 50" in sentence for sentence in resampled.assumptions)


def lines(text: str, epsilon: int) -> dict[str, list[float]]:
    """Return the percentages of the table's lines for an ε, by the kind of noise."""
    found = re.findall(rf"^\| {epsilon} \| ([^|]+) \|(.*)\|$", text, re.MULTILINE)
    return {name: [float(share) for share in re.findall(r"[\d.]+", row)] for name, row in found}


@pytest.mark.slow
def test_the_table_of_repeated_releases_is_what_the_script_prints() -> None:
    command = [sys.executable, "-X", "utf8", ROOT / "examples" / "averaging_attack.py"]
    done = subprocess.run(
        [*command, "--epsilon", "6", "--counts", "1", "2", "4"],
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    page = text_of("repeated-releases.md")
    printed, shown = lines(done.stdout, 6), lines(page, 6)
    assert printed.keys() == shown.keys()
    assert len(shown) == 3
    for name, shares in shown.items():
        # Another processor may round a draw to another word.
        assert printed[name] == pytest.approx(shares[:3], abs=1.0)
    for epsilon in (2, 4, 6):
        fresh, *memoized = lines(page, epsilon).values()
        assert fresh[-1] > fresh[0]
        assert all(len(set(shares)) == 1 for shares in memoized)


@pytest.mark.slow
@pytest.mark.skipif(
    not (Path(DEFAULT_PATH) / "data.noun").exists(), reason=f"no WordNet in {DEFAULT_PATH}"
)
def test_fifty_epochs_of_mammals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    monkeypatch.delitem(sys.modules, "common", raising=False)
    script = importlib.import_module("poincare_training")
    row = script.by_us(read_wordnet().below("mammal.n.01"))
    page = text_of("results/poincare-training.md")
    stated = re.search(r"^\| train_poincare \| \S+ \| (\S+) \| (\S+) \|", page, re.MULTILINE)
    assert stated is not None
    assert row["MAP"] == pytest.approx(float(stated[1]), abs=0.01)
    assert row["mean rank"] == pytest.approx(float(stated[2]), abs=0.15)


@pytest.mark.realdata
def test_the_original_figure_of_utility_is_that_of_the_command(data: Path, tmp_path: Path) -> None:
    """It has no noise: chance is in the choice of the test parts alone, by their numbers."""
    archive = np.load(data / "embeddings" / "glove.840B.300d-33860.npz")
    space = EmbeddingSpace.from_vectors(archive["words"].tolist(), archive["vectors"])
    space.save_pretrained(tmp_path / "glove")
    page = text_of("results/utility.md")
    done = subprocess.run(
        [
            *(sys.executable, "-X", "utf8", str(ROOT / "examples" / "tradeoff.py")),
            *("--data", str(data / "utility" / "mr.jsonl.gz"), "--features", "glove"),
            *("--mechanism", "--baseline", "none"),
        ],
        cwd=tmp_path,
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    (printed,) = re.findall(r"^\| original \| .*$", done.stdout, re.MULTILINE)
    (stated,) = re.findall(r"^\| original \| .*$", page, re.MULTILINE)[:1]
    assert stated.split("|")[3].split() == printed.split("|")[3].split()
