"""The documentation site: it builds without warnings, links lead somewhere, and blocks print what it shows."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from fnmatch import fnmatch
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from blocks import ROOT, Block, Page, agrees, blocks, fault, pages

from jacana_torch import resources
from jacana_torch.cli import COMMANDS

CHECKED = sorted([*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"])
NOTEBOOKS = sorted((ROOT / "docs" / "tutorials").glob("*.ipynb"))
SHORT = ROOT / "docs" / "concepts" / "scores.md"  # takes a second; the others run with JACANA_SLOW=1


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", [path for path in CHECKED if "_build" not in path.parts], ids=named)
def test_the_syntax_of_every_block(path):
    assert [(str(block), found) for block in blocks(path) if (found := fault(block))] == []


LINK = re.compile(r"\]\((?![a-z]+:)([^)#\s]*)(?:#([^)\s]+))?\)")


def places(path: Path) -> set[str]:
    """The anchors of a page: its headings, as GitHub and the site write them, and labels."""
    text = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    slugs = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
    return slugs | set(re.findall(r"^\(([\w-]+)\)=$", text, re.MULTILINE))


@pytest.mark.parametrize("path", [path for path in CHECKED if "_build" not in path.parts], ids=named)
def test_links_between_pages_lead_somewhere(path):
    for file, place in LINK.findall(re.sub(r"`[^`]*`", "", path.read_text(encoding="utf-8"))):
        target = (path.parent / file).resolve() if file else path
        assert target.exists(), file
        if place and "<!-- generated:" not in target.read_text(encoding="utf-8"):
            assert place in places(target), f"{file}#{place}"


def test_every_page_is_in_the_table_of_contents():
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    listed = re.findall(
        r"^/?([^\s:`]+)$", "\n".join(re.findall(r"```{toctree}(.*?)```", index, re.DOTALL)), re.MULTILINE
    )
    files = [*(ROOT / "docs").rglob("*.md"), *NOTEBOOKS]
    pages = {path.relative_to(ROOT / "docs").with_suffix("").as_posix() for path in files}
    for name in pages - {"index"}:
        assert "_build" in name or any(fnmatch(name, pattern) for pattern in listed), f"docs/index.md: {name}"


def test_every_page_that_runs_has_blocks_of_which_few_are_left_out():
    every = [block for path in pages() for block in blocks(path)]
    assert len([block for block in every if block.runs]) > 50
    for block in every:
        assert block.runs or re.match(r"it (needs|installs|downloads|opens)", block.reason), block
        assert block.shown is None or "FILL" not in block.shown, block


def test_readers_see_the_names_of_files_that_they_save():
    for path in pages():
        text = re.sub(r"<!--.*?-->|^```.*?^```$", "", path.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
        for block in blocks(path):
            assert block.mark != "file" or f"`{block.reason}`" in text, block


def test_a_page_that_shows_what_is_not_printed_fails(tmp_path):
    page = Page(tmp_path, str(tmp_path))
    assert page.run(Block("x", 1, "sh", "echo one; echo two", shown="one\n...\n")) == ""
    assert "it prints" in page.run(Block("x", 1, "sh", "echo one; echo two", shown="one\nthree\n"))
    assert "exit code 1" in page.run(Block("x", 1, "sh", "false; true"))
    assert page.run(Block("x", 1, "python", "value = 3\nprint('not again')")) == ""
    assert page.run(Block("x", 1, "python", "print(value)", shown="3")) == ""
    assert agrees("0.98...\n", "0.9812 \n") and not agrees("0.98...\n", "0.97\n")
    assert "line 1" in fault(Block("x", 1, "sh", "if true; fi")) and fault(Block("x", 1, "python", "x = = 2"))


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=[] if path == SHORT else pytest.mark.slow) for path in pages()],
    ids=named,
)
def test_the_blocks_of_a_page_do_what_it_shows(path, tmp_path):
    missing = [name for name in ("wordnet", "tagger", "glove-840b") if not resources.available(name)]
    if missing and path != SHORT:
        pytest.skip(f"the model standard needs {', '.join(missing)}")
    home = resources.path("glove-840b").parents[1] if not missing else tmp_path
    page = Page(tmp_path / "page", str(home))
    for block in blocks(path):
        if block.runs and (lacking := page.lacks(block)):
            pytest.skip(f"{block} needs {lacking}")
    try:
        assert [(str(block), found) for block in blocks(path) if block.runs and (found := page.run(block))] == []
    finally:
        page.close()


@pytest.mark.slow
def test_the_python_of_the_readme_runs(tmp_path):
    if not all(map(resources.available, ("wordnet", "tagger", "glove-840b"))):
        pytest.skip("the model standard needs wordnet, tagger and glove-840b")
    page = Page(tmp_path, str(resources.path("glove-840b").parents[1]))
    (block,) = (block for block in blocks(ROOT / "README.md") if block.language == "python")
    assert page.run(block) == "" and page.printed.startswith("0-2 1-3 2-4")


def code_cells(path: Path) -> list[dict[str, Any]]:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=named)
def test_a_notebook_is_committed_without_outputs(path):
    found = code_cells(path)
    assert len(found) > 3
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in found)


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    pytest.importorskip("sphinx")
    folder = tmp_path_factory.mktemp("site") / "html"  # what the notebooks return is put beside it
    command = [sys.executable, "-m", "sphinx", "-W", "-q", "-b", "html", ROOT / "docs", folder]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return folder


class Targets(HTMLParser):
    """Where a page leads, and the places in it that others may lead to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.leads: list[str] = []
        self.places: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        of = dict(attrs)
        self.leads += [of[name] or "" for name in ("href", "src") if name in of]
        self.places.add(of.get("id") or "")


