"""Attacks with shadow models: membership inference, and the user-level audit of a text model.

One half of the candidates trains a shadow model, whose members the attacker knows; with it
the attacker learns to attack a target model that the other half trained.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy._runtime import require
from hf_dxprivacy.errors import InvalidValueError, require_at_least
from hf_dxprivacy.randomness import process_generator
from hf_dxprivacy.results import EXTRA, Results, Subject, mean_interval
from hf_dxprivacy.text import RowReader

# The extra that brings torch.
MODELS = "models"

# With fewer texts, the part on which the attacker's training is stopped would lack members or
# others.
LEAST = 40

# Words that the next-word model looks back, and its symbol for words that it does not know.
LENGTH = 32
UNKNOWN = 0

Indices = NDArray[np.int64]
# Trains a model on the first and returns the features of the first and the second, a row each.
Look = Callable[[Indices, Indices], NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class ShadowModel:
    """A model, seen through its outputs.

    Attributes:
        features: (m, f) what the model says about each candidate.
        member: (m,) whether it was trained on that candidate.
    """

    features: NDArray[np.float64]
    member: NDArray[np.bool_]


def shadow_and_target(
    count: int, rng: np.random.Generator, look: Look
) -> tuple[ShadowModel, ShadowModel]:
    """Split candidates at random and train one model on a half of each half.

    Either half may serve as the shadow, whose membership the attacker knows, of the other.

    Args:
        count: How many candidates there are.
        rng: Source of the split.
        look: Trains a model on some candidates and returns the features of all it is given.
    """
    if count < 4:
        raise InvalidValueError(
            f"expected at least 4 candidates, half of which are members, got {count}"
        )
    quarters = np.array_split(rng.permutation(count), 4)
    return _model(quarters[0], quarters[1], look), _model(quarters[2], quarters[3], look)


def _model(members: Indices, others: Indices, look: Look) -> ShadowModel:
    member = np.arange(len(members) + len(others)) < len(members)
    return ShadowModel(look(members, others), member)


def require_aligned(**columns: int) -> None:
    """Require columns of the same length."""
    if len(set(columns.values())) > 1:
        lengths = ", ".join(f"{name}: {length}" for name, length in columns.items())
        raise InvalidValueError(f"expected columns of the same length, got {lengths}")


def library_seed(rng: np.random.Generator) -> int:
    """Draw a seed for a library that has generators of its own."""
    return int(rng.integers(1 << 31))


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
    require_at_least(1, repeats=repeats)
    require_at_least(LEAST, "the attacker has but half of them to learn from", texts=len(labels))
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
        areas = [_membership_auc(one, other, rng), _membership_auc(other, one, rng)]
        rounds.append((np.mean(areas), np.mean([_accuracy(one), _accuracy(other)])))
    return Results(
        (subject or Subject()).result("membership", metric, mean_interval(values), repeats)
        for metric, values in zip(
            ("AUC", "target accuracy"), zip(*rounds, strict=True), strict=True
        )
    )


def _membership_auc(shadow: ShadowModel, target: ShadowModel, rng: np.random.Generator) -> float:
    """Return the AUC against the target of what was learned from the shadow."""
    network = require("sklearn.neural_network", EXTRA)
    preprocessing = require("sklearn.preprocessing", EXTRA)
    scale = preprocessing.StandardScaler().fit(shadow.features)
    # Early stopping keeps the attacker from overfitting as well.
    attacker = network.MLPClassifier(
        (64, 64), early_stopping=True, max_iter=1000, random_state=library_seed(rng)
    )
    attacker.fit(scale.transform(shadow.features), shadow.member)
    scores = attacker.predict_proba(scale.transform(target.features))[:, 1]
    return float(require("sklearn.metrics", EXTRA).roc_auc_score(target.member, scores))


def _accuracy(half: ShadowModel) -> float:
    """Return the share of texts that the model was not trained on and gives their class."""
    said, truth = np.split(half.features[~half.member], 2, axis=1)
    return float(np.mean(said.argmax(axis=1) == truth.argmax(axis=1)))


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
    """Infer the users whose texts a language model was trained on, from the ranks of their words.

    The users are split at random into four parts. A next-word model (LSTM) is trained on what was
    released of one part, a second one on another. The auditor asks a model with a user's texts as
    they were written; the histogram of the ranks of their words is the feature. On the first
    model, whose users are known, a linear support vector machine learns to tell users; it is then
    applied to the second model, and the other way round.

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
    require_at_least(1, repeats=repeats)
    require_at_least(2, vocabulary=vocabulary)
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
        rounds.append(np.mean([_user_scores(one, other), _user_scores(other, one)], axis=0))
    return Results(
        (subject or Subject()).result("user audit", metric, mean_interval(values), repeats)
        for metric, values in zip(
            ("precision", "recall", "accuracy", "AUC"), np.transpose(rounds), strict=True
        )
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


def _user_scores(shadow: ShadowModel, target: ShadowModel) -> tuple[float, float, float, float]:
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


class AveragedClassifier:
    """Word vectors, learned with the labels, averaged over a text, and a linear layer.

    Args:
        texts: (m,) texts to train with.
        labels: (m,) int64 labels from 0.
        classes: How many labels there are.
        seed: Of the initial weights and the order of the texts.
    """

    def __init__(
        self, texts: Sequence[str], labels: NDArray[np.int64], classes: int, seed: int
    ) -> None:
        self._torch = torch = require("torch", MODELS)
        self._reader = RowReader()
        words = [self._words(text) for text in texts]
        counts = Counter(word for row in words for word in row)
        # 0 stands for a text in which no word is known.
        self._ids = {word: i for i, word in enumerate(counts, start=1)}
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self._vectors = torch.nn.EmbeddingBag(len(self._ids) + 1, 50, mode="mean")
            self._linear = torch.nn.Linear(50, classes)
            self._train([self._known(row) for row in words], torch.from_numpy(labels))

    def log_probabilities(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return (m, c) logarithms of what the classifier gives each label."""
        with self._torch.no_grad():
            scores = self._scores([self._known(self._words(text)) for text in texts])
            found: NDArray[np.float64] = scores.double().log_softmax(dim=1).numpy()
        return found

    def _train(self, rows: list[list[int]], labels: Any) -> None:
        torch = self._torch
        weights = [*self._vectors.parameters(), *self._linear.parameters()]
        optimizer = torch.optim.Adam(weights, 0.01)
        for _ in range(40):
            for batch in torch.randperm(len(rows)).split(32):
                scores = self._scores([rows[i] for i in batch.tolist()])
                loss = torch.nn.functional.cross_entropy(scores, labels[batch])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()

    def _scores(self, rows: list[list[int]]) -> Any:
        flat = self._torch.tensor([i for row in rows for i in row])
        starts = np.cumsum([0, *(len(row) for row in rows)])[:-1]
        return self._linear(self._vectors(flat, self._torch.from_numpy(starts)))

    def _words(self, text: str) -> list[str]:
        return [word.lower() for word in self._reader.read_text(text).words]

    def _known(self, words: Sequence[str]) -> list[int]:
        return [self._ids[word] for word in words if word in self._ids] or [0]


class NextWordModel:
    """Learns to predict each word from those before it.

    Args:
        rows: Texts to train with, as words.
        size: How many words to know, the most frequent ones of the texts.
        seed: Of the initial weights and the order of the texts.
    """

    def __init__(self, rows: Sequence[Sequence[str]], size: int, seed: int) -> None:
        self._torch = torch = require("torch", MODELS)
        counts = Counter(chain.from_iterable(rows)).most_common(size - 1)
        self._ids = {word: i for i, (word, _) in enumerate(counts, start=UNKNOWN + 1)}
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self._vectors = torch.nn.Embedding(len(self._ids) + 1, 64)
            self._lstm = torch.nn.LSTM(64, 64, batch_first=True)
            self._linear = torch.nn.Linear(64, len(self._ids) + 1)
            self._train(self._windows(rows))

    def ranks(self, rows: Sequence[Sequence[str]]) -> NDArray[np.int64]:
        """Return for each word that the model knows how many others it thinks likelier."""
        windows = self._windows(rows)
        with self._torch.no_grad():
            scores, truth = self._scores(windows), windows[:, 1:]
            likelier = scores > scores.gather(2, truth.unsqueeze(2))
            found: NDArray[np.int64] = likelier.sum(dim=2)[truth != UNKNOWN].numpy()
        return found

    def _train(self, windows: Any) -> None:
        torch = self._torch
        layers = (self._vectors, self._lstm, self._linear)
        optimizer = torch.optim.Adam(chain.from_iterable(x.parameters() for x in layers), 0.005)
        for _ in range(15):
            for batch in torch.randperm(len(windows)).split(16):
                scores, truth = self._scores(windows[batch]), windows[batch, 1:]
                known = truth != UNKNOWN
                loss = torch.nn.functional.cross_entropy(scores[known], truth[known])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()

    def _scores(self, windows: Any) -> Any:
        return self._linear(self._lstm(self._vectors(windows[:, :-1]))[0])

    def _windows(self, rows: Sequence[Sequence[str]]) -> Any:
        """Cut texts into (k, LENGTH + 1) ids, each of which starts with the word before."""
        ids = [UNKNOWN]
        for row in rows:
            ids += [self._ids.get(word, UNKNOWN) for word in row]
        count = max(1, -(-(len(ids) - 1) // LENGTH))
        flat = np.full(count * LENGTH + 1, UNKNOWN)
        flat[: len(ids)] = ids
        starts = np.arange(count)[:, None] * LENGTH
        return self._torch.from_numpy(flat[starts + np.arange(LENGTH + 1)])
