"""What is claimed of a release, and the released dataset with its card."""

import logging
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy.errors import InvalidValueError, describe_columns
from hf_dxprivacy.hub import ReleasedDataset, cards, is_builtin
from hf_dxprivacy.hub.released_dataset import DATA, SHOWN_ROWS, Part
from hf_dxprivacy.privatizers.fingerprint import publishable
from hf_dxprivacy.privatizers.nested import EACH, TextPath

if TYPE_CHECKING:
    from datasets import Dataset, DatasetDict

    from hf_dxprivacy.privatizers.privatizer import Privatizer

logger = logging.getLogger(__name__)

# Bytes of released rows in a file, at most, as in `Dataset.push_to_hub`.
SHARD_BYTES = 500 << 20
# Rows that are looked at, and the share of their words that may be none of the space.
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
    pool = getattr(privatizer, "pool", None)
    parts = provenance.get("pools")
    origins = [provenance, *(parts if isinstance(parts, list) else [])]
    licences = [cards.stated_licence(each) for each in origins if isinstance(each, Mapping)]
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
            space.entries: len(space),
            "dimensions": space.dim,
            "licences": sorted({licence for licence in licences if licence}),
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


def _described(pool: Any) -> dict[str, Any]:
    encoder = {name: getattr(pool.encoder, name) for name in ("kind", "digest")}
    return {"digest": pool.digest, "encoder": encoder}


def card_of(
    privatizer: "Privatizer",
    dataset: "Dataset | DatasetDict | Iterable[str]",
    license: str | None,
    description: str | None,
) -> ReleasedDataset:
    """Return a released dataset with its card; see `Privatizer.dataset_card`."""
    given: dict[str, Any] = {"license": license, "description": description}
    claim = claim_of(privatizer)
    if isinstance(dataset, (list, tuple)) and all(isinstance(name, str) for name in dataset):
        return checked(ReleasedDataset(claim, tuple(dataset), **given))
    from datasets import DatasetDict
    from datasets.features.features import require_storage_embed

    released: Any = publishable(dataset)
    splits = dict(released) if isinstance(released, DatasetDict) else {}
    if not isinstance(released, DatasetDict):
        splits = {str(released.split or "train"): released}
    if not any(map(len, splits.values())):
        raise InvalidValueError("there are no rows to publish, got an empty dataset")
    features = {name: kind for rows in splits.values() for name, kind in rows.features.items()}
    if media := sorted(name for name, kind in features.items() if require_storage_embed(kind)):
        raise InvalidValueError(
            f"the column {', '.join(map(repr, media))} may refer to files of this machine; leave "
            "it out with remove_columns"
        )
    splits = {name: rows.with_format(None) for name, rows in splits.items()}
    for name, path in claim["privatized"].items():
        for rows in splits.values():
            if name in rows.column_names:
                _require_plausible(privatizer, name, path, rows[:LOOKED_AT][name])
    parts = {name: _part(name, rows) for name, rows in splits.items()}
    first = next(iter(splits.values()))
    examples = first.select(range(min(SHOWN_ROWS, len(first)))).data.to_pylist()
    return checked(ReleasedDataset(claim, tuple(features), parts, examples, **given))


def _require_plausible(privatizer: "Privatizer", name: str, path: str, cells: list[Any]) -> None:
    """Refuse texts that this privatizer cannot have released, such as the originals.

    Of originals in English 5 % of the words and more are none of a built-in space. Of releases,
    which are cut into words anew, less than one in a thousand, and as many as of the vocabulary.
    """
    anything_may = ("_selector", "redact", "refill", "label_column")
    if any(getattr(privatizer, each, None) for each in anything_may):
        return
    if EACH in path:
        reader = TextPath(path, privatizer.roles)
        rows = [reader.read(str, cell) for cell in cells]
        cells = [text for row in rows if row is not None for text in row.texts]
    names = privatizer._released_names
    own: list[Any] = [names[at] for at in range(0, len(names), -(-len(names) // LOOKED_AT))]
    own = own if isinstance(own[0], str) else [[token] for token in own]
    allowed = FOREIGN_SHARE + 2 * float(np.mean(_foreign(privatizer, own)))
    foreign = _foreign(privatizer, cells)
    count, total = int(foreign.sum()), len(foreign)
    if count > 1 + allowed * total:
        raise InvalidValueError(
            f"{count} of {total} {privatizer.guarantee.unit}s in column {name!r} cannot have come "
            "out of this privatizer: pass what map(privatizer) returned, not the originals; for a "
            "release that was changed afterwards, the names of its columns make a card"
        )


def _foreign(privatizer: "Privatizer", cells: list[Any]) -> NDArray[np.bool_]:
    """Tell which words of cells are none that the privatizer releases."""
    words, _ = privatizer._read_release(cells, None)
    unknown = words.ids < 0
    if getattr(privatizer, "case", "") == "lower" and not getattr(privatizer, "stopwords", ()):
        # In other letters than those of the vocabulary.
        shown = [word for row in words.rows for word in row or ()]
        unknown |= privatizer.space.ids(shown) < 0
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


def checked(card: ReleasedDataset) -> ReleasedDataset:
    """Require the released columns to be there, and warn of what should not be published.

    Raises:
        InvalidValueError: If a released column is missing.
    """
    for name in card.claim["privatized"]:
        if name not in card.columns:
            raise InvalidValueError(
                f"there is no column {name!r}, which holds the released texts; "
                f"{describe_columns(card.columns, name)}; pass what map(privatizer) returned"
            )
    if card.original_columns:
        logger.warning(
            "column %s STILL HOLDS THE ORIGINAL TEXT and would be published with the release; "
            "leave it out with remove_columns",
            ", ".join(map(repr, card.original_columns)),
        )
    return card
