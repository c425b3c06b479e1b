"""Encoders in 8 bits: their vectors are those of the network but for rounding, and do not depend on the batch."""

from __future__ import annotations

import pytest
import torch
from tiny_encoder import tiny_encoder_of
from torch import nn
from torch.nn import functional

from jacana_torch.aligners.neural.neural import Neural
from jacana_torch.encoders import checkpoint, eight_bits
from jacana_torch.encoders.eight_bits import PAIRS, EightBits, Rounded, in_eight_bits, known, quick
from jacana_torch.encoders.encoder_network import word_vectors
from jacana_torch.encoders.pieces import windows
from jacana_torch.features.families.string import String
from jacana_torch.types import Alignment, Example

pytestmark = pytest.mark.skipif(
    not hasattr(torch.ops.onednn, "qlinear_pointwise"), reason="this torch does not multiply in 8 bits"
)


@pytest.fixture(scope="module", params=["Bert", "MPNet"])
def encoder(request, tmp_path_factory) -> str:
    return tiny_encoder_of(request.param, tmp_path_factory.mktemp(request.param))


def relative(found: torch.Tensor, expected: torch.Tensor) -> float:
    return float((found - expected).norm() / expected.norm())


def test_a_linear_map_is_rounded_to_a_hundredth():
    torch.manual_seed(1)
    linear, x = nn.Linear(96, 40), torch.randn(30, 96)
    with torch.no_grad():
        assert relative(Rounded([linear])(x), linear(x)) < 0.015
        assert relative(Rounded([linear], x.square().mean(0).sqrt())(x), linear(x)) < 0.015
        both = Rounded([linear, linear])(x)
        assert torch.equal(both[:, :40], both[:, 40:]) and not torch.equal(x, torch.zeros_like(x))
        nothing = torch.zeros(2, 96)
        torch.testing.assert_close(Rounded([linear])(nothing), linear(nothing))


def test_loud_inputs_and_outputs_do_not_drown_the_others():
    torch.manual_seed(1)
    linear, x = nn.Linear(96, 40), torch.randn(30, 96)
    with torch.no_grad():
        x[:, 3] *= 100
        size = x.square().mean(0).sqrt()
        linear.weight[:, 3] /= 100
        assert relative(Rounded([linear], size)(x), linear(x)) < 0.015 < relative(Rounded([linear])(x), linear(x))
        x = functional.gelu(torch.randn(30, 96))
        linear.weight[7] *= 30
        linear.weight[7, 5] *= 20
        once, twice = (Rounded([linear], twice=n).of_gelu(x)[:, 7] for n in (0, 1))
        assert relative(twice, linear(x)[:, 7]) < 0.5 * relative(once, linear(x)[:, 7])
        assert relative(Rounded([linear], twice=1).of_gelu(x), linear(x)) < 0.015


def test_vectors_are_those_of_the_network(encoder):
    tokenizer = checkpoint.tokenizer(encoder)
    read = windows(PAIRS, tokenizer)
    sizes = [len(p.source) + len(p.target) for p in PAIRS]
    with torch.no_grad():
        expected = word_vectors(checkpoint.network(encoder), read, sizes, [0, 1, 2])
        small = in_eight_bits(checkpoint.network(encoder), tokenizer, "together")
        found = word_vectors(small, read, sizes, [0, 1, 2])
        alone = torch.cat([word_vectors(small, [r], [n], [2])[0] for r, n in zip(read, sizes, strict=True)])
    assert torch.equal(found[0], expected[0])
    assert 0 < relative(found[1], expected[1]) < 0.03 and 0 < relative(found[2], expected[2]) < 0.04
    assert relative(alone, found[2]) < 0.01


def test_other_networks_are_left_alone(tmp_path):
    assert not known(checkpoint.network(tiny_encoder_of("Roberta", tmp_path)))
    network = checkpoint.network(tiny_encoder_of("Bert", tmp_path / "bert"))
    assert known(network)
    network.config.hidden_act = "relu"
    assert not known(network)


def test_the_cpu_must_have_the_instructions_and_torch_the_operations(monkeypatch):
    for unit in ("vnni", "amx_tile"):
        monkeypatch.setattr(torch.cpu, f"_is_{unit}_supported", lambda: False, raising=False)
    quick.cache_clear()
    assert not quick(True)
    monkeypatch.setattr(torch.cpu, "_is_vnni_supported", lambda: True, raising=False)

    def missing(weight):
        raise AttributeError("no such operation")

    monkeypatch.setattr(eight_bits, "packed", missing)
    quick.cache_clear()
    assert not quick(True)
    quick.cache_clear()


def trained(encoder: str, mixed: bool | None) -> Neural:
    made = Neural({"string": String()}, encoder=encoder, rank=0, views=1, width=4, blocks=0, epochs=1, mixed=mixed)
    made.fit([Example(p, Alignment(len(p.source), len(p.target), frozenset({(0, 0)}))) for p in PAIRS[:2]])
    return made


@pytest.mark.parametrize(
    ("mixed", "quick", "small"), [(None, True, True), (None, False, False), (False, True, False)]
)
def test_aligning_uses_8_bits_if_they_are_quick(encoder, mixed, quick, small, monkeypatch):
    monkeypatch.setattr("jacana_torch.aligners.neural.neural.quick", lambda halves: quick)
    aligner = trained(encoder, mixed)
    assert isinstance(aligner.ready()[0].contextual.coarse, EightBits) is small
    assert len(aligner.align(PAIRS)) == len(PAIRS)


def test_pairs_near_the_threshold_are_read_again_in_more_bits(encoder, monkeypatch):
    monkeypatch.setattr("jacana_torch.aligners.neural.neural.quick", lambda halves: True)
    aligner = trained(encoder, None)
    coarse, fine = aligner.probabilities(PAIRS), aligner.probabilities(PAIRS, finely=True)
    assert all(0 < abs(a - b).max() < 0.1 for a, b in zip(coarse, fine, strict=True))
    threshold = float(coarse[3].max()) + 0.005
    found = aligner.settled(PAIRS, coarse, threshold)
    near = [k for k, one in enumerate(coarse) if abs(one - threshold).min() < 0.01]
    assert 3 in near
    for k, one in enumerate(found):
        assert abs(one - (fine if k in near else coarse)[k]).max() < 1e-3
    doubled = aligner.settled(PAIRS, coarse, threshold, lambda k, one: 2 * one)
    assert abs(doubled[3] - 2 * fine[3]).max() < 2e-3


@pytest.mark.parametrize("finely, most", [(True, 1), (False, len(PAIRS))])
def test_what_is_read_again_is_read_alone(encoder, finely, most, monkeypatch):
    """Padding changes vectors in half precision, and so links near the threshold."""
    monkeypatch.setattr("jacana_torch.aligners.neural.neural.quick", lambda halves: True)
    aligner, counts = trained(encoder, None), []
    reads = aligner.ready()[0].contextual.read

    def counted(pairs, *given):
        counts.append(len(pairs))
        return reads(pairs, *given)

    monkeypatch.setattr(aligner.ready()[0].contextual, "read", counted)
    aligner.readings(aligner.prepared(PAIRS).inputs, finely)
    assert max(counts) == most and sum(counts) == len(PAIRS)
