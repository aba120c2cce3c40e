"""Whatever the order of the rows and however they are split: the same relations."""

import gzip
import random
import tempfile
from collections import Counter
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from hf_dxprivacy.training import Relations, read_webisadb

WORDS = ("w1", "w2", "w3", "w4", "w5")
ROWS = st.lists(
    st.tuples(st.sampled_from((*WORDS, "out")), st.sampled_from(WORDS), st.integers(0, 6)),
    min_size=1,
    max_size=60,
)

Row = tuple[str, str, int]


def _expected(rows: list[Row], min_frequency: int, min_links: int) -> set[tuple[str, str]]:
    counts: Counter[tuple[str, str]] = Counter()
    for node, above, frequency in rows:
        counts[node, above] += frequency
    pairs = {
        (node, above)
        for (node, above), frequency in counts.items()
        if frequency >= min_frequency and node != above and node in WORDS
    }
    while True:
        links = Counter(word for pair in pairs for word in pair)
        kept = {pair for pair in pairs if all(links[word] >= min_links for word in pair)}
        if kept == pairs:
            return pairs
        pairs = kept


def _write(folder: Path, rows: list[Row], files: int) -> None:
    for number in range(files):
        lines = [f'1,{node},{above},{count},1,1,"[]"' for node, above, count in rows[number::files]]
        text = "\n".join(["_id,instance,class,frequency,pidspread,pldspread,modifications", *lines])
        packed = gzip.compress(text.encode()) if number % 2 else text.encode()
        (folder / f"part-{number}.csv").write_bytes(packed)


def _named(relations: Relations) -> set[tuple[str, str]]:
    return {(relations.nodes[node], relations.nodes[above]) for node, above in relations.pairs}


@settings(max_examples=40, deadline=None)
@given(ROWS, st.integers(1, 8), st.integers(0, 3), st.integers(1, 4), st.randoms())
def test_relations_depend_on_the_rows_only(
    rows: list[Row], min_frequency: int, min_links: int, files: int, order: random.Random
) -> None:
    expected = _expected(rows, min_frequency, min_links)
    order.shuffle(rows)
    with tempfile.TemporaryDirectory() as folder:
        _write(Path(folder), rows, files)
        relations = read_webisadb(
            folder,
            vocabulary=WORDS,
            min_frequency=min_frequency,
            min_links=min_links,
            offensive=None,
            progress=False,
        )
    assert _named(relations) == expected
    assert len(relations) == len(expected) == relations.summary.relations
    assert list(relations.nodes) == sorted(relations.nodes)
    assert relations.pairs.tolist() == sorted(relations.pairs.tolist())
    outside = sum(node == "out" for node, _, _ in rows)
    assert (relations.summary.rows, relations.summary.outside_vocabulary) == (len(rows), outside)
