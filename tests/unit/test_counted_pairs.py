"""Pairs with counts beside WebIsADB: layouts, damage, phrases, and what contradicts itself."""

import gzip
import random
from collections import Counter
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from hf_dxprivacy.training import Relations, WebIsADB, pruning, read_webisadb
from hf_dxprivacy.training.webisadb import WEBISADB, webisadb_origin

WORDS = ("cat", "dog", "animal", "pet", "oak", "tree", "union", "country", "new york", "york")
GOOD = b"cat\tanimal\t20\ndog\tanimal\t30\n"


def _read(path: Path, content: bytes, **options: Any) -> WebIsADB:
    path.write_bytes(content)
    usual: dict[str, Any] = {"vocabulary": WORDS, "offensive": None, "progress": False}
    return read_webisadb(path, **(usual | {"min_links": 1, "min_frequency": 1} | options))


def _named(relations: Relations) -> set[tuple[str, str]]:
    return {(relations.nodes[node], relations.nodes[above]) for node, above in relations.pairs}


@pytest.mark.parametrize(
    "content",
    [
        GOOD,
        gzip.compress(GOOD, mtime=0),
        b"\xef\xbb\xbf" + GOOD.replace(b"\n", b"\r\n"),
        b"hyponym\thypernym\tcount\n" + GOOD,
        b"hyponym,hypernym,count\n" + GOOD.replace(b"\t", b","),
        b'"CAT","animal","20"\ndog,"animal",30.0',
        b"count,note,hypernym,hyponym\n20,a,animal,cat\n30,b,animal,dog\n",
    ],
)
def test_tables_with_tabs_or_commas_are_read(tmp_path: Path, content: bytes) -> None:
    relations = _read(tmp_path / "pairs.txt", content, min_frequency=20)
    assert _named(relations) == {("cat", "animal"), ("dog", "animal")}
    assert (relations.summary.rows, relations.summary.counted_pairs) == (2, 2)


@pytest.mark.parametrize(
    ("line", "counts"),
    [
        (b"cat\tpet", {"incomplete": 1}),
        (b"cat\tpet\t12\t1", {"incomplete": 1}),
        (b"cat\tpet\t-12", {"bad_frequency": 1}),
        (b"cat\tpet\t1.5", {"bad_frequency": 1}),
        (b"cat\tpet\t", {"bad_frequency": 1}),
        (b"cat\tpet\t9e99", {"bad_frequency": 1}),
        (b"cat\t\t12", {"outside_vocabulary": 1}),
        (b"cat\tcat\t12", {"pairs": 1, "reflexive": 1}),
        (b"animal\tdog\t12", {"pairs": 1, "opposite": 1}),
        (b"animal\tdog\t30", {"pairs": 1, "opposite": 2}),
        (b"animal\toak\t9\noak\tcat\t8", {"rows": 2, "pairs": 2, "cyclic": 1}),
        (b"c\0at\tpet\0\t12", {"nul_bytes": 2, "pairs": 1}),
        (b"cat\xff\tpet\t12", {"undecodable": 1, "outside_vocabulary": 1}),
        (b"x" * 10_000_000 + b"\tpet\t12", {"outside_vocabulary": 1}),
        (b"x" * 10_000_000, {"incomplete": 1}),
    ],
)
def test_every_row_is_used_or_counted(tmp_path: Path, line: bytes, counts: dict[str, int]) -> None:
    summary = _read(tmp_path / "pairs.txt", GOOD + line + b"\n", acyclic=True).summary
    names = ("incomplete", "bad_frequency", "outside_vocabulary", "reflexive", "opposite", "cyclic")
    expected = dict.fromkeys((*names, "nul_bytes", "undecodable", "pairs"), 0) | {"rows": 1}
    expected |= counts
    found = {name: getattr(summary, name) for name in expected}
    assert found == expected | {"rows": expected["rows"] + 2, "pairs": expected["pairs"] + 2}


PHRASES = (
    b"member_country of_the union\tcountry\t9\nnew_york\tbig_city of york\t8\noak\ttall_tree\t7\n"
)


@pytest.mark.parametrize(
    ("phrases", "expected"),
    [
        ("whole", set()),
        ("class", {("oak", "tree"), ("new_york", "city")}),
        ("head", {("oak", "tree"), ("york", "city")}),
    ],
)
def test_heads_may_stand_for_phrases(
    tmp_path: Path, phrases: str, expected: set[tuple[str, str]]
) -> None:
    words = (*WORDS, "city")
    relations = _read(tmp_path / "pairs.txt", PHRASES, phrases=phrases, vocabulary=words)
    assert _named(relations) == expected
    assert relations.summary.reflexive == (phrases == "head")
    # A folder of interim results belongs to one choice.
    for choice in ("whole", phrases):
        again = _read(
            *(tmp_path / "pairs.txt", PHRASES),
            phrases=choice,
            vocabulary=words,
            work=tmp_path / "work",
        )
        assert (_named(again) == expected) or choice == "whole"


