"""All rows of an input through a privatizer, in one process or several, and a report of it."""

import logging
import platform
import sys
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial, reduce
from importlib import metadata
from itertools import chain, filterfalse
from operator import add
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import pyarrow as pa
from tqdm import tqdm

from hf_dxprivacy._version import __version__
from hf_dxprivacy.errors import InvalidValueError, describe_columns, require_at_least
from hf_dxprivacy.files.processes import in_processes
from hf_dxprivacy.files.readers import Reader, open_reader
from hf_dxprivacy.files.source import DELIMITERS, STANDARD, Columns, Input
from hf_dxprivacy.files.text_rows import Batch
from hf_dxprivacy.files.writers import check_output, find_format, replacing, write_rows
from hf_dxprivacy.hub.artifact import bind, to_json
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
from hf_dxprivacy.publishing.released_dataset import sha256_of
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


@dataclass(frozen=True)
class Job:
    """A text dataset that becomes another one, and a report of the release.

    Attributes:
        source: What is read.
        output: The file to be, which appears when it is complete; or "-" for standard output.
        report: The report to be, or None.
        overwrite: Whether output and report may exist.
        batch_size: Rows in a batch, at most.
        num_proc: Number of processes.

    Raises:
        InvalidValueError: If the format of the output is unknown, or would lose something of the
            input, or output, report and input are not different files.
    """

    source: Input
    output: str
    report: Path | None = None
    overwrite: bool = False
    batch_size: int = 1000
    num_proc: int = 1

    def __post_init__(self) -> None:
        find_format(self.output, self.source)
        if self.report is not None and self.report.resolve() == Path(self.output).resolve():
            raise InvalidValueError("--output and --report are the same file; name another one")
        read = Path(self.source.name)
        for path in self._places:
            if self.source.is_file and path.exists() and path.samefile(read):
                raise InvalidValueError(f"{path} is read, and never overwritten; name another file")

    @property
    def _places(self) -> list[Path]:
        written = [] if self.output == STANDARD else [Path(self.output)]
        return written + ([] if self.report is None else [self.report])

    def run(
        self, columns: Columns, make: Callable[[], TextsPrivatizer]
    ) -> tuple[Outcome, TextsPrivatizer]:
        """Write the release and its report.

        Args:
            columns: The columns of the texts and of the results.
            make: Makes the privatizer of these columns, once all is found to be in its place.

        Raises:
            InvalidValueError: As `privatize_rows`; or if a file exists and may not.
            OSError: If a file cannot be read or written.
        """
        for path in self._places:
            check_output(path, self.overwrite)
        target = find_format(self.output, self.source)
        with open_reader(self.source, columns) as reader:
            privatizer = make()
            with self._opened() as file:
                outcome = privatize_rows(
                    *(privatizer, reader, file, target),
                    batch_size=self.batch_size,
                    num_proc=self.num_proc,
                )
        if self.report is not None:
            found = None if self.output == STANDARD else self._described(target)
            report = to_json(run_report(privatizer, outcome, found))
            with replacing(self.report, overwrite=self.overwrite) as file:
                file.write(report)
        return outcome, privatizer

    def _opened(self) -> AbstractContextManager[BinaryIO]:
        if self.output == STANDARD:
            return nullcontext(sys.stdout.buffer)
        return replacing(Path(self.output), overwrite=self.overwrite)

    def _described(self, kind: str) -> dict[str, Any]:
        """Return what the report says of the output: its digest, and how to read it."""
        delimiter = self.source.delimiter if self.source.kind == kind else None
        reading = {"delimiter": delimiter, "quoted": self.source.quoted}
        described = {"sha256": sha256_of(Path(self.output)), "format": kind}
        return described | (reading if kind in DELIMITERS else {})


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
        batch_size: As for `Job`.
        num_proc: As for `Job`.
        progress: Show a bar on the standard error stream if that is a terminal.

    Raises:
        InvalidValueError: If the input is damaged, an option out of range, or the format cannot
            hold a column.
        DxPrivacyError: If a worker process ends before its time.
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
    with bar, closing(_results(privatizer, batches, num_proc)) as results:
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
    with _unwarned():
        return privatizer(cells, indices, on_counts=counts.append), reduce(add, counts)


def _results(
    privatizer: TextsPrivatizer, batches: Iterator[Batch], num_proc: int
) -> Generator[tuple[Batch, Released], None, None]:
    """Privatize batches in this process, or in some, which get the columns that are read."""
    function = partial(_privatized, privatizer)
    calls = _calls(privatizer, batches)
    if num_proc > 1:
        yield from in_processes(function, calls, num_proc)
    else:
        yield from ((batch, function(*arguments)) for batch, arguments in calls)


def _calls(
    privatizer: TextsPrivatizer, batches: Iterator[Batch]
) -> Iterator[tuple[Batch, tuple[Cells, int]]]:
    """Return each batch, the cells of it that are read, and the number of its first row."""
    label = privatizer.label_column if isinstance(privatizer, SentencePrivatizer) else None
    inputs, row = [*privatizer.text_columns, *filter(None, [label])], 0
    for batch in batches:
        if label is not None:
            _require_label(batch, label)
        cells = {
            name: [cell.get(name) for cell in batch]
            if isinstance(batch, list)
            else arrow_values(batch.column(name))
            for name in inputs
        }
        yield batch, (cells, row)
        row += len(batch)


def _require_label(batch: Batch, label: str) -> None:
    present = [*chain.from_iterable(batch)] if isinstance(batch, list) else batch.column_names
    if label not in present:
        names = [*dict.fromkeys(present)]
        raise InvalidValueError(f"there is no column {label!r}; {describe_columns(names, label)}")


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
