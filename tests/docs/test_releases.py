"""What docs/guarantee.md says about releases: which `map` returns the old one, which draws anew."""

from collections.abc import Callable
from pathlib import Path

import datasets
import pytest
from datasets import Dataset

from hf_dxprivacy.privatizers.text_privatizer import DxPrivatizer
from hf_dxprivacy.spaces import EmbeddingSpace

ROWS = 5


@pytest.fixture
def reviews(euclidean_space: EmbeddingSpace, tmp_path: Path) -> Dataset:
    """Rows of forty words, read from a file; at ε = 0.5 no two releases of them are equal."""
    line = " ".join(euclidean_space.words[:40])
    (tmp_path / "reviews.csv").write_text("text\n" + f"{line}\n" * ROWS)
    return datasets.load_dataset(
        "csv", data_files=str(tmp_path / "reviews.csv"), split="train", cache_dir=str(tmp_path)
    )


def privatizer(space: EmbeddingSpace, epsilon: float = 0.5) -> DxPrivatizer:
    return DxPrivatizer(space, "tem", epsilon)


def texts(dataset: Dataset) -> list[str]:
    return list(dataset["text"])


def test_equal_privatizers_share_one_release(
    euclidean_space: EmbeddingSpace, reviews: Dataset
) -> None:
    first = texts(reviews.map(privatizer(euclidean_space), batched=True))
    assert first != texts(reviews)
    assert texts(reviews.map(privatizer(euclidean_space), batched=True)) == first
    assert texts(reviews.map(privatizer(euclidean_space), batched=True, num_proc=2)) == first


def test_number_of_workers_does_not_make_a_further_release(
    euclidean_space: EmbeddingSpace, reviews: Dataset
) -> None:
    first = texts(reviews.map(privatizer(euclidean_space), batched=True, num_proc=2))
    assert texts(reviews.map(privatizer(euclidean_space), batched=True)) == first


@pytest.mark.parametrize(
    "again",
    [
        lambda data, p: data.map(p, batched=True, batch_size=3),
        lambda data, p: data.map(p, batched=True, with_indices=True),
        lambda data, p: data.select(range(ROWS - 1)).map(p, batched=True),
        lambda data, p: data.map(privatizer(p.space, 0.5001), batched=True),
        lambda data, p: data.map(p, batched=True, load_from_cache_file=False),
    ],
    ids=["batch_size", "with_indices", "other data", "other epsilon", "no cache"],
)
def test_anything_else_is_a_further_release(
    again: Callable[[Dataset, DxPrivatizer], Dataset],
    euclidean_space: EmbeddingSpace,
    reviews: Dataset,
) -> None:
    first = texts(reviews.map(privatizer(euclidean_space), batched=True))
    second = texts(again(reviews, privatizer(euclidean_space)))
    assert not set(first) & set(second)


def test_cleaning_up_the_cache_makes_a_further_release(
    euclidean_space: EmbeddingSpace, reviews: Dataset
) -> None:
    first = texts(reviews.map(privatizer(euclidean_space), batched=True))
    assert reviews.cleanup_cache_files() > 0
    assert texts(reviews.map(privatizer(euclidean_space), batched=True)) != first


def test_data_made_in_memory_are_released_anew_each_time(
    euclidean_space: EmbeddingSpace, reviews: Dataset
) -> None:
    memory = Dataset.from_dict({"text": texts(reviews)})
    first = texts(memory.map(privatizer(euclidean_space), batched=True))
    assert texts(memory.map(privatizer(euclidean_space), batched=True)) != first


def test_each_pass_over_a_stream_is_a_release(
    euclidean_space: EmbeddingSpace, reviews: Dataset
) -> None:
    stream = reviews.to_iterable_dataset().map(privatizer(euclidean_space), batched=True)
    assert [row["text"] for row in stream] != [row["text"] for row in stream]


def test_each_access_under_a_transform_is_a_release(
    euclidean_space: EmbeddingSpace, reviews: Dataset
) -> None:
    lazy = reviews.with_transform(privatizer(euclidean_space))
    assert lazy[:]["text"] != lazy[:]["text"]


def test_the_class_says_which_second_map_is_a_new_release() -> None:
    said = " ".join((DxPrivatizer.__doc__ or "").split())
    assert "loaded from files, with the same ``batch_size``, returns the cached release" in said
    for other in ("made in memory", "a stream", "another ``batch_size``", "``set_transform``"):
        assert other in said
