"""Other libraries: NLTK's AlignedSent, taggers and error rate; spaCy's documents and component; M2; evaluate."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import jacana_torch as jt
from jacana_torch.errors import JacanaError
from jacana_torch.evaluate.scores import alignment_error_rate
from jacana_torch.types import Alignment, Sentence, SentencePair

ROOT = Path(__file__).parents[2]
PAIR = SentencePair(Sentence("the old cat sat".split()), Sentence("a cat was sitting".split()))
LINKS = st.frozensets(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=8)


@given(LINKS)
def test_aligned_sents_round_trip(links):
    from jacana_torch.interop import nltk

    alignment = Alignment(4, 4, links).of(PAIR)
    aligned = nltk.to_aligned_sent(alignment)
    assert aligned.words == ["a", "cat", "was", "sitting"] and aligned.mots == ["the", "old", "cat", "sat"]
    back = nltk.from_aligned_sent(aligned)
    assert back == alignment and back.pair == PAIR
    with pytest.raises(JacanaError):
        nltk.to_aligned_sent(Alignment(4, 4, links))


@given(LINKS.filter(bool), LINKS, LINKS)
def test_our_error_rate_is_nltks(sure, possible, predicted):
    from nltk.translate import Alignment as Links
    from nltk.translate.metrics import alignment_error_rate as theirs

    gold, found = Alignment(4, 4, sure, possible), Alignment(4, 4, predicted)
    expected = theirs(Links(sure), Links(predicted), Links(sure | possible))
    assert alignment_error_rate([gold], [found], "sure") == pytest.approx(expected)


def test_any_tokenizer_and_tagger_of_nltk():
    from nltk.tag import DefaultTagger, RegexpTagger
    from nltk.tokenize import TreebankWordTokenizer

    from jacana_torch.interop import nltk

    text = 'He said "no" (twice).'
    found = nltk.sentence(text, TreebankWordTokenizer())
    assert "``" in found.tokens and [text[s:e] for s, e in found.offsets][2:5] == ['"', "no", '"']
    tagger = RegexpTagger([(r".*ed$", "VBD")], backoff=DefaultTagger("NN"))
    (pair,) = nltk.TaggedBy(tagger, lemmas=False)([SentencePair(Sentence(["dogs", "barked"]), Sentence(["X"]))])
    assert pair.source.layers["pos"] == ("NN", "VBD") and pair.target.layers["lemma"] == ("x",)


def test_two_docs_are_aligned_by_their_own_tokens():
    spacy = pytest.importorskip("spacy")
    from spacy.tokens import Doc

    from jacana_torch.interop.spacy import sentence_of

    nlp = spacy.blank("en")
    doc = Doc(nlp.vocab, words=["The", " ", "state-of-the-art", "car"], spaces=[True, False, True, False],
              tags=["DT", "_SP", "JJ", "NN"], lemmas=["the", " ", "x", "car"], heads=[3, 3, 3, 3],
              deps=["det", "dep", "amod", "ROOT"])  # fmt: skip
    sentence = sentence_of(doc)
    assert sentence.tokens == ("The", "state-of-the-art", "car")
    assert sentence.layers["pos"] == ("DT", "JJ", "NN") and sentence.layers["head"] == (2, 2, -1)
    assert [doc.text[s:e] for s, e in sentence.offsets] == list(sentence.tokens)
    (found,) = jt.load("core").align([(doc, nlp("the car"))])
    assert (2, 1) in found.sure and found.pair.target.tokens == ("the", "car")
    assert sentence_of(doc[2:4]).tokens == ("state-of-the-art", "car")


def test_the_component_sets_an_alignment():
    spacy = pytest.importorskip("spacy")
    import jacana_torch.interop.spacy  # noqa: F401

    nlp = spacy.blank("en")
    nlp.add_pipe("jacana", config={"model": "core"})
    docs = [nlp.make_doc("The cat sat down."), nlp.make_doc("No reference."), nlp.make_doc("Rain fell.")]
    docs[0]._.reference, docs[2]._.reference = "A cat sat.", spacy.blank("en")("Rain fell.")
    first, second, third = [pipe for _, pipe in nlp.pipeline][0].pipe(docs)
    assert ("cat", "cat") in first._.alignment.pairs() and second._.alignment is None
    assert third._.alignment.links == [(0, 0), (1, 1), (2, 2)]
    assert nlp(docs[0])._.alignment == first._.alignment


OLD = "The committee approved the new Budget on Monday. Nobody objected. In May, boats leave every hour."
NEW = "The panel approved the big budget on Monday. Boats leave every hour in May. Tickets cost five dollars."


def applied(block):
    """The target of a block of M2, by the rules of the format."""
    first, *edits = block.split("\n")
    tokens, shift = first.split(" ")[1:] if first != "S " else [], 0
    for line in edits:
        place, kind, words, required, comment, annotator = line.removeprefix("A ").split("|||")
        assert (required, comment, annotator) == ("REQUIRED", "-NONE-", "0")
        start, end = map(int, place.split())
        if kind == "noop":
            continue
        new = [] if words == "-NONE-" else words.split(" ")
        assert 0 <= start <= end <= len(tokens) - shift and kind[:2] in ("M:", "U:", "R:")
        tokens[start + shift : end + shift] = new
        shift += len(new) - (end - start)
    return tokens


@pytest.mark.parametrize(("old", "new"), [(OLD, NEW), (NEW, OLD), (OLD, OLD), (OLD, ""), ("", NEW)])
def test_m2_makes_the_target(old, new):
    found = jt.diff(old, new, "core")
    blocks = found.to_m2().rstrip("\n").split("\n\n") if found.pieces else []
    wanted = [list(piece.target.tokens) if piece.paired.target else [] for piece in found.pieces]
    assert [applied(block) for block in blocks] == wanted


def test_errants_own_reader_accepts_m2(tmp_path):
    pytest.importorskip("errant")
    path = tmp_path / "a.m2"
    path.write_text(jt.diff(OLD, NEW, "core").to_m2())
    code = "from errant.commands.compare_m2 import main; main()"
    done = subprocess.run([sys.executable, "-c", code, "-hyp", str(path), "-ref", str(path), "-cat", "3"],
                          capture_output=True, text=True, check=True)  # fmt: skip
    figures = done.stdout.split("F0.5")[-1]
    assert "1.0\t1.0\t1.0" in figures and "R:ORTH" in done.stdout


@pytest.mark.slow
def test_the_metric_of_evaluate_loads(tmp_path):
    pytest.importorskip("evaluate")
    code = f"""
import evaluate
metric = evaluate.load({str(ROOT / "examples" / "jacana_coverage")!r}, cache_dir={str(tmp_path)!r})
texts = ["A cat sat.", "Rain fell."], ["A cat sat.", "..."]
found = metric.compute(references=texts[0], predictions=texts[1], model="core")
assert found["coverage"] == 0.5 and found["pairs"] == 2, found
"""
    offline = {"HF_HUB_OFFLINE": "1", "HF_MODULES_CACHE": str(tmp_path / "modules"), "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, **offline}, capture_output=True)
