"""WordNet features: each cell asked on its own, everything around it by nested loops. Needs WordNet itself.

That the relations are WordNet's is tested with the resource; here it is what the family makes of them.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from context_twin import Surroundings
from feature_twin import Bases, assert_empty_sides, assert_same_alone, compare, random_pairs, table

from jacana_torch import resources
from jacana_torch.errors import MissingLayer
from jacana_torch.features.families.wordnet import WordNet
from jacana_torch.features.featureset import blocks_of
from jacana_torch.features.grid import Grid
from jacana_torch.resources.wordnet_graph import RELATIONS
from jacana_torch.types import Sentence, SentencePair

if not resources.available("wordnet"):
    pytest.skip("wordnet is not installed: jacana-torch resources install wordnet", allow_module_level=True)

WORDS = """dog hound animal dogs Dogs cat wheel car automobile bought purchase purchased run walked the , of 7 kill
die good bad quickly quick wood tree forest snore sleep zzyzx Paris city up down 中""".split()


def sentence(text: str) -> Sentence:
    tokens, tags, lemmas = zip(*(word.split("/") for word in text.split()), strict=True)
    return Sentence(tokens, {"pos": tags, "lemma": lemmas})


OWN = [
    SentencePair(
        sentence("The/DT/the dogs/NNS/dog bought/VBD/buy a/DT/a car/NN/car up/RP/up ././."),
        sentence("Hounds/NNS/hound purchase/VBP/purchase the/DT/the fender/NN/fender up/RB/up !/./!"),
    ),
    SentencePair(
        sentence("up/RP/up seven/CD/seven dog/NN/dog"), sentence("upward/RB/upward 7/CD/7 animal/NN/animal")
    ),
    SentencePair(
        sentence("ran/VBD/run Running/VBG/run"), sentence("running/NN/running runs/VBZ/run walked/VBD/walk")
    ),
]
LETTER = {"N": "n", "V": "v", "J": "a", "R": "r"}  # particles (RP) with the adverbs


@cache
def ask(left: tuple, right: tuple, depth: int) -> dict[str, bool]:
    """One pair of words, one question."""
    return {name: bool(value[0]) for name, value in resources.wordnet().related([left], [right], depth).items()}


def keys(twin: Bases, x: Sentence, forms: list[str], tags: bool) -> list[tuple[str, str | None, bool]]:
    """(word looked up, part of speech, whether it is looked up)."""
    if tags:
        letters = [LETTER.get(tag[:1]) for tag in x.layer("pos")]
        return [(w.lower(), p, p is not None) for w, p in zip(x.layer("lemma"), letters, strict=True)]
    return [(w.lower(), None, w[:1].isalpha()) for w in forms]


def expected(x: SentencePair, tags: bool, depth: int) -> tuple[list[dict], list[dict]]:
    twin = Bases(x)
    source, target = keys(twin, x.source, twin.source, tags), keys(twin, x.target, twin.target, tags)
    rows: list[list[dict]] = [[{} for _ in target] for _ in source]
    related = [[0.0] * twin.N for _ in source]
    similarity = [[0.0] * twin.N for _ in source]
    for m, (a, p, a_known) in enumerate(source):
        for n, (b, q, b_known) in enumerate(target):
            found = ask((a, p), (b, q), depth) if a_known and b_known else dict.fromkeys(RELATIONS, False)
            found = found | {"any": any(v for k, v in found.items() if k not in ("antonym", "sister"))}
            found["lemma"] = a == b
            unlike = twin.base[m][n] < 0.9
            rows[m][n] = {name: value and unlike for name, value in found.items()}
            related[m][n] = float(found["any"] and unlike)
            similarity[m][n] = max(twin.base[m][n], 0.9 * (a == b), 0.8 * related[m][n])
    around = Surroundings(twin, related)
    score, company_nulls = Surroundings(twin, similarity).again()
    links, nulls = [], []
    for (m, n), row in zip(around.cells(), score, strict=True):
        other = 1 - related[m][n]
        links.append(
            rows[m][n] | row | {
                "left_related": around.at(m - 1, n - 1), "right_related": around.at(m + 1, n + 1),
                "row_related": other * max(related[m]), "column_related": other * max(r[n] for r in related),
            }
        )  # fmt: skip
    for m, row in enumerate(company_nulls):
        nulls.append(row | {"null_related": max(related[m], default=0.0)})
    return links, nulls


@pytest.mark.parametrize(("tags", "depth"), [(True, 3), (False, 3), (True, 1)])
@pytest.mark.parametrize("seed", range(2))
def test_every_column_of_every_cell_equals_the_twin(seed, tags, depth):
    pairs = random_pairs(seed, count=4, words=WORDS) + OWN
    blocks = blocks_of(WordNet(tags=tags, depth=depth), Grid(pairs))
    twins = [expected(x, tags, depth) for x in pairs]
    compare(blocks.link, [row for links, _ in twins for row in links])
    compare(blocks.null, [row for _, nulls in twins for row in nulls])


def on(family: WordNet, x: SentencePair, column: str) -> list[tuple[int, int]]:
    names, values = table(blocks_of(family, Grid([x])).link, len(x.source) * len(x.target))
    return [divmod(int(c), len(x.target)) for c in np.flatnonzero(values[:, names.index(column)])]


def test_relations_by_hand():
    x = OWN[0]
    assert (2, 1) in on(WordNet(), x, "synonym") and (4, 3) in on(WordNet(), x, "has_part")
    assert (1, 0) in on(WordNet(), x, "hyponym_deep")
    assert (0, 1) in on(WordNet(), x.flip(), "hypernym_deep")
    assert on(WordNet(), OWN[2], "lemma") == [(0, 1)]  # Running and runs have one stem: the string family's affair
    assert (0, 1) in on(WordNet(tags=False), OWN[2], "synonym") and on(WordNet(tags=False), OWN[2], "lemma") == []


@pytest.mark.parametrize("tags", [True, False])
def test_company_and_empty_sides(tags):
    assert_same_alone(WordNet(tags=tags), random_pairs(5, words=WORDS) + OWN)
    assert_empty_sides(WordNet(tags=tags))


def test_what_it_reads():
    assert WordNet().requires == ("pos", "lemma") and WordNet(tags=False).requires == ()
    assert WordNet().resources == ("wordnet",)
    bare = SentencePair(Sentence(("dog",)), Sentence(("hound",)))
    with pytest.raises(MissingLayer, match="'lemma'|'pos'"):
        blocks_of(WordNet(), Grid([bare]))
    assert on(WordNet(tags=False), bare, "any") == [(0, 0)]
