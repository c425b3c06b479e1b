"""The tokenizer: what is split, what stays whole, that nothing is lost, and linear time."""

from __future__ import annotations

import random
import time
import unicodedata
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from variants import variants

from jacana_torch.annotate.tokens import spans, tokenize, tokenized
from jacana_torch.types import Sentence, SentencePair

# Each line is a text and its tokens, with | between them.
EXAMPLES = """
I can't, won't and don't.                     => I|ca|n't|,|wo|n't|and|do|n't|.
She’s sure they'd've gone; we'll see.         => She|’s|sure|they|'d|'ve|gone|;|we|'ll|see|.
HE DIDN'T. I'm, you're                        => HE|DID|N'T|.|I|'m|,|you|'re
You cannot, gonna, wanna; 'tis so             => You|can|not|,|gon|na|,|wan|na|;|'t|is|so
The dogs' bowls and O'Brien's rock'n'roll     => The|dogs|'|bowls|and|O'Brien|'s|rock'n'roll
It paid $1,000.50 (about 3.5% less).          => It|paid|$|1,000.50|(|about|3.5|%|less|)|.
US$5 or €40, -5 and .25 and +3                => US$|5|or|€|40|,|-5|and|.25|and|+3
At 10:30 a.m. on 3/4/2021, the '90s           => At|10:30|a.m.|on|3/4/2021|,|the|'90s
A well-known co-owner's 45-year-old barn      => A|well-known|co-owner|'s|45-year-old|barn
pre- and post-war                             => pre-|and|post-war
Wait -- what—no… really...                    => Wait|--|what|—|no|…|really|...
Mr. and Mrs. Ito of the U.S. saw Dr. J. Poe.  => Mr.|and|Mrs.|Ito|of|the|U.S.|saw|Dr.|J.|Poe|.
Acme Corp. is U.S.-based, e.g. in St. Paul    => Acme|Corp.|is|U.S.-based|,|e.g.|in|St.|Paul
No. 5 said no. So did I. Then?!               => No.|5|said|no|.|So|did|I|.|Then|?|!
"Yes," 'no' “maybe” ‘so’ ``ok''               => "|Yes|,|"|'|no|'|“|maybe|”|‘|so|’|``|ok|''
See http://example.org/a_(b)?c=1, (www.x.io). => See|http://example.org/a_(b)?c=1|,|(|www.x.io|)|.
Mail jo.b+x@mail.example.org.                 => Mail|jo.b+x@mail.example.org|.
Use v2.0 of file.txt.Then AT&T and/or &amp;   => Use|v2.0|of|file.txt|.|Then|AT&T|and/or|&amp;
#tag @user #1 :-) :( ==== !!                  => #tag|@user|#|1|:-)|:(|====|!|!
-LRB- it 's -RRB- do n't ` a '                => -LRB-|it|'s|-RRB-|do|n't|`|a|'
café cafe\u0301 nai\u0308ve Ångström          => café|cafe\u0301|nai\u0308ve|Ångström
e\u0301. \u0301x                              => e\u0301|.|\u0301|x
👩\u200d💻👍🏽 🇫🇷🇯🇵 ❤\ufe0f! ok🎉               => 👩\u200d💻|👍🏽|🇫🇷|🇯🇵|❤\ufe0f|!|ok|🎉
so\u00adfa a\u200bb \ufeffc\u00a0d\u2003e\x07f    => so\u00adfa|a|b|c|d|e|f
नमस्ते दुनिया                                        => नमस्ते|दुनिया
"""
CASES = [
    [part.strip().encode("raw_unicode_escape").decode("raw_unicode_escape") for part in line.split("=>")]
    for line in EXAMPLES.strip().splitlines()
]


@pytest.mark.parametrize(("text", "tokens"), CASES)
def test_examples(text, tokens):
    assert tokenize(text) == tuple(tokens.split("|"))


@pytest.mark.parametrize(("text", "tokens"), CASES)
def test_tokens_are_tokens_again(text, tokens):
    """Text that has been tokenised already keeps its tokens."""
    assert tokenize(" ".join(tokens.split("|"))) == tuple(tokens.split("|"))


def test_nothing():
    assert tokenize("") == tokenize(" \t\n\u200b ") == () and spans("  ") == []


