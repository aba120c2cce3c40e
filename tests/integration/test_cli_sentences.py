"""Pools of sentences on the command line: privatize, calibrate, and what the other verbs say."""

import io
import json
import re
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hf_dxprivacy import EmbeddingSpace, SentencePool, SentencePrivatizer
from hf_dxprivacy.calibration import epsilon_for_local_bound
from hf_dxprivacy.cli.main import main
from hf_dxprivacy.mechanisms import create_mechanism

SUBJECTS = ("soup", "waiter", "film", "doctor", "garden", "train", "teacher", "river")
SAYINGS = (
    "The {} was cold and late.",
    "I liked the {} a lot.",
    "Please bring me another {} now.",
    "Nobody knew where the {} went.",
    "A very old {} stood in the city.",
)
SENTENCES = [saying.format(subject) for saying in SAYINGS for subject in SUBJECTS]
TEXTS = [
    "The soup was cold. Nobody came!",
    "A film about a garden",
    "日本語だけ",
    "",
    "so-so, really",
]
SEED = str(314159265358979323846264338327950288)


@pytest.fixture(scope="module")
def pool() -> SentencePool:
    return SentencePool.from_sentences(SENTENCES, "english", dimensions=8, progress=False)


@pytest.fixture
def folder(
    tmp_path: Path,
    pool: SentencePool,
    euclidean_space: EmbeddingSpace,
    monkeypatch: pytest.MonkeyPatch,
) -> Path:
    """Work in a folder with a pool, a space and some texts."""
    pool.save_pretrained(tmp_path / "pool", license="cc0-1.0")
    euclidean_space.save_pretrained(tmp_path / "space")
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{row},{json.dumps(text)}\n" for row, text in enumerate(TEXTS))
    Path("in.csv").write_text("id,text\n" + rows.encode().decode("unicode_escape"))
    Path("in.txt").write_text("".join(f"{text}\n" for text in TEXTS))
    Path("in.jsonl").write_text("".join(json.dumps({"text": t}) + "\n" for t in [*TEXTS, None]))
    pq.write_table(pa.table({"text": [*TEXTS, None]}), "in.parquet")
    return tmp_path


def privatize(*arguments: str) -> int:
    return main(["privatize", *arguments, "--space", "pool"])


def released(name: str) -> list[str | None]:
    """Read the texts of a file."""
    if name.endswith(".parquet"):
        return pq.read_table(name).column("text").to_pylist()  # type: ignore[no-any-return]
    lines = Path(name).read_text().splitlines()
    if name.endswith(".jsonl"):
        return [json.loads(line)["text"] for line in lines]
    return lines


@pytest.mark.parametrize("ending", ["txt", "jsonl", "parquet"])
@pytest.mark.parametrize("workers", ["1", "2"])
def test_files_are_released_as_by_the_library(
    folder: Path, pool: SentencePool, ending: str, workers: str
) -> None:
    arguments = ["--epsilon", "1", "--seed", SEED, "--num-proc", workers, "--batch-size", "2"]
    assert privatize(f"in.{ending}", "--output", f"out.{ending}", *arguments) == 0
    texts = TEXTS if ending == "txt" else [*TEXTS, None]
    privatizer = SentencePrivatizer(pool, epsilon=1.0, seed=int(SEED))
    expected = privatizer({"text": texts}, list(range(len(texts))))["text"]
    assert released(f"out.{ending}") == expected
    assert set(expected) - {None} <= set(SENTENCES)


def test_standard_input_and_output(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    given = io.BufferedReader(io.BytesIO("\n".join(TEXTS).encode()))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(given))
    assert privatize("-", "--format", "txt", "--output", "-", "--epsilon", "1") == 0
    printed = capsysbinary.readouterr()
    assert set(printed.out.decode().splitlines()) <= set(SENTENCES)
    assert len(printed.out.splitlines()) == len(TEXTS)
    assert b"written to standard output" in printed.err


