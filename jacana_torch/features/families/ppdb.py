"""The ppdb family: words that the paraphrase database (PPDB) pairs, and whether their lemmas are paired.

For NULL: whether any word of the other sentence is a paraphrase. Identical words do not count.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..api import Block, NodeBlocks
from ..grid import Grid
from ..lexical import equal, lower_form, paraphrases


@dataclass(frozen=True)
class Ppdb:
    """`lemma`: look the lemmas up as well."""

    name: str = "ppdb"
    lemma: bool = True
    resources: tuple[str, ...] = ("mwa-ppdb",)

    @property
    def requires(self) -> tuple[str, ...]:
        return ("lemma",) if self.lemma else ()

    def __call__(self, grid: Grid) -> NodeBlocks:
        words = grid.words(lower_form, "lemma") if self.lemma else grid.words(lower_form)
        tokens = [value[0] for value in words.values] if self.lemma else words.values
        identical = equal(tokens, words)
        columns = {"pair": paraphrases(tokens, words) & ~identical}
        if self.lemma:
            lemmas = [lower_form(str(value[1])) for value in words.values]
            of_lemmas = paraphrases(lemmas, words) & ~equal(lemmas, words) & ~identical
            columns["lemma_pair"] = of_lemmas
            columns["either_pair"] = columns["pair"] | of_lemmas
        table = np.stack(list(columns.values()), axis=1).astype(np.float64)
        best = grid.row_max(table[words.cell])
        found = grid.row_max(identical[words.cell].astype(np.float64)[:, None])
        names = tuple(columns)
        null = np.column_stack([best, best[:, -1:] * (1 - found)])
        return NodeBlocks(
            (Block(names, table, words.cell),),
            (Block((*(f"row.{name}" for name in names), "row.only_paraphrase"), null, None),),
        )
