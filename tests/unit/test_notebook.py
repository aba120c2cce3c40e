"""What a notebook shows: what prints, escaped, in the colours of the notebook."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest

from hf_dxprivacy import DxPrivatizer, PrivacyBudget, SentencePrivatizer
from hf_dxprivacy._notebook import ReprHTML, as_html
from hf_dxprivacy.calibration import privacy_statistics, suggest_epsilon
from hf_dxprivacy.evaluation.comparison import Compared, Comparison
from hf_dxprivacy.guarantee import CorpusGuarantee
from hf_dxprivacy.report import sweep
from hf_dxprivacy.results import Interval, Result, Results
from hf_dxprivacy.sentences import SentencePool
from hf_dxprivacy.spaces import EmbeddingSpace
from hf_dxprivacy.verify import verify_guarantee

EVIL = "<script>alert('1')</script><img onerror=x>&\""


class Reader(HTMLParser):
    """Collects tags and text, and holds that tags are closed in order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.styles: list[str] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(html)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Hold that styles are all that a tag has."""
        assert {name for name, _ in attrs} <= {"style"}
        self.styles += [value or "" for _, value in attrs]
        self.tags.append(tag)
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Hold that it was the last one that was opened."""
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Keep the text."""
        self.text += f"{data}\n"


def read(shown: ReprHTML) -> Reader:
    """Read what a notebook shows, and hold what is true of all of it."""
    found = Reader(shown._repr_html_())
    allowed = {"div", "strong", "ul", "li", "table", "tr", "th", "td", "details", "summary"}
    assert set(found.tags) <= allowed
    for style in found.styles:
        # Letters and ground are the notebook's, light or dark; nothing is asked for from elsewhere.
        assert not re.search(r"(?<![-\w])(color|background)|url|position", style)
    return found


@pytest.fixture
def space() -> EmbeddingSpace:
    words = [EVIL, "b", "c|d", "e", "f", "g"]
    return EmbeddingSpace.from_vectors(words, np.eye(6))


def test_a_privatizer_and_its_guarantee(space: EmbeddingSpace) -> None:
    privatizer = DxPrivatizer(space, "tem", 2.0, text_column=f"{EVIL}[].x")
    shown = read(privatizer)
    assert shown.text.startswith("DxPrivatizer: \ntem, ε = 2, 6 words\nNear words: \n")
    assert shown.tags.count("details") == 1
    assert "all of column '<script>alert(" in shown.text
    for part in (*privatizer.guarantee.plain, *privatizer.guarantee.assumptions):
        assert part in shown.text.replace(": \n", ": ")
    assert "DxPrivatizer" not in read(privatizer.guarantee).text
    assert "seed" not in read(DxPrivatizer(space, "tem", 2.0)).text
    assert "987654321" not in read(DxPrivatizer(space, "tem", 2.0, seed=987654321 << 64)).text


def test_a_privatizer_of_sentences(euclidean_space: EmbeddingSpace) -> None:
    entries = [f"{a} waab waae." for a in ("waaa", "waac", "waaf")]
    pool = SentencePool.from_sentences(entries, euclidean_space, progress=False)
    shown = read(SentencePrivatizer(pool, epsilon=1.0)).text
    assert shown.startswith(
        "SentencePrivatizer: \nhierarchical, ε = 1, 3 sentences\nNear texts: \n"
    )


def test_statistics_are_tables(space: EmbeddingSpace) -> None:
    law = DxPrivatizer(space, "tem", 2.0).mechanism
    found = privacy_statistics(law, space.words, 10, progress=False)
    shown = read(found)
    assert shown.text.startswith("Statistics of 6 words, exactly\n6 words\nmean\n")
    assert "kept" in shown.text
    assert f"{EVIL}: {found.kept[0]:.1%}" in shown.text
    assert shown.tags.count("tr") == read(found.summary()).tags.count("tr") > 3
    swept = sweep(space, "tem", [1.0, 2.0], space.words)
    assert read(swept).tags.count("td") == 20
    assert swept.steps[1].cells()[4] in read(swept).text


def test_what_was_found_out(space: EmbeddingSpace) -> None:
    law = DxPrivatizer(space, "tem", 2.0).mechanism
    assert read(verify_guarantee(law)).text.startswith("nothing above ε·d (exact)\n")
    suggested = suggest_epsilon(space, "tem", max_nw=0.9, progress=False)
    assert "N_w ≤ 0.9" in read(suggested).text
    results = Results([Result.of("guess", EVIL, Interval(0.5, 0.4, 0.6), dataset="mail")])
    assert "Results: \n1\ntask\n" in read(results).text
    assert EVIL in read(results).text
    assert read(Results()).tags.count("td") == 0
    assert "ε" in read(PrivacyBudget(3.0)).text
    assert "ε_g = 2" in read(CorpusGuarantee(2.0)).text


def test_a_comparison_has_its_table_and_its_notes() -> None:
    texts = np.array([0.2, 0.4, 0.6, 0.8])
    rows = [
        Compared(
            *(EVIL, epsilon, "word", "claim", "exact", "how", 1.0, 4.0, "nothing"),
            {"kept": Interval(0.5, 0.4, 0.6), "b1": Interval(leak, leak, leak)},
            {"kept": texts},
        )
        for epsilon, leak in ((1.0, 0.1), (2.0, 0.3))
    ]
    found = Comparison(tuple(rows), "kept", (), np.arange(4), ("Of 4 texts.",), (f"Mind {EVIL}",))
    shown = read(found)
    assert found.headline in shown.text
    assert shown.tags.count("tr") == 1 + len(found.rows)
    assert shown.text.endswith(f"Details\nOf 4 texts.\nMind {EVIL}\n")


def test_lines_tables_and_lists() -> None:
    text = "Title\nA label: text\nno label\n| a | b |\n|---|---:|\n| 1 | 2 |\n  - one\n  - two\n"
    html = as_html(f"{text}Details:\n  more <b>")
    assert html.index("<strong>Title</strong>") < html.index("<strong>A label: </strong>text")
    assert "<div>no label</div>" in html
    assert 'text-align: right">2</td>' in html
    assert 'text-align: left">1</td>' in html
    assert "<li>one</li><li>two</li>" in html
    assert html.endswith("<div>more &lt;b&gt;</div></details></div>")
    assert "<details>" not in as_html(text)


def test_a_representation_is_one_short_line_without_all_figures(space: EmbeddingSpace) -> None:
    found = sweep(space, "tem", [1.0, 2.0], words=["b", "e"], runs=20, progress=False)
    statistics = privacy_statistics(found.mechanism, words=["b", "e"], runs=20)
    for shown, name in ((found, "Sweep"), (statistics, "PrivacyStatistics")):
        assert repr(shown).startswith(f"<{name}: ")
        assert "\n" not in repr(shown)
        assert len(repr(shown)) < 200
