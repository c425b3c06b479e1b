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
from ..crf.layout import Layout
from ..explain import Choice, Margin, Moved, Reasons, Step
from ..features.grid import Grid
from ..types import Alignment
from .reasons import Contributions, Spoken
from .scoring import LONGEST_KEPT, Scorer

if TYPE_CHECKING:
    from .crf import Crf

NULL = 0  # the state; position j is state j + 1


class Steps:
    """Scores and reasons of all transitions towards a sentence of n tokens."""

    def __init__(self, crf: Crf, n: int) -> None:
        scorer = crf.scorer()
        self._width = n + 1
        self._known: dict[tuple[str, int], Reasons] = {}
        self._contributions = {
            kind: Contributions(
                [scorer.known(family.name, getattr(family, kind)(n)) for family in crf.features.edge],
                scorer.names,
                scorer.weights,
            )
            for kind in ("edge", "start", "end")
        }
        layout = Layout(np.array([1]), np.array([n]), 1, "cpu")
        edge, self.start, self.end = (scores[:-1] for scores in scorer.edges(layout))
        self.edge = edge.reshape(n + 1, n + 1)

    def reasons(self, before: int | None, after: int | None) -> Reasons:
        """Of the step between two states; None stands for the beginning, or the end."""
        if before is None:
            kind, cell = "start", after
        elif after is None:
            kind, cell = "end", before
        else:
            kind, cell = "edge", before * self._width + after
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
    layout = Layout(grid.n_source, grid.n_target, crf.batch_cells, crf.device)
    nodes = np.concatenate([spoken.null, spoken.link, np.zeros(1)])
    flat = [torch.as_tensor(x, device=crf.device) for x in (nodes, *crf.scorer().edges(layout))]
    out: list[Chain | None] = [None] * len(grid.n_source)
    for bucket in layout.buckets:
        potentials = bucket.potentials(*flat)
        states, posterior = viterbi(potentials)[0].cpu().numpy(), marginals(potentials).node.cpu().numpy()
        for row, pair in enumerate(bucket.pairs.tolist()):
            m, n = int(grid.n_source[pair]), int(grid.n_target[pair])
            places = int(grid.source_start[pair]), int(grid.cell_start[pair])
            chances = posterior[row, :m, : n + 1].clip(max=1.0)
            out[pair] = Chain(name, company, steps[n], places, states[row, :m], chances)
    return out  # type: ignore[return-value]


