"""What the page works out about a release, and what it offers."""

import re

import numpy as np
import pytest

from hf_dxprivacy.errors import InvalidValueError
from hf_dxprivacy.mechanisms import create_mechanism
from hf_dxprivacy.page.page_release import (
    RUNS,
    TOOLTIPS,
    WORDS,
    offered_ranges,
    release_sentences,
    release_text,
    shares_of_ten,
)
from hf_dxprivacy.report.card_measurements import ready_mechanism
from hf_dxprivacy.report.html import rendered
from hf_dxprivacy.sentences import SentencePool
from hf_dxprivacy.spaces import EmbeddingSpace


def test_pieces_make_up_a_release_with_the_changed_words_marked(
    euclidean_space: EmbeddingSpace,
) -> None:
    space = euclidean_space
    # With so large ε and γ every word of the vocabulary stays: others weigh e⁻¹⁰⁰ at most.
    mechanism = create_mechanism("tem", space, 500.0, gamma=2.5)
    release = release_text("WAAA, (waab)\n waac zebra!", mechanism)
    assert [span.text for span in release.spans][:7] == [
        "",
        "waaa",
        ", (",
        "waab",
        ")\n ",
        "waac",
        " ",
    ]
    *_, last, end = release.spans
    assert last.text in space
    assert end.text == "!"
    kinds = ["", "stays", "", "stays", "", "stays", "", "unknown", ""]
    assert [span.kind for span in release.spans] == kinds
    assert "".join(span.text for span in release.original) == "WAAA, (waab)\n waac zebra!"
    assert [span.tooltip for span in release.original] == [span.tooltip for span in release.spans]
    assert release.unknown == ("zebra",)
    assert (release.words, release.changed, release.different) == (4, 1, 4)
    assert "ε = 500 per unit" in release.guarantee


def test_words_with_a_space_inside_stay_one_word() -> None:
    space = EmbeddingSpace.from_vectors(["new york", "york"], np.array([[0.0], [1e-9]]))
    texts = {release_text("york", create_mechanism("tem", space, 1.0)).spans[1] for _ in range(60)}
    # Both are equally likely, so one of them is missing with a probability of 2⁻⁵⁹.
    assert {(span.text, span.kind) for span in texts} == {
        ("new york", "near"),
        ("york", "stays"),
    }


def test_figures_of_an_exponential_mechanism_are_exact(euclidean_space: EmbeddingSpace) -> None:
    mechanism = create_mechanism("tem", euclidean_space, 3.0)
    known, unknown = release_text("waad zebra Waad", mechanism).figures
    word = int(euclidean_space.ids(["waad"])[0])
    law = mechanism.probabilities([word])[0]
    assert known.kept == pytest.approx(law[word])
    assert known.spread == 1 + np.searchsorted(np.cumsum(np.sort(law)[::-1]), 0.95)
    law[word] = 0.0
    found = [output.probability for output in known.outputs]
    np.testing.assert_allclose(found, np.sort(law)[:-6:-1])
    for output in known.outputs:
        assert output.distance == pytest.approx(euclidean_space.distance("waad", output.word))
    assert (unknown.word, unknown.kept, unknown.spread) == ("zebra", None, None)
    middle = euclidean_space.distances(np.array([-1]))[0]
    assert unknown.outputs[0].word == euclidean_space.words[int(middle.argmin())]


def test_figures_of_a_mechanism_that_adds_noise_are_shares(euclidean_space: EmbeddingSpace) -> None:
    release = release_text("waad waae", create_mechanism("laplace", euclidean_space, 5.0))
    assert not release.exact
    for each in release.figures:
        assert each.kept is not None
        assert each.spread is not None
        assert each.spread > len(each.outputs) > 0
        for output in each.outputs:
            assert output.probability * RUNS == pytest.approx(round(output.probability * RUNS))
        assert sum(output.probability for output in each.outputs) < 1.0


