"""Devices of torch. Noise is drawn on the processor either way.

torch's GPU generator, Philox, is made for simulations, and ChaCha20 is what a guarantee rests on.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from hf_dxprivacy._runtime import CPU
from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError, require

# Bytes of one block of scores on a device, and the part of its free memory that one may take, so
# that several processes find room beside each other; and bytes of one on a processor, where "cpu:0"
# is torch with the same code as on a GPU.
BLOCK_BYTES, SHARE = 1 << 30, 4
PROCESSOR_BYTES = 1 << 24

# Replaced in a forked child, where no thread would release a lock that another thread had.
_precision = threading.Lock()


def _mark_forked() -> None:
    global _precision
    _precision = threading.Lock()


os.register_at_fork(after_in_child=_mark_forked)


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
