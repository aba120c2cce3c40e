"""Columns of what `Dataset.map` hands to a function, and back in the form it expects."""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError

Columns = dict[str, list[Any]]


def is_table(examples: object) -> bool:
    """Tell whether this is a pandas or Arrow batch, as with `with_format`."""
    return _is_frame(examples) or _is_arrow(examples)


def _is_frame(examples: object) -> bool:
    return _is_a(examples, "pandas", "DataFrame")


def _is_arrow(examples: object) -> bool:
    return _is_a(examples, "pyarrow", "Table")


def _is_a(examples: object, module: str, name: str) -> bool:
    # Whoever has such a table has imported its library; importing it here would cost a second.
    return module in sys.modules and isinstance(examples, getattr(sys.modules[module], name))


def is_single(examples: Mapping[str, Any], columns: Sequence[str], index: object) -> bool:
    """Tell a single example from a batch (a mapping of equally long columns).

    Args:
        examples: What `Dataset.map` handed over.
        columns: The columns that hold text.
        index: The row index or indices that came along, if any.
    """
    if isinstance(index, (int, np.integer)) or type(examples).__name__ == "LazyRow":
        return True
    values = [examples[name] for name in columns]
    if any(value is None or isinstance(value, str) for value in values):
        return True
    # A row with a token list looks like a batch of texts; another column may tell them apart. If
    # none does, it does not matter: word by word both are treated alike.
    return any(_is_scalar(value) for value in examples.values())


def _is_scalar(value: object) -> bool:
    return value is None or isinstance(value, (str, bytes, int, float, bool, np.generic, Mapping))


def require(examples: Any, columns: Sequence[str]) -> None:
    """Require that the examples are of a known form and have all the columns.

    Raises:
        InvalidTypeError: If the examples are neither a mapping nor a pandas or Arrow table.
        InvalidValueError: If a column is missing.
    """
    if _is_arrow(examples):
        present = list(examples.column_names)
    elif _is_frame(examples) or isinstance(examples, Mapping):
        present = [str(name) for name in examples]
    else:
        raise InvalidTypeError(
            "expected an example or a batch (a dict, a pandas DataFrame or an Arrow table, as "
            f"Dataset.map gives them), got a {type(examples).__name__}; use privatize() for texts"
        )
    missing = [name for name in columns if name not in present]
    if missing:
        raise InvalidValueError(
            f"column {missing[0]!r} is not in the data, which has {', '.join(map(repr, present))}; "
            "name the column to privatize with text_column="
        )


def read(examples: Any, columns: Sequence[str]) -> Columns:
    """Return the named columns of a batch as lists of Python values."""
    if _is_arrow(examples):
        return {name: examples.column(name).to_pylist() for name in columns}
    return {name: list(examples[name]) for name in columns}


def write(examples: Any, columns: Columns) -> Any:
    """Return new columns in the form in which the batch came.

    A mapping is merged by `Dataset.map`, so only the new columns are returned; a table is not, so
    it comes back whole.
    """
    if _is_frame(examples):
        return examples.assign(**columns)
    if _is_arrow(examples):
        for name, values in columns.items():
            examples = _with_column(examples, name, values)
        return examples
    return columns


def _with_column(table: Any, name: str, values: list[Any]) -> Any:
    array = sys.modules["pyarrow"].array
    at = table.schema.get_field_index(name)
    if at < 0:
        return table.append_column(name, array(values))
    return table.set_column(at, name, array(values, type=table.schema.field(at).type))
