"""Draw what `jacana-torch diff --color always` prints, as an SVG of a terminal.

    python scripts/terminal_picture.py docs/diff_terminal.svg

The two texts are those of `examples/diff.py`.
"""

from __future__ import annotations

import argparse
import io
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

sys.path.insert(0, str(Path(__file__).parents[1]))

from examples.diff import NEW, OLD

WIDTH = 100  # columns


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path)
    output = parser.parse_args().output
    with tempfile.TemporaryDirectory() as folder:
        for name, text in (("old.txt", OLD), ("new.txt", NEW)):
            Path(folder, name).write_text(f"{text}\n", encoding="utf-8")
        command = ["jacana-torch", "diff", "old.txt", "new.txt", "--model", "standard", "--color", "always"]
        run = [sys.executable, "-m", "jacana_torch", *command[1:]]
        printed = subprocess.run(run, cwd=folder, capture_output=True, text=True, check=True).stdout
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    console.print(f"$ {' '.join(command[:-2])}")
    console.print(Text.from_ansi(printed))
    drawn = console.export_svg(title="jacana-torch diff")
    output.write_text(re.sub(r"\s*@font-face \{.*?\}", "", drawn, flags=re.S), encoding="utf-8")  # from a network


if __name__ == "__main__":
    main()