@pytest.mark.slow
def test_every_link_within_the_site_leads_somewhere(site):
    found = {path: Targets(path) for path in site.rglob("*.html")}
    assert len(found) > 40
    for path, targets in found.items():
        if "_modules" in path.parts:  # listings of code, which lead to documentation that there need not be
            continue
        for lead in targets.leads:
            if re.match(r"[a-z]+:", lead):
                continue
            file, _, place = unquote(lead.partition("?")[0] if "#" not in lead else lead).partition("#")
            target = (path.parent / file.partition("?")[0]).resolve() if file else path
            assert target.exists(), (path.name, lead)
            assert not place or target not in found or place in found[target].places, (path.name, lead)


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=named)
def test_the_site_shows_what_the_cells_of_a_notebook_return(site, path):
    page = (site / "tutorials" / f"{path.stem}.html").read_text(encoding="utf-8")
    assert page.count('class="cell docutils container"') == len(code_cells(path))
    assert page.count('class="cell_output docutils container"') == len(code_cells(path))
    assert 'data-link="1-10"' in page if path.stem == "look" else "P 100.00  R 100.00  F1 100.00" in page
    assert "stderr" not in page


@pytest.mark.slow
def test_reference_pages_have_everything_that_the_program_has(site):
    text = {
        name: (site / "reference" / f"{name}.html").read_text() for name in ("cli", "config", "features", "api")
    }
    assert [name for name in COMMANDS if f'id="{name}"' not in text["cli"]] == []
    assert all(option in text["cli"] for option in ("--columns", "--fail-under", "--why", "--token-file"))
    for path in (ROOT / "conf").glob("[!h]*/*.yaml"):
        assert f"{path.parent.name}={path.stem}" in text["config"], path
    for path in (ROOT / "conf" / "features").glob("*.yaml"):
        assert f'id="family-{path.stem}"' in text["features"], path
    assert "the same word, capitals aside" in text["features"]
    assert all(f"jacana_torch.{name}" in text["api"] for name in ("load", "diff", "coverage"))
