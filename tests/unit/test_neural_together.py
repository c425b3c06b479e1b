"""The neural aligner trained by several processes: the losses of one process with as many times larger batches."""

from __future__ import annotations

import pytest
from side_by_side import forked
from templates import corpus
from tiny_encoder import tiny_encoder

from jacana_torch.aligners.neural.neural import Neural
from jacana_torch.features.families.context import Context
from jacana_torch.features.families.distortion import Distortion
from jacana_torch.features.families.position import Position
from jacana_torch.features.families.string import String

TRAINING, DEV = corpus(21), corpus(6, seed=7)


def curve(pairs: int, **settings) -> tuple[list[float], list[float]]:
    """The loss of each epoch, and the confidences of an alignment by the trained network."""
    families = {"string": String(), "context": Context(), "position": Position(), "distortion": Distortion()}
    small = {"width": 8, "blocks": 1, "epochs": 3, "dropout": 0.0, "batch_pairs": pairs}
    made, losses = Neural(families, **{**small, **settings}), []
    made.fit(TRAINING, DEV, lambda step: losses.append(step.loss))
    return losses, [p for a in made.align([e.pair for e in DEV]) for p in a.confidence.values()]


# 21 pairs in batches of 4 or 2 leave a batch of one pair, of which the second process has none.
CASES = {"plain": {"epochs": 1}, "accumulated": {"accumulate": 3}, "members": {"members": 2}}


@pytest.mark.parametrize(
    "name", ["plain", *(pytest.param(name, marks=pytest.mark.slow) for name in ("accumulated", "members"))]
)
def test_the_losses_are_those_of_batches_of_twice_the_size(name, tmp_path):
    alone, confidence = curve(4, **CASES[name])
    for losses, found in forked(lambda: curve(2, **CASES[name]), tmp_path):
        assert losses == pytest.approx(alone, rel=1e-5)
        assert found == pytest.approx(confidence, abs=1e-3)
    assert curve(2, **CASES[name])[0] != pytest.approx(alone, rel=1e-3)  # so the size of a batch matters


@pytest.mark.slow
def test_processes_drop_out_different_units(tmp_path):
    one, two = forked(lambda: curve(2, dropout=0.3), tmp_path)
    assert one == two
    assert one[0] != pytest.approx(curve(4, dropout=0.3)[0], rel=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("rank", [0, 2, None])
def test_with_an_encoder(rank, mixed, tmp_path):
    settings = {"encoder": tiny_encoder(tmp_path), "rank": rank, "views": 2, "mixed": mixed}
    alone, _ = curve(4, **settings)
    for losses, _ in forked(lambda: curve(2, **settings), tmp_path):
        assert losses == pytest.approx(alone, rel=1e-3)
