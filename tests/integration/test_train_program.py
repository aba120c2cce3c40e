"""From a source of relations to a space that is saved and pushed, in one command."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from hf_dxprivacy.cli.main import main
from hf_dxprivacy.spaces import EmbeddingSpace
from hub_server import HubServer
from machine import PATIENCE

pytestmark = pytest.mark.slow

EXAMPLE = Path(__file__).parents[2] / "examples" / "train_webisadb.py"
QUICK = ["--dim", "3", "--epochs", "20", "--threads", "1", "--output", "space"]
ANIMALS = ["dog", "cat", "horse", "sparrow", "eagle"]
HEADER = "_id,instance,class,frequency,pidspread,pldspread,modifications\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a folder with sources."""
    pairs = [(name, "animal") for name in ANIMALS] + [("animal", "thing"), ("tool", "thing")]
    (tmp_path / "pairs.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in pairs))
    rows = (f'{n},{a},{b},12,1,1,"[]"\n' for n, (a, b) in enumerate([*pairs, ("dog", "thing")]))
    (tmp_path / "dump.csv").write_text(HEADER + "".join(rows))
    (tmp_path / "words.txt").write_text("\n".join([*ANIMALS, "animal", "thing", "tool"]))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_pairs_become_a_space_that_is_the_same_again(folder: Path) -> None:
    assert main(["train-poincare", "pairs", "pairs.tsv", *QUICK]) == 0
    space = EmbeddingSpace.from_pretrained("./space")
    assert set(space.words) == {*ANIMALS, "animal", "thing", "tool"}
    assert (space.metric, space.dim) == ("poincare", 3)
    assert space.neighbour_distances((1,))[1] == pytest.approx(1.0, rel=1e-9)
    assert space.provenance["source"] == "pairs.tsv"
    assert space.provenance["reconstruction"]["nodes"] == 7
    assert main(["train-poincare", "pairs", "pairs.tsv", *QUICK, "--overwrite"]) == 0
    assert EmbeddingSpace.from_pretrained("./space").digest == space.digest


def test_the_largest_part_can_be_chosen(folder: Path) -> None:
    with (folder / "pairs.tsv").open("a") as file:
        file.write("oak\ttree\n")
    assert main(["train-poincare", "pairs", "pairs.tsv", "--largest-component", *QUICK]) == 0
    space = EmbeddingSpace.from_pretrained("./space")
    assert set(space.words) == {*ANIMALS, "animal", "thing", "tool"}
    assert space.provenance["largest_component"] is True


def test_a_subtree_can_be_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train-poincare", "pairs", "pairs.tsv", "--below", "animal", *QUICK]) == 0
    space = EmbeddingSpace.from_pretrained("./space")
    assert set(space.words) == {*ANIMALS, "animal"}
    assert space.provenance["below"] == "animal"
    arguments = ["--below", "anmal", *QUICK, "--overwrite"]
    assert main(["train-poincare", "pairs", "pairs.tsv", *arguments]) == 1
    assert "did you mean 'animal'" in capsys.readouterr().err


def test_a_refinement_can_be_asked_for() -> None:
    assert main(["train-poincare", "pairs", "pairs.tsv", "--refinement", "2", *QUICK]) == 0
    recipe = EmbeddingSpace.from_pretrained("./space").provenance["recipe"]
    assert (recipe["epochs"], recipe["refinement"], recipe["stopped"]) == (20, 2, 22)


def test_a_device_can_be_chosen() -> None:
    assert main(["train-poincare", "pairs", "pairs.tsv", "--device", "cpu", *QUICK]) == 0
    assert EmbeddingSpace.from_pretrained("./space").provenance["recipe"]["device"] == "cpu"


def test_webisadb_goes_from_the_dump_to_the_hub(
    folder: Path, hub: HubServer, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HF_TOKEN", hub.token)
    arguments = ["dump.csv", "--vocabulary", "words.txt", "--min-links", "1", "--offensive", "none"]
    push = ["--push", "me/webisadb", "--private"]
    assert main(["train-poincare", "webisadb", *arguments, *QUICK, *push]) == 0
    printed = capfd.readouterr()
    assert printed.out.strip().endswith(hub.repo("me/webisadb").find("main").oid)
    files = hub.repo("me/webisadb").files()
    card = files["README.md"].decode()
    assert "license: cc-by-nc-sa-3.0\n" in card
    assert '"min_links": 1' in card
    provenance = json.loads(files["config.json"])["provenance"]
    assert provenance["counts"]["rows"] == 8
    assert provenance["counts"]["relations"] == provenance["relations"] == 8
    assert "seconds" not in provenance["counts"]
    assert str(folder) not in card


def test_counted_pairs_go_the_same_way_with_the_dump_or_without(folder: Path) -> None:
    lines = ["dog\tyoung animal\t9", "animal\tdog\t8", "tool\tdog\t7"]
    (folder / "counts.tsv").write_text("\n".join(lines))
    options = ["--vocabulary", "words.txt", "--min-frequency", "1", "--min-links", "1"]
    pruned = ["--phrases", "head", "--acyclic", "--max-classes", "1", "--largest-component"]
    command = ["train-poincare", "counts", "counts.tsv", *options, *pruned, *QUICK]
    assert main([*command, "--license", "cc-by-nc-4.0"]) == 0
    space = EmbeddingSpace.from_pretrained("./space")
    assert set(space.words) == {"dog", "animal", "tool"}
    counts = space.provenance["counts"]
    assert (counts["opposite"], counts["counted_pairs"], counts["relations"]) == (1, 3, 2)
    assert "license: cc-by-nc-4.0\n" in (folder / "space" / "README.md").read_text()
    assert main([*command[:3], "dump.csv", *command[3:], "--overwrite"]) == 0
    provenance = EmbeddingSpace.from_pretrained("./space").provenance
    assert provenance["licence"] == "cc-by-nc-sa-3.0"
    assert provenance["source"] == "counts.tsv, dump.csv"
    assert provenance["filters"]["phrases"] == "head"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["webisadb", "dump.csv"], "webisadb needs --vocabulary"),
        (["webisadb", "a", "--vocabulary", "b", "--below", "c"], "--below is for wordnet"),
        (["pairs"], "pairs needs at least one PATH"),
        (["pairs", "a", "b"], "pairs takes one PATH, got 2"),
        (["nothing", "a"], "invalid choice: 'nothing'"),
        (["pairs", "pairs.tsv", "--license", "mitt"], "no licence 'mitt'"),
        (["pairs", "pairs.tsv", "--dim", "0"], "expected a whole number >= 1"),
    ],
)
def test_wrong_usage(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert main(["train-poincare", *arguments, "--output", "space"]) == 2
    assert message in capsys.readouterr().err
    assert not Path("space").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a\n", "line 1: expected a node, a tab and its class"),
        ("", "relation"),
        ("a\ta\n", "itself"),
        ("a\tb\nc\td\n", "2 parts that no relation joins"),
    ],
)
def test_sources_that_do_not_make_a_space(
    folder: Path, capsys: pytest.CaptureFixture[str], content: str, message: str
) -> None:
    (folder / "bad.tsv").write_text(content)
    assert main(["train-poincare", "pairs", "bad.tsv", *QUICK]) == 1
    assert message in capsys.readouterr().err
    assert not (folder / "space").exists()


