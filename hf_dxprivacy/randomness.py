"""Sources of noise: keyed ChaCha20 generators, one of each process, and streams for rows.

Noise is drawn from ChaCha20, a cipher, and not from a statistical generator: an adversary who sees
part of the released noise cannot continue the stream. By default every process has its own key from
the operating system's entropy. A fork or an unpickling never carries a generator along, so two
workers of ``Dataset.map(num_proc=...)`` cannot share noise. A copy by snapshot (CRIU, Firecracker,
Lambda SnapStart) cannot be seen from inside: both copies keep the key, and with it the noise, if
words were drawn before.
"""

import os
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from randomgen import ChaCha

from hf_dxprivacy.errors import InvalidValueError, require_at_least, require_within

KEY_BYTES = 32

# Draws n independent values (one a row) from a generator.
Sampler = Callable[[np.random.Generator, int], NDArray[np.floating]]

# Draws numbers in [0, 1), in float64.
uniforms: Sampler = np.random.Generator.random

_local = threading.local()


def _forget_generators() -> None:
    global _local
    _local = threading.local()


os.register_at_fork(after_in_child=_forget_generators)


def generator_from_key(key: bytes) -> np.random.Generator:
    """Return a NumPy generator over the ChaCha20 stream of a key: 20 rounds, counter from 0.

    Raises:
        InvalidValueError: If the key is not 32 bytes long.
    """
    require_within(KEY_BYTES, KEY_BYTES, "a ChaCha20 key has 256 bits", key_length=len(key))
    return np.random.Generator(ChaCha(key=np.frombuffer(key, dtype="<u8"), counter=0, rounds=20))


def process_generator() -> np.random.Generator:
    """Return this thread's own generator, keyed afresh in every process.

    The key comes from the operating system. ``numpy.random.seed``, ``random.seed`` and
    ``transformers.set_seed`` do not touch it.
    """
    # The pid is compared too, because a fork made by C code runs no Python hook.
    if getattr(_local, "pid", None) != os.getpid():
        _local.generator = generator_from_key(_fresh_key())
        _local.pid = os.getpid()
    generator: np.random.Generator = _local.generator
    return generator


def _fresh_key() -> bytes:
    return os.urandom(KEY_BYTES)


def keyed_generator(seed: int, *identity: str | int | None) -> np.random.Generator:
    """Return the generator that belongs to a seed and to what is being drawn for.

    Args:
        seed: Secret, a whole number >= 0 of any size.
        *identity: What the stream is for, such as a row's index, column and text. Two different
            identities get independent streams.

    Returns:
        A ChaCha20 generator keyed with BLAKE2b of the identity under the seed.
    """
    return generator_from_key(_digest(seed, identity).digest())


