"""The features of every edit of a pair (MacCartney et al. §4.2), and their scores under some weights.

Pairs in, `Problem`s out: what an edit of two phrases is, as a number for all that is discrete and a few figures. A
problem does not depend on weights, so training computes it once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...types import SentencePair
from .lexical_similarity import Similarity, Word, codes, words_of
from .phrases import Entries, Spans, constituents, coverage, equal_phrases, spans_of

NEIGHBOURS = ("unlike", "similar", "equal")  # the tokens before both phrases, or after them
SIMILAR = 0.5
LEVELS = (0.3, 0.45, 0.6, 0.75, 0.85)  # the similarity counts once more above each: what it is worth is no line
LARGE = 3  # phrases of so many tokens or more are of one size: few are seen
FIGURES = ("similarity", "similarity*neighbours", "EQ.further_neighbours", "skipping_neighbours", "distortion")
Numbers = tuple[np.ndarray, np.ndarray]  # of source tokens, of target tokens
Edit = tuple[int, int]  # number of the source span, number of the target span


@dataclass(frozen=True)
class Problem:
    """All SUB and EQ edits of a pair: source span s and target span t are edit (s, t).

    `code` [S, T] row of `Columns.table` and level of the similarity;  `similarity` [S, T];
    `further` [S, T] how many of the tokens two and three before and behind are equal, for EQ edits;  `skipping`
    whether there is a match before, and behind, where one of the phrases skips a token.
    """

    source: Spans
    target: Spans
    code: np.ndarray
    similarity: np.ndarray
    further: np.ndarray
    skipping: np.ndarray

    def distortion(self, s: int | slice = slice(None), t: int | slice = slice(None)) -> np.ndarray:
        """How far apart the phrases stand in their sentences, each of length 1; [S, T], or of some of them."""
        middle = [(spans.start + spans.end) / (2.0 * max(spans.n, 1)) for spans in (self.source, self.target)]
        return np.abs(np.subtract.outer(middle[0][s], middle[1][t]))


class Columns:
    """The names of the features and, for each combination of discrete ones, their values.

    What is discrete: the kind of edit (of equal lemmas and forms, of equal lemmas, of others), whether the tokens
    before and after match, whether either phrase is no constituent, sizes, and the level of the similarity.
    """

    def __init__(self, longest: int) -> None:
        self.sizes = min(longest, LARGE)
        self.shape = (3, 3, 3, 2, 2, self.sizes, self.sizes, len(LEVELS) + 1)
        sizes = range(1, self.sizes + 1)
        names = ["type.EQ", "type.SUB", "EQ.other_form"]
        names += [f"{kind}.{side}.{match}" for kind in ("EQ", "SUB") for side in ("left", "right")
                  for match in NEIGHBOURS[1:]]  # fmt: skip
        names += ["no_constituent.source", "no_constituent.target"]
        names += [f"size.{a}x{b}" for a in sizes for b in sizes]
        self._plain, behind = len(names), len(names) + len(LEVELS)
        self.names = (*names, *[f"similarity>{level}" for level in LEVELS], *FIGURES, "type.DEL", "type.INS")
        self.number = {name: k for k, name in enumerate(self.names)}
        self._levels = slice(self._plain, behind)
        self._figures = slice(behind, behind + len(FIGURES))
        self._made: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None

    @cached_property
    def table(self) -> np.ndarray:
        """[combinations, plain] the features of each but for the level of the similarity."""
        shape = self.shape[:-1]
        kind, left, right, odd_source, odd_target, a, b = np.unravel_index(np.arange(np.prod(shape)), shape)
        table = np.zeros((len(kind), self._plain))
        table[:, 0], table[:, 1], table[:, 2] = kind < 2, kind == 2, kind == 1
        for of_kind, called in ((kind < 2, "EQ"), (kind == 2, "SUB")):
            for side, match in (("left", left), ("right", right)):
                for value, name in enumerate(NEIGHBOURS[1:], 1):
                    table[:, self.number[f"{called}.{side}.{name}"]] = of_kind & (match == value)
        table[:, self.number["no_constituent.source"]] = odd_source
        table[:, self.number["no_constituent.target"]] = odd_target
        table[np.arange(len(kind)), self.number["size.1x1"] + a * self.sizes + b] = 1.0
        return table

    def gains(self, problem: Problem, weights: np.ndarray) -> np.ndarray:
        """[S, T] what each edit adds to the score of an alignment where its tokens were deleted and inserted."""
        by_code, slope = self._tables(weights)
        _, _, further, skipping, distortion, delete, insert = weights[self._figures.start :].tolist()
        code = problem.code.astype(np.intp)
        out = by_code.take(code)
        out -= delete * problem.source.length[:, None] + insert * problem.target.length
        out += slope.take(code) * problem.similarity
        out += np.multiply(problem.further, further, dtype=np.float64)
        out += np.multiply(problem.skipping, skipping, dtype=np.float64)
        out += distortion * problem.distortion()
        return out

    def _tables(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What each code is worth, and a similarity of 1 under it; kept while the weights are the same."""
        if self._made is None or not np.array_equal(self._made[0], weights):
            similarity, with_neighbours = weights[self._figures][:2].tolist()
            levels = np.concatenate([[0.0], np.cumsum(weights[self._levels])])
            by_code = (self.table @ weights[: self._plain])[:, None] + levels
            self._made = weights.copy(), by_code.ravel(), similarity + with_neighbours * self._matching
        return self._made[1:]

    @cached_property
    def _matching(self) -> np.ndarray:
        """[combinations, levels] how many of the neighbours are similar or equal."""
        _, left, right, *_ = np.indices(self.shape, sparse=True)
        return np.broadcast_to((left > 0).astype(float) + (right > 0), self.shape).ravel()

    def base(self, problem: Problem, weights: np.ndarray) -> float:
        """The score of the alignment that deletes and inserts everything."""
        return float(problem.source.n * weights[-2] + problem.target.n * weights[-1])

    def features(self, problem: Problem, edits: Sequence[Edit]) -> np.ndarray:
        """[K] the sum of features over an alignment, without those of the empty one: what scores its gains."""
        total = np.zeros(len(self.names))
        for s, t in edits:
            row, level = divmod(int(problem.code[s, t]), len(LEVELS) + 1)
            total[: self._plain] += self.table[row]
            total[self._plain : self._plain + level] += 1.0
            similarity = float(problem.similarity[s, t])
            matching = self._matching[problem.code[s, t]]
            company = problem.further[s, t], problem.skipping[s, t]
            total[self._figures] += (similarity, similarity * matching, *company, float(problem.distortion(s, t)))
            total[-2:] -= problem.source.length[s], problem.target.length[t]  # neither deleted nor inserted
        return total


