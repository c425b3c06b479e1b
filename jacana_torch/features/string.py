"""How alike two words look: Algorithm 1 of Sharma et al. with its special cases, and the usual measures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import sparse

from ..annotate.normalise import matching_form
from .acronyms import acronyms
from .base import Block, NodeBlocks
from .grid import Grid, Words
from .wordlists import FUNCTION_WORDS, NEGATIONS, NICKNAMES, WORD_CLASSES, number_value, stem, variant, word_class

MEASURES = (
    "jaro_winkler", "dice", "hamming", "jaccard", "levenshtein", "ngram3", "ngram4", "prefix", "suffix",
)  # fmt: skip
NULL_COLUMNS = ("bias", "best_identical", "best_same", "best_max", "no_same", "nothing_alike", "rival")
_NICKNAME_WORDS = frozenset(word for pair in NICKNAMES for word in pair)


@lru_cache(maxsize=1 << 17)
def _phonetic(word: str) -> str:
    import jellyfish

    return jellyfish.metaphone(word) if word.isalpha() and word.isascii() else ""


def forms(grid: Grid) -> Words:
    """The distinct words of a grid as features compare them: PTB escapes and typographic variants undone."""
    return grid.words(matching_form)


def _codes(values: Sequence) -> np.ndarray:
    """Equal values get equal numbers; empty ones (None, "") never equal anything."""
    number: dict = {}
    codes = [-1 - i if v is None or v == "" else number.setdefault(v, len(number)) for i, v in enumerate(values)]
    return np.array(codes, dtype=np.int64)


def equal(values: Sequence, words: Words) -> np.ndarray:
    codes = _codes(values)
    return codes[words.left] == codes[words.right]


def _ngram_overlap(lower: Sequence[str], n: int, words: Words) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Shared distinct n-grams of each pair, and how many each word has (a shorter word counts as one n-gram)."""
    grams = [{w[i : i + n] for i in range(max(len(w) - n + 1, 1))} for w in lower]
    number: dict[str, int] = {}
    columns = [number.setdefault(g, len(number)) for gs in grams for g in gs]
    counts = np.array([len(gs) for gs in grams], dtype=np.int64)
    pointers = np.concatenate([[0], np.cumsum(counts)])
    shape = (len(lower), max(len(number), 1))
    matrix = sparse.csr_matrix((np.ones(len(columns), dtype=np.float32), columns, pointers), shape=shape)
    shared = np.asarray(matrix[words.left].multiply(matrix[words.right]).sum(axis=1)).ravel()
    return shared.astype(np.float64), counts[words.left], counts[words.right]


def similarities(lower: Sequence[str], words: Words) -> np.ndarray:
    """[U, 9] the MEASURES for each distinct pair, all between 0 and 1, and the same in either order.

    Jaro too: the leftmost free match in a window of the longer word's length is the same one seen from both.
    """
    from rapidfuzz.distance import Hamming, JaroWinkler, Levenshtein, Postfix, Prefix
    from rapidfuzz.process import cpdist

    strings = np.array(lower, dtype=object)
    left, right = strings[words.left].tolist(), strings[words.right].tolist()

    def fuzz(scorer: Callable) -> np.ndarray:
        return cpdist(left, right, scorer=scorer, dtype=np.float32).astype(np.float64)

    shared2, a2, b2 = _ngram_overlap(lower, 2, words)
    shared3, a3, b3 = _ngram_overlap(lower, 3, words)
    shared4, a4, b4 = _ngram_overlap(lower, 4, words)
    return np.column_stack(
        [
            fuzz(JaroWinkler.normalized_similarity),
            2 * shared2 / (a2 + b2),
            fuzz(Hamming.normalized_similarity),
            shared2 / (a2 + b2 - shared2),
            fuzz(Levenshtein.normalized_similarity),
            shared3 / np.minimum(a3, b3),
            shared4 / np.minimum(a4, b4),
            fuzz(Prefix.normalized_similarity),
            fuzz(Postfix.normalized_similarity),
        ]
    )


def _hyphen_match(left: str, right: str) -> bool:
    """Algorithm 1's special cases: a part of a hyphenated word against a word, or part by part."""
    a, b = left.split("-"), right.split("-")
    if len(a) > 1 and len(b) > 1:
        return all(x and y and stem(x) == stem(y) for x, y in zip(a, b, strict=False))
    parts, other = (a, right) if len(a) > 1 else (b, left)
    return any(p and stem(p) == stem(other) for p in parts)


