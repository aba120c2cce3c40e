"""What every mechanism owes its callers, whichever it is."""

import dataclasses
import functools
import json
import math
import pickle
import random
import sys
import threading
from typing import Any

import numpy as np
import pytest

from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError
from hf_dxprivacy.evaluation.peer_candidates import PEERS, kind_of
from hf_dxprivacy.mechanisms import (
    MECHANISMS,
    ExactMechanism,
    ExponentialLaw,
    Mechanism,
    TruncatedExponential,
    create_mechanism,
    exponential,
)
from hf_dxprivacy.randomness import RowStreams, keyed_generator, process_generator
from hf_dxprivacy.spaces import EmbeddingSpace

# Mechanism, metric of the space, ε and options. The ball of the fixture is four-dimensional and
# scaled by 1/2, so that the Riemannian noise needs ε > 6.
CASES: dict[str, tuple[str, str, float, dict[str, Any]]] = {
    "laplace": ("laplace", "euclidean", 3.0, {}),
    "laplace-ivf": ("laplace", "euclidean", 3.0, {"index": "ivf"}),
    "laplace-pq": ("laplace", "euclidean", 3.0, {"index": "pq"}),
    "laplace-resample": ("laplace", "euclidean", 3.0, {"resample": 0.05}),
    "mahalanobis-0": ("mahalanobis", "euclidean", 3.0, {"lam": 0.0}),
    "mahalanobis-half": ("mahalanobis", "euclidean", 3.0, {}),
    "mahalanobis-1": ("mahalanobis", "euclidean", 3.0, {"lam": 1.0}),
    "mahalanobis-hnsw": ("mahalanobis", "euclidean", 3.0, {"index": "hnsw"}),
    "mahalanobis-resample": (
        "mahalanobis",
        "euclidean",
        3.0,
        {"index": "ivf", "resample": 0.2, "resample_neighbours": 5},
    ),
    "tem": ("tem", "euclidean", 2.0, {}),
    "tem-beta": ("tem", "euclidean", 2.0, {"beta": 0.2}),
    "tem-gamma": ("tem", "euclidean", 2.0, {"gamma": 1.5}),
    "tem-ball": ("tem", "poincare", 2.0, {}),
    "calibrated": ("calibrated", "euclidean", 2.0, {}),
    "calibrated-beta": ("calibrated", "euclidean", 2.0, {"beta": 0.2}),
    "calibrated-ball": ("calibrated", "poincare", 2.0, {}),
    "hyperbolic-riemannian": ("hyperbolic", "poincare", 8.0, {}),
    "hyperbolic-lebesgue": ("hyperbolic", "poincare", 1.0, {"noise": "lebesgue"}),
    "hyperbolic-resample": ("hyperbolic", "poincare", 8.0, {"resample": 0.05}),
    "hierarchical": ("hierarchical", "euclidean", 1.5, {}),
    "hierarchical-ball": ("hierarchical", "poincare", 1.5, {}),
    "krr": ("krr", "euclidean", 6.0, {}),
    "krr-ball": ("krr", "poincare", 6.0, {}),
    "santext": ("santext", "euclidean", 2.0, {}),
    "diffractor": ("diffractor", "euclidean", 0.05, {}),
    "diffractor-1": ("diffractor", "euclidean", 0.02, {"lists": 1}),
    "custext": ("custext", "euclidean", 4.0, {}),
    "custext-one-cluster": ("custext", "euclidean", 4.0, {"k": 300}),
    "syntf": ("syntf", "euclidean", 4.0, {}),
    "truncated-gumbel": ("truncated-gumbel", "euclidean", 400.0, {}),
    "vickrey": ("vickrey", "euclidean", 3.0, {}),
    "vickrey-nearest": ("vickrey", "euclidean", 3.0, {"t": 0.0}),
}


def make(case: str, space: EmbeddingSpace) -> Mechanism:
    name, _, epsilon, options = CASES[case]
    if "index" in options and space.index is None:
        space = space.build_index(options["index"])
    if name in ("hierarchical", "syntf") and space.hierarchy is None:
        space = space.build_hierarchy(progress=False)
    return kind_of(name)(space, epsilon, **options)


