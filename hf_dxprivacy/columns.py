"""Columns of what `Dataset.map` hands to a function, and back in the form it expects."""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np

from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError

Columns = dict[str, list[Any]]

# What a new column has its type from: another column, or a function of the module `pyarrow`.
Source = str | Callable[[Any], Any]


def is_table(examples: object) -> bool:
    """Tell whether this is a pandas, polars or Arrow batch, as with `with_format`."""
    return _is_frame(examples) or _is_polars(examples) or _is_arrow(examples)


def _is_frame(examples: object) -> bool:
    return _is_a(examples, "pandas", "DataFrame")


def _is_polars(examples: object) -> bool:
    return _is_a(examples, "polars", "DataFrame")


def _is_arrow(examples: object) -> bool:
    return _is_a(examples, "pyarrow", "Table")


def _is_a(examples: object, module: str, name: str) -> bool:
    # Whoever has such a table has imported its library; importing it here would cost a second.
    return module in sys.modules and isinstance(examples, getattr(sys.modules[module], name))


def is_single(
    examples: Mapping[str, Any], columns: Sequence[str], index: object, split: bool | None
) -> bool:
    """Tell a single example from a batch (a mapping of equally long columns).

    Args:
        examples: What `Dataset.map` handed over.
        columns: The columns that hold text.
        index: The row index or indices that came along, if any.
        split: Whether a cell is a list of tokens, if known.
    """
    # Only these names tell: values() would decode the images of a whole batch.
    kind = type(examples).__name__
    if kind in ("LazyRow", "LazyBatch"):
        return kind == "LazyRow"
    if index is not None:
        return isinstance(index, Integral)
    values = [examples[name] for name in columns]
    if any(map(_is_one, values)):
        return True
    # A row with a token list looks like a batch of texts.
    entry = next((entry for value in values for entry in value if entry is not None), None)
    if split is not None and entry is not None:
        return split and isinstance(entry, str)
    # Another column may tell them apart.
    values = list(examples.values())
    return any(map(_is_one, values)) or len({len(value) for value in values}) > 1


def _is_one(value: object) -> bool:
    """Tell a value from a column of values."""
    return (
        isinstance(value, (str, bytes, Mapping))
        or not hasattr(value, "__len__")
        or getattr(value, "ndim", 1) == 0
    )


def require_clear(examples: Mapping[str, Any], columns: Sequence[str]) -> None:
    """Require that a batch can not be meant as the tokens of one row.

    Raises:
        InvalidValueError: If every text has one word at most, and nothing else tells.
    """
    if type(examples).__name__ == "LazyBatch":
        return
    texts = [text for name in columns for text in examples[name] if text is not None]
    if texts and all(isinstance(text, str) and len(text.split()) <= 1 for text in texts):
        raise InvalidValueError(
            f"column {columns[0]!r} may hold a batch of one-word texts or the tokens of one row, "
            "which differ with seed=, memoize= and oov='drop'; make the privatizer with "
            "is_split_into_words=False for texts and True for tokens, or pass with_indices=True to "
            "map"
        )


def require(
    examples: Any, columns: Mapping[str, str], direct: str = "privatize() for texts"
) -> None:
    """Require that the examples are of a known form and have all the columns.

    Args:
        examples: What `Dataset.map` handed over.
        columns: Names of columns, and what each is given as, for messages.
        direct: What takes values outside a data set, for messages.

    Raises:
        InvalidTypeError: If the examples are neither a mapping nor a table.
        InvalidValueError: If a column is missing.
    """
    if not isinstance(examples, Mapping) and not is_table(examples):
        kind = f"{type(examples).__module__}.{type(examples).__name__}"
        raise InvalidTypeError(
            "expected an example or a batch (a dict, a pandas or polars DataFrame or an Arrow "
            f"table, as Dataset.map gives them), got a {kind.removeprefix('builtins.')}; "
            f"use {direct}, and Dataset.map without input_columns= and in another format, such as "
            'with_format("arrow")'
        )
    present = [str(name) for name in _present(examples)]
    for name, argument in columns.items():
        if name not in present:
            raise InvalidValueError(
                f"column {name!r} is not in the data, which has {', '.join(map(repr, present))}; "
                f"name the one to use with {argument}"
            )


