"""Releases by other programs, as `anonymize(text) -> str`, in this process or another environment.

The line protocol of a command: it reads one JSON string from each line of its standard input, and
answers each, in order, with one JSON string on a line of its standard output, which it flushes. It
ends when its input ends. Its standard error is that of this process, for whatever else it says.

    answers, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        print(json.dumps(anonymize(json.loads(line))), file=answers, flush=True)
"""

import contextlib
import json
import os
import selectors
import signal
import subprocess
import time
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy.errors import (
    DxPrivacyError,
    InvalidTypeError,
    InvalidValueError,
    require_one_of,
    require_positive,
    require_within,
)
from hf_dxprivacy.spaces import EmbeddingSpace

Claim = float | Callable[[str, str], float]

# Bytes that are read, or offered to the program, at once; and of the longest line.
_PART, _LONGEST = 1 << 16, 1 << 26
# Seconds that a program has to end after its input has.
_GRACE = 5.0
# Of mldp-text: its mechanisms, and λ of "Mahalanobis". "TruncatedGumbel" needs Python 3.10.
_MLDP_TEXT = ("MultivariateCalibrated", "Mahalanobis", "VickreyMechanism", "TEM", "TruncatedGumbel")
_LAMBDA = 0.2


class ExternalError(DxPrivacyError, RuntimeError):
    """A program that releases texts ended, kept silent, or answered against the protocol."""


class External:
    """A release of texts by other code: anything of the shape ``anonymize(text) -> str``.

    >>> External(anonymizer.anonymize, name="RAT-Bench madlib", claim=lambda a, b: 10 * d(a, b))
    >>> with External(["venv/bin/python", "rewriter.py"], name="rewriter", claim=25.0,
    ...               unit="text") as rewriter:
    ...     rewriter.privatize(["A text.", "Another one."])

    A command starts with the first text, in its own environment, and answers by the line protocol
    at the top of this module. Each process that uses an instance, such as a worker of
    ``Dataset.map``, starts its own. It ends with `close`, the ``with`` block, or this process, and
    all that it has started with it, but for what has a session of its own.

    Args:
        run: A function of one text, or a command as a list of strings.
        name: What tables call it.
        claim: What is claimed of it: an upper bound of |ln Pr[M(a)=y]/Pr[M(b)=y]| for any two
            words or texts, as a number ε ≥ 0, or as a function of both; ∞ claims nothing.
        unit: What the claim is about: each "word", or the whole "text".
        timeout: Seconds > 0 in which a command neither answers nor reads on, its start included,
            after which it is ended.

    Raises:
        InvalidTypeError: If an argument is of the wrong type.
        InvalidValueError: If a number is out of range, or the command is empty.
    """

    def __init__(
        self,
        run: Callable[[str], str] | Sequence[str | Path],
        *,
        name: str,
        claim: Claim,
        unit: Literal["word", "text"] = "word",
        timeout: float = 300.0,
    ) -> None:
        require_one_of(("word", "text"), unit=unit)
        require_positive(timeout=timeout)
        if not callable(claim):
            require_within(0.0, float("inf"), "it bounds a log-ratio", claim=claim)
        if not callable(run):
            if isinstance(run, str) or not all(isinstance(part, (str, Path)) for part in run):
                raise InvalidTypeError(
                    "expected run to be a function of a text, or a command as a list of strings, "
                    "such as ['venv/bin/python', 'worker.py']"
                )
            if not run:
                raise InvalidValueError("expected a command, got an empty list")
            run = tuple(map(str, run))
        self.run = run
        self.name, self.claim, self.unit, self.timeout = name, claim, unit, timeout
        self._program: _Program | None = None

    def __repr__(self) -> str:
        return f"External({self.name!r}, unit={self.unit!r})"

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_program": None}

    def __enter__(self) -> "External":
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def close(self) -> None:
        """End the program, if one runs; the next text starts it again."""
        program, self._program = self._program, None
        if program is not None:
            program.end()

    def privatize(self, texts: Sequence[str]) -> list[str]:
        """Return what is released for each text.

        Raises:
            InvalidTypeError: If these are not texts, or the function returns something else.
            ExternalError: If the program does not start, ends, keeps silent for `timeout` seconds,
                or answers otherwise than by the protocol. It is ended then.
        """
        if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
            raise InvalidTypeError("expected a sequence of texts, each a string")
        if callable(self.run):
            released = [self.run(text) for text in texts]
            if not all(isinstance(text, str) for text in released):
                raise InvalidTypeError(f"expected {self.name} to return a string for each text")
            return released
        # A forked child must not talk to the program of its parent.
        if self._program is None or self._program.owner != os.getpid():
            self._program = _Program(self.run, self.name)
        try:
            return self._program.ask(texts, self.timeout)
        except BaseException:
            self._program.kill()
            self._program = None
            raise


