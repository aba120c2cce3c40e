"""Sentiment accuracy on movie reviews (MR) after privatization, at equal certified ε.

A logistic regression on averaged word vectors is trained on privatized sentences and tested on
plain ones, for several random draws (each with its own train/test split). Vectors: GloVe 840B
300-d, 33,860 words, most frequent first.

    python benchmarks/mr_accuracy.py --epsilons 1 2 3 --draws 5 --picture mr.png
"""

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
from hf_dxprivacy.text import RowReader


def averaged(texts: list[str], space: EmbeddingSpace, reader: RowReader) -> NDArray[np.float64]:
    """Return the mean vector of each text's words that are in the space, (rows, n)."""
    features = np.zeros((len(texts), space.dim))
    for row, text in enumerate(texts):
        ids = space.ids(reader.read_text(text).words)
        known = ids[ids >= 0]
        if len(known):
            features[row] = space.vectors[known].mean(axis=0)
    return features


def accuracy(
    train: NDArray[np.float64], y_train: list[str], test: NDArray[np.float64], y_test: list[str]
) -> float:
    """Train on one set and score on the other."""
    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.01, max_iter=1000))
    return float(model.fit(train, y_train).score(test, y_test))


def main() -> None:
    """Run all draws and print the table."""
    arguments = common.parser(__doc__)
    arguments.add_argument("--epsilons", type=float, nargs="+", default=[2.0])
    arguments.add_argument("--mechanisms", nargs="+", default=["laplace", "tem", "calibrated"])
    arguments.add_argument("--draws", type=int, default=5)
    arguments.add_argument("--words", type=int, help="keep the most frequent of the vectors")
    arguments.add_argument("--train", type=int, help="sentences to train on (four fifths)")
    arguments.add_argument("--picture", type=Path, help="draw the accuracies there, as PNG")
    options = arguments.parse_args()
    glove, reader, kept = common.glove(options.data), RowReader(), slice(options.words)
    space = EmbeddingSpace.from_vectors(glove.words[kept], glove.vectors[kept])
    examples = common.jsonl(options.data / "utility" / "mr.jsonl.gz")
    texts, labels = [e["text"] for e in examples], [e["label"] for e in examples]
    plain = averaged(texts, space, reader)

    def draw(number: int, privatizer: DxPrivatizer | None) -> float:
        train, test = train_test_split(
            np.arange(len(texts)),
            train_size=options.train or 0.8,
            random_state=number,
            stratify=labels,
        )
        features = plain[train]
        if privatizer is not None:
            features = averaged(privatizer.privatize([texts[i] for i in train]), space, reader)
        return accuracy(
            features, [labels[i] for i in train], plain[test], [labels[i] for i in test]
        )

    rows = [_row("none", "", [draw(number, None) for number in range(options.draws)])]
    for epsilon in options.epsilons:
        for mechanism in options.mechanisms:
            privatizer = DxPrivatizer(space, mechanism, epsilon)
            scores = [draw(number, privatizer) for number in range(options.draws)]
            rows.append(_row(mechanism, f"{epsilon:g}", scores))
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
