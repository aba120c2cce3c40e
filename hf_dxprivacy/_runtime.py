"""Process-level support: optional imports, lazy attributes, threads of libraries, and devices.

* Forked workers get one BLAS and OpenMP thread: each would start as many threads as the machine has
  cores, and after one multi-threaded faiss search in the parent, a search with more than one OpenMP
  thread in a forked child never returns (faiss issue 5206, seen with faiss-cpu 1.15.1).
* Devices are "cpu" (NumPy and faiss) or one of torch. Noise is drawn on the processor either way:
  torch's GPU generator, Philox, is made for simulations, and ChaCha20 is what a guarantee rests on.
"""

import functools
import gc
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

# NumPy imports it at the first use of median and others. A process that is forked while another
# thread imports a module waits for ever when it needs that module.
import numpy.ma  # noqa: F401
import threadpoolctl

from hf_dxprivacy.errors import ImmutableError, InvalidTypeError, InvalidValueError
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
_state = {"forked": False, "limited": 0, "collects": False}
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
    global _precision, _collector
    _precision, _collector = threading.Lock(), threading.RLock()
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
        # It brings a BLAS of its own, and is loaded by the first search or tree that is built.
        faiss = sys.modules.get("faiss")
        if _state["limited"] != (limited := 1 + (faiss is not None)):
            threadpoolctl.threadpool_limits(1)
            _state["limited"] = limited
        if faiss is not None:
            # OpenMP keeps this number per thread, so it is set where a search is called.
            faiss.omp_set_num_threads(1)


# Computed by NumPy and faiss, without torch.
CPU = "cpu"

# Bytes of one block of scores on a device, and the part of its free memory that one may take, so
# that several processes find room beside each other; and bytes of one on a processor, where "cpu:0"
# is torch with the same code as on a GPU.
BLOCK_BYTES, SHARE = 1 << 30, 4
PROCESSOR_BYTES = 1 << 24

# Replaced in a forked child, where no thread would release a lock that another thread had.
_precision = threading.Lock()


def check_device(device: str) -> None:
    """Require "cpu", "cuda", or "cuda:1" for the second GPU, without opening the device.

    A process that has opened CUDA cannot be forked any more, as ``Dataset.map(num_proc=...)``
    does; so devices are only counted, which torch does through the driver's NVML.

    Raises:
        InvalidTypeError: If it is not a string.
        InvalidValueError: If there is no such device.
        MissingExtraError: If torch is needed and not installed.
    """
    if not isinstance(device, str):
        raise InvalidTypeError(f"expected device to be a string such as 'cuda', got {device!r}")
    if device == CPU:
        return
    torch = require("torch", "gpu")
    try:
        kind = torch.device(device)
    except RuntimeError as error:
        raise _refused(device, error) from error
    if kind.type not in ("cpu", "cuda"):
        raise InvalidValueError(f"expected device to be 'cpu', 'cuda' or 'cuda:1', got {device!r}")
    if kind.type == "cuda" and (kind.index or 0) >= torch.cuda.device_count():
        open_device(device)


def open_device(device: str) -> tuple[Any, Any]:
    """Return torch and one of its devices, ready to compute in this process.

    Raises:
        InvalidValueError: If there is no such device, or this process was forked from one that
            had opened CUDA.
        MissingExtraError: If torch is not installed.
    """
    torch = require("torch", "gpu")
    try:
        torch.empty(1, device=device)
    except (AssertionError, RuntimeError) as error:
        raise _refused(device, error) from error
    return torch, torch.device(device)


def block_rows(torch: Any, device: Any, row_bytes: int) -> int:
    """Return how many rows of some bytes to work on at once, at least 1."""
    room = PROCESSOR_BYTES
    if device.type == "cuda":
        # What torch holds in reserve is free too, though not to the driver.
        reserve = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        room = min(BLOCK_BYTES, (torch.cuda.mem_get_info(device)[0] + reserve) // SHARE)
    return max(1, int(room // row_bytes))


@contextmanager
def full_float32(torch: Any) -> Iterator[None]:
    """Multiply float32 in float32, also where the user allows TF32 or bfloat16 instead.

    These have 11 and 8 bits of 24; `torch.set_float32_matmul_precision` allows them.
    """
    with _precision, ExitStack() as settings:
        for backend in (torch.backends.cuda, torch.backends.mkldnn):
            # Older versions of torch have no such setting for the processor.
            if (matmul := getattr(backend, "matmul", None)) is not None:
                # Since 2.9 there is a name for the precision; the older name may refuse to answer.
                newer = hasattr(matmul, "fp32_precision")
                name, full = ("fp32_precision", "ieee") if newer else ("allow_tf32", False)
                settings.callback(setattr, matmul, name, getattr(matmul, name))
                setattr(matmul, name, full)
        yield


def _refused(device: str, error: Exception) -> InvalidValueError:
    """Return an error with the message of torch and a remedy."""
    said = str(error).splitlines()[0]
    remedy = "take device='cpu'"
    if "forked" in said:
        remedy = (
            "this worker was forked from a process that had used the GPU: privatize in one process "
            "(no num_proc), or do nothing else with the GPU before the workers start"
        )
    return InvalidValueError(f"torch cannot compute on device={device!r}: {said}; {remedy}")
