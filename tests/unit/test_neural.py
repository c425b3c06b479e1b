"""The neural aligner: gradients, padding, training, saving, and refused settings."""

from __future__ import annotations

import copy
import itertools
import sys
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest
import torch
from templates import corpus, layerless
from tiny_encoder import tiny_encoder

from jacana_torch.aligners.neural import network as networks
from jacana_torch.aligners.neural.inputs import Batch, Columns, Inputs, batches, inputs_of
from jacana_torch.aligners.neural.network import Contextual, EncoderCache
from jacana_torch.aligners.neural.neural import Neural, alignment_of, link_probabilities
from jacana_torch.aligners.neural.training import gold_of, mean_loss
from jacana_torch.crf.kernel import posteriors
from jacana_torch.errors import ConfigError, ModelError
from jacana_torch.evaluate import score
from jacana_torch.features.families.context import Context
from jacana_torch.features.families.distortion import Distortion
from jacana_torch.features.families.pos import Pos
from jacana_torch.features.families.position import Position
from jacana_torch.features.families.string import String
from jacana_torch.features.featureset import FeatureSet
from jacana_torch.model import persist
from jacana_torch.model.model import Model
from jacana_torch.types import Alignment, Example, Sentence, SentencePair

sys.path.append(str(Path(__file__).parents[1] / "contract"))
from contract import CHECKS, Contract

TRAINING, HELD_OUT = corpus(24), corpus(10, seed=7)


def aligner(**settings) -> Neural:
    families = {"string": String(), "context": Context(), "position": Position(), "distortion": Distortion()}
    small = {"width": 8, "blocks": 1, "epochs": 2}
    return Neural(settings.pop("families", families), **{**small, **settings})


def full(trained: Neural, examples=HELD_OUT) -> list:
    return [(a.sure, dict(a.confidence), a.score) for a in trained.align([e.pair for e in examples])]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory) -> str:
    return tiny_encoder(tmp_path_factory.mktemp("encoder"))


@pytest.fixture(scope="module")
def trained() -> Neural:
    made = aligner(epochs=20, batch_pairs=4)
    made.fit(TRAINING)
    return made


def test_it_learns(trained):
    found = score([e.gold for e in HELD_OUT], trained.align([e.pair for e in HELD_OUT]))
    assert found.f1 > 0.9


@pytest.mark.slow
def test_compiled_blocks_train_the_same():
    plain, compiled = aligner(epochs=1, dropout=0.0), aligner(epochs=1, dropout=0.0, captured=True)
    losses = [made.fit(TRAINING).loss["grid"] for made in (plain, compiled)]
    assert losses[1] == pytest.approx(losses[0], rel=1e-4)
    assert plain.state().keys() == compiled.state().keys()


# The network


def batch_of(made: Neural, examples, dtype=torch.float64) -> Batch:
    batch = Batch.of(made.prepared([e.pair for e in examples]).inputs, made.columns, "cpu")
    return Batch(batch.sizes, batch.values.to(dtype), batch.marks, batch.inside.to(dtype), batch.windows)


def test_padding_changes_nothing(trained):
    """In double precision, the output for a pair is the same alone and among larger ones."""
    network = copy.deepcopy(trained.networks[0]).double().eval()
    together = network(batch_of(trained, HELD_OUT))
    for k, example in enumerate(HELD_OUT):
        own = network(batch_of(trained, [example]))
        m, n = own.alone.shape[1:]
        torch.testing.assert_close(together.alone[k : k + 1, :m, :n], own.alone)
        for batched, alone in ((together.forward, own.forward), (together.backward, own.backward)):
            g, nodes = batched.layout.geometry, batched.flat[0]
            token, cell = int(g.source_start[k]), batched.layout.n_tokens + int(g.cell_start[k])
            seen = nodes[token : token + alone.layout.n_tokens], nodes[cell : cell + m * n]
            torch.testing.assert_close(torch.cat(seen), alone.flat[0])


