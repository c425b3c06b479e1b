"""Distributional similarity of words from the two sentences alone (Sharma et al., 2018, Algorithm 2).

The vector of a word counts its typed dependencies ("nsubj of sleep"), all counts smoothed by 2, so no entry is
zero and the vectors of a pair are dense. They are never written out. The entry of a context in which the word was
not seen depends on two totals only, so such entries are summed by totals, and the few others corrected one by one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .api import Block, prefixed
from .dependency_trees import forests
from .grid import Grid
from .lexical import LOWER

MEASURES = ("ppmi.dice", "ppmi.jaccard", "ppmi.cosine", "ttest.dice", "ttest.jaccard", "ttest.cosine")
NOTHING = 1e-12  # sums below this are rounding

Operation = Callable[[np.ndarray, np.ndarray], np.ndarray]


def positive_pmi(observed: np.ndarray, expected: np.ndarray) -> np.ndarray:
    return np.asarray(np.maximum(np.log2(observed / expected), 0.0))


def positive_ttest(observed: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """In units of counts rather than probabilities, which makes no difference to the similarities."""
    return np.asarray(np.maximum((observed - expected) / np.sqrt(expected), 0.0))


ASSOCIATIONS = (positive_pmi, positive_ttest)


@dataclass(frozen=True)
class Contexts:
    """Counts of each word in each context, both numbered through all pairs, and the totals.

    `word`, `context`, `count` [S] the entries, sorted by word then context; `start`, `seen` [W] the first entry
    and the number of entries of each word; `word_total` [W], `context_total` [F]; `word_pair` [W] and
    `context_pair` [F] the pair of each. Per pair [P]: `n_words`, `n_contexts`, and `pair_total`, its tokens.
    `source`, `target`: the word of each token.
    """

    word: np.ndarray
    context: np.ndarray
    count: np.ndarray
    start: np.ndarray
    seen: np.ndarray
    word_total: np.ndarray
    context_total: np.ndarray
    word_pair: np.ndarray
    context_pair: np.ndarray
    n_words: np.ndarray
    n_contexts: np.ndarray
    pair_total: np.ndarray
    source: np.ndarray
    target: np.ndarray
    smoothing: float

    def association(
        self,
        measure: Operation,
        count: np.ndarray,
        word_total: np.ndarray,
        context_total: np.ndarray,
        pair: np.ndarray,
    ) -> np.ndarray:
        """The values of entries; all arguments are smoothed here, as Algorithm 2 adds 2 to every entry."""
        s, n_words, n_contexts = self.smoothing, self.n_words[pair], self.n_contexts[pair]
        total = self.pair_total[pair] + s * n_words * n_contexts
        expected = (word_total + s * n_contexts) * (context_total + s * n_words) / total
        return measure(count + s, expected)


def own_contexts(grid: Grid, smoothing: float = 2.0) -> Contexts:
    source, target, names = forests(grid)
    words = grid.words(LOWER)
    size = len(words.lexicon) + 1
    form = np.concatenate([words.source, words.target])
    pair = np.concatenate([grid.source_pair, grid.target_pair])
    head_form = np.concatenate(
        [_forms_of(words.source, source.head, size - 1), _forms_of(words.target, target.head, size - 1)]
    )
    relation = np.concatenate([source.relation, target.relation])
    distinct, word = np.unique(pair * size + form, return_inverse=True)
    code = (pair * max(len(names), 1) + relation) * size + head_form
    kinds, context = np.unique(code, return_inverse=True)
    entries, count = np.unique(word * max(len(kinds), 1) + context, return_counts=True)
    entry_word, entry_context = np.divmod(entries, max(len(kinds), 1))
    seen = np.bincount(entry_word, minlength=len(distinct))
    word_pair, context_pair = distinct // size, kinds // size // max(len(names), 1)
    n_pairs = len(grid.pairs)
    return Contexts(
        entry_word, entry_context, count, np.cumsum(seen) - seen, seen,
        np.bincount(word, minlength=len(distinct)), np.bincount(context, minlength=len(kinds)),
        word_pair, context_pair,
        np.bincount(word_pair, minlength=n_pairs), np.bincount(context_pair, minlength=n_pairs),
        grid.n_source + grid.n_target, word[: len(words.source)], word[len(words.source) :], smoothing,
    )  # fmt: skip


def _forms_of(form: np.ndarray, head: np.ndarray, root: int) -> np.ndarray:
    """[T] the form of each token's head; the root of a sentence depends on a word of its own."""
    return np.where(head >= 0, form[head], root)


def own_blocks(grid: Grid, smoothing: float) -> tuple[tuple[Block, ...], tuple[Block, ...]]:
    """Link and NULL blocks from the pairs' own dependencies."""
    link, null = measure_blocks(grid, "own", *own_similarity(grid, smoothing))
    return (link,), (null,)


def measure_blocks(grid: Grid, prefix: str, values: np.ndarray, cell: np.ndarray) -> tuple[Block, Block]:
    """The measures and their maximum, also without identical words, for which every measure is 1."""
    best = values.max(axis=1, initial=0.0)
    words = grid.words(LOWER)
    same = np.zeros(len(best), dtype=bool)
    same[cell] = (words.pairs.left == words.pairs.right)[words.cell]
    unlike = np.where(same, 0.0, best)
    names = (*MEASURES, "max", "max.not_identical")
    table = np.column_stack([values, best, unlike])
    null = np.column_stack([grid.row_max(best[cell]), grid.row_max(unlike[cell])])
    return (
        Block(prefixed(f"{prefix}.", names), table, cell),
        Block((f"{prefix}.row_max", f"{prefix}.row_max.not_identical"), null),
    )


