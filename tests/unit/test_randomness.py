"""Where entropy comes from: one key per process and thread, and streams by identity."""

import multiprocessing
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from randomgen import ChaCha

from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError
from hf_dxprivacy.randomness import (
    RowStreams,
    generator_from_key,
    keyed_generator,
    process_generator,
    row_streams,
)
from machine import PATIENCE
from programs import run_python


def own_bytes() -> bytes:
    return process_generator().bytes(16)


def in_child(work: Callable[[], bytes]) -> bytes:
    """Run a function in a forked child and return what it returns."""
    reader, writer = os.pipe()
    if (child := os.fork()) == 0:
        # Whatever happens, the child must neither hang nor go on with the tests.
        signal.alarm(60)
        try:
            os.write(writer, work())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        result = pipe.read()
    _, status = os.waitpid(child, 0)
    assert status == 0
    return result


def all_distinct(values: list[bytes]) -> bool:
    return all(values) and len(set(values)) == len(values)


def test_the_cipher_is_behind_it() -> None:
    assert isinstance(process_generator().bit_generator, ChaCha)
    assert isinstance(keyed_generator(0).bit_generator, ChaCha)
    assert process_generator() is process_generator()


def test_noise_of_a_test_is_the_same_in_every_run() -> None:
    program = "import hf_dxprivacy.randomness as r; print(r.process_generator().bytes(4).hex())"
    drawn = [own_bytes()[:4].hex(), *(run_python("-c", program).strip() for _ in range(2))]
    assert drawn == ["6df18e66", "923d3b70", "585b307e"]


def test_children_have_keys_of_their_own() -> None:
    drawn = [own_bytes(), in_child(own_bytes), in_child(own_bytes), own_bytes()]
    assert all_distinct(drawn)
    # A copied generator would repeat in the children what the parent draws next.
    parent = keyed_generator(0)
    copies = [in_child(lambda: parent.bytes(16)), in_child(lambda: parent.bytes(16))]
    assert copies[0] == copies[1] == parent.bytes(16)


def test_children_of_children_have_keys_of_their_own() -> None:
    def family() -> bytes:
        return own_bytes() + in_child(lambda: own_bytes() + in_child(own_bytes)) + own_bytes()

    drawn = family() + in_child(family)
    assert len(drawn) == 8 * 16
    assert all_distinct([drawn[k : k + 16] for k in range(0, len(drawn), 16)])


def test_child_of_a_child_that_drew_nothing_has_a_key_of_its_own() -> None:
    own_bytes()
    drawn = [in_child(lambda: in_child(own_bytes)), in_child(own_bytes), own_bytes()]
    assert all_distinct(drawn)