@pytest.mark.parametrize("with_encoder", [False, True])
def test_gradients_are_differences(encoder, with_encoder):
    made = aligner(encoder=encoder if with_encoder else None, rank=2, views=2, rarest=1)
    made.fit(TRAINING[:3])
    network = made.networks[0].double().eval()
    random = torch.Generator().manual_seed(1)
    for p in network.learnt().values():  # weights of 0 would have no gradient
        torch.nn.init.normal_(p, std=0.3, generator=random)
    examples = TRAINING[:3]
    batch, gold = batch_of(made, examples), [gold_of(e.gold, "monotone") for e in examples]

    def loss() -> torch.Tensor:
        return mean_loss(network(batch), gold, batch.inside, 0.5)

    network.zero_grad()
    loss().backward()
    step = 1e-6  # small, because maxima over cells are not differentiable everywhere
    for name, p in network.learnt().items():
        if not p.numel() or not p.grad.any():
            continue
        at = np.unravel_index(int(p.grad.abs().argmax()), p.shape)
        values = []
        for sign in (1, -1):
            with torch.no_grad():
                p[at] += sign * step
                values.append(float(loss()))
                p[at] -= sign * step
        difference = (values[0] - values[1]) / (2 * step)
        assert float(p.grad[at]) == pytest.approx(difference, rel=1e-4, abs=1e-5), name


def test_every_parameter_learns(encoder):
    made = aligner(encoder=encoder, rank=2, views=2, rarest=1, epochs=1, dropout=0.0)
    made.fit(TRAINING)
    before = made._network(made.seed).learnt()
    (network,) = made.networks
    still = [name for name, p in network.learnt().items() if p.numel() and torch.equal(p, before[name])]
    assert still == []


def test_an_encoder_of_rate_0_runs_once_and_does_not_change(encoder, monkeypatch):
    made = aligner(encoder=encoder, rank=2, views=2, epochs=3, encoder_rate=0.0)
    runs = []
    monkeypatch.setattr(
        Contextual,
        "read",
        lambda self, windows, sizes, *finely, read=Contextual.read: (
            runs.extend(sizes) or read(self, windows, sizes)
        ),
    )
    made.fit(TRAINING)
    assert len(runs) == len(TRAINING)
    before, after = made._network(made.seed).learnt(), made.networks[0].learnt()
    changed = {name for name, p in after.items() if not torch.allclose(p, before[name], atol=1e-3)}
    assert changed and not any(name.startswith("contextual.encoder.") for name in changed)


def test_the_output_of_a_frozen_encoder_is_cached_until_another_runs(encoder, monkeypatch):
    """Training pairs are cached, because folds share them; other pairs are not."""
    runs = []
    monkeypatch.setattr(
        Contextual,
        "read",
        lambda self, windows, sizes, *finely, read=Contextual.read: (
            runs.extend(sizes) or read(self, windows, sizes)
        ),
    )
    monkeypatch.setattr(networks, "CACHE", EncoderCache())
    settings = {"encoder": encoder, "rank": 0, "views": 2}
    first, second = aligner(**settings), aligner(**settings)
    first.fit(TRAINING[:9])
    alone = full(first)
    assert len(runs) == 9 + len(HELD_OUT)
    second.fit(TRAINING[3:12])
    assert len(runs) == 12 + len(HELD_OUT)
    assert full(first) == alone and len(runs) == 12 + 2 * len(HELD_OUT)
    fresh = aligner(**settings)
    monkeypatch.setattr(networks, "CACHE", EncoderCache())
    fresh.fit(TRAINING[3:12])
    assert [links for links, _, _ in full(fresh)] == [links for links, _, _ in full(second)]
    runs.clear()
    aligner(**{**settings, "layers": [0, 1]}).fit(TRAINING[:9])
    assert len(runs) == 9
    monkeypatch.setattr(networks, "MOST_WORDS", 60)
    small = EncoderCache()
    monkeypatch.setattr(networks, "CACHE", small)
    aligner(**settings).fit(TRAINING[:9])
    assert 0 < small.words <= 60 and len(small.kept) < 9


