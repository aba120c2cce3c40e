"""All rows of an input through a privatizer, in one process or several, and a report of it."""

import logging
import pickle
import platform
import signal
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import reduce
from importlib import metadata
from itertools import chain, filterfalse
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from operator import add
from typing import Any, BinaryIO, TypeAlias

import pyarrow as pa
from tqdm import tqdm

from hf_dxprivacy._version import __version__
from hf_dxprivacy.errors import (
    DxPrivacyError,
    InvalidValueError,
    describe_columns,
    require_at_least,
)
from hf_dxprivacy.files.readers import Reader
from hf_dxprivacy.files.text_rows import Batch
from hf_dxprivacy.files.writers import write_rows
from hf_dxprivacy.hub.artifact import bind
from hf_dxprivacy.privatizers import nested, text_privatizer
from hf_dxprivacy.privatizers.batch import TextCounts, WordCounts
from hf_dxprivacy.privatizers.dataset_formats import (
    arrow_array,
    arrow_values,
    bare_type,
    released_metadata,
)
from hf_dxprivacy.privatizers.nested import left_in_clear, none_covered
from hf_dxprivacy.privatizers.text_privatizer import DxPrivatizer
from hf_dxprivacy.publishing.claim import claim_of
from hf_dxprivacy.sentences.sentence_privatizer import SentencePrivatizer

# So many columns in clear are named after a run: keys of JSON lines may be without end.
NAMED = 20
# Those whose version may change a result.
LIBRARIES = ("datasets", "faiss-cpu", "numpy", "pyarrow", "randomgen", "tokenizers")

COUNTS_ARE_PRIVATE = (
    "The counts of words are a function of the private text and are not covered by the guarantee: "
    "they are for the owner of the text only. Remove them before this report goes elsewhere."
)

TextsPrivatizer: TypeAlias = "DxPrivatizer | SentencePrivatizer"
Counts: TypeAlias = "WordCounts | TextCounts"
Cells = dict[str, list[Any]]
Released = tuple[Cells, Counts]


@dataclass
class Outcome:
    """Totals of a job.

    Attributes:
        rows: Number of rows.
        counts: Numbers of words per action, or of texts. A function of the private text: do not
            release it.
        in_clear: The columns that were written as they are, the first `NAMED` of them.
    """

    rows: int = 0
    counts: Counts = field(default_factory=WordCounts)
    in_clear: tuple[str, ...] = ()


def privatize_rows(
    privatizer: TextsPrivatizer,
    reader: Reader,
    file: BinaryIO,
    target: str,
    *,
    batch_size: int = 1000,
    num_proc: int = 1,
    progress: bool = True,
) -> Outcome:
    """Read all rows, replace their texts and write them, in order.

    Neither the batch size nor the number of processes changes a seeded result. The caller has to
    warn of a large `Outcome.counts.unknown_share` and of what `Outcome.counts.left` counts; the
    privatizer itself does not, in any process.

    Args:
        privatizer: The privatizer; its columns must be those that the reader was opened with.
        reader: Where the rows come from.
        file: Where the rows go.
        target: The format to write.
        batch_size: Rows in a batch, at most.
        num_proc: Number of processes. Each draws from its own key.
        progress: Show a bar on the standard error stream if that is a terminal.

    Raises:
        InvalidValueError: If the input is damaged, an option out of range, or the format cannot
            hold a column.
        DxPrivacyError: If a worker process ends before its time.
        OSError: If a file cannot be read or written.
    """
    require_at_least(1, batch_size=batch_size, num_proc=num_proc)
    schema = None if reader.schema is None else released_schema(privatizer, reader.schema)
    by_text = isinstance(privatizer, SentencePrivatizer)
    outcome = Outcome(counts=TextCounts() if by_text else WordCounts())
    outputs = {*privatizer.output_columns}

    def released() -> Iterator[Batch]:
        for batch, (cells, counts) in results:
            outcome.rows += len(batch)
            outcome.counts = add(outcome.counts, counts)
            names = chain.from_iterable(batch) if isinstance(batch, list) else batch.column_names
            others = filterfalse(outputs.__contains__, names)
            outcome.in_clear = (*dict.fromkeys(chain(outcome.in_clear, others)),)[:NAMED]
            bar.update(len(batch) if reader.position is None else reader.position() - bar.n)
            yield _merged(batch, cells, schema)

    bar = tqdm(
        total=reader.total,
        unit="rows" if reader.position is None else "B",
        unit_scale=True,
        desc="Privatizing",
        disable=None if progress else True,
    )
    # Closing the generator ends the workers whatever happens here.
    batches = reader.batches(batch_size)
    with bar, _unwarned(), closing(_results(privatizer, batches, num_proc)) as results:
        write_rows(file, target, schema, reader, released())
    if privatizer.roles and outcome.rows and not outcome.counts.total:
        paths = ", ".join(privatizer.released_columns.values())
        raise none_covered(paths, privatizer.roles, f"{outcome.rows} rows")
    return outcome


