"""Noise that is a function of a secret: seeded, or permanent.

Permanent noise follows the permanent randomized response of RAPPOR (Erlingsson, Pihur and Korolova,
CCS 2014): an answer is randomized once and then remembered, so that asking again gives nothing to
average. Nothing is remembered here; the noise is a function of a secret key and of what is
released.
"""

import json
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy.errors import (
    InvalidTypeError,
    InvalidValueError,
    require_at_least,
    require_one_of,
)
from hf_dxprivacy.mechanisms import Mechanism
from hf_dxprivacy.privatizers.batch import EncodedColumn, Ids
from hf_dxprivacy.randomness import KEY_BYTES, RowStreams, row_streams
from hf_dxprivacy.text.shapes import UNIFORMS

logger = logging.getLogger(__name__)

Memoize = Literal["row", "user"]

# So few different bytes are a placeholder or a repeated word, not 32 random bytes, of which about
# 30 differ (of 64 random hexadecimal digits, 16).
LEAST_DIFFERENT = 8
# Seeds below can be found by trying.
GUESSABLE = 1 << 64

_MAKE = "make one with secrets.token_bytes(32), and keep it as secret as the text"


@dataclass(frozen=True)
class KeyedNoise:
    """Noise that is a function of a secret and of what is released.

    Attributes:
        secret: A seed, or a digest of a key, as a number.
        unit: None for a seed: noise is bound to the settings, and to the column, index and words of
            each row. With a key, to the law and what is drawn from, so that what the mechanism does
            not tell apart (words out of vocabulary, and the letter case where it does not show)
            makes no other release. "row": equal rows always become the same row. "user": a word of
            a user always becomes the same word.
    """

    secret: int = field(repr=False)
    unit: Memoize | None = None

    def draw(self, mechanism: Mechanism, column: EncodedColumn, context: Callable[[], str]) -> Ids:
        """Return (m,) one output for each input of a column.

        Args:
            mechanism: The mechanism.
            column: The column.
            context: Returns the stream context, to which seeded noise is bound.
        """
        everything = np.arange(len(column.inputs))
        return self._draw("", mechanism.sample, mechanism, column, everything, context)

    def uniforms(
        self, mechanism: Mechanism, column: EncodedColumn, places: Ids, context: Callable[[], str]
    ) -> NDArray[np.floating]:
        """Return (n, UNIFORMS) numbers to render outputs with, independent of their draws.

        Args:
            mechanism: The mechanism that drew the outputs.
            column: The column.
            places: (n,) ascending positions among its perturbed words, n > 0.
            context: As for `draw`.
        """
        return self._draw("shapes", _uniforms, mechanism, column, places, context)

    def _draw(
        self,
        purpose: str,
        draw: Callable[[Ids, RowStreams], NDArray[Any]],
        mechanism: Mechanism,
        column: EncodedColumn,
        places: Ids,
        context: Callable[[], str],
    ) -> NDArray[Any]:
        """Return one draw for each of some perturbed words, from streams for a purpose."""
        size, inputs = len(column.offsets) - 1, column.inputs[places]
        rows = np.repeat(np.arange(size), column.row_lengths)[places]
        contents: Iterable[Sequence[str]]
        if self.unit is None:
            release: tuple[str, ...] = (*filter(None, [purpose]), context(), column.name)
            contents, indices = column.contents(), column.row_ids.indices
        else:
            law = json.dumps([mechanism.space.digest, mechanism.noise_parameters])
            release, indices = (f"{self.unit} {purpose}".strip(), law), None
            # What shows of a row for certain is a part of what its noise is bound to: with the
            # inputs alone, rows that differ in everything else would show that they have the same
            # words.
            contents = (
                [] if row is None else [ids.tobytes().hex(), json.dumps(column.visible(at))]
                for at, (row, ids) in enumerate(zip(column.rows, column.row_inputs(), strict=True))
            )
        if self.unit != "user":
            counts = np.bincount(rows, minlength=size)
            return draw(inputs, row_streams(self.secret, release, contents, indices, counts))
        users = np.array(column.row_ids.users or (), dtype=object)[rows]
        pairs = list(zip(users.tolist(), inputs.tolist(), strict=True))
        words = {pair: at for at, pair in enumerate(dict.fromkeys(pairs))}
        contents = [(user, str(word)) for user, word in words]
        streams = row_streams(self.secret, release, contents, None, [1] * len(words))
        drawn = draw(np.array([word for _, word in words], dtype=np.int64), streams)
        return drawn[[words[pair] for pair in pairs]]


def _uniforms(words: Ids, streams: RowStreams) -> NDArray[np.floating]:
    return streams.draw(lambda rng, size: rng.random((size, UNIFORMS)), np.arange(len(words)))


def noise_source(
    seed: int | None, memoize: Memoize | None, key: bytes | Path | None
) -> KeyedNoise | None:
    """Return the noise that the arguments of a privatizer ask for; None for fresh noise.

    Raises:
        InvalidValueError: If the unit is unknown, the key is missing, short or no secret, or there
            is a seed too.
        InvalidTypeError: If the seed is no whole number, or the key neither bytes nor a path.
    """
    if seed is not None:
        require_at_least(0, "a seed is a whole number", seed=seed)
    if memoize is None:
        if key is not None:
            raise InvalidValueError('key= is for memoize="row" or "user", and there is none')
        if seed is None:
            return None
        if seed < GUESSABLE:
            _warn_of_guessable_seed()
        return KeyedNoise(int(seed))
    require_one_of(("row", "user"), memoize=memoize)
    if seed is not None:
        raise InvalidValueError(
            "seed and memoize both say where the noise is from: seed is for experiments, "
            "memoize for repeated releases; leave one of them out"
        )
    return KeyedNoise(_secret(key), memoize)


@lru_cache(maxsize=1)
def _warn_of_guessable_seed() -> None:
    """Warn, once in a process."""
    logger.warning(
        "the seed is below 2**64 and can be found by trying, which undoes the noise; that is for "
        "experiments on public text only: secrets.randbits(128) makes a seed"
    )


def _secret(key: bytes | Path | None) -> int:
    """Return the number that a key stands for; no message ever shows the key."""
    if key is None:
        raise InvalidValueError(f"memoize needs key=, a secret of {KEY_BYTES} bytes; {_MAKE}")
    if isinstance(key, Path):
        try:
            key = key.read_bytes()
        except OSError as error:
            raise InvalidValueError(f"cannot read the key: {error}; {_MAKE}") from None
    if not isinstance(key, bytes):
        raise InvalidTypeError(
            f"expected key to be bytes or the pathlib.Path of a file, got a {type(key).__name__}; "
            f"{_MAKE}"
        )
    if len(key) < KEY_BYTES:
        raise InvalidValueError(
            f"expected a key of {KEY_BYTES} bytes or more, got one of {len(key)}; {_MAKE}"
        )
    if len(set(key)) < LEAST_DIFFERENT:
        raise InvalidValueError(
            f"expected a random key, got one of {len(set(key))} different bytes, which can be "
            f"guessed; {_MAKE}"
        )
    # Apart from any seed of the same value.
    return int.from_bytes(blake2b(key, digest_size=64, person=b"hf_dxprivacy key").digest(), "big")
