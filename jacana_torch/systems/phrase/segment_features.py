"""Features of segments and spans of several words, beyond those of their words.

A block's rows are the sized segments of `Segments`. Pairs of single words have none of these features.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ...features.api import Block
from ...features.grid import Grid
from ...features.lexical import LOWER, lexical, lower_form
from ...features.wordlists import FUNCTION_WORDS, is_punctuation, stem
from .segments import Segments

PREFIX = "phrase"
_SHAPES = ("", "one_many", "many_one", "many_many")
_PARTS_OF_SPEECH = "nvar"

Runs = list[list[str]]  # [D][T] the 1, 2, ... words from each token on, joined by spaces; "" beyond the sentence


def segment_blocks(
    grid: Grid, segments: Segments, tags: bool = False, senses: bool = False, lemmas: bool = False
) -> list[Block]:
    """Blocks with full names.

    `tags` adds the tag sequences of phrases, from the layer pos. `senses` adds shared WordNet synsets of phrases,
    which are looked up by the layer lemma if `lemmas`.
    """
    phrases = _Phrases(grid, segments)
    blocks = [_sizes(phrases), _signals(phrases, _senses(phrases, lemmas) if senses else {})]
    if tags:
        blocks.append(_tags("source", phrases.source_runs(grid.source_layer("pos")), phrases))
        blocks.append(_tags("target", phrases.target_runs(grid.target_layer("pos")), phrases))
    return [Block(tuple(f"{PREFIX}.{name}" for name in b.names), b.table, b.index) for b in blocks]


class _Phrases:
    """Segments with spans over the cells of a grid: arrays [D, D, C] by source size, target size and first cell.

    `shape` is the number of each in _SHAPES, 0 for single words and for what does not fit.
    """

    def __init__(self, grid: Grid, segments: Segments) -> None:
        self.grid, self.segments, self.D, self.C = grid, segments, segments.longest, grid.n_cells
        several = np.arange(self.D) > 0
        self.shape = np.where(segments.fits, (several[:, None] * 2 + several)[:, :, None], 0)

    def below(self, values: np.ndarray, rows: int) -> np.ndarray:
        """[C] the values of the cells some rows down, 0 outside."""
        return np.append(values, values.dtype.type(0))[self.segments.down[rows]]

    def right(self, values: np.ndarray, columns: int) -> np.ndarray:
        """[C] the values of the cells some columns on; meaningless where the span does not fit."""
        return np.append(values[columns:], np.zeros(min(columns, self.C), values.dtype))

    def source_runs(self, values: Sequence[str]) -> Runs:
        return _runs(values, self.grid.source_position, self.grid.n_source[self.grid.source_pair], self.D)

    def target_runs(self, values: Sequence[str]) -> Runs:
        return _runs(values, self.grid.target_position, self.grid.n_target[self.grid.target_pair], self.D)

    def of_source(self, values: np.ndarray) -> np.ndarray:
        """[D, Ts] values of source runs as [D, 1, C]."""
        return values[:, self.grid.source_token][:, None]

    def of_target(self, values: np.ndarray) -> np.ndarray:
        """[D, Tt] values of target runs as [1, D, C]."""
        return values[:, self.grid.target_token][None]


def _runs(values: Sequence[str], position: np.ndarray, length: np.ndarray, D: int) -> Runs:
    left = (length - position).tolist()
    return [
        [" ".join(values[k : k + size]) if left[k] >= size else "" for k in range(len(values))]
        for size in range(1, D + 1)
    ]


def _sizes(phrases: _Phrases) -> Block:
    D = phrases.D
    names = tuple(f"size={a}x{b}" for a in range(1, D + 1) for b in range(1, D + 1))
    index = np.where(phrases.shape > 0, np.arange(D**2).reshape(D, D, 1), -1)
    return Block(names, None, index.ravel())


def _signals(phrases: _Phrases, senses: Mapping[str, np.ndarray]) -> Block:
    """Binary features, each conjoined with the shape of the phrase pair. Equal rows are stored once."""
    signals = {
        **_words_in_common(phrases),
        **_surroundings(phrases),
        **_function_words(phrases),
        **_spelling(phrases),
        **senses,
    }
    shape = phrases.shape.ravel()
    code = np.zeros(phrases.shape.shape, dtype=np.int64)
    for bit, values in enumerate(signals.values()):
        code |= values.astype(np.int64) << bit
    several = np.flatnonzero(shape)
    distinct, rows = np.unique((code.ravel() * len(_SHAPES) + shape)[several], return_inverse=True)
    bits = (distinct[:, None] // len(_SHAPES)) >> np.arange(len(signals)) & 1
    shapes = range(1, len(_SHAPES))
    table = np.concatenate([bits * (distinct % len(_SHAPES) == k)[:, None] for k in shapes], 1)
    index = np.full(shape.size, -1)
    index[several] = rows
    names = tuple(f"{_SHAPES[k]}.{name}" for k in shapes for name in signals)
    return Block(names, table.astype(np.float64), index)


def _words_in_common(phrases: _Phrases) -> dict[str, np.ndarray]:
    """Which words of either phrase have the same or a similar word in the other phrase, or elsewhere."""
    grid, D, C = phrases.grid, phrases.D, phrases.C
    words = grid.words(LOWER)
    stems = words.pairs.mapped("stem", stem)
    spelling = lexical(grid)
    same = (stems.left == stems.right)[words.cell]
    similar = spelling.alike[spelling.cell] | same
    size = np.arange(1, D + 1)
    out, matched = {}, {}
    for name, cells in (("same", same.astype(np.int64)), ("similar", similar.astype(np.int64))):
        matched[name] = rows, columns = _matched(phrases, cells)
        out[f"all_source_{name}"] = rows == size[:, None, None]
        out[f"all_target_{name}"] = columns == size[:, None]
        out[f"none_{name}"] = rows == 0
        out[f"first_{name}"] = np.broadcast_to(cells > 0, phrases.shape.shape)
        last = [[phrases.below(phrases.right(cells, right), down) for right in range(D)] for down in range(D)]
        out[f"last_{name}"] = np.array(last) > 0
    by_column = [np.minimum(np.arange(C) + k, max(C - 1, 0)) for k in range(D)]
    in_source = _with_counterpart(grid.row_max(same), phrases.segments.down, grid.source_token)
    in_target = _with_counterpart(grid.column_max(same), by_column, grid.target_token)
    rows, columns = matched["same"]
    out["source_elsewhere"] = in_source[:, None] > rows
    out["target_elsewhere"] = in_target[None] > columns
    return out


def _matched(phrases: _Phrases, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """[D, D, C] how many tokens of a segment have a cell in the span, and how many of the span in the segment."""
    steps = range(phrases.D)
    across = np.maximum.accumulate([phrases.right(cells, step) for step in steps])  # [D, C] by span
    rows = np.cumsum([[phrases.below(of_span, step) for of_span in across] for step in steps], 0)
    down = np.maximum.accumulate([phrases.below(cells, step) for step in steps])  # [D, C] by segment
    columns = np.cumsum([[phrases.right(of_segment, step) for of_segment in down] for step in steps], 0)
    return rows, columns.transpose(1, 0, 2)


def _with_counterpart(found: np.ndarray, steps: Sequence[np.ndarray], token: np.ndarray) -> np.ndarray:
    """[D, C] how many of the 1, 2, ... tokens from each cell's on have a counterpart anywhere (`found` [T])."""
    of_cells = np.append(found[token], 0.0)
    return np.cumsum([of_cells[step] for step in steps], 0).astype(np.int64)


