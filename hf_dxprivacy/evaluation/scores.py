"""How well a task was done (scikit-learn and SciPy, the extra ``audit``)."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from hf_dxprivacy._optional import require

EXTRA = "audit"


def classification_scores(truth: ArrayLike, predicted: ArrayLike) -> dict[str, float]:
    """Return accuracy, and precision, recall and F1 as means over the labels.

    Args:
        truth: (m,) labels.
        predicted: (m,) labels.

    Raises:
        MissingExtraError: If scikit-learn is not installed.
    """
    metrics = require("sklearn.metrics", EXTRA)
    by_label = metrics.precision_recall_fscore_support(
        truth, predicted, average="macro", zero_division=0
    )
    scores = {"accuracy": metrics.accuracy_score(truth, predicted)}
    scores |= dict(zip(("precision", "recall", "F1"), by_label, strict=False))
    return {name: float(value) for name, value in scores.items()}


def correlation_scores(
    truth: ArrayLike, predicted: ArrayLike, groups: Sequence[str] | None = None
) -> dict[str, float]:
    """Return Pearson's and Spearman's correlation, as means over groups.

    Args:
        truth: (m,) numbers.
        predicted: (m,) numbers.
        groups: m names of the groups that are correlated each for itself; one by default.

    Returns:
        Both; what does not vary within a group correlates by 0 there.

    Raises:
        MissingExtraError: If SciPy is not installed.
    """
    stats = require("scipy.stats", EXTRA)
    x, y = np.asarray(truth, dtype=np.float64), np.asarray(predicted, dtype=np.float64)
    names = np.asarray(groups if groups is not None else [""] * len(x))
    parts = [(x[names == name], y[names == name]) for name in np.unique(names)]
    return {
        title: float(np.mean([float(law(*p)[0]) if _varies(*p) else 0.0 for p in parts]))
        for title, law in (("Pearson", stats.pearsonr), ("Spearman", stats.spearmanr))
    }


def _varies(*values: np.ndarray) -> bool:
    return all(len(each) > 1 and np.ptp(each) > 0 for each in values)
