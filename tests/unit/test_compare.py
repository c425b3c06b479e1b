"""Comparisons of systems of known scores, on a corpus of templates. The command line has its own tests."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import toy_systems
from composed import composed
from toy_systems import ALIGNERS, DEV, EXAMPLES, Equal, Interrupted

from jacana_torch import compare as side_by_side
from jacana_torch.aligners.bidirectional import Bidirectional
from jacana_torch.compare import FORMATS, Entry, Table
from jacana_torch.compare.table import format_of
from jacana_torch.errors import ConfigError, JacanaError
from jacana_torch.evaluate import count, score
from jacana_torch.evaluate.significance import differences
from jacana_torch.symmetrize import functions
from jacana_torch.systems.unsupervised.unsupervised import Ibm1
from jacana_torch.train import loop
from jacana_torch.util import parallel

GOLD = [e.gold for e in EXAMPLES]


@pytest.fixture(scope="module")
def config(tmp_path_factory) -> dict:
    """The config of conf/compare.yaml as plain data, for a folder with the corpora."""
    folder = tmp_path_factory.mktemp("compared")
    toy_systems.write_corpora(folder)
    made = composed("annotate=none", "features=[string]", f"data.root={folder}", "data.train=[words.jsonl]")
    return {**made, "workers": 1, "train": None, "symmetrizers": None, "rounds": 500}


@pytest.fixture(scope="module")
def call(config) -> Callable[..., Table]:
    """Compare systems of ALIGNERS (or {label: name}) under these settings; results are kept in `folder`."""

    def compare(folder: Path, *systems: str | dict[str, str], **settings) -> Table:
        shared = {**config, **settings}
        named = [
            item
            for system in systems
            for item in ({system: system} if isinstance(system, str) else system).items()
        ]
        entries = [Entry(label, {**shared, "aligner": ALIGNERS[name]}) for label, name in named]
        return side_by_side.compare(shared, entries, folder, ["string"])

    return compare


@pytest.fixture(scope="module", autouse=True)
def surroundings():
    """Trust the classes of toy_systems, and restore the number of threads."""
    threads = torch.get_num_threads()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JACANA_TRUST", toy_systems.__name__)
        yield
    torch.set_num_threads(threads)


@pytest.fixture
def compare(call, tmp_path) -> Callable[..., Table]:
    Equal.calls.clear()
    return lambda *systems, **settings: call(tmp_path, *systems, **settings)


@pytest.fixture(scope="module")
def table(call, tmp_path_factory) -> Table:
    """A system that cannot run, one that learns nothing, one that learns, and one of two directions."""
    return call(tmp_path_factory.mktemp("table"), {"50%_a|b": "broken"}, "equal", "memory", "both")


def f1(table: Table) -> list[float]:
    return [round(row.score.f1, 9) for row in table.rows if row.score]


def trained(table: Table) -> list[str]:
    return [row.trained for row in table.rows]


# Figures


def test_scores_are_those_of_the_systems(table):
    rows = table.to_dict()["rows"]
    expected = score(GOLD, [Equal().one(e.pair) for e in EXAMPLES])
    assert rows[1]["score"] == expected.to_dict() and 0.3 < expected.f1 < 0.95
    assert rows[2]["score"]["f1"] == rows[2]["score"]["exact"] == 1
    assert trained(table)[1:] == ["-", "the same pairs", "the same pairs"]
    assert rows[1]["training_seconds"] is None and rows[2]["training_seconds"] >= 0
    assert all(row["pairs_per_second"] > 0 and row["failure"] is None for row in rows[1:])


def test_significance_is_against_the_first_row_that_ran(table):
    found = table.to_dict()
    assert found["first"] == "equal" and found["rows"][1]["against_first"] is None
    ours, theirs = count(GOLD, GOLD), count(GOLD, [Equal().one(e.pair) for e in EXAMPLES])
    expected = differences(ours, theirs, 500, 1)
    for name, figures in found["rows"][2]["against_first"].items():
        assert figures == vars(expected[name]), name
    marks = dict(zip(("failed", *trained(table)[1:3]), (marks for _, marks in table.cells()), strict=False))
    assert marks == {"failed": [""] * 4, "-": [""] * 4, "the same pairs": ["**"] * 4}


def test_protocols_differ_in_the_pairs_that_systems_are_trained_on(compare, config):
    both = compare("equal", "memory", cv=5, train=["same", "cv"])
    assert trained(both) == ["-", "the same pairs", "5-fold cv"] and f1(both)[1:] == [1, 0]
    assert f1(compare("memory", "equal", cv=3))[0] == 0
    dev = compare("memory", "equal", data={**config["data"], "dev": ["dev.jsonl"]})
    assert trained(dev) == ["other pairs", "-"] and f1(dev)[0] == 0
    assert dev.rows[1].score == score([e.gold for e in DEV], [Equal().one(e.pair) for e in DEV])


def test_folds_that_are_trained_side_by_side_count_alike(call, tmp_path, monkeypatch):
    monkeypatch.setattr(parallel, "usual_method", lambda: "fork")
    one, two = (call(tmp_path / str(workers), "both", "memory", cv=3, workers=workers) for workers in (1, 2))
    assert len(one.rows) == 2 and f1(one) == f1(two)
    for alone, shared in zip(one.rows, two.rows, strict=True):
        assert alone.counts.table.tolist() == shared.counts.table.tolist() and shared.train_seconds > 0


def test_symmetrizers_are_compared_if_the_config_lists_them(compare, table):
    every = compare("both", "equal", symmetrizers="all")
    own = Bidirectional(Ibm1(), Ibm1())
    own.fit(EXAMPLES)
    expected = loop.scores(EXAMPLES, loop.predictions(own, EXAMPLES))
    assert [row.symmetrizer for row in every.rows] == [*functions(), None]
    for row in every.rows[:-1]:
        assert row.score.f1 == pytest.approx(expected[row.symmetrizer].f1), row.symmetrizer
    chosen = compare("both", symmetrizers=["grow-diag", "union"])
    assert [row.symmetrizer for row in chosen.rows] == ["grow_diag", "union"]
    assert table.rows[3].label == "both, intersection"


# Failures, and results that were kept


def test_a_system_that_cannot_run_becomes_a_row_that_says_why(compare):
    rows = compare("broken", "lacking", "tagged", "equal").rows
    for row, why in zip(rows, ("ZeroDivisionError: by nought", "nowhere", "annotate="), strict=False):
        assert why in row.failure and row.score is None
    assert rows[3].score
    with pytest.raises(ConfigError, match=r"by nought.*nowhere"):
        compare("broken", "lacking")


def test_results_survive_an_interruption(compare, tmp_path):
    Interrupted.still[:] = ["once"]
    systems = ("equal", "interrupted", "memory")
    with pytest.raises(KeyboardInterrupt):
        compare(*systems)
    assert Equal.calls == [1, 30, 1] and len(list((tmp_path / "rows").iterdir())) == 1
    Equal.calls.clear()
    again = compare(*systems)
    assert Equal.calls == [1, 30] * 2 and len(list((tmp_path / "rows").iterdir())) == 3
    assert len(again.rows) == 3 and f1(again)[1:] == [f1(again)[0], 1]


def test_results_are_measured_again_if_anything_they_depend_on_changes(call, compare, config, tmp_path, caplog):
    def measured_before(*systems: str, **settings) -> set[str]:
        caplog.clear()
        other = tmp_path.with_name("other")
        other.mkdir(exist_ok=True)
        call(other, *systems, resume=str(tmp_path), **settings)
        return {m.partition(":")[0] for m in caplog.messages if m.endswith("measured before")}

    caplog.set_level("INFO")
    compare("memory", "equal")
    assert measured_before("memory", "equal") == {"memory", "equal"}
    assert measured_before("memory", "equal", cv=5) == {"equal"}, "it learns nothing"
    assert not measured_before("memory", "equal", data={**config["data"], "limit": 20})
    assert len(kept := list((tmp_path / "rows").iterdir())) == 5
    for path in kept:
        path.write_text(path.read_text()[:40])
    assert not measured_before("memory", "equal")
    assert sum("measured again" in message for message in caplog.messages) == 2


# Formats


def test_text_is_aligned(table):
    lines = FORMATS["text"](table).splitlines()
    body = lines[: lines.index("")]
    assert body[1].startswith("50%_a|b") and body[1].endswith("cannot run: ZeroDivisionError: by nought")
    del body[1]
    assert len({len(line) for line in body}) == 1 and body[0].split()[0] == "system"
    places = [match.end() for match in re.finditer(r"\S+", body[0].replace("trained on", "trained_on"))]
    for line in body[1:]:
        for place in places[2:6]:
            assert line[place - 1].isdigit() and line[place] in " *"
    assert re.fullmatch(r"memory +the same pairs +100.00\*\* +100.00\*\* +100.00\*\* +100.00\*\* .*", body[2])
    assert "avg:macro|links:sure|n:30" in lines[6] and "against equal" in lines[7]


def test_markdown_has_the_same_cells(table):
    text = FORMATS["markdown"](table).splitlines()
    rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in text[:6]]
    assert {len(row) for row in rows} == {8} and [cell.strip() for cell in rows[1]][:3] == ["---", "---", "---:"]
    assert rows[2][0].strip() == r"50%\_a\|b" and rows[2][1].strip().startswith("cannot run: ZeroDivisionError")
    assert rows[4][4].strip() == r"100.00\*\*"


def test_latex_is_balanced_and_escaped(table):
    text = FORMATS["latex"](table)
    body = text[text.index(r"\midrule") : text.index(r"\bottomrule")].splitlines()[1:]
    assert [len(re.findall(r"(?<!\\)&", line)) for line in body] == [1, 7, 7, 7]
    assert body[0].startswith(r"50\%\_a\textbar{}b & \multicolumn{7}{l}") and "100.00$^{**}$" in body[2]
    plain = re.sub(r"\\[{}]", "", text)
    assert plain.count("{") == plain.count("}") and all(line.endswith(r"\\") for line in body)


def test_json_has_every_figure(table):
    assert json.loads(FORMATS["json"](table)) == json.loads(json.dumps(table.to_dict()))


def test_the_suffix_of_the_output_chooses_the_format():
    names = {"t.md": "markdown", "a.b/t.TEX": "latex", "t.json": "json", "t.txt": "text", "md": "text"}
    assert {name: format_of(None, name) for name in names} == names
    assert format_of(None, None) == "text" and format_of("json", "t.md") == "json"
    with pytest.raises(ConfigError, match=r"format='pdf'.*latex"):
        format_of("pdf", "t.md")


# Mistakes


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"train": "some"}, "same, dev, cv"),
        ({"train": []}, "same, dev, cv"),
        ({"train": "cv"}, "cv=K"),
        ({"train": "dev"}, "data.dev is empty"),
        ({"train": "same", "cv": 5}, "train=cv goes with"),
        ({"cv": 1}, "two folds"),
        ({"cv": "x"}, "two folds"),
        ({"cv": 31}, "30 examples"),
        ({"rounds": 0}, "rounds=0"),
        ({"rounds": "many"}, "rounds='many'"),
        ({"symmetrizers": ["most"]}, "most"),
        ({"symmetrizers": {"a": "b"}}, "symmetrizers"),
        ({"links": "some"}, "sure"),
        ({"drop": ["nope"]}, "nope"),
        ({"resume": "nowhere"}, "resume=nowhere"),
        ({"data": {"train": ["nowhere.jsonl"]}}, "nowhere.jsonl"),
        ({"annotate": {"_target_": "jacana_torch.annotate.given.GivenAnnotator", "path": []}}, "data.sidecar"),
    ],
)
def test_contradictory_settings_are_errors(settings, says, config, compare):
    if "data" in settings:
        settings = {"data": {**config["data"], **settings["data"]}}
    with pytest.raises(JacanaError, match=re.escape(says)):
        compare("memory", **settings)


def test_systems_are_compared_on_the_same_pairs(config, tmp_path):
    few = {**config, "aligner": ALIGNERS["equal"], "data": {**config["data"], "limit": 3}}
    with pytest.raises(ConfigError, match="few changes data, and systems are compared on the same pairs"):
        side_by_side.compare(config, [Entry("few", few)], tmp_path)
    with pytest.raises(ConfigError, match="aligners="):
        side_by_side.compare(config, [], tmp_path)
