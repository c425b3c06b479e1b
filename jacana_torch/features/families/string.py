"""How alike two words look: Algorithm 1 of Sharma et al. with its special cases, and the usual measures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from ...annotate.normalise import matching_form
from ..acronyms import acronyms, is_acronym
from ..api import Block, NodeBlocks
from ..grid import Grid
from ..ngrams import shared_ngrams
from ..word_pairs import Signal, WordKey, WordPairs
from ..wordlists import FUNCTION_WORDS, NEGATIONS, NICKNAMES, WORD_CLASSES, number_value, stem, variant, word_class

FORM = WordKey(matching_form)  # the word as features compare it: PTB escapes and typographic variants undone
MEASURES = (
    "jaro_winkler", "dice", "hamming", "jaccard", "levenshtein", "ngram3", "ngram4", "prefix", "suffix",
)  # fmt: skip
NULL_COLUMNS = ("bias", "best_identical", "best_same", "best_max", "no_same", "nothing_alike", "rival")
_LONG = 40  # letters; what longer words have is not looked at
_NICKNAME_WORDS = frozenset(word for pair in NICKNAMES for word in pair)


def _phonetic(word: str) -> str:
    import jellyfish

    return jellyfish.metaphone(word) if word.isalpha() and word.isascii() else ""


def _each(function: Callable) -> Callable[[Sequence[str]], list]:
    """`function` of each word in lower case."""
    return lambda words: [function(w.lower()) for w in words]


def similarities(pairs: WordPairs) -> np.ndarray:
    """[U, 9] the MEASURES for each pair, all between 0 and 1, and the same in either order.

    Jaro too: the leftmost free match in a window of the longer word's length is the same one seen from both.
    """
    return pairs.shared("string.measures", lambda: _similarities(pairs))


def _similarities(pairs: WordPairs) -> np.ndarray:
    from rapidfuzz.distance import Hamming, Levenshtein, Postfix, Prefix

    shared2, a2, b2 = shared_ngrams(pairs, 2)
    shared3, a3, b3 = shared_ngrams(pairs, 3)
    shared4, a4, b4 = shared_ngrams(pairs, 4)
    columns = (
        _jaro_winkler(pairs),
        2 * shared2 / (a2 + b2),
        _fuzz(pairs, Hamming.normalized_similarity, _common_letter(pairs)),
        shared2 / (a2 + b2 - shared2),
        _fuzz(pairs, Levenshtein.normalized_similarity, _common_letter(pairs)),
        shared3 / np.minimum(a3, b3),
        shared4 / np.minimum(a4, b4),
        _fuzz(pairs, Prefix.normalized_similarity, np.flatnonzero(pairs.equal("first", _each(lambda w: w[:1])))),
        _fuzz(pairs, Postfix.normalized_similarity, np.flatnonzero(pairs.equal("last", _each(lambda w: w[-1:])))),
    )
    return np.array(columns).T


def _fuzz(pairs: WordPairs, scorer: Callable, ask: np.ndarray) -> np.ndarray:
    """[U] the scorer's figures for the pairs `ask`, 0 for the others; measures are the same in either order."""
    from rapidfuzz.process import cpdist

    lower = pairs.lexicon.attribute("lower", lambda words: _objects([w.lower() for w in words]))
    left, right = lower[pairs.left[ask]].tolist(), lower[pairs.right[ask]].tolist()
    out = np.zeros(len(pairs))
    out[ask] = cpdist(left, right, scorer=scorer, dtype=np.float32)
    return out


def _common_letter(pairs: WordPairs) -> np.ndarray:
    """Pairs that may share a letter: no measure sees anything in the others, and these are fewer than half."""

    def compute() -> np.ndarray:
        letters = pairs.lexicon.attribute("letters", _letters)
        return np.flatnonzero(letters[pairs.left] & letters[pairs.right])

    return pairs.shared("string.common_letter", compute)


def _letters(words: Sequence[str]) -> np.ndarray:
    """[W] a bit for each letter of a word in lower case, one bit for several of a large alphabet."""
    lower = [w.lower() for w in words]
    length = np.array([len(w) for w in lower], dtype=np.int64)
    letters = np.array([w[:_LONG] for w in lower], dtype=f"<U{_LONG}").view(np.uint32).reshape(-1, _LONG)
    bits = np.uint64(1) << (letters & np.uint32(63)).astype(np.uint64)
    bits[np.arange(_LONG) >= length[:, None]] = 0
    return np.where(length > _LONG, ~np.uint64(0), np.bitwise_or.reduce(bits, axis=1))


def _jaro_winkler(pairs: WordPairs) -> np.ndarray:
    from rapidfuzz.distance import JaroWinkler

    def compute() -> np.ndarray:
        return _fuzz(pairs, JaroWinkler.normalized_similarity, _common_letter(pairs))

    return pairs.shared("string.jaro_winkler", compute)


def _objects(values: Sequence) -> np.ndarray:
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out


