"""What a release promises and how it was made, as JSON-ready values."""

import platform
from importlib import metadata
from pathlib import Path
from typing import Any

from hf_dxprivacy._version import __version__
from hf_dxprivacy.privatizer import DxPrivatizer
from hf_dxprivacy.release.job import Outcome
from hf_dxprivacy.spaces import EmbeddingSpace

# Those whose version may change a result.
LIBRARIES = ("datasets", "faiss-cpu", "numpy", "pyarrow", "randomgen", "tokenizers")

COUNTS_ARE_PRIVATE = (
    "The counts of words are a function of the private text and are not covered by the guarantee: "
    "they are for the owner of the text only. Remove them before this report goes elsewhere."
)


def report(privatizer: DxPrivatizer, outcome: Outcome) -> dict[str, Any]:
    """Describe a release. Neither the seed nor any path is part of it.

    Args:
        privatizer: The privatizer.
        outcome: What it did.
    """
    space, words = privatizer.space, outcome.words
    return {
        "guarantee": privatizer.guarantee.to_dict(),
        "mechanism": privatizer.mechanism.parameters,
        "space": {
            "name": _name_of(space),
            "commit": space.commit.sha if space.commit else None,
            "digest": space.digest,
            "metric": space.metric,
            "words": len(space),
            "dimensions": space.dim,
        },
        "options": {
            "text_columns": list(privatizer.text_columns),
            "output_columns": list(privatizer.output_columns),
            "oov": privatizer.oov,
            "case": privatizer.case,
            "stopwords": len(privatizer.stopwords),
            "seeded": privatizer.seed is not None,
        },
        "rows": outcome.rows,
        "words": {
            "note": COUNTS_ARE_PRIVATE,
            "replaced": words.replaced,
            "drawn_unchanged": words.unchanged,
            "out_of_vocabulary": words.out_of_vocabulary,
            "kept": words.kept,
        },
        "versions": {
            "hf-dxprivacy": __version__,
            "python": platform.python_version(),
            **{name: _version(name) for name in LIBRARIES},
        },
    }


def _version(library: str) -> str | None:
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return None  # another build of the same library, such as faiss-gpu


def _name_of(space: EmbeddingSpace) -> str | None:
    if space.commit:
        return space.commit.repo_id
    return Path(space.location).name if space.location else None
