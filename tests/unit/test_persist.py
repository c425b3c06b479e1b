"""Model directories: saving, loading, damage, trust, and the shipped models."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from templates import corpus

from jacana_torch import resources
from jacana_torch.errors import ConfigError, JacanaError, MissingResource, ModelError
from jacana_torch.model import persist
from jacana_torch.model.model import Model

CRF = {"_target_": "jacana_torch.aligners.crf.Crf", "max_iterations": 30}
FAMILIES = {
    name: {"_target_": f"jacana_torch.features.families.{name}.{name.title()}"}
    for name in ("string", "pos", "distortion")
}


def config_of(**aligner) -> dict:
    direction = {**CRF, "families": FAMILIES, **aligner}
    both = {"_target_": "jacana_torch.aligners.bidirectional.Bidirectional"}
    both |= {"forward": direction, "backward": direction, "symmetrize": "grow-diag"}
    return {
        "description": "from templates",
        "model": {"_target_": "jacana_torch.model.model.Model", "aligner": both},
    }


@pytest.fixture(scope="module")
def model() -> Model:
    made = persist.build(config_of()["model"])
    made.aligner.fit(corpus(30))
    return made


@pytest.fixture(scope="module")
def saved(model, tmp_path_factory) -> Path:
    return persist.save(model, tmp_path_factory.mktemp("models") / "made", config_of(), {"pairs": 30})


@pytest.fixture
def directory(saved, tmp_path) -> Path:
    """A copy that a test may damage."""
    return Path(shutil.copytree(saved, tmp_path / "model"))


def full(alignments) -> list:
    return [(a, dict(a.confidence), a.score) for a in alignments]


def test_a_loaded_model_aligns_exactly_as_the_saved_one(model, saved):
    pairs = [e.pair for e in corpus(20, seed=5)]
    loaded = persist.load(saved)
    assert full(loaded.align(pairs)) == full(model.align(pairs))
    assert full(persist.load(str(saved)).align(pairs, symmetrize="union")) == full(model.align(pairs, "union"))
    for part in ("forward", "backward"):
        before, after = getattr(model.aligner, part), getattr(loaded.aligner, part)
        assert before.names == after.names and np.array_equal(before.weights, after.weights)
        assert after.weights.dtype == np.float64


def test_saving_again_writes_the_same_weights(saved, tmp_path):
    again = persist.save(persist.load(saved), tmp_path / "again", config_of(), {"pairs": 30})
    for name in ("config.json", "weights.safetensors", "signature.json"):
        assert (again / name).read_bytes() == (saved / name).read_bytes()
    weights = (saved / "weights.safetensors").read_bytes()
    for _ in range(6):
        persist._write_state(tmp_path / "weights", persist.load(saved).aligner.state())
        assert (tmp_path / "weights").read_bytes() == weights


def test_a_model_is_three_small_files(saved):
    assert sorted(path.name for path in saved.iterdir()) == [
        "config.json",
        "signature.json",
        "weights.safetensors",
    ]
    weights = (saved / "weights.safetensors").stat().st_size
    columns = sum(len(getattr(persist.load(saved).aligner, part).names) for part in ("forward", "backward"))
    assert weights < 60 * columns  # eight bytes, and a name
    assert json.loads((saved / "signature.json").read_text())["pairs"] == 30
    assert all(path.stat().st_mode & 0o044 == 0o044 for path in saved.iterdir())


def test_the_device_is_chosen_when_loading(directory):
    config = json.loads((directory / "config.json").read_text())
    config["model"]["aligner"]["forward"]["device"] = config["model"]["aligner"]["backward"]["device"] = "cuda:7"
    (directory / "config.json").write_text(json.dumps(config))
    assert persist.load(directory).aligner.forward.device == "cpu"
    with pytest.raises(ModelError, match="abacus"):
        persist.load(directory, device="abacus")


# Damage


def test_weights_cut_anywhere_are_a_model_error(directory):
    path = directory / "weights.safetensors"
    whole = path.read_bytes()
    for size in (0, 1, 7, 8, 9, 100, len(whole) // 2, len(whole) - 8, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(ModelError, match=r"weights\.safetensors"):
            persist.load(directory)


@given(st.data())
def test_flipped_bytes_never_give_a_traceback(saved, tmp_path_factory, data):
    directory = tmp_path_factory.mktemp("flipped") / "model"
    shutil.copytree(saved, directory)
    name = data.draw(st.sampled_from(["weights.safetensors", "config.json", "signature.json"]))
    content = bytearray((directory / name).read_bytes())
    # the head of the file is where its structure is
    where = data.draw(st.integers(0, min(len(content), 3000) - 1))
    content[where] = data.draw(st.integers(0, 255))
    (directory / name).write_bytes(bytes(content))
    try:
        persist.load(directory)
    except JacanaError as error:
        assert str(directory) in str(error)


@pytest.mark.parametrize("name", ["config.json", "weights.safetensors"])
def test_a_missing_file_is_named(directory, name):
    (directory / name).unlink()
    with pytest.raises(ModelError, match=name):
        persist.load(directory)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"format": 1}', '{"format": 1, "model": 5}', "\xff", "[" * 10**5]
)
def test_a_config_that_is_not_one_is_an_error(directory, text):
    (directory / "config.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(ModelError, match=r"config\.json"):
        persist.load(directory)


@pytest.mark.parametrize("version", [0, 2, None, "1"])
def test_the_error_for_another_format_names_both(directory, version):
    change(directory, lambda config: config.update(format=version))
    with pytest.raises(ModelError, match="reads format 1"):
        persist.load(directory)


def test_no_such_model():
    with pytest.raises(ModelError, match="no-such-model"):
        persist.load("no-such-model")
    with pytest.raises(ModelError, match="pyproject"):
        persist.load(Path(__file__).parents[2] / "pyproject.toml")


def change(directory: Path, how) -> None:
    config = json.loads((directory / "config.json").read_text())
    how(config)
    (directory / "config.json").write_text(json.dumps(config))


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("os.system", "JACANA_TRUST=os"),
        ("subprocess.Popen", "JACANA_TRUST=subprocess"),
        ("builtins.eval", "JACANA_TRUST=builtins"),
        ("jacana_torch_evil.Thing", "JACANA_TRUST=jacana_torch_evil"),
        ("jacana_torch.model.persist.os.system", "cannot be imported"),
        ("jacana_torch.model.persist.json", "not a type"),
        ("jacana_torch.model.persist.save", "not a type"),
        ("jacana_torch.model.persist.Model", "not a type of jacana_torch.model.persist"),
        ("jacana_torch.nowhere.Thing", "cannot be imported"),
        ("jacana_torch.types.Sentence", "Sentence"),
        ("jacana_torch", "JACANA_TRUST"),
        ("", "JACANA_TRUST"),
        (None, "JACANA_TRUST"),
        (["os.system"], "JACANA_TRUST"),
    ],
)
def test_only_our_own_classes_are_built(directory, target, says):
    change(directory, lambda config: config["model"].update(_target_=target))
    with pytest.raises(ModelError, match=says) as caught:
        persist.load(directory)
    assert str(directory) in str(caught.value)
    change(directory, lambda config: config.update(model={"_target_": target, "_partial_": True}))
    with pytest.raises(ModelError):
        persist.load(directory)


def test_arguments_that_do_not_fit_are_config_errors(directory):
    with pytest.raises(ConfigError, match="colour"):
        persist.build({**CRF, "families": FAMILIES, "colour": "red"})
    for wrong in ({"l2": "strong"}, {"max_iterations": 1.5}, {"device": 3}, {"families": 7}, {"l2": None}):
        with pytest.raises(ConfigError, match="Crf"):
            persist.build({**CRF, "families": FAMILIES, **wrong})
    change(directory, lambda config: config["model"]["aligner"].update(forward=5))
    with pytest.raises(ModelError, match="forward"):
        persist.load(directory)


@pytest.mark.parametrize(
    "state",
    [
        {},
        {"forward.names": ["a"], "forward.weights": np.zeros(2)},
        {"forward.names": ["a"], "forward.weights": np.zeros(1)},
        {"forward.names": ["a", "a"], "forward.weights": np.zeros(2), "backward.names": [],
         "backward.weights": np.zeros(0)},
        {"forward.names": ["a"], "forward.weights": np.array([np.nan]), "backward.names": [],
         "backward.weights": np.zeros(0)},
    ],
    ids=["nothing", "sizes differ", "one direction", "a name twice", "not finite"],
)  # fmt: skip
def test_weights_that_do_not_fit_the_config(directory, state):
    state = {key: value if isinstance(value, (np.ndarray, list)) else [value] for key, value in state.items()}
    persist._write_state(directory / "weights.safetensors", state)
    with pytest.raises(ModelError):
        persist.load(directory)


# Writing


def test_a_failed_write_leaves_the_old_model(model, directory):
    before = {path.name: path.read_bytes() for path in directory.iterdir()}
    with pytest.raises(TypeError):
        persist.save(model, directory, config_of(), {"when": object()})
    with pytest.raises(ValueError, match="JSON"):
        persist.save(model, directory, config_of(), {"loss": float("nan")})
    assert {path.name: path.read_bytes() for path in directory.iterdir()} == before
    assert os.listdir(directory.parent) == ["model"]


def test_nothing_but_a_model_is_ever_replaced(model, tmp_path):
    (tmp_path / "papers").mkdir()
    (tmp_path / "papers" / "draft.tex").write_text("x")
    (tmp_path / "file").write_text("x")
    for name in ("papers", "file"):
        with pytest.raises(ModelError, match=name):
            persist.save(model, tmp_path / name, config_of(), {})
    (tmp_path / "empty").mkdir()
    persist.save(model, tmp_path / "empty", config_of(), {})
    persist.save(model, tmp_path / "deep" / "er" / "model", config_of(), {})
    assert sorted(os.listdir(tmp_path)) == ["deep", "empty", "file", "papers"]


def test_a_writer_that_is_killed_leaves_no_half_model(saved, tmp_path):
    """A process saves again and again until it is killed; at every moment, what is there loads."""
    target = tmp_path / "model"
    code = f"""
