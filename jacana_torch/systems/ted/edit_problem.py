"""What is left to edit in many pairs: the trees of unlinked tokens, and the costs of mapping their nodes.

Costs depend on which words count as the same node: equal forms or lemmas, or by WordNet one sense.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from ...annotate.tokens import matching_form, wordnet_pos
from ...errors import JacanaError
from ...types import Sentence, SentencePair
from ...util.geometry import positions, run_of, starts
from .tree_distance import Ordered, in_cycles, ordered

OTHER, RELATED, EQUAL = 0, 1, 2
UNIT = 1 << 28  # the integer cost of 1; preferences among edits of the same cost are fractions of it
Word = tuple[str, str, str]  # token, lemma, tag


# Trees


@dataclass
class Side:
    """The tokens left on one side: `head` [T] among them, or -1; `token` [T], their numbers; `size` [P]."""

    head: np.ndarray
    token: np.ndarray
    size: np.ndarray

    def without(self, taken: np.ndarray, pairs: np.ndarray) -> Side:
        """Remove the tokens `taken` [T], and keep only some `pairs` [P]. Children move up to the head's head."""
        head = self.head
        while len(above := np.flatnonzero((head >= 0) & taken[head])):
            head = head.copy()
            head[above] = head[head[above]]
        left = ~taken & np.repeat(pairs, self.size)
        number = np.append(np.cumsum(left) - 1, -1)  # so that a head of -1 stays -1
        size = np.bincount(run_of(self.size)[left], minlength=len(self.size))[pairs]
        return Side(number[head][left], self.token[left], size)


def side_of(sentences: Sequence[Sentence]) -> Side:
    """Check the heads of sentences and number their tokens consecutively."""
    size = np.array([len(sentence) for sentence in sentences], dtype=np.int64)
    local = np.array([head for sentence in sentences for head in sentence.layer("head")], dtype=np.int64)
    sentence, position = run_of(size), positions(size)
    outside = np.flatnonzero((local < -1) | (local >= size[sentence]))
    if len(outside):
        where = sentences[int(sentence[outside[0]])]
        raise JacanaError(
            f"token {position[outside[0]]} of {str(where)[:60]!r} has head {local[outside[0]]}, which is not one "
            f"of its {len(where)} tokens: heads must count from 0, with -1 for a root"
        )
    root = (local < 0) | (local == position)  # some parsers write a root as its own head
    side = Side(np.where(root, -1, local + starts(size)[sentence]), np.arange(len(local)), size)
    cycle = in_cycles(side.head)
    if len(cycle):
        where = sentences[int(sentence[cycle[0]])]
        raise JacanaError(f"the heads of {str(where)[:60]!r} form a circle: a parse must be a tree")
    return side


