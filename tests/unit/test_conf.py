"""Every YAML of conf/ composes and resolves, and what it names can be built."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml
from composed import CONF, composed, options
from hydra import compose, initialize_config_dir

from jacana_torch.aligners.base import Aligner
from jacana_torch.aligners.posterior import Posterior
from jacana_torch.errors import ConfigError
from jacana_torch.features.api import EdgeFamily, NodeFamily
from jacana_torch.model import persist
from jacana_torch.symmetrize import BY_LINKS, functions
from jacana_torch.train.run import Run, checked
from jacana_torch.types import PROVIDERS

FAMILIES = options("features")
FILES = sorted(CONF.rglob("*.yaml"))


def override_of(path: Path) -> list[str]:
    """The override by which a user chooses this file."""
    group, name = path.parent.relative_to(CONF).as_posix(), path.stem
    if group == ".":
        return []
    if group == "features":
        return [f"features=[{name}]"]
    return [f"{'+' if group in ('sweep', 'launcher', 'systems', 'data/augment') else ''}{group}={name}"]


def needs_plugin(path: Path) -> None:
    """Skip a test if the file stands on a plugin of Hydra that is not installed."""
    for kind, name in re.findall(r"override /hydra/(launcher|sweeper): (\w+)", path.read_text(encoding="utf-8")):
        plugin = f"hydra_plugins.hydra_{name.removesuffix('_local').removesuffix('_slurm')}_{kind}"
        try:
            find_spec(plugin) or pytest.skip(f"{plugin} is not installed")
        except ModuleNotFoundError:
            pytest.skip(f"{plugin} is not installed")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(CONF).as_posix())
def test_every_file_composes_to_what_training_reads(path):
    needs_plugin(path)
    cfg = composed(*override_of(path))
    assert checked(cfg, FAMILIES) == cfg
    assert cfg["name"] and cfg["aligner"]["_target_"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(CONF).as_posix())
def test_every_file_begins_with_a_comment(path):
    first = path.read_text(encoding="utf-8").splitlines()
    comment = first[1] if first[0] == "# @package _global_" else first[0]
    assert comment.startswith("# ") and len(comment) > 20


@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_stands_under_its_own_name_and_is_one(name):
    features = composed(f"features=[{name}]")["features"]
    assert list(features) == [name]
    family = persist.build(features[name])
    assert isinstance(family, (NodeFamily, EdgeFamily)) and family.name == name
    assert set(getattr(family, "requires", ())) <= set(PROVIDERS)


def test_families_are_chosen_as_a_list_and_turned_off_one_by_one():
    features = composed("features=[string,pos,distortion]", "features.pos=null")["features"]
    assert list(features) == ["string", "pos", "distortion"] and features["pos"] is None
    assert composed("features=[string]", "features.string.threshold=0.5")["features"]["string"]["threshold"] == 0.5


@pytest.mark.parametrize("name", options("annotate"))
def test_an_annotator_says_what_it_provides(name):
    cfg = composed(f"annotate={name}")["annotate"]
    if "path" in cfg:
        cfg["path"] = "corpus.mst"
    annotator = persist.build(cfg)
    known = {layer for layer, who in PROVIDERS.items() if name in who}
    assert known <= set(annotator.provides)


@pytest.mark.parametrize("name", options("symmetrize"))
def test_a_symmetrizer_is_the_function_of_that_name(name):
    made = persist.build(composed(f"symmetrize={name}")["symmetrize"])
    assert made == Posterior() if name == "posterior" else made.func is BY_LINKS.get(name, made.func)


def test_every_symmetrizer_can_be_chosen():
    assert options("symmetrize") == sorted([*functions(), "posterior"])


@pytest.mark.parametrize("name", options("aligner"))
def test_an_aligner_is_one(name):
    cfg = composed(f"aligner={name}", "features=[string,distortion]")["aligner"]
    assert isinstance(persist.build(cfg), Aligner)


@pytest.mark.parametrize("experiment", ["core", "standard", "syntactic"])
@pytest.mark.parametrize("name", ["hmm", "mixed", "stanford"])
def test_an_experiment_of_chains_can_have_another_aligner(experiment, name):
    features = "features=[string,kinds,distortion]"
    cfg = composed(f"experiment={experiment}", f"aligner={name}", features, "symmetrize=union")
    assert isinstance(persist.build(cfg["aligner"]), Aligner)


@pytest.mark.parametrize("name", options("data"))
def test_sidecars_go_with_corpora(name):
    data = composed(f"data={name}", "annotate=given")
    assert data["annotate"]["path"] == data["data"]["sidecar"]
    assert len(data["data"]["sidecar"]) in (0, 1, len(data["data"]["train"] + data["data"]["dev"]))


@pytest.mark.parametrize("name", options("data"))
def test_the_files_of_a_corpus_are_there(name, data_root):
    data = composed(f"data={name}")["data"]
    for file in [*data["train"], *data["dev"], *data["drop_ids"], *data["sidecar"]]:
        assert (data_root / file).is_file(), file


@pytest.mark.parametrize("name", options("sweep"))
def test_a_sweep_varies_what_exists(name):
    needs_plugin(CONF / "sweep" / f"{name}.yaml")
    with initialize_config_dir(version_base="1.3", config_dir=str(CONF)):
        cfg = compose("train", [f"+sweep={name}"], return_hydra_config=True)
    params = dict(cfg.hydra.sweeper.params)
    assert params
    for key, values in params.items():
        for value in _choices(str(values)):
            checked(composed(f"{key}={value}"), FAMILIES)


def _choices(text: str) -> list[str]:
    """`[],[a],[b]` or `1,2` as its parts, `interval(1, 2)` as its ends."""
    if found := re.search(r"interval\((.*?), (.*?)\)", text):
        return [*found.groups()]
    inner = text.replace("],[", "]\n[") if text.startswith("[") else text.replace(",", "\n")
    return inner.split("\n")


def test_the_ablation_leaves_out_every_family_of_standard():
    values = yaml.safe_load((CONF / "sweep/ablation.yaml").read_text())["hydra"]["sweeper"]["params"]["drop"]
    assert set(_choices(values)) == {"[]", *(f"[{name}]" for name in composed("experiment=standard")["features"])}


def test_a_part_of_an_aligner_may_drop_families_of_its_own():
    run = Run(composed("experiment=neural_syntactic", "drop=[kinds]"), Path(), [])
    aligner = run.model_config["aligner"]
    network, linear = (set(part["families"]) for part in (aligner["network"], aligner["linear"]["forward"]))
    assert linear - network == {"ppdb", "dependency", "sultan"} and network < linear
    assert "kinds" not in linear


def test_settings_of_the_wrong_type_are_errors():
    cfg = composed("features=[string]")
    for name, value in (("cv", "5"), ("seed", None), ("data", []), ("drop", {}), ("logger", None)):
        with pytest.raises(ConfigError, match=name):
            checked({**cfg, name: value}, FAMILIES)
    with pytest.raises(ConfigError, match="data.limit"):
        checked({**cfg, "data": {**cfg["data"], "limit": 1.5}}, FAMILIES)
    assert checked({**cfg, "data": {**cfg["data"], "train": "a.jsonl"}}, FAMILIES)["data"]["train"] == ["a.jsonl"]
