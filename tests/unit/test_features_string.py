"""Similarity of two words: every column of every cell against plain Python, the measures against jellyfish too."""

from __future__ import annotations

import jellyfish
import numpy as np
import pytest
from feature_twin import (
    Bases,
    assert_empty_sides,
    assert_same_alone,
    class_of,
    compare,
    edit_distance,
    jaro_winkler,
    measures,
    number_of,
    random_pairs,
    same_word,
    table,
    variant,
    word_pairs,
)
from hypothesis import example, given
from hypothesis import strategies as st
from variants import variants

from jacana_torch.features.families.string import String
from jacana_torch.features.featureset import blocks_of
from jacana_torch.features.grid import Grid
from jacana_torch.features.string_similarity import MEASURES, base_similarity, similarities
from jacana_torch.features.string_similarity import same_word as same_word_of
from jacana_torch.features.wordlists import FUNCTION_WORDS, NEGATIONS, NICKNAMES, WORD_CLASSES
from jacana_torch.types import Sentence, SentencePair


def pair(source: str, target: str) -> SentencePair:
    return SentencePair(Sentence(tuple(source.split())), Sentence(tuple(target.split())))


def sound(word: str) -> str:
    return jellyfish.metaphone(word) if word.isascii() and word.isalpha() else ""


def two_words(left: str, right: str, threshold: float) -> dict[str, float]:
    a, b = left.lower(), right.lower()
    like, same, equal = measures(a, b), same_word(a, b), a == b
    best = 1.0 if same else max(like.values())
    x, y = number_of(a), number_of(b)
    out = {
        **like, "identical": left == right, "identical_ci": equal, "same_word": same,
        "same_word_only": same and not equal, "max": best,
        "max_match": best if not same and best > threshold else 0.0,
        **{f"jaro_winkler>{k}": not same and like["jaro_winkler"] > k for k in (0.6, 0.75, 0.85, 0.92)},
        "variant": not equal and variant(a) == variant(b),
        "phonetic": not same and sound(a) != "" and sound(a) == sound(b),
        "number_equal": None not in (x, y) and x == y, "number_differs": None not in (x, y) and x != y,
        "number_or_not": (x is None) != (y is None),
        "nickname": not equal and frozenset((a, b)) in NICKNAMES,
        "negations": a in NEGATIONS and b in NEGATIONS,
    }  # fmt: skip
    out |= {f"identical:{k}": equal and class_of(left) == k for k in WORD_CLASSES}
    out |= {f"same:{k}": same and not equal and class_of(left) == k for k in WORD_CLASSES}
    out |= {
        f"differ:{k}-{j}": not same and (class_of(left), class_of(right)) == (k, j)
        for k in WORD_CLASSES
        for j in WORD_CLASSES
    }
    if equal and (a in FUNCTION_WORDS or len(a) == 1 and class_of(a) == "punct"):
        out[f"same={a}"] = 1.0
    if not equal and a in FUNCTION_WORDS and b in FUNCTION_WORDS:
        out[f"{a}~{b}"] = 1.0
    return out


def spelled(tokens: tuple[str, ...], letters: str, start: int) -> list[int]:
    """The words from `start` on whose initials spell the letters, skipping function words if need be."""
    if len(tokens[start]) < 2 or tokens[start][0] != letters[0]:
        return []
    run, wanted = [start], letters[1:]
    for k in range(start + 1, len(tokens)):
        if not wanted:
            break
        if tokens[k].startswith(wanted[0]):
            run.append(k)
            wanted = wanted[1:]
        elif tokens[k].lower() not in FUNCTION_WORDS:
            return []
    return [] if wanted else run


def acronyms(x: SentencePair) -> set[tuple[int, int]]:
    found = set()
    for one, other, order in ((x.source, x.target, 1), (x.target, x.source, -1)):
        for i, token in enumerate(one.tokens):
            letters = token.replace(".", "")
            if 2 <= len(letters) <= 6 and letters.isalpha() and letters == letters.upper() != letters.lower():
                for start in range(len(other)):
                    found |= {(i, k)[::order] for k in spelled(other.tokens, letters, start)}
    return found


def expected_links(pairs: list[SentencePair], threshold: float) -> list[dict[str, float]]:
    rows = []
    for x in pairs:
        twin, short = Bases(x), acronyms(x)
        rows += [
            {**two_words(a, b, threshold), "acronym": (m, n) in short}
            for m, a in enumerate(twin.source)
            for n, b in enumerate(twin.target)
        ]
    return rows


def expected_nulls(pairs: list[SentencePair], threshold: float) -> list[dict[str, float]]:
    rows = []
    for x in pairs:
        twin = Bases(x)
        for m, word in enumerate(twin.source):
            cells = [two_words(word, other, threshold) for other in twin.target]
            best = {c: max(cell[c] for cell in cells) for c in ("identical_ci", "same_word", "max")}
            competitors = [
                max(twin.base[i][n] for i in range(twin.M)) - twin.base[m][n]
                for n in range(twin.N)
                if twin.base[m][n] > 0
            ]
            row = {
                "bias": 1, "best_identical": best["identical_ci"], "best_same": best["same_word"],
                "best_max": best["max"], "no_same": 1 - best["same_word"], "nothing_alike": best["max"] < 0.5,
                "rival": max(competitors, default=0), f"class={class_of(word)}": 1,
            }  # fmt: skip
            if not best["same_word"]:
                row[f"unmatched={class_of(word)}"] = 1
            if word.lower() in FUNCTION_WORDS or len(word.lower()) == 1:
                row[f"word={word.lower()}"] = 1
            rows.append(row)
    return rows


