"""Two directions together equal each direction alone: features on flipped grids, and alignments."""

from __future__ import annotations

import random

import numpy as np
import pytest
from feature_twin import parsed_pairs, random_pairs, table, word_pairs
from hypothesis import given
from hypothesis import strategies as st

from jacana_torch import resources
from jacana_torch.aligners.bidirectional import Bidirectional
from jacana_torch.aligners.crf import Crf
from jacana_torch.errors import MissingResource, ModelError
from jacana_torch.features import grid as module
from jacana_torch.features.api import NodeBlocks
from jacana_torch.features.families.context import Context
from jacana_torch.features.families.dependency import Dependency
from jacana_torch.features.families.distortion import Distortion
from jacana_torch.features.families.distsim import DistSim
from jacana_torch.features.families.kinds import Kinds
from jacana_torch.features.families.ner import Ner
from jacana_torch.features.families.pos import Pos
from jacana_torch.features.families.position import Position
from jacana_torch.features.families.ppdb import Ppdb
from jacana_torch.features.families.string import String
from jacana_torch.features.families.wordnet import WordNet
from jacana_torch.features.featureset import blocks_of
from jacana_torch.features.grid import Grid
from jacana_torch.features.string_similarity import base_of, best_of, same_word, similarities
from jacana_torch.types import Alignment, Example, Sentence, SentencePair


def scrambled(seed: int, count: int = 30) -> list[SentencePair]:
    """Words of few letters, with all degrees of similarity."""
    rng = random.Random(seed)

    def sentence() -> Sentence:
        words = ("".join(rng.choices("aabbcd", k=rng.randint(4, 11))) for _ in range(rng.randint(1, 7)))
        return Sentence(tuple(w.capitalize() if rng.random() < 0.2 else w for w in words))

    return [SentencePair(sentence(), sentence()) for _ in range(count)]


ROUNDING = 1e-6  # figures of two words are in single precision


def columns(blocks: NodeBlocks, grid: Grid) -> dict[str, np.ndarray]:
    """The columns that are not all zero, by name."""
    link, null = table(blocks.link, grid.n_cells), table(blocks.null, len(grid.source_pair))
    found = {f"{where} {n}": v for where, (names, values) in (("link", link), ("null", null))
             for n, v in zip(names, values.T, strict=True)}  # fmt: skip
    return {name: values for name, values in found.items() if values.any()}


def assert_same(got: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    assert got.keys() == expected.keys()
    for name, values in got.items():
        assert np.abs(values - expected[name]).max() <= ROUNDING, name


def assert_flipped_features(family, pairs: list[SentencePair]) -> None:
    """The features on a flipped grid are those of the flipped pairs, and those on the grid itself are its own,
    whichever is asked first; also a part at a time."""
    alone, back = Grid(pairs), Grid([x.flip() for x in pairs])
    expected = [columns(blocks_of(family, grid), grid) for grid in (alone, back)]
    assert all(expected)
    for flipped_first in (False, True):
        grid = Grid(pairs)
        sides = list(zip((grid, grid.flipped()), expected, strict=True))
        for side, want in reversed(sides) if flipped_first else sides:
            assert_same(columns(blocks_of(family, side), side), want)
        for side, want in sides:
            for at, part in side.parts():
                blocks = blocks_of(family, part)
                source, _, cells = side.spans(at)
                inside = {"link": cells, "null": source}
                own = {name: values[inside[name[:4]]] for name, values in want.items()}
                assert_same(columns(blocks, part), {n: v for n, v in own.items() if v.any()})


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr(module, "PART_PLACES", 500)


FAMILIES = (
    String(), String(0.3), Context(), Context(1), Kinds(), Position(), Pos(), Dependency(),
    Dependency(relation_pairs=True), Ner(), Ner(entities=False), DistSim(),
)  # fmt: skip


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.name)
def test_flipped_features(family):
    assert_flipped_features(family, parsed_pairs(3, 20))


@pytest.mark.parametrize("family", [String(), Context(), Kinds(), Position()], ids=lambda f: f.name)
def test_flipped_features_of_words_alike_in_every_degree(family):
    assert_flipped_features(family, scrambled(4))


words = st.text("abc-'é", min_size=1, max_size=14)


@given(words, words)
def test_measures_do_not_depend_on_the_order_of_two_words(a, b):
    """To the last bit: one direction uses the values of the other."""
    there, back = word_pairs((a, b)), word_pairs((b, a))
    for compute in (similarities, same_word, base_of, best_of):
        assert compute(there).tolist() == compute(back).tolist()


