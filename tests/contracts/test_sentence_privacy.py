"""The guarantee of whole sentences, from exact laws: 200 × 200 private texts, every output."""

import random

import numpy as np
import pytest

from hf_dxprivacy import SentencePool, SentencePrivatizer
from hf_dxprivacy.mechanisms import ExactMechanism
from small_pools import SENTENCES, SUBJECTS, small_pool

MECHANISMS = ("hierarchical", "calibrated", "tem", "krr")
EPSILONS = {"hierarchical": 1.3, "calibrated": 3.0, "tem": 3.0, "krr": 2.0}
TEXTS = 200


def private_texts() -> list[str]:
    """Empty ones, other scripts, emoji, one letter, very long ones, and some about the subjects."""
    rng = random.Random(20)
    words = sorted({word for sentence in SENTENCES for word in sentence.split()})
    odd = ["", " \n", "x", "7", "日本語だけ", "Привет, мир!", "🎉🎉", "\x00", "ﬁ", "..."]
    odd += ["soup " * 20_000, "zork " * 500, " ".join(words), "SOUP!!!", "the\nsoup\twas"]
    while len(odd) < TEXTS:
        odd.append(" ".join(rng.choices(words, k=rng.randint(1, 30))))
    return odd


@pytest.fixture(scope="module")
def union() -> SentencePool:
    """Two pools of one encoder as one."""
    first = small_pool()
    more = [f"{word} and {other} again" for word in SUBJECTS for other in ("city", "film", "soup")]
    second = SentencePool.from_sentences(
        more, first, labels=[word for word in SUBJECTS for _ in range(3)], progress=False
    )
    return SentencePool.union([first, second], progress=False)


def distances(pool: SentencePool, mechanism: str, entries: list[int]) -> np.ndarray:
    """Return d of all pairs of entries, apart from the code of the mechanism."""
    if mechanism == "krr":
        return np.not_equal.outer(entries, entries).astype(float)
    if mechanism == "hierarchical":
        tree = pool.space.hierarchy
        assert tree is not None
        clusters = [frozenset(tree.members(c).tolist()) for c in range(len(tree.sizes))]

        def common(a: int, b: int) -> int:
            if a == b:
                return 1
            if min(a, b) < 0:
                return len(tree) + 1
            return min(len(c) for c in clusters if a in c and b in c)

        return np.log([[common(a, b) for b in entries] for a in entries])
    vectors = pool.space.vectors.astype(float)
    points = np.array([vectors.mean(axis=0) if e < 0 else vectors[e] for e in entries])
    return np.linalg.norm(points[:, None] - points[None], axis=2)


def check(
    privatizer: SentencePrivatizer, pool: SentencePool, law: object, texts: list[str]
) -> None:
    """Compare all log-ratios with ε·d, with `bound` and with the local bound."""
    assert isinstance(law, ExactMechanism)
    entries, places = np.unique(pool.look_up(texts), return_inverse=True)
    assert len(entries) > 3
    logs = np.log(law.probabilities(entries))
    largest = np.abs(logs[:, None] - logs[None]).max(axis=2)
    allowed = privatizer.epsilon * distances(pool, law.name, entries.tolist())
    assert (largest <= allowed + 1e-8).all()
    assert largest.max() <= privatizer.guarantee.ldp_epsilon * (1 + 1e-12)
    # It is not that nothing is released: some pair needs most of what it may.
    assert (largest[allowed > 0] / allowed[allowed > 0]).max() > 0.5
    for i, j in zip(*np.triu_indices(len(entries)), strict=True):
        assert largest[i, j] <= law.id_bound(entries[[i]], entries[[j]]) + 1e-8
    # What `bound` says of texts is that of their entries.
    rng, label = random.Random(1), (pool.labels or ("",))[0]
    for _ in range(50):
        a, b = (rng.randrange(len(texts)) for _ in range(2))
        pair: list[object] = [texts[a], texts[b]]
        if privatizer.label_column:
            pair = [{"text": text, "topic": label} for text in pair]
        expected = law.id_bound(entries[[places[a]]], entries[[places[b]]])
        assert privatizer.guarantee.bound(*pair) == pytest.approx(expected)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_every_output_of_every_pair_of_texts(union: SentencePool, mechanism: str) -> None:
    texts = private_texts()
    assert len(texts) == TEXTS
    for pool in (small_pool(), union):
        privatizer = SentencePrivatizer(pool, mechanism, EPSILONS[mechanism])
        check(privatizer, pool, privatizer.mechanism, texts)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_every_output_within_a_label(union: SentencePool, mechanism: str) -> None:
    """A text of a label becomes a sentence of that label only, at most e^(ε·d) times as likely."""
    privatizer = SentencePrivatizer(union, mechanism, EPSILONS[mechanism], label_column="topic")
    for label in SUBJECTS:
        part = union.with_label(label)
        check(privatizer, part, privatizer._parts[label][1], private_texts())
        released = privatizer({"text": private_texts(), "topic": [label] * TEXTS})["text"]
        assert {*released} <= {*part.sentences}
        assert len({*released}) > 2
    bound = privatizer.guarantee.bound
    one, other = {"text": "soup", "topic": "soup"}, {"text": "soup", "topic": "film"}
    assert bound(one, other) == np.inf
    assert bound(one, one) == 0.0
