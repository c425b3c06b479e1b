"""Calibration on examples of several weights and origins: groups stay together, thresholds are for real pairs."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from jacana_torch.aligners import calibration
from jacana_torch.aligners.calibration import Sample, fitted, held_out
from jacana_torch.aligners.crf import Crf
from jacana_torch.features.families.string import String
from jacana_torch.types import Alignment, Example, Sentence, SentencePair


def examples(n: int, seed: int) -> list[Example]:
    rng, out = random.Random(seed), []
    for k in range(n):
        words = rng.sample(("a", "red", "barn", "burnt", "down", "7"), 4)
        pair = SentencePair(Sentence(tuple(words)), Sentence(tuple(words[1:])), f"p{k}")
        out.append(Example(pair, Alignment(4, 3, frozenset({(1, 0), (2, 1)}))))
    return out


def test_flipping_keeps_what_training_reads():
    example = replace(examples(1, 0)[0], weight=0.5, group="g", origin="made", extra={"note": 1})
    flipped = example.flip()
    assert (flipped.weight, flipped.group, flipped.origin, flipped.extra) == (0.5, "g", "made", {"note": 1})
    assert flipped.flip() == example


def test_examples_of_a_group_are_held_out_together(monkeypatch):
    seen: list[tuple[set, set]] = []

    def sampled(one, other, held):
        seen[-1][1].update(e.group or e.pair.id for e in held)
        return Sample(np.full(2, 0.5), np.full(2, 0.5), np.array([True, False]), np.zeros(2, dtype=np.int64))

    class Watched(Crf):
        def fit(self, examples, dev=(), watch=None, checkpoint=calibration.UNKEPT):
            if self.part == "forward":
                seen.append(({e.group or e.pair.id for e in examples}, set()))
            return super().fit(examples, dev, watch, checkpoint)

    monkeypatch.setattr(calibration, "sampled", sampled)
    own = examples(12, 1)
    made = [replace(e, group=f"g{k % 4}", origin="made") for k, e in enumerate(own)]
    sides = [Watched({"string": String()}, max_iterations=2, part=part) for part in ("forward", "backward")]
    assert len(list(held_out(*sides, [*own[:6], *made], 5, 1))) == 5
    assert all(not kept & left for kept, left in seen)
    assert set.union(*(left for _, left in seen)) == {*(f"p{k}" for k in range(6)), *(f"g{k}" for k in range(4))}


def random_sample(seed: int, n: int = 400) -> Sample:
    draw = np.random.default_rng(seed)
    forward, backward = draw.beta(0.5, 0.5, (2, n))
    gold = draw.random(n) < (forward + backward) / 2
    return Sample(forward, backward, gold, np.repeat(np.arange(n // 8), 8), draw.choice([0.0, 1.0, 2.0], n))


def test_a_cell_counts_by_its_weight():
    sample = random_sample(3)
    times = sample.weight.astype(int)
    repeated = Sample(*(np.repeat(x, times) for x in (sample.forward, sample.backward, sample.gold, sample.pair)))
    one, other = fitted(sample), fitted(repeated)
    for name in ("forward", "backward", "smaller", "bias"):
        assert getattr(one, name) == pytest.approx(getattr(other, name), abs=1e-9)
    assert one != fitted(replace(sample, weight=np.ones(len(times))))


def test_made_pairs_calibrate_less_than_real_ones():
    made = np.repeat(np.arange(50) % 3 == 0, 8)
    sample = replace(random_sample(4), made=made)
    less = sample.mostly_real()
    assert np.array_equal(less.weight[~made], sample.weight[~made])
    assert less.weight[made] == pytest.approx(sample.weight[made] / 10) and np.array_equal(less.made, made)
    only = replace(sample, made=np.ones(400, dtype=bool))
    assert only.mostly_real().weight is only.weight


def test_real_pairs_are_those_that_were_not_made():
    made = np.repeat(np.arange(50) % 3 == 0, 8)
    sample = replace(random_sample(4), made=made)
    real = sample.real()
    assert np.array_equal(real.forward, sample.forward[~made]) and not real.made.any()
    assert set(real.pair.tolist()) == set(range(33))  # numbered without gaps
    assert replace(sample, made=np.ones(400, dtype=bool)).real().forward is sample.forward


def test_joining_keeps_weights_and_origins():
    parts = [random_sample(5), replace(random_sample(6), made=np.ones(400, dtype=bool))]
    joined = Sample.joined(parts)
    assert np.array_equal(joined.weight, np.concatenate([part.weight for part in parts]))
    assert joined.made.tolist() == [False] * 400 + [True] * 400
    assert joined.pair.max() == 99
