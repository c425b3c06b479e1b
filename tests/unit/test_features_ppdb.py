"""PPDB pairs against a plain set of pairs, every cell, through the real reader on a small file."""

from __future__ import annotations

import random

import numpy as np
import pytest

from jacana_torch.errors import MissingLayer
from jacana_torch.features.families.dependency import Dependency
from jacana_torch.features.families.ppdb import Ppdb
from jacana_torch.features.featureset import FeatureSet
from jacana_torch.features.grid import Grid
from jacana_torch.types import Sentence, SentencePair

PAIRS = [("begin", "start"), ("buys", "purchases"), ("buy", "purchase"), ("big", "large"), ("larger", "bigger")]
LEMMAS = {
    "bought": "buy",
    "buys": "buy",
    "purchases": "purchase",
    "larger": "large",
    "bigger": "big",
    "began": "begin",
}
WORDS = [*LEMMAS, "begin", "start", "Start", "BIG", "large", "boat", "starts"]


@pytest.fixture(autouse=True)
def small_ppdb(tmp_path, monkeypatch):
    path = tmp_path / "ppdb-1.0-xxxl-lexical.extended.synonyms.uniquepairs"
    path.write_text("".join(f"{a}\t{b}\n" for a, b in PAIRS))
    monkeypatch.setenv("JACANA_PPDB", str(path))
    monkeypatch.setenv("JACANA_HOME", str(tmp_path / "home"))


def sentence(tokens) -> Sentence:
    return Sentence(tuple(tokens), {"lemma": [LEMMAS.get(t.lower(), t.lower()) for t in tokens]})


def random_pairs(seed: int) -> list[SentencePair]:
    rng = random.Random(seed)
    return [SentencePair(*(sentence(rng.choices(WORDS, k=rng.randint(1, 6))) for _ in "st")) for _ in range(10)]


def in_ppdb(a: str, b: str) -> bool:
    return a != b and ((a, b) in PAIRS or (b, a) in PAIRS)


@pytest.mark.parametrize("seed", range(4))
def test_every_cell_equals_a_set_of_pairs(seed):
    pairs = random_pairs(seed)
    grid = Grid(pairs)
    blocks = Ppdb()(grid)
    (link,), (null,) = blocks.link, blocks.null
    assert link.names == ("pair", "lemma_pair", "either_pair")
    assert null.names == ("row.pair", "row.lemma_pair", "row.either_pair", "row.only_paraphrase")
    values, alone, c, t = link.dense(), null.dense(), 0, 0
    assert values.any(axis=0).all() and alone.any(axis=0).all()
    for pair in pairs:
        for a, a_lemma in zip(pair.source.tokens, pair.source.layer("lemma"), strict=True):
            row = []
            for b, b_lemma in zip(pair.target.tokens, pair.target.layer("lemma"), strict=True):
                same = a.lower() == b.lower()
                hits = [in_ppdb(a.lower(), b.lower()), in_ppdb(a_lemma, b_lemma) and not same]
                row.append([*hits, any(hits), same])
                assert list(values[c]) == row[-1][:3]
                c += 1
            best = np.array(row).any(axis=0)
            assert list(alone[t]) == [*best[:3], best[2] and not best[3]]
            t += 1


def test_features_do_not_depend_on_the_batch():
    pairs = random_pairs(9)
    together = Ppdb()(Grid(pairs)).link[0].dense()
    alone = np.vstack([Ppdb()(Grid([pair])).link[0].dense() for pair in pairs])
    assert np.array_equal(together, alone)


def test_lemmas_are_read_only_if_asked_for():
    pair = SentencePair(Sentence(("begin",)), Sentence(("Start",)))
    family = Ppdb(lemma=False)
    assert family.requires == () and Ppdb().requires == ("lemma",)
    assert family(Grid([pair])).link[0].dense().tolist() == [[1.0]]
    with pytest.raises(MissingLayer, match="lemma"):
        Ppdb()(Grid([pair]))


def test_the_dependency_family_may_take_paraphrases_for_like_words():
    parse = {"head": (-1, 0), "deprel": ("root", "dobj")}
    pair = SentencePair(Sentence(("buy", "boats"), parse), Sentence(("purchase", "ships"), parse))
    for ppdb in (True, False):
        block = next(b for b in Dependency(lemma=False, ppdb=ppdb)(Grid([pair])).link if "head.similar" in b.names)
        assert block.dense()[3, block.names.index("head.similar")] == ppdb


def test_empty_sentences_and_an_empty_grid():
    empty, full = sentence(()), random_pairs(1)[0]
    for pairs in ([], [SentencePair(empty, empty)], [SentencePair(full.source, empty), full]):
        batch = FeatureSet({"ppdb": Ppdb()})(pairs)
        assert all(len(b.dense()) == sum(len(p.source) * len(p.target) for p in pairs) for b in batch.link)
