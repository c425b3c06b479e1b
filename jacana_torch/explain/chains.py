"""Explanations of linear chains: every choice of one or two directions of a CRF, taken apart.

`explained` makes an `Explanation` of each pair, whose directions are `Chain`s. A chain answers for any token and
position; what it is asked for is computed then, most of it for all tokens of the best path at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, cached_property, partial
from itertools import islice
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary, ref

import numpy as np

from ..crf.arrays import NUMPY
from ..crf.kernel import posteriors, step_scores
from ..crf.scores import LONGEST_KEPT, LinearScores, RawBlock, Scorer
from ..crf.viterbi import best_paths
from ..features.families.attachment import parsed_heads
from ..features.featureset import blocks_of, checked
from ..features.grid import Grid, grids
from ..features.titles import Titles
from ..types import Alignment, SentencePair
from ..util.geometry import Geometry
from .alternatives import Alternatives
from .choices import Choice, Margin, Moved, Reasons, Step, summed
from .explanation import Explanation

if TYPE_CHECKING:
    from ..aligners.crf import Crf

NULL = 0  # the column of NULL; position j has column j + 1. Several states may have a column: crf/states.py
AT_ONCE = 64  # pairs; while one of them is held, so are the features of its grid
MOST_CELLS = 20_000  # of a grid, unless a single pair has more
NO_WORDS = "one of the sentences has no words, so there is nothing to link"
Asked = tuple["Chain", int, int]  # a token and a column of a chain


def explained(
    forward: Crf,
    backward: Crf | None,
    pairs: Sequence[SentencePair],
    align: Callable[[Sequence[SentencePair]], list[Alignment]],
    symmetrizer: str | None = None,
) -> Iterator[Explanation]:
    """Yield the explanation of each pair, in order, given how the aligner aligns pairs."""
    names = forward.features.names
    titles = Titles([*forward.features.node, *forward.features.edge])
    waiting = iter(pairs)
    while some := list(islice(waiting, AT_ONCE)):
        directions: list[tuple[Chain, ...]] = [()] * len(some)
        for places, grid in grids(some, MOST_CELLS):
            sides = [chains(forward, grid, "forward")]
            if backward is not None:
                sides.append(chains(backward, grid.flipped(), "backward"))
            for place, *of_pair in zip(places, *sides, strict=True):
                directions[place] = tuple(of_pair)
        for pair, alignment, own in zip(some, align(some), directions, strict=True):
            note = "" if own else NO_WORDS
            heads = cache(partial(parsed_heads, pair)) if "attachment" in names else None
            yield Explanation(pair, alignment, own, symmetrizer, note, titles, heads)


def chains(crf: Crf, grid: Grid, name: str) -> list[Chain]:
    """Return a chain for each pair of a grid; `name` says which direction the grid has."""
    features = GridFeatures(crf, grid)
    transitions = {n: _transitions(crf, n) for n in np.unique(grid.n_target).tolist()}
    layout, flat, _ = crf.scored(grid, np.concatenate([features.null, features.link]))
    columns = best_paths(layout, flat)[0]
    null, link = np.split(posteriors(layout, flat).nodes, [layout.n_tokens])
    out = []
    for m, n, token, cell in zip(grid.n_source, grid.n_target, grid.source_start, grid.cell_start, strict=True):
        posterior = np.column_stack([null[token : token + m], link[cell : cell + m * n].reshape(m, n)])
        place = int(token), int(cell)
        out.append(Chain(name, features, transitions[int(n)], place, columns[token : token + m], posterior))
    return out


class Transitions:
    """Scores and reasons of all transitions towards a target of n tokens.

    `column` [S] is the column of each state; `edge` [S, S], `start` and `end` [S] are scores.
    """

    def __init__(self, crf: Crf, n: int) -> None:
        scorer, layout = crf.scorer(), crf.layout(Geometry(np.array([1]), np.array([n])))
        self.space, self.n, self.names, self.weights = layout.space, n, scorer.names, scorer.weights
        size = int(layout.space.size(n))
        self.column: np.ndarray = layout.space.column(n, np.arange(size))
        steps = step_scores(layout, (np.zeros(0), *scorer.edges(layout)), NUMPY)
        self.edge, self.start, self.end = (steps[at[0]] for at in layout.step_entries(np.zeros(1, np.int64), size))
        families = [(family.name, crf.features.step_blocks(family, n)) for family in crf.features.edge]
        self._scores = {}
        for kind in ("edge", "start", "end"):
            blocks = [scorer.known(name, block) for name, own in families for block in own[kind]]
            self._scores[kind] = LinearScores(blocks, layout.sizes[kind], len(scorer.names))
        self._known: dict[tuple[str, int], Reasons] = {}

    def reasons(self, before: int | None, after: int | None) -> Reasons:
        """Return the reasons of the step between two states; None stands for the boundary of the path."""
        if before is None:
            kind, cell = "start", after
        elif after is None:
            kind, cell = "end", int(self.column[before])
        else:
            kind, cell = "edge", int(self.space.edge(self.n, before, after))
        assert cell is not None
        if (kind, cell) not in self._known:
            (found,) = reasons_of(self._scores[kind], self.names, self.weights, [cell])
            self._known[kind, cell] = found
        return self._known[kind, cell]


_TRANSITIONS: WeakKeyDictionary[Scorer, dict[int, Transitions]] = WeakKeyDictionary()


def _transitions(crf: Crf, n: int) -> Transitions:
    """Return the transitions of a length; those of common lengths are kept as long as the scorer is."""
    known = _TRANSITIONS.setdefault(crf.scorer(), {})
    found = known.get(n) or Transitions(crf, n)
    if n <= LONGEST_KEPT:
        known[n] = found
    return found


class GridFeatures:
    """The features of a grid: scores [Ts] and [C] of its NULLs and links, and their reasons, for all its chains.

    All is in double precision. Aligning remembers word pairs in single precision, so its scores differ in the
    seventh digit. The chains look their reasons up together, because a caller that asks one mostly asks the others
    too.
    """

    def __init__(self, crf: Crf, grid: Grid) -> None:
        scorer = crf.scorer()
        null: list[RawBlock] = []
        link: list[RawBlock] = []
        for family in crf.features.node:
            blocks = blocks_of(family, grid)
            for known, part, cells in ((null, blocks.null, grid.n_tokens), (link, blocks.link, grid.n_cells)):
                known += [scorer.known(family.name, checked(family.name, block, cells)) for block in part]
        self.names, self.weights = scorer.names, scorer.weights
        self._null = LinearScores(null, grid.n_tokens, len(self.names))
        self._link = LinearScores(link, grid.n_cells, len(self.names))
        self.null, self.link = self._null.once(self.weights), self._link.once(self.weights)
        self.chains: list[ref[Chain]] = []  # weak: the features do not keep the chains alive

    def look_up_likely(self) -> None:
        """Look up what the chains are likely to be asked for."""
        chains = [chain for found in self.chains if (chain := found()) is not None]
        self.look_up((chain, token, column) for chain in chains for token, column in chain.likely())

    def look_up(self, asked: Iterable[Asked]) -> None:
        every = list(asked)
        for scores, some in (
            (self._null, [x for x in every if x[2] == NULL]),
            (self._link, [x for x in every if x[2] != NULL]),
        ):
            cells = [chain.cell(token, column) for chain, token, column in some]
            found = reasons_of(scores, self.names, self.weights, cells)
            for (chain, token, column), reasons in zip(some, found, strict=True):
                chain.known[token, column] = reasons


def reasons_of(
    scores: LinearScores, names: Sequence[str], weights: np.ndarray, cells: Sequence[int]
) -> list[Reasons]:
    """Return the reasons of each cell; they add up to its score. A feature of several blocks is one reason."""
    place, column, value = scores.contributions(np.asarray(cells, dtype=np.int64))
    code, _, value = summed(place * len(names) + column, value)
    place, column = np.divmod(code, max(len(names), 1))
    bounds = np.searchsorted(place, np.arange(len(cells) + 1)).tolist()
    return [
        Reasons(names, column[a:b], value[a:b], weights[column[a:b]])
        for a, b in zip(bounds, bounds[1:], strict=False)
    ]


class Chain:
    """One direction of one pair.

    `states` [M] are the columns of the best path, `posterior` [M, 1 + N] the probabilities of all columns, `known`
    the reasons looked up so far. `place` is the pair's first token and first cell in the grid.
    """

    def __init__(
        self,
        name: str,
        features: GridFeatures,
        transitions: Transitions,
        place: tuple[int, int],
        columns: np.ndarray,
        posterior: np.ndarray,
    ) -> None:
        self.name, self.states, self.posterior = name, columns, posterior
        n = np.full(len(columns), transitions.n)
        self._path = transitions.space.path(columns, n, np.zeros(len(columns), np.int64))
        self._features, self._steps, self._column = features, transitions, transitions.column
        self._token, self._cell = place
        self.known: dict[tuple[int, int], Reasons] = {}
        features.chains.append(ref(self))

    @cached_property
    def node(self) -> np.ndarray:
        """[M, 1 + N] node scores."""
        m, s = self.posterior.shape
        null = self._features.null[self._token : self._token + m]
        link = self._features.link[self._cell : self._cell + m * (s - 1)].reshape(m, s - 1)
        return np.column_stack([null, link])

    @cached_property
    def alignment(self) -> Alignment:
        """The best path as an alignment from source to target, whichever direction this is."""
        m, s = self.posterior.shape
        links = {(i, column - 1): i for i, column in enumerate(self.states.tolist()) if column != NULL}
        confidence = {(i, j): float(self.posterior[i, j + 1]) for i, j in links}
        found = Alignment(m, s - 1, frozenset(links), confidence=confidence)
        return found if self.name == "forward" else found.flip()

    @cached_property
    def _alternatives(self) -> Alternatives:
        return Alternatives(self.node[:, self._column], self._steps.edge, self._steps.start, self._steps.end)

    def reasons(self, token: int, position: int | None) -> Reasons:
        """Return the reasons of a token's score for a position (None: no link)."""
        return self._reasons(token, _column(position))

    def choice(self, token: int, position: int | None) -> Choice:
        """Explain why the token takes that position (None: no link), or why it does not."""
        column, best = _column(position), int(self._path[token])
        chosen = column == int(self._column[best])
        same = np.flatnonzero(self._column == column)
        state = best if chosen else int(same[self._alternatives.score[token, same].argmax()])
        path = self._path if chosen else self._alternatives.path(token, state, self._path)
        competitor = self._alternatives.competitor(token, same) if chosen else best
        other = None if competitor is None else int(self._column[competitor])
        candidate = self._candidate(token, position)
        if not self.known:
            self._features.look_up_likely()
        return Choice(
            direction=self.name,
            token=token,
            position=position,
            chosen=chosen,
            posterior=float(self.posterior[token, column]),
            score=float(self.node[token, column]),
            reasons=self._reasons(token, column),
            steps=self._around(path, token),
            rival=None if other is None else _position(other),
            rival_posterior=0.0 if other is None else float(self.posterior[token, other]),
            margin=None if competitor is None else self._margin(token, path, competitor),
            candidate=candidate,
            candidate_posterior=0.0 if candidate is None else float(self.posterior[token, candidate + 1]),
            unlinked=float(self.posterior[token, NULL]),
        )

    def _candidate(self, token: int, position: int | None) -> int | None:
        """Return the most probable position but this one and NULL; None if there is no other."""
        row = self.posterior[token, 1:].copy()
        if position is not None:
            row[position] = -1.0
        return int(row.argmax()) if row.max(initial=-1.0) >= 0 else None

    def _margin(self, token: int, here: np.ndarray, competitor: int) -> Margin:
        state, best = int(here[token]), int(self._path[token])
        there = self._path if competitor == best else self._alternatives.path(token, competitor, self._path)
        apart = np.flatnonzero(here != there).tolist()
        between = sorted({m + side for m in apart for side in (0, 1)})  # step m leads to token m
        steps = [[self._steps.reasons(*step) for step in _steps_to(path, between)] for path in (here, there)]
        columns = zip(apart, self._column[here[apart]].tolist(), self._column[there[apart]].tolist(), strict=True)
        moved = [
            Moved(m, _position(a), _position(b), float(self.node[m, a] - self.node[m, b]))
            for m, a, b in columns
            if m != token and a != b
        ]
        scores = self._alternatives.score[token]
        own = Reasons.difference(*([self._reasons(token, int(self._column[s]))] for s in (state, competitor)))
        return Margin(float(scores[state] - scores[competitor]), own, Reasons.difference(*steps), tuple(moved))

    def _around(self, path: np.ndarray, token: int) -> tuple[Step, ...]:
        """Return the steps into a token's state and out of it."""
        return tuple(
            Step(
                "start" if a is None else "end" if b is None else "step",
                None if a is None else _position(int(self._column[a])),
                None if b is None else _position(int(self._column[b])),
                self._steps.reasons(a, b),
            )
            for a, b in _steps_to(path, (token, token + 1))
        )

    def _reasons(self, token: int, column: int) -> Reasons:
        if (token, column) not in self.known:  # the whole row takes little longer than one cell
            self._features.look_up((self, token, c) for c in range(self.posterior.shape[1]))
        return self.known[token, column]

    def likely(self) -> Iterator[tuple[int, int]]:
        """Yield what is asked for first: every token's column and its next best one."""
        scores = np.where(self._column == self.states[:, None], -np.inf, self._alternatives.score)
        yield from enumerate(self.states.tolist())
        yield from enumerate(self._column[scores.argmax(1)].tolist())

    def cell(self, token: int, column: int) -> int:
        """Return the number of a token's column among the NULLs of the grid, or among its links."""
        width = self.posterior.shape[1] - 1
        return self._token + token if column == NULL else self._cell + token * width + column - 1


def _column(position: int | None) -> int:
    return NULL if position is None else position + 1


def _position(column: int) -> int | None:
    return None if column == NULL else column - 1


def _steps_to(path: np.ndarray, tokens: Iterable[int]) -> list[tuple[int | None, int | None]]:
    """Return the steps of a path to these tokens; None stands for its boundary."""
    return [(int(path[m - 1]) if m else None, int(path[m]) if m < len(path) else None) for m in tokens]
