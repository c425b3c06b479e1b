"""Project spans of one sentence onto the other: entities, terms, markup.

A span goes where the links of its tokens lead. Unlinked tokens between two of them belong to it; where words lie
between that are linked elsewhere, the projected span has several parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from .offsets import Offsets

Span = tuple[int, int]
Labelled = tuple[int, int] | tuple[int, int, str]


@dataclass(frozen=True)
class Projected:
    """A span `origin` (start, end) and its `parts` in the other sentence: none, one, or several in order.

    `confidence` is the mean, over the tokens of the span, of the probability of their best link, 0 for a token
    without any. Places are tokens, or characters if the span was given in characters.
    """

    origin: Span
    parts: tuple[Span, ...]
    label: str = ""
    confidence: float = 0.0

    @property
    def span(self) -> Span | None:
        """The stretch from the first part to the last, or None."""
        return (self.parts[0][0], self.parts[-1][1]) if self.parts else None

    @property
    def discontinuous(self) -> bool:
        return len(self.parts) > 1


def project(
    spans: Iterable[Labelled],
    links: Iterable[tuple[int, int]],
    confidence: Mapping[tuple[int, int], float],
    lengths: tuple[int, int],
    offsets: tuple[Offsets, Offsets] | None = None,
) -> list[Projected]:
    """Project spans (start, end) or (start, end, label) from the first side of the links to the second.

    `lengths` counts the tokens of both sides. With `offsets`, spans count characters, given and returned; one that
    begins or ends inside a token takes the whole token.
    """
    forward: dict[int, list[int]] = {}
    taken: dict[int, set[int]] = {}
    for i, j in sorted(links):
        forward.setdefault(i, []).append(j)
        taken.setdefault(j, set()).add(i)
    out = []
    for given in spans:
        start, end, label = (*given, "")[:3]
        if not isinstance(label, str):
            raise ValueError(f"the label of span {start}-{end} is {label!r}, not a string")
        inside = _tokens((start, end), lengths[0], offsets[0] if offsets else None)
        reached = sorted({j for i in inside for j in forward.get(i, ())})
        runs = _runs(reached, taken, set(inside))
        parts = tuple((a, b) if offsets is None else (offsets[1][a][0], offsets[1][b - 1][1]) for a, b in runs)
        best = [max((confidence.get((i, j), 1.0) for j in forward.get(i, ())), default=0.0) for i in inside]
        out.append(Projected((start, end), parts, label, sum(best) / len(best) if best and parts else 0.0))
    return out


def _tokens(span: Span, n: int, offsets: Offsets | None) -> Sequence[int]:
    """The tokens of a span; a ValueError for one outside of its sentence."""
    start, end = span
    last = n if offsets is None else max((end for _, end in offsets), default=0)
    if not (
        type(start) is int and type(end) is int and 0 <= start <= end and (offsets is not None or end <= last)
    ):
        raise ValueError(f"the span {start}-{end} is not within its sentence, 0-{last}")
    if offsets is None:
        return range(start, end)
    return [k for k, (a, b) in enumerate(offsets) if a < end and b > start]


def _runs(reached: Sequence[int], taken: Mapping[int, set[int]], inside: set[int]) -> list[Span]:
    """Stretches of the reached tokens; unlinked ones between them join two."""
    found: list[Span] = []
    for j in reached:
        between = range(found[-1][1], j) if found else ()
        if found and all(not taken.get(k) or taken[k] & inside for k in between):
            found[-1] = found[-1][0], j + 1
        else:
            found.append((j, j + 1))
    return found
