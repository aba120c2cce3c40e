"""What a card says of the licence, by the names of the Hub."""

import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError

# https://huggingface.co/docs/hub/repositories-licenses, and what the Hub lists when it refuses one.
HUB_LICENCES = frozenset(
    """
    apache-2.0 mit openrail bigscience-openrail-m creativeml-openrail-m bigscience-bloom-rail-1.0
    bigcode-openrail-m afl-3.0 artistic-2.0 bsl-1.0 bsd bsd-2-clause bsd-3-clause bsd-3-clause-clear
    c-uda cc cc0-1.0 cc-by-2.0 cc-by-2.5 cc-by-3.0 cc-by-4.0 cc-by-sa-3.0 cc-by-sa-4.0 cc-by-nc-2.0
    cc-by-nc-3.0 cc-by-nc-4.0 cc-by-nd-4.0 cc-by-nc-nd-3.0 cc-by-nc-nd-4.0 cc-by-nc-sa-2.0
    cc-by-nc-sa-3.0 cc-by-nc-sa-4.0 cdla-sharing-1.0 cdla-permissive-1.0 cdla-permissive-2.0 wtfpl
    ecl-2.0 epl-1.0 epl-2.0 etalab-2.0 eupl-1.1 eupl-1.2 agpl-3.0 gfdl gpl gpl-2.0 gpl-3.0 lgpl
    lgpl-2.1 lgpl-3.0 isc h-research intel-research lppl-1.3c ms-pl apple-ascl apple-amlr mpl-2.0
    odc-by odbl openmdw-1.0 openmdw-1.1 openrail++ osl-3.0 postgresql ofl-1.1 ncsa unlicense zlib
    pddl lgpl-lr deepfloyd-if-license fair-noncommercial-research-license llama2 llama3 llama3.1
    llama3.2 llama3.3 llama4 grok2-community gemma unknown other
    """.split()
)


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
            "license=, for instance 'mit' or 'cc-by-4.0', if the rights are yours to give, or else "
            "the licence of what the vectors were made from"
        )


def check_licence(license: str | None) -> None:
    """Require a licence, if one is given, to be one that the Hub knows.

    Raises:
        InvalidTypeError: If it is not a string.
        InvalidValueError: If the Hub does not know it.
    """
    if license is None:
        return
    if not isinstance(license, str):
        raise InvalidTypeError(f"expected license to be a string, got {license!r}")
    if license not in HUB_LICENCES:
        near = get_close_matches(license.lower(), sorted(HUB_LICENCES), cutoff=0.5)
        hint = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
        raise InvalidValueError(
            f"the Hub has no licence {license!r}; {hint}Its list is at "
            "https://huggingface.co/docs/hub/repositories-licenses; for any other licence pass "
            "'other'"
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
