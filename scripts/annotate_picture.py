"""Make the picture of the annotation page: python scripts/annotate_picture.py [--model standard] docs/annotate.png

Two people have annotated some pairs of our own sentences. `--show compare` is the page on which a third decides,
`--width 390` a phone's. Needs Playwright and Chromium, or the browser that CHROMIUM names.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

PAIRS = (
    ("The mayor put off the meeting until next week .", "The meeting was postponed by the mayor for a week ."),
    ("Heavy rain kept the ferries in the harbour .", "Because of the downpour , no ferry left port ."),
    ("Nina has sold the house that she grew up in .", "Nina 's childhood home has a new owner ."),
    ("He was glad of the lift .", "The ride made him happy ."),
    ("Our team won the last three games in a row .", "The last three matches were all victories for us ."),
    ("The bakery closes at noon on Saturdays .", "On Saturdays , the bakery shuts at twelve ."),
)
CELL = "#matrix td[data-row='{}'][data-column='{}']"
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]


@contextmanager
def served(file: Path, *options: str) -> Iterator[str]:
    """The address of the page, served by the command."""
    command = [sys.executable, "-m", "jacana_torch", "annotate", str(file), "--port", "0", *options]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        for line in process.stderr:
            if found := re.search(r"http://\S+", line):
                yield found[0]
                return
        raise SystemExit("the page could not be served")
    finally:
        process.terminate()
        process.wait()


def ask(url: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def accept(url: str, by: str, number: int, cells: list[list[Any]]) -> None:
    """Change these cells, and accept the pair."""
    for change in ({"do": "edit", "cells": cells}, {"do": "status", "status": "accepted"}):
        version = ask(f"{url}pair?by={by}&number={number}")["version"]
        ask(f"{url}change", {"by": by, "pair": number, "version": version, **change})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("picture", metavar="PNG")
    parser.add_argument("--model", default="standard")
    parser.add_argument("--show", choices=("edit", "compare"), default="edit")
    parser.add_argument("--dark", action="store_true")
    parser.add_argument("--width", type=int, default=1240)
    given = parser.parse_args()
    path = os.environ.get("CHROMIUM") or shutil.which("chromium")
    scheme, height = "dark" if given.dark else "light", 905 if given.width > 800 else 844
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        file = Path(folder, "pairs.txt")
        file.write_text("".join(f"{source}\t{target}\n" for source, target in PAIRS), encoding="utf-8")
        people = ("--model", given.model, "--annotator", "ann", "ben")
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        page = browser.new_page(viewport={"width": given.width, "height": height}, color_scheme=scheme)
        with served(file, *people) as url:
            for number in (3, 4, 5):
                accept(url, "ann", number, [])
                accept(url, "ben", number, [[2, 4, "possible"], [0, 0, "none"]] if number == 3 else [])
            if given.show == "edit":
                page.goto(f"{url}#by=ann&pair=1")
                page.wait_for_selector("#matrix td")
                page.locator(CELL.format(2, 3)).hover()  # a phrase: put, off - postponed
                page.mouse.down()
                page.locator(CELL.format(3, 3)).hover()
                page.mouse.up()
                page.locator(CELL.format(7, 8)).click(modifiers=["Shift"])
                page.wait_for_selector("#matrix td.possible")
                page.locator(CELL.format(2, 3)).hover()
                page.screenshot(path=given.picture)
        if given.show == "compare":
            with served(file, "--compare", "--annotator", "eva") as url:
                page.goto(url)
                page.wait_for_selector("#differences li")
                page.screenshot(path=given.picture)
        browser.close()


if __name__ == "__main__":
    main()
