"""Releases by other code: the line protocol, and every way in which a program can break it."""

import gc
import os
import pickle
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset

from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError
from hf_dxprivacy.evaluation import external as external_module
from hf_dxprivacy.evaluation.external import External, ExternalError, mldp_text
from hf_dxprivacy.spaces import EmbeddingSpace

SERVE = "import json, sys\nfor line in sys.stdin:\n    text = json.loads(line)\n    "
ANSWER = "print(json.dumps(text.upper()), flush=True)\n"
TEXTS = ["a", "", "two\nlines\u2028", "emoji 🙂", "語", "\ud83d", "x" * 200_000]


def command(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def external(code: str, timeout: float = 60.0) -> External:
    return External(command(code), name="peer", claim=1.0, timeout=timeout)


def test_command_answers_every_text() -> None:
    with external(SERVE + ANSWER) as peer:
        assert peer.privatize(TEXTS) == [text.upper() for text in TEXTS]
        assert peer.privatize([]) == []
        # More than the pipes hold, both ways.
        many = [str(k) * 50 for k in range(20_000)]
        assert peer.privatize(many) == many
        assert (peer.name, peer.claim, peer.unit) == ("peer", 1.0, "word")


def test_function_is_called_for_every_text() -> None:
    peer = External(str.upper, name="upper", claim=lambda a, b: 2.0, unit="text")
    assert peer.privatize(["a", "b"]) == ["A", "B"]
    with pytest.raises(InvalidTypeError, match="expected upper to return a string"):
        External(lambda text: None, name="upper", claim=1.0).privatize(["a"])  # type: ignore[arg-type, return-value]


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import sys\nsys.exit(3)", "ended with exit status 3"),
        (SERVE + "sys.exit(0)", "ended with exit status 0"),
        (SERVE + "sys.exit(sys.stdout.write(json.dumps(text)))", "in the middle of a line"),
        ("print('Loading the model ...', flush=True)\n" + SERVE + ANSWER, "is no JSON string"),
        (SERVE + "print(json.dumps([text]), flush=True)", "is no JSON string"),
        (SERVE + "print('null\\n' + json.dumps(text), flush=True)", "is no JSON string"),
        (SERVE + 'print(\'"a"\\n"b"\\n"c"\', flush=True)', "more lines than it was asked for"),
        (SERVE + "print('[' * 200_000, flush=True)", "is no JSON string"),
        ("import os\nwhile True:\n    os.write(1, b'a' * 65536)", "a line of more than 1 MiB"),
        ("import os, time\nos.close(1)\ntime.sleep(600)", "closed its input or output and went on"),
    ],
)
def test_broken_protocol_is_an_error(
    code: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(external_module, "_GRACE", 0.5, raising=False)
    monkeypatch.setattr(external_module, "_LONGEST", 1 << 20, raising=False)
    with external(code) as peer, pytest.raises(ExternalError, match=message) as raised:
        # More than a pipe holds.
        peer.privatize(["secret text" * 30_000, "another"])
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("code", "size"),
    [
        # More than a pipe holds.
        ("import time\ntime.sleep(600)", 300_000),  # no start
        (SERVE + "pass", 300_000),  # no answer
        ("out = open(1, 'w')\n" + SERVE + "print(json.dumps(text), file=out)", 1),  # no flush
        (SERVE + "print(json.dumps(text), end='', flush=True)", 1),  # no end of the line
    ],
)
def test_silence_is_an_error_and_leaves_no_process(code: str, size: int) -> None:
    peer = external(code, timeout=1.0)
    with pytest.raises(ExternalError, match="no answer for 1 seconds; raise timeout="):
        peer.privatize(["x" * size])
    assert peer._program is None


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="reads /proc")
def test_close_ends_the_program_and_what_it_started() -> None:
    code = (
        "import json, subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "for line in sys.stdin:\n    print(json.dumps(str(child.pid)), flush=True)\n"
    )
    for finish in ("close", "kill"):
        peer = external(code)
        child = int(peer.privatize(["a"])[0])
        assert peer._program is not None
        process = peer._program._process.pid
        assert alive(child)
        if finish == "close":
            peer.close()
        else:
            peer._program = None  # forgotten
        for _ in range(100):
            if not (alive(child) or alive(process)):
                break
            time.sleep(0.1)
        assert not alive(child)
        assert not alive(process)


