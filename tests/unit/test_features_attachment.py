"""Attachment: every column of every cell against plain Python, on trees from parse_twin.py."""

from __future__ import annotations

import random

import numpy as np
import pytest
from feature_twin import Bases, assert_empty_sides, assert_same_alone, compare, table
from parse_twin import parsed

from jacana_torch import resources
from jacana_torch.errors import MissingLayer
from jacana_torch.features.api import NodeFamily
from jacana_torch.features.families.attachment import Attachment
from jacana_torch.features.featureset import blocks_of
from jacana_torch.features.grid import Grid
from jacana_torch.types import Sentence, SentencePair

WORDS = """the a of in cat cats Cat bird birds saw seen was be that 's two , . red and quickly 2 who nation
national""".split()
TAGS = "DT IN NN NN NNS VBD VBN VBZ POS CD , . JJ CC RB WP TO".split()


def random_pairs(seed: int, count: int = 8, longest: int = 9) -> list[SentencePair]:
    rng = random.Random(seed)

    def sentence() -> Sentence:
        size = rng.randint(1, longest)
        words, tags = rng.choices(WORDS, k=size), rng.choices(TAGS, k=size)
        return Sentence(tuple(words), {"pos": tuple(tags), "lemma": tuple(word.lower() for word in words)})

    return [SentencePair(sentence(), sentence()) for _ in range(count)]


class Twin:
    """One pair, looked at one cell at a time."""

    def __init__(self, x: SentencePair) -> None:
        self.bases = Bases(x)
        self.size = (self.bases.M, self.bases.N)
        trees = [parsed(s.layer("pos"), s.tokens) for s in (x.source, x.target)]
        self.head = [heads for heads, _ in trees]
        self.relation = [names for _, names in trees]

    def above(self, side: int, k: int) -> int:
        return self.head[side][k] if k >= 0 else -1

    def children(self, side: int, k: int) -> list[int]:
        return [c for c, head in enumerate(self.head[side]) if head == k] if k >= 0 else []

    def alike(self, m: int, n: int) -> bool:
        return m >= 0 and n >= 0 and self.bases.base[m][n] > 0

    def met(self, name: str, m: int, n: int) -> dict[str, float]:
        if m < 0 or n < 0:
            return {}
        similarity = self.bases.base[m][n]
        return {
            f"{name}_same": similarity >= 0.9,
            f"{name}_similar": similarity > 0,
            f"{name}_differs": similarity == 0,
        }

    def kin(self, m: int, n: int) -> dict[str, float]:
        ours, theirs = self.children(0, m), self.children(1, n)
        pairs = sum(self.alike(i, j) for i in ours for j in theirs)
        fewer, more = sorted((len(ours), len(theirs)))
        share = min(pairs / max(fewer, 1), 1)
        up = self.above(0, m), self.above(1, n)
        siblings = 0
        if min(up) >= 0:
            around = [(i, j) for i in self.children(0, up[0]) for j in self.children(1, up[1])]
            siblings = sum(self.alike(i, j) for i, j in around if (i, j) != (m, n))
        siblings = min(siblings, 3) / 3
        return {
            "children_share": share, "children_of_more": min(pairs / max(more, 1), 1),
            "children_alike": min(pairs, 3) / 3, "children_unlike": pairs == 0 and fewer > 0,
            "siblings": siblings, "alike_children_share": share * self.alike(m, n),
            "alike_siblings": siblings * self.alike(m, n),
        }  # fmt: skip

    def worth(self, m: int, n: int) -> float:
        kin = self.kin(m, n)
        head = self.alike(self.above(0, m), self.above(1, n))
        return 2 * head + kin["children_share"] + kin["siblings"] / 2

    def competition(self, m: int, n: int) -> dict[str, float]:
        if not self.alike(m, n):
            return {}
        own = self.worth(m, n)
        found: dict[str, float] = {
            "alike_head_alike": self.alike(self.above(0, m), self.above(1, n)), "alike_nothing": own == 0,
        }  # fmt: skip
        others = {
            "row": [self.worth(m, j) for j in range(self.size[1]) if j != n and self.alike(m, j)],
            "column": [self.worth(i, n) for i in range(self.size[0]) if i != m and self.alike(i, n)],
        }
        for name, some in others.items():
            if some:
                found[f"{name}_best"] = own >= max(some) - 1e-6
                found[f"{name}_beaten"] = min(max(max(some) - own, 0), 2) / 2
        return found

    def cell(self, m: int, n: int) -> dict[str, float]:
        up = self.above(0, m), self.above(1, n)
        row = self.met("head", *up)
        row |= self.met("above_head", self.above(0, up[0]), self.above(1, up[1]))
        row |= self.met("source_head", up[0], n) | self.met("target_head", m, up[1])
        if self.bases.base[m][n] >= 1:
            row["identical_head_same"] = row.get("head_same", False)
            row["identical_head_differs"] = row.get("head_differs", False)
        relation = self.relation[0][m] if self.relation[0][m] == self.relation[1][n] else "different"
        row[f"relation.{relation}.head_{'alike' if self.alike(*up) else 'unlike'}"] = 1
        return row | self.kin(m, n) | self.competition(m, n)

    def null(self, m: int) -> dict[str, float]:
        def found(i: int) -> bool:
            return max(self.bases.base[i]) > 0

        up = self.above(0, m)
        if up < 0:
            return {}
        name = "found" if found(up) else "missing"
        row: dict[str, float] = {f"head_{name}": 1}
        if not (found(m) and found(up)):
            row[f"{'found' if found(m) else 'missing'}_head_{name}"] = 1
        return row


