"""Enumeration of every alignment of a small pair, as a reference for MANLI's decoders.

An alignment is a set of edits ((i, a), (j, b)): the a tokens from i on with the b tokens from j on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

Span = tuple[int, int]
Edit = tuple[Span, Span]


def spans(n: int, longest: int) -> list[Span]:
    return [(i, k) for k in range(1, longest + 1) for i in range(n - k + 1)]


def tokens(edit: Edit, m: int) -> set[int]:
    """The tokens that an edit covers; targets are numbered after sources."""
    (i, a), (j, b) = edit
    return {*range(i, i + a), *range(m + j, m + j + b)}


def alignments(m: int, n: int, longest: int) -> Iterator[frozenset[Edit]]:
    """All sets of edits that share no token."""
    edits = [(s, t) for s in spans(m, longest) for t in spans(n, longest)]

    def grow(first: int, used: set[int], chosen: tuple[Edit, ...]) -> Iterator[frozenset[Edit]]:
        yield frozenset(chosen)
        for k in range(first, len(edits)):
            covered = tokens(edits[k], m)
            if not covered & used:
                yield from grow(k + 1, used | covered, (*chosen, edits[k]))

    return grow(0, set(), ())


def meets(chosen: frozenset[Edit], conditions: Sequence[tuple[int, Sequence[int]]], m: int) -> bool:
    """Whether every aligned token with a condition has an aligned supporter."""
    active = {token for edit in chosen for token in tokens(edit, m)}
    return all(token not in active or active & set(others) for token, others in conditions)


def best(
    gain: Mapping[Edit, float], m: int, n: int, longest: int, conditions: Sequence[tuple[int, Sequence[int]]] = ()
) -> float:
    """The largest sum of gains of any alignment that meets the conditions."""
    return max(
        sum(gain[edit] for edit in chosen) for chosen in alignments(m, n, longest) if meets(chosen, conditions, m)
    )
