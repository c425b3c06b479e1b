"""Static vectors against plain Python, every column of every cell, on small files that the test writes."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from jacana_torch import resources
from jacana_torch.errors import ConfigError, MissingResource
from jacana_torch.features.families.distsim import DistSim, label_of
from jacana_torch.features.featureset import FeatureSet, blocks_of
from jacana_torch.features.grid import Grid
from jacana_torch.types import Sentence, SentencePair

pytestmark = pytest.mark.usefixtures("own_home")
KNOWN = "red blue fox hen ran sat the barn (".split()
WORDS = [*KNOWN, "Red", "FOX", "zyx", "Zyx", "qrs", "-LRB-"]
STEPS = (0.3, 0.6)


def static(*vectors: str, **settings) -> DistSim:
    return DistSim(own=False, vectors=vectors, **settings)


@pytest.fixture
def store(tmp_path):
    """A file in GloVe's format, and the vectors in it as plain lists."""
    rng = random.Random(5)
    vectors = {word: [round(rng.gauss(0, 1), 3) for _ in range(4)] for word in KNOWN}
    vectors["hen"] = [round(x + 0.2, 3) for x in vectors["fox"]]
    path = tmp_path / "tiny.txt"
    path.write_text("".join(f"{w} {' '.join(map(str, v))}\n" for w, v in vectors.items()))
    return str(path), vectors


def random_pairs(seed: int, count: int = 8) -> list[SentencePair]:
    rng = random.Random(seed)

    def sentence() -> Sentence:
        return Sentence(tuple(rng.choice(WORDS) for _ in range(rng.randint(1, 6))))

    return [SentencePair(sentence(), sentence()) for _ in range(count)]


class Twin:
    def __init__(self, pair: SentencePair, vectors: dict[str, list[float]]) -> None:
        forms = {"-LRB-": "("}
        self.words = [[forms.get(t, t).lower() for t in s.tokens] for s in (pair.source, pair.target)]
        self.vectors = {w: self.unit(v) for w, v in vectors.items()}

    @staticmethod
    def unit(v: list[float]) -> list[float]:
        norm = math.sqrt(sum(x * x for x in v))
        return [x / norm for x in v] if norm > 1e-3 else [0.0] * len(v)

    def vector(self, side: int, *positions: int) -> list[float]:
        """The sum of some words' unit vectors; nothing if one is outside the sentence."""
        if any(not 0 <= p < len(self.words[side]) for p in positions):
            return [0.0] * 4
        parts = [self.vectors.get(self.words[side][p], [0.0] * 4) for p in positions]
        return [sum(x) for x in zip(*parts, strict=True)]

    def raw(self, ms: tuple[int, ...], ns: tuple[int, ...]) -> float:
        x, y = self.unit(self.vector(0, *ms)), self.unit(self.vector(1, *ns))
        return sum(a * b for a, b in zip(x, y, strict=True))

    def same(self, m: int, n: int) -> bool:
        return self.words[0][m] == self.words[1][n]

    def cosine(self, m: int, n: int) -> float:
        return 1.0 if self.same(m, n) else self.raw((m,), (n,))

    def cell(self, m: int, n: int) -> dict[str, float]:
        rows, columns = range(len(self.words[0])), range(len(self.words[1]))
        c, raw = self.cosine(m, n), self.raw((m,), (n,))
        unlike = 0.0 if self.same(m, n) else max(0.0, raw)
        known = [self.words[0][m] in self.vectors, self.words[1][n] in self.vectors]
        row = c - max([self.cosine(m, j) for j in columns if j != n], default=0.0)
        column = c - max([self.cosine(i, n) for i in rows if i != m], default=0.0)
        lonely_source = [not any(self.same(i, j) for j in columns) for i in rows]
        lonely_target = [not any(self.same(i, j) for i in rows) for j in columns]

        def value(i: int, j: int) -> float:
            return max(0.0, self.cosine(i, j)) if lonely_source[i] and lonely_target[j] else 0.0

        v = value(m, n)
        free_row = v > 1e-5 + max([value(m, j) for j in columns if j != n], default=0.0)
        free_column = v > 1e-5 + max([value(i, n) for i in rows if i != m], default=0.0)
        out = {
            "cosine": c, "cosine.not_identical": unlike, "cosine.not_identical.squared": unlike**2,
            "known.both": all(known), "known.one": known[0] != known[1], "known.neither": not any(known),
            **{f"cosine>={s}": unlike >= s for s in STEPS},
            "row.best": row > 1e-5, "column.best": column > 1e-5, "both.best": row > 1e-5 and column > 1e-5,
            "row.margin": max(-1.0, min(1.0, row)), "column.margin": max(-1.0, min(1.0, column)),
            "free": lonely_source[m] and lonely_target[n], "free.cosine": v, "free.row.best": free_row,
            "free.column.best": free_column, "free.both.best": free_row and free_column,
            "free.both.best.cosine": v * (free_row and free_column),
        }  # fmt: skip
        for name, d in (("next", 1), ("previous", -1)):
            out[f"phrase.source_{name}"] = self.raw((m, m + d), (n,))
            out[f"phrase.target_{name}"] = self.raw((m,), (n, n + d))
            out[f"phrase.both_{name}"] = self.raw((m, m + d), (n, n + d))
        best = max(out[f"phrase.{side}_{name}"] for side in ("source", "target") for name in ("next", "previous"))
        out["phrase.gain"] = 0.0 if self.same(m, n) else max(0.0, best - max(0.0, raw))
        return out

    def null(self, m: int) -> dict[str, float]:
        columns = range(len(self.words[1]))
        unlike = max(0.0, *(self.raw((m,), (j,)) for j in columns if not self.same(m, j)), 0.0)
        lonely, known = not any(self.same(m, j) for j in columns), self.words[0][m] in self.vectors
        return {
            "row_max": max(0.0, *(self.cosine(m, j) for j in columns)), "row_max.not_identical": unlike,
            "row_max.free": unlike * lonely, "unknown": not known,
            "nothing_near": lonely and known and unlike < 0.4,
            "nothing_at_all": lonely and known and unlike < 0.25,
        }  # fmt: skip


