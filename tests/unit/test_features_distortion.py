"""The edge table against the formula, for every transition of every target length up to 40."""

from __future__ import annotations

import pytest

from jacana_torch.features.api import EdgeFamily
from jacana_torch.features.families.distortion import END_NAMES, START_NAMES, Distortion

LENGTHS = [*range(25), 40]


def transition(before: int, after: int, N: int) -> dict[str, float]:
    """State 0 is NULL, state n the n-th target word; the jump counts from the word that comes next."""
    if not before and not after:
        return {"null_null": 1}
    if not before:
        return {"from_null": 1, "from_null_first": int(after == 1)}
    if not after:
        return {"to_null": 1, "to_null_last": int(before == N)}
    jump = after - before - 1
    out = {
        "distance": min(abs(jump), 20) / 20,
        "distance_relative": min(abs(jump) / N, 1),
        "back_relative": min(-jump / N, 1) if jump < 0 else 0,
    }
    if jump == 0:
        return out | {"next": 1}
    if jump == -1:
        return out | {"same": 1}
    way, words = ("forward", jump) if jump > 0 else ("back", before - after)  # words skipped, words gone back
    return out | {f"{way}<={next((b for b in (1, 2, 4, 8, 16) if words <= b), 'inf')}": 1}


def rows(block, count: int) -> list[dict[str, float]]:
    values = block.dense()
    assert values.shape == (count, len(block.names))
    return [{k: v for k, v in zip(block.names, row, strict=True) if v} for row in values.tolist()]


@pytest.mark.parametrize("N", LENGTHS)
def test_every_transition(N):
    family = Distortion()
    got = rows(family.edge(N), (N + 1) ** 2)
    expected = [transition(a, b, N) for a in range(N + 1) for b in range(N + 1)]
    for have, want in zip(got, expected, strict=True):
        assert have == pytest.approx({k: v for k, v in want.items() if v})
    assert len(family.edge(N).table) <= 2 * N + 5


@pytest.mark.parametrize("N", LENGTHS)
def test_first_and_last_states(N):
    family = Distortion()
    start, end = rows(family.start(N), N + 1), rows(family.end(N), N + 1)
    assert family.start(N).names == START_NAMES and family.end(N).names == END_NAMES
    assert start[0] == {"start_null": 1} and end[0] == {"end_null": 1}
    for n in range(1, N + 1):
        first = {"start_first": 1} if n == 1 else {"start_distance": (n - 1) / N}
        last = {"end_last": 1} if n == N else {"end_distance": (N - n) / N}
        assert start[n] == pytest.approx(first) and end[n] == pytest.approx(last)


def test_jumps_by_hand():
    got = rows(Distortion().edge(30), 31 * 31)

    def bucket(a: int, b: int) -> set[str]:
        return {k for k in got[a * 31 + b] if "<=" in k or k in ("next", "same")}

    assert bucket(3, 4) == {"next"} and bucket(3, 3) == {"same"}
    assert bucket(3, 5) == {"forward<=1"} and bucket(3, 2) == {"back<=1"}
    assert bucket(3, 6) == {"forward<=2"} and bucket(3, 1) == {"back<=2"}
    assert bucket(1, 7) == {"forward<=8"} and bucket(1, 30) == {"forward<=inf"} and bucket(30, 1) == {"back<=inf"}


def test_it_is_an_edge_family():
    assert isinstance(Distortion(), EdgeFamily)