def test_flipped_wordnet():
    try:
        resources.path("wordnet")
    except MissingResource as missing:
        pytest.skip(str(missing))
    assert_flipped_features(WordNet(), random_pairs(5, 25))
    kinds = SentencePair(
        Sentence(("dog", "wheel", "hot", "snore", "Swedish")),
        Sentence(("animal", "car", "cold", "sleep", "Sweden")),
    )
    assert_flipped_features(WordNet(tags=False), [kinds])


def test_flipped_ppdb(tmp_path, monkeypatch):
    path = tmp_path / "ppdb-1.0-xxxl-lexical.extended.synonyms.uniquepairs"
    path.write_text("cat\tcats\nrunning\tran\nwell\tbill\nthe\tof\nsold\tbought\n")
    monkeypatch.setenv("JACANA_PPDB", str(path))
    monkeypatch.setenv("JACANA_HOME", str(tmp_path / "home"))
    assert_flipped_features(Ppdb(), random_pairs(12, 20))
    assert_flipped_features(Dependency(ppdb=True), parsed_pairs(12, 10))


def test_flipped_vectors(tmp_path, monkeypatch):
    monkeypatch.setenv("JACANA_HOME", str(tmp_path / "home"))
    pairs = random_pairs(6, 25)
    known = sorted({t for x in pairs for t in (*x.source.tokens, *x.target.tokens)})[::2]
    rng, files = np.random.default_rng(0), []
    for name in ("one", "two"):  # two sets, so that neither is taken for the other
        path = tmp_path / f"{name}.txt"
        path.write_text("".join(f"{w} {' '.join(map(str, rng.normal(size=5).round(3)))}\n" for w in known))
        files.append(str(path))
    assert_flipped_features(DistSim(own=False, vectors=tuple(files)), pairs)
    assert_flipped_features(DistSim(own=False, vectors=tuple(files)), pairs)


def trained() -> Bidirectional:
    families = {"string": String(), "context": Context(), "distortion": Distortion()}
    both = Bidirectional(*(Crf(families, max_iterations=15, batch_cells=60) for _ in range(2)))
    examples = []
    for x in random_pairs(7, 30):
        m, n = len(x.source), len(x.target)
        links = frozenset((k, k) for k in range(min(m, n)) if k % 3)
        examples.append(Example(x, Alignment(m, n, links)))
    both.fit(examples)
    return both


def test_directions_together_are_the_directions_alone():
    both = trained()
    empty, some = Sentence(()), Sentence(("a", "barn"))
    pairs = [SentencePair(empty, some), *random_pairs(8, 30), SentencePair(some, empty), *scrambled(9)]
    forward, backward = both.directions(pairs)
    alone = both.forward.align(pairs), [a.flip() for a in both.backward.align([x.flip() for x in pairs])]
    for got, expected in zip((forward, backward), alone, strict=True):
        assert got == expected and any(a.sure for a in got)
        for a, b in zip(got, expected, strict=True):
            assert a.confidence == pytest.approx(b.confidence, abs=1e-6)
            assert a.score is b.score is None or a.score == pytest.approx(b.score, abs=1e-6)


def test_new_weights_take_effect_at_once():
    """Also if they are changed in place while scores of the old ones exist."""
    both, pairs = trained(), random_pairs(8, 10)
    before = both.forward.align(pairs)
    assert both.forward.align(pairs) == before
    both.forward.weights[:] = 0.0
    flat = both.forward.align(pairs)
    assert [a.score for a in flat] != [a.score for a in before]
    assert flat[0].score == pytest.approx(-np.log(len(pairs[0].target) + 1))


def test_a_direction_may_be_any_trainable_aligner():
    class Nothing:
        requires = ()

        def fit(self, examples, dev=(), watch=None): ...

        def state(self): ...

        def restore(self, state): ...

        def align(self, pairs):
            return [Alignment(len(x.source), len(x.target)) for x in pairs]

    both, pairs = trained(), random_pairs(8, 5)
    forward, backward = Bidirectional(both.forward, Nothing()).directions(pairs)
    assert forward == both.directions(pairs)[0] and any(a.sure for a in forward)
    assert not any(a.sure for a in backward)


def test_untrained_directions_say_which():
    both = trained()
    both.backward = Crf(both.forward.families, part="backward")
    with pytest.raises(ModelError, match="backward direction has not been trained"):
        both.align(random_pairs(8, 2))
