"""The demo page in a browser: what is shown, what is asked for from elsewhere, what is kept."""

import os
import random
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

pytest.importorskip("uvicorn")
pytest.importorskip("playwright")

from chromium import open_browser, requests_of, scrolls_sideways
from playwright.sync_api import Browser, Page, expect

from hf_dxprivacy.spaces import EmbeddingSpace
from machine import PATIENCE

pytestmark = pytest.mark.cluster

SENTENCE = "The soup was cold and the waiter rude."
WORDS = 8
RELEASED = ".released .text"
expect.set_options(timeout=1000.0 * PATIENCE)


@dataclass(frozen=True)
class Server:
    """A page that is served.

    Attributes:
        url: Where.
        process: By what.
        folder: Where its temporary files and its log are.
    """

    url: str
    process: "subprocess.Popen[str]"
    folder: Path

    def holds(self, text: str) -> bool:
        """Ask whether a session of the page still holds a text."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{text}\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline()) > 0


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("page")
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("page_server.py")), str(free_port())],
            env={**os.environ, "TMPDIR": str(folder)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
        assert process.stdout is not None
        yield Server(process.stdout.readline().strip(), process, folder)
        process.kill()
        process.communicate()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as opened:
        yield opened


@pytest.fixture
def page(browser: Browser, server: Server) -> Iterator[Page]:
    """The page in a window of its own, all of whose requests stay on this machine."""
    opened = browser.new_page()
    opened.set_default_timeout(1000.0 * PATIENCE)
    addresses = requests_of(opened)
    opened.goto(server.url)
    yield opened
    assert len(addresses) > 3
    assert [address for address in addresses if not address.startswith(server.url)] == []
    opened.close()


def privatize(page: Page, text: str) -> None:
    page.get_by_label("Text", exact=True).fill(text)
    press(page)


def press(page: Page) -> None:
    page.get_by_role("button", name="Privatize").click()


def changed(page: Page, words: int = WORDS) -> int:
    """Return how many words are said to have changed, once it is said of so many words."""
    said = page.get_by_role("status").filter(has_text=f"of {words:,} words changed")
    found = re.match(r"[\d,]+", said.inner_text())
    assert found is not None
    count = int(found[0].replace(",", ""))
    assert page.locator(f"{RELEASED} .w:not(.stays)").count() == count
    return count


def choose(page: Page, source: str, mechanism: str) -> None:
    page.locator(f"input[value={source}]").check()
    page.get_by_label("Mechanism", exact=True).select_option(mechanism)


def test_words_change_as_the_slider_says(page: Page) -> None:
    assert page.locator("input[value=english]").is_checked()
    expect(page.get_by_label("Mechanism", exact=True)).to_have_value("hierarchical")
    choose(page, "wordnet-gloss", "calibrated")
    slider = page.locator("#epsilon-0")
    expect(slider).to_have_attribute("max", "16")
    slider.press("Home")
    expect(page.locator("#live-0")).to_contain_text("Of ten words about none stay")
    privatize(page, SENTENCE)
    # Each word stays with a probability below 0.001.
    assert changed(page) >= WORDS - 2
    released = page.locator(RELEASED).inner_text()
    assert len(released.split()) == WORDS
    assert released.endswith(".")
    assert "ε = 1 per unit" in (page.locator(".guarantee").text_content() or "")
    slider.press("End")
    expect(page.locator("#live-0")).to_have_text("Of ten words about all ten stay.")
    press(page)
    expect(page.locator(".guarantee")).to_contain_text("ε = 16 per unit")
    # And now with one above 0.99.
    assert changed(page) <= 1
    page.get_by_text("What each word may become").click()
    rows = page.get_by_role("table").get_by_role("row")
    assert rows.count() == 1 + len(set(SENTENCE.lower().split()))
    assert "new release of the same text" in page.locator("body").inner_text()


def test_another_space_and_mechanism_bring_their_own_range(page: Page) -> None:
    choose(page, "wordnet-poincare", "hyperbolic")
    expect(page.locator("#epsilon-0")).to_have_attribute("min", "32")
    assert "laplace" not in page.get_by_label("Mechanism", exact=True).inner_text()
    privatize(page, "the guitar of zzyzx")
    assert changed(page, 4) >= 1
    assert page.locator("p.unknown q").all_inner_texts() == ["the", "of", "zzyzx"]
    assert "hyperbolic distance" in (page.locator(".guarantee").text_content() or "")
    assert (page.locator("table").text_content() or "").count("not in the vocabulary") == 3


def test_a_word_tells_what_became_of_it(page: Page) -> None:
    page.get_by_role("button", name="A complaint").click()
    expect(page.get_by_label("Original text")).to_contain_text("Ohio")
    page.locator(f"{RELEASED} .far, {RELEASED} .near, {RELEASED} .middle").first.hover()
    card = page.locator("#card")
    expect(card).to_contain_text("→")
    expect(card).to_contain_text("Nearest to the original: ")
    expect(card).to_contain_text("% sure that “")
    # The same place in both texts.
    assert page.locator(".on").count() == 2
    page.get_by_label("grey what a reader would doubt").check()
    assert page.locator(".doubting").count() == 1
    lost, words = (page.locator(f"{RELEASED} .{name}").count() for name in ("doubtful", "w"))
    assert lost < words


def test_it_begins_with_an_example_to_type_over(page: Page) -> None:
    text = page.get_by_label("Text", exact=True)
    assert "restaurant" in text.input_value()
    expect(page.locator(RELEASED)).to_contain_text(":")
    assert page.locator("svg.bar rect").count() > 3
    assert page.locator(".promise dt").all_inner_texts() == [
        "Near words",
        "Any words",
        "Not covered",
    ]
    text.focus()
    page.keyboard.type("guitar")
    assert text.input_value() == "guitar"
    text.focus()
    page.keyboard.type(" soup")
    assert text.input_value() == "guitar soup"
    press(page)
    changed(page, 2)


def test_two_mechanisms_side_by_side(page: Page) -> None:
    expect(page.get_by_label("Compared with")).to_be_hidden()
    page.get_by_label("compare two mechanisms").check()
    page.get_by_label("Compared with").select_option("krr")
    expect(page.locator("#live-1")).to_contain_text("Of ten words about")
    privatize(page, SENTENCE)
    expect(page.locator(".released")).to_have_count(2)
    assert "krr" in page.locator(".released h2").nth(1).inner_text()
    assert page.locator("h3", has_text="What is guaranteed").count() == 2


def test_whole_sentences(page: Page) -> None:
    page.locator("input[value=wordnet-sentences]").check()
    expect(page.locator("#live-0")).to_contain_text("Of ten sentences")
    privatize(page, f"{SENTENCE} I liked it.")
    expect(page.locator(".released [role=status]")).to_contain_text("of 2 became")
    assert page.locator(f"{RELEASED} .w").count() == 2
    assert "per sentence" in (page.locator(".guarantee").text_content() or "")


def test_the_keyboard_is_enough(page: Page) -> None:
    def tab_to(selector: str) -> None:
        # On a busy machine the key is faster than the page, and nothing leads to what is not there.
        page.locator(selector).first.wait_for()
        for _ in range(60):
            page.keyboard.press("Tab")
            if page.locator(f"{selector}:focus").count():
                return
        pytest.fail(f"the key does not lead to {selector}")

    tab_to("textarea")
    page.keyboard.type(SENTENCE)
    tab_to("input[type=range]")
    page.keyboard.press("Home")
    tab_to("button.primary")
    page.keyboard.press("Enter")
    assert changed(page) >= WORDS - 2
    tab_to(RELEASED)
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(page.locator("#card")).to_contain_text(re.compile("^soup (→|stayed)"))
    page.keyboard.press("Escape")
    expect(page.locator("#card")).to_be_hidden()


def test_ten_thousand_words_are_no_trouble(page: Page) -> None:
    vocabulary = EmbeddingSpace.from_pretrained("wordnet-gloss").words
    words = random.Random(5).choices(vocabulary, k=10_000)
    choose(page, "wordnet-gloss", "calibrated")
    privatize(page, " ".join(words))
    # At ε = 6 between a third and a half of the words stay.
    assert 4_000 < changed(page, 10_000) < 8_000
    assert len(page.locator(RELEASED).inner_text().split()) == 10_000
    page.get_by_text("What each word may become").click()
    assert page.get_by_role("table").get_by_role("row").count() == 21
    assert f"first 20 of {len(set(words)):,} different" in page.locator("body").inner_text()


def test_what_is_missing_is_said_and_markup_is_text(page: Page) -> None:
    privatize(page, "   ")
    expect(page.get_by_role("alert").filter(has_text="There is no text yet.")).to_be_visible()
    page.locator("#epsilon-0").press("End")
    privatize(page, "<img src=x> {{value}} ${value} soup")
    page.locator(RELEASED).wait_for()
    assert page.locator(".text img").count() == 0
    released = page.locator(RELEASED).inner_text()
    assert re.fullmatch(r"<\S+ \S+=\S+> \{\{\S+\}\} \$\{\S+\} \S+", released)


def test_it_fits_a_telephone(page: Page) -> None:
    page.set_viewport_size({"width": 375, "height": 700})
    privatize(page, SENTENCE)
    changed(page)
    page.get_by_text("What each word may become").click()
    assert not scrolls_sideways(page)


def test_no_text_is_kept(page: Page, server: Server) -> None:
    secret = "xylographer"
    privatize(page, f"{secret} {secret}")
    changed(page, 2)
    expect(page.get_by_label("Original text")).to_have_text(f"{secret} {secret}")
    # The answer is out before what was held of it is dropped.
    page.wait_for_timeout(500.0)
    assert not server.holds(secret)
    files = [path for path in server.folder.rglob("*") if path.is_file()]
    assert server.folder / "log" in files
    assert not [path for path in files if secret.encode() in path.read_bytes()]
    kept = page.evaluate(
        "async () => JSON.stringify([{...localStorage}, {...sessionStorage}, "
        "document.cookie, await indexedDB.databases(), await caches.keys()])"
    )
    assert secret not in kept
    assert kept.endswith(',"",[],[]]')
