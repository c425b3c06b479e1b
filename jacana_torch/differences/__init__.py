"""What changed between two texts, by the alignment of their words: typed edits instead of changed lines.

A text is split into sentences (`splitting`), the sentences are paired (`pairing`), the words of each pair are
aligned, and the links become edits (`edits`) with reasons (`reasons`). `document` has the whole, `written` and
`page` show it. `covering` asks how much of one text the other expresses.
"""

from .covering import CorpusCoverage, Coverage, corpus_coverage, coverage
from .document import Diff, diff, pair_sentences
from .edits import Edit

__all__ = [
    "CorpusCoverage", "Coverage", "Diff", "Edit", "corpus_coverage", "coverage", "diff", "pair_sentences"
]  # fmt: skip
