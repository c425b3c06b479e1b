"""MANLI's features of every edit against their definitions in plain Python; similarity; gold edits."""

from __future__ import annotations

from collections import Counter
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from manli_twin import alignments, tokens
from templates import corpus
from variants import variants

from jacana_torch import resources
from jacana_torch.errors import ConfigError, MissingLayer
from jacana_torch.systems.manli import phrase_similarity
from jacana_torch.systems.manli.edit_features import LARGE, LEVELS, Extractor, constituents
from jacana_torch.systems.manli.manli import SPURIOUS, links_of, reachable
from jacana_torch.systems.manli.phrase_similarity import (
    SAME_WORD,
    Entries,
    Similarity,
    Word,
    acronym_of,
    spans_of,
    words_of,
)
from jacana_torch.types import Alignment, Sentence, SentencePair

PLAIN = Similarity(wordnet=False, vectors=None)
SEED = st.integers(0, 2**32 - 1)


def sentence(*tagged: str) -> Sentence:
    """Parse `word/tag` or `word/tag/lemma`; the default lemma is the lower-case word."""
    rows = [token.rsplit("/", token.count("/")) for token in tagged]
    lemmas = [row[2] if len(row) > 2 else row[0].lower() for row in rows]
    return Sentence(tuple(row[0] for row in rows), {"pos": [row[1] for row in rows], "lemma": lemmas})


def pair_of(source: str, target: str) -> SentencePair:
    return SentencePair(sentence(*source.split()), sentence(*target.split()))


PAIR = pair_of(
    "The/DT dogs/NNS/dog were/VBD/be barking/VBG/bark loudly/RB in/IN the/DT long/JJ street/NN ./.",
    "A/DT dog/NN was/VBD/be barking/VBG/bark in/IN the/DT street/NN loudly/RB ./.",
)
PAIRS = [PAIR, *[e.pair for e in corpus(4)]]


@cache
def alike(x: Word, y: Word) -> float:
    return float(PLAIN.of([x, y], np.array([0]), np.array([1]))[0])


def by_definition(pair: SentencePair, similarity: float, edit: tuple) -> Counter:
    """The features of one edit by definition (§4.2), given the similarity of its phrases."""
    (i, a), (j, b) = edit
    sides = (pair.source, pair.target)
    lemma = [[str(x).lower() for x in s.layer("lemma")] for s in sides]
    form = [[t.lower() for t in s.tokens] for s in sides]
    m, n = len(sides[0]), len(sides[1])
    out: Counter = Counter()

    def equal(x: int, y: int) -> bool:
        return 0 <= x < m and 0 <= y < n and lemma[0][x] == lemma[1][y]

    is_eq = lemma[0][i : i + a] == lemma[1][j : j + b]
    kind = "EQ" if is_eq else "SUB"
    out[f"type.{kind}"] = 1
    if is_eq and form[0][i : i + a] != form[1][j : j + b]:
        out["EQ.other_form"] = 1
    matching = 0
    words = [words_of(s) for s in sides]
    for side, x, y, edge in (("left", i - 1, j - 1, (-1, -1)), ("right", i + a, j + b, (m, n))):
        if (x, y) == edge or equal(x, y):
            out[f"{kind}.{side}.equal"], matching = 1, matching + 1
        elif 0 <= x < m and 0 <= y < n:
            if alike(words[0][x], words[1][y]) >= 0.5:
                out[f"{kind}.{side}.similar"], matching = 1, matching + 1
    for name, s, first, size in (("source", sides[0], i, a), ("target", sides[1], j, b)):
        spans = spans_of(len(s), size)
        if not constituents(s, spans)[spans.where[first, size - 1]]:
            out[f"no_constituent.{name}"] = 1
    out[f"size.{min(a, LARGE)}x{min(b, LARGE)}"] = 1
    if not is_eq:
        out["similarity"], out["similarity*neighbours"] = similarity, similarity * matching
        out.update({f"similarity>{level}": 1 for level in LEVELS if similarity > level})
    else:
        further = [(i - d, j - d) for d in (2, 3)] + [(i + a - 1 + d, j + b - 1 + d) for d in (2, 3)]
        out["EQ.further_neighbours"] = sum(equal(*cell) for cell in further)
    out["skipping_neighbours"] = (equal(i - 1, j - 2) or equal(i - 2, j - 1)) + (
        equal(i + a, j + b + 1) or equal(i + a + 1, j + b)
    )
    out["distortion"] = abs((i + a / 2) / m - (j + b / 2) / n)
    out["type.DEL"], out["type.INS"] = -a, -b
    return out


