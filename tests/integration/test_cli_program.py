"""The program as a process: exit codes, interruption, a full disk, closed streams."""

import os
import resource
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hf_dxprivacy.cli.main import VERBS, main
from hf_dxprivacy.spaces import EmbeddingSpace
from machine import PATIENCE

PROGRAM = [sys.executable, "-m", "hf_dxprivacy"]


@pytest.fixture
def folder(tmp_path: Path, euclidean_space: EmbeddingSpace) -> Path:
    """A folder with a space."""
    euclidean_space.save_pretrained(tmp_path / "space")
    return tmp_path


def test_help_explains_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    listed = capsys.readouterr().out
    assert all(verb in listed for verb in VERBS)
    assert main(["privatize", "--help"]) == 0
    printed = capsys.readouterr()
    for needed in (
        "--epsilon",
        "e^(epsilon*d)",
        "Smaller hides more",
        "hf-dxprivacy privatize ",
    ):
        assert needed in printed.out
    assert printed.out.isascii()
    assert not printed.err
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("hf-dxprivacy ")


def test_help_loads_no_numerical_library() -> None:
    code = (
        "import sys; from hf_dxprivacy.cli.main import main; main(['privatize', '--help']); "
        "print({'numpy', 'pyarrow', 'faiss', 'datasets'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "set()"


def test_the_installed_program_privatizes_with_a_built_in_space(tmp_path: Path) -> None:
    program = Path(sys.executable).with_name("hf-dxprivacy")
    (tmp_path / "in.csv").write_text("id,text\n1,The patient was given strong medicine.\n")
    arguments = ["privatize", "in.csv", "--output", "out.csv", "--epsilon", "2", "--report"]
    done = subprocess.run(
        [program, *arguments, "--mechanism", "tem"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert (done.returncode, done.stdout) == (0, "")
    assert "per word: ε = 2" in done.stderr
    assert "Privatizing" not in done.stderr  # the bar is for terminals
    assert sorted(os.listdir(tmp_path)) == ["in.csv", "out.csv", "out.csv.report.json"]
    released = (tmp_path / "out.csv").read_text()
    assert released.startswith("id,text\n1,")
    assert released.endswith(".\n")
    assert len(released.split()) == 7


@pytest.mark.slow
def test_a_hub_dataset_out_of_reach_is_a_clear_error(tmp_path: Path) -> None:
    arguments = ["--output", "out.jsonl", "--epsilon", "2", "--mechanism", "tem"]
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "home")}
    failed = subprocess.run(
        [*PROGRAM, "privatize", "some/dataset", *arguments],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert failed.returncode == 1
    assert "no file 'some/dataset' here" in failed.stderr
    assert "Hugging Face Hub" in failed.stderr
    assert "Traceback" not in failed.stderr
    assert not (tmp_path / "out.jsonl").exists()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["out.csv.gz", "out.parquet"])
def test_a_full_disk_leaves_nothing_behind(folder: Path, name: str) -> None:
    rows = "".join(f"{os.urandom(300).hex()},waab\n" for _ in range(1000))
    (folder / "in.csv").write_text("id,text\n" + rows)
    (folder / name).write_text("precious")
    before = sorted(os.listdir(folder))
    arguments = [
        "in.csv",
        "--output",
        name,
        "--overwrite",
        "--epsilon",
        "5",
        "--mechanism",
        "tem",
        "--space",
        "space",
    ]
    failed = subprocess.run(
        [*PROGRAM, "privatize", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000)),
    )
    assert failed.returncode == 1
    assert f"error: {name}: File too large" in failed.stderr
    assert "Traceback" not in failed.stderr
    assert "Exception ignored" not in failed.stderr
    assert sorted(os.listdir(folder)) == before
    assert (folder / name).read_text() == "precious"


