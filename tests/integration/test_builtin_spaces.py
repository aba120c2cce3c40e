"""The spaces that ship inside the package."""

import json
import subprocess
import sys
from importlib import resources
from pathlib import Path

import numpy as np
import pytest

from hf_dxprivacy.calibration import suggest_epsilon
from hf_dxprivacy.mechanisms.hierarchical import Hierarchical
from hf_dxprivacy.spaces import builtin_names
from hf_dxprivacy.spaces.space import EmbeddingSpace
from hf_dxprivacy.text import RowReader
from hf_dxprivacy.text.shapes import FAMILIES, SHAPES, public_names

MIB = 2**20
WORDNET = ("wordnet-gloss", "wordnet-poincare")
NAMES = ("english", *WORDNET)
ROOT = Path(str(resources.files("hf_dxprivacy"))) / "builtin"

each = pytest.mark.parametrize("name", NAMES)
both = pytest.mark.parametrize("name", WORDNET)


@pytest.fixture(scope="module")
def spaces() -> dict[str, EmbeddingSpace]:
    return {name: EmbeddingSpace.from_pretrained(name) for name in NAMES}


def test_there_are_these_and_no_other() -> None:
    assert builtin_names() == NAMES


def test_gloss_is_euclidean_with_100_dimensions(spaces: dict[str, EmbeddingSpace]) -> None:
    space = spaces["wordnet-gloss"]
    assert (len(space), space.dim, space.metric) == (24_980, 100, "euclidean")
    assert space.vectors.dtype == np.float32


def test_english_is_euclidean_with_a_tree_of_more_dimensions(
    spaces: dict[str, EmbeddingSpace],
) -> None:
    space = spaces["english"]
    assert (space.dim, space.metric, space.vectors.dtype) == (56, "euclidean", np.float32)
    assert 32_000 <= len(space) <= 34_000
    assert space.hierarchy is not None
    assert space.hierarchy.method == "ward linkage of all 300 dimensions"


@each
def test_every_space_has_a_tree_over_its_words(
    spaces: dict[str, EmbeddingSpace], name: str
) -> None:
    tree = spaces[name].hierarchy
    assert tree is not None
    assert len(tree) == len(spaces[name])


@pytest.mark.parametrize(
    ("word", "among"),
    [
        ("ohio", {"michigan", "indiana", "illinois", "kentucky"}),
        ("terrible", {"horrible", "awful", "dreadful"}),
        ("seven", {"nine", "eight", "five", "six"}),
        ("don't", {"didn't", "doesn't", "not"}),
    ],
)
def test_english_neighbours_are_near_in_the_tree_too(
    spaces: dict[str, EmbeddingSpace], word: str, among: set[str]
) -> None:
    space = spaces["english"]
    found = {neighbour for neighbour, _ in space.neighbours(word, 8)}
    assert len(found & among) >= 2
    assert space.hierarchy is not None
    row, others = space.ids([word])[0], space.ids(found & among)
    shared = space.hierarchy.common_sizes(np.full(len(others), row), others)
    assert shared.min() <= 16


def test_english_has_an_entry_for_every_shape(spaces: dict[str, EmbeddingSpace]) -> None:
    assert spaces["english"].words[-len(SHAPES) :] == SHAPES


def test_unknown_numbers_become_numbers_and_names_become_names(
    spaces: dict[str, EmbeddingSpace],
) -> None:
    space = spaces["english"]
    names = {name.lower() for name in public_names()}
    numbers = {*FAMILIES["numbers"], *FAMILIES["times"], "<phone>"}
    is_number = np.array([word[0].isdigit() or word in numbers for word in space.words])
    is_name = np.array([word in names or word == "<name>" for word in space.words])
    mechanism = Hierarchical(space, 1.5)
    for shapes, kin, share in ((FAMILIES["numbers"], is_number, 0.8), (("<name>",), is_name, 0.6)):
        laws = mechanism.probabilities(space.ids(shapes))
        assert laws[:, kin].sum(axis=1).min() > share


def test_english_says_where_it_comes_from(spaces: dict[str, EmbeddingSpace]) -> None:
    provenance = spaces["english"].provenance
    assert provenance["source"].startswith("GloVe 840B")
    assert provenance["licence"] == "pddl"
    licence = (ROOT / "english" / provenance["licence_file"]).read_text(encoding="utf-8")
    assert "Public Domain Dedication and License" in licence


def test_poincare_is_a_ball_of_10_dimensions(spaces: dict[str, EmbeddingSpace]) -> None:
    space = spaces["wordnet-poincare"]
    assert (space.dim, space.metric, space.vectors.dtype) == (10, "poincare", np.float64)
    assert 20_000 <= len(space) <= 35_000
    assert np.linalg.norm(space.vectors, axis=1).max() < 1.0


@each
def test_words_are_what_the_splitter_calls_one_word(
    spaces: dict[str, EmbeddingSpace], name: str
) -> None:
    reader = RowReader()
    words = [word for word in spaces[name].words if word not in SHAPES]
    assert [word for word in words if list(reader.read_text(word)) != [word]] == []
    assert [word for word in words if word != word.lower()] == []


def test_common_words_are_there(spaces: dict[str, EmbeddingSpace]) -> None:
    common = "the is i you my don't it's okay hello hi yes thanks please movie email phone refund"
    for name in ("english", "wordnet-gloss"):
        assert [word for word in common.split() if word not in spaces[name]] == []


