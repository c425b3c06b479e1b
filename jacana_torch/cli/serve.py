"""`jacana-torch serve`: serve a page and an API until SIGINT or SIGTERM, then exit with code 0."""

from __future__ import annotations

import argparse
import gc
import hashlib
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import ConfigError, MissingResource
from ..serve import Limits
from . import at_least_one, note

if TYPE_CHECKING:
    from ..serve.work import Models

ABOUT = "Serve a page and an API that align and explain."
EXAMPLES = """
examples:
  jacana-torch serve                                 a page at http://127.0.0.1:8765/, and its API at /docs
  jacana-torch serve --model standard sultan runs/msr/model --port 0
  jacana-torch serve --host 0.0.0.0 --allow-host align.example.org --token-file token --rate 20
  curl -s localhost:8765/align -H 'Content-Type: application/json' \\
    -d '{"source": "The dog sleeps.", "target": "A dog is asleep."}'

Without --model, it serves all shipped models whose resources are installed. SIGTERM and Ctrl-C stop it after the
requests that it has accepted. Large requests are answered by a second process and wait for each other, not small
ones for them. Anyone who can reach the address can use the server, unless it has a token: on networks that you do
not trust, keep 127.0.0.1. A token is sent as `Authorization: Bearer TOKEN`; browsers ask for it as a password."""

COLLECTED = (5_000, 20, 100)  # objects: to look for more garbage at once would hold up everyone for a moment
LIMITS = {
    "tokens": "tokens per sentence",
    "pairs": "pairs per request",
    "body": "bytes per request",
    "cost": "cells per request: tokens x tokens of its pairs; long words and explanations count more",
    "queue": "cells that may wait",
    "seconds": "seconds until a response",
    "patience": "seconds that a client may take to send a request, or to read its response",
    "connections": "connections at a time; the longest idle one makes room for a new one",
    "grace": "seconds that accepted requests may take after SIGTERM",
}


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", default="127.0.0.1", metavar="H", help="the address to listen on (127.0.0.1)")
    parser.add_argument(
        "--port", type=_port, default=8765, metavar="N", help="a port, or 0 for any free one (8765)"
    )
    parser.add_argument(
        "-m",
        "--model",
        nargs="+",
        action="extend",
        metavar="NAME|DIR",
        help="models to choose from; the first is the default",
    )
    parser.add_argument("--style", metavar="S", help="the convention that all models align by")
    parser.add_argument("--device", default="cpu", metavar="D", help="cpu, cuda, cuda:1, mps ... (cpu)")
    parser.add_argument(
        "--allow-host",
        nargs="+",
        action="extend",
        default=[],
        metavar="NAME",
        help="names under which clients reach this server, besides localhost and --host; * for any",
    )
    parser.add_argument("--token-file", metavar="FILE", help="answer only requests with the token in this file")
    parser.add_argument(
        "--rate", type=_rate, default=0.0, metavar="N", help="requests per second of a client (no limit)"
    )
    for name, about in LIMITS.items():
        usual = int(vars(Limits())[name])
        parser.add_argument(
            f"--max-{name}", type=at_least_one, default=usual, metavar="N", help=f"{about} ({usual})"
        )
    parser.add_argument("--as-worker", metavar="STAMP", help=argparse.SUPPRESS)  # see serve/worker.py


def _port(text: str) -> int:
    if not (text.isdecimal() and int(text) <= 65535):
        raise argparse.ArgumentTypeError(f"{text!r} is not a port: 1 to 65535, or 0 for any that is free")
    return int(text)


