"""Similarity of words and phrases, from 0 to 1, by spelling and resources.

All measures share one scale, set by how often words of such a value are linked in annotated data: 0.9 is nearly
the same word, 0.2 little better than random.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ...annotate.tokens import matching_form
from ...errors import ConfigError
from ...features.wordlists import NICKNAMES, number_value, stem, variant
from ...types import Sentence, SentencePair

SAME_WORD = 0.9  # another form of the same word
# Similarity of words by the relation of any of their senses in WordNet.
RELATED = {
    "derived": 0.9, "pertainym": 0.9, "synonym": 0.75, "member_of": 0.7, "has_member": 0.65, "verb_group": 0.65,
    "similar": 0.6, "entailing": 0.6, "entailed_by": 0.6, "causing": 0.6, "caused_by": 0.6, "hypernym": 0.6,
    "hyponym": 0.6, "hypernym_deep": 0.5, "hyponym_deep": 0.5, "part_of": 0.45, "has_part": 0.45, "sister": 0.4,
}  # fmt: skip
PARAPHRASE = 0.6
WRITTEN_APART = 0.9  # e-mail and e mail
ACRONYM = 0.9
NAME = 0.85  # John Lennon and Lennon
LONGEST_ENTRY = 4  # tokens of the longest WordNet entries that are looked up
_SHORT_NAMES = frozenset(name for pair in NICKNAMES for name in pair)
_PAIRS_AT_ONCE = 4096  # word pairs whose vectors are in memory
_DECIMALS = 6  # so that summing in another order does not break ties

Row = tuple[int, int, float]  # span of the source, span of the target, similarity


class Word(NamedTuple):
    form: str
    lemma: str


def words_of(sentence: Sentence) -> list[Word]:
    """Normalise the words of a sentence: no case, typography or Penn escapes."""
    forms = [matching_form(token).lower() for token in sentence.tokens]
    return [Word(f, str(lemma).lower()) for f, lemma in zip(forms, sentence.layer("lemma"), strict=True)]


def codes(values: Sequence[str | None]) -> np.ndarray:
    """Number the distinct values in order; None is -1."""
    number: dict[str, int] = {}
    return np.array([-1 if v is None else number.setdefault(v, len(number)) for v in values], dtype=np.int64)


# Words


@dataclass(frozen=True)
class Similarity:
    """Maximum of several measures of word similarity.

    `wordnet`, `ppdb`: whether to use these resources. `vectors`: a resource, a file, or None.
    """

    wordnet: bool = True
    vectors: str | None = "glove-840b"
    ppdb: bool = False

    def __post_init__(self) -> None:
        if self.vectors is not None and not self.vectors:
            raise ConfigError("vectors='': name word vectors (glove-840b, glove-6b, a file), or null for none")

    @property
    def resources(self) -> tuple[str, ...]:
        from ...resources.catalogue import CATALOGUE

        used = {"wordnet": self.wordnet, "mwa-ppdb": self.ppdb}
        if self.vectors is not None:
            used[self.vectors] = self.vectors in CATALOGUE  # otherwise a file
        return tuple(sorted(name for name, is_used in used.items() if is_used))

    def of(self, words: Sequence[Word], left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """[U] similarity of words[left[u]] and words[right[u]]; 1 for the same lemma."""
        if not len(left):
            return np.zeros(0)
        best = np.maximum(_spelling(words, left, right), _same_word(words, left, right))
        if self.wordnet:
            best = np.maximum(best, related([word.lemma for word in words], left, right))
        if self.ppdb:
            best = np.maximum(best, _paraphrases(words, left, right))
        if self.vectors is not None:
            best = np.maximum(best, _distributional(self.vectors, words, left, right))
        lemma = codes([word.lemma for word in words])
        return np.round(np.where(lemma[left] == lemma[right], 1.0, best), _DECIMALS)


def _spelling(words: Sequence[Word], left: np.ndarray, right: np.ndarray) -> np.ndarray:
    from rapidfuzz.distance import JaroWinkler, Levenshtein
    from rapidfuzz.process import cpdist

    a, b = [words[i].lemma for i in left.tolist()], [words[i].lemma for i in right.tolist()]
    edits = cpdist(a, b, scorer=Levenshtein.normalized_similarity, dtype=np.float64)
    jaro = cpdist(a, b, scorer=JaroWinkler.normalized_similarity, dtype=np.float64)
    length = np.array([len(word.lemma) for word in words])
    long = np.minimum(length[left], length[right]) > 3  # short words are similar by accident
    return np.where(long, np.clip(np.maximum(2.0 * edits - 0.8, 3.3 * jaro - 2.3), 0.0, 1.0), 0.0)


def _same_word(words: Sequence[Word], left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """SAME_WORD for inflected forms, spelling variants, equal numbers and nicknames; 0 for others."""
    forms = [word.form for word in words]
    values = [number_value(form) for form in forms]
    same = np.zeros(len(left), dtype=bool)
    for keys in (
        forms,
        [stem(form) for form in forms],
        [variant(form) for form in forms],
        [None if value is None else repr(value) for value in values],
    ):
        number = codes(keys)
        same |= (number[left] == number[right]) & (number[left] >= 0)
    short = np.array([form in _SHORT_NAMES for form in forms])
    for u in np.flatnonzero(short[left] & short[right] & ~same).tolist():
        same[u] = frozenset((forms[left[u]], forms[right[u]])) in NICKNAMES
    return np.where(same, SAME_WORD, 0.0)


def related(lemmas: Sequence[str], left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """[U] similarity by the strongest WordNet relation between any senses; lemmas may contain spaces."""
    from ... import resources

    queries = [(lemma, None) for lemma in lemmas]
    found = resources.wordnet().related([queries[i] for i in left.tolist()], [queries[i] for i in right.tolist()])
    strongest: np.ndarray = np.max([weight * found[name] for name, weight in RELATED.items()], axis=0, initial=0.0)
    return strongest


def _paraphrases(words: Sequence[Word], left: np.ndarray, right: np.ndarray) -> np.ndarray:
    from ... import resources

    a, b = [words[i].form for i in left.tolist()], [words[i].form for i in right.tolist()]
    return np.where(resources.ppdb().contains(a, b), PARAPHRASE, 0.0)


def _distributional(name: str, words: Sequence[Word], left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Squared cosine of the word vectors: a cosine of one half means almost nothing."""
    from ... import resources

    vectors = resources.vectors(name)
    matrix = vectors.rows(vectors.lookup([word.form for word in words])).astype(np.float64)
    out = np.empty(len(left))
    for start in range(0, len(left), _PAIRS_AT_ONCE):
        part = slice(start, start + _PAIRS_AT_ONCE)
        cosine = np.einsum("ij,ij->i", matrix[left[part]], matrix[right[part]])
        out[part] = np.clip(cosine, 0.0, 1.0) ** 2
    return out


