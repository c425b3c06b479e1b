"""Rough input to a process: random bytes, empty files, very long lines, odd characters, broken models."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from jacana_torch.model import persist

ROOT = Path(__file__).parents[2]


def align(data: bytes, *arguments: str, model: str = "core") -> tuple[int, str, str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "jacana_torch", "align", "--model", model, *arguments]
    done = subprocess.run(command, input=data, capture_output=True, env=environment, timeout=120)
    out, err = done.stdout.decode(), done.stderr.decode()
    assert "Traceback" not in err, err
    return done.returncode, out, err


@pytest.mark.parametrize("seed", [1, 2])
def test_random_bytes(seed):
    junk = random.Random(seed).randbytes(100_000)
    code, _, err = align(junk)
    assert code == 2 and "<stdin>:1:" in err and len(err) < 3000


def test_random_bytes_when_bad_lines_are_skipped():
    junk = random.Random(3).randbytes(100_000)
    code, out, err = align(junk, "--skip-bad")
    assert code == 0 and err
    assert out.count("\n") == junk.count(b"\n") + (not junk.endswith(b"\n"))


def test_an_empty_file():
    assert align(b"") == (0, "", "")


@pytest.mark.slow
def test_a_line_of_three_thousand_tokens():
    words = [f"w{k}" for k in range(3000)]
    line = " ".join(words) + "\t" + " ".join(words[1000:1200])
    code, out, _ = align(f"a b\tb a\n{line}\nc\tc\n".encode())
    lines = out.splitlines()
    assert code == 0 and len(lines) == 3 and lines[2] == "0-0"
    assert lines[1].split() == [f"{k + 1000}-{k}" for k in range(200)]


def test_an_enormous_pair_is_an_error_with_advice():
    line = " ".join(["x"] * 5000)
    code, out, err = align(f"a\ta\n{line}\t{line}\n".encode(), "--batch-size", "1")
    assert code == 2 and out == "0-0\n" and "5000 x 5000" in err and "split" in err


def test_one_column():
    code, out, err = align(b"a\ta\nno tab here\n")
    assert code == 2 and out == "0-0\n" and "<stdin>:2:" in err


def test_emoji_combining_characters_and_windows_line_ends():
    text = "cafe\u0301 \U0001f469\u200d\U0001f467 opens\tthe \U0001f469\u200d\U0001f467 cafe\u0301\r\nred\tred\r\n"
    code, out, _ = align(text.encode(), "--to", "jsonl")
    first, second = (json.loads(line) for line in out.splitlines())
    assert code == 0 and first["target"] == ["the", "\U0001f469\u200d\U0001f467", "cafe\u0301"]
    assert [0, 2] in first["sure"] and [1, 1] in first["sure"] and second["sure"] == [[0, 0]]


def test_a_missing_model():
    code, out, err = align(b"a\ta\n", model="no-such-model")
    assert code == 2 and not out and "no-such-model" in err and "core" in err


def test_a_model_cut_short(tmp_path):
    broken = tmp_path / "broken"
    shutil.copytree(persist.SHIPPED / "core", broken)
    weights = broken / persist.WEIGHTS
    for size in (0, 7, 3000, weights.stat().st_size - 1):
        weights.write_bytes((persist.SHIPPED / "core" / persist.WEIGHTS).read_bytes()[:size])
        code, out, err = align(b"a\ta\n", model=str(broken))
        assert code == 2 and not out and persist.WEIGHTS in err