def test_members_share_a_frozen_encoder(encoder, tmp_path):
    config = {"model": {"_target_": "jacana_torch.model.model.Model", "aligner": {}}}
    settings = {"encoder": encoder, "rank": 2, "views": 2, "rate": 1e-2}
    first = aligner(**settings)
    first.fit(TRAINING)
    persist.save(Model(first), tmp_path / "model", config, {})
    two = aligner(**settings, start=str(tmp_path), members=2, encoder_rate=0.0)
    two.fit(TRAINING[:8])
    assert two.networks[0].contextual.encoder is two.networks[1].contextual.encoder
    state = two.state()
    assert not any(name.startswith("1.contextual.encoder.") for name in state) and "1.alone.weight" in state
    assert any(
        not np.array_equal(state[f"0.{name}"], state[f"1.{name}"]) for name in ("alone.weight", "norm.bias")
    )
    for name in (name for name in state if name.startswith("0.contextual.encoder.")):
        assert np.array_equal(state[name], first.state()[name])
    again = aligner(**settings, members=2, encoder_rate=0.0)
    again.restore(state)
    assert full(again) == full(two)


def test_full_and_frozen_encoders(encoder):
    learnt = {}
    for rank in (None, 0, 2):
        made = aligner(encoder=encoder, rank=rank, views=2, epochs=1)
        made.fit(TRAINING[:8])
        learnt[rank] = sum(name.startswith("0.contextual.encoder.") for name in made.state())
    assert learnt[0] == 0 < learnt[2] < 2 * learnt[None]


def test_the_loss_adds_the_cross_entropy_of_cells_to_that_of_chains(trained):
    """Only the logits of cells differ, so the losses differ by 0.3 times the cross-entropy per pair."""
    batch, gold = batch_of(trained, TRAINING[:3]), [gold_of(e.gold, "monotone") for e in TRAINING[:3]]
    output = copy.deepcopy(trained.networks[0]).double().eval()(batch)
    logits = torch.linspace(-2, 2, output.alone.numel(), dtype=torch.float64).reshape(output.alone.shape)
    losses = [
        float(mean_loss(output._replace(alone=x), gold, batch.inside, 0.5).detach())
        for x in (logits, torch.zeros_like(logits))
    ]
    expected = 0.0
    for k, one in enumerate(gold):
        for (i, j), linked in np.ndenumerate(one.links):
            sign = 1 if linked else -1
            expected += np.log1p(np.exp(-sign * float(logits[k, i, j]))) - np.log(2)
    assert losses[0] - losses[1] == pytest.approx(0.3 * expected / 3)


def test_an_untrained_network_links_few_cells():
    made = aligner()
    with torch.no_grad():
        made.columns = Columns.of([e.pair for e in TRAINING], made.features, None)
        made.columns.measure(made._inputs([e.pair for e in TRAINING]))
        network = made._network(made.seed).eval()
        batch = Batch.of(made.prepared([e.pair for e in HELD_OUT]).inputs, made.columns, "cpu")
        assert torch.sigmoid(network(batch).alone).mean() < 0.2


# Inputs


def test_values_are_standardised_and_outliers_are_cut():
    columns = Columns(["common", "constant", "rare"])
    cells = np.zeros((100, 1, 3), np.float16)
    cells[:50, 0, 0], cells[:, 0, 1], cells[0, 0, 2] = 1, 3, 1
    inputs = Inputs((100, 1), cells, np.zeros((100, 1, 0), np.int32))
    columns.measure([inputs])
    values = Batch.of([inputs], columns, "cpu").values[0, :, 0].numpy()
    assert values[:, 0] == pytest.approx(np.repeat([1, -1], 50), abs=0.02 + 1e-6)
    assert (values[:, 1] == 0).all()
    assert values[0, 2] == 6.0 and values[1, 2] == pytest.approx(-0.092, abs=1e-3)