def _hyphen_match(left: str, right: str) -> bool:
    """Algorithm 1's special cases: a part of a hyphenated word against a word, or part by part."""
    a, b = left.split("-"), right.split("-")
    if len(a) > 1 and len(b) > 1:
        return all(x and y and stem(x) == stem(y) for x, y in zip(a, b, strict=False))
    parts, other = (a, right) if len(a) > 1 else (b, left)
    return any(p and stem(p) == stem(other) for p in parts)


def identical(pairs: WordPairs) -> np.ndarray:
    """[U] whether the words are identical, ignoring case."""
    return pairs.equal("lower", _each(str))


def same_word(pairs: WordPairs) -> np.ndarray:
    """[U] Algorithm 1's "identical ignoring case": equal stems, one stem beginning the other, hyphenated parts."""
    return pairs.shared("string.same", lambda: _same_word(pairs))


def _same_word(pairs: WordPairs) -> np.ndarray:
    words, left, right = pairs.lexicon.words, pairs.left, pairs.right
    same = pairs.equal("stem", _each(stem))
    start = pairs.equal("stem.start", _each(lambda w: s[:3] if len(s := stem(w)) > 2 else None))
    for u in np.flatnonzero(~same & start).tolist():  # few: pairs that share their first three letters
        a, b = stem(words[left[u]].lower()), stem(words[right[u]].lower())
        same[u] = a.startswith(b) or b.startswith(a)
    hyphened = pairs.lexicon.attribute("hyphen", lambda words: np.array(["-" in w[1:-1] for w in words], bool))
    for u in np.flatnonzero(~same & (hyphened[left] | hyphened[right])).tolist():
        same[u] = _hyphen_match(words[left[u]].lower(), words[right[u]].lower())
    return same


def base_of(pairs: WordPairs) -> np.ndarray:
    """[U] one figure in 0..1: 1 the same word, 0.9 the same stem, else how alike they look where that is more than
    chance. Families that weigh neighbours or competitors use it."""

    def compute() -> np.ndarray:
        alike = _jaro_winkler(pairs)
        score = np.where(alike > 0.85, 0.7 * alike, 0.0)
        score = np.where(same_word(pairs), 0.9, score)
        score = np.where(pairs.equal("variant", _each(variant)), 0.95, score)
        return np.where(identical(pairs), 1.0, score)

    return pairs.shared("string.base", compute)


def best_of(pairs: WordPairs) -> np.ndarray:
    """[U] the largest of the measures, 1 for the same word."""
    return np.where(same_word(pairs), 1.0, similarities(pairs).max(axis=1, initial=0.0))


base_similarity = Signal("string.base", FORM, base_of)
identical_words = Signal("string.identical", FORM, identical)
same_words = Signal("string.same", FORM, same_word)
best_measure = Signal("string.best", FORM, best_of)


@dataclass(frozen=True)
class String:
    """`threshold`: the maximum of the measures counts as a match above it (Algorithm 1)."""

    threshold: float = 0.75
    name: str = "string"
    requires: tuple[str, ...] = ()
    key: ClassVar[WordKey] = FORM

    def word_blocks(self, pairs: WordPairs) -> tuple[Block, ...]:
        likeness = pairs.shared(("string.likeness", self.threshold), lambda: self._likeness(pairs))
        return (
            Block(*likeness),
            _classes(pairs),
            _identity_by_word(pairs),
            _function_pairs(pairs),
        )

    def __call__(self, grid: Grid) -> NodeBlocks:
        return NodeBlocks((Block(("acronym",), _acronym_cells(grid)[:, None]),), _null(grid))

    def _likeness(self, pairs: WordPairs) -> tuple[tuple[str, ...], np.ndarray]:
        """Names and a table [U, K] of what is the same for two words in either order."""
        measures, same, alike = similarities(pairs), same_word(pairs), identical(pairs)
        best = best_of(pairs)
        columns = {name: measures[:, i] for i, name in enumerate(MEASURES)}
        columns |= {"identical": pairs.left == pairs.right, "identical_ci": alike, "same_word": same}
        columns["same_word_only"] = same & ~alike
        columns["max"] = best
        columns["max_match"] = np.where(~same & (best > self.threshold), best, 0.0)
        for bound in (0.6, 0.75, 0.85, 0.92):
            columns[f"jaro_winkler>{bound}"] = ~same & (measures[:, 0] > bound)
        columns["variant"] = ~alike & pairs.equal("variant", _each(variant))
        columns["phonetic"] = ~same & pairs.equal("phonetic", _each(_phonetic))
        columns |= _numbers(pairs)
        columns["nickname"] = _nicknames(pairs)
        columns["negations"] = pairs.both("negation", _each(NEGATIONS.__contains__))
        table = np.empty((len(columns), len(pairs)))
        for row, values in zip(table, columns.values(), strict=True):
            row[:] = values
        return tuple(columns), table.T


