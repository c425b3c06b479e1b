"""The layers of the package: imports point one way, heavy imports have one home, the library prints nothing."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "jacana_torch"

# A package may import packages of lower layers; packages of one layer do not import each other.
LAYERS = (
    ("errors", "offsets", "version"),
    ("projection",),
    ("view",),
    ("types", "resources", "util"),
    ("corpora", "symmetrize", "annotate", "evaluate"),
    ("encoders",),
    ("features",),
    ("crf",),
    ("explain", "optimize"),
    ("aligners",),
    ("systems",),
    ("model",),
    ("tasks",),
    ("differences",),
    ("train",),
    ("interop",),
    ("compare", "serve"),
    ("annotation",),
    ("cli",),
)
LAYER = {package: layer for layer, packages in enumerate(LAYERS) for package in packages}
HEAVY_HOME = {"hydra": "cli/hydra.py", "omegaconf": "cli/hydra.py"}


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def package_of(path: Path) -> str | None:
    """The subpackage (or top module) of a file; None for the package itself, which exports from all."""
    first = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    if first in ("__init__", "__main__"):
        return None
    return first


def imported(path: Path) -> Iterator[tuple[int, str]]:
    """Yield every absolute module name that a file imports, except those for type checkers alone."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    ignored = {
        id(node)
        for guard in ast.walk(tree)
        if isinstance(guard, ast.If) and "TYPE_CHECKING" in ast.dump(guard.test)
        for node in ast.walk(guard)
    }
    package = ["jacana_torch", *path.relative_to(PACKAGE).parts[:-1]]
    for node in ast.walk(tree):
        if id(node) in ignored:
            continue
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            name = ".".join([*base, *([node.module] if node.module else [])])
            # `from . import x` imports the module x as much as `from .x import y` does
            yield from ((node.lineno, f"{name}.{alias.name}") for alias in node.names)


def packages_imported(path: Path) -> Iterator[tuple[int, str]]:
    for line, name in imported(path):
        parts = name.split(".")
        if parts[0] == "jacana_torch" and len(parts) > 1:
            if parts[1] in LAYER:
                yield line, parts[1]


def pointing_back(path: Path) -> list[str]:
    own = package_of(path)
    if own is None:
        return []
    if own not in LAYER:
        return [f"{path}: {own!r} is in no layer: add it to LAYERS"]
    return [
        f"{path.relative_to(PACKAGE.parent)}:{line}: {own} imports {target}"
        for line, target in packages_imported(path)
        if target != own and LAYER[target] >= LAYER[own]
    ]


def test_imports_point_one_way():
    assert [fault for path in modules() for fault in pointing_back(path)] == []


def test_hydra_is_imported_in_one_module():
    for path in modules():
        for line, name in imported(path):
            home = HEAVY_HOME.get(name.split(".")[0])
            assert home in (None, path.relative_to(PACKAGE).as_posix()), f"{path}:{line} imports {name}"


def test_the_library_prints_nothing():
    for path in modules():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id != "print", f"{path}:{node.lineno} prints"


def test_what_is_imported_is_declared():
    """Another environment has what pyproject.toml requires, and nothing else of ours."""
    text = (PACKAGE.parent / "pyproject.toml").read_text(encoding="utf-8")
    always, extras = text.split("\ndependencies = [")[1].split("[project.scripts]")[0].split("]", 1)
    extras = "".join(
        line
        for line in extras.splitlines()
        if line.startswith(("spacy =", "neural =", "plot =", "serve =", "sklearn ="))
    )
    declared = {name.lower() for name in re.findall(r'"([A-Za-z0-9_-]+)[<>=~]', always + extras)}
    assert "torch" in declared and "spacy" in declared
    comes_as = {
        "sklearn": "scikit-learn",
        "PIL": "pillow",
        "hydra": "hydra-core",
        "omegaconf": "hydra-core",
        "yaml": "pyyaml",
    }
    for path in modules():
        for line, name in imported(path):
            top = name.split(".")[0]
            known = top in sys.stdlib_module_names or top == "jacana_torch" or comes_as.get(top, top) in declared
            assert known, f"{path}:{line} imports {top}, which pyproject.toml does not ask for"


def test_every_kind_of_import_is_seen(tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "PACKAGE", tmp_path)
    (tmp_path / "crf").mkdir()
    (tmp_path / "cli").mkdir()
    bad = {
        "types.py": "from . import corpora\n",
        "crf/a.py": "def late():\n    from ..aligners import crf\n",
        "crf/b.py": "import jacana_torch.model.persist as p\n",
        "crf/c.py": "from jacana_torch.cli.align import align\n",
        "crf/d.py": "from .. import serve\n",
        "attic.py": "",
    }
    good = {
        "crf/e.py": "from ..features import base\nfrom . import a\nfrom ..types import Link\nimport run\n",
        "crf/f.py": "if TYPE_CHECKING:\n    from ..aligners import crf\n",
        "cli/align.py": "from . import hydra\nfrom ..model import persist\n",
    }
    for name, text in (bad | good).items():
        (tmp_path / name).write_text(text)
    assert {name: len(pointing_back(tmp_path / name)) for name in bad} == dict.fromkeys(bad, 1)
    assert {name: pointing_back(tmp_path / name) for name in good} == dict.fromkeys(good, [])


def loaded_by(code: str) -> set[str]:
    """Return the top-level modules of a fresh interpreter after this code."""
    code = f"import sys\ntry:\n    {code}\nexcept SystemExit:\n    pass\nsys.stderr.write(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    return {name.split(".")[0] for name in done.stderr.split()}


HEAVY = {"torch", "spacy", "hydra", "omegaconf", "nltk", "tensorboard", "scipy", "rich", "starlette", "uvicorn"}


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["align", "--help"], ["train", "--help"]])
def test_help_loads_nothing_heavy(arguments):
    loaded = loaded_by(f"from jacana_torch.cli import main; main({arguments!r})")
    assert "jacana_torch" in loaded
    assert not loaded & (HEAVY | {"numpy"})


@pytest.mark.parametrize(
    "module",
    ["types", "errors", "symmetrize", "evaluate", "corpora", "annotate", "resources", "crf.kernel", "aligners.crf",
     "aligners.bidirectional", "model.persist"],
)  # fmt: skip
def test_what_needs_no_torch_loads_without(module):
    assert not loaded_by(f"import jacana_torch.{module}") & HEAVY


@pytest.mark.parametrize("options", [[], ["--symmetrize", "posterior"], ["--to", "jsonl", "--confidence"]])
@pytest.mark.parametrize(("model", "needs"), [("core", set()), ("standard", set())])
def test_aligning_loads_what_the_model_needs_and_no_torch(model, needs, options, tmp_path):
    from jacana_torch import resources
    from jacana_torch.model import persist

    data = next(info.resources for info in persist.shipped() if info.name == model)
    missing = [name for name in data if not resources.available(name)]
    if missing:
        pytest.skip(f"not on this machine: {', '.join(missing)}")
    (tmp_path / "pairs").write_text("the old bridge\tan old bridge\n")
    command = ["align", str(tmp_path / "pairs"), "--from", "text", "--model", model, *options]
    loaded = loaded_by(f"from jacana_torch.cli import main; main({command!r})")
    assert loaded & HEAVY == needs
