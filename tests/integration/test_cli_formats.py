"""Every format goes through the program; values that are not privatized stay as they are."""

import gzip
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hf_dxprivacy.cli.main import main
from hf_dxprivacy.spaces import EmbeddingSpace

Run = Callable[..., int]

# What may be in a file, and what then is in a copy of it: only quotes and blank lines may change.
CSV = [
    ("id,text\n007,waab waac\n", None),
    ("id,text\r\n007,waab\r\n1.50,waac", "id,text\r\n007,waab\r\n1.50,waac\r\n"),
    (
        '\ufeff"id",text,"when"\n"007","waab, ""waac""\nwaad",2020-01-01\n,,""\n1e5,waae,NA\n',
        '\ufeffid,text,when\n007,"waab, ""waac""\nwaad",2020-01-01\n,,\n1e5,waae,NA\n',
    ),
    ("\n\nid,text\n\n1,waab\n\n\n2,waac\n\n", "id,text\n1,waab\n2,waac\n"),
    ('text\n"waab"\n""\nwaac\n\n', 'text\nwaab\n""\nwaac\n'),  # a column alone
    ("id,text\n", None),
    ("id,text", "id,text\n"),
    ("x,text,x\n1,waab,2\n", None),  # other columns may have the same name
    ('id,text\n5",waab\n6"x",waad\n', 'id,text\n"5""",waab\n"6""x""",waad\n'),
    ("été,text\nçà,wäab 日本 waac\n", None),
]
JSONL = [
    ('{"text": "waab waac", "n": 1.0, "m": 1e400, "big": 123456789012345678901234567890}\n', None),
    ('{"text": "waab", "n": 1.10, "m": -0, "big": ' + "9" * 5000 + ', "e": 1E5}\n', None),
    (
        '{"n":[1,{"text":"inner"}],"text":"wa\\u0061b","é":"\\u00e9"}\r\n{"z": NaN, "text": null}',
        '{"n": [1, {"text": "inner"}], "text": "waab", "é": "é"}\n{"z": NaN, "text": null}\n',
    ),
    (
        '\ufeff{"text": ["waab", ",", null, "waac"], "a": {}}\n\n  \n { "text" : "" , "b":true }\n',
        '\ufeff{"text": ["waab", ",", null, "waac"], "a": {}}\n{"text": "", "b": true}\n',
    ),
    ('{"a": 1}\n{"text": "waab"}\n{}\n', None),  # keys may be missing
    ('{"text": "waab", "half": "\\ud800"}\n', None),  # UTF-8 has no half of a surrogate pair
    ("", None),
]
TXT = [
    ("waab waac\n\nwaad\r\n\r\nwaae", "waab waac\n\nwaad\r\n\r\nwaae\n"),
    ("waab\r\n\r\nwaad\r\n", None),
    ("waab\rwaac\x85waad\u2028waae\n", None),  # only a line feed ends a line
    ("\ufeffwaab\n", None),
    ("\ufeff", None),
    (".\n,", ".\n,\n"),
    ("\n\n", None),
    ("", None),
]


@pytest.fixture
def keep_all(tmp_path: Path, euclidean_space: EmbeddingSpace) -> Run:
    """Run the program so that every word is kept: all of the output must be the input."""
    euclidean_space.save_pretrained(tmp_path / "space")
    others = ["wäab", "日本", "inner"]
    (tmp_path / "all.txt").write_text("\n".join([*euclidean_space.words, *others]))
    settings = [
        "--mechanism",
        "calibrated",
        "--stopwords",
        str(tmp_path / "all.txt"),
        "--space",
        str(tmp_path / "space"),
    ]
    return lambda source, target, *more: main(
        ["privatize", str(source), "--output", str(target), "--epsilon", "5", *settings, *more]
    )


@pytest.mark.parametrize(
    ("kind", "content", "expected"),
    [
        *(("csv", *case) for case in CSV),
        *(("tsv", *(c and c.replace(",", "\t") for c in case)) for case in CSV[:3]),
        *(("jsonl", *case) for case in JSONL),
        *(("txt", *case) for case in TXT),
    ],
)
def test_kept_text_leaves_all_values_as_they_were(
    tmp_path: Path, keep_all: Run, kind: str, content: str, expected: str | None
) -> None:
    for ending, batch_size in (("", "1000"), ("", "1"), (".gz", "2")):
        source, target = tmp_path / f"in.{kind}{ending}", tmp_path / f"out.{kind}{ending}"
        data = content.encode()
        source.write_bytes(gzip.compress(data) if ending else data)
        assert keep_all(source, target, "--batch-size", batch_size, "--overwrite") == 0
        written = target.read_bytes()
        decoded = (gzip.decompress(written) if ending else written).decode()
        assert decoded == (content if expected is None else expected)