def _identity_by_word(pairs: WordPairs) -> Block:
    """Which function word or punctuation mark matches itself: `the` is less telling than `between`."""

    def telling(word: str) -> str | None:
        small = word in FUNCTION_WORDS or (len(word) == 1 and word_class(word) == "punct")
        return f"same={word}" if small else None

    names, number = pairs.lexicon.named("string.identity", _each(telling))
    return Block(names, None, np.where(identical(pairs), number[pairs.left], -1))


def _function_pairs(pairs: WordPairs) -> Block:
    """Which two function words meet (`of~for`): a closed class, so training sees every pair that matters."""
    ask = np.flatnonzero(pairs.both("function", _each(FUNCTION_WORDS.__contains__)) & ~identical(pairs))
    words = pairs.lexicon.words
    names: dict[str, int] = {}
    number = np.full(len(pairs), -1, dtype=np.int64)
    for u in ask.tolist():
        name = f"{words[pairs.left[u]].lower()}~{words[pairs.right[u]].lower()}"
        number[u] = names.setdefault(name, len(names))
    return Block(tuple(names), None, number)


def _acronym_cells(grid: Grid) -> np.ndarray:
    meeting = grid.meeting(FORM)
    maybe = meeting.lexicon.attribute(
        "acronym", lambda words: np.array([is_acronym(w) for w in words], dtype=bool)
    )
    return acronyms(grid, np.flatnonzero(maybe[meeting.source]), np.flatnonzero(maybe[meeting.target]))


def _kinds(words: Sequence[str]) -> np.ndarray:
    return np.array([WORD_CLASSES.index(word_class(w)) for w in words], dtype=np.int64)


def _null(grid: Grid) -> tuple[Block, ...]:
    """What speaks for leaving a source token out: its kind, and how good its best partner would be."""
    signals = (identical_words, same_words, best_measure)
    best = np.column_stack([grid.row_max(grid.figure(signal)) for signal in signals])
    base = grid.figure(base_similarity)
    column_best = grid.column_max(base)[grid.target_token]
    rival = grid.row_max(np.where(base > 0, column_best - base, 0.0))
    values = np.column_stack([np.ones(len(best)), best, 1.0 - best[:, 1], best[:, 2] < 0.5, rival])
    meeting = grid.meeting(FORM)
    kind = meeting.lexicon.attribute("kind", _kinds)[meeting.source]
    names, number = meeting.lexicon.named(
        "string.null", _each(lambda w: f"word={w}" if w in FUNCTION_WORDS or len(w) == 1 else None)
    )
    return (
        Block(NULL_COLUMNS, values),
        Block(tuple(f"class={c}" for c in WORD_CLASSES), None, kind),
        Block(tuple(f"unmatched={c}" for c in WORD_CLASSES), None, np.where(best[:, 1] > 0, -1, kind)),
        Block(names, None, number[meeting.source]),
    )


def _numbers(pairs: WordPairs) -> dict[str, np.ndarray]:
    values = pairs.lexicon.attribute(
        "number", _each(lambda w: v if (v := number_value(w)) is not None else np.nan)
    )
    left, right = values[pairs.left], values[pairs.right]
    both = ~np.isnan(left) & ~np.isnan(right)
    return {
        "number_equal": both & (left == right),
        "number_differs": both & (left != right),
        "number_or_not": np.isnan(left) != np.isnan(right),
    }


def _nicknames(pairs: WordPairs) -> np.ndarray:
    """[U] whether one word is short for the other; only pairs of words that stand in the list are looked up."""
    words, found = pairs.lexicon.words, np.zeros(len(pairs), dtype=bool)
    for u in np.flatnonzero(pairs.both("nickname", _each(_NICKNAME_WORDS.__contains__))).tolist():
        found[u] = frozenset((words[pairs.left[u]].lower(), words[pairs.right[u]].lower())) in NICKNAMES
    return found


def _classes(pairs: WordPairs) -> Block:
    """Which kinds of words meet, and whether they are the same word."""
    kind = pairs.lexicon.attribute("kind", _kinds)
    names, table = _class_table()
    row = kind[pairs.left] * len(WORD_CLASSES) + kind[pairs.right]
    return Block(names, table, (row * 2 + identical(pairs)) * 2 + same_word(pairs))


@lru_cache(maxsize=1)
def _class_table() -> tuple[tuple[str, ...], np.ndarray]:
    """All that can be: a row for each two kinds of words, identical or not, the same word or not."""
    n = len(WORD_CLASSES)
    left, right, identical, same = (x.ravel() for x in np.indices((n, n, 2, 2)))
    columns = {}
    for i, a in enumerate(WORD_CLASSES):
        columns[f"identical:{a}"] = (identical == 1) & (left == i)
        columns[f"same:{a}"] = (same == 1) & (identical == 0) & (left == i)
        for j, b in enumerate(WORD_CLASSES):
            columns[f"differ:{a}-{b}"] = (same == 0) & (left == i) & (right == j)
    return tuple(columns), np.column_stack(list(columns.values())).astype(np.float64)