def test_child_forked_behind_the_back_of_python_has_a_key_of_its_own() -> None:
    # C code that forks runs no Python hook. Such a child hangs where its parent has other threads,
    # as pytest has, so the parent is a process of its own.
    code = """if True:
        import ctypes, os
        from hf_dxprivacy.randomness import process_generator
        fork = ctypes.PyDLL(None).fork
        process_generator().bytes(16)
        children = 0
        while children < 2 and (child := fork()):
            os.waitpid(child, 0)
            children += 1
        os.write(1, process_generator().bytes(16).hex().encode() + b" ")
        os._exit(0)
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=PATIENCE)
    drawn = done.stdout.split()
    assert len(drawn) == 3
    assert all_distinct(drawn)


def test_child_forked_from_another_thread_has_a_key_of_its_own() -> None:
    drawn = [own_bytes()]

    def work() -> None:
        drawn.append(own_bytes())
        drawn.append(in_child(own_bytes))
        drawn.append(own_bytes())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert len(drawn) == 4
    assert all_distinct(drawn)


def test_spawned_processes_have_keys_of_their_own() -> None:
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        drawn = [pool.apply_async(own_bytes) for _ in range(4)]
        values = [own_bytes(), *(result.get(timeout=PATIENCE) for result in drawn)]
    assert all_distinct(values)


def test_threads_have_keys_of_their_own() -> None:
    own, barrier = [], threading.Barrier(4)

    def work() -> None:
        barrier.wait()
        assert process_generator() is process_generator()
        own.append(process_generator())
        barrier.wait()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    own.append(process_generator())
    assert len({id(generator) for generator in own}) == 5
    assert all_distinct([generator.bytes(16) for generator in own])


def test_global_seeds_do_not_reach_it() -> None:
    drawn = []
    for _ in range(2):
        random.seed(1)
        np.random.seed(1)  # noqa: NPY002
        drawn += [own_bytes(), in_child(own_bytes)]
    assert all_distinct(drawn)


IDENTITIES: list[tuple[str | int | None, ...]] = [
    (),
    ("",),
    ("", ""),
    (None,),
    ("None",),
    (0,),
    ("0",),
    (False,),
    (1,),
    ("1",),
    (11,),
    (1, 1),
    ("ab", "c"),
    ("a", "bc"),
    ("abc",),
    ("abc", ""),
    ("", "abc"),
    ("c", "ab"),
    ("str:1:a",),
    ("a", "str:1:a"),
    ("astr:1:a",),
    ("a", "a"),
    ("\u00e9",),
    ("e\u0301",),
    ("\ud800",),
    (-1,),
    (2**70,),
]


def test_identities_do_not_run_together() -> None:
    for seed in (0, 1):
        assert all_distinct([keyed_generator(seed, *part).bytes(16) for part in IDENTITIES])
    for a, b in combinations(IDENTITIES, 2):
        assert keyed_generator(3, *a, *b).bytes(8) != keyed_generator(3, *b, *a, "end").bytes(8)


def test_same_identity_has_the_same_stream() -> None:
    for part in IDENTITIES:
        first, second = (keyed_generator(7, *part).random(5) for _ in range(2))
        np.testing.assert_array_equal(first, second)


SEEDS = [0, 1, 2, 255, 256, 2**16, 2**31, 2**32, 2**64, 2**64 + 1, 2**256, 10**500]


def test_seeds_of_any_size_have_different_streams() -> None:
    assert all_distinct([keyed_generator(seed, "a").bytes(16) for seed in SEEDS])
    np.testing.assert_array_equal(
        keyed_generator(np.int64(5)).random(3),
        keyed_generator(5).random(3),  # type: ignore[arg-type]
    )


def test_streams_of_a_seed_stay_what_they_are() -> None:
    # Recorded once: reproducible releases must stay so from version to version.
    assert keyed_generator(0).bytes(8).hex() == "bb2e6aa05c2ee7dc"
    assert keyed_generator(42, "text", 7, None, "word").bytes(8).hex() == "20f2547d456e6296"


@pytest.mark.parametrize("seed", [1.0, "1", None, True])
def test_seed_of_another_type_is_refused(seed: int) -> None:
    with pytest.raises(InvalidTypeError, match="expected seed to be an integer"):
        keyed_generator(seed)


def test_negative_seed_is_refused() -> None:
    with pytest.raises(InvalidValueError, match="expected seed >= 0, got seed=-1"):
        keyed_generator(-1)


def uniform(rng: np.random.Generator, size: int) -> np.ndarray:
    return rng.random((size, 2))


def single_precision(rng: np.random.Generator, size: int) -> np.ndarray:
    """Take half a word of the key stream at a time, so that a stream may stop in the middle."""
    return rng.standard_normal((size, 3), dtype=np.float32)


def streams(lengths: list[int]) -> RowStreams:
    return RowStreams([keyed_generator(1, row) for row in range(len(lengths))], lengths)


LENGTHS = st.lists(st.integers(0, 12), max_size=8)


@given(LENGTHS, st.integers(1, 9))
def test_chunks_cover_every_word_once_and_cut_only_long_rows(
    lengths: list[int], limit: int
) -> None:
    chunks = list(streams(lengths).chunks(limit))
    np.testing.assert_array_equal(np.concatenate([*chunks, []]), np.arange(sum(lengths)))
    assert all(0 < len(chunk) <= limit for chunk in chunks)
    borders = {int(chunk[0]) for chunk in chunks}
    start = 0
    for length in lengths:
        inside = {border - start for border in borders if start < border < start + length}
        assert inside == (set(range(limit, length, limit)) if length > limit else set())
        start += length


@given(LENGTHS, st.integers(1, 9))
def test_each_row_gets_its_own_stream_in_order(lengths: list[int], limit: int) -> None:
    rows = streams(lengths)
    parts = [rows.draw(uniform, chunk) for chunk in rows.chunks(limit)]
    expected = [
        uniform(keyed_generator(1, row), length) for row, length in enumerate(lengths) if length
    ]
    if sum(lengths):
        np.testing.assert_array_equal(np.concatenate(parts), np.concatenate(expected))


def test_words_that_are_drawn_again_go_on_in_the_stream_of_their_row() -> None:
    rows = streams([3, 0, 2])
    rows.draw(uniform, np.arange(5))
    again = rows.draw(uniform, np.array([1, 4]))
    first, last = keyed_generator(1, 0), keyed_generator(1, 2)
    uniform(first, 3)
    uniform(last, 2)
    np.testing.assert_array_equal(again, np.concatenate([uniform(first, 1), uniform(last, 1)]))


def test_single_stream_serves_all_words() -> None:
    rows = RowStreams.single(keyed_generator(2), 10)
    assert len(rows) == 10
    assert [len(chunk) for chunk in rows.chunks(4)] == [4, 4, 2]
    np.testing.assert_array_equal(
        rows.draw(uniform, np.array([3, 9])), uniform(keyed_generator(2), 2)
    )


def test_number_of_words() -> None:
    assert len(streams([])) == 0
    assert len(streams([0, 0])) == 0
    assert len(streams([3, 0, 4])) == 7


@pytest.mark.parametrize("lengths", [[], [1], [1, 2, 3]])
def test_lengths_must_match_the_generators(lengths: list[int]) -> None:
    generators = [generator_from_key(bytes(32)), generator_from_key(bytes(range(32)))]
    with pytest.raises(InvalidValueError, match="one length for each of 2 generators, got"):
        RowStreams(generators, lengths)


CONTENTS = st.lists(
    st.lists(st.text(st.characters(exclude_categories=["Cs"]) | st.just("\ud800")), max_size=5)
)


@given(CONTENTS, st.integers(0, 2**70), st.booleans(), st.data())
@settings(deadline=None)
def test_streams_of_rows_are_those_of_their_identities(
    contents: list[list[str]], seed: int, indexed: bool, data: st.DataObject
) -> None:
    """A cipher serves many rows, one after the other; none may notice the others."""
    keys = [7 * row + 3 for row in range(len(contents))] if indexed else None
    lengths = [len(content) for content in contents]
    rows = row_streams(seed, ("law", "column"), iter(contents), keys, lengths)
    generators = [
        keyed_generator(seed, "law", "column", None if keys is None else keys[row], *content)
        for row, content in enumerate(contents)
    ]
    expected = RowStreams(generators, lengths)
    assert len(rows) == len(expected)
    for _ in range(3 if len(rows) else 0):
        some = st.lists(st.integers(0, len(rows) - 1), min_size=1, unique=True)
        words = np.array(sorted(data.draw(some)))
        for law in (uniform, single_precision):
            np.testing.assert_array_equal(rows.draw(law, words), expected.draw(law, words))


def test_rows_without_a_seed_draw_from_this_process() -> None:
    counts = [2, 0, 3]
    rows = [row_streams(None, ("law",), [["same"]] * 3, None, counts) for _ in range(2)]
    drawn = [streams.draw(uniform, np.arange(5)) for streams in rows]
    assert not np.isin(drawn[0], drawn[1]).any()


def test_streams_in_use_at_once_share_no_cipher() -> None:
    contents = [[str(row)] for row in range(5)]

    def drawn(streams: RowStreams) -> list[list[float]]:
        return streams.draw(uniform, np.arange(5)).tolist()

    first = row_streams(1, ("law",), contents, None, [1] * 5)
    second = row_streams(2, ("law",), contents, None, [1] * 5)
    started, again = drawn(first), drawn(second)
    rest = drawn(first)
    del first, second
    # Now both have left their ciphers to these, in the middle of a stream.
    both = [row_streams(seed, ("law",), contents, None, [1] * 5) for seed in (2, 1)]
    assert [drawn(streams) for streams in both] == [again, started]
    assert drawn(both[1]) == rest
    assert len({id(g) for streams in both for g in streams._generators}) == 10