def test_sentences_one_by_one_are_counted(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--unit", "sentence", "--mechanism", "krr", "--epsilon", "60", "--report"]
    assert privatize("in.csv", "--output", "out.csv", *arguments) == 0
    printed = capsys.readouterr().err
    said = r"5 rows with 5 texts of 6 sentences written to out.csv; 33.3% of the sentences have "
    assert re.search(
        said + r"nothing that the encoder knows; the median cosine .* is 0\.\d\d", printed
    )
    assert "warning: 33% of the sentences have nothing that the encoder" in printed
    assert "ε·d-private per sentence: ε = 60" in printed
    report = json.loads(Path("out.csv.report.json").read_text())
    assert report["options"]["unit"] == "sentence"
    assert report["pool"]["encoder"]["kind"] == "words"
    counted = report["texts"]
    assert "for the owner of the text only" in counted["note"]
    assert [counted[name] for name in ("texts", "looked_up", "unknown")] == [5, 6, 2]
    quartiles = counted["cosine_to_entry"]
    assert -1 <= quartiles["25%"] <= quartiles["50%"] <= quartiles["75%"] <= 1


def test_quartiles_of_the_report_are_those_of_coverage(folder: Path, pool: SentencePool) -> None:
    texts = [f"{a} {b}" for a in SUBJECTS for b in ("here", "late", "old", "again", "money")]
    Path("many.txt").write_text("".join(f"{text}\n" for text in texts))
    arguments = ["--epsilon", "1", "--report", "--batch-size", "7", "--num-proc", "2"]
    assert privatize("many.txt", "--output", "out.txt", *arguments) == 0
    counted = json.loads(Path("out.txt.report.json").read_text())["texts"]
    found = pool.coverage(texts)
    assert counted["unknown_share"] == found.pop("unknown") == 0
    assert counted["cosine_to_entry"] == pytest.approx(found, abs=0.03)


@pytest.mark.parametrize("space", ["pool", "space"])
@pytest.mark.parametrize("mechanism", ["krr", "tem"])
def test_a_local_bound_is_kept(
    folder: Path, capsys: pytest.CaptureFixture[str], space: str, mechanism: str
) -> None:
    arguments = ["--mechanism", mechanism, "--local-epsilon", "4", "--output", "out.txt"]
    assert main(["privatize", "in.txt", *arguments, "--space", space]) == 0
    printed = capsys.readouterr().err
    found = re.search(r"epsilon (\S+) has a local bound of at most 4\n", printed)
    assert found is not None
    loaded = EmbeddingSpace.from_pretrained(space)
    assert float(found[1]) == epsilon_for_local_bound(loaded, mechanism, 4.0)
    assert create_mechanism(mechanism, loaded, float(found[1])).local_epsilon <= 4.0
    assert f"any {'text' if space == 'pool' else 'word'} against any other: ε ≤ 4\n" in printed


WRONG = [
    (2, "--epsilon 1 --stopwords english --oov keep", "no words for --stopwords, --oov"),
    (2, "--epsilon 1 --case preserve", "no words for --case"),
    (2, "--epsilon 1 --local-epsilon 2", "--local-epsilon finds the epsilon; give one of the two"),
    (2, "", "--epsilon is missing"),
    (2, "--local-epsilon 0", "expected a finite number above zero, got 0"),
    (2, "--epsilon 1 --unit word", "invalid choice: 'word'"),
    (2, "--epsilon 1 --mechanism hyperbolic", "needs a space with the metric 'poincare'"),
    (2, "--local-epsilon 99 --mechanism tem", "does not limit ε for 'tem'"),
    (2, "--epsilon 1 --space space", "--mechanism is missing: .* hierarchical is recommended"),
    (2, "--epsilon 1 --space space --unit text", "space is a space of words; leave it out, or"),
    (
        2,
        "--local-epsilon 4 --mechanism krr --space space --oov drop",
        "--local-epsilon cannot hold with --stopwords, --oov drop",
    ),
    (1, "--epsilon 1 --space pol", "'pol', which is none of them"),
]


@pytest.mark.parametrize(("code", "arguments", "pattern"), WRONG, ids=[w[1] for w in WRONG])
def test_what_makes_no_sense_is_refused_and_writes_nothing(
    folder: Path, capsys: pytest.CaptureFixture[str], code: int, arguments: str, pattern: str
) -> None:
    given = arguments.split()
    named = [] if "--space" in given else ["--space", "pool"]
    assert main(["privatize", "in.csv", "--output", "out.csv", *given, *named]) == code
    assert re.search(pattern, capsys.readouterr().err)
    assert not Path("out.csv").exists()


def test_a_pool_without_its_encoder_is_no_space_of_words(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("pool/encoder.json").unlink()
    assert privatize("in.csv", "--output", "out.csv", "--epsilon", "1") == 1
    assert re.search(r"encoder.json: cannot be read", capsys.readouterr().err)
    assert not Path("out.csv").exists()


def test_calibration_speaks_of_sentences(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--mechanism", "hierarchical", "--local-epsilon", "2", "3", "--words", "20"]
    files = ["--output", "t.csv", "--report", "r.html"]
    assert main(["calibrate", "pool", *arguments, "--max-nw", "0.9", *files]) == 0
    head, first, second, about, _, answer, *_ = capsys.readouterr().out.splitlines()
    at = re.split(" {2,}", head.strip()).index("local ε")
    assert [row.split()[at] for row in (first, second)] == ["2", "3"]
    assert about.startswith("20 sentences, exactly")
    assert "for all of 20 sentences, exactly" in answer
    assert Path("t.csv").read_text().partition("\n")[0].split(",")[3] == "sentence"
    page = Path("r.html").read_text()
    assert "What each ε does to sentences" in page
    assert not re.search(r"\bwords?\b", re.sub(r"(?s)<pre>.*?</pre>|<img[^>]*>", "", page))
    assert any(sentence in page for sentence in SENTENCES)
