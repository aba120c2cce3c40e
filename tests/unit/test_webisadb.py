"""Reading WebIsADB: its layouts, what is damaged in them, and the filters."""

import csv
import gzip
import importlib.util
import io
import sys
import tarfile
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hf_dxprivacy.errors import (
    ArtifactError,
    InvalidTypeError,
    InvalidValueError,
    MissingExtraError,
)
from hf_dxprivacy.training import Relations, WebIsADB, read_webisadb, webisadb_reader
from hf_dxprivacy.training.webisadb import offensive_words
from hf_dxprivacy.training.webisadb_reader import FLATTENED, PUBLISHED

Tuple = tuple[str, str, object]

WORDS = ("cat", "dog", "animal", "pet", "oak", "tree", "it", "thing")
TUPLES: tuple[Tuple, ...] = (
    ("cat", "animal", 20),
    ("dog", "animal", 30),
    ("dog", "pet", 12),
    ("cat", "pet", 9),
    ("cat", "pet", 1),
    ("oak", "tree", 9),
    ("guard dog", "animal", 40),
    ("dog", "friend, of man", 50),
    ("pet", "animal", 11),
    ("it", "thing", 99),
    ("animal", "animal", 10),
)
_REST = ("of sorts", "p8b;", "site.com;", "1;2;")
LIST = '[{"_id":{"$numberLong":"1"},"ipremod":"","frequency":1}]'


def _text(columns: Sequence[str], rows: Iterable[Sequence[object]], header: bool = True) -> bytes:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerows([columns, *rows] if header else rows)
    return buffer.getvalue().encode()


def _published(tuples: Iterable[Tuple] = TUPLES, header: bool = True) -> bytes:
    rows = ([number, *row, 1, 1, LIST] for number, row in enumerate(tuples))
    return _text(PUBLISHED, rows, header)


def _flattened(tuples: Iterable[Tuple] = TUPLES, header: bool = True) -> bytes:
    rows = (
        (number, f"big {node}", f"{top} of sorts", count, 1, 1, "big", node, "", "", top, *_REST)
        for number, (node, top, count) in enumerate(tuples)
    )
    return _text(FLATTENED, rows, header)


def _read(path: Path, content: bytes | None = None, **options: Any) -> WebIsADB:
    if content is not None:
        path.write_bytes(content)
    usual: dict[str, Any] = {"vocabulary": WORDS, "offensive": None, "progress": False}
    return read_webisadb(path, **(usual | {"min_links": 1} | options))


def _named(relations: Relations) -> set[tuple[str, str]]:
    return {(relations.nodes[node], relations.nodes[above]) for node, above in relations.pairs}


EXPECTED = {("cat", "animal"), ("dog", "animal"), ("dog", "pet"), ("cat", "pet"), ("pet", "animal")}


@pytest.mark.parametrize("header", [True, False])
@pytest.mark.parametrize("layout", [_published, _flattened])
def test_both_layouts_have_the_same_relations(tmp_path: Path, layout: Any, header: bool) -> None:
    relations = _read(tmp_path / "dump.csv", layout(header=header))
    assert _named(relations) == EXPECTED
    assert relations.nodes == ("animal", "cat", "dog", "pet")
    summary = relations.summary
    assert summary.rows == len(TUPLES)
    assert (summary.outside_vocabulary, summary.pairs) == (2, 8)
    assert (summary.infrequent, summary.reflexive, summary.stop_words) == (1, 1, 1)
    assert (summary.offensive, summary.few_links, summary.relations) == (0, 0, 5)


def test_columns_are_found_by_their_names(tmp_path: Path) -> None:
    content = _text(("frequency", "note", "class", "instance"), [(10, 'a "b", c', "tree", "oak")])
    assert _named(_read(tmp_path / "dump.csv", content)) == {("oak", "tree")}


def test_every_field_may_be_quoted(tmp_path: Path) -> None:
    fields = ['"1"', '"cat"', '"pet"', '"10.0"', '"1"', '"1"', '"[]"']
    relations = _read(tmp_path / "dump.csv", ",".join(fields).encode())
    assert _named(relations) == {("cat", "pet")}
    assert relations.summary.broken_modifications == 0


