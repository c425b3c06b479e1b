"""Words in Sultan et al.'s pipeline: similarity, classes, dependencies, names, hyphens."""

from __future__ import annotations

import string

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jacana_torch.systems.sultan import parsed_sentence, stages
from jacana_torch.systems.sultan.name_links import link_names
from jacana_torch.systems.sultan.parsed_sentence import parsed
from jacana_torch.systems.sultan.stages import PairState
from jacana_torch.systems.sultan.word_similarity import WordType, levels, misspelt, similarity_tables
from jacana_torch.types import Sentence


def sentence(text: str, **layers) -> Sentence:
    """Tokens as word/tag or word/tag/head/relation."""
    rows = [
        token.rsplit("/", 3) if token.count("/") > 1 else [*token.split("/"), "-1", "root"]
        for token in text.split()
    ]
    words = [row[0] for row in rows]
    return Sentence(
        tuple(words),
        {
            "pos": [row[1] for row in rows],
            "lemma": [word.lower() for word in words],
            "head": [int(row[2]) for row in rows],
            "deprel": [row[3] for row in rows],
            **layers,
        },
    )


def nothing(keys, left, right):
    return np.zeros(len(left), dtype=bool)


def everything(keys, left, right):
    return np.ones(len(left), dtype=bool)


def key(word: str, tag: str = "NN", stop: bool = False) -> WordType:
    return WordType(word, word, tag, stop, not any(c.isalnum() for c in word))


def level(one: WordType, other: WordType, paraphrases=nothing) -> int:
    return int(levels([one, other], np.array([0]), np.array([1]), paraphrases)[0])


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("harbour", "harbour", 2), ("harbours", "harbour", 2), ("u.s.", "us", 2), ("e-mail", "email", 2),
        ("1,000", "1000", 2), ("two", "2", 2), ("third", "3rd", 2), ("3rd", "3", 0), ("'98", "1998", 2),
        ("'04", "2004", 2), ("harbour", "quay", 0), ("%", "percent", 2), ("thousand", "1,000", 2),
        ("lighthuose", "lighthouse", 1), ("lake", "lane", 0),
    ],
)  # fmt: skip
def test_similarity_levels_of_two_words(one, other, expected):
    assert level(key(one), key(other)) == level(key(other), key(one)) == expected


def test_some_words_have_no_paraphrases():
    assert level(key("harbour"), key("quay"), everything) == 1
    assert level(key("harbour"), key("the", stop=True), everything) == 0
    assert level(key("seven"), key("8"), everything) == 0
    assert level(key("monday"), key("friday"), everything) == 0
    assert level(key(","), key(";"), everything) == 0
    assert level(key(","), key("quay"), everything) == level(key("quay"), key(","), everything) == 0
    assert level(key("seven"), key("several"), everything) == 1


WORD = st.text(string.ascii_lowercase[:4], min_size=4, max_size=9)


@st.composite
def slips(draw):
    """Words within a few edits of each other."""
    words = [draw(WORD)]
    for _ in range(draw(st.integers(1, 4))):
        words.append(draw(st.sampled_from(sorted(edits(words[-1])))))
    return [(word, draw(st.sampled_from(["NN", "NNP"]))) for word in words]


@given(slips())
def test_misspelt_means_one_edit_between_long_words(words):
    keys = [key(word, tag) for word, tag in words]
    left, right = (x.ravel() for x in np.indices((len(keys), len(keys))))
    found = misspelt(keys, left, right).reshape(len(keys), len(keys))
    for i, (one, tag) in enumerate(words):
        for j, (other, also) in enumerate(words):
            long = len(one) >= (5 if tag == "NNP" else 7) and len(other) >= (5 if also == "NNP" else 7)
            assert found[i, j] == (long and (one == other or other in edits(one)))


def edits(word: str) -> set[str]:
    """Every word at one edit: a letter added, lost or changed, or two adjacent letters swapped."""
    splits = [(word[:k], word[k:]) for k in range(len(word) + 1)]
    letters = string.ascii_lowercase[:4]
    return (
        {a + b[1:] for a, b in splits if b}
        | {a + c + b for a, b in splits for c in letters}
        | {a + c + b[1:] for a, b in splits if b for c in letters}
        | {a + b[1] + b[0] + b[2:] for a, b in splits if len(b) > 1}
    )


