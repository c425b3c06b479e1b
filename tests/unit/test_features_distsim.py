"""Distributional similarity against dense vectors written out in plain Python, cell by cell."""

from __future__ import annotations

import math
import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jacana_torch.errors import ConfigError, JacanaError, MissingLayer
from jacana_torch.features.counted_vectors import CountedVectors, count_vectors
from jacana_torch.features.families.distsim import DistSim
from jacana_torch.features.featureset import FeatureSet
from jacana_torch.features.grid import Grid
from jacana_torch.types import Sentence, SentencePair

WORDS = "a a a the dog Dog cat ran slept in barn .".split()
LABELS = ["det", "nsubj", "dobj", "prep"]
MEASURES = [f"{a}.{s}" for a in ("ppmi", "ttest") for s in ("dice", "jaccard", "cosine")]


def random_sentence(rng: random.Random, length: int) -> Sentence:
    order = rng.sample(range(length), length)
    heads, labels = [-1] * length, ["root"] * length
    for rank in range(1, length):
        heads[order[rank]], labels[order[rank]] = rng.choice(order[:rank]), rng.choice(LABELS)
    return Sentence(tuple(rng.choice(WORDS) for _ in range(length)), {"head": heads, "deprel": labels})


def random_pairs(seed: int, count: int = 10, longest: int = 10) -> list[SentencePair]:
    rng = random.Random(seed)
    return [
        SentencePair(random_sentence(rng, rng.randint(1, longest)), random_sentence(rng, rng.randint(1, longest)))
        for _ in range(count)
    ]


def compared(x: list[float], y: list[float]) -> list[float]:
    """Dice, Jaccard and cosine, by the book."""
    low, high = sum(map(min, x, y)), sum(map(max, x, y))
    norm = math.sqrt(sum(v * v for v in x) * sum(v * v for v in y))
    total = sum(x) + sum(y)
    return [
        2 * low / total if total > 1e-12 else 0.0,
        low / high if high > 1e-12 else 0.0,
        sum(a * b for a, b in zip(x, y, strict=True)) / norm if norm > 1e-12 else 0.0,
    ]


def dense_vectors(pair: SentencePair, smoothing: float) -> dict[str, tuple[list[float], list[float]]]:
    """For each word the PPMI and the t-test vector over all contexts of the pair."""
    seen: Counter = Counter()
    for sentence in (pair.source, pair.target):
        forms = [t.lower() for t in sentence.tokens]
        for i, form in enumerate(forms):
            head = sentence.layer("head")[i]
            seen[form, (sentence.layer("deprel")[i], forms[head] if head >= 0 else None)] += 1
    words, contexts = sorted({w for w, _ in seen}), sorted({f for _, f in seen}, key=str)
    count = {(w, f): seen[w, f] + smoothing for w in words for f in contexts}
    total = sum(count.values())
    p_word = {w: sum(count[w, f] for f in contexts) / total for w in words}
    p_context = {f: sum(count[w, f] for w in words) / total for f in contexts}
    out = {}
    for w in words:
        expected = [p_word[w] * p_context[f] for f in contexts]
        p = [count[w, f] / total for f in contexts]
        out[w] = (
            [max(0.0, math.log2(a / b)) for a, b in zip(p, expected, strict=True)],
            [max(0.0, (a - b) / math.sqrt(b)) for a, b in zip(p, expected, strict=True)],
        )
    return out


def columns(blocks) -> dict[str, np.ndarray]:
    out = {name: block.dense()[:, i] for block in blocks for i, name in enumerate(block.names)}
    assert len(out) == sum(len(block.names) for block in blocks)
    assert all(np.isfinite(v).all() and v.min(initial=0) >= 0 and v.max(initial=0) <= 1 for v in out.values())
    return out


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("smoothing", [2.0, 0.5])
def test_the_pairs_own_similarity_equals_dense_vectors(seed, smoothing):
    pairs = random_pairs(seed)
    grid = Grid(pairs)
    blocks = DistSim(smoothing=smoothing)(grid)
    link, null = columns(blocks.link), columns(blocks.null)
    cell = token = 0
    for pair in pairs:
        vectors = dense_vectors(pair, smoothing)
        for a in pair.source.tokens:
            row = []
            for b in pair.target.tokens:
                x, y = vectors[a.lower()], vectors[b.lower()]
                expected = compared(x[0], y[0]) + compared(x[1], y[1])
                assert [link[f"own.{m}"][cell] for m in MEASURES] == pytest.approx(expected, abs=1e-9)
                row.append((max(expected), a.lower() != b.lower()))
                assert link["own.max"][cell] == pytest.approx(row[-1][0], abs=1e-9)
                assert link["own.max.not_identical"][cell] == pytest.approx(math.prod(row[-1]), abs=1e-9)
                cell += 1
            assert null["own.row_max"][token] == pytest.approx(max(v for v, _ in row), abs=1e-9)
            assert null["own.row_max.not_identical"][token] == pytest.approx(max(map(math.prod, row)), abs=1e-9)
            token += 1


