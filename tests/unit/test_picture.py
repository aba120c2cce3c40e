"""The picture of the Poincaré disk."""

from pathlib import Path

import numpy as np
import pytest

from hf_dxprivacy.errors import InvalidValueError
from hf_dxprivacy.report.poincare_disk import draw_disk
from hf_dxprivacy.spaces.space import EmbeddingSpace
from hf_dxprivacy.training.relations import Relations

pytest.importorskip("matplotlib")

POINTS = np.array([[0.0, 0.1], [0.5, -0.2], [-0.6, 0.7]])
DISK = EmbeddingSpace.from_vectors(["animal", "dog", "cat"], POINTS, "poincare")


def test_words_and_relations_are_where_they_should_be(tmp_path: Path) -> None:
    relations = Relations.from_names([("dog", "animal"), ("cat", "animal")])
    figure = draw_disk(DISK, labels=["cat"], relations=relations)
    (axes,) = figure.axes
    lines, dots = axes.collections
    np.testing.assert_array_equal(dots.get_offsets(), POINTS)
    drawn = {tuple(map(tuple, line)) for line in lines.get_segments()}
    assert drawn == {(tuple(POINTS[1]), tuple(POINTS[0])), (tuple(POINTS[2]), tuple(POINTS[0]))}
    assert [(text.get_text(), text.xy) for text in axes.texts] == [("cat", tuple(POINTS[2]))]
    figure.savefig(tmp_path / "disk.svg")
    assert "<svg" in (tmp_path / "disk.svg").read_text()


def test_what_cannot_be_drawn_is_refused(poincare_space: EmbeddingSpace) -> None:
    with pytest.raises(InvalidValueError, match=r"got poincare of 4; train one with .*dim=2"):
        draw_disk(poincare_space)
    flat = EmbeddingSpace.from_vectors(["a"], np.zeros((1, 2)))
    with pytest.raises(InvalidValueError, match="got euclidean of 2"):
        draw_disk(flat)
    with pytest.raises(InvalidValueError, match="1 of 2 words to draw are not in"):
        draw_disk(DISK, labels=["cat", "mouse"])
