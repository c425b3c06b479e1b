"""Every format against lines written by hand, and there and back again for whatever a format can hold."""

from __future__ import annotations

import io
import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jacana_torch import corpora
from jacana_torch.errors import ConfigError, CorpusError
from jacana_torch.types import Alignment, Example, Sentence, SentencePair

CAT = ("the", "cat", "sat")
FELINE = ("a", "feline", "sat", "down")
WITH_LINKS = ("pharaoh", "talp", "naacl", "jsonl", "jacana", "msr", "multimwa")


def example(source=CAT, target=FELINE, sure=((1, 1), (2, 2)), possible=((0, 0),), id=None, **more) -> Example:
    gold = Alignment(len(source), len(target), frozenset(sure), frozenset(possible), **more)
    return Example(SentencePair(Sentence(source), Sentence(target), id), gold)


def read(data: str | bytes, format: str | None = None, **more) -> list[Example]:
    return list(corpora.read(io.BytesIO(data.encode() if isinstance(data, str) else data), format, **more))


def written(examples, format: str, **more) -> str:
    stream = io.BytesIO()
    corpora.write(examples, stream, format, **more)
    return stream.getvalue().decode()


def deep(one: Example) -> tuple:
    """Everything in an example, also what alignments do not compare."""
    gold = one.gold
    links = gold and (gold, dict(gold.confidence), gold.score)
    return one.pair.id, one.pair.source, one.pair.target, links


# ---- by hand: what the formats look like in the wild, and what that means

SAMPLES = {
    "pharaoh": [
        "the cat sat\ta feline sat down\t1-1 2-2\n",
        "the cat sat ||| a feline sat down ||| 2-2  1-1 \r\n",
    ],
    "talp": [
        "the cat sat\ta feline sat down\t0p0 1-1 2-2\n",
        "the  cat sat ||| a feline sat down ||| 2-2 0p0 1-1",
    ],
    "jsonl": [
        '{"id": "7", "source": ["the", "cat", "sat"], "target": "a feline  sat down", "sure": [[1, 1], [2, 2]], '
        '"possible": [[0, 0]], "label": 1}\n\n'
    ],
    "jacana": [
        '\n[ {"sureAlign": "1-1 2-2", "possibleAlign": "0-0", "id": 7, "name": "x", '
        '"source": "the cat sat", "target": "a feline sat down"} ]',
        '[\n{"name": "7", "sureAlign": "1-1 2-2", "source": "the cat sat", "target": "a feline sat down", '
        '"possibleAlign": "0-0"}\n]\n',
    ],
    "msr": [
        "# sentence pair 7\nthe cat sat \nNULL ({ / / }) a ({ p1 / / }) feline ({ 2 / / }) sat ({ 3 / / }) "
        "down ({ / / }) \n",
        "\ufeff\ufeff# sentence \ufeffpair 7\r\n\ufeffthe cat sat \r\nNULL ({ / / }) \ufeffa ({ p1 / / }) "
        "feline ({ 2 / / }) sat ({ 3 / / }) down ({ / / }\r\n",
        "# Sentence pair (7) source length 4 target length 3 alignment score : 0.01\nthe cat sat\n"
        "NULL ({ }) a ({ p1 }) feline ({ 2 }) sat ({ 3 }) down ({ }) \n",
    ],
    "multimwa": ["7\tthe cat sat\tN/A\ta feline sat down\tN/A\t1\t1\t2-2 1-1\t0-0\t \n"],
}


@pytest.mark.parametrize(("format", "sample"), [(name, each) for name in SAMPLES for each in SAMPLES[name]])
def test_a_sample_is_read_as_its_authors_intended(format, sample):
    wanted = example(possible=() if format == "pharaoh" else ((0, 0),), id=None if "ph" in format else "7")
    if format == "talp":
        wanted = example()
    assert [deep(each) for each in read(sample, format)] == [deep(wanted)]
    assert [deep(each) for each in read(sample)] == [deep(wanted)], "guessed from its first line"


