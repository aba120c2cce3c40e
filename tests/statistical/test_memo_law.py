"""Memoized noise has the law of the mechanism: over keys, over rows and over users."""

import numpy as np
import pytest
from numpy.typing import NDArray

from hf_dxprivacy.mechanisms import TruncatedExponential
from hf_dxprivacy.privatizers.batch import EncodedText, RowIds
from hf_dxprivacy.privatizers.keyed_noise import KeyedNoise
from hf_dxprivacy.spaces import EmbeddingSpace
from hf_dxprivacy.text import RowReader
from laws import RejectedError, check_frequencies, check_independent

Ids = NDArray[np.int64]


WORD, OTHER = 3, 11


@pytest.fixture(scope="module")
def mechanism(euclidean_space: EmbeddingSpace) -> TruncatedExponential:
    return TruncatedExponential(euclidean_space, 1.5)


def check(mechanism: TruncatedExponential, outputs: Ids, word: int = WORD) -> None:
    """Accept the law of the mechanism, and reject that of one with ε a tenth larger."""
    counts = np.bincount(outputs, minlength=len(mechanism.space))
    check_frequencies(counts, mechanism.probabilities([word])[0])
    wrong = TruncatedExponential(mechanism.space, 1.1 * mechanism.epsilon)
    with pytest.raises(RejectedError, match=r"statistic=.*alpha="):
        check_frequencies(counts, wrong.probabilities([word])[0])


def check_unrelated(a: Ids, b: Ids) -> None:
    """Require independence, with equal words in an order of their own."""
    rng = np.random.default_rng(5)
    check_independent(a + rng.random(len(a)) / 2, b + rng.random(len(b)) / 2)


def drawn_from(
    mechanism: TruncatedExponential,
    unit: str,
    rows: list[Ids],
    users: list[str] | None = None,
    secret: int = 1,
) -> Ids:
    return drawn_by(mechanism, unit, encoded(mechanism, rows, users), secret)


def encoded(
    mechanism: TruncatedExponential, rows: list[Ids], users: list[str] | None
) -> EncodedText:
    words, reader = mechanism.space.words, RowReader()
    read = {id(row): reader.read([words[i] for i in row]) for row in rows}
    cells = [read[id(row)] for row in rows]
    return EncodedText.encode("text", cells, RowIds(users=users), mechanism.space)


def drawn_by(mechanism: TruncatedExponential, unit: str, column: EncodedText, secret: int) -> Ids:
    return KeyedNoise(secret, unit).draw(mechanism, column, str)  # type: ignore[arg-type]


@pytest.mark.parametrize("unit", ["row", "user"])
def test_over_keys(mechanism: TruncatedExponential, unit: str) -> None:
    column = encoded(mechanism, [np.array([WORD, OTHER])], ["u"])
    drawn = np.array([drawn_by(mechanism, unit, column, secret) for secret in range(5000)])
    check(mechanism, drawn[:, 0])
    check(mechanism, drawn[:, 1], OTHER)
    check_unrelated(drawn[:, 0], drawn[:, 1])


def test_over_rows(mechanism: TruncatedExponential) -> None:
    """Rows that differ in one word are independent in the others."""
    pairs = [(i, j) for i in range(200) for j in range(100)]
    rows = [np.array([WORD, i, WORD, j]) for i, j in pairs]
    drawn = drawn_from(mechanism, "row", rows).reshape(-1, 4)
    check(mechanism, drawn[:, 0])
    check(mechanism, drawn[:, 2])
    check_unrelated(drawn[:, 0], drawn[:, 2])
    check_unrelated(drawn[:-1, 0], drawn[1:, 0])


def test_over_users(mechanism: TruncatedExponential) -> None:
    users = [str(at) for at in range(20_000)]
    rows = [np.array([WORD, WORD, OTHER])] * len(users)
    drawn = drawn_from(mechanism, "user", rows, users).reshape(-1, 3)
    np.testing.assert_array_equal(drawn[:, 0], drawn[:, 1])
    check(mechanism, drawn[:, 0])
    check(mechanism, drawn[:, 2], OTHER)
    check_unrelated(drawn[:, 0], drawn[:, 2])
    check_unrelated(drawn[:-1, 0], drawn[1:, 0])
