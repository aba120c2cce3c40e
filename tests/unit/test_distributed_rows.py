"""The job behind Ray and Spark: one release of a row, in whatever pieces and however often."""

import pickle
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from tokenizers import Tokenizer, models

from hf_dxprivacy.distributed.rows import Job, row_keys
from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError
from hf_dxprivacy.privatizers.budget import PrivacyBudget
from hf_dxprivacy.privatizers.text_privatizer import DxPrivatizer
from hf_dxprivacy.privatizers.token_privatizer import TokenPrivatizer
from hf_dxprivacy.slots import TagColumnSelector
from hf_dxprivacy.slots.slot_privatizer import SlotPrivatizer
from hf_dxprivacy.spaces import EmbeddingSpace

# So much noise that two draws of forty words never agree.
EPSILON = 0.5
SEED = 12345

Make = Callable[..., DxPrivatizer]


@pytest.fixture(scope="module")
def make(euclidean_space: EmbeddingSpace) -> Make:
    def make(mechanism: str = "laplace", **options: Any) -> DxPrivatizer:
        return DxPrivatizer(euclidean_space, mechanism, EPSILON, **options)

    return make


@pytest.fixture(scope="module")
def table(euclidean_space: EmbeddingSpace) -> pa.Table:
    """Thirty rows, all of one text of forty words, with ids in no order."""
    text = " ".join(euclidean_space.words[:40])
    ids = [(7 * row) % 30 - 5 for row in range(30)]
    return pa.table({"id": ids, "text": [text] * 30, "stars": pa.array(ids, pa.int8())})


def texts(table: pa.Table) -> list[str]:
    result: list[str] = table.column("text").to_pylist()
    return result


# One release


@pytest.mark.parametrize("mechanism", ["laplace", "tem", "calibrated"])
def test_pieces_copies_and_repetitions_are_one_release(
    make: Make, table: pa.Table, mechanism: str
) -> None:
    job = Job(make(mechanism), "id")
    whole = job(table)
    elsewhere = pickle.loads(pickle.dumps(job))
    pieces = [elsewhere(table.slice(start, 7)) for start in range(0, 30, 7)]
    assert pa.concat_tables(pieces) == whole
    backwards = table.take(list(range(29, -1, -1)))
    assert job(backwards) == whole.take(list(range(29, -1, -1)))
    assert len({*texts(whole), *texts(table)}) == 31, "rows with one text have noise of their own"


def test_a_seed_gives_the_release_of_one_process(make: Make, table: pa.Table) -> None:
    privatizer = make(seed=SEED)
    ids = table.column("id").to_pylist()
    assert Job(privatizer, "id")(table) == privatizer(table, ids)
    rows = {"text": texts(table)}
    assert texts(Job(privatizer, "id")(table)) == privatizer(rows, ids)["text"]


def test_every_job_has_a_key_of_its_own_and_shows_none(make: Make, table: pa.Table) -> None:
    privatizer = make()
    jobs = [Job(privatizer, "id") for _ in range(2)]
    assert not set(texts(jobs[0](table))) & set(texts(jobs[1](table)))
    assert privatizer.seed is None
    keys = [str(job._privatizer.seed) for job in jobs]
    assert all(len(key) > 60 for key in keys)
    shown = "".join(f"{job} {job!r} {vars(job)}" for job in jobs)
    assert not any(key in shown for key in keys)


def test_ids_may_be_strings(make: Make, table: pa.Table) -> None:
    job = Job(make(), "id")
    names = [f"urn:{i}" for i in table.column("id").to_pylist()]
    plain = pa.array(names)
    released = [
        texts(job(table.set_column(0, "id", ids)))
        for ids in (plain, plain.cast(pa.large_string()), plain.dictionary_encode())
    ]
    assert released[0] == released[1] == released[2]
    assert len(set(released[0])) == 30
    digits = pa.array([str(i) for i in table.column("id").to_pylist()])
    other = job(table.set_column(0, "id", digits))
    assert not set(texts(other)) & set(texts(job(table))), "7 is not the string 7"


def test_what_stands_beside_the_text_stays(make: Make, euclidean_space: EmbeddingSpace) -> None:
    words = euclidean_space.words
    given = pa.table(
        {
            "id": pa.array([4, 3, 2, 1], pa.uint64()),
            "text": pa.array(["", None, "  !", f"{words[0]}, zork."], pa.large_string()),
            "tokens": pa.array([[], None, [None], [words[1], ".", words[2]]]),
            "raw": pa.array([b"\0", None, b"", b"x"]),
            "tags": pa.array([{"a": 1}, None, {"a": 2}, {"a": None}]),
        }
    )
    privatizer = make(text_column=["text", "tokens"], output_column=["text", "released"])
    job = Job(privatizer, "id", with_originals=True)
    result = job(given)
    assert result.schema == job.schema(given.schema)
    assert result.schema == given.schema.append(pa.field("released", given.schema.field(2).type))
    unchanged = ["id", "tokens", "raw", "tags"]
    assert result.select(unchanged) == given.select(unchanged)
    assert result.column("text").to_pylist()[:3] == ["", None, "  !"]
    assert result.column("text")[3].as_py().endswith(".")
    assert result.column("released").to_pylist()[:3] == [[], None, [None]]
    assert len(result.column("released")[3].as_py()) == 3


