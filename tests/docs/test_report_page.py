"""docs/report.md and examples/space: the commands, and the Space as the Hub would run it."""

import os
import re
import shlex
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from huggingface_hub import metadata_load

from hf_dxprivacy.cli.main import main
from machine import PATIENCE

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "report.md").read_text("utf-8")
SPACE = ROOT / "examples" / "space"


def test_the_command_writes_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    (line,) = re.findall(r"^hf-dxprivacy (calibrate .*)$", PAGE, re.MULTILINE)
    assert main([*shlex.split(line), "--words", "20"]) == 0
    assert "N_w ≤ 0.5 for all of 20 words, exactly" in capsys.readouterr().out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.html", "words.csv"]


def test_the_header_is_what_the_hub_reads() -> None:
    header = metadata_load(SPACE / "README.md")
    assert header is not None
    assert (header["sdk"], header["license"]) == ("docker", "apache-2.0")
    assert str(header["app_port"]) in (SPACE / "app.py").read_text()
    named = re.findall(r"\b\w+\.(?:py|txt)\b", (SPACE / "Dockerfile").read_text())
    assert {*named} == {"app.py", "requirements.txt"}
    # The Hub refuses longer ones.
    assert len(header["short_description"]) <= 60
    assert (SPACE / "requirements.txt").read_text().split() == ["hf-dxprivacy[report]"]


@pytest.mark.slow
def test_the_space_serves_the_page() -> None:
    pytest.importorskip("uvicorn")
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = str(listener.getsockname()[1])
    process = subprocess.Popen(
        [sys.executable, "app.py"],
        cwd=SPACE,
        env={**os.environ, "HOST": "127.0.0.1", "PORT": port},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        assert url == f"http://127.0.0.1:{port}/"
        with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
            assert b"wordnet-poincare" in answer.read()
    finally:
        process.kill()
        process.communicate()


def test_the_picture_is_there_and_small() -> None:
    (name,) = re.findall(r"\((images/[\w-]+\.png)\)", PAGE)
    assert (ROOT / "docs" / name).stat().st_size < 150_000
