"""Gold links as state sequences, and back."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jacana_torch.crf.states import POLICIES, gold_states, readings, state_links
from jacana_torch.errors import ConfigError
from jacana_torch.types import Alignment


@st.composite
def alignments(draw):
    m, n = draw(st.integers(1, 6)), draw(st.integers(1, 6))
    cells = st.tuples(st.integers(0, m - 1), st.integers(0, n - 1))
    return Alignment(m, n, draw(st.frozensets(cells)), draw(st.frozensets(cells)))


@given(alignments(), st.sampled_from(sorted(POLICIES)), st.booleans())
def test_states_hold_one_gold_link_a_token_and_the_rest_are_counted(gold, policy, possible):
    states, dropped = gold_states(gold, policy, possible)
    links = set(gold.all_links if possible else gold.links)
    kept = state_links(states)
    assert len(states) == gold.n_source and set(kept) <= links
    assert {i for i, _ in kept} == {i for i, _ in links}
    assert len(kept) + dropped == len(links)


@given(alignments())
def test_monotone_departs_least_from_even_steps(gold):
    tokens = {i: [j for k, j in gold.links if k == i] for i, _ in gold.links}

    def departure(targets) -> int:
        steps = itertools.pairwise(zip(tokens, targets, strict=True))
        return sum(abs((j - b) - (i - a)) for (a, b), (i, j) in steps)

    chosen = [j for _, j in state_links(gold_states(gold, "monotone").states)]
    assert departure(chosen) == min(departure(c) for c in itertools.product(*tokens.values()))


def test_policies():
    gold = Alignment(4, 8, frozenset({(0, 0), (0, 7), (1, 3), (1, 1), (3, 6), (3, 0)}))
    assert gold_states(gold, "first").states.tolist() == [1, 2, 0, 1]
    assert gold_states(gold, "last").states.tolist() == [8, 4, 0, 7]
    assert gold_states(gold, "diagonal").states.tolist() == [1, 4, 0, 7]
    assert gold_states(gold, "monotone").states.tolist() == [1, 2, 0, 1]  # departs by 0 + 3 from even steps
    assert gold_states(gold).dropped == 3
    with pytest.raises(ConfigError, match="policy='nearest'"):
        gold_states(gold, "nearest")


@given(alignments(), st.lists(st.sampled_from(sorted(POLICIES)), min_size=1, max_size=3))
def test_several_policies_read_gold_each_its_own_way(gold, policies):
    paths, dropped = readings(gold, policies)
    assert [path.tolist() for path in paths] == [gold_states(gold, p).states.tolist() for p in policies]
    assert dropped == len(set(gold.links) - {link for path in paths for link in state_links(path)})


def test_of_two_links_both_are_read():
    gold = Alignment(3, 8, frozenset({(0, 0), (0, 7), (1, 3), (1, 1), (2, 1), (2, 4), (2, 6)}))
    assert readings(gold, ["first", "last"]).dropped == 1  # the middle one of three


def test_a_block_of_links_becomes_its_diagonal():
    block = frozenset((i, j) for i in (1, 2) for j in (4, 5))
    assert gold_states(Alignment(4, 6, block)).states.tolist() == [0, 5, 6, 0]
