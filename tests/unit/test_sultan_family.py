"""Sultan et al.'s links as features: every column of every cell, computed from the links in loops."""

from __future__ import annotations

import pytest
from feature_twin import assert_same_alone, compare, parsed_pairs

from jacana_torch.errors import ConfigError, MissingLayer
from jacana_torch.features.families.kinds import KINDS, kind_of_words
from jacana_torch.features.featureset import FeatureSet
from jacana_torch.features.grid import Grid
from jacana_torch.features.string_similarity import base_similarity
from jacana_torch.systems.sultan.sultan import Sultan, SultanLinks
from jacana_torch.types import Sentence, SentencePair

FAMILY = SultanLinks(paraphrases="none")  # reads no resource
LAYERS = FAMILY.requires


def expected(pair: SentencePair) -> tuple[list[dict], list[dict]]:
    links, grid = Sultan(paraphrases="none").align([pair])[0].sure, Grid([pair])
    base, kind = grid.per_cell(base_similarity).tolist(), grid.per_cell(kind_of_words).astype(int).tolist()
    rows, nulls, n_target = [], [], len(pair.target)
    for i in range(len(pair.source)):
        for j in range(n_target):
            cell = i * n_target + j
            here = (i, j) in links
            row, column = sum(a == i for a, _ in links), sum(b == j for _, b in links)
            left, right = (i - 1, j - 1) in links, (i + 1, j + 1) in links
            rows.append(
                {
                    "linked": here, "linked_unlike": here and base[cell] == 0,
                    "several": here and max(row, column) > 1, "row_linked": not here and row > 0,
                    "column_linked": not here and column > 0, "both_linked": not here and row > 0 and column > 0,
                    "identical_unlinked": not here and base[cell] >= 1, "left_linked": left, "right_linked": right,
                    "beside_linked": left and right, f"linked:{KINDS[kind[cell]]}": here,
                }
            )  # fmt: skip
        some = any(a == i for a, _ in links)
        nulls.append({"null_linked": some, "null_unlinked": not some})
    return rows, nulls


@pytest.mark.parametrize("seed", range(4))
def test_every_column_of_every_cell(seed):
    pairs = parsed_pairs(seed, 12)
    blocks = FAMILY(Grid(pairs))
    twins = [expected(pair) for pair in pairs]
    assert any(row["linked"] for rows, _ in twins for row in rows)
    compare(blocks.link, [row for rows, _ in twins for row in rows])
    compare(blocks.null, [row for _, nulls in twins for row in nulls])


@pytest.mark.parametrize("seed", range(3))
def test_flipped_grids_have_the_features_of_flipped_pairs(seed):
    """A flipped grid and a grid of flipped pairs have the features of the cells seen from the other side."""
    pairs = parsed_pairs(seed + 10, 12)
    grid = Grid(pairs)
    FAMILY(grid)
    turned = [expected(pair.flip()) for pair in pairs]
    for blocks in (FAMILY(grid.flipped()), FAMILY(Grid([pair.flip() for pair in pairs]))):
        compare(blocks.link, [row for rows, _ in turned for row in rows])
        compare(blocks.null, [row for _, nulls in turned for row in nulls])


def test_features_of_a_pair_do_not_depend_on_the_batch():
    assert_same_alone(FAMILY, parsed_pairs(5, 10))


def test_sentences_without_words():
    none = Sentence((), dict.fromkeys(LAYERS, ()))
    some = Sentence(("a",), {"pos": ("DT",), "lemma": ("a",), "head": (-1,), "deprel": ("root",)})
    for pairs in ([], [SentencePair(none, none)], [SentencePair(some, none), SentencePair(none, some)]):
        batch = FeatureSet({"sultan": FAMILY})(pairs)
        assert all(len(block.dense()) == 0 for block in batch.link)


def test_errors():
    with pytest.raises(MissingLayer, match="'pos'"):
        FAMILY(Grid([SentencePair(Sentence(("a",)), Sentence(("a",)))]))
    with pytest.raises(ConfigError, match="weight=2"):
        SultanLinks(weight=2).requires  # noqa: B018
