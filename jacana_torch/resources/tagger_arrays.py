"""The averaged perceptron tagger as arrays, so that it opens in no time.

In: the resource `tagger`, read by tagger.py and compiled once. Out: Arrays for annotate/perceptron.py, which says
how NLTK scores a token: every feature is a row of `matrix` [features + 1, classes], row 0 is "no such feature".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np

from . import tagger
from .store import Arrays, Writer, compiled
from .strings import write_strings
from .tagger import TaggerWeights

VERSION = 1
# The first token has -START- as the tag before it and -START2- as the word before it, as NLTK trained the weights.
START_TAGS = ("-START2-", "-START-")
FORM_FAMILIES = (
    "i word",
    "i-1 word",
    "i-2 word",
    "i+1 word",
    "i+2 word",
)  # columns of `form_rows`, then the block
END_FAMILIES = ("i suffix", "i pref1", "i-1 suffix", "i+1 suffix")  # columns of `end_rows`

Families = Mapping[str, Mapping[str, int]]


@lru_cache(maxsize=2)
def load(path: Path) -> Arrays:
    """The tagger in a directory or zip, compiled at its first use."""

    def build(writer: Writer) -> None:
        compile_tagger(tagger.load(path), writer)

    return compiled("tagger", VERSION, tagger.sources(path), build)


def compile_tagger(read: TaggerWeights, writer: Writer) -> None:
    """Write what LockstepTagger opens."""
    classes = sorted(read.classes, reverse=True)  # NLTK takes the greatest (score, tag), argmax the first
    forced = {word: tag for word, tag in read.tagdict.items() if tag}
    tags = [*classes, *sorted(set(forced.values()) - set(classes)), *START_TAGS]
    matrix, families = _compiled(read.weights, classes)
    writer.append("matrix", matrix)
    writer.append("bias", np.array([families.get("bias", {}).get("", 0)], np.int32))
    write_strings(writer, "forced", forced)
    writer.append("forced_tags", np.array([*map(tags.index, forced.values()), -1], np.int32))
    ends = _values(families, END_FAMILIES)
    write_strings(writer, "ends", ends)
    writer.append("end_rows", _rows(families, END_FAMILIES, ends))
    _write_tags(families, tags, matrix, writer)
    blocks = _write_blocks(families, tags, writer)
    forms = dict.fromkeys([*_values(families, FORM_FAMILIES), *blocks])
    write_strings(writer, "forms", forms)
    block = np.array([*(blocks.get(form, 0) for form in forms), 0], np.int32)
    writer.append("form_rows", np.column_stack([_rows(families, FORM_FAMILIES, forms), block]))
    writer.meta["tags"] = tags


def _write_tags(families: Families, tags: Sequence[str], matrix: np.ndarray, writer: Writer) -> None:
    """Rows for the tags before: singly, as pairs, and their sum ready made for every pair."""
    one, two, both = (families.get(name, {}) for name in ("i-1 tag", "i-2 tag", "i tag+i-2 tag"))
    rows1 = np.array([one.get(tag, 0) for tag in tags], np.int32)
    rows2 = np.array([two.get(tag, 0) for tag in tags], np.int32)
    rows12 = np.array([[both.get(f"{tag} {before}", 0) for before in tags] for tag in tags], np.int32)
    for name, rows in (("tag1", rows1), ("tag2", rows2), ("tag12", rows12)):
        writer.append(name, rows)
    history = matrix[rows1][:, None] + matrix[rows2][None] + matrix[rows12]  # [K, K, C]
    writer.append("history", history.reshape(len(tags) ** 2, -1))


def _write_blocks(families: Families, tags: Sequence[str], writer: Writer) -> dict[str, int]:
    """For each word that has rows together with the tag before it, a block [K] of them; block 0 is empty."""
    with_word = families.get("i-1 tag+i word", {})
    blocks: dict[str, int] = {}
    for feature in with_word:
        blocks.setdefault(feature.partition(" ")[2], len(blocks) + 1)
    number = {tag: k for k, tag in enumerate(tags)}
    tag_word = np.zeros((len(blocks) + 1, len(tags)), np.int32)
    for feature, row in with_word.items():
        tag, _, word = feature.partition(" ")
        if tag in number:
            tag_word[blocks[word], number[tag]] = row
    writer.append("tag_word", tag_word)
    return blocks


def _values(families: Families, names: Iterable[str]) -> dict[str, None]:
    return dict.fromkeys(value for name in names for value in families.get(name, {}))


def _rows(families: Families, names: Sequence[str], values: Iterable[str]) -> np.ndarray:
    """[values + 1, families]; the last row, which -1 finds, is for what is not among the values."""
    rows = [[families.get(name, {}).get(value, 0) for name in names] for value in values]
    return np.array([*rows, [0] * len(names)], np.int32)


def _compiled(
    weights: Mapping[str, Mapping[str, float]], classes: Sequence[str]
) -> tuple[np.ndarray, dict[str, dict[str, int]]]:
    """The weights as a matrix [F + 1, C] with a row of zeros first, and the row of each feature by family."""
    column = {tag: k for k, tag in enumerate(classes)}
    families: dict[str, dict[str, int]] = {}
    matrix = np.zeros((len(weights) + 1, len(classes)))
    for row, (feature, by_tag) in enumerate(weights.items(), start=1):
        family, value = _parsed(feature)
        families.setdefault(family, {})[value] = row
        for tag, weight in by_tag.items():
            if tag in column:
                matrix[row, column[tag]] = weight
    return matrix, families


def _parsed(feature: str) -> tuple[str, str]:
    """Family and value of a feature's name: ("i suffix", "ing"), ("i-1 tag+i word", "DT cat"), ("bias", "")."""
    for family in ("i tag+i-2 tag", "i-1 tag+i word"):
        if feature.startswith(family + " "):
            return family, feature[len(family) + 1 :]
    first, _, rest = feature.partition(" ")
    second, _, value = rest.partition(" ")
    return (f"{first} {second}", value) if second else (first, "")
