"""Data sets of texts, or pairs of texts, with labels or scores to predict from them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from datasets import ClassLabel, Dataset, DatasetDict, concatenate_datasets, load_dataset
from numpy.typing import NDArray

from hf_dxprivacy._runtime import require
from hf_dxprivacy.errors import InvalidValueError, require_at_least, require_one_of

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
    require_at_least(1, rows=rows)
    if rows >= len(part):
        return part
    return part.select(np.linspace(0, len(part) - 1, rows).round().astype(np.int64))


def _splits(data: str, config: str | None) -> DatasetDict:
    if not Path(data).is_file():
        return load_dataset(data, config)
    ending = Path(data).name.removesuffix(".gz").rpartition(".")[2]
    require_one_of(BUILDERS, ending=ending)
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


TEXT_COLUMNS = ("text", "text1", "text2")
TARGET_COLUMNS = ("label", "score")
GROUP, TARGET = "subset", "target"
TEST_SHARE = 0.2


@dataclass(frozen=True, eq=False)
class TextTask:
    """Texts with labels, or pairs of them; or pairs with a score.

    Attributes:
        name: Of the dataset.
        rows: The text columns, and "target": an index of `labels`, or a score.
        text_columns: One, or two for pairs.
        labels: Names of the labels; empty for scores.
        groups: Of each row, what scores are correlated within; None for all together.
        is_test: (m,) bool which rows are for testing; None if each repeat is to choose.
        corpus: The text columns of all rows, of which `rows` may be a part.
    """

    name: str
    rows: Dataset
    text_columns: tuple[str, ...]
    labels: tuple[str, ...]
    groups: tuple[str, ...] | None
    is_test: NDArray[np.bool_] | None
    corpus: Dataset

    @property
    def texts(self) -> list[str]:
        """All texts of the corpus, column by column."""
        return [text or "" for name in self.text_columns for text in self.corpus[name]]

    @property
    def targets(self) -> NDArray[Any]:
        """(m,) int64 indices of labels, or float64 scores."""
        return np.asarray(self.rows[TARGET][:], dtype=np.int64 if self.labels else np.float64)

    def parts(self, repeat: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the rows to train with and those to test with.

        Args:
            repeat: Chooses one fifth of the rows, the same share of every label, where the data
                has no test part of its own.

        Raises:
            MissingExtraError: If rows are to be chosen and scikit-learn is not installed.
        """
        if self.is_test is not None:
            return np.flatnonzero(~self.is_test), np.flatnonzero(self.is_test)
        train, test = require("sklearn.model_selection", "audit").train_test_split(
            np.arange(len(self.rows)),
            test_size=TEST_SHARE,
            random_state=repeat,
            stratify=self.targets if self.labels else None,
        )
        return np.sort(train), np.sort(test)


def read_task(
    data: str,
    *,
    text_columns: Sequence[str] = TEXT_COLUMNS,
    target_column: str | None = None,
    rows: int | None = None,
    **options: Any,
) -> TextTask:
    """Read a dataset.

    Its parts are those of `read_parts`. A column "subset" groups the rows of scores.

    Args:
        data: A file, or a dataset on the Hub.
        text_columns: Names of which the data has one, or two for pairs of texts.
        target_column: Labels (whole numbers or names) or scores (numbers with a point). By default
            "label" or "score".
        rows: Take that many rows, evenly spread, of each part. By default all.
        **options: All others of `read_parts`.

    Raises:
        InvalidValueError: If a column is missing.
    """
    whole = read_parts(data, **options)
    parts = [thinned(part, rows) for part in whole]
    found = concatenate_datasets(parts)
    columns, target = _columns(found, text_columns, target_column)
    values, labels = _encoded(found, target)
    content = {name: [text or "" for text in found[name]] for name in columns}
    return TextTask(
        Path(data).name.partition(".")[0],
        Dataset.from_dict(content | {TARGET: values}),
        columns,
        labels,
        tuple(found[GROUP][:]) if GROUP in found.column_names and not labels else None,
        np.arange(len(found)) >= len(parts[0]) if len(parts) == 2 else None,
        concatenate_datasets(whole).select_columns(list(columns)),
    )


def _columns(
    data: Dataset, texts: Sequence[str], target: str | None
) -> tuple[tuple[str, ...], str]:
    """Return the text columns and the target column."""
    columns = tuple(name for name in texts if name in data.column_names)
    candidates = TARGET_COLUMNS if target is None else (target,)
    targets = [name for name in candidates if name in data.column_names]
    if len(columns) not in (1, 2) or not targets:
        raise InvalidValueError(
            f"expected one text column or two of {', '.join(texts)}, and a target column, "
            f"got columns {', '.join(data.column_names)}; name them"
        )
    return columns, targets[0]


def _encoded(data: Dataset, column: str) -> tuple[list[float] | list[int], tuple[str, ...]]:
    """Return indices of labels with the labels, or scores without."""
    values, feature = data[column][:], data.features[column]
    if feature.dtype.startswith("float"):
        return values, ()
    if isinstance(feature, ClassLabel):
        return values, tuple(feature.names)
    labels = sorted(set(values))
    at = {label: index for index, label in enumerate(labels)}
    return [at[value] for value in values], tuple(map(str, labels))
