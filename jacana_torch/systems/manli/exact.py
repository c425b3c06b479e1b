"""MANLI-Exact (Thadani & McKeown 2011): the same model decoded exactly, with constraints over a parse."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...types import SentencePair
from .edit_features import Edit, Problem
from .manli import Manli
from .packing import decode
from .syntax import conditions, decode_under


@dataclass
class ManliExact(Manli):
    """`modifier`, `lineage`: the constraints M and L, which need a parse. They hold in alignment; training does
    without them, as in the paper, for gold breaks them now and then."""

    modifier: bool = True
    lineage: bool = True

    @property
    def requires(self) -> tuple[str, ...]:
        return ("head", "lemma", "pos") if self.modifier or self.lineage else ("lemma", "pos")

    def edits(self, pair: SentencePair, problem: Problem, gains: np.ndarray) -> list[Edit]:
        if not (self.modifier or self.lineage):
            return decode(gains, problem.source, problem.target)
        return decode_under(gains, problem.source, problem.target, conditions(pair, self.modifier, self.lineage))
