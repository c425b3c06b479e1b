"""Features of every edit of a pair (MacCartney et al. 2008, §4.2), and the scores of edits under some weights.

A `Problem` holds what does not depend on weights, so training computes it once: a code for all discrete features
of an edit, and a few numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...types import Sentence, SentencePair
from .phrase_similarity import (
    Entries,
    Row,
    Similarity,
    Spans,
    Word,
    codes,
    coverage,
    run_lengths,
    spans_of,
    words_of,
)

NEIGHBOURS = ("unlike", "similar", "equal")  # the tokens before both phrases, or after them
SIMILAR = 0.5
LEVELS = (0.3, 0.45, 0.6, 0.75, 0.85)  # one feature for each that the similarity exceeds: its effect is not linear
LARGE = 3  # phrases of this many tokens or more have the same size, because they are rare
NUMBERS = ("similarity", "similarity*neighbours", "EQ.further_neighbours", "skipping_neighbours", "distortion")
Ids = tuple[np.ndarray, np.ndarray]  # of source tokens, of target tokens
Edit = tuple[int, int]  # number of the source span, number of the target span

_MODIFIERS = ("DT", "PDT", "PRP$", "JJ", "JJR", "JJS", "CD", "NN", "NNS", "NNP", "NNPS", "VBN", "VBG", "POS", "$")
_NOUN_ENDS = ("NN", "NNS", "NNP", "NNPS", "CD")
_VERB_STARTS = ("MD", "VB", "VBD", "VBG", "VBN", "VBP", "VBZ")
_VERB_MIDDLES = (*_VERB_STARTS, "RB", "TO")
_VERB_ENDS = (*_VERB_STARTS, "RP")


@dataclass(frozen=True)
class Problem:
    """All SUB and EQ edits of a pair: source span s and target span t are edit (s, t).

    `code` [S, T]: row of `Columns.table`, and level of the similarity. `similarity` [S, T]. `further` [S, T]: how
    many of the tokens two and three away are equal, for EQ edits. `skipping` [S, T]: on how many sides there is a
    match if one of the phrases skips a token.
    """

    source: Spans
    target: Spans
    code: np.ndarray
    similarity: np.ndarray
    further: np.ndarray
    skipping: np.ndarray

    def distortion(self, s: int | slice = slice(None), t: int | slice = slice(None)) -> np.ndarray:
        """[S, T] distance of the phrases' middles, in sentences of length 1; or of some edits only."""
        middle = [(spans.start + spans.end) / (2.0 * max(spans.n, 1)) for spans in (self.source, self.target)]
        distance: np.ndarray = np.abs(np.subtract.outer(middle[0][s], middle[1][t]))
        return distance


