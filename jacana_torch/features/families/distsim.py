"""The distsim family: words are alike that keep the same company, in the pair itself or in a corpus.

In: a `Grid`, parsed if the pair itself is to say (Sharma et al., 2018, Algorithm 2). Out: Dice, Jaccard and cosine
of PPMI and t-test vectors, the largest of the six (their DistriSim), and the same from counts over a corpus.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ...errors import ConfigError
from ..api import Block, NodeBlocks
from ..association import MEASURES, own_similarity
from ..grid import Grid
from ..lexical import lower_form
from ..string_similarity import FORM
from ..vector_similarity import Vectors
from ..word_pairs import WordKey, WordPairs

if TYPE_CHECKING:
    from ..counted_vectors import CountedVectors


@dataclass(frozen=True)
class DistSim:
    """`own`: from the pair's own dependencies, all counts smoothed by `smoothing`.
    `counts`: a file that `count_vectors(...).save` wrote, or None.
    `vectors`: static vectors, by resource name or path; `steps` and `phrases` as in `vectors.Vectors`.
    """

    name: str = "distsim"
    own: bool = True
    counts: str | None = None
    smoothing: float = 2.0
    vectors: tuple[str, ...] = ()
    steps: tuple[float, ...] = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
    phrases: bool = True
    key: ClassVar[WordKey] = FORM

    def __post_init__(self) -> None:
        if self.smoothing <= 0:
            raise ConfigError(
                f"smoothing={self.smoothing}: it must be more than 0, as unseen contexts are compared"
            )
        object.__setattr__(
            self, "vectors", (self.vectors,) if isinstance(self.vectors, str) else tuple(self.vectors)
        )
        if not self.own and self.counts is None and not self.vectors:
            raise ConfigError("distsim has nothing to compare: own=False, no counts file and no vectors")

    @property
    def requires(self) -> tuple[str, ...]:
        return ("head", "deprel") if self.own else ()

    @property
    def resources(self) -> tuple[str, ...]:
        """Names of the resources that it reads; vectors given as files are the user's own."""
        return tuple(name for name in self.vectors if "/" not in name and "." not in name)

    @cached_property
    def _static(self) -> Vectors | None:
        return Vectors(self.vectors, self.steps, self.phrases) if self.vectors else None

    def word_blocks(self, pairs: WordPairs) -> tuple[Block, ...]:
        return tuple(_under("static", block) for block in self._static.word_blocks(pairs)) if self._static else ()

    def __call__(self, grid: Grid) -> NodeBlocks:
        link, null = [], []
        if self.own:
            values, cell = own_similarity(grid, self.smoothing)
            blocks = _blocks(grid, "own", values, cell)
            link.append(blocks[0])
            null.append(blocks[1])
        if self.counts is not None:
            words = grid.words(lower_form)
            vectors = load_counts(self.counts)
            row = vectors.lookup(words.values)
            left, right = row[words.left], row[words.right]
            values = vectors.similarity(left, right)
            values[words.left == words.right] = 1.0  # also where the word was never counted
            blocks = _blocks(grid, "corpus", values, words.cell)
            known = ((left >= 0) & (right >= 0)).astype(np.float64)[:, None]
            link += [blocks[0], Block(("corpus.both_known",), known, words.cell)]
            null.append(blocks[1])
        if self._static is not None:
            static = self._static(grid)
            link += [_under("static", block) for block in static.link]
            null += [_under("static", block) for block in static.null]
        return NodeBlocks(tuple(link), tuple(null))


def _under(prefix: str, block: Block) -> Block:
    return replace(block, names=tuple(f"{prefix}.{name}" for name in block.names))


def _blocks(grid: Grid, prefix: str, values: np.ndarray, cell: np.ndarray) -> tuple[Block, Block]:
    """The measures and their maximum, also without identical words, which every measure gives 1."""
    best = values.max(axis=1, initial=0.0)
    words = grid.words(lower_form)
    same = np.zeros(len(best), dtype=bool)
    same[cell] = (words.left == words.right)[words.cell]
    unlike = np.where(same, 0.0, best)
    names = (*MEASURES, "max", "max.not_identical")
    table = np.column_stack([values, best, unlike])
    null = np.column_stack([grid.row_max(best[cell]), grid.row_max(unlike[cell])])
    return (
        Block(tuple(f"{prefix}.{name}" for name in names), table, cell),
        Block((f"{prefix}.row_max", f"{prefix}.row_max.not_identical"), null, None),
    )


def load_counts(path: str | os.PathLike) -> CountedVectors:
    """Read once, and again if the file has changed."""
    path = os.path.abspath(os.path.expanduser(path))
    changed = os.stat(path).st_mtime_ns if os.path.exists(path) else 0
    return _load_counts(path, changed)


@lru_cache(maxsize=2)
def _load_counts(path: str, changed: int) -> CountedVectors:
    from ..counted_vectors import CountedVectors  # brings scipy.sparse, which most models do without

    return CountedVectors.load(path)
