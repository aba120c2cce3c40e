"""Adapters of the forms in which `Dataset.map` hands over rows, and takes results back."""

import json
import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from types import MappingProxyType
from typing import Any

import numpy as np

from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError, a_kind, describe_columns
from hf_dxprivacy.privatizers.nested import TextPath

# The type of a new column: the name of a column that has it, or a function of the module `pyarrow`.
ColumnType = str | Callable[[Any], Any]

# Of what pandas writes; its "attributes" are anything that the user has put there.
_PANDAS = ("index_columns", "column_indexes", "columns", "creator", "pandas_version")
# Functions of `datasets` that call what was given to `filter`.
_FILTERS = ("get_indices_from_mask_function", "add_mask")


# Classes of `datasets` whose rows a privatizer is mapped over.
_WHOLE = ("Dataset", "DatasetDict", "IterableDataset", "IterableDatasetDict")


@dataclass(repr=False)
class DatasetBatch:
    """A batch of rows as a mapping of columns, the form that `Dataset.map` uses by default.

    Other forms are subclasses; `of` chooses. A mapping is merged by `Dataset.map`, so
    `with_columns` returns the new columns only; a table is not, so it comes back whole.

    Attributes:
        examples: The rows as they came.
        names: Names of the columns.
        is_table: Whether it is a table, also if it has one row only.
    """

    examples: Any
    names: list[str]
    is_table: bool = False

    @staticmethod
    def of(examples: Any, direct: str = "privatize() for texts") -> "DatasetBatch":
        """Wrap a batch or a row of `Dataset.map`.

        Args:
            examples: A mapping, or a table of pandas, polars or Arrow.
            direct: The method for values outside a data set, for messages.

        Raises:
            InvalidTypeError: If it is neither, or the privatizer is called as a condition.
        """
        # A released row is true, so `filter` would keep the originals without a word.
        caller = sys._getframe(1).f_back
        if caller is not None and caller.f_code.co_name in _FILTERS:
            raise InvalidTypeError(
                "a privatizer is no condition, and filter(privatizer) would keep original rows: "
                "use map(privatizer), and filter with a function of your own before or after"
            )
        if type(examples).__name__ in _WHOLE:
            raise InvalidTypeError(
                f"expected an example or a batch, got a whole {type(examples).__name__}; use its "
                "method map, as in dataset.map(privatizer, batched=True)"
            )
        if isinstance(examples, Mapping):
            return DatasetBatch(examples, list(map(str, examples)))
        for module, name, kind, names in _TABLES:
            # An instance exists only if its library is loaded; importing it would cost a second.
            if module in sys.modules and isinstance(examples, getattr(sys.modules[module], name)):
                return kind(examples, list(map(str, getattr(examples, names))), is_table=True)
        kind_name = f"{type(examples).__module__}.{type(examples).__name__}"
        raise InvalidTypeError(
            "expected an example or a batch (a dict, a pandas or polars DataFrame or an Arrow "
            f"table, as Dataset.map gives them), got a {kind_name.removeprefix('builtins.')}; "
            f"use {direct}, and Dataset.map without input_columns= and in another format, such as "
            'with_format("arrow")'
        )

    def column(self, name: str) -> list[Any]:
        """Return a column as a list of Python values."""
        return list(self.examples[name])

    def with_columns(self, columns: dict[str, list[Any]], types: Mapping[str, ColumnType]) -> Any:
        """Return new columns in the form of the batch.

        `types` are theirs: nothing can be inferred from a batch in which all values are missing.
        """
        del types
        return columns

    def require(
        self, columns: Mapping[str, str], outputs: Iterable[str] = (), texts: Sequence[str] = ()
    ) -> None:
        """Require columns to be there, and outputs to overwrite none but columns of texts.

        `columns` has for each name the argument that gives it, for messages.

        Raises:
            InvalidValueError: If a column is missing, or would be lost.
        """
        for name, argument in columns.items():
            if name not in self.names:
                column = re.split(r"[.\[]", name)[0]
                path = f", and a path into lists of {column!r} as '{column}[].content'"
                raise InvalidValueError(
                    f"column {name!r} is not in the data: {describe_columns(self.names, name)}; "
                    f"name the one to use with {argument}{path * (column in self.names)}"
                )
        for name in outputs:
            if name not in texts and name in self.names:
                raise InvalidValueError(
                    f"the data have a column {name!r} already, which would be lost; name another "
                    "one for the result, or remove that column first"
                )

    def is_single(
        self,
        columns: Sequence[str],
        index: object,
        split: bool | None,
        paths: Mapping[str, TextPath] = MappingProxyType({}),
    ) -> bool:
        """Tell a single example from a batch (a mapping of equally long columns).

        Args:
            columns: The columns that hold text.
            index: The row index or indices, if there are any.
            split: Whether a cell is a list of tokens, if known.
            paths: Where the texts of columns are that hold lists of dicts.
        """
        # Only these names tell: values() would decode the images of a whole batch.
        kind = type(self.examples).__name__
        if kind in ("LazyRow", "LazyBatch"):
            return kind == "LazyRow"
        if index is not None:
            return isinstance(index, Integral)
        shapes = [path.is_cell(self.examples[name]) for name, path in paths.items()]
        if known := [shape for shape in shapes if shape is not None]:
            return known[0]
        values = [self.examples[name] for name in columns if name not in paths]
        if any(map(_is_one, values)):
            return True
        # A row with a token list looks like a batch of texts.
        present = [entry for value in values for entry in value if entry is not None]
        if split is not None and present:
            return split and isinstance(present[0], str)
        # Another column may tell them apart.
        values = list(self.examples.values())
        return any(map(_is_one, values)) or len({len(value) for value in values}) > 1

    def require_clear(self, columns: Sequence[str]) -> None:
        """Require that a batch cannot be meant as the tokens of one row.

        Raises:
            InvalidValueError: If every text has one word at most, and nothing else tells.
        """
        if type(self.examples).__name__ == "LazyBatch":
            return
        texts = [text for name in columns for text in self.examples[name] if text is not None]
        if texts and all(isinstance(text, str) and len(text.split()) <= 1 for text in texts):
            raise InvalidValueError(
                f"column {columns[0]!r} may hold a batch of one-word texts or the tokens of one "
                "row, which differ with seed=, memoize= and oov='drop'; make the privatizer with "
                "is_split_into_words=False for texts and True for tokens, or pass "
                "with_indices=True to map"
            )

    def row_indices(self, indices: Any, size: int) -> Sequence[int] | None:
        """Return the row indices that `Dataset.map` gives beside a batch of so many rows.

        Raises:
            InvalidTypeError: If they are not one index for each row.
        """
        if indices is None:
            return None
        if self.is_table and size == 1 and isinstance(indices, Integral):
            return [int(indices)]
        if np.ndim(indices) != 1 or len(indices) != size:
            raise InvalidTypeError(
                f"expected {size} row indices beside a batch of {size} rows, got a "
                f"{type(indices).__name__}; use with_indices=True, and with_rank=True only beside "
                "it"
            )
        return list(indices)


