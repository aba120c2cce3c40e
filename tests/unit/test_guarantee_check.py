"""`verify_guarantee` and `verify_workers`: what they compare, refuse and print."""

import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError
from hf_dxprivacy.mechanisms import (
    CalibratedExponential,
    MultivariateLaplace,
    TruncatedExponential,
    create_mechanism,
)
from hf_dxprivacy.mechanisms.exponential import ExponentialMechanism
from hf_dxprivacy.privatizers.text_privatizer import DxPrivatizer
from hf_dxprivacy.randomness import keyed_generator
from hf_dxprivacy.spaces import EmbeddingSpace
from hf_dxprivacy.verify import exact, inputs
from hf_dxprivacy.verify import laws as verify
from hf_dxprivacy.verify.check import GuaranteeCheck
from hf_dxprivacy.verify.inputs import UNKNOWN, chosen_inputs, pairs_to_compare
from hf_dxprivacy.verify.laws import verify_guarantee
from hf_dxprivacy.verify.workers import verify_workers

SIZE = 120


@pytest.fixture(autouse=True)
def _few_statements(monkeypatch: pytest.MonkeyPatch) -> None:
    # What a mechanism states of pairs is tested in tests/statistical/test_guarantee_controls.py.
    monkeypatch.setattr(exact, "COMPARED", 20)
    monkeypatch.setattr(verify, "COMPARED", 20)


@pytest.fixture(scope="module", params=["euclidean", "poincare"])
def space(request: pytest.FixtureRequest) -> EmbeddingSpace:
    whole = request.getfixturevalue(f"{request.param}_space")
    return EmbeddingSpace.from_vectors(
        whole.words[:SIZE], whole.vectors[:SIZE], whole.metric, whole.scale
    )


def naive(mechanism: ExponentialMechanism) -> tuple[float, float]:
    """Return the largest share of ε·d_γ among all triples, and the log-ratio there."""
    inputs = np.append(np.arange(len(mechanism.space)), -1)
    logs = np.log(mechanism.probabilities(inputs))
    best = (0.0, 0.0)
    for row in inputs:
        distances = mechanism.pair_distances(np.full_like(inputs, row), inputs)
        ratios = np.abs(logs[row] - logs).max(axis=1)
        shares = np.divide(
            ratios, mechanism.epsilon * distances, where=distances > 0, out=0 * ratios
        )
        best = max(best, (float(shares.max()), float(ratios[shares.argmax()])))
    return best


# Exact


