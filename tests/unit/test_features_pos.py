"""Tags: every column of every cell against plain Python."""

from __future__ import annotations

import numpy as np
import pytest
from feature_twin import Bases, assert_empty_sides, assert_same_alone, compare, random_pairs, table

from jacana_torch.errors import MissingLayer
from jacana_torch.features.families.pos import Pos
from jacana_torch.features.featureset import blocks_of
from jacana_torch.features.grid import Grid
from jacana_torch.types import Sentence, SentencePair


def tagged(text: str) -> Sentence:
    tokens, tags = zip(*(word.rsplit("/", 1) for word in text.split()), strict=True)
    return Sentence(tokens, {"pos": tags})


OWN = [
    SentencePair(tagged("The/DT hen/NN ran/VBD ./."), tagged("A/DT Hen/NN runs/VBZ fast/RB !/.")),
    SentencePair(tagged("The/DT saw/NN ./."), tagged("A/DT saw/VBD !/.")),
    SentencePair(tagged("(/-LRB- $/$ 5/CD"), tagged("$/$ 6/CD `/``")),
]


def coarse(tag: str) -> str:
    return tag[:2] if tag[0].isalpha() else "punctuation"


def expected(x: SentencePair) -> tuple[list[dict[str, float]], list[dict[str, float]]]:
    twin, a, b = Bases(x), x.source.layer("pos"), x.target.layer("pos")

    def match(m: int, n: int) -> bool:
        return 0 <= m < twin.M and 0 <= n < twin.N and a[m] == b[n]

    links, nulls = [], []
    for m in range(twin.M):
        for n in range(twin.N):
            left, right, identical = match(m - 1, n - 1), match(m + 1, n + 1), twin.base[m][n] == 1.0
            row = {
                "match": match(m, n), "no_match": not match(m, n), "coarse_match": coarse(a[m]) == coarse(b[n]),
                f"{a[m].lower()}2{b[n].lower()}": 1, "left_match": left, "right_match": right,
                "both_match": left and right, "all_match": left and right and match(m, n),
                "identical_both_match": left and right and identical,
            }  # fmt: skip
            if identical:
                row[f"identical:{a[m].lower()}"] = 1
            links.append(row)
        row = {f"null:{a[m].lower()}": 1}
        if max(twin.base[m], default=0) >= 0.9:
            row[f"null_matched:{a[m].lower()}"] = 1
        nulls.append(row)
    return links, nulls


@pytest.mark.parametrize("seed", range(5))
def test_every_column_of_every_cell_equals_the_twin(seed):
    pairs = random_pairs(seed) + OWN
    blocks = blocks_of(Pos(), Grid(pairs))
    compare(blocks.link, [row for x in pairs for row in expected(x)[0]])
    compare(blocks.null, [row for x in pairs for row in expected(x)[1]])


def test_columns_by_hand():
    grid = Grid(OWN[:1])
    names, values = table(blocks_of(Pos(), grid).link, 20)
    cells = {name: [divmod(int(c), 5) for c in np.flatnonzero(values[:, k])] for k, name in enumerate(names)}
    assert cells["vbd2vbz"] == [(2, 2)] and (2, 2) in cells["coarse_match"] and (2, 2) not in cells["match"]
    assert cells["identical:nn"] == [(1, 1)] and cells["left_match"] == [(1, 1), (2, 2)]


@pytest.mark.parametrize("seed", range(3))
def test_features_do_not_depend_on_the_batch(seed):
    assert_same_alone(Pos(), random_pairs(seed + 20) + OWN)


def test_empty_sides():
    assert_empty_sides(Pos())


def test_tags_are_required():
    assert Pos().requires == ("pos",)
    untagged = Sentence(("hen",))
    with pytest.raises(MissingLayer, match="'pos'"):
        blocks_of(Pos(), Grid([SentencePair(untagged, untagged)]))
