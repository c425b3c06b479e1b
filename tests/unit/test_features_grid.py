"""The grid's coordinates, distinct words and reductions against nested loops; blocks written out."""

from __future__ import annotations

import numpy as np
import pytest
from feature_twin import random_pairs
from hypothesis import given
from hypothesis import strategies as st

from jacana_torch.annotate.tokens import matching_form
from jacana_torch.errors import MissingLayer
from jacana_torch.features import grid as module
from jacana_torch.features.api import Block
from jacana_torch.features.grid import Grid, WordTable
from jacana_torch.features.words import Signal, WordKey, WordPairs
from jacana_torch.types import Sentence, SentencePair

tokens = st.lists(st.sampled_from(["a", "A", "bb", "—", "-", "😀", "中"]), max_size=5).map(tuple)
pairs_of = st.lists(st.tuples(tokens, tokens), max_size=5).map(
    lambda sides: [SentencePair(Sentence(a), Sentence(b)) for a, b in sides]
)


def cells(pairs: list[SentencePair]) -> list[tuple[int, int, int]]:
    return [(p, m, n) for p, x in enumerate(pairs) for m in range(len(x.source)) for n in range(len(x.target))]


def flat_tokens(pairs: list[SentencePair], side: str) -> list[tuple[int, int, str]]:
    return [(p, k, t) for p, x in enumerate(pairs) for k, t in enumerate(getattr(x, side).tokens)]


@given(pairs_of)
def test_tokens_follow_one_another(pairs):
    grid = Grid(pairs)
    assert list(zip(grid.pair, grid.m, grid.n, strict=True)) == cells(pairs)
    source, target = flat_tokens(pairs, "source"), flat_tokens(pairs, "target")
    assert list(zip(grid.source_pair, grid.source_position, grid.source_tokens, strict=True)) == source
    assert list(zip(grid.target_pair, grid.target_position, grid.target_tokens, strict=True)) == target


def word_pairs(of: WordTable) -> list[tuple]:
    """The words of each cell."""
    words, pairs = of.lexicon.words, of.pairs
    return [(words[pairs.left[u]], words[pairs.right[u]]) for u in of.cell]


@given(pairs_of, st.sampled_from([str, str.lower, matching_form]))
def test_distinct_words(pairs, of):
    grid = Grid(pairs)
    words = grid.words(WordKey(of))
    source, target = [of(t) for t in grid.source_tokens], [of(t) for t in grid.target_tokens]
    assert words.lexicon.words == list(dict.fromkeys(source + target))
    assert [words.lexicon.words[w] for w in words.source] == source
    assert [words.lexicon.words[w] for w in words.target] == target
    found = word_pairs(words)
    assert found == [(of(pairs[p].source.tokens[m]), of(pairs[p].target.tokens[n])) for p, m, n in cells(pairs)]
    assert len(set(zip(words.pairs.left, words.pairs.right, strict=True))) == len(words.pairs) == len(set(found))
    assert grid.words(WordKey(of)) is words


def test_words_with_layers_and_a_missing_layer():
    pairs = random_pairs(1)
    grid = Grid(pairs)
    words = grid.words(WordKey(matching_form, ("lemma", "pos")))
    sides = [x.source for x in pairs]
    expected = [
        z for s in sides for z in zip(map(matching_form, s.tokens), s.layer("lemma"), s.layer("pos"), strict=True)
    ]
    assert [words.lexicon.words[w] for w in words.source] == expected
    assert grid.source_layer("pos") == [t for s in sides for t in s.layer("pos")]
    assert grid.target_layer("pos") == [t for x in pairs for t in x.target.layer("pos")]
    with pytest.raises(MissingLayer, match="'head', which spacy"):
        grid.source_layer("head")


