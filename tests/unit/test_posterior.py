"""Both directions together: chances against sums over all paths, links and figures against loops over cells."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch
from feature_twin import random_pairs
from hypothesis import given
from hypothesis import strategies as st

from jacana_torch.aligners import calibration as module
from jacana_torch.aligners.bidirectional import Bidirectional
from jacana_torch.aligners.calibration import Sample, fitted, held_out, sampled
from jacana_torch.aligners.crf import Crf
from jacana_torch.aligners.posterior import Combination, Posterior, both_ways
from jacana_torch.crf.links import expected_f1_links
from jacana_torch.errors import ConfigError
from jacana_torch.evaluate import score
from jacana_torch.features.families.context import Context
from jacana_torch.features.families.distortion import Distortion
from jacana_torch.features.families.string import String
from jacana_torch.symmetrize import functions, symmetrizer
from jacana_torch.systems.unsupervised.unsupervised import Hmm
from jacana_torch.types import Alignment, Example, Sentence, SentencePair

WORDS = ("a", "barn", "barns", "red", "read", "Reds", "7", "b")


def examples(seed: int, count: int) -> list[Example]:
    """Words are linked to those that begin with the same letter, as a rule; some are linked to several."""
    out = []
    for pair in random_pairs(seed, count, WORDS, longest=4):
        links = {(i, j) for i, a in enumerate(pair.source.tokens) for j, b in enumerate(pair.target.tokens)
                 if a[0].lower() == b[0].lower() and (i * 7 + j * 3 + len(out)) % 5}  # fmt: skip
        out.append(Example(pair, Alignment(len(pair.source), len(pair.target), frozenset(links))))
    return out


def chain(**settings) -> Crf:
    families = {"string": String(), "context": Context(), "distortion": Distortion()}
    return Crf(families, max_iterations=12, batch_cells=60, **settings)


def made(symmetrize="intersection") -> Bidirectional:
    return Bidirectional(chain(), chain(), symmetrize)


@pytest.fixture(scope="module")
def both() -> Bidirectional:
    aligner = made(Posterior(folds=2))
    aligner.fit(examples(1, 40))
    assert aligner.combination != Combination()
    return aligner


@pytest.fixture(scope="module")
def pairs() -> list[SentencePair]:
    some, empty = Sentence(("a", "red", "barn")), Sentence(())
    return [SentencePair(empty, some), *random_pairs(2, 25, WORDS, longest=4), SentencePair(some, empty)]


def sum_over_paths(crf: Crf, pair: SentencePair) -> np.ndarray:
    """[m, n] the chance of each link, of every path's score by itself."""
    m, n = len(pair.source), len(pair.target)
    nodes, edges, starts, ends = (
        x.numpy() for x in crf.prepared([pair]).scores.flat(torch.as_tensor(crf.weights))
    )
    node = np.column_stack([nodes[:m], nodes[m:].reshape(m, n)]).tolist()
    edge, start, end = edges.reshape(n + 1, n + 1).tolist(), starts.tolist(), ends.tolist()
    total, links = 0.0, np.zeros((m, n))
    for path in product(range(n + 1), repeat=m):
        value = start[path[0]] + end[path[-1]] + sum(node[i][s] for i, s in enumerate(path))
        value = math.exp(value + sum(edge[a][b] for a, b in zip(path, path[1:], strict=False)))
        total += value
        for i, s in enumerate(path):
            if s:
                links[i, s - 1] += value
    return links / total


@pytest.fixture(scope="module")
def tables(both, pairs) -> list[tuple[np.ndarray, np.ndarray] | None]:
    """Of each pair, the chances in both directions by `sum_over_paths`."""
    return [
        (sum_over_paths(both.forward, x), sum_over_paths(both.backward, x.flip()).T)
        if x.source and x.target
        else None
        for x in pairs
    ]


def weighed_by_hand(w: Combination, forward: float, backward: float) -> float:
    a, b = (min(max(c, 1e-6), 1 - 1e-6) for c in (forward, backward))
    one, other = math.log(a / (1 - a)), math.log(b / (1 - b))
    odds = w.forward * one + w.backward * other + w.smaller * min(one, other) + w.bias
    return 1 / (1 + math.exp(-odds))


def chances_by_hand(w: Combination, table) -> dict[tuple[int, int], float]:
    forward, backward = table
    return {(i, j): weighed_by_hand(w, forward[i, j], backward[i, j]) for i, j in np.ndindex(*forward.shape)}


