"""MANLI's decoders against the enumeration of every alignment: exact, under constraints, and annealing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from manli_twin import best, meets, tokens
from manli_twin import spans as plain_spans

from jacana_torch.errors import ConfigError
from jacana_torch.systems.manli import edit_decoding
from jacana_torch.systems.manli.edit_decoding import (
    Annealing,
    Schedule,
    anneal,
    conditions,
    decode,
    decode_under,
    maximise,
    searched,
)
from jacana_torch.systems.manli.phrase_similarity import spans_of
from jacana_torch.types import Sentence, SentencePair

SIZES = st.tuples(st.integers(1, 4), st.integers(1, 3), st.integers(1, 3))
SEED = st.integers(0, 2**32 - 1)
DIFFICULT = st.sampled_from(["any", "positive", "ties", "words"])


def gains_of(sizes, seed, kind="any"):
    """Random gains: of any sign, positive, with many ties, or only for single words."""
    m, n, longest = sizes
    source, target = spans_of(m, longest), spans_of(n, longest)
    random = np.random.default_rng(seed)
    gains = random.normal(size=(len(source.start), len(target.start)))
    if kind == "positive":
        gains = np.abs(gains)
    elif kind == "ties":
        gains = random.integers(-1, 3, gains.shape).astype(float)
    elif kind == "words":
        gains = np.where((source.length[:, None] == 1) & (target.length == 1), np.abs(gains), -1.0)
    return gains, source, target


def plain(edits, source, target):
    """Edits by start and length instead of by number."""
    return frozenset(
        ((int(source.start[s]), int(source.length[s])), (int(target.start[t]), int(target.length[t])))
        for s, t in edits
    )


def table(gains, source, target):
    places = np.ndindex(gains.shape)
    return {next(iter(plain([place], source, target))): float(gains[place]) for place in places}


def share_no_token(edits, m):
    covered = [tokens(edit, m) for edit in edits]
    return sum(map(len, covered)) == len(set().union(*covered))


@given(st.integers(0, 9), st.integers(1, 6))
def test_spans_are_all_runs_of_tokens(n, longest):
    spans = spans_of(n, longest)
    found = list(zip(spans.start.tolist(), spans.length.tolist(), strict=True))
    assert found == plain_spans(n, longest) and (spans.end - spans.start == spans.length).all()
    assert all(spans.where[i, k - 1] == number for number, (i, k) in enumerate(found))
    assert (spans.where >= 0).sum() == len(found)


@settings(max_examples=150, deadline=None)
@given(SIZES, SEED, DIFFICULT)
def test_exact_decoding_finds_the_optimum(sizes, seed, kind):
    gains, source, target = gains_of(sizes, seed, kind)
    found = plain(decode(gains, source, target), source, target)
    value = table(gains, source, target)
    assert share_no_token(found, sizes[0])
    assert sum(value[edit] for edit in found) == pytest.approx(best(value, *sizes), abs=1e-9)


@pytest.mark.parametrize("limits", [(0, 3000), (20, 0), (20, 3000)], ids=["programme", "all at once", "search"])
@settings(max_examples=25, deadline=None)
@given(SIZES, SEED, DIFFICULT)
def test_every_method_for_the_hard_components_finds_the_optimum(limits, sizes, seed, kind):
    gains, source, target = gains_of(sizes, seed, kind)
    value = table(gains, source, target)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(edit_decoding, "SEARCHED", limits[0])
        patch.setattr(edit_decoding, "COMPARED", limits[1])
        found = plain(decode(gains, source, target), source, target)
    assert share_no_token(found, sizes[0])
    assert sum(value[edit] for edit in found) == pytest.approx(best(value, *sizes), abs=1e-6)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 25), SEED)
def test_search_finds_the_independent_set_of_largest_gain(size, seed):
    """Any graph of clashes, not only those of phrases."""
    random = np.random.default_rng(seed)
    size = min(size, 10)
    gain, clash = random.random(size), np.triu(random.random((size, size)) < 0.4, 1)
    clash |= clash.T
    found = searched(gain, clash)
    assert not clash[np.ix_(found, found)].any()
    sets = [np.array([k for k in range(size) if bits >> k & 1], dtype=int) for bits in range(1 << size)]
    most = max(gain[s].sum() for s in sets if not clash[np.ix_(s, s)].any())
    assert gain[found].sum() == pytest.approx(most)


def test_a_gain_by_rounding_is_not_a_gain():
    one = spans_of(1, 1)
    assert decode(np.array([[0.1 + 0.2 - 0.3]]), one, one) == []
    assert decode(np.array([[1e-9]]), one, one) == [(0, 0)]


def random_conditions(random, m, n):
    out = []
    for token in random.permutation(m + n)[: random.integers(0, m + n + 1)].tolist():
        side = range(m) if token < m else range(m, m + n)
        others = [other for other in side if other != token and random.random() < 0.5]
        if others:
            out.append((token, others))
    return out


@settings(max_examples=200, deadline=None)
@given(SIZES, SEED, DIFFICULT)
def test_decoding_under_constraints_finds_the_optimum(sizes, seed, kind):
    gains, source, target = gains_of(sizes, seed, kind)
    m, n, _ = sizes
    asked = random_conditions(np.random.default_rng(seed), m, n)
    found = plain(decode_under(gains, source, target, asked), source, target)
    value = table(gains, source, target)
    assert share_no_token(found, m) and meets(found, asked, m)
    assert sum(value[edit] for edit in found) == pytest.approx(best(value, *sizes, asked), abs=1e-6)


def test_supporters_may_need_supporters_themselves():
    """Source token 2 needs 0, which needs 1; target 1 needs 0, which needs 2. So all tokens are aligned."""
    gains = np.array([[0.0, -1.0, 0.0], [-1.0, 1.0, 0.0], [0.0, 2.0, 0.0]])
    required = [(2, [0]), (3, [5]), (5, [3]), (1, [0, 2]), (0, [1]), (4, [3])]
    assert decode_under(gains, spans_of(3, 1), spans_of(3, 1), required) == [(0, 0), (1, 2), (2, 1)]


@settings(max_examples=40, deadline=None)
@given(SIZES, SEED)
def test_the_programme_finds_the_optimum_and_its_relaxation_is_a_bound(sizes, seed):
    gains, source, target = gains_of(sizes, seed)
    asked = random_conditions(np.random.default_rng(seed), sizes[0], sizes[1])
    s, t = (k.ravel() for k in np.indices(gains.shape))
    chosen = maximise(gains.ravel(), source, target, s, t, asked)
    most = best(table(gains, source, target), *sizes, asked)
    assert gains.ravel()[chosen].sum() == pytest.approx(most, abs=1e-6)
    values = maximise(gains.ravel(), source, target, s, t, asked, relaxed=True)
    assert values @ gains.ravel() >= most - 1e-6


# Annealing


@settings(max_examples=50, deadline=None)
@given(SIZES, SEED, DIFFICULT)
def test_annealing_returns_a_valid_alignment(sizes, seed, kind):
    gains, source, target = gains_of(sizes, seed, kind)
    edits = anneal(gains, source, target, Schedule(), np.random.default_rng(seed))
    again = anneal(gains, source, target, Schedule(), np.random.default_rng(seed))
    found, value = plain(edits, source, target), table(gains, source, target)
    assert edits == again and share_no_token(found, sizes[0])
    assert -1e-9 <= sum(value[edit] for edit in found) <= best(value, *sizes) + 1e-9


def test_annealing_usually_finds_the_optimum_of_random_gains():
    hits = 0
    for seed in range(60):
        gains, source, target = gains_of((4, 3, 2), seed)
        edits = anneal(gains * 10, source, target, Schedule(), np.random.default_rng(seed))
        value = table(gains, source, target)
        hits += sum(gains[edit] for edit in edits) >= best(value, 4, 3, 2) - 1e-9
    assert hits >= 45  # random scores have more local optima than those of words


def successors(edits, m, n, longest):
    """Figure 2: add every possible edit and remove what clashes with it; in the decoder's order."""
    every = [(s, t) for s in plain_spans(m, longest) for t in plain_spans(n, longest)]
    for edit in every:
        yield frozenset(e for e in edits if not tokens(e, m) & tokens(edit, m)) | {edit}
    for token in range(m + n):
        yield frozenset(e for e in edits if token not in tokens(e, m))


