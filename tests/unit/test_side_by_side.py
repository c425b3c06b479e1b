"""Folds that are trained side by side: the same results as one after the other, also after a kill."""

from __future__ import annotations

import logging
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from templates import corpus, layerless
from test_interrupt import OVERRIDES, ROOT
from variants import variants

from jacana_torch import corpora
from jacana_torch.aligners.base import TrainingReport
from jacana_torch.aligners.calibration import folds_of, held_out
from jacana_torch.errors import ConfigError, JacanaError
from jacana_torch.train.checkpoint import Files, Phase
from jacana_torch.train.cross_validation import _tasks, cross_validate
from jacana_torch.train.diagnostics import CellProbabilities
from jacana_torch.train.side_by_side import side_by_side, workers_of
from jacana_torch.types import Alignment
from jacana_torch.util import parallel
from jacana_torch.util.build import build

SETTINGS = (*OVERRIDES[:3], "logger=tensorboard", "symmetrize=posterior", "symmetrize.folds=2", "cv=3")
WRITTEN = ("scores.json", "predictions.jsonl")


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("folds")
    corpora.write(layerless(corpus(60)), str(folder / "corpus.jsonl"), "jsonl")
    return folder


def start(folder: Path, *overrides: str) -> subprocess.Popen:
    given = ["data.root=.", "data.train=[corpus.jsonl]", *overrides]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "jacana_torch", "train", *given]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, cwd=folder, env=environment, **pipes)


def done(folder: Path, *overrides: str) -> str:
    process = start(folder, *overrides)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return err


def files_of(run: Path) -> list[bytes]:
    return [(run / name).read_bytes() for name in WRITTEN]


@pytest.fixture(scope="module")
def whole(folder) -> Path:
    done(folder, *SETTINGS, "workers=1", f"hydra.run.dir={folder}/whole")
    return folder / "whole"


def curve(run: Path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(run)).Reload()
    return [e.value for e in events.Scalars("calibration/expected_error")], sorted(events.Tags()["tensors"])


@pytest.mark.slow
def test_two_workers_find_what_one_does_and_say_it_by_fold(folder, whole):
    run = folder / "two"
    said = done(folder, *SETTINGS, "workers=2", f"hydra.run.dir={run}")
    assert files_of(run) == files_of(whole) and curve(run) == curve(whole)
    assert not (run / "checkpoint").exists() and "done already" not in said
    for fold in (1, 2, 3):
        assert f"fold {fold}: backward: loss " in said and f"fold {fold} of 3: posterior F1" in said
    scores = re.compile(r"fold . of 3: posterior F1 .*")
    assert sorted(scores.findall(said)) == sorted(scores.findall((whole / "train.log").read_text()))
    assert "fold 2: both directions on held-out pairs: fold 2 of 2" in said, "a fold of the calibration is a part"


@pytest.mark.slow
def test_after_kill_9_finished_folds_and_parts_are_not_trained_again(folder, whole):
    run = folder / "killed"
    process = start(folder, *SETTINGS, "workers=2", f"hydra.run.dir={run}")
    deadline = time.monotonic() + 60
    while not list((run / "checkpoint").glob("training.fold-?.safetensors")) and time.monotonic() < deadline:
        time.sleep(0.005)
    workers = children(process.pid)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    kept = {path.name for path in (run / "checkpoint").glob("training.fold-?.safetensors")}
    assert kept and len(workers) == 2
    said = done(folder, f"resume={run}")  # at once: its workers may need a moment to notice
    assert files_of(run) == files_of(whole)
    for fold in (1, 2, 3):
        ended = f"training.fold-{fold}.safetensors" in kept
        assert (f"training.fold-{fold} is done already" in said) == ended
        assert not (ended and f"fold {fold}: " in said), "an ended fold has nothing more to say"
        assert f"fold {fold} of 3" in said
    assert not any(alive(worker) for worker in workers)


def children(parent: int) -> list[int]:
    text = Path(f"/proc/{parent}/task/{parent}/children")
    if not text.exists():
        pytest.skip("there is no list of child processes here")
    return list(map(int, text.read_text().split()))