def small_space(metric: str, coordinates: list[list[float]]) -> EmbeddingSpace:
    """Make a space with words a, b, c, …; coordinates are inside the unit ball for both metrics."""
    words = list("abcdefghijklmnop"[: len(coordinates)])
    return EmbeddingSpace.from_vectors(words, coordinates, metric)


@pytest.fixture(scope="module", params=CASES)
def case(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def mechanism(
    case: str, euclidean_space: EmbeddingSpace, poincare_space: EmbeddingSpace
) -> Mechanism:
    return make(case, euclidean_space if CASES[case][1] == "euclidean" else poincare_space)


def everything(mechanism: Mechanism) -> np.ndarray:
    """Return every input: all words and the one out of vocabulary."""
    return np.arange(-1, len(mechanism.space))


def test_every_mechanism_is_held_to_the_contract() -> None:
    assert {name for name, *_ in CASES.values()} == {*MECHANISMS, *PEERS}
    for mechanism in (*MECHANISMS.values(), *PEERS.values()):
        metrics = {metric for name, metric, *_ in CASES.values() if name == mechanism.name}
        assert metrics == set(mechanism.metrics)


def test_outputs_are_rows_of_the_vocabulary(mechanism: Mechanism) -> None:
    drawn = mechanism.sample(everything(mechanism), keyed_generator(0))
    assert drawn.shape == (501,)
    assert drawn.dtype == np.int64
    assert drawn.min() >= 0
    assert drawn.max() < 500
    assert len(np.unique(drawn)) > 50


# Loops in one test rather than parameters: a test of its own for each would take longer than it.
def test_any_integers_do(mechanism: Mechanism) -> None:
    ids = [0, 5, 5, 120]
    expected = mechanism.sample(ids, keyed_generator(0))
    for dtype in (np.int8, np.int32, np.uint16, np.uint64):
        drawn = mechanism.sample(np.array(ids, dtype=dtype), keyed_generator(0))
        np.testing.assert_array_equal(drawn, expected, str(dtype))


def test_no_words_give_no_words_and_take_no_randomness(mechanism: Mechanism) -> None:
    for empty in ([], (), np.empty(0, dtype=np.int64)):
        rng = keyed_generator(0)
        drawn = mechanism.sample(empty, rng)
        assert drawn.shape == (0,)
        assert drawn.dtype == np.int64
        assert rng.random() == keyed_generator(0).random()


REFUSED_IDS: list[tuple[Any, type[Exception], str]] = [
    ([0, 500], InvalidValueError, "expected ids from -1 .* to 499, got 0 to 500"),
    ([-2, 3], InvalidValueError, "got -2 to 3"),
    (np.array([2**63], dtype=np.uint64), InvalidValueError, "got 9223372036854775808"),
    ([0.0, 1.0], InvalidTypeError, "1-D array of integers, got 1-D of float64"),
    ([[0, 1]], InvalidTypeError, "got 2-D of int64"),
    (3, InvalidTypeError, "got 0-D of int64"),
    ([True], InvalidTypeError, "got 1-D of bool"),
    (["waaa"], InvalidTypeError, "EmbeddingSpace.ids makes one from words"),
    (None, InvalidTypeError, "got 0-D of object"),
]


def test_other_ids_are_refused(mechanism: Mechanism) -> None:
    for ids, error, message in REFUSED_IDS:
        with pytest.raises(error, match=message):
            mechanism.sample(ids, keyed_generator(0))


def test_other_sources_of_randomness_are_refused(mechanism: Mechanism) -> None:
    for rng in (None, 7, np.random.RandomState(0), random.Random(0)):
        with pytest.raises(InvalidTypeError, match=r"expected rng to be a numpy.random.Generator"):
            mechanism.sample([0], rng)  # type: ignore[arg-type]


def test_streams_for_another_number_of_words_are_refused(mechanism: Mechanism) -> None:
    for lengths in ([2, 2], [3, 3], [0, 0]):
        streams = RowStreams([keyed_generator(0), keyed_generator(1)], lengths)
        with pytest.raises(InvalidValueError, match="expected streams for 5 words, got streams"):
            mechanism.sample([0, 1, 2, 3, 4], streams)


def test_a_key_decides_the_outputs(mechanism: Mechanism) -> None:
    ids = everything(mechanism)
    first = mechanism.sample(ids, keyed_generator(1))
    np.testing.assert_array_equal(mechanism.sample(ids, keyed_generator(1)), first)
    assert (mechanism.sample(ids, keyed_generator(2)) != first).any()


def test_one_generator_goes_on_and_does_not_repeat_itself(mechanism: Mechanism) -> None:
    rng, ids = keyed_generator(1), everything(mechanism)
    assert (mechanism.sample(ids, rng) != mechanism.sample(ids, rng)).any()


def test_global_seeds_have_no_influence(mechanism: Mechanism) -> None:
    ids, releases = everything(mechanism), []
    for _ in range(2):
        np.random.seed(0)  # noqa: NPY002
        random.seed(0)
        releases.append(mechanism.sample(ids, process_generator()))
        # Nor does sampling touch them.
        assert np.random.random() == np.random.RandomState(0).random()  # noqa: NPY002
        assert random.random() == random.Random(0).random()
    assert (releases[0] != releases[1]).any()


def rows_of_words(mechanism: Mechanism) -> list[np.ndarray]:
    """Return rows of words, one of which is longer than what is worked on at once."""
    rng = np.random.default_rng(3)
    lengths = [4, 0, mechanism.chunk + 100, 30, 1]
    return [rng.integers(-1, 500, size=length) for length in lengths]


def sample_rows(mechanism: Mechanism, rows: list[np.ndarray], keys: list[int]) -> list[np.ndarray]:
    streams = RowStreams([keyed_generator(0, key) for key in keys], [len(row) for row in rows])
    drawn = mechanism.sample(np.concatenate(rows), streams)
    return np.split(drawn, np.cumsum([len(row) for row in rows])[:-1])


def test_a_row_with_its_own_stream_does_not_depend_on_its_batch(mechanism: Mechanism) -> None:
    rows = rows_of_words(mechanism)
    alone = [sample_rows(mechanism, [row], [key])[0] for key, row in enumerate(rows)]
    for order in ([0, 1, 2, 3, 4], [3, 2, 4, 1, 0], [2, 0], [0, 3, 4]):
        together = sample_rows(mechanism, [rows[k] for k in order], order)
        for key, drawn in zip(order, together, strict=True):
            np.testing.assert_array_equal(drawn, alone[key])


def test_pickles_to_little_and_comes_back_the_same(mechanism: Mechanism) -> None:
    mechanism.sample(everything(mechanism), keyed_generator(0))
    pickled = pickle.dumps(mechanism)
    clone = pickle.loads(pickled)
    assert len(pickled) < 10_000
    assert clone.parameters == mechanism.parameters
    assert clone.guarantee == mechanism.guarantee
    ids = everything(mechanism)
    np.testing.assert_array_equal(
        clone.sample(ids, keyed_generator(5)), mechanism.sample(ids, keyed_generator(5))
    )
    if isinstance(mechanism, ExponentialLaw):
        assert clone.inverse_temperature == mechanism.inverse_temperature
    if isinstance(mechanism, ExactMechanism):
        np.testing.assert_array_equal(clone.probabilities(ids), mechanism.probabilities(ids))


def test_use_leaves_no_trace_in_the_pickle(case: str, mechanism: Mechanism) -> None:
    fresh = make(case, mechanism.space)
    before = pickle.dumps(fresh)
    fresh.sample(everything(fresh), keyed_generator(0))
    assert str(fresh.guarantee)
    assert fresh.guarantee.bound(*fresh.space.words[:2]) > 0
    assert pickle.dumps(fresh) == before


def all_distances(mechanism: Mechanism) -> np.ndarray:
    ids = everything(mechanism)
    a, b = np.meshgrid(ids, ids)
    return mechanism.pair_distances(a.ravel(), b.ravel())


def test_guarantee_says_what_is_promised(mechanism: Mechanism) -> None:
    guarantee = mechanism.guarantee
    assert guarantee.epsilon == mechanism.certified_epsilon >= mechanism.epsilon
    kind = "hyperbolic" if mechanism.space.metric == "poincare" else "Euclidean|Mahalanobis"
    kind = "common cluster|0/1|public list|∞ between any two" if mechanism.own_metric else kind
    assert any(word in guarantee.metric for word in kind.split("|"))
    assert guarantee.unit == "word"
    assert list(guarantee.neighbour_epsilon) == [1, 10, 100]
    levels = list(guarantee.neighbour_epsilon.values())
    assert 0 < levels[0] <= levels[1] <= levels[2] <= guarantee.ldp_epsilon
    finite = mechanism.name not in ("custext", "syntf", "truncated-gumbel") or (
        mechanism.parameters.get("k") == 300
    )
    assert math.isfinite(guarantee.ldp_epsilon) == finite
    assert ("no finite guarantee" in str(guarantee)) == (not finite)


def test_local_level_covers_every_pair_of_inputs(mechanism: Mechanism) -> None:
    largest = mechanism.guarantee.epsilon * all_distances(mechanism).max()
    local = mechanism.guarantee.ldp_epsilon
    if mechanism.own_metric:
        # What two laws really differ by may be less than ε·d.
        assert isinstance(mechanism, ExactMechanism)
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(mechanism.probabilities(everything(mechanism)))
            largest = max(float(np.nanmax(np.abs(logs - row))) for row in logs)
    assert largest <= local * (1 + 1e-12)
    assert local <= 2.5 * largest


def test_neighbour_levels_are_medians_over_words(mechanism: Mechanism) -> None:
    distances = all_distances(mechanism).reshape(501, 501)[1:, 1:]
    distances.sort(axis=1)
    for rank, level in mechanism.guarantee.neighbour_epsilon.items():
        expected = mechanism.guarantee.epsilon * np.median(distances[:, rank])
        expected = min(expected, mechanism.guarantee.ldp_epsilon)
        assert level == pytest.approx(expected, rel=1e-4)


def test_bound_is_the_level_times_the_distance(mechanism: Mechanism) -> None:
    bound, words = mechanism.guarantee.bound, mechanism.space.words
    pair = mechanism.pair_distances(np.array([3]), np.array([8]))[0]
    epsilon, local = mechanism.guarantee.epsilon, mechanism.guarantee.ldp_epsilon
    assert bound(words[3], words[8]) == pytest.approx(min(epsilon * pair, local))
    assert bound(words[8], words[3]) == pytest.approx(bound(words[3], words[8]))
    assert bound(words[3], words[3]) == 0.0
    assert bound("not-a-word", "nor-this") == 0.0
    to_centroid = mechanism.pair_distances(np.array([-1]), np.array([8]))[0]
    assert bound("not-a-word", words[8]) == pytest.approx(min(epsilon * to_centroid, local))


def test_guarantee_can_be_read_and_stored_but_not_changed(mechanism: Mechanism) -> None:
    guarantee = mechanism.guarantee
    text = str(guarantee)
    assert guarantee.metric in text
    assert f"ε = {guarantee.epsilon:g}" in text
    assert all(sentence in text for sentence in guarantee.assumptions)
    stored = guarantee.to_dict()
    assert json.loads(json.dumps(stored, allow_nan=False)) == stored
    json.dumps(mechanism.parameters, allow_nan=False)
    with pytest.raises(dataclasses.FrozenInstanceError, match="epsilon"):
        guarantee.epsilon = 0.1  # type: ignore[misc]


def test_epsilon_out_of_range_is_refused(mechanism: Mechanism) -> None:
    for epsilon in (0, 0.0, -1.0, math.nan, math.inf, -math.inf):
        with pytest.raises(InvalidValueError, match="epsilon > 0 and finite, got epsilon="):
            type(mechanism)(mechanism.space, epsilon)
    with pytest.raises(InvalidValueError, match="1e-30 <= epsilon"):
        type(mechanism)(mechanism.space, 1e-31)


def test_epsilon_or_space_of_another_type_is_refused(mechanism: Mechanism) -> None:
    for epsilon in ("1", None, True, 1j, [1.0]):
        with pytest.raises(InvalidTypeError, match="expected epsilon to be a number"):
            type(mechanism)(mechanism.space, epsilon)  # type: ignore[arg-type]
    with pytest.raises(InvalidTypeError, match="expected space to be an EmbeddingSpace, got a str"):
        type(mechanism)("wordnet-gloss", 1.0)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["laplace", "mahalanobis", "hyperbolic"])
