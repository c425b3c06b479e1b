"""Sweeps: what becomes of their jobs is read from files, whichever launcher runs them."""

from __future__ import annotations

import csv
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from templates import corpus, layerless
from test_conf import CONF, needs_plugin
from test_diagnostics import hparams_table

from jacana_torch import corpora
from jacana_torch.cli import main, sweeps
from jacana_torch.train.tracking import TensorBoard, write_columns

ROOT = Path(__file__).parents[2]
FAST = ["annotate=none", "features=[string,position]", "trainer.max_iterations=6", "data.train=[corpus.jsonl]"]
FAST += ["data.root=.", "logger.every=0", "logger.examples=0", "cv=2"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("sweeps")
    corpora.write(layerless(corpus(30)), str(folder / "corpus.jsonl"), "jsonl")
    return folder


def swept(folder: Path, name: str, *overrides: str, code: int = 0) -> tuple[list[dict[str, str]], list[str], str]:
    """Run a sweep as a process: the rows of its table, the lines of stdout, and stderr."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "jacana_torch", "train", "-m", *FAST, f"hydra.sweep.dir={name}", *overrides]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == code and "Traceback" not in done.stderr, done.stderr
    with open(folder / name / "sweep.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return rows, done.stdout.splitlines(), done.stderr


def columns(folder: Path) -> set[str]:
    """The columns that the HParams tab ticks for the runs below a folder."""
    return {name for group in hparams_table(folder) for name in group.hparams}


@pytest.fixture(scope="module")
def plain(folder) -> list[dict[str, str]]:
    return swept(folder, "plain", "workers=1", "trainer.l2=1,4", "logger=none")[0]


@pytest.mark.slow
@pytest.mark.parametrize("launcher", ["joblib", "submitit_local", "slurm", "ray"])
def test_two_jobs_of_a_launcher_end_in_the_table_of_two_jobs_in_a_row(launcher, folder, plain):
    needs_plugin(CONF / "launcher" / f"{launcher}.yaml")
    if launcher == "slurm" and shutil.which("srun") is None:
        pytest.skip("there is no Slurm here")
    rows, out, err = swept(folder, launcher, f"+launcher={launcher}", "trainer.l2=1,4")
    assert rows == plain and [row["trainer.l2"] for row in rows] == ["1", "4"]
    assert sorted(out) == [str(folder / launcher / number) for number in "01"]
    best = max(rows, key=lambda row: float(row["f1"]))
    ranked = [
        line.split() for line in err.splitlines() if line.split()[1:2] == [f"trainer.l2={best['trainer.l2']}"]
    ]
    assert ranked[0][0] == f"{100 * float(best['f1']):.2f}"
    assert columns(folder / launcher) == {"trainer.l2"}


@pytest.mark.slow
def test_an_error_of_a_job_in_another_process_is_reported_after_the_others(folder):
    needs_plugin(CONF / "launcher" / "joblib.yaml")
    rows, out, err = swept(folder, "failing", "+launcher=joblib", "drop=[],[string,position]", code=2)
    assert [row["error"][:4] for row in rows] == ["", rows[1]["error"][:4]] and "all were dropped" in rows[1][
        "error"
    ]
    assert len(out) == 1 and err.splitlines()[-1].count("all were dropped") == 1


@pytest.mark.slow
def test_optuna_maximises_the_score_of_its_jobs(folder):
    needs_plugin(CONF / "sweep" / "optuna_standard.yaml")
    rows, out, _ = swept(folder, "optuna", "+sweep=optuna_standard", "hydra.sweeper.n_trials=2")
    settings = {"trainer.l2", "trainer.cost_null", "trainer.cost_link"}
    assert len(rows) == len(out) == 2 and settings < set(rows[0]) and columns(folder / "optuna") == settings
    result = (folder / "optuna" / "optimization_results.yaml").read_text()
    assert f"best_value: {max(float(row['f1']) for row in rows)}" in result


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "module"), [("launcher=joblib", "joblib_launcher"), ("sweep=optuna_standard", "optuna_sweeper")]
)
def test_a_plugin_that_is_not_installed_is_named_with_the_command_that_installs_it(name, module, folder):
    code = f"import sys; sys.modules['hydra_plugins.hydra_{module}'] = None; from jacana_torch.cli import main; "
    code += f"sys.exit(main(['train', '-m', '+{name}', 'seed=1,2']))"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 2 and done.stderr.splitlines()[-1].endswith(
        "is not installed: pip install 'jacana-torch[sweeps]'"
    )


@pytest.mark.parametrize("group", ["launcher", "sweep"])
def test_an_unknown_name_is_one_line_with_those_that_exist(group, capsys):
    assert main(["train", "-m", f"+{group}=nope"]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and f"{group}/nope" in err and {"launcher": "joblib", "sweep": "l2"}[group] in err


# Tables


def job(number: int, score: float | None, *overrides: str, error: str | None = None) -> sweeps.Outcome:
    return sweeps.Outcome(number, list(overrides), score, error)


def test_the_table_has_a_column_for_what_differs_and_says_what_failed(tmp_path):
    jobs = [
        job(2, 0.25, "cv=5", "drop=[]", "+features=[ner,pos]"),
        job(10, None, "cv=5", "drop=[string]", "+features=[ner,pos]", error='no "such"\nthing'),
        job(1, 0.5, "cv=5", "+features=[ner,pos]"),
    ]
    for one in jobs:
        (tmp_path / f"a/{one.number}").mkdir(parents=True)
        one.write(tmp_path / f"a/{one.number}")
    found = sweeps.outcomes(tmp_path)
    assert [one.number for one in found] == [1, 2, 10] and sweeps.swept(found) == ["drop"]
    sweeps.write_table(tmp_path, found)
    with open(tmp_path / "sweep.csv", newline="", encoding="utf-8") as file:
        assert list(csv.reader(file)) == [
            ["job", "drop", "f1", "folder", "error"],
            ["1", "", "0.5", "a/1", ""],
            ["2", "[]", "0.25", "a/2", ""],
            ["10", "[string]", "", "a/10", 'no "such"\nthing'],
        ]
    assert sweeps.ranking(found).splitlines() == [
        "     F1",
        "  50.00  ",
        "  25.00  drop=[]",
        " failed  drop=[string]",
    ]
    sweeps.begin(tmp_path)
    assert not sweeps.outcomes(tmp_path) and not (tmp_path / "sweep.csv").exists()


def test_tensorboard_has_the_columns_that_were_swept_alone(tmp_path):
    for number, l2 in enumerate((1.0, 4.0)):
        board = TensorBoard(tmp_path / str(number))
        board.outcome({"trainer.l2": l2, "links": "sure", "cv": 5}, {"f1": l2 / 10, "exact": 0.5}, columns=False)
        board.close()
    assert columns(tmp_path) == {"trainer.l2", "links", "cv"}
    write_columns(tmp_path, {"trainer.l2": [1.0, 4.0]})
    write_columns(tmp_path, {"trainer.l2": [1.0, 4.0]})  # of a resumed sweep
    assert columns(tmp_path) == {"trainer.l2"} and len(list(tmp_path.glob("events*"))) == 1
    metrics = [{m.name.tag: m.value for m in group.sessions[0].metric_values} for group in hparams_table(tmp_path)]
    assert sorted(one["outcome/f1"] for one in metrics) == pytest.approx([0.1, 0.4])
