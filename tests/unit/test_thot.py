"""Thot's models as aligners; skipped where the package sil-thot is not installed."""

from __future__ import annotations

import pickle
import sys

import numpy as np
import pytest
from templates import corpus, layerless

from jacana_torch import corpora
from jacana_torch.aligners.bidirectional import Bidirectional
from jacana_torch.errors import ConfigError, MissingResource, ModelError
from jacana_torch.evaluate import score
from jacana_torch.model import persist
from jacana_torch.systems.unsupervised.thot import CHAINS, Thot
from jacana_torch.types import Alignment, Example, Sentence, SentencePair
from jacana_torch.util import trust

TRAINING, HELD_OUT = layerless(corpus(40)), layerless(corpus(20, seed=4))


def pair(source: str, target: str) -> SentencePair:
    return SentencePair(Sentence(tuple(source.split())), Sentence(tuple(target.split())))


@pytest.fixture(scope="module")
def thot():
    return pytest.importorskip("thot.alignment", reason="sil-thot is not installed")


def f1(aligner) -> float:
    return score([e.gold for e in HELD_OUT], aligner.align([e.pair for e in HELD_OUT])).f1


@pytest.mark.parametrize("model", CHAINS)
def test_every_model_learns_and_survives_saving(thot, model):
    aligner = Bidirectional(Thot(model=model), Thot(model=model))
    aligner.fit([Example(e.pair) for e in TRAINING])
    assert f1(aligner) > 0.55
    again = Bidirectional(Thot(model=model), Thot(model=model))
    again.restore(aligner.state())
    pairs = [e.pair for e in HELD_OUT]
    for a, b in zip(aligner.align(pairs), again.align(pairs), strict=True):
        assert a == b and a.score == b.score


def test_a_source_word_has_one_target_word(thot):
    for part in ("forward", "backward"):
        aligner = Thot(model="hmm", part=part)
        aligner.fit(TRAINING)
        for example, a in zip(HELD_OUT, aligner.align([e.pair for e in HELD_OUT]), strict=True):
            assert len({i for i, _ in a.sure}) == len(a.sure)
            assert (a.n_source, a.n_target) == (len(example.pair.source), len(example.pair.target))


def test_lexicon_improves_f1(thot):
    found = []
    for lexicon in (0, 2):
        aligner = Thot(model="hmm", lexicon=lexicon)
        aligner.fit(TRAINING[:10])
        found.append(f1(aligner))
    assert found[1] > found[0] + 0.05


def test_unknown_words_are_linked_with_themselves(thot):
    aligner = Thot(model="ibm1")
    aligner.fit(TRAINING)
    (found,) = aligner.align([pair("doctor xylophone xylophone", "xylophone the physician xylophone")])
    assert {(1, 0), (2, 3)} <= found.sure


def test_any_string_may_be_a_word(thot):
    odd = ["NULL", "two words", "UNKNOWN_WORD", "\u00a0", "<UNUSED_WORD>", "?", "0"]
    sentence = Sentence(tuple(odd))
    aligner = Thot(model="ibm1", form="exact")
    aligner.fit([Example(SentencePair(sentence, sentence))] * 3)
    again = Thot(model="ibm1", form="exact")
    again.restore(aligner.state())
    (found,) = again.align([SentencePair(sentence, sentence)])
    assert found.sure == {(i, i) for i in range(len(odd))}


def test_model_has_no_training_text_and_can_be_pickled(thot):
    aligner = Thot(model="ibm1")
    aligner.fit(TRAINING)
    pairs = [e.pair for e in HELD_OUT]
    found = aligner.align(pairs)
    assert pickle.loads(pickle.dumps(aligner)).align(pairs) == found
    files = {name for name in aligner.state() if name.startswith("files.")}
    assert files and not files & {"files.src", "files.trg", "files.srctrgc"}


