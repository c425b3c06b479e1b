"""Words that a pair repeats: links in order where probabilities say nothing, and ordinary text as it was."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from variants import variants

from jacana_torch import resources
from jacana_torch.aligners.bidirectional import Bidirectional
from jacana_torch.aligners.repeated import matched
from jacana_torch.model import persist
from jacana_torch.types import Sentence, SentencePair

EXAMPLES = Path(__file__).parents[2] / "examples" / "gold.jsonl"
CLAUSE = "the old dog sat down by the river , and the cat watched it . "
QUICK = [info.name for info in persist.shipped() if info.quick and all(map(resources.available, info.resources))]


@pytest.fixture(scope="module", params=QUICK)
def model(request):
    return persist.load(request.param)


def repeated(word: str, m: int, n: int) -> SentencePair:
    return SentencePair(Sentence((word,) * m), Sentence((word,) * n))


@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 2**32 - 1), st.booleans())
def test_the_best_matching_is_the_best_of_all_in_order(m, n, seed, whole):
    worth = np.random.default_rng(seed).uniform(0, 1, (m, n))
    worth = worth.round() if whole else worth  # many ties
    few, many = min(m, n), max(m, n)
    rows, columns = matched(worth)
    assert (np.diff(rows) > 0).all() and (np.diff(columns) > 0).all() and len(rows) == len(columns) == few
    across = worth if m <= n else worth.T
    every = [across[np.arange(few), list(some)].sum() for some in combinations(range(many), few)]
    assert worth[rows, columns].sum() == pytest.approx(max(every))


@pytest.mark.parametrize("word", variants(["the", ",", "x", "3"], 2))
@pytest.mark.parametrize("size", [40, 300])
def test_one_word_over_and_over_is_linked_in_order(model, word, size):
    pair = repeated(word, size, size)
    (found,) = model.align([pair])
    assert found.links == [(k, k) for k in range(size)] and found.confidence.keys() == found.sure
    if word == "the":
        assert [model.align([pair], confidence=False)[0].sure] == [found.sure]
        assert all(found.sure == model.align([pair], name, False)[0].sure for name in ("intersection", "union"))


@pytest.mark.parametrize("m, n", [(100, 120), (120, 100), (50, 100), (10, 20)])
def test_where_lengths_differ_links_are_in_order_and_near_the_diagonal(model, m, n):
    (found,) = model.align([repeated("the", m, n)], confidence=False)
    assert len(found.links) == min(m, n)
    assert all(here[1] < there[1] for here, there in zip(found.links, found.links[1:], strict=False))
    assert all(abs(i / m - j / n) < 0.1 for i, j in found.links)


@pytest.mark.parametrize("times", [2, 3, 12])
def test_repeated_clauses_are_linked_clause_by_clause(model, times):
    tokens = tuple((CLAUSE * times).split())
    (found,) = model.align([SentencePair(Sentence(tokens), Sentence(tokens))], confidence=False)
    assert found.links == [(k, k) for k in range(len(tokens))]


def test_links_of_ordinary_text_are_those_of_the_threshold(model):
    lines = map(json.loads, EXAMPLES.read_text().splitlines())
    pairs = model.prepare([(line["source"], line["target"]) for line in lines])
    aligner = model.aligner
    assert isinstance(aligner, Bidirectional)
    for found, probability in zip(model.align(pairs), aligner.posteriors(pairs), strict=True):
        assert found.links == list(map(tuple, np.argwhere(probability >= aligner.combination.threshold).tolist()))