@settings(max_examples=40, deadline=None)
@given(SIZES, SEED, st.floats(0.1, 40))
def test_a_step_samples_successors_by_their_scores(sizes, seed, temperature):
    """The same samples select the same successors as by definition."""
    m, n, longest = sizes
    gains, source, target = gains_of(sizes, seed)
    value = table(gains, source, target)
    state, random = Annealing(gains, source, target), np.random.default_rng(seed)
    for _ in range(8):
        before = plain(state.edits, source, target)
        following = list(successors(before, m, n, longest))
        scores = np.array([sum(value[e] for e in chosen) for chosen in following])
        p = np.exp(scores) / np.exp(scores).sum()
        p = p ** (1 / temperature) / (p ** (1 / temperature)).sum()
        edges, sample = np.cumsum(p), random.random()
        if np.abs(edges - sample).min() < 1e-9:
            continue
        state.step(temperature, sample)
        expected = following[int(np.searchsorted(edges, sample, side="right"))]
        assert plain(state.edits, source, target) == expected
        assert state.score == pytest.approx(sum(value[e] for e in expected))


def test_cold_steps_take_the_best_successor_of_any_scale():
    gains, source, target = gains_of((3, 3, 2), 5)
    state = Annealing(gains * 1e6, source, target)
    state.step(1e-300, 0.999999)
    assert state.edits == {tuple(int(k) for k in np.unravel_index(gains.argmax(), gains.shape))}


