"""`jacana-torch compare` as people meet it: systems whose scores are known, on a corpus of templates."""

from __future__ import annotations

import json
import logging
import re
from pathlib import Path
from typing import ClassVar

import pytest
import torch
from composed import composed
from templates import corpus, layerless

from jacana_torch import compare as side_by_side
from jacana_torch import corpora, experiment, persist, run
from jacana_torch.aligners.base import TrainingReport
from jacana_torch.aligners.bidirectional import Bidirectional
from jacana_torch.aligners.unsupervised.ibm1 import Ibm1
from jacana_torch.cli import main
from jacana_torch.compare.table import format_of
from jacana_torch.errors import ConfigError
from jacana_torch.evaluate import count, score
from jacana_torch.evaluate.significance import differences
from jacana_torch.symmetrize import SYMMETRIZERS
from jacana_torch.types import Alignment

EXAMPLES, DEV = layerless(corpus(30)), layerless(corpus(9, seed=2))


class Equal:
    """Links equal words."""

    requires: ClassVar[tuple[str, ...]] = ()
    calls: ClassVar[list[int]] = []

    def align(self, pairs):
        self.calls.append(len(pairs))
        return [self.one(pair) for pair in pairs]

    def one(self, pair):
        links = [
            (i, j) for i, a in enumerate(pair.source.tokens) for j, b in enumerate(pair.target.tokens) if a == b
        ]
        return Alignment(len(pair.source), len(pair.target), frozenset(links))


class Memory(Equal):
    """Knows the pairs that it was trained on, by their ids, and nothing else."""

    def __init__(self):
        self.known = {}

    def fit(self, examples, dev=(), watch=None):
        self.known = {e.pair.id: e.gold.links for e in examples}
        return TrainingReport()

    def one(self, pair):
        return Alignment(len(pair.source), len(pair.target), frozenset(self.known.get(pair.id, ())))

    def state(self):
        return {"known": [json.dumps(item) for item in self.known.items()]}

    def restore(self, state):
        self.known = {name: [tuple(link) for link in links] for name, links in map(json.loads, state["known"])}


class Broken(Equal):
    def one(self, pair):
        raise ZeroDivisionError("by nought")


class Interrupted(Equal):
    """Ctrl-C comes the first time."""

    still: ClassVar[list[str]] = []

    def one(self, pair):
        if self.still:
            self.still.pop()
            raise KeyboardInterrupt
        return super().one(pair)


class Tagged(Equal):
    requires = ("pos",)


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> Path:
    """A folder with corpora, and one of configs that name the classes above."""
    folder = tmp_path_factory.mktemp("compared")
    corpora.write(EXAMPLES, str(folder / "words.jsonl"), "jsonl")
    corpora.write(DEV, str(folder / "dev.jsonl"), "jsonl")
    (folder / "conf" / "aligner").mkdir(parents=True)
    for kind in (Equal, Memory, Broken, Interrupted, Tagged):
        path = folder / "conf" / "aligner" / f"{kind.__name__.lower()}.yaml"
        path.write_text(f"_target_: {kind.__module__}.{kind.__name__}\n")
    lacking = "_target_: jacana_torch.aligners.sultan.aligner.Sultan\nparaphrases: nowhere\n"
    (folder / "conf" / "aligner" / "lacking.yaml").write_text(lacking)
    return folder


@pytest.fixture(scope="module")
def config(files) -> dict:
    """What conf/compare.yaml composes to, as plain data."""
    made = composed("annotate=none", "features=[string]", f"data.root={files}", "data.train=[words.jsonl]")
    return {**made, "train": None, "symmetrizers": None, "rounds": 100}


@pytest.fixture
def compare(files, tmp_path, capsys, monkeypatch):
    """Run in this process: (exit code, stdout, stderr). Leaves logging and threads as they were."""
    root, threads = logging.getLogger(), torch.get_num_threads()
    handlers, level = root.handlers[:], root.level
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JACANA_TRUST", Equal.__module__)
    Equal.calls.clear()

    def call(aligners: str, *overrides: str) -> tuple[int, str, str]:
        given = [f"data.root={files}", "data.train=[words.jsonl]", "annotate=none", "rounds=500"]
        code = main(["compare", f"--config-dir={files / 'conf'}", f"aligners=[{aligners}]", *given, *overrides])
        return code, *capsys.readouterr()

    yield call
    root.handlers[:], root.level = handlers, level
    torch.set_num_threads(threads)


