"""Word-class conjunctions: each column is the context family's where the class is the cell's, zero elsewhere.

Context and anchors have twins of their own; the class of two words is computed here in plain Python.
"""

from __future__ import annotations

import numpy as np
import pytest
from feature_twin import Bases, assert_empty_sides, assert_same_alone, class_of, compare, random_pairs, table
from variants import variants

from jacana_torch.features.families.context import Context
from jacana_torch.features.families.kinds import (
    ALIKE,
    ANCHOR_COLUMNS,
    KINDS,
    OF_ALIKE,
    OF_UNLIKE,
    WORD_KINDS,
    Kinds,
    anchor_columns,
    kind_of_words,
)
from jacana_torch.features.grid import Grid
from jacana_torch.features.wordlists import FUNCTION_KINDS, FUNCTION_WORDS
from jacana_torch.features.words import Lexicon, WordPairs
from jacana_torch.types import Sentence, SentencePair


def pair(source: str, target: str) -> SentencePair:
    return SentencePair(Sentence(tuple(source.split())), Sentence(tuple(target.split())))


OWN = [
    pair("The fox , it is said ; saw 3 hens of Anna !", "she says , the foxes saw three hens near Ann : so"),
    pair("US fights us . because because", "us US fight . ( because"),
    pair(", , . .", ", . , ."),
    pair("fox Hen owl", "Fox hen Owl"),
]


def kind_of(word: str) -> str:
    for name, words in FUNCTION_KINDS.items():
        if word.lower() in words:
            return name
    if word == ",":
        return "comma"
    return "stop" if word in (".", "!", "?", ";", ":") else class_of(word)


def kind_of_two(a: str, b: str, base: float) -> str:
    kinds = [kind_of(a), kind_of(b)]
    if base >= 1:
        first = min(kinds, key=WORD_KINDS.index)
        return f"{first}={first}"
    if base > 0:
        return "name~name" if kinds == ["name", "name"] else "word~word"
    if {"comma", "stop", "punct"} & set(kinds):
        return "punct|any"
    function = sum(kind in ("function", *FUNCTION_KINDS) for kind in kinds)
    if function:
        return "function|function" if function == 2 else "function|any"
    if kinds == ["name", "name"]:
        return "name|name"
    return "number|any" if "number" in kinds else "word|word"


@pytest.mark.parametrize(("seed", "window"), variants([(0, 3), (2, 1)]))
def test_every_column_of_every_cell(seed, window):
    pairs = random_pairs(seed) + OWN
    names, said = table(Context(window)(Grid(pairs)).link, sum(len(x.source) * len(x.target) for x in pairs))
    expected, cell = [], 0
    for x in pairs:
        twin = Bases(x)
        in_run = said[cell : cell + twin.M * twin.N, names.index("run>=3")] > 0
        own = anchor_columns(Grid([x]), in_run, np.arange(twin.M * twin.N)).tolist()
        for m in range(twin.M):
            for n in range(twin.N):
                kind = kind_of_two(twin.source[m], twin.target[n], twin.base[m][n])
                values = [*said[cell].tolist(), *own[m * twin.N + n]]
                row = dict(zip([*names, *ANCHOR_COLUMNS], values, strict=True))
                expected.append({f"{kind}.{c}": row[c] for c in (OF_ALIKE if kind in ALIKE else OF_UNLIKE)})
                cell += 1
    blocks = Kinds(window)(Grid(pairs))
    compare(blocks.link, expected)
    assert blocks.null == ()
    alike = tuple(f"{kind}." for kind in ALIKE)
    compare(
        Kinds(window, unlike=False)(Grid(pairs)).link,
        [{name: value for name, value in row.items() if name.startswith(alike)} for row in expected],
    )


def test_the_sentences_have_every_class():
    seen = set()
    for x in [*OWN, *random_pairs(0, 30)]:
        twin = Bases(x)
        seen |= {
            kind_of_two(a, b, twin.base[m][n])
            for m, a in enumerate(twin.source) for n, b in enumerate(twin.target)
        }  # fmt: skip
    assert seen == set(KINDS)


def test_words_by_hand():
    words = (
        "The determiner n't auxiliary of preposition HERS pronoun because function , comma ! stop ( punct".split()
    )
    words += "3.5 number Anna name hen content".split()
    same = np.arange(len(words) // 2)
    found = kind_of_words.of(WordPairs(Lexicon(words[::2]), same, same)).astype(int)
    assert [WORD_KINDS[kind] for kind in found] == words[1::2]


def test_classes_of_function_words_do_not_overlap():
    together = [word for words in FUNCTION_KINDS.values() for word in words]
    assert set(together) <= FUNCTION_WORDS and len(together) == len(set(together))


def test_context_is_computed_once():
    grid = Grid(OWN)
    assert Context(3)(grid) is Context()(grid)
    assert Context(2)(grid) is not Context()(grid)
    alone = Kinds()(Grid(OWN))
    after = Kinds()(grid)
    for one, other in zip(alone.link, after.link, strict=True):
        assert one.names == other.names and np.array_equal(one.dense(), other.dense())


@pytest.mark.parametrize("seed", range(3))
def test_features_do_not_depend_on_the_batch(seed):
    assert_same_alone(Kinds(), random_pairs(seed + 30) + OWN)
    assert_same_alone(Kinds(unlike=False), random_pairs(seed + 30) + OWN)


def test_empty_sides():
    assert_empty_sides(Kinds())
    assert_empty_sides(Kinds(unlike=False))
