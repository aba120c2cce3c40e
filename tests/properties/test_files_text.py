"""Whatever a csv or JSON lines file looks like: nothing but the replaced cells changes."""

import csv
import io
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hf_dxprivacy.errors import InvalidValueError
from hf_dxprivacy.files import Columns
from hf_dxprivacy.files.delimited import DelimitedReader, Dialect, Record, RecordParser
from hf_dxprivacy.files.jsonl import JsonLinesReader
from hf_dxprivacy.files.source import Source

here = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)

# Few characters, so that the special ones meet often.
AWKWARD = st.text(st.sampled_from('",;\t\r\n ab\x85\u2028é\ufeff'), max_size=12)
KEYS = st.sampled_from(["text", "other", 'q"uote', "é", ""])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
)


def _source(folder: Path, text: str) -> Source:
    path = folder / "file"
    path.write_bytes(text.encode())
    return Source(path)


def _records(folder: Path, text: str, delimiter: str) -> list[Record]:
    source = _source(folder, text)
    try:
        return list(RecordParser(source, Dialect(delimiter)))
    finally:
        source.close()


@here
@given(text=AWKWARD, delimiter=st.sampled_from([",", "\t"]))
def test_records_are_those_of_the_csv_module_or_refused(
    tmp_path: Path, text: str, delimiter: str
) -> None:
    if text.startswith("\ufeff"):
        return  # a byte order mark, which the csv module does not know
    try:
        records = _records(tmp_path, text, delimiter)
    except InvalidValueError:
        assert '"' in text or "\r" in text
        return
    dialect = Dialect(delimiter)
    values = [[dialect.plain(field) for field in record.fields] for record in records]
    assert values == list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
    assert "".join(delimiter.join(r.fields) + r.end for r in records) == text


@here
@given(
    rows=st.lists(st.tuples(AWKWARD, AWKWARD), max_size=5),
    end=st.sampled_from(["\n", "\r\n"]),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
)
def test_csv_survives_but_for_the_replaced_column(
    tmp_path: Path, rows: list[tuple[str, str]], end: str, quoting: int
) -> None:
    if quoting == csv.QUOTE_MINIMAL:
        # The csv module writes a carriage return without quotes and then reads another row.
        rows = [(a.replace("\r", ""), b.replace("\r", "")) for a, b in rows]
    written = io.StringIO(newline="")
    csv.writer(written, lineterminator=end, quoting=quoting).writerows([("text", "b"), *rows])
    source = _source(tmp_path, written.getvalue())
    reader = DelimitedReader(source, Dialect(","), Columns(("text",), ("text",)))
    (batch,) = [*reader.batches(100)] or [None]
    encoded = reader.head()
    if batch is not None:
        batch.replace({"text": [f"{cell}!" for cell in batch.cells("text")]})
        encoded += batch.encode()
    source.close()
    parsed = list(csv.reader(io.StringIO(encoded.decode(), newline="")))
    assert parsed == [["text", "b"], *([f"{a}!", b] for a, b in rows)]


@here
@given(
    row=st.dictionaries(KEYS, JSON, max_size=5),
    cell=st.none() | st.text(max_size=8),
    new=st.text(max_size=8),
    escaped=st.booleans(),
    separators=st.sampled_from([(",", ":"), (" , ", " : "), (", ", ":\t")]),
)
def test_json_values_are_replaced_and_added_in_place(
    tmp_path: Path,
    row: dict[str, object],
    cell: str | None,
    new: str,
    escaped: bool,
    separators: tuple[str, str],
) -> None:
    row |= {"text": cell}
    line = " " + json.dumps(row, ensure_ascii=escaped, separators=separators) + "\r\n"
    source = _source(tmp_path, line)
    (batch,) = JsonLinesReader(source, Columns(("text",), ("text", "out"))).batches(10)
    source.close()
    assert batch.cells("text") == [cell]
    assert batch.encode() == line.encode()
    batch.replace({"text": [new], "out": [new]})
    result = json.loads(batch.encode())
    assert result == row | {"text": new, "out": new}
    assert list(result) == [*row, "out"]
    others = json.dumps(row | {"text": 0}, ensure_ascii=escaped, separators=separators)
    assert batch.encode().decode().startswith(" " + others.partition('"text"')[0])


@pytest.mark.parametrize("number", ["1.0", "1E400", "0.10000000000000000000001", "9" * 5000])
def test_json_numbers_are_never_converted(tmp_path: Path, number: str) -> None:
    source = _source(tmp_path, f'{{"n": {number}, "text": "a"}}')
    (batch,) = JsonLinesReader(source, Columns(("text",), ("text",))).batches(10)
    source.close()
    batch.replace({"text": ["b"]})
    assert batch.encode().decode() == f'{{"n": {number}, "text": "b"}}'
