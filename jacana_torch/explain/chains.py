"""A linear chain that tells why: one direction of a CRF on pairs, every choice taken apart.

A `Crf` and a grid in; a `Chain` a pair out, which answers for any token and position (explain/choice.py). What is
asked for is worked out when it is asked for; most of it for all tokens of the best path at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary, ref

import numpy as np
import torch

from ..crf.alternatives import Alternatives
from ..crf.inference import marginals, viterbi
from ..crf.scoring import LONGEST_KEPT, Scorer
from ..features.grid import Grid
from ..types import Alignment
from . import Choice, Margin, Moved, Reasons, Step
from .contributions import Contributions, Spoken

if TYPE_CHECKING:
    from ..aligners.crf import Crf

NULL = 0  # the column; position j is column j + 1. States may be more: crf/spaces.py


class Steps:
    """Scores and reasons of all transitions towards a sentence of n tokens."""

    def __init__(self, crf: Crf, n: int) -> None:
        scorer = crf.scorer()
        layout = crf.layout(np.array([1]), np.array([n]))
        self._space, self._n = layout.space, n
        self.column = layout.space.column(n, np.arange(layout.space.size(n)))
        self._known: dict[tuple[str, int], Reasons] = {}
        said = [(family.name, crf.features.step_blocks(family, n)) for family in crf.features.edge]
        self._contributions = {
            kind: Contributions(
                [scorer.known(name, block) for name, blocks in said for block in blocks[kind]],
                scorer.names,
                scorer.weights,
            )
            for kind in ("edge", "start", "end")
        }
        edge, start, end = (scores[:-1] for scores in scorer.edges(layout))
        self.edge, self.end = layout.space.square(n, edge), end[self.column]
        self.start = np.append(start, np.full(len(self.end) - len(start), -np.inf))

    def reasons(self, before: int | None, after: int | None) -> Reasons:
        """Of the step between two states; None stands for the beginning, or the end."""
        if before is None:
            kind, cell = "start", after
        elif after is None:
            kind, cell = "end", int(self.column[before])
        else:
            kind, cell = "edge", int(self._space.edge(self._n, before, after))
        assert cell is not None
        if (kind, cell) not in self._known:
            (self._known[kind, cell],) = self._contributions[kind].of([cell])
        return self._known[kind, cell]


_STEPS: WeakKeyDictionary[Scorer, dict[int, Steps]] = WeakKeyDictionary()


def _steps(crf: Crf, n: int) -> Steps:
    """Those of common lengths are kept as long as the scorer is."""
    known = _STEPS.setdefault(crf.scorer(), {})
    if n in known:
        return known[n]
    steps = Steps(crf, n)
    if n <= LONGEST_KEPT:
        known[n] = steps
    return steps


@torch.no_grad()
def chains(crf: Crf, grid: Grid, name: str) -> list[Chain]:
    """One for each pair of the grid, seen in the direction that the grid has; `name` says which that is."""
    company = Company(Spoken(crf.scorer(), grid, crf.features.node))
    spoken = company.spoken
    steps = {n: _steps(crf, n) for n in np.unique(grid.n_target).tolist()}
    layout = crf.layout(grid.n_source, grid.n_target)
    nodes = np.concatenate([spoken.null, spoken.link, np.zeros(1)])
    flat = [torch.as_tensor(x, device=crf.device) for x in (nodes, *crf.scorer().edges(layout))]
    out: list[Chain | None] = [None] * len(grid.n_source)
    for bucket in layout.buckets:
        potentials = bucket.potentials(*flat)
        states, posterior = viterbi(potentials)[0].cpu().numpy(), marginals(potentials).node.cpu().numpy()
        for row, pair in enumerate(bucket.pairs.tolist()):
            m, n = int(grid.n_source[pair]), int(grid.n_target[pair])
            places = int(grid.source_start[pair]), int(grid.cell_start[pair])
            chances = posterior[row, :m, : layout.space.size(n)]
            out[pair] = Chain(name, company, steps[n], places, states[row, :m], chances)
    return out  # type: ignore[return-value]


class Chain:
    """`states` [M] of the best path and `chances` [M, S] of all states, of one pair whose first token and cell are
    `places`. Told are columns, whichever states they are of."""

    def __init__(
        self,
        name: str,
        company: Company,
        steps: Steps,
        places: tuple[int, int],
        states: np.ndarray,
        chances: np.ndarray,
    ) -> None:
        self.name, self._path, self._column = name, states, steps.column
        self.states = steps.column[states]
        columns = np.arange(steps.column.max() + 1)
        self.posterior = (chances @ (steps.column[:, None] == columns)).clip(max=1.0)  # [M, 1 + N]
        self._spoken, self._steps, (self._token, self._cell) = company.spoken, steps, places
        self._company = company
        company.members.append(ref(self))
        self._reasons: dict[tuple[int, int], Reasons] = {}

    @cached_property
    def node(self) -> np.ndarray:
        """[M, 1 + N] scores."""
        m, s = self.posterior.shape
        null = self._spoken.null[self._token : self._token + m]
        link = self._spoken.link[self._cell : self._cell + m * (s - 1)].reshape(m, s - 1)
        return np.column_stack([null, link])

    @cached_property
    def alignment(self) -> Alignment:
        """From source to target, whichever direction this is."""
        m, s = self.posterior.shape
        links = {(i, state - 1): i for i, state in enumerate(self.states.tolist()) if state != NULL}
        chances = {(i, j): float(self.posterior[i, j + 1]) for i, j in links}
        found = Alignment(m, s - 1, frozenset(links), confidence=chances)
        return found if self.name == "forward" else found.flip()

    @cached_property
    def _alternatives(self) -> Alternatives:
        return Alternatives(self.node[:, self._column], self._steps.edge, self._steps.start, self._steps.end)

    def reasons(self, token: int, position: int | None) -> Reasons:
        """What the token's score for that position is made of (None: no link)."""
        return self._of(token, _column(position))

    def choice(self, token: int, position: int | None) -> Choice:
        """Why the token takes that position (None: no link), or why it does not."""
        column, best = _column(position), int(self._path[token])
        chosen = column == int(self._column[best])
        same = np.flatnonzero(self._column == column)
        state = best if chosen else int(same[self._alternatives.score[token, same].argmax()])
        path = self._path if chosen else self._alternatives.path(token, state, self._path)
        rival = self._alternatives.rival(token, same) if chosen else best
        other = None if rival is None else int(self._column[rival])
        if not self._reasons:
            self._company.learn()
        return Choice(
            direction=self.name,
            token=token,
            position=position,
            chosen=chosen,
            posterior=float(self.posterior[token, column]),
            score=float(self.node[token, column]),
            reasons=self._of(token, column),
            steps=self._around(path, token),
            rival=None if other is None else _position(other),
            rival_posterior=0.0 if other is None else float(self.posterior[token, other]),
            margin=None if rival is None else self._margin(token, path, rival),
        )

    def _margin(self, token: int, here: np.ndarray, rival: int) -> Margin:
        state, best = int(here[token]), int(self._path[token])
        there = self._path if rival == best else self._alternatives.path(token, rival, self._path)
        apart = np.flatnonzero(here != there).tolist()
        between = sorted({m + side for m in apart for side in (0, 1)})  # step m leads to token m
        steps = [[self._steps.reasons(*step) for step in _transitions(path, between)] for path in (here, there)]
        columns = zip(apart, self._column[here[apart]].tolist(), self._column[there[apart]].tolist(), strict=True)
        moved = [
            Moved(m, _position(a), _position(b), float(self.node[m, a] - self.node[m, b]))
            for m, a, b in columns
            if m != token and a != b
        ]
        scores = self._alternatives.score[token]
        own = Reasons.difference(*([self._of(token, int(self._column[s]))] for s in (state, rival)))
        return Margin(float(scores[state] - scores[rival]), own, Reasons.difference(*steps), tuple(moved))

    def _around(self, path: np.ndarray, token: int) -> tuple[Step, ...]:
        """The steps into a token's state and out of it."""
        return tuple(
            Step(
                "start" if a is None else "end" if b is None else "step",
                None if a is None else _position(int(self._column[a])),
                None if b is None else _position(int(self._column[b])),
                self._steps.reasons(a, b),
            )
            for a, b in _transitions(path, (token, token + 1))
        )

    def _of(self, token: int, column: int) -> Reasons:
        if (token, column) not in self._reasons:  # the whole row costs little more than one cell
            self._company.look_up((self, token, c) for c in range(self.posterior.shape[1]))
        return self._reasons[token, column]

    def likely(self) -> Iterator[tuple[int, int]]:
        """What is asked for first: every token's column and its next best one."""
        scores = np.where(self._column == self.states[:, None], -np.inf, self._alternatives.score)
        yield from enumerate(self.states.tolist())
        yield from enumerate(self._column[scores.argmax(1)].tolist())

    def cell(self, token: int, column: int) -> int:
        """The flat number of a token's column among NULLs, or among links."""
        width = self.posterior.shape[1] - 1
        return self._token + token if column == NULL else self._cell + token * width + column - 1

    def remember(self, token: int, column: int, reasons: Reasons) -> None:
        self._reasons[token, column] = reasons


