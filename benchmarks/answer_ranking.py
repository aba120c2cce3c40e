"""Answers to questions about insurance, found by privatized questions: MAP and MRR.

    python benchmarks/answer_ranking.py --minilm --json ranking.json    measure, five minutes
    python benchmarks/answer_ranking.py --page ranking.json             put the table on the page

After the third task of Feyisetan et al. (WSDM 2020). The pairs of InsuranceQA V1: each test
question is asked of its own answers among 500; the others are drawn from 2,000 of all answers, the
same for every release. Questions are released, answers are public. The first readers rank the
answers of a released question; the last is trained on released questions and asked with plain ones:

    TF-IDF     cosine of words weighted by how rare they are in the answers
    GloVe      cosine of mean vectors of GloVe, words weighted likewise
    MiniLM     with --minilm: cosine of all-MiniLM-L6-v2 (22 million parameters), of 128 tokens
    learned    cosine after a linear map of questions to answers (ridge regression, on GloVe)
"""

import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfVectorizer

import common
from hf_dxprivacy import DxPrivatizer, EmbeddingSpace
from hf_dxprivacy.evaluation.task_versions import random_words
from hf_dxprivacy.results import mean_interval
from hf_dxprivacy.sentences import TransformersEncoder
from released_words import lower, words_of
from sentence_library import minilm_folder

PAGE = common.HERE.parent / "docs" / "results" / "utility.md"
SPACE = "english"
# ε at which about a tenth, a third and more than a half of the words stay; and λ.
EPSILONS: dict[str, tuple[float, ...]] = {
    "laplace": (18, 24, 36),
    "mahalanobis": (18, 24, 36),
    "tem": (8, 10, 14),
    "calibrated": (6, 8, 10),
    "hierarchical": (1.25, 1.5, 2.0),
}
OPTIONS = {"mahalanobis": {"lam": 1.0}}
# Of the answers that are ranked, which have nothing to hide. Releases are fresh.
SEED, POOL, OTHERS, PAIRS = 20260101, 500, 2000, 1200
RIDGE = 0.1

Floats = NDArray[np.float64]
Ranker = Callable[[Sequence[str]], Floats]


class Insurance:
    """Test questions with their pools of answers, and questions to train with."""

    def __init__(self, data: Path, questions: int) -> None:
        rows = common.jsonl(data / "utility" / "insuranceqa_pairs.jsonl.gz")
        right: dict[str, dict[str, set[str]]] = {
            "test": defaultdict(set),
            "validation": defaultdict(set),
        }
        for row in rows:
            if row["label"] == "relevant":
                right[row["split"]][row["text1"]].add(row["text2"])
        rng = np.random.default_rng(SEED)
        everything = sorted(right["test"])
        chosen = rng.permutation(len(everything))[:questions]
        self.questions = [everything[at] for at in np.sort(chosen)]
        # Some questions are in both parts, with other answers.
        known = {q: right["test"][q] | right["validation"].get(q, set()) for q in self.questions}
        others = rng.permutation(sorted({row["text2"] for row in rows}))[:OTHERS].tolist()
        self.answers, self.pools, self.right = [], [], []
        place: dict[str, int] = {}
        for question in self.questions:
            own = sorted(right["test"][question])
            drawn = (others[at] for at in rng.permutation(len(others)))
            pool = own + [text for text in drawn if text not in known[question]][: POOL - len(own)]
            self.pools.append([place.setdefault(text, len(place)) for text in pool])
            self.right.append(len(own))
        self.answers = list(place)
        pairs = [
            (question, answer)
            for question, own in sorted(right["validation"].items())
            if question not in known
            for answer in sorted(own)
        ]
        some = np.sort(rng.permutation(len(pairs))[:PAIRS])
        self.asked, self.answered = map(list, zip(*(pairs[at] for at in some), strict=True))

    def scores(self, ranker: Ranker, released: Sequence[str]) -> tuple[Floats, Floats]:
        """Return average precision and reciprocal rank for each question."""
        found = ranker(released)
        values = []
        for row, pool, right in zip(found, self.pools, self.right, strict=True):
            cells = row[pool]
            # Ties count as far down as they may be: no words in common is no answer.
            ranks = np.sort([(cells[right:] >= own).sum() for own in cells[:right]])
            ranks = ranks + np.arange(1, right + 1)
            values.append((np.mean(np.arange(1, right + 1) / ranks), 1.0 / ranks[0]))
        precision, reciprocal = np.array(values).T
        return precision, reciprocal


