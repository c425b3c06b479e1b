"""Print the modules and functions that a tiny run passes through, in the order of their first call.

    python scripts/walk.py align                     # one pair of 6 x 6 tokens through `jacana-torch align -`
    python scripts/walk.py train                     # 30 pairs through `jacana-torch train experiment=standard`
    python scripts/walk.py align --count             # one line per module, and the totals
    python scripts/walk.py align --package ../old    # the same run with another checkout
    python scripts/walk.py align --page docs/architecture.md   # write the counts into the page

A function is a code object of the package that `sys.setprofile` reports as called: functions, methods, lambdas,
comprehensions and class bodies, but no module bodies. Only the main process is traced, with all its threads.
Python 3.12 inlines list comprehensions, so compare totals of the same Python version only. An untraced run comes
first, so that compiling linguistic resources, which happens once on a machine, is not counted.
"""

from __future__ import annotations

import argparse
import inspect
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAIR = "the old dog sat down .\ta dog was sitting down .\n"
GOLD = ROOT / "examples" / "gold.jsonl"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", choices=("align", "train"))
    parser.add_argument("--count", action="store_true", help="one line per module instead of one per function")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--package", type=Path, default=ROOT, metavar="DIR", help="checkout to run (this one)")
    parser.add_argument(
        "--page", type=Path, metavar="FILE", help="replace the block <!-- walk:RUN --> of this page"
    )
    parser.add_argument("--untraced", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    checkout = options.package.resolve()
    if not (checkout / "jacana_torch").is_dir():
        parser.error(f"--package {options.package}: there is no folder jacana_torch in it")
    sys.path.insert(0, str(checkout))
    with tempfile.TemporaryDirectory() as folder:
        if options.untraced:
            return run(options.run, Path(folder))
        warm = [sys.executable, __file__, options.run, "--package", str(checkout), "--untraced"]
        done = subprocess.run(warm, check=False, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{done.stderr}walk: `jacana-torch {options.run}` failed, see above")
        with open(os.devnull, "w", encoding="utf-8") as nowhere, redirect_stderr(nowhere):
            calls = traced(lambda: run(options.run, Path(folder)))
    printed = io.StringIO()
    with redirect_stdout(printed):
        print_calls(calls, checkout / "jacana_torch", options.count or options.page, options.json)
    if options.page:
        page, block = options.page.read_text(encoding="utf-8"), rf"(<!-- walk:{options.run} -->\n```\n).*?```"
        text = f"$ python scripts/walk.py {options.run} --count\n{printed.getvalue()}```"
        filled = re.sub(block, lambda match: match[1] + text, page, count=1, flags=re.DOTALL)
        options.page.write_text(filled, encoding="utf-8")
    else:
        sys.stdout.write(printed.getvalue())
    return 0


def run(command: str, folder: Path) -> int:
    """Run one command of jacana-torch in this process; its output is discarded."""
    arguments = ["align", "-", "--model", "standard", "--workers", "1"]
    if command == "train":
        settings = [
            "experiment=standard",
            f"data.train=[{GOLD}]",
            "data.dev=[]",
            "data.drop_ids=[]",
            "logger=none",
        ]
        settings += ["trainer.max_iterations=5", f"output={folder / 'model'}", f"hydra.run.dir={folder / 'run'}"]
        arguments = ["train", *settings]
    sys.stdin = io.TextIOWrapper(io.BytesIO(PAIR.encode()))
    with open(os.devnull, "w", encoding="utf-8") as nowhere, redirect_stdout(nowhere):
        from jacana_torch.cli import main as jacana_torch

        return jacana_torch(arguments)


def traced(work: Callable[[], object]) -> Counter[CodeType]:
    """Count the calls of each code object while `work` runs; a step of a generator counts as a call."""
    calls: Counter[CodeType] = Counter()

    def count(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            calls[frame.f_code] += 1

    threading.setprofile(count)
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]  # typeshed knows no None here
    return calls


def print_calls(calls: Counter[CodeType], package: Path, only_count: bool, as_json: bool) -> None:
    modules: dict[str, list[tuple[str, int]]] = {}  # in the order of their first call, as their functions are
    sorts: Counter[str] = Counter()
    for code, count in calls.items():
        path = Path(code.co_filename)
        if package in path.parents and code.co_name != "<module>":
            name = getattr(code, "co_qualname", code.co_name)  # Python 3.10 has no qualified name
            modules.setdefault(str(path.relative_to(package)), []).append((name.replace("<locals>.", ""), count))
            sorts[_sort(code)] += 1
    total = {"files": len(modules), "functions": sum(sorts.values()), **dict(sorted(sorts.items()))}
    if as_json:
        print(json.dumps({"python": sys.version.split()[0], "total": total, "modules": modules}, indent=1))
        return
    for module, functions in modules.items():
        print(f"{module:<48} {len(functions):4} functions {sum(count for _, count in functions):8} calls")
        for name, count in [] if only_count else functions:
            print(f"    {name:<54} {count:18}")
    details = ", ".join(f"{count} {sort}" for sort, count in sorted(sorts.items()))
    print(
        f"\n{total['functions']} functions ({details}) in {total['files']} files; Python {sys.version.split()[0]}"
    )


def _sort(code: CodeType) -> str:
    if code.co_name == "<lambda>":
        return "lambdas"
    if code.co_name.startswith("<"):
        return "comprehensions"
    return "defined" if code.co_flags & inspect.CO_OPTIMIZED else "class bodies"


if __name__ == "__main__":
    sys.exit(main())
