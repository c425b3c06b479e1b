"""Configs: what they may name, where, and with which settings. All of it is checked before anything is built."""

from __future__ import annotations

import importlib
import os
import pkgutil
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from composed import CONF

import jacana_torch
from jacana_torch.aligners.base import Aligner, Trainable
from jacana_torch.aligners.bidirectional import Bidirectional
from jacana_torch.aligners.crf import Crf
from jacana_torch.aligners.posterior import Posterior
from jacana_torch.annotate import Annotator
from jacana_torch.errors import ConfigError
from jacana_torch.features.api import EdgeFamily, NodeFamily
from jacana_torch.features.families.string import String
from jacana_torch.model.model import Model
from jacana_torch.symmetrize import BY_LINKS, Symmetrizer
from jacana_torch.systems.ted.ted import Ted
from jacana_torch.train.augment import Augmentation, Maker
from jacana_torch.util import trust
from jacana_torch.util.build import ANYTHING, build, check, settings_of

STRING = {"_target_": "jacana_torch.features.families.string.String"}
CRF = {"_target_": "jacana_torch.aligners.crf.Crf", "families": {"string": STRING}}
BOTH = {"_target_": "jacana_torch.aligners.bidirectional.Bidirectional", "forward": CRF, "backward": CRF}
ROLES = {
    "aligner": Aligner, "annotator": Annotator, "node": NodeFamily, "edge": EdgeFamily, "symmetrizer": Symmetrizer,
    "posterior": Posterior, "model": Model, "augmentation": Augmentation, "maker": Maker,
}  # fmt: skip


def of_conf(value: Any) -> Iterator[str]:
    """Every `_target_` in a config, but for those of the program that reads it (`hydra:`)."""
    if isinstance(value, dict):
        yield from [value["_target_"]] if "_target_" in value else []
        for name, inner in value.items():
            yield from of_conf(inner) if name != "hydra" else ()


NAMED = {target for path in CONF.rglob("*.yaml") for target in of_conf(yaml.safe_load(path.read_text()))}


def callables() -> set[str]:
    """Every class and function that a module of the package defines."""
    found = set()
    for module in pkgutil.walk_packages(jacana_torch.__path__, "jacana_torch."):
        if module.name.endswith("__main__"):
            continue
        try:
            values = vars(importlib.import_module(module.name))
        except ModuleNotFoundError:  # a library that is an extra
            continue
        for name, value in values.items():
            if callable(value) and getattr(value, "__module__", None) == module.name:
                found.add(f"{module.name}.{name}")
    return found


def fits(target: str, role: Any) -> bool:
    """Whether a config may name this in a role, whatever its settings."""
    for more in ({}, {"_partial_": True}):
        try:
            check({"_target_": target, **more}, role)
        except ConfigError as error:
            if "lacks the settings" not in str(error):
                continue
        return True
    return False


def test_a_config_names_the_parts_of_models_and_nothing_else():
    """Of all classes and functions of the package, those of conf/, and a few that are parts without a YAML."""
    allowed = {target for target in callables() if any(fits(target, role) for role in ROLES.values())}
    others = allowed - NAMED
    assert NAMED <= allowed
    assert others == {
        "jacana_torch.model.model.Model", "jacana_torch.systems.unsupervised.unsupervised.Agreement",
        "jacana_torch.systems.unsupervised.unsupervised.Ibm1",
    } - NAMED  # fmt: skip
    assert len(NAMED) > 30 and len(callables()) > 1000


def test_each_part_fits_its_own_role_alone():
    families = {target for target in NAMED if fits(target, NodeFamily) or fits(target, EdgeFamily)}
    annotators = {target for target in NAMED if fits(target, Annotator)}
    aligners = {target for target in NAMED if fits(target, Aligner)}
    symmetrizers = {target for target in NAMED if fits(target, Symmetrizer)}
    assert {target.rpartition(".")[2] for target in symmetrizers} == set(BY_LINKS)
    makers = {target for target in NAMED if fits(target, Maker)}
    roles = families, annotators, aligners, symmetrizers, makers
    for one in roles:
        assert sum(len(one & other) for other in roles) == len(one) > 3
    assert NAMED - set().union(*roles) == {
        "jacana_torch.aligners.posterior.Posterior", "jacana_torch.train.augment.Augmentation",
    }  # fmt: skip


