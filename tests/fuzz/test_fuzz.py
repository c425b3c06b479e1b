"""Mutated documents of every format and sidecar: 500 each, or as many as JACANA_FUZZ says. -s prints a table."""

from __future__ import annotations

import os
import sys

import fuzz_checks
import pytest
from fuzz_found import FOUND
from fuzz_seeds import SIDECARS

from jacana_torch import corpora
from jacana_torch.annotate.sidecars import READERS

INPUTS = int(os.environ.get("JACANA_FUZZ", "500"))
TARGETS = fuzz_checks.targets()


@pytest.fixture(scope="module")
def tallies():
    found: dict[str, fuzz_checks.Tally] = {}
    yield found
    sys.stdout.write(f"\n{fuzz_checks.table(found)}\n")


@pytest.mark.parametrize("name", TARGETS)
def test_mutated_documents(name, tmp_path, tallies):
    tallies[name] = fuzz_checks.run(TARGETS[name], range(INPUTS), tmp_path)
    assert tallies[name].failures == [], f"python -m tests.fuzz --only {name!r} --input N shows one of them"
    bad = tallies[name].refused + tallies[name].partly
    assert min(tallies[name].read, bad) > INPUTS // 50, "no fair mixture"


@pytest.mark.parametrize("name", FOUND)
def test_what_was_once_found(name, tmp_path):
    target, data = FOUND[name]
    assert fuzz_checks.run_on(TARGETS[target], [(0, data)], tmp_path).failures == []


@pytest.mark.parametrize("name", TARGETS)
def test_seeds_are_valid(name, tmp_path):
    tally = fuzz_checks.run_on(TARGETS[name], enumerate(TARGETS[name].seeds), tmp_path)
    assert tally.failures == []
    assert not tally.bad or name in ("guessed", "predictions")  # which also get other documents


def test_every_format_and_every_sidecar_is_a_target():
    assert set(SIDECARS) == set(READERS) <= set(TARGETS)
    for name in fuzz_checks.texts():
        assert {name, f"{name} beside its text"} & set(TARGETS)


def test_inputs_are_the_same_in_any_order():
    target = TARGETS["jsonl"]
    backwards = [fuzz_checks.input_of(target, number) for number in reversed(range(50))]
    assert backwards[::-1] == [fuzz_checks.input_of(target, number) for number in range(50)]
    assert len(set(backwards)) > 45


FAULTY = """
from functools import partial
from jacana_torch.corpora import Format, each_written, per_line
from jacana_torch.types import Example, Sentence, SentencePair

def parse(line):
    source, target = line.split("\\t") if line.count("\\t") == 1 else ("", "")
    {read}
    return Example(SentencePair(Sentence(source.split()), Sentence(target.split())))

def write(example, number):
    {write}
    return f"{{example.pair.source}}\\t{{example.pair.target}}\\n"

read = partial(per_line, parse=parse)
FORMAT = Format(lambda lines: False, read, partial(each_written, write=write), holds_links=False)
"""
FAULTS = {
    "traceback": {"read": "if 'crossed' in target: raise KeyError(target)"},
    "stall": {
        "read": "import time; begun = time.process_time()\n    while time.process_time() < begun + 0.03: pass"
    },
    "message": {"read": "if 'rained' in target: raise ValueError(line * 500)"},
    "changed": {"write": "example = Example(SentencePair(example.pair.target, example.pair.source))"},
    "lost": {"write": "if number == 2: return ''"},
}


@pytest.mark.parametrize("kind", FAULTS)
def test_a_fault_is_found(kind, tmp_path, monkeypatch):
    """A format with one fault, put beside the others."""
    (tmp_path / f"faulty_{kind}.py").write_text(FAULTY.format(**{"read": "pass", "write": "pass", **FAULTS[kind]}))
    monkeypatch.setattr(corpora, "__path__", [*corpora.__path__, str(tmp_path)])
    monkeypatch.setattr(fuzz_checks, "WRITTEN", (f"faulty_{kind}",))
    monkeypatch.setattr(fuzz_checks, "SLOWEST", 0.02 if kind == "stall" else 1.0)
    target = fuzz_checks.targets()[f"faulty_{kind}"]
    tally = fuzz_checks.run(target, range(60 if kind != "stall" else 3), tmp_path)
    assert tally.count(kind) > 0, tally
