"""Were my texts used: the user-level audit of a text model (Song & Shmatikov, KDD 2019)."""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy import _validate
from hf_dxprivacy._optional import require
from hf_dxprivacy.audit.halves import (
    Half,
    Indices,
    library_seed,
    require_aligned,
    shadow_and_target,
)
from hf_dxprivacy.audit.next_word import NextWordModel
from hf_dxprivacy.audit.subject import Subject
from hf_dxprivacy.randomness import process_generator
from hf_dxprivacy.results import EXTRA, Results, mean_interval
from hf_dxprivacy.text import RowReader

TASK = "user audit"
METRICS = ("precision", "recall", "accuracy", "AUC")


def user_audit(
    originals: Sequence[str],
    released: Sequence[str],
    users: Sequence[str],
    *,
    repeats: int = 3,
    vocabulary: int = 2000,
    rng: np.random.Generator | None = None,
    subject: Subject | None = None,
) -> Results:
    """Find out whose texts a language model was trained on from how it ranks their words.

    The users are split at random into four parts. A next-word model (LSTM) is trained on what was
    released of one part, a second one on another. The auditor asks a model with a user's texts as
    they were written; the histogram of the ranks that it gives their words is what he knows. From
    the first model, whose users he knows, he learns to tell them (a linear support vector machine),
    then tells those of the second, and the other way round.

    Args:
        originals: (n,) texts as they were written.
        released: (n,) the same texts as released; give `originals` again to see the attack succeed.
        users: (n,) who wrote each text; at least 4 users.
        repeats: How many random splits. The interval is over them; they share their users.
        vocabulary: How many words the models know.
        rng: Source of splits and seeds; this process's own by default.
        subject: What the results say was attacked.

    Returns:
        "precision", "recall" and "accuracy" of the auditor's decisions, and the "AUC".

    Raises:
        InvalidValueError: If lengths differ or there are too few users.
        MissingExtraError: If torch or scikit-learn is not installed.
    """
    require_aligned(originals=len(originals), released=len(released), users=len(users))
    _validate.at_least(1, repeats=repeats)
    _validate.at_least(2, vocabulary=vocabulary)
    rng = rng or process_generator()
    written, seen = _by_user(originals, users), _by_user(released, users)

    def look(members: Indices, others: Indices) -> NDArray[np.float64]:
        rows = [row for user in members.tolist() for row in seen[user]]
        model = NextWordModel(rows, vocabulary, library_seed(rng))
        asked = [*members.tolist(), *others.tolist()]
        return np.array([_histogram(model.ranks(written[user]), vocabulary) for user in asked])

    rounds = []
    for _ in range(repeats):
        one, other = shadow_and_target(len(written), rng, look)
        rounds.append(np.mean([_attack(one, other), _attack(other, one)], axis=0))
    return Results(
        (subject or Subject()).result(TASK, metric, mean_interval(values), repeats)
        for metric, values in zip(METRICS, np.transpose(rounds), strict=True)
    )


def _by_user(texts: Sequence[str], users: Sequence[str]) -> list[list[list[str]]]:
    """Return the words of each text of each user, the users in order."""
    reader = RowReader()
    rows = defaultdict(list)
    for text, user in zip(texts, users, strict=True):
        rows[user].append([word.lower() for word in reader.read_text(text).words])
    return [rows[user] for user in sorted(rows)]


def _histogram(ranks: NDArray[np.int64], vocabulary: int) -> NDArray[np.float64]:
    """Return the shares of ranks 0, 1–2, 3–6, 7–14 and so on."""
    steps = np.log2(ranks + 1).astype(np.int64)
    return np.bincount(steps, minlength=vocabulary.bit_length() + 1) / max(1, len(ranks))


def _attack(shadow: Half, target: Half) -> tuple[float, float, float, float]:
    metrics, svm = require("sklearn.metrics", EXTRA), require("sklearn.svm", EXTRA)
    scale = require("sklearn.preprocessing", EXTRA).StandardScaler().fit(shadow.features)
    auditor = svm.SVC(kernel="linear").fit(scale.transform(shadow.features), shadow.member)
    scores = auditor.decision_function(scale.transform(target.features))
    said = scores > 0
    return (
        float(metrics.precision_score(target.member, said, zero_division=0.0)),
        float(metrics.recall_score(target.member, said)),
        float(np.mean(said == target.member)),
        float(metrics.roc_auc_score(target.member, scores)),
    )
