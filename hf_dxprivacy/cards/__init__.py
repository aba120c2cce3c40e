"""Model cards of what is saved and pushed."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hf_dxprivacy.spaces import EmbeddingSpace

README = "README.md"


def require_licence(license: str | None, provenance: Mapping[str, Any]) -> None:
    """Require a licence."""


def measure(space: EmbeddingSpace) -> None:
    """Measure what the card of a space shows."""


def write_space_card(
    space: EmbeddingSpace, folder: Path, *, license: str | None, name: str
) -> None:
    """Write the card of a space."""


def write_privatizer_card(
    folder: Path, decisions: Mapping[str, Any], guarantee: str, *, license: str | None, name: str
) -> None:
    """Write the card of a privatizer.

    Args:
        folder: Where to.
        decisions: `Settings` as a dict: mechanism, epsilon, options, space (name, commit, digest),
            columns, stop words, oov, case.
        guarantee: The guarantee as it prints.
        license: A licence of the Hub's list.
        name: What the example of use calls it: repository or folder.
    """
