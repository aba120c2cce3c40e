"""Model cards of what is saved and pushed."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hf_dxprivacy.spaces import EmbeddingSpace


def require_licence(license: str | None, provenance: Mapping[str, Any]) -> None:
    """Require a licence."""


def measure(space: EmbeddingSpace) -> None:
    """Measure what the card of a space shows."""


def write_space_card(
    space: EmbeddingSpace, folder: Path, *, license: str | None, name: str
) -> None:
    """Write the card of a space."""
