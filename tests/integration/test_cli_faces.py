"""The program in a terminal: help, colours, completion, progress, what a run ends with."""

import fcntl
import html
import io
import os
import pty
import re
import runpy
import select
import shlex
import shutil
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from hf_dxprivacy.calibration import privacy_statistics, sample_words
from hf_dxprivacy.cli import terminal
from hf_dxprivacy.cli.arguments import MECHANISMS, Parser
from hf_dxprivacy.cli.main import PURPOSES, VERBS, main, parser_of
from hf_dxprivacy.mechanisms import create_mechanism
from hf_dxprivacy.randomness import keyed_generator
from hf_dxprivacy.spaces import EmbeddingSpace
from machine import PATIENCE

ROOT = Path(__file__).parents[2]
PROGRAM = [sys.executable, "-m", "hf_dxprivacy"]
ESCAPE = "\033["


@pytest.fixture
def folder(
    tmp_path: Path, euclidean_space: EmbeddingSpace, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """Work in a folder with a space and a table."""
    euclidean_space.build_hierarchy().save_pretrained(tmp_path / "space")
    (tmp_path / "in.csv").write_text("text,stars\n" + "waab waac waad,1\n" * 20)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def in_terminal(arguments: str, columns: int = 80) -> tuple[int, str]:
    """Run the program in a terminal of its own; return the exit code and all that it showed."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = os.environ | {"COLUMNS": str(columns), "TERM": "xterm-256color"}
    environment.pop("NO_COLOR", None)
    process = subprocess.Popen(
        [*PROGRAM, *shlex.split(arguments)], stdout=theirs, stderr=theirs, env=environment
    )
    os.close(theirs)
    shown = b""
    while select.select([ours], [], [], PATIENCE)[0]:
        try:
            part = os.read(ours, 1 << 16)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        shown += part
    os.close(ours)
    return process.wait(PATIENCE), shown.decode()


def test_verbs_are_listed_by_purpose(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    places = [shown.index(f"\n{purpose}:\n") for purpose in PURPOSES]
    assert places == sorted(places)
    assert main(["help", "privatize"]) == 0
    assert "--epsilon E" in capsys.readouterr().out


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("columns", [40, 80, 200])
def test_help_fits_the_terminal(verb: str, columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    shown = parser_of(verb).format_help()
    long = [line for line in shown.splitlines() if len(line) > min(columns, terminal.WIDEST)]
    # Usage and examples are to be copied, and are not broken.
    assert all(line.startswith(("usage:", "  hf-dxprivacy", "      --", "  # ")) for line in long)
    assert shown.isascii()
    common = shown.index("\nin every verb:\n")
    assert not re.search(r"\n[a-z][\w ,]*:\n  ", shown[common + 1 :].partition("\n")[2])


def test_examples_come_before_the_options_and_prose_after_them() -> None:
    shown = parser_of("privatize").format_help()
    order = ("hf-dxprivacy privatize reviews.csv", "\nprivacy:\n", "e^(epsilon*d)")
    places = [shown.index(each) for each in order]
    assert places == sorted(places)


@pytest.mark.parametrize(
    ("environment", "terminal_is_one", "coloured"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"NO_COLOR": "1"}, True, False),
        ({"NO_COLOR": ""}, True, True),
        ({"TERM": "dumb"}, True, False),
        ({"FORCE_COLOR": "1"}, False, True),
        ({"FORCE_COLOR": "1", "TERM": "dumb"}, False, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, True, False),
    ],
)
def test_colours_are_for_terminals_that_want_them(
    environment: dict[str, str],
    terminal_is_one: bool,
    coloured: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: terminal_is_one)
    parser_of("audit").print_help(stream)
    assert (ESCAPE in stream.getvalue()) == coloured
    plain = re.sub(r"\033\[\d+m", "", stream.getvalue())
    assert plain == parser_of("audit").format_help()


def test_a_run_in_a_terminal(folder: Path) -> None:
    code, shown = in_terminal(
        "privatize in.csv --output out.csv --space space --mechanism hierarchical --epsilon 1.5"
    )
    assert code == 0, shown
    assert "Privatizing" in shown  # the bar
    assert "20 rows with 60 words written to out.csv in" in shown
    found = re.search(r"what an attacker guesses:\s+\033\[32m(.*)\033\[0m", shown)
    assert found, shown
    assert main(shlex.split(found[1])[1:]) == 0  # what is proposed runs
    plain = re.sub(r"\033\[\d*m", "", shown.rpartition("\r\n\r\n")[2])
    to_copy = found[1]
    assert all(len(line) <= 80 for line in plain.splitlines() if to_copy not in line)
    assert f"{ESCAPE}2mDetails:" in shown
    code, shown = in_terminal("privatize in.csv --output out.csv --space space --mechanism tem")
    assert code == 2
    assert f"{ESCAPE}31merror: {ESCAPE}0m--epsilon is missing" in shown
    assert "--epsilon 9:" in shown


def test_quiet_leaves_warnings_and_errors(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = "--space space --mechanism hierarchical --epsilon 1.5 --quiet --overwrite"
    assert main(["privatize", "in.csv", "--output", "out.csv", *arguments.split()]) == 0
    assert capsys.readouterr() == ("", "")
    (folder / "in.csv").write_text("text\nder Hund bellt\n")
    assert main(["privatize", "in.csv", "--output", "out.csv", *arguments.split()]) == 0
    assert "warning: 100% of the words" in capsys.readouterr().err
    assert main(["privatize", "no.csv", "--output", "out.csv", *arguments.split()]) == 1
    assert "no.csv: there is no such file" in capsys.readouterr().err


def test_the_recorded_run_shows_commands_that_there_are_and_fetches_nothing() -> None:
    drawn = (ROOT / "docs" / "images" / "terminal.svg").read_text()
    assert not re.search(r"(?:href|src|url)\W+http|@import|@font-face", drawn)
    commands: list[str] = runpy.run_path(str(ROOT / "scripts" / "terminal_recording.py"))[
        "COMMANDS"
    ]
    seen = html.unescape(re.sub(r"<[^>]*>", "", drawn)).replace("\xa0", " ")
    assert all(command[:60] in seen for command in commands)
    verbs = [shlex.split(command)[1] for command in commands if command.startswith("hf-dxprivacy")]
    assert [verb for verb in verbs if verb not in VERBS] == ["privatise"]  # and the answer to it


# What is proposed to begin with


@pytest.mark.parametrize("mechanism", [name for name, start in MECHANISMS.items() if start])
def test_at_the_epsilon_to_begin_with_a_third_of_the_words_stays(mechanism: str) -> None:
    space = EmbeddingSpace.from_pretrained("english")
    rng = keyed_generator(5, "start")
    words = sample_words(space, 40, rng=rng)
    found = privacy_statistics(
        create_mechanism(mechanism, space, MECHANISMS[mechanism] or 0), words, runs=200, rng=rng
    )
    assert 0.25 < found.kept.mean() < 0.45


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_who_leaves_out_epsilon_is_told_where_to_begin(
    mechanism: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["privatize", "a.csv", "--output", "b.csv", "--mechanism", mechanism]) == 2
    shown = capsys.readouterr().err
    assert re.search(r"--epsilon is missing: .* your decision", shown)
    start = MECHANISMS[mechanism]
    assert (f"begin with --epsilon {start or 0:g}" in shown) == (start is not None)
    proposed = re.search(r"some values do: hf-dxprivacy (.*)", shown)
    assert proposed
    verb, *rest = proposed[1].split()
    assert parser_of(verb).parse_args(rest).mechanism == mechanism


# Completion

COMPLETED = [
    ("c", {"calibrate", "compare", "convert", "card", "completion"}),
    ("privatize in", {"in.csv"}),
    ("privatize in.csv --mech", {"--mechanism"}),
    ("privatize in.csv --mechanism hi", {"hierarchical"}),
    ("privatize in.csv --oov ''", {"centroid", "drop", "keep"}),
    ("privatize in.csv --space wordnet-s", {"wordnet-sentences"}),
    ("convert glove.txt --output ''", {"space"}),
    ("audit gu", {"guarantee"}),
    ("audit guarantee --mechanism kr", {"krr"}),
]


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not here")
def test_bash_completes_verbs_options_and_values(folder: Path) -> None:
    script = subprocess.run(
        [*PROGRAM, "completion", "bash"], capture_output=True, text=True, check=True
    ).stdout
    (folder / "script.bash").write_text(script)
    tries = "\n".join(f"try hf-dxprivacy {typed}" for typed, _ in COMPLETED)
    lines = f"""
    source script.bash
    function=$(complete -p hf-dxprivacy | sed 's/.*-F \\([^ ]*\\).*/\\1/')
    try() {{
        COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
        "$function"
        echo "${{COMPREPLY[@]}}"
    }}
    {tries}
    """
    done = subprocess.run(["bash", "-c", lines], capture_output=True, text=True, check=True)
    assert not done.stderr
    for (typed, expected), found in zip(COMPLETED, done.stdout.splitlines(), strict=True):
        assert set(found.split()) == expected, typed


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_get_a_script_of_all_verbs(
    shell: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert all(verb in script for verb in VERBS)
    assert "%(default)s" not in script
    if program := shutil.which(shell):
        (tmp_path / "script").write_text(script)
        subprocess.run([program, "-n", tmp_path / "script"], check=True)


def test_a_parser_without_examples_shows_all_of_its_text() -> None:
    def function() -> None:
        """Do it.

        And more.
        """

    assert "And more." in Parser("program", function).format_help()
