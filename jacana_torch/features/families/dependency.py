"""The dependency family: two words probably correspond if their heads, children and siblings do.

It needs a parse (and lemmas, if asked for). It is most useful for words that occur several times (determiners,
prepositions, punctuation), which nothing about the words themselves can tell apart.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...util.build import Share
from ..api import Block, NodeBlocks, prefixed
from ..dependency_relations import FUNCTION, equivalence, relation_class
from ..dependency_trees import Evidence, Forest, Neighbours, forests, gather
from ..grid import Grid
from ..lexical import Lexical, lexical

COUNTS = 4  # of children: 0, 1, 2, more


@dataclass(frozen=True)
class Dependency:
    """Heads, relations, children, siblings and typed evidence (Sultan et al., 2014).

    `lemma` and `ppdb`    count more words as similar; the first reads the lemma layer, the second PPDB.
    `threshold`           the Jaro-Winkler similarity from which words are similar.
    `relation_pairs`      a column for each pair of relations (`nsubj2dobj`).
    """

    name: str = "dependency"
    lemma: bool = True
    ppdb: bool = False
    threshold: Share = 0.85
    relation_pairs: bool = False

    @property
    def requires(self) -> tuple[str, ...]:
        return ("head", "deprel", "lemma") if self.lemma else ("head", "deprel")

    @property
    def resources(self) -> tuple[str, ...]:
        return ("mwa-ppdb",) if self.ppdb else ()

    def __call__(self, grid: Grid) -> NodeBlocks:
        likeness = lexical(grid, self.lemma, self.ppdb, self.threshold)
        view = _View.of(grid, likeness)
        agreement = _agreement(view)
        link = [*_head_blocks(view), *_relation_blocks(view, self.relation_pairs), agreement]
        link.append(_competition(view, agreement))
        return NodeBlocks(tuple(link), tuple(_null_blocks(view)))


@dataclass(frozen=True)
class _View:
    """The values that all parts of the family share.

    `alike` [C] whether the words are similar; `up` [C] the cell of the two heads, -1 without heads.
    """

    grid: Grid
    likeness: Lexical
    source: Forest
    target: Forest
    names: list[str]
    alike: np.ndarray
    up: np.ndarray
    head_alike: np.ndarray

    @staticmethod
    def of(grid: Grid, likeness: Lexical) -> _View:
        source, target, names = forests(grid)
        alike = likeness.alike[likeness.cell]
        up = _cell(grid, source.head[grid.source_token], target.head[grid.target_token])
        return _View(grid, likeness, source, target, names, alike, up, _at(alike, up))


def _cell(grid: Grid, source_token: np.ndarray, target_token: np.ndarray) -> np.ndarray:
    """[C] the cell of two tokens in the pair of each cell; -1 if either token is -1."""
    m = np.where(source_token >= 0, source_token - grid.source_start[grid.pair], -1)
    n = np.where(target_token >= 0, target_token - grid.target_start[grid.pair], -1)
    return grid.cell_at(grid.pair, m, n)


def _at(values: np.ndarray, index: np.ndarray) -> np.ndarray:
    """values[index], and 0 or False where the index is -1."""
    if not len(values):
        return np.zeros(len(index), dtype=values.dtype)
    out: np.ndarray = values[index]
    out[index < 0] = 0
    return out


def _above(head: np.ndarray) -> np.ndarray:
    """[T] the head of each token's head, -1 without."""
    return np.where(head >= 0, head[head], -1)


def _head_blocks(view: _View) -> list[Block]:
    """The similarity of the heads, of their heads, and of one word with the other's head: one table."""
    grid, likeness, source, target = view.grid, view.likeness, view.source, view.target
    s, t = grid.source_token, grid.target_token
    cells = {
        "head": view.up,
        "grandparent": _cell(grid, _above(source.head)[s], _above(target.head)[t]),
        "source_head_to_target": _cell(grid, source.head[s], t),
        "source_to_target_head": _cell(grid, s, target.head[t]),
    }
    blocks = []
    for prefix, cell in cells.items():
        names = prefixed(f"{prefix}.", likeness.names)
        index = np.where(cell >= 0, likeness.cell[np.maximum(cell, 0)], -1) if len(cell) else cell
        blocks.append(Block(names, likeness.table, index))
    return blocks


