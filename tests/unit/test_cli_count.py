"""`jacana-torch count`: count vectors that the distsim family reads."""

from __future__ import annotations

import stat

import numpy as np
import pytest

from jacana_torch.cli import main
from jacana_torch.features.counted_vectors import CountedVectors
from jacana_torch.features.families.distsim import DistSim
from jacana_torch.features.grid import Grid
from jacana_torch.types import Sentence, SentencePair

LINES = "the cat chased a mouse\tthe dog chased a mouse\n" * 5 + "we paint walls\twe paint doors\n" * 5


@pytest.fixture
def counts(tmp_path):
    corpus, out = tmp_path / "corpus.txt", tmp_path / "counts.npz"
    corpus.write_text(LINES)
    assert main(["count", str(corpus), str(out)]) == 0
    return out


def test_words_of_the_same_contexts_are_similar(counts):
    vectors = CountedVectors.load(counts)
    cat, dog, walls = vectors.lookup(["cat", "dog", "walls"])
    near, far = vectors.similarity(np.array([cat, cat]), np.array([dog, walls])).max(axis=1)
    assert near > 0.9 and far < 0.1


def test_the_family_reads_them(counts):
    family = DistSim(own=False, counts=str(counts))
    blocks = family(Grid([SentencePair(Sentence(("cat",)), Sentence(("dog", "walls")))]))
    block = blocks.link[0]
    best = block.dense()[:, block.names.index("corpus.max")]
    assert best[0] > 0.9 and best[1] < 0.1


def test_other_users_can_read_the_file(counts):
    assert stat.S_IMODE(counts.stat().st_mode) & 0o044 == 0o044


def test_a_missing_corpus_is_a_mistake(tmp_path, capsys):
    assert main(["count", str(tmp_path / "none.txt"), str(tmp_path / "out.npz")]) == 2
    assert "none.txt" in capsys.readouterr().err and not (tmp_path / "out.npz").exists()


def test_a_missing_folder_is_a_mistake(tmp_path, capsys):
    (tmp_path / "in.txt").write_text("a cat\ta dog\n")
    assert main(["count", str(tmp_path / "in.txt"), str(tmp_path / "no" / "out.npz"), "--min-count", "1"]) == 2
    assert f"{tmp_path}/no/out.npz: cannot be written" in capsys.readouterr().err
