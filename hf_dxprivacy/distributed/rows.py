"""One release of a data set in pieces, each of which may be computed several times."""

import secrets
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

import pyarrow as pa

from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError
from hf_dxprivacy.privatizers.dataset_formats import DatasetBatch, arrow_array, column_names
from hf_dxprivacy.privatizers.keyed_noise import KeyedNoise
from hf_dxprivacy.privatizers.nested import EACH
from hf_dxprivacy.privatizers.privatizer import Privatizer
from hf_dxprivacy.privatizers.token_privatizer import TokenPrivatizer
from hf_dxprivacy.publishing.released_dataset import require_released

KEY_BITS = 256


# No dataclass: Ray may write the fields of one to the log of a job.
class Job:
    """A function of Arrow tables that releases a row in the same way whenever it is computed.

    Clusters compute a row again after a failure, or on two machines at once, and something of
    every attempt may reach the output. The noise of a row is therefore a function of a secret key
    of the job, of the row's id and of its words, so that all attempts are one release. The key is
    drawn here, is in this object and its pickles alone, and is gone with them. A privatizer with a
    seed keeps that, and one with ``memoize=`` needs no ids: its noise depends on its key already.

    Args:
        privatizer: What privatizes the rows; it is not changed.
        id_column: The column that tells the rows apart; None with ``memoize=`` only.
        with_originals: Whether the columns that are read may stay next to those that are written.

    Raises:
        InvalidTypeError: If the privatizer is something else, or `id_column` no name.
        InvalidValueError: If the privatizer has a budget, which could not be kept, `id_column` is
            missing or for nothing, or originals would be left.
    """

    def __init__(
        self, privatizer: Privatizer, id_column: str | None, with_originals: bool = False
    ) -> None:
        if not isinstance(privatizer, Privatizer):
            raise InvalidTypeError(
                "expected a DxPrivatizer, a SlotPrivatizer, a SentencePrivatizer or a "
                f"TokenPrivatizer, got a {type(privatizer).__name__}"
            )
        written = privatizer.released_columns
        read = [name for name in written.values() if EACH not in name]
        require_released([*read, *written], written, with_originals)
        if privatizer.budget is not None:
            raise InvalidValueError(
                "a PrivacyBudget counts in one process, and this job runs in many: make the "
                "privatizer without budget=, and count the job as one release of every row"
            )
        memoized = privatizer.memoize is not None
        if memoized and id_column is not None:
            raise InvalidValueError(
                "with memoize= the noise does not depend on the row: leave id_column out"
            )
        if id_column is None and not memoized:
            raise InvalidValueError(
                "a task that is computed again must not release its rows with other noise: pass "
                "id_column=, a column with another whole number or string in every row, which "
                "stays the same when the row is read again"
            )
        self.id_column: str | None = None
        if id_column is not None:
            (self.id_column,) = column_names("id_column", id_column, 1)
        self._privatizer = privatizer
        if privatizer.seed is None and id_column is not None:
            self._privatizer = privatizer.with_noise(KeyedNoise(secrets.randbits(KEY_BITS)))

    def __call__(self, table: pa.Table) -> pa.Table:
        """Return the table with the output columns; other columns are as they were.

        Metadata of the schema, which may hold text, are dropped.

        Raises:
            InvalidValueError: If a column is missing, or an id is missing or comes twice.
            InvalidTypeError: If an id is neither a whole number nor a string, or a cell neither
                text, tokens nor missing.
        """
        ids = None
        if self.id_column is not None:
            DatasetBatch.of(table).require({self.id_column: "id_column="})
            ids = row_keys(table.column(self.id_column), self.id_column)
        released: pa.Table = self._privatizer(table, ids)
        return released.replace_schema_metadata(None)

    @property
    def text_columns(self) -> frozenset[str]:
        """The columns that hold original or released texts."""
        privatizer = self._privatizer
        if isinstance(privatizer, TokenPrivatizer):
            return frozenset([privatizer.ids_column])
        return frozenset([*privatizer.text_columns, *privatizer.output_columns])

    def schema(self, given: pa.Schema) -> pa.Schema:
        """Return the schema of the result for tables of a schema; raises as the call does."""
        empty = [arrow_array([], field.type) for field in given]
        return self(pa.Table.from_arrays(empty, schema=given)).schema

    def refuse_repeated(self, most: int) -> None:
        """Raise InvalidValueError if the most frequent id of a data set comes more than once."""
        if most > 1:
            raise InvalidValueError(
                f"column {self.id_column!r}: an id comes {most} times, and rows with one id may "
                "get the same noise, which shows where their texts are equal; every row needs an "
                "id of its own"
            )


def row_keys(column: pa.ChunkedArray, name: str) -> list[int]:
    """Return the index of each row: an id that is a number, or 128 bits of BLAKE2b of a string.

    Args:
        column: The ids.
        name: Name of the column, for messages.

    Raises:
        InvalidValueError: If an id is missing, or comes twice.
        InvalidTypeError: If they are neither whole numbers nor strings.
    """
    numbers = pa.types.is_integer(column.type)
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not numbers and kind not in (pa.string(), pa.large_string(), pa.string_view()):
        raise InvalidTypeError(
            f"expected the ids in column {name!r} to be whole numbers or strings, got {column.type}"
        )
    if column.null_count:
        raise InvalidValueError(
            f"column {name!r}: {column.null_count} of {len(column)} rows have no id, and every row "
            "needs one"
        )
    ids: Sequence[Any] = column.to_pylist()
    if len(set(ids)) < len(ids):
        raise InvalidValueError(
            f"column {name!r}: an id comes twice in a batch of {len(ids)} rows, and every row "
            "needs one of its own"
        )
    if numbers:
        return list(ids)
    digests = (blake2b(text.encode(), digest_size=16).digest() for text in ids)
    return [int.from_bytes(digest, "big") for digest in digests]
