"""Another package at work in a process and a virtual environment of its own."""

import json
import os
import subprocess
from collections.abc import Mapping
from types import TracebackType
from typing import Any

import common


class PeerProcess:
    """A program that says "ready" and then answers each line of JSON with one.

    Args:
        requirement: What to install, as "name==version".
        code: The program.
        *arguments: Its arguments.
        env: Environment variables besides those of this process.
    """

    def __init__(
        self,
        requirement: str,
        code: str,
        *arguments: object,
        env: Mapping[str, str] | None = None,
    ) -> None:
        python = common.peer_python(requirement.partition("==")[0], requirement)
        self._process = subprocess.Popen(
            [python, "-W", "ignore", "-c", code, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | (env or {}),
        )
        while self._line() != "ready":
            pass

    def ask(self, request: object) -> Any:
        """Return the answer to a request."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return json.loads(self._line())

    def __enter__(self) -> "PeerProcess":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: object, trace: TracebackType | None
    ) -> None:
        # It ends by itself when there are no more requests, and takes its own processes with it.
        self._process.communicate()

    def _line(self) -> str:
        assert self._process.stdout is not None
        if not (line := self._process.stdout.readline()):
            raise RuntimeError("the peer has ended; its error is above")
        return line.strip()
