"""Fork while four threads privatize, and count the children that hang.

python benchmarks/fork_safety.py [--forks 2000]

Each child privatizes a text with a privatizer of its parent and ends. Relevant for Python 3.10 and
3.11, where `functools.cached_property` has a lock.
"""

import argparse
import os
import signal
import sys
import threading
import time

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


def main() -> None:
    """Count and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--forks", type=int, default=2000)
    parser.add_argument("--patience", type=float, default=30.0)
    options = parser.parse_args()
    space = EmbeddingSpace.from_pretrained("wordnet-gloss")
    found = hung(space, options.forks, options.patience)
    version = ".".join(map(str, sys.version_info[:3]))
    print(f"Python {version}: {found} of {options.forks} children hang")


if __name__ == "__main__":
    main()
