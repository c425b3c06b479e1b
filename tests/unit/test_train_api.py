"""Training from Python: the configuration that Hydra composes, the weights that the command line learns."""

from __future__ import annotations

import subprocess
import sys

import pytest
from commands import WORDS

import jacana_torch as jt
from jacana_torch import corpora
from jacana_torch.cli import main
from jacana_torch.errors import ConfigError, ModelError, PairError
from jacana_torch.train.compose import composed
from jacana_torch.util import conf

PAIRS = [(WORDS[k % 7 : k % 7 + 4], WORDS[k % 5 : k % 5 + 3][::-1]) for k in range(20)]
GOLD = [" ".join(f"{i}-{j}" for i, a in enumerate(s) for j, b in enumerate(t) if a == b) for s, t in PAIRS]
SMALL = {"features": ["string", "position"], "annotate": "none", "settings": {"trainer.max_iterations": 30}}


def by_hydra(overrides) -> dict:
    from hydra import compose, initialize_config_dir
    from omegaconf import OmegaConf

    with initialize_config_dir(str(conf.conf_directory()), version_base="1.3"):
        held = compose("train", ["logger=none", "data=files", *overrides])
        return OmegaConf.to_container(held, resolve=True)


@pytest.mark.parametrize(
    ("experiment", "choices", "settings"),
    [
        (None, {}, {}),
        ("core", {}, {}),
        ("standard", {"symmetrize": "union"}, {"trainer.l2": 3.0, "seed": 4}),
        ("neural", {}, {"aligner.network.epochs": 2}),
        (None, {"aligner": "hmm"}, {"aligner.forward.window": 3}),
        (None, {"aligner": "crf_remember", "features": ["string", "pos"]}, {"features.string.threshold": 0.5}),
        (None, {"aligner": "phrase", "annotate": "none"}, {"drop": ["pos"]}),
    ],
)
def test_as_hydra_composes(experiment, choices, settings, monkeypatch):
    monkeypatch.delenv("JACANA_DATA", raising=False)
    listed = {
        name: f"[{','.join(v)}]" if isinstance(v, list) else v for name, v in {**choices, **settings}.items()
    }
    overrides = [f"{name}={value}" for name, value in listed.items()]
    expected = by_hydra([*([f"experiment={experiment}"] if experiment else []), "data=files", *overrides])
    found = composed(experiment, choices, settings)
    for config in (found, expected):
        config.pop("data")
        config.pop("name")
    assert found == expected


def test_the_weights_of_the_command_line(tmp_path):
    model = jt.train(PAIRS, GOLD, output=tmp_path / "python", **SMALL)
    examples = [
        jt.Example(jt.SentencePair(jt.Sentence(tuple(s)), jt.Sentence(tuple(t))),
                   jt.Alignment(len(s), len(t), {tuple(map(int, link.split("-"))) for link in gold.split()}))
        for (s, t), gold in zip(PAIRS, GOLD, strict=True)
    ]  # fmt: skip
    corpora.write(examples, tmp_path / "train.jsonl")
    command = ["train", f"data.train={tmp_path}/train.jsonl", "logger=none",
               "features=[string,position]", "annotate=none", "trainer.max_iterations=30",
               f"output={tmp_path}/shell", f"hydra.run.dir={tmp_path}/run"]  # fmt: skip
    assert main(command) == 0
    for name in ("weights.safetensors",):
        assert (tmp_path / "python" / name).read_bytes() == (tmp_path / "shell" / name).read_bytes()
    assert model.align(PAIRS) == jt.load(tmp_path / "shell").align(PAIRS)
    assert [str(one) for one in model.align(PAIRS[:3])] == GOLD[:3]


def test_gold_of_any_kind_and_without_hydra():
    code = f"""
import sys, jacana_torch as jt
pairs, gold = {PAIRS!r}, {GOLD!r}
settings = dict({SMALL!r})
one = jt.train(pairs, gold, dev=(pairs[:3], gold[:3]), **settings)
import jacana_torch.train.run
links = [[tuple(map(int, link.split("-"))) for link in line.split()] for line in gold]
other = jacana_torch.train(iter(pairs), iter(links), **settings)
assert one.align(pairs) == other.align(pairs)
third = jt.train(pairs, one.align(pairs), **settings)
assert not {{"hydra", "omegaconf", "tensorboard"}} & set(sys.modules), "Hydra"
print(repr(third))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "<Model model: Bidirectional>\n"


def test_mistakes():
    with pytest.raises(PairError, match="^pair 2: the gold alignment: .*out of range"):
        jt.train([("a", "b"), ("a", "b")], ["0-0", "3-3"], **SMALL)
    with pytest.raises(ConfigError, match="more training pairs than gold"):
        jt.train(PAIRS, GOLD[:-1], **SMALL)
    with pytest.raises(ConfigError, match="more gold alignments than training pairs"):
        jt.train(PAIRS[:-1], GOLD, **SMALL)
    with pytest.raises(PairError, match="^pair 1: the source is a float"):
        jt.train([(1.0, "b")], ["0-0"], **SMALL)
    with pytest.raises(ConfigError, match="aligner='none': there is no such file; there are .*crf"):
        jt.train(PAIRS, GOLD, aligner="none")
    with pytest.raises(ConfigError, match="there is no setting trainer.l3; there are .*l2"):
        jt.train(PAIRS, GOLD, settings={"trainer.l3": 1})


def test_saving_and_names(model, tmp_path):
    loaded = jt.load(model)
    assert repr(loaded) == "<Model tiny: Bidirectional>"
    assert isinstance(loaded, jt.Model)
    folder = loaded.save(tmp_path / "copy")
    again = jt.load(folder)
    assert again.align(PAIRS) == loaded.align(PAIRS)
    assert (folder / "weights.safetensors").read_bytes() == (
        (tmp_path / "copy").parent / "copy" / "weights.safetensors"
    ).read_bytes()
    with pytest.raises(ModelError, match="there is a model already"):
        loaded.save(folder)
    again.save(folder, overwrite=True)
    with pytest.raises(ModelError, match="put together in Python"):
        jt.Model(loaded.aligner).save(tmp_path / "new")
    core = jt.load("core")
    assert "\n" not in repr(core) and len(repr(core)) < 200
    core.save(tmp_path / "core")
    assert jt.load(tmp_path / "core").align(PAIRS) == core.align(PAIRS)
