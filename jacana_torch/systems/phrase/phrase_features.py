"""What phrases say that their words do not: a grid and a layout in, blocks over segments with spans out.

Only segments or spans of several words are spoken of; the rows are SemiLayout's sized segments.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ...features.api import Block
from ...features.grid import Grid
from ...features.lexical import equal, lexical, lower_form
from ...features.wordlists import FUNCTION_WORDS, is_punctuation, stem
from .semi_layout import SemiLayout
from .senses import SharedSenses

PREFIX = "phrase"
_KINDS = ("", "one_many", "many_one", "many_many")


def phrase_blocks(
    grid: Grid, layout: SemiLayout, tags: bool = False, senses: bool = False, lemmas: bool = False
) -> list[Block]:
    """Blocks with full names. `tags`: also the tags of phrases, of the pos layer. `senses`: also what WordNet has
    of phrases, looked up by the lemma layer where there are `lemmas`."""
    shape = _Shape(grid, layout)
    blocks = [_sizes(shape), _signals(shape, _senses(shape, lemmas) if senses else {})]
    if tags:
        blocks.append(_tags("source", shape.source_runs(grid.source_layer("pos")), shape))
        blocks.append(_tags("target", shape.target_runs(grid.target_layer("pos")), shape))
    return [Block(tuple(f"{PREFIX}.{name}" for name in b.names), b.table, b.index) for b in blocks]


class _Shape:
    """Segments and spans over the cells of a grid: arrays [D, D, C] by source size, target size and first cell."""

    def __init__(self, grid: Grid, layout: SemiLayout) -> None:
        self.grid, self.layout, self.D, self.C = grid, layout, layout.longest, grid.n_cells
        size = np.arange(self.D)
        kind = (size[:, None] > 0) * 2 + (size > 0)  # of _KINDS
        self.kind = np.where(layout.fits(), kind[:, :, None], 0)
        self.spoken = np.flatnonzero(self.kind)

    def below(self, values: np.ndarray, rows: int) -> np.ndarray:
        """[C] the values of the cells some rows down, 0 where there are none."""
        return np.append(values, values.dtype.type(0))[self.layout.down[rows]]

    def right(self, values: np.ndarray, columns: int) -> np.ndarray:
        return np.append(values[columns:], np.zeros(min(columns, self.C), values.dtype))

    def source_runs(self, values: Sequence[str]) -> list[list[str]]:
        """[D][Ts] the values of each token and the next ones of its sentence, as one string."""
        return _runs(values, self.grid.source_position, self.grid.n_source[self.grid.source_pair], self.D)

    def target_runs(self, values: Sequence[str]) -> list[list[str]]:
        return _runs(values, self.grid.target_position, self.grid.n_target[self.grid.target_pair], self.D)

    def of_source(self, values: np.ndarray) -> np.ndarray:
        """[D, Ts] to [D, 1, C]."""
        return values[:, self.grid.source_token][:, None]

    def of_target(self, values: np.ndarray) -> np.ndarray:
        return values[:, self.grid.target_token][None]


def _runs(values: Sequence[str], position: np.ndarray, length: np.ndarray, D: int) -> list[list[str]]:
    left = (length - position).tolist()
    return [
        [" ".join(values[k : k + size]) if left[k] >= size else "" for k in range(len(values))]
        for size in range(1, D + 1)
    ]


def _sizes(shape: _Shape) -> Block:
    size = range(1, shape.D + 1)
    names = [f"size={a}x{b}" for a in size for b in size]
    index = np.where(shape.kind > 0, np.arange(shape.D**2).reshape(shape.D, shape.D, 1), -1)
    return Block(tuple(names), None, index.ravel())


def _signals(shape: _Shape, more: Mapping[str, np.ndarray]) -> Block:
    """Yes-or-no signals, each under the kind of phrase that it is of; what is equal shares a row."""
    signals = {**_likeness(shape), **_surroundings(shape), **_function_words(shape), **_spelling(shape), **more}
    code = np.zeros(shape.kind.shape, dtype=np.int64)
    for bit, values in enumerate(signals.values()):
        code |= values.astype(np.int64) << bit
    code = (code.ravel() * len(_KINDS) + shape.kind.ravel())[shape.spoken]
    distinct, rows = np.unique(code, return_inverse=True)
    bits = (distinct[:, None] // len(_KINDS)) >> np.arange(len(signals)) & 1
    kinds = range(1, len(_KINDS))
    table = np.concatenate([bits * (distinct % len(_KINDS) == kind)[:, None] for kind in kinds], 1)
    index = np.full(shape.kind.size, -1)
    index[shape.spoken] = rows
    return Block(tuple(f"{_KINDS[k]}.{name}" for k in kinds for name in signals), table.astype(np.float64), index)


def _likeness(shape: _Shape) -> dict[str, np.ndarray]:
    """Which words of the phrases have their like in the other phrase, and which elsewhere."""
    grid, D = shape.grid, shape.D
    words = grid.words(lambda token: stem(lower_form(token)))
    spelling = lexical(grid)
    same = equal(words.values, words)[words.cell]
    similar = spelling.alike[spelling.cell] | same
    out = {}
    for name, cells in (("same", same), ("similar", similar)):
        cells = cells.astype(np.int64)
        rows, columns = _any_in_spans(shape, cells)
        out[f"all_source_{name}"] = rows == np.arange(1, D + 1)[:, None, None]
        out[f"all_target_{name}"] = columns == np.arange(1, D + 1)[:, None]
        out[f"none_{name}"] = rows == 0
        out[f"first_{name}"] = np.broadcast_to(cells > 0, shape.kind.shape)
        last = [[shape.below(shape.right(cells, right), down) for right in range(D)] for down in range(D)]
        out[f"last_{name}"] = np.array(last) > 0
    rows, columns = _any_in_spans(shape, same.astype(np.int64))
    out["source_elsewhere"] = _known(grid.row_max(same), shape.layout.down, grid.source_token, D) > rows
    by_column = [np.minimum(np.arange(shape.C) + k, max(shape.C - 1, 0)) for k in range(D)]
    out["target_elsewhere"] = (
        _known(grid.column_max(same), by_column, grid.target_token, D).transpose(1, 0, 2) > columns
    )
    return out


def _any_in_spans(shape: _Shape, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """[D, D, C] how many tokens of each segment have a cell in the span, and of each span in the segment."""
    D = shape.D
    steps = range(D)
    across = np.maximum.accumulate([shape.right(cells, step) for step in steps])  # [D, C] by span
    rows = np.cumsum([[shape.below(of_span, step) for of_span in across] for step in steps], 0)
    down = np.maximum.accumulate([shape.below(cells, step) for step in steps])  # [D, C] by segment
    columns = np.cumsum([[shape.right(of_segment, step) for of_segment in down] for step in steps], 0)
    return rows, columns.transpose(1, 0, 2)


def _known(found: np.ndarray, steps: Sequence[np.ndarray], token: np.ndarray, D: int) -> np.ndarray:
    """[D, 1, C] how many of the 1, 2, ... tokens from each cell's on have `found` [T] anything."""
    of_cells = np.append(found[token], 0.0)
    return np.cumsum([of_cells[step] for step in steps], 0)[:, None].astype(np.int64)


