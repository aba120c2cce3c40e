"""The verbs calibrate and demo, as they are called from a shell."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pandas as pd
import pytest

from hf_dxprivacy.cli.main import main
from hf_dxprivacy.report import HEADINGS
from hf_dxprivacy.spaces import EmbeddingSpace
from machine import PATIENCE


@pytest.fixture
def folder(
    tmp_path: Path, euclidean_space: EmbeddingSpace, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """Work in a folder with a space."""
    euclidean_space.save_pretrained(tmp_path / "space")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def calibrate(*arguments: str) -> int:
    named = [] if "--mechanism" in arguments else ["--mechanism", "calibrated"]
    return main(["calibrate", "space", "--words", "30", *arguments, *named])


def test_a_table_with_a_row_for_each_epsilon_is_printed(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert calibrate("--mechanism", "tem", "--epsilon", "9", "3") == 0
    above, head, first, second, about, kept, *guessed = capsys.readouterr().out.splitlines()
    assert head.split() == [name.split()[-1] for name in HEADINGS]
    assert above.split() == "certified local ε·d N_w N_w N_w S_w S_w S_w".split()
    assert max(map(len, (above, head, first, second))) < 80
    assert [first.split()[0], second.split()[0]] == ["3", "9"]
    assert len({len(above), len(head), len(first), len(second)}) == 1
    assert about == "30 words, exactly"
    said = (
        "N_w: how often one of them stays; S_w: outputs that together hold 95% of the probability"
    )
    assert kept == said
    assert " ".join(guessed) == (
        "An attacker who knows how often each occurs guesses more often than N_w says; "
        "hf-dxprivacy audit reconstruction tells how often on your texts"
    )
    assert max(map(len, guessed)) < 80
    assert calibrate("--mechanism", "tem", "--epsilon", "9", "3", "--max-nw", "0.99") == 0
    printed = capsys.readouterr()
    (answer,) = re.findall(r"ε = (\S+) for 'tem'", printed.out)
    assert f"--mechanism tem --epsilon {answer}" in " ".join(printed.err.split())
    assert sorted(os.listdir()) == ["space"]


def read(name: str) -> pd.DataFrame:
    if name.endswith(".csv"):
        return pd.read_csv(name)
    return pd.read_parquet(name) if name.endswith(".parquet") else pd.read_json(name)


def test_the_table_of_words_is_the_same_in_every_format(folder: Path) -> None:
    arguments = ["--mechanism", "laplace", "--epsilon", "4", "8", "--runs", "50", "--seed", "1"]
    names = ["words.csv", "words.json", "words.parquet"]
    for name in names:
        assert calibrate(*arguments, "--output", name) == 0
    first, *others = (read(name) for name in names)
    assert first["word"].nunique() == 30
    assert first["epsilon"].tolist() == [4.0] * 30 + [8.0] * 30
    assert ((first["kept_low"] <= first["kept"]) & (first["kept"] <= first["kept_high"])).all()
    for other in others:
        pd.testing.assert_frame_equal(first, other, check_dtype=False)
    assert isinstance(json.loads(Path("words.json").read_text()), list)


def test_the_report_says_which_epsilon_meets_the_target(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--mechanism", "tem", "--epsilon", "0.1", "0.2", "50"]
    assert calibrate(*arguments, "--max-nw", "0.5", "--report", "report.html") == 0
    printed = capsys.readouterr().out
    assert "ε = 0.2 for 'tem': N_w ≤ 0.5 for all of 30 words, exactly" in printed
    page = Path("report.html").read_text()
    assert "ε = 0.2 for &#39;tem&#39;: N_w ≤ 0.5" in page
    assert page.count("<img ") == 3
    assert "occur guesses more often than N_w says" in page


def test_a_target_that_is_missed_is_an_error_after_the_table(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert calibrate("--mechanism", "tem", "--epsilon", "50", "--min-sw", "400") == 1
    printed = capsys.readouterr()
    assert len(printed.out.splitlines()) == 7
    assert re.search("no ε that was tried .* meets S_w ≥ 400", printed.err)


@pytest.mark.parametrize(
    ("arguments", "pattern"),
    [
        (["--epsilon", "0"], "argument --epsilon: expected a finite number above zero, got 0"),
        (["--epsilon", "1", "--output", "t.txt"], "t.txt: expected a name that ends in .csv"),
        (["--epsilon", "1", "--report", "old.html"], "old.html exists already"),
        (["--epsilon", "1", "--output", "a.csv", "--report", "a.csv"], "are the same file"),
        (["--epsilon", "1", "--lam", "0.5"], "mechanism 'calibrated' has no option 'lam'"),
        (
            ["--epsilon", "1", "--max-nw", "2"],
            "argument --max-nw: expected a number between 0 and 1, got 2",
        ),
    ],
)
def test_wrong_usage_is_said_before_anything_is_measured(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], pattern: str
) -> None:
    Path("old.html").write_text("precious")
    assert calibrate(*arguments) == 2
    printed = capsys.readouterr()
    assert pattern in printed.err
    assert not printed.out
    assert sorted(os.listdir()) == ["old.html", "space"]
    assert Path("old.html").read_text() == "precious"


@pytest.mark.slow
def test_the_page_is_served_until_a_signal_comes(folder: Path) -> None:
    pytest.importorskip("uvicorn")
    process = subprocess.Popen(
        [sys.executable, "-m", "hf_dxprivacy", "demo", "--space", "space", "--host", "127.0.0.2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with contextlib.ExitStack() as stack:
        stack.callback(process.kill)
        assert process.stdout is not None
        found = re.fullmatch(r"Open (http://127\.0\.0\.2:\d+/)\n", process.stdout.readline())
        assert found is not None
        with urllib.request.urlopen(found[1], timeout=PATIENCE) as answer:
            assert b"page.js" in answer.read()
        process.send_signal(signal.SIGTERM)
        _, printed = process.communicate(timeout=PATIENCE)
    assert process.returncode == 143
    assert printed == "hf-dxprivacy: error: interrupted by SIGTERM; nothing half-written is left\n"


def test_a_page_that_others_can_reach_is_warned_of(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("uvicorn")
    assert main(["demo", "--host", "0.0.0.0", "--space", "nowhere"]) == 1
    printed = capsys.readouterr().err
    assert "warning: 0.0.0.0 is not the loopback address: others may reach this page" in printed
    assert "nowhere" in printed.splitlines()[-1]


def test_a_file_of_texts_is_no_space(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tickets.csv").write_text("text\nThe soup was cold.\n")
    law = ["--mechanism", "hierarchical", "--epsilon", "1.5"]
    assert main(["calibrate", "tickets.csv", *law]) == 2
    printed = capsys.readouterr().err
    assert "at your own texts: hf-dxprivacy compare tickets.csv" in printed
    privatize = ["privatize", "tickets.csv", "--output", "o.csv", "--space", "tickets.csv"]
    assert main([*privatize, *law]) == 1
    printed = capsys.readouterr().err
    assert "that is a file, and a space" in printed
    assert "did you mean" not in printed
