"""Noise sources of a privatizer: fresh, seeded, or permanent.

Permanent noise follows the permanent randomized response of RAPPOR (Erlingsson, Pihur and Korolova,
CCS 2014): an answer is randomized once and then remembered, so that asking again gives nothing to
average. Nothing is remembered here; the noise is a function of a secret key and of what is
released.
"""

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy import randomness
from hf_dxprivacy.errors import (
    InvalidTypeError,
    InvalidValueError,
    require_at_least,
    require_one_of,
)
from hf_dxprivacy.mechanisms import Mechanism
from hf_dxprivacy.privatizers.batch import EncodedColumn, EncodedText, Ids
from hf_dxprivacy.randomness import KEY_BYTES, row_streams
from hf_dxprivacy.text.shapes import UNIFORMS, render

logger = logging.getLogger(__name__)

Memoize = Literal["row", "user"]
Uniforms = NDArray[np.floating]

# All that decides what is drawn, as a string that is computed if it is asked for.
StreamContext = Callable[[], str]

# So few different bytes are a placeholder or a repeated word, not 32 random bytes, of which about
# 30 differ (of 64 random hexadecimal digits, 16).
LEAST_DIFFERENT = 8
# Seeds below can be found by trying.
GUESSABLE = 1 << 64

_MAKE = "make one with secrets.token_bytes(32), and keep it as secret as the text"


@dataclass(frozen=True)
class FreshNoise:
    """Noise from a key that each process draws from the operating system."""

    def draw(self, mechanism: Mechanism, column: EncodedColumn, context: StreamContext) -> Ids:
        """Return (m,) one output for each input of a column."""
        del context
        return mechanism.sample(column.inputs, randomness.process_generator())

    def uniforms(
        self, mechanism: Mechanism, column: EncodedText, places: Ids, context: StreamContext
    ) -> Uniforms:
        """Return (n, UNIFORMS) numbers to render outputs with, independent of their draws.

        Args:
            mechanism: What drew the outputs.
            column: The column.
            places: (n,) ascending positions among its perturbed words, n > 0.
            context: All that decides what is drawn.
        """
        del mechanism, column, context
        return _uniforms(randomness.process_generator(), len(places))


@dataclass(frozen=True)
class SeededNoise:
    """Noise that is a function of a seed, of the release, and of each row's index and words.

    Attributes:
        seed: A secret whole number.
    """

    seed: int = field(repr=False)

    def draw(self, mechanism: Mechanism, column: EncodedColumn, context: StreamContext) -> Ids:
        """Return (m,) one output for each input of a column."""
        streams = row_streams(
            self.seed,
            (context(), column.name),
            column.contents(),
            column.row_ids.indices,
            column.row_lengths,
        )
        return mechanism.sample(column.inputs, streams)

    def uniforms(
        self, mechanism: Mechanism, column: EncodedText, places: Ids, context: StreamContext
    ) -> Uniforms:
        """Return (n, UNIFORMS) numbers to render outputs with; see `FreshNoise`."""
        del mechanism
        streams = row_streams(
            self.seed,
            ("shapes", context(), column.name),
            column.contents(),
            column.row_ids.indices,
            _by_row(column, places),
        )
        return streams.draw(_uniforms, np.arange(len(places)))


