"""Time how long the page of `jacana-torch view` takes to open in headless Chromium, or make its picture.

    python scripts/view_page.py time FILE [FILE2] [--model NAME]     seconds, median of several openings
    python scripts/view_page.py picture docs/view.png --model standard

The picture's sentences and gold links are our own.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from jacana_torch import Alignment, Example, Sentence, SentencePair, corpora
from jacana_torch.cli import main as command_line

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
OPENINGS = 5
# From the start of the navigation to the end of the script and to the first paint after it.
MEASURE = """() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => {
    const load = performance.getEntriesByType('navigation')[0];
    const paint = performance.getEntriesByName('first-contentful-paint')[0];
    done({ loaded: load.loadEventEnd, painted: paint ? paint.startTime : 0, frame: performance.now(),
           pairs: document.querySelectorAll('article').length, drawn: document.querySelectorAll('.arcs').length });
})))"""
# id, source, target, sure links, possible ones
STORIES = (
    (
        "harbour",
        "The harbour was closed to ferries after the storm .",
        "After the storm , no ferries could use the port .",
        "0-8 1-9 5-5 6-0 7-1 8-2 9-10",
        "3-4 3-6 3-7",
    ),
    (
        "orchestra",
        "Mira Holm will lead the youth orchestra from next autumn .",
        "Next autumn Mira Holm becomes conductor of the young people 's orchestra .",
        "0-2 1-3 2-4 3-5 5-8 5-9 6-11 8-0 9-1 10-12",
        "",
    ),
    (
        "kettle",
        "He put the kettle on and waited .",
        "He switched the kettle on , then he waited .",
        "0-0 1-1 2-2 3-3 4-4 5-6 6-8 7-9",
        "",
    ),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("time", "picture"))
    parser.add_argument("files", nargs="+", help="files to show, or the path of the picture")
    parser.add_argument("--model")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        if arguments.what == "time":
            timed(browser, Path(folder), arguments.files, arguments.model)
        else:
            pictured(browser, Path(folder), Path(arguments.files[0]), arguments.model)
        browser.close()


def timed(browser: Any, folder: Path, files: list[str], model: str | None) -> None:
    path = folder / "page.html"
    command_line(["view", *files[:2], "--output", str(path), *(["--model", model] if model else [])])
    rounds = []
    for _ in range(OPENINGS):
        page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
        page.goto(path.as_uri())
        rounds.append(page.evaluate(MEASURE))
        page.context.close()
    print(f"{path.stat().st_size / 1e6:.2f} MB, {rounds[0]['pairs']} pairs, {rounds[0]['drawn']} drawn at once")
    for name in ("painted", "loaded", "frame"):
        times = [one[name] for one in rounds]
        print(f"{name:8} median {statistics.median(times):.0f} ms, slowest {max(times):.0f} ms")


def stories() -> Iterator[Example]:
    for name, source, target, *links in STORIES:
        one, other = Sentence(tuple(source.split())), Sentence(tuple(target.split()))
        sure, possible = ({tuple(map(int, link.split("-"))) for link in said.split()} for said in links)
        yield Example(SentencePair(one, other, name), Alignment(len(one), len(other), sure, possible))


def pictured(browser: Any, folder: Path, target: Path, model: str | None) -> None:
    gold, path = folder / "gold.jsonl", folder / "page.html"
    corpora.write(stories(), str(gold))
    title = "Three example pairs"
    command_line(["view", str(gold), "--output", str(path), "--model", model or "standard", "--title", title])
    page = browser.new_context(viewport={"width": 1100, "height": 790}, device_scale_factor=1).new_page()
    page.goto(path.as_uri())
    for key in "jll":
        page.keyboard.press(key)
    page.evaluate("scrollTo(0, 0)")
    page.screenshot(path=target)


if __name__ == "__main__":
    main()
