"""The garbage collector, which does not run during a batch: it is as before afterwards."""

import gc
import multiprocessing
import sys
import threading
from collections.abc import Iterator

import pytest

from hf_dxprivacy import DxPrivatizer, EmbeddingSpace
from hf_dxprivacy._runtime import no_collection
from hf_dxprivacy.errors import InvalidTypeError


@pytest.fixture(autouse=True)
def collecting() -> Iterator[None]:
    gc.enable()
    yield
    assert gc.isenabled()


@pytest.fixture
def privatizer(euclidean_space: EmbeddingSpace) -> DxPrivatizer:
    return DxPrivatizer(euclidean_space, "krr", 1.0)


def test_it_is_off_during_a_batch_and_on_after_it(privatizer: DxPrivatizer) -> None:
    seen: list[bool] = []
    privatizer({"text": ["one two", "three"]}, on_counts=lambda _: seen.append(gc.isenabled()))
    assert seen == [False]
    assert gc.isenabled()


def test_who_has_turned_it_off_finds_it_off(privatizer: DxPrivatizer) -> None:
    gc.disable()
    privatizer.privatize(["one two"])
    assert not gc.isenabled()
    gc.enable()


def test_an_error_in_a_batch_turns_it_on(privatizer: DxPrivatizer) -> None:
    with pytest.raises(InvalidTypeError, match="expected a text"):
        privatizer({"text": ["one", 7]})


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, SystemExit])
def test_an_interruption_turns_it_on(
    privatizer: DxPrivatizer, interruption: type[BaseException]
) -> None:
    def interrupt(_: object) -> None:
        # A batch within a batch leaves it off.
        privatizer.privatize(["one"])
        assert not gc.isenabled()
        raise interruption("stop")

    with pytest.raises(interruption, match="stop"):
        privatizer({"text": ["one"]}, on_counts=interrupt)


def test_the_last_thread_turns_it_on() -> None:
    inside, leave = threading.Event(), threading.Event()

    def other() -> None:
        with no_collection():
            inside.set()
            leave.wait(60)

    thread = threading.Thread(target=other)
    with no_collection():
        thread.start()
        assert inside.wait(60)
    assert not gc.isenabled()
    leave.set()
    thread.join(60)


@pytest.mark.skipif(sys.platform == "win32", reason="processes are never forked there")
def test_a_process_forked_during_a_batch_collects() -> None:
    with no_collection():
        with multiprocessing.get_context("fork").Pool(1) as pool:
            assert pool.apply(gc.isenabled)
        assert not gc.isenabled()