def _digest(seed: int, identity: Iterable[str | int | None]) -> blake2b:
    require_at_least(0, seed=seed)
    secret = int(seed).to_bytes(max(1, (int(seed).bit_length() + 7) // 8), "little")
    digest = blake2b(blake2b(secret, digest_size=64).digest(), digest_size=KEY_BYTES)
    digest.update(_joined(identity))
    return digest


def _joined(identity: Iterable[str | int | None]) -> bytes:
    return b"".join(map(_part, identity))


def _part(part: str | int | None) -> bytes:
    # Type and length go first, so that no two identities run together to the same bytes.
    data = str(part).encode("utf-8", "surrogatepass")
    return b"%b:%d:%b" % (type(part).__name__.encode(), len(data), data)


# Generators of rows that are done with, of each thread. To make a cipher takes ten times as long as
# to set it to the start of another key's stream, as is done before it is used again.
_SPARE_LIMIT = 4096


def _spare_generators() -> list[np.random.Generator]:
    if not hasattr(_local, "spare"):
        _local.spare = []
    spare: list[np.random.Generator] = _local.spare
    return spare


def _generators(keys: Iterable[bytes]) -> list[np.random.Generator]:
    """Return a generator for each key, as `generator_from_key` does."""
    spare, generators = _spare_generators(), []
    for key in keys:
        if spare:
            first, generator = _first_state(), spare.pop()
            state = {**first["state"], "keysetup": np.frombuffer(key, dtype="<u4")}
            generator.bit_generator.state = {**first, "state": state}
            generators.append(generator)
        else:
            generators.append(generator_from_key(key))
    return generators


@lru_cache(maxsize=1)
def _first_state() -> dict[str, Any]:
    return dict(generator_from_key(bytes(KEY_BYTES)).bit_generator.state)


def _give_back(generators: list[np.random.Generator], spare: list[np.random.Generator]) -> None:
    spare.extend(generators[: max(0, _SPARE_LIMIT - len(spare))])


class RowStreams:
    """Several generators, one for each row, drawn from as if they were one.

    A mechanism works on the words of many rows at once. With one generator per row, what a row
    gets depends on that row alone, and not on the batch it came in.

    Args:
        generators: One generator for each row.
        lengths: How many words each row has.

    Raises:
        InvalidValueError: If there is not one length for each generator.
    """

    def __init__(self, generators: Sequence[np.random.Generator], lengths: ArrayLike) -> None:
        self._generators = generators
        self._ends = np.cumsum(np.asarray(lengths, dtype=np.int64))
        if len(self._ends) != len(generators):
            raise InvalidValueError(
                f"expected one length for each of {len(generators)} generators, "
                f"got {len(self._ends)} lengths"
            )

    def __len__(self) -> int:
        """Number of words of all rows together."""
        return int(self._ends[-1]) if len(self._ends) else 0

    @classmethod
    def single(cls, generator: np.random.Generator, size: int) -> "RowStreams":
        """Treat all words as one row."""
        return cls([generator], [size])

    def chunks(self, limit: int) -> Iterator[NDArray[np.int64]]:
        """Cut the words into runs of at most `limit`.

        Only a row that is longer than the limit is cut, and always at the same places: cutting
        changes the order in which a generator is asked, and so what a row gets.
        """
        runs, start, end = [], 0, 0
        for stop in self._ends.tolist():
            if stop - start > limit:
                runs.append((start, end))
                start = end
            end = stop
            if end - start > limit:
                runs.append((start, end))
                start = end
        runs.append((start, end))
        for run_start, run_end in runs:
            for first in range(run_start, run_end, limit):
                yield np.arange(first, min(first + limit, run_end))

    def draw(self, sampler: Sampler, words: NDArray[np.int64]) -> NDArray[np.floating]:
        """Draw one value for each word.

        Args:
            sampler: What to draw.
            words: (m,) positions of the words, ascending; m > 0.

        Returns:
            (m, ...) array; the values of one row come from its own generator, in order.
        """
        if len(self._generators) == 1:
            return sampler(self._generators[0], len(words))
        owners = np.searchsorted(self._ends, words, side="right")
        rows, counts = np.unique(owners, return_counts=True)
        return np.concatenate(
            [sampler(self._generators[r], int(n)) for r, n in zip(rows, counts, strict=True)]
        )


def row_streams(
    seed: int | None,
    release: Sequence[str],
    contents: Iterable[Sequence[str]],
    keys: Sequence[int] | None,
    counts: ArrayLike,
) -> RowStreams:
    """Return the noise of a batch: this process's own, or one stream for each row.

    Args:
        seed: None for fresh noise.
        release: What a seed is used for: the settings that decide the law, and the column.
        contents: What each row holds.
        keys: The index of each row, if known.
        counts: How many words of each row are drawn anew.
    """
    if seed is None:
        return RowStreams.single(process_generator(), int(np.sum(counts)))
    # The content and the settings are part of the identity: another text under the same index and
    # seed (of another split, say) has independent noise, and so has another release of the same
    # text. Two releases with one noise would cancel it out.
    shared = _digest(seed, release)
    cipher_keys = []
    for row, content in enumerate(contents):
        digest = shared.copy()
        digest.update(_joined((None if keys is None else int(keys[row]), *content)))
        cipher_keys.append(digest.digest())
    generators = _generators(cipher_keys)
    streams = RowStreams(generators, counts)
    weakref.finalize(streams, _give_back, generators, _spare_generators())
    return streams
