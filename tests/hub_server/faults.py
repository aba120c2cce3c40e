"""Faults: what goes wrong on the way, switched on by a test for some requests and some time."""

import threading
from dataclasses import dataclass
from fnmatch import fnmatchcase


@dataclass
class Fault:
    """One way to go wrong.

    Attributes:
        method: The HTTP method it applies to, or "*".
        path: Shell pattern for the path; ``*`` crosses slashes. A large file is fetched from a path
            of its own that ends with the file's name, too.
        times: How many requests it hits; None for all of them.
        status: Answer with this status, and do nothing.
        delay: Wait so many seconds before anything else, or until the server stops.
        cut_after: End the connection after so many bytes of the answer's body.
        cut_upload_after: End the connection after so many bytes of the request's body.
        keep: Answer with only so many bytes, and a length that agrees.
        alter: Change the last byte of the answer and leave its headers as they are.
    """

    method: str
    path: str
    times: int | None = 1
    status: int | None = None
    delay: float = 0.0
    cut_after: int | None = None
    cut_upload_after: int | None = None
    keep: int | None = None
    alter: bool = False

    def hits(self, method: str, path: str) -> bool:
        """Say whether a request is one of those that this fault is for."""
        return self.method in ("*", method) and fnmatchcase(path, self.path) and self.times != 0


class Faults:
    """The faults that are switched on; the first that fits a request hits it."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []
        self._lock = threading.Lock()

    def add(self, fault: Fault) -> None:
        """Switch a fault on."""
        self._faults.append(fault)

    def take(self, method: str, path: str) -> Fault:
        """Return the fault that hits a request, or one that does no harm."""
        with self._lock:
            for fault in self._faults:
                if fault.hits(method, path):
                    fault.times = None if fault.times is None else fault.times - 1
                    return fault
        return Fault(method, path)

    def clear(self) -> None:
        """Switch all faults off."""
        self._faults.clear()