@pytest.mark.parametrize("wrong", [{"steps": 0}, {"temperature": 0.0}, {"cooling": 0.0}, {"cooling": 1.1}])
def test_invalid_schedules_are_errors(wrong):
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        Schedule(**wrong)


# Constraints over a parse

#          The(0) old(1) man(2) sat(3) on(4) two(5) chairs(6)
TAGS = ("DT", "JJ", "NN", "VBD", "IN", "CD", "NNS")
HEADS = (2, 2, 3, -1, 3, 6, 4)


def sentence(tags=TAGS, heads=HEADS):
    return Sentence(tuple(f"w{k}" for k in range(len(tags))), {"pos": tags, "head": heads})


def test_modifiers_need_their_parents_and_prepositions_ancestors_or_descendants():
    pair = SentencePair(sentence(), sentence(("MD", "VB", "RP"), (1, -1, 1)))
    modifiers = [(0, {2}), (5, {6}), (7, {8})]
    prepositions = [(4, {3, 6, 5}), (9, {8})]

    def found(modifier, lineage):
        return [(token, set(others)) for token, others in conditions(pair, modifier, lineage)]

    assert found(True, False) == modifiers and found(False, True) == prepositions
    assert sorted(found(True, True)) == sorted(modifiers + prepositions, key=lambda c: c[0])
    assert found(False, False) == []


def test_tokens_without_relatives_are_free():
    alone = sentence(("IN",), (-1,))
    assert conditions(SentencePair(alone, sentence(("DT", "NN"), (-1, -1))), True, True) == []


def test_a_parse_may_contain_cycles():
    pair = SentencePair(sentence(("IN", "NN", "DT"), (1, 0, 2)), sentence(("NN",), (-1,)))
    assert [(t, set(o)) for t, o in conditions(pair, True, True)] == [(0, {1}), (2, {2})]


def test_invalid_heads_are_errors():
    with pytest.raises(ConfigError, match="heads"):
        conditions(SentencePair(sentence(heads=(2, 2, 3, -1, 3, 9, 4)), sentence()), True, True)
