"""Measure the tables of docs/results.md again: python scripts/results.py [PAGE] [--only N] [--fresh]

A table stands between `<!-- results:begin -->` and `<!-- results:end -->`, after the command that prints it:
`jacana-torch compare` or a script. This script runs the command and replaces the table. Measurements are kept in
runs/results, so that an interrupted run can continue; --fresh deletes them first. Text around tables is left
alone.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "results.md"
KEPT = ROOT / "runs" / "results"
_COMMAND = r"```sh\n(?P<command>(?:jacana-torch compare|python scripts/\w+\.py) (?:(?!```).)*)\n```\n+"
_BLOCK = re.compile(rf"({_COMMAND}<!-- results:begin -->\n).*?(<!-- results:end -->)", re.DOTALL)


def commands(page: str) -> list[list[str]]:
    """The commands of the page, with continued lines joined."""
    return [shlex.split(match["command"].replace("\\\n", "")) for match in _BLOCK.finditer(page)]


def kept(command: list[str]) -> Path:
    """The folder of the command's measurements."""
    return KEPT / hashlib.sha256(shlex.join(command).encode()).hexdigest()[:12]


def filled(page: str, number: int, table: str) -> str:
    """Insert the table of command `number` (from 1) into the page."""
    match = list(_BLOCK.finditer(page))[number - 1]
    return f"{page[: match.start()]}{match[1]}\n{table.strip()}\n\n{match[3]}{page[match.end() :]}"


def printed(command: list[str], folder: Path) -> str:
    """Run a script and return its output, which `folder` keeps."""
    output = folder / "table.md"
    if not output.is_file():
        done = subprocess.run([sys.executable, *command[1:]], cwd=ROOT, stdout=subprocess.PIPE, text=True)
        if done.returncode:
            raise SystemExit(done.returncode)  # the script has printed the reason
        folder.mkdir(parents=True, exist_ok=True)
        output.write_text(done.stdout, encoding="utf-8")
    return output.read_text(encoding="utf-8")


def measured(arguments: list[str], folder: Path, run: Callable[[list[str]], int]) -> str:
    """Run `jacana-torch compare` and return its Markdown table; `folder` keeps its measurements."""
    output = folder / "table.md"
    extra = ["format=markdown", f"output={output}", f"hydra.run.dir={folder}"]
    if folder.is_dir():
        extra.append(f"resume={folder}")
    code = run([*arguments, *extra])
    if code:
        raise SystemExit(code)  # the command has printed the reason
    return output.read_text(encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("page", type=Path, nargs="?", default=PAGE)
    parser.add_argument("--only", type=int, metavar="N", help="only the Nth table")
    parser.add_argument("--fresh", action="store_true", help="delete earlier measurements")
    options = parser.parse_args()

    sys.path.insert(0, str(ROOT))
    from jacana_torch.cli import main as command_line

    for number, command in enumerate(commands(options.page.read_text(encoding="utf-8")), start=1):
        if options.only not in (None, number):
            continue
        folder = kept(command)
        if options.fresh:
            shutil.rmtree(folder, ignore_errors=True)
        script = command[0] == "python"
        table = printed(command, folder) if script else measured(command[1:], folder, command_line)
        page = filled(options.page.read_text(encoding="utf-8"), number, table)
        partial = options.page.with_name(options.page.name + ".partial")
        partial.write_text(page, encoding="utf-8")
        os.replace(partial, options.page)


if __name__ == "__main__":
    main()
