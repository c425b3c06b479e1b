"""`jacana-torch serve`: models and an address in; a page and an API until it is told to stop, then exit code 0."""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import ConfigError, MissingResource
from ..serve import Limits

if TYPE_CHECKING:
    from ..serve.work import Models

EXAMPLES = """
examples:
  jacana-torch serve                                 a page at http://127.0.0.1:8765/, and its API at /docs
  jacana-torch serve --model standard sultan runs/msr/model --port 0
  curl -s localhost:8765/align -H 'Content-Type: application/json' \\
    -d '{"source": "The dog sleeps.", "target": "A dog is asleep."}'

Without --model, all shipped models whose resources are here. SIGTERM and Ctrl-C stop it: what was asked by then is
answered. Whoever reaches the address may use it, so others than 127.0.0.1 are for trusted networks."""

LIMITS = {
    "tokens": "tokens of a sentence",
    "pairs": "pairs of a request",
    "body": "bytes of a request",
    "queue": "pairs that wait",
    "seconds": "seconds until an answer",
    "patience": "seconds that a client may take to send a request, or to take an answer",
}


def add_options(serve: argparse.ArgumentParser) -> None:
    """What may be said on the command line."""
    serve.add_argument("--host", default="127.0.0.1", metavar="H", help="the address to listen at (127.0.0.1)")
    serve.add_argument("--port", type=_port, default=8765, metavar="N", help="0 for any that is free (8765)")
    serve.add_argument(
        "--model", nargs="+", metavar="NAME|DIR", help="models to choose from, the first unless told otherwise"
    )
    serve.add_argument("--device", default="cpu", metavar="D", help="cpu, cuda, cuda:1, mps ... (cpu)")
    for name, about in LIMITS.items():
        usual = int(getattr(Limits, name))
        serve.add_argument(f"--max-{name}", type=_above_0, default=usual, metavar="N", help=f"{about} ({usual})")


def _port(text: str) -> int:
    if not (text.isdecimal() and int(text) <= 65535):
        raise argparse.ArgumentTypeError(f"{text!r} is not a port: 1 to 65535, or 0 for any that is free")
    return int(text)


def _above_0(text: str) -> int:
    if not (text.isdecimal() and int(text)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def run(arguments: argparse.Namespace) -> int:
    """The command."""
    limits = Limits(**{name: getattr(arguments, f"max_{name}") for name in LIMITS})
    return serve(arguments.host, arguments.port, arguments.model, limits, arguments.device)


def serve(host: str, port: int, models: Sequence[str] | None, limits: Limits, device: str = "cpu") -> int:
    """Serve until SIGINT or SIGTERM."""
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
                f"jacana-torch: {host} is not this machine alone: whoever reaches it may use this server, and "
                "nothing is encrypted\n"
            )
        where = url(listener)
        sys.stderr.write(f"jacana-torch: {', '.join(loaded.names)} at {where} (API: {where}docs; Ctrl-C stops)\n")
        sys.stderr.flush()
        server(app, limits).run(sockets=[listener])
    return 0


def _usable() -> list[str]:
    """The shipped models whose resources are here, the best first."""
    from .. import resources
    from ..model import persist

    shipped = persist.shipped()
    usable = [info.name for info in shipped if all(map(resources.available, info.resources))]
    if not usable:
        persist.best_available()  # says what is missing
        raise MissingResource("no model can be used here: jacana-torch models says what they need")
    for info in shipped:
        if info.name not in usable:
            lacking = " ".join(name for name in info.resources if not resources.available(name))
            sys.stderr.write(f"jacana-torch: no model {info.name} (jacana-torch resources install {lacking})\n")
    return usable


def _loaded(wanted: Sequence[str], device: str) -> Models:
    from ..model import persist
    from ..model import untrained as systems
    from ..serve.work import Models
    from .align import Aligning

    loaded, about = {}, {}
    for given in wanted:
        name = given if given in persist.names() or systems.path_of(given) else Path(given).resolve().name
        if name in loaded:
            raise ConfigError(f"two models are called {name}: name one of them, or rename a directory")
        model = Aligning(given, device).model
        model.check()
        loaded[name] = model
        about[name] = _description(given)
    return Models(loaded, about)


def _description(given: str) -> str:
    from ..model import persist
    from ..model import untrained as systems

    if given in persist.names() or Path(given).is_dir():
        return str(persist.read_config(persist.locate(given)).get("description", ""))
    return systems.description(given)
