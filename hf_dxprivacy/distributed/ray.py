"""Privatizes the rows of a Ray Data set."""

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from hf_dxprivacy._runtime import require
from hf_dxprivacy.distributed.rows import Job
from hf_dxprivacy.errors import InvalidTypeError
from hf_dxprivacy.privatizers.privatizer import Privatizer

if TYPE_CHECKING:
    from ray.data import Dataset


def privatize_ray(
    dataset: "Dataset",
    privatizer: Privatizer,
    *,
    id_column: str | None = None,
    with_originals: bool = False,
    batch_size: int = 1000,
    **options: Any,
) -> "Dataset":
    """Privatize the rows of a Ray Data set, on whatever cluster it is computed.

    The result is lazy, and one release: Ray computes a block again if a worker or a node is lost,
    and everything for every consumption, and a row comes out the same each time. Another call
    is another release.

    Every actor loads the privatizer once, and runs as many threads as Ray gives it CPUs. It must
    find the space under the same name or path as the driver.

    >>> reviews = ray.data.read_parquet("reviews")
    >>> privatizer = DxPrivatizer("wordnet-gloss", "calibrated", 6.0)
    >>> released = privatize_ray(reviews, privatizer, id_column="review_id")
    >>> released.write_parquet("released")

    Args:
        dataset: The rows, with the columns that the privatizer reads.
        privatizer: What privatizes them, with its columns and settings; it has no budget.
        id_column: The column with another whole number or string in every row, which is the same
            whenever the row is computed. A shuffle of this column counts right away how often each
            id comes. ``ray.data.read_parquet(..., include_row_hash=True)`` of recent versions makes
            such a column, `row_hash`. Left out with ``memoize=``.
        with_originals: Let a column that the privatizer reads stay next to its output, as it does
            with ``output_column=``.
        batch_size: Rows that the privatizer gets at once, at most. Does not change the result.
        **options: For ``Dataset.map_batches``: how many actors there are (``compute=``, in older
            versions ``concurrency=``), ``num_cpus=``, ``memory=`` and so on.

    Returns:
        The data set with the output columns; all other columns are as they were. An id that is
        missing, or a cell that is no text, fails the task that meets it.

    Raises:
        InvalidTypeError: If an argument, or the type of the ids, is of the wrong type.
        InvalidValueError: If a column is missing, an id comes twice, the privatizer has a budget,
            or the original texts would stay next to the released ones.
        MissingExtraError: If Ray Data is not installed.
    """
    if not isinstance(dataset, require("ray.data", "ray").Dataset):
        raise InvalidTypeError(
            f"expected dataset to be a ray.data.Dataset, got a {type(dataset).__name__}"
        )
    job = Job(privatizer, id_column, with_originals)
    if (schema := dataset.schema()) is not None:
        # Ray knows no more of columns in pandas blocks than that they are objects.
        kinds = [k if isinstance(k, pa.DataType) else pa.string() for k in schema.types]
        job.schema(pa.schema(list(zip(schema.names, kinds, strict=True))))
        if job.id_column is not None:
            cpus = require("ray", "ray").cluster_resources().get("CPU", 1)
            # The default is 200 partitions, however few rows there are.
            groups = dataset.select_columns([job.id_column]).groupby(
                job.id_column, num_partitions=int(cpus) or 1
            )
            several = groups.count().map_batches(_several, batch_format="pyarrow").take(1)
            job.refuse_repeated(int(several[0]["count()"]) if several else 1)
    released: Dataset = dataset.map_batches(
        _Actor,
        fn_constructor_args=(job,),
        batch_format="pyarrow",
        batch_size=batch_size,
        **options,
    )
    return released


class _Actor:
    """A job that a process of Ray loads once, and then calls for every batch."""

    def __init__(self, job: Job) -> None:
        self._job = job

    def __call__(self, table: pa.Table) -> pa.Table:
        return self._job(table)


def _several(counts: pa.Table) -> pa.Table:
    """Return the ids that come several times; a missing one fails the task that meets it."""
    return counts.drop_null().filter(pc.field("count()") > 1)
