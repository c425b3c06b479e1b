"""Scores of whole models, in parts, against features written out and multiplied."""

from __future__ import annotations

import random
from functools import lru_cache

import numpy as np
import pytest
from feature_twin import parsed_pairs
from hypothesis import given, settings
from hypothesis import strategies as st

from jacana_torch import resources
from jacana_torch.aligners.crf import Crf
from jacana_torch.crf import scores as scoring
from jacana_torch.crf.layout import Layout
from jacana_torch.crf.scores import Scorer, node_scores
from jacana_torch.errors import ConfigError
from jacana_torch.features import grid as grids
from jacana_torch.features.api import Block, NodeBlocks
from jacana_torch.features.families.context import Context
from jacana_torch.features.families.dependency import Dependency
from jacana_torch.features.families.distortion import Distortion
from jacana_torch.features.families.distsim import DistSim
from jacana_torch.features.families.ner import Ner
from jacana_torch.features.families.pos import Pos
from jacana_torch.features.families.position import Position
from jacana_torch.features.families.string import String
from jacana_torch.features.families.wordnet import WordNet
from jacana_torch.features.featureset import FeatureSet, blocks_of
from jacana_torch.features.grid import Grid
from jacana_torch.features.words import WordPairs
from jacana_torch.types import Sentence, SentencePair
from jacana_torch.util.geometry import Geometry

PLAIN = (String(), Context(), Position(), Pos(), Dependency(relation_pairs=True), Ner(), DistSim(), Distortion())


class Model:
    """Families and random weights of nine in ten of the columns that some pairs have."""

    def __init__(self, families, seed: int) -> None:
        self.features = FeatureSet({f.name: f for f in families})
        names = self.features(parsed_pairs(seed, 8)).names()
        rng = np.random.default_rng(seed)
        self.names = [name for name in names if rng.random() < 0.9]
        self.weights = rng.normal(size=len(self.names))
        self.pairs: dict[str, list[float]] = {}
        self.weight = dict(zip(self.names, self.weights.tolist(), strict=True))

    def scorer(self) -> Scorer:
        return Scorer(self.features, self.names, self.weights)

    def product(self, family: str, blocks, rows: int) -> np.ndarray:
        total = np.zeros(rows)
        for block in blocks:
            total += block.dense() @ np.array([self.weight.get(f"{family}.{n}", 0.0) for n in block.names])
        return total

    def pair(self, x: SentencePair) -> list[float]:
        """Scores of one pair on its own: NULLs, then links."""
        if repr(x) not in self.pairs:
            self.pairs[repr(x)] = self._pair(x)
        return self.pairs[repr(x)]

    def _pair(self, x: SentencePair) -> list[float]:
        null, link = np.zeros(len(x.source)), np.zeros(len(x.source) * len(x.target))
        for family in self.features.node:
            blocks = blocks_of(family, Grid([x]))
            null += self.product(family.name, blocks.null, len(null))
            link += self.product(family.name, blocks.link, len(link))
        return [*null, *link]


def per_pair(pairs: list[SentencePair], flat: np.ndarray) -> list[list[float]]:
    """Flat scores of a batch, cut into those of each pair."""
    tokens, cells = sum(len(x.source) for x in pairs), sum(len(x.source) * len(x.target) for x in pairs)
    assert len(flat) == tokens + cells
    null, link, out = flat[:tokens].tolist(), flat[tokens:].tolist(), []
    for x in pairs:
        m, mn = len(x.source), len(x.source) * len(x.target)
        out.append(null[:m] + link[:mn])
        null, link = null[m:], link[mn:]
    return out


def assert_scores(got: list[list[float]], want: list[list[float]], tolerance: float = 1e-11) -> None:
    for one, other in zip(got, want, strict=True):
        assert one == pytest.approx(other, abs=tolerance, rel=0)


def mixed(seed: int, count: int = 9) -> list[SentencePair]:
    """Short and long ones in any order."""
    pairs = parsed_pairs(seed, count) + parsed_pairs(seed + 1, 3, longest=30)
    random.Random(seed).shuffle(pairs)
    return pairs


@pytest.fixture(params=[60, 40_000], ids="parts of {} places".format)
def part_places(request, monkeypatch):
    monkeypatch.setattr(grids, "PART_PLACES", request.param)


@lru_cache(maxsize=1)
def models() -> tuple[Model, Model]:
    return Model(PLAIN, 0), Model((Context(2), Pos(), String(0.5), DistSim(), Ner()), 10)


def test_scores_are_features_times_weights(part_places):
    """Cold and warm, on one batch after another, forward alone and both ways at once."""
    model, other = models()
    alone, forward, backward = model.scorer(), model.scorer(), other.scorer()
    batches = [mixed(0), mixed(5), mixed(0)]
    for pairs in batches:
        back = [x.flip() for x in pairs]
        want, behind = [model.pair(x) for x in pairs], [other.pair(x) for x in back]
        (flat,) = node_scores(Grid(pairs), alone)
        assert_scores(per_pair(pairs, flat), want)
        there, here = node_scores(Grid(pairs), forward, backward)
        assert_scores(per_pair(pairs, there), want)
        assert_scores(per_pair(back, here), behind)
        (flat,) = node_scores(Grid(back).flipped(), alone)
        assert_scores(per_pair(pairs, flat), want)


def test_training_sees_the_same_scores(part_places):
    """FeatureSet's blocks of a whole batch, whose words are numbered anew and whose parts are joined."""
    model, pairs = Model(PLAIN, 3), mixed(3)
    batch = model.features(pairs)
    scores = [
        sum(b.dense() @ np.array([model.weight.get(n, 0.0) for n in b.names]) for b in blocks)
        for blocks in (batch.null, batch.link)
    ]
    assert_scores(per_pair(pairs, np.concatenate(scores)), [model.pair(x) for x in pairs])


