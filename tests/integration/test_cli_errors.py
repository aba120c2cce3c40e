"""What is wrong is said, with file and line; nothing is written and nothing is overwritten."""

import errno
import gzip
import json
import os
import random
import re
import signal
import tracemalloc
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hf_dxprivacy.cli import arguments, privatize
from hf_dxprivacy.cli.main import VERBS, main, parser_of
from hf_dxprivacy.evaluation.peer_candidates import PEERS
from hf_dxprivacy.files import readers, source
from hf_dxprivacy.mechanisms import MECHANISMS
from hf_dxprivacy.spaces import EmbeddingSpace


@pytest.fixture
def folder(
    tmp_path: Path, euclidean_space: EmbeddingSpace, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """Work in a folder with a space."""
    euclidean_space.save_pretrained(tmp_path / "space")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _run(*arguments: str) -> int:
    named = [] if "--mechanism" in arguments else ["--mechanism", "calibrated"]
    return main(["privatize", *arguments, *(named if arguments else [])])


def _fails(
    capsys: pytest.CaptureFixture[str], code: int, pattern: str, arguments: Sequence[str]
) -> None:
    before = {path: path.stat().st_mtime_ns for path in Path().iterdir()}
    assert _run(*arguments) == code
    printed = capsys.readouterr()
    assert re.search(pattern, printed.err), printed.err
    assert "Traceback" not in printed.err
    assert not printed.out
    assert {path: path.stat().st_mtime_ns for path in Path().iterdir()} == before


NOISE = b"id,text\n" + random.Random(0).randbytes(9999).hex().encode()


def packed(data: bytes) -> bytes:
    # Without a time, since every test process must find the same parameters.
    return gzip.compress(data, mtime=0)


INPUTS = [
    (
        "a.csv",
        b"id,texts\n1,x\n",
        "a.csv: there is no column 'text'; the columns are 'id', 'texts'; did you mean 'texts'.",
    ),
    ("a.csv", b"text,text\n1,x\n", "several columns 'text'"),
    ("a.csv", b"", "a.csv is empty: there is no first line, which names the columns; is it"),
    ("a.csv", b"\n\n", "a.csv is empty: there is no first line"),
    ("a.csv", b"my number is 078-05-1120,1\n", "there are 2 columns, whose names are not shown"),
    ("a.csv", b"Anna Kowalska\nJan Nowak\n", "there is one column, whose name is not shown"),
    ("a.csv", b"id;text\n1;x\n", "if ';' separates the fields, say so .--delimiter ';'."),
    ("a.tsv", b"id,text\n1,x\n", "if ',' separates the fields, say so .--format csv."),
    ("a.csv", b"id,text\n1,x\n\n2,y,z\n", "a.csv, line 4: expected 2 fields .* found 3"),
    ("a.csv", b'id,text\n1,"x\ny"\n2\n', "a.csv, line 4: expected 2 fields .* found 1"),
    ("a.csv", b'id,text\n1,"x\n2,y\n', "a.csv, line 2: a quoted field .* does not end"),
    ("a.csv", b'id,text\n1,"x"y"\n', "a.csv, line 2: a field goes on after its closing quote"),
    ("a.csv", b"id,text\n1\r,x\n", "a.csv, line 2: a carriage return"),
    ("a.csv", b"id,text\n1,x\n2,caf\xe9\n", "a.csv, line 3, byte 6 of the line: not UTF-8"),
    ("a.csv", "id,text\n1,x\n".encode("utf-16"), "line 1, byte 1 of the line: not UTF-8"),
    ("a.csv.gz", packed(NOISE)[:500], "truncated"),
    ("a.csv.gz", packed(b"id,text\n1,x\n")[:-9] + b"123456789", "truncated or damaged"),
    ("a.jsonl", b'{"text": "x"}\n{"text": "y"\n', "a.jsonl, line 2, column 14: Expecting ','"),
    ("a.jsonl", b'[\n{"text": "x"}\n]\n', "a.jsonl, line 1, column 3: Expecting value"),
    ("a.jsonl", b'{"text": "x"} {"text": "y"}\n', "line 1, column 15: Extra data"),
    ("a.jsonl", b'{"text": "x", "text": "y"}\n', "line 1: a key occurs twice in one object"),
    ("a.jsonl", b'{"text": "x"}\n{"text": 5}\n', "line 2: expected 'text' .* found a number"),
    ("a.jsonl", b'{"text": ["a", ["b"]]}\n', "line 1: expected 'text' .* found an array"),
    ("a.jsonl", b'{"txt": "x"}\n{"id": 1}\n', "no column 'text'; the columns are 'txt', 'id'"),
    ("a.jsonl", b'{"text": ' + b"[" * 99999, "line 1: values are nested too deeply"),
    ("a.txt", b"x\ny\xff\n", "a.txt, line 2, byte 2 of the line: not UTF-8"),
    ("a.parquet", b"PAR1 and then nothing", "a.parquet: truncated, damaged or not a Parquet file"),
    ("a.parquet", b"", "a.parquet: truncated, damaged or not a Parquet file"),
]


@pytest.mark.parametrize(("name", "content", "pattern"), INPUTS)
def test_bad_input_is_named_and_leaves_no_output(
    folder: Path, capsys: pytest.CaptureFixture[str], name: str, content: bytes, pattern: str
) -> None:
    (folder / name).write_bytes(content)
    more = ["--output", f"out.{name.removesuffix('.gz')}", "--epsilon", "5", "--space", "space"]
    _fails(capsys, 1, pattern, [name, *more, "--batch-size", "1"])


@pytest.mark.parametrize(
    ("name", "content", "where"),
    [
        ("a.csv", b"text,stars\nx,1\n", "a.csv"),
        ("a.jsonl", b'{"text": "x"}\n{"text": "x", "stars": 1}\n', "a.jsonl, line 2"),
        ("a.parquet", None, "a.parquet"),
    ],
)
def test_no_other_column_is_lost(
    folder: Path, capsys: pytest.CaptureFixture[str], name: str, content: bytes | None, where: str
) -> None:
    if content is None:
        pq.write_table(pa.table({"text": ["x"], "stars": [1]}), name)
    else:
        (folder / name).write_bytes(content)
    arguments = [name, "--output", f"out.{name}", "--epsilon", "5", "--space", "space"]
    pattern = f"{where}: there is a column 'stars' already, .* .--output-column."
    _fails(capsys, 1, pattern, [*arguments, "--output-column", "stars"])


def test_a_message_does_not_quote_the_text(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    secret = "very secret"
    for name, content in (
        ("a.csv", f"id,text\n1,{secret},2\n"),
        ("a.jsonl", f'{{"text": "{secret}", x}}\n'),
        ("a.jsonl", f'{{"text": {{"x": "{secret}"}}}}\n'),
    ):
        (folder / name).write_text(content)
        assert _run(name, "--output", f"b.{name}", "--epsilon", "5", "--space", "space") == 1
        assert secret not in capsys.readouterr().err


def test_parquet_damaged_inside_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = pa.table({"text": [os.urandom(500).hex() for _ in range(2000)]})
    pq.write_table(rows, "a.parquet", compression="zstd", use_dictionary=False)
    data = bytearray((folder / "a.parquet").read_bytes())
    data[200_000:200_400] = os.urandom(400)
    (folder / "a.parquet").write_bytes(data)
    arguments = ["a.parquet", "--output", "b.parquet", "--epsilon", "5", "--space", "space"]
    _fails(capsys, 1, "a.parquet: damaged at or after row", arguments)


def test_parquet_columns_must_hold_text(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pq.write_table(pa.table({"text": [1, 2], "x": ["a", "b"]}), "a.parquet")
    arguments = ["a.parquet", "--output", "b.parquet", "--epsilon", "5", "--space", "space"]
    _fails(capsys, 1, "expected column 'text' to hold texts .* int64", arguments)
    _fails(
        capsys, 1, "no column 'y'; the columns are 'text', 'x'", [*arguments, "--text-column", "y"]
    )


def test_several_columns_in_one_name_are_told(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "a.csv").write_text("body,subject\nwaab,waac\n")
    arguments = ["a.csv", "--output", "b.csv", "--epsilon", "5", "--space", "space"]
    both = "'body,subject' is one name; give each of the 2 by itself, in a list, or by repeating"
    _fails(capsys, 1, both, [*arguments, "--text-column", "body,subject"])


USAGE = [
    ("in.csv --output out.csv", "--epsilon is missing: .* your decision"),
    ("in.csv --epsilon 5", "required: --output"),
    ("in.csv --output out.csv --epsilon 0", "above zero, got 0"),
    ("in.csv --output out.csv --epsilon nan", "above zero, got nan"),
    ("in.csv --output out.csv --epsilon abc", "above zero, got abc"),
    ("in.csv --output out.csv --epsilon 5 --seed -1", ">= 0, got -1"),
    ("in.csv --output out.csv --epsilon 5 --seed 1.5", ">= 0, got 1.5"),
    ("in.csv --output o.xlsx --epsilon 5", "the ending '.xlsx'; choose one of .csv,"),
    ("in.csv --output o.pdf.gz --epsilon 5", "the ending '.pdf'; choose one of .csv"),
    ("in.csv --output o.csv --epsilon 5 --delimiter ;;", "one .* got ';;' for"),
    ("in.jsonl --output o.jsonl --epsilon 5 --delimiter ;", "for jsonl"),
    (
        "in.csv --output o.csv --epsilon 5 --stopwords german",
        "a list of words to be english, none or a file .*; german: No such file",
    ),
    ("in.csv --output out.csv --epsilon 5 --num-proc 0", ">= 1, got 0"),
    (
        "in.csv --output out.csv --epsilon 5 --workers 4",
        "unrecognized arguments: --workers 4; did you mean '--num-proc'",
    ),
    (
        "in.csv --output o.csv --epsilon 5 --seed 1 --seed-file seed",
        "argument --seed-file: not allowed with argument --seed",
    ),
    ("in.csv --output o.csv --epsilon 5 --device abacus", "device='abacus'"),
    ("in.csv --output out.csv --epsilon 5 --lam 1", "has no option 'lam'"),
    ("in.csv --output out.csv --epsilon 5 --beta 2", "beta < 1"),
    (
        "in.csv --output o.csv --epsilon 5 --mechanism hyperbolic",
        "needs a space with the metric 'poincare'",
    ),
    ("in.csv --output in.csv --epsilon 5 --overwrite", "is read, and never"),
    ("in.csv --output link.csv --epsilon 5 --overwrite", "is read, and never"),
    ("in.csv --output out.txt --epsilon 5", "csv can be written as .* not as txt"),
    ("in.jsonl --output out.csv --epsilon 5", "jsonl can be written as jsonl, not"),
    ("in --output out.csv --epsilon 5", "does not tell the format"),
    ("in.csv --output out.csv --epsilon 5 --split test", "are for the Hub"),
    ("in.csv --output out.parquet.gz --epsilon 5", "leave out .gz"),
    ("in.csv --output - --epsilon 5 --report", "--report needs a path"),
    ("in.csv --output o.csv --epsilon 5 --report o.csv", "--output and --report are the same file"),
    ("in.csv --output o.csv --epsilon 5 --report in.csv", "in.csv is read"),
    (
        "in.csv --output o.csv --epsilon 5 --output-column a --output-column b",
        "expected output_column to name 1 different",
    ),
    ("", "required: INPUT, --output"),
]


@pytest.mark.parametrize(("arguments", "pattern"), USAGE)
def test_wrong_usage_exits_with_2(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: str, pattern: str
) -> None:
    (folder / "in.csv").write_text("text\nwaab\n")
    (folder / "in").write_text("text\nwaab\n")
    (folder / "in.jsonl").write_text('{"text": "waab"}\n')
    (folder / "link.csv").symlink_to("in.csv")
    _fails(capsys, 2, pattern, f"{arguments} --space space".split() if arguments else [])


PLACES = [
    ("missing.csv --output out.csv", "missing.csv: there is no such file; check"),
    ("no/such/place --output out.csv", "no/such/place: there is no such file"),
    ("space --output out.csv", "space: a folder; name a file in it"),
    ("in.csv --output space", "space is a folder"),
    ("in.csv --output no/out.csv", "there is no folder no"),
    ("in.csv --output old.csv", "old.csv exists already; .*--overwrite"),
    ("in.csv --output out.csv --report old.csv", "old.csv exists already"),
    ("in.csv --output /dev/null --overwrite", "/dev/null is not a regular file"),
    ("in.csv --output out.csv --space nowhere", "'nowhere', which is none of them"),
]


@pytest.mark.parametrize(("arguments", "pattern"), PLACES)
def test_wrong_places_exit_with_1(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: str, pattern: str
) -> None:
    (folder / "in.csv").write_text("text\nwaab\n")
    (folder / "old.csv").write_text("precious")
    _fails(capsys, 1, pattern, f"--space space --epsilon 5 {arguments}".split())


def test_what_would_lose_types_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pq.write_table(pa.table({"text": ["a"], "when": pa.array([0], pa.timestamp("s"))}), "a.parquet")
    for target in ("csv", "jsonl"):
        arguments = ["a.parquet", "--output", f"b.{target}", "--epsilon", "5", "--space", "space"]
        _fails(capsys, 1, "cannot hold column 'when' of type timestamp", arguments)


def test_text_that_needs_quotes_is_refused_without_them(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "a.txt").write_text("waab, waac")
    arguments = ["a.txt", "--output", "b.csv", "--no-quotes", "--epsilon", "5", "--space", "space"]
    _fails(capsys, 1, "contains the delimiter ','", arguments)


def test_overwriting_keeps_the_mode_and_follows_links(folder: Path) -> None:
    (folder / "in.txt").write_text("waab\n")
    (folder / "old.txt").write_text("old")
    (folder / "old.txt").chmod(0o640)
    (folder / "link.txt").symlink_to("old.txt")
    arguments = ["--overwrite", "--epsilon", "5", "--space", "space"]
    assert _run("in.txt", "--output", "link.txt", *arguments) == 0
    assert (folder / "link.txt").is_symlink()
    assert (folder / "old.txt").read_text() != "old"
    assert (folder / "old.txt").stat().st_mode & 0o777 == 0o640


def test_what_deserves_a_warning_gets_one(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "in.csv").write_text("text\nwaab\n")
    arguments = ["in.csv", "--output", "out.csv", "--epsilon", "5", "--space", "space"]
    more = ["--seed", "271828", "--output-column", "new", "--oov", "keep", "--report"]
    assert _run(*arguments, *more) == 0
    printed = capsys.readouterr().err
    assert "--seed, which must stay secret" in printed
    assert "column 'text' of the output still holds the original text" in printed
    assert "HOLE: words out of vocabulary are released unchanged" in printed
    assert "271828" not in printed
    report = (folder / "out.csv.report.json").read_text()
    assert "271828" not in report
    assert str(folder) not in report
    described = json.loads(report)
    assert described["options"]["seeded"] is True
    assert described["space"]["name"] == "space"
    assert described["guarantee"]["ldp_epsilon"] is None
    assert described["mechanism"] == {"mechanism": "calibrated", "epsilon": 5.0, "beta": 0.001}
    assert "for the owner of the text only" in described["words"]["note"]


def test_a_seed_need_not_be_on_the_command_line(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "in.csv").write_text("text\n" + "waab waac waad\n" * 9)
    (folder / "seed").write_text(" 271828\n")
    arguments = ["in.csv", "--overwrite", "--epsilon", "1", "--space", "space"]
    arguments += ["--mechanism", "krr", "--output"]

    def released(*more: str) -> tuple[bytes, str]:
        assert _run(*arguments, "out.csv", *more) == 0
        printed = capsys.readouterr().err
        assert "271828" not in printed
        return (folder / "out.csv").read_bytes(), printed

    given, warned = released("--seed", "271828")
    assert "Others see it in the list of processes" in warned
    assert "pass --seed-file, or set HF_DXPRIVACY_SEED" in warned
    filed, warned = released("--seed-file", "seed")
    assert "the noise comes from --seed-file seed, which must stay secret" in warned
    assert "list of processes" not in warned
    monkeypatch.setenv(privatize.SEED_VARIABLE, "271828")
    from_environment, warned = released()
    assert "the noise comes from HF_DXPRIVACY_SEED, which must stay secret" in warned
    assert given == filed == from_environment
    monkeypatch.setenv(privatize.SEED_VARIABLE, "")
    fresh, warned = released()
    assert "the noise comes from" not in warned
    assert fresh != given
    for wrong in ("", "not 271828", "-1", "1.5", "9" * 500):
        (folder / "seed").write_text(wrong)
        assert _run(*arguments, "out.csv", "--seed-file", "seed") == 2
        printed = capsys.readouterr().err
        assert (
            "whole number >= 0 in --seed-file seed, and what is there (not shown here)" in printed
        )
        assert "271828" not in printed


def test_an_epsilon_that_hides_nothing_gets_a_warning(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "in.csv").write_text("text\nwaab\n")
    arguments = ["in.csv", "--output", "out.csv", "--overwrite", "--space", "space"]
    for epsilon, warned in (("1", False), ("60", True)):
        assert _run(*arguments, "--mechanism", "tem", "--epsilon", epsilon) == 0
        said = "warning: at ε = 60 nearly every word of this space stays as it is"
        assert (said in capsys.readouterr().err) == warned


def test_debug_shows_where_an_error_arose(folder: Path) -> None:
    (folder / "in.txt").write_bytes(b"\xff")
    with pytest.raises(ValueError, match="not UTF-8"):
        _run("in.txt", "--output", "o.txt", "--epsilon", "5", "--space", "space", "--debug")


def test_the_choices_in_the_help_are_those_of_the_library() -> None:
    assert set(arguments.MECHANISMS) == set(MECHANISMS)
    assert arguments.PEERS == (*PEERS,)
    assert set(arguments.OPTIONS) == {o for m in MECHANISMS.values() for o in m.options}
    assert set(arguments.FORMATS) == set(source.ENDINGS.values())


@pytest.mark.parametrize("verb", VERBS)
def test_every_argument_of_every_verb_is_documented(verb: str) -> None:
    parser = parser_of(verb)
    assert len(parser.description or "") > 100
    actions = [action for action in parser._actions if action.dest != "attack"]
    assert not [action.dest for action in actions if not action.help]


SLIPS = [
    ("privatise in.csv", "there is no verb 'privatise'; did you mean 'privatize'?"),
    ("conjure", "there is no verb 'conjure'; expected one of privatize, calibrate"),
    ("", "expected a verb: privatize, calibrate"),
    ("privatize in.csv --output o.csv --mecanism tem", "did you mean '--mechanism'?"),
    ("privatize in.csv --output o.csv --mechanism calibrate", "did you mean 'calibrated'?"),
    ("privatize in.csv --output o.csv --mechanism madlib", "did you mean 'laplace'?"),
    ("privatize in.csv --output o.csv --oov centriod", "did you mean 'centroid'?"),
    (
        "privatize in.csv --output o.csv --epsilon 5",
        "--mechanism is missing: .* hierarchical is re",
    ),
    ("calibrate space --epsilon 5", "--mechanism is missing: .* hierarchical is recommended"),
    ("audit guarantee --epsilon 5", "--mechanism is missing: .* hierarchical is recommended"),
    ("audit guarante --epsilon 5", "did you mean 'guarantee'?"),
    ("privatize in.csv --output o.csv --text-column \udcff", "expected a name in UTF-8"),
    ("privatize in.csv --output o.csv --output-column \udcff", "expected a name in UTF-8"),
]


@pytest.mark.parametrize(("command", "said"), SLIPS, ids=[said for _, said in SLIPS])
def test_slips_are_answered_with_what_was_meant(
    folder: Path, capsys: pytest.CaptureFixture[str], command: str, said: str
) -> None:
    (folder / "in.csv").write_text("text\nwaab\n")
    assert main(command.split()) == 2
    assert re.search(said.replace("?", r"\?"), capsys.readouterr().err)


def test_a_space_that_is_nearly_named_is_suggested(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "in.csv").write_text("text\nwaab\n")
    assert _run("in.csv", "--output", "o.csv", "--epsilon", "5", "--space", "wordnet_gloss") == 1
    assert "did you mean 'wordnet-gloss'?" in capsys.readouterr().err


def test_parquet_strings_that_are_not_utf8(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fine = pa.array(["waab", "waac"])
    data = pa.Array.from_buffers(pa.string(), 2, pa.array([b"waab", b"caf\xe9"]).buffers())
    pq.write_table(pa.table({"text": data, "n": fine}), "text.parquet")
    pq.write_table(pa.table({"text": fine, "n": data}), "other.parquet")
    more = ["--epsilon", "5", "--space", "space"]
    said = "text.parquet: column 'text' holds text that is not UTF-8 in one of the rows 1 to 2"
    _fails(capsys, 1, said, ["text.parquet", "--output", "o.parquet", *more])
    for target in ("csv", "jsonl"):
        said = "column 'n' holds strings that are not UTF-8, .* write parquet"
        _fails(capsys, 1, said, ["other.parquet", "--output", f"o.{target}", *more])
    assert _run("other.parquet", "--output", "o.parquet", *more) == 0
    kept = pq.read_table("o.parquet").column("n").chunk(0)
    assert kept.buffers()[2].to_pybytes().endswith(b"caf\xe9")


def test_a_link_into_a_missing_folder_is_named(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "in.csv").write_text("text\nwaab\n")
    (folder / "link.csv").symlink_to("nowhere/out.csv")
    arguments = ["in.csv", "--output", "link.csv", "--epsilon", "5", "--space", "space"]
    assert _run(*arguments) == 1
    assert re.search("no folder .*nowhere, where link.csv leads", capsys.readouterr().err)


def test_a_run_says_what_is_in_clear_and_the_bound_of_a_row(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "in.csv").write_text('id,text,by Ann\n1,waab waac,x\n2,waab waac waad zork,"x"\n')
    (folder / "in.jsonl").write_text('{"text": "waab waac", "n": 1}\n{"text": "waab", "m": 1}\n')
    more = ["--epsilon", "5", "--space", "space"]
    assert _run("in.csv", "--output", "out.csv", *more) == 0
    printed = capsys.readouterr().err
    assert (
        "IN CLEAR, without any guarantee: columns 'id', 1 not named, as that may be text\n"
        in printed
    )
    local = float(re.search(r"\(pure local DP: ε ≤ ([\d.]+)\)", printed)[1])  # type: ignore[index]
    bound = re.search(r"to ε ≤ ([\d.]+) .* for a row of (\d) perturbed words, the mean", printed)
    assert bound is not None
    assert bound[2] == "3"
    assert float(bound[1]) == pytest.approx(3 * local, rel=0.01)
    assert _run("in.jsonl", "--output", "out.jsonl", *more) == 0
    assert "IN CLEAR, without any guarantee: columns 'n', 'm'\n" in capsys.readouterr().err
    (folder / "only.txt").write_text("waab\n")
    assert _run("only.txt", "--output", "only2.txt", *more) == 0
    assert "IN CLEAR" not in capsys.readouterr().err


def test_a_run_ends_with_the_share_of_unknown_words(
    folder: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    (folder / "in.csv").write_text('text\nwaab waac waad\nder Hund bellt laut\n""\n')
    arguments = ["--epsilon", "5", "--space", "space", "--overwrite", "--report"]
    assert _run("in.csv", "--output", "out.csv", *arguments) == 0
    printed = capsys.readouterr().err
    assert re.search(
        r"3 rows with 7 words written to out.csv in \d+\.\d s: calibrated, ε = 5\n", printed
    )
    assert re.search(r"of the words became others, .* 57.1% are not in the vocabulary", printed)
    assert "private counts, for you only: no part of the release" in printed
    assert "warning: 57% of the words are not in the vocabulary" in printed
    assert "Is this English?" in printed
    report = json.loads((folder / "out.csv.report.json").read_text())
    assert report["words"]["unknown_share"] == pytest.approx(4 / 7)
    (folder / "in.csv").write_text("text\n" + "der Hund bellt laut\n" * 100)
    assert _run("in.csv", "--output", "out.csv", *arguments) == 0
    assert capsys.readouterr().err.count("warning") == 1
    assert not caplog.records  # the privatizer does not warn as well
    (folder / "in.csv").write_text("text\nwaab waac waad waae\n")
    for workers in ("1", "2"):
        assert _run("in.csv", "--output", "out.csv", *arguments, "--num-proc", workers) == 0
        printed = capsys.readouterr().err
        assert "1 row with 4 words written to out.csv" in printed
        assert "0.0% are not in the vocabulary" in printed
        assert "English" not in printed


def test_keys_of_json_lines_do_not_fill_the_memory(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    row = '{{"text": "a", "{}{}": 1}}\n'
    path.write_text("".join(row.format("k" * 500, i) for i in range(20_000)))
    columns = source.Columns(("text",), ("text",))
    tracemalloc.start()
    try:
        with readers.open_reader(source.find_input(str(path)), columns) as reader:
            for _ in reader.batches(100):
                pass
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 << 20


@pytest.mark.parametrize(
    ("output", "said"), [("o.txt", "; nothing half-written is left\n"), ("-", "by SIGINT\n")]
)
def test_ctrl_c_while_the_program_still_loads(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    output: str,
    said: str,
) -> None:
    """Handlers are in place before anything that takes long is imported."""

    def interrupted(name: str) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr("hf_dxprivacy.cli.main.import_module", interrupted)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        assert _run("in.txt", "--output", output) == 130
    finally:
        signal.signal(signal.SIGINT, before)
    assert capsys.readouterr().err.endswith(said)


def test_a_full_disk_is_named_by_the_folder(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    (folder / "vectors.txt").write_text("waab 1 2\nwaac 2 3\nwaad 3 5\n")
    monkeypatch.setattr(EmbeddingSpace, "save_pretrained", full)
    assert main(["convert", "vectors.txt", "--output", "new"]) == 1
    assert "error: new: No space left on device" in capsys.readouterr().err
