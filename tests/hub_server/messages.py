"""What goes over the wire: requests as routes see them, answers, and errors."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from email.message import Message
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Account:
    """Whom a token stands for."""

    name: str
    can_write: bool


@dataclass(frozen=True)
class Request:
    """A request, with its body still to be read.

    Attributes:
        method: The HTTP method.
        path: As it was sent: quoted, without the query.
        query: The parameters of the query.
        headers: The headers.
        body: The body in pieces; it can be read once.
    """

    method: str
    path: str
    query: Mapping[str, str]
    headers: Message
    body: Iterator[bytes]

    def read(self) -> bytes:
        """Return the whole body."""
        return b"".join(self.body)

    def json(self) -> Any:
        """Return the value that the body holds."""
        return json.loads(self.read())


@dataclass(frozen=True)
class Answer:
    """An answer; a body that is a path is read from that file.

    Attributes:
        status: The HTTP status.
        body: The content, or the file that holds it.
        headers: Headers beside the length of the body.
    """

    status: int = 200
    body: bytes | Path = b""
    headers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def json(
        cls, value: object, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> "Answer":
        """Return an answer whose body is a JSON value."""
        kind = {"Content-Type": "application/json; charset=utf-8"}
        return cls(status, json.dumps(value).encode(), {**kind, **(headers or {})})


class HubError(Exception):
    """An answer other than success, as the Hub words it.

    Args:
        status: The HTTP status.
        message: For ``X-Error-Message`` and the body.
        code: For ``X-Error-Code``, from which the client chooses the exception.
        headers: Further headers.
    """

    def __init__(
        self,
        status: int,
        message: str,
        code: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        named = {"X-Error-Message": message, **({"X-Error-Code": code} if code else {})}
        self.answer = Answer.json({"error": message}, status, {**named, **(headers or {})})