def alive(process: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


# In this process


@dataclass
class Picky:
    """Learns nothing, and fails where a pair of the fold is aligned that it does not like."""

    disliked: str = ""
    kind: type = JacanaError
    requires: tuple[str, ...] = ()

    def fit(self, examples, dev=(), watch=None):
        logging.getLogger(__name__).warning("seen %d", len(examples))
        return TrainingReport()

    def align(self, pairs):
        if any(p.id == self.disliked for p in pairs):
            raise self.kind("this pair is disliked")
        return [Alignment(len(p.source), len(p.target)) for p in pairs]

    def state(self):
        return {}

    def restore(self, state):
        pass


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("kind", variants([JacanaError, ConfigError]))
def test_an_error_names_its_fold_once(workers, kind, monkeypatch):
    monkeypatch.setattr(parallel, "usual_method", lambda: "fork")
    examples = corpus(12)
    with pytest.raises(kind, match=r"^fold [1-4] of 4: this pair is disliked$") as error:
        cross_validate(partial(Picky, examples[5].pair.id, kind), examples, 4, workers=workers)
    assert type(error.value) is kind


def test_a_fault_of_the_program_comes_with_the_traceback_of_the_worker(monkeypatch):
    monkeypatch.setattr(parallel, "usual_method", lambda: "fork")
    examples = corpus(12)
    with pytest.raises(ZeroDivisionError, match="disliked") as error:
        cross_validate(partial(Picky, examples[5].pair.id, ZeroDivisionError), examples, 4, workers=2)
    assert "in align" in str(error.value.__cause__)


def test_what_workers_log_is_logged_here(monkeypatch, caplog):
    monkeypatch.setattr(parallel, "usual_method", lambda: "fork")
    cross_validate(Picky, corpus(12), 4, workers=2)
    said = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert sorted(said) == [f"fold {fold}: seen 9" for fold in (1, 2, 3, 4)]


def died(task):
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_lost_worker_is_an_error_that_says_what_to_do(monkeypatch):
    monkeypatch.setattr(parallel, "usual_method", lambda: "fork")
    with pytest.raises(JacanaError, match=r"was killed \(signal 9\).*: try again with fewer \(workers=1\)"):
        list(side_by_side(died, [(1, ""), (2, "")], 2, 2))


def slept(task: tuple[int, float]) -> int:
    time.sleep(task[1])
    return os.getpid()


def test_tasks_are_yielded_as_they_end_and_may_wait_for_others():
    ended = []

    def tasks():
        yield 1, 0.3
        yield 2, 0.0
        while not ended:
            yield None
        yield 3, 0.0
        while len(ended) < 3:
            yield None
        yield 4, 0.0

    for task, process in parallel.as_done(slept, tasks(), 2, "fork"):
        assert process != os.getpid()
        ended.append(task[0])
    assert ended == [2, 3, 1, 4]


def test_the_rest_of_a_fold_is_given_when_its_parts_are_done():
    parts = {1: ["a", "b"], 2: [], 4: ["a"]}
    tasks, given = _tasks(parts), []
    for task in tasks:
        given.append(task)
        if task is None:
            parts[4].clear()
        elif task == (4, "a"):
            parts[1].clear()
    assert given == [(1, "a"), (2, ""), (1, "b"), (4, "a"), (1, ""), None, (4, "")]


CHAIN = {"_target_": "jacana_torch.aligners.crf.Crf", "max_iterations": 4,
         "families": {"string": {"_target_": "jacana_torch.features.families.string.String"}}}  # fmt: skip
JOIN = {"_target_": "jacana_torch.aligners.posterior.Posterior", "folds": 2}
BOTH = {"_target_": "jacana_torch.aligners.bidirectional.Bidirectional", "forward": CHAIN, "backward": CHAIN}


def test_parts_that_other_processes_train_make_the_same_models(tmp_path, monkeypatch):
    monkeypatch.setattr(parallel, "usual_method", lambda: "fork")
    make, found = partial(build, {**BOTH, "symmetrize": JOIN}), []
    for workers in (1, 2):
        phase = Phase(Files(tmp_path / str(workers), 60), "training")
        each = CellProbabilities()
        found.append(
            (
                cross_validate(make, layerless(corpus(40)), 2, each=each, checkpoint=phase, workers=workers),
                each.probabilities.tobytes(),
                [state_of(phase.phase(f"fold-{fold}{part}")) for fold in (1, 2) for part in ("", "-training")],
            )
        )
    assert found[0] == found[1] and len(found[0][1])


def state_of(phase: Phase) -> dict[str, list]:
    state, _ = phase.finished()
    return {name: value if isinstance(value, list) else value.tolist() for name, value in state.items()}


@pytest.mark.parametrize(("n", "asked"), [(30, 5), (19, 5), (25, 2)])
def test_the_folds_of_the_calibration_are_counted_as_they_are_trained(n, asked):
    chains = [build({**CHAIN, "max_iterations": 1, "part": part}) for part in ("forward", "backward")]
    examples = layerless(corpus(n))
    assert folds_of(examples, asked) == (0 if n < 20 else len(list(held_out(*chains, examples, asked, 1))))


def test_one_worker_per_cpu_unless_the_device_is_another():
    for asked, device, found in ((None, "cpu", parallel.available()), (None, "cuda", 1), (7, "cuda", 7)):
        assert workers_of({"workers": asked, "trainer": {"device": device}}) == found
