"""Families run together: names, dropping, and faults of a family said by its name."""

from __future__ import annotations

import doctest

import numpy as np
import pytest
from feature_twin import random_pairs

from jacana_torch.errors import ConfigError
from jacana_torch.features.api import Block, NodeBlocks
from jacana_torch.features.families.distortion import Distortion
from jacana_torch.features.families.pos import Pos
from jacana_torch.features.families.position import Position
from jacana_torch.features.families.string import String
from jacana_torch.features.featureset import FeatureSet, blocks_of
from jacana_torch.features.grid import Grid


class Made:
    """A family whose blocks are made to order."""

    def __init__(self, link=None, null=None, name="made", requires=()):
        self.link, self.null, self.name, self.requires = link, null, name, requires
        self.resources = ("a-resource",)

    def __call__(self, grid):
        return NodeBlocks(
            (self.link,) if self.link is not None else (), (self.null,) if self.null is not None else ()
        )


FAMILIES = {"string": String(), "pos": Pos(), "position": Position(), "distortion": Distortion()}
PAIRS = random_pairs(2)
ONE = PAIRS[1:2]  # so that a family is asked once
CELLS = len(ONE[0].source) * len(ONE[0].target)


def test_every_column_bears_its_family():
    batch = FeatureSet(FAMILIES)(PAIRS)
    grid = Grid(PAIRS)
    for where in ("link", "null"):
        got = {n: b for b in getattr(batch, where) for n in b.names}
        for family in (String(), Pos(), Position()):
            for block in getattr(blocks_of(family, grid), where):
                for k, name in enumerate(block.names):
                    other = got.pop(f"{family.name}.{name}")
                    assert np.array_equal(other.dense()[:, k], block.dense()[:, k])
        assert not got
    lengths = {len(p.target) for p in PAIRS}
    for which in ("edge", "start", "end"):
        tables = getattr(batch, which)
        assert set(tables) == lengths
        for n, (block,) in tables.items():
            own = getattr(Distortion(), which)(n)
            assert block.names == tuple(f"distortion.{x}" for x in own.names)
            assert np.array_equal(block.dense(), own.dense())
    assert batch.n_source.tolist() == [len(p.source) for p in PAIRS]
    assert batch.n_target.tolist() == [len(p.target) for p in PAIRS]


def test_names_are_all_columns_sorted():
    batch = FeatureSet(FAMILIES)(PAIRS)
    names = batch.names()
    assert names == sorted(set(names))
    edges = [b for t in (batch.edge, batch.start, batch.end) for blocks in t.values() for b in blocks]
    assert set(names) == {n for b in [*batch.link, *batch.null, *edges] for n in b.names}
    assert {n.split(".")[0] for n in names} == set(FAMILIES)


def test_what_families_read_is_gathered():
    families = FeatureSet({"b": Made(requires=("pos", "head")), "pos": Pos(), "distortion": Distortion()})
    assert families.requires == ("head", "pos") and families.resources == ("a-resource",)
    assert families.names == ["made", "pos", "distortion"]


@pytest.mark.parametrize("drop", [("pos",), ("pos", "string"), ["distortion"], "pos"])
def test_dropped_families_leave_no_column(drop):
    names = FeatureSet(FAMILIES, drop=drop)(PAIRS).names()
    assert {n.split(".")[0] for n in names} == set(FAMILIES) - ({drop} if isinstance(drop, str) else set(drop))


def test_a_family_switched_off_by_null_may_be_dropped():
    families = FeatureSet({**FAMILIES, "wordnet": None}, drop=["wordnet"])
    assert families.names == list(FAMILIES)


def test_dropping_what_is_not_there_is_an_error():
    with pytest.raises(ConfigError, match=r"drop=\['strnig'\]: no such feature family; there are .*'string'"):
        FeatureSet(FAMILIES, drop=["strnig"])
    with pytest.raises(ConfigError, match=r"\['a', 'b'\]: no such feature families"):
        FeatureSet(FAMILIES, drop=["b", "pos", "a"])


def test_two_families_of_one_name_are_an_error():
    """Their columns would share weights, and nobody would notice."""
    with pytest.raises(ConfigError, match="several feature families are named 'string'"):
        FeatureSet({**FAMILIES, "loose": String(0.5)})
    assert FeatureSet({**FAMILIES, "loose": String(0.5, name="loose")}).names[-2:] == ["loose", "distortion"]


def test_a_model_needs_a_node_family():
    for families, drop in ((FAMILIES, ("string", "pos", "position")), ({}, ()), ({"pos": None}, ())):
        with pytest.raises(ConfigError, match="at least one node feature family"):
            FeatureSet(families, drop)
    with pytest.raises(ConfigError, match="neither a node nor an edge"):
        FeatureSet({"string": String(), "strange": object()})


@pytest.mark.parametrize(
    ("link", "null", "message"),
    [
        (Block(("x",), np.zeros((CELLS - 1, 1))), None, f"'made' gave {CELLS - 1} rows for {CELLS} cells"),
        (Block(("x",), np.zeros((1, 1)), np.zeros(CELLS + 1, int)), None, f"gave {CELLS + 1} rows for {CELLS}"),
        (Block(("x",), None, np.zeros(3, int)), None, "'made' gave 3 rows"),
        (None, Block(("x",), np.zeros((1, 1))), "'made' gave 1 rows"),
        (Block(("x", "y"), np.zeros((CELLS, 3))), None, "'made' gave 3 columns and 2 names"),
    ],
)
def test_blocks_that_do_not_fit_are_said_by_name(link, null, message):
    with pytest.raises(ConfigError, match=message):
        FeatureSet({"made": Made(link, null)})(ONE)
    good = Made(Block(("x",), np.zeros((CELLS, 1))))
    assert FeatureSet({"made": good})(ONE).names() == ["made.x"]


def test_no_pairs_at_all():
    batch = FeatureSet(FAMILIES)([])
    assert not len(batch.n_source) and not batch.edge and all(not len(b.dense()) for b in batch.link)


def test_the_example_of_the_api():
    from jacana_torch.features import api

    results = doctest.testmod(api)
    assert results.attempted and not results.failed
