"""Aligners that need no training are models by the names of their YAML; others say that they must be trained."""

from __future__ import annotations

import pytest
from composed import composed, options
from templates import corpus

import jacana_torch
from jacana_torch import resources
from jacana_torch.aligners.base import Trainable, TrainingOptional
from jacana_torch.errors import ConfigError, ModelError
from jacana_torch.model import persist
from jacana_torch.model import untrained as systems
from jacana_torch.types import resources_of

PAIRS = [e.pair for e in corpus(5)]
NAMES = systems.names()


def test_names_lists_the_aligners_that_need_no_training():
    for name in options("aligner"):
        try:
            made = persist.build(composed(f"aligner={name}")["aligner"])
        except ConfigError:  # it lacks a package
            continue
        learns = made.needs_training if isinstance(made, TrainingOptional) else isinstance(made, Trainable)
        assert (name in NAMES) == (not learns), name
    assert "sultan" in NAMES and not {"crf", "hmm", "standard"} & {*NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_load_builds_the_aligner_that_training_would_build(name):
    config = systems.model_config(name)
    assert config["aligner"] == composed(f"aligner={name}")["aligner"]
    model = jacana_torch.load(name)
    assert set(model.requires) <= set(model.annotate.provides if model.annotate else ())
    missing = [data for data in resources_of(model.aligner) if not resources.available(data)]
    if missing:
        pytest.skip(f"{name} needs {', '.join(missing)}")
    assert model.align(PAIRS) == persist.build(config["aligner"]).align(PAIRS)


@pytest.mark.parametrize("name", NAMES)
def test_models_lists_it_with_its_resources(name, cli):
    code, out, err = cli("models")
    assert code == 0
    (about,) = [
        part for part in out.split("nothing to train)\n") if f"{name}\n  {systems.description(name)}" in part
    ]
    for data in persist.load(name).resources:
        assert data in about


def test_the_least_annotator_is_chosen():
    assert systems._annotator(()) is None
    assert systems._annotator(("pos",))["_target_"].endswith("NltkAnnotator")
    parsing = systems._annotator(("deprel", "head"))
    assert parsing["_target_"].endswith("SpacyAnnotator") and sorted(parsing["layers"]) == ["deprel", "head"]
    assert systems._annotator(("smell",)) is None


def test_another_annotator_does_not_change_the_choice(tmp_path, monkeypatch):
    (tmp_path / "annotate").mkdir()
    text = "_target_: jacana_torch.annotate.nltk.NltkAnnotator\nlemmas: false\n"  # fills fewer layers
    (tmp_path / "annotate" / "fewer.yaml").write_text(text)
    monkeypatch.setenv("JACANA_CONF", str(tmp_path))
    systems._annotators.cache_clear()
    chosen = systems._annotator(("pos",))
    systems._annotators.cache_clear()
    assert chosen["_target_"].endswith("NltkAnnotator") and chosen.get("lemmas") is not False


@pytest.mark.parametrize("name", ["crf", "hmm"])
def test_an_aligner_that_has_to_be_trained_is_an_error_that_says_how(name, cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = cli("align", "--model", name, stdin="a b\tb a\n")
    assert (code, out) == (2, "") and f"jacana-torch train aligner={name}" in err
    with pytest.raises(ModelError, match="sultan"):
        jacana_torch.load("nothing-of-this-name")
    with pytest.raises(ModelError, match="there is no model"):
        jacana_torch.load("../aligner/crf")


def test_a_directory_comes_before_an_aligner_of_the_same_name(model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sultan").symlink_to(model)
    assert type(persist.load("sultan").aligner) is type(persist.load(model).aligner)


def test_the_best_model_is_a_trained_one():
    assert not {persist.best_available(), *persist.names()} & {*NAMES}


def test_the_error_for_unreadable_yaml_names_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr("jacana_torch.util.conf.conf_directory", lambda: tmp_path)
    (tmp_path / "aligner").mkdir()
    (tmp_path / "aligner" / "bad.yaml").write_text("a: [")
    (tmp_path / "aligner" / "foreign.yaml").write_text("_target_: os.system\n")
    with pytest.raises(ConfigError, match="bad.yaml"):
        systems.model_config("bad")
    with pytest.raises(ConfigError, match="JACANA_TRUST"):
        systems.model_config("foreign")
    assert systems.names() == []
