"""A released dataset with its card: data, README, and guarantee and Croissant as JSON."""

import hashlib
import json
import logging
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from hf_dxprivacy._version import __version__
from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError, describe_columns
from hf_dxprivacy.guarantee import Disclosure, Kind, marked, upward
from hf_dxprivacy.hub.artifact import HEADER, read_json, to_json
from hf_dxprivacy.hub.atomic import atomic_write
from hf_dxprivacy.hub.cards import (
    PRIVATIZER_TAGS,
    README,
    check_licence,
    licence_header,
    listed,
    rendered,
    slug,
)
from hf_dxprivacy.hub.download import BUILTIN, is_builtin
from hf_dxprivacy.hub.publish import Publishable

logger = logging.getLogger(__name__)

GUARANTEE, CROISSANT, DATA = "guarantee.json", "croissant.json", "data"
TAGS = [*PRIVATIZER_TAGS, "metric-dp"]
PRIVATIZED = "Privatized under ε·d (metric differential privacy), not anonymous."
# Entries of a claim that are published; whatever else stands in a report is for its owner.
CLAIMED = (
    "privatizer",
    "guarantee",
    "plain",
    "mechanism",
    "space",
    "pool",
    "options",
    "privatized",
    "left_in_clear",
)
# What of these a claim need not have.
OPTIONAL = {"pool", "left_in_clear"}

# Among the licences of the parts of a pool: that of a part which states none.
UNKNOWN = "unknown"

# Rows that a card shows, and characters of each of their texts.
SHOWN_ROWS, SHOWN_CHARACTERS = 3, 200

_SIZES = ["n<1K", "1K<n<10K", "10K<n<100K", "100K<n<1M", "1M<n<10M", "10M<n<100M", "100M<n<1B"]
_ENCODINGS = {"csv": "text/csv", "tsv": "text/tab-separated-values", "txt": "text/plain"}
_ENCODINGS |= {"jsonl": "application/jsonlines", "parquet": "application/vnd.apache.parquet"}
_CONTEXT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "sc": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "dct": "http://purl.org/dc/terms/",
    "conformsTo": "dct:conformsTo",
}
_CONFORMS = ["http://mlcommons.org/croissant/1.0", "http://mlcommons.org/croissant/RAI/1.0"]


class Part(NamedTuple):
    """A split: its number of rows, its files, and a function that writes them into a folder."""

    rows: int
    files: tuple[str, ...]
    write: Callable[[Path], None]