def test_output_looks_as_other_tools_expect():
    pairs = [example(id="7", confidence={(1, 1): 0.5})]
    assert written(pairs, "talp") == "the cat sat\ta feline sat down\t0p0 1-1 2-2\n"
    assert written(pairs, "talp", links_only=True) == "0p0 1-1 2-2\n"
    assert written(pairs, "pharaoh", links_only=True) == "1-1 2-2\n"
    assert written(pairs, "naacl") == "1 1 1 P\n1 2 2 S 0.5\n1 3 3 S\n"
    assert written(pairs, "msr") == SAMPLES["msr"][0]
    assert written(pairs, "multimwa") == "7\tthe cat sat\tN/A\ta feline sat down\tN/A\t1\t1\t1-1 2-2\t0-0\t\n"
    assert written(pairs, "text") == "the cat sat\ta feline sat down\n"
    jacana = json.loads(written(pairs, "jacana"))
    assert jacana == [
        {"id": "7", "name": "7", "source": "the cat sat", "target": "a feline sat down", "sureAlign": "1-1 2-2",
         "possibleAlign": "0-0"}
    ]  # fmt: skip
    assert json.loads(written(pairs, "jsonl")) == {
        "id": "7", "source": list(CAT), "target": list(FELINE), "sure": [[1, 1], [2, 2]], "possible": [[0, 0]],
        "confidence": {"1-1": 0.5},
    }  # fmt: skip
    assert json.loads(written([], "jacana")) == []


def test_pharaoh_reports_how_many_possible_links_it_left_out(caplog):
    written([example(), example()], "pharaoh")
    assert "left out 2 possible links" in caplog.text


def test_text_keeps_the_line_and_one_item_a_line():
    lines = "It's  here.\tHere it is!\n\n one ||| two \n|||\n\t\nlast\tone"
    pairs = [each.pair for each in read(lines, "text")]
    assert [(each.source.text, each.target.text) for each in pairs] == [
        ("It's  here.", "Here it is!"), ("", ""), ("one", "two"), ("", ""), ("", ""), ("last", "one"),
    ]  # fmt: skip
    assert pairs[0].source.tokens == ("It's", "here.")
    assert all(each.gold is None for each in read(lines, "text"))


def test_lines_end_at_newlines_only():
    odd = "a\x85b\u2028c\x0bd\x0ce\x1cf\u2029 g\u00a0h\ti\rj k\n"
    (pair,) = [each.pair for each in read(odd * 1, "text")]
    assert pair.source.tokens == ("a\x85b\u2028c\x0bd\x0ce\x1cf\u2029", "g\u00a0h")
    assert pair.target.tokens == ("i\rj", "k")


def test_naacl_in_any_order_with_null_and_confidence():
    lines = "2 1 1 P 0.25\n1 3 3\n1 0 2 S\n2 1 0 P\n1 2 2 S 1e-3\n\n1 3 3 P\n"
    text = "the cat sat\ta feline sat down\nyes\tno\nlone\tpair\n"
    found = read(lines, "naacl", text=io.BytesIO(text.encode()))
    assert [(sorted(each.gold.sure), sorted(each.gold.possible)) for each in found] == [
        ([(1, 1), (2, 2)], []), ([], [(0, 0)]), ([], []),
    ]  # fmt: skip
    assert dict(found[0].gold.confidence) == {(1, 1): 0.001}
    assert dict(found[1].gold.confidence) == {(0, 0): 0.25}


def test_the_shared_tasks_two_files_of_sentences(tmp_path):
    (tmp_path / "e").write_text("<s snum=0005> the cat sat </s>\n<s snum=0003> yes </s>\n")
    (tmp_path / "f").write_text("<s snum=0005> a feline sat down </s>\n<s snum=0003> no </s>\n")
    found = read(
        "0003 1 1 S\n0005 2 2 S\n0005 3 3 S\n0005 1 1 P\n", "naacl", text=(tmp_path / "e", tmp_path / "f")
    )
    assert [deep(each) for each in found] == [
        deep(example(id="0005")), deep(example(("yes",), ("no",), [(0, 0)], (), id="0003")),
    ]  # fmt: skip


