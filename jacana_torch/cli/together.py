"""`torchrun -m jacana_torch train`: rank 0 reads the command line, and the other processes train with it."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

from ..errors import ConfigError, JacanaError
from ..util import ranks
from . import USER_ERROR

_FOR_THE_MESSAGE = 1.0  # seconds, in which the first one reports: torchrun ends all when one has ended


def train(arguments: Sequence[str]) -> int:
    """Train by all processes that torchrun started; return the exit code.

    An error of any process ends all of them, and the first one reports it.
    """
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")  # no stack of C++ where a connection ends
    try:
        ranks.join()
        if ranks.rank:
            from ..train import together

            together.follow()
            return 0
        if {"-m", "--multirun"} & set(arguments):
            raise ConfigError("torchrun trains one model: start a sweep without it, or torchrun for each job")
        from . import hydra

        hydra.train(arguments)
        ranks.same(None)  # there is nothing else to train
        return 0
    except (JacanaError, OSError, MemoryError):
        if ranks.first_to_fail():
            raise
        time.sleep(_FOR_THE_MESSAGE)
        return USER_ERROR
    finally:
        ranks.leave()
