"""A process that is forked while other threads privatize can privatize itself.

Before Python 3.12 `functools.cached_property` has a lock, which a child keeps for ever if another
thread of its parent had it.
"""

import os
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

import hf_dxprivacy
from hf_dxprivacy import DxPrivatizer, EmbeddingSpace

THREADS = 4


def hung(space: EmbeddingSpace, forks: int, patience: float) -> int:
    """Return how many of the children did not end in time.

    Args:
        space: Where the words lie.
        forks: How often to fork.
        patience: How many seconds a child has.
    """
    text = " ".join(space.words[:20])
    stop = threading.Event()
    shared = [DxPrivatizer(space, "tem", 2.0)]

    def work() -> None:
        while not stop.is_set():
            shared[0].privatize(text)
            str(shared[0].guarantee)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    late = 0
    try:
        for number in range(forks):
            # Lazy attributes are computed at first use, so a new privatizer has some left.
            shared[0] = DxPrivatizer(space, "tem", 2.0 + number % 7, seed=2**64 + number)
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    shared[0].privatize(text)
                    str(shared[0].guarantee)
                    code = 0
                finally:
                    os._exit(code)
            late += not ends(child, patience)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    return late


def ends(child: int, patience: float) -> bool:
    """Wait for a child, and kill it if it does not end in time."""
    until = time.monotonic() + patience
    while time.monotonic() < until:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            if status:
                raise RuntimeError(f"a child ended with the status {status}")
            return True
        time.sleep(0.001)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
def test_no_child_hangs(euclidean_space: EmbeddingSpace) -> None:
    # Far more than any child takes, also on a busy machine; one with a lock that nobody releases
    # waits for ever.
    assert hung(euclidean_space, forks=40, patience=120.0) == 0


def test_no_lazy_attribute_has_a_lock() -> None:
    """Threads that are seldom between two instructions of one property would show it seldom."""
    package = Path(hf_dxprivacy.__file__).parent
    using = {p.name for p in package.rglob("*.py") if "cached_property" in p.read_text("utf-8")}
    assert using == {"_runtime.py"}


def test_a_child_that_hangs_is_counted() -> None:
    child = os.fork()
    if child == 0:
        signal.pause()
        os._exit(0)
    assert not ends(child, 0.2)
    done = os.fork()
    if done == 0:
        os._exit(0)
    assert ends(done, 60.0)
    assert sys.platform != "win32"
