"""What is claimed of a release, and the released dataset with its card."""

import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError, a_kind
from hf_dxprivacy.hub import cards, is_builtin
from hf_dxprivacy.privatizers.nested import (
    EACH,
    Left,
    TextPath,
    count_left,
    left_in_clear,
    none_covered,
)
from hf_dxprivacy.publishing import ReleasedDataset
from hf_dxprivacy.publishing.released_dataset import (
    DATA,
    SHOWN_ROWS,
    UNKNOWN,
    Part,
    require_released,
)
from hf_dxprivacy.publishing.released_words import read_release, released_names
from hf_dxprivacy.publishing.traces import D, strip_traces
from hf_dxprivacy.text import plain_apostrophes
from hf_dxprivacy.text.refill import masked
from hf_dxprivacy.text.segmenters import WORDS

if TYPE_CHECKING:
    from datasets import Dataset, DatasetDict

    from hf_dxprivacy.privatizers.privatizer import Privatizer

# Bytes of released rows in a file, at most, as in `Dataset.push_to_hub`.
SHARD_BYTES = 500 << 20
# How many rows are looked at, of the first and of all, and the share of their words that may be
# none of the space.
LOOKED_AT, FOREIGN_SHARE = 1000, 0.02

_OPTIONS = (
    "segmenter",
    "oov",
    "case",
    "unit",
    "label_column",
    "refill",
    "language",
    "mask_columns",
    "memoize",
)


def claim_of(privatizer: "Privatizer") -> dict[str, Any]:
    """Return what holds for a release of a privatizer and how it is made, as JSON values.

    Neither a seed, nor a key, nor any path is part of it, and nothing of the texts.
    """
    space, provenance = privatizer.space, privatizer.space.provenance
    name = Path(space.location).name if space.location else None
    options = {name: getattr(privatizer, name) for name in _OPTIONS if hasattr(privatizer, name)}
    if hasattr(privatizer, "stopwords"):
        options["stopwords"] = len(privatizer.stopwords)
    if (found := getattr(privatizer, "redact", None)) is not None:
        options |= {"redact": [*found.labels], "redactor": type(found).__name__}
    pool = getattr(privatizer, "pool", None)
    licences = _licences(provenance)
    known = sorted(licences - {UNKNOWN})
    released = privatizer.released_columns
    return {
        "privatizer": type(privatizer).__name__,
        "guarantee": privatizer.guarantee.to_dict(),
        "plain": [*privatizer.guarantee.plain],
        "mechanism": privatizer.mechanism.parameters,
        "space": {
            "name": space.commit.repo_id if space.commit else name,
            "commit": space.commit.sha if space.commit else None,
            "ships": space.commit is None and is_builtin(space.location or ""),
            "digest": space.digest,
            "metric": space.metric,
            space.item_kind: len(space),
            "dimensions": space.dim,
            "licences": [*known, *[UNKNOWN] * (bool(known) and UNKNOWN in licences)],
            "languages": cards.languages(provenance),
        },
        **({} if pool is None else {"pool": _described(pool)}),
        "options": {
            "text_columns": [*released.values()],
            "output_columns": [*released],
            "roles": list(getattr(privatizer, "roles", None) or ()) or None,
            **options,
            "seeded": privatizer.seed is not None,
        },
        "privatized": released,
    }


def _licences(provenance: Mapping[str, Any]) -> set[str]:
    """Return the licence of a space, or those of the parts that a pool was joined from."""
    own, parts = cards.stated_licence(provenance) or UNKNOWN, provenance.get("pools")
    if not isinstance(parts, list):
        return {own}
    found = [_licences(part if isinstance(part, Mapping) else {}) for part in parts]
    return {own}.difference({UNKNOWN}).union(*found)


def _described(pool: Any) -> dict[str, Any]:
    encoder = {name: getattr(pool.encoder, name) for name in ("kind", "digest")}
    return {"digest": pool.digest, "encoder": encoder}