def similarity_by_definition(pair: SentencePair, edit: tuple) -> float:
    """The mean of a phrase's words' best similarity in the other phrase; the lower of both means."""
    (i, a), (j, b) = edit
    words = words_of(pair.source)[i : i + a], words_of(pair.target)[j : j + b]

    covered = [sum(max(alike(x, y) for y in other) for x in own) / len(own) for own, other in (words, words[::-1])]
    return min(covered)


@pytest.mark.parametrize("longest", variants([4, 1, 2]))
@pytest.mark.parametrize("number", range(len(PAIRS)))
def test_every_edit_has_the_features_of_its_definition(number, longest):
    pair = PAIRS[number]
    extract = Extractor(PLAIN, longest)
    problem, columns = extract([pair])[0], extract.columns
    weights = np.random.default_rng(number).normal(size=len(columns.names))
    gains = columns.gains(problem, weights)
    words = [(words_of(pair.source), words_of(pair.target))]
    known = {(s, t): value for s, t, value in Entries(False).found([pair], words, longest)[0]}  # tested below
    for s, t in np.ndindex(gains.shape):
        edit = tuple(
            (int(spans.start[k]), int(spans.length[k])) for spans, k in ((problem.source, s), (problem.target, t))
        )
        found = dict(zip(columns.names, columns.features(problem, [(s, t)]).tolist(), strict=True))
        similarity = max(known.get((s, t), 0.0), similarity_by_definition(pair, edit))
        expected = by_definition(pair, similarity, edit)
        expected = {name: expected[name] for name in columns.names}
        assert found == pytest.approx(expected, abs=1e-5)
        assert gains[s, t] == pytest.approx(weights @ list(found.values()), abs=1e-9)


def test_features_of_an_alignment_sum_those_of_its_edits():
    extract = Extractor(PLAIN, 3)
    problem, columns = extract([PAIR])[0], extract.columns
    weights = np.random.default_rng(1).normal(size=len(columns.names))
    edits = [(0, 0), (1, 1), (5, 4)]
    together = columns.features(problem, edits)
    assert together == pytest.approx(sum(columns.features(problem, [edit]) for edit in edits))
    delete, insert = (weights[columns.number[name]] for name in ("type.DEL", "type.INS"))
    assert columns.base(problem, weights) == pytest.approx(10 * delete + 9 * insert)


def test_features_do_not_depend_on_other_pairs():
    extract = Extractor(PLAIN, 3)
    together = extract(PAIRS)
    for pair, among in zip(PAIRS, together, strict=True):
        alone = Extractor(PLAIN, 3)([pair])[0]
        for name in ("code", "similarity", "further", "skipping"):
            assert (getattr(alone, name) == getattr(among, name)).all()
    assert extract([]) == []


def test_missing_layers_are_errors():
    with pytest.raises(MissingLayer, match="lemma"):
        Extractor(PLAIN, 2)([SentencePair(Sentence(("a",), {"pos": ("DT",)}), PAIR.target)])


# Similarity


def like(a: str, b: str, similarity: Similarity = PLAIN) -> float:
    words = [Word(*(x.split("/") * 2)[:2]) for x in (a, b)]
    one, other = (float(similarity.of(words, np.array(x), np.array(y))[0]) for x, y in (([0], [1]), ([1], [0])))
    assert one == other and 0 <= one <= 1
    return one


def test_equal_lemmas_are_most_similar_then_other_forms_of_a_word():
    assert like("went/go", "go/go") == 1.0
    assert like("colours", "colour") >= SAME_WORD and like("u.s.", "us") == SAME_WORD
    assert like("1,000", "1000") == SAME_WORD and like("bill", "william") == SAME_WORD
    assert like("organise", "organize") > 0.8
    assert like("of", "or") == 0 and like("table", "murder") == 0


