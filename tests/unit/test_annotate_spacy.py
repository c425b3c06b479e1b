"""The spaCy annotator against spaCy itself; errors for a missing spaCy, model or pipe."""

from __future__ import annotations

import sys

import pytest

from jacana_torch import resources
from jacana_torch.annotate import spacy as module
from jacana_torch.annotate.spacy import SpacyAnnotator
from jacana_torch.errors import ConfigError, MissingResource
from jacana_torch.types import PROVIDERS, Sentence, SentencePair

SENTENCES = [
    "Anna Kowalska did n't sell the red barn to Lufthansa in May 2011 .",
    "He -LRB- reportedly -RRB- cancelled . The trip is off .",
    "Hens lay eggs",
    "",
    "👍🏽 ok \u00a0 ’s",
]
PAIRS = [
    SentencePair(Sentence(tuple(a.split(" ")) if a else ()), Sentence(tuple(b.split(" ")) if b else ()))
    for a, b in zip(SENTENCES, [*SENTENCES[1:], SENTENCES[0]], strict=True)
]


@pytest.fixture(autouse=True)
def no_cache():
    module._pipeline.cache_clear()


@pytest.fixture
def model():
    pytest.importorskip("spacy")
    if not resources.available("spacy-en"):
        pytest.skip("the spaCy model is not installed: jacana-torch resources install spacy-en")
    return str(resources.path("spacy-en"))


def test_as_spacy_itself_on_every_sentence(model):
    import spacy
    from spacy.tokens import Doc

    nlp = spacy.load(model)
    shown = {"-LRB-": "(", "-RRB-": ")", "’s": "'s"}
    done = SpacyAnnotator()(PAIRS)
    assert len(done) == len(PAIRS)
    for before, after in zip(PAIRS, done, strict=True):
        for bare, sentence in ((before.source, after.source), (before.target, after.target)):
            assert sentence.tokens == bare.tokens and set(sentence.layers) == set(PROVIDERS)
            if not bare.tokens:
                continue
            doc = nlp(Doc(nlp.vocab, words=[shown.get(token, token) for token in bare.tokens]))
            assert sentence.layer("pos") == tuple(t.tag_ for t in doc)
            assert sentence.layer("lemma") == tuple(t.lemma_.lower() for t in doc)
            assert sentence.layer("deprel") == tuple(t.dep_ for t in doc)
            heads = sentence.layer("head")
            assert [h if h >= 0 else i for i, h in enumerate(heads)] == [t.head.i for t in doc]
            assert [i for i, h in enumerate(heads) if h == -1] == [s.root.i for s in doc.sents]
            spans = {(e.start, e.label_): e.end for e in doc.ents}
            assert _spans(sentence.layer("ner")) == spans


def _spans(marks) -> dict:
    """Entities by start and label, read from BIO marks."""
    found, start = {}, None
    for i, mark in enumerate((*marks, "O")):
        if start is not None and not mark.startswith("I-"):
            found[start, marks[start][2:]] = i
            start = None
        if mark.startswith("B-"):
            start = i
    return found


def test_fewer_layers_are_the_same_layers(model):
    full, some = SpacyAnnotator()(PAIRS), SpacyAnnotator(model, layers=["pos", "lemma"], batch_size=1)(PAIRS)
    for one, other in zip(full, some, strict=True):
        assert set(other.source.layers) == {"pos", "lemma"}
        assert other.source.layer("pos") == one.source.layer("pos")
        assert other.source.layer("lemma") == one.source.layer("lemma")


def test_bad_settings():
    with pytest.raises(ConfigError, match="tags"):
        SpacyAnnotator(layers=["tags"])
    with pytest.raises(ConfigError, match="batch_size"):
        SpacyAnnotator(batch_size=0)


def test_an_unknown_model_is_an_error():
    pytest.importorskip("spacy")
    with pytest.raises(MissingResource, match="en_no_such_model.*install spacy-en"):
        SpacyAnnotator("en_no_such_model")(PAIRS)


def test_a_model_without_the_required_pipes_is_an_error(tmp_path):
    spacy = pytest.importorskip("spacy")
    spacy.blank("en").to_disk(tmp_path / "blank")
    with pytest.raises(MissingResource, match="has no head, ner.*no pipes"):
        SpacyAnnotator(str(tmp_path / "blank"), layers=("head", "ner"))(PAIRS)


def test_a_damaged_model(tmp_path):
    spacy = pytest.importorskip("spacy")
    spacy.blank("en").to_disk(tmp_path / "blank")
    (tmp_path / "blank" / "config.cfg").write_text("[nlp\n")
    with pytest.raises(MissingResource, match="does not load"):
        SpacyAnnotator(str(tmp_path / "blank"))(PAIRS)


def test_missing_spacy_is_an_error(monkeypatch):
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(MissingResource, match=r"jacana_torch\[spacy\]"):
        SpacyAnnotator()(PAIRS)


def test_complete_sentences_load_no_model(monkeypatch):
    monkeypatch.setitem(sys.modules, "spacy", None)
    full = Sentence(("a",), dict.fromkeys(PROVIDERS, ("x",)))
    assert SpacyAnnotator()([SentencePair(full, full)])[0].source is full
