"""The formatter in pipelines of datatrove: texts, metadata, ranks, logs."""

import contextlib
import copy
import io
import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

pytest.importorskip("datatrove", reason="datatrove is not installed (extra: datatrove)")

from datatrove.data import Document, Media
from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.readers import JsonlReader
from datatrove.pipeline.writers import JsonlWriter
from example_runs import write

from hf_dxprivacy import DxPrivatizer, EmbeddingSpace, PrivacyBudget, SentencePrivatizer
from hf_dxprivacy.errors import DxPrivacyError, InvalidTypeError, InvalidValueError
from hf_dxprivacy.integrations.datatrove import DxFormatter

# Of the tests of noise: how often each fails by chance.
FALSE_ALARM = 1e-6
# No word of the spaces here.
SECRET = "xylographer"


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory, euclidean_space: EmbeddingSpace) -> Path:
    """A folder with a space."""
    folder = tmp_path_factory.mktemp("space")
    euclidean_space.save_pretrained(folder)
    return folder


@pytest.fixture
def privatizer(stored: Path) -> DxPrivatizer:
    return DxPrivatizer(stored, "krr", 3.0)


def documents(*texts: Any) -> Iterator[Document]:
    for number, text in enumerate(texts):
        yield Document(
            text=text,
            id=f"row {number}",
            media=[Media(id="1", type=0, url="https://example.org/1.png")],
            metadata={"title": f"{SECRET} {number}"},
        )


def total(step: DxFormatter) -> int:
    return int(step.stats["total"].total)


def test_texts_are_released_and_all_else_is_as_it_was(privatizer: DxPrivatizer) -> None:
    texts = ["waaa, waab!", "", "waac " * 500, f"{SECRET} — 你好 🙂"]
    step = DxFormatter(privatizer, batch_size=3)
    found = list(step.run(documents(*texts)))
    assert [each.id for each in found] == ["row 0", "row 1", "row 2", "row 3"]
    for before, after in zip(documents(*texts), found, strict=True):
        assert (after.metadata, after.media) == (before.metadata, before.media)
    first, empty, long, other = (each.text for each in found)
    assert first.count(",") == first.count("!") == 1
    assert all(word in privatizer.space for word in first.replace(",", "").strip("!").split())
    assert empty == ""
    assert len(long.split()) == 500
    assert SECRET not in other
    assert "—" in other
    assert total(step) == 4
    assert step.stats.time_stats.n == 2  # batches


def test_batches_are_read_one_at_a_time(privatizer: DxPrivatizer) -> None:
    read: list[str] = []

    def reading() -> Iterator[Document]:
        for each in documents(*["waaa"] * 7):
            read.append(each.id)
            yield each

    running = DxFormatter(privatizer, batch_size=3).run(reading())
    next(running)
    assert len(read) == 3
    assert len(list(running)) == 6
    assert list(DxFormatter(privatizer).run(iter(()))) == []


def test_a_text_has_the_law_of_the_privatizer(privatizer: DxPrivatizer) -> None:
    (found,) = DxFormatter(privatizer).run(documents("waaa " * 2000))
    law = privatizer.mechanism.probabilities(privatizer.space.ids(["waaa"]))[0]
    low, high = binom.ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2], 2000, law[0])
    assert low <= found.text.split().count("waaa") <= high


def test_a_step_travels_as_a_reference(privatizer: DxPrivatizer) -> None:
    step = DxFormatter(privatizer)
    list(step.run(documents("waaa waab")))
    assert len(pickle.dumps(step)) < 2500
    for other in (pickle.loads(pickle.dumps(step)), copy.deepcopy(step)):
        assert other.privatizer.guarantee == privatizer.guarantee
        assert next(other.run(documents("waaa"))).text in privatizer.space
        assert total(other) == total(step) + 1 == 2


def test_pools_release_a_sentence() -> None:
    step = DxFormatter(SentencePrivatizer("wordnet-sentences", epsilon=2.0))
    (found,) = step.run(documents("The soup was cold."))
    assert found.text in step.privatizer.pool.sentences


