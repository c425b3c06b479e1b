"""Several systems on one corpus: configs in; a table of scores, times and significance out."""

from __future__ import annotations

from .comparison import compare
from .measure import Entry
from .rows import Row
from .table import FORMATS, Table

__all__ = ["FORMATS", "Entry", "Row", "Table", "compare"]