def test_the_example_does_the_same(folder: Path) -> None:
    EmbeddingSpace.from_vectors(
        [*ANIMALS, "animal", "thing", "tool"], [[float(row)] for row in range(8)]
    ).save_pretrained("words")
    options = ["--vocabulary", "./words", "--min-links", "1", "--dim", "2", "--epochs", "5"]
    command = [sys.executable, str(EXAMPLE), "dump.csv", *options, "--output", "out"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    assert "relations" in done.stdout
    space = EmbeddingSpace.from_pretrained("out/space")
    assert (len(space), space.dim) == (8, 2)
    assert space.provenance["licence"] == "cc-by-nc-sa-3.0"


def test_the_example_says_which_filters_leave_nothing(folder: Path) -> None:
    """As those of the paper do of a sample of the dump."""
    EmbeddingSpace.from_vectors(["dog", "cat"], [[0.0], [1.0]]).save_pretrained("words")
    command = [sys.executable, str(EXAMPLE), "dump.csv", "--vocabulary", "./words"]
    done = subprocess.run(
        [*command, "--output", "out"], capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 1
    assert "few links" in done.stdout
    assert done.stderr.splitlines()[-1].startswith("train_webisadb: expected at least one relation")
    assert "lower min_frequency or min_links" in done.stderr
    assert "Traceback" not in done.stderr
