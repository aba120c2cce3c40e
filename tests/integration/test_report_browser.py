"""The report of a calibration: what is in it, and how a browser shows it."""

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("playwright")

from chromium import open_browser, requests_of, scrolls_sideways
from playwright.sync_api import Page

from hf_dxprivacy.report import Sweep, calibration_report, sweep
from hf_dxprivacy.report.html import TEXTS
from hf_dxprivacy.spaces import EmbeddingSpace
from hf_dxprivacy.text import RowReader

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def swept(euclidean_space: EmbeddingSpace) -> Sweep:
    return sweep(euclidean_space, "calibrated", [1.0, 4.0, 16.0], euclidean_space.words[:50])


@pytest.fixture(scope="module")
def report(swept: Sweep, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(calibration_report(swept, "Take ε = 4 & be <happy>."), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def page(report: Path) -> Iterator[Page]:
    with open_browser() as browser:
        context = browser.new_context(java_script_enabled=False)
        page = context.new_page()
        addresses = requests_of(page)
        page.set_viewport_size({"width": 375, "height": 700})
        page.goto(report.as_uri())
        yield page
        outside = [address for address in addresses if not address.startswith("data:")]
        assert outside == [report.as_uri()]


def test_it_shows_the_numbers_and_the_pictures(page: Page, swept: Sweep) -> None:
    rows = page.locator("tbody tr").all()
    shown = [re.split(r"\s+", row.inner_text().strip()) for row in rows]
    assert shown == [step.cells() for step in swept.steps]
    assert page.get_by_role("rowheader").all_inner_texts() == ["1", "4", "16"]
    pictures = page.get_by_role("img").all()
    assert len(pictures) == 3
    for picture in pictures:
        assert len(picture.get_attribute("alt") or "") > 80
        # One that can not be drawn has no size.
        assert picture.evaluate("each => each.naturalWidth") > 300


def test_headings_are_in_order_and_the_answer_comes_first(page: Page) -> None:
    levels = [h.evaluate("each => each.tagName") for h in page.get_by_role("heading").all()]
    # What a release looks like: as it is, and at three ε.
    assert levels == ["H1", "H2", *["H3"] * 4, *["H2"] * 7]
    assert page.get_by_text("Take ε = 4 & be <happy>.").is_visible()


def test_guarantees_open_without_a_script(page: Page, swept: Sweep) -> None:
    guarantee = page.locator("pre").nth(1)
    page.locator("summary", has_text="ε = 4").click()
    plain = page.locator("details[open] li").all_inner_texts()
    assert plain == list(swept.steps[1].mechanism.guarantee.plain)
    assert not guarantee.is_visible()
    page.get_by_text("The whole statement").nth(1).click()
    assert guarantee.inner_text() == str(swept.steps[1].mechanism.guarantee)


def test_it_begins_with_a_sentence_for_a_manager_and_with_releases(
    page: Page, swept: Sweep
) -> None:
    kept = [swept.steps[k].statistics.kept.mean() for k in (0, -1)]
    lead = page.locator(".lead").inner_text()
    assert f"ε = 1 keeps {kept[0]:.0%} of the words and ε = 16 keeps {kept[1]:.0%} of" in lead
    originals, *released = page.locator(".sample").all()
    # The space has no English word: its own are shown.
    texts = originals.get_by_role("listitem").all_inner_texts()
    assert len(texts) == 3
    assert set(" ".join(texts).split()) <= set(swept.statistics.words)
    for sample, step in zip(released, swept.steps, strict=True):
        shown = sample.get_by_role("listitem").all_inner_texts()
        assert [len(text.split()) for text in shown] == [len(text.split()) for text in texts]
        pairs = [*zip(" ".join(texts).split(), " ".join(shown).split(), strict=True)]
        changed = [new for old, new in pairs if new != old]
        assert sample.locator("mark").all_inner_texts() == changed
        assert f"ε = {step.mechanism.epsilon:g}" in sample.inner_text()
    assert page.get_by_role("listitem").filter(has_text="hf-dxprivacy audit guarantee").count() == 1


def test_rows_of_a_table_are_cards_on_a_telephone(page: Page) -> None:
    page.set_viewport_size({"width": 375, "height": 700})
    assert not page.locator("thead").is_visible()
    labels = [
        cell.get_attribute("data-label")
        for cell in page.locator("tbody tr").first.get_by_role("cell").all()
    ]
    assert labels[4:] == ["N_w, median", "N_w, largest", "S_w, mean", "S_w, median", "S_w, least"]
    page.set_viewport_size({"width": 1280, "height": 700})
    assert page.locator("thead").is_visible()


@pytest.mark.parametrize("width", [320, 375, 1280])
def test_it_does_not_scroll_sideways(page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 700})
    assert not scrolls_sideways(page)


def test_dark_windows_are_dark(page: Page) -> None:
    page.emulate_media(color_scheme="dark")
    letters = page.locator("h1").evaluate("each => getComputedStyle(each).color")
    assert letters == "rgb(233, 237, 245)"


def test_words_of_a_space_are_escaped() -> None:
    words = ["<script>alert(1)</script>", "b"]
    space = EmbeddingSpace.from_vectors(words, np.eye(2))
    text = calibration_report(sweep(space, "tem", [1.0], words))
    assert "<script" not in text
    assert "&lt;script&gt;alert(1)" in text
    assert "a space in memory" in text
    assert 'class="conclusion"' not in text


def test_english_spaces_release_english_sentences() -> None:
    words = sorted({word for text in TEXTS for word in RowReader().read_text(text.lower()).words})
    space = EmbeddingSpace.from_vectors(words[1:], np.eye(len(words) - 1))
    text = calibration_report(sweep(space, "tem", [0.1, 40.0], space.words))
    assert text.count(f"<li>{TEXTS[0]}</li>") == 1
    assert calibration_report(sweep(space, "tem", [0.1, 40.0], space.words)) == text
    # At ε = 40 what the space has stays; the number is unknown.
    part = text[text.index("ε = 40</h3>") : text.index("What each ε does")]
    assert part.count("<mark>") <= 2
    assert "a wonderful little restaurant: fresh fish" in part
