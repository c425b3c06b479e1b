"""What the Stanford aligner knows of two words apart from where they stand: spelling, WordNet, word vectors.

In: distinct words and pairs of them. Out: a table of features, and one figure for how alike they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...annotate.normalise import matching_form, wordnet_pos
from ...errors import ConfigError
from ...features.wordlists import WORD_CLASSES, number_value, stem, variant, word_class

_RELATIONS = (
    "synonym", "hypernym", "hyponym", "entailing", "entailed_by", "causing", "caused_by", "similar", "verb_group",
    "antonym", "derived", "pertainym", "hypernym_deep", "hyponym_deep", "sister", "part_of", "has_part",
    "member_of", "has_member",
)  # fmt: skip
# How alike words are that are related, beside 1 for the same word: what stands next to others is judged by this.
_ALIKE = {"synonym": 0.8, "derived": 0.8, "pertainym": 0.8, "hypernym": 0.6, "hyponym": 0.6, "similar": 0.6}
_SPELLING = (
    "identical", "lemma", "stem", "variant", *(f"same.{name}" for name in WORD_CLASSES),
    "close", "prefix", "inside", "numbers_differ", "names_differ",
    "tag", "tag_class", "same.other_tag", "classes_differ",
)  # fmt: skip


class Word(NamedTuple):
    form: str
    lemma: str
    tag: str
    kind: str

    @classmethod
    def of(cls, token: str, lemma: str, tag: str) -> Word:
        return cls(matching_form(token).lower(), str(lemma).lower(), str(tag), word_class(matching_form(token)))


@dataclass(frozen=True)
class Lexicon:
    """`wordnet`: whether to ask it. `vectors`: a resource's name or a file, or None."""

    wordnet: bool = True
    vectors: str | None = "glove-840b"

    def __post_init__(self) -> None:
        if self.vectors is not None and not self.vectors:
            raise ConfigError("vectors='': name word vectors (glove-840b, glove-6b, a file), or null for none")

    @property
    def resources(self) -> tuple[str, ...]:
        from ...resources.catalogue import CATALOGUE

        named = {self.vectors} & {*CATALOGUE}  # a file is looked for when it is opened
        return tuple(sorted([*filter(None, named), *["wordnet"] * self.wordnet]))

    @property
    def names(self) -> tuple[str, ...]:
        vectors = ("cosine", "cosine2", "cosine4", "no_vector") if self.vectors is not None else ()
        return (*_SPELLING, *(_RELATIONS if self.wordnet else ()), *vectors)

    def __call__(
        self, words: Sequence[Word], left: np.ndarray, right: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """[U, K] features under `names`, and [U] how alike words[left[u]] and words[right[u]] are."""
        columns, same = _spelling(words, left, right)
        alike = np.maximum(same, 0.8 * columns["close"] ** 2)
        if self.wordnet:
            found = _related(words, left, right, ~same)
            alike = np.max([alike, *(value * found[name] for name, value in _ALIKE.items())], axis=0)
            columns |= found
        if self.vectors is not None:
            cosine, unknown = self._cosine(words, left, right)
            cosine = np.where(same, 0.0, cosine)
            columns |= {"cosine": cosine, "cosine2": cosine**2, "cosine4": cosine**4, "no_vector": unknown & ~same}
            alike = np.maximum(alike, cosine**2)
        table = np.column_stack([columns[name] for name in self.names]).astype(np.float64)
        return table, np.round(alike, 6)

    def _cosine(self, words: Sequence[Word], left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        from ... import resources

        assert self.vectors is not None
        vectors = resources.vectors(self.vectors)
        rows = vectors.lookup([word.form for word in words])
        matrix = vectors.rows(rows).astype(np.float64)
        out = np.empty(len(left))
        for start in range(0, len(left), 4096):  # two rows a pair: bounded memory
            part = slice(start, start + 4096)
            out[part] = np.einsum("ij,ij->i", matrix[left[part]], matrix[right[part]])
        known = np.asarray(matrix.any(axis=1))
        return np.clip(np.round(out, 6), 0.0, 1.0), ~(known[left] & known[right])


def _spelling(
    words: Sequence[Word], left: np.ndarray, right: np.ndarray
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    equal = _comparison(words, left, right)
    columns = {
        "identical": equal(lambda w: w.form),
        "lemma": equal(lambda w: w.lemma),
        "stem": equal(lambda w: stem(w.form)),
        "variant": equal(lambda w: variant(w.form)),
        "tag": equal(lambda w: w.tag),
        "tag_class": equal(lambda w: w.tag[:2]),
    }
    number = np.array([number_value(word.form) is not None for word in words], dtype=bool)
    amount = equal(lambda w: repr(number_value(w.form))) & (number[left] & number[right])
    same = columns["identical"] | columns["lemma"] | columns["stem"] | columns["variant"] | amount
    kinds = np.array([WORD_CLASSES.index(word.kind) for word in words], dtype=np.int64)
    for k, name in enumerate(WORD_CLASSES):
        columns[f"same.{name}"] = same & (kinds[right] == k)
    other = ~same
    names = kinds == WORD_CLASSES.index("name")
    columns["numbers_differ"] = number[left] & number[right] & other
    columns["names_differ"] = names[left] & names[right] & other
    columns["same.other_tag"] = same & ~columns["tag_class"]
    light = np.isin(kinds, [WORD_CLASSES.index("function"), WORD_CLASSES.index("punct")])
    columns["classes_differ"] = light[left] != light[right]
    columns |= _close(words, left, right, other)
    return columns, same


def _close(words: Sequence[Word], left: np.ndarray, right: np.ndarray, other: np.ndarray) -> dict[str, np.ndarray]:
    from rapidfuzz.distance import JaroWinkler, Prefix
    from rapidfuzz.process import cpdist

    a, b = [words[i].form for i in left.tolist()], [words[i].form for i in right.tolist()]
    jaro = cpdist(a, b, scorer=JaroWinkler.normalized_similarity, dtype=np.float64) if a else np.zeros(0)
    shared = cpdist(a, b, scorer=Prefix.similarity, dtype=np.int64) if a else np.zeros(0)
    length = np.array([len(word.form) for word in words])
    shorter = np.minimum(length[left], length[right])
    long = other & (shorter > 3)  # short words look alike by accident
    return {
        "close": np.where(long, np.clip((np.round(jaro, 6) - 0.7) / 0.3, 0.0, 1.0), 0.0),
        "prefix": np.where(long, shared / shorter, 0.0),
        "inside": long & np.array([x in y or y in x for x, y in zip(a, b, strict=True)], dtype=bool),
    }


def _comparison(
    words: Sequence[Word], left: np.ndarray, right: np.ndarray
) -> Callable[[Callable[[Word], str]], np.ndarray]:
    def equal(key: Callable[[Word], str]) -> np.ndarray:
        number: dict[str, int] = {}
        codes = np.array([number.setdefault(key(word), len(number)) for word in words], dtype=np.int64)
        return codes[left] == codes[right]

    return equal


def _related(
    words: Sequence[Word], left: np.ndarray, right: np.ndarray, other: np.ndarray
) -> dict[str, np.ndarray]:
    from ... import resources

    asked = [(word.lemma, wordnet_pos(word.tag)) for word in words]
    known = np.array([pos is not None for _, pos in asked], dtype=bool)
    some = np.flatnonzero(other & known[left] & known[right])
    one, two = ([asked[k] for k in side[some].tolist()] for side in (left, right))
    found = resources.wordnet().related(one, two)
    out = {name: np.zeros(len(left), dtype=bool) for name in _RELATIONS}
    for name, column in out.items():
        column[some] = found[name]
    return out
