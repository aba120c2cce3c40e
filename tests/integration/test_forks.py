"""A process that is forked while other threads privatize can privatize itself.

Before Python 3.12 `functools.cached_property` has a lock, which a child keeps for ever if another
thread of its parent had it. `benchmarks/fork_safety.py` forks some thousand times.
"""

import os
import runpy
import signal
import sys
from pathlib import Path

import pytest

import hf_dxprivacy
from hf_dxprivacy import EmbeddingSpace

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "fork_safety.py"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
def test_no_child_hangs(euclidean_space: EmbeddingSpace) -> None:
    hung = runpy.run_path(str(SCRIPT))["hung"]
    # Far more than any child takes, also on a busy machine; one with a lock that nobody releases
    # waits for ever.
    assert hung(euclidean_space, forks=40, patience=120.0) == 0


def test_no_lazy_attribute_has_a_lock() -> None:
    """Threads that are seldom between two instructions of one property would show it seldom."""
    package = Path(hf_dxprivacy.__file__).parent
    using = {p.name for p in package.rglob("*.py") if "cached_property" in p.read_text("utf-8")}
    assert using == {"_runtime.py"}


def test_a_child_that_hangs_is_counted() -> None:
    script = runpy.run_path(str(SCRIPT))
    child = os.fork()
    if child == 0:
        signal.pause()
        os._exit(0)
    assert not script["ends"](child, 0.2)
    done = os.fork()
    if done == 0:
        os._exit(0)
    assert script["ends"](done, 60.0)
    assert sys.platform != "win32"