def table(blocks) -> tuple[list[str], np.ndarray]:
    names = [name for block in blocks for name in block.names]
    assert len(names) == len(set(names))
    values = np.hstack([block.dense() for block in blocks])
    assert np.isfinite(values).all() and np.abs(values).max(initial=0) <= 1 and values.dtype == np.float64
    return names, values


@pytest.mark.parametrize("seed", range(6))
def test_every_column_of_every_cell_equals_the_twin(seed, store):
    path, vectors = store
    pairs = random_pairs(seed)
    grid = Grid(pairs)
    blocks = blocks_of(static(path, steps=STEPS), grid)
    names, link = table(blocks.link)
    null_names, null = table(blocks.null)
    twins = [Twin(pair, vectors) for pair in pairs]
    for c in range(grid.n_cells):
        expected = {
            f"static.tiny.{k}": float(v)
            for k, v in twins[grid.pair[c]].cell(int(grid.m[c]), int(grid.n[c])).items()
        }
        assert dict(zip(names, link[c], strict=True)) == pytest.approx(expected, abs=2e-6)
    for t in range(len(grid.source_pair)):
        expected = twins[grid.source_pair[t]].null(int(grid.source_position[t]))
        got = dict(zip(null_names, null[t], strict=True))
        assert got == pytest.approx({f"static.tiny.{k}": float(v) for k, v in expected.items()}, abs=2e-6)


def test_features_do_not_depend_on_the_batch(store):
    pairs = random_pairs(31)
    _, together = table(blocks_of(static(store[0]), Grid(pairs)).link)
    alone = [table(blocks_of(static(store[0]), Grid([pair])).link)[1] for pair in pairs]
    np.testing.assert_allclose(together, np.vstack(alone), atol=1e-6)


