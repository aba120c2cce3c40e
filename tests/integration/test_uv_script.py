"""The script for uv: its header, files, and datasets on the Hub."""

import json
import re
import runpy
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from datasets import Dataset, load_dataset
from packaging.requirements import Requirement

from hf_dxprivacy import EmbeddingSpace, __version__
from hf_dxprivacy.cli.main import main as program
from hub_server import HubServer

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "examples" / "uv_privatize.py"
# No word of the space.
SECRET = "xylographer"
TEXTS = [f"waaa, {SECRET}!", "", "waab waac"]
OPTIONS = ("--text-column", "review", "--space", "space", "--mechanism", "tem", "--epsilon", "3")


@pytest.fixture(scope="module")
def script() -> Callable[..., int]:
    """Return the script's function."""
    found: Callable[..., int] = runpy.run_path(str(SCRIPT))["main"]
    return found


@pytest.fixture(autouse=True)
def folder(
    tmp_path: Path, euclidean_space: EmbeddingSpace, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """Work in a folder with a space and a table."""
    euclidean_space.save_pretrained(tmp_path / "space")
    pd.DataFrame({"review": TEXTS, "stars": [1, 2, 3]}).to_csv(tmp_path / "in.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def is_release(texts: Any, space: EmbeddingSpace) -> bool:
    words = re.findall(r"\w+", " ".join(texts))
    shapes = [re.sub(r"\w+", "w", text) for text in texts]
    return shapes == ["w, w!", "", "w w"] and all(word in space for word in words)


def test_the_header_names_this_package_and_the_pythons_that_it_runs_on() -> None:
    tomllib = pytest.importorskip("tomllib", reason="Python 3.10 has no reader of TOML")
    # The regular expression of PEP 723.
    block = r"(?m)^# /// (?P<type>[a-zA-Z0-9-]+)$\s(?P<content>(^#(| .*)$\s)+)^# ///$"
    (found,) = re.finditer(block, SCRIPT.read_text("utf-8"))
    assert found["type"] == "script"
    lines = found["content"].splitlines(keepends=True)
    header = tomllib.loads("".join(line[2:] if line[1:2] == " " else line[1:] for line in lines))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert header["requires-python"] == project["requires-python"]
    (needed,) = map(Requirement, header["dependencies"])
    assert needed.name == project["name"]
    assert __version__ in needed.specifier
    assert needed.extras <= {*project["optional-dependencies"]}


def test_a_file_becomes_a_file(
    script: Callable[..., int], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert script(["in.csv", "out.jsonl", *OPTIONS]) == 0
    rows = [json.loads(line) for line in Path("out.jsonl").read_text("utf-8").splitlines()]
    assert [row["stars"] for row in rows] == ["1", "2", "3"]
    space = EmbeddingSpace.from_pretrained("space")
    assert is_release([row["review"] for row in rows], space)
    said = capsys.readouterr().err
    assert "ε·d-private per word: ε = 3" in said
    assert SECRET not in said
    assert {*folder.iterdir()} == {folder / name for name in ("in.csv", "out.jsonl", "space")}


def test_a_dataset_of_the_hub_becomes_another_one(
    script: Callable[..., int], hub: HubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", hub.token)
    originals = Dataset.from_dict({"review": TEXTS, "stars": [1, 2, 3]})
    originals.push_to_hub("me/reviews")
    arguments = ["me/reviews", "me/reviews.released", *OPTIONS, "--license", "cc-by-4.0"]
    assert script([*arguments, "--private"]) == 0
    assert hub.repo("datasets/me/reviews.released").private
    released = load_dataset("me/reviews.released", split="train")
    assert released["stars"][:] == [1, 2, 3]
    assert is_release(released["review"][:], EmbeddingSpace.from_pretrained("space"))
    files = hub.repo("datasets/me/reviews.released").files()
    assert b"Near words: " in files["README.md"]
    assert not [name for name, content in files.items() if SECRET.encode() in content]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--help"], 0, "uv run uv_privatize.py INPUT OUTPUT"),
        ([], 2, "uv run uv_privatize.py INPUT OUTPUT"),
        (["in.csv"], 2, "uv run uv_privatize.py INPUT OUTPUT"),
        (["--text-column", "review", "in.csv", "out.csv"], 2, "INPUT OUTPUT"),
        (["in.csv", "out.csv", "--mechanism", "tem"], 2, "--epsilon is missing"),
        (["in.csv", "out.csv", *OPTIONS, "--license", "mit"], 2, "--license"),
        (["no.csv", "out.csv", *OPTIONS], 1, "no.csv"),
        (["in.csv", "me/released", *OPTIONS, "--license", "none-such"], 2, "licence"),
        (["in.csv", "me", *OPTIONS, "--license", "mit"], 2, "to be namespace/name on the Hub"),
        (["in.csv", "me/a--b", *OPTIONS, "--license", "mit"], 2, "me/a--b"),
        (["in.csv", "me/released", *OPTIONS[2:], "--license", "mit"], 1, "text"),
    ],
)
def test_a_mistake_is_named_and_nothing_is_left(
    script: Callable[..., int],
    folder: Path,
    hub: HubServer,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    code: int,
    said: str,
) -> None:
    monkeypatch.setenv("HF_TOKEN", hub.token)
    (folder / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder / "temporary"))
    assert script(arguments) == code
    printed = capsys.readouterr()
    assert said in printed.out + printed.err
    assert SECRET not in printed.out + printed.err
    assert "ε = 3" not in printed.err
    assert not [*(folder / "temporary").iterdir()]
    assert {*folder.iterdir()} == {folder / name for name in ("in.csv", "space", "temporary")}
    assert not hub.repos


def test_without_a_token_nothing_is_privatized(
    script: Callable[..., int],
    folder: Path,
    hub: HubServer,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("HF_TOKEN", raising=False)
    # Another test may have logged in.
    monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", str(folder / "no-token"))
    assert script(["in.csv", "me/released", *OPTIONS, "--license", "mit"]) == 2
    printed = capsys.readouterr().err
    assert "set HF_TOKEN" in printed
    assert "ε = 3" not in printed


def test_a_release_whose_push_fails_is_kept(
    script: Callable[..., int],
    folder: Path,
    hub: HubServer,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_of_somebody_else")
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    assert script(["in.csv", "me/released", *OPTIONS, "--license", "mit"]) == 1
    (kept,) = folder.glob("released-*")
    found = pd.read_parquet(kept / "released.parquet")
    assert is_release(found["review"], EmbeddingSpace.from_pretrained("space"))
    command = capsys.readouterr().err.partition("To push it: hf-dxprivacy ")[2]
    monkeypatch.setenv("HF_TOKEN", hub.token)
    assert program(shlex.split(command)) == 0
    assert load_dataset("me/released", split="train")["review"][:] == [*found["review"]]


def test_nothing_is_privatized_for_the_hub_without_a_licence(
    script: Callable[..., int], hub: HubServer, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        script(["in.csv", "me/released", *OPTIONS])
    assert "--license" in capsys.readouterr().err
    assert not hub.repos