class _Program:
    """A running command, and the pipes to it."""

    def __init__(self, command: Sequence[str], name: str) -> None:
        self.owner, self._name, self._left = os.getpid(), name, bytearray()
        try:
            # In a process group of its own, so that it ends together with what it has started.
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            said = f"cannot start {command[0]!r} ({getattr(error, 'strerror', error)})"
            raise self._error(said, "name a program that is there") from error
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin, self._stdout = self._process.stdin, self._process.stdout
        for pipe in (self._stdin, self._stdout):
            os.set_blocking(pipe.fileno(), False)
        # Once: later its number may be that of another program.
        self._kill = weakref.finalize(self, _kill, self._process, self.owner)

    def ask(self, texts: Sequence[str], timeout: float) -> list[str]:
        """Send texts and read as many answers; both at once, so that neither side waits."""
        # Escaped, so that no line separator within a text, nor half of a character, is a problem.
        outgoing = memoryview("".join(json.dumps(text) + "\n" for text in texts).encode("ascii"))
        answers: list[str] = []
        deadline = time.monotonic() + timeout
        with selectors.DefaultSelector() as pipes:
            pipes.register(self._stdout, selectors.EVENT_READ)
            if len(outgoing):
                pipes.register(self._stdin, selectors.EVENT_WRITE)
            while len(answers) < len(texts):
                ready = pipes.select(max(0.0, deadline - time.monotonic()))
                # Half a line after another is no answer either.
                if not ready or time.monotonic() > deadline:
                    raise self._error(f"no answer for {timeout:g} seconds", "raise timeout=")
                for key, _ in ready:
                    if key.fileobj is self._stdin:
                        outgoing = self._write(outgoing)
                        if not len(outgoing):
                            pipes.unregister(self._stdin)
                    elif lines := self._read():
                        answers += lines
                    else:
                        continue
                    deadline = time.monotonic() + timeout
            # What is there already beyond the last answer would be taken for the next one's; an end
            # of the output is no fault of that answer.
            more = self._left or (pipes.select(0) and os.read(self._stdout.fileno(), _PART))
            if more or len(answers) > len(texts):
                raise self._error("more lines than it was asked for", "answer each line once")
        return answers

    def _write(self, outgoing: memoryview) -> memoryview:
        try:
            return outgoing[os.write(self._stdin.fileno(), outgoing[:_PART]) :]
        except BrokenPipeError:
            raise self._ended() from None

    def _read(self) -> list[str]:
        part = os.read(self._stdout.fileno(), _PART)
        if not part:
            raise self._ended()
        self._left += part
        if b"\n" not in part:
            if len(self._left) > _LONGEST:
                raise self._error(f"a line of more than {_LONGEST >> 20} MiB", "answer in less")
            return []
        *lines, self._left = self._left.split(b"\n")
        return [self._parsed(line) for line in lines]

    def _parsed(self, line: bytearray) -> str:
        try:
            answer = json.loads(line)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, str):
            raise self._error(
                "a line of its output is no JSON string",
                "print json.dumps(answer) alone to standard output, all else to standard error",
            )
        return answer

    def _ended(self) -> ExternalError:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_GRACE)
        half = "in the middle of a line " if self._left else ""
        status = self._process.poll()
        how = f"ended {half}with exit status {status}"
        if status is None:
            how = f"closed its input or output {half}and went on"
        return self._error(f"it {how} before it had answered", "its message is on standard error")

    def _error(self, what: str, remedy: str) -> ExternalError:
        return ExternalError(f"{self._name}: {what}; {remedy}")

    def end(self) -> None:
        """End it by the end of its input, and by force if it goes on."""
        if self.owner == os.getpid():
            with contextlib.suppress(OSError):
                self._stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_GRACE)
        self.kill()

    def kill(self) -> None:
        """End it and what it has started, at once."""
        for pipe in (self._stdin, self._stdout):
            with contextlib.suppress(OSError):
                pipe.close()
        self._kill()