def card_of(
    privatizer: "Privatizer",
    dataset: "Dataset | DatasetDict | Iterable[str]",
    license: str | None,
    description: str | None,
    with_originals: bool,
) -> ReleasedDataset:
    """Return a released dataset with its card; see `Privatizer.dataset_card`."""
    given: dict[str, Any] = {"license": license, "description": description}
    given |= {"with_originals": with_originals}
    claim = claim_of(privatizer)
    if isinstance(dataset, (list, tuple)) and all(isinstance(name, str) for name in dataset):
        return ReleasedDataset(claim, tuple(dataset), **given)
    from datasets.features.features import require_storage_embed

    released: Any = publishable(dataset, privatizer, with_originals=with_originals)
    splits = _splits(released)
    if not any(map(len, splits.values())):
        raise InvalidValueError("there are no rows to publish, got an empty dataset")
    features = {name: kind for rows in splits.values() for name, kind in rows.features.items()}
    if media := sorted(name for name, kind in features.items() if require_storage_embed(kind)):
        raise InvalidValueError(
            f"the column {', '.join(map(repr, media))} may refer to files of this machine; leave "
            "it out with remove_columns"
        )
    if any(EACH in path for path in claim["privatized"].values()):
        claim["left_in_clear"] = _left_in_clear(privatizer, splits.values())
    parts = {name: _part(name, rows) for name, rows in splits.items()}
    first = next(iter(splits.values()))
    examples = first.select(range(min(SHOWN_ROWS, len(first)))).data.to_pylist()
    return ReleasedDataset(claim, tuple(features), parts, examples, **given)


def publishable(
    dataset: D, privatizer: "Privatizer | None" = None, *, with_originals: bool = False
) -> D:
    """Return a release without traces of the originals, as `strip_traces` does; refuse originals.

    Rows are searched for what the privatizer cannot have released; see docs/hub.md.

    >>> released = dataset.map(privatizer, batched=True)
    >>> publishable(released, privatizer).save_to_disk("released")

    Args:
        dataset: A `Dataset` or a `DatasetDict`. It is not changed.
        privatizer: What has released it. None is deprecated, since nothing is checked then.
        with_originals: Let a column that holds the original texts stay beside the output.

    Raises:
        InvalidTypeError: If an argument is something else.
        InvalidValueError: If a column that the privatizer writes is missing or holds what it cannot
            have released, an original one is left, or rows are privatized only when they are read.
    """
    # Late: it imports this module.
    from hf_dxprivacy.privatizers.privatizer import Privatizer

    stripped = strip_traces(dataset)
    if privatizer is None:
        warnings.warn(
            "publishable(dataset) checks nothing, and the next version refuses it: call "
            "publishable(dataset, privatizer), which refuses originals, or strip_traces(dataset)",
            FutureWarning,
            stacklevel=2,
        )
        return stripped
    if not isinstance(privatizer, Privatizer):
        raise InvalidTypeError(
            f"expected privatizer to be what has released the rows, got {a_kind(privatizer)}"
        )
    _require_release(privatizer, _splits(stripped), with_originals)
    return stripped


def _require_release(
    privatizer: "Privatizer", splits: "Mapping[str, Dataset]", with_originals: bool
) -> None:
    released = privatizer.released_columns
    columns = dict.fromkeys(chain.from_iterable(rows.column_names for rows in splits.values()))
    require_released([*columns], released, with_originals)
    for rows in splits.values():
        for name in released.keys() & rows.column_names:
            _require_plausible(privatizer, name, released[name], rows)


def _splits(dataset: "Dataset | DatasetDict") -> dict[str, "Dataset"]:
    """Return the rows of each split, as Python values."""
    splits = dataset if isinstance(dataset, dict) else {str(dataset.split or "train"): dataset}
    return {str(name): rows.with_format(None) for name, rows in splits.items()}


