"""Calls in worker processes: their results in order, and one call at a time in each.

Over pipes and not in a `ProcessPoolExecutor`, whose processes write results into one pipe that the
parent and all of them keep open: where one is killed within a result (memory runs out, Ctrl-C), the
others and the parent wait for the rest for ever. Nor do they end with a parent that is killed.
"""

import pickle
import signal
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, TypeVar

from hf_dxprivacy.errors import DxPrivacyError

K = TypeVar("K")
R = TypeVar("R")


def in_processes(
    function: Callable[..., R], calls: Iterable[tuple[K, tuple[Any, ...]]], num_proc: int
) -> Generator[tuple[K, R], None, None]:
    """Call a function in several processes, which get the calls in turn.

    Closing the generator ends the processes, whatever they are doing.

    Args:
        function: It is pickled once, and unpickled in each process at its first call.
        calls: For each call what to keep with its result, and the arguments.
        num_proc: Number of processes.

    Raises:
        DxPrivacyError: If a process ends before its time. Errors of the function are raised too.
    """
    pickled = pickle.dumps(function)
    waiting: deque[tuple[K, Connection]] = deque()
    workers: list[tuple[BaseProcess, Connection]] = []
    try:
        for kept, arguments in calls:
            done = None
            if len(workers) < num_proc:
                workers.append(_started(pickled))
                connection = workers[-1][1]
            else:
                before, connection = waiting.popleft()
                done = before, received(connection)
            _exchange(connection.send, arguments)
            waiting.append((kept, connection))
            if done is not None:
                yield done
        for kept, connection in waiting:
            yield kept, received(connection)
    finally:
        for process, connection in workers:
            process.terminate()
            process.join()
            connection.close()


def _started(pickled: bytes) -> tuple[BaseProcess, Connection]:
    # Spawned, not forked: this process may hold threads (a progress bar, Arrow, BLAS).
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, pickled), daemon=True)
    # The mask of the tracker's start would end this one.
    resource_tracker.ensure_running()
    with closing(theirs), _held():
        process.start()
    return process, ours


@contextmanager
def _held() -> Iterator[None]:
    """Hold back what reaches all processes of a terminal, and the parent alone decides about.

    Processes that are started meanwhile hold it back for their life.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    held = {signal.SIGINT, signal.SIGQUIT, signal.SIGHUP}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, held)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(connection: Connection, pickled: bytes) -> None:
    """Answer the calls that come, until the parent has ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Windows has no mask
    function: Callable[..., Any] | None = None
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            arguments = connection.recv()
            try:
                function = function or pickle.loads(pickled)
                answer: Any = (function(*arguments),)
            except Exception as error:
                answer = error
            connection.send(answer)


def received(connection: Connection) -> Any:
    """Return the result of the call that a process was sent first; its errors are raised."""
    answer = _exchange(connection.recv)
    if isinstance(answer, Exception):
        raise answer
    return answer[0]


def _exchange(exchange: Callable[..., Any], *message: Any) -> Any:
    """Name the cause where a pipe closes, between two messages or within one (an `OSError`)."""
    try:
        return exchange(*message)
    except (EOFError, OSError) as error:
        raise DxPrivacyError(
            "a worker process ended before its time, perhaps because memory ran out; try fewer "
            "processes or smaller batches"
        ) from error
