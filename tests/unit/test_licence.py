"""Licences: what is refused, and what a header says."""

import re
from pathlib import Path

import pytest

from hf_dxprivacy import DxPrivatizer, EmbeddingSpace
from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError
from hf_dxprivacy.hub.cards import (
    HUB_LICENCES,
    check_licence,
    licence_header,
    require_licence,
)


@pytest.mark.parametrize(
    ("license", "provenance"),
    [
        ("mit", {}),
        ("unknown", {}),
        (None, {"licence": "WordNet"}),
        ("other", {"licence": "WordNet"}),
    ],
)
def test_a_licence_is_enough(license: str | None, provenance: dict[str, object]) -> None:
    require_licence(license, provenance)


@pytest.mark.parametrize(
    "provenance", [{}, {"licence": ""}, {"licence": " - "}, {"licence": None}, {"licence": ["mit"]},
                   {"licence": "Unknown"}, {"license_file": "LICENSE"}],
)  # fmt: skip
def test_none_is_not_enough(provenance: dict[str, object]) -> None:
    with pytest.raises(InvalidValueError, match=r"no licence, .* pass license= \(--license\)"):
        require_licence(None, provenance)


@pytest.mark.parametrize(
    ("license", "near"),
    [
        ("MIT", "'mit'"),
        ("apache2", "'apache-2.0'"),
        ("cc-by-nc-sa-3", "'cc-by-nc-sa-3.0'"),
        ("WordNet", None),
        ("", None),
    ],
)
def test_what_the_hub_does_not_know_is_refused(license: str, near: str | None) -> None:
    with pytest.raises(InvalidValueError, match=f"the Hub has no licence {license!r}") as caught:
        require_licence(license, {"licence": "WordNet"})
    assert ("did you mean" in str(caught.value)) == (near is not None)
    assert near is None or near in str(caught.value)
    with pytest.raises(InvalidValueError, match="for any other licence pass 'other'"):
        check_licence(license)


def test_a_licence_is_a_string() -> None:
    with pytest.raises(InvalidTypeError, match=r"expected license to be a string, got \['mit'\]"):
        require_licence(["mit"], {})  # type: ignore[arg-type]


WORDNET = {"license": "other", "license_name": "wordnet"}


@pytest.mark.parametrize(
    ("license", "licence", "file", "expected"),
    [
        (None, None, None, {"license": "unknown"}),
        (None, None, "LICENSE", {"license": "unknown"}),
        ("mit", None, None, {"license": "mit"}),
        ("mit", "WordNet", "LICENSE", {"license": "mit"}),
        (None, "MIT", None, {"license": "mit"}),
        (None, "CC BY-NC-SA 3.0", None, {"license": "cc-by-nc-sa-3.0"}),
        (None, "WordNet", None, WORDNET),
        (None, "WordNet", "LICENSE.txt", WORDNET | {"license_link": "LICENSE.txt"}),
        ("other", "WordNet", "LICENSE.txt", WORDNET | {"license_link": "LICENSE.txt"}),
        ("other", None, None, {"license": "other"}),
        (None, "Other", None, {"license": "other"}),
        (None, "Princeton's\n own: 3.0", None,
         {"license": "other", "license_name": "princeton-s-own-3.0"}),
    ],
)  # fmt: skip
def test_header(
    license: str | None, licence: str | None, file: str | None, expected: dict[str, str]
) -> None:
    assert licence_header(license, {"licence": licence}, file) == expected
    assert expected["license"] in HUB_LICENCES


def test_names_are_those_of_the_hub() -> None:
    assert {"mit", "pddl", "cc-by-nc-sa-3.0", "unknown", "other"} <= HUB_LICENCES
    assert all(re.fullmatch(r"[a-z0-9.+-]+", name) for name in HUB_LICENCES)


def test_a_privatizer_has_the_licence_of_its_space_unless_told(tmp_path: Path) -> None:
    vectors, provenance = [[0.0], [1.0], [3.0]], {"licence": "cc-by-nc-4.0"}
    space = EmbeddingSpace.from_vectors(["a", "b", "c"], vectors, provenance=provenance)
    space.save_pretrained(tmp_path / "space")
    privatizer = DxPrivatizer(EmbeddingSpace.from_pretrained(tmp_path / "space"), "tem", 1.0)
    privatizer.save_pretrained(tmp_path / "own")
    assert "\nlicense: cc-by-nc-4.0\n" in (tmp_path / "own" / "README.md").read_text("utf-8")
    privatizer.save_pretrained(tmp_path / "other", license="mit")
    card = (tmp_path / "other" / "README.md").read_text("utf-8")
    assert "\nlicense: mit\n" in card
    assert "What it was made from is under: cc-by-nc-4.0." in card