def test_words_as_frequent_as_expected_are_not_associated():
    """All associations are zero but for rounding, so no similarity is left."""
    relations = (("root", "root", "det", "root"), ("root", "det", "root", "root"))
    for smoothing, labels in ((1.7, relations[0]), (1.7, relations[1])):
        source = Sentence(("a",) * 4, {"head": (-1, 0, 0, 0), "deprel": labels})
        x = SentencePair(source, Sentence(("a",), {"head": (-1,), "deprel": ("root",)}))
        found = columns(DistSim(smoothing=smoothing)(Grid([x])).link)
        assert not any(found[f"own.{name}"].any() for name in MEASURES)


def test_features_do_not_depend_on_the_batch():
    pairs = random_pairs(50)
    together, start = columns(DistSim()(Grid(pairs)).link), 0
    for pair in pairs:
        alone = columns(DistSim()(Grid([pair])).link)
        n = len(pair.source) * len(pair.target)
        for name, values in alone.items():
            np.testing.assert_allclose(together[name][start : start + n], values, atol=1e-9)
        start += n


def sentences_of(text: str) -> list[Sentence]:
    return [Sentence(tuple(line.split())) for line in text.strip().splitlines()]


CORPUS = """
the red fox ate a small hen
the grey fox ate the small duck
A red wolf chased a small hen
the grey wolf chased the duck
a fox slept and a wolf slept
"""


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.lists(st.sampled_from("a b c d E e".split()), max_size=8), max_size=12),
    st.integers(1, 3), st.integers(1, 3),
)  # fmt: skip
def test_window_counts_and_similarities_equal_plain_python(lines, window, min_count):
    sentences = [Sentence(tuple(line)) for line in lines]
    vectors = count_vectors(sentences, window=window, min_count=min_count, max_contexts=1000)
    seen: Counter = Counter()
    for line in lines:
        forms = [t.lower() for t in line]
        seen.update((a, b) for i, a in enumerate(forms) for j, b in enumerate(forms) if 0 < abs(i - j) <= window)
    total = {w: sum(n for (a, _), n in seen.items() if a == w) for w in "abcde"}
    words = [w for w in "abcde" if total[w] >= min_count]
    assert sorted(vectors.words) == words
    everything = sum(seen.values())
    tables = []
    for kind in (0, 1):
        table = {}
        for w in words:
            values = []
            for f in words:
                n, e = seen[w, f], total[w] * total[f] / everything
                positive = n > 0 and n - e > 1e-12
                values.append((math.log2(n / e) if kind == 0 else (n - e) / math.sqrt(e)) if positive else 0.0)
            table[w] = values
        tables.append(table)
    pairs = [(a, b) for a in words for b in words]
    rows = [vectors.lookup([p[side] for p in pairs]) for side in (0, 1)]
    expected = [compared(tables[0][a], tables[0][b]) + compared(tables[1][a], tables[1][b]) for a, b in pairs]
    if pairs:
        np.testing.assert_allclose(vectors.similarity(*rows), expected, atol=1e-9)


def test_counting_in_batches_changes_nothing(monkeypatch):
    from jacana_torch.features import counted_vectors as count

    sentences = [s for _ in range(3) for p in random_pairs(7) for s in (p.source, p.target)]
    for kind in ("window", "dependency"):
        whole = count_vectors(sentences, contexts=kind)
        monkeypatch.setattr(count, "SENTENCES_AT_A_TIME", 4)
        parts = count_vectors(iter(sentences), contexts=kind)
        monkeypatch.undo()
        assert whole.words == parts.words and whole.total == parts.total
        assert (whole.counts != parts.counts).nnz == 0 and whole.counts.nnz > 0


