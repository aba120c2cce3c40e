"""Speed of `Dataset.map` on messages of chats, against the same texts in a column of their own.

Film reviews (MR), four to a chat. `datasets` itself takes longer to read and write nested rows;
what it takes alone is measured with a function that returns the column as it is. Each round runs
all ways in turn, because the speed of a machine drifts; the least processor time of each counts.

    nice -n -5 python benchmarks/chat_speed.py
"""

import time
from collections.abc import Callable
from itertools import islice
from typing import Any

import datasets
import numpy as np
from datasets import Dataset

import common
from hf_dxprivacy import DxPrivatizer
from hf_dxprivacy.text import RowReader

A_CHAT = 4


def seconds(dataset: Dataset, function: Callable[[Any], Any]) -> float:
    """Return the processor seconds of a map."""
    start = time.process_time()
    dataset.map(function, batched=True)
    return time.process_time() - start


def main() -> None:
    """Run everything and print the table."""
    arguments = common.parser(__doc__)
    arguments.add_argument("--space", default="english")
    arguments.add_argument("--mechanism", default="hierarchical")
    arguments.add_argument("--epsilon", type=float, default=1.5)
    arguments.add_argument("--rounds", type=int, default=15)
    arguments.add_argument("--texts", type=int, default=8000)
    options = arguments.parse_args()
    datasets.disable_caching()
    datasets.disable_progress_bars()
    lines = common.jsonl(options.data / "utility" / "mr.jsonl.gz")
    texts = [row["text"] for row in islice(lines, options.texts)]
    words = sum(len(RowReader().read_text(text)) for text in texts)
    said = [{"role": "user", "content": text} for text in texts]
    flat = Dataset.from_dict({"text": texts})
    chats = Dataset.from_dict(
        {"messages": [said[at : at + A_CHAT] for at in range(0, len(said), A_CHAT)]}
    )
    made = options.space, options.mechanism, options.epsilon
    privatizer = DxPrivatizer(*made)
    paths = {
        "messages[].content": DxPrivatizer(*made, text_column="messages[].content"),
        "messages[].content, roles": DxPrivatizer(
            *made, text_column="messages[].content", roles=("user",)
        ),
    }
    ways: dict[str, Callable[[], float]] = {
        "text": lambda: seconds(flat, privatizer),
        "text, nothing done": lambda: seconds(flat, lambda batch: {"text": batch["text"]}),
        "messages, nothing done": lambda: seconds(
            chats, lambda batch: {"messages": batch["messages"]}
        ),
        **{
            name: lambda path=path: seconds(chats, path)  # type: ignore[misc]
            for name, path in paths.items()
        },
    }
    for way in ways.values():
        way()
    found = np.array([[way() for way in ways.values()] for _ in range(options.rounds)])
    least = found.min(axis=0)
    rows = [
        {"what": name, "words/s": words / float(took), "time, of text": float(took / least[0])}
        for name, took in zip(ways, least, strict=True)
    ]
    common.report("Dataset.map on chats", rows, options.json)


if __name__ == "__main__":
    main()