@pytest.mark.parametrize("name", ["tem", "calibrated"])
@pytest.mark.parametrize("epsilon", [0.5, 4.0])
@pytest.mark.parametrize("small", [0, 640], ids=["two outputs", "all outputs"])
def test_exact_check_finds_the_worst_triple(
    space: EmbeddingSpace,
    name: str,
    epsilon: float,
    small: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mechanism = create_mechanism(name, space, epsilon)
    assert isinstance(mechanism, ExponentialMechanism)
    monkeypatch.setattr(exact, "SMALL", small)
    found = verify_guarantee(mechanism)
    share, log_ratio = naive(mechanism)
    assert found.passed
    assert found.log_ratio == pytest.approx(log_ratio)
    assert found.log_ratio / found.allowed == pytest.approx(share, rel=1e-6)
    assert found.slack == found.allowed - found.log_ratio
    assert (found.inputs, found.pairs) == (SIZE + 1, (SIZE + 1) * SIZE // 2)
    assert (found.draws, found.false_alarm_rate) == (0, 0.0)
    # The certificate, which this does not use, is an upper bound of it, and a close one.
    assert share <= mechanism.exact_epsilon() / epsilon <= share * (1 + 1e-5)


@pytest.mark.parametrize("rows", [7, 70])
def test_blocks_do_not_change_the_worst_triple(
    space: EmbeddingSpace, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    mechanism = TruncatedExponential(space, 2.0)
    whole = verify_guarantee(mechanism)
    monkeypatch.setattr(inputs, "BLOCK_BYTES", 8 * SIZE * rows)
    found = verify_guarantee(mechanism)
    assert (found.worst, found.outputs) == (whole.worst, whole.outputs)
    monkeypatch.setattr(exact, "SMALL", 0)
    found = verify_guarantee(mechanism)
    assert (found.worst, found.outputs) == (whole.worst, whole.outputs)


def test_printed_probabilities_are_those_of_the_mechanism(space: EmbeddingSpace) -> None:
    mechanism = CalibratedExponential(space, 2.0)
    found = verify_guarantee(mechanism)
    first, second = mechanism.probabilities(space.ids(found.worst))
    (output,) = space.ids(found.outputs)
    assert math.log(first[output] / second[output]) == pytest.approx(found.log_ratio)
    assert mechanism.word_bound(*found.worst) == pytest.approx(found.allowed)


def test_the_unknown_word_is_an_input() -> None:
    """On a ring all words have one normaliser, and the worst pair is with the centroid."""
    angles = 2 * np.pi * np.arange(60) / 60
    ring = 0.6 * np.column_stack([np.cos(angles), np.sin(angles)])
    mechanism = TruncatedExponential(
        EmbeddingSpace.from_vectors([f"w{k}" for k in range(60)], ring), 2.0
    )
    assert UNKNOWN in verify_guarantee(mechanism).worst


def test_equal_words_may_not_differ_at_all() -> None:
    vectors = np.random.default_rng(3).normal(size=(30, 2))
    vectors[10:20] = vectors[:10]
    space = EmbeddingSpace.from_vectors([f"w{k}" for k in range(30)], vectors)
    assert verify_guarantee(TruncatedExponential(space, 2.0)).passed

    class NamesMatter(TruncatedExponential):
        def probabilities(self, ids: Any) -> np.ndarray:
            laws = super().probabilities(ids)
            laws[np.asarray(ids) >= 15, 0] *= 1.001
            return laws / laws.sum(axis=1, keepdims=True)

    found = verify_guarantee(NamesMatter(space, 2.0))
    assert not found.passed
    assert found.allowed == 0.0


def test_a_sample_of_inputs_says_so(euclidean_space: EmbeddingSpace) -> None:
    mechanism = TruncatedExponential(euclidean_space, 2.0)
    found = verify_guarantee(mechanism, inputs=40, rng=keyed_generator(0))
    assert found.passed
    assert 20 <= found.inputs <= 41
    assert f"{found.inputs - 1} of 500 words and the unknown word, all outputs" in str(found)


def test_another_law_is_not_judged_by_two_outputs(
    euclidean_space: EmbeddingSpace, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Mixed(TruncatedExponential):
        def probabilities(self, ids: Any) -> np.ndarray:
            return 0.999 * super().probabilities(ids) + 0.001 / len(self.space)

    assert verify_guarantee(Mixed(euclidean_space, 2.0)).passed
    monkeypatch.setattr(exact, "SMALL", 0)
    with pytest.raises(InvalidValueError, match=r"off by up to .*pass inputs="):
        verify_guarantee(Mixed(euclidean_space, 2.0))
    assert verify_guarantee(Mixed(euclidean_space, 2.0), inputs=30).passed


@pytest.mark.parametrize("value", [np.nan, 0.0, -1e-3, 0.01])
def test_what_is_no_law_is_not_judged(euclidean_space: EmbeddingSpace, value: float) -> None:
    class Lawless(TruncatedExponential):
        def probabilities(self, ids: Any) -> np.ndarray:
            return np.full_like(super().probabilities(ids), value)

    with pytest.raises(InvalidValueError, match="'tem' that are not below 0 and add up to 1"):
        verify_guarantee(Lawless(euclidean_space, 2.0))


# Inputs and pairs


def test_chosen_inputs_are_sparse_dense_and_near(euclidean_space: EmbeddingSpace) -> None:
    chosen = chosen_inputs(TruncatedExponential(euclidean_space, 2.0), 60, keyed_generator(1))
    assert 30 <= len(chosen) <= 60
    assert (np.diff(chosen) > 0).all()
    distances = euclidean_space.distances(np.arange(500))
    np.fill_diagonal(distances, np.inf)
    reach = distances.min(axis=1)
    assert reach[chosen].min() <= np.quantile(reach, 0.01)
    assert reach[chosen].max() >= np.quantile(reach, 0.98)
    with_nearest = np.isin(distances[chosen].argmin(axis=1), chosen)
    assert with_nearest.mean() >= 0.5
    everything = chosen_inputs(TruncatedExponential(euclidean_space, 2.0), 500, keyed_generator(1))
    np.testing.assert_array_equal(everything, np.arange(500))


def test_pairs_are_near_far_and_random() -> None:
    places = np.array([0.0, 0.1, 1.0, 1.3, 4.0, 50.0])
    allowed = np.abs(places[:, None] - places)
    pairs = {tuple(pair) for pair in pairs_to_compare(allowed, 5.0, keyed_generator(2)).tolist()}
    assert {(0, 1), (2, 3), (0, 4)} <= pairs
    assert not any(5 in pair for pair in pairs), "no number of draws like this shows e^46"
    assert all(i < j for i, j in pairs)
    with pytest.raises(InvalidValueError, match=r"ε·d of at most 0\.05, .* got none"):
        pairs_to_compare(allowed, 0.05, keyed_generator(2))


# Callables


def test_batched_and_single_callables_are_the_same_to_it() -> None:
    rng = np.random.default_rng(4)

    def flip(word: str) -> str:
        return word if rng.random() < 0.75 else {"a": "b", "b": "a"}[word]

    def claim(a: str, b: str) -> float:
        return 1.5 * (a != b)

    single = verify_guarantee(flip, ["a", "b"], claim, batched=False, draws=20_000)
    many = verify_guarantee(lambda ws: [flip(w) for w in ws], ["a", "b", "a"], claim, draws=20_000)
    for found in (single, many):
        assert found.passed
        assert found.log_ratio == pytest.approx(math.log(3), abs=0.3)
        assert (found.inputs, found.pairs) == (2, 1)
    assert not verify_guarantee(
        flip, ["a", "b"], lambda a, b: 0.9 * (a != b), batched=False, draws=20_000
    ).passed


def test_words_beyond_the_number_of_inputs_are_sampled() -> None:
    asked: set[str] = set()

    def constant(words: list[str]) -> list[str]:
        asked.update(words)
        return ["x"] * len(words)

    words = [f"w{k}" for k in range(50)]
    found = verify_guarantee(constant, words, lambda a, b: 1.0, inputs=12, draws=5_000)
    assert found.passed
    assert found.inputs == len(asked) == 12


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        (lambda words: words[:-1], InvalidValueError, "one output for each of 200 words, got 199"),
        (lambda words: "a", InvalidTypeError, r"into a list, got a str; pass batched=False"),
        (lambda words: [1] * len(words), InvalidTypeError, "to be a word, a string"),
    ],
)
def test_callables_that_return_something_else_are_refused(
    answer: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        verify_guarantee(answer, ["a", "b"], lambda a, b: 1.0, draws=400)


# What does not go together


def test_refusals(euclidean_space: EmbeddingSpace) -> None:
    laplace = MultivariateLaplace(euclidean_space, 3.0)
    tem = TruncatedExponential(euclidean_space, 3.0)

    def keep(words: Sequence[str]) -> Sequence[str]:
        return words

    cases: list[tuple[Any, tuple[Any, ...], dict[str, Any], type[Exception], str]] = [
        (laplace, (["a", "b"],), {}, InvalidTypeError, "has its own words and bound"),
        (tem, (None, max), {}, InvalidTypeError, "has its own words and bound"),
        (laplace, (), {"method": "exact"}, InvalidTypeError, "knows its probabilities"),
        (laplace, (), {"method": "guess"}, InvalidValueError, "expected method to be one of"),
        (laplace, (), {"alpha": 0.0}, InvalidValueError, "0.0 < alpha < 1.0"),
        (laplace, (), {"draws": 0}, InvalidValueError, "draws >= 1"),
        (laplace, (), {"inputs": 1}, InvalidValueError, "inputs >= 2"),
        (laplace, (), {"draws": 1000}, InvalidValueError, r"draws >= \d+ for \d+ inputs, got"),
        (keep, (), {}, InvalidTypeError, "callable with words= and bound="),
        ("tem", (["a", "b"], max), {}, InvalidTypeError, "expected a mechanism, or a callable"),
        (keep, ("ab", max), {}, InvalidTypeError, "a sequence of strings"),
        (keep, (["a", "a"], max), {}, InvalidValueError, "two different words, got 1"),
        (keep, (["a", "b"], lambda a, b: -1.0), {}, InvalidValueError, "0.0 <= bound"),
        (keep, (["a", "b"], lambda a, b: math.nan), {}, InvalidValueError, "got bound=nan"),
        (keep, (["a", "b"], lambda a, b: math.inf), {}, InvalidValueError, "got none"),
    ]
    for mechanism, arguments, options, error, message in cases:
        with pytest.raises(error, match=message):
            verify_guarantee(mechanism, *arguments, **options)


# Results


def test_results_print_and_become_json() -> None:
    found = GuaranteeCheck(
        passed=False,
        method="sampling",
        worst=("a", UNKNOWN),
        outputs=tuple("bcdefgh"),
        log_ratio=-math.inf,
        allowed=0.5,
        inputs=3,
        pairs=2,
        scope="near ones",
        false_alarm_rate=1e-3,
        draws=4000,
    )
    values = json.loads(json.dumps(found.to_dict()))
    assert values["log_ratio"] is values["slack"] is None
    assert values["worst"] == ["a", UNKNOWN]
    text = str(found)
    assert text.startswith("BROKEN")
    assert "'b', 'c', 'd', 'e', 'f', … (7 words)" in text
    assert "at least -inf, allowed 0.5" in text
    assert "4,000 draws" in text


# Workers


class Numbers:
    """Draws a number for each word; the first `shared` of them from a generator that it holds."""

    def __init__(self, shared: int) -> None:
        self.shared = shared
        self.held = np.random.default_rng(9)

    def __call__(self, batch: dict[str, list[str]]) -> dict[str, list[str]]:
        """Replace words by numbers."""
        fresh = np.random.default_rng()
        texts = []
        for text in batch["text"]:
            size = len(text.split())
            held = self.held.integers(5, size=self.shared)
            texts.append(" ".join(map(str, [*held, *fresh.integers(5, size=size - self.shared)])))
        return {"text": texts}


@pytest.mark.parametrize(("shared", "passes"), [(0, True), (40, False), (100, False)])
def test_noise_that_workers_share_in_part_is_found(shared: int, passes: bool) -> None:
    found = verify_workers(Numbers(shared), " ".join("x" * 100), rng=keyed_generator(1))
    assert found.passed is passes
    assert found.p_value <= found.false_alarm_rate or passes
    assert json.loads(json.dumps(found.to_dict()))["releases"] == 16
    assert ("BROKEN" in str(found)) is not passes


def test_what_workers_return_has_to_be_comparable(euclidean_space: EmbeddingSpace) -> None:
    line = " ".join(euclidean_space.words[:30])
    with pytest.raises(InvalidValueError, match="num_proc >= 2"):
        verify_workers(DxPrivatizer(euclidean_space, "tem", 2.0), line, num_proc=1)
    with pytest.raises(InvalidValueError, match="all 16 releases are the same"):
        verify_workers(DxPrivatizer(euclidean_space, "tem", 2.0, seed=5), line)
    with pytest.raises(InvalidValueError, match="as many words each, got"):
        verify_workers(Shortens(), line)


class Shortens:
    """Leaves out words at random."""

    def __call__(self, batch: dict[str, list[str]]) -> dict[str, list[str]]:
        """Shorten texts."""
        return {"text": [t[: 3 * np.random.default_rng().integers(1, 30)] for t in batch["text"]]}
