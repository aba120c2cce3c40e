"""Lists of neighbours: built, stored beside the vectors, and refused where they do not belong."""

import json
import pickle
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

from hf_dxprivacy.errors import ArtifactError, InvalidValueError
from hf_dxprivacy.hub import update_config
from hf_dxprivacy.mechanisms import TruncatedExponential
from hf_dxprivacy.privatizers.text_privatizer import DxPrivatizer
from hf_dxprivacy.randomness import keyed_generator
from hf_dxprivacy.spaces import EmbeddingSpace, space_artifact
from hf_dxprivacy.spaces.partition import DistanceBounds, Partition

FILE = "neighbours.safetensors"
K = 20


def write(space: EmbeddingSpace, folder: Path) -> Path:
    """Save a space without its card, which takes longer than what is tested here."""
    space.neighbour_distances()
    space_artifact.write(space, folder)
    return folder


def entry(folder: Path) -> dict[str, Any]:
    described = json.loads((folder / "config.json").read_text())["neighbour_lists"]
    assert isinstance(described, dict)
    return described


@pytest.fixture(scope="module")
def listed(euclidean_space: EmbeddingSpace) -> EmbeddingSpace:
    return euclidean_space.build_neighbours(K, progress=False)


@pytest.fixture
def folder(tmp_path: Path, listed: EmbeddingSpace) -> Path:
    return write(listed, tmp_path / "space")


@pytest.mark.parametrize("name", ["euclidean", "poincare"])
def test_stored_lists_are_those_that_would_be_worked_out(
    name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    space: EmbeddingSpace = request.getfixturevalue(f"{name}_space")
    folder = write(space.build_neighbours(K, progress=False), tmp_path / "space")
    loaded = EmbeddingSpace.from_pretrained(folder, neighbour_lists=True)
    assert loaded.digest == space.digest
    ids = np.array([0, 7, -1, 499])
    found = Partition(space, K)
    np.testing.assert_array_equal(loaded.partition().order, found.order)
    vars(loaded.partition())["bounds"] = None  # that of unknown words is stored too
    np.testing.assert_array_equal(loaded.block_bounds(ids), found.bounds(ids))
    assert loaded.block_bounds(ids).shape == (4, K)


@pytest.mark.parametrize("name", ["euclidean", "poincare"])
def test_lists_of_version_0_2_without_unknown_words_draw_the_same(
    name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    listed = request.getfixturevalue(f"{name}_space").build_neighbours(K, progress=False)
    lists = listed.neighbour_lists
    older = replace(lists, lower=lists.lower[:-1])
    folder = write(listed._with(neighbour_lists=older), tmp_path / "older")
    loaded = EmbeddingSpace.from_pretrained(folder, neighbour_lists=True)
    assert len(loaded.neighbour_lists.lower) == len(loaded)
    for ids in (np.array([-1, 499, -1, 0]), np.arange(-1, 500)):
        np.testing.assert_array_equal(loaded.block_bounds(ids), listed.block_bounds(ids))
        laws = [TruncatedExponential(space, 3.0) for space in (loaded, listed)]
        assert laws[0].noise_parameters == laws[1].noise_parameters
        np.testing.assert_array_equal(*[law.sample(ids, keyed_generator(1)) for law in laws])


def test_the_file_is_safetensors(folder: Path, listed: EmbeddingSpace) -> None:
    tensors = load_file(folder / FILE)
    assert listed.neighbour_lists is not None
    assert sorted(tensors) == ["lower", "order"]
    for name, values in tensors.items():
        np.testing.assert_array_equal(getattr(listed.neighbour_lists, name), values)


def test_a_copy_of_the_draws_needs_the_lists_only(folder: Path, listed: EmbeddingSpace) -> None:
    loaded = EmbeddingSpace.from_pretrained(folder, neighbour_lists=True)
    ids = np.arange(-1, 500)
    drawn = [
        TruncatedExponential(space, 3.0).sample(ids, keyed_generator(1))
        for space in (listed, loaded)
    ]
    np.testing.assert_array_equal(*drawn)


def test_lists_are_read_only_when_asked_for_and_mapped(folder: Path) -> None:
    assert EmbeddingSpace.from_pretrained(folder).neighbour_lists is None
    (folder / FILE).rename(folder / "elsewhere")
    assert EmbeddingSpace.from_pretrained(folder).neighbour_lists is None
    (folder / "elsewhere").rename(folder / FILE)
    lists = EmbeddingSpace.from_pretrained(folder, neighbour_lists=True).neighbour_lists
    assert lists is not None
    base: Any = lists.lower
    while isinstance(base, np.ndarray) and not isinstance(base, np.memmap):
        base = base.base
    assert isinstance(base, np.memmap)
    assert not lists.order.flags.writeable


def test_a_process_gets_the_lists_with_the_space(
    folder: Path, listed: EmbeddingSpace, euclidean_space: EmbeddingSpace
) -> None:
    for space in (listed, EmbeddingSpace.from_pretrained(folder, neighbour_lists=True)):
        pickled = pickle.dumps(space)
        assert len(pickled) < 2000
        space_artifact._known.clear()
        space_artifact._recent.clear()
        again = pickle.loads(pickled)
        assert again is not space
        assert again.neighbour_lists.sha256 == space.neighbour_lists.sha256
    assert pickle.loads(pickle.dumps(euclidean_space)).neighbour_lists is None


def test_an_index_and_lists_go_together(tmp_path: Path, listed: EmbeddingSpace) -> None:
    folder = write(listed.build_index("ivf"), tmp_path / "both")
    both = EmbeddingSpace.from_pretrained(folder, index="ivf", neighbour_lists=True)
    assert both.index is not None
    assert both.neighbour_lists is not None
    again = pickle.loads(pickle.dumps(both))
    assert (again.index, again.neighbour_lists) == (both.index, both.neighbour_lists)
    assert both.rescale(2.0).neighbour_lists is None


def test_lists_of_an_earlier_space_do_not_stay(
    folder: Path, euclidean_space: EmbeddingSpace
) -> None:
    write(euclidean_space, folder)
    assert not (folder / FILE).exists()
    with pytest.raises(ArtifactError, match=r"stored without lists .* space.build_neighbours\(\)"):
        EmbeddingSpace.from_pretrained(folder, neighbour_lists=True)


def test_lists_of_another_space_are_refused(folder: Path, euclidean_space: EmbeddingSpace) -> None:
    other = write(euclidean_space.rescale(2.0), folder.parent / "other")
    shutil.copy(folder / FILE, other / FILE)
    update_config(other, {"neighbour_lists": entry(folder)})
    with pytest.raises(ArtifactError, match=r"neighbours\.safetensors was made for another space"):
        EmbeddingSpace.from_pretrained(other, neighbour_lists=True)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("order", 500, "does not name every word of the space once"),
        ("order", -1, "does not name every word of the space once"),
        ("lower", np.nan, "negative or not a number"),
        ("lower", -1.0, "negative or not a number"),
    ],
)
def test_impossible_lists_are_refused(
    tmp_path: Path, euclidean_space: EmbeddingSpace, field: str, value: float, message: str
) -> None:
    false = euclidean_space.build_neighbours(K, progress=False)
    assert false.neighbour_lists is not None
    values = getattr(false.neighbour_lists, field)
    values.setflags(write=True)
    values.flat[-1] = value
    folder = write(false, tmp_path / "space")
    with pytest.raises(ArtifactError, match=message):
        EmbeddingSpace.from_pretrained(folder, neighbour_lists=True)


