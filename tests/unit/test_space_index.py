"""The index of a space: what it says of itself, how it is stored, and which one is refused."""

import hashlib
import json
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import pytest

from hf_dxprivacy.errors import ArtifactError, InvalidTypeError, InvalidValueError
from hf_dxprivacy.hub import read_artifact, update_config, write_artifact
from hf_dxprivacy.mechanisms import Mahalanobis, MultivariateLaplace, create_mechanism
from hf_dxprivacy.privatizers.text_privatizer import DxPrivatizer
from hf_dxprivacy.randomness import keyed_generator
from hf_dxprivacy.search import VectorIndex
from hf_dxprivacy.spaces import EmbeddingSpace, space_artifact

FILES = ["config.json", "index.faiss", "vectors.safetensors", "vocabulary.txt"]
TEXT = "waab waac, waad!"

# Candidates from two of the dimensions only, so that it shows whether the index is used.
COARSE = "PCA2,Flat"


def write(space: EmbeddingSpace, folder: Path) -> Path:
    """Save a space without its card, which takes longer than what is tested here."""
    space.neighbour_distances()
    space_artifact.write(space, folder)
    return folder


def drawn(space: EmbeddingSpace, index: str) -> np.ndarray:
    ids = np.arange(-1, len(space))
    return MultivariateLaplace(space, 3.0, index=index).sample(ids, keyed_generator(0))


@pytest.fixture(scope="module")
def indexed(euclidean_space: EmbeddingSpace) -> EmbeddingSpace:
    return euclidean_space.build_index("ivf")


@pytest.fixture
def folder(tmp_path: Path, indexed: EmbeddingSpace) -> Path:
    return write(indexed, tmp_path / "space")


def entry(folder: Path) -> dict[str, Any]:
    described = json.loads((folder / "config.json").read_text())["index"]
    assert isinstance(described, dict)
    return described


def exchange(folder: Path, content: bytes) -> None:
    """Put another file in the place of the index, with a digest that fits."""
    (folder / "index.faiss").write_bytes(content)
    changed = entry(folder) | {"sha256": hashlib.sha256(content).hexdigest()}
    update_config(folder, {"index": changed})


def test_a_space_with_an_index_is_another_object_over_the_same_memory(
    euclidean_space: EmbeddingSpace, indexed: EmbeddingSpace
) -> None:
    assert euclidean_space.index is None
    assert indexed.index is not None
    assert (indexed.index.kind, indexed.index.factory) == ("ivf", "IVF89_HNSW32,Flat")
    assert indexed.index.faiss_version == faiss.__version__
    assert indexed.words is euclidean_space.words
    assert np.shares_memory(indexed.vectors, euclidean_space.vectors)
    assert np.shares_memory(indexed.index.vectors, euclidean_space.vectors)
    assert indexed.digest == euclidean_space.digest
    assert indexed.cache is euclidean_space.cache
    assert indexed.build_index("hnsw").index is not indexed.index


def test_a_new_index_is_not_where_the_space_was_loaded_from(folder: Path) -> None:
    loaded = EmbeddingSpace.from_pretrained(folder)
    assert loaded.location is not None
    built = loaded.build_index("hnsw")
    assert (built.location, built.commit) == (None, None)
    assert built.provenance == loaded.provenance


def test_a_ball_has_no_index(poincare_space: EmbeddingSpace) -> None:
    with pytest.raises(InvalidValueError, match=r"for Euclidean spaces; .* uses exact search"):
        poincare_space.build_index("ivf")