def _surroundings(phrases: _Phrases) -> dict[str, np.ndarray]:
    """Whether the words right before both phrases are the same, and those right after; sentence borders are."""
    grid, segments = phrases.grid, phrases.segments
    words = grid.words(LOWER)
    same = np.append((words.pairs.left == words.pairs.right)[words.cell], False)
    before = same[grid.shift(-1, -1)] | ((grid.m == 0) & (grid.n == 0))
    before = np.broadcast_to(before, phrases.shape.shape)
    after = np.zeros(phrases.shape.shape, dtype=bool)
    for a, b in np.ndindex(phrases.D, phrases.D):
        ends = (segments.rows_left == a + 1) & (segments.width - grid.n == b + 1)
        after[a, b] = same[grid.shift(a + 1, b + 1)] | ends
    return {"before": before, "after": after, "between": before & after}


def _function_words(phrases: _Phrases) -> dict[str, np.ndarray]:
    """Phrases that begin or end with function words, consist of them, or contain punctuation."""
    grid, out = phrases.grid, {}
    for side, runs, spread in (
        ("source", phrases.source_runs(grid.source_tokens), phrases.of_source),
        ("target", phrases.target_runs(grid.target_tokens), phrases.of_target),
    ):
        of: dict[str, tuple[bool, ...]] = {text: _word_classes(text) for run in runs for text in set(run)}
        values = np.array([[of[text] for text in run] for run in runs], dtype=bool).reshape(phrases.D, -1, 4)
        for number, name in enumerate(("begins", "ends", "all", "punctuation")):
            out[f"{side}_{name}"] = np.broadcast_to(spread(values[:, :, number]), phrases.shape.shape)
    return out


