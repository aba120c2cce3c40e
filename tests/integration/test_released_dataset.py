"""Released datasets with their cards: to a Hub with the real client, and back with `datasets`."""

import gzip
import hashlib
import json
import os
import re
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import huggingface_hub
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from datasets import Dataset, DatasetDict, load_dataset
from huggingface_hub import DatasetCard, HfApi

from hf_dxprivacy import DxPrivatizer, EmbeddingSpace
from hf_dxprivacy.cli.main import main
from hf_dxprivacy.errors import ArtifactError, HubError, InvalidTypeError, InvalidValueError
from hf_dxprivacy.files.released_file import released_dataset
from hf_dxprivacy.hub.artifact import bind
from hub_server import Fault, HubServer

REPO = "me/released"
FILES = ["README.md", "croissant.json", "guarantee.json"]
# As many words and rows, so that one word in the place of each gives one release.
ORIGINALS = {
    "short": ["it is, so!", "a (it)"],
    "long": ["Kowalska HAS, leukemia!", "Lindqvist (word)"],
}
WORDS = ["waab waac, waad!", "(waae) waaf", "waag waah waai"] * 4


@pytest.fixture(autouse=True)
def _token(hub: HubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", hub.token)


@pytest.fixture
def folder(
    tmp_path: Path, euclidean_space: EmbeddingSpace, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """Work in a folder with two spaces, one of them of a single word, and some texts."""
    euclidean_space.save_pretrained(tmp_path / "space")
    lone = EmbeddingSpace.from_vectors(["word"], np.ones((1, 3), np.float32))
    lone.save_pretrained(tmp_path / "one")
    lines = "".join(f'"{text}",{row}\n' for row, text in enumerate(WORDS))
    (tmp_path / "in.csv").write_text(f"text,n\n{lines}")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def privatize(source: str, output: str, *more: str) -> None:
    space = [] if "--space" in more else ["--space", "space"]
    law = ["--mechanism", "tem", "--epsilon", "5", "--report", "--overwrite"]
    assert main(["privatize", source, "--output", output, *law, *space, *more]) == 0


def push(*arguments: str) -> int:
    return main(["push", *arguments, "--license", "cc-by-4.0"])


def remote(hub: HubServer, name: str = REPO) -> dict[str, bytes]:
    return hub.repo(f"datasets/{name}").files()


def refused(capsys: pytest.CaptureFixture[str], code: int, said: str, *arguments: str) -> None:
    capsys.readouterr()
    assert main(["push", *arguments]) == code
    printed = capsys.readouterr()
    assert re.search(said, printed.err), printed.err
    assert "Traceback" not in printed.err
    assert not printed.out


@pytest.fixture
def privatizer(euclidean_space: EmbeddingSpace) -> DxPrivatizer:
    return DxPrivatizer(euclidean_space, "tem", 5.0)


@pytest.fixture
def released(privatizer: DxPrivatizer) -> Dataset:
    data = Dataset.from_dict({"text": WORDS, "n": [*range(len(WORDS))]})
    return data.map(privatizer, batched=True)


# To the Hub and back


@pytest.mark.parametrize("private", [True, False])
def test_a_release_of_map_goes_to_the_hub_and_back(
    hub: HubServer, privatizer: DxPrivatizer, released: Dataset, private: bool
) -> None:
    card = privatizer.dataset_card(released, license="cc-by-4.0", description="Made up.")
    commit = card.push_to_hub(REPO, private=private)
    assert hub.repo(f"datasets/{REPO}").private == private
    assert [each.title for each in hub.repo(f"datasets/{REPO}").history()] == [
        "Upload ReleasedDataset",
        "initial commit",
    ]
    data = "data/train-00000-of-00001.parquet"
    assert sorted(remote(hub)) == [*FILES[:2], data, FILES[2]]
    loaded = load_dataset(REPO, split="train", revision=commit.oid)
    assert loaded.to_dict() == released.to_dict()
    assert loaded.features == released.features
    info = HfApi().dataset_info(REPO)
    assert info.sha == commit.oid
    shown = DatasetCard.load(REPO)
    assert shown.data.license == "cc-by-4.0"
    assert shown.data.to_dict()["dx_privacy"]["epsilon"] == privatizer.guarantee.epsilon
    stated = json.loads(remote(hub)["guarantee.json"])
    assert stated["guarantee"] == privatizer.guarantee.to_dict()
    assert stated["files"] == {data: hashlib.sha256(remote(hub)[data]).hexdigest()}
    assert "Made up." in shown.text
    assert f'load_dataset("{REPO}")' in shown.text


def test_splits_and_a_second_push(
    hub: HubServer, privatizer: DxPrivatizer, released: Dataset
) -> None:
    both = DatasetDict(train=released.select(range(9)), test=released.select(range(9, 12)))
    privatizer.dataset_card(both).push_to_hub(REPO, license="mit")
    loaded = load_dataset(REPO)
    assert {name: rows.to_dict() for name, rows in loaded.items()} == {
        name: rows.to_dict() for name, rows in both.items()
    }
    hub.repo(f"datasets/{REPO}").put({"notes.md": b"mine"})
    privatizer.dataset_card(released).push_to_hub(REPO, license="mit")
    # No earlier release lies beside the new one, and what others have put there stays.
    data = "data/train-00000-of-00001.parquet"
    assert sorted(remote(hub)) == [*FILES[:2], data, FILES[2], "notes.md"]
    assert {*load_dataset(REPO)} == {"train"}


CHAT = {"role": "user", "content": "waab waac"}, {"role": "assistant", "content": "Noted."}
INPUTS = {
    "csv": "text,n\nwaab waac,1\nwaad,2\n",
    "tsv": "text\tn\nwaab waac\t1\nwaad\t2\n",
    "txt": "waab waac\nwaad\n",
    "jsonl": '{"text": "waab waac", "n": 1}\n{"text": "waad", "n": 2, "late": null}\n',
}
FORMATS = [
    ("csv", "out.csv", []),
    ("csv", "out.csv.gz", ["--delimiter", ";"]),
    ("csv", "out.parquet", []),
    ("tsv", "out.tsv", ["--no-quotes"]),
    ("txt", "out.txt", []),
    ("jsonl", "out.jsonl.gz", []),
]


@pytest.mark.parametrize(("kind", "output", "more"), FORMATS)
def test_a_released_file_is_pushed_as_it_is_and_loads(
    hub: HubServer,
    folder: Path,
    kind: str,
    output: str,
    more: list[str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = INPUTS[kind].replace(",", ";") if more == ["--delimiter", ";"] else INPUTS[kind]
    (folder / f"in.{kind}").write_text(text)
    privatize(f"in.{kind}", output, *more)
    capsys.readouterr()
    assert push(output, REPO, "--description", "Made up.") == 0
    said = {"txt": "", "jsonl": "columns 'n', 'late'\n"}.get(kind, "column 'n'\n")
    assert capsys.readouterr().err.partition("IN CLEAR, without any guarantee: ")[2] == said
    pushed, data = remote(hub), f"data/train.{output.removeprefix('out.')}"
    assert sorted(pushed) == sorted([*FILES, data])
    assert pushed[data] == (folder / output).read_bytes()
    stated = json.loads(pushed["guarantee.json"])
    assert stated["files"] == {data: hashlib.sha256(pushed[data]).hexdigest()}
    assert stated["rows"] == {"train": 2}
    loaded = load_dataset(REPO, split="train")
    plain = gzip.decompress(pushed[data]) if output.endswith(".gz") else pushed[data]
    if kind != "csv" or not output.endswith("parquet"):
        assert all(text.encode() in plain for text in loaded["text"])
    assert set(loaded.column_names) >= ({"text"} if kind == "txt" else {"text", "n"})
    assert stated["in_clear"] == [name for name in loaded.column_names if name != "text"]
    assert len(loaded) == 2


def test_words_that_pandas_takes_for_missing_come_back(hub: HubServer, folder: Path) -> None:
    words = ["None", "null", "nan", "NA"]
    space = EmbeddingSpace.from_vectors(words, np.eye(4, dtype=np.float32))
    space.save_pretrained(folder / "missing")
    privatize("in.csv", "out.csv", "--space", "missing")
    (folder / "out.csv").write_text("text,n\nNone,1\nNA,\nnull,2\n")
    _restate(folder / "out.csv")
    assert push("out.csv", REPO) == 0
    loaded = load_dataset(REPO, split="train")
    assert loaded.to_dict() == {"text": ["None", "NA", "null"], "n": [1, None, 2]}


def _restate(path: Path) -> None:
    """Let a report be of a file that was altered."""
    report = path.with_name(f"{path.name}.report.json")
    content = json.loads(report.read_text())
    content["released"]["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    report.write_text(json.dumps(bind(content)))


def test_chats_say_which_roles_are_in_clear(hub: HubServer, folder: Path) -> None:
    row = {"messages": [*CHAT], "source": "made up"}
    (folder / "in.jsonl").write_text(f"{json.dumps(row)}\n" * 3)
    privatize("in.jsonl", "out.jsonl", "--text-column", "messages[].content", "--role", "user")
    assert push("out.jsonl", REPO) == 0
    card = remote(hub)["README.md"].decode()
    said = "texts at messages&#91;].content, of the role user only: privatized; everything else"
    assert f"| `messages` | {said} in it: in clear |" in card
    assert "| `source` | in clear: no guarantee holds for it |" in card
    assert "column 'messages' (texts of the role user at messages&#91;].content) was rep" in card
    assert "All else in 'messages' is in clear: 3 texts of the role assistant (" in card
    assert "the texts of every other role, which may quote them" in card
    (first, *_) = load_dataset(REPO, split="train")["messages"]
    assert first[1] == CHAT[1]


def test_a_folder_of_save_to_disk_needs_the_privatizer(
    hub: HubServer, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = DxPrivatizer.from_pretrained("space", mechanism="tem", epsilon=5.0)
    made.save_pretrained("privatizer")
    originals = Dataset.from_dict({"text": ["Patient Kowalska has it.", "She is ill."] * 9})
    originals.save_to_disk("originals")
    originals.map(made, batched=True).save_to_disk("released")
    assert push("released", REPO, "--privatizer", "privatizer", "--private") == 0
    assert hub.repo(f"datasets/{REPO}").private
    assert len(load_dataset(REPO, split="train")) == 18
    lacks = ("released", REPO, "--license", "mit")
    refused(capsys, 2, r"released is a folder of save_to_disk: name the privatizer", *lacks)
    of_them = ("originals", REPO, "--license", "mit", "--privatizer", "privatizer")
    refused(capsys, 2, r"words in column 'text' cannot have come out of this privatizer", *of_them)
    report = ("released", REPO, "--license", "mit", "--privatizer", "privatizer", "--report", "x")
    refused(capsys, 2, r"--report is for a released file, and released is a folder", *report)


def test_a_dry_run_writes_what_a_push_would_send(
    hub: HubServer, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    privatize("in.csv", "out.parquet")
    hub.requests.clear()
    assert push("out.parquet", REPO, "--dry-run", "look") == 0
    assert "look: data and card written; nothing was sent" in capsys.readouterr().err
    assert hub.requests == []
    assert push("out.parquet", REPO) == 0
    written = {
        path.relative_to(folder / "look").as_posix(): path.read_bytes()
        for path in (folder / "look").rglob("*")
        if path.is_file()
    }
    assert written == remote(hub)
    said = "space is neither; .* with the card that 'hf-dxprivacy card space --license ID' makes"
    refused(capsys, 2, said, "space", REPO, "--dry-run", "other")
    said = "look is not an empty folder; name another one for --dry-run"
    refused(capsys, 2, said, "out.parquet", REPO, "--dry-run", "look")
    refused(capsys, 2, "in.csv is not an empty", "out.parquet", REPO, "--dry-run", "in.csv")


# A function of the released rows and of the guarantee


def _pushed(hub: HubServer, push: Callable[[str], Any]) -> tuple[Any, ...]:
    """Return all that a push puts on the Hub, and all that it sends."""
    hub.reset()
    hub.bodies = []
    push(REPO)
    repo = hub.repo(f"datasets/{REPO}")
    return repo.files(), [each.title for each in repo.history()], sorted(hub.bodies)


@pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl", "txt"])
def test_pushed_files_of_other_originals_are_equal(hub: HubServer, folder: Path, kind: str) -> None:
    found, counts = [], []
    source = "patients.jsonl" if kind == "jsonl" else "patients.txt"
    for name, texts in ORIGINALS.items():
        (folder / name).mkdir()
        rows = [json.dumps({"text": text}) for text in texts] if kind == "jsonl" else texts
        (folder / name / source).write_text("".join(f"{row}\n" for row in rows))
        output = f"{name}/o.{kind}"
        privatize(f"{name}/{source}", output, "--space", "one")
        counts.append(json.loads((folder / f"{output}.report.json").read_text())["words"])
        found.append(_pushed(hub, lambda repo, output=output: push(output, repo)))
    assert counts[0]["out_of_vocabulary"] != counts[1]["out_of_vocabulary"], "the reports differ"
    assert found[0] == found[1]
    assert found[0][2], "bodies were recorded"
    everything = b"".join([*found[0][0].values(), *(body for _, _, body in found[0][2])])
    for private in (b"unknown_share", b'"python"', b"patients", b"Kowalska", b"report.json"):
        assert private not in everything


def test_what_parquet_says_of_the_originals_is_not_pushed(hub: HubServer, folder: Path) -> None:
    found = []
    for name, texts in ORIGINALS.items():
        about = {"about": name, "huggingface": json.dumps({"fingerprint": name, "info": {}})}
        about["pandas"] = json.dumps({"attributes": {"about": name}, "columns": []})
        text = pa.field("text", pa.string(), metadata={"longest": str(max(map(len, texts)))})
        schema = pa.schema([text, pa.field("n", pa.int64())], about)
        table = pa.table([texts, [1, 2]], schema=schema)
        pq.write_table(table, folder / "patients.parquet", row_group_size=len(found) + 1)
        privatize("patients.parquet", "o.parquet", "--space", "one")
        found.append(_pushed(hub, lambda repo: push("o.parquet", repo)))
    assert found[0] == found[1]
    stated = json.loads(found[0][0]["guarantee.json"])
    assert (stated["rows"], stated["in_clear"]) == ({"train": 2}, ["n"])


def test_pushed_datasets_of_other_originals_are_equal(
    hub: HubServer, folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    made = DxPrivatizer.from_pretrained("one", mechanism="tem", epsilon=0.5)
    found, fingerprints = [], set()
    for texts in ORIGINALS.values():
        path = tmp_path_factory.mktemp("originals") / "x.jsonl"
        path.write_text("".join(f"{json.dumps({'text': text})}\n" for text in texts))
        originals = load_dataset("json", data_files=str(path), split="train")
        mapped = originals.map(made, batched=True)
        fingerprints.add(mapped._fingerprint)
        card = made.dataset_card(mapped, license="mit")
        found.append((str(card), *_pushed(hub, card.push_to_hub)))
    assert len(fingerprints) == 2, "what `datasets` keeps does differ"
    assert found[0] == found[1]


# What is refused


def test_what_is_missing_or_altered_is_named(
    hub: HubServer, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    privatize("in.csv", "out.csv")
    hub.requests.clear()
    whole, license = (folder / "out.csv").read_bytes(), ("--license", "mit")
    report = folder / "out.csv.report.json"
    stated = json.loads(report.read_text())
    refused(capsys, 2, "--license is missing: .* such as cc-by-4.0", "out.csv", REPO)
    refused(
        capsys, 2, "the Hub has no licence 'MIT'; did you mean", "out.csv", REPO, "--license", "MIT"
    )
    refused(capsys, 1, "in.csv.report.json, which says what holds .*name it with --report",
            "in.csv", REPO, *license)  # fmt: skip
    of_other = ("in.csv", REPO, *license, "--report", "out.csv.report.json")
    refused(capsys, 1, "in.csv: SHA-256 is .*is no release at all. Publish the file", *of_other)
    (folder / "out.csv").write_bytes(whole + b"more,1\n")
    refused(capsys, 1, "out.csv: SHA-256 is .*altered", "out.csv", REPO, *license)
    (folder / "out.csv").write_bytes(whole[:-5])
    refused(capsys, 1, "out.csv: SHA-256 is", "out.csv", REPO, *license)
    (folder / "out.csv").write_bytes(whole)
    without = {k: v for k, v in stated.items() if k != "guarantee"}
    for content, said in (
        ("{}", "it names no file, so it may be no report"),
        (json.dumps(bind({**stated, "released": None})), "of a release to standard output"),
        (json.dumps(bind(without)), "missing guarantee"),
        (report.read_text()[:99], "truncated or not JSON"),
    ):
        report.write_text(content)
        refused(capsys, 1, said, "out.csv", REPO, *license)
    refused(capsys, 2, "there is no file or folder nothing; check the path",
            "nothing", REPO, "--report", "x")  # fmt: skip
    refused(capsys, 2, "is a file, whose guarantee is in the report", "out.csv", REPO, *license,
            "--privatizer", "p")  # fmt: skip
    assert hub.requests == []


def _edits(stated: Any) -> Iterator[Any]:
    """Return copies of JSON values, each with one value of another type, or none."""
    others: list[Any] = [7, "x", None, True, [], ["x"], [None], {}, {"x": 7}]
    if isinstance(stated, dict):
        for name, value in stated.items():
            yield {key: kept for key, kept in stated.items() if key != name}
            yield from ({**stated, name: edited} for edited in _edits(value))
    yield from (other for other in others if type(other) is not type(stated) or other == [None])


def test_reports_that_were_edited_are_refused_by_name(folder: Path) -> None:
    privatize("in.csv", "out.csv")
    report = folder / "out.csv.report.json"
    stated = json.loads(report.read_text())
    digest = stated.pop("config_sha256")
    edits = [edit for edit in _edits(stated) if isinstance(edit, dict) and edit]
    assert len(edits) > 300
    for edit in edits:
        # By accident, and by one who makes the digest right again, or has a report without one.
        report.write_text(json.dumps({**edit, "config_sha256": digest}))
        with pytest.raises(ArtifactError, match=r"report\.json: an entry was changed"):
            released_dataset(Path("out.csv"))
        report.write_text(json.dumps(edit))
        try:
            card = released_dataset(Path("out.csv"), license="mit")
        except (ArtifactError, InvalidTypeError, InvalidValueError):
            continue
        with TemporaryDirectory() as saved:
            card.save_pretrained(saved)
            card._check_publishable(None)


def test_reports_without_a_digest_are_read(hub: HubServer, folder: Path) -> None:
    """Version 0.3 wrote such ones."""
    privatize("in.csv", "out.csv")
    report = folder / "out.csv.report.json"
    stated = json.loads(report.read_text())
    del stated["config_sha256"]
    report.write_text(json.dumps(stated))
    assert push("out.csv", REPO) == 0


@pytest.mark.parametrize("name", ["", "..", "a/b/c", "/etc", "me/with space", "me/x\x1b[2J"])
def test_a_dry_run_takes_no_impossible_repository(
    folder: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    privatize("in.csv", "out.csv")
    more = ("--license", "mit", "--dry-run", "look")
    refused(capsys, 2, "expected a repository 'namespace/name'", "out.csv", name, *more)
    assert not Path("look").exists()


def test_the_original_text_is_not_pushed_unasked(
    hub: HubServer, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "in.csv").write_text("text\nKowalska\nLindqvist\n")
    privatize("in.csv", "out.csv", "--output-column", "new")
    hub.requests.clear()
    said = "column 'text' still holds the ORIGINAL text.*--with-originals"
    refused(capsys, 2, said, "out.csv", REPO, "--license", "mit")
    assert hub.requests == []
    assert push("out.csv", REPO, "--with-originals") == 0
    card = remote(hub)["README.md"].decode()
    warning = "WARNING: column 'text' holds the ORIGINAL text, without any protection."
    assert f"\n> **{warning}**\n" in card
    assert "Kowalska" not in card, "originals are not among the rows that are shown"
    stated = json.loads(remote(hub)["guarantee.json"])
    assert stated["original_text"] == ["text"]
    croissant = json.loads(remote(hub)["croissant.json"])
    assert warning in croissant["rai:personalSensitiveInformation"]


def test_wrong_data_are_refused(
    privatizer: DxPrivatizer, released: Dataset, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(InvalidValueError, match=r"no column 'text'.*did you mean 'txt'"):
        privatizer.dataset_card(released.rename_column("text", "txt"))
    with pytest.raises(InvalidValueError, match="there are no rows to publish"):
        privatizer.dataset_card(released.select([]))
    with pytest.raises(InvalidTypeError, match="expected a Dataset"):
        privatizer.dataset_card("text")
    with pytest.raises(InvalidTypeError, match="expected description to be a text, got a int"):
        privatizer.dataset_card(released, description=3)  # type: ignore[arg-type]
    originals = Dataset.from_dict({"text": ["Patient Kowalska has leukemia."] * 5})
    with pytest.raises(InvalidValueError, match="20 of 20 words in column 'text' cannot") as error:
        privatizer.dataset_card(originals)
    assert "Kowalska" not in str(error.value)
    card = privatizer.dataset_card(released)
    with pytest.raises(InvalidValueError, match="there is no licence"):
        card.push_to_hub(REPO)
    of_columns = privatizer.dataset_card(["text", "stars"], license="mit")
    assert "| `stars` | in clear" in str(of_columns)
    with pytest.raises(InvalidValueError, match="a card of columns has no data to push"):
        of_columns.push_to_hub(REPO)
    assert not caplog.records


FAULTS = [
    (Fault("POST", "/api/repos/create", None, status=401), "the token is not valid"),
    (Fault("POST", "/api/repos/create", None, status=403), "the token may not do this"),
    (Fault("POST", "*/commit/main", None, status=403), "the token may not do this"),
    (Fault("POST", "*/commit/main", None, status=409), "the Hub answered 409; try again later"),
    pytest.param(
        Fault("PUT", "/lfs/*", None, cut_upload_after=10),
        "connection broke|check the connection",
        marks=pytest.mark.slow,  # the client tries again and again
    ),
]


@pytest.mark.parametrize(("fault", "message"), FAULTS)
def test_a_push_that_fails_leaves_no_commit(
    hub: HubServer, folder: Path, capsys: pytest.CaptureFixture[str], fault: Fault, message: str
) -> None:
    privatize("in.csv", "out.parquet")
    hub.faults.add(fault)
    refused(capsys, 1, message, "out.parquet", REPO, "--license", "mit")
    repo = hub.repos.get(f"datasets/{REPO}")
    assert repo is None or repo.files() == {}
    hub.faults.clear()
    assert push("out.parquet", REPO) == 0


def test_no_network_a_wrong_name_and_another_owner(
    hub: HubServer, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    privatize("in.csv", "out.csv")
    refused(capsys, 2, "expected a repository 'namespace/name'", "out.csv", "me/a b", "--license",
            "mit")  # fmt: skip
    refused(capsys, 1, "the token may not do this", "out.csv", "other/x", "--license", "mit")
    hub.stop()
    refused(capsys, 1, "cannot be reached", "out.csv", REPO, "--license", "mit")


def _no_room() -> None:
    # A process that may write no file of more than 4 kB meets the limit as it would a full disk.
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))


@pytest.mark.slow
def test_a_full_disk_is_named_and_nothing_is_sent(hub: HubServer, folder: Path) -> None:
    (folder / "in.csv").write_text("text\n" + "waab waac waad waae\n" * 999)
    privatize("in.csv", "out.csv")
    hub.requests.clear()
    command = [sys.executable, "-m", "hf_dxprivacy", "push", "out.csv", REPO, "--license", "mit"]
    failed = subprocess.run(
        [*command, "--dry-run", "look"], preexec_fn=_no_room, capture_output=True, text=True
    )
    assert failed.returncode == 1
    assert re.search(r"error: .*data/train\.csv: File too large", failed.stderr), failed.stderr
    assert not (folder / "look").exists()
    assert not [name for name in os.listdir(folder) if name.startswith(".hf-dxprivacy")]
    assert hub.requests == []


def test_a_file_that_changes_while_it_is_pushed_is_refused(hub: HubServer, folder: Path) -> None:
    privatize("in.csv", "out.csv")
    card = released_dataset(folder / "out.csv", license="mit")
    (folder / "out.csv").write_text("text,n\nPatient Kowalska,1\n")
    with pytest.raises(ArtifactError, match="altered since"):
        card.push_to_hub(REPO)
    assert hub.requests == []


@pytest.mark.skipif(
    int(huggingface_hub.__version__.partition(".")[0]) < 2,
    reason="before version 2, the client asks huggingface.co alone, whatever HF_ENDPOINT says",
)
def test_a_header_that_the_hub_would_refuse_is_seen_here(hub: HubServer, folder: Path) -> None:
    """Otherwise the tests above would see nothing."""
    privatize("in.csv", "out.csv")
    assert push("out.csv", REPO) == 0
    card = remote(hub)["README.md"].decode()
    DatasetCard(card).validate()
    header = yaml.safe_load(card.split("---\n")[1])
    assert header["size_categories"] == ["n<1K"]
    assert header["configs"][0]["data_files"] == [{"split": "train", "path": ["data/train.csv"]}]
    with pytest.raises(ValueError, match=r"size_categories\[0\]\W* must be one of"):
        DatasetCard(card.replace("n<1K", "tiny")).validate()
    with pytest.raises(HubError, match="no such repository"):
        EmbeddingSpace.from_pretrained(REPO)


def test_the_commands_of_the_page_run(hub: HubServer, folder: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "hub.md").read_text("utf-8")
    section = page.partition("## A released dataset\n")[2].partition("\n## ")[0]
    commands = re.findall(r"^hf-dxprivacy (.*)$", section, re.MULTILINE)
    assert [command.split()[0] for command in commands] == ["privatize", "push", "push"]
    (folder / "reviews.csv").write_text("text,stars\n" + "The soup was cold.,1\n" * 20)
    for command in commands:
        assert main(command.split()) == 0
    assert len(load_dataset("me/reviews-csv", split="train")) == 20
    assert (folder / "look" / "README.md").read_bytes() == remote(hub, "me/reviews-csv")[
        "README.md"
    ]