MODEL, SCORERS = Model(PLAIN, 4), []
POOL = mixed(21, 12)


@settings(max_examples=10)
@given(st.lists(st.sampled_from(range(len(POOL))), min_size=1, max_size=12), st.booleans())
def test_a_pair_scores_the_same_in_any_batch(chosen, warm):
    """In any order, also several times over, after other batches and before any."""
    if not SCORERS:
        SCORERS.extend([MODEL.scorer(), [per_pair([x], *node_scores(Grid([x]), MODEL.scorer()))[0] for x in POOL]])
    scorer = SCORERS[0] if warm else MODEL.scorer()
    pairs = [POOL[k] for k in chosen]
    got = per_pair(pairs, *node_scores(Grid(pairs), scorer))
    assert_scores(got, [SCORERS[1][k] for k in chosen], 1e-12)


def assert_both_ways(families, seed: int, tolerance: float) -> None:
    pairs = mixed(seed)
    back = [x.flip() for x in pairs]
    model, other = Model(families, seed), Model(families, seed + 1)
    forward, backward = model.scorer(), other.scorer()
    for _ in range(2):
        there, here = node_scores(Grid(pairs), forward, backward)
        assert_scores(per_pair(pairs, there), [model.pair(x) for x in pairs], tolerance)
        assert_scores(per_pair(back, here), [other.pair(x) for x in back], tolerance)


def test_with_vectors(tmp_path, monkeypatch, part_places):
    """Single precision in the vectors themselves: products in other batches differ in the last bits."""
    known = sorted({t for x in mixed(7) for t in (*x.source.tokens, *x.target.tokens)})[::2]
    numbers = np.random.default_rng(0)
    path = tmp_path / "some.txt"
    path.write_text("".join(f"{w} {' '.join(map(str, numbers.normal(size=5).round(3)))}\n" for w in known))
    monkeypatch.setenv("JACANA_HOME", str(tmp_path / "home"))
    assert_both_ways([String(), DistSim(own=False, vectors=(str(path),))], 7, 1e-5)


def test_with_wordnet(part_places):
    if not resources.available("wordnet"):
        pytest.skip("wordnet is not installed: jacana-torch resources install wordnet")
    assert_both_ways([String(), WordNet(), WordNet(tags=False, name="untagged")], 8, 1e-11)


@pytest.mark.parametrize("longest_kept", [128, 3])
def test_scores_of_edges(longest_kept, monkeypatch):
    monkeypatch.setattr(scoring, "LONGEST_KEPT", longest_kept)
    model = Model((String(), Distortion()), 5)
    scorer = model.scorer()
    for lengths in ([3, 1, 3, 7], [7, 2], [3]):
        layout = Layout(Geometry(np.array([2] * len(lengths)), np.array(lengths)))
        got = dict(zip(("edge", "start", "end"), scorer.edges(layout), strict=True))
        for space, flat in got.items():
            want = []
            for n in sorted(set(lengths)):
                block = getattr(Distortion(), space)(n)
                want += model.product("distortion", [block], (n + 1) ** 2 if space == "edge" else n + 1).tolist()
            assert flat.tolist() == pytest.approx(want, abs=1e-12)
    assert set(scorer._tables) == {n for n in (1, 2, 3, 7) if n <= longest_kept}


def test_nothing_has_no_scores():
    one, other = (model.scorer() for model in models())
    assert [x.tolist() for x in node_scores(Grid([]), one, other)] == [[], []]


def test_lists_of_columns_are_forgotten_and_looked_up_again(monkeypatch):
    monkeypatch.setattr(scoring, "MOST_NAMES", 1)
    model, pairs = Model(PLAIN, 6), mixed(6)
    scorer = model.scorer()
    for _ in range(2):
        assert_scores(per_pair(pairs, *node_scores(Grid(pairs), scorer)), [model.pair(x) for x in pairs])
        assert len(scorer._columns) <= 2


def test_word_blocks_are_computed_once_for_each_pair_of_words_of_a_batch(part_places):
    class Counted(String):
        def word_blocks(self, pairs: WordPairs) -> tuple[Block, ...]:
            words = pairs.lexicon.words
            asked.extend((words[a], words[b]) for a, b in zip(pairs.left, pairs.right, strict=True))
            return super().word_blocks(pairs)

    model, asked = Model((String(),), 2), []
    scorer = Scorer(FeatureSet({"string": Counted()}), model.names, model.weights)
    for pairs in (mixed(2), mixed(3), mixed(2)):
        asked.clear()
        assert_scores(per_pair(pairs, *node_scores(Grid(pairs), scorer)), [model.pair(x) for x in pairs])
        assert asked and len(asked) == len(set(asked))


def test_weights_that_change_in_place_are_noticed():
    model = Model((String(),), 1)
    crf = Crf({"string": String()})
    crf.names, crf.weights = model.names, model.weights
    scorer = crf.scorer()
    assert crf.scorer() is scorer
    crf.weights[3] += 1
    assert crf.scorer() is not scorer and crf.scorer() is crf.scorer()
    scorer, crf.names = crf.scorer(), list(crf.names)
    assert crf.scorer() is not scorer


def test_a_family_that_gives_too_few_rows_is_named():
    class Short:
        name, requires = "short", ()

        def __call__(self, grid: Grid) -> NodeBlocks:
            return NodeBlocks((Block(("x",), np.zeros((grid.n_cells - 1, 1))),))

    scorer = Scorer(FeatureSet({"short": Short()}), ["short.x"], np.ones(1))
    with pytest.raises(ConfigError, match="'short' gave 1 rows for 2 cells"):
        node_scores(Grid([SentencePair(Sentence(("a",)), Sentence(("b", "c")))]), scorer)
