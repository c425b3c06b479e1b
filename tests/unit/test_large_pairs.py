"""Very long pairs: memory per cell is bounded, and what is forgotten on the way changes nothing."""

from __future__ import annotations

import json
import tracemalloc
from itertools import chain, islice
from pathlib import Path

import pytest
from variants import variants

from jacana_torch import resources
from jacana_torch.crf import scores
from jacana_torch.model import persist
from jacana_torch.types import Sentence, SentencePair

EXAMPLES = Path(__file__).parents[2] / "examples" / "gold.jsonl"
# Bytes per cell of a long pair that aligning takes, beside what any pair takes (docs/performance.md): of running
# text, and of one word repeated.
MOST = {"core": (450, 1000), "standard": (640, 1050)}
QUICK = [info.name for info in persist.shipped() if info.quick and all(map(resources.available, info.resources))]


def text(tokens: int, skipped: int = 0) -> Sentence:
    """A long sentence of running text; no two sentences of it are aligned."""
    lines = map(json.loads, EXAMPLES.read_text().splitlines())
    every = list(chain.from_iterable(line["source"] for line in lines))
    return Sentence(tuple(islice(chain.from_iterable([every] * 99), skipped, skipped + tokens)))


@pytest.mark.parametrize("name", QUICK)
def test_forgetting_changes_no_score(name, monkeypatch):
    pair = SentencePair(text(40), text(30, 4))
    expected = persist.load(name).align([pair])[0]
    monkeypatch.setattr(scores, "LARGE_PART", 0)
    found = persist.load(name).align([pair])[0]
    assert (found.confidence, found.score) == (expected.confidence, expected.score)


@pytest.mark.parametrize("name", QUICK)
@pytest.mark.parametrize("same", variants([False, True]))
def test_memory_per_cell_is_bounded(name, same):
    model, tokens = persist.load(name), 460  # more than LARGE_PART cells
    long = Sentence(("the",) * tokens) if same else text(tokens)
    for start in (0, 30, 60):  # what is kept for later batches takes room of its own
        model.align([SentencePair(text(40, start), text(40, start + 3))], confidence=False)
    tracemalloc.start()
    try:
        model.align([SentencePair(long, long if same else text(tokens, 5))], confidence=False)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert tokens**2 > scores.LARGE_PART and peak < MOST[name][same] * tokens**2
