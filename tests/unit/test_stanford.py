"""The Stanford aligner: search against every injective map, features against plain loops, training."""

from __future__ import annotations

import itertools

import msr_dev
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from templates import corpus

from jacana_torch import resources
from jacana_torch.aligners.base import Step
from jacana_torch.errors import ConfigError, JacanaError, MissingLayer, ModelError
from jacana_torch.evaluate import score
from jacana_torch.features.grid import Grid
from jacana_torch.systems.stanford import stanford as module
from jacana_torch.systems.stanford.injective_search import Model, best_tree, search
from jacana_torch.systems.stanford.link_features import JOINT, PATHS, Extractor, Lexicon, competitors, paths, tree
from jacana_torch.systems.stanford.stanford import Stanford, injective
from jacana_torch.types import Alignment, Example, Sentence, SentencePair

EXAMPLES = corpus(40)


def plain(**settings) -> Stanford:
    """Without resources."""
    return Stanford(wordnet=False, vectors=None, **settings)


@st.composite
def heads(draw, most: int = 5) -> list[int]:
    order = draw(st.permutations(range(draw(st.integers(1, most)))))
    out = [-1] * len(order)
    for k, node in enumerate(order):
        out[node] = draw(st.sampled_from([-1, *order[:k], *order[:k], *order[:k]]))
    return out


def sentence(heads: list[int], words: str | None = None) -> Sentence:
    tokens = words.split() if words else [f"w{k}" for k in range(len(heads))]
    layers = {"head": heads, "deprel": ["dep"] * len(heads), "pos": ["NN"] * len(heads), "lemma": tokens}
    return Sentence(tuple(tokens), layers)


def model_of(heads: list[int], m: int, seed: int) -> Model:
    """Few source tokens that many target tokens choose."""
    random = np.random.default_rng(seed)
    target = tree(sentence(heads))
    unary = random.normal(size=(len(heads), m + 1)) + np.append(random.normal(2, 2, m), 0.0)
    joint = random.normal(scale=random.choice([0.2, 1.0, 3.0]), size=(len(target.child), m + 1, m + 1))
    return Model(unary, joint, target.head[target.child], target.child, target.levels)


def every_map(n: int, m: int, twice: bool = False) -> list[tuple[int, ...]]:
    every = itertools.product(range(m + 1), repeat=n)
    return [c for c in every if twice or all(c.count(i) < 2 for i in range(m))]


def value_of(model: Model, choice: tuple[int, ...]) -> float:
    edges = zip(model.joint, model.head, model.child, strict=True)
    joints = sum(table[choice[head], choice[child]] for table, head, child in edges)
    return sum(row[i] for row, i in zip(model.unary, choice, strict=True)) + joints


@settings(max_examples=150)
@given(heads(), st.integers(0, 4), st.integers(0, 2**32))
def test_search_finds_the_best_map(heads, m, seed):
    model = model_of(heads, m, seed)
    found = search(model)
    best = max(value_of(model, choice) for choice in every_map(len(heads), m))
    assert found.proved
    assert value_of(model, tuple(found.choice)) == pytest.approx(found.score) == pytest.approx(best)
    taken = [i for i in found.choice.tolist() if i < m]
    assert len(taken) == len(set(taken))


@given(heads(), st.integers(0, 4), st.integers(0, 2**32))
def test_max_product_finds_the_best_map_that_need_not_be_injective(heads, m, seed):
    model = model_of(heads, m, seed)
    choice, value = best_tree(model, model.unary)
    best = max(value_of(model, choice) for choice in every_map(len(heads), m, twice=True))
    assert value == pytest.approx(value_of(model, tuple(choice))) == pytest.approx(best)


