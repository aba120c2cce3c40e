"""Traces of the originals in data sets of `datasets`: a salted fingerprint, and their removal.

`datasets` gives a data set that `map` returns a fingerprint: 64 bits of xxHash over the fingerprint
of the data before (of data made in memory, a hash of their content) and over the pickled function.
Unsalted, it is a public function of the originals, with which guesses at them can be tested.
"""

import json
import logging
import os
import secrets
from contextlib import suppress
from hashlib import blake2b, sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError, a_kind
from hf_dxprivacy.hub import cache_dir
from hf_dxprivacy.mechanisms import Mechanism

if TYPE_CHECKING:
    from datasets import Dataset, DatasetDict

    D = TypeVar("D", Dataset, DatasetDict)
else:
    D = TypeVar("D")

logger = logging.getLogger(__name__)

SECRET_BYTES = 32
# Rows that are read at once, and that lie together in a file of the result.
BATCH = 1000

_secrets: dict[Path, bytes] = {}


def fingerprint_tag(owner: str, mechanism: Mechanism) -> str:
    """Return the salt of a privatizer's fingerprint, which it adds to its pickled state.

    The tag is a keyed hash (BLAKE2b) of the decisions under a secret of the user: the same in every
    process of the user, so that a second `map` finds the cached release, and 256 unknown bits for
    anyone else. The secret itself is never pickled. The tag is, and travels to workers; it tells
    nothing about the secret, or the tag of another privatizer.

    It protects guesses at the originals, and at a short seed, from a test against the fingerprint
    of a release, unless all originals of another release by the same privatizer are known, with its
    fingerprint: xxHash is no cipher, and gives 64 bits that stand for the privatizer away. So
    `strip_traces` removes the fingerprint from what others get.
    """
    decisions = json.dumps([owner, mechanism.space.digest, mechanism.parameters])
    return blake2b(decisions.encode(), key=_secret(), digest_size=32).hexdigest()


def _secret() -> bytes:
    """Return the secret of the user, which is made if there is none."""
    path = cache_dir() / f"fingerprint-{os.getuid() if hasattr(os, 'getuid') else 'user'}.key"
    if path not in _secrets:
        try:
            _secrets[path] = _read(path) or _make(path)
        except OSError as error:
            logger.warning(
                "the fingerprints of `datasets` are salted with a secret file, which cannot be "
                "kept: %s; other processes will not find cached releases and make new ones, each "
                "of which costs ε again: set HF_DXPRIVACY_CACHE to a folder of yours",
                error,
            )
            _secrets[path] = secrets.token_bytes(SECRET_BYTES)
    return _secrets[path]


def _read(path: Path) -> bytes | None:
    """Return the secret in a file; None if there is no file, or one that others could write."""
    try:
        file = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
    except FileNotFoundError:
        return None
    with open(file, "rb") as opened:
        found = opened.read()
        status = os.fstat(opened.fileno())
    if hasattr(os, "getuid") and (status.st_uid != os.getuid() or status.st_mode & 0o077):
        return None
    return found if len(found) == SECRET_BYTES else None


def _make(path: Path) -> bytes:
    """Put a new secret into a file, or return the one that another process has put there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    file = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with open(file, "wb") as opened:
            opened.write(secrets.token_bytes(SECRET_BYTES))
            opened.flush()
            os.fsync(opened.fileno())
        # A link is made only if there is no file of that name, so the first process wins. Some file
        # systems have no links.
        with suppress(OSError):
            os.link(beside, path)
        if _read(path) is None:
            beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
    found = _read(path)
    if found is None:
        raise OSError(f"{path} belongs to another user, or is being replaced")
    return found


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
