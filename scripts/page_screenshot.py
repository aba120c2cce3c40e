"""Take the picture of the demo page that the docs show.

    python scripts/page_screenshot.py

Needs the extra `report`, Pillow, Playwright, and Chromium or Chrome.
"""

import os
import shutil
from pathlib import Path

from PIL import Image
from playwright.sync_api import ViewportSize, sync_playwright

from hf_dxprivacy.page.demo import demo_page, serve

PICTURE = Path(__file__).resolve().parents[1] / "docs" / "images" / "demo-page.png"
SENTENCES = (
    "The blood test of patient 20391 shows low iron; please repeat it in a month. "
    "A wonderful little restaurant: fresh fish, friendly waiters and a fair bill."
)
SIZE = ViewportSize(width=1200, height=1080)


def main() -> None:
    """Serve the page, privatize a text there, and take the picture."""
    url = serve(demo_page())
    browser_path = shutil.which("chromium") or shutil.which("google-chrome")
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path, args=arguments)
        page = browser.new_page(viewport=SIZE)
        page.goto(url)
        page.get_by_label("Text", exact=True).fill(SENTENCES)
        page.get_by_role("button", name="Privatize").click()
        # Not the example that it begins with.
        page.get_by_label("Original text").get_by_text("20391").wait_for()
        page.locator(".released .w.near").last.hover()
        # Fades in.
        page.wait_for_timeout(1000)
        page.screenshot(path=PICTURE)
        browser.close()
    # A page has few colours.
    Image.open(PICTURE).convert("RGB").quantize(256).save(PICTURE, optimize=True)


if __name__ == "__main__":
    main()