class Readers:
    """Ways of ranking the answers of a dataset."""

    def __init__(self, insurance: Insurance, glove: EmbeddingSpace, minilm: bool) -> None:
        self.plain = {"TF-IDF": self.tf_idf, "GloVe": self.by_means}
        if minilm:
            self.plain["MiniLM"] = self.by_minilm
        self.insurance, self.glove = insurance, glove
        self.idf = TfidfVectorizer(analyzer=split)
        self._answers = self.idf.fit_transform(insurance.answers)
        ids = glove.ids(self.idf.get_feature_names_out())
        kept = np.flatnonzero(ids >= 0)
        chosen = scipy.sparse.csr_matrix(
            (np.ones(len(kept)), (kept, ids[kept])), (len(ids), len(glove))
        )
        self._vectors = chosen @ glove.vectors.astype(np.float64)
        self._means = units(self._answers @ self._vectors)

    def tf_idf(self, texts: Sequence[str]) -> Floats:
        """Return cosines of weighted words."""
        found: Floats = (self.idf.transform(texts) @ self._answers.T).toarray()
        return found

    def means(self, texts: Sequence[str]) -> Floats:
        """Return mean vectors of length 1."""
        return units(self.idf.transform(texts) @ self._vectors)

    def by_means(self, texts: Sequence[str]) -> Floats:
        """Return cosines of mean vectors."""
        return self.means(texts) @ self._means.T

    @cached_property
    def _minilm(self) -> tuple[TransformersEncoder, Floats]:
        encoder = TransformersEncoder(minilm_folder(), max_tokens=128)
        return encoder, encoder.encode_public(self.insurance.answers)

    def by_minilm(self, texts: Sequence[str]) -> Floats:
        """Return cosines of MiniLM."""
        encoder, answers = self._minilm
        return encoder.encode_public(texts) @ answers.T

    def learned(self, asked: Sequence[str]) -> Ranker:
        """Return cosines after a map that is learned from questions and their answers."""
        x, y = self.means(asked), self.means(self.insurance.answered)
        left, right = x.mean(axis=0), y.mean(axis=0)
        gram = (x - left).T @ (x - left) + RIDGE * np.eye(x.shape[1])
        weights = np.linalg.solve(gram, (x - left).T @ (y - right))
        answers = units(self._means - right)
        return lambda texts: units((self.means(texts) - left) @ weights) @ answers.T


def split(text: str) -> list[str]:
    """Return the words of a text in lower case."""
    return lower(words_of([text]))[0]


def units(rows: Floats) -> Floats:
    """Return rows of length 1, or 0."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    result: Floats = rows / np.where(lengths > 0, lengths, 1.0)
    return result


def measured(
    title: str, epsilon: str, readers: Readers, privatizer: DxPrivatizer | None, releases: int
) -> dict[str, Any]:
    """Return a row: the share of the words that stay, and MAP and MRR by reader."""
    insurance, stayed = readers.insurance, []
    scores: dict[str, list[tuple[Floats, Floats]]] = defaultdict(list)
    plain = words_of(insurance.questions)
    for _ in range(releases if privatizer else 1):
        asked, trained = insurance.questions, insurance.asked
        if privatizer:
            asked, trained = privatizer.privatize(asked), privatizer.privatize(trained)
        pairs = zip(lower(plain), lower(words_of(asked)), strict=True)
        # A release has as many words, but where it is split otherwise.
        same = [np.equal(a, b).mean() for a, b in pairs if len(a) == len(b)]
        stayed.append(np.mean(same))
        for name, ranker in readers.plain.items():
            scores[name].append(insurance.scores(ranker, asked))
        learned = insurance.scores(readers.learned(trained), insurance.questions)
        scores["learned"].append(learned)
    row: dict[str, Any] = {"mechanism": title, "ε": epsilon, "stay": f"{np.mean(stayed):.2f}"}
    for name, found in scores.items():
        # The mean over the releases of each question, and the interval over the questions.
        for number, measure in enumerate(("MAP", "MRR")):
            interval = mean_interval(np.mean([each[number] for each in found], axis=0))
            half = (interval.high - interval.low) / 2
            row[f"{name} {measure}"] = f"{interval.value:.3f} ± {half:.3f}"
    print(row, flush=True)
    return row


def main() -> None:
    """Measure, or render."""
    arguments = common.parser(__doc__)
    arguments.add_argument("--questions", type=int, default=400, help="test questions asked")
    arguments.add_argument("--releases", type=int, default=2, help="releases of each")
    arguments.add_argument("--minilm", action="store_true", help="read with MiniLM too")
    arguments.add_argument("--mechanisms", nargs="*", choices=EPSILONS, default=list(EPSILONS))
    arguments.add_argument("--page", type=Path, help="JSON of an earlier run to render")
    options = arguments.parse_args()
    if options.page is not None:
        rows = json.loads(options.page.read_text("utf-8"))["rows"]
        name = "ranking: made by benchmarks/answer_ranking.py"
        common.write_into(PAGE, name, common.markdown(rows))
        return
    insurance = Insurance(options.data, options.questions)
    print(
        f"{len(insurance.questions):,} questions, {len(insurance.answers):,} answers, "
        f"{len(insurance.asked):,} pairs to train with",
        flush=True,
    )
    readers = Readers(insurance, common.glove(options.data), options.minilm)
    space = EmbeddingSpace.from_pretrained(SPACE)
    rows = [measured("original", "", readers, None, 1)]
    rows.append(measured("random", "", readers, random_words(space), options.releases))
    for mechanism in options.mechanisms:
        own = OPTIONS.get(mechanism, {})
        for epsilon in EPSILONS[mechanism]:
            privatizer = DxPrivatizer(space, mechanism, epsilon, **own)
            name = mechanism + "".join(f", λ = {lam:g}" for lam in own.values())
            rows.append(measured(name, f"{epsilon:g}", readers, privatizer, options.releases))
    common.report("Answers to insurance questions by privatized questions", rows, options.json)


if __name__ == "__main__":
    main()
