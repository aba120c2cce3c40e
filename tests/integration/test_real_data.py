"""Real data sets, with all their oddities, through the privatizer."""

import gzip
import json
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from hf_dxprivacy import DxPrivatizer
from hf_dxprivacy.text import RowReader, TextRow
from hf_dxprivacy.text.segmentation import TokenRow

pytestmark = pytest.mark.realdata

TEXTS = {
    "utility/mr.jsonl.gz": ("text",),
    "utility/cr.jsonl.gz": ("text",),
    "utility/mpqa.jsonl.gz": ("text",),
    "utility/sms_spam.jsonl.gz": ("text",),
    "utility/disaster_tweets.jsonl.gz": ("text",),
    "utility/imdb_sample.jsonl.gz": ("text",),
    "utility/mrpc.jsonl.gz": ("text1", "text2"),
    "authorship/pan11_enron_small.jsonl.gz": ("text",),
}
TOKENS = ("slots/snips.jsonl.gz", "ner/conll2003.jsonl.gz")


def rows(path: Path, count: int) -> dict[str, list[Any]]:
    """Return the first rows of a data set as a batch."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        examples = [json.loads(line) for line in islice(lines, count)]
    return {name: [example[name] for example in examples] for name in examples[0]}


@pytest.mark.parametrize("name", TEXTS)
def test_texts_keep_their_carrier_and_lose_every_unknown_word(data: Path, name: str) -> None:
    privatizer = DxPrivatizer("wordnet-gloss", "tem", 12.0, text_column=TEXTS[name])
    batch, reader = rows(data / name, 250), RowReader()
    released = privatizer(batch)
    assert set(released) == set(TEXTS[name])
    for column, texts in released.items():
        for before, after in zip(batch[column], texts, strict=True):
            old, new = reader.read(before), reader.read(after)
            assert isinstance(old, TextRow)
            assert isinstance(new, TextRow)
            assert new.separators == old.separators
            assert all(word in privatizer.space for word in new.words)


@pytest.mark.parametrize("name", TOKENS)
def test_token_lists_stay_aligned_with_their_tags(data: Path, name: str) -> None:
    privatizer = DxPrivatizer("wordnet-gloss", "tem", 12.0, text_column="tokens")
    batch, reader = rows(data / name, 500), RowReader()
    released = privatizer(batch, list(range(500)))["tokens"]
    for before, after in zip(batch["tokens"], released, strict=True):
        assert len(after) == len(before)
        row = reader.read(before)
        assert isinstance(row, TokenRow)
        for position, (old, new) in enumerate(zip(before, after, strict=True)):
            assert (new in privatizer.space) if position in row.positions else (new == old)
