"""examples/frames.py: links as a column of the frames of four libraries, each where it is installed."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import jacana_torch as jt

PATH = Path(__file__).parents[2] / "examples" / "frames.py"
COUNT = 60


@pytest.fixture(scope="module")
def frames():
    spec = importlib.util.spec_from_file_location("frames", PATH)
    module = importlib.util.module_from_spec(spec)
    sys.modules["frames"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["frames"]


@pytest.fixture(scope="module")
def columns(frames) -> dict[str, list]:
    found = {name: (values * COUNT)[:COUNT] for name, values in frames.PAIRS.items()}
    found["label"] = list(range(COUNT))
    found["premise"][7] = "x" * 3000  # which cannot be aligned
    return found


@pytest.fixture(scope="module")
def expected(columns) -> list[str]:
    pairs = list(zip(columns["premise"], columns["hypothesis"], strict=True))
    pairs[7] = ("", "")
    return [str(one) for one in jt.load("core").align(pairs)]


def test_pandas(frames, columns, expected):
    pandas = pytest.importorskip("pandas")
    for workers in (1, 2):
        found = frames.with_pandas(pandas.DataFrame(columns), workers=workers)
        assert found["links"].tolist() == expected and found.drop(columns="links").to_dict("list") == columns


def test_polars(frames, columns, expected):
    polars = pytest.importorskip("polars")
    found = frames.with_polars(polars.DataFrame(columns))
    assert found["links"].to_list() == expected and found.drop("links").to_dict(as_series=False) == columns
    lazy = polars.DataFrame(columns).lazy().map_batches(frames.with_polars, validate_output_schema=False)
    assert lazy.collect()["links"].to_list() == expected


def in_a_process(code: str, columns, monkeypatch) -> object:
    """What the code assigns to `found`, in a process of its own: these libraries leave threads behind."""
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("PYTHONPATH", f"{PATH.parents[1]}:{PATH.parent}")  # executors import this file too
    program = "import json, sys, frames\ncolumns = json.loads(sys.stdin.read())\n"
    program += f"{textwrap.dedent(code)}\nsys.stdout.write(json.dumps(found))\n"
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, input=json.dumps(columns), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
def test_datasets(columns, expected, monkeypatch):
    pytest.importorskip("datasets")
    code = """
    import datasets
    made = datasets.Dataset.from_dict(columns)
    aligned = frames.with_datasets(made)
    streamed = frames.with_datasets(made.to_iterable_dataset())
    found = [aligned["links"][:], aligned["label"][:], [row["links"] for row in streamed]]
    """
    assert in_a_process(code, columns, monkeypatch) == [expected, columns["label"], expected]


@pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java, which this machine has none of")
@pytest.mark.slow
def test_spark(columns, expected, monkeypatch):
    pytest.importorskip("pyspark")
    pytest.importorskip("pandas")
    code = """
    session = frames.spark_session()
    rows = list(zip(*columns.values()))
    made = session.createDataFrame(rows, list(columns)).repartition(3)
    found = sorted((row["label"], row["links"]) for row in frames.with_spark(made).collect())
    session.stop()
    """
    assert in_a_process(code, columns, monkeypatch) == [list(one) for one in enumerate(expected)]
