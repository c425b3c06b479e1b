"""Encoders: every word is in one window, vectors are means of pieces, adapters start at zero."""

from __future__ import annotations

import builtins
import importlib.util

import numpy as np
import pytest
import torch
from tiny_encoder import tiny_encoder

from jacana_torch.encoders import checkpoint
from jacana_torch.encoders.encoder_network import Adapted, adapt, checked_layers, cut, fold, word_vectors
from jacana_torch.encoders.pieces import windows
from jacana_torch.errors import ConfigError, MissingResource
from jacana_torch.types import Sentence, SentencePair


@pytest.fixture(scope="module")
def encoder(tmp_path_factory) -> str:
    return tiny_encoder(tmp_path_factory.mktemp("encoder"))


def pair(source: str, target: str) -> SentencePair:
    return SentencePair(Sentence(tuple(source.split(" "))), Sentence(tuple(target.split(" "))))


PAIRS = [
    pair("A cat sat -LRB- down -RRB- .", "down sat a cat"),
    pair("x", "yes"),
    pair("the quick brown foxes never jumped over those lazy dogs again today", "some dogs are lazy"),
    pair("z" * 90 + " b", "c"),
]


@pytest.mark.parametrize("reading", ["together", "apart"])
def test_every_word_is_in_one_window_and_no_window_is_too_long(encoder, reading):
    tokenizer = checkpoint.tokenizer(encoder)
    for p, own in zip(PAIRS, windows(PAIRS, tokenizer, reading), strict=True):
        words = [set(window.word[window.word >= 0].tolist()) for window in own]
        assert sorted(w for some in words for w in some) == list(range(len(p.source) + len(p.target)))
        assert all(len(window.ids) <= tokenizer.longest for window in own)
    assert len(windows(PAIRS[:1], tokenizer, reading)[0]) == (1 if reading == "together" else 2)
    assert len(windows(PAIRS[2:3], tokenizer, "together")[0]) == 2  # 70 letters, and 48 places


def test_pieces_are_those_of_their_words(encoder):
    tokenizer = checkpoint.tokenizer(encoder)
    ((window,),) = windows([pair("-LRB- ab", "c")], tokenizer, "together")
    assert tokenizer.split.convert_ids_to_tokens(window.ids) == ["[CLS]", "(", "a", "##b", "[SEP]", "c", "[SEP]"]
    assert window.word.tolist() == [-1, 0, 1, 1, -1, 2, -1]


def test_vectors_are_means_of_pieces_in_any_batch(encoder):
    network, tokenizer = checkpoint.network(encoder), checkpoint.tokenizer(encoder)
    sizes = [len(p.source) + len(p.target) for p in PAIRS]
    read = windows(PAIRS, tokenizer, "together")
    with torch.no_grad():
        (found,) = word_vectors(network, read, sizes, [1])
        for p, own, vectors in zip(PAIRS, read, found.split(sizes), strict=True):
            expected = torch.zeros(len(p.source) + len(p.target), 16)
            for window in own:
                inputs = {"input_ids": window.ids, "token_type_ids": window.segments}
                inputs = {name: torch.tensor(value)[None] for name, value in inputs.items()}
                state = network(**inputs, output_hidden_states=True).hidden_states[1][0]
                for word in np.unique(window.word[window.word >= 0]):
                    expected[word] = state[torch.tensor(window.word == word)].mean(0)
            torch.testing.assert_close(vectors, expected, atol=1e-5, rtol=1e-4)


def test_a_word_without_pieces_is_zero(encoder):
    network, tokenizer = checkpoint.network(encoder), checkpoint.tokenizer(encoder)
    read = windows([pair("a \u0301 b", "c")], tokenizer, "together")
    (found,) = word_vectors(network, read, [4], [2])
    assert not found[1].any() and found[[0, 2, 3]].any(1).all()


def test_layers_are_numbers_that_exist(encoder):
    network = checkpoint.network(encoder)
    assert checked_layers(network, ()) == (0, 1, 2)
    assert checked_layers(network, (0, -1)) == (0, 2)
    for wrong in ((3,), (-4,), (2, -1)):
        with pytest.raises(ConfigError, match="to 2"):
            checked_layers(network, wrong)