def own_similarity(grid: Grid, smoothing: float = 2.0) -> tuple[np.ndarray, np.ndarray]:
    """[R, 6] the MEASURES of each word pair of a sentence pair, and [C] the row of each cell."""
    contexts = own_contexts(grid, smoothing)
    size = max(len(contexts.word_pair), 1)
    code = contexts.source[grid.source_token] * size + contexts.target[grid.target_token]
    distinct, cell = np.unique(code, return_inverse=True)
    left, right = np.divmod(distinct, size)
    every = np.arange(len(contexts.word_pair))
    columns = []
    for measure in ASSOCIATIONS:
        sums = _Sums(contexts, measure)
        total, square = sums(np.minimum, every, every), sums(np.multiply, every, every)
        shared = sums(np.minimum, left, right)
        columns += measures(shared, total[left], total[right], sums(np.multiply, left, right),
                            np.sqrt(np.maximum(square[left] * square[right], 0.0)))  # fmt: skip
    return np.stack(columns, axis=1), cell


def measures(
    shared: np.ndarray, left: np.ndarray, right: np.ndarray, dot: np.ndarray, norm: np.ndarray
) -> list[np.ndarray]:
    """Dice, Jaccard and cosine from the sum of minima, the two sums, the product and the product of the norms."""
    return [_share(2 * shared, left + right), _share(shared, left + right - shared), _share(dot, norm)]


def _share(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    usable = whole > NOTHING
    return np.clip(np.where(usable, part / np.where(usable, whole, 1.0), 0.0), 0.0, 1.0)


class _Sums:
    """Sums of operation(entry of word x, entry of word y) over the contexts of a pair, for many (x, y) at once."""

    def __init__(self, contexts: Contexts, measure: Operation) -> None:
        self.contexts, self.measure = contexts, measure
        c = contexts
        self.value = c.association(measure, c.count, c.word_total[c.word], c.context_total[c.context],
                                   c.word_pair[c.word])  # fmt: skip
        self.width = max(len(c.context_total), 1)
        self.code = c.word * self.width + c.context
        # The contexts of a pair by their totals: how many have each.
        most = int(c.context_total.max(initial=0)) + 1
        kinds, self.kind_count = np.unique(c.context_pair * most + c.context_total, return_counts=True)
        self.kind_total = kinds % most
        self.kind_size = np.bincount(kinds // most, minlength=len(c.n_words))
        self.kind_start = np.cumsum(self.kind_size) - self.kind_size

    def __call__(self, operation: Operation, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        out = self._unseen(operation, left, right)
        out += self._corrections(operation, left, right, skip_shared=False)
        out += self._corrections(operation, right, left, skip_shared=True)
        return out

    def _background(self, word: np.ndarray, context_total: np.ndarray) -> np.ndarray:
        c = self.contexts
        return c.association(
            self.measure, np.zeros(len(word)), c.word_total[word], context_total, c.word_pair[word]
        )

    def _unseen(self, operation: Operation, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """The sum if neither word had been seen anywhere: once for each pair and two word totals."""
        c = self.contexts
        most = int(c.word_total.max(initial=0)) + 1
        code = (c.word_pair[left] * most + c.word_total[left]) * most + c.word_total[right]
        _, first, where = np.unique(code, return_index=True, return_inverse=True)
        left, right = left[first], right[first]
        row, kind = _expand(self.kind_start[c.word_pair[left]], self.kind_size[c.word_pair[left]])
        total = self.kind_total[kind]
        values = operation(self._background(left[row], total), self._background(right[row], total))
        return np.bincount(row, values * self.kind_count[kind], minlength=len(first))[where]

    def _corrections(self, operation: Operation, x: np.ndarray, y: np.ndarray, skip_shared: bool) -> np.ndarray:
        """The true terms of the contexts in which x was seen, less what `_unseen` took them for."""
        c = self.contexts
        row, entry = _expand(c.start[x], c.seen[x])
        context = c.context[entry]
        total = c.context_total[context]
        other, shared = self._entry(y[row], context)
        unseen = operation(self._background(x[row], total), self._background(y[row], total))
        change = operation(self.value[entry], other) - unseen
        if skip_shared:
            change[shared] = 0.0
        return np.bincount(row, change, minlength=len(x))

    def _entry(self, word: np.ndarray, context: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The value of (word, context), and whether it was seen."""
        code = word * self.width + context
        at = np.minimum(np.searchsorted(self.code, code), max(len(self.code) - 1, 0))
        found = self.code[at] == code if len(self.code) else np.zeros(len(code), dtype=bool)
        values = self._background(word, self.contexts.context_total[context])
        values[found] = self.value[at[found]]
        return values, found


def _expand(start: np.ndarray, count: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two arrays: each row r count[r] times, and beside it the numbers start[r] .. start[r] + count[r] - 1."""
    row = np.repeat(np.arange(len(start)), count)
    return row, start[row] + np.arange(len(row)) - (np.cumsum(count) - count)[row]