def test_plain_files_of_sentences_with_bare_links(tmp_path):
    (tmp_path / "e").write_text("the cat sat\n\nyes\n")
    (tmp_path / "f").write_text("a feline sat down\nwhat\nno\n")
    (tmp_path / "links").write_text("0p0 1-1 2-2\n\n0-0\n")
    found = list(corpora.read(tmp_path / "links", text=(tmp_path / "e", tmp_path / "f")))
    wanted = [example(), example((), ("what",), (), ()), example(("yes",), ("no",), [(0, 0)], ())]
    assert [deep(each) for each in found] == [deep(each) for each in wanted]


def test_jsonl_keeps_layers_score_and_raw_text():
    sentence = Sentence(CAT).with_layers(pos=("DT", "NN", "VBD"), head=(1, 2, -1), flag=(True, None, 0.5))
    pair = SentencePair(sentence, Sentence(("x", "New York")), "é")
    one = Example(pair, Alignment(3, 2, frozenset({(0, 1)}), score=-3.5, confidence={(2, 1): 0.25}))
    raw = Example(SentencePair(Sentence(("a", "b"), text="a  b"), Sentence(("c",), text="c")))
    assert [deep(each) for each in read(written([one, raw], "jsonl"))] == [deep(one), deep(raw)]


def test_jsonl_numbers_of_numpy():
    import numpy as np

    one = example(confidence={(1, 1): np.float32(0.5)}, score=np.float64(2))
    assert json.loads(written([one], "jsonl"))["confidence"] == {"1-1": 0.5}


def test_extra_bom_only_where_a_token_would_lose_its_own():
    one = [Example(SentencePair(Sentence(("\ufeffa",)), Sentence(("\ufeffb",))))]
    assert [each.pair.source.tokens for each in read("\ufeffa\tb\n\ufeffc\td\n", "text")] == [("a",), ("\ufeffc",)]
    assert read(written(one, "text"), "text")[0].pair.source.tokens == ("\ufeffa",)
    assert written([example()], "talp")[0] == "t"


# ---- there and back, whatever the tokens

# Not in a token of a line: separators of tokens, columns and lines, and half surrogate pairs, which are no text.
ALPHABET = st.characters(exclude_characters=" \t\n\r\ufeff", exclude_categories=("Cs",))
ODD = st.sampled_from(
    ["|||", "NULL", "/", "p1", "0-0", "a\u00a0b", "\x85", "e\u0301", "👩‍👩‍👧", "[", '{"', "#", "\u2028", '"\\']
)
TOKEN = (st.text(ALPHABET, min_size=1, max_size=6) | ODD).filter(lambda t: "({" not in t and "})" not in t)
SENTENCE = st.lists(TOKEN, max_size=6).map(tuple)


@st.composite
def examples(draw, tokens=SENTENCE):
    source, target = draw(tokens), draw(tokens)
    cells = list(itertools.product(range(len(source)), range(len(target))))
    links = st.lists(st.sampled_from(cells), max_size=8) if cells else st.just([])
    sure, possible = draw(links), draw(links)
    confidence = {link: draw(st.floats(0, 1)) for link in draw(links)}
    id = draw(st.none() | st.text(st.characters(codec="ascii", categories=("L", "N")), min_size=1))
    return example(source, target, sure, possible, id, confidence=confidence)


def expected(format: str, one: Example, number: int) -> tuple:
    """The example without what the format cannot hold."""
    gold, pair = one.gold, one.pair
    possible = frozenset() if format == "pharaoh" else gold.possible
    confidence = dict(gold.confidence) if format == "jsonl" else {}
    if format == "naacl":
        confidence = {link: p for link, p in gold.confidence.items() if link in gold.sure | gold.possible}
    id = None if format in ("pharaoh", "talp") else pair.id
    id = str(number) if format == "msr" and id is None else id
    kept = Alignment(gold.n_source, gold.n_target, gold.sure, possible, confidence)
    return deep(Example(SentencePair(pair.source, pair.target, id), kept))


@pytest.mark.parametrize("format", WITH_LINKS)
@given(st.lists(examples(), max_size=4))
def test_there_and_back(format, pairs):
    once = written(pairs, format)
    more = {"text": io.BytesIO(written(pairs, "jsonl").encode())} if format == "naacl" else {}
    found = read(once, format, **more)
    assert [deep(each) for each in found] == [expected(format, one, n) for n, one in enumerate(pairs, start=1)]
    assert written(found, format) == once


