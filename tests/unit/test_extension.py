"""To add something, touch one place: a module and a YAML in a folder are enough for the command line.

The folder adds a feature family, an aligner that learns and one that does not, a symmetrizer, an annotator and a
corpus format. JACANA_CONF names its configuration, JACANA_TRUST its package.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from templates import corpus, layerless

from jacana_torch import corpora
from jacana_torch.cli import main

ROOT = Path(__file__).parents[2]

FAMILY = '''
from dataclasses import dataclass
import numpy as np
from jacana_torch.features.api import Block, NodeBlocks
from jacana_torch.features.words import WordKey

LEMMA = WordKey(None, ("lemma",))

@dataclass(frozen=True)
class Vowels:
    """Whether two words have the same number of vowels; needs nothing but an annotator of its own."""
    weight: float = 1.0
    name: str = "vowels"
    requires: tuple[str, ...] = ("lemma",)

    def __call__(self, grid):
        words = grid.words(LEMMA)
        count = np.array([sum(c in "aeiou" for c in lemma) for (lemma,) in words.lexicon.words])
        same = (count[words.pairs.left] == count[words.pairs.right])[:, None] * self.weight
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
FAMILIAR = '''
from jacana_torch.types import Alignment

class SameWords:
    """Links equal words; there is nothing to learn."""
    requires = ()

    def align(self, pairs):
        return [Alignment(len(p.source), len(p.target), frozenset(
            (i, j) for i, a in enumerate(p.source.tokens) for j, b in enumerate(p.target.tokens) if a == b))
            for p in pairs]
'''
FORMAT = """
from functools import partial
from jacana_torch.corpora import Format, per_line
from jacana_torch.types import Alignment, Example, Sentence, SentencePair

def sniff(lines):
    return all(line.count(" / ") == 2 for line in lines)

def parse(line):
    source, target, links = line.split(" / ")
    pair = SentencePair(Sentence(source.split()), Sentence(target.split()))
    links = {tuple(map(int, link.split("+"))) for link in links.split()}
    return Example(pair, Alignment(len(pair.source), len(pair.target), links))

def write(examples):
    for e in examples:
        links = " ".join(f"{i}+{j}" for i, j in e.gold.links)
        yield f"{e.pair.source} / {e.pair.target} / {links}\\n"

