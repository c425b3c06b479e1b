"""Symmetrizers against a slow twin written from Koehn's pseudo-code, hand-made cases, and the laws of sets."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jacana_torch.errors import ConfigError
from jacana_torch.symmetrize import SYMMETRIZERS, symmetrizer
from jacana_torch.types import Alignment

GROWING = ("intersection", "grow", "grow_diag", "grow_diag_final", "union")


def slow_twin(rows, columns, e2f, f2e, diagonal, final):
    """Koehn's GROW-DIAG-FINAL(e2f, f2e), cell by cell over a matrix of flags, again and again until no change."""
    neighbouring = [(-1, 0), (0, -1), (1, 0), (0, 1)]
    if diagonal:
        neighbouring += [(-1, -1), (-1, 1), (1, -1), (1, 1)]
    matrix = [[(e, f) in e2f and (e, f) in f2e for f in range(columns)] for e in range(rows)]

    def row_covered(e):
        return any(matrix[e][f] for f in range(columns))

    def column_covered(f):
        return any(matrix[e][f] for e in range(rows))

    added = True
    while added:
        added = False
        for e in range(rows):
            for f in range(columns):
                if not matrix[e][f]:
                    continue
                for de, df in neighbouring:
                    ne, nf = e + de, f + df
                    if not (0 <= ne < rows and 0 <= nf < columns):
                        continue
                    if (not row_covered(ne) or not column_covered(nf)) and ((ne, nf) in e2f or (ne, nf) in f2e):
                        matrix[ne][nf] = True
                        added = True
    for direction in (e2f, f2e) if final else ():
        for e in range(rows):
            for f in range(columns):
                free = [not row_covered(e), not column_covered(f)]
                if (e, f) in direction and (any(free) if final == "or" else all(free)):
                    matrix[e][f] = True
    return {(e, f) for e in range(rows) for f in range(columns) if matrix[e][f]}


TWINS = {
    "grow": (False, None),
    "grow_diag": (True, None),
    "grow_diag_final": (True, "or"),
    "grow_diag_final_and": (True, "and"),
}


@st.composite
def two_directions(draw, possible=False):
    rows, columns = draw(st.integers(0, 7)), draw(st.integers(0, 7))
    cells = [(i, j) for i in range(rows) for j in range(columns)]
    links = st.sets(st.sampled_from(cells)) if cells else st.just(set())
    extra = links if possible else st.just(set())
    return tuple(Alignment(rows, columns, draw(links), draw(extra)) for _ in range(2))


@pytest.mark.parametrize("name", sorted(TWINS))
@given(directions=two_directions())
def test_growing_equals_the_slow_twin(name, directions):
    forward, backward = directions
    expected = slow_twin(
        forward.n_source, forward.n_target, set(forward.sure), set(backward.sure), *TWINS[name]
    )  # fmt: skip
    assert SYMMETRIZERS[name](forward, backward).sure == expected


@given(directions=two_directions(possible=True))
def test_laws_of_sets(directions):
    forward, backward = directions
    results = {name: function(forward, backward) for name, function in SYMMETRIZERS.items()}
    assert results["intersection"] == forward & backward
    assert results["union"] == forward | backward
    assert results["forward"] == forward and results["backward"] == backward
    for smaller, larger in zip(GROWING, GROWING[1:], strict=False):
        if smaller != "grow":  # diagonal neighbours are visited between straight ones, so grow need not be inside
            assert results[smaller].sure <= results[larger].sure
    assert results["grow_diag"].sure <= results["grow_diag_final_and"].sure <= results["union"].sure
    for result in results.values():
        assert (result.n_source, result.n_target) == (forward.n_source, forward.n_target)
        assert result.sure | result.possible <= (
            forward.sure | forward.possible | backward.sure | backward.possible
        )


@given(directions=two_directions())
def test_agreement_is_left_alone(directions):
    forward, _ = directions
    for name, function in SYMMETRIZERS.items():
        assert function(forward, forward) == forward, name


def test_growing_goes_on_until_nothing_changes():
    # From (3,3) upwards: each step lies behind the point that reaches it, so one pass alone would stop at (2,2).
    staircase = Alignment(4, 4, {(0, 0), (1, 1), (2, 2), (3, 3)})
    corner = Alignment(4, 4, {(3, 3)})
    assert symmetrizer("grow-diag")(staircase, corner).sure == staircase.sure
    assert symmetrizer("grow")(staircase, corner).sure == {(3, 3)}


def test_final_takes_either_and_final_and_both():
    forward = Alignment(3, 5, {(0, 0), (0, 4), (2, 2)})
    backward = Alignment(3, 5, {(0, 0)})
    assert symmetrizer("grow-diag-final")(forward, backward).sure == {(0, 0), (0, 4), (2, 2)}
    assert symmetrizer("grow-diag-final-and")(forward, backward).sure == {(0, 0), (2, 2)}


def test_final_asks_forward_before_backward():
    forward, backward = Alignment(3, 3, {(2, 0)}), Alignment(3, 3, {(0, 0)})
    assert symmetrizer("grow_diag_final_and")(forward, backward).sure == {(2, 0)}
    assert symmetrizer("grow_diag_final_and")(backward, forward).sure == {(0, 0)}


def test_confidence_is_the_mean_of_both_directions():
    forward = Alignment(3, 3, {(0, 0), (1, 1)}, confidence={(0, 0): 0.9, (1, 1): 0.5, (2, 2): 0.25}, score=-2.0)
    backward = Alignment(3, 3, {(0, 0), (2, 2)}, confidence={(0, 0): 0.7, (2, 2): 0.75}, score=-4.0)
    result = symmetrizer("union")(forward, backward)
    assert result.confidence == pytest.approx({(0, 0): 0.8, (1, 1): 0.25, (2, 2): 0.5})
    assert result.score == -3.0
    silent = Alignment(3, 3, {(0, 0)})
    assert symmetrizer("intersection")(forward, silent).confidence == {(0, 0): 0.9}
    assert symmetrizer("union")(silent, silent).confidence == {}


def test_an_adversarial_pair_is_quick():
    # Grown backwards one step a pass: scanning everything each pass would take 3000 x 3000 x 8 steps.
    size = 3000
    stairs = Alignment(size, size, {(i, i) for i in range(size)})
    corner = Alignment(size, size, {(size - 1, size - 1)})
    assert len(symmetrizer("grow-diag-final-and")(stairs, corner).sure) == size


def test_sizes_must_agree():
    for function in SYMMETRIZERS.values():
        with pytest.raises(ValueError, match="2 x 3"):
            function(Alignment(2, 3), Alignment(3, 2))


@pytest.mark.parametrize("name", ["grow-diag-final-and", "grow_diag_final_and", " Grow-Diag-Final_And "])
def test_names_take_hyphens_and_underscores(name):
    assert symmetrizer(name) is SYMMETRIZERS["grow_diag_final_and"]


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(ConfigError, match=r"'grow-daig'.*intersection.*grow-diag-final-and.*backward"):
        symmetrizer("grow-daig")


def test_every_symmetrizer_has_its_config():
    folder = Path(__file__).parents[2] / "conf" / "symmetrize"
    written = {path.stem: path.read_text().split()[1] for path in folder.glob("*.yaml")}
    for name in SYMMETRIZERS:
        assert written.get(name) == f"jacana_torch.symmetrize.{name}"
