"""Minimise a loss over mini-batches, by AdamW with a warm-up, a cosine decay and clipped gradients."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from .minimise import DivergedError

log = logging.getLogger(__name__)

# Called after each epoch with its number from 1, the mean loss of its batches and the last norm of the gradient.
# The search ends if it returns True.
Callback = Callable[[int, float, float], bool | None]


@dataclass(frozen=True)
class Group:
    """Parameters that share a learning rate."""

    parameters: Sequence[nn.Parameter]
    rate: float


@dataclass(frozen=True)
class Plan:
    """`accumulate` batches make one step; `warmup` is a share of all steps; `decay` is AdamW's weight decay."""

    epochs: int
    accumulate: int = 1
    warmup: float = 0.1
    decay: float = 0.01
    clip: float = 5.0


@dataclass(frozen=True)
class Result:
    """How many epochs were completed, and the mean loss of the batches of the last one."""

    epochs: int
    loss: float
    interrupted: bool


def descend(
    groups: Sequence[Group],
    batches: Callable[[int], Iterable[Any]],
    loss: Callable[[Any], Tensor],
    plan: Plan,
    callback: Callback | None = None,
) -> Result:
    """Change the parameters of `groups` in place so that the loss falls.

    `batches(epoch)` gives the batches of an epoch, equally many in each; `loss` of a batch is a mean over its
    items. Ctrl-C ends the search and leaves the parameters as they are. Before the first step, it is raised.
    """
    groups = [group for group in groups if group.parameters]
    every = [p for group in groups for p in group.parameters]
    optimiser = torch.optim.AdamW(
        [{"params": list(group.parameters), "lr": group.rate} for group in groups], weight_decay=plan.decay
    )
    step, completed, mean = 0, 0, math.nan
    try:
        for epoch in range(1, plan.epochs + 1):
            given = list(batches(epoch))
            steps = plan.epochs * math.ceil(len(given) / plan.accumulate)
            total, norm = 0.0, 0.0
            for start in range(0, len(given), plan.accumulate):
                for options, group in zip(optimiser.param_groups, groups, strict=True):
                    options["lr"] = group.rate * factor(step, steps, plan.warmup)
                some = given[start : start + plan.accumulate]
                value, norm = _step(optimiser, every, some, loss, plan.clip, epoch)
                total += value
                step += 1
            mean, completed = total / max(len(given), 1), epoch
            if callback is not None and callback(epoch, mean, norm):
                break
    except KeyboardInterrupt:
        if not step:
            raise
        log.warning("interrupted in epoch %d: keeping the weights so far", completed + 1)
        return Result(completed, mean, True)
    return Result(completed, mean, False)


def _step(
    optimiser: torch.optim.Optimizer,
    parameters: Sequence[nn.Parameter],
    batches: Sequence[Any],
    loss: Callable[[Any], Tensor],
    clip: float,
    epoch: int,
) -> tuple[float, float]:
    """Take one step, and return the sum of the batches' losses and the norm of the gradient of their mean."""
    optimiser.zero_grad(set_to_none=True)
    total = 0.0
    for batch in batches:
        value = loss(batch)
        (value / len(batches)).backward()  # type: ignore[no-untyped-call]
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
    """The share of the full rate at a step: it rises during `warmup` of all steps, and decays as half a cosine."""
    rise = min(1.0, (step + 1) / max(warmup * steps, 1e-9))
    return rise * (1 + math.cos(math.pi * step / max(steps, 1))) / 2
