"""Tree edit distance against every mapping of small trees, and the aligner on top of it."""

from __future__ import annotations

import itertools

import msr_dev
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jacana_torch import resources
from jacana_torch.errors import ConfigError, JacanaError
from jacana_torch.evaluate import score
from jacana_torch.systems.ted import ted as module
from jacana_torch.systems.ted.edit_problem import UNIT, Problem, Side
from jacana_torch.systems.ted.ted import Ted
from jacana_torch.systems.ted.tree_distance import mapping, ordered
from jacana_torch.types import Sentence, SentencePair

# An oracle that knows of trees only who is above whom and who is left of whom.


def above(heads: list[int], a: int) -> list[int]:
    """A node and its ancestors, bottom up."""
    out = [a]
    while heads[out[-1]] >= 0:
        out.append(heads[out[-1]])
    return out


def relation(heads: list[int], a: int, b: int) -> str:
    up_a, up_b = above(heads, a), above(heads, b)
    if a in up_b or b in up_a:
        return "above" if a in up_b else "below"
    common = next((node for node in up_a if node in up_b), None)
    below = [up[up.index(common) - 1 if common is not None else -1] for up in (up_a, up_b)]
    return "left" if below[0] < below[1] else "right"


def cost_of(mapped, put, m, n, delete, insert) -> int:
    return sum(put[j][i] for i, j in mapped) + delete * (m - len(mapped)) + insert * (n - len(mapped))


def cheapest(one: list[int], other: list[int], put, delete: int, insert: int) -> int:
    """The cost of the cheapest mapping, by enumeration."""
    m, n = len(one), len(other)
    best = delete * m + insert * n
    for k in range(1, min(m, n) + 1):
        for nodes in itertools.combinations(range(m), k):
            for images in itertools.permutations(range(n), k):
                mapped = list(zip(nodes, images, strict=True))
                if is_mapping(one, other, mapped):
                    best = min(best, cost_of(mapped, put, m, n, delete, insert))
    return best


def is_mapping(one, other, mapped) -> bool:
    return len({i for i, _ in mapped}) == len({j for _, j in mapped}) == len(mapped) and all(
        relation(one, a, c) == relation(other, b, d) for (a, b), (c, d) in itertools.combinations(mapped, 2)
    )


@st.composite
def tree(draw, most: int = 5) -> list[int]:
    """Heads of one to `most` nodes in any order, projective or not, with one root or several."""
    n = draw(st.integers(1, most))
    order = draw(st.permutations(range(n)))
    heads = [-1] * n
    for k, node in enumerate(order):
        heads[node] = draw(st.sampled_from([-1, *order[:k], *order[:k], *order[:k]]))
    return heads


def run(pairs, puts, delete, insert) -> list[list[tuple[int, int]]]:
    """Mapped nodes of each pair, as positions in their sentences."""
    sides = []
    for side in zip(*pairs, strict=True):
        start = np.cumsum([0, *map(len, side)])
        heads = [h + s if h >= 0 else -1 for heads, s in zip(side, start, strict=False) for h in heads]
        sides.append((ordered(np.array(heads), np.array([len(heads) for heads in side])), start))
    (one, start), (other, start_other) = sides
    cells = []
    for p, put in enumerate(puts):
        left = one.token[start[p] : start[p + 1]] - start[p]
        right = other.token[start_other[p] : start_other[p + 1]] - start_other[p]
        cells += [put[j][i] for j in right for i in left]
    nodes, others = mapping(one, other, np.array(cells, dtype=np.int64), delete, insert)
    out = [[] for _ in pairs]
    for i, j in zip(one.token[nodes].tolist(), other.token[others].tolist(), strict=True):
        p = int(np.searchsorted(start, i, side="right")) - 1
        out[p].append((i - int(start[p]), j - int(start_other[p])))
    return out


@given(st.data())
def test_the_mapping_is_the_cheapest_of_all(data):
    pairs = data.draw(st.lists(st.tuples(tree(), tree(4)), min_size=1, max_size=4))
    delete, insert = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 4))
    puts = [[[data.draw(st.integers(-1, 6)) for _ in a] for _ in b] for a, b in pairs]
    for (one, other), put, mapped in zip(pairs, puts, run(pairs, puts, delete, insert), strict=True):
        assert is_mapping(one, other, mapped)
        found = cost_of(mapped, put, len(one), len(other), delete, insert)
        assert found == cheapest(one, other, put, delete, insert)


