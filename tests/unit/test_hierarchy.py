"""The tree over the words of a space: its layout, how it is made, stored and refused."""

import hashlib
import json
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import pdist

from hf_dxprivacy.errors import ArtifactError, InvalidValueError
from hf_dxprivacy.hub.artifact import config_sha256
from hf_dxprivacy.spaces import EmbeddingSpace
from hf_dxprivacy.spaces.hierarchy import Hierarchy
from hf_dxprivacy.spaces.linkage import agglomerate, agglomerate_by_parts
from hf_dxprivacy.spaces.tree_text import branches

FILE = "hierarchy.safetensors"


def random_parents(rng: np.random.Generator, size: int, clusters: int) -> np.ndarray:
    """Return the parents of random nodes, among them clusters with no word and with one child."""
    parents = np.full(size + clusters, -1)
    parents[:size] = rng.integers(size, size + clusters, size=size)
    for node in range(size + 1, size + clusters):
        parents[node] = rng.integers(size, node)
    return parents


def naive_ancestors(parents: np.ndarray, node: int) -> list[int]:
    found = []
    while parents[node] != -1:
        node = int(parents[node])
        found.append(node)
    return found


@pytest.mark.parametrize("seed", range(40))
def test_layout_has_the_clusters_of_the_parents(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 25))
    parents = random_parents(rng, size, int(rng.integers(1, 25)))
    tree = Hierarchy.from_parents(parents, size)
    around = [naive_ancestors(parents, word) for word in range(size)]
    members = {c: {w for w in range(size) if c in around[w]} for c in range(size, len(parents))}
    wanted = {frozenset(m) for m in members.values() if len(m) > 1} | {frozenset(range(size))}
    assert {frozenset(tree.members(c).tolist()) for c in range(len(tree.sizes))} == wanted
    everything = np.arange(-1, size)
    a, b = (grid.ravel() for grid in np.meshgrid(everything, everything))
    for x, y, common in zip(a, b, tree.common_sizes(a, b), strict=True):
        if x == y:
            assert common == 1
        elif min(x, y) < 0:
            assert common == size + 1
        else:
            assert common == min(len(members[c]) for c in around[x] if y in members[c])
    for word in range(size):
        chain = [tree.sizes[c] for c in tree.chain(word)]
        assert chain == sorted(chain)
        assert tree.depths[word] == len(chain)
        for least in range(1, size + 2):
            expected = min([n for n in chain if n >= least], default=size)
            assert tree.enclosing_sizes(least)[word] == expected
    values = rng.random(size)
    low, high = tree.range_extremes(values)
    for cluster in range(len(tree.sizes)):
        assert low[cluster] == values[tree.members(cluster)].min()
        assert high[cluster] == values[tree.members(cluster)].max()


def test_layout_is_the_same_for_the_same_tree() -> None:
    merges = np.array([[0, 1], [2, 4], [3, 5]])
    parents = np.array([4, 4, 5, 6, 5, 6, -1])
    first, second = Hierarchy.from_merges(merges, 4), Hierarchy.from_parents(parents, 4)
    assert first.sha256 == second.sha256
    np.testing.assert_array_equal(np.sort(first.sizes), [2, 3, 4])