@pytest.mark.parametrize(
    "bad",
    [
        {"_target_": "jacana_torch.train.tracking.TensorBoard"},
        {"_target_": "jacana_torch.features.counted_vectors.CountedVectors"},
        {"_target_": "jacana_torch.annotate.given.GivenAnnotator", "path": "fifo.mst"},
        {"_target_": "jacana_torch.aligners.neural.training.Training"},
        {"_target_": "jacana_torch.aligners.base.Step"},
        {"_target_": "jacana_torch.resources.unfinished.unfinished", "_partial_": True},
        {"_target_": "jacana_torch.symmetrize.functions", "_partial_": True},
        {"_target_": "jacana_torch.symmetrize.symmetrizer", "_partial_": True},
        {"_target_": "jacana_torch.symmetrize.union", "_partial_": True},
        {"_target_": "jacana_torch.symmetrize.union", "_partial_": "yes"},
        {"_target_": "jacana_torch.aligners.crf.Crf", "_partial_": True},
        {"_target_": "pathlib.Path"},
        5, [], {}, "crf", True, None,
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("place", ["aligner", "forward", "families", "network"])
def test_nothing_is_built_if_any_part_is_wrong(bad, place, tmp_path, monkeypatch):
    """Not even what stands before it."""
    monkeypatch.chdir(tmp_path)
    os.mkfifo(tmp_path / "fifo.mst")
    built: list[object] = []
    monkeypatch.setattr(Bidirectional, "__post_init__", built.append)
    monkeypatch.setattr(Crf, "__post_init__", built.append)
    if isinstance(bad, dict) and "_partial_" not in bad:
        bad = {**bad, "directory": str(tmp_path / "made")}
    aligner: dict[str, Any] = {
        "aligner": bad,
        "forward": {**BOTH, "forward": bad},
        "families": {**BOTH, "backward": {**CRF, "families": {"string": STRING, "other": bad}}},
        "network": {"_target_": "jacana_torch.aligners.neural.mixed.Mixed", "network": bad, "linear": BOTH},
    }[place]  # fmt: skip
    if place == "families" and bad is None:
        return  # a family that is turned off
    with pytest.raises(ConfigError) as caught:
        build({"_target_": "jacana_torch.model.model.Model", "aligner": aligner}, Model)
    assert not built and os.listdir(tmp_path) == ["fifo.mst"]
    assert len(str(caught.value)) < 600


def test_partial_takes_symmetrizers_alone():
    union = {"_target_": "jacana_torch.symmetrize.union", "_partial_": True}
    assert build({**BOTH, "symmetrize": union}).symmetrizer_name == "union"
    for wrong, says in (
        ({**union, "_target_": "jacana_torch.symmetrize.names"}, "not a symmetrizer"),
        ({**union, "_target_": "jacana_torch.aligners.calibration.fitted"}, "not a symmetrizer"),
        ({**union, "forward": 1}, "multiple values"),
        ({**union, "other": 1}, "other"),
        ({"_target_": "jacana_torch.symmetrize.union"}, "not a type"),
        ({**STRING, "_partial_": True}, "not a function"),
        (1, "should be a function or a Posterior or text"),
    ):
        with pytest.raises(ConfigError, match=says):
            build({**BOTH, "symmetrize": wrong})


def test_every_setting_of_every_part_has_a_type():
    """Else it would not be checked."""
    for target in sorted(NAMED | {"jacana_torch.model.model.Model"}):
        module, _, name = target.rpartition(".")
        made = getattr(importlib.import_module(module), name)
        if isinstance(made, type):
            assert all(ANYTHING != options for options in settings_of(made).options.values()), target


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"l2": 0}, "l2=0: must be positive"),
        ({"l2": True}, "l2=True should be a number"),
        ({"l2": "2"}, "l2='2' should be a number"),
        ({"l2": 10**400}, "l2=1000.*: must be finite"),
        ({"l2": float("nan")}, "l2=nan: must be finite"),
        ({"priors": {"pos.": -1.0}}, r"priors\['pos.'\]=-1.0: must be positive"),
        ({"priors": [1.0]}, "priors=.* should be a mapping"),
        ({"policy": "none"}, "policy='none': choose one of monotone, diagonal, first, last"),
        ({"policy": ["first", 1]}, r"policy\[1\]=1 should be one of monotone"),
        ({"policy": []}, "policy=.*: has 0 entries, and needs 1 to 1000"),
        ({"max_iterations": 10**12}, "max_iterations=.* at most 1,000,000,000"),
        ({"max_iterations": 3.0}, "max_iterations=3.0 should be a whole number"),
        ({"remember": 1}, "remember=1 should be true or false"),
        ({"device": None}, "device=None should be text"),
        ({"names": ["a"]}, "names=.*: is not a setting"),
        ({"weights": [1.0]}, "weights"),
        ({"tolerence": 0.1}, "no setting 'tolerence'; did you mean tolerance"),
        ({"x": 0.1}, "no setting 'x'; there are families, drop, l2"),
        ({"families": None}, "families=None should be a mapping"),
        ({"families": {f"f{k}": STRING for k in range(101)}}, "families=.* has 101 entries, and needs 0 to 100"),
        ({"families": {"string": {**STRING, "threshold": 1.5}}}, "String: threshold=1.5: must be at least 0 and"),
        ({"families": {"string": {**STRING, "requires": []}}}, "requires=.*: is not a setting"),
        ({"start": [[[[]]]]}, "start=.* should be a number"),
    ],
)  # fmt: skip
def test_settings_are_checked(settings, says):
    with pytest.raises(ConfigError, match=f"jacana_torch.*{says}"):
        build({**CRF, **settings}, Trainable)