@pytest.mark.parametrize("batch_size", [0, -1])
def test_batches_have_a_size(privatizer: DxPrivatizer, batch_size: int) -> None:
    with pytest.raises(InvalidValueError, match=rf"batch_size >= 1, got batch_size={batch_size}"):
        DxFormatter(privatizer, batch_size)


@pytest.mark.parametrize("other", ["english", None, DxPrivatizer])
def test_other_things_are_no_privatizers(other: Any) -> None:
    with pytest.raises(InvalidTypeError, match=r"expected privatizer to be a DxPrivatizer.*got a"):
        DxFormatter(other)


def test_a_budget_is_not_passed_by(stored: Path) -> None:
    budget = PrivacyBudget(3.0)
    step = DxFormatter(DxPrivatizer(stored, "krr", 3.0, budget=budget))
    assert list(step.run(documents("waaa")))
    with pytest.raises(DxPrivacyError, match="budget"):
        list(step.run(documents("waaa")))
    with pytest.raises(DxPrivacyError, match="counts only where it was made"):
        list(copy.deepcopy(step).run(documents("waaa")))


def test_an_unforeseen_error_shows_no_text(
    privatizer: DxPrivatizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: Any, cells: Any) -> Any:
        raise KeyError(cells[0])

    monkeypatch.setattr(DxPrivatizer, "privatize", fail)
    with pytest.raises(DxPrivacyError, match=r"^unexpected KeyError$") as caught:
        list(DxFormatter(privatizer).run(documents(SECRET)))
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def run(folder: Path, step: DxFormatter, tasks: int) -> Any:
    pipeline = [
        JsonlReader(str(folder / "in")),
        step,
        JsonlWriter(str(folder / "out"), compression=None),
    ]
    logs = str(folder / "logs")
    return LocalPipelineExecutor(pipeline, tasks=tasks, workers=tasks, logging_dir=logs).run()


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@pytest.mark.slow
def test_ranks_in_processes_of_their_own_have_independent_noise(
    tmp_path: Path, privatizer: DxPrivatizer
) -> None:
    (tmp_path / "in").mkdir()
    words = 4000
    rows = [{"text": "waaa " * words, "id": "1", "url": "https://example.org"}]
    for name in ("a", "b"):
        write(tmp_path / "in" / f"{name}.jsonl", rows)
    assert run(tmp_path, DxFormatter(privatizer), tasks=2).stats[1]["total"].total == 2
    outputs = []
    for rank in range(2):
        (row,) = read(tmp_path / "out" / f"{rank:05d}.jsonl")
        assert row["metadata"]["url"] == "https://example.org"
        outputs.append(privatizer.space.ids(row["text"].split()))
    law = privatizer.mechanism.probabilities(privatizer.space.ids(["waaa"]))[0]
    quantiles = [FALSE_ALARM / 2, 1 - FALSE_ALARM / 2]
    low, high = binom.ppf(quantiles, words, float(law @ law))
    assert low <= int((outputs[0] == outputs[1]).sum()) <= high
    for found in outputs:
        low, high = binom.ppf(quantiles, words, law[0])
        assert low <= int(np.count_nonzero(found == 0)) <= high


@pytest.mark.slow
def test_a_row_that_is_no_text_fails_its_task_and_shows_none(
    tmp_path: Path, privatizer: DxPrivatizer
) -> None:
    (tmp_path / "in").mkdir()
    rows: list[dict[str, object]] = [{"text": SECRET}, {"text": {"body": SECRET}}]
    write(tmp_path / "in" / "a.jsonl", rows)
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        with pytest.raises(InvalidTypeError, match=r"row 1.*expected a text"):
            run(tmp_path, DxFormatter(privatizer), tasks=1)
    logs = [path.read_text("utf-8") for path in (tmp_path / "logs").rglob("*") if path.is_file()]
    assert any("expected a text" in log for log in logs)
    assert SECRET not in said.getvalue() + "".join(logs)
    assert not [path for path in (tmp_path / "out").rglob("*.jsonl") if path.stat().st_size]
