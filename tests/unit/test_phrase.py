"""The phrase aligner: gold segments and costs against loops over links, and what it learns."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from templates import corpus

from jacana_torch import resources
from jacana_torch.aligners.bidirectional import Bidirectional
from jacana_torch.aligners.crf import Crf
from jacana_torch.errors import ConfigError, MissingLayer, ModelError
from jacana_torch.evaluate import score
from jacana_torch.features.families.distortion import Distortion
from jacana_torch.features.families.pos import Pos
from jacana_torch.features.families.position import Position
from jacana_torch.features.families.string import String
from jacana_torch.features.families.wordnet import WordNet
from jacana_torch.features.grid import Grid
from jacana_torch.systems.phrase.phrase_crf import PhraseCrf, span_costs
from jacana_torch.systems.phrase.segment_features import segment_blocks
from jacana_torch.systems.phrase.segments import Segments, gold_segments, links_of
from jacana_torch.train.loop import predictions
from jacana_torch.types import Alignment, Example, Sentence, SentencePair
from jacana_torch.util.geometry import Geometry

quick = settings(max_examples=60, deadline=None)


@st.composite
def alignments(draw):
    m, n = draw(st.integers(1, 7)), draw(st.integers(1, 7))
    cells = list(itertools.product(range(m), range(n)))
    return Alignment(m, n, frozenset(draw(st.lists(st.sampled_from(cells), max_size=14))))


def pair(source: str, target: str) -> SentencePair:
    return SentencePair(Sentence(tuple(source.split())), Sentence(tuple(target.split())))


def made(**settings_of) -> PhraseCrf:
    families = {"string": String(), "position": Position(), "distortion": Distortion()}
    return PhraseCrf(families, **{"tolerance": 1e-4, "max_iterations": 60, **settings_of})


# Gold


@quick
@given(alignments(), st.integers(1, 4), st.sampled_from(["monotone", "diagonal", "first", "last"]))
def test_gold_segments_cover_the_source_and_hold_only_gold_links(gold, longest, policy):
    segments, spans, dropped = gold_segments(gold, longest, policy)
    covered = [m for first, size, _, _ in segments.tolist() for m in range(first, first + size)]
    assert covered == list(range(gold.n_source))
    assert (segments[:, 1:] >= [1, 0, 1]).all() and (segments[:, [1, 3]] <= longest).all()
    held = {
        (i, state - 1 + k)
        for first, size, state, span in segments.tolist()
        for i in range(first, first + size)
        for k in range(span)
        if state
    }
    assert held <= gold.sure
    assert dropped == len(gold.sure) - len(held)
    assert held == {(i, j) for i, (first, past) in enumerate(spans.tolist()) for j in range(first, past)}
    for i in range(gold.n_source):  # a token keeps its longest run of targets
        targets = {j for a, j in gold.sure if a == i}
        runs = [k for k in range(longest + 1) for j in range(gold.n_target) if set(range(j, j + k)) <= targets]
        assert sum(a == i for a, _ in held) == max(runs, default=0)
    for before, after in itertools.pairwise(segments.tolist()):  # adjacent segments are merged
        assert not (before[2] and before[2:] == after[2:] and before[1] < longest)


@quick
@given(alignments())
def test_links_of_segments_are_all_pairs_of_their_words(gold):
    segments = gold_segments(gold, 3).path
    expected = [
        (number, i, j)
        for number, (first, size, state, span) in enumerate(segments.tolist())
        for i in range(first, first + size)
        for j in range(state - 1, state - 1 + span)
        if state
    ]
    assert list(zip(*(x.tolist() for x in links_of(segments)), strict=True)) == expected


def test_gold_blocks_beyond_the_longest_are_cut():
    block = frozenset(itertools.product(range(4), range(4)))
    segments, _, dropped = gold_segments(Alignment(5, 4, block), 3)
    assert segments.tolist() == [[0, 3, 1, 3], [3, 1, 1, 3], [4, 1, 0, 1]]
    assert dropped == 4


@settings(max_examples=20, deadline=None)
@given(st.lists(alignments(), min_size=1, max_size=3), st.integers(1, 3))
def test_costs_are_the_share_of_links_that_differ(golds, longest):
    sizes = np.array([(g.n_source, g.n_target) for g in golds])
    segments = Segments(Geometry(*sizes.T), longest)
    gold = [gold_segments(g, longest) for g in golds]
    costs = span_costs(segments, gold, cost_null=0.5, cost_link=2.0)
    right = [[set(range(*span)) for span in g.spans.tolist()] for g in gold]
    tokens = [own for of_pair in right for own in of_pair]
    assert costs[: len(tokens)].tolist() == [2.0 if own else 0.0 for own in tokens]
    sized = costs[len(tokens) :].reshape(longest, longest, -1)
    cells = [(p, i, j) for p, (m, n) in enumerate(sizes.tolist()) for i in range(m) for j in range(n)]
    for (a, b), (c, (p, i, j)) in itertools.product(np.ndindex(longest, longest), enumerate(cells)):
        if i + a < sizes[p][0] and j + b < sizes[p][1]:
            span = set(range(j, j + b + 1))
            paid = [(2.0 if own else 0.5) * len(span ^ own) / len(span | own) for own in right[p][i : i + a + 1]]
            assert sized[a, b, c] == pytest.approx(sum(paid))
    entries = segments.entries([g.path for g in gold])[0]
    assert not costs[entries].any()  # gold costs nothing


# The aligner


def blocks_corpus(n: int, seed: int) -> list[Example]:
    """Pairs with equal words, and with compounds that are one word on a side and two on the other."""
    rng = np.random.default_rng(seed)
    plain = "dog house river stone lamp garden window bridge".split()
    ones = "bookstore sunlight footpath rainwater".split()
    twos = "book store,sun light,foot path,rain water".split(",")
    out = []
    for _ in range(n):
        source, target, links = [], [], set()
        for _ in range(int(rng.integers(2, 6))):
            kind, k = rng.integers(4), int(rng.integers(4))
            a, b = [[plain[k + 4]], [plain[k + 4]]] if kind < 2 else [[ones[k]], twos[k].split()]
            a, b = (b, a) if kind == 3 else (a, b)
            links |= set(itertools.product(range(len(source), len(source) + len(a)),
                                           range(len(target), len(target) + len(b))))  # fmt: skip
            source += a
            target += b
        gold = Alignment(len(source), len(target), frozenset(links))
        out.append(Example(SentencePair(Sentence(tuple(source)), Sentence(tuple(target))), gold))
    return out


def test_learns_one_to_many_and_many_to_one():
    aligner = made()
    report = aligner.fit(blocks_corpus(60, 1))
    assert report.converged and not report.dropped_links
    held_out = blocks_corpus(30, 2)
    found = aligner.align([e.pair for e in held_out])
    assert score([e.gold for e in held_out], found).f1 > 0.97
    assert any(len({i for i, _ in a.sure}) < len(a.sure) for a in found), "one to many"
    assert any(len({j for _, j in a.sure}) < len(a.sure) for a in found), "many to one"


def test_training_continues_and_align_agrees_with_decode():
    examples = [Example(e.pair, e.gold) for e in corpus(20)]
    aligner = made(max_iterations=200, tolerance=1e-6)
    first = aligner.fit(examples)
    again = made(tolerance=1e-6)
    again.restore(aligner.state())
    assert again.fit(examples).iterations["forward"] <= 3 < first.iterations["forward"]
    pairs = [e.pair for e in examples] + [pair("", "a b"), pair("a", "")]
    prepared = aligner.prepared(pairs)
    for a, b, alone in zip(
        aligner.align(pairs), aligner.decode(prepared), aligner.align_links(pairs), strict=True
    ):
        assert a == b == alone and not alone.confidence
        assert a.confidence == pytest.approx(dict(b.confidence), abs=1e-9)
        assert set(a.confidence) == a.sure
        assert (a.score is None) == (b.score is None) == (not a.n_source or not a.n_target)
        if a.score is not None:
            assert a.score == pytest.approx(b.score, abs=1e-9) and a.score <= 1e-9


def test_with_phrases_of_one_word_it_equals_the_token_aligner():
    examples = corpus(20)
    families = {"string": String(), "distortion": Distortion()}
    settings_of = {"l2": 1.0, "tolerance": 1e-9, "max_iterations": 400}
    one, token = PhraseCrf(families, longest=1, **settings_of), Crf(families, **settings_of)
    losses = [aligner.fit(examples).loss["forward"] for aligner in (one, token)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-7)
    pairs = [e.pair for e in corpus(20, seed=5)]
    for a, b in zip(one.align(pairs), token.align(pairs), strict=True):
        assert a == b
        assert dict(a.confidence) == pytest.approx(dict(b.confidence), abs=1e-3)
        assert a.score == pytest.approx(b.score, abs=1e-3)


def test_two_directions_are_symmetrized():
    aligner = Bidirectional(made(), made(), "intersection")
    examples = blocks_corpus(30, 1)
    aligner.fit(examples)
    found = predictions(aligner, examples)
    for both, f, b in zip(found["intersection"], found["forward"], found["backward"], strict=True):
        assert both.sure == f.sure & b.sure


def test_tag_features_need_a_family_that_reads_tags():
    aligner = PhraseCrf({"string": String(), "pos": Pos()}, max_iterations=5)
    assert aligner.requires == ("pos",)
    aligner.fit(corpus(5))
    assert any(name.startswith("phrase.source_tags.") for name in aligner.chain.names)
    assert aligner.align([corpus(1)[0].pair])
    with pytest.raises(MissingLayer, match="pos"):
        aligner.align([pair("a b", "a b")])


@pytest.mark.skipif(not resources.available("wordnet"), reason="needs the resource wordnet")
@pytest.mark.parametrize(("families", "found"), [((WordNet(),), 2), ((WordNet(tags=False),), 1), ((), None)])
def test_synset_features_need_a_family_that_reads_wordnet(families, found):
    tokens = {"source": "prices went up in the United States".split(), "target": "US costs rise".split()}
    lemmas = {"source": "price go up in the united states".split(), "target": "us cost rise".split()}
    tags = {"source": "NNS VBD RP IN DT NNP NNP".split(), "target": "NNP NNS VBP".split()}
    p = SentencePair(*(Sentence(tuple(tokens[k])).with_layers(lemma=lemmas[k], pos=tags[k]) for k in tokens))
    aligner = PhraseCrf({f.name: f for f in (String(), *families)}, max_iterations=2)
    grid, reads = Grid([p]), {*aligner.requires, *aligner.resources}
    segments = Segments(grid, 3)
    blocks = segment_blocks(grid, segments, senses="wordnet" in reads, lemmas="lemma" in reads)
    senses = [block.dense()[:, k] for block in blocks for k, n in enumerate(block.names) if n.endswith(".senses")]
    assert (None if not senses else int(np.sum(senses))) == found
    aligner.fit([Example(p, Alignment(7, 3, frozenset({(1, 2)})))])
    assert any(name.endswith(".senses") for name in aligner.chain.names) == (found is not None)


def test_segments_score_the_sum_over_tokens_of_means_over_spans():
    aligner, p = made(), pair("the old red barn", "old red barns there")
    rng = np.random.default_rng(1)
    names = aligner.chain.features([p]).names()
    aligner.restore({"names": names, "weights": rng.normal(size=len(names))})
    model = aligner.prepared([p]).model
    sized = model.scores(torch.as_tensor(aligner.chain.weights))[0][4:].view(3, 3, 4, 4).numpy()
    cells = sized[0, 0]
    for a, b, i, j in np.ndindex(sized.shape):
        if i + a < 4 and j + b < 4:
            assert sized[a, b, i, j] == pytest.approx(cells[i : i + a + 1, j : j + b + 1].mean(1).sum())


def test_weights_that_no_training_gives_are_an_error_and_no_nan():
    aligner, p = made(), pair("the old red barn", "old red barns there")
    names = aligner.chain.features([p]).names()
    aligner.restore({"names": names, "weights": np.full(len(names), 1e6)})
    with pytest.raises(ModelError, match="forward direction .* far larger"):
        aligner.align([p])


def test_continued_training_keeps_all_features():
    aligner = PhraseCrf({"string": String(), "pos": Pos()}, max_iterations=5)
    aligner.fit(corpus(5))
    before = set(aligner.chain.names)
    sides = (Sentence(("a", "b")).with_layers(pos=["X", "Y"]), Sentence(("b", "a")).with_layers(pos=["Y", "X"]))
    aligner.fit([Example(SentencePair(*sides), Alignment(2, 2, frozenset({(0, 1), (1, 0)})))])
    assert before < set(aligner.chain.names)


@pytest.mark.parametrize(("policy", "kept"), [("first", 0), ("last", 2)])
def test_policy_chooses_among_runs(policy, kept):
    both = Alignment(1, 3, frozenset({(0, 0), (0, 2)}))
    aligner = made(policy=policy)
    report = aligner.fit([Example(pair("a", "a b a"), both)] * 10)
    assert (report.dropped_links, report.total_links) == (10, 20)
    assert aligner.align([pair("a", "a b a")])[0].sure == {(0, kept)}


def test_several_policies_are_an_error():
    with pytest.raises(ConfigError, match=r"policy=\['first', 'last'\]: phrases are chosen by one policy"):
        made(policy=["first", "last"])


def test_watchers_get_a_model_at_every_step():
    examples, seen = blocks_corpus(20, 1), []

    def watch(step):
        found = step.aligner.align([e.pair for e in examples[:5]], confidence=False)
        seen.append((step.iteration, step.loss, score([e.gold for e in examples[:5]], found).f1))
        assert any(name.startswith("phrase.") for name in step.aligner.chain.names)

    report = made().fit(examples, watch=watch)
    iterations, losses, f1 = zip(*seen, strict=True)
    assert list(iterations) == list(range(1, report.iterations["forward"] + 1))
    assert list(losses) == sorted(losses, reverse=True) and f1[-1] > 0.9


def test_pairs_prepared_for_other_features_are_an_error():
    aligner = made()
    aligner.fit(blocks_corpus(5, 1))
    prepared = aligner.prepared([pair("a", "b")])
    aligner.restore({"names": [*aligner.chain.names, "more"], "weights": np.append(aligner.chain.weights, 0.0)})
    with pytest.raises(ValueError, match="another set of features"):
        aligner.decode(prepared)


def test_interruption_before_phrases_keeps_the_token_weights(monkeypatch):
    calls, trained = [], Crf.fit

    def stopped(chain, examples, *others):
        def watch(step):
            if step.iteration == 4:
                raise KeyboardInterrupt

        calls.append(chain)
        return trained(chain, examples, watch=watch)

    monkeypatch.setattr(Crf, "fit", stopped)
    aligner, examples = made(), blocks_corpus(20, 1)
    report = aligner.fit(examples)
    assert calls[0].tolerance > aligner.chain.tolerance, "a rough solution is enough"
    assert report.interrupted and not report.converged and np.any(aligner.state()["weights"])
    assert not any(name.startswith("phrase.") for name in aligner.state()["names"])
    assert score([e.gold for e in examples], aligner.align([e.pair for e in examples])).f1 > 0.3
    assert aligner.fit(examples).converged and len(calls) == 1, "continued training skips the token aligner"


def test_errors():
    for longest in (0, 9):
        with pytest.raises(ConfigError, match=f"longest={longest}"):
            made(longest=longest)
    with pytest.raises(ModelError, match="not been trained"):
        made().align([pair("a", "b")])
    with pytest.raises(ConfigError, match="nothing to train on"):
        made().fit([])
    family = Position()
    object.__setattr__(family, "name", "phrase")
    with pytest.raises(ConfigError, match="phrase"):
        PhraseCrf({"phrase": family})
