"""The processes that `torchrun` starts for one training, and what they send each other.

`world` is their number, and `rank` that of this one. Rank 0 reads the command line and writes files. A process by
itself has a `world` of 1, and calls none of these functions.
"""

from __future__ import annotations

import heapq
import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypeVar

import numpy as np

from ..errors import ConfigError, JacanaError

log = logging.getLogger(__name__)

T = TypeVar("T")

world, rank = 1, 0
_store: Any = None  # reaches all processes, also while they compute
_PATIENCE = timedelta(days=1)  # rank 0 aligns and scores alone; torchrun ends all processes if one of them dies


def join() -> None:
    """Connect to the other processes. Tensors on CUDA travel by NCCL, all others by Gloo."""
    global world, rank, _store
    import torch
    from torch import distributed
    from torch.distributed.rendezvous import rendezvous

    backend, device = "gloo", int(os.environ.get("LOCAL_RANK", 0))
    if torch.cuda.is_available() and device < torch.cuda.device_count():
        torch.cuda.set_device(device)
        backend = "cpu:gloo,cuda:nccl"
    with _connected():
        _store, number, count = next(rendezvous("env://", timeout=_PATIENCE))
        distributed.init_process_group(backend, store=_store, rank=number, world_size=count, timeout=_PATIENCE)
    world, rank = count, number


def leave() -> None:
    """End the connection."""
    global world, rank, _store
    from torch import distributed

    if distributed.is_initialized():
        distributed.destroy_process_group()
    world, rank, _store = 1, 0, None


def first_to_fail() -> bool:
    """Whether this is the first process that reports an error; the others then have nothing to add."""
    try:
        return _store is None or _store.add("failed", 1) == 1
    except RuntimeError:  # rank 0 had the store, and has ended
        return False


def add(tensor: Any) -> None:
    """Replace a tensor by the sum over all processes."""
    from torch import distributed

    with _connected():
        distributed.all_reduce(tensor)


def largest(array: np.ndarray) -> np.ndarray:
    """Return the largest of all processes' numbers, entry by entry."""
    found: np.ndarray = np.maximum.reduce(gathered(array))
    return found


def same(value: T) -> T:
    """Return what rank 0 gave, in every process."""
    from torch import distributed

    held = [value]
    with _connected():
        distributed.broadcast_object_list(held, 0)
    return held[0]


def gathered(value: T) -> list[T]:
    """Return what the processes gave, by their ranks."""
    from torch import distributed

    held: list[Any] = [None] * world
    with _connected():
        distributed.all_gather_object(held, value)
    return held


def share(sizes: Sequence[int]) -> list[int]:
    """Return the places of this process's items: each process gets items of about the same total size."""
    if len(set(gathered(hash(tuple(sizes))))) > 1:
        raise ConfigError("the processes of this training read different pairs: give all of them the same files")
    if len(sizes) < world:
        raise ConfigError(f"{len(sizes)} training pairs cannot be split over {world} processes: start fewer")
    loads, own = [(0, k) for k in range(world)], []
    for place in sorted(range(len(sizes)), key=lambda k: -sizes[k]):
        load, taker = loads[0]
        heapq.heapreplace(loads, (load + sizes[place], taker))
        if taker == rank:
            own.append(place)
    return sorted(own)


@contextmanager
def _connected() -> Iterator[None]:
    """Turn what the connection raises into an error of ours."""
    try:
        yield
    except RuntimeError as error:
        log.debug("%s", error)
        raise JacanaError(
            "another process of this training has ended, or cannot be reached: look for its message, and go on "
            "from the checkpoint with resume=FOLDER of this run"
        ) from None
