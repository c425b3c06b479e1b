"""Static vectors in every format, on files written here."""

from __future__ import annotations

import gzip
import json
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest

from jacana_torch import resources
from jacana_torch.errors import JacanaError, MissingResource
from jacana_torch.resources import vector_files
from jacana_torch.resources.static_vectors import load

pytestmark = pytest.mark.usefixtures("own_home")
WORDS = ["the", "Lisbon", "naïve", "a b c", "at .", "x", "1,000", "😀", "the", "nil"]


def matrix(rows: int = len(WORDS), dim: int = 5, seed: int = 0) -> np.ndarray:
    made = np.random.default_rng(seed).normal(size=(rows, dim)).astype(np.float32)
    made[-1] = 0
    return made


def text_lines(words, vectors) -> str:
    return "".join(f"{w} {' '.join(repr(float(x)) for x in v)}\n" for w, v in zip(words, vectors, strict=True))


def as_glove(folder, words, vectors):
    (folder / "v.txt").write_text(text_lines(words, vectors), encoding="utf-8")
    return folder / "v.txt"


def as_glove_windows(folder, words, vectors):
    (folder / "w.txt").write_bytes(text_lines(words, vectors).replace("\n", " \r\n").encode())
    return folder / "w.txt"


def as_word2vec_text(folder, words, vectors):
    (folder / "v.vec").write_text(
        f"{len(words)} {vectors.shape[1]}\n" + text_lines(words, vectors), encoding="utf-8"
    )
    return folder / "v.vec"


def as_gzip(folder, words, vectors):
    with gzip.open(folder / "v.txt.gz", "wb") as out:
        out.write(text_lines(words, vectors).encode())
    return folder / "v.txt.gz"


def as_zip(folder, words, vectors):
    with zipfile.ZipFile(folder / "v.zip", "w", zipfile.ZIP_DEFLATED) as out:
        out.writestr("v.txt", text_lines(words, vectors))
    return folder / "v.zip"


def as_binary(folder, words, vectors, end=b"\n"):
    with open(folder / "v.bin", "wb") as out:
        out.write(f"{len(words)} {vectors.shape[1]}\n".encode())
        for word, vector in zip(words, vectors, strict=True):
            out.write(word.replace(" ", "_").encode() + b" " + vector.astype("<f4").tobytes() + end)
    return folder / "v.bin"


def as_binary_without_ends(folder, words, vectors):
    return as_binary(folder, words, vectors, b"")


def as_npy(folder, words, vectors):
    np.save(folder / "v.npy", vectors)
    (folder / "v.json").write_text(json.dumps(words))
    return folder / "v.npy"


