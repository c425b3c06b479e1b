"""Compare predicted alignments with gold: scores, significance, agreement, calibration.

Everything starts from a table of link counts with one row per pair.
"""

from __future__ import annotations

from .scores import LINKS, Counts, Score, count, score

__all__ = ["LINKS", "Counts", "Score", "count", "score"]