@given(heads(9))
def test_paths_against_ancestors(heads):
    found = paths(tree(sentence(heads)))
    m = len(heads)

    def above(token: int) -> list[int]:
        return [] if heads[token] < 0 else [heads[token], *above(heads[token])]

    def name(a: int, b: int) -> str:
        if m in (a, b):
            return {(True, True): "neither", (True, False): "child_alone"}.get((a == m, b == m), "head_alone")
        for one, other, names in ((b, a, ("child", "grandchild", "descendant")),
                                  (a, b, ("parent", "grandparent", "ancestor"))):  # fmt: skip
            if other in above(one):
                return names[min(above(one).index(other), 2)]
        if heads[a] == heads[b] >= 0:
            return "sibling"
        return "near" if abs(a - b) <= 3 else "else"

    assert [[PATHS[k] for k in row] for row in found] == [[name(a, b) for b in range(m + 1)] for a in range(m + 1)]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 4)), max_size=4), st.integers(0, 2**32))
def test_competitors_are_at_least_as_similar(sizes, seed):
    pairs = [SentencePair(Sentence(("a",) * m), Sentence(("b",) * n)) for m, n in sizes]
    grid = Grid(pairs)
    alike = np.random.default_rng(seed).choice([0.0, 0.5, 1.0], grid.n_cells)
    nearer, alone = competitors(grid, alike)
    cell = 0
    for m, n in sizes:
        table = alike[cell : cell + m * n].reshape(m, n)
        for i, j in itertools.product(range(m), range(n)):
            others = [k for k in range(m) if k != i and table[k, j] >= table[i, j]]
            away = [abs((2 * k + 1) * n - (2 * j + 1) * m) for k in range(m)]
            assert nearer[cell] == any(away[k] < away[i] for k in others)
            assert alone[cell] == (not others)
            cell += 1


@pytest.mark.parametrize("k", range(0, len(EXAMPLES), 8))
def test_the_score_of_a_map_is_that_of_its_features(k):
    aligner, random = plain(), np.random.default_rng(k)
    (problem,) = aligner.prepared([EXAMPLES[k].pair])
    n, m, _ = problem.cells.shape
    weights = random.normal(size=len(aligner.names))
    model = aligner._model(problem, weights)
    for _ in range(20):
        choice = random.integers(0, m + 1, n)
        assert model.score(choice) == pytest.approx(weights @ aligner.features(problem, choice), abs=1e-4)


def test_rounding_does_not_change_scores():
    aligner = plain()
    (problem,) = aligner.prepared([EXAMPLES[0].pair])
    weights = np.random.default_rng(0).normal(size=len(aligner.names))[: -len(JOINT)]
    scores = aligner._extract.scores(problem, weights)
    assert (aligner._extract.scores(problem, weights * (1 + 1e-14)) == scores).all()


def test_edge_features_depend_on_relation_and_class():
    source = sentence([1, -1, 1], "owls eat eels").with_layers(deprel=("nsubj", "root", "dobj"))
    target = sentence([1, -1, 1, 1], "owls eat the .").with_layers(deprel=("nsubj", "root", "det", "punct"))
    aligner = plain()
    (problem,) = aligner.prepared([SentencePair(source, target)])
    edges = np.zeros(len(JOINT))
    for name in ("content.child_same_relation", "function.child", "punct.head_alone"):
        edges[JOINT.index(name)] += 1
    found = aligner.features(problem, np.array([0, 1, 2, 3]))
    assert found[-len(JOINT) :].tolist() == edges.tolist()
    assert found[aligner.names.index("identical")] == 2 and found[aligner.names.index("content.link")] == 2


def test_an_injective_map_keeps_as_many_gold_links_as_possible():
    extract = Extractor(Lexicon(wordnet=False, vectors=None))
    rows = "b a c", "a b b d"
    (problem,) = extract([SentencePair(*(sentence([-1] * len(r.split()), r) for r in rows))])
    links = {(0, 1), (0, 2), (1, 0), (1, 1), (2, 0)}  # b-b twice, a-a, a-b, c-a
    choice = injective(Alignment(3, 4, frozenset(links)), problem, extract.names.index("identical"))
    assert choice.tolist() == [2, 1, 0, 3]  # three of five, not only the two identical ones
    identical = injective(Alignment(3, 4, frozenset({(0, 0), (1, 0)})), problem, extract.names.index("identical"))
    assert identical.tolist() == [1, 3, 3, 3]  # a-a, not b-a
    fewer = injective(Alignment(3, 4, frozenset({(0, 1), (2, 1)})), problem, extract.names.index("identical"))
    assert fewer.tolist() == [3, 0, 3, 3]


