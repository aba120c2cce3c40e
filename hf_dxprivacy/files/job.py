"""All rows of an input through a privatizer, in one process or several, and a report of it."""

import io
import pickle
import platform
import signal
from collections import deque
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from importlib import metadata
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pyarrow as pa
from tqdm import tqdm

from hf_dxprivacy._version import __version__
from hf_dxprivacy.errors import DxPrivacyError, require_at_least
from hf_dxprivacy.files.readers import Batch, Reader
from hf_dxprivacy.files.writers import Write
from hf_dxprivacy.privatizers.batch import WordCounts
from hf_dxprivacy.privatizers.text_privatizer import DxPrivatizer

# Those whose version may change a result.
LIBRARIES = ("datasets", "faiss-cpu", "numpy", "pyarrow", "randomgen", "tokenizers")

COUNTS_ARE_PRIVATE = (
    "The counts of words are a function of the private text and are not covered by the guarantee: "
    "they are for the owner of the text only. Remove them before this report goes elsewhere."
)


@dataclass(frozen=True)
class Outcome:
    """Totals of a job.

    Attributes:
        rows: Number of rows.
        words: Numbers of words per action. A function of the private text: do not release it.
    """

    rows: int
    words: WordCounts


Released = tuple[Batch, WordCounts]


def privatize_rows(
    privatizer: DxPrivatizer,
    reader: Reader,
    write: Write,
    *,
    batch_size: int = 1000,
    num_proc: int = 1,
    progress: bool = True,
) -> Outcome:
    """Read all rows, replace their texts and write them, in order.

    Neither the batch size nor the number of processes changes a seeded result.

    Args:
        privatizer: The privatizer; its columns must be those that the reader was opened with.
        reader: Where the rows come from.
        write: Takes the released batches.
        batch_size: Rows in a batch, at most.
        num_proc: Number of processes. Each draws from its own key.
        progress: Show a bar on the standard error stream if that is a terminal.

    Raises:
        InvalidValueError: If the input is damaged, or an option out of range.
        DxPrivacyError: If a worker process ends before its time.
        OSError: If a file cannot be read or written.
    """
    require_at_least(1, batch_size=batch_size, num_proc=num_proc)
    rows, words = 0, WordCounts()
    batches = reader.batches(batch_size)
    if num_proc > 1:
        released = _in_workers(privatizer, batches, num_proc)
    else:
        released = _in_turn(privatizer, batches)
    bar = tqdm(
        total=reader.total,
        unit=reader.unit,
        unit_scale=True,
        desc="Privatizing",
        disable=None if progress else True,
    )
    # Closing the generator ends the workers whatever happens here.
    with closing(released), bar:
        for batch, counts in released:
            write(batch)
            rows, words = rows + len(batch), words + counts
            bar.update(reader.position() - bar.n)
    return Outcome(rows, words)


def privatize_batch(privatizer: DxPrivatizer, batch: Batch, first_row: int) -> Released:
    """Privatize a batch as `Dataset.map` would, and put the results in.

    Args:
        privatizer: The privatizer.
        batch: The rows.
        first_row: Index of the first row in the whole data; seeded noise is keyed by it.

    Returns:
        The batch with the output columns, its other columns untouched, and counts of its words.
    """
    counts: list[WordCounts] = []
    indices = list(range(first_row, first_row + len(batch)))
    if isinstance(batch, list):
        columns = {name: [row.get(name) for row in batch] for name in privatizer.text_columns}
        released = privatizer(columns, indices, on_counts=counts.append)
        for name in privatizer.output_columns:
            for row, cell in zip(batch, released[name], strict=True):
                if cell is not None or name in row:  # a key that is missing stays missing
                    row[name] = cell
    else:
        released = privatizer(_plain(batch, privatizer), indices, on_counts=counts.append)
        for name in privatizer.output_columns:
            field, at = released.schema.field(name), batch.schema.get_field_index(name)
            column = released.column(name)
            batch = (
                batch.append_column(field, column)
                if at < 0
                else batch.set_column(at, field, column)
            )
        batch = batch.replace_schema_metadata(released.schema.metadata)
    return batch, sum(counts, WordCounts())


def _plain(table: pa.Table, privatizer: DxPrivatizer) -> pa.Table:
    """Return a table whose texts are not dictionary-encoded: released ones hardly ever repeat."""
    for name in privatizer.text_columns:
        at = table.schema.get_field_index(name)
        kind = table.schema.field(at).type
        if pa.types.is_dictionary(kind):
            table = table.set_column(at, name, table.column(at).cast(kind.value_type))
    return table


def released_schema(privatizer: DxPrivatizer, schema: pa.Schema | None) -> pa.Schema | None:
    """Return the schema of released tables; None for lists of dicts, which have none."""
    if schema is None:
        return None
    for at, field in enumerate(schema):
        if field.name in privatizer.text_columns:  # metadata of a text may describe it
            schema = schema.set(at, field.remove_metadata())
    table: Any = privatize_batch(privatizer, schema.empty_table(), 0)[0]
    return table.schema


