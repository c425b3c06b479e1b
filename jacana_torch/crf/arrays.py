"""The array operations of inference, once for NumPy and once for PyTorch.

The kernel and Viterbi are written against these. NumPy serves the CPU, because importing PyTorch takes longer than
aligning two thousand pairs; PyTorch serves training and every other device.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

Array = Any  # np.ndarray or torch.Tensor


class NumpyArrays:
    """NumPy on the CPU; `TorchArrays` has the same operations.

    `index` makes an index array one of the library, `host` brings values back. `add`, `matmul` and `largest` write to
    `out`; `exp` and `fill` change their argument.
    """

    index = staticmethod(lambda numbers: numbers)
    host = staticmethod(lambda x: x)
    cast = staticmethod(lambda x, dtype: x.astype(dtype, copy=False))
    empty = staticmethod(np.empty)
    zeros = staticmethod(np.zeros)
    ones = staticmethod(np.ones)
    copy = staticmethod(lambda x, dtype: x.astype(dtype))
    concatenate = staticmethod(np.concatenate)
    log = staticmethod(np.log)
    add = staticmethod(np.add)
    multiply = staticmethod(np.multiply)
    matmul = staticmethod(np.matmul)
    take = staticmethod(lambda x, rows: x[rows])
    repeat = staticmethod(np.repeat)
    add_at = staticmethod(np.add.at)

    def dtype(self, x: np.ndarray) -> str:
        return x.dtype.name

    def add_product(self, total: np.ndarray, x: np.ndarray, y: np.ndarray) -> None:
        total += x @ y

    def split(self, x: np.ndarray, sizes: Sequence[int]) -> Sequence[np.ndarray]:
        ends = np.cumsum(sizes).tolist()
        return [x[end - size : end] for size, end in zip(sizes, ends, strict=True)]

    def exp(self, x: np.ndarray) -> np.ndarray:
        return np.exp(x, out=x)

    def logsumexp(self, x: np.ndarray, axis: int) -> np.ndarray:
        return np.logaddexp.reduce(x, axis=axis)

    def total(self, x: np.ndarray, out: np.ndarray) -> None:
        """Sum the last axis [k, c, W], as a product: NumPy would start anew for each of the short rows."""
        np.matmul(x, np.ones((x.shape[-1], 1), x.dtype), out=out)

    def largest(self, x: np.ndarray, out: np.ndarray) -> np.ndarray:
        """Reduce the first axis to its maximum."""
        return np.maximum.reduce(x, axis=0, out=out)

    def argmax(self, x: np.ndarray) -> np.ndarray:
        return x.argmax(-1)

    def take_last(self, x: np.ndarray, at: np.ndarray, out: np.ndarray) -> None:
        """Select entries of the last axis."""
        np.ascontiguousarray(x).take(at, axis=-1, out=out, mode="clip")

    def windows(self, flat: np.ndarray, width: int, first: np.ndarray) -> np.ndarray:
        """Return [len(first), width]: consecutive entries of a vector from each place on, one copy a row."""
        (step,) = flat.strides
        shape = (max(len(flat) - width + 1, 0), width)
        return np.lib.stride_tricks.as_strided(flat, shape, (step, step), writeable=False)[first]

    def largest_of_runs(self, x: np.ndarray, runs: np.ndarray, at_least: np.ndarray) -> np.ndarray:
        """Return the maximum of each run of these lengths and of the entry of `at_least` beside it."""
        some = np.flatnonzero(runs)
        out = at_least.copy()
        if len(some):
            begin = np.cumsum(runs) - runs
            out[some] = np.maximum(out[some], np.maximum.reduceat(x, begin[some]))
        return out

    def sums(self, x: np.ndarray, key: np.ndarray, size: int) -> np.ndarray:
        """Add entries up by key."""
        return np.bincount(key, x, size)

    def fill(self, x: np.ndarray, where: np.ndarray, values: np.ndarray) -> None:
        """Write `values` where the condition holds; all three broadcast."""
        np.copyto(x, values, where=where)


NUMPY = NumpyArrays()


class TorchArrays:
    """PyTorch on one device. Index arrays are sent there once and kept as long as this object is."""

    def __init__(self, device: Any) -> None:
        import torch

        self._torch, self._device = torch, device
        self._sent: dict[int, tuple[np.ndarray, Array]] = {}
        self.concatenate, self.split, self.log, self.logsumexp = torch.cat, torch.split, torch.log, torch.logsumexp
        self.add, self.multiply, self.matmul = torch.add, torch.mul, torch.bmm

    def index(self, numbers: np.ndarray) -> Array:
        known = self._sent.get(id(numbers))
        if known is None:
            known = self._sent[id(numbers)] = numbers, self._torch.as_tensor(numbers, device=self._device)
        return known[1]

    def host(self, x: Array) -> np.ndarray:
        return x.detach().cpu().numpy()

    def cast(self, x: Array, dtype: str) -> Array:
        return x.to(getattr(self._torch, dtype))

    def empty(self, shape: tuple[int, ...], dtype: str) -> Array:
        return self._torch.empty(shape, dtype=getattr(self._torch, dtype), device=self._device)

    def ones(self, shape: tuple[int, ...], dtype: str) -> Array:
        return self._torch.ones(shape, dtype=getattr(self._torch, dtype), device=self._device)

    def copy(self, x: Array, dtype: str) -> Array:
        return x.to(getattr(self._torch, dtype), copy=True)

    def zeros(self, shape: tuple[int, ...], dtype: str) -> Array:
        return self._torch.zeros(shape, dtype=getattr(self._torch, dtype), device=self._device)

    def dtype(self, x: Array) -> str:
        return str(x.dtype).removeprefix("torch.")

    def exp(self, x: Array) -> Array:
        return x.mul_(1.4426950408889634).exp2_()  # exp has a slow path for -inf and tiny results

    def add_product(self, total: Array, x: Array, y: Array) -> None:
        total.baddbmm_(x, y)

    def total(self, x: Array, out: Array) -> None:
        self._torch.sum(x, -1, keepdim=True, out=out)

    def largest(self, x: Array, out: Array) -> Array:
        return self._torch.amax(x, 0, out=out)

    def argmax(self, x: Array) -> Array:
        return x.argmax(-1)

    def take(self, x: Array, rows: Array) -> Array:
        return x.index_select(0, rows)

    def take_last(self, x: Array, at: Array, out: Array) -> None:
        self._torch.index_select(x, x.dim() - 1, at, out=out)

    def windows(self, flat: Array, width: int, first: Array) -> Array:
        return flat.as_strided((max(len(flat) - width + 1, 0), width), (1, 1)).index_select(0, first)

    def largest_of_runs(self, x: Array, runs: np.ndarray, at_least: Array) -> Array:
        run = self._torch.repeat_interleave(self.index(runs))
        return at_least.scatter_reduce(0, run, x, "amax")

    def repeat(self, x: Array, counts: np.ndarray) -> Array:
        return x.repeat_interleave(self.index(counts))

    def sums(self, x: Array, key: np.ndarray, size: int) -> Array:
        return x.new_zeros(size).index_add_(0, self.index(key), x)

    def add_at(self, x: Array, at: Array, values: Array) -> None:
        x.index_add_(0, at, values)

    def fill(self, x: Array, where: Array, values: Array) -> None:
        self._torch.where(where, values, x, out=x)


Arrays = NumpyArrays | TorchArrays


def arrays_of(x: Array) -> Arrays:
    """Return the operations for the library and device that an array belongs to."""
    return NUMPY if isinstance(x, np.ndarray) else TorchArrays(x.device)


def placed(flat: Sequence[Array], device: str, dtype: str) -> list[Array]:
    """Return NumPy arrays as the library that serves a device takes them."""
    if device == "cpu":
        return [np.asarray(x, dtype) for x in flat]
    import torch

    return [torch.as_tensor(x, dtype=getattr(torch, dtype), device=device) for x in flat]
