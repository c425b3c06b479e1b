"""Phrases: every run of tokens up to a length, and what of two phrases is more than what their words are.

Sentences and a matrix of word similarities in; spans, and one figure for each two spans out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ...types import Sentence, SentencePair
from .lexical_similarity import Word, acronym_of, related

LONGEST_ENTRY = 4  # tokens of the longest WordNet entries that are looked for
WRITTEN_APART = 0.9  # e-mail and e mail
ACRONYM = 0.9
NAME = 0.85  # John Lennon and Lennon


@dataclass(frozen=True)
class Spans:
    """All spans of `n` tokens up to a length: `start`, `end`, `length` [S], shorter ones first; their numbers by
    start and length less one are `where` [n, longest]."""

    n: int
    start: np.ndarray
    end: np.ndarray
    length: np.ndarray
    where: np.ndarray


@lru_cache(maxsize=1024)
def spans_of(n: int, longest: int) -> Spans:
    """The spans of a sentence of n tokens; the same object for the same sizes."""
    longest = min(n, longest)
    start = np.concatenate([np.arange(n - k) for k in range(longest)] or [np.zeros(0, np.int64)])
    length = np.repeat(np.arange(1, longest + 1), [n - k for k in range(longest)])
    where = np.full((n, longest), -1, dtype=np.int64)
    where[start, length - 1] = np.arange(len(start))
    return Spans(n, start, start + length, length, where)


_MODIFIERS = ("DT", "PDT", "PRP$", "JJ", "JJR", "JJS", "CD", "NN", "NNS", "NNP", "NNPS", "VBN", "VBG", "POS", "$")
_NOUN_ENDS = ("NN", "NNS", "NNP", "NNPS", "CD")
_VERB_STARTS = ("MD", "VB", "VBD", "VBG", "VBN", "VBP", "VBZ")
_VERB_MIDDLES = (*_VERB_STARTS, "RB", "TO")
_VERB_ENDS = (*_VERB_STARTS, "RP")


def constituents(sentence: Sentence, spans: Spans) -> np.ndarray:
    """[S] whether a span is all of a base phrase's end, as a shallow parser would see it: a noun with what stands
    before it, verbs with auxiliaries and particles, an adverb before an adjective. Single words always are."""
    tags = sentence.layer("pos")
    noun = _runs([t in _MODIFIERS for t in tags])
    noun_end = np.array([t in _NOUN_ENDS for t in tags], dtype=bool)
    verb = _runs([t in _VERB_MIDDLES or t in _VERB_ENDS for t in tags])
    verb_start = np.array([t in _VERB_STARTS for t in tags], dtype=bool)
    verb_end = np.array([t in _VERB_ENDS for t in tags], dtype=bool)
    degree = np.array([t.startswith("RB") for t in tags], dtype=bool)
    qualified = np.array([t[:2] in ("RB", "JJ") for t in tags], dtype=bool)
    first, last = spans.start, spans.end - 1
    phrase = (noun[first] >= spans.length) & noun_end[last]
    phrase |= (verb[first] >= spans.length) & verb_start[first] & verb_end[last]
    return phrase | (spans.length == 1) | ((spans.length == 2) & degree[first] & qualified[last])


def _runs(inside: Sequence[bool]) -> np.ndarray:
    """[n] how many tokens from each one on are inside without a break."""
    out, run = np.zeros(len(inside), dtype=np.int64), 0
    for k in range(len(inside) - 1, -1, -1):
        run = run + 1 if inside[k] else 0
        out[k] = run
    return out


def coverage(similar: np.ndarray, source: Spans, target: Spans) -> np.ndarray:
    """[S, T] how well each phrase's words find partners in the other: the lower of both sides' mean best."""
    left = _means(_best(similar, target), source)
    right = _means(_best(similar.T, source), target)
    return np.minimum(left, right.T)


def _best(similar: np.ndarray, spans: Spans) -> np.ndarray:
    """[m, T] of each row the largest value in every span of columns."""
    layers = [similar]
    for k in range(1, spans.where.shape[1]):
        layers.append(np.maximum(layers[-1][:, :-1], similar[:, k:]))
    return np.concatenate(layers, axis=1)


def _means(values: np.ndarray, spans: Spans) -> np.ndarray:
    """[S, T] the mean over every span of rows."""
    total = np.concatenate([np.zeros((1, values.shape[1])), np.cumsum(values, axis=0)])
    return (total[spans.end] - total[spans.start]) / spans.length[:, None]


def equal_phrases(lemma: tuple[np.ndarray, np.ndarray], source: Spans, target: Spans) -> np.ndarray:
    """[S, T] whether two phrases are the same lemmas, which come as numbers."""
    run = np.zeros((source.n + 1, target.n + 1), dtype=np.int64)  # common lemmas from here on
    same = lemma[0][:, None] == lemma[1][None, :]
    for i in range(source.n - 1, -1, -1):
        run[i, :-1] = np.where(same[i], run[i + 1, 1:] + 1, 0)
    long_enough = run[source.start[:, None], target.start] >= source.length[:, None]
    return long_enough & (source.length[:, None] == target.length)


class Entries:
    """What dictionaries know of phrases: WordNet's entries of several words, acronyms, words written apart.

    `add` takes the pairs of a batch, `found` gives for each of them rows (source span, target span, likeness).
    """

    def __init__(self, wordnet: bool) -> None:
        self.wordnet = wordnet
        self._known: dict[str, bool] = {}

    def found(
        self, pairs: Sequence[SentencePair], words: Sequence[tuple[list[Word], list[Word]]], longest: int
    ) -> list[list[tuple[int, int, float]]]:
        """For each pair the spans that mean the same though their words do not, and how sure that is."""
        out: list[list[tuple[int, int, float]]] = []
        sides = [[_phrases(side, longest) for side in both] for both in words]
        entries = self._entries([text for both in sides for side in both for _, text in side])
        for pair, (a, b), (source, target) in zip(pairs, words, sides, strict=True):
            spans = spans_of(len(a), longest), spans_of(len(b), longest)
            rows = _written_apart(a, b, source, target, spans)
            rows += _names(pair.source, pair.target, a, b, spans)
            rows += [(s, t, v) for t, s, v in _names(pair.target, pair.source, b, a, spans[::-1])]
            rows += _acronyms(pair.source.tokens, pair.target.tokens, spans)
            rows += [(s, t, v) for t, s, v in _acronyms(pair.target.tokens, pair.source.tokens, spans[::-1])]
            out.append(rows)
        if entries:
            self._relate(words, sides, entries, out)
        return out

    def _entries(self, texts: Sequence[str]) -> set[str]:
        """Those of the texts that are entries of WordNet."""
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

    def _relate(self, words: Sequence, sides: Sequence, entries: set[str], out: list) -> None:
        """Add what WordNet says of its entries, all pairs at once."""
        number: dict[str, int] = {}
        asked: list[tuple[int, int, int, int, int]] = []  # pair, spans, lemmas
        for k, ((a, b), (source, target)) in enumerate(zip(words, sides, strict=True)):
            left = [(s, text) for s, text in source if text in entries]
            right = [(t, text) for t, text in target if text in entries]
            singles = [[(i, word.lemma) for i, word in enumerate(side)] for side in (a, b)]
            meetings = [(x, y) for x in left for y in [*right, *singles[1]]]
            meetings += [(x, y) for x in singles[0] for y in right]
            for (s, one), (t, other) in meetings:
                ids = number.setdefault(one, len(number)), number.setdefault(other, len(number))
                asked.append((k, s, t, *ids))
        if not asked:
            return
        table = np.array(asked)
        distinct, which = np.unique(table[:, 3] * len(number) + table[:, 4], return_inverse=True)
        value = related(list(number), distinct // len(number), distinct % len(number))[which]
        for u in np.flatnonzero(value).tolist():
            out[asked[u][0]].append((asked[u][1], asked[u][2], float(value[u])))


def _phrases(words: Sequence[Word], longest: int) -> list[tuple[int, str]]:
    """The spans of several words that an entry could be, with their lemmas as one text."""
    where = spans_of(len(words), longest).where
    return [
        (int(where[i, k - 1]), " ".join(word.lemma for word in words[i : i + k]))
        for k in range(2, min(longest, LONGEST_ENTRY, len(words)) + 1)
        for i in range(len(words) - k + 1)
    ]


def _written_apart(
    a: Sequence[Word], b: Sequence[Word], source: Sequence, target: Sequence, spans: tuple[Spans, Spans]
) -> list[tuple[int, int, float]]:
    squeezed = [
        [(i, _squeezed(word.lemma)) for i, word in enumerate(side)] for side in (a, b)
    ]  # single words come first among spans
    rows = []
    for phrases, singles, turned in ((source, squeezed[1], False), (target, squeezed[0], True)):
        by_text: dict[str, list[int]] = {}
        for k, text in singles:
            by_text.setdefault(text, []).append(k)
        for span, text in phrases:
            for single in by_text.get(_squeezed(text), ()):
                rows.append((single, span, WRITTEN_APART) if turned else (span, single, WRITTEN_APART))
    return rows


def _squeezed(text: str) -> str:
    return text.replace(" ", "").replace("-", "")


def _acronyms(tokens: Sequence[str], others: Sequence[str], spans: tuple[Spans, Spans]) -> list:
    """Rows (span of a token, span of what it stands for, likeness)."""
    rows = []
    for i, token in enumerate(tokens):
        letters = token.replace(".", "")
        if not (token.isupper() and len(letters) > 1):
            continue
        for t in np.flatnonzero(spans[1].length >= min(len(letters), 2)).tolist():
            first = int(spans[1].start[t])
            if acronym_of(token, others[first : first + int(spans[1].length[t])]):
                rows.append((i, t, ACRONYM))
    return rows


def _names(
    sentence: Sentence, other: Sentence, words: Sequence[Word], others: Sequence[Word], spans: tuple[Spans, Spans]
) -> list[tuple[int, int, float]]:
    """Rows (span of a name's one word, span of the whole name): its other words are not in the sentence."""
    proper = [tag in ("NNP", "NNPS") for tag in sentence.layer("pos")]
    other_tags = other.layer("pos")
    run = _runs([tag in ("NNP", "NNPS") for tag in other_tags])
    present = {word.form for word in words}
    where: dict[str, list[int]] = {}
    for j, word in enumerate(others):
        where.setdefault(word.form, []).append(j)
    rows = []
    for i, word in enumerate(words):
        if not proper[i]:
            continue
        for j in where.get(word.form, ()):
            first = j
            while first and run[first - 1]:
                first -= 1
            end = first + int(run[first])
            name = others[first:end]
            if 2 <= len(name) <= spans[1].where.shape[1] and sum(w.form in present for w in name) == 1:
                rows.append((i, int(spans[1].where[first, len(name) - 1]), NAME))
    return rows
