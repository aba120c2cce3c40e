"""Planted faults are caught, and honest mechanisms pass, at a stated false-alarm rate."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pytest

from faulty_mechanisms import CONTROLS, ReleasesUnknown, SharedGenerator, clusters, line
from hf_dxprivacy.guarantee import Disclosure, Noun, PrivacyGuarantee
from hf_dxprivacy.mechanisms import (
    CalibratedExponential,
    ExactMechanism,
    Mechanism,
    MultivariateLaplace,
    TruncatedExponential,
)
from hf_dxprivacy.privatizers.text_privatizer import DxPrivatizer
from hf_dxprivacy.randomness import keyed_generator
from hf_dxprivacy.spaces import EmbeddingSpace
from hf_dxprivacy.verify import exact
from hf_dxprivacy.verify import laws as verify
from hf_dxprivacy.verify.check import GuaranteeCheck
from hf_dxprivacy.verify.laws import verify_guarantee
from hf_dxprivacy.verify.workers import verify_workers

Method = Literal["exact", "sampling"]

# At most this share of honest mechanisms would fail, over all seeds.
ALPHA = 1e-6
DRAWS = 200_000
INPUTS = 60
WORDS = " ".join(f"w{k}" for k in range(150))


@pytest.fixture(autouse=True)
def _few_statements(monkeypatch: pytest.MonkeyPatch) -> None:
    # Bounds of 20 inputs are compared, pair by pair, instead of 64: they are stated by one formula.
    monkeypatch.setattr(exact, "COMPARED", 20)
    monkeypatch.setattr(verify, "COMPARED", 20)


def audited(
    mechanism: Mechanism, seed: int, method: Method | None = None, draws: int = DRAWS
) -> GuaranteeCheck:
    exact = isinstance(mechanism, ExactMechanism) and method != "sampling"
    found = verify_guarantee(
        mechanism,
        method=method,
        inputs=None if exact else INPUTS,
        draws=draws,
        alpha=ALPHA,
        rng=keyed_generator(seed),
    )
    print(found)
    return found


@pytest.mark.parametrize("name", CONTROLS)
def test_fault_is_caught(name: str) -> None:
    faulty = CONTROLS[name].faulty()
    # Twice as many, with which the mildest fault stands out whatever the seed.
    found = audited(faulty, seed=1, draws=2 * DRAWS)
    assert found.method == ("exact" if isinstance(faulty, ExactMechanism) else "sampling")
    assert not found.passed
    assert found.log_ratio > found.allowed
    assert found.slack < 0


@pytest.mark.parametrize("name", ["half forgotten", "no remainder", "squared distance"])
def test_fault_is_caught_in_the_draws_alone(name: str) -> None:
    assert not audited(CONTROLS[name].faulty(), seed=2, method="sampling").passed


@pytest.mark.parametrize("name", CONTROLS)
def test_honest_counterpart_passes(name: str) -> None:
    honest = CONTROLS[name].honest()
    found = audited(honest, seed=3)
    assert found.passed
    # A law may reach its bound, up to rounding.
    assert found.slack >= -1e-12


@pytest.mark.parametrize("make", [TruncatedExponential, CalibratedExponential])
@pytest.mark.parametrize("method", ["exact", "sampling"])
def test_exponential_mechanisms_pass(
    make: Callable[..., Mechanism], method: Method, request: pytest.FixtureRequest
) -> None:
    for metric in ("euclidean", "poincare"):
        mechanism = make(request.getfixturevalue(f"{metric}_space"), 2.0)
        assert audited(mechanism, seed=4, method=method).passed


def test_honest_noise_passes_whatever_the_seed() -> None:
    """At a rate at which three of thirty would be expected to fail if alpha were all there is."""
    mechanism = MultivariateLaplace(line(), 1.0)
    failed = [
        seed
        for seed in range(30)
        if not verify_guarantee(mechanism, draws=6_000, alpha=0.1, rng=keyed_generator(seed)).passed
    ]
    assert len(failed) <= 3


def test_unknown_words_that_are_released_are_caught() -> None:
    mechanism = TruncatedExponential(clusters(), 2.0)
    words = [*clusters().words[:40], "unknown", "other"]
    found = verify_guarantee(
        ReleasesUnknown(mechanism), words, mechanism.word_bound, draws=40_000, alpha=ALPHA
    )
    assert not found.passed
    assert {"unknown", "other"} & {*found.worst, *found.outputs}
    honest = DxPrivatizer(clusters(), mechanism)
    kept = verify_guarantee(
        honest.privatize, words, honest.guarantee.bound, draws=40_000, alpha=ALPHA
    )
    assert kept.passed
    # What the guarantee calls a hole is not promised, and so is not broken either.
    hole = DxPrivatizer(clusters(), mechanism, oov="keep")
    assert verify_guarantee(
        hole.privatize, words, hole.guarantee.bound, draws=40_000, alpha=ALPHA
    ).passed


def test_generator_that_workers_share_is_caught() -> None:
    mechanism = MultivariateLaplace(clusters(), 3.0)
    found = verify_workers(SharedGenerator(mechanism), WORDS, rng=keyed_generator(5))
    assert not found.passed
    assert found.shared == 1.0
    honest = verify_workers(DxPrivatizer(clusters(), mechanism), WORDS, rng=keyed_generator(6))
    assert honest.passed
    assert honest.shared < 0.7
    assert (found.releases, found.workers) == (16, 2)


def test_log_ratio_is_that_of_the_draws() -> None:
    """The claimed side of the pair: first of it the input from which the set is likelier."""
    doubled = CONTROLS["doubled noise"].faulty()
    found = audited(doubled, seed=7)
    ids = doubled.space.ids([word for word in found.worst])
    outputs = doubled.space.ids(found.outputs)
    drawn = doubled.sample(np.repeat(ids, 100_000), keyed_generator(8)).reshape(2, -1)
    first, second = np.isin(drawn, outputs).mean(axis=1)
    assert found.log_ratio <= np.log(first / second) + 0.1
    assert np.log(first / second) > found.allowed


class _DoubledSlope(TruncatedExponential):
    """Draws with twice the slope that the certified ε allows."""

    @property
    def inverse_temperature(self) -> float:
        return self.epsilon


class _DoubledNoise(MultivariateLaplace):
    """Draws with 2ε and certifies ε."""

    def sample(self, ids: Any, rng: Any) -> Any:
        return MultivariateLaplace(self.space, 2 * self.epsilon).sample(ids, rng)


class _ReleasesInputs(TruncatedExponential):
    """Knows an honest law and draws by another one."""

    def sample(self, ids: Any, rng: Any) -> Any:
        return np.maximum(ids, 0)


class _UnderstatedGuarantee(TruncatedExponential):
    """States ε/10 and a bound of 0."""

    @property
    def guarantee(self) -> PrivacyGuarantee:
        honest = TruncatedExponential(self.space, self.epsilon).guarantee
        return replace(honest, epsilon=self.epsilon / 10, log_ratio_bound=lambda a, b: 0.0)


class _ShrunkDistances(TruncatedExponential):
    """Bounds pairs by distances that are 100 times too small."""

    def pair_distances(self, ids_a: Any, ids_b: Any) -> Any:
        return super().pair_distances(ids_a, ids_b) / 100


class _UnderstatedLocalDp(TruncatedExponential):
    """States a diameter of a tenth."""

    @property
    def diameter(self) -> float:
        return super().diameter / 10


class _ForgedLevel(CalibratedExponential):
    """States its slope as the exact level, as a stored level that was altered would."""

    def __init__(self, space: EmbeddingSpace, epsilon: float) -> None:
        super().__init__(space, epsilon)
        self._level = self.inverse_temperature

    def exact_epsilon(self, progress: bool = False) -> float:
        return self._level


class _BottomlessLevel(CalibratedExponential):
    """States −∞ as the exact level."""

    def exact_epsilon(self, progress: bool = False) -> float:
        return -np.inf


class _ForgedAssumption(CalibratedExponential):
    """Prints its slope as the exact level."""

    def _disclosures(self, noun: Noun) -> tuple[Disclosure, ...]:
        level = f"{self.inverse_temperature:.6g}"
        text = f"The exact level over all pairs of {noun.many} is {level} (s = 1)."
        return (Disclosure(text, "exact_level", level),)


class _NearNeighbours(TruncatedExponential):
    """States neighbours that are ten times as near, and another metric."""

    def neighbour_distances(self) -> dict[int, float]:
        return {k: d / 10 for k, d in super().neighbour_distances().items()}

    @property
    def metric(self) -> str:
        return "cosine distance"


class _RewordedLevel(CalibratedExponential):
    """Prints its slope as the level, in other words."""

    def _disclosures(self, noun: Noun) -> tuple[Disclosure, ...]:
        text = f"No pair of {noun.many} needs more than {self.inverse_temperature:.6g} in truth."
        return (Disclosure(text),)


_NEIGHBOURS = tuple(f"guarantee.neighbour_epsilon[{k}] is" for k in (1, 10, 100))
# What a bound of a pair may be is bounded by the local ε as well.
_LOCAL = ("guarantee.ldp_epsilon is", *_NEIGHBOURS, "id_bound of", "guarantee.bound of")


def sixty_words() -> EmbeddingSpace:
    vectors = np.random.default_rng(12).normal(size=(60, 4))
    return EmbeddingSpace.from_vectors([f"w{k}" for k in range(60)], vectors)


@pytest.mark.parametrize(
    ("dishonest", "method", "statements"),
    [
        (_DoubledSlope, None, ()),
        (_DoubledNoise, None, ()),
        (_ReleasesInputs, "sampling", ()),
        (_UnderstatedGuarantee, None, ("guarantee.epsilon is 0.2, but", "guarantee.bound of")),
        (
            _UnderstatedGuarantee,
            "sampling",
            ("guarantee.epsilon is 0.2, but", "guarantee.bound of"),
        ),
        (_ShrunkDistances, None, ("id_bound of", "guarantee.bound of")),
        (_UnderstatedLocalDp, None, _LOCAL),
        (_UnderstatedLocalDp, "sampling", _LOCAL),
        (_ForgedLevel, None, ("exact_epsilon() is",)),
        (_BottomlessLevel, None, ("exact_epsilon() is -inf",)),
        (
            _NearNeighbours,
            None,
            (*_NEIGHBOURS, "guarantee.metric is"),
        ),
        (_ForgedAssumption, None, ("the exact level in guarantee.disclosures is",)),
    ],
)
def test_no_dishonest_part_passes(
    dishonest: type[Mechanism], method: Method | None, statements: tuple[str, ...]
) -> None:
    mechanism = dishonest(sixty_words(), 2.0)
    found = verify_guarantee(
        mechanism, method=method, draws=200_000, alpha=ALPHA, rng=keyed_generator(9)
    )
    print(found)
    assert not found.passed
    assert len(found.false_statements) == len(statements)
    for said, expected in zip(found.false_statements, statements, strict=True):
        assert said.startswith(expected)
        assert said in str(found)
    assert found.to_dict()["false_statements"] == found.false_statements
    # A false statement is told from a law that breaks the bound.
    assert (found.slack >= 0) == bool(statements)


def test_what_nothing_was_compared_with_is_named() -> None:
    found = verify_guarantee(_RewordedLevel(sixty_words(), 2.0))
    assert found.passed
    assert found.not_checked == (
        "numbers in the texts of guarantee.disclosures (No pair of words needs more …)",
    )
    assert f"not checked: {found.not_checked[0]}" in str(found)
    assert not verify_guarantee(TruncatedExponential(sixty_words(), 2.0)).not_checked
