"""The peers keep what they state, by their exact laws over all pairs of 300 words.

The laws are worked out anew, from the papers' definitions.
"""

import numpy as np
import pytest

from hf_dxprivacy.evaluation.peer_candidates import PEERS, CusText, SynTF, TruncatedGumbel
from hf_dxprivacy.evaluation.peers import Diffractor, SanText, Vickrey
from hf_dxprivacy.mechanisms import Mechanism
from hf_dxprivacy.spaces import EmbeddingSpace
from hf_dxprivacy.verify import verify_guarantee
from peer_laws import (
    clusters_of,
    diffractor,
    gumbel_logs,
    in_sets,
    largest_log_ratios,
    vickrey_on_a_line,
    worst_share,
)

WORDS = [f"w{k}" for k in range(300)]


@pytest.fixture(scope="module")
def space() -> EmbeddingSpace:
    """300 words in eight dimensions, in clusters of uneven density, with a tree."""
    rng = np.random.default_rng(5)
    centers, of = 2.0 * rng.normal(size=(15, 8)), rng.integers(15, size=300)
    spread = rng.uniform(0.1, 1.2, size=15)[of, None]
    made = EmbeddingSpace.from_vectors(WORDS, centers[of] + spread * rng.normal(size=(300, 8)))
    return made.build_hierarchy(progress=False)


def with_unknown(space: EmbeddingSpace) -> np.ndarray:
    """Return the vectors of all inputs, the last of which is the unknown word."""
    return np.concatenate([space.vectors, space.centroid[None]]).astype(np.float64)


def euclidean(places: np.ndarray) -> np.ndarray:
    return np.stack([np.linalg.norm(places - place, axis=1) for place in places])


def stated(mechanism: Mechanism) -> np.ndarray:
    """Return the bounds that a mechanism states for all pairs of inputs."""
    ids = np.append(np.arange(len(mechanism.space)), -1)
    a, b = np.meshgrid(ids, ids)
    bounds = mechanism.certified_epsilon * mechanism.pair_distances(a.ravel(), b.ravel())
    return bounds.reshape(a.shape)


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 8.0, 300.0])
def test_santext(space: EmbeddingSpace, epsilon: float) -> None:
    mechanism, distances = SanText(space, epsilon), euclidean(with_unknown(space))
    inputs = np.append(np.arange(300), -1)
    laws = np.exp(-epsilon / 2.0 * (distances - distances.min(axis=1, keepdims=True))[:, :300])
    laws /= laws.sum(axis=1, keepdims=True)
    found = mechanism.probabilities(inputs)
    np.testing.assert_allclose(found, laws, atol=1e-9)
    if epsilon < 100:
        # Nowhere truncated: the paper's law to the last digit.
        np.testing.assert_allclose(found, laws, rtol=1e-6)
        assert worst_share(largest_log_ratios(laws), epsilon * distances) <= 1
    ratios = largest_log_ratios(found)
    share = worst_share(ratios, stated(mechanism))
    print(f"santext ε={epsilon}: {share:.4f} of ε·d")
    assert 0.5 < share <= 1
    assert mechanism.exact_epsilon() <= epsilon
    assert worst_share(ratios, mechanism.exact_epsilon() * distances) <= 1
    assert ratios.max() <= mechanism.guarantee.ldp_epsilon
    # Without the half it is not.
    doubled = SanText(space, 2 * epsilon).probabilities(inputs)
    assert worst_share(largest_log_ratios(doubled), stated(mechanism)) > 1