def as_directory(folder, words, vectors):
    (folder / "d").mkdir()
    np.save(folder / "d" / "any.npy", vectors.astype(np.float64))
    (folder / "d" / "words.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
    return folder / "d"


FORMATS = [
    as_glove, as_glove_windows, as_word2vec_text, as_gzip, as_zip, as_binary, as_binary_without_ends, as_npy,
    as_directory,
]  # fmt: skip


@pytest.mark.parametrize("write", FORMATS)
@pytest.mark.parametrize("rows", [len(WORDS), 9001])
def test_every_format_gives_the_same_normalised_vectors(tmp_path, write, rows):
    words = WORDS + [f"w{k}" for k in range(rows - len(WORDS))]
    given = matrix(rows)
    found = resources.vectors(str(write(tmp_path, words, given)))
    spaces = "_" if "binary" in write.__name__ else " "
    expected: dict[str, list[float]] = {}
    for word, vector in zip(words, given.tolist(), strict=True):
        norm = sum(x * x for x in vector) ** 0.5
        expected.setdefault(word.replace(" ", spaces), [x / norm if norm else 0.0 for x in vector])
    assert len(found) == len(expected) and found.dim == 5 and found.matrix.dtype == np.float32
    assert found.lookup(list(expected)).tolist() == list(range(len(expected)))
    assert [found.word(k) for k in range(len(found))] == list(expected)
    assert np.abs(found.matrix - np.array(list(expected.values()))).max() < 1e-6


def test_case_falls_back_to_lower_then_capitalised(tmp_path):
    words = ["us", "US", "Rome", "bread", "Polish", "polish"]
    found = load(as_glove(tmp_path, words, matrix(6)))
    asked = ["POLISH", "Polish", "us", "US", "Us", "ROME", "rome", "Rome", "BREAD", "Bread", "ice", ""]
    assert [words[k] if k >= 0 else None for k in found.lookup(asked).tolist()] == [
        "polish", "Polish", "us", "US", "us", "Rome", "Rome", "Rome", "bread", "bread", None, None,
    ]  # fmt: skip
    assert found.lookup([]).shape == (0,) and found.lookup([]).dtype == np.int64
    assert found.rows(np.array([0, -1])).tolist()[1] == [0.0] * 5


def test_the_second_opening_maps_what_the_first_wrote(tmp_path, caplog):
    caplog.set_level("INFO")
    file = as_glove(tmp_path, WORDS, matrix())
    first = load(file)
    load.cache_clear()
    second = load(file)
    assert caplog.text.count("preparing") == 1
    assert isinstance(second.matrix.base, np.memmap) and np.array_equal(first.matrix, second.matrix)
    assert not second.matrix.flags.writeable
    assert len(pickle.dumps(second)) < 1000 and pickle.loads(pickle.dumps(second)) is second


def test_large_matrices_are_kept_in_half_precision(tmp_path, monkeypatch):
    monkeypatch.setattr(vector_files, "_HALF_ABOVE", 100)
    found = load(as_word2vec_text(tmp_path, WORDS, matrix()))
    assert found.matrix.dtype == np.float16 and found.rows(np.array([0])).dtype == np.float32


def write(name, content):
    def make(folder: Path) -> Path:
        (folder / name).write_bytes(content)
        return folder / name

    return make


def npy_with_too_few_words(folder):
    as_npy(folder, WORDS, matrix())
    (folder / "v.json").write_text('["one"]')
    return folder / "v.npy"


def npy_of_objects(folder):
    np.save(folder / "v.npy", np.array([{}, []], dtype=object), allow_pickle=True)
    (folder / "v.json").write_text('["one", "two"]')
    return folder / "v.npy"


def cut_short(make, keep):
    def cut(folder: Path) -> Path:
        file = make(folder, WORDS, matrix())
        file.write_bytes(file.read_bytes()[:keep])
        return file

    return cut


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (write("v.txt", b""), r"v\.txt:1: expected a word and its vector"),
        (write("v.txt", b"word\nword\n"), r"v\.txt:1: expected a word and its vector"),
        (write("v.txt", b"a 1 2 3\nb 1 x 3\n"), r"v\.txt:2: .*b'x' is not a number"),
        (write("v.vec", b"2 3\na 1 2 3\nb 1 2\n"), r"v\.vec:3: 2 numbers after the word, not 3"),
        (write("v.vec", b"3 3\na 1 2 3\nb 1 2 3\n"), r"promises 3 words, but it has 2"),
        (write("v.txt", b"a 1 2 3\nb 1 nan 3\n"), r"the vector of 'b' has a value that is not finite"),
        (write("v.vec", b"0 3\n"), r"holds no vectors"),
        (write("v.gz", b"not gzip at all"), r"cannot read the vectors in .*v\.gz"),
        (write("v.zip", b"not zip at all"), r"cannot read the vectors in .*v\.zip"),
        (write("v.npy", b"\x93NUMPY nonsense"), r"0 files next to .*v\.npy could list its words"),
        (npy_with_too_few_words, r"float32 \(10, 5\) and v\.json 1 words"),
        (npy_of_objects, r"cannot read the vectors in .*v\.npy"),
        (cut_short(as_binary, 100), r"v\.bin ends within word 4 of 10"),
        (cut_short(as_binary, 112), r"v\.bin: word 5 has no end|ends within word"),
        (cut_short(as_gzip, 90), r"cannot read the vectors in .*v\.txt\.gz"),
        (cut_short(as_npy, 200), r"cannot read the vectors in .*v\.npy"),
    ],
)
def test_bad_files_are_named_with_what_is_wrong(tmp_path, make, message):
    with pytest.raises(JacanaError, match=message):
        load(make(tmp_path))
    assert not (tmp_path / "home" / "compiled").exists()  # nothing half-made is kept


def test_no_such_vectors(tmp_path):
    with pytest.raises(MissingResource, match="no vectors at .*nowhere.*glove-840b"):
        resources.vectors(str(tmp_path / "nowhere"))


def test_real_vectors_of_similar_words_are_similar():
    for name in ("glove-840b", "glove-6b"):
        if not resources.available(name):
            pytest.skip(f"{name} is not installed: jacana-torch resources install {name}")
        found = resources.vectors(name)
        car, automobile, theology = found.rows(found.lookup(["Car", "automobile", "theology"]))
        assert car @ automobile > 0.6 > 0.2 > car @ theology
        norms = np.linalg.norm(found.matrix[:5000].astype(np.float64), axis=1)
        assert np.abs(norms - 1).max() < 1e-5
