"""`jacana-torch models`: list the shipped models and those that need no training, or show the card of one."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..model.info import ModelInfo

ABOUT = "List the models that come with this package, or show what is known of one."
EXAMPLES = """
examples:
  jacana-torch models
  jacana-torch models standard                       its card: data, scores, calibration, speed, limits, licence
  jacana-torch models --json | jq -r '.[] | select(.missing == []) | .name'
  jacana-torch models core --json | jq '.[0].card.out_of_domain'"""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("models", nargs="*", metavar="NAME", help="show the cards of these models")
    parser.add_argument("--json", action="store_true", help="write JSON: a list, with the cards of named models")


def run(arguments: argparse.Namespace) -> int:
    from ..errors import JacanaError, ModelError, did_you_mean
    from ..model import card, persist

    if not persist.names():
        raise JacanaError("this installation has no models: name a directory with --model, or train a model")
    every = {info.name: info for info in [*persist.shipped(), *persist.untrained()]}
    for name in arguments.models:
        if name not in every:
            raise ModelError(f"there is no model {name!r} in this package{did_you_mean(name, every)}")
    chosen = [every[name] for name in arguments.models or every]
    if arguments.json:
        records = []
        for info in chosen:
            records.append(_record(info))
            if arguments.models:
                records[-1]["card"] = card.read(info.path)
        sys.stdout.write(f"{json.dumps(records, ensure_ascii=False, indent=1)}\n")
    elif arguments.models:
        sys.stdout.write("\n\n".join(card.text(info, card.read(info.path)) for info in chosen) + "\n")
    else:
        for info in chosen:
            sys.stdout.write(_listed(info))
    return 0


def _missing(info: ModelInfo) -> list[str]:
    from .. import resources

    return [name for name in info.resources if not resources.available(name)]


def _listed(info: ModelInfo) -> str:
    lines = [info.name, f"  {info.description}", f"  needs: {', '.join(info.resources) or 'nothing'}"]
    if missing := _missing(info):
        lines.append(f"  missing: {', '.join(missing)}; jacana-torch resources install {' '.join(missing)}")
    lines.append(f"  at: {info.path} ({f'{info.size / 1e6:.1f} MB' if info.size else 'nothing to train'})")
    return "\n".join([*lines, ""])


def _record(info: ModelInfo) -> dict[str, Any]:
    return {
        "name": info.name,
        "description": info.description,
        "resources": list(info.resources),
        "missing": _missing(info),
        "path": str(info.path),
        "bytes": info.size,
        "trained": info.signature.get("trained"),
        "data": info.signature.get("data", []),
        "pairs": info.signature.get("pairs"),
        "styles": info.signature.get("styles", []),
    }