def _kill(process: "subprocess.Popen[bytes]", owner: int) -> None:
    # Also after its end: what it has started may go on. Its group has its number while any does.
    if owner == os.getpid():
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def mldp_text(
    python: str | Path,
    mechanism: str,
    epsilon: float,
    space: EmbeddingSpace,
    folder: str | Path,
    **options: Any,
) -> External:
    """Return a mechanism of the package mldp-text, which runs in an environment of its own.

    >>> # python -m venv mldp; mldp/bin/pip install mldp-text==0.1.2
    >>> peer = mldp_text("mldp/bin/python", "VickreyMechanism", 10.0, space, "vectors")

    It gets the vectors of the space, and replaces each word of a text; mldp-text returns words that
    it lacks as they are, although the claim holds them to be one input at the centroid.

    Args:
        python: Interpreter of the environment, where mldp-text is installed.
        mechanism: "MultivariateCalibrated" (Feyisetan et al., 2020), "Mahalanobis" (Xu et al.,
            2020), "VickreyMechanism" (Xu et al., 2021), "TEM" (Carvalho et al., 2023) or
            "TruncatedGumbel" (Carvalho et al., 2021; fails beyond Python 3.10).
        epsilon: ε > 0 of one word, per unit of the Euclidean distance, or of the norm of
            "Mahalanobis" with λ = 0.2.
        space: Euclidean space whose vectors it works with.
        folder: Where the vectors are written for it.
        **options: Others of `External`, such as ``timeout=``.

    Raises:
        InvalidValueError: If the mechanism is unknown, ε ≤ 0, or the space is not Euclidean.
    """
    require_one_of(_MLDP_TEXT, mechanism=mechanism)
    require_positive(epsilon=epsilon)
    if space.metric != "euclidean":
        raise InvalidValueError(f"expected a Euclidean space, got the metric {space.metric!r}")
    vectors = Path(folder).resolve() / f"{space.digest.removeprefix('sha256:')[:16]}.npz"
    if not vectors.exists():
        vectors.parent.mkdir(parents=True, exist_ok=True)
        part = vectors.with_suffix(".part.npz")
        points = space.points(np.arange(len(space)))
        np.savez(part, words=np.array(space.words), vectors=points.astype(np.float32))
        part.replace(vectors)
    inverse: NDArray[np.floating[Any]] = np.identity(space.dim)
    if mechanism == "Mahalanobis":
        covariance = np.cov(space.vectors.astype(np.float64), rowvar=False)
        shape = _LAMBDA * covariance / np.var(space.vectors.astype(np.float64))
        inverse = np.linalg.inv(shape + (1.0 - _LAMBDA) * inverse)

    def claim(a: str, b: str) -> float:
        apart = np.subtract(*space.points(space.ids([a, b])))
        return epsilon * float(np.sqrt(apart @ inverse @ apart))

    # -I: neither the packages of this environment nor the modules beside the program are found.
    program = Path(__file__).with_name("mldp_text_worker.py")
    command = [python, "-I", "-W", "ignore", program, mechanism, epsilon, vectors]
    return External([*map(str, command)], name=f"mldp-text {mechanism}", claim=claim, **options)
