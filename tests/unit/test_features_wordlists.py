"""Word lists: numbers, classes, spelling variants and stems, each against a second reading of the same rules."""

from __future__ import annotations

import pytest
from feature_twin import WORDS, class_of, number_of, variant
from hypothesis import example, given
from hypothesis import strategies as st
from nltk.stem.snowball import EnglishStemmer

from jacana_torch.features import wordlists as lists

numeric = st.text("0123456789,.+-%stndrh", min_size=1, max_size=9)


@given(st.one_of(numeric, st.text(max_size=6), st.sampled_from(WORDS)))
@example("1,000,000.50%")
@example("1,00")
@example("-.5")
@example("22nds")
@example("1990s")
@example("1st")
@example("٣")  # a digit, but not ours
def test_numbers(word):
    assert lists.number_value(word.lower()) == number_of(word.lower())


def test_number_words():
    said = "zero one two three four five six seven eight nine ten eleven twelve".split()
    assert [lists.number_value(w) for w in said] == list(range(13))
    assert lists.number_value("1,000") == lists.number_value("thousand") == lists.number_value("1000.0") == 1000
    assert lists.number_value("3rd") == lists.number_value("third") == 3
    tens = "twenty thirty forty fifty sixty seventy eighty ninety hundred".split()
    assert [lists.number_value(w) for w in tens] == list(range(20, 101, 10))
    assert [lists.number_value(w) for w in ("million", "billion", "trillion")] == [1e6, 1e9, 1e12]


@given(st.one_of(st.text(min_size=1, max_size=6), st.sampled_from(WORDS)))
def test_word_classes(word):
    assert lists.word_class(word) == class_of(word) and lists.word_class(word) in lists.WORD_CLASSES


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("...", "punct"), ("😀", "punct"), ("1,000", "number"), ("Seven", "number"), ("The", "function"),
        ("n't", "function"), ("Paula", "name"), ("Élan", "name"), ("barn", "content"), ("中", "content"),
    ],
)  # fmt: skip
def test_classes_by_hand(word, kind):
    assert lists.word_class(word) == kind


@pytest.mark.parametrize(
    ("word", "plain"),
    [
        ("u.s.", "us"),
        ("n't", "not"),
        ("%", "percent"),
        ("...", "..."),
        (".", "."),
        ("sept.", "september"),
        ("ox", "ox"),
        ("1.5", "1.5"),
    ],
)
def test_variants(word, plain):
    assert lists.variant(word) == plain == variant(word)


def test_nicknames_are_pairs_of_lower_case_words():
    assert all(len(pair) == 2 and all(w.islower() for w in pair) for pair in lists.NICKNAMES)
    assert frozenset(("bill", "william")) in lists.NICKNAMES
    assert {frozenset(("pat", "patrick")), frozenset(("pat", "patricia"))} <= lists.NICKNAMES


def test_lists_are_lower_case_and_closed_under_variants():
    for words in (lists.FUNCTION_WORDS, lists.NEGATIONS, lists._NUMBER_WORDS, lists._VARIANTS):
        assert all(w == w.lower() for w in words)
    assert all(lists.variant(plain) == plain for plain in lists._VARIANTS.values())


def test_stems_as_nltk_has_them():
    words = """running runs nationality nations cats happily generously relational conditional the sky dying cried
    agreed hopping hoping walked abilities vision skies news proceed""".split()
    oracle = EnglishStemmer()
    assert [lists.stem(w) for w in words] == [oracle.stem(w) for w in words]
    assert lists.stem("") == ""
