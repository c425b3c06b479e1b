"""Symmetrizers: against a twin written from Koehn's pseudo-code, on cases made by hand, by the laws of sets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jacana_torch.errors import ConfigError
from jacana_torch.symmetrize import BY_LINKS, functions, names, symmetrizer
from jacana_torch.types import Alignment

GROWING = ("intersection", "grow", "grow_diag", "grow_diag_final", "union")


def slow_twin(rows, columns, e2f, f2e, diagonal, final):
    """Koehn's GROW-DIAG-FINAL(e2f, f2e): visit every cell of a matrix of flags until a pass changes nothing."""
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


def dense_inputs(number: int) -> Iterator[tuple[int, int, set, set]]:
    """Small matrices in which most cells are links, so that the order of visits decides what is covered first."""
    random = Random(4)
    for _ in range(number):
        rows, columns, density = random.randint(2, 5), random.randint(2, 5), random.uniform(0.3, 0.8)
        both = [
            {(i, j) for i in range(rows) for j in range(columns) if random.random() < density / share}
            for share in (1, random.choice((1, 2, 4)))
        ]
        random.shuffle(both)
        yield rows, columns, *both


@pytest.mark.parametrize("name", sorted(TWINS))
def test_growing_visits_links_in_the_order_of_moses(name):
    """Few inputs depend on the order of visits, so there are thousands of them."""
    for rows, columns, e2f, f2e in dense_inputs(3000):
        found = BY_LINKS[name](Alignment(rows, columns, e2f), Alignment(rows, columns, f2e)).sure
        assert found == slow_twin(rows, columns, e2f, f2e, *TWINS[name]), (rows, columns, e2f, f2e)


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
    assert BY_LINKS[name](forward, backward).sure == expected


@given(directions=two_directions(possible=True))
def test_laws_of_sets(directions):
    forward, backward = directions
    results = {name: function(forward, backward) for name, function in BY_LINKS.items()}
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
    for name, function in BY_LINKS.items():
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


def test_final_adds_forward_links_before_backward_links():
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


def test_an_adversarial_pair_is_fast():
    # Grown backwards one step a pass: scanning everything each pass would take 3000 x 3000 x 8 steps.
    size = 3000
    stairs = Alignment(size, size, {(i, i) for i in range(size)})
    corner = Alignment(size, size, {(size - 1, size - 1)})
    assert len(symmetrizer("grow-diag-final-and")(stairs, corner).sure) == size


def test_sizes_must_agree():
    for function in BY_LINKS.values():
        with pytest.raises(ValueError, match="2 x 3"):
            function(Alignment(2, 3), Alignment(3, 2))


@pytest.mark.parametrize("name", ["grow-diag-final-and", "grow_diag_final_and", " Grow-Diag-Final_And "])
def test_names_take_hyphens_and_underscores(name):
    assert symmetrizer(name) is BY_LINKS["grow_diag_final_and"]


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(ConfigError, match=r"'grow-daig'.*intersection.*grow-diag-final-and.*backward"):
        symmetrizer("grow-daig")


def test_the_names_are_those_of_conf():
    folder = Path(__file__).parents[2] / "conf" / "symmetrize"
    written = {path.stem: path.read_text() for path in folder.glob("*.yaml")}
    assert set(names()) == set(written) == {*functions(), "posterior"}
    assert list(functions())[: len(BY_LINKS)] == list(BY_LINKS), "the order of tables"
    for name in BY_LINKS:
        assert f"_target_: jacana_torch.symmetrize.{name}\n" in written[name]


def test_a_folder_of_the_user_adds_a_name_and_replaces_none(tmp_path, monkeypatch):
    before = set(functions())
    (tmp_path / "symmetrize").mkdir()
    for name in ("mine", "grow"):
        text = "_target_: jacana_torch.symmetrize.union\n_partial_: true\n"
        (tmp_path / "symmetrize" / f"{name}.yaml").write_text(text)
    monkeypatch.setenv("JACANA_CONF", str(tmp_path))
    assert "mine" in names() and set(functions()) == {*before, "mine"}
    both = Alignment(2, 2, {(0, 0)}), Alignment(2, 2, {(1, 1)})
    assert symmetrizer("Mine")(*both).links == [(0, 0), (1, 1)]
    assert symmetrizer("grow")(*both).links == []
    monkeypatch.setenv("JACANA_CONF", str(tmp_path / "absent"))
    with pytest.raises(ConfigError, match="absent"):
        names()
