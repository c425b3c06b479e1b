"""The tagger's weights, from pickles that may build nothing else and from JSON."""

from __future__ import annotations

import json
import pickle
import sys
from pathlib import Path

import pytest

from jacana_torch import resources
from jacana_torch.errors import JacanaError
from jacana_torch.resources import tagger_files

pytestmark = pytest.mark.usefixtures("own_home")

MODEL = ({"bias": {"NN": 0.5, "VB": -1.0}, "i word cat": {"NN": 2.0}}, {"the": "DT"}, {"NN", "VB", "DT"})


def tagger_as_pickle(folder: Path, model=MODEL) -> Path:
    folder.mkdir()
    with open(folder / "averaged_perceptron_tagger.pickle", "wb") as out:
        pickle.dump(model, out, protocol=2)
    return folder


def tagger_as_json(folder: Path) -> Path:
    folder = folder / "averaged_perceptron_tagger_eng"
    folder.mkdir(parents=True)
    for part, value in zip(("weights", "tagdict", "classes"), MODEL, strict=True):
        file = folder / f"averaged_perceptron_tagger_eng.{part}.json"
        file.write_text(json.dumps(sorted(value) if isinstance(value, set) else value))
    return folder


def test_tagger_is_the_same_from_pickle_and_json(tmp_path):
    for folder in (tagger_as_pickle(tmp_path / "p"), tagger_as_json(tmp_path / "j")):
        found = tagger_files.load(folder)
        assert (found.weights, found.tagdict, found.classes) == (MODEL[0], MODEL[1], ("DT", "NN", "VB"))


class Evil:
    def __reduce__(self):
        return open, (sys.argv[0] + ".evil", "w")


@pytest.mark.parametrize("part", [Evil(), pickle.loads, Path("x"), frozenset({1})])
def test_tagger_pickles_can_build_nothing_but_sets(tmp_path, part):
    with pytest.raises(JacanaError, match="it refers to .*which a tagger does not need"):
        tagger_files.load(tagger_as_pickle(tmp_path / "p", (*MODEL[:2], part)))
    assert not Path(sys.argv[0] + ".evil").exists()


@pytest.mark.parametrize(
    "model", [({}, {}, set()), MODEL[:2], ({"f": {"XX": 1.0}}, {}, {"NN"}), ({"f": {}}, {"a": "XX"}, {"NN"}), 7]
)
def test_what_is_not_a_tagger(tmp_path, model):
    with pytest.raises(JacanaError, match="is not NLTK's averaged perceptron tagger.*resources install tagger"):
        tagger_files.load(tagger_as_pickle(tmp_path / "p", model))


def test_a_truncated_tagger(tmp_path):
    folder = tagger_as_pickle(tmp_path / "p")
    file = folder / "averaged_perceptron_tagger.pickle"
    file.write_bytes(file.read_bytes()[:60])
    with pytest.raises(JacanaError, match="is not NLTK's averaged perceptron tagger"):
        tagger_files.load(folder)


def test_real_tagger_tags_as_nltks_own():
    if not resources.available("tagger"):
        pytest.skip("the tagger is not installed: jacana-torch resources install tagger")
    from nltk.tag.perceptron import PerceptronTagger

    found = resources.tagger_weights()
    theirs = PerceptronTagger(load=False)
    theirs.model.weights, theirs.tagdict = found.weights, found.tagdict
    theirs.classes = theirs.model.classes = set(found.classes)
    tags = [tag for _, tag in theirs.tag("Two bakers quietly sold 40 loaves .".split())]
    assert tags == ["CD", "NNS", "RB", "VBD", "CD", "NNS", "."]
