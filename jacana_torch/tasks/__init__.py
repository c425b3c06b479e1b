"""What alignments tell about two texts: similarity, entailment, coverage, and where a span belongs.

Everything here takes pairs and their alignments, from any aligner, and needs no torch.
"""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:  # scikit-learn is an extra
    if name == "AlignmentFeatures":
        from .transformer import AlignmentFeatures

        return AlignmentFeatures
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