def same_word(lower: Sequence[str], words: Words) -> np.ndarray:
    """[U] Algorithm 1's "identical ignoring case": equal stems, one stem beginning the other, hyphenated parts."""
    stems = [stem(w) for w in lower]
    codes = _codes(stems)
    same = codes[words.left] == codes[words.right]
    first3 = _codes([s[:3] if len(s) > 2 else None for s in stems])
    candidates = np.flatnonzero(~same & (first3[words.left] == first3[words.right]))
    for u in candidates:  # few: pairs that share their first three letters
        a, b = stems[words.left[u]], stems[words.right[u]]
        same[u] = a.startswith(b) or b.startswith(a)
    hyphened = np.array(["-" in w[1:-1] for w in lower], dtype=bool)
    for u in np.flatnonzero(~same & (hyphened[words.left] | hyphened[words.right])):
        same[u] = _hyphen_match(lower[words.left[u]], lower[words.right[u]])
    return same


def _lower(grid: Grid) -> list[str]:
    return grid.shared("string.lower", lambda: [w.lower() for w in forms(grid).values])


def _measures(grid: Grid) -> np.ndarray:
    """[U, 9]"""
    words, lower = forms(grid), _lower(grid)
    return grid.shared("string.measures", lambda: similarities(lower, words))


def _same(grid: Grid) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """[U] each: identical ignoring case, the same by Algorithm 1, variants in spelling."""
    words, lower = forms(grid), _lower(grid)
    return grid.shared(
        "string.same",
        lambda: (equal(lower, words), same_word(lower, words), equal([variant(w) for w in lower], words)),
    )


def base_similarity(grid: Grid) -> np.ndarray:
    """[U] one figure in 0..1 per distinct pair of forms: 1 the same word, 0.9 the same stem, else how alike
    they look where that is more than chance. Families that weigh neighbours or competitors use it."""

    def compute() -> np.ndarray:
        alike = _measures(grid)[:, 0]  # Jaro-Winkler
        identical, same, variants = _same(grid)
        score = np.where(alike > 0.85, 0.7 * alike, 0.0)
        score = np.where(same, 0.9, score)
        score = np.where(variants, 0.95, score)
        return np.where(identical, 1.0, score)

    return grid.shared("string.base", compute)


@dataclass(frozen=True)
class String:
    """`threshold`: the maximum of the measures counts as a match above it (Algorithm 1)."""

    threshold: float = 0.75
    name: str = "string"
    requires: tuple[str, ...] = ()

    def __call__(self, grid: Grid) -> NodeBlocks:
        words, lower = forms(grid), _lower(grid)
        identical, same, _ = _same(grid)
        names, table = grid.shared(("string.pairs", self.threshold), lambda: self._word_pairs(grid))
        link = (
            Block(names, table, words.cell),
            _classes(words, identical, same),
            _identity_by_word(words, lower, identical),
            _function_pairs(words, lower, identical),
            Block(("acronym",), acronyms(grid)[:, None]),
        )
        candidates = np.column_stack([identical, same, table[:, names.index("max")]])
        return NodeBlocks(link, _null(grid, words, lower, candidates))

    def _word_pairs(self, grid: Grid) -> tuple[tuple[str, ...], np.ndarray]:
        """Names and a table [U, K] of what is the same for two words in either order."""
        words, lower, measures = forms(grid), _lower(grid), _measures(grid)
        identical, same, variants = _same(grid)
        best = np.where(same, 1.0, measures.max(axis=1))
        columns = {name: measures[:, i] for i, name in enumerate(MEASURES)}
        columns |= {"identical": equal(words.values, words), "identical_ci": identical, "same_word": same}
        columns["same_word_only"] = same & ~identical
        columns["max"] = best
        columns["max_match"] = np.where(~same & (best > self.threshold), best, 0.0)
        for bound in (0.6, 0.75, 0.85, 0.92):
            columns[f"jaro_winkler>{bound}"] = ~same & (measures[:, 0] > bound)
        columns["variant"] = ~identical & variants
        columns["phonetic"] = ~same & equal([_phonetic(w) for w in lower], words)
        columns |= _numbers(lower, words)
        columns["nickname"] = _nicknames(lower, words)
        negative = np.array([w in NEGATIONS for w in lower], dtype=bool)
        columns["negations"] = negative[words.left] & negative[words.right]
        table = np.empty((len(words.left), len(columns)))
        for k, values in enumerate(columns.values()):
            table[:, k] = values
        return tuple(columns), table