def test_dependency_contexts_are_relation_and_head():
    parse = {"head": [1, -1], "deprel": ["nsubj", "root"]}
    sentences = [
        Sentence(("Cats", "purr"), parse),
        Sentence(("dogs", "purr"), parse),
        Sentence(("cats", "hunt"), parse),
    ]
    vectors = count_vectors(sentences, contexts="dependency", min_count=1)
    assert vectors.words == ("cats", "purr", "dogs", "hunt") and vectors.total == 6
    assert vectors.counts.toarray().sum() == 6
    cats, purr, dogs, hunt = vectors.lookup(["cats", "purr", "dogs", "hunt"])
    similarity = vectors.similarity(np.array([cats, purr, cats]), np.array([dogs, hunt, purr]))
    assert (similarity[0] > 0).all() and similarity[1][[2, 5]] == pytest.approx(1.0) and not similarity[2].any()


def test_contexts_as_frequent_as_expected_are_not_kept():
    assert count_vectors(sentences_of("a a"), min_count=1).counts.nnz == 0
    assert count_vectors(sentences_of("a b"), min_count=1).counts.nnz == 2


def test_only_the_strongest_contexts_are_kept():
    vectors = count_vectors(sentences_of(CORPUS), window=3, min_count=1, max_contexts=2)
    assert np.diff(vectors.counts.indptr).max() == 2


def test_words_with_like_neighbours_are_alike_and_unknown_ones_are_not(tmp_path):
    path = tmp_path / "counts.npz"
    count_vectors(sentences_of(CORPUS)).save(path)
    assert list(tmp_path.iterdir()) == [path]
    pair = SentencePair(Sentence(("Fox", "zebra")), Sentence(("wolf", "hen", "Zebra")))
    family = DistSim(own=False, counts=str(path))
    assert family.requires == ()
    blocks = family(Grid([pair]))
    link, null = columns(blocks.link), columns(blocks.null)
    assert link["corpus.max"][0] > link["corpus.max"][1]
    assert list(link["corpus.max"][3:]) == [0, 0, 1] and list(link["corpus.both_known"]) == [1, 1, 0, 0, 0, 0]
    assert link["corpus.max.not_identical"][5] == 0 and null["corpus.row_max"][1] == 1
    assert null["corpus.row_max"][0] == link["corpus.max"][0]


def test_saved_vectors_come_back(tmp_path):
    vectors = count_vectors(sentences_of(CORPUS))
    vectors.save(tmp_path / "v.npz")
    again = CountedVectors.load(tmp_path / "v.npz")
    rows = np.arange(len(vectors.words))
    assert again.words == vectors.words and again.contexts == "window" and again.total == vectors.total
    assert np.array_equal(again.similarity(rows, rows[::-1]), vectors.similarity(rows, rows[::-1]))
    empty = count_vectors([])
    empty.save(tmp_path / "e.npz")
    assert CountedVectors.load(tmp_path / "e.npz").words == ()


def test_damaged_and_missing_files_say_so(tmp_path):
    count_vectors(sentences_of(CORPUS)).save(tmp_path / "v.npz")
    whole = (tmp_path / "v.npz").read_bytes()
    (tmp_path / "cut.npz").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "text.npz").write_text("fox 0.1 0.2\n")
    (tmp_path / "empty.npz").write_bytes(b"")
    np.savez(tmp_path / "other.npz", a=np.zeros(3))
    for name in ("cut.npz", "text.npz", "empty.npz", "other.npz", "absent.npz"):
        with pytest.raises(JacanaError, match=name):
            DistSim(own=False, counts=str(tmp_path / name))(
                Grid([SentencePair(Sentence(("a",)), Sentence(("b",)))])
            )


def test_settings_that_cannot_be(tmp_path):
    for bad in ({"own": False}, {"smoothing": 0.0}):
        with pytest.raises(ConfigError):
            DistSim(**bad)
    for bad in ({"contexts": "phases"}, {"window": 0}, {"min_count": 0}, {"max_contexts": 0}):
        with pytest.raises(ConfigError):
            count_vectors([], **bad)
    with pytest.raises(MissingLayer, match="head"):
        DistSim()(Grid([SentencePair(Sentence(("a",)), Sentence(("b",)))]))
    assert DistSim().requires == ("head", "deprel")


def test_empty_sentences_and_an_empty_grid():
    empty = Sentence((), {"head": (), "deprel": ()})
    full = random_pairs(1, count=1)[0]
    for pairs in ([], [SentencePair(empty, empty)], [SentencePair(full.source, empty), full]):
        batch = FeatureSet({"distsim": DistSim()})(pairs)
        assert all(len(b.dense()) == sum(len(p.source) * len(p.target) for p in pairs) for b in batch.link)
