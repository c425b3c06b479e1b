"""`align --engine ray`: blocks of a bulk run on the machines of a Ray cluster.

Each worker is an actor with one CPU, which holds the model and does blocks. This process sends them numbers of
blocks, never pairs: the machines share the inputs, the output folder, and JACANA_HOME with the resources. An actor
has one block at a time. If an actor or its machine is lost, its block goes to another one, and a new actor starts
where there is room.
"""

from __future__ import annotations

import importlib
import os
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import ConfigError, JacanaError
from ..util.parallel import available

if TYPE_CHECKING:
    from .blocks import Block
    from .bulk import AlignsBlock, Done

LOSSES = 3  # of actors with the same block: then it is the block
PATIENCE = 120.0  # seconds without any actor that has started
CHECKED = 5.0  # seconds between checks
MOST_SAID = 1000  # letters of an error of Ray
PASSED_ON = ("JACANA_HOME", "JACANA_CONF", "JACANA_TRUST", "JACANA_DATA", "PYTHONPATH")


class RayWorker:
    """An actor."""

    def __init__(self, job: AlignsBlock) -> None:
        self._job = job

    def ready(self, manifest: str) -> str:
        """Load the model; an error if this machine does not see the output folder."""
        if not os.path.exists(manifest):
            raise ConfigError(
                f"{os.uname().nodename} does not see {manifest}: inputs and outputs have to be in a "
                "folder that all machines share"
            )
        _ = self._job.work.model
        return os.uname().nodename

    def align(self, block: Block) -> Done | None:
        """Do a block, unless another actor has done it."""
        return None if self._job.part(block).exists() else self._job(block)


@dataclass
class _Actor:
    handle: Any
    ready: Any  # the reference to the answer of `ready`, until it has come
    outcome: Any = None  # the reference to what becomes of its block
    block: Block | None = None


def run_on_ray(
    job: AlignsBlock, blocks: Sequence[Block], workers: int | None, address: str | None
) -> Iterator[Done]:
    """Align blocks on a cluster, and yield the outcome of each, in the order in which they end."""
    if not blocks:
        return
    try:
        ray = importlib.import_module("ray")
    except ImportError as error:
        raise ConfigError(f"--engine ray needs Ray ({error}): pip install 'jacana-torch[ray]'") from None
    own, address = not ray.is_initialized(), address or os.environ.get("RAY_ADDRESS") or None
    with redirect_stdout(sys.stderr):  # Ray prints what it has to say of lost workers
        if own:
            _connect(ray, address, workers)
        try:
            yield from _Pool(ray, job, _workers(ray, workers, len(blocks))).run(blocks)
        finally:
            if own:
                ray.shutdown()


def _connect(ray: Any, address: str | None, workers: int | None) -> None:
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "WARNING", "configure_logging": False}
    try:
        if address is None:
            ray.init("local", num_cpus=max(workers or 0, available()), include_dashboard=False, **options)
        else:
            ray.init(address=address, **options)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise ConfigError(f"--address {address}: there is no such Ray cluster ({error})") from None


def _workers(ray: Any, asked: int | None, blocks: int) -> int:
    """The number of actors; an error if the cluster has no room for those that were asked for."""
    nodes = [node for node in ray.nodes() if node["Alive"]]
    room = sum(int(node["Resources"].get("CPU", 0)) for node in nodes)
    if room < (asked or 1):
        each = " + ".join(str(int(node["Resources"].get("CPU", 0))) for node in nodes)
        raise ConfigError(
            f"a worker takes one of Ray's CPUs, and the cluster has {each or 0} for {asked or 1}: ask for "
            "fewer --workers, or start Ray's nodes with more (ray start --num-cpus)"
        )
    return min(asked or room, blocks)


