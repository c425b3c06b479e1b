"""Two directed alignments in, one out: pure functions (forward, backward) -> Alignment.

Both come in source → target orientation, so a backward aligner's output is flipped before it gets here. Every
function first combines the sure links, then sure and possible links together; what only the second gives is
possible. grow, grow-diag and the final steps are Koehn's (Moses): growing goes on until nothing changes, and
points are visited in reading order, those added ahead of the current one within the same pass.

Confidence: the mean of both directions. A link that one direction's confidences do not hold counts 0 there,
unless that direction gives no confidences at all: then the other's stand as they are.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping
from functools import partial
from types import FunctionType, MappingProxyType

from .errors import ConfigError
from .types import Alignment, Link, trusted

Links = frozenset[Link] | set[Link]
Symmetrizer = Callable[[Alignment, Alignment], Alignment]

STRAIGHT: tuple[Link, ...] = ((-1, 0), (0, -1), (1, 0), (0, 1))
DIAGONAL: tuple[Link, ...] = ((-1, -1), (-1, 1), (1, -1), (1, 1))


def forward(forward: Alignment, backward: Alignment) -> Alignment:
    """The forward direction alone."""
    forward._same_size(backward)
    return forward


def backward(forward: Alignment, backward: Alignment) -> Alignment:
    """The backward direction alone."""
    forward._same_size(backward)
    return backward


def intersection(forward: Alignment, backward: Alignment) -> Alignment:
    """Links that both directions have: high precision."""
    return _combine(forward, backward, lambda f, b: f & b)


def union(forward: Alignment, backward: Alignment) -> Alignment:
    """Links that either direction has: high recall."""
    return _combine(forward, backward, lambda f, b: f | b)


def grow(forward: Alignment, backward: Alignment) -> Alignment:
    """The intersection, grown into the union along straight neighbours that cover a new word."""
    return _combine(forward, backward, lambda f, b: _Grown(f, b, STRAIGHT).links)


def grow_diag(forward: Alignment, backward: Alignment) -> Alignment:
    """As grow, along diagonal neighbours too."""
    return _combine(forward, backward, lambda f, b: _Grown(f, b, STRAIGHT + DIAGONAL).links)


def grow_diag_final(forward: Alignment, backward: Alignment) -> Alignment:
    """grow-diag, then forward's and backward's remaining links of which either word is not covered yet."""
    return _combine(
        forward,
        backward,
        lambda f, b: _Grown(f, b, STRAIGHT + DIAGONAL).final(f, both=False).final(b, both=False).links,
    )


def grow_diag_final_and(forward: Alignment, backward: Alignment) -> Alignment:
    """grow-diag, then forward's and backward's remaining links of which neither word is covered yet."""
    return _combine(
        forward,
        backward,
        lambda f, b: _Grown(f, b, STRAIGHT + DIAGONAL).final(f, both=True).final(b, both=True).links,
    )


def posterior(forward: Alignment, backward: Alignment) -> Alignment:
    """A name for what only an aligner of two chains can do: links by their chance under both directions."""
    raise ConfigError(
        "posterior needs the chances of all links, and alignments hold those of their own links alone"
    )


SYMMETRIZERS: Mapping[str, Symmetrizer] = MappingProxyType(
    {
        function.__name__: function
        for function in (
            intersection, union, grow, grow_diag, grow_diag_final, grow_diag_final_and, forward, backward
        )
    }
)  # fmt: skip


def symmetrizer(name: str) -> Symmetrizer:
    """The function of that name, written with hyphens or underscores."""
    try:
        return {**SYMMETRIZERS, "posterior": posterior}[name.strip().lower().replace("-", "_")]
    except KeyError:
        known = ", ".join(known.replace("_", "-") for known in (*SYMMETRIZERS, "posterior"))
        raise ConfigError(f"there is no symmetrizer {name!r}: choose one of {known}") from None


def name_of(symmetrize: Symmetrizer | str) -> str:
    """The name of a symmetrizer, with underscores."""
    while isinstance(symmetrize, partial):  # configs make partial functions
        symmetrize = symmetrize.func
    if isinstance(symmetrize, str):
        return symmetrize.strip().lower().replace("-", "_")
    return symmetrize.__name__ if isinstance(symmetrize, FunctionType) else type(symmetrize).__name__.lower()


class _Grown:
    """A set of links that grows from the intersection of two, and the words it covers so far."""

    def __init__(self, forward: Links, backward: Links, neighbours: tuple[Link, ...]) -> None:
        self.links: set[Link] = set(forward & backward)
        self.rows = {i for i, _ in self.links}
        self.columns = {j for _, j in self.links}
        if candidates := forward ^ backward:
            self._grow(candidates, neighbours)

    def _add(self, link: Link) -> None:
        self.links.add(link)
        self.rows.add(link[0])
        self.columns.add(link[1])

    def _grow(self, candidates: Links, neighbours: tuple[Link, ...]) -> None:
        # Coverage only grows, so a neighbour refused once is refused for good and each point is visited once;
        # the heap keeps Koehn's visiting order: points added behind the current one wait for the next pass.
        # Candidates are few, so it is they who look for their neighbours, and points without any are not visited.
        beside = {(i + down, j + right) for i, j in candidates for down, right in neighbours}
        this_pass = sorted(self.links & beside)
        while this_pass:
            next_pass: list[Link] = []
            while this_pass:
                point = heapq.heappop(this_pass)
                for down, right in neighbours:
                    link = (point[0] + down, point[1] + right)
                    if link in candidates and not (link[0] in self.rows and link[1] in self.columns):
                        self._add(link)
                        heapq.heappush(this_pass if link > point else next_pass, link)
            this_pass = next_pass

    def final(self, direction: Links, *, both: bool) -> _Grown:
        for link in sorted(direction - self.links):
            free = (link[0] not in self.rows, link[1] not in self.columns)
            if all(free) if both else any(free):
                self._add(link)
        return self


def _combine(forward: Alignment, backward: Alignment, operation: Callable[[Links, Links], Links]) -> Alignment:
    forward._same_size(backward)
    sure = forward.sure
    if sure != backward.sure:  # links that both directions agree on are what every operation makes of them
        sure = frozenset(operation(forward.sure, backward.sure))
    every = sure
    if forward.possible or backward.possible:
        every = frozenset(operation(forward.sure | forward.possible, backward.sure | backward.possible))
    return trusted(
        forward.n_source,
        forward.n_target,
        sure,
        every - sure,
        _mean_confidence(forward.confidence, backward.confidence, sure | every),
        None if forward.score is None or backward.score is None else (forward.score + backward.score) / 2,
    )


def _mean_confidence(
    forward: Mapping[Link, float], backward: Mapping[Link, float], links: frozenset[Link]
) -> dict[Link, float]:
    given = [direction for direction in (forward, backward) if direction]
    if not given:
        return {}
    return {
        link: sum(direction.get(link, 0.0) for direction in given) / len(given)
        for link in sorted(links)
        if any(link in direction for direction in given)
    }
