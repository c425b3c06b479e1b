"""Variants of a test that fail together: some run always, the others with JACANA_SLOW=1."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def variants(values: Iterable[Any], always: int = 1) -> list[Any]:
    """Values for `parametrize`, of which those after the first `always` are slow."""
    own = [*values]
    later = [value if isinstance(value, tuple) else (value,) for value in own[always:]]
    return [*own[:always], *(pytest.param(*value, marks=pytest.mark.slow) for value in later)]