def test_case_makes_no_difference(tmp_path: Path) -> None:
    content = _published([("CAT", "Pet", 5), ("cat", "PET", 5), ("Éclair", "thing", 10)])
    relations = _read(tmp_path / "dump.csv", content, vocabulary=["Cat", "pet", "éclair", "Thing"])
    assert _named(relations) == {("cat", "pet"), ("éclair", "thing")}


def test_rows_of_several_files_are_added_up(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(_published(TUPLES[:4]))
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress(_flattened(TUPLES[4:])))
    assert _named(_read(tmp_path)) == EXPECTED


def test_the_dump_is_read_as_it_is_published(tmp_path: Path) -> None:
    # An archive of archives, of which some files have no header.
    for name, content in (("c", _published(TUPLES[:4])), ("d", _published(TUPLES[4:], False))):
        (tmp_path / f"{name}.csv").write_bytes(content)
        with tarfile.open(tmp_path / f"{name}.tar", "w") as archive:
            archive.add(tmp_path / f"{name}.csv", arcname=f"{name}.csv")
    with tarfile.open(tmp_path / "tuplesdb.1.tar.gz", "w:gz") as archive:
        for name in ("c", "d"):
            archive.add(tmp_path / f"{name}.tar", arcname=f"tuplesdb/{name}.tar")
    relations = _read(tmp_path / "tuplesdb.1.tar.gz", work=tmp_path / "work")
    assert _named(relations) == EXPECTED
    assert relations.summary.rows == len(TUPLES)
    assert len(list((tmp_path / "work").glob("*.parquet"))) == 2


DAMAGED = (
    (b"1,cat,pet", {"incomplete": 1}),
    (b'1,"cat,pet,12,1,1,[]', {"incomplete": 1}),
    (b"", {"rows": 0}),
    (b"1,cat,pet,many,1,1,[]", {"bad_frequency": 1}),
    (b"1,cat,pet,,1,1,[]", {"bad_frequency": 1}),
    (b"1,cat,pet,-12,1,1,[]", {"bad_frequency": 1}),
    (b"1,cat,pet,12.5,1,1,[]", {"bad_frequency": 1}),
    (b"1,cat,pet,nan,1,1,[]", {"bad_frequency": 1}),
    (b"1,cat,pet,1e300,1,1,[]", {"bad_frequency": 1}),
    (b'1,cat,pet,12.0,1,1,"[{""_id"":', {"broken_modifications": 1, "pairs": 1}),
    (b"1,cat,pet,12,1,1,", {"broken_modifications": 1, "pairs": 1}),
    (b"1,c\0at,pet\0,12,1,1,[]", {"nul_bytes": 2, "pairs": 1}),
    (b'1,cat,pet,12,1,1,"[\xff \xfe]"', {"undecodable": 1, "pairs": 1}),
    (b"1,cat\xff,pet,12,1,1,[]", {"undecodable": 1, "outside_vocabulary": 1}),
    (b'1,ca"t,pet,12,1,1,[]', {"outside_vocabulary": 1}),
    (b'1,"ca""t",pet,12,1,1,[]', {"outside_vocabulary": 1}),
    (b'1,cat,pet,12,1,1,"[' + b"x" * 1_000_000 + b']"', {"pairs": 1}),
    (b'1,cat,pet,12,1,1,"[]"\r', {"pairs": 1}),
)


@pytest.mark.parametrize(("line", "counts"), DAMAGED)
def test_damage_is_counted_and_harms_no_other_row(
    tmp_path: Path, line: bytes, counts: dict[str, int]
) -> None:
    before, after = _published([("dog", "animal", 10)]), b"2,oak,tree,10,1,1,[]\n"
    relations = _read(tmp_path / "dump.csv", before + line + b"\n" + after)
    assert {("dog", "animal"), ("oak", "tree")} <= _named(relations)
    expected = {"rows": 1, "incomplete": 0, "bad_frequency": 0, "broken_modifications": 0}
    expected |= {"nul_bytes": 0, "undecodable": 0, "outside_vocabulary": 0, "pairs": 0} | counts
    found = {name: getattr(relations.summary, name) for name in expected}
    assert found == expected | {"rows": expected["rows"] + 2, "pairs": expected["pairs"] + 2}


