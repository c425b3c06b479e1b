"""Explanations: why an aligner links two words, or does not, as values, plain data and text.

`explanation` holds the values, `text` prints them, and `chains` computes them for linear chains. Other aligners
may make an `Explanation` in their own way (`Explains` in aligners/base.py).
"""

from __future__ import annotations

from .explanation import (
    Choice,
    Direction,
    Explanation,
    LinkExplanation,
    Margin,
    Moved,
    Reason,
    Reasons,
    Step,
)

__all__ = [
    "Choice",
    "Direction",
    "Explanation",
    "LinkExplanation",
    "Margin",
    "Moved",
    "Reason",
    "Reasons",
    "Step",
]
