"""scripts/: their imports exist, and walk.py counts what a run calls."""

from __future__ import annotations

import ast
import importlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from jacana_torch import resources

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

import walk
from variants import variants

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted((ROOT / "scripts").rglob("*.py"))


def imported(path: Path) -> Iterator[tuple[str, str]]:
    """The names that a script imports from the package, anywhere in it: (module, name)."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "jacana_torch":
            yield from ((str(node.module), alias.name) for alias in node.names)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_what_a_script_imports_exists(path):
    for module, name in imported(path):
        try:
            found = hasattr(importlib.import_module(module), name)
        except ModuleNotFoundError as error:
            if not str(error.name).startswith("jacana_torch"):
                pytest.skip(f"{error.name} is not installed")
            found = False
        if not found:
            importlib.import_module(f"{module}.{name}")


@pytest.mark.parametrize(
    "page", ["README.md", "CONTRIBUTING.md", "docs/architecture.md", "docs/glossary.md", "docs/performance.md"]
)
def test_files_that_a_page_names_exist(page):
    named = re.findall(r"`((?:\w+/)+\w+\.(?:py|md|yaml|jsonl|txt))`", (ROOT / page).read_text(encoding="utf-8"))
    missing = [name for name in named if not ((ROOT / name).exists() or (ROOT / "jacana_torch" / name).exists())]
    assert [name for name in missing if "/x." not in name] == []


def test_walk_counts_functions_lambdas_comprehensions_and_class_bodies(tmp_path, capsys):
    package = tmp_path / "jacana_torch"
    package.mkdir()
    (package / "some.py").write_text(
        "def outer():\n"
        "    class Inner:\n"
        "        pass\n"
        "    return sum(x for x in (1, 2)), (lambda: 3)(), (lambda: 4)()\n"
        "def unused(): pass\n"
    )
    code = compile((package / "some.py").read_text(), str(package / "some.py"), "exec")
    space: dict = {}
    calls = walk.traced(lambda: (exec(code, space), space["outer"](), space["outer"]()))
    walk.print_calls(calls, package, only_count=False, as_json=True)
    found = json.loads(capsys.readouterr().out)
    assert found["total"] == {
        "files": 1,
        "functions": 5,
        "class bodies": 1,
        "comprehensions": 1,
        "defined": 1,
        "lambdas": 2,
    }
    assert [count for _, count in found["modules"]["some.py"]] == [2, 2, 6, 2, 2]


# The most files that a tiny run may pass through: a reader should be able to follow it.
FILES = {"align": 50, "train": 60}


@pytest.mark.parametrize("run", variants(FILES))
def test_a_run_passes_through_few_files(run):
    missing = [name for name in ("wordnet", "tagger", "glove-840b") if not resources.available(name)]
    if missing:
        pytest.skip(f"the model standard needs {', '.join(missing)}")
    command = [sys.executable, str(ROOT / "scripts" / "walk.py"), run, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["total"]["files"] <= FILES[run]