@dataclass
class Company:
    """The chains of a grid, whose reasons are looked up together; it does not keep them alive."""

    spoken: Spoken
    members: list[ref[Chain]] = field(default_factory=list)

    def learn(self) -> None:
        """What any of them is likely to be asked for: whoever asks one mostly asks the others too."""
        chains = [chain for member in self.members if (chain := member()) is not None]
        self.look_up((chain, token, column) for chain in chains for token, column in chain.likely())

    def look_up(self, asked: Iterable[tuple[Chain, int, int]]) -> None:
        every = list(asked)
        for contributions, some in (
            (self.spoken.null_reasons, [x for x in every if x[2] == NULL]),
            (self.spoken.link_reasons, [x for x in every if x[2] != NULL]),
        ):
            cells = [chain.cell(token, column) for chain, token, column in some]
            for (chain, token, column), reasons in zip(some, contributions.of(cells), strict=True):
                chain.remember(token, column, reasons)


def _column(position: int | None) -> int:
    return NULL if position is None else position + 1


def _position(column: int) -> int | None:
    return None if column == NULL else column - 1


def _transitions(path: np.ndarray, to: Iterable[int]) -> list[tuple[int | None, int | None]]:
    """The steps of a path to these tokens; None stands for its beginning, and for the end behind its last one."""
    return [(int(path[m - 1]) if m else None, int(path[m]) if m < len(path) else None) for m in to]
