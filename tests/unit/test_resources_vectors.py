"""Vectors in every format, PPDB pairs, the tagger and the arrays below them, on files made here."""

from __future__ import annotations

import gzip
import json
import pickle
import random
import struct
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jacana_torch import resources
from jacana_torch.errors import JacanaError, MissingResource
from jacana_torch.resources import parquet, ppdb_pairs, static_vectors, tagger
from jacana_torch.resources.static_vectors import load, locate
from jacana_torch.resources.store import Arrays, Writer, compiled
from jacana_torch.resources.strings import StringTable, write_strings

WORDS = ["the", "Lisbon", "naïve", "a b c", "at .", "x", "1,000", "😀", "the", "nil"]


@pytest.fixture(autouse=True)
def _own_home(tmp_path, monkeypatch, request):
    if "real" not in request.node.name:
        monkeypatch.setenv("JACANA_HOME", str(tmp_path / "home"))


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
    found = load(locate(str(write(tmp_path, words, given))))
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
    monkeypatch.setattr(static_vectors, "_HALF_ABOVE", 100)
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
        (write("v.txt", b""), r"v\.txt:1: a word and its vector"),
        (write("v.txt", b"word\nword\n"), r"v\.txt:1: a word and its vector"),
        (write("v.txt", b"a 1 2 3\nb 1 x 3\n"), r"v\.txt:2: .*b'x' is not a figure"),
        (write("v.vec", b"2 3\na 1 2 3\nb 1 2\n"), r"v\.vec:3: 2 figures after the word, not 3"),
        (write("v.vec", b"3 3\na 1 2 3\nb 1 2 3\n"), r"promises 3 words and it has 2"),
        (write("v.txt", b"a 1 2 3\nb 1 nan 3\n"), r"the vector of 'b' has a figure that is not finite"),
        (write("v.vec", b"0 3\n"), r"holds no vectors"),
        (write("v.gz", b"not gzip at all"), r"cannot read the vectors in .*v\.gz"),
        (write("v.zip", b"not zip at all"), r"cannot read the vectors in .*v\.zip"),
        (write("v.npy", b"\x93NUMPY nonsense"), r"0 files beside .*v\.npy could list its words"),
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


def test_real_vectors_know_what_is_alike():
    for name in ("glove-840b", "glove-6b"):
        if not resources.available(name):
            pytest.skip(f"{name} is not installed: jacana-torch resources install {name}")
        found = resources.vectors(name)
        car, automobile, theology = found.rows(found.lookup(["Car", "automobile", "theology"]))
        assert car @ automobile > 0.6 > 0.2 > car @ theology
        norms = np.linalg.norm(found.matrix[:5000].astype(np.float64), axis=1)
        assert np.abs(norms - 1).max() < 1e-5


# -- the index of glove-6b


def thrift_varint(value: int) -> bytes:
    out = b""
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def snappy_literals(data: bytes) -> bytes:
    """Valid Snappy of literals of all header widths, and one overlapping copy where the data starts with a run."""
    out, at = thrift_varint(len(data)), 0
    run = len(data) - len(data.lstrip(data[:1]))
    if run > 5:
        length = min(run - 1, 64)
        out, at = out + b"\0" + data[:1] + bytes([(length - 1) << 2 | 2, 1, 0]), 1 + length
    for size in (3, 70, 300, 1 << 20):
        piece = data[at : at + size]
        if piece:
            n = len(piece) - 1
            head = bytes([n << 2]) if n < 60 else bytes([60 << 2, n]) if n < 256 else bytes([61 << 2]) + n.to_bytes(2, "little")  # fmt: skip # noqa: E501
            out, at = out + head + piece, at + len(piece)
    assert at == len(data)
    return out


@given(st.binary(max_size=600) | st.builds(lambda k, b: b"z" * k + b, st.integers(0, 90), st.binary(max_size=90)))
def test_snappy(data):
    assert bytes(parquet._snappy(snappy_literals(data))) == data


