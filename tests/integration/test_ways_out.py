"""Every way out of this package: none lets a column of originals leave beside the released one.

A file that ``privatize --output-column`` writes is its owner's, and warned of; what leaves is what
`push` sends.
"""

import json
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import Mock

import pytest
from datasets import Dataset, DatasetDict, load_dataset

from hf_dxprivacy import DxPrivatizer, EmbeddingSpace, publishable, strip_traces
from hf_dxprivacy.cli.main import main
from hf_dxprivacy.distributed import privatize_ray, privatize_spark
from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError
from hf_dxprivacy.files.released_file import released_dataset
from hub_server import HubServer

REPO = "me/released"
SECRET = "Kowalska"
TEXTS = [f"waab {SECRET}, waac!", "waad waae", "waaf"] * 4
LEFT = "column 'text' still holds the ORIGINAL text"
SCRIPT = Path(__file__).parents[2] / "examples" / "uv_privatize.py"


class Made(NamedTuple):
    """A privatizer that keeps its input beside its output, and what it has released."""

    privatizer: DxPrivatizer
    rows: Dataset
    capsys: pytest.CaptureFixture[str]

    def run(self, program: Callable[[list[str]], int], *arguments: str) -> None:
        """Run a program, and raise what it says if it fails."""
        self.capsys.readouterr()
        if program([*arguments]):
            raise InvalidValueError(self.capsys.readouterr().err)