@dataclass(frozen=True, eq=False, repr=False)
class ReleasedDataset(Publishable):
    """A released dataset with its card, as `dataset_card` of a privatizer makes it.

    It prints as the card. `push_to_hub` makes a dataset repository of the rows, the card,
    ``guarantee.json`` (the fields of `PrivacyGuarantee.to_dict`, how the rows were made, and the
    SHA-256 of each file of data) and ``croissant.json`` (Croissant RAI 1.0, MLCommons 2024). All of
    them are a function of the released rows and of the guarantee.

    Attributes:
        claim: What is claimed of the rows: JSON values under the names `CLAIMED`.
        columns: The names of all columns.
        parts: The data by split; empty if only columns were named.
        examples: A few released rows.
        reading: Arguments with which `datasets` reads the files, if it needs some.
        license: Licence of the dataset, as the Hub names it.
        description: What the dataset is about, as its publisher says.
        with_originals: Whether columns may be left that hold the original texts.
    """

    published_files: ClassVar[tuple[str, ...]] = (README, GUARANTEE, CROISSANT, f"{DATA}/*")
    repo_type: ClassVar[str] = "dataset"

    claim: Mapping[str, Any]
    columns: tuple[str, ...]
    parts: Mapping[str, Part] = field(default_factory=dict)
    examples: Sequence[Mapping[str, Any]] = ()
    reading: Mapping[str, Any] = field(default_factory=dict)
    license: str | None = None
    description: str | None = None
    with_originals: bool = False

    def __post_init__(self) -> None:
        check_licence(self.license)
        if not isinstance(self.description, (str, type(None))):
            raise InvalidTypeError(
                f"expected description to be a text, got a {type(self.description).__name__}"
            )
        require_released(self.columns, self.claim["privatized"], self.with_originals)

    def __str__(self) -> str:
        return self._card(None, "released")

    @property
    def original_columns(self) -> list[str]:
        """Columns that still hold the original texts."""
        return _originals(self.columns, self.claim["privatized"])

    @property
    def columns_in_clear(self) -> list[str]:
        """Columns that are released as they were, without any guarantee; no text of them."""
        others = {*self.claim["privatized"], *self.original_columns}
        return [name for name in self.columns if name not in others]

    @property
    def left_in_clear(self) -> list[str]:
        """What messages in columns of chats leave in clear, with its numbers, in words."""
        return said_of_left(self.claim.get("left_in_clear", {}))

    @property
    def space_licences(self) -> list[str]:
        """Licences of the space or pool of all that was released; at last "unknown" of a part."""
        return [*self.claim["space"]["licences"]]

    @property
    def non_commercial(self) -> bool:
        """Whether the space or pool is under a licence that forbids commercial use."""
        return any(map(_forbids_commerce, self.space_licences))

    def _facts(self) -> dict[str, Any]:
        """Return what is claimed, without what tells about the machine or the originals."""
        facts = {name: self.claim[name] for name in CLAIMED if name in self.claim}
        space = facts["space"]
        if not (space["commit"] or space["ships"]):
            facts["space"] = space | {"name": None}
        columns = {"in_clear": self.columns_in_clear, "original_text": self.original_columns}
        rows = {split: part.rows for split, part in self.parts.items()}
        return {**facts, **columns, "rows": rows, "hf_dxprivacy": __version__}

    def _save(self, folder: Path) -> None:
        digests: dict[str, str] = {}
        for part in self.parts.values():
            (folder / DATA).mkdir(exist_ok=True)
            part.write(folder)
            digests |= {name: sha256_of(folder / name) for name in part.files}
        space = self.claim["space"]
        # A report, which may have been altered, must not choose any other folder.
        if self._kind == "pool" and space["ships"] and is_builtin(space["name"]):
            # The released sentences are copies, which have to bear it.
            for path in (BUILTIN / space["name"]).glob("LICENSE*"):
                atomic_write(folder / path.name, [path.read_bytes()])
        content = {**HEADER, **self._facts(), "files": digests}
        atomic_write(folder / GUARANTEE, [to_json(content)])

    def _write_card(self, folder: Path, *, license: str | None, name: str) -> None:
        files = read_json(folder / GUARANTEE, "expected a released dataset")["files"]
        card, chosen = self._card(license, name), license or self.license or "unknown"
        if self.non_commercial and not _forbids_commerce(chosen):
            logger.warning(
                "all that was released is from a %s under %s, which forbids commercial use, and "
                "the licence %r does not; the card names both",
                self._kind,
                " and ".join(self.space_licences),
                chosen,
            )
        atomic_write(folder / CROISSANT, [to_json(self._croissant(license, name, files))])
        atomic_write(folder / README, [card.encode()])

    def _check_publishable(self, license: str | None) -> None:
        check_licence(license)
        if not self.parts:
            raise InvalidValueError(
                "a card of columns has no data to push; pass the released dataset to dataset_card"
            )
        if (license or self.license) is None:
            kind, known = self._kind, " and ".join(self.space_licences)
            of_space = f"; the {kind} that all in it comes from is under {known}" if known else ""
            raise InvalidValueError(
                "there is no licence, and others may use a dataset only under one; pass license= "
                f"(--license), for instance 'cc-by-4.0', if the rights are yours to give{of_space}"
            )

    @property
    def _kind(self) -> str:
        return "pool" if "pool" in self.claim else "space"

    def _card(self, license: str | None, name: str) -> str:
        from huggingface_hub import DatasetCardData

        facts, stated = self._facts(), self.claim["guarantee"]
        licences: dict[str, Any] = {**licence_header(license or self.license, {}, None)}
        named = ("epsilon", "metric", "ldp_epsilon", "unit", "among")
        summary = {key: stated[key] for key in named if key in stated}
        data = DatasetCardData(
            **licences,
            language=self.claim["space"]["languages"] or None,
            pretty_name=name.rpartition("/")[2],
            size_categories=[_size(sum(facts["rows"].values()))] if self.parts else None,
            tags=TAGS,
            configs=self._configs() or None,
            dx_privacy={"mechanism": facts["mechanism"]["mechanism"], **summary},
        )
        return rendered(
            "dataset.md",
            card_data=data.to_yaml(),
            title=name.rpartition("/")[2],
            name=json.dumps(name),
            license=licences["license"],
            description=self.description,
            facts=facts,
            kind=self._kind,
            columns=[(column, self._said_of(column)) for column in self.columns],
            warnings=self._warnings(),
            examples=[_line(row, self.original_columns) for row in self.examples],
            splits=[*self.parts],
            plain=self._plain(),
            covered=self._covered(),
            bound=self._bound(),
            **self._sentences(),
            licences=self.space_licences,
            non_commercial=self.non_commercial,
        )

    def _configs(self) -> list[dict[str, Any]]:
        files = [{"split": split, "path": [*part.files]} for split, part in self.parts.items()]
        one = {"config_name": "default", "data_files": files, **self.reading}
        return [one] if files else []

    def _said_of(self, column: str) -> str:
        """Say in a few words what a column holds."""
        if column in self.original_columns:
            return "**the ORIGINAL text, without any protection**"
        path = self.claim["privatized"].get(column)
        if path is None:
            return "in clear: no guarantee holds for it"
        if "[]" not in path:
            slots = self.claim["privatizer"] == "SlotPrivatizer"
            return "words of slots: privatized; all others: in clear" if slots else "privatized"
        roles = self.claim["options"].get("roles")
        of = f", of the role {' or '.join(roles)} only" if roles else ""
        return f"texts at {path}{of}: privatized; everything else in it: in clear"

    def _covered(self) -> str:
        """Say what was replaced by what."""
        unit, names = self.claim["guarantee"]["unit"], [*self.claim["privatized"]]
        what = "word of a slot" if self.claim["privatizer"] == "SlotPrivatizer" else unit
        by = "sentence of a public pool" if "pool" in self.claim else f"{unit} of a public space"
        options, law = self.claim["options"], self.claim["mechanism"]["mechanism"]
        what = "word outside of redacted entities" if (redacted := options.get("redact")) else what
        where = f"column{'s' * (len(names) > 1)} {_quoted(names)}"
        nested = {n: path for n, path in self.claim["privatized"].items() if "[]" in path}
        of = f" of the role {' or '.join(options['roles'])}" if options.get("roles") else ""
        where += f" (texts{of} at {listed(nested.values())})" if nested else ""
        near = "so that near ones are likely and far ones are not"
        how = "and all others alike" if law == "krr" else near
        own = "" if "pool" in self.claim else ", the same one or another"
        found = [f"Each {what} of {where} was replaced by a {by}{own}, drawn at random {how}."]
        if redacted:
            found.append(
                f"What was found as {' or '.join(redacted)}, with all words that it touches, "
                f"became constants such as <{redacted[0]}>; what was missed is a word as any other."
            )
        if nested:
            among = f": {'; '.join(self.left_in_clear)}, and all other fields"
            more = among * bool(self.left_in_clear)
            found.append(f"All else in {_quoted([*nested])} is in clear{more}.")
        if "slot" in what:
            found.append("Every other word is in clear.")
        if options.get("stopwords"):
            found.append(f"But {options['stopwords']} stop words are in clear.")
        if unknown := {"keep": "are in clear", "drop": "were removed"}.get(options.get("oov")):
            found.append(f"But words out of vocabulary {unknown}.")
        return " ".join(found)

    def _bound(self) -> str:
        """Say the guarantee in the terms of its theory."""
        stated, label = self.claim["guarantee"], self.claim["options"].get("label_column")
        unit, of = stated["unit"], " of the same label" if label else ""
        return (
            f"But for what is not covered, whatever was released is at most exp(ε·d) times as "
            f"likely if the {unit} was w as if it was any other {unit} w′{of} at a distance d "
            f"from w, where ε = {upward(stated['epsilon'], 6)} per unit of d, which is "
            f"{stated['metric']}. Bounds of several {unit}s of a row, of columns and of further "
            f"releases add up: the unit is the {unit}, not the person."
        )

    def _sentences(self) -> dict[str, list[str]]:
        """Sort the disclosures: what is not covered, and what the guarantee rests on."""
        # That `datasets` keeps traces beside the rows is no concern of those who get them.
        uncovered = self._said("in_clear", "equality_shows", "hole", "warning")
        return {"uncovered": uncovered, "rests_on": self._said("condition", "exact_level")}

    def _said(self, *kinds: Kind) -> list[str]:
        stated = self.claim["guarantee"]
        # Reports before 0.4 have sentences only.
        records = [Disclosure(**each) for each in stated.get("disclosures", ())]
        records = records or [*map(marked, stated["assumptions"])]
        return [each.text for each in records if each.kind in kinds]

    def _warnings(self) -> list[str]:
        """Return what a reader has to know first."""
        left = self.original_columns
        own = f"WARNING: column {_quoted(left)} holds the ORIGINAL text, without any protection."
        return [own] * bool(left) + self._said("warning", "hole")

    def _croissant(
        self, license: str | None, name: str, files: Mapping[str, str]
    ) -> dict[str, Any]:
        """Return the metadata in Croissant 1.0, with its RAI vocabulary."""
        from huggingface_hub import constants

        url = f"{constants.ENDPOINT}/datasets/{name}" if "/" in name else ""
        about = [self.description, PRIVATIZED, self._covered()]
        return {
            "@context": _CONTEXT,
            "@type": "sc:Dataset",
            "conformsTo": _CONFORMS,
            "name": name.rpartition("/")[2],
            "description": " ".join(filter(None, about)),
            "license": licence_header(license or self.license, {}, None)["license"],
            **({"url": url} if url else {}),
            "inLanguage": self.claim["space"]["languages"],
            "keywords": TAGS,
            "distribution": [
                {
                    "@type": "cr:FileObject",
                    "@id": file,
                    "name": file,
                    "contentUrl": f"{url}/resolve/main/{file}" if url else file,
                    "encodingFormat": _ENCODINGS[file.removesuffix(".gz").rpartition(".")[2]],
                    "sha256": digest,
                }
                for file, digest in files.items()
            ],
            **self._rai(),
        }

    def _rai(self) -> dict[str, Any]:
        """Return what the RAI vocabulary of Croissant has words for."""
        covered, sentences, clear = self._covered(), self._sentences(), self.columns_in_clear
        left = [f"In clear, without any guarantee: column {_quoted(clear)}."] * bool(clear)
        found = {
            "personalSensitiveInformation": [PRIVATIZED, covered, *self._warnings(), *left],
            "dataManipulationProtocol": " ".join([covered, *self._plain(), self._bound()]),
            "dataPreprocessingProtocol": [covered],
            "dataLimitations": [*sentences["uncovered"], *sentences["rests_on"]],
            "dataBiases": [
                f"What the {self._kind} lacks (names, dialects, other languages) comes out as an "
                "arbitrary entry of it, so that some groups' texts lose more than others'."
            ],
            "dataUseCases": [
                "Training and evaluation of models that may lose some of a text's detail. Not for "
                "finding out what the originals said or who wrote them."
            ],
            "dataReleaseMaintenancePlan": [
                "Every further release of the same originals adds its bound to this one."
            ],
        }
        return {f"rai:{name}": value for name, value in found.items()}

    def _plain(self) -> list[str]:
        """Return the plain lines but that on what is not covered, which has a section here."""
        return [*self.claim["plain"][:2]]


