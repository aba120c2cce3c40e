"""What resampling among the neighbours does to Laplace noise in 300 dimensions.

Shares of outputs by their rank among the neighbours of the input, for the most frequent words, and
the accuracy on movie reviews (MR) of a logistic regression on averaged vectors, trained on
privatized and tested on plain sentences. Vectors: GloVe 840B 300-d, 33,860 words.

    python benchmarks/resampling.py --epsilons 12 16 20 --resample 0.003 0.03
"""

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

import common
from hf_dxprivacy import DxPrivatizer
from hf_dxprivacy.mechanisms import Mechanism, create_mechanism
from hf_dxprivacy.randomness import keyed_generator
from hf_dxprivacy.text import RowReader
from mr_accuracy import accuracy, averaged

RANKS = {"same word": 0, "rank 1–10": 10, "11–100": 100, "101–1000": 1000}


def rank_shares(mechanism: Mechanism, words: int, runs: int) -> dict[str, float]:
    """Return the share of outputs that lie within ranks of the input's neighbours."""
    drawn = mechanism.sample_repeatedly(np.arange(words), runs, keyed_generator(0))
    distances = mechanism.space.distances(np.arange(words))
    reached = np.take_along_axis(distances, drawn, axis=1)
    ranks: NDArray[np.int64] = np.stack(
        [np.searchsorted(np.sort(row), got) for row, got in zip(distances, reached, strict=True)]
    )
    shares, below = {}, -1
    for name, last in RANKS.items():
        shares[name] = float(((ranks > below) & (ranks <= last)).mean())
        below = last
    return shares | {"beyond": float((ranks > below).mean())}


def main() -> None:
    """Measure all settings and print the table."""
    arguments = common.parser(__doc__)
    arguments.add_argument("--epsilons", type=float, nargs="+", default=[12.0, 16.0, 20.0])
    arguments.add_argument("--resample", type=float, nargs="+", default=[0.003, 0.03])
    arguments.add_argument("--words", type=int, default=300)
    arguments.add_argument("--runs", type=int, default=100)
    arguments.add_argument("--train", type=int, default=1000, help="sentences to train on")
    options = arguments.parse_args()
    space, reader = common.glove(options.data), RowReader()
    examples = common.jsonl(options.data / "utility" / "mr.jsonl.gz")
    texts, labels = [e["text"] for e in examples], [e["label"] for e in examples]
    train, test = train_test_split(
        np.arange(len(texts)), train_size=options.train, random_state=0, stratify=labels
    )
    plain = averaged([texts[i] for i in test], space, reader)
    rows = []
    for epsilon in options.epsilons:
        for c in (None, *options.resample):
            mechanism = create_mechanism("laplace", space, epsilon, resample=c)
            released = DxPrivatizer(space, mechanism).privatize([texts[i] for i in train])
            score = accuracy(
                averaged(released, space, reader),
                [labels[i] for i in train],
                plain,
                [labels[i] for i in test],
            )
            shares = rank_shares(mechanism, options.words, options.runs)
            rows.append({"ε": f"{epsilon:g}", "c": c or "none"} | shares | {"accuracy": score})
            print(rows[-1], flush=True)
    common.report("Resampling after Laplace noise", rows, options.json)


if __name__ == "__main__":
    main()
