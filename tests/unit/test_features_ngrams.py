"""Shared n-grams against Python's sets of strings."""

from __future__ import annotations

import pytest
from feature_twin import grams, word_pairs
from hypothesis import example, given
from hypothesis import strategies as st

from jacana_torch.features.string_similarity import shared_ngrams

ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789"
word = st.one_of(
    st.text(min_size=1, max_size=6),
    st.text("abc", min_size=1, max_size=50),  # grams repeat
    st.text("aé\u0301😀👩\u200d🔬\U0010ffff\x00İß", min_size=1, max_size=9),
    st.builds(lambda a, b: ALPHABET[a : a + b], st.integers(0, 9), st.integers(1, 27)),  # they do not
    st.just(""),
)
pairs = st.lists(st.tuples(word, word), max_size=12)


def check(both: list[tuple[str, str]], n: int) -> None:
    shared, left, right = (x.tolist() for x in shared_ngrams(word_pairs(*both), n))
    sets = [(grams(a.lower(), n), grams(b.lower(), n)) for a, b in both]
    assert shared == [len(a & b) for a, b in sets]
    assert left == [len(a) for a, _ in sets] and right == [len(b) for _, b in sets]


@given(pairs, st.sampled_from([2, 3, 4]))
@example([("a", "a\x00"), ("ab", "ab\x00"), ("\x00", "")], 3)
@example([("\U0010ffff" * 3, "\U0010ffff" * 5)], 2)
@example([("\ud800a", "\ud800ab")], 2)
@example([("THE", "the"), ("İ", "i̇")], 2)
def test_counts_are_those_of_sets(both, n):
    check(both, n)


@pytest.mark.parametrize("n", [2, 3, 4])
def test_any_number_of_ngrams(n):
    """Words of 1 to 30 n-grams against one another, at every offset: each way of comparing, and between them."""
    later = [ALPHABET[j : j + m] for j in (0, 1, 8) for m in range(1, 27)]
    check([(ALPHABET[:k], other) for k in range(1, 34, 3) for other in later], n)
    check([(ALPHABET[:k].title(), other.upper()) for k in range(1, 34, 3) for other in later], n)


def test_more_pairs_than_are_compared_at_once():
    words = [f"{a}{b}{c}" for a in "abcdefgh" for b in "abcdefgh" for c in "abcdefgh"]
    check([(a, b) for a in words[::4] for b in words[::7]], 2)
    check([(a * 3 + "xyzuvw", b * 3 + "xyzuvw") for a in words[::4] for b in words[::7]], 3)


def test_no_pairs():
    assert [len(x) for x in shared_ngrams(word_pairs(), 2)] == [0, 0, 0]