class SingleRow(DatasetBatch):
    """One example as a batch of one row."""

    def column(self, name: str) -> list[Any]:
        """See base class."""
        return [self.examples[name]]

    def with_columns(self, columns: dict[str, list[Any]], types: Mapping[str, ColumnType]) -> Any:
        """See base class."""
        return {name: values[0] for name, values in columns.items()}

    def row_indices(self, indices: Any, size: int) -> Sequence[int] | None:
        """See base class."""
        return None if indices is None else [indices]


class ArrowBatch(DatasetBatch):
    """An Arrow table."""

    def column(self, name: str) -> list[Any]:
        """See base class."""
        return arrow_values(self.examples.column(name))

    def with_columns(self, columns: dict[str, list[Any]], types: Mapping[str, ColumnType]) -> Any:
        """Return the table with the new columns, and without metadata made from the old ones."""
        table, arrow = self.examples, sys.modules["pyarrow"]
        for name, values in columns.items():
            kind = types[name]
            if isinstance(kind, str):
                kind = bare_type(table.schema.field(kind).type)
            else:
                kind = kind(arrow)
            array, at = arrow_array(values, kind), table.schema.get_field_index(name)
            if at < 0:
                table = table.append_column(name, array)
            else:
                table = table.set_column(at, name, array)
        # A text column may stay beside its result.
        texts = {*columns, *(kind for kind in types.values() if isinstance(kind, str))}
        fields = [f.remove_metadata() if f.name in texts else f for f in table.schema]
        schema = arrow.schema(fields, released_metadata(table.schema, texts))
        return arrow.Table.from_arrays(table.columns, schema=schema)