def test_tables_hold_every_pair_of_every_sentence():
    texts = ["two/CD old/JJ ships/NNS", "ship/NN", "an/DT Old/JJ ship/NN of/IN two/CD"]
    words = [parsed(sentence(text)) for text in texts]
    pairs = [(one, other) for one in words for other in words]
    for (one, other), table in zip(pairs, similarity_tables(pairs, nothing), strict=True):
        assert table.shape == (len(one), len(other))
        for i in range(len(one)):
            for j in range(len(other)):
                assert table[i, j] == similarity_tables([(one, other)], nothing)[0][i, j]
    assert similarity_tables([pairs[1]], nothing)[0].tolist() == [[0], [0], [2]]
    assert similarity_tables([], nothing) == []


def test_stop_words_depend_on_tags():
    found = parsed(sentence("Will/NNP will/MD join/VB us/PRP in/IN the/DT US/NNP ,/, May/NNP may/MD not/RB"))
    assert [
        w for w, stop in zip(found.tokens, found.stop, strict=True) if stop
    ] == "will us in the may not".split()
    assert [w for w, on in zip(found.tokens, found.content, strict=True) if on] == "Will join US May".split()


# Dependencies


def arcs(found) -> set:
    edges = zip(found.here.tolist(), found.there.tolist(), found.labels, found.down.tolist(), strict=True)
    return {(here, there, label) for here, there, label, down in edges if down}


def test_trees_of_stanford_spacy_and_ud_collapse_to_the_same_edges():
    begin = "boats/NNS/2/nsubjpass were/VBD/2/auxpass built/VBN/-1/root "
    stanford = begin + "by/IN/2/prep men/NNS/3/pobj in/IN/2/prep Oslo/NNP/5/pobj"
    spacy = begin + "by/IN/2/agent men/NNS/3/pobj in/IN/2/prep Oslo/NNP/5/pobj"
    universal = begin.replace("jpass", "j:pass").replace("xpass", "x:pass")
    universal += "by/IN/4/case men/NNS/2/obl in/IN/6/case Oslo/NNP/2/obl"
    for text in (stanford, spacy, universal):
        found = parsed(sentence(text)).edges
        assert {(2, 0, "nsubjpass"), (2, 4, "agent"), (2, 6, "prep_in")} <= arcs(found)
        assert sorted(found.markers.tolist()) == [[3, 2, 4], [5, 2, 6]]
    active = "boats/NNS/1/nsubj lay/VBD/-1/root by/IN/1/prep Oslo/NNP/2/pobj"
    assert (1, 3, "prep_by") in arcs(parsed(sentence(active)).edges)


def test_conjunctions_are_named_after_their_coordinator():
    stanford = "tea/NN/-1/root or/CC/0/cc milk/NN/0/conj"
    universal = "tea/NN/-1/root or/CC/2/cc milk/NN/0/conj"
    bare = "tea/NN/-1/root ,/,/0/punct milk/NN/0/conj"
    assert [(0, 2, "conj_or") in arcs(parsed(sentence(text)).edges) for text in (stanford, universal)] == [
        True
    ] * 2
    assert (0, 2, "conj_and") in arcs(parsed(sentence(bare)).edges)


def test_possessors_have_a_marker_and_one_edge():
    found = parsed(sentence("Ada/NNP/2/poss 's/POS/0/possessive boat/NN/-1/root")).edges
    assert found.markers.tolist() == [[1, 2, 0]]
    assert (2, 0, "poss") in arcs(found) and not any(label.startswith("prep") for *_, label in arcs(found))


def test_table_1_has_as_many_rows_as_printed():
    assert len(parsed_sentence.BOTH_PARENTS) == 8 and len(parsed_sentence.PARENT_AND_CHILD) == 15
    assert (
        parsed_sentence.table_rows("poss", 1, 1, True)[0] != parsed_sentence.table_rows("poss", 1, 1, False)[0] > 0
    )
    assert parsed_sentence.table_rows("dobj", 1, 1, True) == (0, 0, 0)  # no verb


# Names and hyphens