def test_a_long_line_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not copied with every part that comes: a bytearray grows where it is."""
    size = 30 << 20
    code = SERVE + f"print(json.dumps('x' * {size}), flush=True)"
    with external(code) as peer:
        peer.privatize(["a"])
        assert peer._program is not None
        kept = peer._program._left
        copied = []
        monkeypatch.setattr(peer._program, "_parsed", lambda line: copied.append(len(line)) or "")
        assert peer.privatize(["b"]) == [""]
    assert isinstance(kept, bytearray)
    assert copied == [size + 2]


def test_a_program_that_has_ended_is_ended_once(monkeypatch: pytest.MonkeyPatch) -> None:
    peer, ended = external(SERVE + ANSWER), []
    peer.privatize(["a"])
    program = peer._program
    killpg = os.killpg
    monkeypatch.setattr(os, "killpg", lambda pid, sign: (ended.append(pid), killpg(pid, sign)))
    peer.close()
    # Its number may be that of another program by now.
    del program
    gc.collect()
    assert len(ended) == 1


def test_it_starts_again_after_an_error() -> None:
    peer = external(SERVE + "text == 'end' and sys.exit(1)\n    " + ANSWER)
    with pytest.raises(ExternalError, match="exit status 1"):
        peer.privatize(["a", "end"])
    assert peer.privatize(["b"]) == ["B"]
    peer.close()
    peer.close()


def test_every_process_has_its_own_program() -> None:
    peer = external("import os\n" + SERVE + "print(json.dumps(str(os.getpid())), flush=True)")
    with peer:
        (here,) = set(peer.privatize(["a", "b"]))
        assert pickle.loads(pickle.dumps(peer)).run == peer.run
        mapped = Dataset.from_dict({"text": ["a"] * 8}).map(
            lambda batch: {"text": peer.privatize(batch["text"])},
            batched=True,
            batch_size=2,
            num_proc=2,
            load_from_cache_file=False,
        )
        assert len({here, *mapped["text"][:]}) == 3
        if (child := os.fork()) == 0:
            os._exit(0 if peer.privatize(["a"]) != [here] else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert peer.privatize(["a"]) == [here]


@pytest.mark.parametrize(
    ("run", "options", "error", "message"),
    [
        ("python worker.py", {}, InvalidTypeError, "a command as a list of strings"),
        ([], {}, InvalidValueError, "an empty list"),
        (str, {"unit": "row"}, InvalidValueError, "unit to be one of 'word', 'text'"),
        (str, {"claim": -1.0}, InvalidValueError, "bounds a log-ratio"),
        (str, {"timeout": 0.0}, InvalidValueError, "timeout > 0"),
        (["/no/program"], {}, ExternalError, "cannot start '/no/program'"),
        (["pyth\0on"], {}, ExternalError, r"cannot start .* \(embedded null byte\); name a"),
    ],
)
def test_arguments_are_checked(
    run: Any, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        External(run, **{"name": "peer", "claim": 1.0, **options}).privatize(["a"])


def test_texts_are_strings() -> None:
    with pytest.raises(InvalidTypeError, match="each a string"):
        External(str, name="peer", claim=1.0).privatize(["a", None])  # type: ignore[list-item]


def test_mldp_text_gets_the_vectors_and_claims_what_it_says(
    tmp_path: Path, euclidean_space: EmbeddingSpace
) -> None:
    """With a stand-in for the two packages that it imports, which are in no environment of ours."""
    site = tmp_path / "site"
    (site / "gensim").mkdir(parents=True)
    (site / "gensim" / "__init__.py").write_text("")
    (site / "gensim" / "models.py").write_text(
        "class KeyedVectors:\n"
        "    def __init__(self, dim): self.dim = dim\n"
        "    def add_vectors(self, words, vectors):\n"
        "        self.words = words\n"
        "        assert vectors.shape == (len(words), self.dim)\n"
    )
    (site / "mldp_text.py").write_text(
        "print('hello')\n"
        "class TEM:\n"
        "    def __init__(self, epsilon, embedding_matrix, dim, use_faiss, vocab):\n"
        "        assert epsilon == 2.0 and not use_faiss and dim == 8\n"
        "        self.words = embedding_matrix.words\n"
        "    def replace_word(self, word):\n"
        "        return self.words[-1] if word in self.words else word\n"
    )
    python = tmp_path / "python"
    python.write_text(
        f'#!/bin/sh\nshift\nPYTHONPATH={site}:$PYTHONPATH exec {sys.executable} -P "$@"\n'
        if sys.version_info >= (3, 11)
        else f'#!/bin/sh\nshift\nPYTHONPATH={site}:$PYTHONPATH exec {sys.executable} "$@"\n'
    )
    python.chmod(0o755)
    first, second, *_, last = euclidean_space.words
    with mldp_text(python, "TEM", 2.0, euclidean_space, tmp_path / "vectors") as peer:
        released = peer.privatize([first, f"{first.title()}, unknown — {second}!"])
        assert released == [last, f"{last}, unknown — {last}!"]
        assert callable(peer.claim)
        expected = 2.0 * euclidean_space.distance(first, second)
        assert peer.claim(first, second) == pytest.approx(expected)
        assert peer.claim("unknown", "other") == 0.0
    with pytest.raises(InvalidValueError, match="mechanism to be one of"):
        mldp_text(python, "Madlib", 2.0, euclidean_space, tmp_path)
