"""The approximate parse: every token against a twin in plain Python, and sentences by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from parse_twin import parsed

from jacana_torch.features.approximate_parse import (
    AUXILIARIES,
    MARKS,
    RELATIONS,
    approximate_parse,
    kinds_of_tags,
)

TAGS = """DT PDT PRP$ POS CD $ JJ JJR NN NNS NNP VB VBD VBN VBG VBZ MD TO IN IN CC RB RP WRB PRP WP WDT EX UH , .
`` -LRB-""".split()
WORDS = ["Is", "was", "have", "been", "do", "that", "If", "of", "cat", "'s"]


def sentences(longest: int = 12) -> st.SearchStrategy[list[tuple[str, str]]]:
    return st.lists(st.tuples(st.sampled_from(TAGS), st.sampled_from(WORDS)), max_size=longest)


def of(*sentences: list[tuple[str, str]]) -> tuple[np.ndarray, np.ndarray]:
    tags = [tag for some in sentences for tag, _ in some]
    words = [word for some in sentences for _, word in some]
    number = np.repeat(np.arange(len(sentences)), [len(some) for some in sentences])
    auxiliary, mark = (np.array([word.lower() in group for word in words], bool) for group in (AUXILIARIES, MARKS))
    return approximate_parse(kinds_of_tags(zip(tags)), auxiliary, mark, number)


@settings(max_examples=150)
@given(st.lists(sentences(), max_size=5))
def test_every_head_and_relation_equals_the_twin(several):
    (found, relations), start = of(*several), 0
    for own in several:
        heads, names = parsed([tag for tag, _ in own], [word for _, word in own])
        inside = slice(start, start + len(own))
        assert [head - start if head >= 0 else -1 for head in found[inside].tolist()] == heads
        assert [RELATIONS[k] for k in relations[inside].tolist()] == names
        start += len(own)
    assert start == len(found)


@given(st.lists(sentences(6), min_size=1, max_size=4))
def test_heads_stay_in_their_sentences_and_every_sentence_has_one_root(several):
    head, _ = of(*several)
    number = np.repeat(np.arange(len(several)), [len(own) for own in several])
    inner = head >= 0
    assert (number[head[inner]] == number[inner]).all()
    assert (head != np.arange(len(number))).all()
    assert np.bincount(number[~inner], minlength=len(several)).tolist() == [int(bool(own)) for own in several]


def by_hand(text: str) -> list[str]:
    """`word/TAG ...` to `word relation head`."""
    pairs = [word.rsplit("/", 1)[::-1] for word in text.split()]
    heads, relations = of([(tag, word) for tag, word in pairs])
    words = [word for _, word in pairs]
    return [
        f"{word} {RELATIONS[relation]} {words[head] if head >= 0 else '-'}"
        for word, head, relation in zip(words, heads.tolist(), relations.tolist(), strict=True)
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "The/DT very/RB old/JJ mill/NN burned/VBD down/RP ./.",
            "The det mill, very amod mill, old amod mill, mill nsubj burned, burned root -, down advmod burned, "
            ". punct burned",
        ),
        (
            "my/PRP$ sister/NN 's/POS new/JJ boat/NN",
            "my poss sister, sister poss boat, 's case sister, new amod boat, boat root -",
        ),
        (
            "Ann/NNP could/MD not/RB have/VB seen/VBN two/CD geese/NNS",
            "Ann nsubj seen, could aux seen, not advmod seen, have aux seen, seen root -, two num geese, "
            "geese dobj seen",
        ),
        (
            "It/PRP could/MD have/VB been/VBN being/VBG built/VBN",
            "It nsubj built, could aux built, have aux built, been aux built, being aux built, built root -",
        ),
        (  # from five auxiliaries on, the first ones depend on another auxiliary
            "It/PRP could/MD have/VB been/VBN being/VBG been/VBN built/VBN",
            "It nsubj built, could aux been, have aux built, been aux built, being aux built, been aux built, "
            "built root -",
        ),
        (
            "a/DT map/NN of/IN Crete/NNP and/CC Rhodes/NNP",
            "a det map, map root -, of prep map, Crete pobj of, and cc Crete, Rhodes conj Crete",
        ),
        (
            "They/PRP hope/VBP to/TO sell/VB it/PRP because/IN prices/NNS rise/VBP",
            "They nsubj hope, hope root -, to aux sell, sell xcomp hope, it dobj sell, because mark rise, "
            "prices nsubj rise, rise ccomp sell",
        ),
        (
            "the/DT man/NN who/WP sang/VBD left/VBD",
            "the det man, man nsubj sang, who nsubj sang, sang root -, left ccomp sang",
        ),
    ],
)
def test_sentences_by_hand(text, expected):
    assert by_hand(text) == expected.split(", ")


def test_no_sentence_has_no_heads():
    for heads, relations in (of(), of([], [])):
        assert heads.tolist() == relations.tolist() == []