def released_schema(privatizer: TextsPrivatizer, schema: pa.Schema) -> pa.Schema:
    """Return the schema of released tables, without metadata that may describe a text."""
    texts = privatizer.text_columns
    kinds = [bare_type(schema.field(name).type) for name in texts]
    for name in texts:
        at = schema.get_field_index(name)
        schema = schema.set(at, schema.field(at).remove_metadata())
    for name, kind in zip(privatizer.output_columns, kinds, strict=True):
        # Released texts hardly ever repeat.
        released = pa.field(name, kind.value_type if pa.types.is_dictionary(kind) else kind)
        at = schema.get_field_index(name)
        schema = schema.append(released) if at < 0 else schema.set(at, released)
    outputs = {*texts, *privatizer.output_columns}
    return schema.with_metadata(released_metadata(schema, outputs))


def _merged(batch: Batch, released: Cells, schema: pa.Schema | None) -> Batch:
    """Return a batch with its output columns, and the other columns untouched."""
    if isinstance(batch, list):
        for name, cells in released.items():
            for row, cell in zip(batch, cells, strict=True):
                if cell is not None or name in row:  # a key that is missing stays missing
                    row[name] = cell
        return batch
    assert schema is not None
    columns = [
        arrow_array(released[kept.name], kept.type) if kept.name in released else batch.column(at)
        for at, kept in enumerate(schema)
    ]
    return pa.Table.from_arrays(columns, schema=schema)


@contextmanager
def _unwarned() -> Iterator[None]:
    loggers = [logging.getLogger(each.__name__) for each in (text_privatizer, nested)]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)


def _privatized(privatizer: TextsPrivatizer, cells: Cells, row: int) -> Released:
    """Privatize a batch as `Dataset.map` would; seeded noise is keyed by the number of a row."""
    counts: list[Counts] = []
    indices = list(range(row, row + len(cells[privatizer.text_columns[0]])))
    return privatizer(cells, indices, on_counts=counts.append), reduce(add, counts)


def _results(
    privatizer: TextsPrivatizer, batches: Iterator[Batch], num_proc: int
) -> Generator[tuple[Batch, Released], None, None]:
    """Privatize batches in this process, or in some, which get them in turn, one at a time."""
    label = privatizer.label_column if isinstance(privatizer, SentencePrivatizer) else None
    inputs = [*privatizer.text_columns, *filter(None, [label])]
    pickled, row = pickle.dumps(privatizer) if num_proc > 1 else b"", 0
    waiting: deque[tuple[Batch, Connection]] = deque()
    workers: list[tuple[BaseProcess, Connection]] = []
    try:
        for batch in batches:
            if label is not None:
                _require_label(batch, label)
            cells = {
                name: [cell.get(name) for cell in batch]
                if isinstance(batch, list)
                else arrow_values(batch.column(name))
                for name in inputs
            }
            done = None
            if num_proc == 1:
                done = batch, _privatized(privatizer, cells, row)
            else:
                if len(workers) < num_proc:
                    workers.append(_started(pickled))
                    connection = workers[-1][1]
                else:
                    before, connection = waiting.popleft()
                    done = before, _received(connection)
                _in_worker(connection.send, (cells, row))
                waiting.append((batch, connection))
            row += len(batch)
            if done is not None:
                yield done
        for batch, connection in waiting:
            yield batch, _received(connection)
    finally:
        for process, connection in workers:
            process.terminate()
            process.join()
            connection.close()