# Phrases


@dataclass(frozen=True)
class Spans:
    """All spans of up to `longest` of `n` tokens, shorter spans first.

    `start`, `end`, `length` [S]. `where` [n, longest]: the number of the span by its start and its length - 1.
    """

    n: int
    start: np.ndarray
    end: np.ndarray
    length: np.ndarray
    where: np.ndarray


@lru_cache(maxsize=1024)
def spans_of(n: int, longest: int) -> Spans:
    """Return the spans of a sentence of n tokens, cached."""
    longest = min(n, longest)
    start = np.concatenate([np.arange(n - k) for k in range(longest)] or [np.zeros(0, np.int64)])
    length = np.repeat(np.arange(1, longest + 1), [n - k for k in range(longest)])
    where = np.full((n, longest), -1, dtype=np.int64)
    where[start, length - 1] = np.arange(len(start))
    return Spans(n, start, start + length, length, where)


def coverage(similar: np.ndarray, source: Spans, target: Spans) -> np.ndarray:
    """[S, T] similarity of phrases: the mean over their words of the best in the other phrase; the lower mean."""
    left = _means(_best(similar, target), source)
    right = _means(_best(similar.T, source), target)
    covered: np.ndarray = np.minimum(left, right.T)
    return covered


def _best(similar: np.ndarray, spans: Spans) -> np.ndarray:
    """[m, T] the largest value of each row in every span of columns."""
    layers = [similar]
    for k in range(1, spans.where.shape[1]):
        layers.append(np.maximum(layers[-1][:, :-1], similar[:, k:]))
    return np.concatenate(layers, axis=1)


def _means(values: np.ndarray, spans: Spans) -> np.ndarray:
    """[S, T] the mean over every span of rows."""
    total = np.concatenate([np.zeros((1, values.shape[1])), np.cumsum(values, axis=0)])
    means: np.ndarray = (total[spans.end] - total[spans.start]) / spans.length[:, None]
    return means


def run_lengths(inside: Sequence[bool]) -> np.ndarray:
    """[n] the length of the run of True values that begins at each token."""
    out, run = np.zeros(len(inside), dtype=np.int64), 0
    for k in range(len(inside) - 1, -1, -1):
        run = run + 1 if inside[k] else 0
        out[k] = run
    return out