def test_only_the_first_words_have_figures(euclidean_space: EmbeddingSpace) -> None:
    text = " ".join(euclidean_space.words[:50])
    release = release_text(text, create_mechanism("tem", euclidean_space, 3.0))
    assert [each.word for each in release.figures] == list(euclidean_space.words[:WORDS])
    assert release.different == 50


@pytest.mark.parametrize("text", ["", " ... ", "zebra"])
def test_texts_without_known_words_are_released_too(
    euclidean_space: EmbeddingSpace, text: str
) -> None:
    release = release_text(text, create_mechanism("laplace", euclidean_space, 3.0))
    words = len(text.split()) if text.strip(" .") else 0
    assert (release.words, len(release.figures)) == (words, words)
    assert words or "".join(span.text for span in release.spans) == text


def test_what_is_shown_is_escaped() -> None:
    space = EmbeddingSpace.from_vectors(["<b>", "&amp;"], np.eye(2))
    release = release_text("<i>x</i> & y", create_mechanism("tem", space, 1.0))
    each = {"name": "tem", "epsilon": 1.0, "release": release, "size": 2}
    tooltips = [tooltip._asdict() for tooltip in release.tooltips]
    shown = rendered(
        "released.html", releases=[each | {"cards": tooltips}], problem=None, runs=RUNS
    )
    assert not re.search(r"<i>|& ", shown)
    assert not re.search(r">\s*<b></span>", shown)
    assert "&lt;" in shown
    assert "\\u003cb\\u003e" in shown or "\\u0026amp;" in shown
    # A bar of the kinds, as wide as there are words, and the guarantee in three parts.
    assert sum(map(int, re.findall(r'<rect [^>]* width="(\d+)"', shown))) == release.words
    assert re.findall("<dt>(.*)</dt>", shown) == ["Near words", "Any words", "Not covered"]
    assert '<span class="w unknown">not in the space</span>' in shown
    problem = rendered("released.html", releases=[], problem="<script>", runs=RUNS)
    assert '<p class="problem" role="alert">&lt;script&gt;</p>' in problem


def test_a_space_offers_what_suits_its_metric(
    euclidean_space: EmbeddingSpace, poincare_space: EmbeddingSpace
) -> None:
    flat, ball = offered_ranges(euclidean_space), offered_ranges(poincare_space)
    assert list(flat) == ["calibrated", "laplace", "mahalanobis", "tem", "krr"]
    assert list(ball) == ["calibrated", "tem", "hyperbolic", "krr"]
    grown = offered_ranges(euclidean_space.build_hierarchy(progress=False))
    assert list(grown) == ["hierarchical", "calibrated", "laplace", "mahalanobis", "tem", "krr"]
    assert grown["hierarchical"].low < 1.0 < grown["hierarchical"].high
    unit = euclidean_space.neighbour_distances()[1]
    assert flat["tem"].low == pytest.approx(1.0 / unit, rel=0.01)
    assert flat["tem"].low < flat["tem"].start < flat["tem"].high
    # Its noise exists above this only.
    assert ball["hyperbolic"].low > (poincare_space.dim - 1) / poincare_space.scale


def test_calibration_that_takes_long_is_not_begun() -> None:
    rng = np.random.default_rng(0)
    words = [f"w{number}" for number in range(1001)]
    space = EmbeddingSpace.from_vectors(words, rng.normal(size=(1001, 4)))
    assert list(offered_ranges(space)) == ["laplace", "mahalanobis", "tem", "krr"]
    with pytest.raises(InvalidValueError, match=r"not worked out .* --epsilon 2\.5"):
        ready_mechanism(space, "calibrated", 2.5)