class Extractor:
    """Pairs in, problems out. `longest`: the most tokens that a phrase may have."""

    def __init__(self, similarity: Similarity, longest: int) -> None:
        self.similarity, self.longest = similarity, longest
        self.columns = Columns(longest)
        self._entries = Entries(similarity.wordnet)

    def __call__(self, pairs: Sequence[SentencePair]) -> list[Problem]:
        words = [(words_of(pair.source), words_of(pair.target)) for pair in pairs]
        tables, lemmas, forms = self._likeness(words)
        entries = self._entries.found(pairs, words, self.longest)
        return [self._problem(*parts) for parts in zip(pairs, tables, lemmas, forms, entries, strict=True)]

    def _likeness(self, words: Sequence[tuple[list[Word], list[Word]]]) -> tuple[list, list, list]:
        """For each pair the [m, n] similarities of its words; their lemmas, and their forms, as numbers."""
        number: dict[Word, int] = {}
        ids = [_numbers(both, lambda word: number.setdefault(word, len(number))) for both in words]
        lemma, form = codes([w.lemma for w in number]), codes([w.form for w in number])
        cells = [(a[:, None] * len(number) + b).ravel() for a, b in ids]
        distinct, which = np.unique(np.concatenate(cells or [np.zeros(0, np.int64)]), return_inverse=True)
        left, right = np.divmod(distinct, max(len(number), 1))
        values = self.similarity.of(list(number), left, right)[which]
        parts = np.split(values, np.cumsum([len(part) for part in cells])[:-1]) if cells else []
        tables = [part.reshape(len(a), len(b)) for part, (a, b) in zip(parts, ids, strict=True)]
        return tables, [(lemma[a], lemma[b]) for a, b in ids], [(form[a], form[b]) for a, b in ids]

    def _problem(
        self, pair: SentencePair, similar: np.ndarray, lemma: Numbers, form: Numbers, entries: list
    ) -> Problem:
        source, target = spans_of(len(pair.source), self.longest), spans_of(len(pair.target), self.longest)
        likeness = coverage(similar, source, target)
        for s, t, value in entries:
            likeness[s, t] = max(likeness[s, t], value)
        equal = equal_phrases(lemma, source, target)
        kind = 2 - equal - equal_phrases(form, source, target).astype(np.int32) * equal
        likeness[equal] = 0.0  # the similarity of EQ edits is their type
        left, right = _neighbours(similar, lemma, source, target)
        further, skipping = _company(lemma, source, target)
        further[~equal] = 0
        odd = [~constituents(s, spans) for s, spans in ((pair.source, source), (pair.target, target))]
        likeness = np.round(likeness, 6)
        level = np.searchsorted(LEVELS, likeness)
        most = self.columns.sizes
        sizes = np.minimum(source.length, most)[:, None] - 1, np.minimum(target.length, most) - 1
        parts = (kind, left, right, odd[0][:, None], odd[1], *sizes, level)
        code = np.zeros(equal.shape, dtype=np.int16)
        for size, part in zip(self.columns.shape, parts, strict=True):
            code *= size
            code += part.astype(np.int16)
        return Problem(source, target, code, likeness.astype(np.float32), further, skipping)