def report(done: tuple[int, str, str]) -> dict:
    code, out, err = done
    assert code == 0, err
    return json.loads(out)


def f1(rows: list[dict]) -> list[float]:
    return [round(row["score"]["f1"], 9) for row in rows]


# Figures


def test_scores_are_those_of_the_systems(compare):
    rows = report(compare("equal,memory", "format=json"))["rows"]
    expected = score([e.gold for e in EXAMPLES], [Equal().one(e.pair) for e in EXAMPLES])
    assert rows[0]["score"] == expected.to_dict() and 0.3 < expected.f1 < 0.95
    assert rows[1]["score"]["f1"] == rows[1]["score"]["exact"] == 1
    assert [row["trained_on"] for row in rows] == ["-", "the same pairs"]
    assert rows[0]["training_seconds"] is None and rows[1]["training_seconds"] >= 0
    assert all(row["pairs_per_second"] > 0 and row["failure"] is None for row in rows)


def test_significance_is_against_the_first_row_that_ran(compare):
    found = report(compare("broken,equal,memory", "format=json"))
    assert found["first"] == "equal" and found["rows"][1]["against_first"] is None
    gold = [e.gold for e in EXAMPLES]
    ours, theirs = count(gold, gold), count(gold, [Equal().one(e.pair) for e in EXAMPLES])
    expected = differences(ours, theirs, 500, 1)
    for name, figures in found["rows"][2]["against_first"].items():
        assert figures == vars(expected[name]), name
    text = compare("broken,equal,memory")[1].splitlines()
    assert re.fullmatch(r"memory +the same pairs +100.00\*\* +100.00\*\* +100.00\*\* +100.00\*\* .*", text[3])
    assert "*" not in text[2]


def test_pairs_that_were_trained_on_are_told_from_others(compare):
    both = report(compare("equal,memory", "format=json", "cv=5", "train=[same,cv]"))["rows"]
    assert [row["trained_on"] for row in both] == ["-", "the same pairs", "5-fold cv"]
    assert f1(both)[1:] == [1, 0]
    assert f1(report(compare("memory,equal", "format=json", "cv=3"))["rows"])[0] == 0
    dev = report(compare("memory,equal", "format=json", "data.dev=[dev.jsonl]"))["rows"]
    assert [row["trained_on"] for row in dev] == ["other pairs", "-"] and f1(dev)[0] == 0
    expected = score([e.gold for e in DEV], [Equal().one(e.pair) for e in DEV])
    assert dev[1]["score"] == expected.to_dict()


def test_every_symmetrizer_where_they_are_asked_for(compare):
    rows = report(compare("ibm1,equal", "format=json", "symmetrizers=all"))["rows"]
    own = Bidirectional(Ibm1(), Ibm1())
    own.fit(EXAMPLES)
    expected = experiment.scores(EXAMPLES, experiment.predictions(own, EXAMPLES))
    assert [row["symmetrizer"] for row in rows] == [*SYMMETRIZERS, None]
    for row in rows[:-1]:
        assert row["score"]["f1"] == pytest.approx(expected[row["symmetrizer"]].f1), row["symmetrizer"]
    chosen = report(compare("ibm1", "format=json", "symmetrizers=[grow-diag,union]"))["rows"]
    assert [row["symmetrizer"] for row in chosen] == ["grow_diag", "union"]
    assert compare("ibm1")[1].splitlines()[1].startswith("ibm1, intersection ")


