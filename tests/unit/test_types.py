"""Values survive pickling, as workers exchange them."""

from __future__ import annotations

import pickle

from hypothesis import example, given
from hypothesis import strategies as st

from jacana_torch.types import Alignment, Sentence, SentencePair

tokens = st.lists(st.sampled_from(["a", "b c", "", " ", "\n", "é", "\ud800"]), max_size=4).map(tuple)


@given(tokens, st.booleans(), st.none() | st.sampled_from(["a", "a é", "other"]))
@example((), False, None)
@example(("",), False, "")
@example(("a", "é"), False, "a é")
def test_sentences(words, annotated, text):
    sentence = Sentence(words, {"pos": words} if annotated else {}, text)
    pair = SentencePair(sentence, sentence, "x")
    assert pickle.loads(pickle.dumps(pair)) == pair


@given(st.sets(st.tuples(st.integers(0, 3), st.integers(0, 4))), st.none() | st.floats(allow_nan=False))
def test_alignments(links, score):
    alignment = Alignment(4, 5, frozenset(links), confidence=dict.fromkeys(links, 0.5), score=score)
    other = pickle.loads(pickle.dumps(alignment))
    assert (other, other.confidence, other.score) == (alignment, alignment.confidence, score)
