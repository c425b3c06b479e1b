"""Run a script: log progress to stderr, and turn a user's error into a message and exit code 2."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]
if str(ROOT) not in sys.path:  # a script may run from anywhere
    sys.path.insert(0, str(ROOT))


def outcome(script: Callable[[], None]) -> int:
    """Return the exit code: 0, or 2 after an error that the user can correct."""
    from jacana_torch.errors import JacanaError  # after the script has set sys.path

    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    try:
        script()
    except JacanaError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    return 0