@given(st.lists(st.tuples(SENTENCE, SENTENCE)))
def test_there_and_back_without_links(pairs):
    bare = [Example(SentencePair(Sentence(source), Sentence(target))) for source, target in pairs]
    for format in ("text", "pharaoh", "talp", "jsonl", "jacana"):
        found = read(written(bare, format), format)
        assert [(each.pair.source.tokens, each.pair.target.tokens) for each in found] == pairs
        assert all(each.gold is None for each in found)


@given(st.lists(st.tuples(*[st.text(st.characters(exclude_characters="\t\n\r", exclude_categories=("Cs",)))] * 2)))
def test_raw_text_comes_back_as_it_was(pairs):
    data = "".join(f"\ufeff{source}\t{target}\n" if n == 0 else f"{source}\t{target}\n"
                   for n, (source, target) in enumerate(pairs))  # fmt: skip
    found = read(data, "text")
    assert [(each.pair.source.text, each.pair.target.text) for each in found] == pairs
    for each in found:
        assert each.pair.source.tokens == tuple(piece for piece in each.pair.source.text.split(" ") if piece)
    assert read(written(found, "text"), "text") == found


ANY_TOKEN = st.text(max_size=4) | st.sampled_from(["({", "})", "a b", "", "\ud800", "\ufeffx", "x\r", "x\n", "\t"])


@pytest.mark.parametrize("format", WITH_LINKS)
@given(examples(st.lists(ANY_TOKEN, max_size=3).map(tuple)))
def test_a_token_comes_back_or_is_refused(format, one):
    try:
        once = written([one], format)
    except CorpusError as error:
        assert "cannot hold" in str(error)
        return
    if format != "naacl":  # which holds no tokens
        assert [deep(each) for each in read(once, format)] == [expected(format, one, 1)]


@pytest.mark.parametrize("token", ["a b", "a\tb", "a\nb", "", "a\r", " "])
@pytest.mark.parametrize("format", ["text", "pharaoh", "talp", "jacana", "msr", "multimwa"])
def test_a_token_that_would_not_come_back_is_refused(format, token):
    with pytest.raises(CorpusError, match=r"pair 2 \('x9'\).*token"):
        written([example(), example(source=("the", token, "sat"), id="x9")], format)


@pytest.mark.parametrize("format", ["msr", "multimwa", "naacl"])
def test_a_pair_without_links_is_refused_if_it_would_come_back_with_an_empty_set(format):
    with pytest.raises(CorpusError, match="no alignment"):
        written([Example(example().pair)], format)


def test_formats_are_the_modules(tmp_path, monkeypatch):
    assert {*WITH_LINKS, "text"} <= set(corpora.formats())
    (tmp_path / "slashed.py").write_text(
        "from jacana_torch.corpora import Format, per_line\n"
        "from jacana_torch.types import Example, Sentence, SentencePair\n"
        "def sniff(lines): return ' / ' in lines[0]\n"
        "def one(line):\n"
        "    source, target = line.split(' / ')\n"
        "    return Example(SentencePair(Sentence(source.split()), Sentence(target.split())))\n"
        "def read(source): return per_line(source, one)\n"
        "def write(examples): return (f'{e.pair.source} / {e.pair.target}\\n' for e in examples)\n"
        "FORMAT = Format(sniff, read, write, holds_links=False)\n"
    )
    monkeypatch.setattr(corpora, "__path__", [*corpora.__path__, str(tmp_path)])
    assert "slashed" in corpora.formats()
    (one,) = read("the cat / a feline\n")
    assert one.pair.target.tokens == ("a", "feline")
    corpora.write([one], tmp_path / "out.slashed")
    assert (tmp_path / "out.slashed").read_text() == "the cat / a feline\n"
    with pytest.raises(CorpusError, match="^<stream>:1: not enough values"):
        read("no slash\n", "slashed")


def test_an_unknown_format_names_the_known():
    with pytest.raises(ConfigError, match="'giza'.*jacana, journal, jsonl.*text"):
        read("", "giza")
