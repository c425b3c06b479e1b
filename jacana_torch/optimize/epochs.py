"""Minimising over mini-batches by AdamW, whose rate rises, and falls as a cosine; gradients are clipped.

Parameters and a loss of a batch in; they are changed in place. Knows nothing of alignment.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ..errors import JacanaError

log = logging.getLogger(__name__)

# After each epoch: its number from 1, the mean loss of its batches, the last norm of the gradient; true to stop.
Callback = Callable[[int, float, float], bool | None]


@dataclass(frozen=True)
class Group:
    """Parameters that learn at one rate."""

    parameters: Sequence[nn.Parameter]
    rate: float


@dataclass(frozen=True)
class Plan:
    """`accumulate` batches to a step; `warmup` is a share of all steps; `decay` the weight decay of AdamW."""

    epochs: int
    accumulate: int = 1
    warmup: float = 0.1
    decay: float = 0.01
    clip: float = 5.0


@dataclass(frozen=True)
class Result:
    """`loss` is that of the last whole epoch, a mean over batches."""

    epochs: int
    loss: float
    interrupted: bool


class DivergedError(JacanaError):
    """The loss or its gradient stopped being a number."""


def descend(
    groups: Sequence[Group],
    batches: Callable[[int], Iterable[Any]],
    loss: Callable[[Any], Tensor],
    plan: Plan,
    callback: Callback | None = None,
) -> Result:
    """`batches(epoch)` gives the batches of an epoch, as many in each; `loss` of one is a mean over its items.

    Ctrl-C ends it and leaves the parameters as they are.
    """
    groups = [group for group in groups if group.parameters]
    every = [p for group in groups for p in group.parameters]
    optimiser = torch.optim.AdamW(
        [{"params": list(group.parameters), "lr": group.rate} for group in groups], weight_decay=plan.decay
    )
    state = {"step": 0, "loss": math.nan, "epoch": 0}
    try:
        for epoch in range(1, plan.epochs + 1):
            given = list(batches(epoch))
            steps = plan.epochs * math.ceil(len(given) / plan.accumulate)
            total, norm = 0.0, 0.0
            for start in range(0, len(given), plan.accumulate):
                for options, group in zip(optimiser.param_groups, groups, strict=True):
                    options["lr"] = group.rate * factor(int(state["step"]), steps, plan.warmup)
                some = given[start : start + plan.accumulate]
                value, norm = _step(optimiser, every, some, loss, plan.clip, epoch)
                total += value
                state["step"] += 1
            state["loss"], state["epoch"] = total / max(len(given), 1), epoch
            if callback is not None and callback(epoch, float(state["loss"]), norm):
                break
    except KeyboardInterrupt:
        if not state["step"]:
            raise
        log.warning("interrupted in epoch %d: keeping what was learnt", int(state["epoch"]) + 1)
        return Result(int(state["epoch"]), float(state["loss"]), True)
    return Result(int(state["epoch"]), float(state["loss"]), False)


def _step(
    optimiser: torch.optim.Optimizer,
    parameters: Sequence[nn.Parameter],
    batches: Sequence[Any],
    loss: Callable[[Any], Tensor],
    clip: float,
    epoch: int,
) -> tuple[float, float]:
    """One step over some batches: the sum of their losses, and the norm of their mean's gradient."""
    optimiser.zero_grad(set_to_none=True)
    total = 0.0
    for batch in batches:
        value = loss(batch)
        (value / len(batches)).backward()
        total += float(value.detach())
    norm = float(nn.utils.clip_grad_norm_(parameters, clip))
    if not (math.isfinite(total) and math.isfinite(norm)):
        raise DivergedError(
            f"the loss is {total}, and its gradient {norm}, in epoch {epoch}: lower the learning rate, or look "
            "for a feature value that is not finite"
        )
    optimiser.step()
    return total, norm


def factor(step: int, steps: int, warmup: float) -> float:
    """The share of the full rate at a step: it rises for `warmup` of all steps, and falls as half a cosine."""
    rise = min(1.0, (step + 1) / max(warmup * steps, 1e-9))
    return rise * (1 + math.cos(math.pi * step / max(steps, 1))) / 2
