"""The verb audit, on files as the verb privatize leaves them."""

import csv
import json
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
import transformers
from tiny_models import word_pieces

from hf_dxprivacy.cli.main import main
from hf_dxprivacy.results import Results
from hf_dxprivacy.spaces import EmbeddingSpace

AUTHORS, EACH = 4, 12


@pytest.fixture(scope="module")
def files(euclidean_space: EmbeddingSpace, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with texts of some authors, and two releases of them."""
    folder = tmp_path_factory.mktemp("audit")
    euclidean_space.save_pretrained(folder / "space")
    rng = np.random.default_rng(0)
    with (folder / "mail.csv").open("w") as file:
        rows = csv.writer(file)
        rows.writerow(["text", "author", "stars"])
        for author in range(AUTHORS):
            words = euclidean_space.words[author * 40 : author * 40 + 60]
            for i in range(EACH):
                rows.writerow([" ".join(rng.choice(words, 30)), f"author {author}", i % 2])
    for epsilon in ("0.1", "20"):
        command = ["privatize", str(folder / "mail.csv"), "--epsilon", epsilon, "--seed", "5"]
        command += ["--mechanism", "tem", "--space", str(folder / "space")]
        assert main([*command, "--output", str(folder / f"released-{epsilon}.csv")]) == 0
    return folder


@pytest.fixture
def folder(files: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in the folder with the texts."""
    monkeypatch.chdir(files)
    return files


BOTH = ("released-0.1.csv", "released-20.csv", "--epsilon", "0.1", "20", "--seed", "1")


def audit(tmp_path: Path, attack: str, *arguments: str) -> Results:
    """Run an attack and return what it writes."""
    output = tmp_path / f"{attack}.jsonl"
    assert main(["audit", attack, *arguments, "--output", str(output)]) == 0
    return Results.load(output)


def values(results: Results, metric: str) -> list[float]:
    return [result.value for result in results.where(metric=metric)]


def test_attribution_of_the_original_and_of_releases(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    picture = str(tmp_path / "curve.png")
    found = audit(
        tmp_path, "attribution", "mail.csv", *BOTH, "--mechanism", "tem", "--plot", picture
    )
    original, little, much = values(found, "accuracy")
    assert original > 0.95
    assert much > 0.95
    assert little < 0.6
    named = [(r.dataset, r.mechanism, r.epsilon) for r in found.where(metric="accuracy")]
    assert named == [("mail", "none", None), ("mail", "tem", 0.1), ("mail", "tem", 20.0)]
    assert "| attribution | mail | tem | 0.1 | accuracy |" in capsys.readouterr().out
    assert Path(picture).read_bytes().startswith(b"\x89PNG")
    others = ("--overwrite", "--known-released")
    again = audit(tmp_path, "attribution", "mail.csv", *BOTH, *others)
    assert values(again, "accuracy")[0] == original
    assert {r.mechanism for r in again} == {"none", "released"}


def test_membership_takes_numbers_as_labels(folder: Path, tmp_path: Path) -> None:
    arguments = ("mail.csv", "--label-column", "stars", "--repeats", "1", "--dataset", "post")
    found = audit(tmp_path, "membership", *arguments)
    assert [(r.dataset, r.metric) for r in found] == [("post", "AUC"), ("post", "target accuracy")]


def test_users_need_not_be_authors(folder: Path, tmp_path: Path) -> None:
    found = audit(tmp_path, "users", "mail.csv", "--user-column", "author", "--repeats", "1")
    assert [r.metric for r in found] == ["precision", "recall", "accuracy", "AUC"]


def test_reconstruction_by_space_and_mechanism(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = audit(
        tmp_path, "reconstruction", "mail.csv", *BOTH, "--mechanism", "tem", "--space", "space"
    )
    (little, much), (guessed, _) = values(found, "unchanged"), values(found, "top-10")
    assert much > 0.95
    assert little < 0.05 < guessed
    assert {r.repeats for r in found} == {AUTHORS * EACH * 30}
    assert values(found, "counted") == [1.0, 1.0]
    assert "who knows how often each occurs in mail.csv" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "words"), [("José García visited China's doctor", 5), ("Zoë didn’t pay 12.75 zxqy", 3)]
)
def test_the_adversary_is_never_below_unchanged(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    text: str,
    words: int,
) -> None:
    """He looks words up as privatizers do, by accents, possessives, apostrophes and shapes."""
    monkeypatch.chdir(tmp_path)
    Path("in.csv").write_text("text\n" + f"{text}\n" * 60, encoding="utf-8")
    how = ("--space", "english", "--mechanism", "hierarchical")
    for epsilon in ("1.5", "12"):
        output = ("--output", f"{epsilon}.csv", "--epsilon", epsilon, "--seed", "3", "--quiet")
        assert main(["privatize", "in.csv", *how, *output]) == 0
    found = audit(
        tmp_path, "reconstruction", "in.csv", "1.5.csv", "12.csv", "--epsilon", "1.5", "12", *how
    )
    (little, much), guessed = values(found, "unchanged"), values(found, "top-1")
    assert little < guessed[0]
    assert 0.95 < much <= guessed[1]
    assert {r.repeats for r in found.where(metric="top-1")} == {60 * words}
    share = words / len(text.split())
    assert values(found, "counted") == [share] * 2
    said = f"{60 * words} words that the space has, {share:.1%} of the {60 * len(text.split())}"
    assert said in capsys.readouterr().err


def test_a_plain_sentence_says_what_an_attacker_gets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each figure of it is one of the table, and numbers and names are among them."""
    monkeypatch.chdir(tmp_path)
    Path("in.csv").write_text("text\n" + "we met Kowalska of Ohio at account 203917\n" * 80)
    how = ("--space", "english", "--mechanism", "hierarchical", "--epsilon", "2")
    assert main(["privatize", "in.csv", *how, "--output", "out.csv", "--seed", "3"]) == 0
    said = capsys.readouterr().err
    (unchanged,) = re.findall(r"of 160 capitalized words within sentences (\d+) came", said)
    found = audit(tmp_path, "reconstruction", "in.csv", "out.csv", *how)
    trials = {r.metric: r.repeats for r in found}
    assert (trials["top-1 of numbers"], trials["top-1 of names"]) == (80, 160)
    metrics = ("top-1", "top-1, unchanged", "top-1 of numbers", "top-1 of names", "unchanged")
    right, both, numbers, names, stayed = (values(found, metric)[0] for metric in metrics)
    assert 0 < both <= min(right, stayed)
    assert int(unchanged) / 160 < names, "an attacker also gets names that changed"
    assert (
        f"ε = 2: with one guess an attacker gets {right:.0%} of the words; {both / right:.0%} of "
        f"these never changed; {numbers:.0%} of the numbers and {names:.0%} of the names\n"
    ) in capsys.readouterr().err


def test_every_word_is_guessed_where_the_law_is_known(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    how = ("mail.csv", *BOTH, "--mechanism", "tem", "--space", "space")
    few = audit(tmp_path, "reconstruction", *how, "--words", "20")
    assert "the most frequent 20 of 180, which are " in capsys.readouterr().err
    assert values(few, "top-1")[1] < 0.5 < values(few, "unchanged")[1]


def test_reconstruction_with_a_prior_and_a_language_model(folder: Path, tmp_path: Path) -> None:
    Path("public.csv").write_text("text\nwaaa waab waaa\n")
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=word_pieces(), mask_token="[MASK]", pad_token="[PAD]", unk_token="[UNK]"
    )
    config = transformers.BertConfig(
        vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=1, num_attention_heads=2
    )
    with torch.random.fork_rng():
        transformers.BertForMaskedLM(config).save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    arguments = ("mail.csv", "released-20.csv", "--epsilon", "20", "--mechanism", "tem")
    model = ("--space", "space", "--language-model", str(tmp_path / "model"))
    found = audit(tmp_path, "reconstruction", *arguments, *model, "--prior", "public.csv")
    assert values(found, "top-1")[0] < 0.05


def test_reconstruction_with_pairs_of_words(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    common = ("--mechanism", "tem", "--space", "space", "--bigrams")
    found = audit(tmp_path, "reconstruction", "mail.csv", *BOTH, *common)
    assert values(found, "top-1")[1] > 0.95
    both = ["audit", "reconstruction", "mail.csv", *BOTH, *common, "--language-model", "none"]
    assert main(both) == 2
    assert "--bigrams and --language-model are two models" in capsys.readouterr().err


def test_a_guarantee_that_is_kept(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "check.json"
    arguments = ["--space", "space", "--epsilon", "2", "--output", str(output)]
    assert main(["audit", "guarantee", *arguments, "--mechanism", "tem"]) == 0
    assert "nothing above ε·d (exact)" in capsys.readouterr().out
    assert json.loads(output.read_text())["passed"] is True


def test_every_format_is_read(folder: Path, tmp_path: Path) -> None:
    texts, authors = ["a b"] * 4 + ["c d"] * 4, ["x"] * 4 + ["y"] * 4
    table = pa.table({"text": texts, "author": authors})
    pq.write_table(table, tmp_path / "mail.parquet")
    lines = [json.dumps({"text": t, "author": a}) for t, a in zip(texts, authors, strict=True)]
    (tmp_path / "mail.jsonl").write_text("\n".join(lines) + "\n")
    rows = [f"{t}\t{a}" for t, a in zip(["NA", *texts[1:]], authors, strict=True)]
    (tmp_path / "mail.tsv").write_text("text\tauthor\n" + "\n".join(rows) + "\n")
    for kind in ("parquet", "jsonl", "tsv"):
        found = audit(
            tmp_path, "attribution", str(tmp_path / f"mail.{kind}"), "--overwrite", "--seed", "1"
        )
        assert found.where(metric="accuracy")[0].repeats == 4


WRONG: list[tuple[int, str, Sequence[str]]] = [
    (2, "an --epsilon for each RELEASED, got 1 for 2", ["a.csv", "b.csv", "--epsilon", "1"]),
    (1, "missing.csv: there is no such file", []),
    (2, "a name that ends in .png", ["--plot", "curve.txt"]),
    (2, "name a file instead of -", ["-"]),
    (2, "--known 0.9999 leaves no row", ["--known", "0.9999"]),
    (2, "--known: expected a number between 0 and 1, got nan", ["--known", "nan"]),
    (1, "no column 'x'; the columns are 'text', 'author', 'stars'", ["--author-column", "x"]),
    (1, "expected the 48 rows of mail.csv, got 1", ["short.csv"]),
    (1, "binary.csv, line 2, byte 1 of the line: not UTF-8", ["binary.csv"]),
    (1, "expected texts in column 'stars'", ["stars.jsonl", "--released-column", "stars"]),
]


@pytest.mark.parametrize(("code", "message", "arguments"), WRONG, ids=[m for _, m, _ in WRONG])
def test_what_is_wrong_is_said(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    code: int,
    message: str,
    arguments: Sequence[str],
) -> None:
    Path("short.csv").write_text("text\nwaaa\n")
    Path("stars.jsonl").write_text('{"stars": 1}\n' * AUTHORS * EACH)
    Path("binary.csv").write_bytes(b"text\n\xff\xfe secret\n")
    original = "missing.csv" if "missing" in message else "mail.csv"
    assert main(["audit", "attribution", original, *arguments]) == code
    printed = capsys.readouterr().err
    assert message in printed
    assert "secret" not in printed


@pytest.mark.parametrize("read", ["mail.csv", "released.csv"])
def test_results_never_replace_what_is_read(
    folder: Path, capsys: pytest.CaptureFixture[str], read: str
) -> None:
    Path("released.csv").write_bytes(Path("mail.csv").read_bytes())
    before = Path(read).read_bytes()
    arguments = ("mail.csv", "released.csv", "--output", read, "--overwrite")
    assert main(["audit", "attribution", *arguments]) == 2
    assert f"{read} is read, and never overwritten" in capsys.readouterr().err
    assert Path(read).read_bytes() == before


def test_results_are_not_replaced_unasked(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("stars.csv").write_text("stars\n1\n")
    output = tmp_path / "there.jsonl"
    output.write_text("mine")
    assert main(["audit", "attribution", "mail.csv", "--output", str(output)]) == 2
    assert "exists already" in capsys.readouterr().err
    assert output.read_text() == "mine"
    with pytest.raises(ValueError, match=r"stars\.csv: there is no column 'author'"):
        main(["audit", "attribution", "stars.csv", "--debug"])
