"""What a card says of the licence, by the names of the Hub."""

import re
from collections.abc import Mapping
from typing import Any

from hf_dxprivacy.errors import InvalidValueError
from hf_dxprivacy.hub.licence import HUB_LICENCES, check_licence


def require_licence(license: str | None, provenance: Mapping[str, Any]) -> None:
    """Require that a licence is given, or known from where something comes from.

    Args:
        license: A licence of the Hub's list, or None.
        provenance: Where the object comes from; "licence" in it may be any name.

    Raises:
        InvalidTypeError: If the licence is not a string.
        InvalidValueError: If there is none, or the Hub does not know it.
    """
    check_licence(license)
    if license is None and stated(provenance) is None:
        raise InvalidValueError(
            "there is no licence, and others may use what you publish only under one; pass "
            "license= (--license), for instance 'mit' or 'cc-by-4.0', if the rights are yours to "
            "give, or else the licence of what the vectors were made from"
        )


def stated(provenance: Mapping[str, Any]) -> str | None:
    """Return the licence that a provenance names, in one line; None if it names none."""
    licence = provenance.get("licence")
    if not isinstance(licence, str):
        return None
    name = " ".join(licence.split())
    return None if _slug(name) in ("", "unknown") else name


def header(license: str | None, provenance: Mapping[str, Any], file: str | None) -> dict[str, str]:
    """Return what the header of a card says of the licence.

    Args:
        license: A licence of the Hub's list; by default what the provenance names.
        provenance: Where the object comes from.
        file: Name of the file with the licence's text, if there is one.

    Returns:
        The entry "license"; beside "other", as far as known, "license_name" and "license_link".
    """
    name = _slug(stated(provenance) or "")
    if license is None:
        license = name if name in HUB_LICENCES else "other" if name else "unknown"
    if license != "other":
        return {"license": license}
    entries = {"license_name": name, "license_link": file}
    return {"license": license} | {k: v for k, v in entries.items() if v and v != "other"}


def sentence(entries: Mapping[str, str], provenance: Mapping[str, Any]) -> str:
    """Say in words what the header says.

    Args:
        entries: What `header` has returned.
        provenance: Where the object comes from.
    """
    license, name, file = entries["license"], stated(provenance), entries.get("license_link")
    if license == "unknown":
        return (
            "**Unknown.** Nobody has said under which licence others may use this. Whoever may say "
            "it saves again with `license=`."
        )
    if license == "other":
        text = f"; its text is in [{file}]({file})" if file else ""
        return f"{name or 'A licence that the Hub does not list'}{text}."
    differs = name is not None and _slug(name) != license
    return f"`{license}`." + (f" What it was made from is under: {name}." if differs else "")


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9.+]+", "-", name.lower()).strip("-")
