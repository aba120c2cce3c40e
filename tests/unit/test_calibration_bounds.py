"""Bounds that draws give, K_w by a naive reading of its definition, tables, and going on."""

import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from opaque import Opaque

from hf_dxprivacy.calibration import PrivacyStatistics, measuring, privacy_statistics
from hf_dxprivacy.calibration.statistics import Terms
from hf_dxprivacy.errors import ArtifactError, InvalidValueError
from hf_dxprivacy.mechanisms import (
    HyperbolicLaplace,
    Mechanism,
    MultivariateLaplace,
    TruncatedExponential,
)
from hf_dxprivacy.randomness import keyed_generator
from hf_dxprivacy.spaces import EmbeddingSpace


@pytest.mark.parametrize("epsilon", [1.0, 3.0, 6.0])
def test_bounds_hold_as_often_as_stated(euclidean_space: EmbeddingSpace, epsilon: float) -> None:
    """At 80 %, over 400 words: all bounds together fail within five deviations of a fifth."""
    mechanism, words = TruncatedExponential(euclidean_space, epsilon), euclidean_space.words[:400]
    exact = privacy_statistics(mechanism, words)
    drawn = privacy_statistics(
        Opaque(mechanism), words, 300, rng=keyed_generator(4), confidence=0.8
    )
    low, high = drawn.kept_interval()
    missed = np.count_nonzero((exact.kept < low) | (exact.kept > high))
    above = np.count_nonzero(drawn.support_low > exact.support)
    most = 80 + 5 * np.sqrt(400 * 0.2 * 0.8)
    assert missed <= most
    assert above <= most
    assert (drawn.support_low <= drawn.support).all()
    assert np.mean(high - low) < 0.1


def test_bounds_are_not_idle(euclidean_space: EmbeddingSpace) -> None:
    """With many draws they come near the truth, which plain figures miss on average."""
    mechanism, words = TruncatedExponential(euclidean_space, 3.0), euclidean_space.words[:40]
    exact = privacy_statistics(mechanism, words)
    drawn = privacy_statistics(Opaque(mechanism), words, 20_000, rng=keyed_generator(4))
    assert (drawn.support_low > 0.6 * exact.support).all()
    assert exact.support_low.tolist() == exact.support.tolist()
    low, high = exact.kept_interval()
    assert low.tolist() == high.tolist() == exact.kept.tolist()
    assert drawn.min_entropy == pytest.approx(exact.min_entropy, abs=0.15)


@pytest.mark.parametrize(("runs", "eta"), [(1, 0.5), (40, 0.05), (1000, 0.05), (1000, 0.9)])
def test_share_left_out_is_a_quantile_of_the_binomial_law(runs: int, eta: float) -> None:
    stats = pytest.importorskip("scipy.stats")
    for confidence in (0.5, 0.95, 1 - 1e-9):
        terms = Terms(runs, eta, confidence, count_inputs=False)
        assert terms.loose_eta * runs == pytest.approx(stats.binom.ppf(confidence, runs, eta))


def test_entropies(euclidean_space: EmbeddingSpace) -> None:
    mechanism = TruncatedExponential(euclidean_space, 3.0)
    found = privacy_statistics(mechanism, euclidean_space.words[:30])
    laws = mechanism.probabilities(np.arange(30))
    np.testing.assert_allclose(found.min_entropy, -np.log2(laws.max(axis=1)))
    np.testing.assert_allclose(2.0**found.hartley_entropy, found.support)


def naive_inputs(sets: dict[int, set[int]], below: Callable[[int, int], bool]) -> list[int]:
    """For each input, the least number of inputs that resolve to one of its outputs."""
    resolved = {
        y: sum(y in outputs and below(w, y) for w, outputs in sets.items())
        for y in set().union(*sets.values())
    }
    return [
        min((resolved[y] for y in outputs if below(w, y)), default=0) for w, outputs in sets.items()
    ]


