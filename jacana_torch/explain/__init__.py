"""Explanations: why an aligner links two words, or does not, as values, plain data and text.

`explanation` and `choices` hold the values, `text` prints them, and `chains` computes them for linear chains.
Other aligners may make an `Explanation` in their own way (`Explains` in aligners/base.py).
"""

from __future__ import annotations

from .choices import Choice, Direction, Margin, Moved, Reason, Reasons, Step
from .explanation import Explanation, LinkExplanation

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