from jacana_torch.model import persist
model = persist.load({str(saved)!r})
print("ready", flush=True)
while True:
    persist.save(model, {str(target)!r}, {config_of()!r}, {{}})
"""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=environment)
    process.stdout.readline()
    reference = full(persist.load(saved).align([e.pair for e in corpus(3)]))
    seen = 0
    for _ in range(40):  # a reader beside the writer
        if target.is_dir():
            try:
                loaded = persist.load(target)
            except ModelError as error:  # between two renames there is no model, never half of one
                gone = ("no model", "missing", "No such file", "it is not a file")
                assert any(words in str(error) for words in gone)
            else:
                seen += 1
                assert full(loaded.align([e.pair for e in corpus(3)])) == reference
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    if target.is_dir():
        persist.load(target)
    assert seen


# Shipped models


@pytest.fixture
def shipped(model, tmp_path, monkeypatch):
    """Three models; two need resources that are not there."""
    folder = tmp_path / "shipped"
    for name, needs in (("core", []), ("plus", ["wordnet"]), ("full", ["wordnet", "glove-6b"])):
        persist.save(model, folder / name, {**config_of(), "resources": needs}, {"pairs": 30})
    monkeypatch.setattr(persist, "SHIPPED", folder)
    here: set[str] = set()
    monkeypatch.setattr(resources, "available", lambda name: name in here)
    return here


def _loadable() -> list[str]:
    return [info.name for info in persist.shipped() if all(map(resources.available, info.resources))]


@pytest.mark.parametrize("name", persist.names())
def test_shipped_models_pass_the_checks_of_other_models(name, tmp_path):
    copy = shutil.copytree(persist.SHIPPED / name, tmp_path / name)
    persist.model_config(copy)
    if name not in _loadable():
        pytest.skip(f"{name} reads a resource that is not installed")
    copied, original = persist.load(copy), persist.load(name)
    assert type(copied.aligner) is type(original.aligner)
    theirs, own = copied.aligner.state(), original.aligner.state()
    assert theirs.keys() == own.keys() == persist.read_state(copy).keys()


def test_the_best_model_that_can_run_here(shipped):
    assert persist.best_available() == "core"
    shipped.add("wordnet")
    assert persist.best_available() == "plus"
    shipped.add("glove-6b")
    assert persist.best_available() == "full"
    assert persist.load("plus").aligner.forward.names
    assert [info.name for info in persist.shipped()] == ["full", "plus", "core"]
    assert persist.shipped()[0].resources == ("wordnet", "glove-6b") and persist.shipped()[0].size > 1000


def test_better_models_are_named_with_what_they_lack(shipped):
    full = "full needs wordnet, glove-6b (jacana-torch resources install wordnet glove-6b)"
    plus = "plus needs wordnet (jacana-torch resources install wordnet)"
    assert persist.best_and_skipped() == ("core", [full, plus])
    shipped.add("wordnet")
    glove = "full needs glove-6b (jacana-torch resources install glove-6b)"
    assert persist.best_and_skipped() == ("plus", [glove])
    shipped.add("glove-6b")
    assert persist.best_and_skipped() == ("full", [])


def test_a_model_that_reads_an_encoder_is_never_the_default(shipped, model):
    persist.save(model, persist.SHIPPED / "neural", {**config_of(), "resources": ["mpnet", "wordnet", "x"]}, {})
    shipped.update(("mpnet", "wordnet", "x", "minilm"))
    assert persist.best_available() == "plus" and "neural" in persist.names()
    shutil.rmtree(persist.SHIPPED / "core")
    shutil.rmtree(persist.SHIPPED / "plus")
    with pytest.raises(MissingResource, match=r"full needs glove-6b(?!.*neural)"):
        persist.best_available()


def test_the_error_says_what_the_shipped_models_lack(shipped):
    shutil.rmtree(persist.SHIPPED / "core")
    with pytest.raises(MissingResource, match="jacana-torch resources install wordnet"):
        persist.best_available()
    shutil.rmtree(persist.SHIPPED)
    with pytest.raises(JacanaError, match="train one"):
        persist.best_available()


def test_a_model_names_the_resources_that_it_reads():
    def needs(annotate, *families):
        parts = {
            name: {"_target_": f"jacana_torch.features.families.{m}.{c}", **more} for name, m, c, more in families
        }
        direction = {**CRF, "families": {"string": FAMILIES["string"], **parts}}
        aligner = {"_target_": "jacana_torch.aligners.bidirectional.Bidirectional"}
        aligner |= {"forward": direction, "backward": direction}
        config = {"_target_": "jacana_torch.model.model.Model", "aligner": aligner, "annotate": annotate}
        return list(persist.build(config).resources)

    nltk = {"_target_": "jacana_torch.annotate.nltk.NltkAnnotator"}
    spacy = {"_target_": "jacana_torch.annotate.spacy.SpacyAnnotator"}
    pos = ("pos", "pos", "Pos", {})
    assert needs(None) == needs(nltk) == needs(spacy) == []
    assert needs(nltk, pos) == ["tagger", "wordnet"]
    assert needs({**nltk, "lemmas": False}, pos) == ["tagger"]
    assert needs(spacy, pos) == ["spacy-en"]
    assert needs(nltk, ("wordnet", "wordnet", "WordNet", {})) == ["tagger", "wordnet"]
    assert needs(None, ("ppdb", "ppdb", "Ppdb", {"lemma": False})) == ["mwa-ppdb"]
    assert needs(None, ("d", "dependency", "Dependency", {})) == []
    assert needs(None, ("d", "dependency", "Dependency", {"ppdb": True})) == ["mwa-ppdb"]
    static = {"own": False, "vectors": ["glove-6b", "/my/own.txt"]}
    assert needs(None, ("distsim", "distsim", "DistSim", static)) == ["glove-6b"]