def likeliest_outputs(law: NDArray[np.float64], number: int) -> set[int]:
    return set(np.flatnonzero(law >= np.sort(law)[-number] * (1 - 1e-9)).tolist())


@pytest.mark.parametrize("epsilon", [2.0, 6.0])
def test_inputs_of_a_known_law(poincare_space: EmbeddingSpace, epsilon: float) -> None:
    mechanism = TruncatedExponential(poincare_space, epsilon)
    words = np.arange(0, 500, 7)
    names = [poincare_space.words[w] for w in words]
    found = privacy_statistics(mechanism, names, count_inputs=True)
    laws = mechanism.probabilities(words)
    sets = {
        int(w): likeliest_outputs(law, int(number))
        for w, law, number in zip(words, laws, found.support, strict=True)
    }
    norms = np.linalg.norm(poincare_space.vectors, axis=1)
    assert found.inputs is not None
    assert found.inputs_below is not None
    assert found.inputs.tolist() == naive_inputs(sets, lambda w, y: True)
    assert found.inputs_below.tolist() == naive_inputs(sets, lambda w, y: norms[w] > norms[y])
    assert found.inputs.max() > 1


def test_inputs_of_draws(poincare_space: EmbeddingSpace) -> None:
    """A word that stays for certain shares its output with nobody."""
    silent = HyperbolicLaplace(poincare_space, 1e9)
    found = privacy_statistics(silent, runs=20, count_inputs=True, rng=keyed_generator(0))
    assert found.inputs is not None
    assert found.inputs_below is not None
    assert set(found.inputs.tolist()) == {1}
    assert set(found.inputs_below.tolist()) == {0}
    loud = HyperbolicLaplace(poincare_space, 7.0)
    spread = privacy_statistics(loud, runs=200, count_inputs=True, rng=keyed_generator(0))
    assert spread.inputs is not None
    assert spread.inputs.mean() > 1.5


def test_inputs_are_counted_on_request_and_below_only_in_the_ball(
    euclidean_space: EmbeddingSpace,
) -> None:
    mechanism = MultivariateLaplace(euclidean_space, 4.0)
    words = euclidean_space.words[:20]
    assert privacy_statistics(mechanism, words, 10).inputs is None
    counted = privacy_statistics(mechanism, words, 10, count_inputs=True)
    assert counted.inputs is not None
    assert counted.inputs_below is None


def test_table_and_summary(euclidean_space: EmbeddingSpace) -> None:
    mechanism, words = MultivariateLaplace(euclidean_space, 4.0), euclidean_space.words[:20]
    found = privacy_statistics(mechanism, words, 50, count_inputs=True, rng=keyed_generator(0))
    table = found.to_dataset()
    assert table["word"][:] == list(words)
    assert table["kept"][:] == found.kept.tolist()
    assert all(
        row["kept_low"] <= row["kept"] <= row["kept_high"]
        and row["support_low"] <= row["support"] <= row["distinct"]
        and row["inputs"] >= 1
        for row in table
    )
    summary = found.summary()
    assert summary.rows["kept"]["mean"] == pytest.approx(found.kept.mean())
    assert summary.rows["support"]["50 %"] == pytest.approx(np.median(found.support))
    lines = str(summary).splitlines()
    assert lines[0].startswith("| 20 words | mean | std | least | 5 % |")
    assert f"| kept | {found.kept.mean():.4g} |" in lines[2]
    assert len(lines) == 2 + len(summary.rows)


class InterruptedByKeyError(Exception):
    """Stands for a key press."""


def rows(found: PrivacyStatistics) -> list[list[object]]:
    return [list(row.values()) for row in found.to_dataset()]


# The method from which the statistics of a block come.
BY = {MultivariateLaplace: "sample_repeatedly", TruncatedExponential: "probabilities"}