class PandasBatch(DatasetBatch):
    """A pandas DataFrame."""

    def with_columns(self, columns: dict[str, list[Any]], types: Mapping[str, ColumnType]) -> Any:
        """Return the frame with the new columns and without `attrs`, which may quote the texts."""
        pandas = sys.modules["pandas"]
        frame = self.examples.copy(deep=False)
        frame.attrs = {}
        for name, values in columns.items():
            kind = types[name]
            dtype = self.examples[kind].dtype if isinstance(kind, str) else object
            text = isinstance(dtype, pandas.StringDtype)
            frame[name] = pandas.Series(values, index=frame.index, dtype=dtype if text else object)
        return frame


class PolarsBatch(ArrowBatch):
    """A polars DataFrame, as an Arrow table."""

    def __init__(self, examples: Any, names: list[str], is_table: bool = True) -> None:
        super().__init__(examples.to_arrow(), names, is_table)

    def with_columns(self, columns: dict[str, list[Any]], types: Mapping[str, ColumnType]) -> Any:
        """See base class."""
        return sys.modules["polars"].from_arrow(super().with_columns(columns, types))


# Module and class of each kind of table, and its attribute with the names of the columns.
_TABLES: tuple[tuple[str, str, type[DatasetBatch], str], ...] = (
    ("pyarrow", "Table", ArrowBatch, "column_names"),
    ("pandas", "DataFrame", PandasBatch, "columns"),
    ("polars", "DataFrame", PolarsBatch, "columns"),
)


def arrow_values(column: Any) -> list[Any]:
    """Return an Arrow column as Python values, with JSON as what it stands for."""
    values: list[Any] = column.to_pylist()
    if "arrow.json" not in str(column.type):
        return values
    return [_convert(value, column.type, json.loads) for value in values]


def arrow_array(values: Sequence[Any], kind: Any) -> Any:
    """Return Python values, as `arrow_values` gives them, as an Arrow array of a type."""
    arrow, stored = sys.modules["pyarrow"], bare_type(kind, stored=True)
    if stored == kind:
        return arrow.array(values, type=kind)
    dump = partial(json.dumps, ensure_ascii=False)
    return arrow.array([_convert(value, kind, dump) for value in values], type=stored).cast(kind)


def _is_json(kind: Any) -> bool:
    return getattr(kind, "extension_name", "") == "arrow.json"


def _convert(value: Any, kind: Any, convert: Callable[[Any], Any]) -> Any:
    """Convert the JSON within a value of an Arrow type."""
    if value is None or "arrow.json" not in str(kind):
        return value
    if _is_json(kind):
        return convert(value)
    if isinstance(value, Mapping):
        return {field.name: _convert(value.get(field.name), field.type, convert) for field in kind}
    return [_convert(entry, kind.value_type, convert) for entry in value]


