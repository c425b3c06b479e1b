"""Semi-Markov chains against the enumeration of all segmentations, in plain Python that shares no code."""

from __future__ import annotations

import itertools
import math
import random

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from jacana_torch.crf.layout import Layout
from jacana_torch.crf.scores import ChainScores, LinearScores
from jacana_torch.systems.phrase import semi_markov as semi
from jacana_torch.systems.phrase.phrase_crf import SegmentObjective, SegmentScores
from jacana_torch.systems.phrase.segments import Segments
from jacana_torch.systems.phrase.semi_markov import SemiMarkov
from jacana_torch.util.geometry import Geometry

SIZES = st.lists(st.tuples(st.integers(1, 5), st.integers(1, 4)), min_size=1, max_size=5)
MANY_ALIKE = [(1, 1), (1, 3), (2, 4), *[(2, 2)] * 21]  # many rows of a batch have the same edges
LONGEST = st.integers(1, 3)
quick = settings(max_examples=30, deadline=None)
ANYHOW = 1e20  # entries of segments that do not fit may hold anything and must be ignored


class Twin:
    """Scores of one pair: NULLs, segments by (m, L, n, K), steps between target tokens (-1: NULL), all drawn."""

    def __init__(self, m: int, n: int, longest: int, draw, steps: dict) -> None:
        self.m, self.n, self.longest = m, n, longest
        self.null = [draw() for _ in range(m)]
        self.segment = {
            (i, size, j, span): draw()
            for i in range(m)
            for size in range(1, longest + 1)
            for j in range(n)
            for span in range(1, longest + 1)
            if i + size <= m and j + span <= n
        }
        self.edge, self.start, self.end = steps[n]

    def paths(self, at: int = 0):
        """All ways to cut tokens from `at` on: lists of (first, tokens, first target or -1, targets)."""
        if at == self.m:
            yield []
            return
        for rest in self.paths(at + 1):
            yield [(at, 1, -1, 1), *rest]
        for key in self.segment:
            if key[0] == at:
                for rest in self.paths(at + key[1]):
                    yield [key, *rest]

    def score(self, path) -> float:
        terms = [self.null[s[0]] if s[2] < 0 else self.segment[s] for s in path]
        for a, b in itertools.pairwise(path):
            last = a[2] if a[2] < 0 else a[2] + a[3] - 1
            terms.append(self.edge[last, b[2]])
        first, final = path[0], path[-1]
        terms += [self.start[first[2]], self.end[final[2] if final[2] < 0 else final[2] + final[3] - 1]]
        return math.fsum(terms)


def steps_of(n: int, draw) -> tuple[dict, dict, dict]:
    states = range(-1, n)
    edge = {(a, b): draw() for a in states for b in states}
    return edge, {a: draw() for a in states}, {a: draw() for a in states}


def drawn(sizes, longest: int, seed: int, spread: float = 3.0) -> list[Twin]:
    rng = random.Random(seed)
    draw = lambda: rng.uniform(-spread, spread)  # noqa: E731
    small = lambda: rng.uniform(-1, 1) * min(spread, 30.0)  # noqa: E731
    steps = {n: steps_of(n, small) for n in sorted({n for _, n in sizes})}
    return [Twin(m, n, longest, draw, steps) for m, n in sizes]


def flat(twins: list[Twin], longest: int) -> tuple[torch.Tensor, ...]:
    """The scores in the order of Segments, spelt out."""
    segments = [score for t in twins for score in t.null]
    for size, span in itertools.product(range(1, longest + 1), repeat=2):
        for t in twins:
            cells = itertools.product(range(t.m), range(t.n))
            segments += [t.segment.get((i, size, j, span), ANYHOW) for i, j in cells]
    tables = {t.n: t for t in twins}
    edges = [tables[n].edge[a, b] for n in sorted(tables) for a in range(-1, n) for b in range(-1, n)]
    starts = [tables[n].start[a] for n in sorted(tables) for a in range(-1, n)]
    ends = [tables[n].end[a] for n in sorted(tables) for a in range(-1, n)]
    return tuple(torch.tensor(x, dtype=torch.float64) for x in (segments, edges, starts, ends))


def segments_of(sizes, longest: int) -> Segments:
    n_source, n_target = (np.array(side) for side in zip(*sizes, strict=True))
    return Segments(Geometry(n_source, n_target), longest)


def log_sum(scores) -> float:
    scores = list(scores)
    top = max(scores)
    return top + math.log(math.fsum(math.exp(s - top) for s in scores))


