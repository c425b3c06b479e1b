"""Why two words are linked, or are not: what an aligner says of its links, as values, JSON and text.

Aligners make `Explanation`s (see `Explains` in aligners/base.py); nothing here knows how one is trained.
"""

from __future__ import annotations

from .choice import Choice, Margin, Moved, Reason, Reasons, Step
from .explanation import Explanation, LinkExplanation

__all__ = ["Choice", "Explanation", "LinkExplanation", "Margin", "Moved", "Reason", "Reasons", "Step"]
