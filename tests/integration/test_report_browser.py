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
from hf_dxprivacy.spaces import EmbeddingSpace

pytestmark = pytest.mark.slow


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
    rows = page.get_by_role("table").get_by_role("row").all()
    shown = [re.split(r"\s+", row.inner_text().strip()) for row in rows[1:]]
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
    assert levels == ["H1"] + ["H2"] * 5
    assert page.get_by_text("Take ε = 4 & be <happy>.").is_visible()


def test_guarantees_open_without_a_script(page: Page, swept: Sweep) -> None:
    guarantee = page.locator("pre").nth(1)
    assert not guarantee.is_visible()
    page.get_by_text("ε = 4", exact=True).click()
    assert guarantee.inner_text() == str(swept.steps[1].mechanism.guarantee)


@pytest.mark.parametrize("width", [320, 375, 1280])
def test_it_does_not_scroll_sideways(page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 700})
    assert not scrolls_sideways(page)


def test_dark_windows_are_dark(page: Page) -> None:
    page.emulate_media(color_scheme="dark")
    letters = page.locator("h1").evaluate("each => getComputedStyle(each).color")
    assert letters == "rgb(255, 255, 255)"


def test_words_of_a_space_are_escaped() -> None:
    words = ["<script>alert(1)</script>", "b"]
    space = EmbeddingSpace.from_vectors(words, np.eye(2))
    text = calibration_report(sweep(space, "tem", [1.0], words))
    assert "<script" not in text
    assert "&lt;script&gt;alert(1)" in text
    assert "a space in memory" in text
    assert 'class="conclusion"' not in text
