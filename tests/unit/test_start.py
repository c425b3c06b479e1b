"""Fine-tuning: `start=MODEL` takes another model's configuration and weights, and stays near them."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from templates import corpus, layerless

import jacana_torch
from jacana_torch import corpora
from jacana_torch.aligners.base import FineTunable
from jacana_torch.aligners.bidirectional import Bidirectional
from jacana_torch.aligners.calibration import STEADY
from jacana_torch.aligners.crf import Crf
from jacana_torch.aligners.neural.mixed import Mixed
from jacana_torch.aligners.neural.neural import Neural
from jacana_torch.aligners.posterior import Combination, Posterior
from jacana_torch.cli import main
from jacana_torch.features.families.distortion import Distortion
from jacana_torch.features.families.position import Position
from jacana_torch.features.families.string import String
from jacana_torch.model import persist
from jacana_torch.systems.manli.manli import Manli
from jacana_torch.types import Alignment, Example


def families(*names: str) -> dict:
    made = {"string": String(), "position": Position(), "distortion": Distortion()}
    return {name: made[name] for name in names or made}


def backwards(examples: list[Example]) -> list[Example]:
    """The same pairs by another convention: the first token of a pair is never linked."""
    changed = []
    for example in examples:
        gold = example.gold
        kept = frozenset(link for link in gold.sure if link[0])
        changed.append(replace(example, gold=Alignment(gold.n_source, gold.n_target, kept)))
    return changed


@pytest.fixture(scope="module")
def first() -> Crf:
    made = Crf(families(), max_iterations=60)
    made.fit(layerless(corpus(40)))
    return made


def test_the_prior_pulls_towards_the_start(first):
    """The stronger the pull, the nearer; without gold to the contrary the weights stay where they were."""
    others, distance = backwards(layerless(corpus(12, seed=5))), []
    start = dict(zip(first.names, first.weights, strict=True))
    for pull in (0.1, 1.0, 10.0, 1e9):
        made = Crf(families(), max_iterations=200, tolerance=1e-9)
        made.start_from(first.state(), pull)
        made.fit(others)
        known = [k for k, name in enumerate(made.names) if name in start]
        distance.append(np.linalg.norm(made.weights[known] - [start[made.names[k]] for k in known]))
    assert distance == sorted(distance, reverse=True) and distance[0] > 1 and distance[-1] < 1e-6


def test_the_loss_has_the_start_as_the_mean_of_its_prior(first):
    """Loss and gradient against the definition: those without the prior, plus pull * l2 / 2 * |w - start|^2."""
    from jacana_torch.crf.objective import Objective, Part
    from jacana_torch.crf.states import readings

    examples = layerless(corpus(5, seed=3))
    batch = first.features([e.pair for e in sorted(examples, key=lambda e: len(e.pair.target))])
    scores = first.chain_scores(batch, first.names)
    gold = [readings(e.gold, ["monotone"]).paths for e in sorted(examples, key=lambda e: len(e.pair.target))]
    costs = {"cost_null": 1.0, "cost_link": 1.0}
    random = np.random.default_rng(0)
    mean, l2, at = (random.random(len(first.names)) for _ in range(3))
    bare, slope = Objective([Part(scores, gold)], 0.0, costs)(at)
    loss, gradient = Objective([Part(scores, gold)], l2, costs, mean=mean)(at)
    assert loss == pytest.approx(bare + (l2 * (at - mean) ** 2).sum() / 2, rel=1e-12)
    assert np.allclose(gradient, slope + l2 * (at - mean), rtol=1e-10, atol=1e-10)


def test_new_features_begin_at_zero_with_the_ordinary_prior_and_dropped_ones_are_gone(first, caplog):
    before = Crf(families("string", "distortion"))
    before.fit(layerless(corpus(20)))
    made = Crf(families(), max_iterations=1)
    made.start_from(before.state(), 5.0)
    assert not any(name.startswith("position.") for name in made.names)
    made.fit(layerless(corpus(10)))
    assert any(name.startswith("position.") for name in made.names) and set(before.names) <= set(made.names)
    assert not any(name.startswith("position.") for name in made.mean)
    less = Crf(families("string", "distortion"))
    less.start_from(first.state(), 1.0)
    assert {name.split(".")[0] for name in less.names} == {"string", "distortion"}
    assert "not read here" in caplog.text


def test_a_second_fit_keeps_the_pull(first):
    made = Crf(families(), tolerance=1e-9)
    made.start_from(first.state(), 3.0)
    once = made.fit(layerless(corpus(10, seed=4))).loss["forward"]
    again = made.fit(layerless(corpus(10, seed=4)))
    assert again.loss["forward"] == pytest.approx(once, rel=1e-6) and again.iterations["forward"] <= 3


def test_few_pairs_move_the_combination_little_and_fewer_than_needed_not_at_all():
    chains = Crf(families(), max_iterations=30), Crf(families(), max_iterations=30)
    start = Bidirectional(*chains, symmetrize=Posterior(folds=2))
    start.fit(layerless(corpus(40)))
    start.combination = Combination(0.9, 0.2, -3.0, 0.7, 0.1)
    for n, moves in ((10, False), (30, True)):
        made = Bidirectional(Crf(families()), Crf(families()), symmetrize=Posterior(folds=2))
        made.start_from(start.state(), 3.0)
        made.fit(layerless(corpus(n, seed=7)))
        assert (made.combination != start.combination) is moves
        assert abs(made.combination.threshold - 0.7) <= 0.4 * n / (n + STEADY) + 1e-9


def test_what_can_start_is_a_protocol():
    chain, network = Crf(families()), Neural(families())
    both = Bidirectional(chain, chain)
    assert all(isinstance(one, FineTunable) for one in (chain, both, network, Mixed(network, both)))
    assert not isinstance(Manli(), FineTunable)


# The command line


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("start")
    corpora.write(layerless(corpus(40)), str(folder / "words.jsonl"), "jsonl")
    corpora.write(backwards(layerless(corpus(24, seed=5))), str(folder / "own.jsonl"), "jsonl")
    return folder


@pytest.fixture
def train(files, tmp_path, capsys, monkeypatch):
    root, threads = logging.getLogger(), torch.get_num_threads()
    handlers, level = root.handlers[:], root.level
    monkeypatch.chdir(tmp_path)

    def call(*overrides: str) -> tuple[int, list[str], str]:
        code = main(["train", f"data.root={files}", "data.train=[own.jsonl]", "logger=none", *overrides])
        out, err = capsys.readouterr()
        return code, out.splitlines(), err

    yield call
    root.handlers[:], root.level = handlers, level
    torch.set_num_threads(threads)


def read(directory: str, name: str) -> dict:
    return json.loads(Path(directory, name).read_text())


def test_a_shipped_model_is_fine_tuned_with_its_own_configuration(train, tmp_path):
    code, out, err = train("start=core", "output=mine", "trainer.l2=3", "trainer.max_iterations=30")
    assert (code, out) == (0, ["mine"]), err
    config, shipped = read("mine", "config.json"), persist.read_config(persist.locate("core"))
    own, theirs = config["model"]["aligner"], shipped["model"]["aligner"]
    assert (
        own["forward"]["families"] == theirs["forward"]["families"] and own["symmetrize"] == theirs["symmetrize"]
    )
    assert own["forward"]["l2"] == own["backward"]["l2"] == 3 and theirs["forward"]["l2"] == 2
    assert config["description"] == "core, trained further" and read("mine", "signature.json")["start"] == "core"
    mine, core = jacana_torch.load("mine"), jacana_torch.load("core")
    assert set(core.aligner.forward.names) <= set(mine.aligner.forward.names)
    known = persist.trained_on("core")
    assert persist.trained_on("mine") == known | {
        e.pair.checksum for e in backwards(layerless(corpus(24, seed=5)))
    }


def test_settings_of_the_run_come_on_top_of_the_start(train):
    code, out, err = train(
        "start=core", "data.limit=10", "features=[string,distortion,ppdb]", "features.string.threshold=0.6",
        "drop=[ppdb]", "symmetrize=union", "aligner.forward.policy=first", "trainer.max_iterations=3",
    )  # fmt: skip
    assert code == 0, err
    aligner = read(out[0], "config.json")["model"]["aligner"]
    for part in ("forward", "backward"):
        chain = aligner[part]
        assert list(chain["families"]) == ["string", "distortion"] and chain["policy"] == "first"
        assert chain["families"]["string"]["threshold"] == 0.6 and chain["max_iterations"] == 3
    assert "union" in aligner["symmetrize"]["_target_"] and "not read here" in err


def test_an_experiment_or_aligner_has_its_own_configuration(train):
    code, out, _ = train(
        "start=core", "aligner=crf", "annotate=none", "features=[string,distortion]", "data.limit=10"
    )
    aligner = read(out[0], "config.json")["model"]["aligner"]
    assert code == 0 and aligner["symmetrize"]["_target_"].endswith("grow_diag_final")
    assert len(jacana_torch.load(out[0]).aligner.forward.names) > 5


@pytest.mark.slow
def test_folds_of_a_cross_validation_start_too_and_say_what_the_start_knows(train, tmp_path):
    fast = ("trainer.max_iterations=5", "symmetrize=union")
    assert train("start=core", "output=mine", *fast)[0] == 0
    code, out, err = train("start=mine", "cv=2", "workers=1", *fast)
    assert code == 0 and "mine was trained on 24 of the 24 scored pairs" in err
    scratch = train("aligner=crf", "features=[string]", "annotate=none", "cv=2", "workers=1", *fast)
    scores = [json.loads(Path(o[0], "scores.json").read_text())["union"]["f1"] for o in (out, scratch[1])]
    assert scores[0] > scores[1] and "trained on" not in scratch[2]


def test_resume_is_for_interrupted_runs_and_points_to_start(train):
    for given in ("resume=core", "resume=mine"):
        if given.endswith("mine"):
            assert train("start=core", "output=mine", "trainer.max_iterations=30", "symmetrize=union")[0] == 0
        code, out, err = train(given)
        assert (code, out) == (2, []) and f"start={given[7:]}" in err and "not interrupted" in err


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        (["start=nowhere"], "nowhere"),
        (["start=core", "aligner=manli"], "Manli cannot start"),
        (["start=core", "trainer.pull=0"], "pull"),
        (["start=core", "trainer.pull=strong"], "trainer.pull"),
        (["start=core", "trainer.start=1"], "trainer.start"),
        (["start=core", "aligner=neural", "features=[string,distortion]", "annotate=none"], "no network"),
    ],
)
def test_mistakes(train, overrides, says):
    code, out, err = train(*overrides)
    assert (code, out) == (2, []) and says in err and "Traceback" not in err