def _require_plausible(privatizer: "Privatizer", name: str, path: str, rows: "Dataset") -> None:
    """Refuse texts that this privatizer cannot have released, such as the originals.

    Of originals in English 5 % of the words and more are none of a built-in space. Of releases,
    which are cut into words anew, less than one in a thousand, and as many as of the vocabulary.
    """
    if getattr(privatizer, "_selector", None) is not None:
        # What is outside of slots is in clear, so that any text may have come out.
        return
    cells, labels = _looked_at(privatizer, name, path, rows)
    plain = getattr(privatizer, "segmenter", WORDS) == WORDS
    if not plain and any(isinstance(cell, str) for cell in cells):
        # Words that touch do not show what they were.
        return
    names = released_names(privatizer)
    own: list[Any] = [names[at] for at in range(0, len(names), -(-len(names) // LOOKED_AT))]
    own = own if plain and isinstance(own[0], str) else [[token] for token in own]
    allowed = FOREIGN_SHARE + 2 * float(np.mean(_foreign(privatizer, own, [None] * len(own))))
    foreign = _foreign(privatizer, cells, labels)
    count, total = int(foreign.sum()), len(foreign)
    if count > 1 + allowed * total:
        raise InvalidValueError(
            f"{count} of {total} {privatizer.guarantee.unit}s in column {name!r} cannot have come "
            "out of this privatizer: pass what map(privatizer) returned, not the originals; for a "
            "release that was changed afterwards, the names of its columns make a card"
        )


def _looked_at(
    privatizer: "Privatizer", name: str, path: str, rows: "Dataset"
) -> tuple[list[Any], list[str | None]]:
    """Return texts of the first rows and of all, evenly spaced, and the label of each if known."""
    some = min(LOOKED_AT, len(rows))
    spread = np.linspace(0, len(rows) - 1, some, dtype=np.int64).tolist()
    rows = rows.select(sorted({*range(some), *spread}))
    cells, labels = rows.select_columns([name])[:][name], list[str | None]([None] * len(rows))
    column = getattr(privatizer, "label_column", None)
    if column in rows.column_names:
        labels = [*map(str, rows.select_columns([column])[:][column])]
    if EACH not in path:
        return cells, labels
    reader = TextPath(path, privatizer.roles, None)
    read = [reader.read(str, cell) for cell in cells]
    if reader.left and not reader.covered:
        raise none_covered(path, privatizer.roles or (), f"{reader.left} texts that were looked at")
    texts = [[] if row is None else row.texts for row in read]
    labels = [label for row, label in zip(texts, labels, strict=True) for _ in row]
    return [*chain.from_iterable(texts)], labels


def _left_in_clear(privatizer: "Privatizer", splits: "Iterable[Dataset]") -> dict[str, Any]:
    """Count what messages leave in clear, in all released rows."""
    left: Left = Counter()
    for name, path in privatizer.released_columns.items():
        for rows in splits if EACH in path else ():
            reader = TextPath(path, privatizer.roles, None)
            cells = rows.select_columns([name]) if name in rows.column_names else ()
            left += count_left(reader.read(str, cell[name]) for cell in cells)
    return left_in_clear(left)


def _foreign(
    privatizer: Any, cells: Sequence[Any], labels: Sequence[str | None]
) -> NDArray[np.bool_]:
    """Tell which words of cells are none that the privatizer releases; sentences, with labels."""
    if (whole := getattr(privatizer, "pool", None)) is not None:
        same = masked if privatizer.refill else str
        pools = {None: whole} | {of: pool for of, (pool, _) in privatizer._parts.items()}
        known = {label: {*map(same, pool.sentences)} for label, pool in pools.items()}
        rows = [privatizer._pieces(cell) or () for cell in cells]
        # Of a label that the pool lacks there is nothing.
        of_rows = [known.get(label, ()) for label in labels]
        pairs = zip(rows, of_rows, strict=True)
        return np.array([same(text) not in of for row, of in pairs for text in row], np.bool_)
    words, _ = read_release(privatizer, cells, None)
    unknown = words.ids < 0
    if getattr(privatizer, "case", "") == "lower":
        # In other letters than those of the vocabulary, which stop words keep.
        shown = [word for row in words.rows for word in row or ()]
        kept = [plain_apostrophes(word) in privatizer.stopwords for word in shown]
        unknown |= (privatizer.space.ids(shown) < 0) & ~np.array(kept, dtype=np.bool_)
    return np.asarray(unknown & np.isnan(words.known))


def _part(split: str, rows: "Dataset") -> Part:
    count = max(1, -(-rows.data.nbytes // SHARD_BYTES))
    names = [f"{DATA}/{split}-{at:05}-of-{count:05}.parquet" for at in range(count)]

    def write(folder: Path) -> None:
        for at, name in enumerate(names):
            try:
                rows.shard(count, at, contiguous=True).to_parquet(folder / name)
            except OSError as error:
                # A full disk is reported by a write, which knows no name.
                error.filename = error.filename or name
                raise

    return Part(len(rows), tuple(names), write)