def _surroundings(shape: _Shape) -> dict[str, np.ndarray]:
    """Whether the words right before both phrases are alike, and those right after; borders are alike."""
    grid, layout, D = shape.grid, shape.layout, shape.D
    words = grid.words(lower_form)
    same = np.append(equal(words.values, words)[words.cell], False)
    before = same[grid.shift(-1, -1)] | ((grid.m == 0) & (grid.n == 0))
    after = np.zeros(shape.kind.shape, dtype=bool)
    columns_left = layout.width - layout.n
    for size in range(1, D + 1):
        for span in range(1, D + 1):
            ends = (layout.rows_left == size) & (columns_left == span)
            after[size - 1, span - 1] = same[grid.shift(size, span)] | ends
    before = np.broadcast_to(before, after.shape)
    return {"before": before, "after": after, "between": before & after}


def _function_words(shape: _Shape) -> dict[str, np.ndarray]:
    """Where phrases begin or end with function words, consist of them, or hold punctuation."""
    out = {}
    for side, tokens, spread in (
        ("source", shape.source_runs(shape.grid.source_tokens), shape.of_source),
        ("target", shape.target_runs(shape.grid.target_tokens), shape.of_target),
    ):
        of: dict[str, tuple[bool, ...]] = {text: _kinds_of_words(text) for run in tokens for text in set(run)}
        said = np.array([[of[text] for text in run] for run in tokens], dtype=bool).reshape(shape.D, -1, 4)
        for number, name in enumerate(("begins", "ends", "all", "punctuation")):
            out[f"{side}_{name}"] = np.broadcast_to(spread(said[:, :, number]), shape.kind.shape)
    return out


