"""The devices that mechanisms can compute on: this library's own "cpu", or one of torch.

Noise is drawn on the processor wherever the rest is computed: the generator of torch on a GPU,
Philox, is made for simulations and not for secrets, and ChaCha20 is what a guarantee rests on.
"""

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from hf_dxprivacy import _optional
from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError

# Computed by NumPy and faiss, without torch.
CPU = "cpu"

# Bytes of one block of scores on a device, and the part of its free memory that one may take, so
# that several processes find room beside each other.
BLOCK_BYTES = 1 << 30
SHARE = 4

# What a processor works on at once; "cpu:0" is torch there, with the same code as on a GPU.
PROCESSOR_BYTES = 1 << 24

_precision = threading.Lock()


def check_device(device: str) -> None:
    """Require a device that there is, without opening it.

    A process that has opened CUDA can not be forked any more, as ``Dataset.map(num_proc=...)``
    does; so devices are only counted, which torch does through the driver's NVML.

    Args:
        device: "cpu", "cuda", or "cuda:1" for the second GPU.

    Raises:
        InvalidTypeError: If it is not a string.
        InvalidValueError: If there is no such device.
        MissingExtraError: If torch is needed and not installed.
    """
    if not isinstance(device, str):
        raise InvalidTypeError(f"expected device to be a string such as 'cuda', got {device!r}")
    if device == CPU:
        return
    torch = _optional.require("torch", "gpu")
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
    torch = _optional.require("torch", "gpu")
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

    These have 11 and 8 bits of 24; `torch.set_float32_matmul_precision` allows them on a GPU and on
    processors that can.
    """
    with _precision, ExitStack() as settings:
        for backend in (torch.backends.cuda, torch.backends.mkldnn):
            # Older versions of torch have no such setting for the processor.
            if hasattr(backend, "matmul"):
                settings.enter_context(_full_precision(backend.matmul))
        yield


@contextmanager
def _full_precision(matmul: Any) -> Iterator[None]:
    # Since torch 2.9 there is a name for the precision, and the older name may refuse to answer.
    newer = hasattr(matmul, "fp32_precision")
    name, full = ("fp32_precision", "ieee") if newer else ("allow_tf32", False)
    before = getattr(matmul, name)
    setattr(matmul, name, full)
    try:
        yield
    finally:
        setattr(matmul, name, before)


def _refused(device: str, error: Exception) -> InvalidValueError:
    """Say what torch says, and the remedy."""
    said = str(error).splitlines()[0]
    remedy = "take device='cpu'"
    if "forked" in said:
        remedy = (
            "this worker was forked from a process that had used the GPU: privatize in one process "
            "(no num_proc), or do nothing else with the GPU before the workers start"
        )
    return InvalidValueError(f"torch can not compute on device={device!r}: {said}; {remedy}")
