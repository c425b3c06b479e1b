"""`data.augment` in training runs: what is made, of which pairs, and what the run keeps of it."""

from __future__ import annotations

import json
import logging
import random
from pathlib import Path

import numpy as np
import pytest
from composed import composed
from templates import corpus, layerless

from jacana_torch import corpora
from jacana_torch.cli import main
from jacana_torch.errors import ConfigError
from jacana_torch.model.persist import read_state
from jacana_torch.train import loop
from jacana_torch.train.augment.labelled import Labelled
from jacana_torch.train.checkpoint import Record
from jacana_torch.train.cross_validation import cross_validate
from jacana_torch.util.build import build

CHAINS = ["annotate=none", "features=[string,position,distortion]", "trainer.max_iterations=5", "logger=none"]
EDITS = ["+data/augment=standard", "data.augment.makers.substitution=null", "data.augment.makers.glosses=null"]


@pytest.fixture
def train(tmp_path, monkeypatch, capsys):
    """Train on a small corpus in this process: (exit code, the last line of stdout, stderr)."""
    corpora.write(layerless(corpus(30)), str(tmp_path / "words.jsonl"), "jsonl")
    monkeypatch.chdir(tmp_path)
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level

    def run(*overrides: str) -> tuple[int, str, str]:
        code = main(["train", "data.root=.", "data.train=[words.jsonl]", *CHAINS, *overrides])
        out, err = capsys.readouterr()
        return code, out.strip(), err

    yield run
    root.handlers[:], root.level = handlers, level


def weights(directory: str) -> np.ndarray:
    return np.asarray(read_state(Path(directory))["forward.weights"])


def test_made_pairs_train_and_are_named_in_the_signature(train):
    code, plain, _ = train("output=plain")
    assert code == 0
    code, one, err = train("output=one", *EDITS)
    assert code == 0 and "30 pairs, and made of them:" in err and "phrases" in err
    assert train("output=two", *EDITS)[0] == 0
    assert np.array_equal(weights(one), weights("two")) and not np.array_equal(weights(one), weights(plain))
    signature = json.loads(Path(one, "signature.json").read_text())
    assert signature["pairs"] == 30 and list(signature["made_pairs"]) == ["phrases"]
    assert json.loads(Path(plain, "signature.json").read_text())["made_pairs"] == {}


def test_the_pairs_of_a_fold_are_made_of_its_training_pairs_alone():
    examples, given = corpus(20), []

    def augment(seen):
        given.append([e.pair.id for e in seen])
        return list(seen)

    aligner = composed("aligner=bag_of_words")["aligner"]
    cross_validate(lambda: build(aligner), examples, 4, augment=augment)
    folds = [sorted(set(train.tolist())) for train, _ in loop.folds(20, 4, 1)]
    assert given == [[examples[i].pair.id for i in fold] for fold in folds]


def test_cross_validation_makes_pairs_in_each_fold(train):
    code, _, err = train("cv=3", "workers=1", *EDITS)
    assert code == 0 and err.count("20 pairs, and made of them:") == 3


@pytest.mark.slow
def test_labelled_pairs_are_read_and_their_teacher_has_seen_the_scored_ones(train, tmp_path):
    labelled = corpus(12, seed=5)
    corpora.write(layerless(labelled), str(tmp_path / "silver.jsonl"), "jsonl")
    (tmp_path / "ids.txt").write_text(f"{labelled[0].pair.id}\n")
    assert train("output=teacher")[0] == 0
    silver = [
        "+data/augment=silver",
        "~data.augment.makers.phrases",
        *EDITS[1:],
        "data.augment.makers.silver.share=0.3",
    ]
    silver += [f"data.augment.makers.silver.drop_ids=[{tmp_path / 'ids.txt'}]"]
    code, out, err = train("output=student", "data.augment.makers.silver.teacher=teacher", *silver)
    assert code == 0 and "30 pairs, and made of them: 9 silver" in err
    code, _, err = train("cv=2", "workers=1", "data.augment.makers.silver.teacher=teacher", *silver)
    assert code == 0 and "teacher was trained on 30 of the 30 scored pairs" in err


def test_labelled_pairs_are_those_that_are_not_dropped(tmp_path):
    pairs = corpus(12, seed=5)
    corpora.write(layerless(pairs), str(tmp_path / "silver.jsonl"), "jsonl")
    (tmp_path / "ids.txt").write_text(f"{pairs[0].pair.id}\n{pairs[5].pair.id}\n")
    maker = Labelled([str(tmp_path / "silver.jsonl")], drop_ids=[str(tmp_path / "ids.txt")])
    found = list(maker.make([], random.Random(1)))
    expected = [e for k, e in enumerate(pairs) if k not in (0, 5)]
    assert [(e.pair.id, e.gold) for e in found] == [(e.pair.id, e.gold) for e in expected]
    assert len({e.group for e in found}) == 10


def test_a_missing_file_of_labelled_pairs_says_how_to_go_on(train):
    code, out, err = train("+data/augment=silver", *EDITS[1:])
    assert (code, out) == (2, "") and "silver.jsonl: there is no such file" in err and "makers.silver=null" in err


def test_a_run_resumes_with_the_same_augmentation_alone(tmp_path):
    config = composed("data.train=[x.jsonl]", *EDITS)
    record = Record.of(config, tmp_path / "run", tmp_path / "model")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.json").write_text(json.dumps(record.held))
    Record.of({**config, "resume": str(tmp_path / "run")}, tmp_path / "new", tmp_path / "model")
    other = composed("data.train=[x.jsonl]", *EDITS, "data.augment.seed=2", f"resume={tmp_path / 'run'}")
    with pytest.raises(ConfigError, match="data.augment.seed is 2 and was 1"):
        Record.of(other, tmp_path / "new", tmp_path / "model")


def test_an_aligner_that_weighs_nothing_says_so(train):
    code, _, err = train("aligner=phrase", "features=[string]", *EDITS)
    assert code == 2 and "set the weights of data.augment.makers to 1" in err and "Traceback" not in err


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("data.augment.makers.phrases.weight=0", "weight"),
        ("+data.augment.makers.phrases.longst=3", "longst"),
        ("+data.augment.sed=3", "sed"),
        ("data.augment=yes", "data.augment"),
    ],
)
def test_wrong_settings_are_errors(train, override, message):
    code, out, err = train(*EDITS, override)
    assert (code, out) == (2, "") and message in err and "Traceback" not in err
