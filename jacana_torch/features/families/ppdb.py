"""The ppdb family: words that the paraphrase database (PPDB) pairs, and whether their lemmas are paired.

For NULL: whether any word of the other sentence is a paraphrase. Identical words do not count.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import itemgetter
from typing import Annotated

import numpy as np

from ...util.build import INTERNAL
from ..api import Block, NodeBlocks
from ..grid import Grid
from ..lexical import LOWER, LOWER_AND_LEMMA, lower_form, paraphrases


@dataclass(frozen=True)
class Ppdb:
    """`lemma`: look the lemmas up as well."""

    name: str = "ppdb"
    lemma: bool = True
    resources: Annotated[tuple[str, ...], INTERNAL] = ("mwa-ppdb",)

    @property
    def requires(self) -> tuple[str, ...]:
        return ("lemma",) if self.lemma else ()

    def __call__(self, grid: Grid) -> NodeBlocks:
        words = grid.words(LOWER_AND_LEMMA if self.lemma else LOWER)
        forms = words.pairs.mapped("form", itemgetter(0)) if self.lemma else words.pairs
        identical = forms.left == forms.right
        columns = {"pair": paraphrases(forms) & ~identical}
        if self.lemma:
            lemmas = words.pairs.mapped("lemma form", lambda word: lower_form(str(word[1])))
            of_lemmas = paraphrases(lemmas) & (lemmas.left != lemmas.right) & ~identical
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
