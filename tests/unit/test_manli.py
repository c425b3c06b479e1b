"""The perceptron against Figure 3 of the paper, and the aligners: training, saving, errors."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from templates import corpus

from jacana_torch.aligners.base import Trainable, learnable
from jacana_torch.errors import ConfigError, ModelError
from jacana_torch.evaluate import score
from jacana_torch.model.model import Model
from jacana_torch.systems.manli import manli as module
from jacana_torch.systems.manli.averaged_perceptron import Progress, Rates, learn
from jacana_torch.systems.manli.edit_decoding import decode
from jacana_torch.systems.manli.manli import Manli, ManliExact, reachable
from jacana_torch.types import Alignment, Example, Sentence, SentencePair

sys.path.append(str(Path(__file__).parents[1] / "contract"))
from contract import CHECKS, Contract

TRAINING, HELD_OUT = corpus(24), corpus(12, seed=7)
QUICK = {"wordnet": False, "vectors": None, "max_phrase": 2, "epochs": 6, "burn_in": 2}
KINDS = pytest.mark.parametrize("kind", [Manli, ManliExact])


def trained(kind=Manli, examples=TRAINING, **settings):
    aligner = kind(**{**QUICK, **settings})
    aligner.fit(examples)
    return aligner


@pytest.mark.parametrize("kind", ["manli.manli.Manli", "manli.manli.ManliExact"])
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_contract_without_resources(check, kind, contracts):
    check(contracts(kind))


@pytest.fixture(scope="module")
def contracts(tmp_path_factory):
    made = {}

    def contract(kind):
        if kind not in made:
            config = {"_target_": f"jacana_torch.systems.{kind}", **QUICK}
            made[kind] = Contract(config, tmp_path_factory.mktemp("model"))
        return made[kind]

    return contract


@KINDS
def test_training_generalises_to_other_sentences(kind):
    aligner, pairs = trained(kind), [e.pair for e in HELD_OUT]
    found = score([e.gold for e in HELD_OUT], aligner.align(pairs))
    assert found.f1 > 0.65 and found.exact > 0.3  # without resources, synonyms are strangers
    assert isinstance(aligner, Trainable)


def test_scores_sum_all_edits_and_exact_decoding_scores_at_least_as_much():
    settings = {**QUICK, "steps": 30}
    annealed = trained(**settings)
    exact = ManliExact(**QUICK, modifier=False, lineage=False)
    exact.restore(annealed.state())
    pairs = [e.pair for e in HELD_OUT]
    names = annealed.extract.columns.names
    weights = dict(zip(names, annealed.weights.tolist(), strict=True))
    some_differ = False
    for pair, a, b in zip(pairs, annealed.align(pairs), exact.align(pairs), strict=True):
        assert a.score <= b.score + 1e-9
        some_differ |= a.sure != b.sure
        problem = exact.problems([pair])[0]
        edits = exact.edits(pair, problem, exact.extract.columns.gains(problem, exact.weights))
        unaligned = Alignment(len(pair.source), len(pair.target))
        base = weights["type.DEL"] * unaligned.n_source + weights["type.INS"] * unaligned.n_target
        assert b.score == pytest.approx(base + exact.weights @ exact.extract.columns.features(problem, edits))
    assert some_differ, "thirty steps are too few to find the best of all of these"


# The perceptron


def figure_3(problems, gold, columns, rates, seed):
    """MANLI-LEARN line by line; an epoch stores its mean weights."""
    w, stored = np.zeros(len(columns.names)), []
    for i in range(1, rates.epochs + 1):
        rate = rates.rate * rates.decay**i
        seen = []
        for j in np.random.default_rng([seed, i]).permutation(len(problems)):
            found = decode(columns.gains(problems[j], w), problems[j].source, problems[j].target)
            w = w + rate * (columns.features(problems[j], gold[j]) - columns.features(problems[j], found))
            seen.append(w)
        norm = np.linalg.norm(w) if rates.normalise else 1.0
        w = w / norm
        stored.append(np.mean(seen, axis=0) / norm)
    return np.mean(stored[rates.burn_in :], axis=0)


def exact(problem, weights, random):
    return decode(COLUMNS.gains(problem, weights), problem.source, problem.target)


MADE = ManliExact(**QUICK)
PROBLEMS = MADE.problems([e.pair for e in TRAINING])
COLUMNS = MADE.extract.columns
GOLD = [
    [(int(i), int(j)) for i, j in sorted(e.gold.sure)] for e in TRAINING
]  # single words come first among spans
GOLD = [[(i, j) for k, (i, j) in enumerate(g) if all(i != x and j != y for x, y in g[:k])] for g in GOLD]


@pytest.mark.parametrize("normalise", [False, True])
def test_learning_is_figure_3(normalise):
    rates = Rates(epochs=5, burn_in=2, rate=1.0, decay=0.8, normalise=normalise)
    progress = Progress(np.zeros(len(COLUMNS.names)), np.zeros(len(COLUMNS.names)))
    epochs = list(learn(PROBLEMS, GOLD, COLUMNS, exact, rates, 3, progress))
    assert progress.average(rates) == pytest.approx(figure_3(PROBLEMS, GOLD, COLUMNS, rates, 3))
    assert [e.number for e in epochs] == [1, 2, 3, 4, 5] and epochs[-1].loss < epochs[0].loss
    if normalise:
        assert np.linalg.norm(progress.current) == pytest.approx(1.0)


@pytest.mark.parametrize(
    "wrong", [{"epochs": 0}, {"burn_in": 50}, {"burn_in": -1}, {"rate": 0.0}, {"decay": 0.0}, {"decay": 1.5}]
)
def test_invalid_rates_are_errors(wrong):
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        Rates(**wrong)


# Training


def test_training_resumes_exactly_after_being_stopped_and_saved():
    whole, stopped = trained(), Manli(**QUICK)

    def stop(step):
        if step.iteration == 4:
            raise KeyboardInterrupt

    report = stopped.fit(TRAINING, watch=stop)
    assert report.interrupted and not report.converged and report.iterations == {"aligned": 4}
    later = Manli(**QUICK)
    later.restore(stopped.state())
    assert later.align([HELD_OUT[0].pair]) == stopped.align([HELD_OUT[0].pair])
    assert later.fit(TRAINING).iterations == {"aligned": 6}
    assert (later.weights == whole.weights).all()


def test_an_interruption_of_the_first_epoch_is_raised():
    aligner = Manli(**QUICK)
    aligner._decode = lambda *_: (_ for _ in ()).throw(KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        aligner.fit(TRAINING)
    assert aligner.weights is None and aligner.state() == {}


def test_complete_training_starts_again_from_its_weights():
    aligner = trained()
    before = aligner.weights
    steps = []
    aligner.fit(TRAINING, watch=lambda step: steps.append((step.iteration, step.loss)))
    assert [k for k, _ in steps] == [1, 2, 3, 4, 5, 6] and (aligner.weights != before).any()


def test_the_report_counts_links_that_cannot_be_reached():
    pair = TRAINING[0].pair
    far = frozenset({(0, 0), (2, 0), (0, 2)})
    report = Manli(**QUICK).fit([*TRAINING, Example(pair, Alignment(len(pair.source), len(pair.target), far))])
    assert report.dropped_links == 1 and report.total_links == sum(len(e.gold.sure) for e in TRAINING) + 3
    assert report.converged and "one to one" in report.notes[0]


def test_examples_without_links_or_words_are_ignored():
    pair, empty = TRAINING[0].pair, Sentence((), {"pos": (), "lemma": (), "head": ()})
    useless = [
        Example(pair, None),
        Example(SentencePair(empty, pair.target), Alignment(0, len(pair.target))),
        Example(SentencePair(pair.source, empty), Alignment(len(pair.source), 0)),
    ]
    assert learnable([*useless, *TRAINING, *useless]) == TRAINING
    for one in useless:
        with pytest.raises(ConfigError, match="nothing to train on"):
            learnable([one])


def test_batches_are_limited_and_complete(monkeypatch):
    aligner, pairs = trained(), [e.pair for e in HELD_OUT]
    together = aligner.align(pairs)
    edits = {id(pair): len(pair.source) * len(pair.target) * aligner.max_phrase**2 for pair in pairs}
    most = 2 * max(edits.values())
    batches, extract = [], aligner.extract

    def recorded(batch):
        batches.append(batch)
        return extract(batch)

    recorded.columns = extract.columns
    monkeypatch.setattr(aligner, "extract", recorded)
    for limit in (1, most, sum(edits.values())):
        monkeypatch.setattr(module, "AT_ONCE", limit)
        batches.clear()
        assert aligner.align(pairs) == together
        assert [pair for batch in batches for pair in batch] == pairs
        assert all(len(batch) == 1 or sum(edits[id(pair)] for pair in batch) <= limit for batch in batches)
        assert len(batches) == {1: len(pairs), sum(edits.values()): 1}.get(limit, len(batches))
    assert aligner.align([]) == []


def test_annealing_can_decode_while_training():
    aligner = trained(train_by="annealing", epochs=3, burn_in=1, steps=40)
    found = score([e.gold for e in HELD_OUT], aligner.align([e.pair for e in HELD_OUT]))
    assert found.f1 > 0.6


def test_the_seed_determines_the_weights():
    first, again, other = (trained(seed=seed).weights for seed in (1, 1, 2))
    assert (first == again).all() and (first != other).any()


def test_annealing_depends_only_on_the_words_and_the_seed():
    """With few steps, the result is nearly random."""
    pairs = [e.pair for e in HELD_OUT]
    made_anew = [replace(pair, source=replace(pair.source), id=None) for pair in pairs]
    aligner = trained(steps=10)
    found = aligner.align(pairs)
    assert aligner.align(made_anew) == found
    other = Manli(**{**QUICK, "steps": 10, "seed": 2})
    other.restore(aligner.state())
    assert other.align(pairs) != found


def test_sharpness_is_the_mean_gain_of_gold_edits():
    for sharpness in (3.0, 30.0):
        aligner = trained(sharpness=sharpness)
        problems = aligner.problems([e.pair for e in TRAINING])
        gains = [
            aligner.extract.columns.gains(problem, aligner.weights)[edit]
            for problem, e in zip(problems, TRAINING, strict=True)
            for edit in reachable(e.gold, problem)
        ]
        assert np.mean(gains) == pytest.approx(sharpness)


# Errors


@KINDS
def test_untrained_aligners_raise_errors_except_for_empty_sentences(kind):
    with pytest.raises(ModelError, match="not been trained"):
        kind(**QUICK).align([TRAINING[0].pair])
    with pytest.raises(ConfigError, match="nothing to train on"):
        kind(**QUICK).fit([Example(TRAINING[0].pair, None)])
    empty = Sentence((), {"pos": (), "lemma": (), "head": ()})
    pair = SentencePair(empty, TRAINING[0].pair.target)
    assert kind(**QUICK).align([pair])[0].links == []


@pytest.mark.parametrize(
    "wrong", [{"train_by": "prayer"}, {"max_phrase": 0}, {"seed": -1}, {"sharpness": 0.0}, {"steps": 0}]
)
def test_invalid_settings_are_errors(wrong):
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        Manli(**{**QUICK, **wrong})


def test_a_state_of_other_settings_is_an_error():
    state = dict(trained().state())
    with pytest.raises(ConfigError, match="max_phrase=3"):
        Manli(**{**QUICK, "max_phrase": 3}).restore(state)
    with pytest.raises(ConfigError, match="weights"):
        Manli(**QUICK).restore({**state, "weights": state["weights"][:-1]})
    with pytest.raises(ConfigError, match="finite"):
        Manli(**QUICK).restore({**state, "weights": state["weights"] * np.nan})


def test_resources_are_declared():
    assert Manli().resources == ("glove-840b", "wordnet") and Manli(**QUICK).resources == ()
    assert Model(Manli(ppdb=True)).resources == ("glove-840b", "mwa-ppdb", "wordnet")