@pytest.mark.parametrize("t", [0.0, 0.5, 0.9, 1.0])
def test_vickrey_on_a_line(t: float) -> None:
    places = np.random.default_rng(3).normal(size=300).cumsum()
    line, epsilon = EmbeddingSpace.from_vectors(WORDS, places[:, None]), 0.5
    mechanism, inputs = Vickrey(line, epsilon, t), with_unknown(line)[:, 0]
    laws = vickrey_on_a_line(places, inputs, epsilon, t)
    np.testing.assert_allclose(laws.sum(axis=1), 1.0, atol=1e-9)
    ratios = largest_log_ratios(laws)
    share = worst_share(ratios, stated(mechanism))
    print(f"vickrey t={t}: {share:.4f} of ε·d")
    assert 0.9 < share <= 1 + 1e-6
    assert ratios.max() <= mechanism.guarantee.ldp_epsilon
    louder = vickrey_on_a_line(places, inputs, 1.1 * epsilon, t)
    assert worst_share(largest_log_ratios(louder), stated(mechanism)) > 1.01


@pytest.mark.parametrize(("epsilon", "lists"), [(0.05, 1), (0.05, 5), (1.0, 3), (30.0, 2)])
def test_diffractor(space: EmbeddingSpace, epsilon: float, lists: int) -> None:
    mechanism = Diffractor(space, epsilon, lists)
    orders = mechanism._orders
    assert (np.sort(orders, axis=1) == np.arange(300)).all()
    assert len({tuple(order) for order in orders.tolist()}) == lists
    laws, inputs = diffractor(orders, epsilon), np.arange(300)
    found = mechanism.probabilities(inputs)
    np.testing.assert_allclose(found, laws, atol=1e-12)
    np.testing.assert_array_equal(mechanism.probabilities([-1])[0], found[mechanism._home])
    allowed = stated(mechanism)[:300, :300]
    places = np.argsort(orders, axis=1)
    apart = np.abs(places[:, :, None] - places[:, None]).max(axis=0)
    np.testing.assert_allclose(allowed, epsilon * apart)
    share = worst_share(largest_log_ratios(found), allowed)
    print(f"diffractor ε={epsilon}, {lists} lists: {share:.4f} of ε·places")
    assert 0.3 < share <= 1 + 1e-9
    if lists == 1:
        assert share == pytest.approx(1.0)
    else:
        # Of one list only, the distance is not enough.
        one = epsilon * np.abs(places[0, :, None] - places[0])
        assert worst_share(largest_log_ratios(found), one) > 1.01
    louder = Diffractor(space, 4.0 * epsilon, lists).probabilities(inputs)
    assert worst_share(largest_log_ratios(louder), allowed) > 1


def test_words_near_in_the_space_are_near_in_some_list(space: EmbeddingSpace) -> None:
    mechanism, distances = Diffractor(space, 1.0, 5), euclidean(space.vectors)
    np.fill_diagonal(distances, np.inf)
    words, nearest = np.arange(300), distances.argmin(axis=1)
    places = np.argsort(mechanism._orders, axis=1)
    least = np.abs(places[:, words] - places[:, nearest]).min(axis=0)
    assert np.median(least) < 5


@pytest.mark.parametrize(("epsilon", "k"), [(0.5, 20), (4.0, 20), (4.0, 2), (4.0, 150), (9.0, 500)])
def test_custext_holds_inside_its_clusters_only(
    space: EmbeddingSpace, epsilon: float, k: int
) -> None:
    mechanism, distances = CusText(space, epsilon, k), euclidean(space.vectors)
    sets = clusters_of(distances, k)
    assert min(map(len, sets)) >= min(k, 300)
    check_sets(mechanism, in_sets(distances, sets, epsilon), sets)


@pytest.mark.parametrize(("epsilon", "k"), [(0.5, 5), (4.0, 5), (4.0, 12), (9.0, 300)])
def test_syntf_holds_between_words_of_equal_candidates_only(
    space: EmbeddingSpace, epsilon: float, k: int
) -> None:
    mechanism, tree = SynTF(space, epsilon, k), space.hierarchy
    assert tree is not None
    clusters = [
        set(tree.order[start : start + size].tolist())
        for start, size in zip(tree.starts.tolist(), tree.sizes.tolist(), strict=True)
    ]
    large = sorted((cluster for cluster in clusters if len(cluster) >= k), key=len)
    sets = [next(cluster for cluster in large if word in cluster) for word in range(300)]
    check_sets(mechanism, in_sets(euclidean(space.vectors), sets, epsilon), sets)