@pytest.mark.slow
@given(st.lists(st.tuples(tree(40), tree(25)), min_size=1, max_size=6), st.integers(0, 2**32))
def test_large_trees_are_mapped_alike_alone_in_batches_and_flipped(pairs, seed):
    random = np.random.default_rng(seed)
    puts = [random.integers(-500, 4000, (len(b), len(a))).tolist() for a, b in pairs]
    together = run(pairs, puts, 1000, 1100)
    for (one, other), put, mapped in zip(pairs, puts, together, strict=True):
        assert is_mapping(one, other, mapped)
        assert sorted(run([(one, other)], [put], 1000, 1100)[0]) == sorted(mapped)
        (back,) = run([(other, one)], [np.array(put).T.tolist()], 1100, 1000)
        costs = [
            cost_of(mapped, put, len(one), len(other), 1000, 1100),
            cost_of([(i, j) for j, i in back], put, len(one), len(other), 1000, 1100),
        ]
        assert costs[0] == costs[1]


@given(tree(30))
def test_trees_are_in_postorder_and_ranges_hold_their_subtrees(heads):
    trees = ordered(np.array(heads), np.array([len(heads)]))
    place = {int(token): p for p, token in enumerate(trees.token)}
    assert sorted(place) == list(range(len(heads)))
    for token, p in place.items():
        below = sorted(place[node] for node in range(len(heads)) if token in above(heads, node))
        assert below == list(range(int(trees.low[p]), p + 1))
        begin, width = int(trees.begin[trees.range[p]]), int(trees.width[trees.range[p]])
        assert begin == trees.low[p] and p < begin + width
    for r in range(len(trees.begin)):  # a table waits for those of lower levels alone
        inside = {int(x) for x in trees.range[trees.begin[r] : trees.begin[r] + trees.width[r]]} - {r}
        assert all(trees.level[x] < trees.level[r] for x in inside)


def sentence(text: str, heads: list[int]) -> Sentence:
    tokens = text.split()
    tags = ["VBD" if head < 0 else "NN" for head in heads]
    return Sentence(tuple(tokens), {"head": heads, "lemma": [t.lower() for t in tokens], "pos": tags})


OAKS = SentencePair(
    sentence("the gardener planted two oaks yesterday", [1, 2, -1, 4, 2, 2]),
    sentence("yesterday the gardener planted oaks", [3, 2, 3, -1, 3]),
)


def test_moved_words_are_found_in_a_second_round():
    once, again = (Ted(wordnet=False, rounds=k).align([OAKS])[0] for k in (1, 5))
    assert once.links == [(0, 1), (1, 2), (2, 3), (4, 4)]
    assert again.links == [*once.links, (5, 0)]
    assert once.score == again.score == -3 / 11  # two deleted, one inserted


def test_renamed_nodes_have_a_cost_and_no_link():
    one = SentencePair(sentence("dogs bark", [1, -1]), sentence("cats bark", [1, -1]))
    for rename, cost in ((1.0, 1.0), (0.5, 0.5), (3.0, 2.0)):
        (found,) = Ted(rename=rename, wordnet=False).align([one])
        assert found.links == [(1, 1)] and found.score == -cost / 4


def test_empty_sentences():
    empty = Sentence((), {"head": (), "lemma": (), "pos": ()})
    pairs = [SentencePair(OAKS.source, empty), SentencePair(empty, OAKS.target), SentencePair(empty, empty), OAKS]
    found = Ted(delete=2.0, wordnet=False).align(pairs)
    assert [a.links for a in found[:3]] == [[], [], []] and len(found[3].links) == 5
    assert [a.score for a in found[:3]] == [-2.0, -1.0, 0.0]


def test_results_do_not_depend_on_batches(monkeypatch):
    pairs = [OAKS, OAKS.flip(), SentencePair(OAKS.source, OAKS.source)] * 7
    whole = Ted(wordnet=False).align(pairs)
    monkeypatch.setattr(module, "AT_ONCE", 500)
    assert Ted(wordnet=False).align(pairs) == whole
    monkeypatch.setattr(module, "CELLS_AT_ONCE", 70)
    assert Ted(wordnet=False).align(pairs) == whole


