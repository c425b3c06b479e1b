"""How alike two words or short phrases are, from 0 to 1: the maximum over what spelling and resources say.

Words in, one figure per pair of them out. Each measure is on one scale, set by how often words of such a value are
linked in annotated data: 0.9 is nearly the same word, 0.2 little more than chance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...annotate.normalise import matching_form
from ...errors import ConfigError
from ...features.wordlists import NICKNAMES, number_value, stem, variant
from ...types import Sentence

SAME_WORD = 0.9  # another form of the same word
# What a relation of WordNet is worth between two words, in any of their senses.
RELATED = {
    "derived": 0.9, "pertainym": 0.9, "synonym": 0.75, "member_of": 0.7, "has_member": 0.65, "verb_group": 0.65,
    "similar": 0.6, "entailing": 0.6, "entailed_by": 0.6, "causing": 0.6, "caused_by": 0.6, "hypernym": 0.6,
    "hyponym": 0.6, "hypernym_deep": 0.5, "hyponym_deep": 0.5, "part_of": 0.45, "has_part": 0.45, "sister": 0.4,
}  # fmt: skip
PARAPHRASE = 0.6
_DECIMALS = 6  # sums in another order must not break ties


class Word(NamedTuple):
    form: str
    lemma: str


def words_of(sentence: Sentence) -> list[Word]:
    """The words of a sentence as they are compared: without case, typography or Penn escapes."""
    forms = [matching_form(token).lower() for token in sentence.tokens]
    return [Word(f, str(lemma).lower()) for f, lemma in zip(forms, sentence.layer("lemma"), strict=True)]


@dataclass(frozen=True)
class Similarity:
    """`wordnet`, `ppdb`: whether to ask them. `vectors`: a resource's name or a file, or None."""

    wordnet: bool = True
    vectors: str | None = "glove-840b"
    ppdb: bool = False

    def __post_init__(self) -> None:
        if self.vectors is not None and not self.vectors:
            raise ConfigError("vectors='': name word vectors (glove-840b, glove-6b, a file), or null for none")

    @property
    def resources(self) -> tuple[str, ...]:
        from ...resources.catalogue import CATALOGUE

        asked = {"wordnet": self.wordnet, "mwa-ppdb": self.ppdb}
        if self.vectors is not None:
            asked[self.vectors] = self.vectors in CATALOGUE  # a file is looked for when it is opened
        return tuple(sorted(name for name, is_asked in asked.items() if is_asked))

    def of(self, words: Sequence[Word], left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """[U] how alike words[left[u]] and words[right[u]] are; 1 for the same lemma."""
        if not len(left):
            return np.zeros(0)
        best = np.maximum(_spelling(words, left, right), _same_word(words, left, right))
        if self.wordnet:
            best = np.maximum(best, related([word.lemma for word in words], left, right))
        if self.ppdb:
            best = np.maximum(best, _paraphrases(words, left, right))
        if self.vectors is not None:
            best = np.maximum(best, self._distributional(words, left, right))
        lemma = codes([word.lemma for word in words])
        return np.round(np.where(lemma[left] == lemma[right], 1.0, best), _DECIMALS)

    def _distributional(self, words: Sequence[Word], left: np.ndarray, right: np.ndarray) -> np.ndarray:
        from ... import resources

        assert self.vectors is not None
        vectors = resources.vectors(self.vectors)
        matrix = vectors.rows(vectors.lookup([word.form for word in words])).astype(np.float64)
        out = np.empty(len(left))
        for start in range(0, len(left), 4096):  # two rows a pair: bounded memory
            part = slice(start, start + 4096)
            cosine = np.einsum("ij,ij->i", matrix[left[part]], matrix[right[part]])
            out[part] = np.clip(cosine, 0.0, 1.0) ** 2  # a cosine of one half says almost nothing
        return out


def related(lemmas: Sequence[str], left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """[U] the strongest relation that WordNet knows between any senses of the two; lemmas may hold spaces."""
    from ... import resources

    queries = [(lemma, None) for lemma in lemmas]
    found = resources.wordnet().related([queries[i] for i in left.tolist()], [queries[i] for i in right.tolist()])
    return np.max([weight * found[name] for name, weight in RELATED.items()], axis=0, initial=0.0)


def _spelling(words: Sequence[Word], left: np.ndarray, right: np.ndarray) -> np.ndarray:
    from rapidfuzz.distance import JaroWinkler, Levenshtein
    from rapidfuzz.process import cpdist

    a, b = [words[i].lemma for i in left.tolist()], [words[i].lemma for i in right.tolist()]
    distance = cpdist(a, b, scorer=Levenshtein.normalized_similarity, dtype=np.float64)
    jaro = cpdist(a, b, scorer=JaroWinkler.normalized_similarity, dtype=np.float64)
    length = np.array([len(word.lemma) for word in words])
    long = np.minimum(length[left], length[right]) > 3  # short words look alike by accident
    return np.where(long, np.clip(np.maximum(2.0 * distance - 0.8, 3.3 * jaro - 2.3), 0.0, 1.0), 0.0)


def _same_word(words: Sequence[Word], left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Another form of the same word, another way of writing it, the same number, a short form of the name."""
    same = np.zeros(len(left), dtype=bool)
    for key in (lambda w: w, stem, variant, _number):
        number = codes([key(word.form) for word in words])
        same |= (number[left] == number[right]) & (number[left] >= 0)
    short = np.array([word.form in _SHORT for word in words])
    for u in np.flatnonzero(short[left] & short[right] & ~same).tolist():
        same[u] = frozenset((words[left[u]].form, words[right[u]].form)) in NICKNAMES
    return np.where(same, SAME_WORD, 0.0)


_SHORT = frozenset(name for pair in NICKNAMES for name in pair)


def _number(form: str) -> str | None:
    value = number_value(form)
    return None if value is None else repr(value)


def _paraphrases(words: Sequence[Word], left: np.ndarray, right: np.ndarray) -> np.ndarray:
    from ... import resources

    a, b = [words[i].form for i in left.tolist()], [words[i].form for i in right.tolist()]
    return np.where(resources.ppdb().contains(a, b), PARAPHRASE, 0.0)


def codes(values: Sequence[str | None]) -> np.ndarray:
    """Equal numbers for equal values, -1 for None."""
    number: dict[str, int] = {}
    return np.array([-1 if v is None else number.setdefault(v, len(number)) for v in values], dtype=np.int64)


def acronym_of(token: str, span: Sequence[str]) -> bool:
    """Whether the token is the capitals that the words of the span begin with: UN, United Nations."""
    letters = token.replace(".", "")
    if not (1 < len(letters) and letters.isalpha() and letters.isupper()):
        return False
    return letters == "".join(word[0] for word in span if word[:1].isupper()) and span[0][:1].isupper()
