"""Model cards: Markdown with the Hub's YAML header, and a picture, from what is stored as JSON.

What a card shows of a space is measured beforehand by `hf_dxprivacy.report.measure`.
"""

import hashlib
import io
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any, Literal

from hf_dxprivacy._runtime import require
from hf_dxprivacy.errors import (
    ArtifactError,
    InvalidTypeError,
    InvalidValueError,
    MissingExtraError,
)
from hf_dxprivacy.hub.artifact import LIBRARY_NAME, PICTURE, read_config
from hf_dxprivacy.hub.artifact import README as README
from hf_dxprivacy.hub.atomic import atomic_write

TEMPLATES = Path(__file__).parent / "templates"

PRIVATIZER_TAGS = ["dx-privacy", "metric-differential-privacy", "differential-privacy"]
SPACE_TAGS = [*PRIVATIZER_TAGS, "word-embeddings"]
SELECTOR_TAGS = ["differential-privacy", "n-grams", "slot-filling"]

# Colours that readers who confuse red and green can tell apart (Okabe and Ito, 2008).
COLOURS = {
    "tem": "#0072B2",
    "calibrated": "#009E73",
    "laplace": "#D55E00",
    "mahalanobis": "#CC79A7",
    "hyperbolic": "#D55E00",
    "hierarchical": "#56B4E9",
    "krr": "#E69F00",
}
OTHER_COLOUR = "#000000"

LANGUAGES = {"en": "English"}
_STEERING = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")

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


