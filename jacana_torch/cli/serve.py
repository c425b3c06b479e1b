"""`jacana-torch serve`: serve a page and an API until SIGINT or SIGTERM, then exit with code 0."""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import ConfigError, MissingResource
from ..serve import Limits
from . import at_least_one

if TYPE_CHECKING:
    from ..serve.work import Models

ABOUT = "Serve a page and an API that align and explain."
EXAMPLES = """
examples:
  jacana-torch serve                                 a page at http://127.0.0.1:8765/, and its API at /docs
  jacana-torch serve --model standard sultan runs/msr/model --port 0
  curl -s localhost:8765/align -H 'Content-Type: application/json' \\
    -d '{"source": "The dog sleeps.", "target": "A dog is asleep."}'

Without --model, it serves all shipped models whose resources are installed. SIGTERM and Ctrl-C stop it after the
requests that it has accepted. Anyone who can reach the address can use it: on networks that you do not trust, keep
127.0.0.1."""

LIMITS = {
    "tokens": "tokens per sentence",
    "pairs": "pairs per request",
    "body": "bytes per request",
    "queue": "pairs that may wait",
    "seconds": "seconds until a response",
    "patience": "seconds that a client may take to send a request, or to read its response",
}


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", default="127.0.0.1", metavar="H", help="the address to listen on (127.0.0.1)")
    parser.add_argument(
        "--port", type=_port, default=8765, metavar="N", help="a port, or 0 for any free one (8765)"
    )
    parser.add_argument(
        "--model", nargs="+", metavar="NAME|DIR", help="models to choose from; the first is the default"
    )
    parser.add_argument("--device", default="cpu", metavar="D", help="cpu, cuda, cuda:1, mps ... (cpu)")
    for name, about in LIMITS.items():
        usual = int(vars(Limits())[name])
        parser.add_argument(
            f"--max-{name}", type=at_least_one, default=usual, metavar="N", help=f"{about} ({usual})"
        )


def _port(text: str) -> int:
    if not (text.isdecimal() and int(text) <= 65535):
        raise argparse.ArgumentTypeError(f"{text!r} is not a port: 1 to 65535, or 0 for any that is free")
    return int(text)


def run(arguments: argparse.Namespace) -> int:
    limits = Limits(**{name: vars(arguments)[f"max_{name}"] for name in LIMITS})
    return serve(arguments.host, arguments.port, arguments.model, limits, arguments.device)


def serve(host: str, port: int, models: Sequence[str] | None, limits: Limits, device: str = "cpu") -> int:
    """Serve until SIGINT or SIGTERM; return the exit code."""
    missing = [name for name in ("starlette", "uvicorn") if importlib.util.find_spec(name) is None]
    if missing:
        raise ConfigError(f"serving needs {' and '.join(missing)}: pip install 'jacana-torch[serve]'")
    from ..serve.app import application
    from ..serve.server import is_private, listening, server, url

    with listening(host, port) as listener:  # before the models: they take longer
        loaded = _loaded(models or _usable(), device)
        app = application(loaded, limits)
        if not is_private(listener):
            sys.stderr.write(
                f"jacana-torch: {host} is not this machine alone: anyone who can reach it can use this server, "
                "and nothing is encrypted\n"
            )
        where = url(listener)
        sys.stderr.write(f"jacana-torch: {', '.join(loaded.names)} at {where} (API: {where}docs; Ctrl-C stops)\n")
        sys.stderr.flush()
        server(app, limits).run(sockets=[listener])
    return 0


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
            sys.stderr.write(f"jacana-torch: no model {info.name} (jacana-torch resources install {lacking})\n")
    return usable


def _loaded(wanted: Sequence[str], device: str) -> Models:
    from ..model import persist, untrained
    from ..serve.work import Models
    from .loading import Aligning

    loaded, about = {}, {}
    for given in wanted:
        name = given if given in persist.names() or untrained.path_of(given) else Path(given).resolve().name
        if name in loaded:
            raise ConfigError(f"two models are called {name}: name only one, or rename a directory")
        model = Aligning(given, device).model
        model.check()
        loaded[name] = model
        about[name] = _description(given)
    return Models(loaded, about)


def _description(given: str) -> str:
    from ..model import persist, untrained

    if given in persist.names() or Path(given).is_dir():
        return str(persist.read_config(persist.locate(given)).get("description", ""))
    return untrained.description(given)