def test_cards_tell_how_near_a_word_is(euclidean_space: EmbeddingSpace) -> None:
    space = euclidean_space.build_hierarchy(progress=False)
    release = release_text("waaa waab zebra " * 9, create_mechanism("hierarchical", space, 1e-6))
    assert release.doubts
    for tooltip in release.tooltips:
        assert tooltip.released in space
        assert tooltip.posterior is not None
        # Everything is equally likely, whatever was released.
        assert tooltip.posterior == pytest.approx(1 / 500, rel=1e-3)
        if tooltip.original == "zebra":
            assert (tooltip.kind, tooltip.rank, tooltip.neighbours) == ("unknown", None, ())
            continue
        row, other = space.ids([tooltip.original, tooltip.released])
        distances = space.distances(np.array([row]))[0]
        assert list(tooltip.neighbours) == [
            word for word, _ in space.neighbours(tooltip.original, 5)
        ]
        if row != other:
            # The word itself is nearer than any other.
            assert tooltip.rank == (distances < distances[other]).sum()
            assert tooltip.kind == ("near" if tooltip.rank <= 100 else "middle")


def test_only_the_first_pairs_have_cards(euclidean_space: EmbeddingSpace) -> None:
    words = " ".join(euclidean_space.words)
    release = release_text(words, create_mechanism("krr", euclidean_space, 30.0))
    assert len(release.tooltips) == TOOLTIPS
    assert [span.tooltip for span in release.spans if span.kind][TOOLTIPS - 1 :][:2] == [
        TOOLTIPS - 1,
        None,
    ]
    assert {span.kind for span in release.spans} == {"", "stays"}


def test_a_random_word_of_a_shape_is_never_unchanged() -> None:
    space = EmbeddingSpace.from_pretrained("english")
    release = release_text("I met 20391 there", create_mechanism("hierarchical", space, 3.0))
    (tooltip,) = (tooltip for tooltip in release.tooltips if tooltip.original == "20391")
    assert tooltip.kind != "stays"
    assert tooltip.posterior == 0.0 or tooltip.released in space


def test_shares_of_ten_words(euclidean_space: EmbeddingSpace) -> None:
    space = euclidean_space
    assert shares_of_ten("waaa waab", create_mechanism("krr", space, 60.0)) == [10, 0, 0]
    assert shares_of_ten("zebra", create_mechanism("krr", space, 60.0)) == [0, 0, 10]
    half = shares_of_ten("waaa zebra waaa zebra", create_mechanism("krr", space, 60.0))
    assert half == [5, 0, 5]
    # 100 of 500 words are near.
    assert shares_of_ten("waaa waab", create_mechanism("krr", space, 1e-9)) == [0, 2, 8]
    assert sum(shares_of_ten("", create_mechanism("laplace", space, 3.0))) == 10


def test_sentences_are_released_one_by_one(euclidean_space: EmbeddingSpace) -> None:
    entries = [f"{a} {b} waae." for a in ("waaa", "waab") for b in ("waac", "waad")]
    pool = SentencePool.from_sentences(entries, euclidean_space, progress=False)
    mechanism = create_mechanism("hierarchical", pool.space, 60.0)
    release = release_sentences("Waaa waac waae! Waab waad waae?", pool, mechanism)
    assert (release.entries, release.words, release.changed) == ("sentences", 2, 0)
    assert [span.text for span in release.spans] == [entries[0], entries[3]]
    assert release.tooltips[0].entry == entries[0]
    assert release.tooltips[0].posterior == pytest.approx(1.0)
    assert "per sentence" in release.guarantee
    assert shares_of_ten("Waaa waac waae!", mechanism, pool) == [10, 0, 0]


def test_punctuation_of_a_vocabulary_comes_out_as_words_of_the_page() -> None:
    """GloVe and fastText have some; a list of tokens that holds them is read word by word."""
    vectors = np.random.default_rng(0).normal(size=(4, 3))
    space = EmbeddingSpace.from_vectors(["a", "b", ",", "，"], vectors)
    shown = [release_text("a b a b a b", create_mechanism("krr", space, 0.01)) for _ in range(5)]
    tooltips = [tooltip for each in shown for tooltip in each.tooltips]
    assert {",", "，"} & {tooltip.released for tooltip in tooltips}