def _relation_blocks(view: _View, pairs: bool) -> list[Block]:
    """The two relations, alone and with the similarity of the heads; one row for each combination that occurs."""
    grid, names = view.grid, view.names
    s, t = view.source.relation[grid.source_token], view.target.relation[grid.target_token]
    size = max(len(names), 1)
    root_s = (view.source.head < 0)[grid.source_token]
    root_t = (view.target.head < 0)[grid.target_token]
    code = (((s * size + t) * 2 + root_s) * 2 + root_t) * 2 + view.head_alike
    distinct, index = np.unique(code, return_inverse=True)
    alike, root_t, root_s = distinct % 2 > 0, distinct // 2 % 2 > 0, distinct // 4 % 2 > 0
    left, right = distinct // 8 // size, distinct // 8 % size
    kind = [relation_class(name) for name in names]
    classes = np.array([kind.index(c) for c in kind], dtype=np.int64)
    both = equivalence(names)[0][left, right]
    columns = {
        "root.both": root_s & root_t,
        "root.one": root_s != root_t,
        "relation.same": left == right,
        "relation.same_class": classes[left] == classes[right],
        "relation.equivalent": both,
        "relation.same.head_alike": (left == right) & alike,
        "relation.equivalent.head_alike": both & alike,
        "relation.different.head_alike": ~both & alike,
    }
    blocks = [Block(tuple(columns), np.stack(list(columns.values()), axis=1).astype(np.float64), index)]
    one_hot = np.where(left == right, left * 2 + alike, -1)
    labels = [f"relation.{name}.{head}" for name in names for head in ("head_unlike", "head_alike")]
    blocks.append(_one_hot(labels, one_hot[index]))
    if pairs:
        blocks.append(_pair_one_hot(names, (left * size + right)[index], size))
    return blocks


def _pair_one_hot(names: list[str], code: np.ndarray, size: int) -> Block:
    distinct, index = np.unique(code, return_inverse=True)
    return Block(tuple(f"relation.{names[c // size]}2{names[c % size]}" for c in distinct), None, index)


def _one_hot(labels: list[str], index: np.ndarray) -> Block:
    """A block with columns for the labels that occur only; -1 stays -1."""
    used, again = np.unique(index[index >= 0], return_inverse=True)
    out = np.full(len(index), -1, dtype=np.int64)
    out[index >= 0] = again
    return Block(tuple(labels[i] for i in used), None, out)


def _agreement(view: _View) -> Block:
    """Children, siblings and typed evidence: one row per cell."""
    grid, n_cells = view.grid, view.grid.n_cells
    like = np.flatnonzero(view.alike)
    tree = gather(grid, like, Neighbours.of(view.source, plain=True), Neighbours.of(view.target, plain=True))
    down = tree.where(~tree.source_up & ~tree.target_up)
    counts_s, counts_t = view.source.children[grid.source_token], view.target.children[grid.target_token]
    matched = down.matched(n_cells)
    content_s, content_t = _content(view, view.source), _content(view, view.target)
    content = down.where(content_s[down.source] & content_t[down.target]).matched(n_cells)
    fewer_content = _fewer_content(view, content_s, content_t)
    identical = view.likeness.column("identical")[view.likeness.cell]
    columns = {
        "children.share": matched / np.maximum(np.minimum(counts_s, counts_t), 1),
        "children.jaccard": matched / np.maximum(counts_s + counts_t - matched, 1),
        "children.identical": _some(down.where(identical[down.via]).matched(n_cells)),
        "children.same_relation": _some(down.where(down.source_label == down.target_label).matched(n_cells)),
        "children.content": content / np.maximum(fewer_content, 1),
        "children.none_alike": ((matched == 0) & (counts_s > 0) & (counts_t > 0)).astype(np.float64),
        "children.both_none": ((counts_s == 0) & (counts_t == 0)).astype(np.float64),
        "children.one_none": ((counts_s == 0) != (counts_t == 0)).astype(np.float64),
        "children.difference": np.minimum(np.abs(counts_s - counts_t), 3) / 3,
        "siblings.alike": _some(_siblings(view, down)),
    }
    columns.update(_typed(view, like))
    return Block(tuple(columns), np.stack(list(columns.values()), axis=1), None)


def _some(count: np.ndarray) -> np.ndarray:
    """A count as 0, 1/3, 2/3 or 1: more than three are no better evidence."""
    return np.asarray(np.minimum(count, 3) / 3)


def _content(view: _View, forest: Forest) -> np.ndarray:
    """[T] whether a token has the relation of a content word."""
    content = np.array([name not in FUNCTION for name in view.names], dtype=bool)
    return np.asarray(content[forest.relation])