class Entries:
    """Finds phrases that mean the same although their words differ.

    These are WordNet entries of several words, acronyms, short forms of names, and words written apart.
    """

    def __init__(self, wordnet: bool) -> None:
        self.wordnet = wordnet
        self._known: dict[str, bool] = {}  # whether a text is an entry

    def found(
        self, pairs: Sequence[SentencePair], words: Sequence[tuple[list[Word], list[Word]]], longest: int
    ) -> list[list[Row]]:
        """Return the similar spans of each pair, whose normalised words are `words`."""
        out: list[list[Row]] = []
        phrases = [(_phrases(a, longest), _phrases(b, longest)) for a, b in words]
        for pair, (a, b), (source, target) in zip(pairs, words, phrases, strict=True):
            rows = list(_short_forms(pair.source, a, pair.target, b, target, spans_of(len(b), longest)))
            turned = _short_forms(pair.target, b, pair.source, a, source, spans_of(len(a), longest))
            out.append(rows + [(s, t, value) for t, s, value in turned])
        entries = self._entries([text for both in phrases for side in both for _, text in side])
        if entries:
            self._add_related(words, phrases, entries, out)
        return out

    def _entries(self, texts: Sequence[str]) -> set[str]:
        """Return those texts that are entries of WordNet."""
        if not self.wordnet:
            return set()
        from ... import resources

        if len(self._known) > 1 << 18:
            self._known.clear()
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        forms = [text.replace(" ", "_") for text in new for _ in range(4)]
        bases = resources.wordnet().morphy_all(forms, list("nvar") * len(new))
        for k, text in enumerate(new):
            self._known[text] = any(base is not None for base in bases[4 * k : 4 * k + 4])
        return {text for text in texts if self._known[text]}

    def _add_related(
        self,
        words: Sequence[tuple[list[Word], list[Word]]],
        phrases: Sequence[tuple[list[tuple[int, str]], list[tuple[int, str]]]],
        entries: set[str],
        out: list[list[Row]],
    ) -> None:
        """Add WordNet's relations of entries to each other and to single words, all pairs at once."""
        number: dict[str, int] = {}
        queries: list[tuple[int, int, int, int, int]] = []  # pair, spans, lemmas
        for k, ((a, b), (source, target)) in enumerate(zip(words, phrases, strict=True)):
            left = [(s, text) for s, text in source if text in entries]
            right = [(t, text) for t, text in target if text in entries]
            singles = [[(i, word.lemma) for i, word in enumerate(side)] for side in (a, b)]
            compared = [(x, y) for x in left for y in [*right, *singles[1]]]
            compared += [(x, y) for x in singles[0] for y in right]
            for (s, one), (t, other) in compared:
                ids = number.setdefault(one, len(number)), number.setdefault(other, len(number))
                queries.append((k, s, t, *ids))
        if not queries:
            return
        table = np.array(queries)
        distinct, which = np.unique(table[:, 3] * len(number) + table[:, 4], return_inverse=True)
        value = related(list(number), distinct // len(number), distinct % len(number))[which]
        for u in np.flatnonzero(value).tolist():
            out[queries[u][0]].append((queries[u][1], queries[u][2], float(value[u])))


def _phrases(words: Sequence[Word], longest: int) -> list[tuple[int, str]]:
    """Return the spans of several words that may be an entry, with their lemmas as one text."""
    where = spans_of(len(words), longest).where
    return [
        (int(where[i, k - 1]), " ".join(word.lemma for word in words[i : i + k]))
        for k in range(2, min(longest, LONGEST_ENTRY, len(words)) + 1)
        for i in range(len(words) - k + 1)
    ]


def _short_forms(
    sentence: Sentence,
    words: Sequence[Word],
    other: Sentence,
    others: Sequence[Word],
    phrases: Sequence[tuple[int, str]],
    spans: Spans,
) -> Iterator[Row]:
    """Yield rows (word of the sentence, span of the other that it stands for, similarity).

    `phrases` are those of the other sentence. The span of a single word has the number of the word.
    """
    joined = [word.lemma.replace("-", "") for word in words]
    for span, text in phrases:
        text = text.replace(" ", "").replace("-", "")
        if text in joined:
            yield from ((i, span, WRITTEN_APART) for i, single in enumerate(joined) if single == text)
    for i, token in enumerate(sentence.tokens):
        if token.isupper() and len(token) > 1:
            for t in np.flatnonzero(spans.length >= 2).tolist():
                if acronym_of(token, other.tokens[int(spans.start[t]) : int(spans.end[t])]):
                    yield i, t, ACRONYM
    name = run_lengths([tag in ("NNP", "NNPS") for tag in other.layer("pos")])
    present = {word.form for word in words}
    for i, (word, tag) in enumerate(zip(words, sentence.layer("pos"), strict=True)):
        if tag not in ("NNP", "NNPS"):
            continue
        for first in [j for j, w in enumerate(others) if w.form == word.form]:
            while first and name[first - 1]:
                first -= 1
            whole = others[first : first + int(name[first])]
            # Otherwise other words of the name are in the sentence, too.
            if 2 <= len(whole) <= spans.where.shape[1] and sum(w.form in present for w in whole) == 1:
                yield i, int(spans.where[first, len(whole) - 1]), NAME


def acronym_of(token: str, span: Sequence[str]) -> bool:
    """Whether the token consists of the capitals that the words of the span begin with: UN, United Nations."""
    letters = token.replace(".", "")
    if not (1 < len(letters) and letters.isalpha() and letters.isupper()):
        return False
    return letters == "".join(word[0] for word in span if word[:1].isupper()) and span[0][:1].isupper()
