"""scripts/neighbours.py: small parts, and a run of one model. The other packages need not be installed."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"
sys.path.insert(0, str(SCRIPTS))

import neighbours  # noqa: E402
import neighbours_page  # noqa: E402
from benchmarks import aligners  # noqa: E402

from jacana_torch.types import Alignment  # noqa: E402

PAIRS = [
    {"id": "1", "source": ["Two", "geese", "slept"], "target": ["geese", "slept"], "sure": [[1, 0], [2, 1]]},
    {"id": "2", "source": ["It", "rained"], "target": ["Rain", "fell"], "sure": [[1, 0]], "possible": [[1, 1]]},
]


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    (tmp_path / "geese.jsonl").write_text("".join(json.dumps(one) + "\n" for one in PAIRS))
    (tmp_path / "leaks").mkdir()
    monkeypatch.setenv("JACANA_DATA", str(tmp_path))
    return tmp_path


def test_links_are_read_and_words_can_stand_in_a_line():
    assert aligners.pharaoh("0-1 12-3\n") == [(0, 1), (12, 3)]
    assert aligners.pharaoh("") == []
    assert aligners.plain((["New York", "|||"], ["A", ""])) == (["new_york", "_"], ["a", "_"])


def test_two_directions_are_combined_in_two_ways_and_others_stay():
    gold = [Alignment(2, 2, frozenset({(0, 0), (1, 1)}))]
    both = neighbours.variants(gold, {"forward": [[[0, 0], [1, 1]]], "backward": [[[0, 0]]]})
    assert {name: one[0].links for name, one in both.items()} == {
        "intersection": [(0, 0)],
        "grow-diag-final-and": [(0, 0), (1, 1)],
    }
    found = neighbours.scores(gold, both, "sure")["intersection"]
    expected = {"precision": 100, "recall": 50, "f1": 200 / 3, "exact": 0, "low": 200 / 3, "high": 200 / 3}
    assert found == pytest.approx(expected)  # one pair: no other can be drawn
    assert neighbours.variants(gold, {"": [[[1, 0]]]})[""][0].links == [(1, 0)]


def on_vectors(kind, x, words, y, others, **job):
    """The links of a method on vectors that are given."""
    method = kind.__new__(kind)
    method.job = job
    sides = iter([[(x, words)], [(y, others)]])
    method.vectors = type("Given", (), {"of": staticmethod(lambda sentences: next(sides))})
    return method.align([(["any"], ["words"])])


def test_transport_links_the_words_that_are_alike_and_leaves_the_others():
    torch, _ = pytest.importorskip("torch"), pytest.importorskip("ot")
    x, y = torch.eye(4)[[0, 0, 1, 2]], torch.eye(4)[[2, 0]]  # the first word has two pieces
    found = on_vectors(
        aligners.TransportMethod, x, [0, 0, 1, 2], y, [0, 1], reg=0.05, tau=0.1, thresholds=[0.2, 1.5]
    )
    assert found == {"threshold 0.2": [[(0, 1), (2, 0)]], "threshold 1.5": [[]]}


def test_awesome_aligns_method_needs_both_softmaxes():
    torch = pytest.importorskip("torch")
    x, y = torch.tensor([[4.0, 0.0], [3.0, 0.0]]), torch.eye(2)
    found = on_vectors(aligners.AwesomeMethod, x, [0, 1], y, [0, 1], thresholds=[0.4, 0.2])
    assert found == {"threshold 0.4": [[(0, 0)]], "threshold 0.2": [[(0, 0), (1, 0)]]}


def test_a_system_is_run_in_its_process_and_a_missing_package_is_reported(corpus, capsys):
    report = corpus / "report.json"
    code = neighbours.main([
        "--only", "core,fast_align", "--corpus", "geese.jsonl:all", "--speed", "0", "--json", str(report),
    ])  # fmt: skip
    systems = json.loads(report.read_text())["systems"]
    printed = capsys.readouterr().out
    assert code == 0 and systems["core"]["sets"]["geese.jsonl:all"]["pairs"] == 2
    assert "geese.jsonl, 2 pairs, all links:" in printed and "| core | " in printed
    if "failed" in systems["fast_align"]:
        assert "systran_align" in systems["fast_align"]["failed"]
        assert f"`{sys.executable} -m pip install systran-align`" in printed
    assert "links" not in systems["core"]["sets"]["geese.jsonl:all"]


def test_pairs_that_leak_are_left_out(corpus):
    (corpus / "leaks" / "drop_from_geese.txt").write_text("2\n")
    assert [one.pair.id for one in neighbours.examples(corpus, "geese.jsonl:all", None)[0]] == ["1"]


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--only", "eflomall"], "eflomal"),
        (["--set", "simalign.layr=3"], "simalign.layer"),
        (["--pairs", "-1"], "--pairs -1"),
    ],
)
def test_mistakes_are_named(corpus, capsys, arguments, message):
    assert neighbours.main(arguments) == 2
    assert message in capsys.readouterr().err


def test_what_did_not_run_is_in_the_table_with_what_installs_it():
    missing = {"title": "x", "failed": "No module named 'x'", "install": "pip install x"}
    killed = {"title": "y", "failed": "ended by signal 15", "install": ""}
    lines = neighbours.table({"systems": {"x": missing, "y": killed}})
    assert lines[-2] == "x did not run (No module named 'x'). To install it: `pip install x`"
    assert lines[-1] == "y did not run (ended by signal 15)."


def test_rates_with_training_and_without_it():
    rates = [{"pairs": 1000, "cpu": cpu, "training": 1.5} for cpu in (2.0, 2.5, 1.75)]
    one = {"title": "counts", "rates": rates, "start": 0.1, "peak_mib": 51.0}
    assert neighbours.cost(one) == ["counts", "500 (400–571)", "2,000 (1,000–4,000)", "0.1", "51"]
    for rate in rates:
        rate["training"] = 0
    assert neighbours.cost(one)[2] == "-"
    assert neighbours.cost({**one, "rates": []})[1:3] == ["-", "-"]
    assert neighbours.settings(["simalign.layer=7", "simalign.tokens=word"]) == {
        "simalign": {"layer": 7, "tokens": "word"}
    }


def test_the_page_is_filled_from_a_report():
    found = {"precision": 90.0, "recall": 80.0, "f1": 84.7059, "exact": 50.0, "low": 80.0, "high": 89.96}
    corpus = {"pairs": 12, "scores": {"inter": found}}
    one = {
        "title": "fast_align", "versions": {"thot": "3.5"}, "sets": {"some/geese.jsonl:all": corpus},
        "rates": [{"pairs": 10, "cpu": 0.5, "training": 0}], "start": 0.25, "peak_mib": 99.4,
    }  # fmt: skip
    made = {
        "date": "2026-01-02",
        "cpu": "Z80",
        "cores": 2,
        "python": "3",
        "versions": {"torch": "2"},
        "load": [0.5],
    }
    report = {"machine": made, "systems": {"x": one, "y": {"failed": "it did"}}}
    names = ("geese", "costs", "machine", "versions", "herons")
    page = "".join(f"<!-- neighbours:{name} -->\nold {name}\n<!-- neighbours:end -->\n" for name in names)
    filled = neighbours_page.filled(page, report)
    assert "`some/geese.jsonl`, 12 pairs, all links:\n\n| system |" in filled
    assert "| fast\\_align, inter | 90.00 | 80.00 | 84.71 | 80.0–90.0 | 50.00 |" in filled
    assert "| fast\\_align | 20 (20–20) | - | 0.2 | 99.4 |" in filled
    assert "Versions: thot 3.5." in filled and "2026-01-02, Z80" in filled
    assert "old herons" in filled and "old costs" not in filled
    assert neighbours_page.filled(filled, report) == filled
