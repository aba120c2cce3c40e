"""Chats through the real `datasets`, the program, Ray and Spark: texts change, all else stays."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import Dataset, concatenate_datasets, load_dataset

from hf_dxprivacy import (
    DxPrivatizer,
    EmbeddingSpace,
    SentencePrivatizer,
    SlotPrivatizer,
    publishable,
)
from hf_dxprivacy.cli.main import main
from hf_dxprivacy.distributed.rows import Job
from hf_dxprivacy.errors import InvalidValueError
from hf_dxprivacy.files.released_file import released_dataset
from hf_dxprivacy.slots import ContentWordSelector
from small_pools import SENTENCES, small_pool

SEED = 1 << 90
PATH = "messages[].content"


@pytest.fixture(scope="module", autouse=True)
def _quiet() -> Iterator[None]:
    datasets.disable_progress_bars()
    yield
    datasets.enable_progress_bars()


def chat(*texts: Any, extra: str = "waaq") -> list[dict[str, Any]]:
    """Return a chat with a system prompt, answers by tools, and a field beside the texts."""
    said = [{"role": "system", "content": "waab waac", "name": None, "at": 1}]
    for text in texts:
        said.append({"role": "user", "content": text, "name": extra, "at": 2})
        said.append({"role": "assistant", "content": None, "name": None, "at": None})
        said.append({"role": "tool", "content": "waad", "name": extra, "at": None})
    return said


@pytest.fixture(scope="module")
def rows() -> Dataset:
    chats = [chat("Waab, waac!"), chat("waae " * 9, "", "Zürich 日本"), [], chat()]
    return Dataset.from_dict({"id": list(range(20)), "messages": chats * 5})


def check(old: Dataset, new: Dataset, roles: tuple[str, ...]) -> None:
    """Check that texts of some roles are other words, and that nothing else changed."""
    changed = 0
    for before, after in zip(old, new, strict=True):
        assert after["id"] == before["id"]
        for mine, theirs in zip(before["messages"], after["messages"], strict=True):
            assert {**theirs, "content": mine["content"]} == mine
            if mine["role"] in roles and mine["content"]:
                assert theirs["content"].count(" ") == mine["content"].count(" ")
                changed += theirs["content"] != mine["content"]
            else:
                assert theirs["content"] == mine["content"]
    assert changed > 5


@pytest.mark.parametrize("roles", [None, ("user",)])
@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize("fmt", [None, "numpy", "torch", "arrow", "pandas", "polars"])
def test_formats(
    rows: Dataset, fmt: str | None, batched: bool, roles: Any, euclidean_space: EmbeddingSpace
) -> None:
    if fmt == "torch":
        pytest.importorskip("torch")
    if fmt == "pandas" and not batched:
        pytest.skip("of a row in pandas `datasets` learns no type of what is missing in it")
    privatizer = DxPrivatizer(euclidean_space, "tem", 0.5, text_column=PATH, roles=roles)
    mapped = rows.with_format(fmt).map(privatizer, batched=batched, batch_size=7)
    result = mapped.with_format(None)
    if fmt not in ("pandas", "polars"):  # which have other numbers and strings
        assert result.features == rows.features
    check(rows, result, roles or ("system", "user", "tool"))


def test_seeds_depend_on_nothing_but_the_row(
    rows: Dataset, euclidean_space: EmbeddingSpace
) -> None:
    privatizer = DxPrivatizer(euclidean_space, "tem", 0.5, text_column=PATH, seed=SEED)
    whole = rows.map(privatizer, batched=True, with_indices=True)["messages"][:]
    for options in (
        {"batched": True, "num_proc": 2},
        {"batched": False},
        {"batched": True, "batch_size": 3, "keep_in_memory": True},
    ):
        assert rows.map(privatizer, with_indices=True, **options)["messages"][:] == whole
    for fmt in ("arrow", "numpy"):
        mapped = rows.with_format(fmt).map(privatizer, with_indices=True, batched=True)
        assert mapped.with_format(None)["messages"][:] == whole
    parts = [
        rows.select(part).map(
            lambda row, at, start=part[0]: privatizer(row, at + start), with_indices=True
        )
        for part in (range(8), range(8, 20))
    ]
    assert concatenate_datasets(parts)["messages"][:] == whole
    for streamed in (False, True):
        stream = rows.to_iterable_dataset().map(privatizer, batched=streamed, with_indices=True)
        assert [row["messages"] for row in stream] == whole


def test_preferences_prompts_and_share_gpt(euclidean_space: EmbeddingSpace) -> None:
    said = [{"role": "user", "content": "waab waac"}, {"role": "assistant", "content": "waad"}]
    data = Dataset.from_dict(
        {
            **{name: [said, said[:1]] for name in ("prompt", "chosen", "rejected")},
            "conversations": [[{"from": "human", "value": "waab waac"}]] * 2,
            "title": ["waab", "waac waad"],
        }
    )
    columns = [f"{name}[].content" for name in ("prompt", "chosen", "rejected")]
    privatizer = DxPrivatizer(
        *(euclidean_space, "tem", 1e-6), seed=SEED,
        text_column=[*columns, "conversations[].value", "title"],
    )  # fmt: skip
    released = data.map(privatizer, batched=True, with_indices=True)
    assert released.features == data.features
    texts = [released[0][name][0]["content"] for name in ("prompt", "chosen", "rejected")]
    texts.append(released[0]["conversations"][0]["value"])
    assert len({*texts, "waab waac"}) == 5, "columns have noise of their own"
    assert released[1]["title"] != data[1]["title"]


def _tools(folder: Path) -> Path:
    """Write chats whose messages have different keys, as calls of tools do."""
    call = {"id": "c1", "function": {"name": "f", "arguments": {"city": "waaz", "n": 1.5}}}
    rows = [
        {
            "messages": [
                {"role": "user", "content": "waab waac"},
                {"role": "assistant", "tool_calls": [call]},
                {"role": "tool", "content": "waad", "tool_call_id": "c1"},
            ]
        },
        {
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "waae"}, {"image": "x.png"}]}
            ]
        },
    ]
    path = folder / "tools.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows * 3))
    return path


@pytest.mark.parametrize("fmt", [None, "arrow"])
def test_json_in_columns_stays_json(
    fmt: str | None, tmp_path: Path, euclidean_space: EmbeddingSpace
) -> None:
    if not hasattr(datasets, "Json"):
        pytest.skip("this version of datasets has no Json")
    path = str(_tools(tmp_path))
    data = load_dataset("json", data_files=path, split="train", cache_dir=str(tmp_path / "cache"))
    assert "Json" in str(data.features)
    options: dict[str, Any] = {"text_column": PATH, "seed": SEED, "keep_calls": True}
    privatizer = DxPrivatizer(euclidean_space, "tem", 1e-6, **options)
    released = data.with_format(fmt).map(privatizer, batched=True, with_indices=True)
    released = released.with_format(None)
    assert released.features == data.features
    first, second = released[0]["messages"], released[1]["messages"]
    assert first[1] == data[0]["messages"][1]
    assert first[2]["tool_call_id"] == "c1"
    assert "waab waac" != first[0]["content"] != '"waab waac"'
    assert second[0]["content"][1] == {"image": "x.png"}
    assert set(first[0]["content"].split()) <= {*euclidean_space.words}
    # The same file in the program, and a schema that Ray and Spark ask for.
    data.to_parquet(tmp_path / "x.parquet")
    table = pq.read_table(tmp_path / "x.parquet")
    assert (
        Job(privatizer.with_noise(None), "id")
        .schema(table.append_column("id", pa.array(range(6))).schema)
        .field("messages")
        .type
        == table.schema.field("messages").type
    )


# The program


def run(space: Path | str, source: Path, target: Path, *more: str) -> int:
    options = ["--text-column", PATH, "--mechanism", "tem", "--epsilon", "0.5", "--overwrite"]
    files = [str(source), "--output", str(target), "--space", str(space)]
    return main(["privatize", *files, *options, *more])


@pytest.fixture
def stored(euclidean_space: EmbeddingSpace, tmp_path: Path) -> Path:
    euclidean_space.save_pretrained(tmp_path / "space")
    return tmp_path / "space"


def test_jsonl_and_parquet_keep_all_but_the_texts(
    rows: Dataset, stored: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows.to_parquet(tmp_path / "x.parquet")
    rows.to_json(tmp_path / "x.jsonl")
    for ending in ("jsonl", "parquet"):
        out = tmp_path / f"out.{ending}"
        assert run(stored, tmp_path / f"x.{ending}", out, "--role", "user", "--report") == 0
        loader = Dataset.from_parquet if ending == "parquet" else Dataset.from_json
        released = loader(str(out), cache_dir=str(tmp_path / "cache"))
        check(rows, released, ("user",))
        assert "Only texts of the role 'user'" in capsys.readouterr().err
        options = json.loads((tmp_path / f"{out.name}.report.json").read_text())["options"]
        assert (options["text_columns"], options["roles"]) == ([PATH], ["user"])
    schema = pq.read_schema(tmp_path / "x.parquet")
    assert pq.read_schema(tmp_path / "out.parquet").equals(schema)


def test_a_file_without_a_text_of_the_roles_is_not_written(
    stored: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chat = [{"role": "user", "content": "waaa"}, {"role": "assistant", "content": "waab"}]
    (tmp_path / "x.jsonl").write_text(f"{json.dumps({'messages': chat})}\n" * 4)
    out = tmp_path / "out.jsonl"
    assert run(stored, tmp_path / "x.jsonl", out, "--role", "customer") == 1
    assert "of the roles 'customer', in 4 rows, so that all would be" in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.slow
def test_processes_and_batches_do_not_change_a_seeded_release(stored: Path, tmp_path: Path) -> None:
    source, released, common = _tools(tmp_path), [], ["--seed", str(SEED), "--keep-calls"]
    for more in (["--num-proc", "2", "--batch-size", "2"], ["--batch-size", "1"], []):
        assert run(stored, source, tmp_path / "out.jsonl", *common, *more) == 0
        released.append((tmp_path / "out.jsonl").read_bytes())
    assert released[0] == released[1] == released[2] != source.read_bytes()


def test_preferences_as_texts_and_as_messages_go_through_the_program(
    stored: Path, tmp_path: Path
) -> None:
    """TRL knows a prompt, and what was chosen, as texts and as lists of messages."""
    said = [{"role": "assistant", "content": "waab " * 20}]
    line = {"prompt": "waac " * 20, "chosen": said, "rejected": said, "score": 1.5}
    rows = Dataset.from_list([line] * 3)
    rows.to_json(tmp_path / "x.jsonl")
    rows.to_parquet(tmp_path / "x.parquet")
    columns = ["--text-column", "prompt", "--text-column", "chosen[].content"]
    columns += ["--text-column", "rejected[].content"]
    for ending in ("jsonl", "parquet"):
        out, source = tmp_path / f"out.{ending}", tmp_path / f"x.{ending}"
        command = ["privatize", str(source), "--output", str(out), "--space", str(stored), *columns]
        assert main([*command, "--mechanism", "tem", "--epsilon", "0.5"]) == 0
        loader = Dataset.from_parquet if ending == "parquet" else Dataset.from_json
        released = loader(str(out), cache_dir=str(tmp_path / "cache"))
        assert released.features == rows.features
        for row in released:
            texts = [row["prompt"], row["chosen"][0]["content"], row["rejected"][0]["content"]]
            assert len({*texts, line["prompt"], said[0]["content"]}) == 5
            assert all(len(text.split()) == 20 for text in texts)
            assert (row["score"], row["chosen"][0]["role"]) == (1.5, "assistant")


def test_slots_of_messages(rows: Dataset, euclidean_space: EmbeddingSpace) -> None:
    privatizer = SlotPrivatizer(
        *(euclidean_space, "tem", 1e-6), selector=ContentWordSelector(["waab"]),
        text_column=PATH, roles=("user",),
    )  # fmt: skip
    stream = rows.to_iterable_dataset().map(privatizer, batched=True, batch_size=3)
    for released in (rows.map(privatizer, batched=True, num_proc=2), stream):
        changed = 0
        for before, after in zip(rows, released, strict=True):
            for mine, theirs in zip(before["messages"], after["messages"], strict=True):
                assert {**theirs, "content": mine["content"]} == mine
                assert mine["role"] == "user" or theirs == mine
                assert mine["content"] != "Waab, waac!" or theirs["content"].startswith("Waab, ")
                changed += theirs != mine
        assert changed > 5


def test_json_in_parquet_goes_through_the_program(stored: Path, tmp_path: Path) -> None:
    if not hasattr(datasets, "Json"):
        pytest.skip("this version of datasets has no Json")
    source = Dataset.from_json(str(_tools(tmp_path)), cache_dir=str(tmp_path / "cache"))
    source.to_parquet(tmp_path / "x.parquet")
    options = "--role", "user", "--keep-calls"
    assert run(stored, tmp_path / "x.parquet", tmp_path / "out.parquet", *options) == 0
    released = Dataset.from_parquet(str(tmp_path / "out.parquet"), cache_dir=str(tmp_path / "c"))
    for before, after in zip(source["messages"], released["messages"], strict=True):
        after = [m if isinstance(m, dict) else json.loads(m) for m in after]
        assert after[1:] == before[1:]
        assert after[0].keys() == before[0].keys()


def _said_of_tools(names: str) -> list[dict[str, Any]]:
    """Return a chat in which the names of a user come again in a call, a result and an answer."""
    return [
        {"role": "system", "content": "Be short."},
        {"role": "user", "content": f"Where does {names} live?"},
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": "c1", "function": {"name": "find", "arguments": f'{{"who": "{names}"}}'}}]},
        {"role": "tool", "content": f"{names} lives in Ohio", "tool_call_id": "c1"},
        {"role": "assistant", "content": f"{names} lives in Ohio."},
    ]  # fmt: skip


IN_CLEAR = "2 calls of tools; 6 texts of the roles system, tool, assistant (24 words)"


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
@pytest.mark.parametrize("processes", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_what_a_chat_with_tools_leaves_in_clear_is_named_and_counted(
    kind: str, processes: int, stored: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    rows = Dataset.from_list([{"id": 1, "messages": _said_of_tools("Ann Bell")}] * 2)
    source, out = tmp_path / f"x.{kind}", tmp_path / f"out.{kind}"
    (rows.to_json if kind == "jsonl" else rows.to_parquet)(source)
    common = "--role", "user", "--num-proc", str(processes), "--batch-size", "1", "--report"
    assert run(stored, source, out, *common) == 1
    assert "a call of a tool with strings" in capfd.readouterr().err
    assert not out.exists()
    assert run(stored, source, out, *common, "--keep-calls") == 0
    printed = capfd.readouterr().err
    assert f"IN CLEAR, without any guarantee: column 'id'; {IN_CLEAR}\n" in printed
    assert printed.count("RELEASED AS THEY ARE") == 1
    assert "warning: RELEASED AS THEY ARE: 2 calls of tools;" in printed
    assert "of 4 capitalized words within sentences" in printed
    report = json.loads((tmp_path / f"out.{kind}.report.json").read_text())
    counts = {"calls_of_tools": 2, "texts_of_roles": {"system": 2, "tool": 2, "assistant": 2}}
    counts |= {"words_of_these": 24, "other_strings": 0}
    assert report["left_in_clear"] == counts
    card = released_dataset(out, license="cc0-1.0")
    card.save_pretrained(tmp_path / "card")
    assert f"All else in 'messages' is in clear: {IN_CLEAR}" in str(card)
    assert json.loads((tmp_path / "card" / "guarantee.json").read_text())["left_in_clear"] == counts
    assert run(stored, source, out, *common, "--keep-calls", "--quiet") == 0
    assert "RELEASED AS THEY ARE: 2 calls of tools;" in capfd.readouterr().err
    assert (
        main(["push", str(out), "me/x", "--license", "cc0-1.0", "--dry-run", str(tmp_path / "dry")])
        == 0
    )
    assert f"column 'id'; {IN_CLEAR}\n" in capfd.readouterr().err


def test_a_card_of_mapped_rows_counts_what_they_leave_in_clear(
    euclidean_space: EmbeddingSpace, caplog: pytest.LogCaptureFixture
) -> None:
    rows = Dataset.from_list([{"id": 1, "messages": _said_of_tools("Ann Bell")}] * 2)
    options: dict[str, Any] = {"text_column": PATH, "roles": "user"}
    with pytest.raises(InvalidValueError, match="a call of a tool with strings"):
        rows.map(DxPrivatizer(euclidean_space, "tem", 0.5, **options), batched=True)
    privatizer = DxPrivatizer(euclidean_space, "tem", 0.5, keep_calls=True, **options)
    card = privatizer.dataset_card(rows.map(privatizer, batched=True))
    assert f"All else in 'messages' is in clear: {IN_CLEAR}" in str(card)
    assert caplog.text.count("RELEASED AS THEY ARE") == 1
    both = {**options, "text_column": [PATH, "messages[].tool_calls[].function.arguments"]}
    privatizer = DxPrivatizer(euclidean_space, "tem", 0.5, **both)
    released = rows.map(privatizer, batched=True)
    assert released.features == rows.features
    assert "Ann" not in released[0]["messages"][2]["tool_calls"][0]["function"]["arguments"]
    assert f"is in clear: {IN_CLEAR[18:]}" in str(privatizer.dataset_card(released))


@pytest.mark.parametrize(
    ("line", "more", "code", "message"),
    [
        ('{"messages": "[]"}', [], 1, "row 0: expected a list for [], got a str; parse JSON first"),
        ('{"messages": [{"role": "user", "text": "waaz"}]}', [], 1, "the keys are 'role', 'text'"),
        (
            '{"chat": [], "id": 1}',
            [],
            1,
            "there is no column 'messages'; the columns are 'chat', 'id'",
        ),
        ('{"messages": []}', ["--output-column", "x"], 2, "are replaced in place"),
        ('{"messages": [{"from": "gpt", "content": "waaz"}]}', ["--role", "bot"], 1, "in clear"),
    ],
)
def test_mistakes_are_told_without_text(
    line: str, more: list[str], code: int, message: str, stored: Path, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    (tmp_path / "x.jsonl").write_text(line + "\n")
    assert run(stored, tmp_path / "x.jsonl", tmp_path / "out.jsonl", *more) == code
    printed = capsys.readouterr().err
    assert message in printed
    assert "waaz" not in printed
    assert not (tmp_path / "out.jsonl").exists()


def test_files_without_lists_and_plain_columns_of_lists(
    rows: Dataset, stored: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x.csv").write_text("messages,id\nwaab,1\n")
    assert run(stored, tmp_path / "x.csv", tmp_path / "out.csv") == 2
    assert "which csv does not have" in capsys.readouterr().err
    pq.write_table(pa.table({"messages": ["waab"], "id": [1]}), tmp_path / "x.parquet")
    assert run(stored, tmp_path / "x.parquet", tmp_path / "out.parquet") == 1
    assert "to hold lists or dicts" in capsys.readouterr().err


# What a release depends on

ORIGINALS = {
    "short": ("it", "is", "a"),
    "long": ("Patient", "Kowalska" * 9, "leukemia"),
    "capitals": ("LUNG", "CANCER", "STAGE"),
}


def _in_memory(words: tuple[str, str, str], folder: Path) -> Dataset:
    a, b, c = words
    one = [{"role": "user", "content": f"{a} {b}, {c}!"}, {"role": "assistant", "content": None}]
    return Dataset.from_dict({"messages": [one, [{"role": "user", "content": c}] * 3, []] * 211})


def _from_jsonl(words: tuple[str, str, str], folder: Path) -> Dataset:
    _in_memory(words, folder).to_json(folder / "x.jsonl")
    return Dataset.from_json(str(folder / "x.jsonl"), cache_dir=str(folder / "cache"))


def _from_parquet(words: tuple[str, str, str], folder: Path) -> Dataset:
    table = _in_memory(words, folder).data.table
    message = pa.struct(
        [pa.field("role", pa.string()), pa.field("content", pa.string(), metadata={"a": words[0]})]
    )
    field = pa.field("messages", pa.list_(pa.field("item", message, metadata={"b": words[1]})))
    field = field.with_metadata({"c": words[2]})
    array = table["messages"].combine_chunks().cast(field.type)
    pq.write_table(pa.table([array], pa.schema([field], {"d": words[1]})), folder / "x.parquet")
    return Dataset.from_parquet(str(folder / "x.parquet"), cache_dir=str(folder / "cache"))


@pytest.fixture
def one_word(tmp_path: Path) -> Path:
    """A space of a single word, so that every release of one shape is the same."""
    space = EmbeddingSpace.from_vectors(["word"], np.ones((1, 3), np.float32))
    space.save_pretrained(tmp_path / "one")
    return tmp_path / "one"


@pytest.mark.parametrize("way", [None, "arrow", "pandas"])
@pytest.mark.parametrize("source", [_in_memory, _from_jsonl, _from_parquet])
def test_releases_of_other_originals_are_equal_byte_for_byte(
    source: Callable[[tuple[str, str, str], Path], Dataset],
    way: str | None,
    one_word: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    space, saved = EmbeddingSpace.from_pretrained(one_word), []
    for name, words in ORIGINALS.items():
        monkeypatch.setenv("HF_DXPRIVACY_CACHE", str(tmp_path / f"user-{name}"))
        folder = tmp_path / f"{way}-{name}"
        (folder / "out").mkdir(parents=True)
        data = source(words, folder).with_format(way)
        privatizer = DxPrivatizer(space, "tem", 0.01, text_column=PATH)
        released = data.map(privatizer, batched=True).with_format(None)
        released = publishable(released, privatizer)
        released.save_to_disk(folder / "out" / "saved")
        released.to_parquet(folder / "out" / "x.parquet")
        released.to_json(folder / "out" / "x.jsonl")
        files = sorted(path for path in (folder / "out").rglob("*") if path.is_file())
        saved.append({str(p.relative_to(folder)): p.read_bytes() for p in files})
        assert released[0]["messages"][0]["content"] == "word word, word!"
    assert saved[0] == saved[1] == saved[2]


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_files_of_other_originals_are_equal_byte_for_byte(
    kind: str, one_word: Path, tmp_path: Path
) -> None:
    released = []
    for words in ORIGINALS.values():
        data = _from_parquet(words, tmp_path)
        if kind == "jsonl":
            data.to_json(tmp_path / "x.jsonl")
        assert run(one_word, tmp_path / f"x.{kind}", tmp_path / f"out.{kind}") == 0
        released.append((tmp_path / f"out.{kind}").read_bytes())
    assert released[0] == released[1] == released[2]
    assert (tmp_path / f"x.{kind}").read_bytes() != released[0]


def test_sentences_of_messages(rows: Dataset) -> None:
    privatizer = SentencePrivatizer(
        small_pool(), "hierarchical", 1.0, text_column=PATH, roles=("user",), seed=SEED
    )
    released = rows.map(privatizer, batched=True, with_indices=True)
    assert released.features == rows.features
    for before, after in zip(rows["messages"], released["messages"], strict=True):
        for mine, theirs in zip(before, after, strict=True):
            if mine["role"] == "user":
                assert theirs["content"] in SENTENCES
            else:
                assert theirs == mine