class Columns:
    """The names of the features, and the values of every combination of the discrete ones.

    Discrete are the type of edit (equal lemmas and forms, equal lemmas, others), whether the tokens before and
    after match, whether either phrase is not a constituent, the sizes, and the level of the similarity.
    """

    def __init__(self, longest: int) -> None:
        self.sizes = min(longest, LARGE)
        self.shape = (3, 3, 3, 2, 2, self.sizes, self.sizes, len(LEVELS) + 1)
        sizes = range(1, self.sizes + 1)
        names = ["type.EQ", "type.SUB", "EQ.other_form"]
        names += [f"{edit}.{side}.{match}" for edit in ("EQ", "SUB") for side in ("left", "right")
                  for match in NEIGHBOURS[1:]]  # fmt: skip
        names += ["no_constituent.source", "no_constituent.target"]
        names += [f"size.{a}x{b}" for a in sizes for b in sizes]
        self._plain, behind = len(names), len(names) + len(LEVELS)
        self.names = (*names, *[f"similarity>{level}" for level in LEVELS], *NUMBERS, "type.DEL", "type.INS")
        self.number = {name: k for k, name in enumerate(self.names)}
        self._levels = slice(self._plain, behind)
        self._numbers = slice(behind, behind + len(NUMBERS))
        self._cached: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None

    @cached_property
    def table(self) -> np.ndarray:
        """[combinations, plain] the discrete features except the level of the similarity."""
        shape = self.shape[:-1]
        edit, left, right, odd_source, odd_target, a, b = np.unravel_index(np.arange(np.prod(shape)), shape)
        table = np.zeros((len(edit), self._plain))
        table[:, 0], table[:, 1], table[:, 2] = edit < 2, edit == 2, edit == 1
        for of_edit, called in ((edit < 2, "EQ"), (edit == 2, "SUB")):
            for side, match in (("left", left), ("right", right)):
                for value, name in enumerate(NEIGHBOURS[1:], 1):
                    table[:, self.number[f"{called}.{side}.{name}"]] = of_edit & (match == value)
        table[:, self.number["no_constituent.source"]] = odd_source
        table[:, self.number["no_constituent.target"]] = odd_target
        table[np.arange(len(edit)), self.number["size.1x1"] + a * self.sizes + b] = 1.0
        return table

    @cached_property
    def _matching(self) -> np.ndarray:
        """[combinations, levels] how many of the neighbours are similar or equal."""
        _, left, right, *_ = np.indices(self.shape, sparse=True)
        return np.broadcast_to((left > 0).astype(float) + (right > 0), self.shape).ravel()

    def gains(self, problem: Problem, weights: np.ndarray) -> np.ndarray:
        """[S, T] what each edit adds to the score of an alignment that deletes and inserts its tokens."""
        by_code, slope = self._by_code(weights)
        _, _, further, skipping, distortion, delete, insert = weights[self._numbers.start :].tolist()
        code = problem.code.astype(np.intp)
        out = by_code.take(code)
        out -= delete * problem.source.length[:, None] + insert * problem.target.length
        out += slope.take(code) * problem.similarity
        out += np.multiply(problem.further, further, dtype=np.float64)
        out += np.multiply(problem.skipping, skipping, dtype=np.float64)
        out += distortion * problem.distortion()
        return out

    def _by_code(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The score of each code and of a similarity of 1 under it, cached for the last weights."""
        if self._cached is None or not np.array_equal(self._cached[0], weights):
            similarity, with_neighbours = weights[self._numbers][:2].tolist()
            levels = np.concatenate([[0.0], np.cumsum(weights[self._levels])])
            by_code = (self.table @ weights[: self._plain])[:, None] + levels
            self._cached = weights.copy(), by_code.ravel(), similarity + with_neighbours * self._matching
        return self._cached[1:]

    def base(self, problem: Problem, weights: np.ndarray) -> float:
        """The score of the alignment that deletes and inserts everything."""
        return float(problem.source.n * weights[-2] + problem.target.n * weights[-1])

    def features(self, problem: Problem, edits: Sequence[Edit]) -> np.ndarray:
        """[K] the features of an alignment less those of the empty one. Their score is the sum of the gains."""
        total = np.zeros(len(self.names))
        for s, t in edits:
            row, level = divmod(int(problem.code[s, t]), len(LEVELS) + 1)
            total[: self._plain] += self.table[row]
            total[self._plain : self._plain + level] += 1.0
            similarity = float(problem.similarity[s, t])
            total[self._numbers] += (
                similarity,
                similarity * self._matching[problem.code[s, t]],
                problem.further[s, t],
                problem.skipping[s, t],
                float(problem.distortion(s, t)),
            )
            total[-2:] -= problem.source.length[s], problem.target.length[t]  # neither deleted nor inserted
        return total


class Extractor:
    """Computes the problems of pairs. `longest`: the maximum number of tokens of a phrase."""

    def __init__(self, similarity: Similarity, longest: int) -> None:
        self.similarity, self.longest = similarity, longest
        self.columns = Columns(longest)
        self._entries = Entries(similarity.wordnet)

    def __call__(self, pairs: Sequence[SentencePair]) -> list[Problem]:
        words = [(words_of(pair.source), words_of(pair.target)) for pair in pairs]
        tables, lemmas, forms = self._similarities(words)
        entries = self._entries.found(pairs, words, self.longest)
        return [self._problem(*parts) for parts in zip(pairs, tables, lemmas, forms, entries, strict=True)]

    def _similarities(
        self, words: Sequence[tuple[list[Word], list[Word]]]
    ) -> tuple[list[np.ndarray], list[Ids], list[Ids]]:
        """For each pair the [m, n] similarities of its words, and ids of their lemmas and of their forms."""
        number: dict[Word, int] = {}
        ids: list[Ids] = []
        for both in words:
            a, b = (np.array([number.setdefault(w, len(number)) for w in side], dtype=np.int64) for side in both)
            ids.append((a, b))
        lemma, form = codes([w.lemma for w in number]), codes([w.form for w in number])
        cells = [(a[:, None] * len(number) + b).ravel() for a, b in ids]
        distinct, which = np.unique(np.concatenate(cells or [np.zeros(0, np.int64)]), return_inverse=True)
        left, right = np.divmod(distinct, max(len(number), 1))
        values = self.similarity.of(list(number), left, right)[which]
        parts = np.split(values, np.cumsum([len(part) for part in cells])[:-1]) if cells else []
        tables = [part.reshape(len(a), len(b)) for part, (a, b) in zip(parts, ids, strict=True)]
        return tables, [(lemma[a], lemma[b]) for a, b in ids], [(form[a], form[b]) for a, b in ids]

    def _problem(
        self, pair: SentencePair, similar: np.ndarray, lemma: Ids, form: Ids, entries: Sequence[Row]
    ) -> Problem:
        source, target = spans_of(len(pair.source), self.longest), spans_of(len(pair.target), self.longest)
        similarity = coverage(similar, source, target)
        for s, t, value in entries:
            similarity[s, t] = max(similarity[s, t], value)
        equal = _equal(lemma, source, target)
        edit = 2 - equal - _equal(form, source, target).astype(np.int32) * equal
        similarity[equal] = 0.0  # EQ edits have their type instead
        left, right = _neighbours(similar, lemma, source, target)
        further, skipping = _wider_context(lemma, source, target)
        further[~equal] = 0
        odd = [~constituents(s, spans) for s, spans in ((pair.source, source), (pair.target, target))]
        similarity = np.round(similarity, 6)
        level = np.searchsorted(LEVELS, similarity)
        most = self.columns.sizes
        sizes = np.minimum(source.length, most)[:, None] - 1, np.minimum(target.length, most) - 1
        code = np.zeros(equal.shape, dtype=np.int16)
        for size, part in zip(
            self.columns.shape, (edit, left, right, odd[0][:, None], odd[1], *sizes, level), strict=True
        ):
            code *= size
            code += part.astype(np.int16)
        return Problem(source, target, code, similarity.astype(np.float32), further, skipping)


def constituents(sentence: Sentence, spans: Spans) -> np.ndarray:
    """[S] whether a span ends a base phrase, as a shallow parser finds them. Single words always do.

    Base phrases are a noun with what stands before it, verbs with auxiliaries and particles, and an adverb before
    an adjective or adverb.
    """
    tags = sentence.layer("pos")
    noun = run_lengths([t in _MODIFIERS for t in tags])
    noun_end = np.array([t in _NOUN_ENDS for t in tags], dtype=bool)
    verb = run_lengths([t in _VERB_MIDDLES or t in _VERB_ENDS for t in tags])
    verb_start = np.array([t in _VERB_STARTS for t in tags], dtype=bool)
    verb_end = np.array([t in _VERB_ENDS for t in tags], dtype=bool)
    degree = np.array([t.startswith("RB") for t in tags], dtype=bool)
    qualified = np.array([t[:2] in ("RB", "JJ") for t in tags], dtype=bool)
    first, last = spans.start, spans.end - 1
    phrase: np.ndarray = (noun[first] >= spans.length) & noun_end[last]
    phrase |= (verb[first] >= spans.length) & verb_start[first] & verb_end[last]
    phrase |= (spans.length == 1) | ((spans.length == 2) & degree[first] & qualified[last])
    return phrase


def _equal(ids: Ids, source: Spans, target: Spans) -> np.ndarray:
    """[S, T] whether two phrases have the same ids."""
    run = np.zeros((source.n + 1, target.n + 1), dtype=np.int64)  # equal tokens from each two tokens on
    same = ids[0][:, None] == ids[1][None, :]
    for i in range(source.n - 1, -1, -1):
        run[i, :-1] = np.where(same[i], run[i + 1, 1:] + 1, 0)
    equal: np.ndarray = run[source.start[:, None], target.start] >= source.length[:, None]
    equal &= source.length[:, None] == target.length
    return equal


def _neighbours(similar: np.ndarray, lemma: Ids, source: Spans, target: Spans) -> tuple[np.ndarray, np.ndarray]:
    """[S, T] which of NEIGHBOURS the tokens before the two phrases are, and those after them."""
    m, n = similar.shape
    around = np.zeros((m + 2, n + 2), dtype=np.int8)  # with a margin for the ends of the sentences
    around[1:-1, 1:-1] = np.where(lemma[0][:, None] == lemma[1], 2, similar >= SIMILAR)
    around[0, 0] = around[-1, -1] = 2  # where both sentences begin, or end
    left = around[source.start[:, None], target.start]
    right = around[source.end[:, None] + 1, target.end + 1]
    return left, right


def _wider_context(lemma: Ids, source: Spans, target: Spans) -> tuple[np.ndarray, np.ndarray]:
    """[S, T] `Problem.further` and `Problem.skipping`.

    A token is skipped where the token next to one phrase equals the next but one to the other.
    """
    margin = 3
    equal = np.zeros((source.n + 2 * margin, target.n + 2 * margin), dtype=np.int8)
    equal[margin:-margin, margin:-margin] = lemma[0][:, None] == lemma[1]

    def away(step_source: int, step_target: int) -> np.ndarray:  # [m + 1, n + 1] seen from each gap between tokens
        i, j = margin + step_source, margin + step_target
        return equal[i : i + source.n + 1, j : j + target.n + 1]

    before, after = (source.start[:, None], target.start), (source.end[:, None], target.end)
    further = (away(-2, -2) + away(-3, -3))[before] + (away(1, 1) + away(2, 2))[after]
    skipping = (away(-1, -2) | away(-2, -1))[before] + (away(0, 1) | away(1, 0))[after]
    return further, skipping