WINDOW = {"_target_": "jacana_torch.features.families.context.Context"}


@pytest.mark.parametrize("value", [-1, 0, 10**9, 1.0, "3", None, True, [3], {}])
def test_a_window_is_a_small_whole_number(value):
    with pytest.raises(ConfigError, match="Context: window="):
        build({**CRF, "families": {"context": {**WINDOW, "window": value}}})


def test_a_missing_setting_is_named():
    with pytest.raises(ConfigError, match="Crf: lacks the settings families"):
        build({"_target_": CRF["_target_"]})


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_nesting_is_limited(opening):
    deep: Any = 1
    for _ in range(900):
        deep = [deep] if opening == "[" else {"a": deep}
    with pytest.raises(ConfigError, match="nested more than 40"):
        build({**CRF, "l2": deep})


def test_constructors_check_the_same_bounds():
    with pytest.raises(ConfigError, match=r"^cost_null=-1: must be at least 0$"):
        Crf({"string": String()}, cost_null=-1)
    with pytest.raises(ConfigError, match=r"^rename=0: must be positive and at most 1,000"):
        Ted(rename=0)


class Loose:
    """A part of a user's own, without annotations, that takes any setting."""

    requires = ()

    def __init__(self, **settings):
        self.settings = settings

    def align(self, pairs):
        return []


def test_own_classes_may_leave_their_settings_open(monkeypatch):
    own = {"_target_": f"{__name__}.Loose", "any": {"a": [1, None]}, "part": STRING}
    with pytest.raises(ConfigError, match=f"JACANA_TRUST={__name__}"):
        build(own)
    monkeypatch.setenv("JACANA_TRUST", __name__)
    made = build({"_target_": "jacana_torch.model.model.Model", "aligner": own}, Model)
    assert made.aligner.settings["any"] == {"a": [1, None]} and made.aligner.settings["part"] == String()
    with pytest.raises(ConfigError, match="cannot be imported by a config"):
        build({**own, "part": {"_target_": "jacana_torch.train.tracking.TensorBoard"}})


# Files


ENCODER = {"_target_": "jacana_torch.features.families.contextual.Contextual", "encoder": "/somewhere/encoder"}