def test_parquet_keeps_rows_types_and_features(tmp_path: Path, keep_all: Run) -> None:
    schema = pa.schema(
        [
            pa.field("text", pa.large_string()),
            pa.field("tokens", pa.list_(pa.string())),
            pa.field("when", pa.timestamp("us", tz="UTC"), metadata={"note": "é"}),
            pa.field("price", pa.decimal128(9, 2), nullable=False),
            pa.field("kind", pa.dictionary(pa.int8(), pa.string())),
            pa.field("deep", pa.struct([("a", pa.list_(pa.int16()))])),
        ],
    )
    rows = [
        {"text": t, "tokens": k, "when": i, "price": i, "kind": "ab"[i % 2], "deep": {"a": [i]}}
        for i, (t, k) in enumerate(
            [("waab waac", ["waab"]), (None, None), ("", []), ("waad", [None, ",", "waae"])] * 5
        )
    ]
    table = pa.Table.from_pylist(rows, schema=schema)
    pq.write_table(table, tmp_path / "in.parquet", compression="zstd")
    columns = ("--text-column", "text", "--text-column", "tokens", "--batch-size", "3")
    assert keep_all(tmp_path / "in.parquet", tmp_path / "out.parquet", *columns) == 0
    result = pq.ParquetFile(tmp_path / "out.parquet")
    before = pq.ParquetFile(tmp_path / "in.parquet")
    assert result.schema_arrow.equals(before.schema_arrow, check_metadata=True)
    assert result.schema.equals(before.schema)
    assert result.read().equals(before.read())
    assert result.num_row_groups == 1
    assert result.metadata.row_group(0).column(0).compression == "ZSTD"


def test_parquet_carries_no_metadata_of_the_original(tmp_path: Path, keep_all: Run) -> None:
    canary = "zebrafish"
    frame = pd.DataFrame({"text": ["waab"], "n": [1]})
    frame.attrs = {"about": canary}
    table = pa.Table.from_pandas(frame)
    fields = [table.schema.field(0).with_metadata({"note": canary}), table.schema.field(1)]
    schema = pa.schema(fields, {**table.schema.metadata, "about": canary})
    pq.write_table(table.cast(schema), tmp_path / "in.parquet")
    for output in ("text", "new"):
        arguments = ("--overwrite", "--output-column", output)
        assert keep_all(tmp_path / "in.parquet", tmp_path / "out.parquet", *arguments) == 0
        written = pq.read_schema(tmp_path / "out.parquet")
        assert canary not in str([written.metadata, *(field.metadata for field in written)])
        assert pd.read_parquet(tmp_path / "out.parquet")["n"].tolist() == [1]


def test_parquet_without_rows_and_with_dictionary_text(tmp_path: Path, keep_all: Run) -> None:
    coded = pa.table({"text": pa.array(["waab", "waab", None]).dictionary_encode(), "n": [1, 2, 3]})
    for table, count in ((coded, 3), (coded.slice(0, 0), 0)):
        pq.write_table(table, tmp_path / "in.parquet")
        more = ("--overwrite", "--output-column", "new")
        assert keep_all(tmp_path / "in.parquet", tmp_path / "out.parquet", *more) == 0
        result = pq.read_table(tmp_path / "out.parquet")
        assert result.select(["text", "n"]).equals(table)
        assert result.schema.field("new").type == pa.string()
        assert result["new"].to_pylist() == ["waab", "waab", None][:count]


@pytest.mark.parametrize("target", ["tsv", "jsonl", "parquet"])
def test_csv_becomes_another_format_with_all_values_as_text(
    tmp_path: Path, keep_all: Run, target: str
) -> None:
    (tmp_path / "in.csv").write_text('id,text\n007,"waab\twaac"\n\n1.50,\n')
    assert keep_all(tmp_path / "in.csv", tmp_path / f"out.{target}") == 0
    assert keep_all(tmp_path / "in.csv", tmp_path / "out.parquet", "--overwrite") == 0
    rows = [{"id": "007", "text": "waab\twaac"}, {"id": "1.50", "text": ""}]
    assert pq.read_table(tmp_path / "out.parquet").to_pylist() == rows
    if target == "tsv":
        assert (tmp_path / "out.tsv").read_text() == 'id\ttext\n007\t"waab\twaac"\n1.50\t\n'
    if target == "jsonl":
        lines = (tmp_path / "out.jsonl").read_text().splitlines()
        assert list(map(json.loads, lines)) == rows


def test_parquet_becomes_csv_and_jsonl(tmp_path: Path, keep_all: Run) -> None:
    table = pa.table({"text": ["waab", None], "n": [1, 2], "x": [0.1, None], "b": [True, False]})
    pq.write_table(table, tmp_path / "in.parquet")
    assert keep_all(tmp_path / "in.parquet", tmp_path / "out.csv") == 0
    assert (tmp_path / "out.csv").read_text() == "text,n,x,b\nwaab,1,0.1,true\n,2,,false\n"
    assert keep_all(tmp_path / "in.parquet", tmp_path / "out.jsonl") == 0
    lines = (tmp_path / "out.jsonl").read_text().splitlines()
    assert list(map(json.loads, lines)) == table.to_pylist()