def _require_label(batch: Batch, label: str) -> None:
    present = [*chain.from_iterable(batch)] if isinstance(batch, list) else batch.column_names
    if label not in present:
        names = [*dict.fromkeys(present)]
        raise InvalidValueError(f"there is no column {label!r}; {describe_columns(names, label)}")


def _started(pickled: bytes) -> tuple[BaseProcess, Connection]:
    # Spawned, not forked: this process may hold threads (a progress bar, Arrow, BLAS).
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, pickled), daemon=True)
    # Ctrl-C reaches the whole process group, and the parent alone decides what it means: children
    # inherit the mask, which a start of the resource tracker would lift.
    resource_tracker.ensure_running()
    held = {signal.SIGINT, signal.SIGQUIT} if hasattr(signal, "pthread_sigmask") else None
    before = held and signal.pthread_sigmask(signal.SIG_BLOCK, held)
    try:
        process.start()
    finally:
        if before is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()
    return process, ours


def _serve(connection: Connection, pickled: bytes) -> None:
    """Privatize the texts that come, until the parent has ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "SIGQUIT"):
        signal.signal(signal.SIGQUIT, signal.SIG_IGN)
    privatizer: TextsPrivatizer | None = None
    with _unwarned(), suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            cells, row = connection.recv()
            try:
                privatizer = privatizer or pickle.loads(pickled)
                answer: Released | Exception = _privatized(privatizer, cells, row)
            except Exception as error:
                answer = error
            connection.send(answer)


def _received(connection: Connection) -> Released:
    answer: Released | Exception = _in_worker(connection.recv)
    if isinstance(answer, Exception):
        raise answer
    return answer


def _in_worker(exchange: Callable[..., Any], *message: Any) -> Any:
    """Name the cause where a pipe closes, between two messages or within one (an `OSError`)."""
    try:
        return exchange(*message)
    except (EOFError, OSError) as error:
        raise DxPrivacyError(
            "a worker process ended before its time, perhaps because memory ran out; try fewer "
            "processes or smaller batches"
        ) from error


def run_report(
    privatizer: TextsPrivatizer, outcome: Outcome, released: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Describe a release, and the file that holds it, as JSON values; no seed or path is in it."""
    versions: dict[str, str | None] = dict.fromkeys(LIBRARIES)
    for library in LIBRARIES:
        with suppress(metadata.PackageNotFoundError):  # another build, such as faiss-gpu
            versions[library] = metadata.version(library)
    nested = privatizer.text_paths != privatizer.text_columns
    report = {
        **claim_of(privatizer),
        **({"left_in_clear": left_in_clear(outcome.counts.left)} if nested else {}),
        "released": released,
        "rows": outcome.rows,
        **_counted(outcome.counts),
        "versions": {"hf-dxprivacy": __version__, "python": platform.python_version(), **versions},
    }
    # With a digest, so that a report that was edited makes no card.
    return bind(report)


def _counted(counts: Counts) -> dict[str, Any]:
    unknown = {"unknown_share": counts.unknown_share}
    if isinstance(counts, WordCounts):
        found = {
            "replaced": counts.replaced,
            "drawn_unchanged": counts.unchanged,
            "out_of_vocabulary": counts.out_of_vocabulary,
            "kept": counts.kept,
            "capitalized_within_sentences": counts.capitalized,
            "capitalized_drawn_unchanged": counts.capitalized_unchanged,
        }
        return {"words": {"note": COUNTS_ARE_PRIVATE, **found, **unknown}}
    note = COUNTS_ARE_PRIVATE.replace("of words", "and distances")
    found = {"texts": counts.texts, "looked_up": counts.total, "unknown": counts.unknown}
    return {"texts": {"note": note, **found, **unknown, "cosine_to_entry": counts.quartiles}}