def expected_by_hand(twins: list[Twin], longest: int) -> tuple[list[float], tuple[np.ndarray, ...]]:
    """Log Z of each pair; expected counts in the order of `flat`."""
    totals = []
    nulls: dict = {}
    segments: dict = {}
    steps: dict = {}
    for number, t in enumerate(twins):
        paths = list(t.paths())
        scores = [t.score(path) for path in paths]
        z = log_sum(scores)
        totals.append(z)
        for path, score in zip(paths, scores, strict=True):
            probability = math.exp(score - z)
            for s in path:
                key = (number, s[0]) if s[2] < 0 else (number, *s)
                where = nulls if s[2] < 0 else segments
                where[key] = where.get(key, 0.0) + probability
            ends = [s[2] if s[2] < 0 else s[2] + s[3] - 1 for s in path]
            keys = [("edge", t.n, a, s[2]) for a, s in zip(ends, path[1:], strict=False)]
            for key in [*keys, ("start", t.n, path[0][2]), ("end", t.n, ends[-1])]:
                steps[key] = steps.get(key, 0.0) + probability
    out = [nulls.get((k, i), 0.0) for k, t in enumerate(twins) for i in range(t.m)]
    for size, span in itertools.product(range(1, longest + 1), repeat=2):
        for k, t in enumerate(twins):
            cells = itertools.product(range(t.m), range(t.n))
            out += [segments.get((k, i, size, j, span), 0.0) for i, j in cells]
    lengths = sorted({t.n for t in twins})
    edges = [steps.get(("edge", n, a, b), 0.0) for n in lengths for a in range(-1, n) for b in range(-1, n)]
    outer = [[steps.get((kind, n, a), 0.0) for n in lengths for a in range(-1, n)] for kind in ("start", "end")]
    return totals, tuple(np.array(x) for x in (out, edges, *outer))


@quick
@given(SIZES, LONGEST, st.integers(0, 10**6), st.sampled_from([1.0, 30.0, 1e4]), st.sampled_from([10**6, 40]))
@example(MANY_ALIKE, 2, 0, 1.0, 10**6)
def test_sums_and_counts_agree_with_enumeration(sizes, longest, seed, spread, max_cells):
    twins = drawn(sizes, longest, seed, spread)
    total, counts = SemiMarkov(segments_of(sizes, longest), max_cells).expected(*flat(twins, longest))
    by_hand, counts_by_hand = expected_by_hand(twins, longest)
    assert total.tolist() == pytest.approx(by_hand, rel=1e-12, abs=1e-9)
    for found, right in zip(counts, counts_by_hand, strict=True):
        np.testing.assert_allclose(found.numpy(), right, rtol=0, atol=1e-9)


@quick
@given(SIZES, LONGEST, st.integers(0, 10**6), st.sampled_from([10**6, 40]))
def test_best_path_agrees_with_enumeration(sizes, longest, seed, max_cells):
    twins = drawn(sizes, longest, seed)
    pairs, paths, scores = SemiMarkov(segments_of(sizes, longest), max_cells).best_paths(*flat(twins, longest))
    found: dict = {pair: (score, []) for pair, score in enumerate(scores.tolist())}
    for pair, (m, size, state, span) in zip(pairs.tolist(), paths.tolist(), strict=True):
        found[pair][1].append((m, size, state - 1, span))
    assert sorted(found) == list(range(len(twins)))
    for number, twin in enumerate(twins):
        best = max(twin.paths(), key=twin.score)
        score, path = found[number]
        assert path == best
        assert score == pytest.approx(twin.score(best), abs=1e-9)


@quick
@given(SIZES, LONGEST, st.integers(0, 10**6), st.sampled_from([10**6, 40]))
@example([(1, 4)] * 5, 1, 0, 40)
def test_every_place_of_a_lattice_has_its_score_or_nothing(sizes, longest, seed, max_cells):
    twins = drawn(sizes, longest, seed)
    chains, seen = SemiMarkov(segments_of(sizes, longest), max_cells), []
    padded = chains.padded(*flat(twins, longest))
    for batch in chains.batches:
        x = chains.lattice(batch, padded)
        seen += (pairs := batch.pairs.tolist())
        D, _, T, R, W = x.segment.shape
        assert (T, R, W) == (max(sizes[k][0] for k in pairs), len(pairs), max(sizes[k][1] for k in pairs) + 1)
        assert R == 1 or T * W * R * longest**2 <= max_cells
        assert R == 1 or (W - 1) // longest**2 * W * R * longest**2 <= max_cells  # edges are a table per row
        for (a, b, t, row, s), score in np.ndenumerate(x.segment.numpy()):
            assert score == _expected(twins[pairs[row]], t, a + 1, s, b + 1)
        for (t, a, b, row, e), score in np.ndenumerate(x.ending().numpy()):
            size, span = D - a, D - b
            assert score == _expected(twins[pairs[row]], t - size + 1, size, e - span + 1, span)
        assert x.lengths.tolist() == [sizes[k][0] for k in pairs]
    assert sorted(seen) == list(range(len(sizes)))
    assert chains.segments.n_segments == len(flat(twins, longest)[0])


def _expected(twin: Twin, first: int, size: int, state: int, span: int) -> float:
    """The score of a segment by its first token and state."""
    if state == 0 and size == span == 1 and 0 <= first < twin.m:
        return twin.null[first]
    return twin.segment.get((first, size, state - 1, span), semi.NOTHING)


