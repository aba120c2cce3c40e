"""Sentiment accuracy on movie reviews (MR) after privatization, at equal certified ε.

A logistic regression on averaged word vectors is trained on privatized sentences and tested on
plain ones, for several random draws (each with its own train/test split). Vectors: GloVe 840B
300-d, 33,860 words, most frequent first.

    python benchmarks/mr_accuracy.py --epsilons 1 2 3 --draws 5 --picture mr.png
    python benchmarks/mr_accuracy.py --epsilons 12 16 --resample 0.003 0.03 --train 500 --draws 1

With --resample: `laplace` with other draws among the neighbours of what the noise leads to, and the
shares of outputs by their rank among the neighbours of the input, for the most frequent words.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import common
from hf_dxprivacy import DxPrivatizer, EmbeddingSpace
from hf_dxprivacy.evaluation import averaged_vectors
from hf_dxprivacy.mechanisms import Mechanism, create_mechanism
from hf_dxprivacy.randomness import keyed_generator

RANKS = {"same word": 0, "rank 1–10": 10, "11–100": 100, "101–1000": 1000}
# Words whose outputs are ranked, and draws for each.
RANKED, RUNS = 200, 50


def accuracy(
    train: NDArray[np.float64], y_train: list[str], test: NDArray[np.float64], y_test: list[str]
) -> float:
    """Train on one set and score on the other."""
    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.01, max_iter=1000))
    return float(model.fit(train, y_train).score(test, y_test))


def settings(
    space: EmbeddingSpace, epsilon: float, names: list[str], resample: list[float]
) -> Iterator[tuple[str, Mechanism]]:
    """Yield the mechanisms to compare: by name, or `laplace` without and with resampling."""
    if resample:
        yield "laplace", create_mechanism("laplace", space, epsilon)
        for c in resample:
            yield f"laplace, c = {c:g}", create_mechanism("laplace", space, epsilon, resample=c)
    else:
        yield from ((name, create_mechanism(name, space, epsilon)) for name in names)


def rank_shares(mechanism: Mechanism) -> dict[str, float]:
    """Return the share of outputs that lie within ranks of the input's neighbours."""
    drawn = mechanism.sample_repeatedly(np.arange(RANKED), RUNS, keyed_generator(0))
    distances = mechanism.space.distances(np.arange(RANKED))
    reached = np.take_along_axis(distances, drawn, axis=1)
    ranks: NDArray[np.int64] = np.stack(
        [np.searchsorted(np.sort(row), got) for row, got in zip(distances, reached, strict=True)]
    )
    within = [float((ranks <= last).mean()) for last in RANKS.values()]
    return dict(zip([*RANKS, "beyond"], np.diff([0.0, *within, 1.0]).tolist(), strict=True))


def main() -> None:
    """Run all draws and print the table."""
    arguments = common.parser(__doc__)
    arguments.add_argument("--epsilons", type=float, nargs="+", default=[2.0])
    arguments.add_argument("--mechanisms", nargs="+", default=["laplace", "tem", "calibrated"])
    arguments.add_argument("--draws", type=int, default=5)
    arguments.add_argument("--words", type=int, help="keep the most frequent of the vectors")
    arguments.add_argument("--train", type=int, help="sentences to train on (four fifths)")
    arguments.add_argument("--resample", type=float, nargs="+", default=[], help="constants c")
    arguments.add_argument("--picture", type=Path, help="draw the accuracies there, as PNG")
    options = arguments.parse_args()
    glove, kept = common.glove(options.data), slice(options.words)
    space = EmbeddingSpace.from_vectors(glove.words[kept], glove.vectors[kept])
    examples = common.jsonl(options.data / "utility" / "mr.jsonl.gz")
    texts, labels = [e["text"] for e in examples], [e["label"] for e in examples]
    plain = averaged_vectors(texts, space)

    def draw(number: int, privatizer: DxPrivatizer | None) -> float:
        train, test = train_test_split(
            np.arange(len(texts)),
            train_size=options.train or 0.8,
            random_state=number,
            stratify=labels,
        )
        features = plain[train]
        if privatizer is not None:
            features = averaged_vectors(privatizer.privatize([texts[i] for i in train]), space)
        return accuracy(
            features, [labels[i] for i in train], plain[test], [labels[i] for i in test]
        )

    rows = [_row("none", "", [draw(number, None) for number in range(options.draws)])]
    for epsilon in options.epsilons:
        for name, mechanism in settings(space, epsilon, options.mechanisms, options.resample):
            privatizer = DxPrivatizer(space, mechanism)
            scores = [draw(number, privatizer) for number in range(options.draws)]
            ranks = rank_shares(mechanism) if options.resample else {}
            rows.append(_row(name, f"{epsilon:g}", scores) | ranks)
            print(rows[-1], flush=True)
    common.report("MR accuracy, trained on privatized and tested on plain", rows, options.json)
    if options.picture is not None:
        draw_picture(rows, options.picture)


def draw_picture(rows: list[dict[str, Any]], target: Path) -> None:
    """Draw accuracy against ε, one line for each mechanism, with that without privatization."""
    figure, axes = plt.subplots(figsize=(6, 3.6), dpi=110, layout="constrained")
    axes.axhline(rows[0]["accuracy"], color="0.5", linestyle=":", label="not privatized")
    for mechanism in dict.fromkeys(row["mechanism"] for row in rows[1:]):
        points = [row for row in rows if row["mechanism"] == mechanism]
        axes.errorbar(
            [float(row["ε"]) for row in points],
            [row["accuracy"] for row in points],
            yerr=[row["standard deviation"] for row in points],
            marker="o",
            capsize=3,
            label=mechanism,
        )
    axes.set_xlabel("certified ε per unit of distance")
    axes.set_ylabel("accuracy on plain test sentences")
    figure.legend(loc="outside upper center", ncols=4)
    figure.savefig(target)
    plt.close(figure)


def _row(mechanism: str, epsilon: str, scores: list[float]) -> dict[str, Any]:
    return {
        "mechanism": mechanism,
        "ε": epsilon,
        "accuracy": float(np.mean(scores)),
        "standard deviation": float(np.std(scores, ddof=1)) if len(scores) > 1 else 0.0,
        "draws": len(scores),
    }


if __name__ == "__main__":
    main()
