"""Processes that train together, as torchrun starts them: forked for a function, or begun for a command."""

from __future__ import annotations

import os
import pickle
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jacana_torch.util import ranks


def variables(rank: int, world: int, port: int) -> dict[str, str]:
    numbers = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": world, "MASTER_PORT": port}
    return {"MASTER_ADDR": "127.0.0.1", **{name: str(value) for name, value in numbers.items()}}


def free_port() -> int:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return int(held.getsockname()[1])


def forked(work: Callable[[], Any], folder: Path, world: int = 2) -> list[Any]:
    """What `work` returns in each of `world` connected processes; an exception if it raises one."""
    port, children = free_port(), []
    for rank in range(world):
        child = os.fork()
        if child == 0:
            _work(work, folder, variables(rank, world, port))
        children.append(child)
    for child in children:
        os.waitpid(child, 0)
    return [pickle.loads((folder / f"{rank}.pickle").read_bytes()) for rank in range(world)]


def _work(work: Callable[[], Any], folder: Path, environment: dict[str, str]) -> None:
    os.environ |= environment
    try:
        ranks.join()
        found = work()
        ranks.leave()
    except Exception as error:
        found = error
    (folder / f"{environment['RANK']}.pickle").write_bytes(pickle.dumps(found))
    os._exit(0)


def started(arguments: list[str], folder: Path, world: int = 2) -> list[subprocess.Popen[bytes]]:
    """Begin `jacana-torch` in `world` processes; their output goes to out-RANK and err-RANK in the folder."""
    port, begun = free_port(), []
    for rank in range(world):
        with (folder / f"out-{rank}").open("w") as out, (folder / f"err-{rank}").open("w") as err:
            environment = {**os.environ, **variables(rank, world, port)}
            command = [sys.executable, "-m", "jacana_torch", *arguments]
            begun.append(subprocess.Popen(command, env=environment, stdout=out, stderr=err))
    return begun
