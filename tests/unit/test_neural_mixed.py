"""A network and linear chains combined: probabilities, learning the weights, saving."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from templates import corpus

from jacana_torch.aligners.bidirectional import Bidirectional
from jacana_torch.aligners.crf import Crf
from jacana_torch.aligners.neural.mixed import Mixed
from jacana_torch.aligners.neural.neural import Neural
from jacana_torch.aligners.posterior import Combination, both_ways
from jacana_torch.encoders import checkpoint
from jacana_torch.errors import ConfigError, MissingResource
from jacana_torch.evaluate import score
from jacana_torch.features.families.context import Context
from jacana_torch.features.families.distortion import Distortion
from jacana_torch.features.families.position import Position
from jacana_torch.features.families.string import String
from jacana_torch.model import persist
from jacana_torch.model.model import Model
from jacana_torch.types import Alignment, Sentence, SentencePair

TRAINING, HELD_OUT = corpus(24), corpus(10, seed=7)
PAIRS = [e.pair for e in HELD_OUT]


def aligner(network: dict | None = None, **settings) -> Mixed:
    jumps = {"distortion": Distortion()}
    one, other = (Crf({"string": String(), "position": Position(), **jumps}) for _ in "ab")
    small = {"width": 8, "blocks": 1, "epochs": 12, "batch_pairs": 4}
    of_grid = {"string": String(), "context": Context(), **jumps}
    return Mixed(Neural(of_grid, **{**small, **(network or {})}), Bidirectional(one, other), **settings)


@pytest.fixture(scope="module")
def trained() -> Mixed:
    made = aligner(network={"members": 2}, weights=(0.7, 0.2), bias=-0.1)
    made.fit(TRAINING)
    return made


def linear_probabilities(made: Mixed, pair: SentencePair) -> np.ndarray:
    """From the posteriors of each direction, which have tests of their own."""
    ((_, both),) = both_ways(made.linear.forward, made.linear.backward, [pair])
    ahead, behind = both.posteriors()
    odds = 0.36 * np.log(ahead / (1 - ahead)) + 0.41 * np.log(behind / (1 - behind)) + 0.24
    return (1 / (1 + np.exp(-odds))).reshape(len(pair.source), len(pair.target))


def test_log_odds_are_a_weighted_sum(trained):
    for pair, found in zip(PAIRS, trained.align(PAIRS), strict=True):
        (network,), linear = trained.network.probabilities([pair]), linear_probabilities(trained, pair)
        for i, j in np.ndindex(network.shape):
            p, q = (min(max(float(x[i, j]), 1e-6), 1 - 1e-6) for x in (network, linear))
            odds = (p / (1 - p)) ** 0.7 * (q / (1 - q)) ** 0.2 * np.exp(-0.1)
            assert ((i, j) in found.sure) == (odds > 1)
            if odds > 1:
                assert found.confidence[i, j] == pytest.approx(odds / (1 + odds), abs=1e-4)


def test_the_network_aligns_by_its_probabilities(trained):
    for pair, probabilities, found in zip(
        PAIRS, trained.network.probabilities(PAIRS), trained.network.align(PAIRS), strict=True
    ):
        assert probabilities.shape == (len(pair.source), len(pair.target))
        assert found.sure == {(i, j) for i, j in np.argwhere(probabilities > 0.5).tolist()}
        assert all(found.confidence[link] == probabilities[link] for link in found.sure)


def test_the_number_of_pairs_at_a_time_does_not_matter(trained, monkeypatch):
    together = trained.network.probabilities(PAIRS)
    monkeypatch.setattr("jacana_torch.aligners.neural.neural.AT_A_TIME", 4)
    for expected, found in zip(together, trained.network.probabilities(PAIRS), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-6)


def test_it_learns(trained):
    assert score([e.gold for e in HELD_OUT], trained.align(PAIRS)).f1 > 0.9


def test_a_part_of_weight_0_does_not_count(trained):
    alone = Combination(1.0, 0.0, 0.0, 0.5)
    network = with_combination(trained, alone).align(PAIRS)
    assert network == trained.network.align(PAIRS)
    linear = with_combination(trained, Combination(0.0, 1.0, 0.0, 0.5)).align(PAIRS)
    assert linear == trained.linear.align(PAIRS, symmetrize="posterior")


def with_combination(made: Mixed, combination: Combination) -> Mixed:
    other = replace(made)
    other.restore(made.state())
    other.combination = combination
    return other


def test_weights_are_learnt_from_pairs_that_neither_part_saw(monkeypatch):
    made = aligner(folds=2, network={"epochs": 3, "members": 2})
    runs = []
    sample = Mixed._sample
    monkeypatch.setattr(Mixed, "_sample", lambda self, *split: runs.append((self, split)) or sample(self, *split))
    made.fit(TRAINING)
    assert made.combination != Combination(0.5, 0.5, 0.0, 0.5)
    held_out = [id(e) for _, (_, out) in runs for e in out]
    assert sorted(held_out) == sorted(id(e) for e in TRAINING)
    for other, (training, out) in runs:
        assert not {id(e) for e in training} & {id(e) for e in out} and len(training) == len(out) == 12
        assert other.linear.forward is not made.linear.forward and len(other.network.networks) == 1
    again = aligner(folds=2, network={"epochs": 3, "members": 2})
    again.fit(TRAINING)
    assert again.combination == made.combination
    restored = aligner(folds=2, network={"epochs": 3, "members": 2})
    restored.restore(made.state())
    assert restored.combination == made.combination and restored.align(PAIRS) == made.align(PAIRS)


def test_a_network_starts_from_one_of_a_mixed_model(trained, tmp_path):
    config = {"model": {"_target_": "jacana_torch.model.model.Model", "aligner": {}}}
    persist.save(Model(trained), tmp_path / "model", config, {})
    other = aligner(network={"members": 2, "start": str(tmp_path / "model"), "rate": 0.0, "epochs": 1})
    other.network.fit(TRAINING[:4])
    for one, found in zip(trained.network.probabilities(PAIRS), other.network.probabilities(PAIRS), strict=True):
        np.testing.assert_allclose(found, one, atol=1e-6)


@pytest.mark.parametrize("part", ["forward", "grid"])
def test_an_interruption_keeps_the_weights(part):
    made = aligner()

    def stop(step) -> None:
        if step.part == part:
            raise KeyboardInterrupt

    report = made.fit(TRAINING, watch=stop)
    assert report.interrupted and not report.converged
    again = aligner()
    again.restore(made.state())
    again.fit(TRAINING)  # continues
    assert score([e.gold for e in HELD_OUT], again.align(PAIRS)).f1 > 0.9


def test_pairs_without_words(trained):
    nothing = Sentence(())
    pairs = [SentencePair(PAIRS[0].source, nothing), SentencePair(nothing, PAIRS[0].target), PAIRS[0]]
    found = trained.align(pairs)
    assert found[:2] == [Alignment(len(PAIRS[0].source), 0), Alignment(0, len(PAIRS[0].target))] and found[2].sure


@pytest.mark.parametrize(
    "settings",
    [{"weights": (1.0,)}, {"weights": (1.0, float("nan"))}, {"threshold": 0.0}, {"folds": 1}, {"folds": -2}],
    ids=str,
)
def test_impossible_settings_are_errors(settings):
    with pytest.raises(ConfigError, match=next(iter(settings))):
        aligner(**settings)


def test_parts_of_other_classes_are_errors():
    made = aligner()
    with pytest.raises(ConfigError, match="network=Bidirectional"):
        Mixed(made.linear, made.linear)
    with pytest.raises(ConfigError, match="two Crf"):
        Mixed(made.network, made.network)


def test_a_missing_package_is_an_error_before_the_chains_are_trained(monkeypatch):
    made = aligner(network={"encoder": "mpnet"})
    checkpoint.tokenizer.cache_clear()  # which tests before it may have opened
    monkeypatch.setattr("jacana_torch.encoders.checkpoint.find_spec", lambda name: None)
    seen = []
    with pytest.raises(MissingResource, match=r"jacana-torch\[neural\]"):
        made.fit(TRAINING, watch=seen.append)
    assert seen == []
