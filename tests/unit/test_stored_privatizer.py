"""Privatizers to and from folders: what is stored, what is not, and what is refused."""

import json
import logging
import re
from pathlib import Path
from typing import Any

import pytest

from hf_dxprivacy.errors import ArtifactError, InvalidTypeError, InvalidValueError
from hf_dxprivacy.hub.artifact import bind
from hf_dxprivacy.privatizers.text_privatizer import DxPrivatizer
from hf_dxprivacy.spaces import EmbeddingSpace

TEXT = "waab waac, waad!"

# So long that no figure, digest or path holds it by chance.
SEED = 77_177_177_177_177_177_177


@pytest.fixture
def space(tmp_path: Path, euclidean_space: EmbeddingSpace) -> EmbeddingSpace:
    """A space that can be referred to."""
    euclidean_space.save_pretrained(tmp_path / "space")
    return EmbeddingSpace.from_pretrained(tmp_path / "space")


@pytest.fixture
def folder(tmp_path: Path, space: EmbeddingSpace) -> Path:
    """A stored privatizer."""
    stored = tmp_path / "stored"
    DxPrivatizer(space, "tem", 2.0, beta=0.01, stopwords={"waac"}, seed=SEED).save_pretrained(
        stored
    )
    return stored


def test_stop_words_of_token_lists(tmp_path: Path, space: EmbeddingSpace) -> None:
    """Only lists of tokens have such words; whether there are any is not stored."""
    options: dict[str, Any] = {"stopwords": {"well-known"}, "is_split_into_words": True}
    DxPrivatizer(space, "tem", 2.0, **options).save_pretrained(tmp_path / "stored")
    with pytest.raises(ArtifactError, match=r"'well-known'; .* is_split_into_words=True"):
        DxPrivatizer.from_pretrained(tmp_path / "stored")
    loaded = DxPrivatizer.from_pretrained(tmp_path / "stored", is_split_into_words=True)
    assert loaded.stopwords == {"well-known"}


def _change(folder: Path, **entries: Any) -> None:
    path = folder / "privatizer.json"
    # By one who knows what he does, with a digest that is right again.
    path.write_text(json.dumps(bind(json.loads(path.read_text()) | entries)))


@pytest.mark.parametrize(
    "options",
    [
        {"mechanism": "calibrated"},
        {"mechanism": "tem", "beta": 0.01, "gamma": 3.0},
        {"mechanism": "laplace", "stopwords": {"waab", "waad"}, "oov": "drop"},
        {"mechanism": "mahalanobis", "lam": 0.25, "case": "preserve", "text_column": ["a", "b"]},
        {"mechanism": "laplace", "text_column": "a", "output_column": "b"},
    ],
)
def test_a_stored_privatizer_comes_back(
    tmp_path: Path, space: EmbeddingSpace, options: dict[str, Any]
) -> None:
    privatizer = DxPrivatizer(space, epsilon=3.0, **options)
    privatizer.save_pretrained(tmp_path / "stored")
    loaded = DxPrivatizer.from_pretrained(tmp_path / "stored")
    assert loaded.config == privatizer.config
    assert loaded.guarantee == privatizer.guarantee
    assert (loaded.text_columns, loaded.output_columns) == (
        privatizer.text_columns,
        privatizer.output_columns,
    )
    first = DxPrivatizer(space, epsilon=3.0, seed=5, **options)
    second = DxPrivatizer.from_pretrained(tmp_path / "stored", seed=5)
    assert first.privatize([TEXT] * 20) == second.privatize([TEXT] * 20)


def test_a_built_in_space_is_referred_to_by_name(tmp_path: Path) -> None:
    privatizer = DxPrivatizer.from_pretrained("wordnet-poincare", mechanism="tem", epsilon=3.0)
    privatizer.save_pretrained(tmp_path)
    stored = json.loads((tmp_path / "privatizer.json").read_text())["space"]
    assert (stored["name"], stored["commit"]) == ("wordnet-poincare", None)
    assert DxPrivatizer.from_pretrained(tmp_path).space.location == "wordnet-poincare"


def test_neither_seed_nor_anything_unknown_is_stored(folder: Path) -> None:
    stored = json.loads((folder / "privatizer.json").read_text())
    assert set(stored) == {
        "format_version", "library_name", "space", "mechanism", "epsilon", "options",
        "text_column", "output_column", "stopwords", "oov", "case", "config_sha256",
    }  # fmt: skip
    for path in folder.iterdir():
        assert str(SEED).encode() not in re.sub(rb"[0-9a-f]{40,}", b"", path.read_bytes())
    loaded = DxPrivatizer.from_pretrained(folder)
    assert loaded.seed is None
    assert not any("seed" in sentence for sentence in loaded.guarantee.assumptions)


def test_loading_states_epsilon(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="hf_dxprivacy"):
        DxPrivatizer.from_pretrained(folder)
    assert "ε = 2 per unit of Euclidean distance" in caplog.text


def test_another_text_column_leaves_no_original_beside_the_result(folder: Path) -> None:
    loaded = DxPrivatizer.from_pretrained(folder, text_column="review")
    assert set(loaded({"review": TEXT})) == {"review"}