def test_snappy_copies():
    stream = (
        thrift_varint(18) + b"\x0cabcd" + bytes([0b000_010_01, 4]) + bytes([7 << 2 | 3]) + struct.pack("<I", 3)
    )
    assert bytes(parquet._snappy(stream)) == b"abcd" + b"abcdab" + b"dabdabda"[:8]
    with pytest.raises(ValueError, match="before the beginning"):
        parquet._snappy(thrift_varint(6) + b"\x04ab" + bytes([0b000_000_01, 9]))


def test_not_parquet():
    for data in (b"", b"PAR1PAR1", b"PAR1" + b"\xff" * 50 + b"PAR1", b"PAR1" + b"\0" * 50 + b"\4\0\0\0PAR1"):
        with pytest.raises(ValueError, match="damaged|not a Parquet|cut short|something else"):
            parquet.read_strings(data)


def test_real_index_has_every_word_once():
    if not resources.available("glove-6b"):
        pytest.skip("glove-6b is not installed: jacana-torch resources install glove-6b")
    words = parquet.read_strings((resources.path("glove-6b") / "glove_6B_index.parquet").read_bytes())
    assert len(words) == len(set(words)) == 400_000
    assert words[:4] == ["the", ",", ".", "of"] and words[-1] == "sandberger"


# -- PPDB


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
def test_ppdb_lines_that_are_no_pair(tmp_path, line):
    file = tmp_path / "pairs"
    file.write_text(f"a\tb\n{line}\nc\td\n")
    with pytest.raises(JacanaError, match=r"pairs:2: a pair of words"):
        ppdb_pairs.load(file)


def test_ppdb_of_no_pairs(tmp_path):
    (tmp_path / "pairs").write_text("")
    assert ppdb_pairs.load(tmp_path / "pairs").contains(["a"], ["a"]).tolist() == [False]


def test_ppdb_in_the_zip_that_nltk_downloads(tmp_path):
    from jacana_torch.resources.catalogue import PPDB_FILE

    with zipfile.ZipFile(tmp_path / "mwa_ppdb.zip", "w") as out:
        out.writestr(f"mwa_ppdb/{PPDB_FILE}", "quick\tspeedy\r\nbig\tlarge\r\n")
    found = ppdb_pairs.load(tmp_path / "mwa_ppdb.zip")
    assert found.contains(["Large", "quick"], ["big", "big"]).tolist() == [True, False]


# -- the tagger


MODEL = ({"bias": {"NN": 0.5, "VB": -1.0}, "i word cat": {"NN": 2.0}}, {"the": "DT"}, {"NN", "VB", "DT"})


def tagger_as_pickle(folder: Path, model=MODEL) -> Path:
    folder.mkdir()
    with open(folder / "averaged_perceptron_tagger.pickle", "wb") as out:
        pickle.dump(model, out, protocol=2)
    return folder


def tagger_as_json(folder: Path) -> Path:
    folder = folder / "averaged_perceptron_tagger_eng"
    folder.mkdir(parents=True)
    for part, value in zip(("weights", "tagdict", "classes"), MODEL, strict=True):
        file = folder / f"averaged_perceptron_tagger_eng.{part}.json"
        file.write_text(json.dumps(sorted(value) if isinstance(value, set) else value))
    return folder


def test_tagger_is_the_same_from_pickle_and_json(tmp_path):
    for folder in (tagger_as_pickle(tmp_path / "p"), tagger_as_json(tmp_path / "j")):
        found = tagger.load(folder)
        assert (found.weights, found.tagdict, found.classes) == (MODEL[0], MODEL[1], ("DT", "NN", "VB"))


class Evil:
    def __reduce__(self):
        return open, (sys.argv[0] + ".evil", "w")


@pytest.mark.parametrize("part", [Evil(), pickle.loads, Path("x"), frozenset({1})])
def test_tagger_pickles_can_build_nothing_but_sets(tmp_path, part):
    with pytest.raises(JacanaError, match="it asks for .*which a tagger does not need"):
        tagger.load(tagger_as_pickle(tmp_path / "p", (*MODEL[:2], part)))
    assert not Path(sys.argv[0] + ".evil").exists()