def test_space_with_another_metric_is_refused(
    name: str, euclidean_space: EmbeddingSpace, poincare_space: EmbeddingSpace
) -> None:
    wrong = euclidean_space if name == "hyperbolic" else poincare_space
    with pytest.raises(InvalidValueError, match=f"{name!r} needs a space with the metric"):
        kind_of(name)(wrong, 20.0)


def _made(name: str, space: EmbeddingSpace, options: dict[str, Any]) -> Mechanism:
    """Make a mechanism as users do: ours by name, those of other papers from their classes."""
    if name in PEERS:
        return PEERS[name](space, 2.0, **options)
    return create_mechanism(name, space, 2.0, **options)


@pytest.mark.parametrize(
    ("name", "options", "error", "message"),
    [
        ("madlib", {}, InvalidValueError, "expected mechanism to be one of 'laplace'"),
        ("laplace", {"lam": 0.5}, InvalidTypeError, "no option 'lam'; its options are: index"),
        ("tem", {"noise": "x"}, InvalidTypeError, "its options are: beta, gamma"),
        ("mahalanobis", {"lam": -0.1}, InvalidValueError, "0.0 <= lam <= 1.0"),
        ("mahalanobis", {"lam": 1.1}, InvalidValueError, "got lam=1.1"),
        ("mahalanobis", {"lam": math.nan}, InvalidValueError, "got lam=nan"),
        ("laplace", {"resample": 0.0}, InvalidValueError, "expected resample > 0"),
        ("laplace", {"resample": "1"}, InvalidTypeError, "expected resample to be a number"),
        ("mahalanobis", {"resample_neighbours": 0}, InvalidValueError, "resample_neighbours >= 1"),
        ("laplace", {"resample_neighbours": 1.5}, InvalidTypeError, "to be an integer"),
        ("tem", {"beta": 0.0}, InvalidValueError, "0.0 < beta < 1.0"),
        ("tem", {"beta": 1e-320}, InvalidValueError, "1e-100 <= beta"),
        ("calibrated", {"beta": 1.0}, InvalidValueError, "got beta=1.0"),
        ("calibrated", {"beta": "0.1"}, InvalidTypeError, "expected beta to be a number"),
        ("tem", {"gamma": 0.0}, InvalidValueError, "expected gamma > 0"),
        ("tem", {"gamma": 1e4}, InvalidValueError, "half_epsilon_times_gamma <= 700"),
        ("tem", {"gamma": "1"}, InvalidTypeError, "expected gamma to be a number"),
        ("vickrey", {"t": 1.5}, InvalidValueError, "0.0 <= t <= 1.0, got t=1.5"),
        ("diffractor", {"lists": 0}, InvalidValueError, "lists >= 1, got lists=0"),
        ("custext", {"k": 1}, InvalidValueError, "k >= 2, got k=1"),
        ("syntf", {}, InvalidValueError, r"this space has none; make one .*relations="),
        ("truncated-gumbel", {}, InvalidValueError, r"exists only for epsilon > \(5 \+ 2·ln V\)/δ"),
    ],
)
def test_options_out_of_range_are_refused(
    name: str,
    options: dict[str, Any],
    error: type[Exception],
    message: str,
    euclidean_space: EmbeddingSpace,
) -> None:
    with pytest.raises(error, match=message):
        _made(name, euclidean_space, options)


