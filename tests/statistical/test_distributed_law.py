"""A distributed job draws every row by the law of the mechanism, and apart from all others."""

import numpy as np
import pyarrow as pa
import pytest

from hf_dxprivacy.distributed.rows import Job
from hf_dxprivacy.mechanisms import TruncatedExponential
from hf_dxprivacy.privatizers.text_privatizer import DxPrivatizer
from hf_dxprivacy.spaces import EmbeddingSpace
from laws import RejectedError, check_frequencies, check_independent

ROWS, WORD = 20_000, 3


@pytest.mark.parametrize("strings", [False, True])
def test_equal_texts_under_neighbouring_ids(euclidean_space: EmbeddingSpace, strings: bool) -> None:
    mechanism = TruncatedExponential(euclidean_space, 1.5)
    job = Job(DxPrivatizer(euclidean_space, mechanism, seed=11), "id")
    ids = pa.array(range(ROWS))
    text = f"{euclidean_space.words[WORD]} {euclidean_space.words[WORD]}"
    table = pa.table({"id": ids.cast(pa.string()) if strings else ids, "text": [text] * ROWS})
    row_of = {word: row for row, word in enumerate(euclidean_space.words)}
    drawn = np.array([[row_of[w] for w in t.split()] for t in job(table)["text"].to_pylist()])
    counts = np.bincount(drawn[:, 0], minlength=len(euclidean_space))
    check_frequencies(counts, mechanism.probabilities([WORD])[0])
    wrong = TruncatedExponential(euclidean_space, 1.1 * mechanism.epsilon)
    with pytest.raises(RejectedError, match=r"statistic=.*alpha="):
        check_frequencies(counts, wrong.probabilities([WORD])[0])
    # Equal words in an order of their own.
    spread = drawn + np.random.default_rng(5).random(drawn.shape) / 2
    check_independent(spread[:, 0], spread[:, 1])
    check_independent(spread[::2, 0], spread[1::2, 0])