def linked(stage, one: Sentence, other: Sentence, links=()) -> list:
    source, target = parsed(one, "ner" in one.layers), parsed(other, "ner" in other.layers)
    board = PairState(source, target, similarity_tables([(source, target)], nothing)[0], 0.9, 0.9)
    for link in links:
        board.links[link] = True
    stage(board)
    turned = PairState(target, source, board.level.T, 0.9, 0.9)
    for i, j in links:
        turned.links[j, i] = True
    stage(turned)
    assert (turned.links.T == board.links).all()
    return [tuple(x) for x in np.argwhere(board.links).tolist()]


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("Dr./NNP Nora/NNP Quist/NNP sang/VBD", "Quist/NNP sang/VBD", [(1, 0), (2, 0)]),
        ("Nora/NNP Quist/NNP and/CC Per/NNP Quist/NNP", "Quist/NNP", []),  # which of them?
        ("Nora/NNP Quist/NNP", "Quist/NNP met/VBD Quist/NNP", []),
        ("Nora/NNP Quist/NNP", "Nora/NNP", []),
        ("Lake/NNP Mjosa/NNP", "Mjosa/NNP", []),
        ("Orebro/NNP Bears/NNPS", "Bears/NNPS", []),
        ("Quist/NNP Ltd./NNP", "Quist/NNP", [(0, 0), (1, 0)]),
        ("the/DT Northern/NNP Rope/NNP Guild/NNP", "NRG/NNP", [(1, 0), (2, 0), (3, 0)]),
        ("Guild/NNP of/IN Rope/NNP", "GR/NNP", []),  # two names by their tags
        ("Northern/NNP Rope/NNP Guild/NNP -LRB-/-LRB- NRG/NNP -RRB-/-RRB-", "NRG/NNP", []),
        ("Northern/NNP Rope/NNP Guild/NNP ,/, New/NNP River/NNP Gas/NNP", "NRG/NNP", []),  # which of them?
    ],
)
def test_names_and_their_parts(one, other, expected):
    assert linked(link_names, sentence(one), sentence(other)) == expected


def test_names_from_the_entity_layer():
    full = sentence("Guild/NNP of/IN Rope/NNP", ner=["B-ORG", "I-ORG", "I-ORG"])
    short = sentence("GR/NNP", ner=["B-ORG"])
    assert linked(link_names, full, short) == [(0, 0), (2, 0)]
    person = sentence("Lake/NNP Mjosa/NNP", ner=["B-PERSON", "I-PERSON"])
    assert linked(link_names, person, sentence("Mjosa/NNP", ner=["B-PERSON"])) == [(0, 0), (1, 0)]
    day = sentence("Second/NNP Quarter/NNP", ner=["B-DATE", "I-DATE"])
    assert linked(link_names, day, sentence("SQ/NNP", ner=["B-DATE"])) == []


def test_words_with_hyphens_and_without():
    whole, parts = sentence("a/DT three-mast-ship/NN"), sentence("of/IN three/CD mast/NN")
    assert linked(stages.link_hyphenated, whole, parts) == [(1, 1), (1, 2)]
    assert linked(stages.link_hyphenated, whole, parts, [(0, 1)]) == [
        (0, 1)
    ]  # one part is linked already, and one is too few
    assert linked(stages.link_hyphenated, sentence("-/: --/:"), sentence("-/: a/DT")) == []


def test_last_part_of_a_compound_needs_similar_context():
    one, other = sentence("tall/JJ sailing-ship/NN"), sentence("tall/JJ ship/NN")
    assert linked(stages.link_compounds, one, other, [(0, 0)]) == [(0, 0), (1, 1)]
    assert linked(stages.link_compounds, one, sentence("ship/NN")) == []
    assert linked(stages.link_compounds, one, sentence("tall/JJ sailing/NN"), [(0, 0)]) == [(0, 0)]


def runs_in_loops(same: np.ndarray) -> set:
    found = set()
    for i, j in np.argwhere(same).tolist():
        if i and j and same[i - 1, j - 1]:
            continue
        length = 1
        while i + length < same.shape[0] and j + length < same.shape[1] and same[i + length, j + length]:
            length += 1
        found.add((i, j, length))
    return found


@given(st.integers(0, 7), st.integers(0, 7), st.randoms(use_true_random=False))
def test_runs_agree_with_loops_over_diagonals(m, n, random):
    same = np.array([[random.random() < 0.5 for _ in range(n)] for _ in range(m)], dtype=bool).reshape(m, n)
    assert set(zip(*(x.tolist() for x in stages.diagonal_runs(same)), strict=True)) == runs_in_loops(same)