def _rate(text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = -1.0
    if not 0 < rate < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return rate


def run(arguments: argparse.Namespace) -> int:
    limits = Limits(**{name: vars(arguments)[f"max_{name}"] for name in LIMITS})
    if arguments.as_worker is None:
        return serve(arguments, limits)
    from ..serve import worker

    if arguments.as_worker != _stamp(arguments.model):
        raise ConfigError("a model's files have changed since the server started: start it again")
    worker.run(_loaded(arguments.model, arguments.device, arguments.style), limits)
    return 0


def serve(arguments: argparse.Namespace, limits: Limits) -> int:
    """Serve until SIGINT or SIGTERM; return the exit code."""
    missing = [name for name in ("starlette", "uvicorn") if importlib.util.find_spec(name) is None]
    if missing:
        raise ConfigError(f"serving needs {' and '.join(missing)}: pip install 'jacana-torch[serve]'")
    from ..serve.access import Access, allowed_hosts, read_token
    from ..serve.app import application
    from ..serve.server import address, is_private, listening, server, url

    token = None if arguments.token_file is None else read_token(arguments.token_file)
    host = arguments.host
    hosts = allowed_hosts(host, arguments.allow_host)
    with listening(host, arguments.port) as listener:  # before the models: they take longer
        chosen = arguments.model or _usable()
        stamp = _stamp(chosen)
        loaded = _loaded(chosen, arguments.device, arguments.style)
        access = Access(hosts | allowed_hosts(address(listener)), token, arguments.rate)
        app = application(loaded, limits, access, _worker(chosen, arguments, limits, stamp))
        if not is_private(listener):
            _warn_of_networks(host, token is not None)
        gc.freeze()
        gc.set_threshold(*COLLECTED)
        where = url(listener)
        note(f"{', '.join(loaded.names)} at {where} (API: {where}docs; Ctrl-C stops)")
        sys.stderr.flush()
        server(app, limits).run(sockets=[listener])
    return 0


def _warn_of_networks(host: str, secret: bool) -> None:
    who = "everyone who has the token and" if secret else "anyone who"
    sys.stderr.write(
        f"jacana-torch: {host} is not this machine alone: {who} can reach it can use this server, "
        "and nothing is encrypted\n"
    )


def _worker(models: Sequence[str], arguments: argparse.Namespace, limits: Limits, stamp: str) -> list[str]:
    """Return the command of the process that answers heavy requests."""
    command = [sys.executable, "-m", "jacana_torch", "serve", "--model", *models, "--device", arguments.device]
    if arguments.style is not None:
        command += ["--style", arguments.style]
    for name in LIMITS:
        command += [f"--max-{name}", str(vars(limits)[name])]
    return [*command, "--as-worker", stamp]


def _stamp(models: Sequence[str]) -> str:
    """Sum up the state of the models' files: both processes have to load the same."""
    from ..model import persist, untrained

    known = hashlib.sha256()
    for name in models:
        place = untrained.path_of(name) or persist.locate(name)
        for path in sorted(place.iterdir()) if place.is_dir() else [place]:
            about = path.stat() if path.exists() else None
            known.update(repr((name, path.name, about and (about.st_size, about.st_mtime_ns))).encode())
    return known.hexdigest()[:16]


def _usable() -> list[str]:
    """Return the shipped models whose resources are installed, the best first."""
    from .. import resources
    from ..model import persist

    shipped = persist.shipped()
    usable = [info.name for info in shipped if all(map(resources.available, info.resources))]
    if not usable:
        persist.best_available()  # raises an error that names what is missing
        raise MissingResource("no model can run here: jacana-torch models lists what they need")
    for info in shipped:
        if info.name not in usable:
            lacking = " ".join(name for name in info.resources if not resources.available(name))
            note(f"no model {info.name} (jacana-torch resources install {lacking})")
    return usable


def _loaded(wanted: Sequence[str], device: str, style: str | None) -> Models:
    from ..model import persist, untrained
    from ..serve.work import Models
    from .loading import Aligning

    loaded, about = {}, {}
    for given in wanted:
        name = given if given in persist.names() or untrained.path_of(given) else Path(given).resolve().name
        if name in loaded:
            raise ConfigError(f"two models are called {name}: name only one, or rename a directory")
        model = Aligning(given, device, style=style).model
        model.check()
        loaded[name] = model
        about[name] = _description(given)
    return Models(loaded, about)


def _description(given: str) -> str:
    from ..model import persist, untrained

    if given in persist.names() or Path(given).is_dir():
        return str(persist.read_config(persist.locate(given)).get("description", ""))
    return untrained.description(given)