def check_licence(license: str | None) -> None:
    """Require a licence, if one is given, to be one that the Hub knows.

    Raises:
        InvalidTypeError: If it is not a string.
        InvalidValueError: If it is unknown.
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


def require_licence(license: str | None, provenance: Mapping[str, Any]) -> None:
    """Require a licence of the Hub's list, or one of any name in the provenance.

    Raises:
        InvalidTypeError: If the licence is not a string.
        InvalidValueError: If there is none, or the Hub does not know it.
    """
    check_licence(license)
    if license is None and stated_licence(provenance) is None:
        raise InvalidValueError(
            "there is no licence, and others may use what you publish only under one; pass "
            "license= (--license), for instance 'mit' or 'cc-by-4.0', if the rights are yours to "
            "give, or else the licence of what the vectors were made from"
        )


def licence_header(
    license: str | None, provenance: Mapping[str, Any], file: str | None
) -> dict[str, str]:
    """Return the entries on the licence in the header of a card, given the file of its text.

    Returns:
        The entry "license"; beside "other", as far as known, "license_name" and "license_link".
    """
    name = slug(stated_licence(provenance) or "")
    if license is None:
        license = name if name in HUB_LICENCES else "other" if name else "unknown"
    if license != "other":
        return {"license": license}
    entries = {"license_name": name, "license_link": file}
    return {"license": license} | {k: v for k, v in entries.items() if v and v != "other"}


def write_space_card(
    folder: Path,
    digest: str,
    *,
    encoder: Mapping[str, Any] | None = None,
    measured: str | None = None,
    **described: Any,
) -> None:
    """Write the card of a saved space, its picture, and the text of its licence if that is known.

    Arguments are those of `space_card` that the folder does not tell. The provenance may have
    "licence_text", which goes into the file "licence_file".

    Raises:
        ArtifactError: If the folder holds no space, or an index without its measured quality.
        OSError: If a file cannot be written.
    """
    config = read_config(folder)
    # A picture of an earlier save would show other figures.
    (folder / PICTURE).unlink(missing_ok=True)
    figures, picture = stored_figures(config.get("figures", {}), measured or digest), None
    if figures is not None and figures["mechanisms"]:
        # Without matplotlib, the card says how to get the picture.
        with suppress(MissingExtraError):
            entry = "sentence" if encoder else "word"
            atomic_write(folder / PICTURE, [draw_picture(figures, entry)])
            picture = PICTURE
    provenance = config.get("provenance", {})
    file, text = provenance.get("licence_file"), provenance.get("licence_text")
    # The provenance may come from a stranger, and must not choose what is overwritten.
    if not (isinstance(file, str) and re.fullmatch(r"LICEN[CS]E[\w.-]*", file)):
        file = "LICENSE"
    if isinstance(text, str):
        atomic_write(folder / file, [text.encode()])
    described |= {"picture": picture, "encoder": encoder, "measured": measured}
    described["licence_file"] = file if (folder / file).is_file() else None
    atomic_write(folder / README, [space_card(config, digest, **described).encode()])


def write_card(
    folder: Path,
    kind: Literal["privatizer", "selector"],
    shown: Mapping[str, Any],
    guarantee: str,
    *,
    license: str | None,
    name: str,
    provenance: Mapping[str, Any] | None = None,
) -> None:
    """Write the card of a privatizer, or of a selector of slots.

    Args:
        folder: Where to.
        kind: Which of them.
        shown: Of a privatizer the stored configuration, "ships", whether the space ships with this
            package, and "unknown", what the input for unknown words is. Of a selector "terms" of
            the release (epsilon, n_max, l_max, min_count), "alphabet_size", "threshold", "mode",
            and "lengths", the number of n-grams of each length.
        guarantee: The guarantee as it prints.
        license: This and `name` are as for `space_card`.
        name: See there.
        provenance: Of the space of a privatizer, whose licence is the default.
    """
    tags = PRIVATIZER_TAGS if kind == "privatizer" else SELECTOR_TAGS
    card = _card(f"{kind}.md", tags, license, name, provenance, **shown, guarantee=guarantee)
    atomic_write(folder / README, [card.encode()])


def space_card(
    config: Mapping[str, Any],
    digest: str,
    *,
    commit: object = None,
    license: str | None,
    name: str,
    picture: str | None,
    licence_file: str | None,
    branches: str | None = None,
    encoder: Mapping[str, Any] | None = None,
    measured: str | None = None,
) -> str:
    """Return the card of a space.

    Args:
        config: Its ``config.json``, with the measured figures.
        digest: Its digest.
        commit: The commit on the Hub that it was read from.
        license: A licence of the Hub's list; by default what the provenance names.
        name: Repository or folder, as the example of use names it.
        picture: Name of the picture's file, if there is one.
        licence_file: Name of the file with the licence's text, if there is one.
        branches: Some branches of its tree, drawn as text; None if it has no tree.
        encoder: Of a pool of sentences the kind, name, commit and digest of its encoder.
        measured: Digest of what the figures are of, if that is another one.

    Raises:
        ArtifactError: If the config has an index and not what was measured of it.
    """
    provenance, ball = config.get("provenance", {}), config["metric"] == "poincare"
    figures = stored_figures(config.get("figures", {}), measured or digest)
    mechanisms: dict[str, Any] = figures["mechanisms"] if figures else {}
    is_exact = {name: row[0]["support"] is not None for name, row in mechanisms.items()}
    shown = {key: value for key, value in provenance.items() if key != "licence_text"}
    codes = languages(provenance)
    model = provenance.get("source")
    is_model = isinstance(model, str) and isinstance(provenance.get("commit"), str)
    is_model = is_model and re.fullmatch(r"(?:[\w-]+/)?[\w.-]+", model, re.ASCII) is not None
    # A mechanism that starts at once, at an ε at which about half of the words stay.
    example = next((n for n in ("hierarchical", "calibrated") if n in mechanisms), "tem")
    middle = min(
        mechanisms.get(example, ()), key=lambda point: abs(point["kept"][0] - 0.5), default=None
    )
    return _card(
        "space.md",
        [*SPACE_TAGS, "poincare-embeddings"] if ball else SPACE_TAGS,
        license,
        name,
        provenance,
        licence_file,
        header={
            "language": provenance["language"] if codes else None,
            "base_model": model if is_model else None,
        },
        ball=ball,
        config=config,
        language=listed(LANGUAGES.get(code, f"`{code}`") for code in codes),
        commit=commit,
        digest=digest,
        example={"mechanism": example, "epsilon": middle["epsilon"] if middle else 1.0},
        figures=figures,
        exact=listed(f"`{name}`" for name, known in is_exact.items() if known),
        drawn=listed(f"`{name}`" for name, known in is_exact.items() if not known),
        charted=listed(mechanisms),
        index=_index(config.get("index")),
        # A word must not end the block that they are shown in.
        branches=branches and branches.replace("`", "'"),
        facts=_pool_facts(provenance) if encoder else [],
        # A path tells about the machine.
        encoder=encoder and {**encoder, "name": re.sub(r"^/.*/", "", encoder["name"])},
        picture=picture,
        origin=json.dumps(shown, indent=2, ensure_ascii=False),
    )


def stored_figures(figures: Mapping[str, Any], digest: str) -> dict[str, Any] | None:
    """Check the measured figures of a space, as they are stored in its ``config.json``.

    Args:
        figures: The entry "figures".
        digest: Digest of the space that they have to belong to.

    Returns:
        "settings" (percentiles, pairs, runs, eta) and what was measured under them: "unit", the
        distance that the grid of ε is counted in; "words" and "neighbour_words", how many were
        measured; "distances", percentiles by rank of the neighbour and of random "pairs";
        "mechanisms", by name the points in the order of ε, each with "epsilon", "kept" (N_w: mean,
        largest), "support" (S_w: mean, least; None where the law is not known) and "distinct"
        (outputs in `runs` draws: mean, least). None if they are of another space, or damaged.
    """
    try:
        if figures["digest"] != digest:
            return None
        settings = figures["settings"]
        return {
            "unit": float(figures["unit"]),
            "words": int(figures["words"]),
            "neighbour_words": int(figures["neighbour_words"]),
            "distances": {
                str(int(k)) if k != "pairs" else k: [float(d) for d in row]
                for k, row in figures["distances"].items()
            },
            "mechanisms": {
                name: [
                    {
                        "epsilon": float(point["epsilon"]),
                        "kept": _pair(point["kept"]),
                        "support": None if point["support"] is None else _pair(point["support"]),
                        "distinct": _pair(point["distinct"]),
                    }
                    for point in points
                ]
                for name, points in figures["mechanisms"].items()
                if points and re.fullmatch(r"[a-z][a-z_]*", name)
            },
            "settings": {
                "percentiles": [int(percent) for percent in settings["percentiles"]],
                "pairs": int(settings["pairs"]),
                "runs": int(settings["runs"]),
                "eta": float(settings["eta"]),
            },
        }
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def draw_picture(figures: Mapping[str, Any], entry: str = "word") -> bytes:
    """Draw the two statistics of all mechanisms of `stored_figures` of words, or others, against ε.

    Returns:
        A PNG file of 1000 × 420 pixels, with the digest of the figures in its text chunk "Figures".

    Raises:
        MissingExtraError: If matplotlib is not installed.
    """
    # No pyplot: it has windows and a state of its own, which are the user's.
    canvas = require("matplotlib.figure", "report").Figure(figsize=(10, 4.2))
    canvas.subplots_adjust(left=0.05, right=0.98, top=0.92, bottom=0.25, wspace=0.12)
    runs = figures["settings"]["runs"]
    panels = canvas.subplots(1, 2)
    for axes, statistic in zip(panels, ("kept", "distinct"), strict=True):
        for name, points in figures["mechanisms"].items():
            steps = [point["epsilon"] * figures["unit"] for point in points]
            means, worst = zip(*(point[statistic] for point in points), strict=True)
            colour = COLOURS.get(name, OTHER_COLOUR)
            axes.plot(steps, means, color=colour, marker="o", markersize=4, label=f"{name}, mean")
            axes.plot(steps, worst, color=colour, linestyle=":", label=f"{name}, worst {entry}")
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter("{x:g}")
        axes.set_xlabel("ε·d at the median distance to the nearest neighbour")
        axes.grid(alpha=0.3)
    panels[0].set_title(f"share of draws in which the {entry} stays")
    panels[0].set_ylim(-0.02, 1.04)
    panels[1].set_title(f"different {entry}s in {runs} draws")
    panels[1].set_ylim(0, 1.04 * runs)
    canvas.legend(*panels[0].get_legend_handles_labels(), loc="lower center", ncols=3)
    file = io.BytesIO()
    canvas.savefig(file, format="png", dpi=100, metadata={"Figures": figures_digest(figures)})
    return file.getvalue()


def figures_digest(figures: Mapping[str, Any]) -> str:
    """Return the SHA-256, in hexadecimal, of the figures that a picture shows."""
    shown = {key: value for key, value in figures.items() if key != "settings"}
    return hashlib.sha256(json.dumps(shown).encode()).hexdigest()


def plain(text: object) -> str:
    """Return text as one line of Markdown in which no HTML and no link is active."""
    line = _line(text)
    for mark, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("[", "&#91;")):
        line = line.replace(mark, entity)
    return line


def code(text: object) -> str:
    """Return text as one line of code in Markdown."""
    return "`" + _line(text).replace("`", "'") + "`"


def _card(
    template: str,
    tags: Sequence[str],
    license: str | None,
    name: str,
    provenance: Mapping[str, Any] | None = None,
    licence_file: str | None = None,
    header: Mapping[str, Any] | None = None,
    **shown: Any,
) -> str:
    """Fill a template; `name` is a repository or folder."""
    # Late, because it takes a while to load.
    from huggingface_hub import ModelCardData

    provenance = provenance or {}
    licences: dict[str, Any] = {**licence_header(license, provenance, licence_file)}
    stated = stated_licence(provenance)
    differs = stated is not None and slug(stated) != licences["license"]
    data = ModelCardData(**licences, library_name=LIBRARY_NAME, **(header or {}), tags=[*tags])
    shown |= {"title": name.rpartition("/")[2], "name": json.dumps(name)}
    shown |= {"license": licences["license"], "licence_file": licences.get("license_link")}
    shown |= {"stated": stated, "differs": differs}
    return rendered(template, card_data=data.to_yaml(), **shown)


def rendered(template: str, **shown: Any) -> str:
    """Fill a template of `TEMPLATES`."""
    return str(_environment().get_template(template).render(**shown)) + "\n"


@cache
def _environment() -> Any:
    """Return what compiles templates, each of them once."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=False,  # Markdown: what is not ours goes through `plain` or `code`
        undefined=jinja2.StrictUndefined,
    )
    environment.filters |= {"plain": plain, "code": code}
    return environment


