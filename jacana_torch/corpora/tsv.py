"""The format tsv: a table with a header and tabs; otherwise as csv.

Many files that end in .tsv have no header. Without --columns or --from tsv, their lines decide what they are.
"""

from __future__ import annotations

from collections.abc import Sequence

from .csv import format_of


def _sniff(lines: Sequence[str]) -> bool:
    return False


FORMAT = format_of("\t", _sniff)
