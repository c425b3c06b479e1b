"""A setting that nothing reads is an error that names the nearest one, wherever it is written."""

from __future__ import annotations

from pathlib import Path

import pytest
from templates import corpus, layerless
from variants import variants

from jacana_torch import corpora
from jacana_torch.cli import main

SMALL = ["annotate=none", "features=[string]", "logger=none", "trainer.max_iterations=2", "symmetrize=union"]


@pytest.fixture
def call(tmp_path, monkeypatch, capsys):
    """Run a command on a tiny corpus: (exit code, stdout, stderr)."""
    corpora.write(layerless(corpus(6)), str(tmp_path / "words.jsonl"), "jsonl")
    monkeypatch.chdir(tmp_path)

    def run(*overrides: str, command: str = "train") -> tuple[int, str, str]:
        own = SMALL if command == "train" else SMALL[1:]
        given = [command, "data.root=.", "data.train=[words.jsonl]", *own, *overrides]
        return main(given), *capsys.readouterr()

    return run


@pytest.mark.parametrize(
    ("override", "name", "nearest"),
    variants(
        [
            ("+trainer.l3=1", "trainer.l3", "trainer.l2"),
            ("++trainer.tolerence=1", "trainer.tolerence", "trainer.tolerance"),
            ("trainer.l3=1", "trainer.l3", "trainer.l2"),
            ("+data.limt=3", "data.limt", "data.limit"),
            ("+logger.evry=3", "logger.evry", "logger.every"),
            ("+ouput=there", "ouput", "output"),
            ("ouput=there", "ouput", "output"),
            ("+l2=3", "l2", "trainer.l2"),
            ("+experiments=core", "experiments", "experiment"),
            ("+annotate.lemmas=lower", "annotate.lemmas", ""),  # no feature reads a layer, so no annotator is made
            ("+symmetrize.forwrd=3", "symmetrize.forwrd", "symmetrize.forward"),
            ("+features.strin=null", "features.strin", "features.string"),
            ("+features.string.treshold=0.5", "features.string.treshold", "features.string.threshold"),
            ("+aligner.forward.polcy=first", "aligner.forward.polcy", "aligner.forward.policy"),
            ("+hydra.job.nam=me", "hydra.job.nam", "hydra.job.name"),
            ("+aligners=[crf]", "aligners", "aligner"),  # of `compare`
        ],
        always=6,
    ),
)
def test_the_nearest_name_is_given(call, override, name, nearest):
    code, out, err = call(override)
    assert (code, out) == (2, "") and name in err and "Traceback" not in err
    assert f"did you mean {nearest}" in err and "pairs to train on" not in err
    assert not Path("runs/files").exists() or not list(Path("runs/files").glob("*/model"))


def test_a_name_like_no_other_comes_with_all_there_are(call):
    code, _, err = call("+foo=1")
    assert code == 2 and "foo=1: nothing reads this setting" in err and "output" in err and "seed" in err
    assert "the nearest name is " in err


@pytest.mark.parametrize("group", ["trainer", "data", "experiment"])
def test_files_of_ones_own_are_checked_too(call, tmp_path, group):
    folder = tmp_path / "own" / group
    folder.mkdir(parents=True)
    text = {
        "trainer": "defaults: [lbfgs]\nl3: 1\n",
        "data": "defaults: [files]\nlimt: 1\n",
        "experiment": "# @package _global_\ntrainer: {l3: 1}\n",
    }[group]
    (folder / "mine.yaml").write_text(text)
    code, _, err = call(f"{group}=mine", "--config-dir", str(tmp_path / "own"))
    assert code == 2 and ("trainer.l2" in err or "data.limit" in err) and "did you mean" in err


def test_what_another_setting_refers_to_is_read(call):
    assert (
        call("+width=3", "+trainer.mine=4", "description=w${width}", "trainer.batch_cells=${trainer.mine}")[0] == 0
    )
    assert call("+trainer.mine=4", "+trainer.other=4", "trainer.batch_cells=${.mine}")[0] == 2


def test_each_job_of_a_sweep_is_checked(call):
    code, out, err = call("-m", "+trainer.l3=1,2")
    assert (code, out) == (2, "") and err.count("did you mean trainer.l2?") >= 2


def test_a_comparison_is_checked_with_the_settings_of_its_systems(call):
    for override in ("+foo=1", "+trainer.l3=1", "aligners=['crf +trainer.l3=1']", "+aligner.forward.polcy=first"):
        given = [override] if override.startswith("aligners") else ["aligners=[bag_of_words]", override]
        code, out, err = call(*given, command="compare")
        assert (code, out) == (2, "") and "nothing reads this setting" in err, override


def test_a_setting_of_another_aligner_is_said(call):
    code, _, err = call("aligner=ibm1", "trainer.l2=3")
    assert code == 0 and "does not read" in err and "trainer.l2" in err
