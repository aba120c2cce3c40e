"""What share of the words of everyday English the built-in spaces lack.

    python benchmarks/missing_words.py

A word that a space lacks becomes an arbitrary word, or a random one of its shape. The texts are the
first 400 of each data set, and every word is counted as often as it comes.
"""

from collections.abc import Sequence
from typing import Any

import common
from hf_dxprivacy import EmbeddingSpace
from hf_dxprivacy.spaces import builtin_names
from hf_dxprivacy.spaces.lookup import look_up_rows
from hf_dxprivacy.text import RowReader

DATASETS = ("imdb_sample", "mr", "sms_spam", "disaster_tweets")
TEXTS = 400


def main() -> None:
    """Print a table with a row for each data set."""
    options = common.parser(__doc__).parse_args()
    spaces = {name: EmbeddingSpace.from_pretrained(name) for name in builtin_names()}
    rows: list[dict[str, Any]] = []
    for dataset in DATASETS:
        data = common.jsonl(options.data / "utility" / f"{dataset}.jsonl.gz")
        texts = [row["text"] for row in data[:TEXTS]]
        shares = {name: f"{missing(space, texts):.0%}" for name, space in spaces.items()}
        rows.append({"data": dataset, **shares})
    common.report("Words out of vocabulary", rows, options.json)


def missing(space: EmbeddingSpace, texts: Sequence[str]) -> float:
    """Return the share of words that a space lacks, looked up as a release looks them up."""
    reader = RowReader()
    ids = look_up_rows([reader.read_text(text) for text in texts], space)
    return float((ids < 0).mean())


if __name__ == "__main__":
    main()