def test_space_without_a_tree_is_refused_with_the_remedy(euclidean_space: EmbeddingSpace) -> None:
    with pytest.raises(InvalidValueError, match=r"and this one has none; .*build_hierarchy\(\)"):
        create_mechanism("hierarchical", euclidean_space, 1.5)


def test_unknown_noise_is_refused(poincare_space: EmbeddingSpace) -> None:
    with pytest.raises(InvalidValueError, match="expected noise to be one of 'riemannian'"):
        create_mechanism("hyperbolic", poincare_space, 8.0, noise="gaussian")


@pytest.mark.parametrize(("dim", "scale"), [(2, 3 / 97), (4, 21 / 97), (4, 0.5), (11, 63 / 97)])
def test_floor_of_the_riemannian_noise_is_refused_before_any_draw(dim: int, scale: float) -> None:
    space = EmbeddingSpace.from_vectors(["a", "b"], 0.1 * np.eye(2, dim), "poincare", scale)
    floor = (dim - 1) / scale
    # Rounding may put the number next to the floor on either side of it once it is scaled.
    for epsilon in (0.5 * floor, floor, np.nextafter(floor, np.inf), 1.001 * floor):
        try:
            mechanism = create_mechanism("hyperbolic", space, epsilon)
        except InvalidValueError as error:
            assert "exists only for epsilon > (n-1)/scale" in str(error)  # noqa: PT017
            assert epsilon < 1.001 * floor
        else:
            assert epsilon > floor
            assert set(mechanism.sample([0, 1], keyed_generator(0))) <= {0, 1}