def check_sets(mechanism: CusText | SynTF, laws: np.ndarray, sets: list[set[int]]) -> None:
    found, allowed = mechanism.probabilities(np.arange(300)), stated(mechanism)[:300, :300]
    np.testing.assert_allclose(found, laws, atol=1e-12)
    alike = np.array([[a == b for b in sets] for a in sets])
    np.testing.assert_array_equal(np.isfinite(allowed), alike)
    ratios = largest_log_ratios(found)
    share = worst_share(ratios, allowed)
    print(f"{mechanism.name} ε={mechanism.epsilon}, k={mechanism.k}: {share:.4f} of ε")
    assert 0.3 < share <= 1
    # Between other words the claim of the papers, ε, is not met, by nothing finite.
    assert np.isinf(ratios[~alike]).all()
    assert np.isinf(mechanism.guarantee.ldp_epsilon) == (not alike.all())
    home = int(np.linalg.norm(mechanism.space.vectors - mechanism.space.centroid, axis=1).argmin())
    assert mechanism.guarantee.bound("unknown", mechanism.space.words[home]) == 0.0


def test_the_claim_of_truncated_gumbel_is_not_met(space: EmbeddingSpace) -> None:
    distances = euclidean(space.vectors)
    epsilon = 1.2 * (5 + 2 * np.log(300)) / distances[distances > 0].min()
    mechanism, logs = TruncatedGumbel(space, epsilon), gumbel_logs(distances, epsilon, every=5)
    found = mechanism.probabilities(np.arange(300))
    np.testing.assert_allclose(found[::5], np.exp(logs), atol=1e-10)
    ratios = np.stack([np.abs(logs - row).max(axis=1) for row in logs])
    share = worst_share(ratios, epsilon * distances[::5, ::5])
    print(f"truncated-gumbel ε={epsilon:.4g}: {share:.4f} of ε·d, at most {ratios.max():.0f}")
    assert 2 < share < np.inf
    # In double precision there is no bound at all, and none is stated.
    assert np.isinf(largest_log_ratios(found)).any()
    assert np.isinf(stated(mechanism)[:300, :300][distances > 0]).all()


@pytest.mark.parametrize("name", PEERS)
def test_the_audit_passes_what_is_stated(space: EmbeddingSpace, name: str) -> None:
    mechanism = PEERS[name](space, 100.0 if name == "truncated-gumbel" else 2.0)
    found = verify_guarantee(mechanism, draws=200_000, inputs=60, rng=np.random.default_rng(0))
    assert found.passed, found
    assert found.method == ("sampling" if name == "vickrey" else "exact")
    unbounded = np.isinf(mechanism.guarantee.ldp_epsilon)
    assert ("without a finite bound" in str(found)) == unbounded


@pytest.mark.parametrize("name", [name for name in PEERS if name != "vickrey"])
def test_a_smaller_level_than_the_true_one_does_not_pass(space: EmbeddingSpace, name: str) -> None:
    mechanism = PEERS[name](space, 100.0 if name == "truncated-gumbel" else 2.0)
    claim = {"santext": 0.5, "diffractor": 0.3}.get(name, 0.6)

    class Claims(type(mechanism)):  # type: ignore[misc]
        def pair_distances(self, ids_a: np.ndarray, ids_b: np.ndarray) -> np.ndarray:
            away = super().pair_distances(ids_a, ids_b)
            return claim * (np.minimum(away, 1.0) if np.isinf(away).any() else away)

        @property
        def certified_epsilon(self) -> float:
            return (claim if name == "santext" else 1.0) * self.epsilon

    found = verify_guarantee(Claims(space, mechanism.epsilon), inputs=60)
    assert not found.passed
