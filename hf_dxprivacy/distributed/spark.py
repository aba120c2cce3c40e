"""Privatizes the rows of a Spark DataFrame."""

import pickle
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hf_dxprivacy._runtime import require
from hf_dxprivacy.distributed.rows import Job
from hf_dxprivacy.errors import InvalidTypeError
from hf_dxprivacy.privatizers.privatizer import Privatizer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType, StructType

_ARROW_TYPES = {
    "BooleanType": pa.bool_(),
    "ByteType": pa.int8(),
    "DoubleType": pa.float64(),
    "FloatType": pa.float32(),
    "IntegerType": pa.int32(),
    "LongType": pa.int64(),
    "NullType": pa.null(),
    "ShortType": pa.int16(),
    "StringType": pa.string(),
}


def privatize_spark(
    dataframe: "DataFrame",
    privatizer: Privatizer,
    *,
    id_column: str | None = None,
    with_originals: bool = False,
) -> "DataFrame":
    """Privatize the rows of a Spark DataFrame, on whatever cluster it is computed.

    The result is lazy, and one release: Spark computes a partition again after a failure, on a
    second machine if the first is slow (speculative execution), and again for every action, and a
    row comes out the same each time. Another call is another release.

    Every Python worker loads the privatizer once. It must find the space under the same name or
    path as the driver, and runs as many threads as Spark gives to a task (``spark.task.cpus``).

    >>> reviews = spark.read.parquet("reviews.parquet")
    >>> privatizer = DxPrivatizer("wordnet-gloss", "calibrated", 6.0)
    >>> released = privatize_spark(reviews, privatizer, id_column="review_id")
    >>> released.write.parquet("released.parquet")

    Args:
        dataframe: The rows, with the columns that the privatizer reads. Batch, not streaming.
        privatizer: What privatizes them, with its columns and settings; it has no budget.
        id_column: The column with another whole number or string in every row, which is the same
            whenever the row is computed. A query counts right away how often each id comes. What
            ``monotonically_increasing_id()`` and ``uuid()`` make may change from one computation
            to the next: store such ids with the rows first. Left out with ``memoize=``.
        with_originals: Let a column that the privatizer reads stay next to its output, as it does
            with ``output_column=``.

    Returns:
        The DataFrame with the output columns; all other columns are as they were. An id that is
        missing, or a cell that is no text, fails the task that meets it.

    Raises:
        InvalidTypeError: If an argument, or the type of the ids, is of the wrong type.
        InvalidValueError: If a column is missing, an id comes twice, the privatizer has a budget,
            or the original texts would stay next to the released ones.
        MissingExtraError: If pyspark is not installed.
    """
    if not isinstance(dataframe, require("pyspark.sql", "spark").DataFrame):
        raise InvalidTypeError(
            f"expected dataframe to be a pyspark.sql.DataFrame, got a {type(dataframe).__name__}"
        )
    job = Job(privatizer, id_column, with_originals)
    schema = _released_schema(job, dataframe.schema)
    if job.id_column is not None:
        functions = require("pyspark.sql.functions", "spark")
        ids = dataframe.select(dataframe[job.id_column].alias("id")).dropna()
        times = ids.groupBy("id").agg(functions.count("id").alias("times"))
        ((most,),) = times.agg(functions.max("times")).collect()
        job.refuse_repeated(most or 0)
    released: DataFrame = dataframe.mapInArrow(_Task(job), schema)
    return released


class _Task:
    """The function that Spark pickles with every task: the pickled job, loaded once a worker."""

    def __init__(self, job: Job) -> None:
        # Not as an attribute: Spark would unpickle it in every task, not once in a worker. What
        # the user's own script defines, a selector of slots say, only cloudpickle takes along.
        self._pickled: bytes = require("pyspark.cloudpickle", "spark").dumps(job)

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        job = _loaded(self._pickled)
        for batch in batches:
            yield from job(pa.Table.from_batches([batch])).to_batches()


# A worker lives through many tasks, and the stages of one query may have several privatizers.
@lru_cache(maxsize=4)
def _loaded(pickled: bytes) -> Job:
    job: Job = pickle.loads(pickled)
    return job


def _released_schema(job: Job, given: "StructType") -> "StructType":
    """Return the schema of the result; a field stays as it was, but for metadata of texts."""
    types = require("pyspark.sql.types", "spark")
    before = pa.schema([(field.name, _to_arrow(field.dataType)) for field in given])
    after = job.schema(before)
    fields = [types.StructField(field.name, _to_spark(field.type)) for field in after]
    for place, field in enumerate(given):
        if after.types[place] == before.types[place]:
            # Metadata of a text column may quote it.
            metadata = None if field.name in job.text_columns else field.metadata
            fields[place] = types.StructField(field.name, field.dataType, field.nullable, metadata)
    return type(given)(fields)


def _to_arrow(kind: "DataType") -> pa.DataType:
    """Return the Arrow type of a column; "null" for what no privatizer reads."""
    if hasattr(kind, "elementType"):
        return pa.list_(_to_arrow(kind.elementType))
    return _ARROW_TYPES.get(type(kind).__name__, pa.null())


def _to_spark(kind: pa.DataType) -> "DataType":
    types: Any = require("pyspark.sql.types", "spark")
    if pa.types.is_list(kind):
        return types.ArrayType(_to_spark(kind.value_type))  # type: ignore[no-any-return]
    (name,) = (name for name, arrow in _ARROW_TYPES.items() if arrow == kind)
    return getattr(types, name)()  # type: ignore[no-any-return]