@quick
@given(SIZES, LONGEST, st.integers(0, 10**6))
def test_entries_of_a_path_add_up_to_its_score(sizes, longest, seed):
    twins, rng = drawn(sizes, longest, seed), random.Random(seed)
    paths = [rng.choice(list(t.paths())) for t in twins]
    as_states = [np.array([(m, size, n + 1, span) for m, size, n, span in path]) for path in paths]
    entries = segments_of(sizes, longest).entries(as_states)
    flat_scores = flat(twins, longest)
    total = sum(scores[torch.as_tensor(at)].sum() for scores, at in zip(flat_scores, entries, strict=True))
    assert float(total) == pytest.approx(sum(t.score(p) for t, p in zip(twins, paths, strict=True)))


@quick
@given(SIZES, LONGEST, st.integers(0, 10**6), st.booleans())
def test_pooled_sums_cells_and_unpooled_is_its_transpose(sizes, longest, seed, mean):
    segments, rng = segments_of(sizes, longest), np.random.default_rng(seed)
    share = [1 / (k + 1) if mean else 1.0 for k in range(longest)]
    link = rng.normal(size=segments.tokens.n_cells)
    pooled = segments.pooled(torch.as_tensor(link), torch.tensor(share, dtype=torch.float64)).numpy()
    fits = np.zeros(pooled.shape, dtype=bool)
    cells = [(k, i, j) for k, (m, n) in enumerate(sizes) for i in range(m) for j in range(n)]
    number = {cell: c for c, cell in enumerate(cells)}
    for c, (pair, i, j) in enumerate(cells):
        for size, span in itertools.product(range(1, longest + 1), repeat=2):
            if i + size <= sizes[pair][0] and j + span <= sizes[pair][1]:
                fits[size - 1, span - 1, c] = True
                inside = [number[pair, a, b] for a in range(i, i + size) for b in range(j, j + span)]
                assert pooled[size - 1, span - 1, c] == pytest.approx(link[inside].sum() * share[span - 1])
    np.testing.assert_array_equal(segments.fits, fits)
    weights = rng.normal(size=pooled.shape) * fits
    back = segments.unpooled(torch.as_tensor(weights), torch.tensor(share, dtype=torch.float64)).numpy()
    assert (back * link).sum() == pytest.approx((weights * np.where(fits, pooled, 0)).sum(), abs=1e-9)


@settings(max_examples=12, deadline=None)
@given(SIZES, LONGEST, st.integers(0, 10**6))
def test_gradient_agrees_with_finite_differences(sizes, longest, seed):
    rng, segments = np.random.default_rng(seed), segments_of(sizes, longest)
    layout = Layout(segments.tokens)
    blocks, first = {}, 0
    for name, size in layout.sizes.items():
        blocks[name] = [(np.arange(first, first + size), None, None)]
        first += size
    n_weights = first + segments.n_sized
    phrases = LinearScores([(np.arange(first, n_weights), None, None)], segments.n_sized, n_weights, "cpu")
    share = torch.tensor([1.0, 0.5, 1 / 3][:longest], dtype=torch.float64)
    model = SegmentScores(segments, ChainScores(layout, blocks, n_weights), phrases, share)
    gold = [np.array([(m, 1, m % (n + 1), 1) for m in range(of)]) for of, n in sizes]
    l2, cost = rng.uniform(0.5, 2.0, n_weights), rng.uniform(0, 1, segments.n_segments)
    objective = SegmentObjective(model, SemiMarkov(segments, 10**6), gold, cost, l2)
    x, way = rng.normal(size=(2, n_weights))
    (above, _), (below, _), (_, gradient) = objective(x + 1e-5 * way), objective(x - 1e-5 * way), objective(x)
    assert (above - below) / 2e-5 == pytest.approx(float(gradient @ way), rel=1e-6, abs=1e-6)


def test_segment_scores_are_pooled_cells_plus_phrase_features():
    segments = segments_of([(2, 2)], 2)
    extra = np.arange(16.0) * 100
    layout = Layout(segments.tokens)
    blocks = {name: [] for name in layout.sizes} | {
        "null": [(np.array([0]), np.array([[0.5], [0.25]]), None)],
        "link": [(np.array([0]), np.array([[1.0], [2.0], [4.0], [8.0]]), None)],
    }
    phrases = LinearScores([(np.array([0]), extra[:, None], None)], 16, 1, "cpu")
    share = torch.tensor([1.0, 0.5], dtype=torch.float64)
    flat_scores, *_ = SegmentScores(segments, ChainScores(layout, blocks, 1), phrases, share).scores(
        torch.ones(1, dtype=torch.float64)
    )
    assert flat_scores[:2].tolist() == [0.5, 0.25]
    sized = (flat_scores[2:] - torch.as_tensor(extra)).view(2, 2, 4)
    assert sized[0, 0].tolist() == [1, 2, 4, 8]
    assert sized[0, 1, [0, 2]].tolist() == [1.5, 6.0]
    assert sized[1, 0, [0, 1]].tolist() == [5.0, 10.0]
    assert sized[1, 1, 0].tolist() == 7.5