def test_files_of_both_kinds_are_added_up(tmp_path: Path) -> None:
    header = b"_id,instance,class,frequency,pidspread,pldspread,modifications\n"
    (tmp_path / "dump.csv").write_bytes(header + b'1,new york,pet,5,1,1,"[]"\n')
    (tmp_path / "pairs.txt").write_bytes(b"new_york\tpet\t4\n" + GOOD)
    options: dict[str, Any] = {"vocabulary": WORDS, "min_links": 1, "progress": False}
    both = read_webisadb(tmp_path, **options, offensive=None, min_frequency=9)
    assert ("new_york", "pet") in _named(both)
    assert (both.summary.rows, both.summary.counted_pairs) == (4, 3)
    assert webisadb_origin(both, {})["licence"] == WEBISADB["licence"]
    alone = read_webisadb(tmp_path / "pairs.txt", **options, offensive=None)
    assert "licence" not in webisadb_origin(alone, {})


def test_slurs_go_with_the_offensive_words(tmp_path: Path) -> None:
    words = (*WORDS, "nigger")
    content = GOOD + b"nigger\tanimal\t50\n"
    for offensive, count in (((), 1), (None, 0)):
        found = _read(tmp_path / "p.txt", content, vocabulary=words, offensive=offensive)
        assert (found.summary.offensive, "nigger" in found.nodes) == (count, not count)


def test_each_word_keeps_its_most_frequent_classes(tmp_path: Path) -> None:
    content = b"cat\tpet\t5\ncat\tanimal\t7\ncat\ttree\t7\ndog\tpet\t1\n"
    found = _read(tmp_path / "pairs.txt", content, max_classes=2)
    assert _named(found) == {("cat", "animal"), ("cat", "tree"), ("dog", "pet")}
    assert found.summary.weak == 1


COUNTED = st.dictionaries(
    st.tuples(st.integers(0, 6), st.integers(0, 6)).filter(lambda pair: pair[0] != pair[1]),
    st.integers(1, 4),
)


@given(COUNTED)
def test_pruned_pairs_obey_their_laws(counted: dict[tuple[int, int], int]) -> None:
    pairs = np.array(list(counted), dtype=np.int64).reshape(-1, 2)
    counts = np.array(list(counted.values()), dtype=np.int64)
    direction = pruning.more_frequent_direction(pairs, counts)
    opposite = [counted.get((above, node), 0) for node, above in counted]
    assert direction.tolist() == (counts > opposite).tolist()
    few = pruning.strongest(pairs, counts, 2)
    for node in range(7):
        mine = np.sort(counts[pairs[:, 0] == node])[::-1]
        assert np.sort(counts[few & (pairs[:, 0] == node)])[::-1].tolist() == mine[:2].tolist()
    kept = pruning.acyclic(pairs, counts)
    # Raises if there is a cycle.
    tuple(TopologicalSorter(_above(pairs[kept])).static_order())
    # Only what was part of a cycle may go.
    everything = _above(pairs)
    for node, top in pairs[~kept].tolist():
        assert node in _reached(top, everything)


def _above(pairs: NDArray[np.int64]) -> dict[int, list[int]]:
    above: dict[int, list[int]] = {}
    for node, top in pairs.tolist():
        above.setdefault(node, []).append(top)
    return above


def _reached(node: int, above: dict[int, list[int]]) -> set[int]:
    found, waiting = {node}, [node]
    while waiting:
        new = set(above.get(waiting.pop(), ())) - found
        found |= new
        waiting += new
    return found


def test_a_cycle_is_broken_where_it_is_weakest() -> None:
    random.seed(1)
    for size in (2, 3, 50):
        ring = [(node, (node + 1) % size) for node in range(size)]
        counts = np.array(random.sample(range(1, 1000), size))
        kept = pruning.acyclic(np.array(ring), counts)
        assert kept.tolist() == (counts > counts.min()).tolist()
    assert Counter(pruning.acyclic(np.array([(0, 1), (1, 0)]), np.array([3, 3])).tolist()) == {
        True: 1,
        False: 1,
    }


def test_the_order_of_the_pairs_decides_nothing() -> None:
    draw = np.random.default_rng(3)
    pairs = np.unique(draw.integers(0, 30, size=(300, 2)), axis=0)
    counts = draw.integers(1, 4, size=len(pairs))
    kept = pruning.acyclic(pairs, counts)
    assert (~kept).sum() > 20
    for _ in range(3):
        order = draw.permutation(len(pairs))
        assert pruning.acyclic(pairs[order], counts[order]).tolist() == kept[order].tolist()
