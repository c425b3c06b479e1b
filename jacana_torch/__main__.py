"""Run `python -m jacana_torch` as the command `jacana-torch`."""

from __future__ import annotations

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
