"""Processes that train together: the same optimum as one process, one message for an error, one writer."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from side_by_side import forked, started
from templates import corpus, layerless

from jacana_torch import corpora
from jacana_torch.aligners.bidirectional import Bidirectional
from jacana_torch.aligners.crf import Crf
from jacana_torch.errors import ConfigError, JacanaError
from jacana_torch.features.families.distortion import Distortion
from jacana_torch.features.families.position import Position
from jacana_torch.features.families.string import String
from jacana_torch.systems.unsupervised.unsupervised import Ibm1
from jacana_torch.train import together
from jacana_torch.util import ranks

EXAMPLES = corpus(30)


def crf(**settings) -> Crf:
    families = {family.name: family for family in (String(), Position(), Distortion())}
    return Crf(families, **{"tolerance": 1e-9, "l2": 0.5, **settings})


def trained(**settings) -> tuple[Crf, dict]:
    made = crf(**settings)
    report = made.fit(EXAMPLES)
    return made, {"loss": report.loss, "links": report.total_links, "names": made.names, "weights": made.weights}


@pytest.mark.parametrize("settings", [{}, {"prune": 0.05}])
def test_two_processes_find_the_optimum_of_one(settings, tmp_path):
    _, alone = trained(**settings)
    both = forked(lambda: trained(**settings)[1], tmp_path)
    for found in both:
        assert found["names"] == alone["names"] and found["links"] == alone["links"]
        assert found["loss"]["forward"] == pytest.approx(alone["loss"]["forward"], rel=1e-9)
        np.testing.assert_allclose(found["weights"], alone["weights"], atol=1e-4)
    assert np.array_equal(both[0]["weights"], both[1]["weights"])  # to the last bit: the same steps


def test_every_pair_has_one_process_and_loads_are_even(tmp_path):
    sizes = [int(x) for x in np.random.default_rng(1).integers(1, 900, 200)]
    shares = forked(lambda: ranks.share(sizes), tmp_path, world=3)
    assert sorted(sum(shares, [])) == list(range(200))
    loads = [sum(sizes[k] for k in share) for share in shares]
    assert max(loads) - min(loads) <= max(sizes)


def test_processes_that_read_different_pairs_are_an_error(tmp_path):
    found = forked(lambda: ranks.share([ranks.rank + 1, 2, 3]), tmp_path)
    assert all(isinstance(error, ConfigError) and "different pairs" in str(error) for error in found)


def test_fewer_pairs_than_processes_are_an_error(tmp_path):
    (error, _) = forked(lambda: ranks.share([5]), tmp_path)
    assert "1 training pairs cannot be split over 2 processes" in str(error)


def test_a_process_that_is_gone_ends_the_others(tmp_path):
    def work() -> None:
        if ranks.rank == 1:
            raise ConfigError("of one process alone")
        ranks.gathered(1)

    other, own = forked(work, tmp_path)
    assert str(own) == "of one process alone"
    assert isinstance(other, JacanaError) and "another process of this training has ended" in str(other)


def test_the_first_error_alone_is_reported(tmp_path):
    def work() -> bool:
        first = ranks.first_to_fail()
        ranks.gathered(first)  # the store is there until both have asked
        return first

    assert sorted(forked(work, tmp_path)) == [False, True]


def test_only_rank_0_has_a_checkpoint(tmp_path):
    class Kept:
        def kept(self):
            return {"step": np.arange(3)}

        def finished(self):
            return None

        def phase(self, name):
            return self

    def work() -> tuple:
        phase = together.Shared(Kept() if ranks.rank == 0 else together.UNKEPT).phase("part")
        kept = phase.kept()
        return kept["step"].tolist(), phase.finished()

    assert forked(work, tmp_path) == [([0, 1, 2], None)] * 2


def test_what_cannot_be_split_says_so():
    together.check(Bidirectional(crf(), crf(), "union"))
    for aligner in (Ibm1(), Bidirectional(Ibm1(), Ibm1(), "union")):
        with pytest.raises(ConfigError, match="train without torchrun"):
            together.check(aligner)


# Whole commands


@pytest.fixture
def data(tmp_path) -> str:
    corpora.write(layerless(corpus(40)), str(tmp_path / "train.jsonl"), "jsonl")
    return f"data.train=[{tmp_path / 'train.jsonl'}]"


FAST = ["annotate=none", "features=[string,position,distortion]"]


def losses(text: str) -> list[float]:
    return [float(line.split(": loss ")[1].split()[0]) for line in text.splitlines() if ": loss " in line]


def files(folder: Path) -> set[str]:
    return {path.name.split(".1")[0] for path in folder.rglob("*") if path.is_file()}


@pytest.mark.slow
def test_torchrun_trains_the_model_of_one_process(data, tmp_path):
    command = ["jacana_torch", "train", data, *FAST, "symmetrize=posterior", "data.dev=${data.train}"]
    found = {}
    for name, start in {
        "one": [sys.executable, "-m"],
        "two": [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "-m"],
    }.items():
        own = [*start, *command, f"hydra.run.dir={tmp_path / name}"]
        found[name] = subprocess.run(own, capture_output=True, text=True, check=True, cwd=tmp_path)
        assert found[name].stdout == f"{tmp_path / name / 'model'}\n"
    one, two = (losses(done.stderr) for done in found.values())
    assert len(one) == 12 and two == pytest.approx(one, rel=1e-6)  # two directions of the model and of five folds
    assert files(tmp_path / "one") == files(tmp_path / "two")
    assert {path.name for path in tmp_path.iterdir()} == {"train.jsonl", "one", "two"}


@pytest.mark.slow
@pytest.mark.parametrize("killed", [0, 1])
def test_a_killed_process_ends_all_and_resuming_finds_the_optimum(data, killed, tmp_path):
    run = tmp_path / "run"
    settings = ["train", data, *FAST, "logger.every=1", "trainer.tolerance=1e-9", f"hydra.run.dir={run}"]
    both = started([*settings, "trainer.checkpoint_seconds=0"], tmp_path)
    while "backward    3" not in (tmp_path / "err-0").read_text() and both[0].poll() is None:
        time.sleep(0.01)
    both[killed].kill()
    codes = [one.wait() for one in both]
    assert codes[1 - killed] == 2 and codes[killed] == -signal.SIGKILL
    if killed:
        assert (tmp_path / "err-0").read_text().count("another process of this training has ended") == 1
    assert (tmp_path / "err-1").read_text() == ""
    assert [one.wait() for one in started(["train", f"resume={run}"], tmp_path)] == [0, 0]
    assert (tmp_path / "err-1").read_text() == (tmp_path / "out-1").read_text() == ""
    resumed = losses((tmp_path / "err-0").read_text())
    alone = subprocess.run(
        [sys.executable, "-m", "jacana_torch", *settings[:-1], f"hydra.run.dir={tmp_path / 'alone'}"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert resumed[-1] == pytest.approx(losses(alone.stderr)[-1], rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["aligner=ibm1"], "cannot be trained by 2 processes"),
        (["data.rot=/nowhere"], "there is no setting data.rot"),
        (["data.train=[/nowhere]"], "cannot be read"),
        (["-m"], "torchrun trains one model"),
    ],
)
def test_an_error_is_reported_once_and_ends_all(data, settings, message, tmp_path):
    both = started(["train", data, *FAST, *settings, f"hydra.run.dir={tmp_path / 'run'}"], tmp_path)
    assert [one.wait() for one in both] == [2, 2]
    said = "".join((tmp_path / f"err-{rank}").read_text() for rank in range(2))
    assert said.count("jacana-torch: error: ") == 1 and message in said and "Traceback" not in said
