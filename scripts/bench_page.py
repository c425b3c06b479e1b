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
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[1] / "docs" / "performance.md"
_BLOCK = re.compile(r"(<!-- bench:(\w+) -->\n).*?(<!-- bench:end -->)", re.DOTALL)


def filled(page: str, report: dict[str, Any]) -> str:
    def block(match: re.Match[str]) -> str:
        name = match[2]
        if name == "machine":
            lines = machine(report["machine"])
        elif name in report["parts"]:
            lines = importlib.import_module(f"benchmarks.{name}").table(report["parts"][name])
        else:
            return match[0]
        return "\n".join([match[1], *lines, "", match[3]])

    return _BLOCK.sub(block, page)


def machine(found: dict[str, Any]) -> list[str]:
    versions = ", ".join(f"{name} {version}" for name, version in found["versions"].items() if version)
    return [
        f"{found['date'][:10]}, {found['cpu']}, {found['cores']} cores; torch threads in `engine` and `scaling`: "
        f"{found['threads']}. Python {found['python']}, {versions}. "
        f"Load average at the start: {found['load'][0]:.2f}."
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("report", type=Path)
    parser.add_argument("page", type=Path, nargs="?", default=PAGE)
    options = parser.parse_args()
    report = json.loads(options.report.read_text(encoding="utf-8"))
    partial = options.page.with_name(options.page.name + ".partial")
    partial.write_text(filled(options.page.read_text(encoding="utf-8"), report), encoding="utf-8")
    os.replace(partial, options.page)


if __name__ == "__main__":
    main()