@dataclass(frozen=True)
class PermanentNoise:
    """Noise that is a function of a key and of what is released.

    Attributes:
        unit: "row": equal rows always become the same row. "user": a word of a user always becomes
            the same word.
        secret: A digest of the key, as a number.
    """

    unit: Memoize
    secret: int = field(repr=False)

    def draw(self, mechanism: Mechanism, column: EncodedColumn, context: StreamContext) -> Ids:
        """Return (m,) one output for each input of a column.

        The noise is bound to the inputs of the mechanism: what it does not tell apart (words out of
        vocabulary, and the letter case where it does not show) makes no other release.
        """
        del context
        assert isinstance(column, EncodedText)
        law = json.dumps([mechanism.space.digest, mechanism.law])
        return (self._by_row if self.unit == "row" else self._by_user)(mechanism, column, law)

    def uniforms(
        self, mechanism: Mechanism, column: EncodedText, places: Ids, context: StreamContext
    ) -> Uniforms:
        """Return (n, UNIFORMS) numbers to render outputs with; see `FreshNoise`."""
        del context
        law = json.dumps([mechanism.space.digest, mechanism.law])
        if self.unit == "row":
            contents, counts = self._row_contents(column), _by_row(column, places)
            streams = row_streams(self.secret, ("row shapes", law), contents, None, counts)
            return streams.draw(_uniforms, np.arange(len(places)))
        users = np.repeat(np.array(column.row_ids.users or (), dtype=object), column.row_lengths)
        pairs = list(zip(users[places].tolist(), column.inputs[places].tolist(), strict=True))
        words = {pair: at for at, pair in enumerate(dict.fromkeys(pairs))}
        streams = row_streams(
            self.secret,
            ("user shapes", law),
            [(user, str(word)) for user, word in words],
            None,
            [1] * len(words),
        )
        return streams.draw(_uniforms, np.arange(len(words)))[[words[pair] for pair in pairs]]

    @staticmethod
    def _row_contents(column: EncodedText) -> list[list[str]]:
        # What shows of a row for certain is a part of what its noise is bound to: with the inputs
        # alone, rows that differ in everything else would show that they have the same words.
        return [
            [] if row is None else [inputs.tobytes().hex(), json.dumps(column.visible(at))]
            for at, (row, inputs) in enumerate(zip(column.rows, column.row_inputs(), strict=True))
        ]

    def _by_row(self, mechanism: Mechanism, column: EncodedText, law: str) -> Ids:
        contents = self._row_contents(column)
        streams = row_streams(self.secret, ("row", law), contents, None, column.row_lengths)
        return mechanism.sample(column.inputs, streams)

    def _by_user(self, mechanism: Mechanism, column: EncodedText, law: str) -> Ids:
        users = np.repeat(np.array(column.row_ids.users or (), dtype=object), column.row_lengths)
        pairs = list(zip(users.tolist(), column.inputs.tolist(), strict=True))
        places = {pair: at for at, pair in enumerate(dict.fromkeys(pairs))}
        contents = [(user, str(word)) for user, word in places]
        streams = row_streams(self.secret, ("user", law), contents, None, [1] * len(places))
        drawn = mechanism.sample(np.array([word for _, word in places], dtype=np.int64), streams)
        return drawn[[places[pair] for pair in pairs]]


Noise = FreshNoise | SeededNoise | PermanentNoise


def released_words(
    noise: Noise,
    mechanism: Mechanism,
    column: EncodedText,
    outputs: Ids,
    context: StreamContext,
) -> list[str]:
    """Return what the perturbed words of a column become; drawn shapes are rendered.

    Args:
        noise: Where the randomness of rendering comes from.
        mechanism: What drew the outputs.
        column: The column.
        outputs: (m,) rows of the vocabulary, one for each perturbed word.
        context: All that decides what is drawn.
    """
    space = mechanism.space
    words = [space.words[output] for output in outputs.tolist()]
    if space.shapes and len(places := np.flatnonzero(space.is_shape[outputs])):
        numbers = noise.uniforms(mechanism, column, places, context)
        for place, uniforms in zip(places.tolist(), numbers.tolist(), strict=True):
            words[place] = render(words[place], uniforms)
    return words


def _by_row(column: EncodedText, places: Ids) -> NDArray[np.int64]:
    """Return how many of some perturbed words each row has."""
    rows = np.repeat(np.arange(column.rows_count), column.row_lengths)
    return np.bincount(rows[places], minlength=column.rows_count)


def _uniforms(rng: np.random.Generator, size: int) -> NDArray[np.float64]:
    return rng.random((size, UNIFORMS))


def noise_source(seed: int | None, memoize: Memoize | None, key: bytes | Path | None) -> Noise:
    """Return the noise source that the arguments of a privatizer ask for.

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
            return FreshNoise()
        if seed < GUESSABLE:
            _warn_of_guessable_seed()
        return SeededNoise(int(seed))
    require_one_of(("row", "user"), memoize=memoize)
    if seed is not None:
        raise InvalidValueError(
            "seed and memoize both say where the noise is from: seed is for experiments, "
            "memoize for repeated releases; leave one of them out"
        )
    return PermanentNoise(memoize, _secret(key))


@lru_cache(maxsize=1)
def _warn_of_guessable_seed() -> None:
    """Warn, once in a process."""
    logger.warning(
        "the seed is below 2**64 and can be found by trying, which undoes the noise; that is for "
        "experiments on public text only: secrets.randbits(128) makes a seed"
    )


def without_repetitions(ids_a: Ids, ids_b: Ids) -> tuple[Ids, Ids] | None:
    """Return two sequences of as many words, with one place for each different word.

    Returns:
        One pair for each word; None if words are equal in one sequence where they differ in the
        other.
    """
    pairs = np.unique(np.column_stack([ids_a, ids_b]), axis=0)
    if not len(pairs) == len(np.unique(ids_a)) == len(np.unique(ids_b)):
        return None
    return pairs[:, 0], pairs[:, 1]


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
