"""The stages of the pipeline, each of which adds links to a `PairState`.

wsAlign links words that stand in the same sequence in both sentences. cwDepAlign and cwTextAlign link content
words by the dependencies that they share and by the words around them. swDepAlign and swTextAlign link stop words
and punctuation by what is already linked around them. neAlign, for names, is in name_links.py.

What differs from the paper:

- Words with and without hyphens are linked, as in the original's code.
- Paraphrases without any similar word around them are not linked (of these, fewer than a third are right on MSR's
  dev set); the same words are.
- One piece of evidence is enough for two stop words of the same form; others ("is", "was") need two.
- The ends of the sentences are evidence for punctuation, as in the original's code.
- Words that connect the same two words ("of", "'s") are linked.
- The last stage is repeated while it adds links.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from ...util.geometry import positions
from .parsed_sentence import ParsedSentence
from .word_similarity import SAME

WINDOW = 3  # words on either side
SHORTEST = 2  # words of a sequence
EDGE_PAIRS_AT_ONCE = 1 << 22

Free = tuple[list[bool], list[bool]]  # words of either side without a link


@dataclass
class PairState:
    """Two sentences, the similarity of their words, and the links so far [M, N].

    `level` [M, N] is from word_similarity.py, `similarity` the value of a paraphrase (the same word has 1), and
    `weight` the weight of two words' own similarity as against their contexts'.
    """

    source: ParsedSentence
    target: ParsedSentence
    level: np.ndarray
    similarity: float
    weight: float
    links: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.links = np.zeros(self.level.shape, dtype=bool)

    @cached_property
    def value(self) -> np.ndarray:
        """[M, N] the similarity of the words as a number."""
        values: np.ndarray = np.array([0.0, self.similarity, 1.0])[self.level]
        return values

    @cached_property
    def identical(self) -> np.ndarray:
        """[M, N] whether the words have the same form."""
        number = {form: k for k, form in enumerate(self.source.forms)}
        one = np.array([number[form] for form in self.source.forms], dtype=np.int64)
        other = np.array([number.get(form, -1) for form in self.target.forms], dtype=np.int64)
        same: np.ndarray = one[:, None] == other
        return same

    def score(self, i: np.ndarray, j: np.ndarray, context: np.ndarray) -> np.ndarray:
        """The score of cells with these context scores."""
        scores: np.ndarray = self.weight * self.value[i, j] + (1 - self.weight) * context
        return scores

    @property
    def free(self) -> tuple[np.ndarray, np.ndarray]:
        """[M] and [N] whether each word has no link."""
        return np.logical_not(self.links.any(axis=1)), np.logical_not(self.links.any(axis=0))

    def free_cells(self, source: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Cells of similar words without links, among these words ([M] and [N] bool)."""
        one, other = self.free
        rows, columns = np.flatnonzero(one & source), np.flatnonzero(other & target)
        at = np.nonzero(self.level[np.ix_(rows, columns)])
        return rows[at[0]], columns[at[1]]

    def best_first(self, i: np.ndarray, j: np.ndarray, *keys: np.ndarray) -> np.ndarray:
        """The order of cells by the keys, the greatest first, then by distance from the diagonal.

        The last two keys make the order the same from either side; cells that they leave equal do not compete.
        """
        m, n = self.level.shape
        off = np.abs((2 * i + 1) * n - (2 * j + 1) * m)
        return np.lexsort((np.abs(i - j), i + j, off, *(-key for key in reversed(keys))))

    def link_in_order(self, i: np.ndarray, j: np.ndarray) -> None:
        """Link cells one after the other if neither word has a link yet."""
        free = self.free_words()
        for a, b in zip(i.tolist(), j.tolist(), strict=True):
            self.link_free(free, a, b)

    def free_words(self) -> Free:
        one, other = self.free
        return one.tolist(), other.tolist()

    def link_free(self, free: Free, i: int, j: int) -> bool:
        """Link two words if both are free; whether they were."""
        if not (free[0][i] and free[1][j]):
            return False
        free[0][i] = free[1][j] = False
        self.links[i, j] = True
        return True


# wsAlign


def link_sequences(pair: PairState) -> None:
    """Link common sequences that have a content word, the longest first."""
    i, j, length = diagonal_runs(pair.identical)
    content = np.concatenate([[0], np.cumsum(pair.source.content)])
    kept = (length >= SHORTEST) & (content[i + length] > content[i])
    i, j, length = i[kept], j[kept], length[kept]
    order = pair.best_first(i, j, length)
    i, j, length = i[order], j[order], length[order]
    pair.link_in_order(np.repeat(i, length) + positions(length), np.repeat(j, length) + positions(length))


