"""Data sets of texts, or pairs, with labels or scores to predict, and features to do so."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from datasets import ClassLabel, Dataset, concatenate_datasets, load_dataset
from numpy.typing import NDArray

from hf_dxprivacy._runtime import require
from hf_dxprivacy.errors import InvalidValueError, require_at_least, require_one_of
from hf_dxprivacy.spaces import EmbeddingSpace
from hf_dxprivacy.spaces.lookup import look_up_rows
from hf_dxprivacy.text import RowReader

# For each file ending, the builder of `datasets`. What is no file is asked of the Hub.
BUILDERS = {"json": "json", "jsonl": "json", "csv": "csv", "tsv": "csv", "parquet": "parquet"}
SPLIT, TRAIN = "split", "train"
SPLITS = (TRAIN, "validation", "test")

TEXT_COLUMNS = ("text", "text1", "text2")
TARGET_COLUMNS = ("label", "score")
GROUP, TARGET = "subset", "target"
TEST_SHARE = 0.2
# Texts whose words are held at once.
TEXTS = 4096

Features = NDArray[np.float64]


def read_parts(
    data: str, *, config: str | None = None, splits: Sequence[str] = SPLITS
) -> list[Dataset]:
    """Read the part to train with and the part to test with; files may have a column "split".

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
    found: Mapping[str, Dataset]
    if not Path(data).is_file():
        found = load_dataset(data, config)
    else:
        ending = Path(data).name.removesuffix(".gz").rpartition(".")[2]
        require_one_of(BUILDERS, ending=ending)
        options = {"sep": "\t"} if ending == "tsv" else {}
        rows = load_dataset(BUILDERS[ending], data_files=data, split=TRAIN, **options)
        found = {TRAIN: rows}
        if SPLIT in rows.column_names:
            split_of = np.asarray(rows[SPLIT][:])
            found = {
                name: rows.select(np.flatnonzero(split_of == name))
                for name in dict.fromkeys(split_of.tolist())
            }
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
    """Read the parts of a dataset; a column "subset" groups the rows of scores.

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
    columns = tuple(name for name in text_columns if name in found.column_names)
    candidates = TARGET_COLUMNS if target_column is None else (target_column,)
    targets = [name for name in candidates if name in found.column_names]
    if len(columns) not in (1, 2) or not targets:
        raise InvalidValueError(
            f"expected one text column or two of {', '.join(text_columns)}, and a target column, "
            f"got columns {', '.join(found.column_names)}; name them"
        )
    values, feature = found[targets[0]][:], found.features[targets[0]]
    labels: tuple[str, ...] = ()
    if isinstance(feature, ClassLabel):
        labels = tuple(feature.names)
    elif not feature.dtype.startswith("float"):
        distinct, values = np.unique(values, return_inverse=True)
        labels = tuple(map(str, distinct.tolist()))
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


def averaged_vectors(texts: Sequence[str], space: EmbeddingSpace) -> Features:
    """Return the mean vector of each text's words, a cheap and strong input of linear classifiers.

    Args:
        texts: m texts.
        space: Vectors of n dimensions, in Euclidean space; words that it lacks do not count.

    Returns:
        (m, n) float64; zeros for a text without a known word.

    Raises:
        InvalidValueError: If the space is not Euclidean, where a mean has no meaning.
    """
    if space.metric != "euclidean":
        raise InvalidValueError(
            f"expected a space with the metric 'euclidean', got {space.metric!r}: averaged vectors "
            "have no meaning there; 'wordnet-gloss' is one"
        )
    reader = RowReader()
    features = np.zeros((len(texts), space.dim))
    for start in range(0, len(texts), TEXTS):
        part = features[start : start + TEXTS]
        rows = [reader.read_text(text) for text in texts[start : start + TEXTS]]
        ids = look_up_rows(rows, space)
        known = np.repeat(np.arange(len(rows)), [len(row.words) for row in rows])[ids >= 0]
        owners, starts, counts = np.unique(known, return_index=True, return_counts=True)
        if len(owners):
            points = np.asarray(space.vectors[ids[ids >= 0]], dtype=np.float64)
            part[owners] = np.add.reduceat(points, starts) / counts[:, None]
    return features


def pair_features(first: Features, second: Features) -> Features:
    """Return |u − v| and u·v entry by entry, (m, 2n), for pairs of (m, n) vectors u and v.

    After Conneau et al., *Supervised learning of universal sentence representations* (EMNLP 2017).
    """
    return np.hstack([np.abs(first - second), first * second])


def cosines(first: Features, second: Features) -> Features:
    """Return the cosines, (m,), of pairs of (m, n) vectors; 0 where one of them is zero."""
    lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    products = (first * second).sum(axis=1)
    result = np.zeros(len(lengths))
    np.divide(products, lengths, out=result, where=lengths > 0)
    return result