@pytest.mark.parametrize(
    ("kind", "error", "message"),
    [
        ("ivff", InvalidValueError, "could not parse index string ivff"),
        (None, InvalidTypeError, "the kind of index to be a string, got None"),
    ],
)
def test_a_kind_that_faiss_does_not_know_is_refused(
    euclidean_space: EmbeddingSpace, kind: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        euclidean_space.build_index(kind)


def test_quality_is_measured_without_noise_and_under_more_and_more(
    euclidean_space: EmbeddingSpace,
) -> None:
    index = euclidean_space.build_index(COARSE).index
    assert index is not None
    assert index.quality["words"] == 500
    rows = index.quality["noise"]
    step = euclidean_space.neighbour_distances()[1]
    # Mean length n/ε of the noise, in steps to the nearest neighbour, for n = 8.
    lengths = [8 / row["epsilon"] / step for row in rows[1:]]
    assert rows[0]["epsilon"] is None
    np.testing.assert_allclose(lengths, [8**0.5 / 8, 8**0.5 / 4, 8**0.5 / 2])
    changed = [row["changed_outputs"] for row in rows]
    assert changed == sorted(changed)
    assert changed[-1] > changed[0] + 0.1
    assert all(row["recall_at_1"] <= 1.0 - row["changed_outputs"] for row in rows)
    again = euclidean_space.build_index(COARSE).index
    assert again is not None
    assert again.quality == index.quality


@pytest.mark.parametrize("size", [1, 9])
def test_words_without_distances_are_measured_without_noise_only(size: int) -> None:
    space = EmbeddingSpace.from_vectors([f"w{k}" for k in range(size)], np.ones((size, 3)))
    index = space.build_index("ivf").index
    assert index is not None
    assert [row["epsilon"] for row in index.quality["noise"]] == [None]
    np.testing.assert_array_equal(index.search(np.zeros((2, 3))), [0, 0])


@pytest.mark.parametrize("kind", ["flat", "ivf", "hnsw", "IVF16,SQ8"])
def test_an_index_is_saved_and_loaded(
    tmp_path: Path, euclidean_space: EmbeddingSpace, kind: str
) -> None:
    built = euclidean_space.build_index(kind)
    folder = write(built, tmp_path / "space")
    assert sorted(path.name for path in folder.iterdir()) == FILES
    loaded = EmbeddingSpace.from_pretrained(folder, index=kind)
    assert loaded.location == str(folder.resolve())
    assert loaded.index is not None
    assert built.index is not None
    assert loaded.index.content.tobytes() == (folder / "index.faiss").read_bytes()
    assert loaded.index.sha256 == built.index.sha256
    assert loaded.index.quality == built.index.quality
    assert repr(loaded.index) == repr(built.index)
    np.testing.assert_array_equal(drawn(loaded, kind), drawn(built, kind))
    again = write(loaded, tmp_path / "again")
    assert all((again / name).read_bytes() == (folder / name).read_bytes() for name in FILES)


def test_the_configuration_binds_file_and_vectors(folder: Path, indexed: EmbeddingSpace) -> None:
    config = read_artifact(folder).config
    assert indexed.index is not None
    assert config["index"] == {
        "kind": "ivf",
        "factory": "IVF89_HNSW32,Flat",
        "faiss": faiss.__version__,
        "sha256": hashlib.sha256((folder / "index.faiss").read_bytes()).hexdigest(),
        "vectors_sha256": config["vectors_sha256"],
        "quality": indexed.index.quality,
    }


def test_the_file_is_mapped_not_read(folder: Path) -> None:
    index = EmbeddingSpace.from_pretrained(folder, index="ivf").index
    assert index is not None
    base: Any = index.content
    while isinstance(base, np.ndarray) and not isinstance(base, np.memmap):
        base = base.base
    assert isinstance(base, np.memmap)
    with pytest.raises(ValueError, match="read-only"):
        index.content[0] = 1


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_vectors_of_other_precision(tmp_path: Path, dtype: str) -> None:
    vectors = np.random.default_rng(1).normal(size=(300, 5)).astype(dtype)
    words = [f"w{row}" for row in range(300)]
    config = {"metric": "euclidean", "scale": 1.0}
    write_artifact(tmp_path / "bare", vectors=vectors, words=words, config=config)
    built = EmbeddingSpace.from_pretrained(tmp_path / "bare").build_index("hnsw")
    folder = write(built, tmp_path / "space")
    loaded = EmbeddingSpace.from_pretrained(folder, index="hnsw")
    np.testing.assert_array_equal(drawn(loaded, "hnsw"), drawn(built, "hnsw"))


def test_an_index_is_only_read_if_it_is_asked_for(folder: Path) -> None:
    (folder / "index.faiss").write_bytes(b"damaged")
    assert EmbeddingSpace.from_pretrained(folder).index is None


def test_saving_without_an_index_leaves_none_behind(
    folder: Path, euclidean_space: EmbeddingSpace
) -> None:
    write(euclidean_space, folder)
    assert not (folder / "index.faiss").exists()
    assert "index" not in read_artifact(folder).config
    message = "stored without an index; make one with space.build_index"
    with pytest.raises(ArtifactError, match=message):
        EmbeddingSpace.from_pretrained(folder, index="ivf")


def _cut(folder: Path) -> None:
    path = folder / "index.faiss"
    path.write_bytes(path.read_bytes()[:-1])


def _alter(folder: Path) -> None:
    path = folder / "index.faiss"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def _foreign(folder: Path) -> None:
    space = EmbeddingSpace.from_pretrained(folder)
    other = write(space.rescale(2.0).build_index("ivf"), folder / "other")
    (folder / "index.faiss").write_bytes((other / "index.faiss").read_bytes())
    update_config(folder, {"index": entry(other)})


def _fewer(folder: Path) -> None:
    vectors = np.asarray(EmbeddingSpace.from_pretrained(folder).vectors)
    index = faiss.IndexFlatL2(8)
    index.add(vectors[1:])
    exchange(folder, faiss.serialize_index(index).tobytes())


def _inner_product(folder: Path) -> None:
    index = faiss.IndexFlatIP(8)
    index.add(np.asarray(EmbeddingSpace.from_pretrained(folder).vectors))
    exchange(folder, faiss.serialize_index(index).tobytes())


def _described_as(**changes: Any) -> Callable[[Path], None]:
    return lambda folder: update_config(folder, {"index": entry(folder) | changes})


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: (folder / "index.faiss").unlink(), "index.faiss: cannot be read"),
        (lambda folder: exchange(folder, b""), "index.faiss: the file is empty"),
        (lambda folder: exchange(folder, bytes(99)), "index.faiss: not an index that faiss can"),
        (_cut, r"index\.faiss: SHA-256 is \w+, but config.json says"),
        (_alter, r"index\.faiss: SHA-256 is \w+, but config.json says"),
        (_foreign, r"index.faiss was made for another space than this one"),
        (_fewer, r"index\.faiss: expected an L2 index of 500 vectors .*, got 499"),
        (_inner_product, r"index\.faiss: expected an L2 index of .* metric 0"),
        (_described_as(kind="hnsw"), r"config\.json: the index is of kind 'hnsw', not 'ivf'"),
        (_described_as(sha256=None), r"config\.json: the entry index lacks one of kind, factory"),
        (_described_as(quality=0.9), r"config\.json: the entry index lacks one of"),
        (lambda f: update_config(f, {"index": ["ivf"]}), "the entry index lacks one of"),
        (lambda f: update_config(f, {"index": None}), "this space is stored without an index"),
    ],
)
def test_an_index_that_does_not_fit_is_refused(
    folder: Path, damage: Callable[[Path], object], message: str
) -> None:
    damage(folder)
    with pytest.raises(ArtifactError, match=message) as caught:
        EmbeddingSpace.from_pretrained(folder, index="ivf")
    assert "make one with space.build_index('ivf'), or load without" in str(caught.value)
    assert EmbeddingSpace.from_pretrained(folder).index is None


