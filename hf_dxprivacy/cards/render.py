"""The text of cards: a header that the Hub reads, and a page from a template."""

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from hf_dxprivacy.cards import licence
from hf_dxprivacy.cards.figures import SETTINGS, Figures, Point
from hf_dxprivacy.errors import ArtifactError
from hf_dxprivacy.hub import HubCommit
from hf_dxprivacy.hub.folder import LIBRARY_NAME
from hf_dxprivacy.mechanisms.base import METRIC_NAMES
from hf_dxprivacy.spaces import builtin_names

TEMPLATES = Path(__file__).parent / "templates"
TAGS = ["dx-privacy", "metric-differential-privacy", "differential-privacy", "word-embeddings"]

# What becomes of words out of vocabulary.
OOV = {
    "centroid": "one single input, at the centroid of the space",
    "drop": "removed",
    "keep": "**released as they are, without any guarantee**",
}
CASE = {"lower": "lower", "preserve": "copied from the original, and so released"}


def space_card(
    config: Mapping[str, Any],
    digest: str,
    *,
    commit: HubCommit | None = None,
    license: str | None,
    name: str,
    picture: str | None,
    licence_file: str | None,
) -> str:
    """Return the card of a space.

    Args:
        config: Its ``config.json``, with what was measured.
        digest: Its digest.
        commit: The commit on the Hub that it was read from.
        license: A licence of the Hub's list; by default what the provenance names.
        name: What the example of use calls it.
        picture: Name of the picture's file, if there is one.
        licence_file: Name of the file with the licence's text, if there is one.

    Raises:
        ArtifactError: If the config has an index and not what was measured of it.
    """
    provenance = config["provenance"]
    figures = Figures.parse(config["figures"], digest)
    entries = licence.header(license, provenance, licence_file)
    return filled(
        "space.md",
        {**entries, **_about(config)},
        title=heading(name),
        name=json.dumps(name),
        **_facts(config),
        commit=commit,
        digest=digest,
        example=_example(figures),
        index=_index(config.get("index")),
        picture=picture,
        provenance=_provenance(provenance),
        licence=licence.sentence(entries, provenance),
        **(_shown(figures, config) if figures else {}),
    )


def privatizer_card(
    decisions: Mapping[str, Any], guarantee: str, *, license: str | None, name: str
) -> str:
    """Return the card of a privatizer.

    Args:
        decisions: Its settings, as they are stored.
        guarantee: Its guarantee, as it prints.
        license: A licence of the Hub's list.
        name: What the example of use calls it.
    """
    entries = licence.header(license, {}, None)
    slots = "selector" in decisions
    return filled(
        "privatizer.md",
        {**entries, "library_name": LIBRARY_NAME, "tags": TAGS[:-1]},
        slots=slots,
        owner="SlotPrivatizer" if slots else "DxPrivatizer",
        title=heading(name),
        name=json.dumps(name),
        mechanism=decisions["mechanism"],
        epsilon=f"{decisions['epsilon']:.12g}",
        options=sorted((k, v) for k, v in decisions["options"].items() if v is not None),
        space=_place(decisions["space"]),
        digest=decisions["space"]["digest"],
        oov=OOV[decisions["oov"]],
        case=CASE[decisions["case"]],
        stopwords=len(decisions["stopwords"]),
        guarantee=guarantee,
        licence=licence.sentence(entries, {}),
    )


def filled(template: str, header: Mapping[str, Any], **shown: Any) -> str:
    """Return a card: a template with a header that the Hub reads, filled with what it shows."""
    # Late, because it takes a while to load.
    from huggingface_hub import ModelCard, ModelCardData

    card = ModelCard.from_template(ModelCardData(**header), str(TEMPLATES / template), **shown)
    return f"{card}\n"


def heading(name: str) -> str:
    """Return the last part of a folder's or repository's name, in one line."""
    return " ".join(name.rpartition("/")[2].split()).encode("utf-8", "replace").decode()