@pytest.mark.parametrize(
    ("parents", "size", "message"),
    [
        ([3, 3, 4, 4, 3], 3, "some of the clusters lie around themselves"),
        ([2, 1, -1], 2, "expected each parent to be -1 or a cluster, from 2 to 2"),
        ([5, 2, -1], 2, "expected each parent to be -1"),
        ([], 0, "expected the parents of 0 words"),
    ],
)
def test_what_is_no_tree_is_refused(parents: list[int], size: int, message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        Hierarchy.from_parents(parents, size)


def test_merges_that_use_a_node_twice_are_refused() -> None:
    with pytest.raises(InvalidValueError, match="each of 4 nodes below the root is merged once"):
        Hierarchy.from_merges([[0, 1], [0, 2]], 3)


@pytest.mark.parametrize("method", ["average", "ward"])
@pytest.mark.parametrize("size", [2, 3, 300])
def test_linkage_is_that_of_scipy(method: str, size: int) -> None:
    vectors = np.random.default_rng(3).normal(size=(size, 6)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    tree = Hierarchy.from_merges(agglomerate(vectors, method), size)
    metric = "cosine" if method == "average" else "euclidean"
    expected = linkage(pdist(vectors.astype(np.float64), metric), method)
    reference = Hierarchy.from_merges(expected[:, :2].astype(int), size)
    clusters = [
        {frozenset(t.members(c).tolist()) for c in range(len(t.sizes))} for t in (tree, reference)
    ]
    assert clusters[0] == clusters[1]


def test_hyperbolic_linkage_averages_cosh(poincare_space: EmbeddingSpace) -> None:
    small = EmbeddingSpace.from_vectors(
        poincare_space.words[:150], poincare_space.vectors[:150], "poincare"
    )
    tree = small.build_hierarchy(progress=False).hierarchy
    rows, columns = np.triu_indices(150, k=1)
    cosh = np.cosh(small.pair_distances(rows, columns))
    reference = Hierarchy.from_merges(linkage(cosh, "average")[:, :2].astype(int), 150)
    assert tree is not None
    np.testing.assert_array_equal(
        tree.common_sizes(rows, columns), reference.common_sizes(rows, columns)
    )


def test_parts_are_linked_inside_and_then_with_each_other() -> None:
    rng = np.random.default_rng(0)
    centers = np.eye(6, dtype=np.float32)
    vectors = np.repeat(centers, 50, axis=0) + rng.normal(size=(300, 6)).astype(np.float32) / 50
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    merges = agglomerate_by_parts(vectors, "average", 60)
    tree = Hierarchy.from_merges(merges, 300)
    for start in range(0, 300, 50):
        group = np.arange(start, start + 50)
        assert tree.common_sizes(group[:-1], group[1:]).max() <= 50
    same = agglomerate_by_parts(np.ones((90, 3), dtype=np.float32), "average", 20)
    assert len(Hierarchy.from_merges(same, 90)) == 90


def test_equal_vectors_are_one_cluster() -> None:
    vectors = np.random.default_rng(1).normal(size=(40, 4))
    vectors[5:15] = vectors[5]
    # Zeros of either sign are equal.
    vectors[5:15, 0] = 0.0
    vectors[6:15:2, 0] = -0.0
    space = EmbeddingSpace.from_vectors([f"w{k}" for k in range(40)], vectors)
    tree = space.build_hierarchy(progress=False).hierarchy
    assert tree is not None
    assert (tree.common_sizes(np.full(9, 5), np.arange(6, 15)) == 10).all()


@pytest.mark.parametrize("method", ["average", "ward", "parts"])
@pytest.mark.parametrize("size", [1, 2])
def test_few_words_make_a_tree(method: str, size: int) -> None:
    space = EmbeddingSpace.from_vectors(["a", "b"][:size], [[1.0, 0.0], [0.0, 0.0]][:size])
    tree = space.build_hierarchy(method, progress=False).hierarchy
    assert tree is not None
    assert tree.sizes.tolist() == [size]


def test_classes_of_a_taxonomy_are_clusters() -> None:
    words = "dog poodle cat animal oak plant soup".split()
    space = EmbeddingSpace.from_vectors(words, np.eye(7))
    relations = [
        ("poodle", "dog"),
        ("dog", "animal"),
        ("cat", "animal"),
        ("cat", "pet"),
        ("oak", "plant"),
        # Would close a circle.
        ("animal", "poodle"),
        ("animal", "being"),
        ("plant", "being"),
    ]
    tree = space.build_hierarchy(relations=relations).hierarchy
    assert tree is not None
    assert tree.method == "taxonomy"
    named = {frozenset(words[row] for row in tree.members(c)) for c in range(len(tree.sizes))}
    animals = {"dog", "poodle", "cat", "animal"}
    expected = [{"dog", "poodle"}, animals, {"oak", "plant"}, {*words} - {"soup"}, {*words}]
    assert named == {frozenset(cluster) for cluster in expected}
    with pytest.raises(InvalidValueError, match="expected relations, pairs of a name"):
        space.build_hierarchy(relations=[])


@pytest.mark.parametrize(
    ("metric", "method"), [("euclidean", "single"), ("poincare", "ward"), ("poincare", "parts")]
)
def test_other_methods_are_refused(metric: str, method: str) -> None:
    space = EmbeddingSpace.from_vectors(["a", "b"], [[0.1], [0.2]], metric)
    with pytest.raises(InvalidValueError, match="expected method to be one of 'average'"):
        space.build_hierarchy(method)


@pytest.fixture(scope="module")
def with_tree(euclidean_space: EmbeddingSpace) -> EmbeddingSpace:
    return euclidean_space.build_hierarchy(progress=False)


@pytest.fixture(scope="module")
def saved(with_tree: EmbeddingSpace, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved") / "space"
    with_tree.save_pretrained(folder)
    return folder


@pytest.fixture
def folder(saved: Path, tmp_path: Path) -> Path:
    """Folder of a space with a tree, to damage."""
    return Path(shutil.copytree(saved, tmp_path / "space"))


def describe(folder: Path, **changes: object) -> None:
    """Change what the configuration says of the tree."""
    config = json.loads((folder / "config.json").read_text())
    config["hierarchy"] |= changes
    config["config_sha256"] = config_sha256(config)
    (folder / "config.json").write_text(json.dumps(config))


def test_tree_is_saved_loaded_and_pickled(with_tree: EmbeddingSpace, folder: Path) -> None:
    tree = with_tree.hierarchy
    assert tree is not None
    loaded = EmbeddingSpace.from_pretrained(folder)
    for space in (
        loaded,
        pickle.loads(pickle.dumps(loaded)),
        pickle.loads(pickle.dumps(with_tree)),
    ):
        assert space.hierarchy is not None
        assert space.hierarchy.sha256 == tree.sha256
        assert space.hierarchy.method == "average linkage"
        assert len(pickle.dumps(space)) < 2000
    assert loaded.hierarchy is not None
    assert isinstance(loaded.hierarchy.order.base.base, np.memmap)
    assert with_tree.rescale(3.0).hierarchy is tree
    with_tree.with_hierarchy(None).save_pretrained(folder)
    assert not (folder / FILE).exists()
    assert EmbeddingSpace.from_pretrained(folder).hierarchy is None


def test_figures_of_another_tree_are_not_kept(with_tree: EmbeddingSpace) -> None:
    points = {"hierarchical": [{"epsilon": 1.0}], "tem": [{"epsilon": 2.0}]}
    measured = with_tree.with_figures({"unit": 1.0, "mechanisms": points})
    for changed in (measured.with_hierarchy(None), measured.build_hierarchy("ward", False)):
        assert changed.figures == {"unit": 1.0, "mechanisms": {"tem": points["tem"]}}
    assert measured.figures["mechanisms"] == points


def test_branches_are_drawn_with_known_words() -> None:
    words = ["the", "soup", "stew", "broth", "doctor", "nurse", *(f"w{k}" for k in range(400))]
    # Rows 0 … 405; 406 is the root, 407 food, 408 soups in it, 409 a cluster too large to draw.
    parents = [409, 408, 408, 407, 406, 406, *([407] * 7), *([409] * 393), -1, 406, 407, 406]
    drawn = branches(Hierarchy.from_parents(parents, len(words)), words)
    assert drawn.splitlines() == [
        "406 words: the, doctor, nurse, w7, w8, w9, …",
        "└─ 10 words: broth, w0, w1, w2, w3, w4, …",
        "   └─ 2 words: soup, stew",
    ]


@pytest.mark.parametrize("seed", range(3))
def test_drawn_branches_are_clusters_of_the_tree(seed: int) -> None:
    rng = np.random.default_rng(seed)
    tree = Hierarchy.from_parents(random_parents(rng, 500, 200), 500)
    clusters = [set(tree.members(c).tolist()) for c in range(len(tree.sizes))]
    lines = branches(tree, [str(row) for row in range(500)]).splitlines()
    assert len(lines) > 4
    for line in lines:
        size, _, named = line.lstrip("│├└─ ").partition(" words: ")
        rows = {int(word) for word in named.removesuffix(", …").split(", ")}
        assert any(rows <= cluster and len(cluster) == int(size) for cluster in clusters)


def test_tree_over_other_words_is_refused(with_tree: EmbeddingSpace) -> None:
    with pytest.raises(InvalidValueError, match="expected a tree over 500 words, got one over 2"):
        with_tree.with_hierarchy(Hierarchy.from_parents([-1, -1], 2))


def test_tree_of_another_space_is_refused(with_tree: EmbeddingSpace, folder: Path) -> None:
    describe(folder, space=with_tree.rescale(2.0).digest)
    with pytest.raises(ArtifactError, match="was made for another space"):
        EmbeddingSpace.from_pretrained(folder)


def change(name: str, position: int, value: int) -> Callable[[dict[str, np.ndarray]], None]:
    def apply(arrays: dict[str, np.ndarray]) -> None:
        arrays[name][position] = value

    return apply


def swap_ranges(arrays: dict[str, np.ndarray]) -> None:
    arrays["starts"][1:] = arrays["starts"][1:][::-1]


DAMAGES: dict[str, tuple[Callable[[dict[str, np.ndarray]], None], str]] = {
    "a word twice": (change("order", 0, 3), "does not name every word once"),
    "a word that is not": (change("order", 7, 500), "does not name every word once"),
    "a negative word": (change("order", 7, -1), "does not name every word once"),
    "a small root": (change("sizes", 0, 499), "the root of the tree is not"),
    "a root elsewhere": (change("starts", 0, 1), "the root of the tree is not"),
    "a root with a parent": (change("parents", 0, 0), "the root of the tree is not"),
    "a parent below": (change("parents", 4, -2), "a parent in the tree is no cluster"),
    "a parent above": (change("parents", -1, 9999), "a parent in the tree is no cluster"),
    "a large cluster": (change("sizes", 9, 400), "do not add up"),
    "an empty cluster": (change("sizes", 9, 0), "is empty"),
    "a negative cluster": (change("sizes", 9, -5), "is empty"),
    "a cluster elsewhere": (change("starts", 9, 450), "do not add up"),
    "a cluster before all": (change("starts", 9, -3), "do not add up"),
    "ranges in another order": (swap_ranges, "do not add up"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_tree_is_refused(with_tree: EmbeddingSpace, damage: str, folder: Path) -> None:
    tree = with_tree.hierarchy
    assert tree is not None
    arrays = {name: getattr(tree, name).copy() for name in ("order", "parents", "sizes", "starts")}
    apply, message = DAMAGES[damage]
    apply(arrays)
    with pytest.raises(InvalidValueError, match=message):
        Hierarchy(**arrays)
    content = (folder / FILE).read_bytes()
    body = b"".join(array.astype("<i4").tobytes() for array in arrays.values())
    (folder / FILE).write_bytes(content[: len(content) - len(body)] + body)
    with pytest.raises(ArtifactError, match=f"{FILE}: SHA-256 is"):
        EmbeddingSpace.from_pretrained(folder)
    # With a digest that fits, as it would be published to do harm.
    describe(folder, sha256=hashlib.sha256((folder / FILE).read_bytes()).hexdigest())
    with pytest.raises(ArtifactError, match=f"{FILE}: .*{message}"):
        EmbeddingSpace.from_pretrained(folder)


def test_clusters_out_of_preorder_are_refused() -> None:
    arrays = {
        "order": [0, 1, 2, 3],
        "parents": [-1, 0, 0, 2, 2, 1, 1],
        "starts": [0, 2, 0],
        "sizes": [4, 2, 2],
    }
    with pytest.raises(InvalidValueError, match="not in preorder"):
        Hierarchy(**{name: np.array(values) for name, values in arrays.items()})


def test_any_change_of_one_number_is_refused(with_tree: EmbeddingSpace) -> None:
    tree = with_tree.hierarchy
    assert tree is not None
    rng = np.random.default_rng(5)
    for _ in range(300):
        arrays = {n: getattr(tree, n).copy() for n in ("order", "parents", "sizes", "starts")}
        array = arrays[str(rng.choice(list(arrays)))]
        place = rng.integers(len(array))
        other = rng.integers(-2, 502)
        array[place] = other if other != array[place] else other + 1
        with pytest.raises(InvalidValueError, match="tree"):
            Hierarchy(**arrays)


@pytest.mark.parametrize("cut", [0, 1, 7, 8, 40, 300, -4, -1])
def test_truncated_tree_is_refused(folder: Path, cut: int) -> None:
    (folder / FILE).write_bytes((folder / FILE).read_bytes()[:cut])
    with pytest.raises(ArtifactError, match=FILE):
        EmbeddingSpace.from_pretrained(folder)
    describe(folder, sha256=hashlib.sha256((folder / FILE).read_bytes()).hexdigest())
    with pytest.raises(
        ArtifactError,
        match=rf"{FILE}: (not a safetensors|expected|the file is empty)",
    ):
        EmbeddingSpace.from_pretrained(folder)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"method": None}, "the entry hierarchy lacks one of method"),
        ({"clusters": "4"}, "the entry hierarchy lacks"),
        ({"clusters": True}, "the entry hierarchy lacks"),
        ({"clusters": -1}, "this is no tree of -1 clusters"),
        ({"clusters": 10**15}, "this is no tree"),
        ({"sha256": "0" * 64}, f"{FILE}: SHA-256 is"),
    ],
)
def test_wrong_description_of_a_tree_is_refused(
    folder: Path, changes: dict[str, object], message: str
) -> None:
    describe(folder, **changes)
    with pytest.raises(ArtifactError, match=message):
        EmbeddingSpace.from_pretrained(folder)


def test_missing_tree_is_refused(folder: Path) -> None:
    (folder / FILE).unlink()
    with pytest.raises(ArtifactError, match=FILE):
        EmbeddingSpace.from_pretrained(folder)