def require_released(
    columns: Sequence[str], released: Mapping[str, str], with_originals: bool
) -> None:
    """Require columns that a privatizer writes, and unasked none of those that they are made from.

    Raises:
        InvalidValueError: If a column is missing, or still holds the original texts.
    """
    for name in released:
        if name not in columns:
            raise InvalidValueError(
                f"there is no column {name!r}, which holds the released texts; "
                f"{describe_columns(columns, name)}; pass what map(privatizer) returned"
            )
    if (left := _originals(columns, released)) and not with_originals:
        raise InvalidValueError(
            f"column {_quoted(left)} still holds the ORIGINAL text, which would go out with the "
            "release; leave it out (without output_column= it is overwritten), or ask for it by "
            "with_originals=True (--with-originals)"
        )


def _originals(columns: Iterable[str], released: Mapping[str, str]) -> list[str]:
    # Texts at a path are replaced in place.
    return [name for name in columns if name in released.values() and name not in released]


def said_of_left(counts: Mapping[str, Any]) -> list[str]:
    """Return what is left in clear in words, from the counts in a claim, without what is none.

    Raises:
        InvalidValueError: If the counts are of another form.
    """
    try:
        calls, texts = counts.get("calls_of_tools", 0), counts.get("texts_of_roles", {})
        total, others = sum(texts.values()), counts.get("other_strings", 0)
        words = f"({counts.get('words_of_these', 0):,} words)"
        roles = f"role{'s' * (len(texts) > 1)} {', '.join(texts)} {words}"
        said = {
            f"{calls:,} call{'s' * (calls > 1)} of tools": calls,
            f"{total:,} text{'s' * (total > 1)} of the {roles}": total,
            f"{others:,} without a text, but with other strings": others,
        }
    except (AttributeError, TypeError, ValueError):
        raise InvalidValueError(
            "expected left_in_clear to be counts; take a report as it was written"
        ) from None
    return [text for text, count in said.items() if count]