def _about(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the header of a space's card, all but the licence."""
    ball = ["poincare-embeddings"] if config["metric"] == "poincare" else []
    return {
        "library_name": LIBRARY_NAME,
        "language": _language(config["provenance"]),
        "base_model": _base_model(config["provenance"]),
        "tags": [*TAGS, *ball],
    }


def _language(provenance: Mapping[str, Any]) -> Any:
    """Return the language, or several, if they are codes that the Hub takes."""
    given = provenance.get("language")
    codes = given if isinstance(given, list) else [given]
    known = all(isinstance(code, str) and re.fullmatch("[a-z]{2,3}", code) for code in codes)
    return given if codes and known else None


def _base_model(provenance: Mapping[str, Any]) -> str | None:
    """Return the repository of the model that the vectors were taken from, if there is one."""
    source, commit = provenance.get("source"), provenance.get("commit")
    if not (isinstance(source, str) and isinstance(commit, str)):
        return None
    return source if re.fullmatch(r"(?:[\w-]+/)?[\w.-]+", source, re.ASCII) else None


def _provenance(provenance: Mapping[str, Any]) -> str:
    shown = {name: value for name, value in provenance.items() if name != "licence_text"}
    return json.dumps(shown, indent=2, ensure_ascii=False)


def _facts(config: Mapping[str, Any]) -> dict[str, Any]:
    ball, metric = config["metric"] == "poincare", METRIC_NAMES[config["metric"]]
    return {
        "size": f"{config['size']:,}",
        "dim": config["dim"],
        "metric": f"{metric} in the unit ball, times {config['scale']:.6g}" if ball else metric,
        "dtype": config["dtype"],
        "centre": "origin" if ball else "centroid",
    }


def _place(space: Mapping[str, Any]) -> str:
    if space["commit"] is not None:
        return f"`{space['name']}` at commit `{space['commit']}`"
    if space["name"] in builtin_names():
        return f"`{space['name']}`, which ships with hf-dxprivacy"
    # Its path is nobody's business but that of this machine.
    return "a local folder of the machine it was saved on"


def _index(index: Any) -> dict[str, Any] | None:
    """Return what is shown of an index, as "index" of a config describes it."""
    if index is None:
        return None
    try:
        quality = index["quality"]
        rows = [
            ["none" if row["epsilon"] is None else f"ε = {row['epsilon']:.3g}"]
            + [f"{row[name]:.3f}" for name in ("recall_at_1", "recall_at_10", "changed_outputs")]
            for row in quality["noise"]
        ]
        words = f"{quality['words']:,}"
        return {"kind": index["kind"], "factory": index["factory"], "words": words, "rows": rows}
    except (KeyError, TypeError, ValueError) as error:
        raise ArtifactError(
            "the config does not say how good the index is; make it anew with space.build_index"
        ) from error


def _example(figures: Figures | None) -> dict[str, Any]:
    """Choose a mechanism that starts at once, and an ε at which about half of the words stay."""
    mechanisms = figures.mechanisms if figures else {}
    name = "calibrated" if "calibrated" in mechanisms else "tem"
    points = mechanisms.get(name, ())
    middle = min(points, key=lambda point: abs(point.kept[0] - 0.5), default=None)
    return {"mechanism": name, "epsilon": middle.epsilon if middle else 1.0}


def _shown(figures: Figures, config: Mapping[str, Any]) -> dict[str, Any]:
    exact = [n for n, points in figures.mechanisms.items() if points[0].support is not None]
    drawn = [n for n in figures.mechanisms if n not in exact]
    return {
        "percentiles": SETTINGS["percentiles"],
        "distances": [(_label(k), [f"{d:.4g}" for d in v]) for k, v in figures.distances.items()],
        "neighbour_words": f"{figures.neighbour_words:,}",
        "pairs": f"{SETTINGS['pairs']:,}" if "pairs" in figures.distances else None,
        "unit": f"{figures.unit:g}",
        "held": f"{100 * (1 - SETTINGS['eta']):g}",
        "runs": SETTINGS["runs"],
        "points": [_row(n, point) for n, row in figures.mechanisms.items() for point in row],
        "words": figures.words,
        "alt": _alt_text(figures),
        "exact": _listed(f"`{name}`" for name in exact),
        "drawn": _listed(f"`{name}`" for name in drawn),
        "missing": _missing(figures, config),
    }


def _alt_text(figures: Figures) -> str:
    """Say what the picture shows to whoever can not see it."""
    names = _listed(figures.mechanisms)
    return (
        f"Two charts against ε·d for {names}: the share of draws in which a word stays, and the "
        f"number of different words in {SETTINGS['runs']} draws; the numbers are in the table."
    )


def _label(k: str) -> str:
    names = {"1": "nearest word", "pairs": "two words at random"}
    return names.get(k, f"{k}th nearest word")


def _row(name: str, point: Point) -> list[str]:
    counts = [*(point.support or ("–", "–")), *point.distinct]
    return [
        f"`{name}`",
        f"{point.epsilon:g}",
        *(f"{share:.3f}" for share in point.kept),
        *(count if isinstance(count, str) else f"{count:,.10g}" for count in counts),
    ]


def _listed(names: Iterable[str]) -> str:
    *most, last = [*names] or [""]
    return f"{', '.join(most)} and {last}" if most else last


def _missing(figures: Figures, config: Mapping[str, Any]) -> list[str]:
    sentences = []
    if "calibrated" not in figures.mechanisms:
        sentences.append(
            "`calibrated` is not among them, because its levels for this space are not worked out "
            "yet; its first use does that."
        )
    if config["metric"] == "poincare":
        floor = (config["dim"] - 1) / config["scale"]
        sentences.append(f"The noise of `hyperbolic` exists only for ε > {floor:.4g}.")
    return sentences