@pytest.fixture
def made(
    hub: HubServer,
    tmp_path: Path,
    euclidean_space: EmbeddingSpace,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Made:
    monkeypatch.setenv("HF_TOKEN", hub.token)
    monkeypatch.chdir(tmp_path)
    euclidean_space.save_pretrained("space")
    privatizer = DxPrivatizer("space", "tem", 5.0, output_column="rel")
    privatizer.save_pretrained("privatizer")
    rows = Dataset.from_dict({"id": [*range(len(TEXTS))], "text": TEXTS})
    rows.to_csv("in.csv", index=False)
    released = rows.map(privatizer, batched=True)
    strip_traces(released).save_to_disk("folder")
    law = ("--space", "space", "--mechanism", "tem", "--epsilon", "5", "--output-column", "rel")
    assert main(["privatize", "in.csv", "--output", "out.csv", "--report", *law]) == 0
    hub.requests.clear()
    return Made(privatizer, released, capsys)


def card(made: Made, **options: Any) -> Any:
    return made.privatizer.dataset_card(made.rows, license="mit", **options)


def push(made: Made, source: str, *more: str, with_originals: bool = False) -> None:
    more += ("--with-originals",) * with_originals
    made.run(main, "push", source, REPO, "--license", "mit", *more)


def script(made: Made, **options: Any) -> None:
    law = ("--space", "space", "--mechanism", "tem", "--epsilon", "5", "--output-column", "rel")
    program = runpy.run_path(str(SCRIPT))["main"]
    made.run(program, "in.csv", REPO, "--license", "mit", *law)


def ray(made: Made, **options: Any) -> None:
    data = pytest.importorskip("ray.data", reason="Ray is not installed (extra: ray)")
    # Never asked for a row, so that it needs no cluster.
    privatize_ray(Mock(spec=data.Dataset), made.privatizer, id_column="id", **options)


def spark(made: Made, **options: Any) -> None:
    sql = pytest.importorskip("pyspark.sql", reason="Spark is not installed (extra: spark)")
    privatize_spark(Mock(spec=sql.DataFrame), made.privatizer, id_column="id", **options)


WAYS: dict[str, Callable[..., Any]] = {
    "publishable": lambda m, **o: publishable(m.rows, m.privatizer, **o),
    "publishable, splits": lambda m, **o: publishable(
        DatasetDict(train=m.rows.remove_columns("text"), test=m.rows), m.privatizer, **o
    ),
    "card, printed": lambda m, **o: str(card(m, **o)),
    "card, saved": lambda m, **o: card(m, **o).save_pretrained("saved"),
    "card, pushed": lambda m, **o: card(m, **o).push_to_hub(REPO),
    "card of columns": lambda m, **o: str(m.privatizer.dataset_card(["text", "rel"], **o)),
    "card of a file": lambda m, **o: released_dataset(
        Path("out.csv"), license="mit", **o
    ).push_to_hub(REPO),
    "push FILE": lambda m, **o: push(m, "out.csv", **o),
    "push FILE --dry-run": lambda m, **o: push(m, "out.csv", "--dry-run", "look", **o),
    "push FOLDER": lambda m, **o: push(m, "folder", "--privatizer", "privatizer", **o),
    "uv script": script,
    "Ray": ray,
    "Spark": spark,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.filterwarnings(r"ignore::DeprecationWarning:ray\.")
def test_no_original_leaves_unasked(made: Made, hub: HubServer, way: str) -> None:
    with pytest.raises(InvalidValueError, match=LEFT) as error:
        WAYS[way](made)
    assert SECRET not in str(error.value)
    assert not hub.requests
    assert not Path("saved").exists()
    assert not Path("look").exists()


# The script has no such option; a cluster would be asked for rows.
@pytest.mark.parametrize("way", [way for way in WAYS if way not in ("uv script", "Ray", "Spark")])
def test_originals_that_are_asked_for_leave(made: Made, hub: HubServer, way: str) -> None:
    WAYS[way](made, with_originals=True)
    if not hub.requests:
        return
    files = hub.repo(f"datasets/{REPO}").files()
    warning = "WARNING: column 'text' holds the ORIGINAL text, without any protection."
    assert f"\n> **{warning}**\n" in files["README.md"].decode()
    assert json.loads(files["guarantee.json"])["original_text"] == ["text"]
    assert load_dataset(REPO, split="train")["text"] == TEXTS


def test_adapters_hand_on_nothing_that_they_read(made: Made) -> None:
    documents = pytest.importorskip("datatrove.data", reason="datatrove is not installed")
    from hf_dxprivacy.integrations.datatrove import DxFormatter
    from hf_dxprivacy.integrations.sklearn import DxTransformer

    texts = DxTransformer(privatizer=made.privatizer).fit_transform(TEXTS)
    given = [documents.Document(text=text, id=str(at)) for at, text in enumerate(TEXTS)]
    passed = [*DxFormatter(made.privatizer).run(given)]
    assert len(texts) == len(passed) == len(TEXTS)
    assert SECRET not in f"{[*texts]} {passed}"


def test_publishable_refuses_what_cannot_be_a_release(made: Made) -> None:
    beside = made.rows.rename_column("text", "note").rename_column("rel", "text")
    inplace = DxPrivatizer(made.privatizer.space, "tem", 5.0)
    assert publishable(beside, inplace).column_names == ["id", "note", "text"]
    originals = made.rows.remove_columns("rel")
    for rows in (originals, DatasetDict(train=beside, test=originals)):
        with pytest.raises(InvalidValueError, match=r"words in column 'text' cannot") as error:
            publishable(rows, inplace)
        assert SECRET not in str(error.value)
    with pytest.raises(InvalidValueError, match="there is no column 'rel'"):
        publishable(originals, made.privatizer)
    with pytest.raises(InvalidTypeError, match="what has released the rows, got a str"):
        publishable(originals, "tem")  # type: ignore[arg-type]
    assert len(publishable(beside.select([]), inplace)) == 0


def test_publishable_without_a_privatizer_says_what_to_call(made: Made) -> None:
    said = r"call publishable\(dataset, privatizer\), .* or strip_traces\(dataset\)"
    with pytest.warns(FutureWarning, match=said) as found:
        old = publishable(made.rows)
    assert found[0].filename == __file__
    assert old._fingerprint == strip_traces(made.rows)._fingerprint
