"""Checkpoints: a training that is killed at any writing, and resumed, ends with the same weights."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from composed import composed, options
from templates import corpus
from variants import variants

from jacana_torch import resources
from jacana_torch.aligners.base import Resumable, Trainable, TrainingReport, fit_phase
from jacana_torch.errors import ConfigError, JacanaError
from jacana_torch.train.checkpoint import Files, Phase
from jacana_torch.types import resources_of
from jacana_torch.util.build import build

FEATURES = "features=[string,position,distortion]"
EXAMPLES, DEV = corpus(20), corpus(3, seed=3)  # enough to calibrate on
SMALL = ("aligner.width=4", "aligner.blocks=1", "aligner.epochs=2")
SYSTEMS = {
    "crf": ("aligner=crf", FEATURES, "trainer.max_iterations=4", "trainer.prune=0.05", "symmetrize=posterior",
            "symmetrize.folds=2"),
    "phrase": ("aligner=phrase", "features=[string]", "trainer.max_iterations=4"),
    "neural": ("aligner=neural", FEATURES, *SMALL, "aligner.members=2"),
    "mixed": ("aligner=mixed", FEATURES, "aligner.network.width=4", "aligner.network.blocks=1",
              "aligner.network.epochs=2", "aligner.network.encoder=null", "aligner.folds=2",
              "trainer.max_iterations=3"),
    "ibm1": ("aligner=ibm1", "aligner.forward.iterations=2"),
    "hmm": ("aligner=hmm", "aligner.forward.iterations=3", "aligner.forward.ibm1_iterations=2"),
    "agreement": ("aligner=agreement", "aligner.alone=2", "aligner.forward.iterations=2"),
    "manli": ("aligner=manli", "aligner.epochs=4", "aligner.burn_in=1", "aligner.max_phrase=2",
              "aligner.vectors=null", "aligner.wordnet=false"),
    "stanford": ("aligner=stanford", "aligner.epochs=3", "aligner.vectors=null", "aligner.wordnet=false"),
    "sultan_tuned": ("aligner=sultan_tuned", "aligner.grid=[0.3,0.6]"),
    "bag_of_words": ("aligner=bag_of_words",),
}  # fmt: skip


class Killed(BaseException):
    """A kill, as the code that it ends sees it."""


class Killer:
    """Called before each writing; kills at the one of that number."""

    def __init__(self, at: int = 0) -> None:
        self.at, self.calls = at, 0

    def __call__(self) -> None:
        self.calls += 1
        if self.calls == self.at:
            raise Killed


def made(name: str):
    aligner = build(composed(*SYSTEMS[name])["aligner"])
    if missing := [one for one in resources_of(aligner) if not resources.available(one)]:
        pytest.skip(f"{name} needs {', '.join(missing)}")
    return aligner


def trained(name: str, folder: Path, killer: Killer):
    """Train as a phase whose every state is written; return state and report."""
    aligner, files = made(name), Files(folder, 0.0, killer)
    try:
        report = fit_phase(aligner, EXAMPLES, DEV, phase=Phase(files, "training"))
    finally:
        files.waiting = None
        files.close(keep=True)
    return aligner.state(), report


def alike(one, other) -> None:
    assert one.keys() == other.keys()
    for key, value in one.items():
        assert np.array_equal(value, other[key]) if isinstance(value, np.ndarray) else value == other[key], key


QUICK = ("crf", "phrase", "hmm", "bag_of_words")  # one of each kind; networks and searches take seconds


@pytest.mark.parametrize("name", variants(sorted(SYSTEMS, key=lambda name: name not in QUICK), len(QUICK)))
def test_a_training_killed_twice_or_more_ends_with_the_same_weights(name, tmp_path):
    aligner = made(name)
    report = fit_phase(aligner, EXAMPLES, DEV)
    expected, kills = aligner.state(), 0
    for at in (2, 25, 80):
        try:
            found, resumed = trained(name, tmp_path, Killer(at))
        except Killed:
            kills += 1
        else:
            break
    alike(found, expected)
    assert resumed == report
    assert kills or name == "bag_of_words"
    assert ("together" in found) == (name in ("crf", "mixed"))
    assert os.listdir(tmp_path) == ["training.safetensors"]
    alike(trained(name, tmp_path, Killer(1))[0], expected)  # a finished phase is not trained, and writes nothing


def test_every_trainable_aligner_is_tested():
    """Those that begin an interrupted phase anew are named here: they take seconds."""
    aligners = {name: build(composed(f"aligner={name}")["aligner"]) for name in {*options("aligner")} - {*SYSTEMS}}
    assert {name for name, aligner in aligners.items() if isinstance(aligner, Trainable)} == {
        "crf_remember",
        "manli_exact",
        "thot",
    }
    assert isinstance(aligners["manli_exact"], Resumable)  # a Manli of other settings
    assert not isinstance(aligners["thot"].forward, Resumable)
    assert not isinstance(build(composed("aligner=bag_of_words")["aligner"]), Resumable)


def test_a_phase_keeps_its_state_when_it_is_due_and_when_it_is_interrupted(tmp_path):
    files = Files(tmp_path, 3600.0)
    phase = Phase(files, "training").phase("forward")
    assert phase.kept() is None and phase.finished() is None and not phase.due()
    for k in range(3):
        phase.keep(lambda k=k: {"x": np.array([k])})
    assert os.listdir(tmp_path) == []
    files.close(keep=True)
    files = Files(tmp_path, 3600.0)
    phase = Phase(files, "training").phase("forward")
    assert phase.kept()["x"] == [2]
    phase.keep(lambda: {"x": np.array([7])})
    other = Phase(files, "training").phase("backward")
    other.keep(lambda: {"x": np.array([9])})  # the next phase: the last state of the one before is written
    assert phase.kept()["x"] == [7] and other.kept() is None
    report = TrainingReport({"forward": np.inf, "b": 0.1}, {"forward": 3}, False, notes=("so",))
    phase.finish({"weights": np.arange(3.0), "names": ["a", "\ud800\u2028"]}, report)
    state, found = phase.finished()
    assert found == report and state["names"] == ["a", "\ud800\u2028"] and phase.kept() is None
    files.close(keep=False)
    assert not tmp_path.exists()


def test_training_goes_on_if_its_checkpoint_cannot_be_written(tmp_path, caplog):
    """As on a full disk."""
    files = Files(tmp_path / "folder", 0.0)
    (tmp_path / "folder").rmdir()
    aligner = made("ibm1")
    assert fit_phase(aligner, EXAMPLES, phase=Phase(files, "training")).converged
    assert "the checkpoint cannot be written, and training goes on" in caplog.text
    files.close(keep=True)


@pytest.mark.slow
def test_a_folder_has_one_training_at_a_time(tmp_path):
    files = Files(tmp_path, 0.0)
    with pytest.raises(ConfigError, match="another process is training this run"):
        Files(tmp_path, 0.0)
    files.close(keep=True)
    Files(tmp_path, 0.0).close(keep=True)


def test_a_damaged_file_is_an_error_that_says_what_to_do(tmp_path):
    files = Files(tmp_path, 0.0)
    phase = Phase(files, "training")
    phase.keep(lambda: {"x": np.zeros(100)})
    path = tmp_path / "training.safetensors"
    path.write_bytes(path.read_bytes()[:-50])
    with pytest.raises(JacanaError, match=r"training.safetensors: cannot be read .* remove this file"):
        phase.kept()
    files.close(keep=True)