FORMAT = Format(sniff, partial(per_line, parse=parse), write, suffixes=(".slashed",))
"""
CONF = {
    "features/vowels.yaml": "vowels:\n  _target_: my_extras.family.Vowels\n  weight: 2.0\n",
    "annotate/upper.yaml": "_target_: my_extras.annotator.Upper\n",
    "symmetrize/all_but_last.yaml": "_target_: my_extras.symmetrizer.all_but_last\n_partial_: true\n",
    "aligner/same_words.yaml": "# Links equal words.\n_target_: my_extras.familiar.SameWords\n",
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
    parts |= {"familiar": FAMILIAR, "slashed": FORMAT}
    for name, text in parts.items():
        (folder / "my_extras" / f"{name}.py").write_text(text)
    corpora.write(layerless(corpus(20)), str(folder / "corpus.jsonl"), "jsonl")
    return folder


def start(
    folder: Path,
    *arguments: str,
    stdin: str = "",
    trust: str = "my_extras",
    conf: str = "conf",
    package: Path = ROOT,
) -> tuple[int, str, str]:
    """Run a command in a fresh process: (exit code, stdout, stderr)."""
    environment = {**os.environ, "PYTHONPATH": f"{package}{os.pathsep}{folder}", "OMP_NUM_THREADS": "1"}
    environment |= {"JACANA_TRUST": trust, "JACANA_CONF": conf, "COLUMNS": "200"}
    command = [sys.executable, "-m", "jacana_torch", *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=folder, env=environment, timeout=120, input=stdin
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stdout, done.stderr


TRAIN = ("train", "--config-dir", "conf", "data.root=.", "data.train=[corpus.jsonl]", "logger=none")


LINE = "the old boat\tthe ancient boat\n"


@pytest.fixture(scope="module")
def mine(folder) -> Path:
    """A model with a family, an annotator and a symmetrizer of the folder."""
    code, out, err = start(folder, *TRAIN, "experiment=mine", "trainer.max_iterations=20", "output=mine", conf="")
    assert (code, out) == (0, "mine\n"), err
    assert "all_but_last" in err
    return folder / "mine"


def test_a_model_names_its_parts_and_is_refused_without_trust(folder, mine):
    config = json.loads((mine / "config.json").read_text())["model"]
    assert config["aligner"]["forward"]["families"]["vowels"] == {
        "_target_": "my_extras.family.Vowels",
        "weight": 2.0,
    }
    code, out, err = start(folder, "align", "--model", "mine", stdin=LINE, trust="")
    assert (code, out) == (2, "") and "JACANA_TRUST=my_extras" in err


def test_a_model_of_them_aligns(folder, mine):
    (own, every) = (
        start(folder, "align", "--model", "mine", *more, stdin=LINE, conf="")[1].split()
        for more in ([], ["--symmetrize", "union"])
    )
    assert every and own == every[:-1]


@pytest.mark.slow
def test_training_reads_the_variable_as_it_reads_the_option(folder):
    training = ("train", *TRAIN[3:], "experiment=mine", "trainer.max_iterations=2", "output=again")
    assert start(folder, *training)[:2] == (0, "again\n")
    code, out, err = start(folder, "train", "annotate=none", "aligner=dictionry")
    assert (code, out) == (2, "") and "dictionary" in err and "same_words" in err


def test_a_symmetrizer_by_name(folder, mine):
    """Also for a model that was trained with another."""
    every = start(folder, "align", "--model", "mine", "--symmetrize", "union", stdin=LINE)[1].split()
    assert (
        start(folder, "align", "--model", "mine", "--symmetrize", "all-but-last", stdin=LINE)[1].split()
        == (every[:-1])
    )
    code, out, err = start(folder, "align", "--model", "mine", "--symmetrize", "all-but-lost", stdin=LINE)
    assert (code, out) == (2, "") and "all-but-last" in err
    assert "all-but-last" in start(folder, "align", "--help")[1]
    words = ("explain", "a boat", "a boat", "--model", "mine", "--json")
    explained = json.loads(start(folder, *words, "--symmetrize", "all_but_last")[1])
    assert explained["symmetrizer"] == "all-but-last"


@pytest.mark.slow
def test_symmetrizers_of_the_folder_are_compared(folder):
    systems = ("aligners=[crf]", "features=[string]", "trainer.max_iterations=2", "symmetrizers=all", "rounds=10")
    code, out, err = start(folder, "compare", *TRAIN[3:-1], "annotate=none", *systems)
    assert code == 0 and "all-but-last" in out and "grow-diag" in out, err


def test_an_aligner_that_learns(folder):
    assert start(folder, *TRAIN, "aligner=dictionary", "annotate=none", "output=words")[:2] == (0, "words\n")
    links = start(folder, "align", "--model", "words", stdin="the old bridge\tthe ancient bridge\n")[1].split()
    assert {"0-0", "2-2"} <= set(links)


def test_an_aligner_that_needs_no_training(folder):
    assert start(folder, "align", "--model", "same_words", stdin=LINE)[:2] == (0, "0-0 2-2\n")
    listed = start(folder, "models")[1]
    assert "same_words\n  Links equal words.\n" in listed
    code, out, err = start(folder, "align", "--model", "same_words", stdin=LINE, trust="")
    assert (code, out) == (2, "") and "JACANA_TRUST=my_extras" in err


def test_a_format_by_the_name_of_its_module(folder):
    mine = "my_extras.slashed"
    line = "the old boat / the ancient boat / 0+0 2+2\n"
    assert start(folder, "align", "--model", "same_words", "--to", mine, stdin=LINE)[:2] == (0, line)
    code, out, _ = start(folder, "convert", "-", "-", "--from", mine, "--to", "pharaoh", stdin=line)
    assert (code, out) == (0, "the old boat\tthe ancient boat\t0-0 2-2\n")
    for name, trust, says in (
        (mine, "", "JACANA_TRUST=my_extras"),
        ("my_extras.family", "my_extras", "has no Format called FORMAT"),
        ("my_extras.absent", "my_extras", "there is no corpus format 'my_extras.absent'"),
    ):
        code, out, err = start(folder, "convert", "-", "-", "--from", mine, "--to", name, stdin=line, trust=trust)
        assert (code, out) == (2, "") and says in err


def test_a_format_in_the_package_is_one_file(folder, tmp_path):
    shutil.copytree(ROOT / "jacana_torch", tmp_path / "jacana_torch", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "conf", tmp_path / "conf")
    (tmp_path / "jacana_torch" / "corpora" / "slashed.py").write_text(FORMAT)
    line = "the old boat / the ancient boat / 0+0 2+2\n"
    own = {"package": tmp_path}
    assert "slashed" in start(folder, "align", "--help", **own)[1]
    code, out, err = start(folder, "convert", "-", "-", "--from", "giza", "--to", "talp", stdin=line, **own)
    assert (code, out) == (2, "") and "slashed" in err
    output = tmp_path / "out.slashed"
    assert start(folder, "align", "--model", "same_words", "--output", str(output), stdin=LINE, **own)[0] == 0
    assert output.read_text() == line
    code, out, err = start(folder, "convert", "-", "-", "--to", "talp", stdin=line, **own)
    assert (code, out) == (0, "the old boat\tthe ancient boat\t0-0 2-2\n"), "recognised by its first line"


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


def test_an_aligner_of_the_folder_is_cross_validated(here):
    assert main([*TRAIN, "aligner=dictionary", "annotate=none", "cv=2", "workers=1"]) == 0


def test_a_drop_knows_the_families_of_the_folder(here, capsys):
    assert main([*TRAIN, "annotate=none", "features=[string]", "drop=[vowel]"]) == 2
    assert "vowels" in capsys.readouterr().err
    assert main([*TRAIN, "annotate=none", "features=[string]", "drop=[vowels]", "trainer.max_iterations=3"]) == 0