def test_random_batches_vary_and_still_hold_pairs_of_similar_size():
    sizes = [(10, 8 + k) for k in range(20)]
    made = [{frozenset(batch) for batch in batches(sizes, 4, 10**6, Random(seed))} for seed in range(9)]
    assert len(set(map(frozenset, made))) > 5
    spread = np.mean([max(batch) - min(batch) for one in made for batch in one])
    assert 3 < spread < 12, "3 if sorted by size, 12 or more at random"


def test_inputs_are_the_families_columns():
    features = FeatureSet({"string": String(), "pos": Pos()})
    pairs = [e.pair for e in TRAINING[:5]]
    columns = Columns.of(pairs, features, rarest=1)
    columns.measure(inputs_of(pairs, columns, features))
    for pair in pairs:
        (one,) = inputs_of([pair], columns, features)
        expected: dict[str, np.ndarray] = {}
        for block in features([pair]).link:
            dense = block.dense()
            expected |= {name: dense[:, k] for k, name in enumerate(block.names) if dense[:, k].any()}
        m, n = one.size
        found = {
            name: one.values.reshape(m * n, -1)[:, k].astype(float)
            for k, name in enumerate(columns.values)
            if one.values[:, :, k].any()
        }
        for k, name in enumerate(columns.marks, 1):
            on = (one.marks.reshape(m * n, -1) == k).any(1)
            if on.any():
                found[name] = on.astype(float)
        assert set(found) == set(expected)
        for name, values in expected.items():
            np.testing.assert_allclose(found[name], values, atol=2e-3)


def test_batches_hold_every_pair_once_and_respect_their_limits():
    random = Random(1)
    sizes = [(random.randint(1, 30), random.randint(1, 30)) for _ in range(97)]
    for jitter in (None, random):
        made = batches(sizes, 7, 2000, jitter)
        assert sorted(itertools.chain(*made)) == list(range(97))
        for one in made:
            cells = len(one) * max(sizes[k][0] for k in one) * max(sizes[k][1] for k in one)
            assert len(one) == 1 or (len(one) <= 7 and cells <= 2000)
    assert batches([(50, 50), (60, 60)], 8, 100) == [[0], [1]]


def test_links_that_no_state_holds_are_counted():
    gold = gold_of(Alignment(2, 2, frozenset({(0, 0), (0, 1), (1, 0), (1, 1)})), "first")
    assert gold.forward.tolist() == [1, 1] and gold.backward.tolist() == [1, 1]
    assert gold.links.all() and gold.dropped == 1


def test_cells_above_the_threshold_are_links():
    found = alignment_of(np.array([[0.9, 0.2], [0.4, 0.6]]), 0.5)
    assert found.sure == {(0, 0), (1, 1)} and found.confidence == {(0, 0): 0.9, (1, 1): 0.6}
    assert found.score == pytest.approx(np.log(0.9 * 0.8 * 0.6 * 0.6) / 2)


def test_probabilities_by_each_judge(trained):
    """Chains by their posteriors, which have tests of their own; cells by their log-odds."""
    batch = Batch.of(trained.prepared([HELD_OUT[0].pair]).inputs, trained.columns, "cpu")
    with torch.no_grad():
        output = trained.networks[0].eval()(batch)
        chains, cells, both = (link_probabilities(output, judge)[0] for judge in ("chains", "cells", "both"))
    m, n = batch.sizes[0]
    ahead, back = (posteriors(*scores).nodes for scores in (output.forward, output.backward))
    ahead, back = ahead[m:].reshape(m, n), back[n:].reshape(n, m)
    for (i, j), value in np.ndenumerate(chains.numpy()):
        assert value == pytest.approx((float(ahead[i, j]) + float(back[j, i])) / 2)
        assert float(cells[i, j]) == pytest.approx(1 / (1 + np.exp(-float(output.alone[0, i, j]))))
    torch.testing.assert_close(both, (chains + cells) / 2)