def test_rounding_does_not_change_the_similarity(monkeypatch):
    words = [Word(form, form) for form in ("organise", "organize", "organised", "colour", "collar")]
    left, right = (side.ravel() for side in np.indices((len(words), len(words))))
    expected, spelling = PLAIN.of(words, left, right), phrase_similarity._spelling
    monkeypatch.setattr(phrase_similarity, "_spelling", lambda *words: spelling(*words) * (1 + 1e-12))
    assert ((0 < expected) & (expected < SAME_WORD)).any()
    assert (PLAIN.of(words, left, right) == expected).all()


@pytest.mark.parametrize("name", ["wordnet", "glove-840b", "mwa-ppdb"])
def test_resources_add_to_spelling(name):
    if not resources.available(name):
        pytest.skip(f"the resource {name} is not on this machine")
    given = {"wordnet": {"wordnet": True}, "glove-840b": {"vectors": name}, "mwa-ppdb": {"ppdb": True}}[name]
    similarity = Similarity(**{"wordnet": False, "vectors": None, **given})
    assert similarity.resources == (name,)
    assert like("buy", "purchase") < 0.2 < like("buy", "purchase", similarity)


def test_resources_are_declared_and_an_empty_name_is_an_error():
    assert Similarity(True, "glove-6b", True).resources == ("glove-6b", "mwa-ppdb", "wordnet")
    assert PLAIN.resources == () and Similarity(False, "/a/file.txt").resources == ()
    with pytest.raises(ConfigError, match="vectors"):
        Similarity(vectors="")


def similarity_of(pair: SentencePair, source: str, target: str, similarity: Similarity = PLAIN) -> float:
    """The similarity of two phrases of a pair, from the features."""
    problem = Extractor(similarity, 4)([pair])[0]
    numbers = []
    for side, spans, text in ((pair.source, problem.source, source), (pair.target, problem.target, target)):
        words = text.split()
        first = next(i for i in range(len(side)) if list(side.tokens[i : i + len(words)]) == words)
        numbers.append(spans.where[first, len(words) - 1])
    return float(problem.similarity[tuple(numbers)])


def test_names_acronyms_and_words_written_apart():
    pair = pair_of(
        "The/DT World/NNP Food/NNP Board/NNP thanked/VBD Maria/NNP Rossi/NNP by/IN e-mail/NN ./.",
        "Rossi/NNP got/VBD an/DT e/NN mail/NN from/IN the/DT WFB/NNP ./.",
    )
    assert similarity_of(pair, "World Food Board", "WFB") == pytest.approx(0.9)
    assert similarity_of(pair, "Maria Rossi", "Rossi") == pytest.approx(0.85)
    assert similarity_of(pair, "e-mail", "e mail") == pytest.approx(0.9)
    assert similarity_of(pair, "by e-mail", "e mail") < 0.9
    flipped = pair.flip()
    assert similarity_of(flipped, "WFB", "World Food Board") == pytest.approx(0.9)
    assert similarity_of(flipped, "Rossi", "Maria Rossi") == pytest.approx(0.85)


def test_a_name_with_two_words_in_the_other_sentence_is_not_shortened():
    pair = pair_of("Maria/NNP Rossi/NNP left/VBD", "Rossi/NNP saw/VBD Maria/NNP leave/VB")
    assert similarity_of(pair, "Maria Rossi", "Rossi") == 0.5


def test_entries_of_several_words_are_looked_up():
    if not resources.available("wordnet"):
        pytest.skip("the resource wordnet is not on this machine")
    pair = pair_of("She/PRP gave/VBD/give up/RP smoking/NN", "She/PRP quit/VBD smoking/NN")
    assert similarity_of(pair, "gave up", "quit", Similarity(True, None)) >= 0.6
    assert similarity_of(pair, "gave up", "quit") == 0


