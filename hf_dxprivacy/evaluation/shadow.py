"""Attacks with shadow models: membership inference, and the user-level audit of a text model.

One half of the candidates trains a shadow model, whose members the attacker knows; with it
the attacker learns to attack a target model that the other half trained.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy._runtime import require
from hf_dxprivacy.errors import InvalidValueError, require_at_least
from hf_dxprivacy.randomness import process_generator
from hf_dxprivacy.results import EXTRA, Result, Results, mean_interval
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


class ShadowModel(NamedTuple):
    """A model, seen through its outputs: (m, f) for m candidates, and which of them trained it."""

    features: NDArray[np.float64]
    member: NDArray[np.bool_]


def require_aligned(**columns: int) -> None:
    """Require columns of the same length."""
    if len(set(columns.values())) > 1:
        lengths = ", ".join(f"{name}: {length}" for name, length in columns.items())
        raise InvalidValueError(f"expected columns of the same length, got {lengths}")


def _attack_models(
    task: str,
    metrics: Sequence[str],
    count: int,
    repeats: int,
    rng: np.random.Generator,
    look: Look,
    attack: Callable[[ShadowModel, ShadowModel], tuple[float, ...]],
) -> Results:
    """Train a model on a half of each half of the candidates, and attack each with the other.

    Either half serves as the shadow, whose members the attacker knows, of the other once.
    """
    rounds = []
    for _ in range(repeats):
        quarters = np.array_split(rng.permutation(count), 4)
        one, other = (
            ShadowModel(look(*half), np.repeat([True, False], [len(part) for part in half]))
            for half in (quarters[:2], quarters[2:])
        )
        rounds.append(np.mean([attack(one, other), attack(other, one)], axis=0))
    return Results(
        Result.of(task, metric, mean_interval(values), repeats)
        for metric, values in zip(metrics, np.transpose(rounds), strict=True)
    )


def _library_seed(rng: np.random.Generator) -> int:
    """Draw a seed for a library that has generators of its own."""
    return int(rng.integers(1 << 31))


def membership_inference(
    originals: Sequence[str],
    released: Sequence[str],
    labels: Sequence[str | int],
    *,
    repeats: int = 5,
    rng: np.random.Generator | None = None,
) -> Results:
    """Infer which texts a classifier was trained on, from its outputs for the originals.

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
    require_at_least(2, classes=len(names))
    rng = rng or process_generator()
    truth = np.eye(len(names))[classes]

    def look(members: Indices, others: Indices) -> NDArray[np.float64]:
        texts = [released[i] for i in members.tolist()]
        classify = train_classifier(texts, classes[members], len(names), _library_seed(rng))
        asked = np.concatenate([members, others])
        said = classify([originals[i] for i in asked.tolist()])
        return np.column_stack([said, truth[asked]])

    def attack(shadow: ShadowModel, target: ShadowModel) -> tuple[float, float]:
        # Early stopping keeps the attacker from overfitting as well.
        attacker = require("sklearn.neural_network", EXTRA).MLPClassifier(
            (64, 64), early_stopping=True, max_iter=1000, random_state=_library_seed(rng)
        )
        scale = require("sklearn.preprocessing", EXTRA).StandardScaler().fit(shadow.features)
        attacker.fit(scale.transform(shadow.features), shadow.member)
        scores = attacker.predict_proba(scale.transform(target.features))[:, 1]
        area = require("sklearn.metrics", EXTRA).roc_auc_score(target.member, scores)
        said, right = np.split(target.features[~target.member], 2, axis=1)
        return float(area), float(np.mean(said.argmax(axis=1) == right.argmax(axis=1)))

    metrics = ("AUC", "target accuracy")
    return _attack_models("membership", metrics, len(classes), repeats, rng, look, attack)


