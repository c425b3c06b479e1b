"""Print the lowest versions that pyproject.toml declares, as constraints for pip, to test that they are enough.

python scripts/lowest_versions.py > lowest.txt               # of the package and its extra `test`
pip install -c lowest.txt -e '.[test]' && python -m pytest
python scripts/lowest_versions.py --without torch > lowest.txt   # keep the torch that is installed
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EXTRAS = ("test", "neural", "serve", "thot", "plot", "parquet")  # what the suite tests; spaCy 3.8 needs NumPy 2
BUILD = {"setuptools"}  # torch asks for newer ones


def declared(text: str, names: Iterable[str]) -> Iterator[str]:
    """The requirements that pyproject.toml lists under these names; such a list is one of Python too."""
    for name in names:
        found = re.search(rf"^{name} = (\[.*?\])\s*(#.*)?$", text, re.MULTILINE | re.DOTALL)
        if found is None:
            raise SystemExit(f"pyproject.toml has no list {name}")
        yield from ast.literal_eval(found[1])


def lowest(requirement: str) -> tuple[str, str]:
    """The name of a requirement and its lowest version."""
    found = re.fullmatch(r"([A-Za-z0-9_.-]+)\s*>=\s*([0-9][0-9a-z.]*)", requirement.partition(";")[0].strip())
    if found is None:
        raise SystemExit(f"pyproject.toml: {requirement!r} has no lowest version: write NAME>=VERSION")
    return found[1], found[2]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--without", action="append", default=[], metavar="NAME", help="leave a package out")
    without = {name.lower() for name in parser.parse_args().without} | BUILD
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    versions: dict[str, str] = {}
    for name, version in map(lowest, declared(text, ("dependencies", *EXTRAS))):
        if name.lower() not in without and versions.setdefault(name, version) != version:
            raise SystemExit(f"pyproject.toml: {name} has two lowest versions, {versions[name]} and {version}")
    for name, version in sorted(versions.items()):
        print(f"{name}=={version}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
