"""Reliability curves against hand counts and nested loops, and the report of scripts/calibration.py."""

from __future__ import annotations

import json
import math
import random
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

import calibration

from jacana_torch.errors import JacanaError
from jacana_torch.evaluate.calibration import log_loss, reliability


def test_by_hand():
    found = reliability(np.array([0.05, 0.2, 0.3, 0.9, 1.0]), np.array([0, 0, 1, 1, 0], dtype=bool), bins=2)
    assert found.count.tolist() == [3, 2]
    assert found.probability.tolist() == pytest.approx([0.55 / 3, 0.95])
    assert found.share.tolist() == pytest.approx([1 / 3, 0.5])
    assert found.error == pytest.approx((3 * (1 / 3 - 0.55 / 3) + 2 * 0.45) / 5)
    assert found.worst == pytest.approx(0.45)


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=30), st.integers(1, 12))
def test_against_nested_loops(links, bins):
    found = reliability(*map(np.array, zip(*links, strict=True)), bins)
    error = 0.0
    for k in range(bins):
        low, high = found.edges[k], found.edges[k + 1]
        own = [(p, true) for p, true in links if low <= p < high or (k == bins - 1 and p == high)]
        assert found.count[k] == len(own)
        if own:
            mean, share = sum(p for p, _ in own) / len(own), sum(true for _, true in own) / len(own)
            assert (found.probability[k], found.share[k]) == (pytest.approx(mean), pytest.approx(share))
            error += len(own) / len(links) * abs(mean - share)
    assert found.error == pytest.approx(error)


def test_outcomes_drawn_from_their_probabilities_are_calibrated():
    rng = np.random.default_rng(0)
    probabilities = rng.random(200_000)
    outcomes = rng.random(200_000) < probabilities
    assert reliability(probabilities, outcomes).error < 0.01
    assert reliability(probabilities**2, outcomes).error > 0.1
    assert log_loss(probabilities, outcomes) < log_loss(probabilities**2, outcomes)


def test_log_loss_of_certainty_is_finite():
    assert log_loss(np.array([1.0, 0.5]), np.array([False, True])) == pytest.approx(
        -(math.log(1e-6) + math.log(0.5)) / 2
    )


@pytest.mark.parametrize(
    ("probabilities", "outcomes", "bins", "message"),
    [
        ([], [], 10, "no probabilities"),
        ([0.5], [True, False], 10, "1 probabilities and 2 outcomes"),
        ([1.5], [True], 10, "between 0 and 1"),
        ([float("nan")], [True], 10, "between 0 and 1"),
        ([0.5], [True], 0, "at least one"),
    ],
)
def test_bad_input_is_an_error(probabilities, outcomes, bins, message):
    with pytest.raises(JacanaError, match=message):
        reliability(np.array(probabilities), np.array(outcomes), bins)


def test_the_report_by_hand():
    hit, linked = np.array([True, False, False, True]), np.array([True, True, False, False])
    chances = {kind: np.array([0.95, 0.6, 0.0, 0.3]) for kind in calibration.KINDS}
    chances["after"] = np.array([1.0, 0.5, 0.0, 0.5])
    lines = calibration.report("some", chances, hit, linked).splitlines()
    assert lines[2] == "4 cells, 2 of them gold links; 3 candidates, 2 links."
    rows = {cells[1]: cells[2:-1] for line in lines if len(cells := [x.strip() for x in line.split("|")]) > 2}
    loss = -(math.log(0.95) + math.log(0.4) + math.log(1 - 1e-6) + math.log(0.3)) / 4
    assert rows["before"] == [f"{loss:.5f}", "45.00%", "70.0%", "32.50%"]
    assert rows["after"][1:] == ["0.00%", "0.0%", "25.00%"]
    assert rows["0.5–0.6"] == ["0", "0.0%", "0.0%", "2", "50.0%", "50.0%"]
    assert rows["0.6–0.7"][:3] == ["1", "60.0%", "0.0%"]
    assert rows["0.9–1.0"] == ["1", "95.0%", "100.0%", "1", "100.0%", "100.0%"]


@pytest.mark.slow
def test_the_script_counts_every_cell_once(tmp_path, capsys):
    rng = random.Random(3)
    rows, cells, links = [], 0, 0
    for _ in range(45):
        words = rng.sample(("a", "red", "barn", "burnt", "down", "7"), rng.randint(2, 4))
        other = rng.sample(words, len(words) - 1)
        sure = [[words.index(word), j] for j, word in enumerate(other)]
        rows.append({"source": words, "target": other, "sure": sure})
        cells, links = cells + len(words) * len(other), links + len(sure)
    path = tmp_path / "pairs.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    settings = ["annotate=none", "features=[string,distortion]", "trainer.max_iterations=8", "cv=2"]
    assert calibration.main([f"data.train=[{path}]", *settings]) == 0
    out = capsys.readouterr().out
    assert f"{cells} cells, {links} of them gold links;" in out and "| after |" in out
    assert calibration.main([f"data.train=[{path}]", *settings, "aligner=hmm"]) == 2
    assert "which Hmm does not give" in capsys.readouterr().err
