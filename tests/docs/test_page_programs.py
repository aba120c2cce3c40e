"""Programs on the pages run: code blocks, and the command lines of the README."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hf_dxprivacy.cli.main import main
from hub_server import HubServer
from machine import PATIENCE
from programs import ROOT, blocks

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])

NAMES = [page.relative_to(ROOT).as_posix() for page in PAGES]


# In the clusters of tests/integration/test_ray.py and test_spark.py, which are slow to start.
ELSEWHERE = "docs/distributed.md"
PYTHON = [
    pytest.param(
        code,
        id=f"{name}-{number}",
        # Of the pages those of the README alone are in `make test`.
        marks=pytest.mark.slow if name == "README.md" else pytest.mark.cluster,
    )
    for name, page in zip(NAMES, PAGES, strict=True)
    for number, code in enumerate(blocks(page, "python"), 1)
    if name != ELSEWHERE
]


def run(folder: Path, hub: HubServer, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run Python in a folder, with a token for the Hub, and require that it ends well."""
    done = subprocess.run(
        [sys.executable, "-X", "utf8", *arguments],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "HF_TOKEN": hub.token,
        },
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done


def commands() -> list[list[str]]:
    """Return the arguments of the program in the README, with names of files."""
    lines = "".join(blocks(ROOT / "README.md", "sh")).splitlines()
    names = {"INPUT": "in.csv", "OUT": "out.csv"}
    return [
        [names.get(word, word) for word in line.split()[1:]]
        for line in lines
        if line.startswith("hf-dxprivacy ")
    ]


# Starts processes that import the script that started them.
OF_POOLS = re.compile(r"\b(multiprocessing|datatrove)\b")
# Needed by a page and by nothing here: too large to be installed for it.
FOREIGN = re.compile(r"^from (nemo_curator)\b", re.MULTILINE)


@pytest.mark.parametrize("code", PYTHON)
def test_python_block_runs(
    code: str,
    tmp_path: Path,
    hub: HubServer,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    if foreign := FOREIGN.search(code):
        pytest.importorskip(foreign[1], reason=f"{foreign[1]} is not installed; run by hand")
    if OF_POOLS.search(code):
        (tmp_path / "block.py").write_text(code, "utf-8")
        printed = run(tmp_path, hub, "block.py").stdout
    else:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("HF_TOKEN", hub.token)
        exec(compile(code, "block.py", "exec"), {"__name__": "__main__"})
        printed = capfd.readouterr().out
    # A release is always shown with what holds for it.
    unit = "text" if "SentencePrivatizer" in code else "word"
    expected = f"ε·d-private per {unit}" if "rivatize" in code else ""
    assert expected in printed


def test_the_ten_lines_have_the_rows_that_they_seem_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    start, _, _ = blocks(ROOT / "README.md", "python")[0].partition("privatizer = ")
    names: dict[str, Any] = {}
    exec(start, names)
    reviews = names["reviews"]
    assert reviews.num_rows == 100
    assert reviews[:]["stars"] == [1] * 100


@pytest.fixture
def folder(tmp_path: Path, hub: HubServer, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's folder with a file to release."""
    (tmp_path / "in.csv").write_text("text\nThe soup was cold.\n", "utf-8")
    monkeypatch.setenv("HF_TOKEN", hub.token)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
def test_command_line_of_the_readme_runs(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(commands()[0]) == 0
    assert "ε = 1.5 per unit" in capfd.readouterr().err
    released = (folder / "out.csv").read_text("utf-8").splitlines()
    assert released[0] == "text"
    assert re.fullmatch(r"\S+ \S+ \S+ \S+\.", released[1])
    assert main([*commands()[4], "--overwrite"]) == 0
    assert "any text against any other: ε ≤ 12\n" in capfd.readouterr().err


@pytest.mark.slow
def test_command_line_of_the_hub_runs(
    folder: Path, hub: HubServer, capfd: pytest.CaptureFixture[str]
) -> None:
    (folder / "glove.6B.100d.txt").write_text("soup 1 0\ncold 0 1\nwarm 0.1 0.9\n", "utf-8")
    convert, push, use, *_ = commands()[1:]
    assert [main(convert), main(push), main(use)] == [0, 0, 0]
    assert f"at commit {hub.repo('me/glove-50k').find('main').oid}" in capfd.readouterr().err
    assert (folder / "out.csv").read_text("utf-8").startswith("text\n")


@pytest.mark.slow
def test_commands_that_look_at_an_epsilon_run(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    calibrate, audit, page = commands()[5:]
    assert main([*calibrate, "--words", "20"]) == 0
    assert "<html" in (folder / "report.html").read_text("utf-8")
    audit[audit.index("--inputs") + 1] = "20"
    capfd.readouterr()
    assert main(audit) == 0
    assert "nothing above ε·d" in capfd.readouterr().out
    assert page == ["demo"]  # See tests/integration/test_page.py.


@pytest.mark.slow
@pytest.mark.parametrize("script", ["readme_examples.py", "hierarchical_page.py"])
def test_examples_are_the_output_of_their_script(script: str) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "utf8", ROOT / "scripts" / script, "--check"],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
