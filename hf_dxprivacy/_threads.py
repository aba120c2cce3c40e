"""How many threads numerical libraries may use in this process.

Two things go wrong in the workers of ``Dataset.map(num_proc=...)``. Every worker would start as
many threads as the machine has cores; and after one multi-threaded faiss search in the parent, a
search with more than one OpenMP thread in a forked child never returns (faiss issue 5206, seen with
faiss-cpu 1.15.1). One thread per worker cures both.
"""

import os
import sys

import threadpoolctl

_state = {"forked": False, "limited": False}


def _mark_forked() -> None:
    _state.update(forked=True, limited=False)


os.register_at_fork(after_in_child=_mark_forked)


def in_worker() -> bool:
    """Tell whether this process was forked, or started by a process pool."""
    return _state["forked"] or any(
        sys.modules[name].parent_process() is not None
        for name in ("multiprocessing.process", "multiprocess.process")
        if name in sys.modules
    )


def limit_in_worker() -> None:
    """Give BLAS and OpenMP one thread if this process is a worker; cheap to call often."""
    if not _state["limited"] and in_worker():
        threadpoolctl.threadpool_limits(1)
        _state["limited"] = True