@pytest.mark.parametrize("single", [False, True])
def test_chances_are_sums_over_all_paths(both, pairs, tables, single):
    seen = 0
    for places, some in both_ways(both.forward, both.backward, pairs):
        for got, side in zip(some.posteriors(precise=not single), (0, 1), strict=True):
            expected = np.concatenate([tables[place][side].ravel() for place in places])
            assert got == pytest.approx(expected, abs=1e-5 if single else 1e-9)
        seen += len(places)
    assert seen == sum(table is not None for table in tables) > 20


def test_links_are_what_is_likely_under_both(both, pairs, tables):
    found = both.align(pairs)
    assert both.align(pairs, confidence=False) == found and any(a.sure for a in found)
    for alignment, table in zip(found, tables, strict=True):
        if table is None:
            assert not alignment.sure and alignment.score is None
            continue
        chances = chances_by_hand(both.combination, table)
        links = {link for link, chance in chances.items() if chance >= both.combination.threshold}
        assert alignment.sure == links and not alignment.possible
        assert alignment.confidence == pytest.approx({link: chances[link] for link in links}, abs=1e-8)
        whole = sum(math.log(c if link in links else 1 - c) for link, c in chances.items())
        assert alignment.score == pytest.approx(whole / alignment.n_source, abs=1e-6)


@pytest.mark.parametrize("threshold", [0.05, 0.3, 0.9])
def test_a_threshold_of_ones_own(both, pairs, tables, threshold):
    """Also so low that some of what may be told as 0 without confidences would count."""
    ways = Posterior(threshold=threshold), f" Posterior:{threshold}"
    for confidence, way in product((False, True), ways):
        for alignment, table in zip(both.align(pairs, way, confidence), tables, strict=True):
            chances = chances_by_hand(both.combination, table) if table else {}
            assert alignment.sure == {link for link, chance in chances.items() if chance >= threshold}


def test_links_of_the_largest_expected_f1(both, pairs, tables):
    found = both.align(pairs, Posterior("f1"))
    assert both.align(pairs, Posterior("f1"), confidence=False) == found != both.align(pairs)
    for alignment, table in zip(found, tables, strict=True):
        if table:
            ranked = sorted(chances_by_hand(both.combination, table).items(), key=lambda item: -item[1])
            kept, _, f1 = expected_f1_links([chance for _, chance in ranked])
            assert alignment.sure == {link for link, _ in ranked[:kept]} and f1 > 0


def test_confidences_do_not_depend_on_what_chose_the_links(both, pairs, tables):
    for name in functions():
        plain = [join(f, b) for join in [functions()[name]] for f, b in zip(*both.directions(pairs), strict=True)]
        for alignment, table, expected in zip(both.align(pairs, name), tables, plain, strict=True):
            assert alignment == expected
            chances = chances_by_hand(both.combination, table) if table else {}
            own = {link: chances[link] for link in alignment.sure}
            assert alignment.confidence == pytest.approx(own, abs=1e-8)


def test_a_symmetrizer_of_ones_own_sees_the_directions_confidences(both, pairs):
    def surest(forward, backward):
        links = frozenset(
            k for k in forward.sure & backward.sure if forward.confidence[k] * backward.confidence[k] > 0.5
        )
        return Alignment(forward.n_source, forward.n_target, links)

    assert any(a.sure for a in both.align(pairs, surest))


def test_every_model_of_two_chains_can_be_asked(both, pairs):
    plain = Bidirectional(both.forward, both.backward, "union")
    assert plain.align(pairs, "posterior") == plain.align(pairs, Posterior())
    assert both.align(pairs, "posterior") == both.align(pairs) != plain.align(pairs)
    assert isinstance(made("posterior").symmetrize, Posterior)  # which is learnt, as from a config


# What is learnt


def test_the_weighing_is_the_likeliest():
    rng = np.random.default_rng(3)
    forward, backward = rng.random(5000), rng.random(5000)
    truth = Combination(0.7, 0.4, -0.5, smaller=-0.3)
    sample = Sample(forward, backward, rng.random(5000) < truth.combine(forward, backward), np.zeros(5000, int))
    found = fitted(sample)
    for name, at_most in (("forward", 0.15), ("backward", 0.15), ("bias", 0.2), ("smaller", 0.2)):
        assert abs(getattr(found, name) - getattr(truth, name)) < at_most

    assert_likeliest(found, sample)


def test_the_likeliest_weighing_is_found_where_newton_s_steps_go_too_far():
    rng = np.random.default_rng(0)
    sure = np.array([1e-6, 1 - 1e-6])
    sample = Sample(rng.choice(sure, 400), rng.choice(sure, 400), rng.random(400) < 0.02, np.zeros(400, int))
    assert_likeliest(fitted(sample), sample)