@pytest.mark.parametrize(
    "model", [({}, {}, set()), MODEL[:2], ({"f": {"XX": 1.0}}, {}, {"NN"}), ({"f": {}}, {"a": "XX"}, {"NN"}), 7]
)
def test_taggers_that_are_none(tmp_path, model):
    with pytest.raises(JacanaError, match="is not NLTK's averaged perceptron tagger.*resources install tagger"):
        tagger.load(tagger_as_pickle(tmp_path / "p", model))


def test_a_truncated_tagger(tmp_path):
    folder = tagger_as_pickle(tmp_path / "p")
    file = folder / "averaged_perceptron_tagger.pickle"
    file.write_bytes(file.read_bytes()[:60])
    with pytest.raises(JacanaError, match="is not NLTK's averaged perceptron tagger"):
        tagger.load(folder)


def test_real_tagger_tags_as_nltks_own():
    if not resources.available("tagger"):
        pytest.skip("the tagger is not installed: jacana-torch resources install tagger")
    from nltk.tag.perceptron import PerceptronTagger

    found = resources.tagger_weights()
    theirs = PerceptronTagger(load=False)
    theirs.model.weights, theirs.tagdict = found.weights, found.tagdict
    theirs.classes = theirs.model.classes = set(found.classes)
    tags = [tag for _, tag in theirs.tag("Two bakers quietly sold 40 loaves .".split())]
    assert tags == ["CD", "NNS", "RB", "VBD", "CD", "NNS", "."]


# -- strings and arrays


def in_memory(words) -> StringTable:
    writer = Writer(None)
    write_strings(writer, "words", words)
    return StringTable(writer.finish(), "words")


ANY_WORD = st.text(max_size=5) | st.sampled_from(["a", "ab", "\ud800", "\n", ""])


@given(st.lists(ANY_WORD, max_size=30), st.lists(ANY_WORD, max_size=30))
def test_strings_are_found_as_in_a_dict(words, others):
    table = in_memory(words)
    rows: dict[str, int] = {}
    for k, word in enumerate(words):
        rows.setdefault(word, k)
    assert table.lookup(words + others).tolist() == [rows.get(word, -1) for word in words + others]
    assert table.all() == words and [table[k] for k in range(len(table))] == words


def test_strings_whose_hashes_collide(monkeypatch):
    from jacana_torch.resources import strings

    monkeypatch.setattr(strings, "_hashes", lambda blob, starts: (np.diff(starts) % 2).astype(np.uint64))
    words = ["a", "bb", "c", "dd", "e", "a"]
    assert in_memory(words).lookup(["e", "dd", "a", "bb", "c", "x", "yy"]).tolist() == [4, 3, 0, 1, 2, -1, -1]


def test_arrays_come_back_as_they_were_written(tmp_path):
    source = tmp_path / "source"
    source.write_text("x")
    pieces = [np.arange(6).reshape(2, 3), np.zeros((0, 3), int), np.arange(3).reshape(1, 3)]

    def build(writer: Writer) -> None:
        for piece in pieces:
            writer.append("pieces", piece)
        writer.append("empty", np.zeros((0, 4), np.float32))
        writer.meta["note"] = "ü"

    for _ in range(2):
        arrays = compiled("test", 1, [source], build)
        assert isinstance(arrays, Arrays) and arrays.meta == {"note": "ü"}
        assert np.array_equal(arrays["pieces"], np.concatenate(pieces))
        assert arrays["empty"].shape == (0, 4) and arrays["empty"].dtype == np.float32


def test_pieces_of_different_kinds_are_refused():
    writer = Writer(None)
    writer.append("a", np.zeros((1, 2)))
    for piece in (np.zeros((1, 3)), np.zeros((1, 2), np.float32)):
        with pytest.raises(ValueError, match="a holds"):
            writer.append("a", piece)


def test_a_build_that_fails_leaves_nothing(tmp_path):
    source = tmp_path / "source"
    source.write_text("x")

    def build(writer: Writer) -> None:
        writer.append("a", np.zeros(3))
        raise JacanaError("the source is no good")

    with pytest.raises(JacanaError, match="no good"):
        compiled("test", 1, [source], build)
    assert not (tmp_path / "home" / "compiled").exists() and not list((tmp_path / "home" / "tmp").iterdir())
