"""Training. The package is also the function: `jacana_torch.train(pairs, gold)` is `train.api.train`."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..model.model import Model


def _train(package: ModuleType, *arguments: Any, **settings: Any) -> Model:
    from .api import train

    return train(*arguments, **settings)


# Whichever is imported first, package or function, both are `jacana_torch.train`.
sys.modules[__name__].__class__ = type("CallablePackage", (ModuleType,), {"__call__": _train})