class Chain:
    """`states` [M] of the best path and `posterior` [M, S] of one pair; `places` are its first token and cell."""

    def __init__(
        self,
        name: str,
        company: Company,
        steps: Steps,
        places: tuple[int, int],
        states: np.ndarray,
        posterior: np.ndarray,
    ) -> None:
        self.name, self.states, self.posterior = name, states, posterior
        self._spoken, self._steps, (self._token, self._cell) = company.spoken, steps, places
        self._company = company
        company.members.append(ref(self))
        self._reasons: dict[tuple[int, int], Reasons] = {}

    @cached_property
    def node(self) -> np.ndarray:
        """[M, S] scores."""
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
        return Alternatives(self.node, self._steps.edge, self._steps.start, self._steps.end)

    def reasons(self, token: int, position: int | None) -> Reasons:
        """What the token's score for that position is made of (None: no link)."""
        return self._of(token, _state(position))

    def choice(self, token: int, position: int | None) -> Choice:
        """Why the token takes that position (None: no link), or why it does not."""
        state, best = _state(position), int(self.states[token])
        chosen = state == best
        path = self.states if chosen else self._alternatives.path(token, state, self.states)
        rival = self._alternatives.rival(token, state) if chosen else best
        if not self._reasons:
            self._company.learn()
        return Choice(
            direction=self.name,
            token=token,
            position=position,
            chosen=chosen,
            posterior=float(self.posterior[token, state]),
            score=float(self.node[token, state]),
            reasons=self._of(token, state),
            steps=self._around(path, token),
            rival=None if rival is None else _position(rival),
            rival_posterior=0.0 if rival is None else float(self.posterior[token, rival]),
            margin=None if rival is None else self._margin(token, path, rival),
        )

    def _margin(self, token: int, here: np.ndarray, rival: int) -> Margin:
        state, best = int(here[token]), int(self.states[token])
        there = self.states if rival == best else self._alternatives.path(token, rival, self.states)
        apart = np.flatnonzero(here != there).tolist()
        between = sorted({m + side for m in apart for side in (0, 1)})  # step m leads to token m
        steps = [[self._steps.reasons(*step) for step in _transitions(path, between)] for path in (here, there)]
        moved = [
            Moved(m, _position(a), _position(b), float(self.node[m, a] - self.node[m, b]))
            for m, a, b in zip(apart, here[apart].tolist(), there[apart].tolist(), strict=True)
            if m != token
        ]
        scores = self._alternatives.score[token]
        own = Reasons.difference([self._of(token, state)], [self._of(token, rival)])
        return Margin(float(scores[state] - scores[rival]), own, Reasons.difference(*steps), tuple(moved))

    def _around(self, path: np.ndarray, token: int) -> tuple[Step, ...]:
        """The steps into a token's state and out of it."""
        return tuple(
            Step(
                "start" if a is None else "end" if b is None else "step",
                None if a is None else _position(a),
                None if b is None else _position(b),
                self._steps.reasons(a, b),
            )
            for a, b in _transitions(path, (token, token + 1))
        )

    def _of(self, token: int, state: int) -> Reasons:
        if (token, state) not in self._reasons:  # the whole row costs little more than one cell
            self._company.look_up((self, token, s) for s in range(self.posterior.shape[1]))
        return self._reasons[token, state]

    def likely(self) -> Iterator[tuple[int, int]]:
        """What is asked for first: every token's state and its next best one."""
        tokens, scores = range(len(self.states)), self._alternatives.score.copy()
        scores[tokens, self.states] = -np.inf
        yield from enumerate(self.states.tolist())
        yield from enumerate(scores.argmax(1).tolist())

    def cell(self, token: int, state: int) -> int:
        """The flat number of a token's state among NULLs, or among links."""
        width = self.posterior.shape[1] - 1
        return self._token + token if state == NULL else self._cell + token * width + state - 1

    def remember(self, token: int, state: int, reasons: Reasons) -> None:
        self._reasons[token, state] = reasons


@dataclass
class Company:
    """The chains of a grid, whose reasons are looked up together; it does not keep them alive."""

    spoken: Spoken
    members: list[ref[Chain]] = field(default_factory=list)

    def learn(self) -> None:
        """What any of them is likely to be asked for: whoever asks one mostly asks the others too."""
        chains = [chain for member in self.members if (chain := member()) is not None]
        self.look_up((chain, token, state) for chain in chains for token, state in chain.likely())

    def look_up(self, asked: Iterable[tuple[Chain, int, int]]) -> None:
        every = list(asked)
        for contributions, some in (
            (self.spoken.null_reasons, [x for x in every if x[2] == NULL]),
            (self.spoken.link_reasons, [x for x in every if x[2] != NULL]),
        ):
            cells = [chain.cell(token, state) for chain, token, state in some]
            for (chain, token, state), reasons in zip(some, contributions.of(cells), strict=True):
                chain.remember(token, state, reasons)


def _state(position: int | None) -> int:
    return NULL if position is None else position + 1


def _position(state: int) -> int | None:
    return None if state == NULL else state - 1


def _transitions(path: np.ndarray, to: Iterable[int]) -> list[tuple[int | None, int | None]]:
    """The steps of a path to these tokens; None stands for its beginning, and for the end behind its last one."""
    return [(int(path[m - 1]) if m else None, int(path[m]) if m < len(path) else None) for m in to]
