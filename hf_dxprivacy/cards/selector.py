"""The card of a selector of slots."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hf_dxprivacy.cards import licence
from hf_dxprivacy.cards.render import filled, heading
from hf_dxprivacy.cards.writing import README
from hf_dxprivacy.hub.folder import LIBRARY_NAME
from hf_dxprivacy.hub.licence import check_licence
from hf_dxprivacy.hub.records import write_whole

TAGS = ["differential-privacy", "n-grams", "slot-filling"]


def write_selector_card(
    folder: Path, settings: Mapping[str, Any], guarantee: str, *, license: str | None, name: str
) -> None:
    """Write the card of a selector of slots.

    Args:
        folder: Where to.
        settings: "terms" of the release (epsilon, n_max, l_max, min_count), "alphabet_size",
            "threshold", "mode", and "lengths", the number of n-grams of each length.
        guarantee: What holds for the corpus, as it prints.
        license: A licence of the Hub's list.
        name: What the example of use calls it: repository or folder.

    Raises:
        InvalidValueError: If the Hub knows no such licence.
        OSError: If the file can not be written.
    """
    check_licence(license)
    entries = licence.header(license, {}, None)
    epsilon = settings["terms"]["epsilon"]
    card = filled(
        "selector.md",
        {**entries, "library_name": LIBRARY_NAME, "tags": TAGS},
        **settings,
        title=heading(name),
        name=json.dumps(name),
        epsilon=None if epsilon is None else f"{epsilon:.12g}",
        guarantee=guarantee,
        licence=licence.sentence(entries, {}),
    )
    write_whole(folder / README, [card.encode()])
