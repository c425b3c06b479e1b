"""The command line as a process, and what tests of it feed it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

WORDS = "red old small bridge dog house river book tall green teacher walks sings reads under near".split()


def started(*arguments: str, **environment: str) -> subprocess.Popen:
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1]), **environment}
    return subprocess.Popen([sys.executable, "-m", "jacana_torch", *arguments], env=environment, **pipes)


def whole(done: tuple[int, str, str]) -> str:
    code, out, err = done
    assert code == 0, err
    return out