def languages(provenance: Mapping[str, Any]) -> list[str]:
    """Return the codes of the languages that a provenance names; none if one is malformed."""
    given = provenance.get("language")
    codes = given if isinstance(given, list) else [given]
    sound = all(isinstance(code, str) and re.fullmatch("[a-z]{2,3}", code) for code in codes)
    return [*codes] if sound else []


def stated_licence(provenance: Mapping[str, Any]) -> str | None:
    """Return the licence that a provenance names, in one line; None if it names none."""
    licence = provenance.get("licence")
    if not isinstance(licence, str):
        return None
    name = " ".join(licence.split())
    return None if slug(name) in ("", "unknown") else name


def slug(name: str) -> str:
    """Return the name of a licence as the Hub would spell it."""
    return re.sub(r"[^a-z0-9.+]+", "-", name.lower()).strip("-")


def _line(text: object) -> str:
    # Characters that steer a terminal, or turn the text around, are shown by their numbers.
    line = " ".join(str(text).split()).encode("utf-8", "replace").decode()
    return _STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", line)


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


def _pool_facts(provenance: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return rows for the card of a pool: how near texts are to it, and what was left out."""
    facts = []
    coverage: Any = provenance.get("coverage")
    left_out = provenance.get("left_out")
    with suppress(KeyError, TypeError, ValueError):
        cosines = ", ".join(f"{float(coverage[name]):.2f}" for name in ("25%", "50%", "75%"))
        texts = f"{int(coverage['texts']):,}, {coverage['of']}"
        facts.append(("cosine to the nearest sentence", f"quartiles {cosines} (texts: {texts})"))
    if isinstance(left_out, dict) and left_out:
        facts.append(("left out", ", ".join(f"{count} {why}" for why, count in left_out.items())))
    return facts


def _pair(values: Any) -> list[float]:
    first, second = map(float, values)
    return [first, second]


def listed(names: Iterable[str]) -> str:
    """Join names by commas and an "and"."""
    *most, last = [*names] or [""]
    return f"{', '.join(most)} and {last}" if most else last
