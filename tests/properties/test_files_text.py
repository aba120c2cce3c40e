"""Reading and writing csv and JSON lines is the identity on values, whatever they are."""

import csv
import io
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hf_dxprivacy.errors import InvalidValueError
from hf_dxprivacy.files.readers import open_reader
from hf_dxprivacy.files.source import Columns, find_input
from hf_dxprivacy.files.writers import write_rows

here = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)

# Few characters, so that the special ones meet often.
AWKWARD = st.text(st.sampled_from('",;\t\r\n ab\x85\u2028é\ufeff'), max_size=12)
KEYS = st.sampled_from(["text", "other", 'q"uote', "é", ""])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
)
TEXT = Columns(("text",), ("text",))


def _copied(folder: Path, kind: str, content: str, columns: Columns = TEXT) -> str:
    path, out = folder / f"file.{kind}", io.BytesIO()
    path.write_bytes(content.encode())
    with open_reader(find_input(str(path)), columns) as reader:
        write_rows(out, kind, reader.schema, reader, reader.batches(2))
    return out.getvalue().decode()


@here
@given(text=AWKWARD, kind=st.sampled_from(["csv", "tsv"]))
def test_records_are_those_of_the_csv_module_or_refused(
    tmp_path: Path, text: str, kind: str
) -> None:
    content = "text\n" + text
    delimiter = {"csv": ",", "tsv": "\t"}[kind]
    rows = list(csv.reader(io.StringIO(content, newline=""), delimiter=delimiter))
    rows = [row for row in rows if row]
    try:
        copied = _copied(tmp_path, kind, content)
    except InvalidValueError:
        assert '"' in text or "\r" in text or any(len(row) > 1 for row in rows)
        return
    again = csv.reader(io.StringIO(copied, newline=""), delimiter=delimiter, strict=True)
    assert list(again) == rows


@here
@given(
    rows=st.lists(st.tuples(AWKWARD, AWKWARD), max_size=5),
    end=st.sampled_from(["\n", "\r\n"]),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
)
def test_csv_keeps_all_values(
    tmp_path: Path, rows: list[tuple[str, str]], end: str, quoting: int
) -> None:
    if quoting == csv.QUOTE_MINIMAL:
        # The csv module writes a carriage return without quotes and then reads another row.
        rows = [(a.replace("\r", ""), b.replace("\r", "")) for a, b in rows]
    written = io.StringIO(newline="")
    csv.writer(written, lineterminator=end, quoting=quoting).writerows([("text", "b"), *rows])
    copied = _copied(tmp_path, "csv", written.getvalue())
    parsed = list(csv.reader(io.StringIO(copied, newline=""), strict=True))
    assert parsed == [["text", "b"], *map(list, rows)]
    assert copied.count("\r\n") >= (end == "\r\n")


@here
@given(
    row=st.dictionaries(KEYS, JSON, max_size=5),
    cell=st.none() | st.text(max_size=8),
    escaped=st.booleans(),
    separators=st.sampled_from([(",", ":"), (" , ", " : "), (", ", ":\t")]),
)
def test_json_keeps_keys_and_values(
    tmp_path: Path,
    row: dict[str, object],
    cell: str | None,
    escaped: bool,
    separators: tuple[str, str],
) -> None:
    row |= {"text": cell}
    line = " " + json.dumps(row, ensure_ascii=escaped, separators=separators) + "\r\n"
    result = _copied(tmp_path, "jsonl", line)
    assert json.loads(result) == row
    assert list(json.loads(result)) == list(row)
    assert result == json.dumps(row, ensure_ascii=False) + "\n"


@pytest.mark.parametrize(
    "number", ["1.0", "1E400", "-0", "0.10", "NaN", "0.10000000000000000000001", "9" * 5000]
)
def test_json_numbers_are_never_converted(tmp_path: Path, number: str) -> None:
    line = f'{{"n": {number}, "text": "a", "deep": [{number}]}}\n'
    assert _copied(tmp_path, "jsonl", line) == line