def test_undecodable_rows_are_counted_once_each(tmp_path: Path) -> None:
    lines = b"1,\xff\xfe,\xff,1,1,1,[]\n2,oak,tree,10,1,1,[\xc3]\n3,dog,pet,10,1,1,[\xc3\xa9]\n"
    relations = _read(tmp_path / "dump.csv", lines)
    assert relations.summary.undecodable == 2
    assert _named(relations) == {("oak", "tree"), ("dog", "pet")}


def test_a_damaged_first_row_does_not_hide_the_layout(tmp_path: Path) -> None:
    content = b"cat\n" + _published(header=False)
    assert _named(_read(tmp_path / "dump.csv", content)) == EXPECTED


def test_blocks_and_segments_make_no_difference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = _read(tmp_path / "dump.csv", _published(TUPLES * 20), work=tmp_path / "whole")
    monkeypatch.setattr(webisadb_reader, "BLOCK", 100)
    monkeypatch.setattr(webisadb_reader, "SEGMENT", 500)
    monkeypatch.setattr(webisadb_reader, "ROWS_AT_ONCE", 30)
    parts = _read(tmp_path / "dump.csv", work=tmp_path / "parts")
    assert len(list((tmp_path / "whole").glob("*.parquet"))) == 1
    assert len(list((tmp_path / "parts").glob("*.parquet"))) > 20
    assert parts.nodes == whole.nodes
    assert parts.pairs.tolist() == whole.pairs.tolist()
    assert parts.summary == whole.summary


def test_what_was_read_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dump, work = tmp_path / "dump.csv", tmp_path / "work"
    first = _read(dump, _published(), work=work)

    def fail(*_: object) -> None:
        raise AssertionError("rows were parsed again")

    with monkeypatch.context() as patch:
        patch.setattr(webisadb_reader, "read_rows", fail)
        again = _read(dump, work=work)
        assert again.summary == first.summary
        # Other filters need no other reading.
        assert len(_read(dump, work=work, min_frequency=1, stopwords=None)) == 7
        with pytest.raises(AssertionError, match="parsed again"):
            _read(dump, work=work, vocabulary=["cat", "pet"])
    assert len(_read(dump, _published(TUPLES[:2]), work=work)) == 2


def test_a_damaged_segment_is_named(tmp_path: Path) -> None:
    dump, work = tmp_path / "dump.csv", tmp_path / "work"
    _read(dump, _published(), work=work)
    (segment,) = work.rglob("*.parquet")
    segment.write_bytes(segment.read_bytes()[:-10])
    with pytest.raises(ArtifactError, match=f"{segment.name}: damaged; delete it to read again"):
        _read(dump, work=work)


def test_frequency_is_that_of_a_pair(tmp_path: Path) -> None:
    content = _published([("cat", "pet", 4)] * 3 + [("dog", "pet", 11)])
    assert _named(_read(tmp_path / "d.csv", content, min_frequency=12)) == {("cat", "pet")}
    assert len(_read(tmp_path / "d.csv", content, min_frequency=13)) == 0
    assert len(_read(tmp_path / "d.csv", content, min_frequency=0)) == 2


def test_parts_that_nothing_joins_go_if_asked(tmp_path: Path) -> None:
    content = _published([*TUPLES, ("oak", "tree", 10)])
    assert _named(_read(tmp_path / "dump.csv", content)) == EXPECTED | {("oak", "tree")}
    relations = _read(tmp_path / "dump.csv", connected=True)
    assert _named(relations) == EXPECTED
    assert relations.nodes == ("animal", "cat", "dog", "pet")
    assert (relations.summary.disconnected, relations.summary.relations) == (1, 5)


def test_words_with_few_links_go_until_all_have_enough(tmp_path: Path) -> None:
    square = [("w1", "w2"), ("w2", "w3"), ("w3", "w4"), ("w4", "w1")]
    tail = [("w4", "w5"), ("w5", "w6"), ("w6", "w7")]
    content = _published([(node, above, 10) for node, above in square + tail])
    words = [f"w{number}" for number in range(1, 8)]
    relations = _read(tmp_path / "d.csv", content, vocabulary=words, min_links=2)
    assert _named(relations) == set(square)
    assert relations.summary.few_links == 3
    assert relations.degrees().min() == 2
    assert len(_read(tmp_path / "d.csv", vocabulary=words, min_links=3)) == 0
    assert len(_read(tmp_path / "d.csv", vocabulary=words, min_links=0)) == 7


