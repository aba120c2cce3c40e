"""The program as a process: exit codes, interruption, a full disk."""

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hf_dxprivacy.spaces import EmbeddingSpace

PROGRAM = [sys.executable, "-m", "hf_dxprivacy"]
PATIENCE = 60.0


@pytest.fixture
def folder(tmp_path: Path, euclidean_space: EmbeddingSpace) -> Path:
    """A folder with a space."""
    euclidean_space.save_pretrained(tmp_path / "space")
    return tmp_path


def _run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PROGRAM, *arguments], cwd=folder, capture_output=True, text=True, timeout=PATIENCE
    )


def test_help_explains_what_there_is(tmp_path: Path) -> None:
    top = _run(tmp_path, "--help")
    assert (top.returncode, top.stderr) == (0, "")
    assert "privatize" in top.stdout
    verb = _run(tmp_path, "privatize", "--help")
    assert (verb.returncode, verb.stderr) == (0, "")
    for needed in (
        "--epsilon",
        "e^(epsilon*d)",
        "Smaller hides more",
        "hf-dxprivacy privatize ",
    ):
        assert needed in verb.stdout
    assert verb.stdout.isascii()


def test_usage_and_version(tmp_path: Path) -> None:
    assert _run(tmp_path, "--version").stdout.startswith("hf-dxprivacy ")
    for arguments in ([], ["conjure"], ["privatize", "--conjure"]):
        failed = _run(tmp_path, *arguments)
        assert (failed.returncode, failed.stdout) == (2, "")
        assert failed.stderr.startswith("usage: ")


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


def test_a_hub_dataset_out_of_reach_is_a_clear_error(tmp_path: Path) -> None:
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "home")}
    failed = subprocess.run(
        [*PROGRAM, "privatize", "some/dataset", "--output", "out.jsonl", "--epsilon", "2"],
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


@pytest.mark.parametrize("name", ["out.csv", "out.csv.gz", "out.parquet", "out.jsonl"])
def test_a_full_disk_leaves_nothing_behind(folder: Path, name: str) -> None:
    rows = "".join(f"{os.urandom(300).hex()},waab\n" for _ in range(1000))
    (folder / "in.csv").write_text("id,text\n" + rows)
    (folder / name).write_text("precious")
    before = sorted(os.listdir(folder))
    arguments = ["in.csv", "--output", name, "--overwrite", "--epsilon", "5", "--space", "space"]
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


def test_a_reader_that_has_enough_is_no_error(folder: Path) -> None:
    (folder / "in.txt").write_text(("waab " + "." * 1000 + "\n") * 2000)
    arguments = ["privatize", "in.txt", "--output", "-", "--epsilon", "5", "--space", "space"]
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


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_interruption_leaves_nothing_behind(
    folder: Path, running: "subprocess.Popen[str]", number: int, code: int
) -> None:
    # Ctrl-C reaches all processes of the group; kill reaches one.
    if number == signal.SIGINT:
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


@pytest.mark.parametrize("running", ["2"], indirect=True)
def test_workers_end_with_a_parent_that_is_killed(running: "subprocess.Popen[str]") -> None:
    running.kill()
    running.wait(PATIENCE)
    _wait(lambda: not _group_lives(running.pid))


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