def test_adapters_start_at_zero_and_leave_the_network_frozen(encoder):
    read = windows(PAIRS[:1], checkpoint.tokenizer(encoder), "together")
    plain, adapted = checkpoint.network(encoder), adapt(checkpoint.network(encoder), 2)
    before, after = (word_vectors(network, read, [11], [2])[0] for network in (plain, adapted))
    assert torch.equal(before, after)
    after.square().sum().backward()
    learning = {name for name, p in adapted.named_parameters() if p.grad is not None and p.grad.any()}
    assert learning and all(name.endswith(".wide") for name in learning)  # the narrow ones wait for the wide ones
    assert sum(isinstance(module, Adapted) for module in adapted.modules()) == 2 * 6


def test_folded_adapters_do_the_same(encoder):
    """Folding keeps what adapters have learnt, and leaves no module of theirs."""
    read = windows(PAIRS[:1], checkpoint.tokenizer(encoder))
    plain, adapted = checkpoint.network(encoder), adapt(checkpoint.network(encoder), 2)
    torch.manual_seed(3)
    for module in adapted.modules():
        if isinstance(module, Adapted):
            torch.nn.init.normal_(module.wide, std=0.5)
    with torch.no_grad():
        unadapted, before = (word_vectors(network, read, [11], [2])[0] for network in (plain, adapted))
        after = word_vectors(fold(adapted), read, [11], [2])[0]
    assert (after - before).abs().max() < 1e-5 < 0.01 < (after - unadapted).abs().max()
    assert not any(isinstance(module, Adapted) for module in adapted.modules())
    assert not any(p.requires_grad for p in adapted.parameters())


def test_an_adapter_is_a_product_of_its_matrices():
    linear = torch.nn.Linear(5, 3)
    adapter = Adapted(linear, 2)
    torch.nn.init.normal_(adapter.wide)
    x = torch.randn(4, 5)
    weight = linear.weight + 2 * adapter.wide @ adapter.narrow
    torch.testing.assert_close(adapter(x), x @ weight.T + linear.bias)


def test_a_folder_without_a_checkpoint_is_an_error(tmp_path, encoder):
    with pytest.raises(ConfigError, match=r"(?s)minilm, mpnet.*config.json"):
        checkpoint.located(str(tmp_path))
    broken = tmp_path / "broken"
    broken.mkdir()
    for name in ("config.json", "tokenizer.json", "model.safetensors"):
        (broken / name).write_text("{")
    with pytest.raises(ConfigError, match="cannot be opened"):
        checkpoint.network(str(broken))
    with pytest.raises(ConfigError, match="cannot be opened"):
        checkpoint.tokenizer(str(broken))


def test_a_missing_package_names_the_command(monkeypatch):
    monkeypatch.setattr(checkpoint, "find_spec", lambda name: None)
    with pytest.raises(MissingResource, match=r"pip install 'jacana-torch\[neural\]'"):
        checkpoint.network("minilm")


def test_nothing_is_imported_before_it_is_needed(monkeypatch):
    spec = importlib.util.find_spec("jacana_torch.encoders.checkpoint")
    real = builtins.__import__

    def refuse(name, *rest, **others):
        assert not name.startswith(("transformers", "tokenizers")), name
        return real(name, *rest, **others)

    monkeypatch.setattr(builtins, "__import__", refuse)
    spec.loader.exec_module(importlib.util.module_from_spec(spec))


def test_layers_above_the_deepest_are_left_out(encoder):
    read = windows(PAIRS[:1], checkpoint.tokenizer(encoder))
    whole, part = checkpoint.network(encoder), cut(checkpoint.network(encoder), 1)
    assert len(list(part.parameters())) < len(list(whole.parameters()))
    expected, found = (word_vectors(network, read, [11], [0, 1]) for network in (whole, part))
    assert all(torch.equal(a, b) for a, b in zip(expected, found, strict=True))
    assert cut(cut(checkpoint.network(encoder), 2), 0).encoder.layer[0] is not None  # one is left to run