def _quoted(names: Sequence[str]) -> str:
    return listed(map(repr, names))


def _forbids_commerce(licence: str) -> bool:
    name = slug(licence)
    return "-nc" in name or "noncommercial" in name.replace("-", "")


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        digest = hashlib.sha256()
        while piece := file.read(1 << 20):
            digest.update(piece)
        return digest.hexdigest()


def _size(rows: int) -> str:
    """Return the size category of the Hub."""
    step = max(0, int(math.log10(max(rows, 1))) - 2)
    return _SIZES[step] if step < len(_SIZES) else "n>1B"


def _line(row: Mapping[str, Any], hidden: Sequence[str]) -> str:
    """Return a row as a line of JSON, with its long texts cut."""

    def cut(value: Any) -> Any:
        if isinstance(value, str) and len(value) > SHOWN_CHARACTERS:
            return value[:SHOWN_CHARACTERS] + "…"
        if isinstance(value, Mapping):
            return {key: cut(each) for key, each in value.items()}
        if isinstance(value, (list, tuple)):
            more = ["…"] if len(value) > 2 * SHOWN_ROWS else []
            return [cut(each) for each in value[: 2 * SHOWN_ROWS]] + more
        return value

    shown = {name: cut(value) for name, value in row.items() if name not in hidden}
    text = json.dumps(shown, ensure_ascii=False, default=_shown)
    # Halves of surrogate pairs cannot be encoded.
    return text.encode("utf-8", "replace").decode()


def _shown(value: Any) -> str:
    """Show what JSON does not have: bytes by their type, numbers as they were written."""
    return "bytes" if isinstance(value, bytes) else str(getattr(value, "text", value))