def _word_classes(text: str) -> tuple[bool, ...]:
    words = [lower_form(word) for word in text.split(" ")]
    function = [word in FUNCTION_WORDS for word in words]
    return function[0], function[-1], all(function), any(is_punctuation(word) for word in words if word)


def _spelling(phrases: _Phrases) -> dict[str, np.ndarray]:
    """Phrases of the same letters, however they are cut into words, and acronyms with their full forms."""
    sides = phrases.source_runs(phrases.grid.source_tokens), phrases.target_runs(phrases.grid.target_tokens)
    number: dict[str, int] = {"": 0}

    def numbers(key: Callable[[str], str]) -> tuple[np.ndarray, np.ndarray]:
        one, other = (
            np.array([[number.setdefault(key(text), len(number)) for text in run] for run in side])
            for side in sides
        )
        return phrases.of_source(one), phrases.of_target(other)

    (letters, others), (initials, also), (short, shorter) = map(numbers, (_letters, _initials, _acronym))
    spelt_out = ((initials == shorter) & (initials > 0)) | ((short == also) & (short > 0))
    return {"together": (letters == others) & (letters > 0), "acronym": spelt_out}


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text.lower()))


def _initials(text: str) -> str:
    words = text.split(" ")
    return "".join(word[:1] for word in words) if len(words) > 1 else ""


def _acronym(text: str) -> str:
    word = text.replace(".", "")
    return word if 1 < len(word) <= 6 and word.isalpha() and word.isupper() else ""


def _tags(side: str, runs: Runs, phrases: _Phrases) -> Block:
    """The tags of each phrase of several words, conjoined with the number of words of the other phrase."""
    number: dict[str, int] = {}
    several = [[number.setdefault(text, len(number)) if text else -1 for text in run] for run in runs[1:]]
    ids = np.array([[-1] * len(runs[0]), *several], dtype=np.int64)
    found = phrases.of_source(ids) if side == "source" else phrases.of_target(ids)
    other = np.arange(phrases.D).reshape((1, -1, 1) if side == "source" else (-1, 1, 1))
    index = np.where((found >= 0) & (phrases.shape > 0), found * phrases.D + other, -1)
    names = [f"{side}_tags.{tags.lower().replace(' ', '_')}" for tags in number]
    return Block(tuple(f"{name}.{k + 1}" for name in names for k in range(phrases.D)), None, index.ravel())


def _senses(phrases: _Phrases, lemmas: bool) -> dict[str, np.ndarray]:
    """Whether two phrases, or a phrase and a word, share a WordNet synset."""
    grid = phrases.grid
    source = grid.source_layer("lemma") if lemmas else grid.source_tokens
    target = grid.target_layer("lemma") if lemmas else grid.target_tokens
    sides = phrases.source_runs([w.lower() for w in source]), phrases.target_runs([w.lower() for w in target])
    known, codes = _shared_synsets({text for side in sides for run in side for text in run})
    number = {text: k for k, text in enumerate(known)}
    one, other = (np.array([[number.get(text, -1) for text in run] for run in side], np.int64) for side in sides)
    one, other = np.broadcast_arrays(phrases.of_source(one), phrases.of_target(other))
    found = np.zeros(one.shape, dtype=bool)
    both = np.nonzero((one >= 0) & (other >= 0))
    found[both] = np.isin(one[both] * len(known) + other[both], codes)
    return {"senses": found}


def _shared_synsets(texts: set[str]) -> tuple[list[str], np.ndarray]:
    """The K texts that WordNet knows, and codes one * K + other of phrases and texts that share a synset."""
    from ...resources import wordnet

    net = wordnet()
    wordy = sorted(text for text in texts if all(word[:1].isalnum() for word in text.split(" ")))
    phrases = [text for text in wordy if " " in text]
    forms = [text.replace(" ", "_") for text in phrases for _ in _PARTS_OF_SPEECH]
    bases = net.morphy_all(forms, _PARTS_OF_SPEECH * len(phrases))
    known = [text for text, *found in zip(phrases, *(bases[k::4] for k in range(4)), strict=True) if any(found)]
    n_phrases = len(known)
    if known:
        known += [text for text in wordy if " " not in text]
    synsets = net.incidence([(text, None) for text in known]).astype(np.int32)
    shared = (synsets[:n_phrases] @ synsets.T).tocoo()
    one, other = shared.row.astype(np.int64), shared.col.astype(np.int64)
    return known, np.unique(np.concatenate([one * len(known) + other, other * len(known) + one]))