def bare_type(kind: Any, stored: bool = False) -> Any:
    """Return an Arrow type without metadata of nested fields, which may describe the originals.

    Args:
        kind: The type.
        stored: Also put strings in place of JSON.
    """
    if stored and _is_json(kind):
        return kind.storage_type
    types = sys.modules["pyarrow"].types
    made = {types.is_struct: "struct", types.is_list: "list_", types.is_large_list: "large_list"}
    name = next((name for fits, name in made.items() if fits(kind)), None)
    if name is None:
        return kind
    fields = [kind.field(at) for at in range(kind.num_fields)]
    fields = [f.with_type(bare_type(f.type, stored)).remove_metadata() for f in fields]
    return getattr(sys.modules["pyarrow"], name)(fields if name == "struct" else fields[0])


def released_metadata(schema: Any, outputs: Collection[str]) -> dict[str, str] | None:
    """Return the metadata that the schema of a release keeps.

    These are the types that pandas and `datasets` restore, and no others: fingerprints, ``attrs``,
    and everything about the columns that are released, such as the number of distinct originals,
    are left out.

    Args:
        schema: A `pyarrow.Schema`.
        outputs: Columns that hold released text. Readers infer their types.
    """
    given: dict[str, Any] = {}
    for key in ("pandas", "huggingface"):
        with suppress(ValueError):
            given[key] = json.loads((schema.metadata or {}).get(key.encode(), b"null"))
    kept: dict[str, str] = {}
    if isinstance(given.get("pandas"), dict):
        pandas = {key: given["pandas"][key] for key in _PANDAS if key in given["pandas"]}
        # Of a column of texts, whatever was said of the original.
        plain = {"pandas_type": "unicode", "numpy_type": "object", "metadata": None}
        pandas["columns"] = [
            {key: column.get(key) for key in ("name", "field_name")} | plain
            if column.get("name") in outputs
            else column
            for column in pandas.get("columns", [])
        ]
        kept["pandas"] = json.dumps(pandas)
    if isinstance(given.get("huggingface"), dict):
        features = (given["huggingface"].get("info") or {}).get("features") or {}
        others = {name: kind for name, kind in features.items() if name not in outputs}
        kept["huggingface"] = json.dumps({"info": {"features": others}})
    return kept or None


def _is_one(value: object) -> bool:
    """Tell a value from a column of values."""
    return (
        isinstance(value, (str, bytes, Mapping))
        or not hasattr(value, "__len__")
        or getattr(value, "ndim", 1) == 0
    )


def as_cells(texts: Any) -> list[Any]:
    """Return one text or several as cells; `InvalidTypeError` for anything else."""
    if isinstance(texts, str):
        return [texts]
    whole = isinstance(texts, (bytes, Mapping)) or type(texts).__name__ in _WHOLE
    if whole or not isinstance(texts, Iterable):
        raise InvalidTypeError(
            f"expected a text or a sequence of texts, got {a_kind(texts)}; "
            "rows of a dataset go through the privatizer itself, as in dataset.map(privatizer)"
        )
    return list(texts)


def column_names(
    argument: str, given: str | Sequence[str], expected: int | None = None
) -> tuple[str, ...]:
    """Return one column name or several as a tuple.

    Args:
        argument: Name of the argument, for messages.
        given: The name or names.
        expected: How many there must be.

    Raises:
        InvalidTypeError: If it is not a string, or a sequence of some.
        InvalidValueError: If one comes twice, or the number is wrong.
    """
    is_names = isinstance(given, Sequence) and not [n for n in given if not isinstance(n, str)]
    result = (given,) if isinstance(given, str) else tuple(given) if is_names else ()
    if not result:
        raise InvalidTypeError(
            f"expected {argument} to be a column name or several, got {given!r}; pass a str, as in "
            f'{argument}="text"'
        )
    if len(set(result)) < len(result) or len(result) != (expected or len(result)):
        raise InvalidValueError(
            f"expected {argument} to name {expected or 'some'} different columns, "
            f"{'as many as text_column, ' * bool(expected)}got {result}; name each once"
        )
    return result
