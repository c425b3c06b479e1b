"""Pairing of sentences against enumeration: the best chain of blocks, and the best assignment of what moved."""

from __future__ import annotations

from itertools import combinations, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jacana_torch.differences.pairing import best_assignment, best_chain, paired

SIZES = st.integers(1, 4)
SCORES = st.sampled_from([-1.0, 0.0, 0.25, 0.5, 1.0, 1.5, 3.0])


def every_block(m, n):
    for i in range(m):
        for j in range(n):
            for a, b in ((1, 1), (1, 2), (2, 1)):
                if i + a <= m and j + b <= n:
                    yield i, i + a, j, j + b


@st.composite
def tables(draw):
    m, n = draw(SIZES), draw(SIZES)
    blocks = [block for block in every_block(m, n) if draw(st.booleans())]
    return {block: draw(SCORES) for block in blocks}, m, n


def follows(chain):
    return all(a[1] <= b[0] and a[3] <= b[2] for a, b in zip(chain, chain[1:], strict=False))


@given(tables())
def test_the_chain_is_the_best_of_all(table):
    scores, m, n = table
    found = best_chain(scores, m, n)
    blocks = sorted(scores)
    every = [c for size in range(min(m, n) + 1) for c in combinations(blocks, size) if follows(c)]
    assert follows(found) and all(scores[block] > 0 for block in found)
    assert sum(scores[b] for b in found) == pytest.approx(max(sum(scores[b] for b in c) for c in every))
    assert best_chain(dict(reversed(scores.items())), m, n) == found


@given(st.dictionaries(st.tuples(st.integers(0, 3), st.integers(0, 3)), SCORES, max_size=12))
def test_the_assignment_is_the_best_of_all(scores):
    found = best_assignment(scores)
    best = max(
        sum(max(0.0, scores.get((i, j), 0.0)) for i, j in enumerate(order)) for order in permutations(range(4))
    )
    assert sum(scores[pair] for pair in found) == pytest.approx(best)
    assert len({i for i, _ in found}) == len({j for _, j in found}) == len(found)


@given(tables())
def test_every_sentence_is_in_one_piece(table):
    scores, m, n = table
    found = paired(scores, m, n, scores)
    assert sorted(k for one in found for k in one.source) == list(range(m))
    assert [k for one in found for k in one.target] == list(range(n))