@given(pairs_of, st.sampled_from([str, str.lower, matching_form]))
def test_a_flipped_grid_is_that_of_the_flipped_pairs(pairs, of):
    grid = Grid(pairs)
    flipped, own = grid.flipped(), Grid([x.flip() for x in pairs])
    for name in ("pair", "m", "n", "source_token", "target_token", "cell_start", "source_tokens", "target_tokens"):
        assert list(getattr(flipped, name)) == list(getattr(own, name))
    words, expected, seen = (x.words(WordKey(of)) for x in (flipped, own, grid))
    for side in ("source", "target"):
        found, wanted = ([x.lexicon.words[w] for w in getattr(x, side)] for x in (words, expected))
        assert found == wanted
    assert word_pairs(words) == word_pairs(expected)
    # what is shared between the two is numbered alike in both
    assert words.lexicon is seen.lexicon and words.pairs.swapped and not seen.pairs.swapped
    assert words.pairs.left.tolist() == seen.pairs.right.tolist()
    assert words.pairs.right.tolist() == seen.pairs.left.tolist()


@given(pairs_of, st.sampled_from([20, 60, 40_000]), st.booleans())
def test_parts_are_the_grid_in_pieces(pairs, most, flipped):
    """One after the other, each of like widths and not too large, and what is asked of them is the whole's."""
    whole = Grid([x.flip() for x in pairs]).flipped() if flipped else Grid(pairs)
    name = Signal("letters", WordKey(matching_form), letters)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "PART_PLACES", most)
        parts = list(whole.parts())
    for k in ("pair", "m", "n", "source_token"):
        assert all(len(getattr(part, k)) == part.n_cells for _, part in parts)
    assert [p for at, _ in parts for p in range(at.start, at.stop)] == list(range(len(pairs)))
    figures, directed = whole.per_cell(name), whole.per_cell(name, directed=True)
    for at, part in parts:
        assert part.is_flipped == flipped and part.pairs == pairs[at]
        source, _, cells = whole.spans(at)
        assert whole.source_tokens[source] == part.source_tokens
        assert list(zip(whole.m[cells], whole.n[cells], strict=True)) == list(zip(part.m, part.n, strict=True))
        assert part.per_cell(name).tolist() == figures[cells].tolist()
        assert part.per_cell(name, directed=True).tolist() == directed[cells].tolist()
        seen, everywhere = part.words(name.key), whole.words(name.key)
        assert seen.source.tolist() == everywhere.source[source].tolist()
        assert [everywhere.lexicon.words[w] for w in seen.target] == [matching_form(t) for t in part.target_tokens]
        meets = list(zip(seen.pairs.left[seen.cell], seen.pairs.right[seen.cell], strict=True))
        assert meets == list(zip(seen.source[part.source_token], seen.target[part.target_token], strict=True))
        if at.stop - at.start > 1:  # of what is padded out, as many rows as tokens and a margin
            sides = (part.n_target, part.n_source) if flipped else (part.n_source, part.n_target)
            height, width = (side + module.MARGIN for side in sides)
            assert width.max() <= module.WIDEST**2 * width.min() and (height * width).sum() <= most


def letters(both: WordPairs) -> np.ndarray:
    """Something else in either order."""
    words = both.lexicon.words
    meet = zip(both.left.tolist(), both.right.tolist(), strict=True)
    return np.array([ord(words[a][0]) + 2 * ord(words[b][0]) for a, b in meet], dtype=float)


def test_what_is_shared_is_computed_once_for_both_sides():
    grid, calls = Grid([]), []
    sides = [grid, grid.flipped(), grid.flipped()]
    assert [side.shared("x", lambda: calls.append(1) or len(calls)) for side in sides] == [1, 1, 1]
    assert [side.memo("x", lambda: calls.append(1) or len(calls)) for side in sides] == [2, 3, 4]


def test_memo_computes_once():
    grid, calls = Grid([]), []
    assert [grid.memo("x", lambda: calls.append(1) or len(calls)) for _ in range(3)] == [1, 1, 1]


def test_blocks_written_out():
    table = np.array([[1.0, 2.0], [3.0, 4.0]])
    assert Block(("a", "b"), table).dense().tolist() == table.tolist()
    assert Block(("a", "b"), table, np.array([1, -1, 0])).dense().tolist() == [[3, 4], [0, 0], [1, 2]]
    assert Block(("a", "b"), None, np.array([1, -1])).dense().tolist() == [[0, 1], [0, 0]]
    assert Block((), None, np.array([-1, -1])).dense().shape == (2, 0)
