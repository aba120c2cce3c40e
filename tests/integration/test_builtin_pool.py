"""The pool of sentences that ships inside the package."""

import importlib.util
import json
import pickle
import re
import subprocess
import sys
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from hf_dxprivacy import DxPrivatizer, EmbeddingSpace, SentencePool, SentencePrivatizer
from hf_dxprivacy.errors import ArtifactError, InvalidValueError
from hf_dxprivacy.sentences import builtin_pools, clean_sentences
from hf_dxprivacy.spaces import builtin_names
from hf_dxprivacy.text import RowReader
from hf_dxprivacy.text.slurs import is_harsh
from hf_dxprivacy.training.wordnet import DEFAULT_PATH
from machine import PATIENCE

NAME = "wordnet-sentences"
BUILTIN = Path(str(resources.files("hf_dxprivacy"))) / "builtin"
REPOSITORY = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def pool() -> SentencePool:
    return SentencePool.from_pretrained(NAME)


def test_it_is_a_pool_and_no_space() -> None:
    assert builtin_pools() == (NAME,)
    assert NAME not in builtin_names()
    with pytest.raises(InvalidValueError, match="pass the pool to SentencePrivatizer"):
        DxPrivatizer(NAME, "hierarchical", 1.0)
    with pytest.raises(ArtifactError, match="expected a pool of sentences, got a space of words"):
        SentencePool.from_pretrained("english")
    with pytest.raises(InvalidValueError, match="did you mean 'wordnet-sentences'"):
        SentencePool.from_pretrained("wordnet-sentence")


def test_sentences_read_as_sentences(pool: SentencePool) -> None:
    assert 11_500 <= len(pool) <= 12_500
    assert clean_sentences(pool.sentences, (4, 20)) == (list(pool.sentences), {})
    assert all(text[0].isupper() and text[-1] in ".!?" for text in pool.sentences)
    english, reader = EmbeddingSpace.from_pretrained("english"), RowReader()
    words = [[*reader.read_text(text).words] for text in pool.sentences]
    assert not any(is_harsh(word) for row in words for word in row)
    assert not any(char.isdigit() for text in pool.sentences for char in text)
    assert (english.ids([word.lower() for row in words for word in row]) >= 0).all()
    # Nobody and no place is named.
    capitals = {word.split("'")[0] for row in words for word in row[1:] if word != word.lower()}
    assert {"I", "Monday"} <= capitals
    assert not capitals & {"John", "Mary", "London", "French", "God", "Smith", "America"}


def test_no_sentence_is_one_to_be_ashamed_of(pool: SentencePool) -> None:
    shameful = re.compile(
        r"\b(?:(?:beats?|hit|slapped|punched|whipped) (?:his|her|him|me)\b|girls? in(?:to)? trouble"
        r"|gun|rifle|bullets?\b|knifed|stabb|poisoned|slashed|sex|intimate with|naked|flirt|"
        r"lover\b|wedlock|good head|sleeps with|drunk|liquor|cocaine|acid when|addict|urin|"
        r"vomit|slur\b|segregat|idiot|swine)",
        re.IGNORECASE,
    )
    assert [text for text in pool.sentences if shameful.search(text)] == []


def test_points_are_the_encoded_sentences(pool: SentencePool) -> None:
    rows = np.random.default_rng(5).choice(len(pool), 500, replace=False)
    texts = [pool.sentences[row] for row in rows]
    np.testing.assert_allclose(pool.points(texts), pool.space.vectors[rows], atol=2e-3)
    # Some differ in a word that says nothing, and lie at one place after rounding.
    assert np.mean(pool.look_up(texts) == rows) > 0.99
    assert pool.space.hierarchy is not None
    assert len(pool.space.hierarchy) == len(pool)