def test_a_system_may_have_settings_and_a_name_of_its_own(compare):
    aligners = 'crf,{bare: "crf features=[string] trainer.max_iterations=3"}'
    done = compare(
        aligners, "features=[string,position]", "trainer.max_iterations=2", "format=json", "hydra.run.dir=r"
    )
    rows = report(done)["rows"]
    assert [row["system"] for row in rows] == ["crf", "bare"] and not rows[0]["converged"]
    used = [json.loads(path.read_text())["of"]["system"]["model"] for path in Path("r/rows").iterdir()]
    directions = [model["aligner"]["forward"] for model in used]
    assert sorted((sorted(d["families"]), d["max_iterations"]) for d in directions) == [
        (["position", "string"], 2), (["string"], 3),
    ]  # fmt: skip


def test_models_that_were_saved_are_rows_too(compare, model):
    rows = report(compare(f"equal,{model},core", "format=json"))["rows"]
    assert [row["trained_on"] for row in rows] == ["-", "saved model", "saved model"]
    for row, name in zip(rows[1:], (model, "core"), strict=True):
        found = persist.load(name).align([e.pair for e in EXAMPLES])
        assert row["score"] == score([e.gold for e in EXAMPLES], found).to_dict()


# What cannot run, and what is interrupted


def test_what_cannot_run_says_why_and_the_others_run(compare):
    code, out, err = compare("broken,lacking,tagged,equal")
    lines = out.splitlines()
    assert code == 0 and "ZeroDivisionError: by nought" in lines[1]
    assert "cannot run" in lines[2] and "nowhere" in lines[2]
    assert "annotate=" in lines[3] and re.match(r"equal +- +\d", lines[4])
    code, out, err = compare("broken,lacking")
    assert (code, out) == (2, "") and "by nought" in err and "nowhere" in err


def test_what_was_measured_before_an_interruption_is_kept(compare):
    Interrupted.still[:] = ["once"]
    code, out, err = compare("equal,interrupted,memory", "hydra.run.dir=one")
    assert (code, out) == (130, "") and "/one" in err.split("resume=")[1]
    assert Equal.calls == [1, 30, 1] and len(list(Path("one/rows").iterdir())) == 1
    Equal.calls.clear()
    again = compare("equal,interrupted,memory", "resume=one", "format=json", "hydra.run.dir=two")
    assert len(report(again)["rows"]) == 3 and "equal: measured before" in again[2]
    assert Equal.calls == [1, 30] * 2 and len(list(Path("one/rows").iterdir())) == 3
    fresh = compare("equal,interrupted,memory", "format=json", "hydra.run.dir=three")
    assert [row["score"] for row in report(again)["rows"]] == [row["score"] for row in report(fresh)["rows"]]


def test_what_was_measured_otherwise_is_measured_again(compare, files):
    assert compare("memory,equal", "hydra.run.dir=one")[0] == 0
    same = compare("memory,equal", "resume=one")[2]
    assert same.count("measured before") == 2
    assert "memory: measured before" not in (err := compare("memory,equal", "resume=one", "cv=5")[2])
    assert "equal: measured before" in err  # which learns nothing
    assert "measured before" not in compare("memory,equal", "resume=one", "data.limit=20")[2]
    kept = list(Path("one/rows").iterdir())
    for path in kept:
        path.write_text(path.read_text()[:40])
    code, out, err = compare("memory,equal", "resume=one")
    assert code == 0 and err.count("measured again") == 2 and "memory " in out


# How it is written


def test_text_is_aligned(compare):
    lines = compare("equal,memory,ibm1")[1].splitlines()
    table = lines[: lines.index("")]
    assert len({len(line) for line in table}) == 1 and table[0].split()[0] == "system"
    places = [match.end() for match in re.finditer(r"\S+", table[0].replace("trained on", "trained_on"))]
    for line in table[1:]:
        for place in places[2:6]:
            assert line[place - 1].isdigit() and line[place] in " *"
    assert "avg:macro|links:sure|n:30" in lines[len(table) + 1] and "against equal" in lines[len(table) + 2]


def test_markdown_has_the_same_cells(compare):
    text = compare("equal,{a|b_c: broken},memory", "format=markdown")[1].splitlines()
    rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in text[:5]]
    assert {len(row) for row in rows} == {8} and [cell.strip() for cell in rows[1]][:3] == ["---", "---", "---:"]
    assert rows[3][0].strip() == r"a\|b\_c" and rows[3][1].strip().startswith("cannot run: ZeroDivisionError")
    assert rows[4][4].strip() == r"100.00\*\*"


