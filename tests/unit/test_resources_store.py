"""The cache of compiled arrays, and tables of strings."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jacana_torch.errors import JacanaError
from jacana_torch.resources import store
from jacana_torch.resources.build import Writer, write_strings
from jacana_torch.resources.store import Arrays, StringTable, compiled

pytestmark = pytest.mark.usefixtures("own_home")


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
    packed = store.packed

    def by_parity(words):
        blob, starts, hashes = packed(words)
        return blob, starts, (np.diff(starts) % 2).astype(hashes.dtype)

    monkeypatch.setattr(store, "packed", by_parity)
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


def test_a_new_layout_or_a_changed_source_is_compiled_again(tmp_path):
    source, builds = tmp_path / "source", []
    source.write_bytes(b"x" * 400_000)

    def build(writer: Writer) -> None:
        builds.append(1)
        writer.append("a", np.arange(len(builds)))

    assert len(compiled("test", 1, [source], build)["a"]) == 1
    assert len(compiled("test", 2, [source], build)["a"]) == 2
    assert len(compiled("test", 1, [source], build)["a"]) == 1
    with open(source, "r+b") as out:  # the same size and the same ends
        out.seek(200_000)
        out.write(b"y")
    os.utime(source, ns=(1, 1))
    assert len(compiled("test", 1, [source], build)["a"]) == 3


@pytest.mark.parametrize("content", [b"", b"x", b"x" * 80, None])
def test_an_array_of_another_size_is_built_again(tmp_path, content):
    source = tmp_path / "source"
    source.write_text("x")

    def build(writer: Writer) -> None:
        writer.append("a", np.arange(5))

    compiled("test", 1, [source], build)
    ((array,),) = ([file for file in folder.iterdir() if file.name == "a"] for folder in _compiled(tmp_path))
    array.unlink() if content is None else array.write_bytes(content)
    assert compiled("test", 1, [source], build)["a"].tolist() == [0, 1, 2, 3, 4]


def _compiled(tmp_path) -> list[Path]:
    return list((tmp_path / "home" / "compiled").iterdir())


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