WEIGHTS = ("forward", "backward", "bias", "smaller")


def assert_likeliest(found: Combination, sample: Sample) -> None:
    """No step makes it likelier."""

    def loss(w: Combination) -> float:
        prior, chances = Combination(), w.combine(sample.forward, sample.backward)
        near = sum((getattr(w, n) - getattr(prior, n)) ** 2 for n in WEIGHTS) / 2
        return near - np.log(np.where(sample.gold, chances, 1 - chances)).sum()

    for name, step in product(WEIGHTS, (-1e-3, 1e-3)):
        assert loss(replace(found, **{name: getattr(found, name) + step})) > loss(found)


def test_few_and_certain_cells_leave_it_near_what_it_was():
    one = np.array([1.0])
    found = fitted(Sample(one, one, np.array([True]), np.array([0])))
    assert found.forward == pytest.approx(Combination().forward, abs=0.05)
    perfect = np.repeat([0.0, 1.0], 500)
    assert fitted(Sample(perfect, perfect, perfect > 0, np.zeros(1000, int))).forward < 2


@given(
    st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=20),
    st.floats(0.01, 0.99),
    st.tuples(st.floats(-0.2, 2), st.floats(-0.2, 2), st.floats(-3, 3), st.floats(-1, 1)),
)
def test_what_is_told_as_0_is_less_likely_than_asked(cells, least, weights):
    w = Combination(*weights[:3], smaller=weights[3])
    forward, backward = (np.array(side) for side in zip(*cells, strict=True))
    exact, told = w.combine(forward, backward), w.combine(forward, backward, least)
    for a, b, chance, quick in zip(forward, backward, exact, told, strict=True):
        assert chance == pytest.approx(weighed_by_hand(w, a, b))
        assert quick == chance or (quick == 0 and chance < least)


def test_folds_are_judged_by_chains_that_never_saw_them(monkeypatch):
    corpus, seen = examples(4, 23), []
    original = Crf.fit

    def watched(self, given, *rest):
        seen.append({id(e.pair) for e in given})
        return original(self, given, *rest)

    monkeypatch.setattr(Crf, "fit", watched)
    judged = []

    def watched_sample(one, other, held):
        judged.append({id(e.pair) for e in held})
        return sampled(one, other, held)

    monkeypatch.setattr(module, "sampled", watched_sample)
    parts = list(held_out(chain(), chain(), corpus, 3, seed=5))
    everything = {id(e.pair) for e in corpus}
    assert set.union(*judged) == everything and sum(map(len, judged)) == 23
    for fold, held in enumerate(judged):
        assert seen[2 * fold] == everything - held  # forward; backward sees them flipped
    total = Sample.joined(parts)
    assert total.gold.sum() == sum(len(e.gold.sure) for e in corpus)
    assert len(total.gold) == sum(len(e.pair.source) * len(e.pair.target) for e in corpus)
    assert len(np.unique(total.pair)) == 23


def test_a_sample_says_which_cells_are_gold(both):
    corpus = examples(6, 15)
    sample = sampled(both.forward, both.backward, corpus)
    assert len(list(both_ways(both.forward, both.backward, [e.pair for e in corpus]))) > 1
    assert np.unique(sample.pair).tolist() == list(range(15))
    cells = {}
    for pair, forward, backward, hit in zip(
        sample.pair, sample.forward, sample.backward, sample.gold, strict=True
    ):
        cells.setdefault(int(pair), []).append((forward, backward, hit))
    expected = []
    for e in corpus:
        ahead, back = sum_over_paths(both.forward, e.pair), sum_over_paths(both.backward, e.pair.flip()).T
        expected.append([(ahead[c], back[c], c in e.gold.sure) for c in np.ndindex(*ahead.shape)])
    key = lambda rows: (len(rows), [tuple(np.round(np.array(row, float), 6)) for row in rows])  # noqa: E731
    for got, want in zip(sorted(map(key, cells.values())), sorted(map(key, expected)), strict=True):
        assert np.array(got[1]) == pytest.approx(np.array(want[1]), abs=2e-6)


def test_the_threshold_is_the_one_that_scores_best(both):
    corpus = examples(7, 30)
    sample = sampled(both.forward, both.backward, corpus)
    best = module.best_threshold(sample, both.combination)
    gold, asked = [e.gold for e in corpus], [e.pair for e in corpus]

    def worth(threshold: float) -> float:
        found = score(gold, both.align(asked, Posterior(threshold=float(threshold))))
        return found.f1 + 0.25 * found.exact

    def about(threshold: float) -> float:
        return np.mean([worth(t) for t in module.THRESHOLDS if abs(t - threshold) < 0.07])

    assert about(best) == pytest.approx(max(map(about, module.THRESHOLDS)))


