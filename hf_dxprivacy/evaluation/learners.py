"""Classifiers by which a comparison says what a release is worth: linear ones, or a fine-tuned one.

Each has `features`, which turns texts into rows of features, and `make`, which makes an untrained
classifier of such rows with the methods `fit` and `predict` of scikit-learn.
"""

from collections.abc import Sequence
from tempfile import TemporaryDirectory
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy._runtime import require
from hf_dxprivacy.evaluation.tasks import averaged_vectors
from hf_dxprivacy.results import EXTRA
from hf_dxprivacy.spaces import EmbeddingSpace

# Parts of the rows, each of which is tested by a model that the others trained. A model that takes
# minutes is tested on the first alone.
PARTS = 5
# Of a model that is fine-tuned.
EPOCHS, RATE, BATCH, TOKENS = 3, 1e-4, 16, 128

Ids = NDArray[np.int64]


class Learner(Protocol):
    """See the module."""

    parts: int

    def features(self, texts: Sequence[str]) -> NDArray[Any]:
        """Return a row for each text."""

    def make(self) -> Any:
        """Return an untrained classifier."""


class VectorLearner:
    """Logistic regression on the averaged word vectors of a space."""

    parts = PARTS

    def __init__(self, space: EmbeddingSpace) -> None:
        self._space = space

    def features(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return (m, n) averaged vectors."""
        return averaged_vectors(texts, self._space)

    def make(self) -> Any:
        """Return logistic regression of standardized features."""
        scale = require("sklearn.preprocessing", EXTRA).StandardScaler()
        linear = require("sklearn.linear_model", EXTRA)
        model = linear.LogisticRegression(C=0.01, max_iter=1000)
        return require("sklearn.pipeline", EXTRA).make_pipeline(scale, model)


class _TextLearner:
    """A learner whose features are the texts."""

    def features(self, texts: Sequence[str]) -> NDArray[Any]:
        """Return the texts."""
        return np.array(texts, dtype=object)


class TfidfLearner(_TextLearner):
    """Logistic regression on words and pairs of words, weighted by tf-idf."""

    parts = PARTS

    def make(self) -> Any:
        """Return tf-idf and logistic regression."""
        counts = require("sklearn.feature_extraction.text", EXTRA).TfidfVectorizer(
            ngram_range=(1, 2), sublinear_tf=True
        )
        model = require("sklearn.linear_model", EXTRA).LogisticRegression(C=10.0, max_iter=1000)
        return require("sklearn.pipeline", EXTRA).make_pipeline(counts, model)


class FineTuned(_TextLearner):
    """A model of `transformers`, fine-tuned by its `Trainer`.

    Args:
        model_id: A local folder, or a repository on the Hub.
        classes: How many classes there are.
        seed: Of initial weights and the order of rows.
    """

    parts = 1

    def __init__(self, model_id: str, classes: int, seed: int) -> None:
        self._model_id, self._classes, self._seed = model_id, classes, seed
        self._tokenizer = require("transformers", "models").AutoTokenizer.from_pretrained(model_id)

    def make(self) -> "FineTuned":
        """Return itself: `fit` starts anew."""
        return self

    def fit(self, texts: NDArray[Any], classes: Ids) -> "FineTuned":
        """Fine-tune the model."""
        transformers = require("transformers", "models")
        transformers.set_seed(self._seed)
        model = transformers.AutoModelForSequenceClassification.from_pretrained(
            self._model_id, num_labels=self._classes, ignore_mismatched_sizes=True
        )
        with TemporaryDirectory() as folder:
            arguments = transformers.TrainingArguments(
                output_dir=folder,
                num_train_epochs=EPOCHS,
                per_device_train_batch_size=BATCH,
                per_device_eval_batch_size=4 * BATCH,
                learning_rate=RATE,
                seed=self._seed,
                save_strategy="no",
                report_to="none",
                dataloader_pin_memory=False,
                disable_tqdm=True,
            )
            self._trainer = transformers.Trainer(
                model,
                arguments,
                train_dataset=self._inputs(texts, classes),
                processing_class=self._tokenizer,
            )
            self._trainer.train()
        return self

    def predict(self, texts: NDArray[Any]) -> Ids:
        """Return the likeliest class of each text."""
        found = self._trainer.predict(self._inputs(texts, np.zeros(len(texts), dtype=np.int64)))
        return np.asarray(found.predictions.argmax(axis=1))

    def _inputs(self, texts: NDArray[Any], classes: Ids) -> Any:
        from datasets import Dataset

        encoded = self._tokenizer(texts.tolist(), truncation=True, max_length=TOKENS)
        return Dataset.from_dict({**encoded, "labels": classes.tolist()})


def create_learner(model: str | None, space: EmbeddingSpace, classes: int, seed: int) -> Learner:
    """Return the learner of a name.

    Args:
        model: "vectors", "tfidf", or a model of `transformers`: a folder or a repository. None is
            "vectors" in a Euclidean space and "tfidf" elsewhere.
        space: Whose vectors are averaged.
        classes: How many classes there are.
        seed: Of training.
    """
    name = model or ("vectors" if space.metric == "euclidean" else "tfidf")
    if name == "vectors":
        return VectorLearner(space)
    return TfidfLearner() if name == "tfidf" else FineTuned(name, classes, seed)