def _numbered(keys: Sequence[str | None]) -> tuple[tuple[str, ...], np.ndarray]:
    """The distinct keys in order, and each one's number; None is -1."""
    names: dict[str, int] = {}
    number = [-1 if key is None else names.setdefault(key, len(names)) for key in keys]
    return tuple(names), np.array(number, dtype=np.int64)


def _identity_by_word(words: Words, lower: list[str], identical: np.ndarray) -> Block:
    """Which function word or punctuation mark matches itself: `the` is less telling than `between`."""

    def telling(word: str) -> bool:
        return word in FUNCTION_WORDS or (len(word) == 1 and word_class(word) == "punct")

    names, number = _numbered([f"same={w}" if telling(w) else None for w in lower])
    return Block(names, None, np.where(identical, number[words.left], -1)[words.cell])


def _function_pairs(words: Words, lower: list[str], identical: np.ndarray) -> Block:
    """Which two function words meet (`of~for`): a closed class, so training sees every pair that matters."""
    function = np.array([w in FUNCTION_WORDS for w in lower], dtype=bool)
    ask = np.flatnonzero(function[words.left] & function[words.right] & ~identical)
    names, number = _numbered([f"{lower[words.left[u]]}~{lower[words.right[u]]}" for u in ask])
    per_pair = np.full(len(words.left), -1, dtype=np.int64)
    per_pair[ask] = number
    return Block(names, None, per_pair[words.cell])


def _null(grid: Grid, words: Words, lower: list[str], candidates: np.ndarray) -> tuple[Block, ...]:
    """What speaks for leaving a source token out: its kind, and how good its best partner would be.

    `candidates` [U, 3]: whether two words are identical, whether they are the same word, how alike they look.
    """
    best = grid.row_max(candidates[words.cell])
    base = base_similarity(grid)[words.cell]
    column_best = grid.column_max(base)[grid.target_token]
    rival = grid.row_max(np.where(base > 0, column_best - base, 0.0))
    values = np.column_stack([np.ones(len(best)), best, 1.0 - best[:, 1], best[:, 2] < 0.5, rival])
    kind = np.array([WORD_CLASSES.index(word_class(w)) for w in words.values], dtype=np.int64)[words.source]
    names, number = _numbered([f"word={w}" if w in FUNCTION_WORDS or len(w) == 1 else None for w in lower])
    return (
        Block(NULL_COLUMNS, values),
        Block(tuple(f"class={c}" for c in WORD_CLASSES), None, kind),
        Block(tuple(f"unmatched={c}" for c in WORD_CLASSES), None, np.where(best[:, 1] > 0, -1, kind)),
        Block(names, None, number[words.source]),
    )


def _numbers(lower: list[str], words: Words) -> dict[str, np.ndarray]:
    values = np.array([v if (v := number_value(w)) is not None else np.nan for w in lower])
    left, right = values[words.left], values[words.right]
    both = ~np.isnan(left) & ~np.isnan(right)
    return {
        "number_equal": both & (left == right),
        "number_differs": both & (left != right),
        "number_or_not": np.isnan(left) != np.isnan(right),
    }


def _nicknames(lower: list[str], words: Words) -> np.ndarray:
    """[U] whether one word is short for the other; only pairs of words that stand in the list are looked up."""
    known = np.array([w in _NICKNAME_WORDS for w in lower], dtype=bool)
    found = np.zeros(len(words.left), dtype=bool)
    for u in np.flatnonzero(known[words.left] & known[words.right]):
        found[u] = frozenset((lower[words.left[u]], lower[words.right[u]])) in NICKNAMES
    return found


def _classes(words: Words, identical: np.ndarray, same: np.ndarray) -> Block:
    """Which kinds of words meet, and whether they are the same word."""
    kind = np.array([WORD_CLASSES.index(word_class(w)) for w in words.values], dtype=np.int64)
    names, table = _class_table()
    row = ((kind[words.left] * len(WORD_CLASSES) + kind[words.right]) * 2 + identical) * 2 + same
    return Block(names, table, row[words.cell])


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
