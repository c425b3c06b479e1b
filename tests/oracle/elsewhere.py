"""A device that this machine has not: its tensors are computed on the CPU, but only copies bring them there.

Operations are counted, and so are those that make a program wait until a device has computed: copies to the CPU,
numbers as Python takes them, and results whose size depends on values. What mixes devices is an error.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

NAME = "meta"  # a name that torch knows everywhere; of arrays alone, since those of numbers would have no values
SIZED_BY_VALUES = {"nonzero", "masked_select", "_unique2", "unique_consecutive", "repeat_interleave"}


class There(torch.Tensor):
    """A tensor on the device; `held` has its numbers."""

    held: torch.Tensor

    @staticmethod
    def __new__(cls, real: torch.Tensor) -> There:
        strides = real.stride() if real.layout is torch.strided else None
        made = torch.Tensor._make_wrapper_subclass(
            cls, real.shape, strides=strides, dtype=real.dtype, device=NAME, requires_grad=False
        )
        made.held = real
        return made

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        raise AssertionError(f"{function} outside of the device's mode")


class Device(TorchDispatchMode):
    """The device while this context lasts; `calls` and `waits` count."""

    def __init__(self) -> None:
        super().__init__()
        self.calls, self.waits = 0, 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        name, given = function.overloadpacket.__name__, tree_flatten((args, kwargs))[0]
        there = [x for x in given if isinstance(x, There)]
        target = kwargs.get("device")
        wanted = target is not None and torch.device(target).type == NAME
        if not there and not wanted:
            return function(*args, **kwargs)
        self.calls += 1
        back = name == "_to_copy" and target is not None and not wanted
        by_mask = name == "index" and any(getattr(x, "dtype", None) is torch.bool for x in args[1])
        sized = name in SIZED_BY_VALUES and kwargs.get("output_size") is None
        self.waits += back or name in ("_local_scalar_dense", "equal") or sized or by_mask
        for x in given:
            if isinstance(x, torch.Tensor) and not isinstance(x, There) and x.dim() and there and name != "copy_":
                raise AssertionError(f"{name} of a tensor there and one of the CPU")
        if target is not None:
            kwargs["device"] = torch.device("cpu")
        known = {id(x.held): x for x in there}
        real_args, real_kwargs = tree_map(lambda x: x.held if isinstance(x, There) else x, (args, kwargs))
        if name == "_to_copy":
            found = real_args[0].to(real_kwargs.get("dtype") or real_args[0].dtype, copy=True)
        else:
            found = function(*real_args, **real_kwargs)
        if back:
            return found

        def placed(x: Any) -> Any:
            if not isinstance(x, torch.Tensor):
                return x
            return known[id(x)] if id(x) in known else There(x)

        return tree_map(placed, found)
