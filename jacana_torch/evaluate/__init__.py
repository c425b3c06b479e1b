"""Gold and predicted alignments in, scores out: counts per pair first, every figure from that one table."""

from __future__ import annotations

from .counts import LINKS, Counts, count
from .score import Score, score

__all__ = ["LINKS", "Counts", "Score", "count", "score"]