@pytest.mark.parametrize(
    ("config", "file"),
    [
        (ENCODER, "/somewhere/encoder"),
        ({**ENCODER, "encoder": "wordnet"}, "wordnet"),
        ({"_target_": "jacana_torch.annotate.spacy.SpacyAnnotator", "model": "my/spacy"}, "my/spacy"),
        ({"_target_": "jacana_torch.annotate.spacy.SpacyAnnotator", "model": "torch"}, "torch"),
        ({"_target_": "jacana_torch.annotate.given.GivenAnnotator", "path": "a.mst"}, "a.mst"),
        ({"_target_": "jacana_torch.systems.bag_of_words.BagOfWords", "frequencies": "f"}, "f"),
        ({"_target_": "jacana_torch.systems.manli.manli.Manli", "vectors": "~/v.txt"}, "~/v.txt"),
        ({"_target_": "jacana_torch.systems.stanford.stanford.Stanford", "vectors": "../v"}, "../v"),
        ({"_target_": "jacana_torch.features.families.distsim.DistSim", "counts": "c.npz"}, "c.npz"),
        ({"_target_": "jacana_torch.features.families.distsim.DistSim", "vectors": ["glove-6b", "/v"]}, "/v"),
        ({"_target_": "jacana_torch.features.families.distsim.DistSim", "vectors": "/v"}, "/v"),
        (
            {"_target_": "jacana_torch.aligners.neural.neural.Neural", "families": {}, "encoder": "/e"},
            "/e",
        ),
    ],
    ids=lambda value: str(value)[-40:],
)
def test_files_that_settings_name_are_reported(config, file, monkeypatch):
    monkeypatch.setattr(trust, "_named", set())
    found: list[str] = []
    check(config, on_file=found.append)
    assert found == [file]
    with pytest.raises(ConfigError, match="JACANA_TRUST="):
        check(config, on_file=trust.check_file)
    check(config)  # the user's own settings: trusted from now on
    check(config, on_file=trust.check_file)


def test_resources_are_no_files():
    found: list[str] = []
    for config in (
        {**ENCODER, "encoder": "minilm"},
        {"_target_": "jacana_torch.features.families.distsim.DistSim", "vectors": ["glove-6b", "glove-840b"]},
        {"_target_": "jacana_torch.annotate.spacy.SpacyAnnotator"},
        {"_target_": "jacana_torch.systems.manli.manli.Manli", "vectors": None},
        {"_target_": "jacana_torch.systems.bag_of_words.BagOfWords", "frequencies": None},
    ):
        check(config, on_file=found.append)
    assert found == []


@pytest.mark.parametrize(
    ("listed", "trusted", "not_trusted"),
    [
        ("/data", ["/data", "/data/a", "/data/a/../b"], ["/database", "/data/../etc", "/", "data", "/a/data"]),
        ("/data/", ["/data", "/data/a"], ["/dat"]),
        ("pkg,/data", ["/data/x"], ["pkg", "pkg/x"]),
        ("pkg other:/data/my models", ["/data/my models/x"], ["/data/my", "models"]),
        ("./here", ["here", "here/x"], ["there"]),
        ("/", ["/etc/x"], []),
        ("data", [], ["data", "./data/x"]),
        ("", [], ["", "/", "x"]),
        ("~/a", ["~/a/b"], ["~", "/a"]),
    ],
)
def test_trusted_paths(listed, trusted, not_trusted, monkeypatch):
    monkeypatch.setattr(trust, "_named", set())
    monkeypatch.setenv("JACANA_TRUST", listed)
    for path in trusted:
        trust.check_file(path)
    for path in not_trusted:
        with pytest.raises(ConfigError, match="not an installed resource"):
            trust.check_file(path)
    assert trust.is_trusted_package("pkg.x") == ("pkg" in listed)
    assert not trust.is_trusted_package("pk.x") and not trust.is_trusted_package("/data.x")


def test_an_installed_spacy_model_is_known_by_name(tmp_path, monkeypatch):
    from jacana_torch.annotate.spacy import is_installed

    for name, group in (("en_mine", "spacy_models"), ("other", "console_scripts")):
        (tmp_path / f"{name}-1.0.dist-info").mkdir()
        (tmp_path / f"{name}-1.0.dist-info" / "METADATA").write_text(f"Name: {name}\nVersion: 1.0\n")
        (tmp_path / f"{name}-1.0.dist-info" / "entry_points.txt").write_text(f"[{group}]\n{name} = {name}\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert is_installed("spacy-en") and is_installed("en_mine")
    assert not any(map(is_installed, ("other", "en_none", "", ".", "/tmp", "torch", str(tmp_path))))
