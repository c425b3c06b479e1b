"""Fill the tables of docs/neighbours.md from a report: python scripts/neighbours_page.py REPORT.json [PAGE]

A table stands between `<!-- neighbours:NAME -->` and `<!-- neighbours:end -->`. Names are those of corpus files
without `.jsonl`, `costs`, `machine` and `versions`. Other text stays.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import neighbours
from bench_page import main, marks, refilled

PAGE = Path(__file__).parents[1] / "docs" / "neighbours.md"
_BLOCK = marks("neighbours")


def filled(page: str, report: dict[str, Any]) -> str:
    here = [one for one in report["systems"].values() if "failed" not in one]
    corpora = {Path(which.partition(":")[0]).stem: which for one in here for which in one["sets"]}

    def lines(name: str) -> list[str] | None:
        if name in corpora:
            above, *table = neighbours.scored(report, corpora[name])
            file, rest = above.split(", ", 1)
            return [f"`{file}`, {rest}", *escaped(table)]
        if name == "costs":
            return escaped(neighbours.costs(report))
        if name == "machine":
            return machine(report["machine"])
        return versions(here) if name == "versions" else None

    return refilled(page, _BLOCK, lines)


def escaped(table: list[str]) -> list[str]:
    """Names such as fast_align as Markdown shows them."""
    return [line.replace("_", "\\_") for line in table]


def machine(found: dict[str, Any]) -> list[str]:
    return [
        f"{found['date'][:10]}, {found['cpu']}, {found['cores']} CPUs, Python {found['python']}, "
        f"torch {found['versions']['torch']}, one thread for each system. "
        f"Load average at the start: {found['load'][0]:.1f}."
    ]


def versions(systems: list[dict[str, Any]]) -> list[str]:
    every = {name: version for one in systems for name, version in one["versions"].items()}
    return [f"Versions: {', '.join(f'{name} {version}' for name, version in every.items())}."]


if __name__ == "__main__":
    main(__doc__, PAGE, filled)
