"""Context, runs and competitors: every column of every cell against nested loops, array code with hypothesis."""

from __future__ import annotations

import numpy as np
import pytest
from context_twin import Surroundings
from feature_twin import Bases, assert_empty_sides, assert_same_alone, compare, random_pairs, table
from hypothesis import given
from hypothesis import strategies as st
from variants import variants

from jacana_torch.features.api import Block
from jacana_torch.features.families.context import (
    LONGEST_RUN,
    Context,
    competition,
    content_neighbours,
    context_of,
    run_length,
)
from jacana_torch.features.grid import Grid, table_of
from jacana_torch.types import Sentence, SentencePair
from jacana_torch.util.geometry import PaddedGrid


def pair(source: str, target: str) -> SentencePair:
    return SentencePair(Sentence(tuple(source.split())), Sentence(tuple(target.split())))


LONG = "one hen saw two hens , and three hens saw the barn of the fox"
OWN = [
    pair("the fox and the hen ran", "the hen and the fox were running"),
    pair(LONG, LONG),
    pair(LONG, "so " + LONG.replace("saw", "left")),
    pair("to", "to to to"),
]


def expected(x: SentencePair, window: int) -> tuple[list[dict], list[dict]]:
    twin = Bases(x)
    own = Surroundings(twin, twin.base)
    harmonic = sum(1 / d for d in range(1, window + 1))
    links, score = [], [[0.0] * twin.N for _ in range(twin.M)]
    for m, n in own.cells():
        left, right, here = own.at(m - 1, n - 1), own.at(m + 1, n + 1), own.at(m, n)
        row: dict[str, float] = {}
        diagonal = 0.0
        for d in range(1, window + 1):
            for side, near in (("left", own.at(m - d, n - d)), ("right", own.at(m + d, n + d))):
                row |= {f"{side}{d}_identical": near >= 1, f"{side}{d}_similar": near > 0}
                diagonal += near / d
        row |= {
            "both_identical": left >= 1 and right >= 1, "both_similar": left > 0 and right > 0,
            "sandwiched": left >= 0.9 and right >= 0.9 and here == 0, "diagonal": diagonal / (2 * harmonic),
            "left_skip": max(own.at(m - 1, n - 2), own.at(m - 2, n - 1)) >= 0.9,
            "right_skip": max(own.at(m + 1, n + 2), own.at(m + 2, n + 1)) >= 0.9,
            "left_edge": m == n == 0, "right_edge": (m, n) == (twin.M - 1, twin.N - 1),
        }  # fmt: skip
        everything, content = 0.0, 0.0
        steps = [d for d in range(-window, window + 1) if d]
        for dm in steps:
            everything += max(own.at(m + dm, n + dn) for dn in steps)
            heavy = [
                own.at(m + dm, n + dn)
                for dn in steps
                if 0 <= m + dm < twin.M and 0 <= n + dn < twin.N
                and own.content[0][m + dm] and own.content[1][n + dn]
            ]  # fmt: skip
            content += max(heavy, default=0.0)
        row |= {
            "window": everything / (2 * window), "window_content": content / (2 * window),
            "window_any_content": content > 0, "window_none": everything == 0,
        }  # fmt: skip
        row |= own.anchors(m, n)
        run = own.run(m, n)
        row |= {f"run>={k}": run >= k for k in (2, 3, 4, 6)} | {"run": min(run, 6) / 6}
        links.append(row)
        score[m][n] = (
            here + 0.5 * row["diagonal"] + 0.3 * row["window_content"] + 0.3 * row["run"] - 0.1 * own.far(m, n)
        )
    competitors, nulls = own.competition(score)
    return [a | b for a, b in zip(links, competitors, strict=True)], nulls


@pytest.mark.parametrize("window", [3, 1, 5])
@pytest.mark.parametrize("seed", variants(range(4), 2))
def test_every_column_of_every_cell_equals_the_twin(seed, window):
    pairs = random_pairs(seed) + OWN
    blocks = Context(window)(Grid(pairs))
    twins = [expected(x, window) for x in pairs]
    names, _ = table(blocks.link, sum(len(links) for links, _ in twins))
    assert set(names) == set(twins[0][0][0])  # the same columns whatever the words
    compare(blocks.link, [row for links, _ in twins for row in links])
    compare(blocks.null, [row for _, nulls in twins for row in nulls])


def test_columns_by_hand():
    x = pair("the fox and the hen ran", "the hen and the fox ran")
    names, values = table(Context()(Grid([x])).link, 36)

    def at(column: str, m: int, n: int) -> float:
        return values[m * 6 + n, names.index(column)]

    assert at("left1_identical", 1, 1) and at("left1_identical", 1, 4) and not at("left1_identical", 2, 1)
    assert at("wins_both", 1, 4) and at("only_pair", 1, 4) and at("only_pair", 5, 5)
    assert at("right_anchor_same", 0, 3) and at("right_anchor_differs", 0, 0)  # the (fox) is the (fox)
    assert at("run>=2", 0, 3) and at("run>=2", 1, 4) and not at("run>=3", 0, 3)
    assert (
        at("sandwiched", 1, 1) and not at("sandwiched", 0, 3) and at("left_edge", 0, 0) and at("right_edge", 5, 5)
    )


