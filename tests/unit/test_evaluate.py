"""Scores against hand-computed figures and a recount with fractions."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jacana_torch.corpora import read
from jacana_torch.errors import ConfigError, JacanaError
from jacana_torch.evaluate import Score, count, score
from jacana_torch.types import Alignment
from jacana_torch.version import __version__


def links(*sure, possible=()):
    return Alignment(4, 4, frozenset(sure), frozenset(possible))


GOLD = [links((0, 0), (1, 1), (2, 2), (3, 3)), links((0, 0), (1, 1)), links((0, 0)), links(), links()]
PREDICTED = [links((0, 0), (1, 1)), links((0, 0), (1, 1)), links(), links((2, 1)), links()]


def test_by_hand_with_empties():
    # precision 1, 1, 0 (empty), 0, 0 (empty); recall 1/2, 1, 0, 0 (empty), 0 (empty); exact: second and last
    result = score(GOLD, PREDICTED)
    assert result.precision == pytest.approx(2 / 5)
    assert result.recall == pytest.approx(3 / 10)
    assert result.f1 == pytest.approx(2 * 0.4 * 0.3 / 0.7)  # of the means, not the mean of the pairs' F1
    assert result.exact == pytest.approx(2 / 5)
    assert (result.gold_links, result.predicted_links, result.common_links) == (7, 5, 4)
    assert result.micro_precision == pytest.approx(4 / 5)
    assert result.micro_recall == pytest.approx(4 / 7)
    assert result.micro_f1 == pytest.approx(2 * 4 / (5 + 7))


def test_the_table_has_a_row_per_pair():
    table = count(GOLD, PREDICTED).table
    assert table.tolist() == [[4, 2, 2], [2, 2, 2], [1, 0, 0], [0, 1, 0], [0, 0, 0]]


def test_resampled_rows_give_the_score_of_those_pairs():
    rows = np.array([0, 0, 3, 1])
    resampled = Score.of(count(GOLD, PREDICTED).take(rows))
    assert resampled == score([GOLD[r] for r in rows], [PREDICTED[r] for r in rows])


def test_sure_links_count_unless_all_are_requested():
    gold = [links((0, 0), possible=[(1, 1)])]
    predicted = [links((0, 0), (1, 1), possible=[(2, 2)])]
    assert count(gold, predicted).table.tolist() == [[1, 2, 1]]
    assert count(gold, predicted, "all").table.tolist() == [[2, 3, 2]]
    assert score(gold, [links((0, 0))]).exact == 1.0
    assert score(gold, [links((0, 0))], "all").exact == 0.0


def test_no_correct_links_is_zero_and_never_nan():
    result = score([links((0, 0))], [links((1, 1))])
    assert (result.f1, result.micro_f1) == (0.0, 0.0)
    result = score([links()], [links()])
    assert (result.f1, result.micro_f1, result.exact) == (0.0, 0.0, 1.0)


pairs = st.lists(
    st.tuples(*[st.sets(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=5)] * 2), min_size=1, max_size=9
)


@given(pairs)
def test_against_a_recount_in_fractions(both):
    result = score([links(*g) for g, _ in both], [links(*p) for _, p in both])
    precisions = [Fraction(len(g & p), len(p)) if p else Fraction(0) for g, p in both]
    recalls = [Fraction(len(g & p), len(g)) if g else Fraction(0) for g, p in both]
    precision, recall = sum(precisions) / len(both), sum(recalls) / len(both)
    f1 = 2 * precision * recall / (precision + recall) if precision + recall else Fraction(0)
    assert result.precision == pytest.approx(float(precision))
    assert result.recall == pytest.approx(float(recall))
    assert result.f1 == pytest.approx(float(f1))
    assert result.exact == pytest.approx(sum(g == p for g, p in both) / len(both))
    correct, size = sum(len(g & p) for g, p in both), sum(len(g) + len(p) for g, p in both)
    assert result.micro_f1 == pytest.approx(2 * correct / size if size else 0)


def test_a_score_prints_with_its_signature():
    result = score(GOLD, PREDICTED)
    assert result.signature() == f"F1|avg:macro|links:sure|n:5|v:{__version__}"
    first, second = str(result).splitlines()
    assert "P 40.00  R 30.00  F1 34.29  exact 40.00" in first and "avg:macro|links:sure|n:5" in first
    assert "P 80.00  R 57.14  F1 66.67" in second and "avg:micro" in second
    assert "links:all" in str(score(GOLD, PREDICTED, "all"))


def test_json_keeps_every_figure():
    result = score(GOLD, PREDICTED)
    back = json.loads(json.dumps(result.to_dict()))
    assert back["f1"] == result.f1 and back["pairs"] == 5 and back["signature"] == result.signature()


def test_sizes_that_differ_and_no_pairs_are_errors():
    with pytest.raises(JacanaError, match="5 pairs and the prediction 1"):
        score(GOLD, PREDICTED[:1])
    with pytest.raises(JacanaError, match="pair 2: gold has 4 x 4 tokens and the prediction 4 x 5"):
        score(GOLD[:2], [PREDICTED[0], Alignment(4, 5)])
    with pytest.raises(JacanaError, match="no pairs"):
        score([], [])
    with pytest.raises(ConfigError, match="'some'"):
        score(GOLD, PREDICTED, "some")


def test_annotator_c_against_the_majority_on_msr_dev(data_root):
    """Known figures for these two files: 93.0 F1 and 51.4 % exact."""
    gold, other = ([e.gold for e in read(data_root / "msr" / f"RTE2_dev_{name}.align.txt")] for name in "MC")
    result = score(gold, other)
    assert result.pairs == 800
    assert round(100 * result.f1, 1) == 93.0 and round(100 * result.exact, 1) == 51.4
