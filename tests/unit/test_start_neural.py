"""Fine-tuning of networks: `start=` does what `aligner.start` and `aligner.network.start` do, and more."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest
import torch
from templates import corpus, layerless

import jacana_torch
from jacana_torch import corpora
from jacana_torch.aligners.base import UNKEPT
from jacana_torch.aligners.bidirectional import Bidirectional
from jacana_torch.aligners.crf import Crf
from jacana_torch.aligners.neural.mixed import Mixed
from jacana_torch.aligners.neural.neural import Neural
from jacana_torch.aligners.posterior import Combination
from jacana_torch.cli import main
from jacana_torch.errors import ConfigError
from jacana_torch.features.families.distortion import Distortion
from jacana_torch.features.families.string import String
from jacana_torch.model import persist

EXAMPLES = layerless(corpus(8))
SMALL = {"width": 4, "blocks": 1, "epochs": 1, "views": 0}


def network() -> Neural:
    return Neural({"string": String(), "distortion": Distortion()}, **SMALL)


def chains() -> Bidirectional:
    return Bidirectional(*(Crf({"string": String(), "distortion": Distortion()}, max_iterations=5) for _ in "ab"))


@pytest.fixture(scope="module")
def trained() -> Mixed:
    made = Mixed(network(), chains(), weights=(0.7, 0.2))
    made.fit(EXAMPLES)
    return made


def kept(made: Neural) -> dict[str, np.ndarray]:
    return {name: value for name, value in made.state().items() if isinstance(value, np.ndarray)}


def same(one: Neural, other: Neural) -> bool:
    return kept(one).keys() == kept(other).keys() and all(
        np.array_equal(value, kept(other)[name]) for name, value in kept(one).items()
    )


def test_each_part_starts_from_a_model_of_its_kind(trained):
    whole = Mixed(network(), chains())
    whole.start_from(trained.state(), 2.0)
    assert same(whole.network, trained.network) and whole.linear.forward.mean and whole.linear.forward.pull == 2
    assert whole.combination == trained.combination != Combination()
    from_network = Mixed(network(), chains())
    from_network.start_from(trained.network.state(), 2.0)
    assert same(from_network.network, trained.network) and not from_network.linear.forward.mean
    from_chains = Mixed(network(), chains())
    from_chains.start_from(trained.linear.state(), 2.0)
    assert from_chains.linear.backward.mean and not kept(from_chains.network)["mean"].size
    alone, linear = network(), chains()
    alone.start_from(trained.state(), 1.0)
    linear.start_from(trained.state(), 1.0)
    assert same(alone, trained.network) and linear.forward.names == trained.linear.forward.names
    for made, state in ((network(), trained.linear.state()), (Mixed(network(), chains()), {"names": ["x"]})):
        with pytest.raises(ConfigError, match="to start from"):
            made.start_from(state, 1.0)


def test_an_untrained_copy_for_folds_starts_there_too(trained):
    made = Mixed(network(), chains(), folds=2)
    made.start_from(trained.state(), 3.0)
    copy = made._untrained(UNKEPT)
    assert same(copy.network, trained.network) and copy.linear.forward.mean == made.linear.forward.mean


def test_start_does_what_the_old_keys_do(tmp_path, capsys, monkeypatch):
    corpora.write(EXAMPLES, str(tmp_path / "words.jsonl"), "jsonl")
    monkeypatch.chdir(tmp_path)
    handlers, threads = logging.getLogger().handlers[:], torch.get_num_threads()
    given = ["data.root=.", "data.train=[words.jsonl]", "annotate=none", "logger=none", "aligner=neural"]
    given += ["features=[string,distortion]", *(f"aligner.{name}={value}" for name, value in SMALL.items())]
    try:
        assert main(["train", *given, "output=pre"]) == 0
        assert main(["train", *given, "aligner.start=pre", "output=old"]) == 0
        assert main(["train", *given, "start=pre", "output=new"]) == 0
        assert main(["train", *given, "output=scratch", "seed=2"]) == 0
    finally:
        logging.getLogger().handlers[:] = handlers
        torch.set_num_threads(threads)
    old, new, scratch = (jacana_torch.load(Path(name)).aligner for name in ("old", "new", "scratch"))
    assert same(old, new) and not same(old, scratch)
    assert persist.trained_on("old") == persist.trained_on("new") == {e.pair.checksum for e in EXAMPLES}
    capsys.readouterr()
