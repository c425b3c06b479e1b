"""Encoders in folders: training, aligning, saving and loading with each kind; errors; trust."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from templates import corpus, layerless
from tiny_encoder import KINDS, tiny_encoder_of

from jacana_torch import corpora
from jacana_torch.aligners.neural.neural import Neural
from jacana_torch.cli import main
from jacana_torch.encoders import checkpoint
from jacana_torch.encoders.encoder_network import word_vectors
from jacana_torch.encoders.pieces import windows
from jacana_torch.errors import ConfigError, ModelError
from jacana_torch.features.families.string import String
from jacana_torch.model import persist
from jacana_torch.model.model import Model
from jacana_torch.types import Sentence, SentencePair
from jacana_torch.util import trust

TRAINING = layerless(corpus(6))
PAIRS = [e.pair for e in TRAINING]
SMALL = {"width": 4, "blocks": 1, "epochs": 1, "views": 2, "rank": 2, "batch_pairs": 2}
ODD = SentencePair(Sentence(("a", "(b)", "c.d", "ee")), Sentence(("x", "," * 60, "a")))


@pytest.fixture(scope="module", params=KINDS)
def encoder(request, tmp_path_factory) -> str:
    return tiny_encoder_of(request.param, tmp_path_factory.mktemp(request.param))


def saved(encoder: str, folder: Path) -> tuple[Neural, Path]:
    """A model that was trained with an encoder, and its directory."""
    families = {"string": {"_target_": "jacana_torch.features.families.string.String"}}
    config = {"_target_": "jacana_torch.aligners.neural.neural.Neural", **SMALL, "encoder": encoder}
    made = Neural({"string": String()}, encoder=encoder, **SMALL)
    made.fit(TRAINING)
    model = {"_target_": "jacana_torch.model.model.Model", "aligner": {**config, "families": families}}
    return made, persist.save(Model(made), folder, {"model": model, "description": "", "resources": []}, {})


def test_training_aligning_saving_and_loading(encoder, tmp_path, monkeypatch):
    """It takes steps, aligns as before once loaded, and is loaded only where its encoder is trusted."""
    made, folder = saved(encoder, tmp_path / "model")
    adapters = [v for name, v in made.state().items() if name.endswith(".wide")]
    assert adapters and any(np.any(v) for v in adapters)
    monkeypatch.setattr(trust, "_named", set())
    with pytest.raises(ModelError, match="JACANA_TRUST="):
        persist.load(folder)
    monkeypatch.setenv("JACANA_TRUST", encoder)
    loaded = persist.load(folder).aligner
    for one, other in zip(made.align(PAIRS), loaded.align(PAIRS), strict=True):
        assert one.sure == other.sure and one.confidence == pytest.approx(other.confidence, abs=1e-5)


def test_pieces_belong_to_their_words(encoder):
    """The pieces of each word, joined, are its letters; byte-level pieces of every word begin with a space."""
    tokenizer = checkpoint.tokenizer(encoder)
    words = [*ODD.source.tokens, *ODD.target.tokens]
    found = [""] * len(words)
    for window in windows([ODD], tokenizer)[0]:
        assert len(window.ids) <= tokenizer.longest
        for piece, word in zip(tokenizer.split.convert_ids_to_tokens(window.ids), window.word, strict=True):
            if word >= 0:
                found[word] += piece.removeprefix("##")
    for word, read in zip(words, found, strict=True):
        plain = read.lstrip("\u0120\u2581")
        assert plain and word.startswith(plain)  # a word that is longer than the window is cut
        if "\u0120" in tokenizer.split.get_vocab():  # byte-level
            assert read.startswith("\u0120")


def test_vectors_do_not_depend_on_the_batch(encoder):
    network, tokenizer = checkpoint.network(encoder), checkpoint.tokenizer(encoder)
    pairs = [*PAIRS, ODD]
    sizes = [len(p.source) + len(p.target) for p in pairs]
    with torch.no_grad():
        (together,) = word_vectors(network, windows(pairs, tokenizer), sizes, [2])
        for pair, size, found in zip(pairs, sizes, together.split(sizes), strict=True):
            (alone,) = word_vectors(network, windows([pair], tokenizer), [size], [2])
            torch.testing.assert_close(found, alone, atol=1e-5, rtol=1e-4)


@pytest.fixture
def bert(tmp_path) -> Path:
    return Path(tiny_encoder_of("Bert", tmp_path / "encoder"))


def test_a_model_knows_its_encoder(bert, tmp_path, monkeypatch):
    """Another encoder in its place is an error, also for a training that starts from the model."""
    _, folder = saved(str(bert), tmp_path / "model")
    other = tiny_encoder_of("Bert", tmp_path / "other")
    config = json.loads((Path(other) / "config.json").read_text())
    (bert / "config.json").write_text(json.dumps({**config, "layer_norm_eps": 1e-3}))
    loaded = persist.load(folder, trust_files=True)
    with pytest.raises(ModelError, match="is not the one that the model was trained with"):
        loaded.align(PAIRS)
    for settings in ({}, {"start": str(folder)}):
        made = Neural({"string": String()}, encoder=str(bert), **SMALL, **settings)
        if not settings:
            made.start_from(persist.read_state(folder), 1.0)
        with pytest.raises(ModelError, match="trained with"):
            made.fit(TRAINING)
    shutil.copy(Path(other) / "config.json", bert)
    assert persist.load(folder, trust_files=True).align(PAIRS)


@pytest.mark.parametrize(
    ("missing", "there", "advice"),
    [
        ("config.json", "", "as save_pretrained writes it"),
        ("tokenizer.json", "", "no fast tokenizer.*AutoTokenizer"),
        ("model.safetensors", "pytorch_model.bin", "pickles.*only if you trust.*AutoModel"),
        ("model.safetensors", "model.safetensors.index.json", "in one file.*AutoModel"),
    ],
)
def test_a_folder_that_is_no_checkpoint_ends_the_command(
    bert, missing, there, advice, tmp_path, monkeypatch, capsys
):
    (bert / missing).unlink()
    if there:
        (bert / there).write_bytes(b"not to be opened")
    monkeypatch.chdir(tmp_path)
    corpora.write(TRAINING, "words.jsonl", "jsonl")
    given = ["data.root=.", "data.train=[words.jsonl]", "data.sidecar=[]", "annotate=none", "features=[string]"]
    assert main(["train", "experiment=neural_large", f"encoder={bert}", "logger=none", *given]) == 2
    with pytest.raises(ConfigError, match=f"(?s)missing: {missing}.*{advice}"):
        checkpoint.tokenizer(str(bert))
    assert missing in capsys.readouterr().err


def test_a_model_with_a_decoder_is_refused(tmp_path):
    transformers = pytest.importorskip("transformers")
    small = transformers.T5Config(vocab_size=20, d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2)
    transformers.T5Model(small).save_pretrained(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(ConfigError, match="decoder"):
        checkpoint.network(str(tmp_path))


def test_the_recipe_trains(bert, tmp_path, monkeypatch, capsys):
    """`experiment=neural_large` reads the folder, and says that its model needs it."""
    monkeypatch.chdir(tmp_path)
    corpora.write(TRAINING, "words.jsonl", "jsonl")
    small = [f"aligner.network.{name}={value}" for name, value in SMALL.items()]
    given = ["data.root=.", "data.train=[words.jsonl]", "data.sidecar=[]", "annotate=none"]
    given += ["features=[string,distortion]", "logger=none", "output=made"]
    assert main(["train", "experiment=neural_large", f"encoder={bert}", *given, *small]) == 0
    assert str(bert) in capsys.readouterr().err
