"""Matching forms: which spellings are equal, which stay different, idempotence."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jacana_torch.annotate.tokens import matching_form, unescaped

SAME = {
    "(": ("-LRB-", "-lrb-"),
    ")": ("-RRB-", "-rrb-"),
    "[": ("-LSB-",),
    "]": ("-RSB-",),
    "{": ("-LCB-",),
    "}": ("-RCB-",),
    '"': ("``", "''", "“", "”", "„", "«", "»", "‘‘", "’’"),
    "'": ("`", "‘", "’"),
    "don't": ("don’t",),
    "'s": ("’s",),
    "-": ("--", "—", "–", "―", "---", "−"),
    "well-known": ("well‑known",),
    "...": ("…",),
    "1/2": ("1\\/2",),
    "*": ("\\*",),
    "caf\u00e9": ("cafe\u0301",),
    "sofa": ("so\u00adfa",),
}


@pytest.mark.parametrize("form", SAME)
def test_spellings_of_one_word(form):
    assert {matching_form(spelling) for spelling in (form, *SAME[form])} == {form}


@pytest.mark.parametrize(
    "token", ["Word", "word", "$", "rock'n'roll", "U.S.", "-based", "a--b", "C:\\dir", "👩\u200d💻"]
)
def test_other_tokens_stay(token):
    assert matching_form(token) == token


def test_different_words_stay_different():
    for words in (("(", ")"), ("Polish", "polish"), ("'", '"'), (".", "..."), ("-", "_"), ("re-sign", "resign")):
        assert len({matching_form(word) for word in words}) == len(words)


@given(
    st.text(
        alphabet=st.characters(exclude_categories=("Cs",)) | st.sampled_from("`'-’“\\/*\u00ad\ufeff"), min_size=1
    )
)
def test_stable_and_never_empty(token):
    form = matching_form(token)
    assert form and matching_form(form) == form


def test_time_is_linear_in_the_length():
    """Twenty thousand backslashes took more than a second."""

    def seconds(token: str) -> float:
        begun = time.process_time()
        for _ in range(5):
            matching_form.__wrapped__(token)
        return time.process_time() - begun

    for piece in ("\\", "-", "\u00ad", "’", "\\/"):
        assert seconds(piece * 40_000) < 10 * max(seconds(piece * 10_000), 0.005), piece


def test_the_cache_is_bounded():
    assert matching_form.cache_info().maxsize and unescaped.cache_info().maxsize


def test_unescaped_touches_brackets_and_apostrophes_alone():
    assert [unescaped(token) for token in ("-LRB-", "-rsb-", "don’t", "``", "''", "--", "“")] == [
        "(", "]", "don't", "``", "''", "--", "“",
    ]  # fmt: skip
