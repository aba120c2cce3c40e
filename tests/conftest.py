"""Fixtures that several kinds of tests share."""

import os
from collections.abc import Generator, Iterator
from itertools import islice, product
from pathlib import Path
from string import ascii_lowercase
from typing import Any

import machine

machine.use_one_thread()

import hypothesis
import numpy as np
import pytest

from hf_dxprivacy.spaces import EmbeddingSpace
from keyed_noise import keyed_by

# No example of a property is judged by its time, which is that of a busy machine. Every run has the
# same examples; `pytest --hypothesis-profile=default` draws others.
hypothesis.settings.register_profile(
    "busy",
    deadline=None,
    derandomize=True,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("busy")

# A Hub on the loopback interface, which the client finds as it would find any other.
pytest_plugins = ["hub_server.fixtures"]

DATA = Path(os.environ.get("HF_DXPRIVACY_DATA", Path(__file__).parents[2] / "shared" / "data"))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with the files that take longest, so that no process of several is left with one."""
    if hasattr(config, "workerinput"):
        lines = (Path(__file__).parent / "durations.txt").read_text().splitlines()
        seconds = {file: float(number) for number, file in map(str.split, lines)}
        items.sort(key=lambda item: -seconds.get(item.nodeid.partition("::")[0], 0.0))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    """Key the noise of a test by its name, so that chance never decides what it finds."""
    with keyed_by(item.nodeid):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: Any) -> Generator[None, Any, Any]:
    """Key the noise of what tests share apart from that of the first test that needs it."""
    if fixturedef.scope == "function":
        return (yield)
    with keyed_by(f"{fixturedef.baseid} {fixturedef.argname}"):
        return (yield)


@pytest.fixture(scope="session")
def data() -> Path:
    """Folder of the development datasets; skips where it is absent."""
    if not (DATA / "README.md").exists():
        pytest.skip("development datasets are not here; set HF_DXPRIVACY_DATA to their folder")
    return DATA


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the user's cache out of the tests, and the tests out of the user's cache."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_DXPRIVACY_CACHE", str(folder / "dxprivacy"))
        patch.setenv("HF_DATASETS_CACHE", str(folder / "datasets"))
        yield


@pytest.fixture(scope="session", autouse=True)
def _no_waiting_for_the_disk() -> Iterator[None]:
    """Leave out fsync: what a process has written outlives it, and no test stops the machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield


def _words(size: int) -> list[str]:
    """Return distinct words, each of which the segmenter sees as one word."""
    names = ("w" + "".join(letters) for letters in product(ascii_lowercase, repeat=3))
    return list(islice(names, size))


@pytest.fixture(scope="session")
def euclidean_space() -> EmbeddingSpace:
    """500 words in clusters of uneven density, 8 dimensions."""
    rng = np.random.default_rng(7)
    centers = rng.normal(size=(25, 8)) * 2.0
    spread = rng.uniform(0.2, 1.2, size=25)
    cluster = rng.integers(25, size=500)
    vectors = centers[cluster] + rng.normal(size=(500, 8)) * spread[cluster, None]
    return EmbeddingSpace.from_vectors(_words(500), vectors.astype(np.float32))


@pytest.fixture(scope="session")
def poincare_space() -> EmbeddingSpace:
    """500 words in a 4-d ball, most of them near its boundary, scaled."""
    rng = np.random.default_rng(8)
    directions = rng.normal(size=(500, 4))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    radii = np.tanh(rng.gamma(6.0, 0.8, size=500) / 2.0)
    return EmbeddingSpace.from_vectors(
        _words(500), directions * radii[:, None], metric="poincare", scale=0.5
    )