class _Pool:
    """The actors, and the blocks that wait."""

    def __init__(self, ray: Any, job: AlignsBlock, size: int) -> None:
        self._ray, self._job, self._size = ray, job, size
        environment = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        environment |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        made = ray.remote(
            num_cpus=1, max_restarts=0, scheduling_strategy="SPREAD", runtime_env={"env_vars": environment}
        )
        self._class = made(RayWorker)
        self._actors: list[_Actor] = []
        self._waiting: deque[Block] = deque()
        self._losses: dict[int, int] = {}  # of actors with a block, by its number
        self._unready = 0  # actors that were lost before they had started, since one has
        self._since = time.monotonic()  # when there was an actor that had started

    def run(self, blocks: Sequence[Block]) -> Iterator[Done]:
        self._waiting.extend(blocks)
        try:
            while self._waiting or any(actor.block is not None for actor in self._actors):
                self._hire()
                self._give()
                pending = [
                    ref for actor in self._actors for ref in (actor.ready, actor.outcome) if ref is not None
                ]
                ended, _ = self._ray.wait(pending, num_returns=1, timeout=CHECKED)
                for ref in ended:
                    done = list(self._ended(ref))
                    self._give()  # no actor waits for what is done with a result
                    yield from done
                if any(actor.ready is None for actor in self._actors):
                    self._since = time.monotonic()
                elif time.monotonic() - self._since > PATIENCE:
                    raise JacanaError(self._starving())
        finally:
            for actor in self._actors:
                self._ray.kill(actor.handle)

    def _hire(self) -> None:
        """Start actors in place of those that are lost, as far as there is work."""
        busy = sum(actor.block is not None for actor in self._actors)
        while len(self._actors) < min(self._size, len(self._waiting) + busy):
            handle = self._class.remote(self._job)
            self._actors.append(_Actor(handle, handle.ready.remote(str(self._job.folder / "manifest.json"))))

    def _give(self) -> None:
        """Give a block to each actor that has none."""
        for actor in self._actors:
            if self._waiting and actor.ready is None and actor.block is None:
                actor.block = self._waiting.popleft()
                actor.outcome = actor.handle.align.remote(actor.block)

    def _ended(self, ref: Any) -> Iterator[Done]:
        actor = next(one for one in self._actors if ref in (one.ready, one.outcome))
        try:
            outcome = self._ray.get(ref)
        except self._ray.exceptions.RayTaskError as error:  # a mistake of the user, or a fault of the program
            raise error.cause if isinstance(error.cause, JacanaError) else error from None
        except self._ray.exceptions.RayError as error:
            self._lost(actor, error)
            return
        if ref == actor.ready:
            actor.ready, self._unready = None, 0
            return
        block, actor.block, actor.outcome = actor.block, None, None
        assert block is not None
        yield outcome if outcome is not None else self._there(block)

    def _there(self, block: Block) -> Done:
        """What is said of a block whose part another actor had written before it was lost."""
        from .bulk import Done

        return Done(block, block.size)

    def _lost(self, actor: _Actor, error: Exception) -> None:
        """Give the block of a lost actor back."""
        self._actors.remove(actor)
        block = actor.block
        if block is None:
            self._unready += actor.ready is not None
            if self._unready >= LOSSES * self._size:
                raise JacanaError(f"Ray's workers do not start: {str(error).strip()[:MOST_SAID]}")
            return
        self._losses[block.number] = self._losses.get(block.number, 0) + 1
        if self._losses[block.number] >= LOSSES:
            raise JacanaError(
                f"{LOSSES} workers were lost with records of {block.file} (block {block.number}): use a smaller "
                f"--batch-size, or machines with more memory ({str(error).strip()[:MOST_SAID]})"
            )
        self._waiting.appendleft(block)

    def _starving(self) -> str:
        free = self._ray.available_resources().get("CPU", 0)
        return (
            f"no worker has run for {PATIENCE:.0f} seconds: Ray has {free:g} CPUs free, and others may hold the "
            "rest; wait for them, or start more nodes"
        )
