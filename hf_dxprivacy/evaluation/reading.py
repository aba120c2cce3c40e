"""Reading what to train and to test with, from a file or from the Hub."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from datasets import Dataset, DatasetDict, load_dataset

from hf_dxprivacy import _validate

# For each file ending, the builder of `datasets`. What is no file is asked of the Hub.
BUILDERS = {"json": "json", "jsonl": "json", "csv": "csv", "tsv": "csv", "parquet": "parquet"}
SPLIT, TRAIN = "split", "train"
SPLITS = (TRAIN, "validation", "test")


def read_parts(
    data: str,
    *,
    config: str | None = None,
    splits: Sequence[str] = SPLITS,
) -> list[Dataset]:
    """Read the part to train with and the part to test with.

    A file can name the split of each row in a column "split".

    Args:
        data: A file (.json, .jsonl, .csv, .tsv, .parquet, or one of these with .gz), or a dataset
            on the Hub.
        config: The configuration of a dataset on the Hub that has several.
        splits: The first of these that the data has is trained with, and the last tested.

    Returns:
        Two parts; one where the data has none or one of these splits.

    Raises:
        InvalidValueError: If the file's ending is unknown.
    """
    found = _splits(data, config)
    names = [name for name in splits if name in found] or list(found)[:1]
    chosen = names if len(names) == 1 else [names[0], names[-1]]
    return [found[name] for name in chosen]


def thinned(part: Dataset, rows: int | None) -> Dataset:
    """Return that many rows, evenly spread; all if there are fewer, or `rows` is None.

    Raises:
        InvalidValueError: If `rows` is below 1.
    """
    if rows is None:
        return part
    _validate.at_least(1, rows=rows)
    if rows >= len(part):
        return part
    return part.select(np.linspace(0, len(part) - 1, rows).round().astype(np.int64))


def _splits(data: str, config: str | None) -> DatasetDict:
    if not Path(data).is_file():
        return load_dataset(data, config)
    ending = Path(data).name.removesuffix(".gz").rpartition(".")[2]
    _validate.one_of(BUILDERS, ending=ending)
    options = {"sep": "\t"} if ending == "tsv" else {}
    rows = load_dataset(BUILDERS[ending], data_files=data, split=TRAIN, **options)
    if SPLIT not in rows.column_names:
        return DatasetDict({TRAIN: rows})
    split_of = np.asarray(rows[SPLIT][:])
    return DatasetDict(
        {
            name: rows.select(np.flatnonzero(split_of == name))
            for name in dict.fromkeys(split_of.tolist())
        }
    )
