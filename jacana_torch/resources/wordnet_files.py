"""Compile WordNet's database files (wndb(5): data.*, index.* and *.exc) into the arrays of wordnet_graph.py.

Synsets are numbered in the files' order. A "sense" is a lower-case form in a synset, numbered in index order (most
common first). Relations are edges between synsets, or between senses if they hold between words; each node's edges
follow one another.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ..errors import JacanaError
from .build import Writer, read_member, write_strings
from .wordnet_graph import EDGES

FILES = {"n": "noun", "v": "verb", "a": "adj", "r": "adv"}
# WordNet's pointer symbols between synsets; `@i` is the class of an instance (Paris is a city).
SYNSET_POINTERS = {
    "@": "hypernym", "@i": "hypernym", "*": "entailing", ">": "causing", "&": "similar",
    "#m": "member_of", "#s": "substance_of", "#p": "part_of", "$": "verb_group",
}  # fmt: skip
SENSE_POINTERS = {"!": "antonym", "+": "derived", "\\": "pertainym"}


class _Synset:
    """A line of a data file."""

    __slots__ = ("offset", "pointers", "pos", "words")

    def __init__(self, fields: list[str]) -> None:
        self.offset, self.pos = int(fields[0]), fields[2]
        count = int(fields[3], 16)
        self.words = [word.split("(", 1)[0].lower() for word in fields[4 : 4 + 2 * count : 2]]
        at = 4 + 2 * count
        self.pointers = []  # (symbol, offset, pos, source word or -1, target word or -1)
        for k in range(int(fields[at])):
            symbol, offset, pos, words = fields[at + 1 + 4 * k : at + 5 + 4 * k]
            self.pointers.append((symbol, int(offset), pos, int(words[:2], 16) - 1, int(words[2:], 16) - 1))


def compile_wordnet(path: Path, writer: Writer) -> None:
    """Read the WordNet in a directory or zip and write the arrays that wordnet_graph.py opens."""
    synsets, number = _read_data(path)
    index = {pos: _read_index(path, pos, number) for pos in FILES}
    forms = sorted(set().union(*index.values()))
    write_strings(writer, "forms", forms)
    writer.append("synset.offset", np.array([s.offset for s in synsets], np.int32))
    writer.append("synset.pos", np.array([ord(s.pos) for s in synsets], np.uint8))
    senses = _write_senses(forms, index, writer)
    _write_relations(path, synsets, number, senses, writer)
    writer.meta["exceptions"] = {pos: _read_exceptions(path, pos) for pos in FILES}


def lines(path: Path, file: str) -> Iterator[tuple[int, int, str]]:
    """(line number, byte offset, text) of each line after the licence."""
    offset = 0
    for number, line in enumerate(read_member(path, file).split(b"\n"), 1):
        if line.strip() and not line.startswith(b"  "):
            yield number, offset, line.decode("utf-8", "replace")
        offset += len(line) + 1


def _broken(path: Path, file: str, line: int, why: object) -> JacanaError:
    return JacanaError(
        f"{path / file}:{line}: not a line of WordNet's database ({why}). "
        "Remove that copy, then: jacana-torch resources install wordnet"
    )


def _read_data(path: Path) -> tuple[list[_Synset], dict[tuple[str, int], int]]:
    synsets: list[_Synset] = []
    number: dict[tuple[str, int], int] = {}
    for pos, suffix in FILES.items():
        before = len(synsets)
        for line, offset, text in lines(path, f"data.{suffix}"):
            try:
                synset = _Synset(text.split("|", 1)[0].split())
                if synset.offset != offset:
                    raise ValueError(f"it is at byte {offset} and says {synset.offset}")
            except (ValueError, IndexError) as error:
                raise _broken(path, f"data.{suffix}", line, error) from None
            number[pos, offset] = len(synsets)
            synsets.append(synset)
        if len(synsets) == before:
            raise JacanaError(f"{path / f'data.{suffix}'} is empty")
    return synsets, number


def _read_index(path: Path, pos: str, number: dict[tuple[str, int], int]) -> dict[str, list[int]]:
    """The synsets of each form, most common first."""
    index = {}
    for line, _, text in lines(path, f"index.{FILES[pos]}"):
        fields = text.split()
        try:
            index[fields[0]] = [number[pos, int(offset)] for offset in fields[-int(fields[2]) :]]
        except (ValueError, IndexError, KeyError) as error:
            raise _broken(path, f"index.{FILES[pos]}", line, error) from None
    return index


def _write_senses(
    forms: list[str], index: dict[str, dict[str, list[int]]], writer: Writer
) -> dict[tuple[int, str], int]:
    """Number the senses. `senses.starts` [parts of speech, forms + 1] says where each form's senses begin."""
    senses: dict[tuple[int, str], int] = {}
    synset_of: list[int] = []
    starts = np.zeros((len(FILES), len(forms) + 1), np.int32)
    for row, pos in enumerate(FILES):
        for column, form in enumerate(forms):
            starts[row, column] = len(synset_of)
            for synset in index[pos].get(form, ()):
                senses[synset, form] = len(synset_of)
                synset_of.append(synset)
        starts[row, -1] = len(synset_of)
    writer.append("senses.starts", starts)
    writer.append("senses.synset", np.array(synset_of, np.int32))
    return senses


def _write_relations(
    path: Path,
    synsets: list[_Synset],
    number: dict[tuple[str, int], int],
    senses: dict[tuple[int, str], int],
    writer: Writer,
) -> None:
    edges: list[tuple[int, int, int]] = []  # from, relation, to; senses are numbered after all synsets
    for here, synset in enumerate(synsets):
        for symbol, offset, pos, source, target in synset.pointers:
            try:
                there = number["a" if pos == "s" else pos, offset]
                if symbol in SYNSET_POINTERS:
                    edges.append((here, EDGES.index(SYNSET_POINTERS[symbol]), there))
                elif symbol in SENSE_POINTERS:
                    ends = senses[here, synset.words[source]], senses[there, synsets[there].words[target]]
                    kind = EDGES.index(SENSE_POINTERS[symbol])
                    edges.append((len(synsets) + ends[0], kind, len(synsets) + ends[1]))
            except (KeyError, IndexError):
                raise JacanaError(
                    f"{path}: synset {synset.pos} {synset.offset:08d} points ({symbol}) to {pos} {offset:08d}, "
                    "which does not exist: its files come from different versions of WordNet. "
                    "Remove that copy, then: jacana-torch resources install wordnet"
                ) from None
    table = np.array(sorted(edges), np.int32).reshape(-1, 3)
    above = table[:, 1] == EDGES.index("hypernym")
    for name, part, nodes in (
        ("hypernyms", table[above], len(synsets)), ("edges", table[~above], len(synsets) + len(senses))
    ):  # fmt: skip
        writer.append(f"{name}.starts", np.searchsorted(part[:, 0], np.arange(nodes + 1)).astype(np.int32))
        writer.append(f"{name}.to", part[:, 2])
        if name == "edges":
            writer.append("edges.kind", part[:, 1].astype(np.uint8))


def _read_exceptions(path: Path, pos: str) -> dict[str, list[str]]:
    fields = (text.split() for _, _, text in lines(path, f"{FILES[pos]}.exc"))
    return {form: bases for form, *bases in fields}
