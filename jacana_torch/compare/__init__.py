"""Compare several systems on one corpus: scores, times and significance in a table."""

from __future__ import annotations

from .comparison import compare
from .measure import Entry
from .table import FORMATS, Row, Table

__all__ = ["FORMATS", "Entry", "Row", "Table", "compare"]