def _in_turn(privatizer: DxPrivatizer, batches: Iterator[Batch]) -> Generator[Released, None, None]:
    row = 0
    for batch in batches:
        yield privatize_batch(privatizer, batch, row)
        row += len(batch)


def _in_workers(
    privatizer: DxPrivatizer, batches: Iterator[Batch], num_proc: int
) -> Generator[Released, None, None]:
    """Give the batches to processes in turn, one at a time to each, so that none can block."""
    pickled, row = pickle.dumps(privatizer), 0
    waiting: deque[Connection] = deque()
    workers: list[tuple[BaseProcess, Connection]] = []
    try:
        for batch in batches:
            released = None
            if len(workers) < num_proc:
                workers.append(_started(pickled))
                connection = workers[-1][1]
            else:
                connection = waiting.popleft()
                released = _received(connection)
            with _worker_ended():
                connection.send((_packed(batch), row))
            waiting.append(connection)
            row += len(batch)
            if released is not None:
                yield released
        yield from map(_received, waiting)
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
    # Ctrl-C reaches the whole process group, and the parent alone decides what it means: children
    # inherit the mask, which a start of the resource tracker would lift.
    resource_tracker.ensure_running()
    held = {signal.SIGINT} if hasattr(signal, "pthread_sigmask") else None
    before = held and signal.pthread_sigmask(signal.SIG_BLOCK, held)
    try:
        process.start()
    finally:
        if before is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()
    return process, ours


def _serve(connection: Connection, pickled: bytes) -> None:
    """Privatize the batches that come, until the parent has ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    privatizer: DxPrivatizer | None = None
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            packed, first_row = connection.recv()
            try:
                privatizer = privatizer or pickle.loads(pickled)
                batch, counts = privatize_batch(privatizer, _unpacked(packed), first_row)
                answer: Any = (_packed(batch), counts)
            except Exception as error:
                answer = error
            connection.send(answer)


@contextmanager
def _worker_ended() -> Iterator[None]:
    """Name the cause where a pipe closes, between two messages or within one (an `OSError`)."""
    try:
        yield
    except (EOFError, OSError) as error:
        raise DxPrivacyError(
            "a worker process ended before its time, perhaps because memory ran out; try fewer "
            "processes or smaller batches"
        ) from error


def _received(connection: Connection) -> Released:
    with _worker_ended():
        answer = connection.recv()
    if isinstance(answer, Exception):
        raise answer
    packed, counts = answer
    return _unpacked(packed), counts


def _packed(batch: Batch) -> bytes:
    """Serialize a batch; of a slice of a table only its own rows, which pickle does not manage."""
    if isinstance(batch, list):
        return pickle.dumps(batch)
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_table(batch)
    return pickle.dumps(sink.getvalue())


def _unpacked(data: bytes) -> Batch:
    batch = pickle.loads(data)
    return batch if isinstance(batch, list) else pa.ipc.open_stream(batch).read_all()


def run_report(privatizer: DxPrivatizer, outcome: Outcome) -> dict[str, Any]:
    """Describe a release as JSON values. Neither the seed nor any path is part of it.

    Args:
        privatizer: The privatizer.
        outcome: Totals of the job.
    """
    space, words = privatizer.space, outcome.words
    name = Path(space.location).name if space.location else None
    return {
        "guarantee": privatizer.guarantee.to_dict(),
        "mechanism": privatizer.mechanism.parameters,
        "space": {
            "name": space.commit.repo_id if space.commit else name,
            "commit": space.commit.sha if space.commit else None,
            "digest": space.digest,
            "metric": space.metric,
            "words": len(space),
            "dimensions": space.dim,
        },
        "options": {
            "text_columns": list(privatizer.text_columns),
            "output_columns": list(privatizer.output_columns),
            "oov": privatizer.oov,
            "case": privatizer.case,
            "stopwords": len(privatizer.stopwords),
            "seeded": privatizer.seed is not None,
        },
        "rows": outcome.rows,
        "words": {
            "note": COUNTS_ARE_PRIVATE,
            "replaced": words.replaced,
            "drawn_unchanged": words.unchanged,
            "out_of_vocabulary": words.out_of_vocabulary,
            "kept": words.kept,
            "unknown_share": unknown_share(words),
        },
        "versions": {
            "hf-dxprivacy": __version__,
            "python": platform.python_version(),
            **{library: _version(library) for library in LIBRARIES},
        },
    }


def unknown_share(words: WordCounts) -> float:
    """Return the share of words that the vocabulary lacks, 0 if there are no words."""
    total = words.replaced + words.unchanged + words.out_of_vocabulary + words.kept
    return words.out_of_vocabulary / total if total else 0.0


def _version(library: str) -> str | None:
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return None  # another build of the same library, such as faiss-gpu
