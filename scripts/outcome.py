"""What scripts share: progress and a user's mistakes go to stderr, and become an exit code."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable


def outcome(script: Callable[[], None]) -> int:
    """0, or 2 after a mistake that a user can mend."""
    from jacana_torch.errors import JacanaError  # the script itself has made sure that it is found

    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    try:
        script()
    except JacanaError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    return 0
