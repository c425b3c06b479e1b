"""What this process does with memory that it has freed; only commands set it, as it is the whole process's.

Batches ask for the same again and again. glibc gives the larger blocks back to the system, which has to clear
them before the next batch gets them: a twentieth of the time of aligning. Other C libraries are left as they are.
"""

from __future__ import annotations

import os

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # what glibc's malloc.h calls them
_KEPT = 128 << 20  # bytes that are free at the end of the heap
_LARGE = 32 << 20  # bytes of one block, which goes back at once


def keep_freed() -> bool:
    """Whether it was done: not where the environment says how malloc is to behave."""
    if any(name.startswith(("MALLOC_", "GLIBC_TUNABLES")) for name in os.environ):
        return False
    import ctypes

    try:
        libc = ctypes.CDLL(None)
        libc.gnu_get_libc_version  # noqa: B018 - others have a mallopt that means something else
        return bool(libc.mallopt(_TRIM_THRESHOLD, _KEPT) and libc.mallopt(_MMAP_THRESHOLD, _LARGE))
    except (AttributeError, OSError, TypeError):
        return False