@each
def test_the_nearest_neighbour_is_at_distance_1(
    spaces: dict[str, EmbeddingSpace], name: str
) -> None:
    space = spaces[name]
    # Computed anew, on other words than those the stored figure was taken from.
    ids = np.random.default_rng(5).choice(len(space), 1500, replace=False)
    distances = space.distances(ids)
    distances[np.arange(len(ids)), ids] = np.inf
    assert np.median(distances.min(axis=1)) == pytest.approx(1.0, rel=0.04)
    fresh = EmbeddingSpace(space.words, space.vectors, space.metric, space.scale)
    assert fresh.neighbour_distances((1,))[1] == pytest.approx(1.0, abs=1e-3)
    assert space.neighbour_distances() == pytest.approx(fresh.neighbour_distances(), rel=1e-3)


@pytest.mark.parametrize(
    ("word", "among"),
    [
        ("ohio", {"nebraska", "pennsylvania", "wisconsin", "arkansas", "oklahoma", "missouri"}),
        ("restaurant", {"restaurants", "hotel", "cafe", "dining", "cafeteria", "meals"}),
        ("terrible", {"awful", "dreadful", "dire", "frightful"}),
        ("guitar", {"guitars", "violin", "piano", "guitarist", "cello"}),
        ("monday", {"tuesday", "wednesday", "thursday", "friday"}),
        ("refund", {"repay", "repayment", "payment", "pay"}),
        ("music", {"musical", "beethoven", "handel", "orchestral"}),
        ("movie", {"movies", "film", "cinema", "films"}),
    ],
)
def test_gloss_neighbours_are_sensible(
    spaces: dict[str, EmbeddingSpace], word: str, among: set[str]
) -> None:
    found = {neighbour for neighbour, _ in spaces["wordnet-gloss"].neighbours(word, 8)}
    assert len(found & among) >= 2


@pytest.mark.parametrize("name", builtin_names())
def test_every_epsilon_that_a_suggestion_tries_starts_at_once(
    spaces: dict[str, EmbeddingSpace], name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Levels are in the artifact, also where the median step is 1 up to rounding only."""
    monkeypatch.setenv("HF_DXPRIVACY_CACHE", str(tmp_path))
    words = spaces[name].words[:3]
    suggest_epsilon(spaces[name], "calibrated", max_nw=0.5, words=words, progress=False)
    assert not list(tmp_path.iterdir()), "levels were computed"


@pytest.mark.parametrize(
    ("word", "among"),
    [
        ("ohio", {"state", "province", "district", "location", "territory"}),
        ("restaurant", {"building", "structure", "eatery", "cafe"}),
        ("guitar", {"banjo", "instrument", "device", "artifact", "lute"}),
        ("dog", {"mammal", "animal", "vertebrate", "hound", "canine", "carnivore"}),
        ("teacher", {"educator", "instructor", "professional", "adult"}),
    ],
)
def test_poincare_neighbours_are_classes_or_siblings(
    spaces: dict[str, EmbeddingSpace], word: str, among: set[str]
) -> None:
    found = {neighbour for neighbour, _ in spaces["wordnet-poincare"].neighbours(word, 10)}
    assert len(found & among) >= 1


def test_classes_are_more_central_than_what_is_below(spaces: dict[str, EmbeddingSpace]) -> None:
    space = spaces["wordnet-poincare"]
    pairs = [("dog", "animal"), ("cheese", "food"), ("guitar", "artifact"), ("ohio", "location")]
    norms = {word: np.linalg.norm(space.vectors[space.ids([word])[0]]) for word in sum(pairs, ())}
    assert all(norms[below] > norms[above] for below, above in pairs)


@both
def test_provenance_and_licence_are_there(spaces: dict[str, EmbeddingSpace], name: str) -> None:
    provenance = spaces[name].provenance
    assert provenance["source"].startswith("WordNet 3.0")
    assert provenance["source_package"].startswith("wordnet-base 1:3.0")
    assert provenance["licence"] == "WordNet"
    assert provenance["script"] == "scripts/build_builtin_spaces.py"
    assert "seed" in provenance["recipe"]
    assert {"numpy", "scipy", "numba"} <= set(provenance["versions"])
    licence = (ROOT / name / provenance["licence_file"]).read_text(encoding="utf-8")
    assert "WordNet 3.0 Copyright 2006 by Princeton University" in licence
    assert licence.startswith("This software and database is being provided to you")
    assert licence.endswith("agrees to preserve same.\n")


@each
def test_no_machine_path_is_in_the_config(name: str) -> None:
    text = (ROOT / name / "config.json").read_text(encoding="utf-8")
    assert not any(trace in text for trace in ("/home", "/work", "/root", "/tmp", "/usr"))
    assert json.loads(text)["library_name"] == "hf_dxprivacy"


def test_the_files_are_small() -> None:
    sizes = [path.stat().st_size for name in NAMES for path in (ROOT / name).iterdir()]
    assert max(sizes) < 10 * MIB
    assert sum(sizes) < 14 * MIB


@each
def test_loads_without_network_or_training_libraries(name: str) -> None:
    program = f"""
import socket, sys
def refuse(*arguments): raise OSError("no network")
socket.socket.connect = refuse
socket.getaddrinfo = refuse
from hf_dxprivacy.spaces.space import EmbeddingSpace
space = EmbeddingSpace.from_pretrained({name!r})
space.neighbours("music", 3)
assert not {{"numba", "scipy", "torch"}} & set(sys.modules), "loading imports too much"
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