@pytest.mark.parametrize("k", [0, K + 1, 501])
def test_lists_of_another_length_are_refused(folder: Path, k: int) -> None:
    update_config(folder, {"neighbour_lists": entry(folder) | {"k": k}})
    with pytest.raises(ArtifactError, match=f"no lists of {k} neighbours of 500 words"):
        EmbeddingSpace.from_pretrained(folder, neighbour_lists=True)


@pytest.mark.parametrize("k", [0, 501])
def test_lists_of_impossible_blocks_are_refused(
    tmp_path: Path, euclidean_space: EmbeddingSpace, k: int
) -> None:
    lists = DistanceBounds(np.arange(500, dtype=np.int32), np.zeros((500, k), dtype=np.float32))
    folder = write(euclidean_space._with(neighbour_lists=lists), tmp_path / "space")
    with pytest.raises(ArtifactError, match=f"no lists of {k} neighbours of 500 words"):
        EmbeddingSpace.from_pretrained(folder, neighbour_lists=True)


@pytest.mark.parametrize("change", [{"k": "20"}, {"sha256": None}, {"space": 5}])
def test_a_damaged_entry_is_refused(folder: Path, change: dict[str, Any]) -> None:
    update_config(folder, {"neighbour_lists": entry(folder) | change})
    with pytest.raises(ArtifactError, match="the entry neighbour_lists lacks one of k, sha256"):
        EmbeddingSpace.from_pretrained(folder, neighbour_lists=True)


def test_a_damaged_file_is_refused(folder: Path) -> None:
    content = bytearray((folder / FILE).read_bytes())
    content[-1] ^= 1
    (folder / FILE).write_bytes(content)
    with pytest.raises(ArtifactError, match=r"neighbours.safetensors: SHA-256 is .* altered"):
        EmbeddingSpace.from_pretrained(folder, neighbour_lists=True)


def test_lists_have_a_length(euclidean_space: EmbeddingSpace) -> None:
    with pytest.raises(InvalidValueError, match="k"):
        euclidean_space.build_neighbours(0)
    lists = euclidean_space.build_neighbours(1000, progress=False).neighbour_lists
    assert lists is not None
    assert lists.k == 500


def test_other_cells_get_other_noise(
    euclidean_space: EmbeddingSpace, listed: EmbeddingSpace
) -> None:
    """One noise made into words in two ways would tell more than two releases."""
    usual = euclidean_space.build_neighbours(progress=False)
    laws = [TruncatedExponential(s, 5.0).noise_parameters for s in (euclidean_space, usual, listed)]
    assert laws[0] == laws[1] != laws[2]
    texts = list(euclidean_space.words)
    released = [
        DxPrivatizer(space, "tem", 5.0, memoize="row", key=bytes(range(32))).privatize(texts)
        for space in (euclidean_space, usual)
    ]
    assert released[0] == released[1]