def diagonal_runs(same: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The row and column where each maximal run of true cells along a diagonal begins, and its length."""
    i, j = np.nonzero(same)
    order = np.lexsort((i, j - i))
    i, j = i[order], j[order]
    if not len(i):
        return i, j, i
    first = np.flatnonzero(np.concatenate([[True], (np.diff(i) != 1) | (np.diff(j) != 1)]))
    return i[first], j[first], np.diff(np.concatenate([first, [len(i)]]))


def link_hyphenated(pair: PairState) -> None:
    """Link a hyphenated word with the words that are its parts, if at least two of these are adjacent."""
    for cells, length, _ in _hyphenated_parts(pair):
        if length >= SHORTEST:
            pair.links[tuple(np.transpose(cells))] = True


def link_compounds(pair: PairState) -> None:
    """Link a hyphenated word with the content word that is its last part, if similar words surround both."""
    cells = [cells[0] for cells, length, is_last in _hyphenated_parts(pair) if length == 1 and is_last]
    i, j = np.array(cells, dtype=np.int64).reshape(-1, 2).T
    near = neighbourhood(pair)[i, j]
    kept = (near > 0) & pair.source.content[i] & pair.target.content[j]
    i, j, near = i[kept], j[kept], near[kept]
    order = pair.best_first(i, j, near)
    pair.link_in_order(i[order], j[order])


def _hyphenated_parts(pair: PairState) -> Iterator[tuple[list[tuple[int, int]], int, bool]]:
    """Each free hyphenated word with free words of the other side that are parts of it, both in a row: the cells,
    their number, and whether the last part is among them."""
    one, other = pair.free
    for here, there, own, free, turn in (
        (pair.source, pair.target, one, other, 1),
        (pair.target, pair.source, other, one, -1),
    ):
        forms = np.array(there.forms, dtype=object)
        for k, form in enumerate(here.forms):
            parts = [part for part in form.split("-") if part] if own[k] and "-" in form else []
            if len(parts) < SHORTEST:
                continue
            same = (np.array(parts, dtype=object)[:, None] == forms) & free
            for first, at, length in zip(*(part.tolist() for part in diagonal_runs(same)), strict=True):
                cells = [(k, place) if turn > 0 else (place, k) for place in range(at, at + length)]
                yield cells, length, first + length == len(parts)


# cwDepAlign and cwTextAlign


def link_by_dependencies(pair: PairState) -> None:
    """Algorithm 3: link cells with evidence, the best first, each with the word pairs that are its evidence.

    Stop words among the evidence are left to later stages, which know more about them.
    """
    width = pair.level.shape[1]
    at, by = dependency_evidence(pair)
    one, other = pair.free
    source, target = pair.source.content & one, pair.target.content & other
    kept = source[at // width] & target[at % width]
    at, by = at[kept], by[kept]
    cells, first, where = np.unique(at, return_index=True, return_inverse=True)
    context = np.bincount(where, pair.value.ravel()[by], len(cells))
    i, j = np.divmod(cells, width)
    order = pair.best_first(i, j, pair.score(i, j, context), neighbourhood(pair)[i, j])
    # Evidence is linked only if its cell was, so the two cannot be linked in one order.
    linkable = ~pair.source.stop[by // width]
    ends = np.append(first, len(at)).tolist()
    free = pair.free_words()
    for k in order.tolist():
        if pair.link_free(free, int(i[k]), int(j[k])):
            some = slice(ends[k], ends[k + 1])
            for cell in by[some][linkable[some]].tolist():
                pair.link_free(free, *divmod(cell, width))


def link_by_neighbourhood(pair: PairState) -> None:
    """Algorithm 4: link the remaining similar content words, the best first."""
    i, j = pair.free_cells(pair.source.content, pair.target.content)
    near = neighbourhood(pair)[i, j]
    kept = (pair.level[i, j] == SAME) | (near > 0)
    i, j, near = i[kept], j[kept], near[kept]
    order = pair.best_first(i, j, pair.score(i, j, near))
    pair.link_in_order(i[order], j[order])


def _equivalent_edges(pair: PairState, by_table: bool) -> Iterator[tuple[slice, np.ndarray]]:
    """Slices of the source's edges, each with [edges, target edges] whether they are equivalent."""
    source, target = pair.source.edges, pair.target.edges
    step = max(1, EDGE_PAIRS_AT_ONCE // max(len(target), 1))
    for start in range(0, len(source), step):
        some = slice(start, start + step)
        yield some, source.equivalent(target, some, by_table)


def dependency_evidence(pair: PairState) -> tuple[np.ndarray, np.ndarray]:
    """Algorithm 1 for all cells: pairs of a cell and a cell of neighbours that is its evidence, sorted by cell."""
    source, target, width = pair.source.edges, pair.target.edges, pair.level.shape[1]
    similar = (pair.level > 0) & (pair.source.category[:, None] == pair.target.category)
    similar &= (pair.source.category > 0)[:, None]
    found = [np.zeros((2, 0), dtype=np.int64)]
    for some, equivalent in _equivalent_edges(pair, by_table=True):
        both = similar[source.here[some, None], target.here] & similar[source.there[some, None], target.there]
        a, b = np.nonzero(both & equivalent)
        a += some.start
        cells = source.here[a] * width + target.here[b], source.there[a] * width + target.there[b]
        found.append(np.stack(cells))
    cell, by = np.unique(np.concatenate(found, axis=1), axis=1)
    return cell, by


def neighbourhood(pair: PairState) -> np.ndarray:
    """Algorithm 2 for all cells: [M, N] the summed similarity of the content words around the two words."""
    value = np.zeros((len(pair.source) + 1, len(pair.target) + 1))  # the last row and column: no word
    value[:-1, :-1] = pair.value
    rows = np.zeros((len(pair.source), value.shape[1]))
    for column in _around(pair.source.content).T:
        rows += value[column]
    found = np.zeros(pair.level.shape)
    for column in _around(pair.target.content).T:
        found += rows[:, column]
    return found


def _around(wanted: np.ndarray) -> np.ndarray:
    """[T, 2 * WINDOW] the wanted words within WINDOW words of each word; T for other words and outside."""
    size = len(wanted)
    steps = np.concatenate([np.arange(-WINDOW, 0), np.arange(1, WINDOW + 1)])
    places = np.arange(size)[:, None] + steps
    places = np.where((places >= 0) & (places < size), places, size)
    return np.where(np.append(wanted, False)[places], places, size)


# swDepAlign and swTextAlign


def link_by_linked_dependencies(pair: PairState) -> None:
    """Link stop words whose heads or dependents, by the same relation, are linked with each other."""
    i, j = pair.free_cells(pair.source.stop, pair.target.stop)
    _link_by_evidence(pair, i, j, linked_dependencies(pair), linked_beside(pair))


def link_markers(pair: PairState) -> None:
    """Link words like "of" and "'s" that connect the same words: both ends are linked with each other."""
    one, other = pair.source.edges.markers, pair.target.edges.markers
    a, b = np.nonzero(pair.links[one[:, 1, None], other[:, 1]] & pair.links[one[:, 2, None], other[:, 2]])
    i, j = one[a, 0], other[b, 0]
    order = pair.best_first(i, j, pair.value[i, j])
    pair.link_in_order(i[order], j[order])


def link_by_linked_neighbours(pair: PairState) -> None:
    """Link stop words and punctuation with linked neighbours on a side; repeat while this adds links."""
    linked = -1
    while linked < (linked := int(pair.links.sum())):
        i, j = pair.free_cells(~pair.source.content, ~pair.target.content)
        _link_by_evidence(pair, i, j, linked_beside(pair), linked_dependencies(pair))


def _link_by_evidence(
    pair: PairState, i: np.ndarray, j: np.ndarray, evidence: np.ndarray, more: np.ndarray
) -> None:
    """Link cells with `evidence`, the best first; different forms need a second piece, perhaps of `more`."""
    enough = (evidence[i, j] > 0) & (pair.identical[i, j] | (evidence[i, j] + more[i, j] > 1))
    i, j = i[enough], j[enough]
    order = pair.best_first(i, j, pair.score(i, j, evidence[i, j]), more[i, j])
    pair.link_in_order(i[order], j[order])


def linked_dependencies(pair: PairState) -> np.ndarray:
    """[M, N] how many heads and dependents of the two words are linked with each other, by the same relation."""
    source, target = pair.source.edges, pair.target.edges
    count = np.zeros(pair.level.shape)
    for some, equivalent in _equivalent_edges(pair, by_table=False):
        a, b = np.nonzero(pair.links[source.there[some, None], target.there] & equivalent)
        np.add.at(count, (source.here[a + some.start], target.here[b]), 1.0)
    return count


def linked_beside(pair: PairState) -> np.ndarray:
    """[M, N] on how many sides (left, right) the adjacent words, or the next content words, are linked."""
    m, n = pair.level.shape
    links = np.zeros((m + 1, n + 1), dtype=bool)  # the last row and column: no word
    links[:-1, :-1] = pair.links
    marks = pair.source.punctuation[:, None] & pair.target.punctuation
    found = np.zeros((m, n))
    for step in (-1, 1):
        next_one, next_other = _next(np.ones(m, dtype=bool), step), _next(np.ones(n, dtype=bool), step)
        content_one, content_other = _next(pair.source.content, step), _next(pair.target.content, step)
        ends = marks & ((content_one == m)[:, None] & (content_other == n))
        found += links[next_one][:, next_other] | links[content_one][:, content_other] | ends
    return found


def _next(wanted: np.ndarray, step: int) -> np.ndarray:
    """[T] the nearest wanted word before (-1) or after (1) each word; T if there is no such word."""
    size, places = len(wanted), np.arange(len(wanted))
    if step < 0:
        last = np.maximum.accumulate(np.where(wanted, places, -1)) if size else places
        before = np.concatenate([[-1], last[:-1]])[:size]
        return np.where(before < 0, size, before)
    first = np.minimum.accumulate(np.where(wanted, places, size)[::-1])[::-1] if size else places
    return np.concatenate([first[1:], [size]])[:size]
