"""Batches through a privatizer, in order, in this process or in worker processes."""

import os
import pickle
import signal
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import lru_cache
from multiprocessing import connection, get_context, parent_process

from hf_dxprivacy.errors import DxPrivacyError
from hf_dxprivacy.files import Batch, Cell
from hf_dxprivacy.plan import WordCounts
from hf_dxprivacy.privatizer import DxPrivatizer

Cells = dict[str, list[Cell]]
Released = tuple[Cells, WordCounts]

# Batches that a worker has before it, so that it never waits for the reader.
AHEAD = 2


def release(privatizer: DxPrivatizer, cells: Cells, first_row: int) -> Released:
    """Privatize the text columns of some rows.

    Args:
        privatizer: The privatizer.
        cells: The text columns.
        first_row: Index of the first row in the whole data; seeded noise is keyed by it.

    Returns:
        The output columns, and what happened to the words.
    """
    output, counts = {}, WordCounts()
    for name, target in zip(privatizer.text_columns, privatizer.output_columns, strict=True):
        keys = range(first_row, first_row + len(cells[name]))
        output[target], fates = privatizer.privatize_counted(cells[name], name, keys)
        counts += fates
    return output, counts


def released_batches(
    privatizer: DxPrivatizer, batches: Iterable[Batch], num_proc: int
) -> Iterator[tuple[Batch, WordCounts]]:
    """Replace the text of batches.

    Close the iterator if it is not read to its end, so that the workers end.

    Args:
        privatizer: The privatizer. Each process draws from its own key.
        batches: The rows. At most `AHEAD` batches for each worker are read ahead.
        num_proc: Number of processes; 1 works in this one.

    Returns:
        The batches, in order, with the new text in them.

    Raises:
        DxPrivacyError: If a worker ends before its time.
    """
    if num_proc > 1:
        yield from _in_workers(privatizer, batches, num_proc)
        return
    row = 0
    for batch in batches:
        cells, counts = release(privatizer, _cells(privatizer, batch), row)
        batch.replace(cells)
        row += len(batch)
        yield batch, counts


def _cells(privatizer: DxPrivatizer, batch: Batch) -> Cells:
    return {name: batch.cells(name) for name in privatizer.text_columns}


def _in_workers(
    privatizer: DxPrivatizer, batches: Iterable[Batch], num_proc: int
) -> Iterator[tuple[Batch, WordCounts]]:
    pickled, row = pickle.dumps(privatizer), 0
    waiting: deque[tuple[Batch, Future[Released]]] = deque()
    # Spawned, not forked: this process may hold threads (a progress bar, Arrow, BLAS).
    pool = ProcessPoolExecutor(num_proc, get_context("spawn"), _start_worker)
    try:
        for batch in batches:
            with _interrupts_held():
                task = pool.submit(_work, pickled, _cells(privatizer, batch), row)
            waiting.append((batch, task))
            row += len(batch)
            if len(waiting) > AHEAD * num_proc:
                yield _finished(*waiting.popleft())
        while waiting:
            yield _finished(*waiting.popleft())
    except BrokenProcessPool as error:
        raise DxPrivacyError(
            "a worker process ended before its time, perhaps because memory ran out; try fewer "
            "processes or smaller batches"
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


def _finished(batch: Batch, task: "Future[Released]") -> tuple[Batch, WordCounts]:
    cells, counts = task.result()
    batch.replace(cells)
    return batch, counts


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Start no process that could be interrupted before it is ready: children inherit the mask."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start_worker() -> None:
    # Ctrl-C reaches the whole process group; the parent alone decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    if (parent := parent_process()) is not None:
        connection.wait([parent.sentinel])
        os._exit(1)


def _work(pickled: bytes, cells: Cells, first_row: int) -> Released:
    return release(_unpickled(pickled), cells, first_row)


@lru_cache(maxsize=1)
def _unpickled(pickled: bytes) -> DxPrivatizer:
    """Return the same privatizer for every batch: it remembers rows of its mechanism."""
    privatizer: DxPrivatizer = pickle.loads(pickled)
    return privatizer
