"""Removal of the traces of the originals that `datasets` keeps in data sets and in their files."""

import json
from hashlib import sha256
from typing import TYPE_CHECKING, Any, TypeVar

from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError, a_kind

if TYPE_CHECKING:
    from datasets import Dataset, DatasetDict

    D = TypeVar("D", Dataset, DatasetDict)
else:
    D = TypeVar("D")

# Rows that are read at once, and that lie together in a file of the result.
BATCH = 1000


def strip_traces(dataset: D) -> D:
    """Return released rows without the traces of the originals that `datasets` keeps beside them.

    Nothing is checked: `publishable` refuses originals, too.

    A release of `Dataset.map` carries a fingerprint that depends on the originals, and, if they
    were loaded from files, sizes and checksums of these; `save_to_disk` writes them down. The
    result has a fingerprint made from the released rows alone, no information but its features, and
    no other metadata of columns. Equal released rows give equal files, whatever the originals were.

    >>> released = dataset.map(privatizer, batched=True).remove_columns("name")
    >>> strip_traces(released).save_to_disk("released")

    Args:
        dataset: A `Dataset` or a `DatasetDict`. It is not changed, and all its columns stay.

    Returns:
        The same kind of data set, with the same rows, split names and format.

    Raises:
        InvalidTypeError: If it is something else. A stream has nothing to remove.
        InvalidValueError: If its rows are privatized only when they are read (``with_transform``).
    """
    # Late, because it takes a while to load.
    from datasets import Dataset, DatasetDict, DatasetInfo, IterableDataset, IterableDatasetDict

    if isinstance(dataset, DatasetDict):
        return DatasetDict({name: strip_traces(rows) for name, rows in dataset.items()})
    if isinstance(dataset, (IterableDataset, IterableDatasetDict)):
        raise InvalidTypeError(
            "a stream has no files and no fingerprint, so there is nothing to remove, and every "
            "pass over it is a new release: write it to a file once, and publish that"
        )
    if not isinstance(dataset, Dataset):
        raise InvalidTypeError(
            f"expected a Dataset or a DatasetDict of `datasets`, got {a_kind(dataset)}; pass what "
            "dataset.map(privatizer) returned"
        )
    if dataset.format["type"] == "custom":
        raise InvalidValueError(
            "the rows have a transform (with_transform), so the stored ones may be the originals; "
            "privatize them with Dataset.map, or remove the transform with reset_format()"
        )
    features, form = dataset.features, dataset.format
    rows = dataset.with_format("arrow")
    # Of the values and their types: 64 bits, as a fingerprint is written.
    digest = sha256(json.dumps(features.to_dict(), sort_keys=True).encode())
    for table in rows.iter(BATCH):
        digest.update(repr(table.to_pydict()).encode("utf-8", "surrogatepass"))
    fingerprint = digest.hexdigest()[:16]
    # A copy: the old table may have rows and columns that are not selected any more, and is cut
    # into pieces as the originals were.
    copied = rows.map(
        _same,
        batched=True,
        batch_size=BATCH,
        writer_batch_size=BATCH,
        features=features,
        new_fingerprint=fingerprint,
        desc="Copying released rows",
    )
    table = copied.data.table if len(rows) else features.arrow_schema.empty_table()
    result = Dataset(
        table.replace_schema_metadata(None),
        info=DatasetInfo(features=features),
        split=dataset.split,
        fingerprint=fingerprint,
    )
    kwargs = form.pop("format_kwargs")
    return result.with_format(**form, **kwargs)


def _same(batch: Any) -> Any:
    return batch