def test_stop_words_may_be_chosen(tmp_path: Path) -> None:
    assert ("it", "thing") in _named(_read(tmp_path / "d.csv", _published(), stopwords=None))
    relations = _read(tmp_path / "d.csv", stopwords={"Cat"})
    assert _named(relations) == {pair for pair in EXPECTED if "cat" not in pair} | {("it", "thing")}
    assert relations.summary.stop_words == 2


def test_offensive_words_may_be_chosen(tmp_path: Path) -> None:
    left = {("dog", "animal"), ("dog", "pet"), ("pet", "animal")}
    relations = _read(tmp_path / "d.csv", _published(), offensive=["CAT", "tree"])
    assert _named(relations) == left
    assert relations.summary.offensive == 2
    listed = tmp_path / "words.txt"
    listed.write_text("cat\n \ntwo words\n")
    for choice in (listed, str(listed)):
        assert _named(_read(tmp_path / "d.csv", offensive=choice)) == left


def test_the_english_list_of_offensive_words() -> None:
    if importlib.util.find_spec("better_profanity") is None:
        with pytest.raises(MissingExtraError, match=r"better_profanity.*hf-dxprivacy\[train\]"):
            offensive_words("english")
        return
    words = offensive_words("english")
    assert 500 < len(words) < 2000
    assert "bastard" in words
    assert not words & {"dog", "london", "guitar", "cheese"}


def test_offensive_words_of_another_kind_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError, match=r"one word a line; .*german cannot be read"):
        offensive_words(tmp_path / "german")
    with pytest.raises(InvalidTypeError, match="offensive words to be strings"):
        offensive_words(["a", 1])  # type: ignore[list-item]


def test_the_summary_reads_as_a_table(tmp_path: Path) -> None:
    summary = _read(tmp_path / "d.csv", _published()).summary
    lines = str(replace(summary, rows=1_234_567, seconds=2.0)).splitlines()
    assert lines[0].split() == ["rows", "1,234,567"]
    assert ["stop", "words", "1"] in [line.split() for line in lines]
    assert lines[-1].split() == ["rows", "per", "second", "617,284"]
    assert len({len(line) for line in lines}) == 1


@pytest.mark.parametrize(
    "content",
    [b"text,label\nhello,1\n", b"\x89PNG\r\n\x1a\n\0\0", b"cat\tpet\tten\n", b"1,cat,pet,10\n"],
)
def test_other_files_are_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(ArtifactError, match=r"d\.csv: neither a file of WebIsADB nor counted pa"):
        _read(tmp_path / "d.csv", content)


@pytest.mark.parametrize("content", [b"", _published([])])
def test_files_without_rows_are_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(ArtifactError, match=r"d\.csv: expected rows of WebIsADB, found none"):
        _read(tmp_path / "d.csv", content)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match=r"d\.csv is missing"):
        _read(tmp_path / "d.csv")


def test_options_out_of_bounds_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError, match="max_classes >= 1"):
        _read(tmp_path / "d.csv", max_classes=0)
    with pytest.raises(InvalidValueError, match="phrases"):
        _read(tmp_path / "d.csv", phrases="tail")
    for name in ("min_frequency", "min_links"):
        with pytest.raises(InvalidValueError, match=f"{name} >= 0"):
            _read(tmp_path / "d.csv", **{name: -1})
    with pytest.raises(InvalidValueError, match="vocabulary to hold at least one word"):
        _read(tmp_path / "d.csv", vocabulary=[])
    with pytest.raises(InvalidTypeError, match="several words, got one string"):
        _read(tmp_path / "d.csv", vocabulary="cat")
    with pytest.raises(InvalidValueError, match="stopwords to be None, 'english'"):
        _read(tmp_path / "d.csv", stopwords="german")


def test_without_polars_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "hf_dxprivacy.training.webisadb_reader")
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(MissingExtraError, match=r"'polars'.*hf-dxprivacy\[train\]"):
        _read(tmp_path / "d.csv", _published())
