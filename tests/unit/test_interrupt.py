"""Ctrl-C in training: the best weights so far are kept, and a resumed run reaches the same optimum."""

from __future__ import annotations

import json
import logging
import os
import re
import shlex
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from templates import corpus, layerless

import jacana_torch
from jacana_torch import corpora
from jacana_torch.aligners.base import TrainingReport
from jacana_torch.aligners.bidirectional import Bidirectional
from jacana_torch.cli import hydra

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


def interrupted(folder: Path, at: str, *overrides: str) -> tuple[int, list[str], str]:
    """Send Ctrl-C as soon as the log has a line `at`."""
    process = start(folder, *overrides)
    seen = []
    for line in process.stderr:
        seen.append(line)
        if re.match(at, line):
            process.send_signal(signal.SIGINT)
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


@pytest.mark.parametrize("part", ["forward", "backward"])
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

    resumed = finished(folder, f"resume={kept}")
    final = losses(resumed)
    for name, loss in losses(whole).items():
        assert final[name] == pytest.approx(loss, rel=1e-6)
    if part == "backward":  # the direction that was done is done
        assert losses(kept)["forward"] == pytest.approx(final["forward"], rel=1e-9)
        assert json.loads((resumed / "signature.json").read_text())["iterations"]["forward"] <= 3


def test_a_resumed_run_that_is_interrupted_loses_nothing(folder):
    """Interrupted in the first direction after both were begun: both are still there, and as good."""
    short = finished(folder, "trainer.max_iterations=30")  # too few to converge, so it can be resumed
    code, out, _ = interrupted(folder, r"\d+ pairs to train on", f"resume={short}")
    if not out:  # before the first step there is nothing new to keep
        assert code == 130 and jacana_torch.load(short).aligner.backward.names
        return
    before, after = jacana_torch.load(short).aligner, jacana_torch.load(folder / out[0]).aligner
    assert after.backward.names == before.backward.names
    assert np.allclose(after.backward.weights, before.backward.weights, atol=1e-12)


def test_other_pairs_are_not_for_resume(folder):
    kept = finished(folder, "trainer.max_iterations=3")
    corpora.write(layerless(corpus(30, seed=8)), str(folder / "others.jsonl"), "jsonl")
    with pytest.raises(jacana_torch.JacanaError, match=f"start={kept}"):
        finished(folder, "data.train=[others.jsonl]", f"resume={kept}")


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
