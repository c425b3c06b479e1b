"""IBM 1, the HMM and agreement as aligners: what they learn from pairs without links."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest
from templates import corpus, layerless

from jacana_torch import corpora
from jacana_torch.aligners.bidirectional import Bidirectional
from jacana_torch.errors import ConfigError, CorpusError, ModelError
from jacana_torch.evaluate import score
from jacana_torch.systems.unsupervised.translation_table import Text, lexicon
from jacana_torch.systems.unsupervised.unsupervised import LONGEST, Agreement, Hmm, Ibm1
from jacana_torch.train import loop as experiment
from jacana_torch.types import Alignment, Example, Sentence, SentencePair

TRAINING, HELD_OUT = layerless(corpus(60)), layerless(corpus(30, seed=4))
MODELS = [Ibm1, Hmm]


def pair(source: str, target: str) -> SentencePair:
    return SentencePair(Sentence(tuple(source.split())), Sentence(tuple(target.split())))


def unlinked(examples) -> list[Example]:
    return [Example(example.pair) for example in examples]


def f1(aligner, examples=HELD_OUT) -> float:
    return score([e.gold for e in examples], aligner.align([e.pair for e in examples])).f1


def test_gold_links_are_ignored():
    linked, bare = Hmm(), Hmm()
    linked.fit(TRAINING)
    bare.fit(unlinked(TRAINING))
    for (name, a), b in zip(linked.state().items(), bare.state().values(), strict=True):
        assert np.array_equal(a, b), name


@pytest.mark.parametrize("kind", [lambda: Bidirectional(Ibm1(), Ibm1()), lambda: Bidirectional(Hmm(), Hmm()),
                                  lambda: Agreement(Hmm(), Hmm()), lambda: Agreement(Ibm1(), Ibm1())])  # fmt: skip
def test_training_without_links_finds_most_links(kind):
    aligner = kind()
    aligner.fit(unlinked(TRAINING))
    assert f1(aligner) > 0.7
    found = experiment.predictions(aligner, HELD_OUT)
    assert set(found) >= {"intersection", "union", "grow", "grow_diag", "grow_diag_final", "grow_diag_final_and"}


def test_word_order_matters_to_the_hmm_but_not_to_ibm1():
    """The HMM links a word that occurs twice beside its neighbour."""
    here = pair("a red ship and a blue chair", "a blue chair and a red ship")
    hmm, ibm1 = Hmm(uniform=0.1), Ibm1()
    for aligner in (hmm, ibm1):
        aligner.fit(unlinked(TRAINING) + [Example(here)])
    (found,) = hmm.align([here])
    assert (4, 0) in found.sure
    (found,) = ibm1.align([here])
    assert (4, 4) in found.sure  # the nearest to the diagonal


@pytest.mark.parametrize("kind", MODELS)
def test_lexicon_improves_f1(kind):
    few = TRAINING[:12]
    with_it, without = kind(), kind(lexicon=0.0)
    for aligner in (with_it, without):
        aligner.fit(unlinked(few))
    assert f1(with_it) > f1(without) + 0.05


def test_lexicon_counts_possible_links_of_each_word_with_itself():
    pairs = [(["a", "b", "a", "a"], ["a", "a", "c"]), (["a"], ["a", "a"]), (["d"], ["b"])]
    assert lexicon(pairs) == {"a": 3, "b": 1, "c": 1, "d": 1}


@pytest.mark.parametrize("kind", MODELS)
def test_unknown_words_are_linked_with_themselves(kind):
    aligner = kind()
    aligner.fit(TRAINING)
    (found,) = aligner.align([pair("the doctor bought xylophones", "xylophones the physician purchased quickly")])
    assert (3, 0) in found.sure and not any(j == 4 for _, j in found.sure)
    (found,) = aligner.align([pair("the doctor met Vladimirov", "Vladimirow met the doctor")])
    assert (3, 0) in found.sure


def test_form_decides_what_counts_as_one_word():
    for form, same in (("exact", False), ("lower", True), ("stem", True)):
        aligner = Hmm(form=form, ibm1_iterations=2, iterations=1)
        aligner.fit([Example(pair("Walked -LRB-", "walked ("))])  # the lexicon adds the other side's words
        assert (len(aligner.table.source) == 2) == same
        assert "(" in aligner.table.source


@pytest.mark.parametrize("kind", MODELS)
def test_batches_do_not_change_the_result(kind):
    found = []
    for cells in (1, 300, 10**6):
        aligner = kind(batch_cells=cells)
        aligner.fit(TRAINING)
        found.append(aligner.align([e.pair for e in HELD_OUT]))
    for a, b, c in zip(*found, strict=True):
        assert a == b == c
        assert all(abs(a.confidence[link] - c.confidence[link]) < 1e-9 for link in a.confidence)


def test_posterior_decoding_keeps_links_above_the_threshold():
    aligner = Hmm()
    aligner.fit(TRAINING)
    pairs = [e.pair for e in HELD_OUT]
    sets = []
    for threshold in (0.05, 0.5, 0.9):
        other = Hmm(decode="posterior", threshold=threshold)
        other.restore(aligner.state())
        sets.append(other.align(pairs))
        assert all(value > threshold for a in sets[-1] for value in a.confidence.values())
    for low, middle, high in zip(*sets, strict=True):
        assert low.sure >= middle.sure >= high.sure
    assert sum(len(a.sure) for a in sets[0]) > sum(len(a.sure) for a in sets[2])


@pytest.mark.parametrize("kind", MODELS)
def test_scores_are_log_posteriors_of_the_links(kind):
    aligner = kind()
    aligner.fit(TRAINING)
    whole = 0
    for example, a in zip(HELD_OUT, aligner.align([e.pair for e in HELD_OUT]), strict=True):
        assert a.score <= 1e-12
        if kind is Ibm1 and len(a.sure) == len(example.pair.source):  # independent words, none of them NULL
            whole += 1
            assert a.score == pytest.approx(np.mean(np.log(list(a.confidence.values()))))
    assert whole or kind is Hmm
    (one,) = aligner.align([pair("doctor", "physician")])
    assert one.score == pytest.approx(np.log(one.confidence[0, 0]))


def test_text_is_read_in_both_directions_and_tokenised(tmp_path):
    file = tmp_path / "more.tsv"
    lines = ["Quick foxes jump.\tThe hare, it leaps!", "foxes\thare", "jump\tleaps", ""]
    file.write_text("\n".join(lines * 8) + "\n")
    aligner = Bidirectional(Hmm(text=[str(file)], lexicon=0), Hmm(text=str(file), lexicon=0))
    aligner.fit([])
    assert {"fox", ".", "jump"} <= set(aligner.forward.table.source)
    assert {"hare", ",", "leap"} <= set(aligner.backward.table.source)
    (found,) = aligner.align([pair("foxes jump", "leaps hare")])
    assert found.sure == {(0, 1), (1, 0)}
    with pytest.raises(CorpusError, match="nowhere"):
        Hmm(text=[str(tmp_path / "nowhere.tsv")]).fit(TRAINING)


class Stop:
    """Ctrl-C at an iteration."""

    def __init__(self, at: int) -> None:
        self.at, self.losses = at, []

    def __call__(self, step) -> None:
        self.losses.append(step.loss)
        if step.iteration == self.at:
            raise KeyboardInterrupt


@pytest.mark.parametrize("make", [Ibm1, Hmm, lambda: Agreement(Hmm(), Hmm())])
def test_interrupted_training_keeps_its_state_and_can_continue(make):
    aligner, whole = make(), make()
    report = aligner.fit(TRAINING, watch=Stop(3))
    assert report.interrupted and not report.converged and set(report.iterations.values()) == {3}
    assert f1(aligner) > 0.3
    first = dict(report.loss)
    again = aligner.fit(TRAINING)
    assert set(again.iterations.values()) == {
        10 if isinstance(aligner, Ibm1) else 5
    }  # IBM 1 only initialises the HMM
    assert again.converged and not again.interrupted
    assert all(again.loss[part] < first[part] for part in first)
    complete = whole.fit(TRAINING)
    assert complete.converged and f1(aligner) > f1(whole) - 0.1


def test_watchers_get_the_present_aligner():
    seen = []
    aligner = Hmm(ibm1_iterations=2, iterations=2)
    aligner.fit(TRAINING, watch=lambda step: seen.append((step.iteration, f1(step.aligner), step.loss)))
    assert [number for number, _, _ in seen] == [1, 2, 3, 4]
    assert seen[-1][1] == f1(aligner) and seen[0][1] != seen[-1][1]
    assert all(np.isfinite(loss) for _, _, loss in seen)


def test_agreement_makes_directions_agree():
    def overlap(aligner) -> float:
        directions = aligner.directions([e.pair for e in HELD_OUT])
        return np.mean(
            [len(f.sure & b.sure) / max(len(f.sure | b.sure), 1) for f, b in zip(*directions, strict=True)]
        )

    together, apart = (
        kind(*(Hmm(lexicon=0.0, prior=0.001) for _ in range(2))) for kind in (Agreement, Bidirectional)
    )
    for aligner in (together, apart):
        aligner.fit(TRAINING)
    assert overlap(together) > overlap(apart) + 0.02


def test_continued_agreement_has_no_iterations_alone():
    first = Agreement(Hmm(), Hmm())
    first.fit(TRAINING)
    found = []
    for alone in (0, 5):
        again = Agreement(Hmm(), Hmm(), alone=alone)
        again.restore(first.state())
        again.fit(TRAINING)
        found.append([dict(a.confidence) for a in again.align([e.pair for e in HELD_OUT])])
    assert found[0] == found[1]


def test_a_note_says_that_nothing_was_learnt():
    """Under so strong a prior, every word is linked to NULL."""
    report = Agreement(Hmm(lexicon=0.0, prior=5.0), Hmm(lexicon=0.0, prior=5.0)).fit(TRAINING[:10])
    assert any("NULL" in note for note in report.notes)
    assert not Hmm().fit(TRAINING).notes


@pytest.mark.parametrize("settings", [
    {"form": "upper"}, {"decode": "guess"}, {"lexicon": -1.0}, {"prior": 0.0}, {"p0": 0.0}, {"p0": 1.0},
    {"threshold": 1.5}, {"iterations": 0}, {"batch_cells": 0}, {"null_prior": float("nan")}, {"device": "abacus"},
])  # fmt: skip
def test_invalid_settings_are_errors(settings):
    for kind in MODELS:
        with pytest.raises(ConfigError, match=next(iter(settings))):
            kind(**settings)


def test_invalid_settings_of_the_hmm_and_of_agreement():
    for settings in ({"uniform": 2.0}, {"window": 0}, {"ibm1_iterations": -1}):
        with pytest.raises(ConfigError, match=next(iter(settings))):
            Hmm(**settings)
    with pytest.raises(ConfigError, match="lexicon"):
        Agreement(Hmm(), Hmm(lexicon=1.0))
    with pytest.raises(ConfigError, match="stages"):
        Agreement(Hmm(), Hmm(iterations=7))


@pytest.mark.parametrize("kind", MODELS)
def test_errors_of_fit_and_align(kind):
    with pytest.raises(ModelError, match="forward.*not been trained"):
        kind().align([TRAINING[0].pair])
    assert kind().align([SentencePair(Sentence(()), Sentence(("a",)))]) == [Alignment(0, 1)]
    with pytest.raises(ConfigError, match="nothing to train on"):
        kind().fit([Example(SentencePair(Sentence(()), Sentence(("a",))))])
    huge = SentencePair(Sentence(("a",) * (LONGEST + 1)), Sentence(("a",)))
    with pytest.raises(ConfigError, match="split it"):
        kind().fit([Example(huge)])
    aligner = kind()
    aligner.fit(TRAINING[:3])
    for lengthy in (huge, huge.flip()):
        with pytest.raises(ConfigError, match="split it"):
            aligner.align([lengthy])


def test_damaged_states_are_errors():
    aligner = Hmm()
    aligner.fit(TRAINING[:5])
    state = aligner.state()
    bad = {
        "probability": state["probability"] * np.nan,
        "null": state["null"][:-1],
        "pair_source": state["pair_source"][::-1].copy(),
        "pair_target": state["pair_target"] + 10**6,
        "jumps": state["jumps"][:-2],
        "starts": state["starts"] - 100,
        "p0": np.array([2.0]),
    }
    for name, value in bad.items():
        with pytest.raises(ConfigError):
            Hmm().restore({**state, name: value})
    fresh = Hmm()
    fresh.restore(Hmm().state())
    with pytest.raises(ModelError):
        fresh.align([TRAINING[0].pair])


def test_long_target_takes_at_most_quadratic_time():
    """Batches of short sources with very long targets stay small."""
    words = [f"w{k}" for k in range(1500)]
    assert [len(group) for group in Text([(["w1", "w7"], words)] * 3).groups(10_000)] == [1, 1, 1]
    examples = [Example(pair("w1 w7", " ".join(words))) for _ in range(3)]
    aligner = Hmm(ibm1_iterations=1, iterations=1, batch_cells=10_000)
    began = time.process_time()
    aligner.fit([*examples, *TRAINING[:5]])
    found = aligner.align([e.pair for e in examples])
    assert all((0, 1) in a.sure for a in found) and time.process_time() - began < 20


@pytest.mark.slow
def test_results_on_msr_dev(data_root):
    """MANLI's Table 1 reports an F1 of 72.1 for GIZA++ and Cross-EM."""
    examples = unlinked(gold := list(corpora.read(str(data_root / "msr/dev.jsonl"))))
    for aligner, least, exact in (
        (Bidirectional(Hmm(), Hmm()), 0.855, 0.25),
        (Agreement(Hmm(), Hmm()), 0.85, 0.23),
    ):
        aligner.fit(examples)
        found = score([e.gold for e in gold], aligner.align([e.pair for e in gold]))
        assert found.f1 > least and found.exact > exact
    assert replace(gold[0], gold=None) == examples[0]