class Poison:
    """Creates a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return Path.touch, (self.path,)


def test_a_poisoned_pickle_is_never_executed(folder: Path, tmp_path: Path) -> None:
    poisoned = pickle.dumps(Poison(tmp_path / "executed"))
    (folder / "index.faiss").write_bytes(poisoned)
    with pytest.raises(ArtifactError, match=r"index\.faiss: SHA-256 is"):
        EmbeddingSpace.from_pretrained(folder, index="ivf")
    exchange(folder, poisoned)
    with pytest.raises(ArtifactError, match=r"index\.faiss: not an index that faiss can read"):
        EmbeddingSpace.from_pretrained(folder, index="ivf")
    assert not (tmp_path / "executed").exists()
    pickle.loads(poisoned)
    assert (tmp_path / "executed").exists()


@pytest.mark.parametrize("mechanism", ["laplace", "mahalanobis"])
def test_a_mechanism_searches_as_it_is_asked_to(
    euclidean_space: EmbeddingSpace, mechanism: str
) -> None:
    space = euclidean_space.build_index(COARSE)
    ids = np.arange(500)

    def outputs(space: EmbeddingSpace, **options: str) -> np.ndarray:
        return create_mechanism(mechanism, space, 3.0, **options).sample(ids, keyed_generator(0))

    exact = outputs(euclidean_space)
    np.testing.assert_array_equal(outputs(space), exact)
    np.testing.assert_array_equal(outputs(space, index="flat"), exact)
    assert 0.1 < (outputs(space, index=COARSE) != exact).mean() < 1.0


@pytest.mark.parametrize("mechanism", [MultivariateLaplace, Mahalanobis])
def test_a_mechanism_does_not_do_without_the_index_it_is_asked_for(
    euclidean_space: EmbeddingSpace, indexed: EmbeddingSpace, mechanism: type[MultivariateLaplace]
) -> None:
    message = r"index='hnsw' .* this one has none; make one with space.build_index\('hnsw'\)"
    with pytest.raises(InvalidValueError, match=message):
        mechanism(euclidean_space, 3.0, index="hnsw")
    with pytest.raises(InvalidValueError, match="this one has one of kind 'ivf'; make one with"):
        mechanism(indexed, 3.0, index="hnsw")
    with pytest.raises(InvalidTypeError, match=r"expected index to be a string .* got None"):
        mechanism(indexed, 3.0, index=None)  # type: ignore[arg-type]


@pytest.mark.parametrize("mechanism", [MultivariateLaplace, Mahalanobis])
def test_the_guarantee_is_that_of_exact_search_and_says_so(
    indexed: EmbeddingSpace, mechanism: type[MultivariateLaplace]
) -> None:
    exact, approximate = mechanism(indexed, 3.0), mechanism(indexed, 3.0, index="ivf")
    *others, said = approximate.guarantee.disclosures
    assert said.text == (
        "The nearest word is searched approximately (index 'ivf'), which changes the output, not "
        "the guarantee: the index is fixed."
    )
    assert replace(approximate.guarantee, disclosures=tuple(others)) == exact.guarantee
    assert approximate.parameters == exact.parameters | {"index": "ivf"}


@pytest.mark.parametrize("mechanism", ["tem", "calibrated", "hyperbolic"])
def test_other_mechanisms_have_no_use_for_an_index(
    folder: Path, mechanism: str, indexed: EmbeddingSpace
) -> None:
    message = f"'{mechanism}' has no use for an index: .* 'laplace' and 'mahalanobis' take one"
    # Said before anything is loaded, and whatever is asked for.
    for space in (indexed, folder, "wordnet-gloss"):
        with pytest.raises(InvalidTypeError, match=message):
            DxPrivatizer(space, mechanism, 3.0, index="ivf")
    with pytest.raises(InvalidTypeError, match=message):
        DxPrivatizer.from_pretrained("wordnet-gloss", mechanism=mechanism, epsilon=3.0, index="ivf")


def test_a_privatizer_loads_the_index_it_needs(folder: Path) -> None:
    for privatizer in (
        DxPrivatizer(folder, "laplace", 3.0, index="ivf"),
        DxPrivatizer.from_pretrained(folder, mechanism="laplace", epsilon=3.0, index="ivf"),
    ):
        assert privatizer.index == "ivf"
        assert privatizer.space.index is not None
        assert privatizer.space.index.kind == "ivf"
        assert len(privatizer.privatize(TEXT).split()) == 3
    assert DxPrivatizer(folder, "laplace", 3.0).space.index is None
    with pytest.raises(ArtifactError, match="the index is of kind 'ivf', not 'hnsw'"):
        DxPrivatizer(folder, "laplace", 3.0, index="hnsw")
    with pytest.raises(InvalidTypeError, match="'calibrated' has no use for an index"):
        DxPrivatizer.from_pretrained(folder, mechanism="calibrated", epsilon=3.0, index="ivf")


def test_a_ready_made_mechanism_brings_its_index(indexed: EmbeddingSpace) -> None:
    mechanism = MultivariateLaplace(indexed, 3.0, index="ivf")
    assert DxPrivatizer(indexed, mechanism).index == "ivf"
    with pytest.raises(InvalidValueError, match="brings its own space, epsilon and options"):
        DxPrivatizer(indexed, mechanism, index="ivf")


def test_seeded_noise_is_the_same_for_every_search(euclidean_space: EmbeddingSpace) -> None:
    space = euclidean_space.build_index("flat")
    texts = [" ".join(space.words[:100])] * 3
    assert isinstance(space.index, VectorIndex)
    loose = replace(space.index, kind="exact")
    named = space._with(index=loose)
    exact = DxPrivatizer(space, "laplace", 3.0, seed=1).privatize(texts)
    assert DxPrivatizer(named, "laplace", 3.0, seed=1, index="exact").privatize(texts) == exact


def test_a_stored_privatizer_comes_back_with_its_index(folder: Path, tmp_path: Path) -> None:
    privatizer = DxPrivatizer(folder, "mahalanobis", 3.0, lam=0.2, index="ivf")
    privatizer.save_pretrained(tmp_path / "stored")
    loaded = DxPrivatizer.from_pretrained(tmp_path / "stored")
    assert loaded.config == privatizer.config
    assert loaded.index == "ivf"
    (folder / "index.faiss").unlink()
    with pytest.raises(ArtifactError, match=r"privatizer\.json: .*index\.faiss: cannot be read"):
        DxPrivatizer.from_pretrained(tmp_path / "stored")


def test_a_privatizer_over_a_new_index_can_not_be_referred_to(folder: Path, tmp_path: Path) -> None:
    space = EmbeddingSpace.from_pretrained(folder).build_index("hnsw")
    privatizer = DxPrivatizer(space, "laplace", 3.0, index="hnsw")
    with pytest.raises(InvalidValueError, match="the space is in memory only"):
        privatizer.save_pretrained(tmp_path / "stored")