@pytest.mark.slow
def test_a_reader_that_has_enough_is_no_error(folder: Path) -> None:
    (folder / "in.txt").write_text(("waab " + "." * 1000 + "\n") * 2000)
    arguments = "privatize in.txt --output - --epsilon 5 --mechanism tem --space space".split()
    process = subprocess.Popen(
        [*PROGRAM, *arguments], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline()
    process.stdout.close()
    assert (process.wait(PATIENCE), process.stderr.read()) == (141, b"")
    process.stderr.close()


def _heed_interrupts() -> None:
    # A test-suite that runs in the background of a shell ignores SIGINT, and so would its children.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(params=["1", "2"], ids=["in-process", "two-workers"])
def running(folder: Path, request: pytest.FixtureRequest) -> Iterator["subprocess.Popen[str]"]:
    """The program in the middle of its work: some rows are written, more are waited for."""
    (folder / "out.txt").write_text("precious")
    arguments = ["-", "--format", "txt", "--output", "out.txt", "--overwrite", "--epsilon", "5"]
    arguments += ["--mechanism", "tem"]
    process = subprocess.Popen(
        [*PROGRAM, "privatize", *arguments, "--space", "space", "--num-proc", request.param],
        cwd=folder,
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=_heed_interrupts,
    )
    assert process.stdin is not None
    # The rows of whole blocks are worked on; the end of the input does not come.
    process.stdin.write(("waab " + "." * 1000 + "\n") * 8500)
    process.stdin.flush()
    _wait(lambda: any(p.stat().st_size > 100_000 for p in folder.glob("*.part")))
    yield process
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "code"),
    [
        (signal.SIGINT, 130),
        (signal.SIGTERM, 143),
        (signal.SIGQUIT, 131),
        (signal.SIGHUP, 129),
    ],
)
def test_interruption_leaves_nothing_behind(
    folder: Path, running: "subprocess.Popen[str]", number: int, code: int
) -> None:
    # Ctrl-C and Ctrl-\\ reach all processes of the group; kill reaches one.
    if number != signal.SIGTERM:
        os.killpg(running.pid, number)
    else:
        running.send_signal(number)
    assert running.wait(PATIENCE) == code
    assert running.stderr is not None
    printed = running.stderr.read()
    assert "interrupted by SIG" in printed
    assert "Traceback" not in printed
    assert sorted(os.listdir(folder)) == ["out.txt", "space"]
    assert (folder / "out.txt").read_text() == "precious"
    _wait(lambda: not _group_lives(running.pid))


def test_an_interruption_while_modules_are_imported_shows_no_traceback() -> None:
    code = """
import os, runpy, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)

class Interrupting:
    def find_spec(self, name, *_):
        if name == "hf_dxprivacy.cli.main":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
runpy.run_module("hf_dxprivacy", run_name="__main__")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (-signal.SIGINT, b"")


@pytest.mark.slow
@pytest.mark.parametrize("running", ["2"], indirect=True)
def test_a_worker_that_is_killed_is_an_error(
    folder: Path, running: "subprocess.Popen[str]"
) -> None:
    children = Path(f"/proc/{running.pid}/task/{running.pid}/children").read_text().split()
    for child in children:
        if "spawn_main" in Path(f"/proc/{child}/cmdline").read_text():
            os.kill(int(child), signal.SIGKILL)
    _, printed = running.communicate(timeout=PATIENCE)
    assert running.returncode == 1
    assert "a worker process ended before its time" in printed
    assert sorted(os.listdir(folder)) == ["out.txt", "space"]
    assert (folder / "out.txt").read_text() == "precious"


@pytest.mark.slow
@pytest.mark.parametrize("running", ["2"], indirect=True)
def test_workers_end_with_a_parent_that_is_killed(running: "subprocess.Popen[str]") -> None:
    running.kill()
    running.wait(PATIENCE)
    _wait(lambda: not _group_lives(running.pid))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("closed", "source", "target", "code", "said"),
    [
        ("2>&-", "in.txt", "out.txt", 0, ""),
        ("2>&-", "missing.txt", "-", 1, ""),
        (">&-", "in.txt", "out.txt", 0, "row with 1 words written to out.txt"),
        (">&-", "in.txt", "-", 2, "standard output is closed; name a file"),
        ("<&-", "-", "out.txt", 2, "standard input is closed; name a file"),
        (">&- 2>&- <&-", "in.txt", "out.txt", 0, ""),
    ],
)
def test_closed_standard_streams(
    folder: Path, closed: str, source: str, target: str, code: int, said: str
) -> None:
    (folder / "in.txt").write_text("waab")
    arguments = f"privatize {source} --format txt --output {target} --epsilon 5 --mechanism tem"
    done = subprocess.run(
        ["sh", "-c", f"{shlex.join(PROGRAM)} {arguments} --space space {closed}"],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert (done.returncode, done.stdout) == (code, "")  # no message gets into the data
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    written = (folder / "out.txt").read_text().split() if (folder / "out.txt").exists() else []
    assert len(written) == (1 if code == 0 else 0)


@pytest.mark.slow
def test_sigterm_is_heeded_during_a_long_run_of_combining_marks(folder: Path) -> None:
    """One line of 1,000,000 marks took 20 minutes in one call, in which no signal was heeded."""
    (folder / "in.txt").write_text("waab\n" * 60_000 + "a" + "\u0315\u0300" * 500_000 + "\n")
    arguments = ["in.txt", "--output", "out.txt", "--epsilon", "5", "--mechanism", "tem"]
    process = subprocess.Popen(
        [*PROGRAM, "privatize", *arguments, "--space", "space"], cwd=folder, stderr=subprocess.PIPE
    )
    assert process.stderr is not None
    _wait(lambda: process.poll() is not None or any(folder.glob("*.part")))
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE) in (0, 143)
    assert not any(folder.glob("*.part"))
    process.stderr.close()


def _group_lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def _wait(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)