def test_exact_pairs_count_when_the_threshold_is_chosen(monkeypatch):
    """One cell of each pair has probability 0.505. Linking them all raises F1 from 0.75 to 0.80, and spoils the
    pairs in which they are the only error: exact falls from 0.4 to 0."""
    spoilt = [(0.9, True), (0.505, False)]
    helped = [(0.9, True), (0.505, True), (0.01, True)]
    pairs = [spoilt] * 2 + [helped] * 3
    probability, hit = (
        np.array(column) for column in zip(*(cell for pair in pairs for cell in pair), strict=True)
    )
    sample = Sample(probability, probability, hit.astype(bool), np.repeat(range(5), list(map(len, pairs))))
    forward_alone = Combination(forward=1.0, backward=0.0, bias=0.0)
    assert module.best_threshold(sample, forward_alone) > 0.505
    monkeypatch.setattr(module, "WORTH_OF_EXACT", 0.0)
    assert module.best_threshold(sample, forward_alone) < 0.505


def test_nothing_is_learnt_from_few_or_where_nobody_asks():
    for folds, count in ((0, 40), (5, 19)):
        aligner = made(Posterior(folds=folds))
        aligner.fit(examples(1, count))
        assert aligner.combination == Combination()
        assert set(aligner.state()) == {f"{p}.{k}" for p in ("forward", "backward") for k in ("names", "weights")}


def test_what_is_learnt_comes_back(both, pairs):
    state = both.state()
    again = made(Posterior(folds=2))
    again.restore(state)
    assert again.combination == both.combination
    assert again.align(pairs) == both.align(pairs)
    old = {key: value for key, value in state.items() if "." in key}
    again.restore(old)
    assert again.combination == Combination()
    again.restore({**state, "together": np.array([0.4, 0.3, 0.2, 0.6])})  # of a model from before `smaller`
    assert again.combination == Combination(0.4, 0.3, 0.2, 0.6, smaller=0.0)
    for bad in ([1.0, 2.0], [1.0, 1.0, math.nan, 0.5], [1.0, 1.0, 0.0, 1.5]):
        with pytest.raises(ConfigError, match="two weights, a bias and a threshold"):
            again.restore({**state, "together": np.array(bad)})


def test_ctrl_c_among_the_folds_keeps_the_directions(monkeypatch):
    aligner, calls = made(Posterior(folds=2)), []
    fit = Crf.fit

    def impatient(self, *rest):
        calls.append(self)
        report = fit(self, *rest)
        return replace(report, interrupted=True) if len(calls) == 4 else report

    monkeypatch.setattr(Crf, "fit", impatient)
    report = aligner.fit(examples(1, 40))
    assert len(calls) == 4 and report.interrupted and not report.converged
    assert len(aligner.forward.names) and len(aligner.backward.names) and aligner.combination == Combination()
    report = aligner.fit(examples(1, 40))  # going on
    assert not report.interrupted and aligner.combination != Combination()


@pytest.mark.parametrize(
    "settings",
    [{"decide": "best"}, {"threshold": 1.0}, {"threshold": 0}, {"folds": 1}, {"folds": -2}, {"folds": 2.5}],
)
def test_settings_that_mean_nothing(settings):
    with pytest.raises(ConfigError, match=f"symmetrize.{next(iter(settings))}="):
        Posterior(**settings)


@pytest.mark.parametrize(
    "name, message",
    [
        ("posterior:1.5", "threshold=1.5: "),
        ("posterior:0", "threshold=0.0: "),
        ("posterior:nan", "threshold=nan"),
        ("posterior:", "'' is not a number"),
        ("posterior:high", "'high' is not a number, as in posterior:0.7"),
        ("union:0.5", "union has no threshold"),
        ("best:0.5", "there is no symmetrizer"),
    ],
)
def test_names_with_thresholds_that_mean_nothing(name, message):
    with pytest.raises(ConfigError, match=re.escape(message)):
        symmetrizer(name)


def test_others_than_chains_cannot():
    with pytest.raises(ConfigError, match="Hmm does not give: choose one of intersection"):
        Bidirectional(Hmm(), Hmm(), Posterior())
    aligner = Bidirectional(Hmm(), Hmm())
    aligner.fit(examples(1, 5))
    with pytest.raises(ConfigError, match="Hmm does not give"):
        aligner.align(random_pairs(1, 2), "posterior")
