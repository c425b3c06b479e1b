"""Symmetrizers: functions that combine a forward and a backward alignment of the same pair into one.

Both alignments count as source → target, so flip what a backward aligner returns first. Each function combines the
sure links, then the sure and possible links together; links that only the second step yields are possible.
grow, grow-diag and their final steps follow Koehn's algorithm in Moses: growing repeats until nothing changes, and
visits links in reading order; a link added ahead of the current one is visited in the same pass.

The confidence of a link is the mean of both directions. A direction that has confidences, but none for this link,
counts as 0; a direction without any confidences does not count.

The files of conf/symmetrize name the symmetrizers. To add one, write a function and a YAML file with its
`_target_` and `_partial_: true`.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from functools import lru_cache, partial
from itertools import filterfalse
from operator import itemgetter
from pathlib import Path
from types import FunctionType
from typing import Any

from .errors import ConfigError, did_you_mean
from .types import Alignment, Link, check_same_size, trusted
from .util import conf
from .util.build import build

Links = frozenset[Link]
Symmetrizer = Callable[[Alignment, Alignment], Alignment]

STRAIGHT: tuple[Link, ...] = ((-1, 0), (0, -1), (1, 0), (0, 1))
EVERYWHERE: tuple[Link, ...] = (*STRAIGHT, (-1, -1), (-1, 1), (1, -1), (1, 1))


def intersection(forward: Alignment, backward: Alignment) -> Alignment:
    """Return the links of both directions: high precision."""
    return _combine(forward, backward, frozenset.intersection)


def union(forward: Alignment, backward: Alignment) -> Alignment:
    """Return the links of either direction: high recall."""
    return _combine(forward, backward, frozenset.union)


def grow(forward: Alignment, backward: Alignment) -> Alignment:
    """Grow the intersection into the union by straight neighbours that cover a new word."""
    return _combine(forward, backward, partial(_grown, neighbours=STRAIGHT))


def grow_diag(forward: Alignment, backward: Alignment) -> Alignment:
    """Grow as `grow` does, by diagonal neighbours too."""
    return _combine(forward, backward, partial(_grown, neighbours=EVERYWHERE))


def grow_diag_final(forward: Alignment, backward: Alignment) -> Alignment:
    """Grow by `grow_diag`, then add remaining links, forward's first, if either word is still uncovered."""
    return _combine(forward, backward, partial(_grown, neighbours=EVERYWHERE, final=any))


def grow_diag_final_and(forward: Alignment, backward: Alignment) -> Alignment:
    """Grow by `grow_diag`, then add remaining links, forward's first, if both words are still uncovered."""
    return _combine(forward, backward, partial(_grown, neighbours=EVERYWHERE, final=all))


def forward(forward: Alignment, backward: Alignment) -> Alignment:
    """Return the forward direction alone."""
    check_same_size(forward, backward)
    return forward


def backward(forward: Alignment, backward: Alignment) -> Alignment:
    """Return the backward direction alone."""
    check_same_size(forward, backward)
    return backward


# The functions of this module, by name. They read links alone, so an aligner may compute confidences afterwards.
BY_LINKS: dict[str, Symmetrizer] = {
    "intersection": intersection,
    "union": union,
    "grow": grow,
    "grow_diag": grow_diag,
    "grow_diag_final": grow_diag_final,
    "grow_diag_final_and": grow_diag_final_and,
    "forward": forward,
    "backward": backward,
}

# What Moses, fast_align and SimAlign call them.
ALIASES = {
    "gd": "grow_diag",
    "gdf": "grow_diag_final",
    "gdfa": "grow_diag_final_and",
    "inter": "intersection",
    "intersect": "intersection",
}


def names() -> tuple[str, ...]:
    """List the symmetrizers of conf/symmetrize: those of this module first, then the others by the alphabet."""
    return (*BY_LINKS, *filterfalse(BY_LINKS.__contains__, conf.paths("symmetrize")))


def name_of(symmetrize: object) -> str:
    """Return the name of a symmetrizer in conf/symmetrize; users may write hyphens, capitals and aliases."""
    while isinstance(symmetrize, partial):  # as configs build them
        symmetrize = symmetrize.func
    if isinstance(symmetrize, str):
        name = symmetrize.strip().lower().replace("-", "_")
        return ALIASES.get(name, name)
    return symmetrize.__name__ if isinstance(symmetrize, FunctionType) else type(symmetrize).__name__.lower()