@pytest.mark.parametrize("kind", BY)
def test_goes_on_where_it_was_interrupted(
    euclidean_space: EmbeddingSpace,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: type[Mechanism],
) -> None:
    monkeypatch.setattr(measuring, "BLOCK_WORDS", 16)
    monkeypatch.setattr(measuring, "BLOCK_ENTRIES", 16 * 500)
    mechanism, words = kind(euclidean_space, 4.0), euclidean_space.words[:100]

    def measure(checkpoint: Path | None) -> PrivacyStatistics:
        return privacy_statistics(
            mechanism, words, 50, rng=keyed_generator(2), count_inputs=True, checkpoint=checkpoint
        )

    folder, whole = tmp_path / "statistics", rows(measure(None))
    draw, name = getattr(kind, BY[kind]), BY[kind]
    calls: list[int] = []

    def three_times(self: Mechanism, ids: NDArray[np.int64], *others: object) -> NDArray[np.int64]:
        if len(calls) == 3:
            raise InterruptedByKeyError("in the third block")
        calls.append(len(ids))
        return draw(self, ids, *others)

    monkeypatch.setattr(kind, name, three_times)
    with pytest.raises(InterruptedByKeyError, match="in the third block"):
        measure(folder)
    assert len(list(folder.glob("block-*.npz"))) == 3
    monkeypatch.setattr(kind, name, draw)
    assert rows(measure(folder)) == whole
    # All is there now: nothing is worked out again.
    monkeypatch.setattr(kind, name, three_times)
    assert rows(measure(folder)) == whole


@pytest.mark.parametrize(
    ("change", "differing"),
    [
        ({"runs": 30}, "settings"),
        ({"words": ["waaa"]}, "words"),
        ({"rng": keyed_generator(3)}, "seed"),
        ({"epsilon": 5.0}, "mechanism"),
        ({"factor": 2.0}, "space"),
    ],
)
def test_refuses_the_checkpoint_of_something_else(
    euclidean_space: EmbeddingSpace, tmp_path: Path, change: dict[str, object], differing: str
) -> None:
    def measure(
        epsilon: float = 4.0,
        factor: float = 1.0,
        words: tuple[str, ...] = euclidean_space.words[:10],
        **settings: object,
    ) -> PrivacyStatistics:
        mechanism = MultivariateLaplace(euclidean_space.rescale(factor), epsilon)
        arguments = {"runs": 20, "rng": keyed_generator(2), **settings}
        return privacy_statistics(mechanism, words, checkpoint=tmp_path, **arguments)  # type: ignore[arg-type]

    measure()
    with pytest.raises(InvalidValueError, match=f"with other .*{differing}.*another folder"):
        measure(**change)  # type: ignore[arg-type]


def test_refuses_a_damaged_checkpoint(euclidean_space: EmbeddingSpace, tmp_path: Path) -> None:
    mechanism, words = MultivariateLaplace(euclidean_space, 4.0), euclidean_space.words[:10]
    privacy_statistics(mechanism, words, 20, checkpoint=tmp_path)
    (block,) = tmp_path.glob("block-*.npz")
    whole = block.read_bytes()
    # Where the deflated bytes of the first array begin; they never begin with a 7.
    start = 30 + sum(struct.unpack("<HH", whole[26:30]))
    for damaged in (whole[:200], whole[:start] + b"\x07" + whole[start + 1 :]):
        block.write_bytes(damaged)
        with pytest.raises(ArtifactError, match="not a whole block of statistics"):
            privacy_statistics(mechanism, words, 20, checkpoint=tmp_path)
    (tmp_path / "about.json").write_text("{")
    with pytest.raises(ArtifactError, match="truncated or not JSON"):
        privacy_statistics(mechanism, words, 20, checkpoint=tmp_path)


def test_refuses_a_folder_of_something_else(
    euclidean_space: EmbeddingSpace, tmp_path: Path
) -> None:
    (tmp_path / "thesis.txt").write_text("chapter one")
    with pytest.raises(ArtifactError, match="expected a checkpoint of statistics"):
        privacy_statistics(MultivariateLaplace(euclidean_space, 4.0), [], checkpoint=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]