def test_latex_is_balanced_and_escaped(compare):
    text = compare("equal,{50%_b: broken},memory", "format=latex")[1]
    body = text[text.index(r"\midrule") : text.index(r"\bottomrule")].splitlines()[1:]
    assert [len(re.findall(r"(?<!\\)&", line)) for line in body] == [7, 1, 7]
    assert body[1].startswith(r"50\%\_b & \multicolumn{7}{l}") and "100.00$^{**}$" in body[2]
    plain = re.sub(r"\\[{}]", "", text)
    assert plain.count("{") == plain.count("}") and all(line.endswith(r"\\") for line in body)


def test_a_table_goes_where_it_should(compare):
    code, out, err = compare("equal", "output=sub/t.md")
    assert (code, out) == (0, "") and Path("sub/t.md").read_text().startswith("| system")
    assert [path.name for path in Path("sub").iterdir()] == ["t.md"]


def test_the_file_says_the_format():
    names = {"t.md": "markdown", "a.b/t.TEX": "latex", "t.json": "json", "t.txt": "text", "md": "text"}
    assert {name: format_of(None, name) for name in names} == names
    assert format_of(None, None) == "text" and format_of("json", "t.md") == "json"


def test_the_folder_of_the_run_has_every_figure_and_the_log(compare):
    assert compare("equal,memory", "hydra.run.dir=here")[0] == 0
    held = json.loads(Path("here/compare.json").read_text())
    assert [row["system"] for row in held["rows"]] == ["equal", "memory"] and held["data"] == ["words.jsonl"]
    assert held["machine"]["threads"] == 1 and "memory" in Path("here/compare.log").read_text()


# Mistakes


@pytest.mark.parametrize(
    ("aligners", "overrides", "says"),
    [
        ("", [], "aligners"),
        ("equal,nope", [], "nope"),
        ("equal", ["aligner=crf"], "aligners=[crf"),
        ('"equal +aligner.colour=red"', [], "colour"),
        ('"equal data.limit=3"', [], "same pairs"),
        ("equal", ["format=pdf"], "latex"),
        ("equal", ["resume=nowhere"], "nowhere"),
        ("equal", ["data.train=[nowhere.jsonl]"], "nowhere.jsonl"),
        ("equal", ["annotate=given"], "data.sidecar"),
        ("equal", ["data=nope"], "msr"),
        ("equal", ["-m"], "sweep"),
    ],
)  # fmt: skip
def test_mistakes_are_short_and_exit_with_2(compare, aligners, overrides, says):
    code, out, err = compare(aligners, *overrides)
    assert (code, out) == (2, ""), err
    message = err[err.index("jacana-torch: error:") :]
    assert says in message and "Traceback" not in err and len(message.splitlines()) < 15


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
    ],
)
def test_settings_that_make_no_sense_are_told(settings, says, config, tmp_path, monkeypatch):
    monkeypatch.setenv("JACANA_TRUST", Equal.__module__)
    config = {**config, "aligner": {"_target_": f"{Equal.__module__}.Memory"}, **settings}
    with pytest.raises(ConfigError, match=re.escape(says)):
        side_by_side.compare(config, [side_by_side.Entry("memory", config)], tmp_path, ["string"])


@pytest.mark.parametrize(
    "item", ["equal colour", "'equal", {"a": "b", "c": "d"}, {"a": 1}, 3, None, ["equal"], "", {"a": ""}]
)
def test_what_names_no_system_is_told(item):
    with pytest.raises(ConfigError, match="aligners: "):
        run._system(item)
    assert run._system("x a=b 'c=[d, e]'") == ("x", ["a=b", "c=[d, e]"], "x a=b 'c=[d, e]'")
    assert run._system({"y": "x a=b"}) == ("x", ["a=b"], "y")


def test_models_that_were_saved_take_no_settings(compare):
    code, out, err = compare('"core trainer.l2=1"')
    assert (code, out) == (2, "") and "takes no settings" in err