def user_audit(
    originals: Sequence[str],
    released: Sequence[str],
    users: Sequence[str],
    *,
    repeats: int = 3,
    vocabulary: int = 2000,
    rng: np.random.Generator | None = None,
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

    Returns:
        "precision", "recall" and "accuracy" of the auditor's decisions, and the "AUC".

    Raises:
        InvalidValueError: If lengths differ or there are too few users.
        MissingExtraError: If torch or scikit-learn is not installed.
    """
    require_aligned(originals=len(originals), released=len(released), users=len(users))
    require_at_least(1, repeats=repeats)
    require_at_least(2, vocabulary=vocabulary)
    require_at_least(4, "half of them are members", users=len(set(users)))
    rng = rng or process_generator()
    written, seen = _by_user(originals, users), _by_user(released, users)

    def look(members: Indices, others: Indices) -> NDArray[np.float64]:
        rows = [row for user in members.tolist() for row in seen[user]]
        ranks = train_next_word(rows, vocabulary, _library_seed(rng))
        features = []
        for user in np.concatenate([members, others]).tolist():
            found = ranks(written[user])
            # The shares of ranks 0, 1–2, 3–6, 7–14 and so on.
            steps = np.log2(found + 1).astype(np.int64)
            counts = np.bincount(steps, minlength=vocabulary.bit_length() + 1)
            features.append(counts / max(1, len(found)))
        return np.array(features)

    def attack(shadow: ShadowModel, target: ShadowModel) -> tuple[float, ...]:
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

    metrics = ("precision", "recall", "accuracy", "AUC")
    return _attack_models("user audit", metrics, len(written), repeats, rng, look, attack)


def _by_user(texts: Sequence[str], users: Sequence[str]) -> list[list[list[str]]]:
    """Return the words of each text of each user, the users in order."""
    rows = defaultdict(list)
    for words, user in zip(_words(texts), users, strict=True):
        rows[user].append(words)
    return [rows[user] for user in sorted(rows)]


def _words(texts: Sequence[str]) -> list[list[str]]:
    reader = RowReader()
    return [[word.lower() for word in reader.read_text(text).words] for text in texts]


def _train(
    torch: Any, layers: Sequence[Any], rate: float, epochs: int, rows: int, size: int, loss: Any
) -> None:
    """Minimise a loss of batches of `size` rows by Adam."""
    weights = [weight for layer in layers for weight in layer.parameters()]
    optimizer = torch.optim.Adam(weights, rate)
    for _ in range(epochs):
        for batch in torch.randperm(rows).split(size):
            optimizer.zero_grad()
            loss(batch).backward()
            optimizer.step()


def train_classifier(
    texts: Sequence[str], labels: NDArray[np.int64], classes: int, seed: int
) -> Callable[[Sequence[str]], NDArray[np.float64]]:
    """Learn word vectors, averaged over a text, and a linear layer, with (m,) labels from 0.

    Returns:
        From n texts to (n, classes) logarithms of what the classifier gives each label.
    """
    torch, words = require("torch", MODELS), _words(texts)
    # 0 stands for a text in which no word is known.
    ids = {word: i for i, word in enumerate(dict.fromkeys(chain.from_iterable(words)), start=1)}

    def known(rows: list[list[str]]) -> list[list[int]]:
        return [[ids[word] for word in row if word in ids] or [0] for row in rows]

    def scores(rows: list[list[int]]) -> Any:
        starts = torch.from_numpy(np.cumsum([0, *map(len, rows)])[:-1])
        return linear(vectors(torch.tensor([*chain.from_iterable(rows)]), starts))

    def loss(batch: Any) -> Any:
        found = scores([rows[i] for i in batch.tolist()])
        return torch.nn.functional.cross_entropy(found, truth[batch])

    def log_probabilities(texts: Sequence[str]) -> NDArray[np.float64]:
        with torch.no_grad():
            found = scores(known(_words(texts))).double().log_softmax(dim=1)
        return np.asarray(found)

    rows, truth = known(words), torch.from_numpy(labels)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        vectors = torch.nn.EmbeddingBag(len(ids) + 1, 50, mode="mean")
        linear = torch.nn.Linear(50, classes)
        _train(torch, (vectors, linear), 0.01, 40, len(rows), 32, loss)
    return log_probabilities


def train_next_word(
    rows: Sequence[Sequence[str]], size: int, seed: int
) -> Callable[[Sequence[Sequence[str]]], NDArray[np.int64]]:
    """Learn to predict each word of texts from those before it, for the `size` most frequent ones.

    Returns:
        From texts, as words, to (n,) how many other words the model thinks likelier than each of
        the n words that it knows.
    """
    torch = require("torch", MODELS)
    counts = Counter(chain.from_iterable(rows)).most_common(size - 1)
    ids = {word: i for i, (word, _) in enumerate(counts, start=UNKNOWN + 1)}

    def windows(rows: Sequence[Sequence[str]]) -> Any:
        """Cut texts into (k, LENGTH + 1) ids, each of which starts with the word before."""
        words = [UNKNOWN, *(ids.get(word, UNKNOWN) for word in chain.from_iterable(rows))]
        count = max(1, -(-(len(words) - 1) // LENGTH))
        flat = np.full(count * LENGTH + 1, UNKNOWN)
        flat[: len(words)] = words
        starts = np.arange(count)[:, None] * LENGTH
        return torch.from_numpy(flat[starts + np.arange(LENGTH + 1)])

    def scores(part: Any) -> Any:
        return linear(lstm(vectors(part[:, :-1]))[0])

    def loss(batch: Any) -> Any:
        truth = read[batch, 1:]
        known = truth != UNKNOWN
        return torch.nn.functional.cross_entropy(scores(read[batch])[known], truth[known])

    def ranks(rows: Sequence[Sequence[str]]) -> NDArray[np.int64]:
        asked = windows(rows)
        with torch.no_grad():
            found, truth = scores(asked), asked[:, 1:]
            likelier = found > found.gather(2, truth.unsqueeze(2))
        return np.asarray(likelier.sum(dim=2)[truth != UNKNOWN])

    read = windows(rows)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        vectors = torch.nn.Embedding(len(ids) + 1, 64)
        lstm = torch.nn.LSTM(64, 64, batch_first=True)
        linear = torch.nn.Linear(64, len(ids) + 1)
        _train(torch, (vectors, lstm, linear), 0.005, 15, len(read), 16, loss)
    return ranks