@pytest.mark.parametrize("lam", [0.5, 1.0])
def test_covariance_that_will_not_do_is_refused_before_any_draw(lam: float) -> None:
    one = small_space("euclidean", [[0.5, 0.0]])
    with pytest.raises(InvalidValueError, match="expected vectors that differ from each other"):
        create_mechanism("mahalanobis", one, 1.0, lam=lam)
    line = small_space("euclidean", [[0.5, 0.0], [0.2, 0.0]])
    if lam == 1.0:
        with pytest.raises(InvalidValueError, match="expected vectors that span all 2 dimensions"):
            create_mechanism("mahalanobis", line, 1.0, lam=lam)
    else:
        assert create_mechanism("mahalanobis", line, 1.0, lam=lam).guarantee.ldp_epsilon > 0


# γ = 1.5 is nearly the diameter of the small spaces.
SMALL_CASES = [(case, metric) for case, (_, metric, *_) in CASES.items() if case != "tem-gamma"]


@pytest.mark.parametrize(("case", "metric"), SMALL_CASES)
def test_two_words(case: str, metric: str) -> None:
    mechanism = make(case, small_space(metric, [[-0.4], [0.3]]))
    drawn = mechanism.sample(np.tile([-1, 0, 1], 200), keyed_generator(0))
    assert set(drawn) == {0, 1}
    assert 0 < mechanism.guarantee.bound("a", "b") <= mechanism.guarantee.ldp_epsilon * (1 + 1e-12)


