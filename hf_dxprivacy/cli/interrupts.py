"""Signals that ask the program to end, as an exception that lets everything be cleaned up."""

import math
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

CLEAN_UP_SECONDS = 5.0

_NAMES = ("SIGINT", "SIGTERM", "SIGHUP")


class Interrupted(BaseException):
    """A signal asked the program to end."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.name = signal.Signals(number).name
        self.code = 128 + number


@contextmanager
def signals_raise() -> Iterator[None]:
    """Raise `Interrupted` where SIGINT (Ctrl-C), SIGTERM or SIGHUP arrives.

    For a few seconds after a first signal others have no effect, so that they do not disturb the
    clean-up. A signal that the caller ignores (nohup, a job in the background) stays ignored.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = [getattr(signal, name) for name in _NAMES if hasattr(signal, name)]
    before = {n: signal.getsignal(n) for n in numbers if signal.getsignal(n) != signal.SIG_IGN}

    last = -math.inf

    def interrupt(number: int, _frame: FrameType | None) -> None:
        nonlocal last
        if time.monotonic() - last > CLEAN_UP_SECONDS:
            last = time.monotonic()
            raise Interrupted(number)

    try:
        for number in before:
            signal.signal(number, interrupt)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