def symmetrizer(name: str) -> Any:
    """Return the symmetrizer of that name: a function, or the object that its YAML builds (`Posterior`).

    A threshold may follow the name: `posterior:0.7` links words whose posterior is at least 0.7.
    """
    found, colon, threshold = name_of(name).partition(":")
    if found in BY_LINKS and not colon:
        return BY_LINKS[found]
    paths = conf.paths("symmetrize")
    if found not in paths:
        known = [one.replace("_", "-") for one in names()]
        raise ConfigError(f"there is no symmetrizer {name!r}{did_you_mean(name, known)}")
    if not colon:
        return _built(paths[found])
    try:
        return _built(paths[found], float(threshold))
    except ValueError:
        raise ConfigError(f"symmetrizer {name!r}: {threshold!r} is not a number, as in posterior:0.7") from None


def functions() -> dict[str, Symmetrizer]:
    """Return every symmetrizer that is a function of two alignments; `posterior` needs the aligners too."""
    found = {**BY_LINKS}
    for name, path in conf.paths("symmetrize").items():
        if name not in found and callable(made := _built(path)):
            found[name] = made
    return found


@lru_cache(maxsize=64)  # thresholds are many
def _built(path: Path, threshold: float | None = None) -> Any:
    config = conf.read(path)
    if threshold is None:
        return build(config)
    if "threshold" not in config:
        raise ConfigError(f"the symmetrizer {path.stem} has no threshold: only posterior has one")
    return build({**config, "decide": "threshold", "threshold": threshold})


def _grown(
    forward: Links,
    backward: Links,
    neighbours: tuple[Link, ...],
    final: Callable[[tuple[bool, bool]], bool] | None = None,
) -> Links:
    """Grow the intersection; `final` says which words must be uncovered for a remaining link to be added."""
    links = {*(forward & backward)}
    rows, columns = set(map(itemgetter(0), links)), set(map(itemgetter(1), links))  # those that are covered
    candidates = forward ^ backward
    # Coverage only grows, so a neighbour that was refused once stays refused, and each link is visited once.
    # The heap keeps Koehn's order: a link added behind the current one waits for the next pass.
    # Candidates are few, so links without a candidate beside them are left out.
    beside: set[Link] = set()
    for i, j in candidates:
        for down, right in neighbours:
            beside.add((i + down, j + right))
    this_pass = sorted(links & beside)
    while this_pass:
        next_pass: list[Link] = []
        while this_pass:
            visited = heapq.heappop(this_pass)
            for down, right in neighbours:
                link = (visited[0] + down, visited[1] + right)
                if link in candidates and not (link[0] in rows and link[1] in columns):
                    links.add(link)
                    rows.add(link[0])
                    columns.add(link[1])
                    heapq.heappush(this_pass if link > visited else next_pass, link)
        this_pass = next_pass
    for direction in (forward, backward) if final is not None else ():
        for link in sorted(direction - links):
            if final is not None and final((link[0] not in rows, link[1] not in columns)):
                links.add(link)
                rows.add(link[0])
                columns.add(link[1])
    return frozenset(links)


def _combine(forward: Alignment, backward: Alignment, operation: Callable[[Links, Links], Links]) -> Alignment:
    check_same_size(forward, backward)
    sure = forward.sure
    if sure != backward.sure:  # of two equal sets every operation returns the same set
        sure = operation(forward.sure, backward.sure)
    every = sure
    if forward.possible or backward.possible:
        every = operation(forward.sure | forward.possible, backward.sure | backward.possible)
    # A direction without any confidences does not count.
    one, other = forward.confidence or backward.confidence, backward.confidence or forward.confidence
    confidence: dict[Link, float] = {}
    for link in sorted((sure | every) & (one.keys() | other.keys())):
        confidence[link] = (one.get(link, 0.0) + other.get(link, 0.0)) / 2
    score = None if forward.score is None or backward.score is None else (forward.score + backward.score) / 2
    return trusted(forward.n_source, forward.n_target, sure, every - sure, confidence, score)