def test_rows_without_the_text_column_are_counted(
    tmp_path: Path, keep_all: Run, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "in.jsonl").write_text('{"text": "waab"}\n{"txt": "secret"}\n{"text": null}\n')
    assert keep_all(tmp_path / "in.jsonl", tmp_path / "out.jsonl") == 0
    assert "in.jsonl: 1 of 3 rows lack 'text'; whatever they hold under other keys" in caplog.text
    assert "secret" not in caplog.text


def test_text_lines_become_a_table(tmp_path: Path, keep_all: Run) -> None:
    (tmp_path / "in.txt").write_text("waab, waac\n\nwaad")
    assert keep_all(tmp_path / "in.txt", tmp_path / "out.csv", "--output-column", "new") == 0
    assert (tmp_path / "out.csv").read_text() == 'new\n"waab, waac"\n""\nwaad\n'


@pytest.mark.parametrize(
    ("kind", "content", "expected"),
    [
        ("csv", 'id,text\r\n1,"a, b"\r\n', 'id,text,"n,1"\r\n1,"a, b","a, b"\r\n'),
        ("jsonl", '{"text": "a"}\n{"text": null}\n', '{"text": "a", "n,1": "a"}\n{"text": null}\n'),
    ],
)
def test_an_output_column_is_added(
    tmp_path: Path, keep_all: Run, kind: str, content: str, expected: str
) -> None:
    (tmp_path / "all.txt").write_text("a\nb")
    (tmp_path / f"in.{kind}").write_bytes(content.encode())
    out = tmp_path / f"out.{kind}"
    assert keep_all(tmp_path / f"in.{kind}", out, "--output-column", "n,1") == 0
    assert out.read_bytes().decode() == expected


def test_another_delimiter(tmp_path: Path, keep_all: Run) -> None:
    content = 'id;text\n1;waab, waac\n2;"waad; waae"\n'
    (tmp_path / "in.csv").write_text(content)
    assert keep_all(tmp_path / "in.csv", tmp_path / "out.csv", "--delimiter", ";") == 0
    assert (tmp_path / "out.csv").read_text() == content
    assert keep_all(tmp_path / "in.csv", tmp_path / "out.tsv", "--delimiter", ";") == 0
    assert (tmp_path / "out.tsv").read_text() == "id\ttext\n1\twaab, waac\n2\twaad; waae\n"


def test_without_quotes_a_quote_is_a_letter(tmp_path: Path, keep_all: Run) -> None:
    content = 'id\ttext\n5"\t"waab waac\n6\twaad"\n'
    (tmp_path / "in.tsv").write_text(content)
    assert keep_all(tmp_path / "in.tsv", tmp_path / "out.tsv", "--no-quotes") == 0
    assert (tmp_path / "out.tsv").read_text() == content


def test_standard_input_to_standard_output(
    keep_all: Run, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    content = b"text\twaab\nwaac\tx\n"
    stdin = io.TextIOWrapper(io.BufferedReader(io.BytesIO(gzip.compress(content))))
    monkeypatch.setattr(sys, "stdin", stdin)
    assert keep_all("-", "-", "--format", "tsv") == 0
    out, err = capfdbinary.readouterr()
    assert out == content
    assert b"per word" in err


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet", "txt"])
def test_words_are_replaced_and_nothing_else(
    tmp_path: Path, euclidean_space: EmbeddingSpace, kind: str
) -> None:
    """At a tiny ε: as many words, all of the vocabulary, hardly one of them the original."""
    euclidean_space.save_pretrained(tmp_path / "space")
    text = "Secret, (secrets) waab; waac?"
    source, out = tmp_path / f"in.{kind}", tmp_path / f"out.{kind}"
    if kind == "parquet":
        pq.write_table(pa.table({"text": [text] * 50}), source)
    else:
        row = {"csv": f'"{text}"', "jsonl": json.dumps({"text": text}), "txt": text}[kind]
        head = "text\n" if kind == "csv" else ""
        source.write_text(head + f"{row}\n" * 50)
    arguments = [
        "--output",
        str(out),
        "--epsilon",
        "0.01",
        "--mechanism",
        "tem",
        "--space",
        str(tmp_path / "space"),
    ]
    assert main(["privatize", str(source), *arguments, "--report"]) == 0
    content = str(pq.read_table(out).to_pylist()) if kind == "parquet" else out.read_text()
    assert "ecret" not in content
    assert content.count(", (") == content.count("?") == 50
    report = json.loads((tmp_path / f"out.{kind}.report.json").read_text())
    assert report["rows"] == 50
    assert report["words"]["out_of_vocabulary"] == 100
    assert report["words"]["replaced"] + report["words"]["drawn_unchanged"] == 100
    assert report["words"]["drawn_unchanged"] < 10
