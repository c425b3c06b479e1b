"""The array operations of inference, once for NumPy and once for PyTorch.

The kernel and Viterbi are written against these. NumPy serves the CPU, because importing PyTorch takes longer than
aligning two thousand pairs; PyTorch serves training and every other device.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np

from ..errors import ConfigError
from ..util.geometry import starts

Array = Any  # np.ndarray or torch.Tensor


class Arrays(Protocol):
    """What inference needs of an array library."""

    def index(self, numbers: np.ndarray) -> Array:
        """Return an array that lasts, of indices or conditions, as the library takes it; it is sent there once."""

    float32: Any
    float64: Any
    int64: Any

    def array(self, numbers: np.ndarray) -> Array:
        """Return an array of the moment as the library takes it."""

    def host(self, x: Array) -> np.ndarray: ...
    def cast(self, x: Array, dtype: Any) -> Array: ...
    def copy(self, x: Array, dtype: Any) -> Array: ...
    def empty(self, shape: tuple[int, ...], *, dtype: Any) -> Array: ...
    def zeros(self, shape: tuple[int, ...], *, dtype: Any) -> Array: ...
    def ones(self, shape: tuple[int, ...], *, dtype: Any) -> Array: ...
    def concatenate(self, parts: Sequence[Array]) -> Array: ...
    def split(self, x: Array, sizes: Sequence[int]) -> Sequence[Array]: ...
    def log(self, x: Array) -> Array: ...
    def exp(self, x: Array, out: Array) -> Array: ...

    def add(self, x: Array, y: Array, out: Array) -> Array: ...
    def multiply(self, x: Array, y: Array, out: Array) -> Array: ...
    def matmul(self, x: Array, y: Array, out: Array) -> Array: ...
    def add_product(self, total: Array, x: Array, y: Array) -> None: ...
    def logsumexp(self, x: Array, axis: int) -> Array: ...
    def total(self, x: Array, out: Array) -> None:
        """Sum the last axis of [k, c, W], which is kept."""

    def largest(self, x: Array, out: Array) -> None:
        """Reduce the first axis to its maximum."""

    def argmax(self, x: Array) -> Array:
        """Return the first place of the maximum in the last axis."""

    def take(self, x: Array, rows: Array) -> Array:
        """Select entries of the first axis."""

    def take_last(self, x: Array, at: Array, out: Array) -> None:
        """Select entries of the last axis."""

    def windows(self, flat: Array, width: int, first: Array) -> Array:
        """Return [len(first), width]: consecutive entries of a vector from each place on, one copy a row."""

    def largest_of_runs(self, x: Array, runs: np.ndarray, least: Array) -> Array:
        """Return the maximum of each run of these lengths and of the entry of `least` beside it."""

    def repeat(self, x: Array, runs: np.ndarray) -> Array: ...

    def sums(self, key: Array, x: Array, size: int) -> Array:
        """Add entries up by key."""

    def add_at(self, x: Array, at: Array, values: Array) -> None: ...
    def fill(self, x: Array, values: Array, where: Array) -> None:
        """Write `values` where the condition holds; all three broadcast."""


class NumpyArrays:
    """NumPy on the CPU."""

    float32, float64, int64 = np.dtype("float32"), np.dtype("float64"), np.dtype("int64")
    index: Any = staticmethod(np.asarray)
    array: Any = staticmethod(np.asarray)
    host: Any = staticmethod(np.asarray)
    cast: Any = staticmethod(np.asarray)
    copy: Any = staticmethod(np.array)
    empty: Any = staticmethod(np.empty)
    zeros: Any = staticmethod(np.zeros)
    ones: Any = staticmethod(np.ones)
    concatenate: Any = staticmethod(np.concatenate)
    log: Any = staticmethod(np.log)
    add: Any = staticmethod(np.add)
    multiply: Any = staticmethod(np.multiply)
    matmul: Any = staticmethod(np.matmul)
    take: Any = staticmethod(operator.getitem)
    argmax: Any = staticmethod(partial(np.argmax, axis=-1))
    exp: Any = staticmethod(np.exp)
    repeat: Any = staticmethod(np.repeat)
    logsumexp: Any = staticmethod(np.logaddexp.reduce)
    largest: Any = staticmethod(partial(np.maximum.reduce, axis=0))
    add_at: Any = staticmethod(np.add.at)
    sums: Any = staticmethod(np.bincount)
    fill: Any = staticmethod(np.copyto)

    def total(self, x: Array, out: Array) -> None:
        np.matmul(x, np.ones((x.shape[-1], 1), x.dtype), out=out)  # a sum would start anew for each short row

    def add_product(self, total: Array, x: Array, y: Array) -> None:
        total += x @ y

    def split(self, x: Array, sizes: Sequence[int]) -> Sequence[Array]:
        parts, begin = [], 0
        for size in sizes:
            parts.append(x[begin : begin + size])
            begin += size
        return parts

    def take_last(self, x: Array, at: Array, out: Array) -> None:
        np.ascontiguousarray(x).take(at, axis=-1, out=out, mode="clip")

    def windows(self, flat: Array, width: int, first: Array) -> Array:
        (step,) = flat.strides
        shape = (max(len(flat) - width + 1, 0), width)
        return np.lib.stride_tricks.as_strided(flat, shape, (step, step), writeable=False)[first]

    def largest_of_runs(self, x: Array, runs: np.ndarray, least: Array) -> Array:
        some, out = np.flatnonzero(runs), least.copy()
        if len(some):
            out[some] = np.maximum(out[some], np.maximum.reduceat(x, starts(runs)[some]))
        return out


NUMPY: Arrays = NumpyArrays()


class TorchArrays:
    """PyTorch on one device. Index arrays are sent there once and kept as long as this object is."""

    def __init__(self, device: Any) -> None:
        import torch

        self._torch, self._device = torch, device
        self._sent: dict[int, tuple[np.ndarray, Array]] = {}  # by id, with what keeps the id
        self._run: dict[int, tuple[np.ndarray, Array]] = {}
        self.float32, self.float64, self.int64 = torch.float32, torch.float64, torch.int64
        self.array: Any = partial(torch.as_tensor, device=device)
        self.cast: Any = torch.Tensor.to
        self.copy: Any = partial(torch.Tensor.to, copy=True)
        self.empty: Any = partial(torch.empty, device=device)
        self.zeros: Any = partial(torch.zeros, device=device)
        self.ones: Any = partial(torch.ones, device=device)
        self.concatenate: Any = torch.cat
        self.split: Any = torch.split
        self.log: Any = torch.log
        self.logsumexp: Any = torch.logsumexp
        self.add: Any = torch.add
        self.multiply: Any = torch.mul
        self.matmul: Any = torch.bmm
        self.total: Any = partial(torch.sum, dim=-1, keepdim=True)
        self.largest: Any = partial(torch.amax, dim=0)
        self.argmax: Any = partial(torch.argmax, dim=-1)
        self.add_product: Any = torch.Tensor.baddbmm_

    def index(self, numbers: np.ndarray) -> Array:
        known = self._sent.get(id(numbers))
        if known is None:
            known = self._sent[id(numbers)] = numbers, self._torch.as_tensor(numbers, device=self._device)
        return known[1]

    def host(self, x: Array) -> np.ndarray:
        host: np.ndarray = x.detach().cpu().numpy()
        return host

    def exp(self, x: Array, out: Array) -> Array:
        return self._torch.mul(x, 1.4426950408889634, out=out).exp2_()  # exp is slow for -inf and tiny results

    def take(self, x: Array, rows: Array) -> Array:
        return x.index_select(0, rows)

    def take_last(self, x: Array, at: Array, out: Array) -> None:
        self._torch.index_select(x, x.dim() - 1, at, out=out)

    def windows(self, flat: Array, width: int, first: Array) -> Array:
        return flat.as_strided((max(len(flat) - width + 1, 0), width), (1, 1)).index_select(0, first)

    def largest_of_runs(self, x: Array, runs: np.ndarray, least: Array) -> Array:
        return least.scatter_reduce(0, self._run_of(runs), x, "amax")

    def repeat(self, x: Array, runs: np.ndarray) -> Array:
        return x.index_select(0, self._run_of(runs))

    def _run_of(self, runs: np.ndarray) -> Array:
        if id(runs) not in self._run:
            size = int(runs.sum())  # known here, so that nobody waits for the device
            self._run[id(runs)] = runs, self._torch.repeat_interleave(self.index(runs), output_size=size)
        return self._run[id(runs)][1]

    def sums(self, key: Array, x: Array, size: int) -> Array:
        return x.new_zeros(size).index_add_(0, key, x)

    def add_at(self, x: Array, at: Array, values: Array) -> None:
        x.index_add_(0, at, values)

    def fill(self, x: Array, values: Array, where: Array) -> None:
        self._torch.where(where, values, x, out=x)


def arrays_of(x: Array) -> Arrays:
    """Return the operations for the library and device that an array belongs to."""
    return NUMPY if isinstance(x, np.ndarray) else TorchArrays(x.device)


def placed(flat: Sequence[Array], device: str, dtype: str) -> list[Array]:
    """Return NumPy arrays as the library that serves a device takes them."""
    if device == "cpu":
        return list(map(partial(np.asarray, dtype=dtype), flat))
    import torch

    return [torch.as_tensor(x, dtype=getattr(torch, dtype), device=device) for x in flat]


def usable_device(device: str) -> str:
    """Return the device if torch can use it here; else raise an error that says why not."""
    if device != "cpu":  # the check starts the driver, so only if there is a question
        import torch

        try:
            torch.zeros(1, dtype=torch.float64, device=device)
        except (RuntimeError, AssertionError, NotImplementedError, TypeError) as error:
            reason = (str(error).splitlines() or ["unknown"])[0]
            raise ConfigError(f"the device {device!r} cannot be used here ({reason}): try cpu") from None
    return device