# Saving and continuing


@pytest.mark.parametrize("settings", [{}, {"members": 2}, {"rarest": 2}])
def test_a_restored_aligner_gives_the_same(settings, tmp_path):
    made = aligner(**settings)
    made.fit(TRAINING)
    other = aligner(**settings)
    other.restore(made.state())
    assert full(other) == full(made)
    assert all(a.dtype == np.float16 for k, a in made.state().items() if k[0].isdigit())


def test_the_contract_holds_with_an_encoder(encoder, tmp_path):
    string, edges = (
        {"_target_": f"jacana_torch.features.families.{x}"} for x in ("string.String", "distortion.Distortion")
    )
    config = {
        "_target_": "jacana_torch.aligners.neural.neural.Neural", "families": {"string": string, "jumps": edges},
        "encoder": encoder, "rank": 2, "views": 2, "width": 8, "blocks": 1, "epochs": 3,
    }  # fmt: skip
    contract = Contract(config, tmp_path)
    for check in CHECKS:
        check(contract)


def test_it_starts_from_another_model(trained, tmp_path):
    config = {"model": {"_target_": "jacana_torch.model.model.Model", "aligner": {}}}
    persist.save(Model(trained), tmp_path / "model", config, {})
    started = aligner(start=str(tmp_path), rate=0.0, epochs=1, batch_pairs=4)
    started.fit(TRAINING[:4])
    assert full(started) == full(trained)
    with pytest.raises(ConfigError, match="features context, position"):
        aligner(start=str(tmp_path), families={"string": String()}).fit(TRAINING)
    with pytest.raises(ModelError, match="other settings"):
        aligner(start=str(tmp_path), width=9).fit(TRAINING)
    with pytest.raises(ConfigError, match="no model to start from"):
        aligner(start=str(tmp_path / "nowhere")).fit(TRAINING)


def test_the_best_epoch_on_dev_is_kept_and_patience_ends_training():
    seen = []
    made = aligner(epochs=9, patience=2, rate=0.0)
    report = made.fit(TRAINING, HELD_OUT, lambda step: seen.append((step.part, step.iteration)))
    assert report.iterations == {"grid": 3} and seen == [("grid", 1), ("grid", 2), ("grid", 3)]
    best = aligner(epochs=6, patience=6)
    scores = []

    def watch(step) -> None:
        scores.append(score([e.gold for e in HELD_OUT], step.aligner.align([e.pair for e in HELD_OUT])).f1)

    best.fit(TRAINING, HELD_OUT, watch)
    kept = score([e.gold for e in HELD_OUT], best.align([e.pair for e in HELD_OUT])).f1
    assert kept == pytest.approx(max(scores), abs=1e-6)


def test_an_interruption_keeps_the_weights():
    made = aligner(epochs=5)

    def stop(step) -> None:
        raise KeyboardInterrupt

    report = made.fit(TRAINING, watch=stop)
    assert report.interrupted and not report.converged
    assert full(made)


def test_the_global_random_state_is_untouched():
    torch.manual_seed(4)
    expected = torch.rand(3)
    torch.manual_seed(4)
    aligner(epochs=1).fit(TRAINING[:4])
    assert torch.equal(torch.rand(3), expected)


