"""Read the averaged perceptron tagger that NLTK distributes, as JSON or as a pickle, and compile it into arrays.

annotate/perceptron.py says how NLTK scores a token and how the arrays are used. Every feature is a row of
`matrix` [features + 1, classes]; row 0 stands for features without weights.
"""

from __future__ import annotations

import io
import json
import pickle
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..errors import JacanaError
from .build import Writer, read_member, write_strings
from .catalogue import TAGGER_JSON, TAGGER_PICKLE

# The first token has -START- as the tag before it and -START2- as the word before it, as NLTK trained the weights.
START_TAGS = ("-START2-", "-START-")
# Columns of `form_rows`, which has the block as its last column, and of `end_rows`.
FORM_FAMILIES = ("i word", "i-1 word", "i-2 word", "i+1 word", "i+2 word")
END_FAMILIES = ("i suffix", "i pref1", "i-1 suffix", "i+1 suffix")

Families = Mapping[str, Mapping[str, int]]  # family -> value -> row of `matrix`


@dataclass(frozen=True)
class TaggerWeights:
    """The attributes of NLTK's PerceptronTagger."""

    weights: dict[str, dict[str, float]]  # feature -> tag -> weight
    tagdict: dict[str, str]  # words that have a single tag
    classes: tuple[str, ...]  # the tags, sorted


class _SetsOnly(pickle.Unpickler):
    """Builds nothing but sets, so that a pickle cannot run code."""

    def find_class(self, module: str, name: str) -> type[set[str]]:
        if (module, name) in (("__builtin__", "set"), ("builtins", "set")):
            return set
        raise pickle.UnpicklingError(f"it refers to {module}.{name}, which a tagger does not need")


def load(path: Path) -> TaggerWeights:
    """The tagger in a directory or zip, whichever of the two formats it holds."""
    try:
        if path.stem.endswith("_eng"):
            parts = [json.loads(read_member(path, file)) for file in TAGGER_JSON]
        else:
            parts = list(_SetsOnly(io.BytesIO(read_member(path, TAGGER_PICKLE))).load())
        weights, tagdict, classes = parts
        return _checked(weights, tagdict, classes)
    except JacanaError:
        raise
    except Exception as error:  # a damaged pickle can raise nearly anything
        raise JacanaError(
            f"{path} is not NLTK's averaged perceptron tagger: {str(error)[:200]}. "
            "Remove it, then: jacana-torch resources install tagger"
        ) from None


def _checked(
    weights: dict[str, dict[str, float]], tagdict: dict[str, str], classes: Iterable[str]
) -> TaggerWeights:
    names = tuple(sorted(classes))
    if not names or not weights:
        raise ValueError("it has no tags or no weights")
    known = set(names)
    for feature, by_tag in weights.items():
        if not known.issuperset(by_tag):
            raise ValueError(f"the feature {feature!r} has weights for tags that its classes lack")
    if not known.issuperset(tagdict.values()):
        raise ValueError("its tag dictionary has tags that its classes lack")
    return TaggerWeights(weights, tagdict, names)


def compile_tagger(read: TaggerWeights, writer: Writer) -> None:
    """Write the arrays that LockstepTagger opens."""
    classes = sorted(read.classes, reverse=True)  # NLTK takes the greatest (score, tag), argmax the first
    forced = {word: tag for word, tag in read.tagdict.items() if tag}
    tags = [*classes, *sorted(set(forced.values()) - set(classes)), *START_TAGS]
    matrix, families = _matrix_and_rows(read.weights, classes)
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
    """The rows of the two previous tags, singly and as pairs; `history` is the sum of their weights by pair."""
    one, two, both = (families.get(name, {}) for name in ("i-1 tag", "i-2 tag", "i tag+i-2 tag"))
    rows1 = np.array([one.get(tag, 0) for tag in tags], np.int32)
    rows2 = np.array([two.get(tag, 0) for tag in tags], np.int32)
    rows12 = np.array([[both.get(f"{tag} {before}", 0) for before in tags] for tag in tags], np.int32)
    for name, rows in (("tag1", rows1), ("tag2", rows2), ("tag12", rows12)):
        writer.append(name, rows)
    history = matrix[rows1][:, None] + matrix[rows2][None] + matrix[rows12]  # [K, K, C]
    writer.append("history", history.reshape(len(tags) ** 2, -1))


def _write_blocks(families: Families, tags: Sequence[str], writer: Writer) -> dict[str, int]:
    """`tag_word` [blocks, tags]: a word's rows by the previous tag. Returns the block of each word; 0 is empty."""
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
    """[values + 1, families] rows of `matrix`; the last one, which -1 finds, is for other values."""
    rows = [[families.get(name, {}).get(value, 0) for name in names] for value in values]
    return np.array([*rows, [0] * len(names)], np.int32)


def _matrix_and_rows(
    weights: Mapping[str, Mapping[str, float]], classes: Sequence[str]
) -> tuple[np.ndarray, dict[str, dict[str, int]]]:
    """The weights [features + 1, classes], zero in the first row, and the row of each feature by family."""
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
    """The family and value in a name: ("i suffix", "ing"), ("i-1 tag+i word", "DT cat"), ("bias", "")."""
    for family in ("i tag+i-2 tag", "i-1 tag+i word"):
        if feature.startswith(family + " "):
            return family, feature[len(family) + 1 :]
    first, _, rest = feature.partition(" ")
    second, _, value = rest.partition(" ")
    return (f"{first} {second}", value) if second else (first, "")
