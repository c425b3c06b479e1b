"""Minimise a loss over mini-batches, by AdamW with a warm-up, a cosine decay and clipped gradients.

A search can be resumed after any step: its state holds the parameters, the optimiser's moments, the state of the
random numbers and its place among the batches.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..util import ranks
from .minimise import DivergedError

log = logging.getLogger(__name__)

# Called after each epoch with its number from 1, the mean loss of its batches and the last norm of the gradient.
# The search ends if it returns True.
Callback = Callable[[int, float, float], bool | None]
# Called after each step and each epoch with the function that makes the state of this moment. A state is a copy of
# all parameters and moments: make one only to write it.
Keep = Callable[[Callable[[], dict[str, np.ndarray]]], None]
State = Mapping[str, np.ndarray]
Ready = Callable[[Any], Any]  # from a batch to what the loss takes


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
    resume: State | None = None,
    keep: Keep | None = None,
    ready: Ready | None = None,
) -> Result:
    """Change the parameters of `groups` in place so that the loss falls.

    `batches(epoch)` gives the batches of an epoch, equally many in each; `loss` of a batch is a mean over its
    items. `ready` makes of a batch what the loss takes, while a device still computes the step before. Processes
    that train together get the same batches; their losses of a batch add up to its mean. Ctrl-C ends the search
    and leaves the parameters as they are. Before the first step, it is raised.

    `resume` is a state that `keep` got; entries of other names are ignored. `batches` must give the batches of its
    epoch again.
    """
    search = _Descent([group for group in groups if group.parameters], loss, plan, ready or _as_it_is)
    if resume is not None:
        search.resume(resume)
    begun, place = search.place.step, search.place
    try:
        while place.epoch < plan.epochs:
            search.epoch(list(batches(place.epoch + 1)), keep)
            if callback is not None and callback(place.epoch, place.mean, place.norm):
                break
            if keep is not None:
                keep(search.state)
    except KeyboardInterrupt:
        if place.step == begun:
            raise
        log.warning("interrupted in epoch %d: keeping the weights so far", place.epoch + 1)
        return Result(place.epoch, place.mean, True)
    return Result(place.epoch, place.mean, False)


@dataclass
class _Place:
    """How far a search is.

    `epoch` counts complete epochs, and `mean` is the mean loss of the last one. Of the next epoch, `done` batches
    are done, whose losses sum to `total`. `step` counts all steps, and `norm` is that of the last gradient.
    """

    epoch: int = 0
    mean: float = math.nan
    done: int = 0
    total: float = 0.0
    step: int = 0
    norm: float = 0.0


@dataclass
class _Descent:
    """A search over mini-batches, and its place."""

    groups: Sequence[Group]
    loss: Callable[[Any], Tensor]
    plan: Plan
    ready: Ready
    place: _Place = field(default_factory=_Place)

    def __post_init__(self) -> None:
        self.parameters = [p for group in self.groups for p in group.parameters]
        self.optimiser = torch.optim.AdamW(
            [{"params": list(group.parameters), "lr": group.rate} for group in self.groups],
            weight_decay=self.plan.decay,
        )
        self.seed = torch.initial_seed()

    def epoch(self, batches: Sequence[Any], keep: Keep | None) -> None:
        """Take the steps that are left of the next epoch."""
        plan, place = self.plan, self.place
        steps = plan.epochs * math.ceil(len(batches) / plan.accumulate)
        some = self._ready(batches, place.done)
        while place.done < len(batches):
            for options, group in zip(self.optimiser.param_groups, self.groups, strict=True):
                options["lr"] = group.rate * factor(place.step, steps, plan.warmup)
            found, done = self.step(some), place.done + len(some)
            some = self._ready(batches, done)
            value, place.norm = found.cpu().tolist()  # what waits for the device, once a step
            if not (math.isfinite(value) and math.isfinite(place.norm)):
                raise DivergedError(
                    f"the loss is {value}, and its gradient {place.norm}, in epoch {place.epoch + 1}: lower the "
                    "learning rate, or look for a feature value that is not finite"
                )
            place.total, place.done, place.step = place.total + value, done, place.step + 1
            if keep is not None:
                keep(self.state)
        place.mean = place.total / max(len(batches), 1)
        place.epoch, place.done, place.total = place.epoch + 1, 0, 0.0

    def _ready(self, batches: Sequence[Any], begin: int) -> list[Any]:
        """Return what the loss takes of the batches of a step."""
        return list(map(self.ready, batches[begin : begin + self.plan.accumulate]))

    def step(self, batches: Sequence[Any]) -> Tensor:
        """Take one step; return [2] the sum of the batches' losses and the norm of the gradient of their mean."""
        if ranks.world > 1:  # each process drops out other units, and the same again if the search is resumed
            torch.manual_seed(self.seed + self.place.step * ranks.world + ranks.rank)
        self.optimiser.zero_grad(set_to_none=True)
        losses = []
        for batch in batches:
            value = self.loss(batch)
            (value / len(batches)).backward()  # type: ignore[no-untyped-call]
            losses.append(value.detach())
        total = torch.stack(losses).sum()
        if ranks.world > 1:
            total = self._added_up(total)
        norm = nn.utils.clip_grad_norm_(self.parameters, self.plan.clip)
        self.optimiser.step()
        return torch.stack([total, norm.to(total)])

    def _added_up(self, total: Tensor) -> Tensor:
        """Replace gradients by their sums over all processes, and return the sum of the totals."""
        parts = [total]
        for p in self.parameters:
            parts.append(torch.zeros_like(p) if p.grad is None else p.grad)
        flat = torch.cat([part.reshape(-1) for part in parts])
        ranks.add(flat)
        sums = torch.split(flat, [part.numel() for part in parts])
        for p, own in zip(self.parameters, sums[1:], strict=True):
            p.grad = own.view_as(p)
        return sums[0].sum()

    def state(self) -> dict[str, np.ndarray]:
        """Return copies of all that further steps depend on, but the batches."""
        place = self.place
        state = {"place": np.array([place.epoch, place.mean, place.done, place.total, place.step, place.norm])}
        for name, random in _generators(self.parameters).items():
            state[name] = random.get_state().numpy().copy()
        for number, parameter in enumerate(self.parameters):
            state[f"parameter.{number}"] = parameter.detach().cpu().numpy().copy()
            for name, value in self.optimiser.state[parameter].items():
                state[f"{name}.{number}"] = torch.as_tensor(value).cpu().numpy().copy()
        return state

    @torch.no_grad()
    def resume(self, state: State) -> None:
        """Take back a state."""
        epoch, mean, done, total, step, norm = state["place"].tolist()
        for name, value in vars(_Place(int(epoch), mean, int(done), total, int(step), norm)).items():
            setattr(self.place, name, value)
        for name, random in _generators(self.parameters).items():
            if name in state:
                random.set_state(torch.from_numpy(np.array(state[name])))
        moments: dict[int, dict[str, Tensor]] = {}
        for name, array in state.items():
            kind, _, number = name.partition(".")
            if kind == "parameter":
                self.parameters[int(number)].copy_(torch.from_numpy(np.array(array)))
            elif number.isdecimal():
                moments.setdefault(int(number), {})[kind] = torch.from_numpy(np.array(array))
        self.optimiser.load_state_dict({**self.optimiser.state_dict(), "state": moments})


def _as_it_is(batch: Any) -> Any:
    return batch


def _generators(parameters: Sequence[nn.Parameter]) -> dict[str, torch.Generator]:
    """Return the random numbers that a loss may use: those of the CPU and of the parameters' device."""
    found = {"random": torch.default_generator}
    for device in {p.device for p in parameters if p.is_cuda}:
        found["cuda_random"] = torch.cuda.default_generators[device.index or 0]
    return found


def factor(step: int, steps: int, warmup: float) -> float:
    """The share of the full rate at a step: it rises during `warmup` of all steps, and decays as half a cosine."""
    rise = min(1.0, (step + 1) / max(warmup * steps, 1e-9))
    return rise * (1 + math.cos(math.pi * step / max(steps, 1))) / 2
