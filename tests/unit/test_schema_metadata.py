"""A table that is released carries no metadata of the original but the types of its columns."""

import io
import json

import datasets
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hf_dxprivacy import DxPrivatizer, EmbeddingSpace
from hf_dxprivacy.errors import InvalidValueError, describe_columns

CANARY = "zebrafish"


@pytest.fixture
def privatizer(euclidean_space: EmbeddingSpace) -> DxPrivatizer:
    """A privatizer that keeps no word."""
    return DxPrivatizer(euclidean_space, "tem", 0.01)


def _stored(table: pa.Table) -> bytes:
    file = io.BytesIO()
    pq.write_table(table, file)
    return file.getvalue()


def test_metadata_of_schema_and_text_field_are_dropped(privatizer: DxPrivatizer) -> None:
    fields = [
        pa.field("text", pa.string(), metadata={"note": CANARY}),
        pa.field("n", pa.int64(), metadata={"unit": "km"}),
    ]
    metadata = {"about": CANARY, "huggingface": json.dumps({"fingerprint": CANARY, "info": {}})}
    table = pa.table([["waab"], [1]], schema=pa.schema(fields, metadata=metadata))
    released = privatizer(table)
    assert CANARY.encode() not in _stored(released)
    assert released.schema.field("n").metadata == {b"unit": b"km"}


def test_what_pandas_says_of_the_originals_is_dropped(privatizer: DxPrivatizer) -> None:
    texts = pd.Categorical(["waab", "waac", "waab"])
    frame = pd.DataFrame({"text": texts, "kind": pd.Categorical(["x", "y", "x"])}, index=[3, 4, 5])
    frame.attrs = {"about": CANARY}
    table = pa.Table.from_pandas(frame)
    released = privatizer(table)
    assert CANARY.encode() not in _stored(released)
    assert privatizer(frame.astype({"text": object})).attrs == {}
    again = released.to_pandas()
    assert list(again.index) == [3, 4, 5]
    assert again["kind"].dtype == "category"
    described = json.loads(released.schema.metadata[b"pandas"])["columns"][0]
    assert (described["name"], described["metadata"]) == ("text", None)


def test_features_of_other_columns_are_restored(privatizer: DxPrivatizer) -> None:
    features = datasets.Features(
        {"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["no", "yes"])}
    )
    data = datasets.Dataset.from_dict({"text": ["waab"], "label": [1]}, features=features)
    released = privatizer(data.with_format("arrow")[:])
    assert datasets.Features.from_arrow_schema(released.schema) == features


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["id", "texts"], "the columns are 'id', 'texts'; did you mean 'texts'?"),
        (["Anna Kowalska"], "there is one column, whose name is not shown because"),
        (["Anna Kowalska", "Gdansk"], "there are 2 columns, whose names are not shown because"),
        (["id", "x" * 40], "there are 2 columns, whose names are not shown because"),
        ([], "there is none at all"),
        ([f"c{i}" for i in range(40)], "'c29' and 10 more"),
    ],
)
def test_names_that_may_be_text_are_not_shown(names: list[str], said: str) -> None:
    assert said in describe_columns(names, "text")


def test_a_frame_without_header_is_not_quoted(privatizer: DxPrivatizer) -> None:
    frame = pd.read_csv(io.StringIO("my secret is a lamp\nsoup\n"))
    with pytest.raises(InvalidValueError, match="'text' is not in the data") as error:
        privatizer(frame)
    assert "lamp" not in str(error.value)
