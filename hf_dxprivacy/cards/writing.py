"""Cards, their pictures and licences into folders."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hf_dxprivacy.cards.figures import Figures
from hf_dxprivacy.cards.picture import picture
from hf_dxprivacy.cards.render import privatizer_card, space_card
from hf_dxprivacy.errors import MissingExtraError
from hf_dxprivacy.hub.folder import read_config
from hf_dxprivacy.hub.licence import check_licence
from hf_dxprivacy.hub.records import write_whole
from hf_dxprivacy.spaces import EmbeddingSpace

README = "README.md"
PICTURE = "privacy.png"


def write_space_card(
    space: EmbeddingSpace, folder: Path, *, license: str | None, name: str
) -> None:
    """Write the card of a space, its picture, and the text of its licence if that is known.

    Args:
        space: The space, after `measure`.
        folder: A folder that the space was saved into.
        license: A licence of the Hub's list. By default "licence" of the provenance; its text is
            "licence_text" there, and goes into the file "licence_file".
        name: What the example of use calls it: repository or folder.

    Raises:
        InvalidValueError: If the Hub knows no such licence.
        ArtifactError: If the folder holds no space.
        OSError: If a file can not be written.
    """
    check_licence(license)
    config = read_config(folder) | {"provenance": space.provenance, "figures": space.figures}
    card = space_card(
        config,
        space.digest,
        commit=space.commit,
        license=license,
        name=name,
        picture=_write_picture(Figures.parse(space.figures, space.digest), folder),
        licence_file=_write_licence(space.provenance, folder),
    )
    write_whole(folder / README, [card.encode()])


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

    Raises:
        InvalidValueError: If the Hub knows no such licence.
        OSError: If the file can not be written.
    """
    check_licence(license)
    card = privatizer_card(decisions, guarantee, license=license, name=name)
    write_whole(folder / README, [card.encode()])


def _write_picture(figures: Figures | None, folder: Path) -> str | None:
    """Write the picture and return its name; None if there is nothing to draw, or to draw with."""
    # One of an earlier save would show other figures.
    (folder / PICTURE).unlink(missing_ok=True)
    if figures is None or not figures.mechanisms:
        return None
    try:
        content = picture(figures)
    except MissingExtraError:
        return None
    write_whole(folder / PICTURE, [content])
    return PICTURE


def _write_licence(provenance: Mapping[str, Any], folder: Path) -> str | None:
    """Write the licence's text, if the provenance has it, and return the name of its file."""
    name, text = provenance.get("licence_file"), provenance.get("licence_text")
    # The provenance may come from a stranger, and must not choose what is overwritten.
    if not (isinstance(name, str) and re.fullmatch(r"LICEN[CS]E[\w.-]*", name)):
        name = "LICENSE"
    if isinstance(text, str):
        write_whole(folder / name, [text.encode()])
    return name if (folder / name).is_file() else None