class Problem:
    """Pairs that are edited in rounds. `take` removes the links that a round has found.

    `number` [P]: which pairs are left. Of both sides: `sides`, the tokens left; `trees`, their order; and of all
    tokens and pairs, `sizes`, the `pair` of a token, and its `place` from 0 to 1.
    """

    def __init__(self, pairs: Sequence[SentencePair], wordnet: bool) -> None:
        self.words = words_of(pairs, wordnet)
        self.number = np.arange(len(pairs))
        self.sides = [side_of([pair.source for pair in pairs]), side_of([pair.target for pair in pairs])]
        self.sizes = [side.size for side in self.sides]
        self.pair = [run_of(size) for size in self.sizes]
        self.place = [(positions(size) + 0.5) / np.repeat(size, size) for size in self.sizes]
        self._trees: tuple[Ordered, Ordered] | None = None

    @property
    def trees(self) -> tuple[Ordered, Ordered]:
        if self._trees is None:
            source, target = (ordered(side.head, side.size) for side in self.sides)
            self._trees = source, target
        return self._trees

    def costs(self, rename: float) -> np.ndarray:
        """[cells] the cost of mapping two nodes, by pair, target node, source node.

        Among edits of the same cost, those that map more equal words come first, then those of words at similar
        places.
        """
        source, target = self.trees
        row = run_of(target.size)  # the pair of each target node
        width = source.size[row]
        nodes = source.first[row][run_of(width)] + positions(width), run_of(width)
        one, other = (
            side.token[tree.token[of]] for side, tree, of in zip(self.sides, self.trees, nodes, strict=True)
        )
        alike = self.words.alike(one, other)
        smaller = np.minimum(*self.sizes)[self.pair[0][one]]
        equal = UNIT // (256 * smaller)
        far = np.abs(self.place[0][one] - self.place[1][other]) * (equal // (4 * smaller))
        cost = np.where(alike == OTHER, round(rename * UNIT), np.where(alike == EQUAL, -equal, -(equal // 2)))
        cost += np.rint(far).astype(np.int64)
        return cost

    def take(self, links: np.ndarray) -> None:
        """Remove linked tokens. `links` [2, K]: tokens. Pairs without new links, or without hope of more, go."""
        taken = [np.zeros(len(pair), dtype=bool) for pair in self.pair]
        linked = np.zeros(len(self.sizes[0]), dtype=bool)
        linked[self.pair[0][links[0]]] = True
        for tokens, of_side in zip(links, taken, strict=True):
            of_side[tokens] = True
        self._keep(taken, linked[self.number])
        self._keep([np.zeros_like(side) for side in taken], self._promising())

    def _keep(self, taken: Sequence[np.ndarray], pairs: np.ndarray) -> None:
        self.sides = [s.without(t[s.token], pairs) for s, t in zip(self.sides, taken, strict=True)]
        self.number = self.number[pairs]
        self._trees = None

    def _promising(self) -> np.ndarray:
        """[P] whether some source word is like some target word."""
        source, target = self.sides
        count = source.size * target.size
        pair = run_of(count)
        m, n = np.divmod(positions(count), target.size[pair])
        one, other = source.token[starts(source.size)[pair] + m], target.token[starts(target.size)[pair] + n]
        promising: np.ndarray = np.bincount(pair, self.words.alike(one, other) != OTHER, minlength=len(count)) > 0
        return promising


# Words


@dataclass(frozen=True)
class Words:
    """Which source tokens are like which target tokens.

    Of tokens of both sides: ids of `form` and `lemma`, and the row (column) in `related`, 0 for words without
    relations.
    """

    form: tuple[np.ndarray, np.ndarray]
    lemma: tuple[np.ndarray, np.ndarray]
    row: tuple[np.ndarray, np.ndarray]
    related: np.ndarray

    def alike(self, source: np.ndarray, target: np.ndarray) -> np.ndarray:
        """[K] OTHER, RELATED or EQUAL, for tokens source[k] and target[k]."""
        equal = self.form[0][source] == self.form[1][target]
        equal |= self.lemma[0][source] == self.lemma[1][target]
        out: np.ndarray = equal.astype(np.int8)
        out *= EQUAL
        if self.related.size > 1:
            related = self.related[self.row[0][source], self.row[1][target]]
            np.maximum(out, related.view(np.int8), out=out)  # True is RELATED
        return out


def words_of(pairs: Sequence[SentencePair], wordnet: bool) -> Words:
    """Compare the words of all pairs, each distinct word once."""
    number: dict[Word, int] = {}
    left = _numbers([pair.source for pair in pairs], number, wordnet)
    right = _numbers([pair.target for pair in pairs], number, wordnet)
    distinct = list(number)
    form = _codes([matching_form(token).lower() for token, _, _ in distinct])
    lemma = _codes([str(lemma).lower() for _, lemma, _ in distinct])
    pairs_of = _related(distinct, left, right) if wordnet else np.zeros((2, 0), dtype=np.int64)
    row = np.zeros((2, len(distinct)), dtype=np.int64)
    for own, words in zip(row, map(np.unique, pairs_of), strict=True):
        own[words] = np.arange(len(words)) + 1
    related = np.zeros(row.max(axis=1, initial=0) + 1, dtype=bool)
    related[row[0][pairs_of[0]], row[1][pairs_of[1]]] = True
    return Words((form[left], form[right]), (lemma[left], lemma[right]), (row[0][left], row[1][right]), related)


def _numbers(sentences: Sequence[Sentence], number: dict[Word, int], tags: bool) -> np.ndarray:
    """Number the words of sentences; words differ by their tags only if `tags`."""
    tokens = chain.from_iterable(sentence.tokens for sentence in sentences)
    lemmas = chain.from_iterable(sentence.layer("lemma") for sentence in sentences)
    pos = chain.from_iterable(sentence.layer("pos") if tags else ("",) * len(sentence) for sentence in sentences)
    found = [number.setdefault(word, len(number)) for word in zip(tokens, lemmas, pos, strict=True)]
    return np.array(found, dtype=np.int64)


def _codes(values: Sequence[str]) -> np.ndarray:
    number: dict[str, int] = {}
    return np.array([number.setdefault(value, len(number)) for value in values], dtype=np.int64)


def _related(distinct: Sequence[Word], source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """[2, K] source and target words that share a synset, or are derived from one another and begin alike."""
    from ...resources import wordnet

    net = wordnet()
    queries = [(str(lemma).lower(), wordnet_pos(tag)) for _, lemma, tag in distinct]
    left, right = (
        np.array([k for k in np.unique(side).tolist() if queries[k][1]], dtype=np.int64)
        for side in (source, target)
    )
    synsets, other = (
        net.incidence([queries[k] for k in side.tolist()]).astype(np.int32) for side in (left, right)
    )
    shared = (synsets @ other.T).tocoo()
    one, two = _beginning_alike(queries, left, right)
    found = net.related([queries[k] for k in one.tolist()], [queries[k] for k in two.tolist()], depth=1)
    derived = found["derived"] | found["pertainym"]
    return np.concatenate([[left[shared.row], right[shared.col]], [one[derived], two[derived]]], axis=1)


def _beginning_alike(
    queries: Sequence[tuple[str, str | None]], left: np.ndarray, right: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return pairs of different words with the same first three letters.

    Looking up all other pairs takes more time than it finds links.
    """
    stems = _codes([lemma[:3] for lemma, _ in queries])
    order = right[np.argsort(stems[right], kind="stable")]
    begin = np.searchsorted(stems[order], stems[left])
    count = np.searchsorted(stems[order], stems[left], side="right") - begin
    one, two = np.repeat(left, count), order[positions(count) + np.repeat(begin, count)]
    lemma = _codes([lemma for lemma, _ in queries])
    differ = lemma[one] != lemma[two]
    return one[differ], two[differ]
