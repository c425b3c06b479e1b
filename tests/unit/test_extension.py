"""To add something, touch one place: a module and a YAML in some folder are enough, and trained with.

A feature family, an aligner, a symmetrizer and an annotator that this package knows nothing of.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest
from templates import corpus, layerless

import jacana_torch
from jacana_torch import corpora
from jacana_torch.cli import main

ROOT = Path(__file__).parents[2]

FAMILY = '''
from dataclasses import dataclass
import numpy as np
from jacana_torch.features.api import Block, NodeBlocks

@dataclass(frozen=True)
class Vowels:
    """Whether two words have the same number of vowels; needs nothing but an annotator of its own."""
    weight: float = 1.0
    name: str = "vowels"
    requires: tuple[str, ...] = ("lemma",)

    def __call__(self, grid):
        words = grid.words("token", "lemma")
        count = np.array([sum(c in "aeiou" for c in lemma) for _, lemma in words.values])
        same = (count[words.left] == count[words.right])[:, None] * self.weight
        return NodeBlocks((Block(("same",), same, words.cell),))
'''
ANNOTATOR = """
from dataclasses import replace

class Upper:
    requires, provides = (), ("lemma",)

    def __call__(self, pairs):
        def filled(sentence):
            return sentence.with_layers(lemma=[token.upper().lower() for token in sentence.tokens])
        return [replace(p, source=filled(p.source), target=filled(p.target)) for p in pairs]
"""
SYMMETRIZER = """
from jacana_torch.types import Alignment

def all_but_last(forward, backward):
    links = sorted(forward.sure | backward.sure)[:-1]
    return Alignment(forward.n_source, forward.n_target, frozenset(links))
"""
ALIGNER = '''
from collections import Counter
import numpy as np
from jacana_torch.aligners.base import TrainingReport
from jacana_torch.types import Alignment

class Dictionary:
    """Links words that were linked in training at least `least` times."""
    requires = ()

    def __init__(self, least: int = 1):
        self.least, self.known = least, []

    def fit(self, examples, dev=(), watch=None):
        seen = Counter(
            (e.pair.source.tokens[i], e.pair.target.tokens[j]) for e in examples for i, j in e.gold.links)
        self.known = sorted(" ".join(pair) for pair, n in seen.items() if n >= self.least)
        return TrainingReport(total_links=seen.total())

    def align(self, pairs):
        known = set(self.known)
        return [Alignment(len(p.source), len(p.target), frozenset(
            (i, j) for i, a in enumerate(p.source.tokens) for j, b in enumerate(p.target.tokens)
            if f"{a} {b}" in known)) for p in pairs]

    def state(self):
        return {"known": self.known, "least": np.array([self.least])}

    def restore(self, state):
        self.known, self.least = list(state["known"]), int(state["least"][0])
'''
CONF = {
    "features/vowels.yaml": "vowels:\n  _target_: my_extras.family.Vowels\n  weight: 2.0\n",
    "annotate/upper.yaml": "_target_: my_extras.annotator.Upper\n",
    "symmetrize/all_but_last.yaml": "_target_: my_extras.symmetrizer.all_but_last\n_partial_: true\n",
    "aligner/dictionary.yaml": "_target_: my_extras.aligner.Dictionary\nleast: 1\n",
    "experiment/mine.yaml": "# @package _global_\ndefaults:\n  - override /annotate: upper\n"
    "  - override /symmetrize: all_but_last\n  - override /features: [string, vowels]\nname: mine\n",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("extension")
    for name, text in CONF.items():
        path = folder / "conf" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (folder / "my_extras").mkdir()
    (folder / "my_extras" / "__init__.py").write_text("")
    parts = {"family": FAMILY, "annotator": ANNOTATOR, "symmetrizer": SYMMETRIZER, "aligner": ALIGNER}
    for name, text in parts.items():
        (folder / "my_extras" / f"{name}.py").write_text(text)
    corpora.write(layerless(corpus(20)), str(folder / "corpus.jsonl"), "jsonl")
    return folder


def start(folder: Path, *arguments: str, trust: str | None = "my_extras", **more) -> subprocess.CompletedProcess:
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{folder}", "OMP_NUM_THREADS": "1"}
    environment.pop("JACANA_TRUST", None)
    if trust:
        environment["JACANA_TRUST"] = trust
    command = [sys.executable, "-m", "jacana_torch", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment, timeout=60, **more)


TRAIN = ("train", "--config-dir", "conf", "data.root=.", "data.train=[corpus.jsonl]", "logger=none")


@pytest.fixture(scope="module")
def mine(folder) -> Path:
    """A model of a family, an annotator and a symmetrizer of one's own, trained in a fresh process."""
    done = start(folder, *TRAIN, "experiment=mine", "trainer.max_iterations=20", "output=mine")
    assert (done.returncode, done.stdout) == (0, "mine\n"), done.stderr
    assert "all_but_last" in done.stderr
    return folder / "mine"


def test_a_model_names_what_it_is_made_of_and_is_refused_without_trust(folder, mine):
    config = json.loads((mine / "config.json").read_text())["model"]
    assert config["aligner"]["forward"]["families"]["vowels"] == {
        "_target_": "my_extras.family.Vowels",
        "weight": 2.0,
    }
    line = "the old boat\tthe ancient boat\n"
    refused = start(folder, "align", "--model", "mine", trust=None, input=line)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "JACANA_TRUST=my_extras" in refused.stderr and "Traceback" not in refused.stderr


@pytest.fixture
def here(folder, monkeypatch):
    """The same in this process."""
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("JACANA_TRUST", "my_extras")
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = handlers, level


def test_a_model_made_of_them_aligns(mine, here):
    model = jacana_torch.load(mine)
    pair = ("the old boat", "the ancient boat")
    (every,), (own,) = model.align([pair], symmetrize="union"), model.align([pair])
    assert every.links and own.links == every.links[:-1]


def test_an_aligner_of_ones_own(here, capsys):
    assert main([*TRAIN, "aligner=dictionary", "annotate=none", "output=words"]) == 0
    assert capsys.readouterr().out == "words\n"
    (found,) = jacana_torch.load("words").align([("the old bridge", "the ancient bridge")])
    assert {(0, 0), (2, 2)} <= found.sure
    assert main([*TRAIN, "aligner=dictionary", "annotate=none", "cv=2"]) == 0


def test_a_drop_knows_the_families_of_the_folder(here, capsys):
    assert main([*TRAIN, "annotate=none", "features=[string]", "drop=[vowel]"]) == 2
    assert "vowels" in capsys.readouterr().err
    assert main([*TRAIN, "annotate=none", "features=[string]", "drop=[vowels]", "trainer.max_iterations=3"]) == 0