@pytest.mark.parametrize("n", [2, 10, 80])
def test_preferences_among_edits_of_one_cost(n):
    """More equal words come first, then words at similar places; all together weigh less than any cost."""
    words = sentence(" ".join(["a"] * n), [-1] * n)
    costs = Problem([SentencePair(words, words)], wordnet=False).costs(1.0).reshape(n, n)
    assert (costs < 0).all() and n * -costs.min() < UNIT / 100
    assert n * costs.max() < (n - 1) * costs.min()  # n anywhere, n - 1 at the best places
    assert (np.diff(costs[0]) >= 0).all() and costs[0, 0] < costs[0, min(2, n - 1)]


@pytest.mark.skipif(not resources.available("wordnet"), reason="WordNet is not on this machine")
def test_wordnet_relates_words():
    pair = SentencePair(sentence("lawyers met", [1, -1]), sentence("attorneys met", [1, -1]))
    lemmas = [{"lemma": ("lawyer", "meet")}, {"lemma": ("attorney", "meet")}]
    pair = SentencePair(pair.source.with_layers(**lemmas[0]), pair.target.with_layers(**lemmas[1]))
    assert Ted(wordnet=False).align([pair])[0].links == [(1, 1)]
    assert Ted().align([pair])[0].links == [(0, 0), (1, 1)]
    for words in ("attorney lawyer", "lawyer attorney"):  # the equal word, although the other is as near
        both = SentencePair(sentence("lawyer", [-1]), sentence(words, [-1, -1]))
        assert Ted().align([both])[0].links == [(0, words.split().index("lawyer"))]
    derived = SentencePair(sentence("arrival bread", [-1, 0]), sentence("bread arrive", [1, -1]))
    derived = SentencePair(derived.source.with_layers(pos=("NN", "NN")), derived.target)
    assert Ted().align([derived])[0].links == [(0, 1), (1, 0)]


@pytest.mark.parametrize("heads", [[1, 2, 0], [1, 0, -1], [5, -1, 1], [-2, -1, 1]])
def test_invalid_trees_are_errors(heads):
    bad = SentencePair(OAKS.source, sentence("a b c", heads))
    with pytest.raises(JacanaError, match="a b c"):
        Ted(wordnet=False).align([OAKS, bad])


def test_a_token_that_is_its_own_head_is_a_root():
    loop = SentencePair(sentence("dogs bark", [1, 1]), sentence("cats bark", [1, -1]))
    assert Ted(wordnet=False).align([loop])[0].links == [(1, 1)]


def test_invalid_input_is_an_error():
    for kw in ({"rename": 0.0}, {"delete": -1.0}, {"rename": 1001.0}, {"insert": float("nan")}, {"rounds": 0}):
        with pytest.raises(ConfigError, match=next(iter(kw))):
            Ted(**kw)
    long = sentence(" ".join(["a"] * 5000), [-1] * 5000)
    with pytest.raises(ConfigError, match="5000 x 5000"):
        Ted(wordnet=False).align([SentencePair(long, long)])


def test_long_chains_need_no_recursion():
    chain = sentence(" ".join(f"w{k}" for k in range(1500)), [k - 1 for k in range(1500)])
    (found,) = Ted(wordnet=False).align([SentencePair(chain, chain)])
    assert found.links == [(k, k) for k in range(1500)]


@pytest.mark.skipif(not resources.available("wordnet"), reason="WordNet is not on this machine")
@pytest.mark.slow
def test_msr_dev(data_root):
    dev = msr_dev.examples(data_root)
    found = score([e.gold for e in dev], Ted().align([e.pair for e in dev]))
    assert found.f1 >= 0.78


@given(st.lists(tree(12), min_size=1, max_size=4), st.data())
def test_removed_tokens_pass_their_children_up(trees, data):
    size = np.array([len(heads) for heads in trees])
    first = np.cumsum(size) - size
    flat = [h + s if h >= 0 else -1 for heads, s in zip(trees, first.tolist(), strict=True) for h in heads]
    taken = np.array(data.draw(st.lists(st.booleans(), min_size=len(flat), max_size=len(flat))))
    pairs = np.array(data.draw(st.lists(st.booleans(), min_size=len(trees), max_size=len(trees))))
    left = Side(np.array(flat), np.arange(len(flat)), size).without(taken, pairs)
    kept = [t for p, s in enumerate(first.tolist()) for t in range(s, s + size[p]) if pairs[p] and not taken[t]]
    assert left.token.tolist() == kept and left.size.sum() == len(kept) and len(left.size) == pairs.sum()
    for token, head in zip(kept, left.head.tolist(), strict=True):
        living = [node for node in above(flat, token)[1:] if not taken[node]]
        assert (kept[head] if head >= 0 else -1) == (living[0] if living else -1)
