"""Labels of the sentences of a pool, parts of pools, and unions of them."""

import json
from pathlib import Path

import numpy as np
import pytest
from datasets import Dataset
from safetensors.numpy import load_file

from hf_dxprivacy import SentencePool
from hf_dxprivacy.errors import ArtifactError, InvalidTypeError, InvalidValueError
from hf_dxprivacy.hub import tensors
from hf_dxprivacy.hub.artifact import bind
from hf_dxprivacy.spaces.hierarchy import Hierarchy
from small_pools import LABELS, SENTENCES, small_pool, small_words


@pytest.fixture(scope="module")
def pool() -> SentencePool:
    return small_pool()


def clusters(tree: Hierarchy) -> set[frozenset[int]]:
    return {frozenset(tree.members(cluster).tolist()) for cluster in range(len(tree.sizes))}


@pytest.mark.parametrize("seed", range(20))
def test_the_tree_over_some_words_has_what_its_clusters_hold_of_them(seed: int) -> None:
    rng = np.random.default_rng(seed)
    merges, tops = [], list(range(12))
    while len(tops) > 1:
        rng.shuffle(tops)
        merges.append((tops.pop(), tops.pop()))
        tops.append(11 + len(merges))
    tree = Hierarchy.from_merges(merges, 12, "by chance")
    rows = rng.permutation(12)[: rng.integers(1, 13)]
    number = {int(row): at for at, row in enumerate(rows)}
    held = {frozenset(number[row] for row in c if row in number) for c in clusters(tree)}
    expected = {c for c in held if len(c) > 1} or {frozenset([0])}
    assert clusters(tree.restricted(rows)) == expected


def test_the_part_of_a_label(pool: SentencePool) -> None:
    part = pool.with_label("film")
    assert part.sentences == tuple(s for s in SENTENCES if "film" in s)
    assert part.labels == ("film",) * 5
    assert part.look_up(["a very cold film", ""]).tolist() == [0, -1]
    # The nearest one of the label is the entry, and not what is nearest among all.
    cold = pool.with_label("garden").sentences[part.look_up(["the soup was cold and late"])[0]]
    assert "garden" in cold
    rows = [at for at, label in enumerate(LABELS) if label == "film"]
    np.testing.assert_array_equal(part.space.vectors, pool.space.vectors[rows])
    assert part.digest != pool.digest


def test_the_pool_without_sentences_that_hold_a_word(pool: SentencePool) -> None:
    part = pool.without(["Soup", "nobody", "zork"])
    left = [at for at, s in enumerate(SENTENCES) if not {"soup", "nobody"} & set(s.split())]
    assert part.sentences == tuple(SENTENCES[at] for at in left)
    assert part.labels == tuple(LABELS[at] for at in left)
    np.testing.assert_array_equal(part.space.vectors, pool.space.vectors[left])
    assert part.space.provenance["excluded"] == len(SENTENCES) - len(left) == 10
    assert part.space.provenance["coverage"]["texts"] == len(left)
    # A text with such a word still finds its entry, among the others.
    assert part.look_up(["the soup was cold and late", ""])[0] >= 0
    assert part.without(["soup"]) is part
    with pytest.raises(InvalidValueError, match="none of 30 sentences is left; exclude fewer"):
        pool.without(["soup", "waiter", "film", "doctor", "garden", "train"])
    with pytest.raises(InvalidTypeError, match="got a single string; pass a list"):
        pool.without("soup")


def test_labels_that_are_refused(pool: SentencePool) -> None:
    with pytest.raises(InvalidValueError, match=r"its labels are 'doctor', .* 'waiter'$") as error:
        pool.with_label("secret")
    assert "secret" not in str(error.value)
    with pytest.raises(InvalidValueError, match="the pool has no labels"):
        small_pool(labels=None).with_label("film")
    with pytest.raises(InvalidTypeError, match=r"expected a label .* got a NoneType"):
        small_pool(labels=[None, *LABELS[1:]])
    with pytest.raises(InvalidValueError, match="a label for each of 30 sentences, got 29"):
        small_pool(labels=LABELS[1:])
    many = small_pool(labels=list(range(30)))
    assert many.labels == tuple(map(str, range(30)))
    with pytest.raises(InvalidValueError, match=r"'26' and 10 more$"):
        many.with_label("x")


def test_labels_follow_what_is_left_of_the_sentences() -> None:
    given = ["no", SENTENCES[3], "zork zork zork", SENTENCES[5], SENTENCES[3], SENTENCES[0]]
    pool = SentencePool.from_sentences(
        given, small_words(), labels=["a", "b", "c", "d", "e", "f"], progress=False
    )
    assert pool.labels == ("b", "d", "f")