@pytest.mark.parametrize(
    "arguments", [{"oov": "keep"}, {"mechanism": "laplace"}, {"stopwords": None}, {"beta": 0.1}]
)
def test_a_stored_privatizer_keeps_its_settings(folder: Path, arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidTypeError, match=f"its own settings, got {next(iter(arguments))}"):
        DxPrivatizer.from_pretrained(folder, **arguments)


def test_epsilon_with_a_stored_privatizer_is_refused(folder: Path) -> None:
    with pytest.raises(InvalidValueError, match="leave epsilon out"):
        DxPrivatizer.from_pretrained(folder, epsilon=2.0)


def test_a_space_without_epsilon_is_refused(space: EmbeddingSpace) -> None:
    assert space.location is not None
    with pytest.raises(InvalidValueError, match="epsilon is missing"):
        DxPrivatizer.from_pretrained(space.location)


@pytest.mark.parametrize(
    "name", ["space", "mechanism", "epsilon", "options", "text_column", "stopwords", "oov", "case"]
)
def test_a_missing_field_is_refused(folder: Path, name: str) -> None:
    path = folder / "privatizer.json"
    stored = json.loads(path.read_text())
    del stored[name]
    path.write_text(json.dumps(bind(stored)))
    with pytest.raises(ArtifactError, match=rf"privatizer\.json: missing {name}"):
        DxPrivatizer.from_pretrained(folder)


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"noise_off": True}, "unknown noise_off"),
        ({"format_version": 2}, "format_version is 2, this version reads up to 1"),
        ({"format_version": 0}, "format_version is 0, and the first format is 1"),
        ({"format_version": None}, "not written by hf_dxprivacy"),
        ({"library_name": "other"}, "not written by hf_dxprivacy"),
        ({"epsilon": "2"}, "epsilon cannot be '2'"),
        ({"epsilon": -2.0}, "expected epsilon > 0"),
        ({"epsilon": True}, "epsilon cannot be True"),
        ({"epsilon": 10**400}, "expected epsilon"),
        ({"stopwords": [[]]}, "stopwords"),
        ({"mechanism": "none"}, "expected mechanism to be one of"),
        ({"options": {"lam": 0.5}}, "no option 'lam'"),
        ({"options": {"seed": SEED}}, "no option 'seed'"),
        ({"options": {"epsilon": 50.0}}, "no option 'epsilon'"),
        ({"options": {"oov": "keep"}}, "no option 'oov'"),
        ({"oov": "whatever"}, "expected oov to be one of"),
        ({"space": {"name": "x"}}, "missing commit, digest"),
        ({"space": "wordnet-gloss"}, "space cannot be 'wordnet-gloss'"),
        ({"text_column": "text"}, "text_column cannot be 'text'"),
    ],
)
def test_an_altered_file_is_refused(folder: Path, entries: dict[str, Any], message: str) -> None:
    _change(folder, **entries)
    with pytest.raises(ArtifactError, match=rf"privatizer\.json: .*{message}"):
        DxPrivatizer.from_pretrained(folder)


def test_an_edit_by_hand_is_refused(folder: Path) -> None:
    path = folder / "privatizer.json"
    stored = path.read_text()
    assert '"epsilon": 2.0' in stored
    path.write_text(stored.replace('"epsilon": 2.0', '"epsilon": 2.5'))
    with pytest.raises(ArtifactError, match=r"privatizer\.json: an entry was changed after"):
        DxPrivatizer.from_pretrained(folder)


def test_a_file_of_version_0_3_is_read(folder: Path) -> None:
    path = folder / "privatizer.json"
    stored = json.loads(path.read_text())
    del stored["config_sha256"]
    path.write_text(json.dumps(stored))
    assert DxPrivatizer.from_pretrained(folder).epsilon == 2.0


def test_a_truncated_file_is_refused(folder: Path) -> None:
    path = folder / "privatizer.json"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(ArtifactError, match=r"privatizer\.json: truncated or not JSON"):
        DxPrivatizer.from_pretrained(folder)


def test_a_space_that_was_changed_is_refused(folder: Path, space: EmbeddingSpace) -> None:
    assert space.location is not None
    space.rescale(2.0).save_pretrained(space.location)
    with pytest.raises(ArtifactError, match="the space was changed since"):
        DxPrivatizer.from_pretrained(folder)


def test_a_space_in_memory_can_not_be_referred_to(
    tmp_path: Path, euclidean_space: EmbeddingSpace
) -> None:
    with pytest.raises(InvalidValueError, match="in memory only"):
        DxPrivatizer(euclidean_space, "tem", 1.0).save_pretrained(tmp_path / "stored")
    assert not (tmp_path / "stored").exists()


def test_a_local_space_can_not_be_pushed(folder: Path) -> None:
    loaded = DxPrivatizer.from_pretrained(folder)
    with pytest.raises(InvalidValueError, match="push it with"):
        loaded.push_to_hub("me/privatizer", license="mit")
