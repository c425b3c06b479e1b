"""Fill the tables of docs/performance.md from a report: python scripts/bench_page.py REPORT.json [PAGE]

A table stands between `<!-- bench:PART -->` and `<!-- bench:end -->`. Other text stays, and so do the tables of
parts that the report lacks.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[1] / "docs" / "performance.md"


def marks(kind: str) -> re.Pattern[str]:
    """What stands between `<!-- KIND:NAME -->` and `<!-- KIND:end -->`; group 2 is the name."""
    return re.compile(rf"(<!-- {kind}:([\w-]+) -->\n).*?(<!-- {kind}:end -->)", re.DOTALL)


_BLOCK = marks("bench")


def refilled(page: str, blocks: re.Pattern[str], of: Callable[[str], Sequence[str] | None]) -> str:
    """Put the lines that `of` returns for a name into its block; None leaves the block as it is."""

    def block(match: re.Match[str]) -> str:
        lines = of(match[2])
        return match[0] if lines is None else "\n".join([match[1], *lines, "", match[3]])

    return blocks.sub(block, page)


def filled(page: str, report: dict[str, Any]) -> str:
    def lines(name: str) -> list[str] | None:
        if name == "machine":
            return machine(report["machine"])
        if name not in report["parts"]:
            return None
        table: list[str] = importlib.import_module(f"benchmarks.{name}").table(report["parts"][name])
        return table

    return refilled(page, _BLOCK, lines)


def machine(found: dict[str, Any]) -> list[str]:
    versions = ", ".join(f"{name} {version}" for name, version in found["versions"].items() if version)
    return [
        f"{found['date'][:10]}, {found['cpu']}, {found['cores']} cores; torch threads in `engine` and `scaling`: "
        f"{found['threads']}. Python {found['python']}, {versions}. "
        f"Load average at the start: {found['load'][0]:.2f}."
    ]


def main(about: str, page: Path, fill: Callable[[str, dict[str, Any]], str]) -> None:
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("report", type=Path)
    parser.add_argument("page", type=Path, nargs="?", default=page)
    options = parser.parse_args()
    report = json.loads(options.report.read_text(encoding="utf-8"))
    partial = options.page.with_name(options.page.name + ".partial")
    partial.write_text(fill(options.page.read_text(encoding="utf-8"), report), encoding="utf-8")
    os.replace(partial, options.page)


if __name__ == "__main__":
    main(__doc__, PAGE, filled)
