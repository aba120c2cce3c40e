"""What releases of whole sentences keep and show, at a bound for the whole text.

    python benchmarks/sentences.py --page

Pools are sentences of IMDB reviews; texts are sentences of movie reviews (MR), questions (TREC) and
sentences of reviews (SST-5), each released as one sentence, and e-mails (PAN11), whose author is
sought as `hierarchical_utility.py` does. Columns:

local DP        bound of the log-ratio of any two texts, of any length
cosine          between a text and what is released, by the encoder of the pool
MR, TREC, SST-5 accuracy of averaged GloVe vectors and logistic regression, trained on the release
                and tested on plain text / trained on plain text and tested on the release
PAN11           e-mails, of 998, whose author is found
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import common
from hf_dxprivacy import SentencePool, SentencePrivatizer
from hf_dxprivacy.mechanisms import ExactMechanism, create_mechanism
from hf_dxprivacy.sentences import WordEncoder, split_sentences
from released_words import Authors, Task, Vectors, words_of

PAGE = common.HERE.parent / "docs" / "sentences.md"
BOUNDS = (8.0, 10.0, 12.0, 15.0)
TASKS = {"MR": "mr", "TREC": "trec6", "SST-5": "sst5"}


def pools(data: Path, size: int) -> dict[str, SentencePool]:
    """Return pools over the same sentences by how texts are encoded."""
    reviews = common.jsonl(data / "utility" / "imdb_sample.jsonl.gz")
    texts = [row["text"].replace("<br />", " ") for row in reviews]
    sentences = [s for text in texts for s in split_sentences(text)][:size]
    glove = WordEncoder(common.glove(data))
    labels = [row["label"] for row in reviews]
    make = SentencePool.from_sentences
    return {
        "`english`": make(sentences, "english", progress=False),
        "GloVe, 300-d": make(sentences, glove, progress=False),
        "GloVe, 300-d, sentiment": make(
            sentences, glove, labelled=(texts, labels), dimensions=16, progress=False
        ),
    }


def epsilon_for(pool: SentencePool, bound: float) -> float:
    """Return the largest ε of `hierarchical` with a local bound, to 1e-3."""
    low, high = 1e-3, bound
    while high - low > 1e-3:
        middle = (low + high) / 2
        law = create_mechanism("hierarchical", pool.space, middle)
        assert isinstance(law, ExactMechanism)
        low, high = (middle, high) if law.local_epsilon <= bound else (low, middle)
    return low


def measured(
    pool: SentencePool,
    privatizer: SentencePrivatizer | None,
    tasks: dict[str, Task],
    authors: Authors,
) -> dict[str, Any]:
    """Return the figures of one release; without a privatizer those of the nearest sentences."""

    def released(texts: Sequence[str]) -> list[str]:
        if privatizer is not None:
            return [str(text) for text in privatizer.privatize(texts)]
        return [pool.sentences[row] for row in np.maximum(pool.look_up(texts), 0)]

    row: dict[str, Any] = {}
    for name, task in tasks.items():
        texts = released(task.texts)
        if name == "MR":
            cosines = np.sum(pool.encoder.encode(task.texts) * pool.encoder.encode(texts), axis=1)
            row["cosine"] = float(cosines.mean())
        scores = task.scores(words_of(texts))
        row[name] = f"{scores['trained on']:.3f} / {scores['read']:.3f}"
    row["PAN11"] = authors.found(released(authors.texts))
    return row


def main() -> None:
    """Measure all rows, print them, and write them into the page if asked to."""
    parser = common.parser(__doc__)
    parser.add_argument("--size", type=int, default=20_000, help="sentences of a pool")
    parser.add_argument("--page", action="store_true", help="write the table into docs")
    options = parser.parse_args()
    vectors = Vectors(common.glove(options.data))
    folder = options.data / "utility"
    tasks = {name: Task(folder / f"{file}.jsonl.gz", vectors) for name, file in TASKS.items()}
    authors = Authors(
        options.data / "authorship" / "pan11_enron_small.jsonl.gz", ("validation", "test")
    )
    rows: list[dict[str, Any]] = []
    for name, pool in pools(options.data, options.size).items():
        for bound in BOUNDS:
            privatizer = SentencePrivatizer(pool, epsilon=epsilon_for(pool, bound))
            head = {"encoder": name, "local DP": bound, "ε": privatizer.epsilon}
            rows.append(head | measured(pool, privatizer, tasks, authors))
            print(rows[-1], flush=True)
        head = {"encoder": name, "local DP": "∞, nearest", "ε": ""}
        rows.append(head | measured(pool, None, tasks, authors))
    plain = {name: f"{task.plain:.3f}" for name, task in tasks.items()}
    rows.append({"encoder": "plain text", **plain, "PAN11": authors.found(authors.texts)})
    common.report("Whole sentences", rows, options.json)
    if options.page:
        common.write_into(PAGE, "table", common.markdown(rows))


if __name__ == "__main__":
    main()