def _kinds_of_words(text: str) -> tuple[bool, ...]:
    words = [lower_form(word) for word in text.split(" ")]
    function = [word in FUNCTION_WORDS for word in words]
    return function[0], function[-1], all(function), any(is_punctuation(word) for word in words if word)


def _spelling(shape: _Shape) -> dict[str, np.ndarray]:
    """Phrases that are the same letters however they are cut into words, and those that spell an acronym out."""
    sides = (shape.source_runs(shape.grid.source_tokens), shape.target_runs(shape.grid.target_tokens))
    number: dict[str, int] = {"": 0}
    letters, initials, short = (
        [np.array([[number.setdefault(key(text), len(number)) for text in run] for run in side]) for side in sides]
        for key in (_letters, _initials, _acronym)
    )
    s, t = shape.of_source, shape.of_target
    together = (s(letters[0]) == t(letters[1])) & (s(letters[0]) > 0)
    spelt = (s(initials[0]) == t(short[1])) & (s(initials[0]) > 0)
    spelt |= (s(short[0]) == t(initials[1])) & (s(short[0]) > 0)
    return {"together": together, "acronym": spelt}


def _senses(shape: _Shape, lemmas: bool) -> dict[str, np.ndarray]:
    grid = shape.grid
    source = grid.source_layer("lemma") if lemmas else grid.source_tokens
    target = grid.target_layer("lemma") if lemmas else grid.target_tokens
    sides = shape.source_runs([w.lower() for w in source]), shape.target_runs([w.lower() for w in target])
    shared = SharedSenses(*sides)
    return {"senses": shared.between(shape.of_source(shared.source), shape.of_target(shared.target))}


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text.lower()))


def _initials(text: str) -> str:
    words = text.split(" ")
    return "".join(word[:1] for word in words) if len(words) > 1 else ""


def _acronym(text: str) -> str:
    word = text.replace(".", "")
    return word if 1 < len(word) <= 6 and word.isalpha() and word.isupper() else ""


def _tags(side: str, runs: list[list[str]], shape: _Shape) -> Block:
    """The tags of phrases of several words, and how many words the other phrase has."""
    number: dict[str, int] = {}
    several = [[number.setdefault(text, len(number)) if text else -1 for text in run] for run in runs[1:]]
    ids = np.array([[-1] * len(runs[0]), *several], dtype=np.int64)
    spread, other = (shape.of_source, 1) if side == "source" else (shape.of_target, 0)
    size = np.arange(shape.D).reshape((1, -1, 1) if other else (-1, 1, 1))
    found = np.broadcast_to(spread(ids), shape.kind.shape)
    index = np.where((found >= 0) & (shape.kind > 0), found * shape.D + size, -1)
    names = [f"{side}_tags.{tags.lower().replace(' ', '_')}" for tags in number]
    return Block(tuple(f"{name}.{k + 1}" for name in names for k in range(shape.D)), None, index.ravel())
