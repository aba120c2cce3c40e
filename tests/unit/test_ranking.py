"""Reconstruction, link prediction and depth of spaces small enough to know the answers."""

import numpy as np
import pytest

from hf_dxprivacy.errors import InvalidValueError
from hf_dxprivacy.spaces.space import EmbeddingSpace
from hf_dxprivacy.training.ranking import depth_correlation, link_prediction, reconstruction
from hf_dxprivacy.training.relations import Relations, split_relations

# On a line, from a: b at 1, c at 2, d at 3, e at 4.
LINE = EmbeddingSpace.from_vectors(list("abcde"), np.arange(5.0)[:, None])


def test_reconstruction_of_a_known_ranking() -> None:
    """The classes of a are b and d, and c is between them."""
    relations = Relations.from_names([("a", "b"), ("a", "d")], nodes="abcde")
    result = reconstruction(LINE, relations)
    assert result.mean_average_precision == pytest.approx((1 / 1 + 2 / 3) / 2)
    assert result.mean_rank == pytest.approx((1 + 2) / 2)
    assert result.nodes == 1
    with pytest.raises(InvalidValueError, match="1 nodes that are not among its 5 words"):
        reconstruction(LINE, Relations.from_names([("a", "z")]))
    with pytest.raises(InvalidValueError, match="got 0 relations"):
        reconstruction(LINE, Relations.from_names([]))


def test_members_of_a_node_count_as_others() -> None:
    """From b, whose class is c, its member a is as far away and comes before."""
    relations = Relations.from_names([("a", "b"), ("b", "c")], nodes="abcde")
    result = reconstruction(LINE, relations)
    assert result.mean_average_precision == pytest.approx((1 / 1 + 1 / 2) / 2)
    assert result.mean_rank == pytest.approx((1 + 2) / 2)


def test_the_worst_hundredth_can_be_set_aside() -> None:
    """Words on a line have the next one as their class, the neighbour before being as near."""
    names = [f"w{place}" for place in range(300)]
    line = EmbeddingSpace.from_vectors(names, np.arange(300.0)[:, None])
    pairs = [(names[place], names[place + 1]) for place in range(199)] + [("w250", "w0")]
    result = reconstruction(line, Relations.from_names(pairs, nodes=names))
    assert result.mean_rank == pytest.approx((1 + 198 * 2 + 299) / 200)
    assert result.trimmed_mean_rank == pytest.approx((1 + 197 * 2) / 198)


def _slow(space: EmbeddingSpace, relations: Relations) -> tuple[float, float]:
    """Rank as [N] describes it, one relation at a time."""
    precisions, ranks = [], []
    everything = range(len(space))
    for node in np.unique(relations.pairs[:, 0]).tolist():
        distance = [space.distance(node, other) for other in everything]
        classes = relations.pairs[relations.pairs[:, 0] == node, 1].tolist()
        order = sorted(set(everything) - {node}, key=lambda other: distance[other])
        found = [place for place, other in enumerate(order, start=1) if other in classes]
        precisions.append(np.mean([(k + 1) / place for k, place in enumerate(found)]))
        for above in classes:
            others = set(everything) - set(classes) - {node}
            ranks.append(1 + sum(distance[other] < distance[above] for other in others))
    return float(np.mean(precisions)), float(np.mean(ranks))


def test_reconstruction_is_that_of_the_paper(poincare_space: EmbeddingSpace) -> None:
    rng = np.random.default_rng(3)
    names = poincare_space.words[:150]
    pairs = [(names[a], names[b]) for a, b in rng.integers(150, size=(400, 2)) if a != b]
    small = EmbeddingSpace.from_vectors(names, poincare_space.vectors[:150], "poincare")
    relations = Relations.from_names(pairs, nodes=names)
    result = reconstruction(small, relations)
    assert (result.mean_average_precision, result.mean_rank) == pytest.approx(
        _slow(small, relations)
    )
    some = reconstruction(small, relations, sample=40, seed=1)
    assert some.nodes == 40
    assert some != reconstruction(small, relations, sample=40, seed=2)


def test_known_links_do_not_compete_with_held_out_ones() -> None:
    """From a, c is second to b, unless b is known to be a class of a."""
    held_out = Relations.from_names([("a", "c")], nodes="abcde")
    known = Relations.from_names([("a", "b"), ("e", "a")], nodes="abcde")
    unrelated = Relations.from_names([("d", "a")], nodes="abcde")
    assert link_prediction(LINE, held_out, unrelated).mean_rank == 2.0
    assert link_prediction(LINE, held_out, unrelated).mean_average_precision == 0.5
    assert link_prediction(LINE, held_out, known).mean_rank == 1.0
    assert link_prediction(LINE, held_out, known).mean_average_precision == 1.0


def test_a_split_leaves_joined_what_was_joined() -> None:
    rng = np.random.default_rng(5)
    pairs = {(f"n{a}", f"n{b}") for a, b in rng.zipf(1.5, size=(3000, 2)) if a < b < 500}
    pairs |= {(f"n{b}", f"n{a}") for a, b in rng.zipf(1.5, size=(100, 2)) if a < b < 500}
    relations = Relations.from_names(pairs)
    kept, held_out = split_relations(relations, 0.2, seed=4)
    assert kept.nodes == held_out.nodes == relations.nodes
    assert len(held_out) == round(0.2 * len(relations))
    assert np.array_equal(kept.components(), relations.components())
    assert relations.components().max() > 0
    both = np.unique(np.concatenate([kept.pairs, held_out.pairs]), axis=0)
    np.testing.assert_array_equal(both, relations.pairs)
    assert not np.array_equal(split_relations(relations, 0.2, seed=5)[1].pairs, held_out.pairs)


def test_a_split_that_would_leave_nodes_alone_is_refused() -> None:
    star = Relations.from_names([(name, "top") for name in "abcdefgh"])
    with pytest.raises(InvalidValueError, match=r"hold out 4 of 8 .* but 0 can be spared"):
        split_relations(star, 0.5)
    with pytest.raises(InvalidValueError, match=r"0\.0 < share < 1\.0"):
        split_relations(star, 1.0)


def test_depth_goes_with_the_distance_from_the_centre() -> None:
    chain = Relations.from_names([(a, b) for a in "abcd" for b in "abcd" if a > b])
    points = np.array([[0.0, 0.1], [0.5, 0.0], [-0.6, 0.0], [0.0, 0.9]])
    assert (
        depth_correlation(EmbeddingSpace.from_vectors(list("abcd"), points, "poincare"), chain)
        == 1.0
    )
    turned = EmbeddingSpace.from_vectors(list("dcba"), points, "poincare")
    assert depth_correlation(turned, chain) == -1.0
