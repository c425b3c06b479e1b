"""Make the picture of the served page: python scripts/serve_picture.py [--model standard] [--dark] docs/serve.png

Needs Playwright and Chromium, or the browser that CHROMIUM names. The sentences are our own.
"""

from __future__ import annotations

import argparse
import os
import shutil
from urllib.parse import urlencode

from playwright.sync_api import sync_playwright
from serve_load import serving

SOURCE = "After the long drought, farmers in the valley were glad of the first rain."
TARGET = "The valley's farmers were happy about the first rainfall following a lengthy dry spell."
WIDTH, HEIGHT = 1240, 900
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("picture", metavar="PNG")
    parser.add_argument("--model", default="standard")
    parser.add_argument("--dark", action="store_true")
    arguments = parser.parse_args()
    path = os.environ.get("CHROMIUM") or shutil.which("chromium")
    scheme = "dark" if arguments.dark else "light"
    with serving(arguments.model) as (_, (host, port)), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme=scheme)
        page.goto(f"http://{host}:{port}/#{urlencode({'s': SOURCE, 't': TARGET, 'm': arguments.model})}")
        page.wait_for_selector("#links button")
        with page.expect_response("**/align"):  # again, with warm caches
            page.dispatch_event("#source", "input")
        page.click("#links button:has-text('glad')")
        page.wait_for_selector(".groups")
        page.screenshot(path=arguments.picture)
        browser.close()


if __name__ == "__main__":
    main()
