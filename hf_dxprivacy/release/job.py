"""All rows of a reader, through a privatizer, into a sink."""

from contextlib import closing
from dataclasses import dataclass
from typing import Any, cast

from tqdm import tqdm

from hf_dxprivacy import _validate
from hf_dxprivacy.files import Reader, Sink
from hf_dxprivacy.plan import WordCounts
from hf_dxprivacy.privatizer import DxPrivatizer
from hf_dxprivacy.release.workers import released_batches


@dataclass(frozen=True)
class Outcome:
    """What a job did.

    Attributes:
        rows: Number of rows.
        words: What happened to the words. A function of the private text: do not release it.
    """

    rows: int
    words: WordCounts


def privatize_rows(
    privatizer: DxPrivatizer,
    reader: Reader,
    sink: Sink,
    *,
    batch_size: int = 1000,
    num_proc: int = 1,
    progress: bool = True,
) -> Outcome:
    """Read all rows, replace their texts and write them.

    Neither the batch size nor the number of processes changes a seeded result.

    Args:
        privatizer: The privatizer; its columns must be those that the reader was opened with.
        reader: Where the rows come from.
        sink: Where they go.
        batch_size: Rows in a batch, at most.
        num_proc: Number of processes.
        progress: Show a bar on the standard error stream if that is a terminal.

    Raises:
        InvalidValueError: If the input is damaged, or an option out of range.
        DxPrivacyError: If a worker process ends before its time.
        OSError: If a file can not be read or written.
    """
    _validate.at_least(1, batch_size=batch_size, num_proc=num_proc)
    rows, words = 0, WordCounts()
    batches = released_batches(privatizer, reader.batches(batch_size), num_proc)
    with (
        # A generator; closing it ends the workers whatever happens here.
        closing(cast(Any, batches)),
        tqdm(
            total=reader.total,
            unit=reader.unit,
            unit_scale=True,
            desc="Privatizing",
            disable=None if progress else True,
        ) as bar,
    ):
        for batch, counts in batches:
            sink.write(batch)
            rows, words = rows + len(batch), words + counts
            bar.update(reader.position - bar.n)
    return Outcome(rows, words)
