"""Training in single precision: blocked sums, and the optimum of double precision to 1e-5."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from templates import corpus

from jacana_torch import corpora
from jacana_torch.aligners.crf import Crf
from jacana_torch.crf import scores
from jacana_torch.crf.objective import Objective, Part
from jacana_torch.crf.scores import in_parts
from jacana_torch.crf.states import readings
from jacana_torch.features.families.distortion import Distortion
from jacana_torch.features.families.position import Position
from jacana_torch.features.families.string import String


def crf(**settings) -> Crf:
    return Crf({family.name: family for family in (String(), Position(), Distortion())}, **settings)


def exact(aligner: Crf, examples) -> float:
    """The loss of the aligner's weights in double precision."""
    batch = aligner.features([e.pair for e in examples])
    gold = [readings(e.gold, ["monotone"]).paths for e in examples]
    costs = {"cost_null": 1.0, "cost_link": 1.0}
    features = crf().chain_scores(batch, aligner.names)
    return Objective([Part(features, gold)], aligner.l2, costs)(aligner.weights)[0]


def check_optimum(examples) -> None:
    losses = {}
    for precision in ("float64", "float32"):
        aligner = crf(precision=precision)
        report = aligner.fit(examples)
        assert report.converged
        losses[precision] = exact(aligner, examples), report.loss["forward"]
    best = losses["float64"][0]
    assert losses["float64"][1] == pytest.approx(best, rel=1e-12)
    assert losses["float32"] == pytest.approx((best, best), rel=1e-5)


def test_the_optimum_is_that_of_double_precision():
    check_optimum(corpus(60))


@pytest.mark.slow
def test_the_optimum_of_a_corpus(data_root):
    check_optimum(list(corpora.read(str(data_root / "msr" / "dev.jsonl"))))


def test_long_sums_are_cut(monkeypatch):
    monkeypatch.setattr(scores, "_TERMS", 3)
    random = np.random.default_rng(1)
    dense = random.normal(size=(9, 20)) * (random.random((9, 20)) < 0.4)
    dense[4] = 0
    matrix = sparse.csr_matrix(dense)
    parts, row = in_parts(matrix)
    assert np.diff(parts.indptr).max() == 3 and set(row) == set(range(9)) - {4}
    vector = random.normal(size=20)
    np.testing.assert_allclose(np.bincount(row, parts @ vector, 9), matrix @ vector)


def test_cut_sums_lose_less():
    values = np.random.default_rng(2).random(1_000_000).astype(np.float32)
    matrix = sparse.csr_matrix(np.ones((1, len(values)), np.float32))
    parts, row = in_parts(matrix)
    found = np.bincount(row, (parts @ values).astype(np.float64))[0]
    exactly = values.sum(dtype=np.float64)
    assert abs(found - exactly) < 1e-7 * exactly < abs(float((matrix @ values)[0]) - exactly)