# One word has no covariance, and is refused above.
@pytest.mark.parametrize(
    ("case", "metric"), [small for small in SMALL_CASES if "mahalanobis" not in small[0]]
)
def test_one_word(case: str, metric: str) -> None:
    mechanism = make(case, small_space(metric, [[0.3]]))
    np.testing.assert_array_equal(mechanism.sample([0, -1, 0], keyed_generator(0)), [0, 0, 0])
    assert mechanism.guarantee.bound("a", "a") == 0.0
    assert list(mechanism.guarantee.neighbour_epsilon.values()) == [0.0, 0.0, 0.0]
    assert str(mechanism.guarantee)


# Those to which only the vector of a word matters.
VECTOR_CASES = [case for case in SMALL_CASES if not kind_of(CASES[case[0]][0]).own_metric]


@pytest.mark.parametrize(
    "case", [name for name in CASES if "hierarchical" in name or "krr" in name]
)
def test_unknown_words_become_any_word_where_distances_do_not_matter(
    case: str, euclidean_space: EmbeddingSpace, poincare_space: EmbeddingSpace
) -> None:
    mechanism = make(case, euclidean_space if CASES[case][1] == "euclidean" else poincare_space)
    assert isinstance(mechanism, ExactMechanism)
    np.testing.assert_array_equal(mechanism.probabilities([-1]), 1 / 500)
    drawn = mechanism.sample(np.full(5000, -1), keyed_generator(0))
    assert len(np.unique(drawn)) == 500
    assert 0 < mechanism.guarantee.bound("unknown", mechanism.space.words[0])


