"""Bounds of distances that the workers of one `map` share, and envelopes that are interrupted."""

import gc
import multiprocessing
import pickle
import sys
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from datasets import Dataset
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from hf_dxprivacy import DxPrivatizer, EmbeddingSpace
from hf_dxprivacy.mechanisms import TruncatedExponential
from hf_dxprivacy.mechanisms.sampler import RejectionSampler
from hf_dxprivacy.randomness import RowStreams, keyed_generator
from hf_dxprivacy.spaces.shared_bounds import SharedBounds

SIZE, WIDTH = 600, 16
TRUTH = np.random.default_rng(0).random((SIZE + 1, WIDTH), dtype=np.float32)
forks = pytest.mark.skipif(sys.platform == "win32", reason="processes are never forked there")


@pytest.fixture
def space() -> EmbeddingSpace:
    vectors = np.random.default_rng(0).standard_normal((SIZE, 8), dtype=np.float32)
    return EmbeddingSpace.from_vectors([f"w{row}" for row in range(SIZE)], vectors)


class Asked:
    """Rows of TRUTH, and which were asked for."""

    def __init__(self) -> None:
        self.ids: list[list[int]] = []

    def __call__(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the rows of some ids."""
        self.ids.append(ids.tolist())
        return TRUTH[ids + 1]


def of_another_process() -> SharedBounds:
    shared = SharedBounds(SIZE, WIDTH)
    shared.owner = -1
    return shared


def in_fork(function: Callable[..., Any], *arguments: Any) -> Any:
    with multiprocessing.get_context("fork").Pool(1) as pool:
        return pool.apply(function, arguments)


def restored_bounds(pickled: bytes, ids: NDArray[np.int64], may_compute: bool) -> Any:
    """Return bounds as a worker has them."""
    space = pickle.loads(pickled)
    if not may_compute:
        space.partition().bounds = None
    return space.block_bounds(ids)


@forks
def test_a_worker_finds_what_another_has_worked_out(space: EmbeddingSpace) -> None:
    ids = np.arange(-1, SIZE)
    pickled = pickle.dumps(space)
    assert (in_fork(restored_bounds, pickled, ids[:400], True) >= 0).all()
    found = in_fork(restored_bounds, pickled, ids[:400], False)
    np.testing.assert_array_equal(found, space.block_bounds(ids[:400]))
    with pytest.raises(TypeError, match="not callable"):
        in_fork(restored_bounds, pickled, ids, False)


@forks
def test_what_is_shared_is_gone_at_the_next_pickling(space: EmbeddingSpace) -> None:
    pickled = pickle.dumps(space)
    assert space.cache.shared is not None
    first = weakref.ref(space.cache.shared)
    in_fork(restored_bounds, pickled, np.arange(SIZE), True)
    # It does not travel, and does not change the fingerprint.
    assert pickle.dumps(space) == pickled
    gc.collect()
    assert first() is None
    with pytest.raises(TypeError, match="not callable"):
        in_fork(restored_bounds, pickled, np.arange(SIZE), False)


@forks
def test_a_process_alone_keeps_nothing_twice(space: EmbeddingSpace) -> None:
    pickle.dumps(space)
    shared = space.cache.shared
    assert shared is not None
    space.block_bounds(np.arange(SIZE))
    assert not shared._sums.any()
    assert not shared._rows.any()


def test_a_row_that_is_not_all_there_is_computed_again() -> None:
    shared, asked = of_another_process(), Asked()
    for _ in range(2):
        np.testing.assert_array_equal(shared.complete(np.arange(-1, 9), asked), TRUTH[:10])
    assert asked.ids == [[*range(-1, 9)]]
    shared._rows[4, 8:] = 0  # as if a process had been ended while it wrote
    shared._sums[7] = 0
    np.testing.assert_array_equal(shared.complete(np.arange(-1, 9), asked), TRUTH[:10])
    assert asked.ids[1:] == [[3, 6]]


def test_words_beyond_the_room_are_computed_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hf_dxprivacy.spaces.shared_bounds.SHARED_BYTES", 4 * WIDTH * 10)
    shared, asked = of_another_process(), Asked()
    ids = np.array([5, 8, 9, 300])
    for _ in range(2):
        np.testing.assert_array_equal(shared.complete(ids, asked), TRUTH[ids + 1])
    assert asked.ids == [[5, 8, 9, 300], [9, 300]]


@given(
    st.lists(st.floats(0, 2.0**100, width=32), min_size=1, max_size=16),
    st.lists(st.booleans(), min_size=64, max_size=64),
)
def test_bytes_that_have_not_arrived_make_a_bound_smaller(
    bounds: list[float], arrived: list[bool]
) -> None:
    row = np.array(bounds, dtype=np.float32)
    seen = row.view(np.uint8) * np.array(arrived[: 4 * len(row)], dtype=np.uint8)
    assert (seen.view(np.float32) <= row).all()


@forks
def test_workers_that_share_release_what_one_process_does(space: EmbeddingSpace) -> None:
    words = np.random.default_rng(1).integers(SIZE, size=(40, 30))
    texts = Dataset.from_dict({"text": [" ".join(f"w{row}" for row in line) for line in words]})
    privatizer = DxPrivatizer(space, "tem", 2.0, seed=3 << 64)

    def released(workers: int | None) -> list[str]:
        mapped = texts.map(
            privatizer, batched=True, batch_size=10, with_indices=True, num_proc=workers
        )
        return list(mapped["text"])

    assert released(2) == released(None)


@pytest.mark.parametrize("interrupted", range(6))
def test_an_interruption_leaves_no_envelope_of_another_word(
    space: EmbeddingSpace, interrupted: int
) -> None:
    plain = TruncatedExponential(space, 4.0)._weights
    calls = iter(range(interrupted, -1000, -1))

    def breaking(distances: NDArray[np.float64]) -> NDArray[np.float64]:
        # Those of envelopes only.
        if distances.ndim == 2 and next(calls) == 0:
            raise KeyboardInterrupt
        return plain(distances)

    def draws(weights: Any) -> Iterator[NDArray[np.int64] | None]:
        # Half of the words find room, so that rows change hands.
        sampler = RejectionSampler(space, weights, least_capacity=300, cache_bytes=0)
        for at, ids in enumerate(np.split(np.random.default_rng(2).permutation(SIZE), 6)):
            for again in range(2):
                streams = RowStreams.single(keyed_generator(5, at, again), len(ids))
                try:
                    yield sampler.draw(ids, streams, np.arange(len(ids)))
                except KeyboardInterrupt:
                    yield None

    missing = 0
    for ours, whole in zip(draws(breaking), draws(plain), strict=True):
        if ours is None:
            missing += 1
        else:
            np.testing.assert_array_equal(ours, whole)
    assert missing == 1