@pytest.mark.parametrize(
    ("text", "among"),
    [
        ("The waiter brought us cold soup.", ("soup", "waiter", "meal", "food", "lunch", "dinner")),
        ("my doctor says i need an operation", ("doctor", "surg", "patient", "operat", "hospital")),
        ("What a boring film!!!", ("movie", "film", "play", "show")),
        ("The train to the city was late again", ("train", "bus", "plane", "station")),
    ],
)
def test_the_nearest_sentence_is_about_the_same(
    pool: SentencePool, text: str, among: tuple[str, ...]
) -> None:
    nearest = pool.sentences[pool.look_up([text])[0]]
    assert any(word in nearest.lower() for word in among), nearest


def test_a_privatizer_takes_it_by_name(tmp_path: Path) -> None:
    privatizer = SentencePrivatizer(NAME, epsilon=1.3, seed=2**100 + 12345)
    assert 11 < privatizer.guarantee.ldp_epsilon < 14
    released = privatizer.privatize(["The soup was cold.", "", None])
    assert released[2] is None
    assert set(released[:2]) <= set(privatizer.pool.sentences)
    assert pickle.loads(pickle.dumps(privatizer)).privatize("A film.") == privatizer.privatize(
        "A film."
    )
    privatizer.save_pretrained(tmp_path / "privatizer")
    stored = json.loads((tmp_path / "privatizer" / "privatizer.json").read_text("utf-8"))
    assert stored["space"]["name"] == NAME
    again = SentencePrivatizer.from_pretrained(tmp_path / "privatizer", seed=2**100 + 12345)
    assert again.privatize("A film.") == privatizer.privatize("A film.")


def test_origin_and_licence_are_there(pool: SentencePool) -> None:
    provenance = pool.space.provenance
    assert provenance["source"].startswith("WordNet 3.0")
    assert provenance["licence"] == "WordNet"
    assert sum(provenance["examples_left_out"].values()) > 30_000
    licence = (BUILTIN / NAME / provenance["licence_file"]).read_text("utf-8")
    assert licence == (BUILTIN / "wordnet-gloss" / "LICENSE-WordNet.txt").read_text("utf-8")
    for name in ("config.json", "encoder.json"):
        text = (BUILTIN / NAME / name).read_text("utf-8")
        assert not any(trace in text for trace in ("/home", "/work", "/root", "/tmp", "/usr"))


def test_all_that_ships_is_small() -> None:
    sizes = {path: path.stat().st_size for path in BUILTIN.glob("*/*")}
    assert sum(size for path, size in sizes.items() if path.parent.name == NAME) <= 2_100_000
    assert sum(sizes.values()) <= 16_000_000


def test_it_loads_without_network_or_training_libraries() -> None:
    program = f"""
import socket, sys
def refuse(*arguments): raise OSError("no network")
socket.socket.connect = refuse
socket.getaddrinfo = refuse
from hf_dxprivacy import SentencePrivatizer
SentencePrivatizer({NAME!r}, epsilon=1.3).privatize("The soup was cold.")
assert not {{"numba", "scipy", "torch", "sentencex"}} & set(sys.modules), "loading imports too much"
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_the_script_makes_it_again(tmp_path: Path) -> None:
    if not Path(DEFAULT_PATH, "data.noun").is_file():
        pytest.skip("WordNet is not here; apt-get install wordnet-base")
    if importlib.util.find_spec("better_profanity") is None:
        pytest.skip("better-profanity is not here; pip install 'hf-dxprivacy[train]'")
    script = REPOSITORY / "scripts" / "build_wordnet_sentences.py"
    command = [sys.executable, script, "--output", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    made, shipped = tmp_path / NAME, BUILTIN / NAME
    for name in ("vocabulary.txt", "LICENSE-WordNet.txt"):
        assert (made / name).read_bytes() == (shipped / name).read_bytes()
    # Another BLAS library may round otherwise, or turn an axis round.
    points = [
        load_file(folder / "vectors.safetensors")["vectors"][::40] for folder in (made, shipped)
    ]
    angles = [rows.astype(np.float32) @ rows.astype(np.float32).T for rows in points]
    np.testing.assert_allclose(angles[0], angles[1], atol=0.02)
    weights = [load_file(folder / "encoder.safetensors")["weights"] for folder in (made, shipped)]
    np.testing.assert_array_equal(weights[0], weights[1])