def test_long_sentences(thot):
    long = Example(pair("a " * 201, "a"))
    aligner = Thot(model="hmm")
    report = aligner.fit([*TRAINING, long])
    assert any("1 pairs" in note for note in report.notes)
    with pytest.raises(ConfigError, match="201 x 1.*split"):
        aligner.align([long.pair])
    with pytest.raises(ConfigError, match="nothing to train on"):
        Thot(model="hmm").fit([long])


def test_text_is_read_in_both_directions(thot, tmp_path):
    file = tmp_path / "more.tsv"
    file.write_text("foxes\thare\njump\tleaps\n" * 10)
    aligner = Bidirectional(*(Thot(model="ibm1", lexicon=0, text=[str(file)]) for _ in range(2)))
    aligner.fit([])
    (found,) = aligner.align([pair("foxes jump", "leaps hare")])
    assert found.sure == {(0, 1), (1, 0)}


@pytest.mark.parametrize("settings", [{"model": "ibm5"}, {"form": "x"}, {"lexicon": -1}, {"iterations": 0}])
def test_invalid_settings_are_errors(settings):
    with pytest.raises(ConfigError, match=next(iter(settings))):
        Thot(**settings)


def test_errors_of_align_and_restore(thot):
    with pytest.raises(ModelError, match="not been trained"):
        Thot().align([TRAINING[0].pair])
    assert Thot().align([SentencePair(Sentence(()), Sentence(("a",)))]) == [Alignment(0, 1)]
    aligner = Thot(model="ibm1")
    aligner.fit(TRAINING)
    state = aligner.state()
    for name in ("files.../outside", "files.a/b"):
        with pytest.raises(ConfigError, match="is not a file"):
            Thot().restore({**state, name: np.zeros(3, np.uint8)})
    other = Thot(model="ibm1")
    other.restore({k: v for k, v in state.items() if not k.endswith(("lexnd", "yml", "svcb"))})
    with pytest.raises(ModelError, match="cannot read"):
        other.align([TRAINING[0].pair])


def test_error_without_the_package_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "thot.alignment", None)
    with pytest.raises(MissingResource, match=r"pip install 'jacana-torch\[thot\]'"):
        Thot().fit(TRAINING)


@pytest.mark.slow
def test_results_on_msr_dev(thot, data_root):
    """MANLI's Table 1 reports 72.1 for GIZA++. IBM 4 reaches 81.6 but takes 15 s, so this tests the HMM."""
    gold = list(corpora.read(str(data_root / "msr/dev.jsonl")))
    aligner = Bidirectional(Thot(model="hmm"), Thot(model="hmm"))
    aligner.fit(gold)
    assert score([e.gold for e in gold], aligner.align([e.pair for e in gold])).f1 > 0.721


def test_a_saved_model_needs_trust(thot, tmp_path, monkeypatch):
    """thot reads its files in native code, which damaged ones crash."""
    target = "jacana_torch.systems.unsupervised.thot.Thot"
    both = {"_target_": "jacana_torch.aligners.bidirectional.Bidirectional"}
    both |= {part: {"_target_": target, "model": "ibm1"} for part in ("forward", "backward")}
    config = {"model": {"_target_": "jacana_torch.model.model.Model", "aligner": both}}
    model = persist.build(config["model"])
    model.aligner.fit(TRAINING)
    kept = persist.save(model, tmp_path / "kept", config, {})
    pairs = [e.pair for e in TRAINING]
    assert persist.load(kept).align(pairs) == model.align(pairs), "this process made it"
    monkeypatch.setattr(trust, "_named", set())
    with pytest.raises(ModelError, match=f"native code .* JACANA_TRUST={kept}"):
        persist.load(kept)
    assert persist.load(kept, trust_files=True).align(pairs) == model.align(pairs)
    monkeypatch.setattr(trust, "_named", set())
    monkeypatch.setenv("JACANA_TRUST", str(tmp_path))
    assert persist.load(kept).align(pairs) == model.align(pairs)
