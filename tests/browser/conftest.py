"""A browser for the pages: Chromium, driven by Playwright. Without it these tests are skipped.

An error in a page's console, a request to another machine or a breach of its content security policy fails the
test at its end. CHROMIUM names the browser and AXE a file axe.min.js, if they are not in their usual places
(`.ci/run` installs both).
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pages
import pytest

from jacana_torch.view import page

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# As root there is no sandbox; the others keep the browser from asking for things on the network by itself.
FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()
AT_HOME = {"file", "data", "blob", "about"}
LOOPBACK = {"127.0.0.1", "localhost", "::1"}


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """One browser for all tests of a process, with an empty profile."""
    sync_api = pytest.importorskip(
        "playwright.sync_api", reason="Playwright is not installed: pip install playwright"
    )
    named = os.environ.get("CHROMIUM")
    path = named or next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip("no Chromium on this machine (apt-get install chromium, or name one in CHROMIUM)")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def visit(chromium) -> Iterator[Callable]:
    """visit(url, **options of the context) -> a page. `tolerate`: words of console messages that are fine."""
    opened: list[tuple[Any, list[str]]] = []

    def visiting(url: str | Path, tolerate: tuple[str, ...] = (), **options) -> Any:
        options = {"viewport": {"width": 1280, "height": 900}, "reduced_motion": "reduce", **options}
        context = chromium.new_context(**options)
        context.set_default_timeout(60_000)  # machines that test are busy
        page, troubles = context.new_page(), []
        opened.append((context, troubles))

        def note(message) -> None:
            if message.type in ("error", "warning") and not any(word in message.text for word in tolerate):
                troubles.append(f"console {message.type}: {message.text}")

        def asked(request) -> None:
            parts = urlsplit(request.url)
            if parts.scheme not in AT_HOME and parts.hostname not in LOOPBACK:
                troubles.append(f"asked for {request.url}")

        page.on("console", note)
        page.on("pageerror", lambda error: troubles.append(f"uncaught: {error}"))
        page.on("request", asked)
        page.goto(url.as_uri() if isinstance(url, Path) else url)
        return page

    yield visiting
    for context, _ in opened:
        context.close()
    assert [trouble for _, troubles in opened for trouble in troubles] == []


@pytest.fixture(scope="session")
def axe_source() -> str:
    """The text of axe.min.js; skipped if it has not been fetched."""
    folder = Path(__file__).parents[2] / "node_modules" / "axe-core" / "axe.min.js"
    path = Path(os.environ.get("AXE") or folder)
    if not path.is_file():
        pytest.skip(f"no axe-core at {path} (npm install --no-save axe-core, or name its axe.min.js in AXE)")
    return path.read_text(encoding="utf-8")


@pytest.fixture
def violations(axe_source) -> Callable[[Any], list[str]]:
    """violations(page) -> one line per rule of axe-core that the page breaks."""

    def found(page) -> list[str]:
        page.evaluate(axe_source)
        results = page.evaluate("() => axe.run(document)")
        assert results["passes"], "axe looked at nothing"
        return [
            f"{wrong['id']}: {wrong['help']}: {[node['html'][:200] for node in wrong['nodes'][:3]]}"
            for wrong in results["violations"]
        ]

    return found


@pytest.fixture
def opened(tmp_path, visit) -> Callable:
    """opened(examples, predicted, ..., browser=options of visit) -> the page that jacana_torch.view makes."""

    def opening(*arguments, browser: dict | None = None, **more) -> Any:
        path = tmp_path / "page.html"
        path.write_text(page(*arguments, **more), encoding="utf-8")
        return visit(path, **(browser or {}))

    return opening


@pytest.fixture
def compared(opened) -> Any:
    """The page of four stories, gold against predicted."""
    return opened(*pages.stories(), title="Four stories", files=("gold.jsonl", "found.jsonl"))