def _fewer_content(view: _View, source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """[C] the content children of whichever of the two words has fewer."""
    sides = ((view.source, source, view.grid.source_token), (view.target, target, view.grid.target_token))
    counts = []
    for forest, content, token in sides:
        heads = forest.head[content & (forest.head >= 0)]
        counts.append(np.bincount(heads, minlength=len(forest.head))[token])
    return np.asarray(np.minimum(*counts))


def _siblings(view: _View, down: Evidence) -> np.ndarray:
    """[C] similar children of the two heads, without the pairs that contain one of the cell's own words."""
    grid = view.grid
    per_cell = np.bincount(down.cell, minlength=grid.n_cells)
    total = _at(per_cell, view.up)
    own_s = _pairs_with(down.cell, down.source, view.up, grid.source_token)
    own_t = _pairs_with(down.cell, down.target, view.up, grid.target_token)
    return np.asarray(total - own_s - own_t + (view.alike & (view.up >= 0)))


def _pairs_with(cell: np.ndarray, token: np.ndarray, where: np.ndarray, whose: np.ndarray) -> np.ndarray:
    """[C] how many rows (cell, token) equal (where, whose)."""
    size = int(whose.max(initial=0)) + 1
    distinct, counts = np.unique(cell * size + token, return_counts=True)
    if not len(distinct):
        return np.zeros(len(where), dtype=np.int64)
    wanted = where * size + whose
    at = np.minimum(np.searchsorted(distinct, wanted), len(distinct) - 1)
    return np.where((where >= 0) & (distinct[at] == wanted), counts[at], 0)


def _typed(view: _View, like: np.ndarray) -> dict[str, np.ndarray]:
    """Evidence with equivalent relations, also through prepositions and against the direction of the tree."""
    n_cells = view.grid.n_cells
    found = gather(view.grid, like, Neighbours.of(view.source), Neighbours.of(view.target))
    same, crossed = equivalence(view.names)
    straight = found.source_up == found.target_up
    labels = found.source_label, found.target_label
    rows = np.where(straight, same[labels], crossed[labels])
    content = _content(view, view.source)[found.source] & _content(view, view.target)[found.target]
    return {
        "evidence.typed": _some(found.where(rows).matched(n_cells)),
        "evidence.typed.content": _some(found.where(rows & content).matched(n_cells)),
        "evidence.loose": _some(found.where(straight).matched(n_cells)),
        "evidence.crossed": _some(found.where(rows & ~straight).matched(n_cells)),
    }


def _competition(view: _View, agreement: Block) -> Block:
    """For cells of similar words: how their trees agree, and whether a similar word elsewhere agrees better."""
    grid, like = view.grid, np.flatnonzero(view.alike)
    index = np.full(grid.n_cells, -1, dtype=np.int64)
    index[like] = np.arange(len(like))
    values = dict(zip(agreement.names, agreement.dense().T[:, like], strict=True))
    head = view.head_alike[like].astype(np.float64)
    no_head = (view.up[like] < 0).astype(np.float64)
    score = 2 * head + values["children.share"] + values["evidence.typed"] + values["siblings.alike"] / 2
    columns = {
        "alike.head_alike": head,
        "alike.head_unlike": 1 - head - no_head,
        "alike.children.share": values["children.share"],
        "alike.children.none_alike": values["children.none_alike"],
        "alike.siblings": values["siblings.alike"],
        "alike.evidence": values["evidence.typed"],
        "alike.nothing": (score == 0).astype(np.float64),
    }
    sides = (
        ("row", grid.source_token, len(grid.source_pair)),
        ("column", grid.target_token, len(grid.target_pair)),
    )
    for side, token, size in sides:
        group = token[like]
        best = np.full(size, -np.inf)
        np.maximum.at(best, group, score)
        contested = np.bincount(group, minlength=size)[group] > 1
        columns[f"alike.best_of_{side}"] = (contested & (score == best[group])).astype(np.float64)
        columns[f"alike.beaten_in_{side}"] = np.minimum(best[group] - score, 2) / 2
    return Block(tuple(columns), np.stack(list(columns.values()), axis=1), index)


def _null_blocks(view: _View) -> list[Block]:
    """Evidence that a source token is unaligned: its relation, and whether its relatives have similar words."""
    source, grid = view.source, view.grid
    found = grid.row_max(view.alike.astype(np.float64)) > 0
    head_found = _at(found, source.head)
    root = source.head < 0
    below = source.head[found & ~root]
    children_found = np.bincount(below, minlength=len(source.head)) / np.maximum(source.children, 1)
    columns = {
        "root": root,
        "found": found,
        "head.found": head_found,
        "head.missing": ~root & ~head_found,
        "head.found.self_missing": head_found & ~found,
        "head.missing.self_missing": ~root & ~head_found & ~found,
        "children.found": children_found,
        "children.all_missing": (source.children > 0) & (children_found == 0),
    }
    count = np.minimum(source.children, COUNTS - 1)
    state = np.where(root, 0, np.where(head_found, 1, 2))
    labels = [f"relation.{name}" for name in view.names]
    with_head = [f"relation.{name}.{how}" for name in view.names for how in ("root", "head_found", "head_missing")]
    return [
        Block(tuple(columns), np.stack([np.asarray(c, dtype=np.float64) for c in columns.values()], axis=1), None),
        Block(tuple(f"children.count.{i}" for i in range(COUNTS)), None, count),
        _one_hot(labels, source.relation),
        _one_hot(with_head, source.relation * 3 + state),
    ]