def assert_one_law(mechanism: Mechanism, first: int, second: int) -> None:
    """Check that two inputs have one law: as it is stated, or by draws of one stream."""
    if isinstance(mechanism, ExactMechanism):
        # What is drawn has this law: tests/statistical/test_exponential_law.py.
        rows = mechanism.probabilities([first, second])
        np.testing.assert_allclose(rows[0], rows[1], rtol=1e-12)
        assert np.count_nonzero(rows[0] > 0.01) > 2
        return
    drawn = [mechanism.sample([k] * 500, keyed_generator(0)) for k in (first, second)]
    np.testing.assert_array_equal(drawn[0], drawn[1])
    assert len(np.unique(drawn[0])) > 1


@pytest.mark.parametrize(("case", "metric"), VECTOR_CASES)
def test_words_with_the_same_vector_are_indistinguishable(case: str, metric: str) -> None:
    places = [[0.1, 0.2], [0.7, 0.1], [-0.6, 0.3], [0.2, -0.5]]
    mechanism = make(case, small_space(metric, [places[0]] * 9 + places[1:]))
    assert mechanism.guarantee.bound("a", "i") == 0.0
    assert_one_law(mechanism, 0, 8)


@pytest.mark.parametrize(("case", "metric"), VECTOR_CASES)
def test_unknown_words_are_drawn_like_a_word_at_the_centroid(case: str, metric: str) -> None:
    places = [[0.0, 0.0], [0.5, 0.25], [-0.5, -0.25], [0.125, -0.75], [-0.125, 0.75]]
    mechanism = make(case, small_space(metric, places))
    assert_one_law(mechanism, -1, 0)
    assert mechanism.guarantee.bound("unknown", "a") == 0.0


@pytest.mark.parametrize(
    "case", ["laplace", "mahalanobis-half", "tem", "calibrated", "hierarchical", "krr"]
)
@pytest.mark.parametrize("epsilon", [1e-30, 1e-12, 1e-4, 1e12, 1e300])
def test_extreme_levels_of_privacy(
    case: str, epsilon: float, euclidean_space: EmbeddingSpace
) -> None:
    space = euclidean_space.build_hierarchy(progress=False)
    mechanism = kind_of(CASES[case][0])(space, epsilon)
    ids = np.arange(500)
    drawn = mechanism.sample(ids, keyed_generator(0))
    assert drawn.min() >= 0
    if epsilon > 1:
        assert (drawn != ids).mean() < 0.02
    else:
        assert len(np.unique(drawn)) > 50
        assert (drawn != ids).mean() > 0.9
    json.dumps(mechanism.guarantee.to_dict(), allow_nan=False)


def test_output_does_not_depend_on_the_input_without_budget(
    euclidean_space: EmbeddingSpace,
) -> None:
    mechanism = create_mechanism("laplace", euclidean_space, 1e-20)
    far, near = (mechanism.sample([k] * 2000, keyed_generator(0)) for k in (0, 100))
    np.testing.assert_array_equal(far, near)


def test_threads_share_a_mechanism(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them draws what it would alone, which it does not from envelopes of other words."""
    # There is room for eight words, so that those of another thread would soon be overwritten.
    few = functools.partial(exponential.RejectionSampler, cache_bytes=1)
    monkeypatch.setattr(exponential, "RejectionSampler", few)
    monkeypatch.setattr(TruncatedExponential, "chunk", 8)
    size, threads = 1200, 8
    vectors = np.random.default_rng(0).normal(size=(size, 8))
    space = EmbeddingSpace.from_vectors([f"w{k}" for k in range(size)], vectors)

    def draws(mechanism: Mechanism, thread: int) -> list[list[int]]:
        rng, starts = keyed_generator(thread), np.random.default_rng(thread).permutation(size - 5)
        return [
            mechanism.sample(np.arange(start, start + 5), rng).tolist() for start in starts[:30]
        ]

    shared = TruncatedExponential(space, 4.0)
    barrier, drawn = threading.Barrier(threads), dict[int, list[list[int]]]()

    def work(thread: int) -> None:
        barrier.wait()
        drawn[thread] = draws(shared, thread)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        started = [threading.Thread(target=work, args=(k,)) for k in range(threads)]
        for thread in started:
            thread.start()
        for thread in started:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    alone = TruncatedExponential(space, 4.0)
    assert drawn == {thread: draws(alone, thread) for thread in range(threads)}