def _numbers(both: tuple[list[Word], list[Word]], number: Callable[[Word], int]) -> Numbers:
    source, target = (np.array([number(word) for word in side], dtype=np.int64) for side in both)
    return source, target


def _neighbours(
    similar: np.ndarray, lemma: Numbers, source: Spans, target: Spans
) -> tuple[np.ndarray, np.ndarray]:
    """[S, T] which of NEIGHBOURS the tokens before the two phrases are, and those after them."""
    m, n = similar.shape
    around = np.zeros((m + 2, n + 2), dtype=np.int8)  # a ring for the edges
    around[1:-1, 1:-1] = np.where(lemma[0][:, None] == lemma[1], 2, similar >= SIMILAR)
    around[0, 0] = around[-1, -1] = 2  # where both sentences begin, or end
    left = around[source.start[:, None], target.start]
    right = around[source.end[:, None] + 1, target.end + 1]
    return left, right


def _company(lemma: Numbers, source: Spans, target: Spans) -> tuple[np.ndarray, np.ndarray]:
    """[S, T] how many of the tokens two and three before the phrases and behind them are equal; on how many sides
    the token next to one of the phrases equals the next but one to the other."""
    margin = 3
    equal = np.zeros((source.n + 2 * margin, target.n + 2 * margin), dtype=np.int8)
    equal[margin:-margin, margin:-margin] = lemma[0][:, None] == lemma[1]

    def away(step_source: int, step_target: int) -> np.ndarray:  # [m + 1, n + 1] seen from each gap between tokens
        i, j = margin + step_source, margin + step_target
        return equal[i : i + source.n + 1, j : j + target.n + 1]

    before, behind = (source.start[:, None], target.start), (source.end[:, None], target.end)
    further = (away(-2, -2) + away(-3, -3))[before] + (away(1, 1) + away(2, 2))[behind]
    skipping = (away(-1, -2) | away(-2, -1))[before] + (away(0, 1) | away(1, 0))[behind]
    return further, skipping
