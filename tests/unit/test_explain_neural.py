"""Explanations of networks: the parts add up to the log-odds of links, and each is what its inputs change."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from templates import corpus
from test_neural import aligner as a_network
from test_neural_mixed import aligner as a_mixture
from tiny_encoder import tiny_encoder

from jacana_torch.aligners.neural.inputs import Batch
from jacana_torch.aligners.neural.mixed import Mixed
from jacana_torch.aligners.neural.neural import Neural, link_probabilities
from jacana_torch.aligners.posterior import log_odds
from jacana_torch.errors import ConfigError
from jacana_torch.explain.parts import START
from jacana_torch.features.families.distortion import Distortion
from jacana_torch.features.families.position import Position
from jacana_torch.features.families.string import String
from jacana_torch.model.model import Model
from jacana_torch.types import Sentence, SentencePair

TRAINING, PAIRS = corpus(16), [e.pair for e in corpus(5, seed=7)]
FAMILIES = {"string": String(), "position": Position(), "distortion": Distortion()}


@pytest.fixture(scope="module", params=["members", "encoder"])
def network(request, tmp_path_factory) -> Neural:
    settings = {"judge": "both", "members": 2, "rarest": 2}
    if request.param == "encoder":
        folder = tiny_encoder(tmp_path_factory.mktemp("encoder"))
        settings = {"judge": "cells", "encoder": folder, "views": 2, "layers": (0, -1)}
    made = a_network(families=FAMILIES, **settings)
    made.fit(TRAINING)
    return made


def odds_of(network: Neural, pair: SentencePair) -> np.ndarray:
    (p,) = network.probabilities([pair])
    return log_odds(p)


def test_parts_add_up_to_the_log_odds_of_every_cell(network):
    explained = list(network.explain(PAIRS))
    for pair, explanation, alignment in zip(PAIRS, explained, network.align(PAIRS), strict=True):
        parts, odds = explanation.parts, odds_of(network, pair)
        assert explanation.alignment.sure == alignment.sure
        assert np.abs(parts.log_odds - odds).max() < 1e-4  # rounding differs with the batch
        assert (parts.spread >= 0).all() and len(set(parts.names)) == len(parts.names) >= 2
        for link in [*explanation.links(), explanation.link(0, 0)]:
            place = link.source, link.target
            assert sum(group.sum for group in link.groups) == pytest.approx(parts.log_odds[place], abs=1e-9)
            of_cells = sum(group.sum for group in link.cells)
            assert of_cells == pytest.approx(parts.log_odds[place] - parts.start[place], abs=1e-9)
            assert link.confidence is None or log_odds(np.array(link.confidence)) == pytest.approx(
                parts.log_odds[place], abs=1e-9
            )
            assert "cells" in link.to_dict()
            assert link.reason and "network gives" in link.verdict and "_" not in link.to_text(details=True)
        json.dumps(explanation.to_dict(), allow_nan=False)


def test_the_first_and_the_last_group_against_inputs_that_are_replaced(network):
    """Without the code that occludes: columns of a group set to their means, in the network's own forward pass."""
    (explanation,) = network.explain(PAIRS[:1])
    parts, (inputs,) = explanation.parts, network.prepared(PAIRS[:1]).inputs
    from jacana_torch.features.titles import Titles

    titles = Titles(network.features.node)
    batch = Batch.of([inputs], network.columns, "cpu")

    def odds(kept: set[str]) -> np.ndarray:
        off = [k for k, name in enumerate(network.columns.values) if titles[name].group not in kept]
        values = batch.values.clone()
        values[..., off] = 0.0
        marks = batch.marks if "words and tags" in kept else batch.marks * 0
        found = []
        with torch.no_grad():
            for one in network.ready():
                own = replace(batch, values=values, marks=marks)
                if one.contextual is not None:
                    seen = one.contextual(one.read(batch), batch.inside)
                    seen = seen if "encoder" in kept else seen.mean((1, 2), keepdim=True).expand_as(seen)
                    h = one.values(torch.cat([values, seen], 3)) + one.marks(marks).sum(3)
                    found.append(link_probabilities(one.judged(h, batch.inside, batch.sizes), network.judge))
                else:
                    found.append(link_probabilities(one.eval()(own), network.judge))
        return log_odds(torch.stack(found).mean(0).numpy()[0])

    everything, (first, *_, last) = set(parts.names), parts.names
    none, every = odds(set()), odds(everything)
    assert np.abs(parts.start - none).max() < 1e-4
    for name, sign in ((first, 1), (last, -1)):
        ahead, behind = odds({name}) - none, every - odds(everything - {name})
        assert np.abs(parts.parts[parts.names.index(name)] - (ahead + behind) / 2).max() < 1e-4
        assert np.abs(parts.spread[parts.names.index(name)] - np.abs(ahead - behind) / 2).max() < 1e-4, sign


@pytest.fixture(scope="module")
def mixed() -> Mixed:
    made = a_mixture(weights=(0.7, 0.2), bias=-0.1)
    made.linear.fit(TRAINING)
    return made


def test_a_mixture_adds_the_chains(network, mixed):
    mixed.network = network
    for smaller in (0.0, -0.3):
        mixed.combination = replace(mixed.combination, smaller=smaller)
        for explanation, alignment in zip(mixed.explain(PAIRS), mixed.align(PAIRS), strict=True):
            assert explanation.alignment.sure == alignment.sure and len(explanation.directions) == 2
            for link in [*explanation.links(), explanation.link(1, 0)]:
                titles = [group.title for group in link.groups]
                assert {START, "linear chains"} <= set(titles) and len(link.choices) == 2
                p = explanation.parts.combined[link.source, link.target]
                assert sum(group.sum for group in link.groups) == pytest.approx(np.log(p / (1 - p)), abs=1e-6)
                assert "the linear chains give" in link.verdict


def test_pairs_without_words_and_symmetrizers(network):
    model = Model(network)
    empty = SentencePair(Sentence(()), PAIRS[0].target)
    first, second, third = network.explain([PAIRS[0], empty, PAIRS[1]])
    assert first.parts is not None and third.parts is not None
    assert second.links() == [] and "no words" in second.note
    with pytest.raises(ConfigError, match="nothing to symmetrize"):
        model.explain(PAIRS[0], "union")
