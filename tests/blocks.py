"""The code blocks of documentation pages: read, checked and run in order, as a reader would.

A page's sh and python blocks share one folder, one shell environment and one Python namespace. A text block
right after one is what it prints on stdout (for sh in the background: what it has to print before the next block),
where `...` stands for anything. Comments before a block say more:

    <!-- file: pairs.txt -->         the block is a file of that name
    <!-- in the background -->       it goes on until the end of the page, as a server does
    <!-- not run: it needs a GPU --> only its syntax is checked
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
MARK = re.compile(r"<!-- (file|in the background|not run)(?:: ([^>]*?))? -->\s*\Z")


class Block(NamedTuple):
    page: str
    line: int
    language: str
    text: str
    mark: str = ""
    reason: str = ""  # of the mark, or its file
    shown: str | None = None  # what the page says that it prints

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def runs(self) -> bool:
        return self.mark != "not run"


def blocks(path: Path) -> list[Block]:
    """The blocks of a page that a reader would type, with what they print."""
    text, name = path.read_text(encoding="utf-8"), str(path.relative_to(ROOT))
    found: list[Block] = []
    end = 0
    for fence in FENCE.finditer(text):
        between = text[end : fence.start()]
        end = fence.end()
        mark = MARK.search(between)
        line = text.count("\n", 0, fence.start()) + 1
        if fence[1] in ("sh", "python") or (mark and mark[1] == "file"):
            kind, reason = (mark[1], mark[2] or "") if mark else ("", "")
            found.append(Block(name, line, fence[1], fence[2], kind, reason))
        elif fence[1] == "text" and not between.strip() and found:
            found[-1] = found[-1]._replace(shown=fence[2])
    return found


def fault(block: Block) -> str:
    """What is wrong with the syntax of a block; "" if nothing is."""
    if block.language == "sh":
        return subprocess.run(["bash", "-n"], input=block.text, capture_output=True, text=True).stderr
    if block.language == "python":
        try:
            compile(block.text, str(block), "exec")
        except SyntaxError as error:
            return str(error)
    return ""


def agrees(shown: str, printed: str) -> bool:
    """Whether output is what the page shows, spaces at the ends of lines aside."""
    pattern = ".*?".join(re.escape(tidy(part)) for part in re.split(r"\.\.\.", tidy(shown)))
    return re.fullmatch(pattern, tidy(printed), re.DOTALL) is not None


def tidy(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines())


class Page:
    """Runs the blocks of a page in a folder of its own."""

    def __init__(self, folder: Path, home: str) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.work = folder / "work"
        self.work.mkdir(parents=True)
        self.home.mkdir()
        (self.work / "examples").symlink_to(ROOT / "examples")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "COV_"))}
        path = f"{sysconfig.get_path('scripts')}{os.pathsep}{os.environ['PATH']}"
        self.environment = kept | {
            "HOME": str(self.home),
            "JACANA_HOME": home,
            "PATH": path,
            "PYTHONPATH": str(ROOT),
        }
        self.printed = ""
        self.python: list[str] = []  # the blocks so far: a reader's session goes on
        self.servers: list[subprocess.Popen[str]] = []

    def run(self, block: Block) -> str:
        """Run a block; return what went wrong, "" if nothing did."""
        if block.mark == "file":
            (self.work / block.reason).write_text(block.text, encoding="utf-8")
            return ""
        if block.mark == "in the background":
            return self._start(block)
        if block.language == "sh":
            command = ["bash", "-euo", "pipefail", "-c", block.text]
        else:
            command = [sys.executable, "-c", self._session(block)]
        done = subprocess.run(
            command,
            cwd=self.work,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=300,
            stdin=subprocess.DEVNULL,
        )
        self.printed = done.stdout
        if done.returncode:
            return f"exit code {done.returncode}\n{done.stdout[-1000:]}\n{done.stderr[-2000:]}"
        if block.shown is not None and not agrees(block.shown, done.stdout):
            return f"the page shows\n{block.shown}\nand it prints\n{done.stdout}"
        return ""

    def _session(self, block: Block) -> str:
        before = "\n".join(self.python)
        self.python.append(block.text)
        silent = f"import contextlib, io\nwith contextlib.redirect_stdout(io.StringIO()):\n    exec({before!r})\n"
        return f"{silent if before else ''}{block.text}"

    def _start(self, block: Block) -> str:
        log = self.folder / f"server{len(self.servers)}.log"
        with log.open("w") as messages:
            self.servers.append(
                subprocess.Popen(
                    ["bash", "-c", f"exec {block.text.strip()}"], cwd=self.work, env=self.environment,
                    stdout=messages, stderr=messages, text=True, start_new_session=True,
                )
            )  # fmt: skip
        end = time.monotonic() + 60
        while time.monotonic() < end and self.servers[-1].poll() is None:
            if "http://" in log.read_text():
                return ""
            time.sleep(0.1)
        return f"it does not serve:\n{log.read_text()}"

    def lacks(self, block: Block) -> str:
        """What this machine lacks for a block; "" if nothing."""
        if "curl " in block.text and shutil.which("curl") is None:
            return "curl"
        if block.mark == "in the background":
            port = re.search(r"--port (\d+)", block.text)
            with socket.socket() as tried:
                if tried.connect_ex(("127.0.0.1", int(port[1]) if port else 8765)) == 0:
                    return "a free port"
        return ""

    def close(self) -> None:
        for server in self.servers:
            if server.poll() is None:
                os.killpg(server.pid, signal.SIGTERM)
            server.wait(30)


def pages() -> Iterator[Path]:
    """The pages for users whose blocks run."""
    docs = ROOT / "docs"
    for folder in (docs, docs / "tutorials", docs / "concepts", docs / "howto"):
        names = ("index.md", "start.md") if folder == docs else [path.name for path in sorted(folder.glob("*.md"))]
        yield from (folder / name for name in names if (folder / name).exists())
