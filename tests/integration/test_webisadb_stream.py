"""WebIsADB as a whole: killed and resumed, in memory that does not grow, and the real data."""

import csv
import gzip
import random
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from hf_dxprivacy.spaces import EmbeddingSpace
from hf_dxprivacy.text.stopwords import ENGLISH
from hf_dxprivacy.training import WebIsADB, read_webisadb, train_poincare, webisadb_reader
from hf_dxprivacy.training.webisadb_reader import Layout

VOCABULARY = tuple(f"word{number}" for number in range(300))

BLOCK, SEGMENT = 1 << 16, 1 << 18

READ = """
import os, resource, signal, sys
from hf_dxprivacy.training import read_webisadb, webisadb_reader

dump, work, block, segment, kill_at = *sys.argv[1:3], *map(int, sys.argv[3:])
webisadb_reader.BLOCK, webisadb_reader.SEGMENT = block, segment
write, calls = webisadb_reader.atomic_write, []

def die_half_way(pieces):
    for piece in pieces:
        yield piece[: len(piece) // 2]
        os.kill(os.getpid(), signal.SIGKILL)

def write_or_die(path, pieces):
    calls.append(path)
    write(path, die_half_way(pieces) if len(calls) == kill_at else pieces)

webisadb_reader.atomic_write = write_or_die
vocabulary = [f"word{number}" for number in range(300)]
read_webisadb(dump, vocabulary=vocabulary, work=work, offensive=None, progress=False)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10)
"""


def _rows(count: int, seed: int = 0) -> bytes:
    draw = random.Random(seed)
    lines = (
        f"{number},word{draw.randrange(400)},word{draw.randrange(400)},{draw.randrange(9)},1,1,"
        '"[{""_id"":{""$numberLong"":""1""},""ipremod"":"""",""frequency"":1}]"\n'
        for number in range(count)
    )
    return "".join(lines).encode()


def _counted(count: int, seed: int = 0) -> bytes:
    draw = random.Random(seed)
    words = (f"word{draw.randrange(400)}\tword{draw.randrange(400)}" for _ in range(count))
    return "".join(f"{pair}\t{draw.randrange(9)}\n" for pair in words).encode()


def _start(
    dump: Path, work: Path, block: int = BLOCK, segment: int = SEGMENT, kill_at: int = 0
) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-c", READ, *map(str, (dump, work, block, segment, kill_at))]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def _read(dump: Path, work: Path | None = None) -> WebIsADB:
    return read_webisadb(dump, vocabulary=VOCABULARY, work=work, offensive=None, progress=False)


@pytest.mark.parametrize(("counted", "packed"), [(False, False), (False, True), (True, True)])
def test_a_killed_reading_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, counted: bool, packed: bool
) -> None:
    dump, work = tmp_path / "dump", tmp_path / "work"
    dump.mkdir()
    contents = [_counted(90_000, seed) if counted else _rows(15_000, seed) for seed in range(2)]
    for number, rows in enumerate(contents):
        (dump / f"{number}.csv").write_bytes(gzip.compress(rows, 1) if packed else rows)
    # In the middle of writing the eighth segment; the first file has six, the last one is shorter.
    assert _start(dump, work, kill_at=8).returncode == -signal.SIGKILL
    assert len(list(work.glob("*.parquet"))) == 7

    parse, parsed = webisadb_reader.read_rows, []

    def count(block: bytes, layout: Layout) -> object:
        parsed.append(len(block))
        return parse(block, layout)

    monkeypatch.setattr(webisadb_reader, "BLOCK", BLOCK)
    monkeypatch.setattr(webisadb_reader, "SEGMENT", SEGMENT)
    monkeypatch.setattr(webisadb_reader, "read_rows", count)
    resumed = _read(dump, work)
    assert 0 < sum(parsed) <= len(contents[1]) - SEGMENT
    whole = _read(dump)
    assert resumed.nodes == whole.nodes
    assert resumed.pairs.tolist() == whole.pairs.tolist()
    assert resumed.summary == whole.summary
    assert whole.summary.relations > 100


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    rows, peaks, copies = _rows(10_000), [], (10, 110)
    for number in copies:
        dump = tmp_path / f"{number}.csv.gz"
        dump.write_bytes(gzip.compress(rows, 1) * number)
        done = _start(dump, tmp_path / "work", block=1 << 20, segment=1 << 22)
        assert done.returncode == 0, done.stderr
        peaks.append(int(done.stdout) << 20)
    assert peaks[1] - peaks[0] < 0.5 * len(rows) * (copies[1] - copies[0])


def _real(path: Path, min_frequency: int, min_links: int) -> WebIsADB:
    return read_webisadb(
        path,
        vocabulary=EmbeddingSpace.from_pretrained("wordnet-gloss").words,
        min_frequency=min_frequency,
        min_links=min_links,
        offensive=None,
        progress=False,
    )


@pytest.mark.realdata
@pytest.mark.parametrize("name", ["tuplesdb", "webisa"])
def test_the_real_samples_give_what_their_rows_say(data: Path, name: str) -> None:
    path = data / "webisadb" / f"{name}_sample.csv.gz"
    relations = _real(path, min_frequency=20, min_links=1)
    ends = ("instance", "class") if name == "tuplesdb" else ("ilemma", "clemma")
    words, counts = set(EmbeddingSpace.from_pretrained("wordnet-gloss").words), Counter[Any]()
    limit = csv.field_size_limit(1 << 30)
    with gzip.open(path, "rt", encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            counts[row[ends[0]].lower(), row[ends[1]].lower()] += int(row["frequency"])
    csv.field_size_limit(limit)
    expected = {
        pair
        for pair, count in counts.items()
        if count >= 20 and pair[0] != pair[1] and words.issuperset(pair) and not ENGLISH & {*pair}
    }
    names = relations.nodes
    assert {(names[node], names[above]) for node, above in relations.pairs} == expected
    assert len(relations) == len(expected) == 839


@pytest.mark.realdata
def test_from_the_real_sample_to_a_space(data: Path) -> None:
    relations = _real(data / "webisadb" / "tuplesdb_sample.csv.gz", min_frequency=10, min_links=2)
    summary = relations.summary
    # The vocabulary holds no slurs, which five rows of the sample do.
    assert (summary.rows, summary.outside_vocabulary, summary.pairs) == (2994, 603, 2391)
    assert (summary.infrequent, summary.reflexive, summary.stop_words) == (1089, 33, 43)
    assert (summary.few_links, summary.relations, len(relations.nodes)) == (737, 489, 329)
    assert (summary.incomplete, summary.bad_frequency, summary.broken_modifications) == (0, 0, 0)
    assert train_poincare(relations, dim=2, progress=False).words == relations.nodes
