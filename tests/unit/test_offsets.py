"""Offsets: where tokens lie in their raw text, however the corpus spells them."""

from __future__ import annotations

import json
import pickle
import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import jacana_torch as jt
from jacana_torch.annotate.tokens import spans, tokenize
from jacana_torch.cli import main
from jacana_torch.corpora import jsonl
from jacana_torch.offsets import located
from jacana_torch.types import Alignment, Example, Sentence, SentencePair

TEXT = "“Don't (ever) pay 1/2 of it…” – she said,  ok?"


def test_offsets_of_our_own_tokens_are_the_tokenizers():
    sentence = Sentence(tokenize(TEXT), text=TEXT)
    assert sentence.offsets == tuple(spans(TEXT))
    assert [TEXT[start:end] for start, end in sentence.offsets] == list(sentence.tokens)


@given(st.text(alphabet="ab c.'\"-\u200d\u00ad\u0301é👍🏽\n(…", max_size=40))
def test_every_token_is_where_the_tokenizer_found_it(text):
    assert Sentence(tokenize(text), text=text).offsets == tuple(spans(text))


def test_tokens_that_a_corpus_rewrote_are_mapped_by_text():
    tokens = "`` Do n't -LRB- ever -RRB- pay 1\\/2 of it ... '' -- she said , ok ?".split()
    found = located(tokens, TEXT)
    assert [TEXT[start:end] for start, end in found] == (
        "“ Do n't ( ever ) pay 1/2 of it … ” – she said , ok ?".split()
    )


def test_tokens_need_not_cover_the_text_and_prefer_whole_words():
    text = "the cat sat on a mat"
    assert [text[s:e] for s, e in located(("cat", "a", "mat"), text)] == ["cat", "a", "mat"]
    assert located(("cat", "a"), text)[1] == (15, 16)


def test_another_text_and_no_text_give_none():
    assert Sentence(("cat",), text="dog").offsets is None
    assert Sentence(("cat",)).offsets is None


def test_given_offsets_stay_through_copies_and_pickles():
    sentence = Sentence(("Hi", "."), offsets=[(4, 6), [7, 8]])
    for copy in (sentence, sentence.with_layers(pos=("UH", ".")), pickle.loads(pickle.dumps(sentence))):
        assert copy.offsets == ((4, 6), (7, 8))
    assert sentence == Sentence(("Hi", ".")) == replace(sentence)


@pytest.mark.parametrize("bad", [[[0, 1]], [[0, 1], [3, 2]], [[5, 6], [0, 1]], 7, [[0, 1], ["a", 2]]])
def test_offsets_that_are_none_are_errors(bad):
    with pytest.raises(ValueError):
        Sentence(("Hi", "."), offsets=bad)


def test_jsonl_keeps_offsets():
    pair = SentencePair(Sentence(tokenize("“Hi”"), text="“Hi”"), Sentence(("Hi",)))
    line = jsonl.line_of(Example(pair, Alignment(3, 1, frozenset({(1, 0)}))))
    assert json.loads(line)["source_offsets"] == [[0, 1], [1, 3], [3, 4]]
    assert "target_offsets" not in json.loads(line)
    (back,) = [jsonl.example_of(json.loads(line), "id")]
    assert back.pair.source.offsets == ((0, 1), (1, 3), (3, 4)) and back.extra is None
    assert jsonl.line_of(back) == line


def test_jsonl_strings_with_links_have_offsets_and_bad_ones_are_errors():
    record = {"source": "a  b", "target": ["b"], "sure": [[1, 0]]}
    assert jsonl.example_of(record, "id").pair.source.offsets == ((0, 1), (3, 4))
    with pytest.raises(ValueError, match="'target_offsets': there are offsets of 2 tokens for 1"):
        jsonl.example_of(record | {"target_offsets": [[0, 1], [2, 3]]}, "id")


def test_align_and_explain_write_offsets(tmp_path, capsys):
    (tmp_path / "pairs").write_text('He didn\'t say "yes".\tHe denied it.\n')
    assert main(["align", str(tmp_path / "pairs"), "--from", "text", "--to", "jsonl", "--model", "core"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["source_offsets"][:4] == [[0, 2], [3, 6], [6, 9], [10, 13]]
    assert record["target_offsets"] == [[0, 2], [3, 9], [10, 12], [12, 13]]
    assert main(["explain", "It isn't.", "It is.", "--json", "--model", "core"]) == 0
    assert json.loads(capsys.readouterr().out)["source_offsets"] == [[0, 2], [3, 5], [5, 8], [8, 9]]


def test_the_server_answers_with_offsets():
    from jacana_torch.serve.work import Alignments, Explanations, Models

    models = Models({"core": jt.load("core")})
    pair = SentencePair(Sentence(tokenize("It isn't."), text="It isn't."), Sentence(("no", "text")))
    for question in (Alignments("core"), Explanations("core")):
        (answer,) = models(question, [pair])
        assert json.loads(answer)["source_offsets"] == [[0, 2], [3, 5], [5, 8], [8, 9]]
        assert "target_offsets" not in json.loads(answer)


def test_the_pair_of_a_streamed_alignment_has_offsets():
    model = jt.load("core")
    (found,) = model.align_stream([("It isn't.", ["no", "text"])])
    (both,) = model.align_stream([("It isn't.", "It is.")])
    assert found.pair.source.offsets == both.pair.source.offsets == ((0, 2), (3, 5), (5, 8), (8, 9))
    assert found.pair.target.offsets is None
    assert found.to_dict()["source_offsets"] == [[0, 2], [3, 5], [5, 8], [8, 9]]


def test_offsets_take_linear_time():
    def seconds(n):
        text = "“Don't stop” " * n
        tokens = "`` Do n't stop ''".split() * n
        begun = time.perf_counter()
        assert located(tokens, text) is not None
        return time.perf_counter() - begun

    seconds(500)
    assert min(seconds(8000) for _ in range(3)) < 30 * min(seconds(1000) for _ in range(3))