NASTY = st.text(
    alphabet=st.one_of(
        st.characters(),
        st.sampled_from(list("ab.,'’-&/:@#$()1 \n\u0301\u200d\ufe0f\u200b\u00ad👩💻🏽🇫🇷")),
    ),
    max_size=60,
)
PIECES = st.lists(
    st.sampled_from(
        ["can't", "http://", "www.", "a@b.c", "(", ")", ".", "'s", "U.S.", "1,0", "n't", " ", "--", "é", "&"]
    ),
    max_size=20,
).map("".join)


@given(st.one_of(NASTY, PIECES))
def test_offsets_cover_all_visible_characters(text):
    at = 0
    between = []
    for start, end in spans(text):
        assert at <= start < end
        between.append(text[at:start])
        at = end
    between.append(text[at:])
    for character in "".join(between):
        assert character.isspace() or unicodedata.category(character) in ("Cc", "Cf", "Zs", "Zl", "Zp")
    tokens = tokenize(text)
    assert tokens == tuple(text[start:end] for start, end in spans(text))
    assert not any(character.isspace() for token in tokens for character in token)
    assert tokens == tokenize(text)


def test_patterns_that_look_across_blanks():
    """Every pattern that looks back or ahead, beside what it looks for, across one or several blanks."""
    left = ["No.", "A.", "I.", "(B.", "Mr.", "pre-", "x)", "-", "cannot", "PhD", "e\u0301."]
    right = ["and", "or", "to", "Ito", "5", ".25", "-5", "+", ":-)", "cannot", "PhD", "and-or", "é"]
    blanks = ["", " ", "  ", "   ", "    ", "\t", " \n "]
    for one, gap, other, tail in product(left, blanks, right, ["", " ", " x", "."]):
        text = one + gap + other + tail
        assert tokenize(text) == tuple(text[start:end] for start, end in spans(text)), text


@given(NASTY)
def test_marks_stay_with_their_base(text):
    for start, _ in spans(text):
        if unicodedata.category(text[start]) in ("Mn", "Mc", "Me"):
            before = text[start - 1] if start else " "
            assert before.isspace() or unicodedata.category(before) in ("Cc", "Cf", "Zs", "Zl", "Zp")


JUNK = [
    "a", "a.", "a.b@", "'", "a'", "http://(", "(", "1,", "-", "a-", "&a", "://", ".", "no. ", "www.", "@", "#a",
    "a@b.", "pre- ", "…", "\u0301", "e\u0301", "👩\u200d", "a’", "::", "&#1", "=", "((http://a))", "I. ", "\x00",
    "http://!", "n't", "-LRB", "\u200d", "A.", "1.a", ":-", "🇫", "a)b", "U.S.-", "\n", " '",
]  # fmt: skip


@pytest.mark.parametrize("unit", variants(JUNK, 12), ids=ascii)
def test_time_is_linear_on_junk(unit):
    """30 kB take well under a second; quadratic time takes ten seconds and more."""
    text = unit * (30_000 // len(unit))
    begin = time.process_time()
    found = spans(text)
    assert len(tokenize(text)) == len(found)
    assert time.process_time() - begin < 4
    assert all(start < end for start, end in found)


def test_time_is_linear_on_mixed_junk():
    generator = random.Random(4)
    text = "".join(generator.choice(JUNK) for _ in range(60_000))[:100_000]
    begin = time.process_time()
    tokenize(text)
    assert time.process_time() - begin < 2


def test_contractions_are_split_up_to_a_length():
    """Longer ones stay whole, because splitting takes quadratic time."""
    assert tokenize("x" * 38 + "'s") == ("x" * 38, "'s")
    assert tokenize("x" * 39 + "'s") == ("x" * 39 + "'s",)


def test_tokenized_pairs():
    raw = Sentence(("Don't", "go."), {"pos": ("VB", "VB")}, text="Don't go.")
    ready = Sentence(("Do", "n't"), {"pos": ("VBP", "RB")})
    same = Sentence(("Stop", "!"), {"pos": ("VB", ".")}, text="Stop!")
    pair = tokenized(SentencePair(raw, ready, "id"))
    assert pair.source.tokens == ("Do", "n't", "go", ".") and pair.source.text == raw.text and pair.id == "id"
    assert not pair.source.layers and pair.target is ready
    untouched = SentencePair(same, ready)
    assert tokenized(untouched) is untouched