def test_slots_and_tokens(euclidean_space: EmbeddingSpace) -> None:
    words = euclidean_space.words
    selector = TagColumnSelector("tags")
    slots = SlotPrivatizer(euclidean_space, "laplace", EPSILON, selector=selector)
    given = pa.table(
        {"id": [1, 2], "text": [list(words[:30])] * 2, "tags": [["O", "B-x", "I-x"] * 10] * 2}
    )
    job = Job(slots, "id")
    first, second = texts(job(given))
    assert first[::3] == second[::3] == list(words[:30:3])
    assert first != second
    assert job(given.slice(1)) == job(given).slice(1)

    vocabulary = {word: at for at, word in enumerate(("[UNK]", *words))}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokens = TokenPrivatizer(euclidean_space, tokenizer, "laplace", EPSILON)
    rows = pa.array([list(range(1, 41))] * 2, pa.list_(pa.int32()))
    given = pa.table({"id": [1, 2], "input_ids": rows})
    job = Job(tokens, "id")
    assert job(given).schema == given.schema
    assert job(given).column(1)[0] != job(given).column(1)[1]
    assert job(given.slice(1)) == job(given).slice(1)


def test_memoized_noise_needs_no_ids(make: Make, table: pa.Table) -> None:
    privatizer = make(memoize="row", key=bytes(range(32)))
    job = Job(privatizer, None)
    assert job(table) == privatizer(table)
    assert pickle.loads(pickle.dumps(job))(table.slice(8, 3)) == job(table).slice(8, 3)
    with pytest.raises(InvalidValueError, match="leave id_column out"):
        Job(privatizer, "id")


# What is refused


def test_what_can_not_be_one_release_is_refused(make: Make) -> None:
    with pytest.raises(InvalidValueError, match=r"counts in one process.*without budget="):
        Job(make(budget=PrivacyBudget(9.0)), "id")
    with pytest.raises(InvalidValueError, match=r"computed again must not.*pass id_column="):
        Job(make(), None)
    with pytest.raises(InvalidTypeError, match="expected id_column to be a column name"):
        Job(make(), 3)  # type: ignore[arg-type]
    with pytest.raises(InvalidTypeError, match=r"expected a DxPrivatizer.*got a str"):
        Job("wordnet-gloss", "id")  # type: ignore[arg-type]


def test_columns_that_are_not_there(make: Make, table: pa.Table) -> None:
    job = Job(make(), "id")
    with pytest.raises(InvalidValueError, match=r"column 'id' is not in.*with id_column="):
        job.schema(table.drop_columns("id").schema)
    with pytest.raises(InvalidValueError, match=r"column 'text' is not in.*with text_column="):
        job.schema(table.drop_columns("text").schema)


@pytest.mark.parametrize("kind", [pa.float64(), pa.bool_(), pa.binary(), pa.null()])
def test_ids_of_another_type(make: Make, table: pa.Table, kind: pa.DataType) -> None:
    at = table.schema.get_field_index("id")
    schema = table.schema.set(at, pa.field("id", kind))
    with pytest.raises(InvalidTypeError, match=f"in column 'id' to be whole.*got {kind}"):
        Job(make(), "id").schema(schema)


def test_ids_that_are_missing_or_come_twice() -> None:
    with pytest.raises(InvalidValueError, match="'id': 2 of 4 rows have no id"):
        row_keys(pa.chunked_array([[1, None], [None, 2]]), "id")
    with pytest.raises(InvalidValueError, match="an id comes twice in a batch of 3 rows"):
        row_keys(pa.chunked_array([["a"], ["b", "a"]]), "id")
    assert row_keys(pa.chunked_array([[2**63], [0]], pa.uint64()), "id") == [2**63, 0]


def test_ids_that_come_twice_in_all(make: Make) -> None:
    job = Job(make(), "id")
    job.refuse_repeated(1)
    with pytest.raises(InvalidValueError, match="'id': an id comes 3 times"):
        job.refuse_repeated(3)


def test_metadata_of_the_originals_are_dropped(euclidean_space: EmbeddingSpace) -> None:
    field = pa.field("text", pa.string(), metadata={"note": "zebrafish"})
    schema = pa.schema([field, pa.field("id", pa.int64())], metadata={"about": "zebrafish"})
    table = pa.table([["waaa waab"], [1]], schema=schema)
    released = Job(DxPrivatizer(euclidean_space, "tem", 1.0), "id")(table)
    assert released.schema.metadata is None
    assert released.schema.field("text").metadata is None