def test_acronyms():
    assert acronym_of("UN", ["United", "Nations"]) and acronym_of("U.N.", ["United", "Nations"])
    assert acronym_of("DOT", ["Department", "of", "Old", "Trees"])
    assert not acronym_of("UN", ["united", "nations"]) and not acronym_of("A", ["Anna"])
    assert not acronym_of("DO", ["of", "Department", "Old"]) and not acronym_of("un", ["United", "Nations"])


@pytest.mark.parametrize(
    ("phrase", "is_one"),
    [
        ("old/JJ man/NN", True), ("the/DT old/JJ man/NN", True), ("man/NN old/JJ", False),
        ("in/IN town/NN", False), ("gave/VBD up/RP", True), ("was/VBD killed/VBN", True),
        ("very/RB few/JJ", True), ("up/RP gave/VBD", False),
        ("to/TO give/VB", False), ("and/CC", True), ("man/NN ,/,", False),
    ],
)  # fmt: skip
def test_base_phrases_are_constituents(phrase, is_one):
    words = sentence(*phrase.split())
    spans = spans_of(len(words), 3)
    assert bool(constituents(words, spans)[-1]) is is_one


# Gold as edits


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 4), st.integers(1, 3), SEED)
def test_reachable_gold_is_the_nearest_alignment(m, n, seed):
    random = np.random.default_rng(seed)
    pair = SentencePair(
        *(sentence(*[f"{c}{k}{c * 9}/NN" for k in range(size)]) for c, size in (("x", m), ("y", n)))
    )
    gold = frozenset((i, j) for i in range(m) for j in range(n) if random.random() < 0.4)
    problem = Extractor(PLAIN, 3)([pair])[0]
    found = links_of(reachable(Alignment(m, n, gold), problem), problem)

    def worth(links: frozenset) -> float:
        return len(links & gold) - SPURIOUS * len(links - gold)

    def links(edit: tuple) -> set:
        (i, a), (j, b) = edit
        return {(x, y) for x in range(i, i + a) for y in range(j, j + b)}

    def whole(edit: tuple) -> bool:  # every token of both phrases has a link
        (_, a), (_, b) = edit
        return tuple(len({link[k] for link in links(edit) & gold}) for k in (0, 1)) == (a, b)

    every = [frozenset().union(*map(links, edits)) for edits in alignments(m, n, 3) if all(map(whole, edits))]
    assert found in every
    assert worth(found) == pytest.approx(max(map(worth, every)), abs=0.02)  # similarity breaks ties only


def edits_of(gold: set, source: str, target: str, longest: int = 3) -> set:
    pair = pair_of(source, target)
    problem = Extractor(PLAIN, longest)([pair])[0]
    found = reachable(Alignment(len(pair.source), len(pair.target), frozenset(gold)), problem)
    sides = (problem.source, problem.target)
    plain = {tuple((int(s.start[k]), int(s.length[k])) for s, k in zip(sides, e, strict=True)) for e in found}
    assert sum(len(tokens(e, 99)) for e in plain) == len(set().union(*(tokens(e, 99) for e in plain)))
    return plain


def test_contiguous_links_become_phrases():
    assert edits_of({(0, 0), (1, 0)}, "a/NN b/NN", "c/NN") == {((0, 2), (0, 1))}
    assert edits_of({(0, 0), (0, 1), (1, 1)}, "a/NN b/NN", "c/NN d/NN") == {((0, 2), (0, 2))}  # nearly a block
    assert edits_of({(0, 0), (1, 1)}, "a/NN b/NN", "c/NN d/NN") == {((0, 1), (0, 1)), ((1, 1), (1, 1))}


def test_the_most_similar_of_separate_links_is_kept():
    source = "blackbird/NN and/CC bird/NN"
    assert edits_of({(0, 0), (2, 0)}, source, "birds/NNS") == {((2, 1), (0, 1))}
    assert edits_of({(0, 0), (2, 0)}, source, "blackbirds/NNS") == {((0, 1), (0, 1))}


def test_phrases_that_are_too_long_are_cut():
    links = {(i, 0) for i in range(4)}
    assert {e[0][1] for e in edits_of(links, "a/NN b/NN c/NN d/NN", "e/NN", 2)} == {2}