def _present(examples: Any) -> Iterable[Any]:
    """Return the names of the columns."""
    if _is_arrow(examples):
        examples = examples.column_names
    elif _is_polars(examples):
        examples = examples.columns
    present: Iterable[Any] = examples
    return present


def require_new(examples: Any, outputs: Iterable[str], texts: Sequence[str]) -> None:
    """Require that no output takes the place of a column that is not privatized.

    Args:
        examples: What `Dataset.map` handed over.
        outputs: The columns that take results.
        texts: The columns that are privatized, which may be overwritten.

    Raises:
        InvalidValueError: If one does.
    """
    present = list(_present(examples))
    for name in outputs:
        if name not in texts and name in present:
            raise InvalidValueError(
                f"the data have a column {name!r} already, which would be lost; name another one "
                "for the result, or remove that column first"
            )


def read(examples: Any, columns: Iterable[str]) -> Columns:
    """Return the named columns of a batch as lists of Python values."""
    if _is_polars(examples):
        return {name: examples[name].to_list() for name in columns}
    if _is_arrow(examples):
        return {name: examples.column(name).to_pylist() for name in columns}
    return {name: list(examples[name]) for name in columns}


def write(examples: Any, columns: Columns, sources: Mapping[str, Source]) -> Any:
    """Return new columns in the form in which the batch came.

    A mapping is merged by `Dataset.map`, so only the new columns are returned; a table is not, so
    it comes back whole.

    Args:
        examples: What `Dataset.map` handed over.
        columns: The new columns.
        sources: For each new column where it has its type from: nothing can be inferred from a
            batch in which all values are missing.
    """
    if _is_polars(examples):
        return sys.modules["polars"].from_arrow(write(examples.to_arrow(), columns, sources))
    if _is_frame(examples):
        series = sys.modules["pandas"].Series
        frame = examples.copy(deep=False)
        for name, values in columns.items():
            source = sources[name]
            dtype = examples[source].dtype if isinstance(source, str) else object
            text = isinstance(dtype, sys.modules["pandas"].StringDtype)
            frame[name] = series(values, index=frame.index, dtype=dtype if text else object)
        return frame
    if _is_arrow(examples):
        table, arrow = examples, sys.modules["pyarrow"]
        for name, values in columns.items():
            source = sources[name]
            kind = examples.schema.field(source).type if isinstance(source, str) else source(arrow)
            table = _with_column(table, name, arrow.array(values, type=kind))
        return table
    return columns


def _with_column(table: Any, name: str, array: Any) -> Any:
    at = table.schema.get_field_index(name)
    return table.append_column(name, array) if at < 0 else table.set_column(at, name, array)


def row_keys(indices: Any, size: int, table: bool) -> Sequence[int] | None:
    """Return the row indices that came beside a batch.

    Args:
        indices: As `Dataset.map` gives them.
        size: Rows of the batch.
        table: Whether it is a table, which a single row is too.

    Raises:
        InvalidTypeError: If they are not one index for each row.
    """
    if indices is None:
        return None
    if table and size == 1 and isinstance(indices, Integral):
        return [int(indices)]
    if np.ndim(indices) != 1 or len(indices) != size:
        raise InvalidTypeError(
            f"expected {size} row indices beside a batch of {size} rows, got a "
            f"{type(indices).__name__}; use with_indices=True, and with_rank=True only beside it"
        )
    return list(indices)


def names(
    argument: str, given: str | Sequence[str], expected: int | None = None
) -> tuple[str, ...]:
    """Return one column name or several as a tuple.

    Args:
        argument: What they were given as, for messages.
        given: The name or names.
        expected: How many there must be.

    Raises:
        InvalidTypeError: If it is not a string, or a sequence of some.
        InvalidValueError: If one comes twice, or the number is wrong.
    """
    result = (given,) if isinstance(given, str) else tuple(given) if _is_names(given) else ()
    if not result:
        raise InvalidTypeError(f"expected {argument} to be a column name or several, got {given!r}")
    if len(set(result)) < len(result) or len(result) != (expected or len(result)):
        raise InvalidValueError(
            f"expected {argument} to name {expected or 'some'} different columns, got {result}"
        )
    return result


def _is_names(given: object) -> bool:
    return isinstance(given, Sequence) and all(isinstance(name, str) for name in given)
