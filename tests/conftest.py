"""What every test shares: one thread a process, steady property tests, and the corpora where they are."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# A shell starts what it puts in the background without Ctrl-C, which tests send to commands of theirs.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Hundreds of tests start processes, which would compile the package each time.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Tests run side by side, and torch reads this when it is first imported.
for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

# Every run draws others; JACANA_EXAMPLES=2000 digs deeper where that is worth the time.
settings.register_profile(
    "steady",
    max_examples=int(os.environ.get("JACANA_EXAMPLES", "20")),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
)
settings.load_profile("steady")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if "JACANA_SLOW" not in os.environ:
        for item in items:
            if item.get_closest_marker("slow"):
                item.add_marker(pytest.mark.skip(reason="slow: set JACANA_SLOW=1"))


@pytest.fixture(scope="session")
def data_root() -> Path:
    """The folder of the corpora, which are not part of this project."""
    root = os.environ.get("JACANA_DATA")
    if not root:
        pytest.skip("JACANA_DATA is not set: the corpora are not part of this project")
    return Path(root)
