"""examples/: the docs show what the scripts print."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path

import pytest

from jacana_torch import resources

ROOT = Path(__file__).parents[2]
DOCS = "\n".join(page.read_text(encoding="utf-8") for page in sorted((ROOT / "docs").glob("*.md")))


SHOWN = [path for path in sorted((ROOT / "examples").glob("*.py")) if f"<!-- example:{path.stem} -->" in DOCS]


@pytest.mark.parametrize("path", SHOWN, ids=lambda path: path.stem)
def test_the_docs_show_what_an_example_prints(path, monkeypatch, capsys):
    if not all(map(resources.available, ("wordnet", "tagger", "glove-840b"))):
        pytest.skip("the model standard needs wordnet, tagger and glove-840b")
    if path.stem == "other_libraries":
        pytest.importorskip("spacy")
    shown = re.search(
        rf"<!-- example:{path.stem} -->\n```\n\$ python examples/{path.name}\n(.*?)\n```", DOCS, re.DOTALL
    )
    assert shown, f"the block of {path.name} begins with another command"
    monkeypatch.setattr(sys, "argv", [str(path)])
    monkeypatch.chdir(ROOT)
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out.rstrip("\n") == shown[1]
