"""A process keeps freed memory only if it asks to."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

from jacana_torch.cli.loading import keep_freed

PROGRAM = """
import resource, sys
import numpy as np
from jacana_torch.cli.loading import keep_freed
kept = keep_freed() if sys.argv[1] == "keep" else None
def batch():
    blocks = [np.ones(3 << 17) for _ in range(12)]  # 3 MiB each
batch()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    batch()
print(kept, resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def pages(how: str, **environment: str) -> tuple[str, int]:
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("MALLOC_", "GLIBC_TUNABLES"))}
    command = [sys.executable, "-c", PROGRAM, how]
    output = subprocess.run(command, env=clean | environment, capture_output=True, text=True, check=True).stdout
    kept, faults = output.split()
    return kept, int(faults)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library")
def test_the_next_batch_reuses_the_pages_of_the_last():
    kept, few = pages("keep")
    _, many = pages("leave")
    assert kept == "True" and many > 10 * few


def test_settings_in_the_environment_are_obeyed():
    assert pages("keep", MALLOC_ARENA_MAX="2")[0] == "False"


def test_another_c_library_is_left_alone(monkeypatch):
    import ctypes

    for name in [name for name in os.environ if name.startswith(("MALLOC_", "GLIBC_TUNABLES"))]:
        monkeypatch.delenv(name)
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())
    assert keep_freed() is False