@pytest.mark.parametrize("names", [
    "Smitz Smithy Smitty Smithe Smith Smithers", "Smithy Smythe Smitty Schmith Smithers Smithson",
    "Smitz Smithy Smith Smithy Smits Smithers", "Smithers Smythe Smits Smyth Smyth Smitt",
])  # fmt: skip
def test_neither_of_two_partners_in_mirrored_contexts_wins(names):
    """Their scores are equal, but summed in another order they differ by rounding."""
    a, b, p, q, r, s = names.split()
    x = pair(f"so {a} {b} hen {b} {a}", f"yes {p} {q} hen {r} {s} {s} {r} hen {q} {p}")
    columns, values = table(Context(2)(Grid([x])).link, 6 * 11)
    for n in (3, 8):
        row = dict(zip(columns, values[3 * 11 + n].tolist(), strict=True))
        assert row["row_margin"] == pytest.approx(0, abs=1e-6) and not row["wins_row"]
        assert row["identical_loses_row"]


@pytest.mark.parametrize("seed", range(3))
def test_features_do_not_depend_on_the_batch(seed):
    assert_same_alone(Context(), random_pairs(seed + 30) + OWN)


def test_empty_sides():
    assert_empty_sides(Context())


shapes = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=4)
WORDS = "hen the , Fox 7".split()


def drawn(shape, seed: int) -> tuple[list[SentencePair], np.random.Generator]:
    rng = np.random.default_rng(seed)
    sides = [[Sentence(tuple(rng.choice(WORDS, size=k).tolist())) for k in sizes] for sizes in shape]
    return [SentencePair(a, b) for a, b in sides], rng


def surroundings(pairs: list[SentencePair], flat: np.ndarray) -> list[Surroundings]:
    out, rest = [], flat.tolist()
    for x in pairs:
        twin = Bases(x)
        rows = [rest[m * twin.N : (m + 1) * twin.N] for m in range(twin.M)]
        rest = rest[twin.M * twin.N :]
        out.append(Surroundings(twin, rows))
    return out


def grid_of(pairs: list[SentencePair], turned: bool) -> tuple[Grid, PaddedGrid]:
    """The pairs' grid, maybe one that came of flipping another, and its padded grid."""
    grid = Grid([x.flip() for x in pairs]).flipped() if turned else Grid(pairs)
    return grid, grid.padded()


def spread(padded: PaddedGrid, values: np.ndarray) -> np.ndarray:
    """[size] values of cells at their places, and none between."""
    return padded.near(padded.field(values, padded.place), 0, 0)


@given(shapes, st.integers(0, 10**6), st.sampled_from([0.5, 0.9, 1.0]), st.booleans())
def test_run_length(shape, seed, share, turned):
    pairs, rng = drawn(shape, seed)
    grid, padded = grid_of(pairs, turned)
    match = (rng.random(grid.n_cells) < share).astype(float)
    got = run_length(padded, padded.field(match, padded.place))
    expected_runs = [c.run(m, n, LONGEST_RUN) for c in surroundings(pairs, match) for m, n in c.cells()]
    assert got[padded.place].tolist() == expected_runs


@given(shapes, st.integers(0, 10**6), st.booleans())
def test_competition(shape, seed, turned):
    """Values on a coarse scale, for ties are what it is about."""
    pairs, rng = drawn(shape, seed)
    grid, padded = grid_of(pairs, turned)
    base = rng.choice([0.0, 0.0, 0.6, 0.9, 1.0], grid.n_cells)
    score = base + rng.integers(-3, 8, grid.n_cells) / 4
    link, null = competition(padded, spread(padded, base), spread(padded, score))
    links, nulls = [], []
    for similarity, scored in zip(surroundings(pairs, base), surroundings(pairs, score), strict=True):
        rows, nothing = similarity.competition(scored.similarity)
        links += rows
        nulls += nothing
    check((Block(*table_of(link), padded.place),), links)
    check((Block(*table_of(null), padded.line),), nulls)


def check(blocks: tuple[Block, ...], rows: list[dict]) -> None:
    if rows:
        compare(blocks, rows)
    else:
        assert not len(blocks[0].dense())


@given(shapes, st.integers(0, 10**6), st.booleans())
def test_content_neighbours_and_context_of(shape, seed, turned):
    pairs, rng = drawn(shape, seed)
    grid, padded = grid_of(pairs, turned)
    similarity = rng.choice([0.0, 0.0, 0.5, 0.9, 1.0], grid.n_cells)
    twins = surroundings(pairs, similarity)
    columns = content_neighbours(grid, padded, spread(padded, similarity))
    expected_anchors = [c.anchors(m, n) for c in twins for m, n in c.cells()]
    for k, row in enumerate(expected_anchors):
        assert {name: bool(v[padded.place[k]]) for name, v in columns.items()} == row
    again = [c.again() for c in twins]
    (near, competitors), null = context_of(grid, "test", lambda: similarity)
    check((near, competitors), [row for links, _ in again for row in links])
    check((null,), [row for _, nulls in again for row in nulls])
    assert context_of(grid, "test", list)[1].dense().tolist() == null.dense().tolist()  # computed once
