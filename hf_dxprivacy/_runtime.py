"""Process-level support: optional imports, lazy attributes, and threads of libraries.

Forked workers get one BLAS and OpenMP thread: each would start as many threads as the machine has
cores, and after one multi-threaded faiss search in the parent, a search with more than one OpenMP
thread in a forked child never returns (faiss issue 5206, seen with faiss-cpu 1.15.1).
"""

import functools
import gc
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

# NumPy imports it at the first use of median and others. A process that is forked while another
# thread imports a module waits for ever when it needs that module.
import numpy.ma  # noqa: F401
import threadpoolctl

from hf_dxprivacy.errors import ImmutableError
from hf_dxprivacy.errors import require as require

if TYPE_CHECKING:
    lazy_property = functools.cached_property
else:

    class lazy_property:  # noqa: N801
        """`functools.cached_property` without the lock that it has before Python 3.12.

        A process that is forked while another thread computes a value keeps that lock for ever, and
        waits for it for ever. Without one, several threads may compute a value at once; the first
        to finish sets it, so that all of them get the same object.
        """

        def __init__(self, compute: Callable[[Any], Any]) -> None:
            self._compute = compute
            self.__doc__ = compute.__doc__
            self.__isabstractmethod__ = getattr(compute, "__isabstractmethod__", False)

        def __set_name__(self, owner: type, name: str) -> None:
            self._name = name

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            if instance is None:
                return self
            return instance.__dict__.setdefault(self._name, self._compute(instance))


class SetOnce:
    """Base class of objects whose public attributes are set once, by the constructor.

    A guarantee is stated for an object as it was made. To change anything, make another object.
    """

    def __setattr__(self, name: str, value: object) -> None:
        if not name.startswith("_") and (name in vars(self) or hasattr(type(self), name)):
            raise self._refusal(name)
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        if not name.startswith("_"):
            raise self._refusal(name)
        super().__delattr__(name)

    def _refusal(self, name: str) -> ImmutableError:
        return ImmutableError(
            f"cannot change {name!r}: a {type(self).__name__} stays as it was made, since its "
            "guarantee would not hold any more; make another one"
        )


# "limited" is 0, 1 once BLAS has one thread, and 2 once that of faiss has as well.
_state: dict[str, int] = {"forked": False, "limited": 0, "collects": False}
# One for each batch that is being worked on, in any thread.
_batches: set[object] = set()
_collector = threading.RLock()


@contextmanager
def no_collection() -> Iterator[None]:
    """Keep the cyclic garbage collector of Python from running until the last thread leaves.

    A batch makes tens of thousands of lists, none of them garbage before it ends, and the collector
    goes through all of them again and again: a tenth to a third of the time of `map`.
    """
    batch = object()
    try:
        with _collector:
            if not _batches:
                _state["collects"] = gc.isenabled()
            _batches.add(batch)
            gc.disable()
        yield
    finally:
        with _collector:
            _leave({batch})


def _leave(batches: set[object]) -> None:
    if _batches and not _batches - batches and _state["collects"]:
        gc.enable()
    _batches.difference_update(batches)


def _mark_forked() -> None:
    global _collector
    _collector = threading.RLock()
    # No thread that another batch was in is here to leave it.
    _leave({*_batches})
    _state.update(forked=True, limited=0)


os.register_at_fork(after_in_child=_mark_forked)


def in_worker() -> bool:
    """Tell whether this process was forked, or started by a process pool."""
    return bool(_state["forked"]) or any(
        sys.modules[name].parent_process() is not None
        for name in ("multiprocessing.process", "multiprocess.process")
        if name in sys.modules
    )


def limit_in_worker() -> None:
    """Give BLAS and OpenMP one thread if this process is a worker; cheap to call often."""
    if in_worker():
        # faiss brings a BLAS of its own, and is imported by what searches with it.
        set_threads = getattr(sys.modules.get("faiss"), "omp_set_num_threads", None)
        if _state["limited"] != (limited := 1 if set_threads is None else 2):
            threadpoolctl.threadpool_limits(1)
            _state["limited"] = limited
        if set_threads is not None:
            # OpenMP keeps this number per thread, so it is set where a search is called.
            set_threads(1)


# Computed by NumPy and faiss, without torch.
CPU = "cpu"