@pytest.mark.parametrize("seed", range(6))
def test_every_column_of_every_cell_equals_the_twin(seed):
    pairs = random_pairs(seed)
    twins = [Twin(x) for x in pairs]
    blocks = blocks_of(Attachment(related=False), Grid(pairs))
    compare(blocks.link, [t.cell(m, n) for t in twins for m in range(t.size[0]) for n in range(t.size[1])])
    compare(blocks.null, [t.null(m) for t in twins for m in range(t.size[0])])


@pytest.mark.parametrize("first", [False, True])
def test_a_flipped_grid_says_what_flipped_pairs_say_whichever_is_asked_first(first):
    pairs, family = random_pairs(20), Attachment(related=False)
    grid = Grid(pairs)
    if first:
        blocks_of(family, grid)
    twins = [Twin(x.flip()) for x in pairs]
    blocks = blocks_of(family, grid.flipped())
    compare(blocks.link, [t.cell(m, n) for t in twins for m in range(t.size[0]) for n in range(t.size[1])])
    compare(blocks.null, [t.null(m) for t in twins for m in range(t.size[0])])


def tagged(text: str) -> Sentence:
    tokens, tags = zip(*(word.rsplit("/", 1) for word in text.split()), strict=True)
    return Sentence(tokens, {"pos": tags, "lemma": [token.lower() for token in tokens]})


def values(family: Attachment, x: SentencePair, m: int, n: int) -> dict[str, float]:
    names, found = table(blocks_of(family, Grid([x])).link, len(x.source) * len(x.target))
    return {name: value for name, value in zip(names, found[m * len(x.target) + n].tolist(), strict=True) if value}


def test_of_two_articles_the_one_before_the_same_noun_is_in_the_better_place():
    x = SentencePair(
        tagged("The/DT owner/NN sold/VBD the/DT brown/JJ horse/NN"), tagged("the/DT horse/NN was/VBD sold/VBN")
    )
    right, wrong = (values(Attachment(related=False), x, m, 0) for m in (3, 0))
    assert right["head_same"] and right["column_best"] and right["relation.det.head_alike"]
    assert wrong["head_differs"] and wrong["column_beaten"] > 0.5 and "column_best" not in wrong


@pytest.mark.skipif(not resources.available("wordnet"), reason="wordnet is not installed")
def test_heads_that_wordnet_relates_are_alike_either_way():
    x = SentencePair(tagged("the/DT dog/NN barked/VBD"), tagged("the/DT hound/NN slept/VBD"))
    for pair in (x, x.flip()):
        assert values(Attachment(), pair, 0, 0)["head_similar"] == 1
        assert "head_same" not in values(Attachment(), pair, 0, 0)
        assert values(Attachment(related=False), pair, 0, 0)["head_differs"] == 1
    assert_same_alone(Attachment(), random_pairs(41))
    pairs = [SentencePair(tagged("a/DT Swede/NN"), tagged("a/DT Sweden/NNP"))] + random_pairs(42)
    grid, other = Grid(pairs), Grid([pair.flip() for pair in pairs])
    blocks_of(Attachment(), grid)
    names, one = table(blocks_of(Attachment(), grid.flipped()).link, grid.n_cells)
    same, two = table(blocks_of(Attachment(), other).link, grid.n_cells)
    assert np.array_equal(one[:, [names.index(name) for name in same]], two)


def test_company_and_empty_sides():
    assert_same_alone(Attachment(related=False), random_pairs(40))
    assert_empty_sides(Attachment(related=False))


def test_what_it_reads():
    assert isinstance(Attachment(), NodeFamily)
    assert Attachment().requires == ("pos", "lemma") and Attachment().resources == ("wordnet",)
    assert Attachment(related=False).requires == ("pos",) and not Attachment(related=False).resources
    bare = SentencePair(Sentence(("dog",)), Sentence(("hound",)))
    with pytest.raises(MissingLayer, match="'pos'"):
        blocks_of(Attachment(related=False), Grid([bare]))