OWN = [
    pair("The United States of America left .", "the US and the USA left !"),
    pair("U.K. voters", "United Kingdom voters"),
    pair("Bill lent Bob 1,000 coins", "Robert owes William a thousand coins"),
    pair("a well-known Half-baked idea", "one unknown well half-done idea"),
    pair("can’t wo n't ca not %", "ca n't will not percent"),
    pair("NATION NATIONS", "North Atlantic Treaty Of The Island Of Nantucket Salt Shop"),
    pair("Stefan Smith phoned", "Steven Smyth telephoned"),
]


@pytest.mark.parametrize("threshold", [0.75, 0.3])
@pytest.mark.parametrize("seed", variants(range(3), 2))
def test_every_column_of_every_cell_equals_the_twin(seed, threshold):
    pairs = random_pairs(seed) + OWN
    blocks = blocks_of(String(threshold), Grid(pairs))
    compare(blocks.link, expected_links(pairs, threshold))
    compare(blocks.null, expected_nulls(pairs, threshold))


@pytest.mark.parametrize("seed", range(3))
def test_base_similarity_equals_the_twin(seed):
    pairs = random_pairs(seed + 50) + OWN
    grid = Grid(pairs)
    got = grid.per_cell(base_similarity)
    assert got == pytest.approx([v for x in pairs for row in Bases(x).base for v in row], abs=1e-7)


any_word = st.text(min_size=1, max_size=9)
latin = st.text("abcdest-", min_size=1, max_size=9)


@given(st.one_of(any_word, latin), st.one_of(any_word, latin))
@example("👩\u200d🔬", "👩🔬")
@example("e\u0301", "é")
@example("İ", "i̇")
@example("𝕏", "𝕐")
@example("a" * 45 + "z", "z")  # letters in common far from the start
def test_measures_equal_the_twin(a, b):
    got = dict(zip(MEASURES, similarities(word_pairs((a, b)))[0].tolist(), strict=True))
    assert got == pytest.approx(measures(a.lower(), b.lower()), abs=1e-6)
    assert all(0 <= x <= 1 for x in got.values())


@given(latin, latin)
def test_measures_agree_with_jellyfish(a, b):
    """On letters: elsewhere jellyfish counts what a reader sees as one character."""
    got = dict(zip(MEASURES, similarities(word_pairs((a, b)))[0].tolist(), strict=True))
    longest = max(len(a), len(b))
    assert got["jaro_winkler"] == pytest.approx(jellyfish.jaro_winkler_similarity(a, b), abs=1e-6)
    assert got["levenshtein"] == pytest.approx(1 - jellyfish.levenshtein_distance(a, b) / longest, abs=1e-6)
    assert got["hamming"] == pytest.approx(1 - jellyfish.hamming_distance(a, b) / longest, abs=1e-6)
    assert jaro_winkler(a, b) == pytest.approx(jellyfish.jaro_winkler_similarity(a, b))
    assert edit_distance(a, b) == jellyfish.levenshtein_distance(a, b)


parts = st.lists(
    st.sampled_from(["know", "known", "knows", "well", "x", "nat", "national", ""]), min_size=1, max_size=3
)


@given(parts.map("-".join).filter(bool), parts.map("-".join).filter(bool))
def test_same_word_is_algorithm_1(a, b):
    assert same_word_of(word_pairs((a, b)))[0] == same_word(a, b)


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        ("runs", "running", True), ("nation", "national", True), ("na", "nation", False),
        ("well-known", "known", True), ("well-known", "well-knows", True), ("well-known", "well-done", False),
        ("ex-wife", "husband", False), ("-", "x-y", False), ("a-", "a", False),
    ],
)  # fmt: skip
def test_same_word_by_hand(a, b, same):
    for left, right in ((a, b), (b, a)):
        assert same_word_of(word_pairs((left, right)))[0] == same


def test_columns_by_hand():
    pairs = [pair("Bill of the U.N.", "William the United Nations 1,000 thousand")]
    names, values = table(blocks_of(String(), Grid(pairs)).link, 24)

    def on(column: str) -> list[tuple[int, int]]:
        return [divmod(int(c), 6) for c in np.flatnonzero(values[:, names.index(column)])]

    assert on("nickname") == [(0, 0)]
    assert on("acronym") == [(3, 2), (3, 3)]
    assert on("same=the") == [(2, 1)] and on("of~the") == [(1, 1)]
    names, values = table(blocks_of(String(), Grid([pair("1,000 n't", "thousand not 7")])).link, 6)
    assert on("number_equal") == [(0, 0)] and on("number_differs") == [(0, 2)]


@pytest.mark.parametrize("seed", range(3))
def test_features_do_not_depend_on_the_batch(seed):
    assert_same_alone(String(), random_pairs(seed + 10) + OWN)


def test_swapping_the_sides_swaps_the_cells():
    """All but what is named after one side's word is symmetric."""
    pairs = random_pairs(3) + OWN
    there, back = Grid(pairs), Grid([x.flip() for x in pairs])
    names, values = table(blocks_of(String(), there).link, there.n_cells)
    other_names, other = table(blocks_of(String(), back).link, back.n_cells)
    turned = back.cell_at(there.pair, there.n, there.m)
    for name in [*MEASURES, "identical", "same_word", "max", "variant", "phonetic", "nickname", "acronym"]:
        assert np.array_equal(values[:, names.index(name)], other[turned, other_names.index(name)]), name


def test_empty_sides():
    assert_empty_sides(String())
    assert not len(Grid([]).per_cell(base_similarity))


def test_null_of_a_source_without_target():
    names, values = table(blocks_of(String(), Grid([pair("the hen", "")])).null, 2)
    row = dict(zip(names, values[1], strict=True))
    assert row["no_same"] == row["nothing_alike"] == row["unmatched=content"] == 1 and row["rival"] == 0
