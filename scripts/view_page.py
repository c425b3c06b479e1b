"""Time how long the page of `jacana-torch view` takes to open in headless Chromium, or make its picture.

    python scripts/view_page.py time FILE [FILE2 ...] [--model NAME]    opening, filtering: median of several times
    python scripts/view_page.py large [PAIRS] [SYSTEMS]                 the same for made pairs (10000, 1 system)
    python scripts/view_page.py picture docs/view.png --model standard

The picture's sentences and gold links are our own.
"""

from __future__ import annotations

import argparse
import os
import random
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
           first: performance.getEntriesByName('ready')[0]?.startTime ?? 0,
           drawn: document.querySelectorAll('article').length });
})))"""
# From a change of a control to the end of its work, and to the frame that shows it.
FILTER = """([id, value]) => new Promise(done => {
    const control = document.getElementById(id);
    const begun = performance.now();
    control.value = value;
    control.dispatchEvent(new Event('change', { bubbles: true }));
    const worked = performance.now() - begun;
    requestAnimationFrame(() => { const channel = new MessageChannel();
        channel.port1.onmessage = () => done({ worked, shown: performance.now() - begun });
        channel.port2.postMessage(0); });
})"""
CHANGES = (
    ("filter", "errors"),
    ("filter", "exact"),
    ("sort", "f1"),
    ("filter", "all"),
    ("sort", "words"),
    ("filter", "unsure"),
)
WORDS = (
    "the old bridge over that quiet river was closed to all traffic for repairs in late spring while two small "
    "boats carried people bread and letters across every morning until heavy rain stopped them"
).split()
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
    parser.add_argument("what", choices=("time", "large", "picture"))
    parser.add_argument(
        "files", nargs="*", help="files to show, how many pairs and systems, or the path of the picture"
    )
    parser.add_argument("--model")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        if arguments.what == "time":
            timed(browser, made(Path(folder), arguments.files, arguments.model))
        elif arguments.what == "large":
            pairs, systems = [*map(int, arguments.files), *(10_000, 1)[len(arguments.files) :]]
            timed(browser, made(Path(folder), large(Path(folder), pairs, systems), None))
        else:
            pictured(browser, Path(folder), Path(arguments.files[0]), arguments.model)
        browser.close()


def made(folder: Path, files: list[str], model: str | None) -> Path:
    path = folder / "page.html"
    command_line(["view", *files, "--output", str(path), *(["--model", model] if model else [])])
    return path


def timed(browser: Any, path: Path) -> None:
    print(f"load average {os.getloadavg()[0]:.1f}, {os.cpu_count()} CPUs, {path.stat().st_size / 1e6:.2f} MB")
    rounds, changes = [], []
    for _ in range(OPENINGS):
        page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
        session = page.context.new_cdp_session(page)
        session.send("Performance.enable", {"timeDomain": "threadTicks"})
        page.goto(path.as_uri())
        rounds.append(page.evaluate(MEASURE))
        metrics = {one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]}
        rounds[-1]["CPU"] = 1000 * metrics["TaskDuration"]
        able = [
            change for change in CHANGES if page.locator(f"#{change[0]} [value={change[1]}]:not([hidden])").count()
        ]
        changes.append([page.evaluate(FILTER, change) for change in able])
        page.context.close()
    print(f"{rounds[0]['drawn']} pairs in the page at once")
    for name in ("painted", "first", "loaded", "frame", "CPU"):
        times = [one[name] for one in rounds]
        print(f"{name:14} median {statistics.median(times):.0f} ms, slowest {max(times):.0f} ms")
    for k, (control, value) in enumerate(able):
        of = {name: [one[k][name] for one in changes] for name in ("worked", "shown")}
        median, slowest, script = statistics.median(of["shown"]), max(of["shown"]), statistics.median(of["worked"])
        print(
            f"{control + '=' + value:14} median {median:.0f} ms, slowest {slowest:.0f} ms; script {script:.0f} ms"
        )


def large(folder: Path, pairs: int, systems: int) -> list[str]:
    """Write made pairs with gold, and what systems found with errors and posteriors."""
    rng = random.Random(1)
    examples: list[list[Example]] = [[] for _ in range(1 + systems)]
    for number in range(pairs):
        source = rng.sample(WORDS, rng.randint(6, 28))
        target = [word for word in source if rng.random() < 0.8] + rng.sample(WORDS, 3)
        pair = SentencePair(Sentence(tuple(source)), Sentence(tuple(target)), f"made-{number}")
        gold = {(source.index(word), j) for j, word in enumerate(target) if word in source}
        for k, kept in enumerate(examples):
            found = (
                gold
                if k == 0
                else {
                    (i, j if rng.random() < 0.97 else rng.randrange(len(target)))
                    for i, j in gold
                    if rng.random() < 0.97
                }
            )
            posteriors = {link: rng.uniform(0.3, 1) for link in found} if k else {}
            kept.append(
                Example(pair, Alignment(len(source), len(target), frozenset(found), confidence=posteriors))
            )
    paths = [str(folder / f"{'gold' if k == 0 else f'system-{k}'}.jsonl") for k in range(1 + systems)]
    for path, kept in zip(paths, examples, strict=True):
        corpora.write(kept, path)
    return paths


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
