"""Pruning removes the columns that change no score by much, and trains the others again."""

from __future__ import annotations

import numpy as np
import pytest
from composed import composed
from feature_twin import random_pairs
from test_explain import matrix_scores
from test_remember import WORDS, examples

from jacana_torch.aligners.base import learnable
from jacana_torch.aligners.crf import Crf
from jacana_torch.crf.objective import Objective, Part
from jacana_torch.crf.scores import node_scores
from jacana_torch.crf.states import readings
from jacana_torch.errors import ConfigError
from jacana_torch.features.families.context import Context
from jacana_torch.features.families.distortion import Distortion
from jacana_torch.features.families.kinds import Kinds
from jacana_torch.features.families.string import String
from jacana_torch.features.grid import Grid
from jacana_torch.model import persist
from jacana_torch.systems.phrase.phrase_crf import PhraseCrf
from jacana_torch.train import diagnostics, loop

LEAST = 0.05


def chain(**settings) -> Crf:
    families = {"string": String(), "context": Context(), "kinds": Kinds(), "distortion": Distortion()}
    return Crf(families, **{"tolerance": 1e-9, "max_iterations": 300, **settings})


@pytest.fixture(scope="module")
def whole() -> Crf:
    crf = chain()
    crf.fit(examples(1, 40))
    return crf


@pytest.fixture(scope="module")
def pruned() -> Crf:
    crf = chain(prune=LEAST)
    crf.fit(examples(1, 40))
    return crf


def test_pruned_columns_change_no_score_by_much(whole, pruned):
    weight = dict(zip(whole.names, whole.weights, strict=True))
    most = dict.fromkeys(whole.names, 0.0)
    batch = whole.features([e.pair for e in examples(1, 40)])
    lengths = [part for space in (batch.edge, batch.start, batch.end) for part in space.values()]
    for block in [*batch.link, *batch.null, *(block for part in lengths for block in part)]:
        for name, column in zip(block.names, block.dense().T, strict=True):
            most[name] = max([most[name], *(abs(value * weight[name]) for value in column.tolist())])
    assert pruned.names == [name for name in whole.names if most[name] >= LEAST]
    assert len(whole.names) / 10 < len(pruned.names) < len(whole.names) / 2


def test_the_remaining_columns_are_trained_again(pruned):
    """The weights are the optimum of a model that has only these columns: its gradient is 0 there."""
    taught = sorted(learnable(examples(1, 40)), key=lambda e: len(e.pair.target))
    space = pruned.chain_scores(pruned.features([e.pair for e in taught]), pruned.names)
    gold = [readings(e.gold, ["monotone"]).paths for e in taught]
    objective = Objective([Part(space, gold)], pruned.l2, {"cost_null": 1.0, "cost_link": 1.0})
    loss, slope = objective(pruned.weights)
    assert np.linalg.norm(slope) < 1e-2 < 1 < np.linalg.norm(objective(pruned.weights * 0.9)[1])
    report = chain(prune=LEAST).fit(examples(1, 40))
    assert report.loss["forward"] == pytest.approx(loss, rel=1e-12) and report.converged


def test_pruning_is_deterministic(pruned):
    again = chain(prune=LEAST)
    again.fit(examples(1, 40))
    assert again.names == pruned.names and np.array_equal(again.weights, pruned.weights)


def test_scores_are_those_of_the_remaining_columns(pruned):
    for pair in random_pairs(3, 20, WORDS, longest=5):
        expected, (got,) = matrix_scores(pruned, Grid([pair])), node_scores(Grid([pair]), pruned.scorer())
        assert got[: len(expected)] == pytest.approx(expected[:, 0], abs=1e-5)
        assert got[len(expected) :] == pytest.approx(expected[:, 1:].ravel(), abs=1e-5)


def test_a_smaller_model_is_a_smaller_file(tmp_path):
    sizes = {}
    for prune in (0.0, LEAST):
        aligner = composed("features=[string,distortion]", f"trainer.prune={prune}")["aligner"]
        config = {"_target_": "jacana_torch.model.model.Model", "aligner": aligner, "annotate": None}
        model = persist.build(config)
        model.aligner.fit(examples(2, 20))
        again = persist.load(persist.save(model, tmp_path / str(prune), {"model": config}, {}))
        pairs = random_pairs(4, 20, WORDS)
        assert again.align(pairs) == model.align(pairs)
        assert all(again.aligner.state()[f"{part}.names"] for part in ("forward", "backward"))
        sizes[prune] = (tmp_path / str(prune) / persist.WEIGHTS).stat().st_size
    assert sizes[LEAST] < sizes[0.0] * 0.7


def test_watchers_see_the_same_columns_throughout():
    class Kept:
        def __init__(self) -> None:
            self.steps: list[int] = []

        def scalars(self, figures, step):
            self.steps += [step for name in figures if name == "loss/forward"]

        def histogram(self, name, values, step): ...

        def image(self, name, pixels, step): ...

    tracker, data = Kept(), examples(1, 20)
    crf = chain(prune=LEAST, max_iterations=8)
    report = loop.fit(crf, data, data[:5], diagnostics.Monitor(tracker, data[:5], every=1))
    assert tracker.steps == list(range(1, report.iterations["forward"] + 1))
    assert len(crf.names) < len(chain().features([e.pair for e in data]).names())


def test_settings_that_leave_no_column_are_errors():
    with pytest.raises(ConfigError, match="prune=-1: must be at least 0"):
        chain(prune=-1)
    with pytest.raises(ConfigError, match="prune=10000.0: none of .* columns"):
        chain(prune=1e4).fit(examples(1, 10))
    with pytest.raises(ConfigError, match=r"prune=0.1: only a chain of single words"):
        PhraseCrf({"string": String()}, prune=0.1)
