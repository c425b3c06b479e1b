"""Simulated annealing as in Figure 2 of MacCartney et al.: gains of all edits in, a high-scoring alignment out.

A successor adds one edit of any phrases, or a deletion or an insertion, and takes away what it clashes with;
tokens that are left over are deleted and inserted. What each successor would change is kept from step to step.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...errors import ConfigError
from .edit_features import Edit
from .phrases import Spans


@dataclass(frozen=True)
class Schedule:
    """`steps` (N), the temperature before the first (T0), and what it is multiplied by at every step (r)."""

    steps: int = 100
    temperature: float = 40.0
    cooling: float = 0.9

    def __post_init__(self) -> None:
        if self.steps < 1 or not (0 < self.temperature < np.inf and 0 < self.cooling <= 1):
            raise ConfigError(
                f"steps={self.steps}, temperature={self.temperature}, cooling={self.cooling}: at least one step, "
                "a positive temperature, and a factor above 0 and at most 1"
            )


def anneal(
    gains: np.ndarray, source: Spans, target: Spans, schedule: Schedule, random: np.random.Generator
) -> list[Edit]:
    """The best of the alignments that are met on the way from the empty one."""
    state = _State(gains, source, target)
    best, best_edits = 0.0, []
    temperature = schedule.temperature
    for _ in range(schedule.steps):
        temperature *= schedule.cooling
        state.step(temperature, random.random())
        if state.score > best:
            best, best_edits = state.score, sorted(state.edits)
    return best_edits


class _State:
    """An alignment, and what it would score after each possible edit.

    Successors are numbered: edits of two phrases, then deletions of single tokens, then insertions. `lost` says
    what each would take away. Gains are what edits add to the alignment without any, so that of a deletion is 0.
    """

    def __init__(self, gains: np.ndarray, source: Spans, target: Spans) -> None:
        self.gains, self.source, self.target = gains, source, target
        self.size, self.width = gains.size, gains.shape[1]
        self.gain = np.concatenate([gains.ravel(), np.zeros(source.n + target.n)])
        self.lost = np.zeros(len(self.gain))
        self.edits: set[Edit] = set()
        self.score = 0.0

    def step(self, temperature: float, chance: float) -> None:
        """Sample a successor: p(F) is the exponential of its score, to the power of 1 / temperature."""
        p = self.gain - self.lost  # the scores, but for what they have in common
        p -= p.max()
        p /= temperature
        np.exp(p, out=p)
        total = np.cumsum(p, out=p)
        self._take(min(int(total.searchsorted(chance * total[-1], side="right")), len(p) - 1))

    def _take(self, number: int) -> None:
        if number < self.size:
            edit = divmod(number, self.width)
            if edit in self.edits:
                return
            for other in [other for other in self.edits if self._clash(edit, other)]:
                self._change(other, -1)
            self._change(edit, 1)
            return
        token, side = number - self.size, 0
        if token >= self.source.n:
            token, side = token - self.source.n, 1
        spans = (self.source, self.target)[side]
        for other in [e for e in self.edits if spans.start[e[side]] <= token < spans.end[e[side]]]:
            self._change(other, -1)

    def _clash(self, one: Edit, other: Edit) -> bool:
        return any(
            spans.start[a] < spans.end[b] and spans.start[b] < spans.end[a]
            for spans, a, b in zip((self.source, self.target), one, other, strict=True)
        )

    def _change(self, edit: Edit, sign: int) -> None:
        """Add an edit that clashes with none, or take one away."""
        (self.edits.add if sign > 0 else self.edits.discard)(edit)
        worth = sign * self.gains[edit]
        self.score += worth
        above, tokens_above = _touched(self.source, edit[0])
        below, tokens_below = _touched(self.target, edit[1])
        lost = self.lost[: self.size].reshape(self.gains.shape)
        lost[above] += worth
        lost[np.ix_(~above, below)] += worth
        self.lost[self.size : self.size + self.source.n][tokens_above] += worth
        self.lost[self.size + self.source.n :][tokens_below] += worth


def _touched(spans: Spans, number: int) -> tuple[np.ndarray, slice]:
    """Which spans share a token with this one, and its tokens."""
    first, end = spans.start[number], spans.end[number]
    return (spans.start < end) & (spans.end > first), slice(int(first), int(end))
