"""The one place that says which version this is: packaging, `--version` and score signatures read it from here."""

from __future__ import annotations

__version__ = "0.2.0"