def test_gradients_of_several_batches_accumulate_to_one_step():
    """Four batches of one pair make the same step as one batch of four."""
    made = [aligner(batch_pairs=pairs, accumulate=4 // pairs, epochs=1, dropout=0.0) for pairs in (4, 1)]
    for one in made:
        one.fit(TRAINING[:4])
    for (name, a), b in zip(
        made[0].networks[0].learnt().items(), made[1].networks[0].learnt().values(), strict=True
    ):
        torch.testing.assert_close(a, b, atol=2e-3, rtol=0, msg=name)


# Mistakes


@pytest.mark.parametrize(
    "settings",
    [
        {"width": 0}, {"members": 0}, {"dropout": 1.0}, {"rate": -1.0}, {"rank": -1}, {"rarest": 0},
        {"cost": -1.0}, {"reading": "aloud"}, {"judge": "unknown"}, {"policy": "none"}, {"threshold": 1.0},
        {"device": "toaster"},
    ],
    ids=str,
)  # fmt: skip
def test_impossible_settings_are_errors(settings):
    with pytest.raises(ConfigError, match=next(iter(settings))):
        aligner(**settings)


def test_training_without_gold_and_aligning_without_training_are_errors():
    with pytest.raises(ConfigError, match="nothing to train on"):
        aligner().fit([Example(e.pair) for e in layerless(TRAINING)])
    with pytest.raises(ModelError, match="resume=DIR"):
        aligner().align([e.pair for e in TRAINING[:1]])


def test_a_pair_that_is_too_large_is_an_error_before_memory_runs_out():
    pair = SentencePair(Sentence(("a",) * 1001), Sentence(("b",) * 1000))
    with pytest.raises(ConfigError, match="1001 x 1000"):
        aligner().align([pair])


def test_the_error_for_damaged_weights_names_them(trained):
    state = trained.state()
    name = next(k for k in state if k.startswith("0."))
    for wrong in (np.full_like(state[name], np.nan), np.zeros(1)):
        other = aligner()
        other.restore({**state, name: wrong})
        with pytest.raises(ModelError, match=name):
            full(other)


def test_the_loss_counts_each_pair_by_its_weight(trained):
    """With weights, the loss is the weighted sum of the losses of single pairs, over their number."""
    network = copy.deepcopy(trained.networks[0]).double().eval()
    weights = (0.5, 3.0, 1.0)
    alone = []
    for e in TRAINING[:3]:
        batch = batch_of(trained, [e])
        alone.append(float(mean_loss(network(batch), [gold_of(e.gold, "monotone")], batch.inside, 0.5).detach()))
    batch = batch_of(trained, TRAINING[:3])
    gold = [gold_of(e.gold, "monotone", w) for e, w in zip(TRAINING[:3], weights, strict=True)]
    found = float(mean_loss(network(batch), gold, batch.inside, 0.5).detach())
    assert found == pytest.approx(np.dot(weights, alone) / 3)
    assert found != pytest.approx(sum(alone) / 3)


def test_training_reads_the_weights_of_examples():
    """Copies of all pairs without links keep the network from linking, unless they count next to nothing."""
    wrong = [replace(e, gold=Alignment(e.gold.n_source, e.gold.n_target, frozenset())) for e in TRAINING]
    settings = {"epochs": 8, "batch_pairs": 12, "dropout": 0.0}
    found = {}
    for weight in (1e-6, 10.0):
        made = aligner(**settings)
        made.fit([*TRAINING, *(replace(e, weight=weight) for e in wrong)])
        found[weight] = sum(p.sum() for p in made.probabilities([e.pair for e in HELD_OUT]))
    assert found[1e-6] > 2 * found[10.0]


@pytest.mark.parametrize("judge", ["cells", "both"])
def test_sums_over_columns_are_what_the_networks_compute_of_them(encoder, judge):
    """`align` multiplies each row of a table once, `decode` each cell, with one-hot columns and two networks."""
    made = aligner(families={"string": String(), "pos": Pos(), "position": Position()}, members=2, rarest=1,
                   encoder=encoder, rank=2, views=2, judge=judge)  # fmt: skip
    made.fit(TRAINING[:8])
    pairs = [e.pair for e in HELD_OUT]
    assert made.columns.marks and made.columns.values
    for own, found in zip(made.decode(made.prepared(pairs)), made.align(pairs), strict=True):
        assert own.sure == found.sure and own.score == pytest.approx(found.score, abs=1e-4)
        assert all(found.confidence[link] == pytest.approx(p, abs=1e-5) for link, p in own.confidence.items())
