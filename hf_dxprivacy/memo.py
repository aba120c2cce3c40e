"""Permanent noise: what was released once is released in the same way ever after.

The idea is the permanent randomized response of RAPPOR (Erlingsson, Pihur and Korolova, CCS 2014):
an answer is randomized once and then remembered, so that asking again gives nothing to average.
Nothing is remembered here; the noise is a function of a secret key and of what is released.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy import _validate
from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError
from hf_dxprivacy.randomness import KEY_BYTES, RowStreams, row_streams

Memoize = Literal["row", "user"]
Ids = NDArray[np.int64]
Sample = Callable[[Ids, RowStreams], Ids]

# So few different bytes are a placeholder or a repeated word, not 32 random bytes, of which about
# 30 differ (of 64 random hexadecimal digits, 16).
LEAST_DIFFERENT = 8

_MAKE = "make one with secrets.token_bytes(32), and keep it as secret as the text"


@dataclass(frozen=True)
class Memo:
    """Noise that is a function of a key and of what is released.

    Attributes:
        unit: "row": the same words in a row always become the same words. "user": a word of a user
            always becomes the same word.
        secret: What the key comes to.
    """

    unit: Memoize
    secret: int = field(repr=False)

    @classmethod
    def of(
        cls, memoize: Memoize | None, key: bytes | Path | None, seed: int | None
    ) -> "Memo | None":
        """Check the arguments of a privatizer that say where its noise is from.

        Raises:
            InvalidValueError: If the unit is unknown, the key is missing, short or no secret, or
                there is a seed too.
            InvalidTypeError: If the key is neither bytes nor a path.
        """
        if memoize is None:
            if key is not None:
                raise InvalidValueError('key= is for memoize="row" or "user", and there is none')
            return None
        _validate.one_of(("row", "user"), memoize=memoize)
        if seed is not None:
            raise InvalidValueError(
                "seed and memoize both say where the noise is from: seed is for experiments, "
                "memoize for repeated releases; leave one of them out"
            )
        return cls(memoize, _secret(key))

    def draw(self, sample: Sample, law: str, rows: Sequence[Ids], users: Sequence[str]) -> Ids:
        """Draw the words of a batch.

        What the noise is a function of are the inputs of the mechanism: what the mechanism does not
        tell apart (letter case, words out of vocabulary) does not make another release.

        Args:
            sample: Draws one output for each input, as `Mechanism.sample` does.
            law: All that decides by which law.
            rows: For each row, the inputs of the words to be drawn.
            users: Whose each row is, for the unit "user".

        Returns:
            The outputs of all rows, one after the other.
        """
        ids = np.concatenate([np.empty(0, np.int64), *rows])
        if self.unit == "row":
            words = [[row.tobytes().hex()] for row in rows]
            lengths = [len(row) for row in rows]
            return sample(ids, row_streams(self.secret, ("row", law), words, None, lengths))
        owners = [user for user, row in zip(users, rows, strict=True) for _ in row]
        pairs = list(zip(owners, ids.tolist(), strict=True))
        places = {pair: at for at, pair in enumerate(dict.fromkeys(pairs))}
        contents = [(user, str(word)) for user, word in places]
        streams = row_streams(self.secret, ("user", law), contents, None, [1] * len(places))
        drawn = sample(np.array([word for _, word in places], dtype=np.int64), streams)
        return drawn[[places[pair] for pair in pairs]]


def one_of_each(ids_a: Ids, ids_b: Ids) -> tuple[Ids, Ids] | None:
    """Return two sequences of as many words without what comes again, place by place.

    Returns:
        One pair for each word; None if words are equal in one sequence where they differ in the
        other.
    """
    pairs = np.unique(np.column_stack([ids_a, ids_b]), axis=0)
    if not len(pairs) == len(np.unique(ids_a)) == len(np.unique(ids_b)):
        return None
    return pairs[:, 0], pairs[:, 1]


def _secret(key: bytes | Path | None) -> int:
    """Return the number that a key comes to; no message ever shows the key."""
    if key is None:
        raise InvalidValueError(f"memoize needs key=, a secret of {KEY_BYTES} bytes; {_MAKE}")
    if isinstance(key, Path):
        try:
            key = key.read_bytes()
        except OSError as error:
            raise InvalidValueError(f"can not read the key: {error}; {_MAKE}") from None
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