def test_training_and_resuming(tmp_path):
    steps: list[Step] = []
    aligner = plain(epochs=6)
    report = aligner.fit(EXAMPLES[:30], watch=steps.append)
    assert [step.iteration for step in steps] == [1, 2, 3, 4, 5, 6] and report.iterations == {"aligned": 6}
    assert report.total_links == sum(len(e.gold.sure) for e in EXAMPLES[:30]) and report.dropped_links == 0
    held_out = EXAMPLES[30:]
    pairs = [e.pair for e in held_out]
    assert score([e.gold for e in held_out], aligner.align(pairs)).f1 > 0.85
    other = plain()
    other.restore(aligner.state())
    assert other.align(pairs) == aligner.align(pairs)
    before = aligner.weights.copy()
    aligner.fit(EXAMPLES[:30])
    assert (aligner.weights != before).any()


def test_an_interruption_keeps_the_weights():
    def stop(step: Step) -> None:
        if step.iteration == stop.at:
            raise KeyboardInterrupt

    for stop.at in (1, 3):
        aligner = plain()
        report = aligner.fit(EXAMPLES, watch=stop)
        assert report.interrupted and report.iterations == {"aligned": stop.at} and aligner.weights is not None


def test_results_do_not_depend_on_batches(monkeypatch):
    aligner = plain(epochs=2)
    aligner.fit(EXAMPLES)
    pairs = [e.pair for e in EXAMPLES]
    whole = aligner.align(pairs)
    monkeypatch.setattr(module, "CELLS_AT_ONCE", 100)
    parts = aligner.align(pairs)
    assert parts == whole and [a.score for a in parts] == [a.score for a in whole]


def test_invalid_input_is_an_error():
    for kw in ({"epochs": 0}, {"seed": -1}, {"vectors": ""}):
        with pytest.raises(ConfigError, match=next(iter(kw))):
            Stanford(**kw)
    pair = EXAMPLES[0].pair
    with pytest.raises(ModelError, match="not been trained"):
        plain().align([pair])
    with pytest.raises(ConfigError, match="nothing to train on"):
        plain().fit([Example(pair)])
    with pytest.raises(MissingLayer, match="head"):
        plain().align([SentencePair(*(Sentence(s.tokens, {"pos": s.tokens, "lemma": s.tokens, "deprel": s.tokens})
                                      for s in (pair.source, pair.target)))])  # fmt: skip
    long = sentence([-1] * 400)
    with pytest.raises(ConfigError, match="400 x 400"):
        plain().align([SentencePair(long, long)])
    for bad, told in (([1, 0, -1], "circle"), ([3, -1, 1], "from 0"), ([-2, -1, 1], "from 0")):
        with pytest.raises(JacanaError, match=told):
            plain().align([SentencePair(sentence(bad, "an owl eats"), pair.target)])


def test_weights_of_other_settings_are_errors():
    aligner = plain(epochs=1)
    aligner.fit(EXAMPLES[:3])
    with pytest.raises(ConfigError, match="others"):
        Stanford(wordnet=True, vectors=None).restore(aligner.state())
    state = aligner.state()
    with pytest.raises(ConfigError, match="not finite"):
        aligner.restore({**state, "weights": np.full(len(state["names"]), np.nan)})


@pytest.mark.skipif(
    not (resources.available("wordnet") and resources.available("glove-840b")), reason="WordNet and vectors needed"
)
@pytest.mark.slow
def test_msr_dev(data_root):
    dev = msr_dev.examples(data_root)
    aligner = Stanford(epochs=3)
    aligner.fit(dev[::2])
    held_out = dev[1::2]
    assert score([e.gold for e in held_out], aligner.align([e.pair for e in held_out])).f1 >= 0.86
