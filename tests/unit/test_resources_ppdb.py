"""PPDB pairs as a symmetric set, on files written here."""

from __future__ import annotations

import pickle
import random
import zipfile
from pathlib import Path

import numpy as np
import pytest

from jacana_torch.errors import JacanaError
from jacana_torch.resources import ppdb_pairs

pytestmark = pytest.mark.usefixtures("own_home")


def write_pairs(folder: Path, pairs) -> Path:
    file = folder / "pairs"
    file.write_text("".join(f"{a}\t{b}\n" for a, b in pairs), encoding="utf-8")
    return file


def test_ppdb_is_a_symmetric_set(tmp_path):
    rng = random.Random(3)
    words = [f"w{k}" for k in range(60)] + ["Élan", "it's", "10/17/01"]
    pairs = [(rng.choice(words), rng.choice(words)) for _ in range(300)]
    found = ppdb_pairs.load(write_pairs(tmp_path, pairs))
    expected = {frozenset((a.lower(), b.lower())) for a, b in pairs}
    assert len(found) == len(expected)
    left = rng.choices([*words, *(w.upper() for w in words), "other", ""], k=4000)
    right = rng.choices([*words, "another", ""], k=4000)
    assert found.contains(left, right).tolist() == [
        frozenset((a.lower(), b.lower())) in expected for a, b in zip(left, right, strict=True)
    ]
    assert np.array_equal(found.contains(left, right), found.contains(right, left))
    assert found.contains([], []).shape == (0,)
    with pytest.raises(ValueError, match="1 left words"):
        found.contains(["a"], [])
    assert pickle.loads(pickle.dumps(found)) is found


@pytest.mark.parametrize("line", ["only", "a\tb\tc", "\tb", ""])
def test_lines_that_are_not_pairs_are_errors(tmp_path, line):
    file = tmp_path / "pairs"
    file.write_text(f"a\tb\n{line}\nc\td\n")
    with pytest.raises(JacanaError, match=r"pairs:2: expected a pair of words"):
        ppdb_pairs.load(file)


def test_an_empty_file_has_no_pairs(tmp_path):
    (tmp_path / "pairs").write_text("")
    assert ppdb_pairs.load(tmp_path / "pairs").contains(["a"], ["a"]).tolist() == [False]


def test_ppdb_in_the_zip_that_nltk_downloads(tmp_path):
    from jacana_torch.resources.catalogue import PPDB_FILE

    with zipfile.ZipFile(tmp_path / "mwa_ppdb.zip", "w") as out:
        out.writestr(f"mwa_ppdb/{PPDB_FILE}", "quick\tspeedy\r\nbig\tlarge\r\n")
    found = ppdb_pairs.load(tmp_path / "mwa_ppdb.zip")
    assert found.contains(["Large", "quick"], ["big", "big"]).tolist() == [True, False]