def test_labels_of_a_dataset() -> None:
    rows = Dataset.from_dict(
        {"text": ["I liked the soup a lot. I liked the film.", None, "A very old train."],
         "topic": [1, 2, 0]}
    )  # fmt: skip
    pool = SentencePool.from_dataset(
        rows, label_column="topic", encoder=small_words(), progress=False
    )
    assert pool.labels == ("1", "1", "0")
    with pytest.raises(InvalidValueError, match="no column 'kind'; columns are 'text', 'topic'"):
        SentencePool.from_dataset(rows, label_column="kind", encoder=small_words())


def test_labels_are_stored_and_bound_by_the_digest(tmp_path: Path) -> None:
    words = small_words(tmp_path / "words")
    pool = small_pool(words)
    assert len({pool.digest, small_pool(words, labels=None).digest}) == 2
    assert small_pool(words, labels=LABELS[::-1]).digest != pool.digest
    pool.save_pretrained(tmp_path / "pool", license="mit")
    again = SentencePool.from_pretrained(tmp_path / "pool")
    assert (again.labels, again.digest) == (pool.labels, pool.digest)
    card = (tmp_path / "pool" / "README.md").read_text("utf-8")
    assert "| labels, and how many sentences have each | `doctor` 5, `film` 5, `garden` 5, " in card
    assert " `waiter` 5 |" in card


@pytest.mark.parametrize("damage", ["codes", "names", "length"])
def test_damaged_labels_are_refused(tmp_path: Path, damage: str) -> None:
    small_pool(small_words(tmp_path / "words")).save_pretrained(tmp_path / "pool", license="mit")
    path = tmp_path / "pool" / "encoder.safetensors"
    arrays = load_file(path)
    if damage == "names":
        arrays["label_names"] = arrays["label_names"][:-1]
    elif damage == "codes":
        arrays["labels"] = arrays["labels"] - 1
    else:
        arrays["labels"] = arrays["labels"][:-1]
    record = tmp_path / "pool" / "encoder.json"
    entries = json.loads(record.read_text("utf-8"))
    ordered = {name: arrays[name] for name in sorted(arrays)}
    entries["sha256"] = tensors.sha256(ordered)
    path.write_bytes(b"".join(tensors.pieces(ordered)))
    record.write_text(json.dumps(bind(entries)), "utf-8")
    with pytest.raises(ArtifactError, match="these are no labels of 30 sentences"):
        SentencePool.from_pretrained(tmp_path / "pool")


# Unions


def test_a_union_is_the_pool_of_all_sentences() -> None:
    first = small_pool(labels=None)
    more = ["a very cold film", SENTENCES[2], "nobody liked the old doctor"]
    second = SentencePool.from_sentences(more, first, progress=False)
    np.testing.assert_array_equal(second.points(SENTENCES), first.points(SENTENCES))
    union = SentencePool.union([first, second], progress=False)
    assert union.sentences == (*SENTENCES, more[0], more[2])
    assert union.look_up([*SENTENCES, *more]).tolist() == [*range(30), 30, 2, 31]
    # A sentence of the second pool has near ones of the first.
    tree = union.space.hierarchy
    assert tree is not None
    nearest = tree.common_sizes(np.full(31, 30), np.array([*range(30), 31]))
    assert nearest.min() < 6


def test_a_union_has_the_labels_and_the_licence_of_its_parts() -> None:
    first = small_pool(provenance={"licence": "mit"})
    other = {"licence": "mit", "source": "made up"}
    second = SentencePool.from_sentences(
        ["a very cold film", SENTENCES[0]], first, labels=["new", "new"], provenance=other
    )
    union = SentencePool.union([first, second], progress=False)
    assert union.labels == (*LABELS, "new")
    assert union.space.provenance["licence"] == "mit"
    assert [part["digest"] for part in union.space.provenance["pools"]] == [
        first.digest,
        second.digest,
    ]
    third = SentencePool.from_sentences(["the old soup"], first, labels=["new"], progress=False)
    assert "licence" not in SentencePool.union([union, third], progress=False).space.provenance


def test_unions_that_are_refused(pool: SentencePool) -> None:
    with pytest.raises(InvalidValueError, match="two or more pools to join, got 1"):
        SentencePool.union([pool])
    other = small_pool(dimensions=3)
    with pytest.raises(InvalidValueError, match="one encoder and one projection, got different"):
        SentencePool.union([pool, other])
    bare = SentencePool.from_sentences(SENTENCES[:4], pool, progress=False)
    with pytest.raises(InvalidValueError, match="some of the pools have labels and others"):
        SentencePool.union([pool, bare])
