"""Interrupted runs: Ctrl-C, SIGTERM and kills. A resumed run ends with the weights of one without an interrupt."""

from __future__ import annotations

import io
import json
import logging
import os
import re
import shlex
import signal
import subprocess
import sys
from collections import Counter
from contextlib import redirect_stderr
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from templates import corpus, layerless

import jacana_torch
from jacana_torch import corpora
from jacana_torch.aligners.base import TrainingReport
from jacana_torch.aligners.bidirectional import Bidirectional
from jacana_torch.cli import hydra
from jacana_torch.train.checkpoint import Files

ROOT = Path(__file__).parents[2]
OVERRIDES = [
    "annotate=none",
    "features=[string,position,distortion]",
    "logger.every=1",
    "logger.tensorboard=false",
]
OVERRIDES += ["trainer.tolerance=1e-9", "symmetrize=intersection"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("interrupted")
    corpora.write(layerless(corpus(60)), str(folder / "corpus.jsonl"), "jsonl")
    return folder


def start(folder: Path, *overrides: str) -> subprocess.Popen:
    given = ["data.root=.", "data.train=[corpus.jsonl]", *OVERRIDES, *overrides]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(
        [sys.executable, "-m", "jacana_torch", "train", *given], cwd=folder, env=environment, **pipes
    )


def interrupted(folder: Path, at: str, *overrides: str, how=signal.SIGINT) -> tuple[int, list[str], str]:
    """Send Ctrl-C, or another signal, as soon as the log has a line `at`."""
    process = start(folder, *overrides)
    seen = []
    for line in process.stderr:
        seen.append(line)
        if re.match(at, line):
            process.send_signal(how)
            break
    out, err = process.communicate(timeout=60)
    return process.returncode, out.splitlines(), "".join(seen) + err


def finished(folder: Path, *overrides: str) -> Path:
    """Train in this process without an interrupt."""
    model = folder / f"model-{len(list(folder.iterdir()))}"
    given = [f"data.root={folder}", "data.train=[corpus.jsonl]", *OVERRIDES, f"output={model}", *overrides]
    handlers, level = logging.getLogger().handlers[:], logging.getLogger().level
    try:
        hydra.train([*given, f"hydra.run.dir={model}-run"])
    finally:
        logging.getLogger().handlers[:], logging.getLogger().level = handlers, level
    return model


def losses(model: Path) -> dict[str, float]:
    return json.loads((model / "signature.json").read_text())["loss"]


@pytest.fixture(scope="module")
def whole(folder) -> Path:
    """The model of a run without an interrupt."""
    return finished(folder)


@pytest.mark.parametrize("part", ["forward", pytest.param("backward", marks=pytest.mark.slow)])
def test_ctrl_c_keeps_the_best_weights_to_resume_from(folder, whole, part, caplog):
    code, out, err = interrupted(folder, rf"{part} +4 ", "output=finished")
    assert code == 130 and "Traceback" not in err
    assert len(out) == 1 and not (folder / "finished").exists()  # only a finished run writes there
    kept = Path(out[0])
    signature = json.loads((kept / "signature.json").read_text())
    assert signature["interrupted"] is True and signature["iterations"][part] >= 4
    command = next(line for line in err.splitlines() if "to continue: " in line).split("to continue: ")[1]
    assert shlex.split(command)[-1] == f"resume={kept}" and "output=finished" in command
    model = jacana_torch.load(kept)
    assert "interrupted" in caplog.text and f"resume={kept}" in caplog.text  # a warning to its users
    pairs = [("a red car", "a red automobile")]
    assert len(model.aligner.forward.names)
    if part == "backward":
        assert model.align(pairs)[0].links
    else:
        with pytest.raises(jacana_torch.JacanaError, match="backward direction has not been trained"):
            model.align(pairs)

    assert os.listdir(kept.parent / "checkpoint")
    resumed = finished(folder, f"resume={kept}")
    assert losses(resumed) == losses(whole) and same_weights(resumed, whole)
    assert not (kept.parent / "checkpoint").exists() and (kept.parent / "run.json").is_file()


def same_weights(one: Path, other: Path) -> bool:
    return (one / "weights.safetensors").read_bytes() == (other / "weights.safetensors").read_bytes()


def test_sigterm_leaves_a_checkpoint_alone_and_its_folder_is_enough_to_resume(folder, whole, monkeypatch):
    code, out, err = interrupted(
        folder, "backward +6 ", "output=terminated", "hydra.run.dir='terminated run\\'s'", how=signal.SIGTERM
    )
    run = folder / "terminated run's"
    assert (code, out) == (143, []) and "Traceback" not in err
    assert sorted(os.listdir(run)) == [".hydra", "checkpoint", "run.json", "train.log"]
    assert sorted(os.listdir(run / "checkpoint")) == [
        "training.backward.safetensors",
        "training.forward.safetensors",
    ]
    assert not (folder / "terminated").exists() and not list(folder.glob(".jacana-*"))
    command = shlex.split(
        next(line for line in err.splitlines() if "to continue: " in line).split("to continue: ")[1]
    )
    assert command[-1].startswith("resume=") and command[-1].endswith("/terminated run's")
    monkeypatch.chdir(folder)
    done = run_here("resume='terminated run\\'s'")
    assert "training.forward is done already" in done and "training.backward goes on" in done
    assert same_weights(folder / "terminated", whole) and losses(folder / "terminated") == losses(whole)
    assert sorted(os.listdir(run)) == [".hydra", "run.json", "scores.json", "train.log"]


def run_here(*overrides: str) -> str:
    """Train in this process; return the log."""
    handlers, level, log = logging.getLogger().handlers[:], logging.getLogger().level, io.StringIO()
    try:
        with redirect_stderr(log):
            hydra.train(list(overrides))
    finally:
        logging.getLogger().handlers[:], logging.getLogger().level = handlers, level
    return log.getvalue()


class Killed(BaseException):
    """A kill, as the code that it ends sees it."""


@pytest.fixture
def killed(folder, monkeypatch):
    """Train until a checkpoint would be written the nth time."""

    def call(at: int, *overrides: str) -> None:
        calls, write = [], Files.write

        def kill(files, *arguments):
            calls.append(arguments)
            if len(calls) == at:
                files.waiting = None
                raise Killed
            write(files, *arguments)

        with monkeypatch.context() as patch:
            patch.setattr(Files, "write", kill)
            with pytest.raises(Killed):
                run_here(f"data.root={folder}", "data.train=[corpus.jsonl]", *OVERRIDES, *SHORT, *overrides)

    return call


SHORT = ("data.limit=12", "trainer.max_iterations=4", "trainer.checkpoint_seconds=0")


@pytest.mark.slow
def test_a_cross_validation_goes_on_with_the_fold_that_was_interrupted(folder, killed, tmp_path):
    given = ("cv=3", "workers=1", "logger.tensorboard=true")
    plain = (f"data.root={folder}", "data.train=[corpus.jsonl]", *OVERRIDES, *SHORT, *given)
    run_here(*plain, f"hydra.run.dir={tmp_path}/whole")
    run = tmp_path / "killed"
    killed(14, *given, f"hydra.run.dir={run}")
    kept = os.listdir(run / "checkpoint")
    assert "training.fold-1.safetensors" in kept and "training.fold-2.safetensors" not in kept
    log = run_here(f"resume={run}")
    assert "training.fold-1 is done already" in log and "training.fold-2-training" in log
    assert "fold 1 of 3" in log and "fold 3 of 3" in log
    for name in ("scores.json", "predictions.jsonl"):
        assert (run / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert not (run / "checkpoint").exists()
    with pytest.raises(jacana_torch.JacanaError, match="not interrupted"):
        run_here(f"resume={run}")


@pytest.mark.slow
def test_a_sweep_goes_on_with_the_job_that_was_interrupted(folder, killed, tmp_path):
    sweep = tmp_path / "sweep"
    killed(13, "--multirun", "trainer.l2=1,4", f"hydra.sweep.dir={sweep}")
    before = (sweep / "0" / "model" / "signature.json").read_bytes()
    assert (sweep / "1" / "checkpoint").is_dir() and not (sweep / "1" / "model").exists()
    log = run_here(f"resume={sweep}")
    assert f"{sweep}/0: this run is done already" in log and "goes on from its checkpoint" in log
    assert (sweep / "0" / "model" / "signature.json").read_bytes() == before
    assert losses(sweep / "1" / "model")["forward"] > losses(sweep / "0" / "model")["forward"]
    with pytest.raises(jacana_torch.JacanaError, match="the sweep did not begin with trainer.l2=1,5, but with"):
        run_here("trainer.l2=1,5", f"resume={sweep}")


@pytest.mark.slow
def test_only_the_same_run_is_resumed(folder, killed, tmp_path):
    run = tmp_path / "run"
    killed(5, f"hydra.run.dir={run}")
    corpora.write(layerless(corpus(30, seed=8)), str(folder / "others.jsonl"), "jsonl")
    for override, says in (
        ("trainer.l2=3", r"trainer.l2 is 3 and was 2.0: a run is resumed with the settings"),
        ("cv=2", "cv is 2 and was None"),
        ("data.train=[others.jsonl]", f"the pairs of data.train .* start={run}"),
        ("data.dev=[others.jsonl]", "the pairs of data.dev"),
    ):
        with pytest.raises(jacana_torch.JacanaError, match=says):
            run_here(f"resume={run}", override)
    with pytest.raises(jacana_torch.JacanaError, match="there is no such run"):
        run_here(f"resume={tmp_path}")
    other = Files(run / "checkpoint", 0.0)
    with pytest.raises(jacana_torch.JacanaError, match="another process is training this run"):
        run_here(f"resume={run}")
    other.close(keep=True)
    (tmp_path / "mine").mkdir()
    run_here(f"resume={run}/checkpoint", "logger.every=0", "description=other", f"output={tmp_path}/mine")
    assert (tmp_path / "mine" / "config.json").is_file()


def test_a_run_that_was_killed_before_it_kept_anything_begins(folder, killed, tmp_path):
    run = tmp_path / "run"
    killed(1, f"hydra.run.dir={run}")
    (run / "run.json").unlink()
    assert "so training begins" in run_here(f"resume={run}")
    assert (run / "model" / "config.json").is_file()


@pytest.mark.slow
def test_tensorboard_goes_on_without_gaps_and_doubles(folder, killed, tmp_path):
    given = ("logger.tensorboard=true", "data.dev=[corpus.jsonl]")
    plain = (f"data.root={folder}", "data.train=[corpus.jsonl]", *OVERRIDES, *SHORT, *given)
    run_here(*plain, f"hydra.run.dir={tmp_path}/whole")
    run = tmp_path / "killed"
    killed(13, *given, f"hydra.run.dir={run}")  # in the second direction
    run_here(f"resume={run}")
    assert len(list(run.glob("events*"))) > len(list((tmp_path / "whole").glob("events*")))
    once, resumed = events(tmp_path / "whole"), events(run)
    assert resumed.keys() == once.keys() and resumed <= once  # the end of a run writes some scores again


def events(folder: Path) -> Counter[tuple[str, int]]:
    """How often the event files of a folder have each tag and step."""
    from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

    found: Counter[tuple[str, int]] = Counter()
    for path in folder.glob("events*"):
        for event in EventFileLoader(str(path)).Load():
            found.update((value.tag, event.step) for value in event.summary.value)
    return found


@dataclass
class Half:
    """A direction that may be interrupted before its first step."""

    stop: bool = False
    known: list[str] = field(default_factory=list)
    requires: tuple[str, ...] = ()
    part: str = "forward"

    def fit(self, examples, dev=(), watch=None):
        if self.stop:
            raise KeyboardInterrupt
        self.known = ["learnt"]
        return TrainingReport({self.part: 1.0}, {self.part: 5})

    def align(self, pairs):
        return []

    def state(self):
        return {"names": self.known}

    def restore(self, state):
        self.known = list(state["names"])


def test_a_finished_direction_survives_ctrl_c_between_the_two():
    both = Bidirectional(Half(), Half(stop=True))
    report = both.fit(corpus(2))
    assert report.interrupted and not report.converged and report.loss == {"forward": 1.0}
    assert both.state() == {"forward.names": ["learnt"], "backward.names": []}
    again = Bidirectional(Half(stop=True), Half())
    with pytest.raises(KeyboardInterrupt):  # nothing was learnt: there is nothing to keep
        again.fit(corpus(2))
