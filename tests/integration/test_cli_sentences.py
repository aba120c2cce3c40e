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
from hf_dxprivacy.page.demo import answered, read_sources

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
    assert "5 rows with 5 texts of 6 sentences written to out.csv in" in printed
    assert re.search(r"median cosine to the entry is 0\.\d\d; 33.3% of the sentences have", printed)
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
    (
        2,
        "--epsilon 1 --space space --unit text",
        "space is a space of words, and pools of sentences are for --unit: leave",
    ),
    (
        2,
        "--local-epsilon 4 --mechanism krr --space space --oov drop",
        "cannot hold with stopwords=, oov=",
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
    above, head, first, second, about, *rest = capsys.readouterr().out.splitlines()
    # The headings of a column stand one over the other, above its right end.
    end = above.index("local") + len("local")
    assert head[:end].endswith("ε")
    assert [row[:end].split()[-1] for row in (first, second)] == ["2", "3"]
    answer = next(line for line in rest if line.startswith("ε = "))
    assert about.startswith("20 sentences, exactly")
    assert "for all of 20 sentences, exactly" in answer
    assert Path("t.csv").read_text().partition("\n")[0].split(",")[3] == "sentence"
    page = Path("r.html").read_text()
    assert "What each ε does to sentences" in page
    assert not re.search(r"\bwords?\b", re.sub(r"(?s)<pre>.*?</pre>|<img[^>]*>", "", page))
    assert any(sentence in page for sentence in SENTENCES)


def labelled_file(folder: Path) -> None:
    rows = "".join(f"{label},{text}\n" for label in "ab" for text in SENTENCES[::2])
    (folder / "public.csv").write_text(f"topic,text\n{rows}c,{SENTENCES[1]} {SENTENCES[3]}\n")


def test_a_pool_is_made_of_public_texts(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [*SENTENCES, SENTENCES[0], "no", "Write to jo@example.org about it please."]
    Path("public.txt").write_text("\n".join(lines))
    arguments = ["--license", "cc0-1.0", "--source", "made up", "--dimensions", "8"]
    assert main(["pool", "public.txt", "--output", "made", *arguments]) == 0
    printed = capsys.readouterr().err
    said = "40 sentences of 43 texts; left out: length 1, duplicates 1, personal data 1"
    assert all(part in printed for part in re.split(", |: ", said))
    assert "warning: 40 sentences are few" in printed
    pool = SentencePool.from_pretrained("made")
    assert pool.sentences == tuple(SENTENCES)
    card = Path("made/README.md").read_text()
    assert "license: cc0-1.0\n" in card
    assert "## What the mechanisms do to the sentences" in card
    assert not re.search(
        r"\bwords\b", card.partition("## Where it comes from")[0].replace("`words`", "")
    )
    assert (
        main(["privatize", "in.csv", "--output", "o.csv", "--space", "made", "--epsilon", "1"]) == 0
    )


def test_texts_that_are_held_back_measure_a_pool(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("public.txt").write_text("\n".join(SENTENCES))
    assert main(["pool", "public.txt", "--output", "made", "--held-back", "in.csv"]) == 0
    assert "cosine of 5 texts to the nearest sentence: 0." in capsys.readouterr().err
    made = SentencePool.from_pretrained("made")
    told = made.space.provenance["coverage"]
    assert told == pytest.approx({"of": told["of"], "texts": 5, **made.coverage(TEXTS)})


def test_labels_of_a_pool_restrict_a_release(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labelled_file(folder)
    arguments = ["--label-column", "topic", "--dimensions", "4"]
    assert main(["pool", "public.csv", "--output", "made", *arguments]) == 0
    pool = SentencePool.from_pretrained("made")
    assert pool.labels is not None
    of_label = {
        text for text, label in zip(pool.sentences, pool.labels, strict=True) if label == "c"
    }
    assert of_label == {SENTENCES[1], SENTENCES[3]}
    Path("topics.csv").write_text("topic,text\n" + "c,The old garden\n" * 20)
    given = ["--label-column", "topic", "--local-epsilon", "2", "--report"]
    assert main(["privatize", "topics.csv", "--output", "o.csv", "--space", "made", *given]) == 0
    assert {line[2:] for line in Path("o.csv").read_text().splitlines()[1:]} == of_label
    report = json.loads(Path("o.csv.report.json").read_text())
    assert report["options"]["label_column"] == "topic"
    assert report["guarantee"]["ldp_epsilon"] <= 2
    assert main(["privatize", "topics.csv", "--output", "p.csv", "--space", "made", *given[2:4],
                 "--label-column", "topics"]) == 1  # fmt: skip
    assert "there is no column 'topics'; the columns are" in capsys.readouterr().err
    pq.write_table(pa.table({"topic": ["c"], "text": ["The old garden"]}), "topics.parquet")
    assert main(["privatize", "topics.parquet", "--output", "p.parquet", "--space", "made",
                 *given[2:4], "--label-column", "topics"]) == 1  # fmt: skip
    assert "there is no column 'topics'; the columns are" in capsys.readouterr().err
    Path("other.csv").write_text("topic,text\nd,The old garden\n")
    assert main(["privatize", "other.csv", "--output", "p.csv", "--space", "made", *given]) == 1
    assert not Path("p.csv").exists()


def test_a_label_of_one_sentence_limits_no_epsilon(folder: Path) -> None:
    labels = ["a"] * (len(SENTENCES) - 1) + ["b"]
    made = SentencePool.from_sentences(SENTENCES, labels=labels, progress=False)
    made.save_pretrained("made")
    Path("topics.csv").write_text("topic,text\na,The old garden\nb,The old garden\n")
    given = ["--label-column", "topic", "--local-epsilon", "2", "--report"]
    assert main(["privatize", "topics.csv", "--output", "o.csv", "--space", "made", *given]) == 0
    report = json.loads(Path("o.csv.report.json").read_text())
    assert 1.99 < report["guarantee"]["ldp_epsilon"] <= 2


def test_a_pool_that_encodes_as_another_one(folder: Path, pool: SentencePool) -> None:
    Path("more.txt").write_text("We saw the old river.\nThe train left without us.\n")
    assert main(["pool", "more.txt", "--output", "more", "--encoder", "pool"]) == 0
    more = SentencePool.from_pretrained("more")
    assert len(SentencePool.union([pool, more], progress=False)) == len(pool) + 2


@pytest.mark.parametrize(
    ("code", "arguments", "pattern"),
    [
        (2, "in.txt --output space", "space holds a space; name another folder"),
        (2, "in.txt --output pool", "pool holds a pool of sentences already; .* --overwrite it"),
        (2, "in.txt --output new --by-label", "--by-label needs --label-column"),
        (2, "in.txt --output new --license mitt", "'mitt'"),
        (2, "in.txt --output new --limit 0", "expected a whole number >= 1"),
        (1, "empty.txt --output new", "no sentence is left for a pool: there is none"),
        (1, "in.csv --output new --text-column txt", "there is no column 'txt'"),
        (1, "in.txt --output new --encoder englisch", "did you mean 'english'"),
        (1, "missing.txt --output new", "there is no such file"),
        (1, "numbers.jsonl --output new", "expected texts in column 'text'"),
    ],
)
def test_pools_that_cannot_be_made(
    folder: Path, capsys: pytest.CaptureFixture[str], code: int, arguments: str, pattern: str
) -> None:
    Path("empty.txt").touch()
    Path("numbers.jsonl").write_text('{"text": 5}\n')
    before = sorted(Path("pool").iterdir())
    assert main(["pool", *arguments.split()]) == code
    assert re.search(pattern, capsys.readouterr().err)
    assert not Path("new").exists()
    assert sorted(Path("pool").iterdir()) == before


def test_no_space_takes_the_folder_of_a_pool(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("v.txt").write_text("a 1 2\nb 2 1\n")
    assert main(["convert", "v.txt", "--output", "pool", "--overwrite"]) == 2
    assert "pool holds a pool of sentences; name another folder" in capsys.readouterr().err
    SentencePool.from_pretrained("pool")


def test_another_tree_of_a_pool(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["hierarchy", "pool", "--method", "average", "--show", "the cold soup"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(f"{len(SENTENCES)} sentences in ")
    assert "  The soup was cold and late.\n" in printed
    made = SentencePool.from_pretrained("pool")
    assert made.space.hierarchy is not None
    assert made.space.hierarchy.method == "average linkage"
    assert main(["hierarchy", "pool", "--show", "日本語"]) == 1
    assert "has nothing for a text to --show" in capsys.readouterr().err


def test_cards_of_pools_and_their_privatizers(folder: Path, pool: SentencePool) -> None:
    Path("pool/README.md").write_text("stale")
    assert main(["card", "pool", "--license", "mit"]) == 0
    card = Path("pool/README.md").read_text()
    assert "license: mit\n" in card
    assert "| `hierarchical` | 1 |" in card
    SentencePrivatizer("pool", epsilon=1.0).save_pretrained("made")
    assert main(["card", "made", "--license", "mit"]) == 0
    assert "per text" in Path("made/README.md").read_text()


def test_audits_of_pools(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    law = ["--space", "pool", "--mechanism", "krr", "--epsilon", "20"]
    assert main(["audit", "guarantee", *law]) == 0
    assert "nothing above ε·d (exact)" in capsys.readouterr().out
    assert main(["privatize", "in.csv", "--output", "out.csv", *law]) == 0
    assert main(["audit", "reconstruction", "in.csv", "out.csv", *law]) == 0
    assert re.search(r"\| top-1 \| 1\.000 \|", capsys.readouterr().out)
    assert main(["audit", "reconstruction", "in.csv", "out.csv", *law, "--bigrams"]) == 2
    assert "there are none to guess in a release over a pool" in capsys.readouterr().err


def test_the_page_takes_a_pool_for_a_pool(folder: Path) -> None:
    sources = read_sources(["pool", "space"])
    assert [source.pool is not None for source in sources.values()] == [True, False]
    low = sources["pool"].ranges["hierarchical"].low
    asked = {"source": "pool", "mechanism": "hierarchical", "epsilon": low}
    released = answered(sources, {"text": TEXTS[0], "choices": [asked]})
    assert any(sentence in released for sentence in SENTENCES)


def test_the_built_in_pool(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["in.txt", "--output", "out.txt", "--local-epsilon", "12", "--space"]
    assert main(["privatize", *arguments, "wordnet-sentence"]) == 1
    assert "did you mean 'wordnet-sentences'?" in capsys.readouterr().err
    assert main(["privatize", *arguments, "wordnet-sentences"]) == 0
    assert "as pure local DP, any text against any other: ε ≤ 12\n" in capsys.readouterr().err
    known = SentencePool.from_pretrained("wordnet-sentences").sentences
    assert set(Path("out.txt").read_text().splitlines()) <= set(known)
