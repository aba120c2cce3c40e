"""Was this text trained on: membership inference with a shadow model (Shokri et al., 2017)."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy import _validate
from hf_dxprivacy._optional import require
from hf_dxprivacy.audit.averaged import AveragedClassifier
from hf_dxprivacy.audit.halves import (
    Half,
    Indices,
    library_seed,
    require_aligned,
    shadow_and_target,
)
from hf_dxprivacy.audit.subject import Subject
from hf_dxprivacy.errors import InvalidValueError
from hf_dxprivacy.randomness import process_generator
from hf_dxprivacy.results import EXTRA, Results, mean_interval

TASK = "membership"
METRICS = ("AUC", "target accuracy")
HIDDEN = (64, 64)
# With fewer, the part on which the attacker's training is stopped would lack members or others.
LEAST = 40


def membership_inference(
    originals: Sequence[str],
    released: Sequence[str],
    labels: Sequence[str | int],
    *,
    repeats: int = 5,
    rng: np.random.Generator | None = None,
    subject: Subject | None = None,
) -> Results:
    """Find out which texts a classifier was trained on from what it says about the originals.

    The texts are split at random into four parts. A target classifier (averaged word vectors) is
    trained on one part as it was released, a shadow on another. The attacker knows which originals
    the shadow was trained on, and trains a perceptron with two hidden layers of 64 units to tell
    them by the shadow's outputs; it then tells those of the target. Each of the two classifiers is
    once the target. The setting is that of Carvalho et al. (TEM).

    Args:
        originals: (n,) texts as they were written, with which the attacker asks the target.
        released: (n,) the same texts as released; give `originals` again to see the attack succeed.
        labels: (n,) classes that the classifiers learn.
        repeats: How many random splits. The interval is over them; they share their texts.
        rng: Source of splits and seeds; this process's own by default.
        subject: What the results say was attacked.

    Returns:
        "AUC" of the attack, 0.5 for chance; and the "target accuracy" on texts that the target was
        not trained on.

    Raises:
        InvalidValueError: If lengths differ, or there are fewer than 40 texts or 2 classes.
        MissingExtraError: If torch or scikit-learn is not installed.
    """
    require_aligned(originals=len(originals), released=len(released), labels=len(labels))
    _validate.at_least(1, repeats=repeats)
    _validate.at_least(LEAST, "the attacker has but half of them to learn from", texts=len(labels))
    names, classes = np.unique(np.asarray(labels), return_inverse=True)
    if len(names) < 2:
        raise InvalidValueError(f"expected at least 2 classes, got {len(names)}")
    rng = rng or process_generator()
    truth = np.eye(len(names))[classes]

    def look(members: Indices, others: Indices) -> NDArray[np.float64]:
        texts = [released[i] for i in members.tolist()]
        model = AveragedClassifier(texts, classes[members], len(names), library_seed(rng))
        asked = np.concatenate([members, others])
        said = model.log_probabilities([originals[i] for i in asked.tolist()])
        return np.column_stack([said, truth[asked]])

    rounds = []
    for _ in range(repeats):
        one, other = shadow_and_target(len(classes), rng, look)
        areas = [_attack(one, other, rng), _attack(other, one, rng)]
        rounds.append((np.mean(areas), np.mean([_accuracy(one), _accuracy(other)])))
    return Results(
        (subject or Subject()).result(TASK, metric, mean_interval(values), repeats)
        for metric, values in zip(METRICS, zip(*rounds, strict=True), strict=True)
    )


def _attack(shadow: Half, target: Half, rng: np.random.Generator) -> float:
    """Return the AUC against the target of what was learned from the shadow."""
    network = require("sklearn.neural_network", EXTRA)
    preprocessing = require("sklearn.preprocessing", EXTRA)
    scale = preprocessing.StandardScaler().fit(shadow.features)
    # Stopping early keeps the attacker, too, from learning his examples by heart.
    attacker = network.MLPClassifier(
        HIDDEN, early_stopping=True, max_iter=1000, random_state=library_seed(rng)
    )
    attacker.fit(scale.transform(shadow.features), shadow.member)
    scores = attacker.predict_proba(scale.transform(target.features))[:, 1]
    return float(require("sklearn.metrics", EXTRA).roc_auc_score(target.member, scores))


def _accuracy(half: Half) -> float:
    """Return the share of texts that the model was not trained on and gives their class."""
    said, truth = np.split(half.features[~half.member], 2, axis=1)
    return float(np.mean(said.argmax(axis=1) == truth.argmax(axis=1)))
