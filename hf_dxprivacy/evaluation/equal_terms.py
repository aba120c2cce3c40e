"""Mechanisms side by side at an equal guarantee, or at an equal worst case."""

from collections.abc import Mapping, Sequence
from typing import Any

from numpy.random import Generator
from numpy.typing import ArrayLike

from hf_dxprivacy.calibration import privacy_statistics, suggest_epsilon
from hf_dxprivacy.calibration.measuring import entry_space
from hf_dxprivacy.errors import InvalidValueError
from hf_dxprivacy.mechanisms import Mechanism, create_mechanism
from hf_dxprivacy.results import Interval, Result, Results
from hf_dxprivacy.sentences import SentencePool
from hf_dxprivacy.spaces import EmbeddingSpace


def compare_mechanisms(
    space: EmbeddingSpace | SentencePool,
    mechanisms: Sequence[str] | Mapping[str, Mapping[str, Any]],
    *,
    epsilon: float | None = None,
    max_nw: float | None = None,
    words: Sequence[str] | None = None,
    epsilons: ArrayLike | None = None,
    runs: int = 1000,
    rng: Generator | None = None,
    progress: bool = True,
) -> Results:
    """Compare mechanisms at an equal guarantee, or at an equal worst-case N_w.

    Args:
        space: Where the words lie.
        mechanisms: Names, or names with the options of each.
        epsilon: Each mechanism is taken at the ε that proves this one per unit of the space's own
            distance: a smaller one for "mahalanobis" and for ``noise="lebesgue"``.
        max_nw: Instead: each is taken at the largest ε that `suggest_epsilon` finds for this N_w.
        words: Words of the space to look at; by default all of them.
        epsilons: With `max_nw`, the ε to try.
        runs: Draws for each word where the law is not known, and for the number of distinct
            outputs.
        rng: Source of the draws; this process's own by default.
        progress: Show bars on the standard error stream if that is a terminal.

    Returns:
        For each mechanism the certified ε, mean and largest N_w, and mean and least number S_w of
        distinct outputs in `runs` draws. `epsilon` is the one to ask for, `repeats` the number of
        words. Means come without intervals: the words of a block may share noise.

    Raises:
        InvalidValueError: If not exactly one of `epsilon` and `max_nw` is given, or a mechanism
            cannot be reached at it, as those whose metric is their own cannot at an `epsilon`.
    """
    if (epsilon is None) == (max_nw is None):
        raise InvalidValueError("expected exactly one of epsilon and max_nw")
    space = entry_space(space)
    named = mechanisms if isinstance(mechanisms, Mapping) else {name: {} for name in mechanisms}
    shared: dict[str, Any] = {"words": words, "runs": runs, "rng": rng, "progress": progress}
    results = Results()
    for name, options in named.items():
        if epsilon is not None:
            mechanism = certified_at(space, name, epsilon, options)
        else:
            answer = suggest_epsilon(
                space, name, max_nw=max_nw, epsilons=epsilons, **shared, **options
            )
            mechanism = create_mechanism(name, space, answer.epsilon, **options)
        statistics = privacy_statistics(mechanism, **shared)
        values = {
            "certified ε": mechanism.space_epsilon,
            "mean N_w": float(statistics.kept.mean()),
            "largest N_w": float(statistics.kept.max()),
            "mean S_w": float(statistics.distinct.mean()),
            "least S_w": float(statistics.distinct.min()),
        }
        found = Results(
            Result.of(
                f"spread of {space.item_kind}",
                metric,
                Interval(value, value, value),
                len(statistics.words),
            )
            for metric, value in values.items()
        )
        results += found.replace(
            dataset=space.location or "space", mechanism=name, epsilon=mechanism.epsilon
        )
    return results


def certified_at(
    space: EmbeddingSpace, name: str, epsilon: float, options: Mapping[str, Any]
) -> Mechanism:
    """Return the mechanism of a name that proves an ε per unit of the space's own distance.

    What a mechanism proves is at most a factor and an addend away from the ε asked for.

    Raises:
        InvalidValueError: If its metric is another one.
    """
    asked = create_mechanism(name, space, epsilon, **options)
    if asked.own_metric:
        raise InvalidValueError(
            f"mechanism {name!r} has a metric of its own, in which the same epsilon is another "
            "guarantee; compare at max_nw="
        )
    if asked.space_epsilon == epsilon:
        return asked
    twice = create_mechanism(name, space, 2.0 * epsilon, **options).space_epsilon
    slope = (twice - asked.space_epsilon) / epsilon
    return create_mechanism(
        name, space, epsilon - (asked.space_epsilon - epsilon) / slope, **options
    )