def test_two_sets_of_vectors_have_columns_each(store, tmp_path):
    other = tmp_path / "other.txt"
    other.write_text("red 1 0\nblue 0 1\n")
    pair = SentencePair(Sentence(("red",)), Sentence(("blue",)))
    names, values = table(blocks_of(static(store[0], str(other), phrases=False), Grid([pair])).link)
    assert values[0][names.index("static.other.cosine")] == 0 and values[0][names.index("static.tiny.cosine")] != 0
    assert not any("phrase" in name for name in names)
    assert label_of("glove-840b") == "glove-840b" and label_of("/a/b/glove.6B.50d.txt") == "glove.6B.50d"


def write_vectors(path, rows: dict[str, np.ndarray]) -> str:
    path.write_text("".join(f"{word} {' '.join(map(str, row))}\n" for word, row in rows.items()))
    return str(path)


def test_equal_cosines_are_nobodys_best(tmp_path):
    """Vectors of the same numbers in another order are equally near to equal components, but for rounding."""
    rng = np.random.default_rng(2)
    vector, words = rng.uniform(size=50), [f"w{k}" for k in range(36)]
    rows = {word: rng.permutation(vector) for word in words}
    path = write_vectors(tmp_path / "same.txt", {**rows, "red": np.ones(50)})
    pairs = [SentencePair(Sentence(("red",)), Sentence(tuple(words[k : k + 3]))) for k in range(0, 36, 3)]
    for grid, side in ((Grid(pairs), "row"), (Grid([x.flip() for x in pairs]), "column")):
        names, values = table(blocks_of(static(path), grid).link)
        cosine = values[:, names.index("static.same.cosine")]
        assert cosine.min() > 0.5 and 0 < np.ptp(cosine) < 1e-6
        for name in (f"{side}.best", "both.best", f"free.{side}.best", "free.both.best"):
            assert not values[:, names.index(f"static.same.{name}")].any(), name


def test_phrases_of_opposite_words_have_no_direction(tmp_path):
    """Their vectors cancel; what is left is rounding."""
    up = np.random.default_rng(3).normal(size=50)
    up[7] = 0.05 * np.linalg.norm(up)
    down, other = -up, np.zeros(50)
    down[7], other[7] = -1.01 * up[7], 1.0
    path = write_vectors(tmp_path / "opposite.txt", {"up": up, "down": down, "other": other})
    pair = SentencePair(Sentence(("up", "down")), Sentence(("other", "other")))
    names, values = table(blocks_of(static(path), Grid([pair])).link)
    for name in ("source_next", "source_previous", "both_next", "both_previous"):
        assert not values[:, names.index(f"static.opposite.phrase.{name}")].any(), name


def test_invalid_settings(store):
    for bad in ((), (store[0], store[0])):
        with pytest.raises(ConfigError):
            static(*bad)
    with pytest.raises(MissingResource, match="no-such-vectors"):
        blocks_of(static("no-such-vectors"), Grid(random_pairs(0)))


def test_empty_sentences_and_an_empty_grid(store):
    empty, full = Sentence(()), random_pairs(1, count=1)[0]
    for pairs in ([], [SentencePair(empty, empty)], [SentencePair(full.source, empty), full]):
        batch = FeatureSet({"distsim": static(store[0])})(pairs)
        assert all(len(b.dense()) == sum(len(p.source) * len(p.target) for p in pairs) for b in batch.link)


def test_real_vectors_find_synonyms():
    if not resources.available("glove-840b"):
        pytest.skip("glove-840b is not installed: jacana-torch resources install glove-840b")
    pair = SentencePair(Sentence(("Physician",)), Sentence(("doctor", "Tuesday", "physician")))
    names, values = table(blocks_of(static("glove-840b"), Grid([pair])).link)
    cosine = values[:, names.index("static.glove-840b.cosine")]
    assert cosine[2] == 1 and cosine[0] > 0.5 > cosine[1]
