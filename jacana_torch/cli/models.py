"""`jacana-torch models`: list the shipped models and those that need no training."""

from __future__ import annotations

import argparse
import sys

ABOUT = "List the models that come with this package."
EXAMPLES = """
examples:
  jacana-torch models"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """This command has no options."""


def run(arguments: argparse.Namespace) -> int:
    from .. import resources
    from ..errors import JacanaError
    from ..model import persist

    shipped = persist.shipped()
    if not shipped:
        raise JacanaError("this installation has no models: name a directory with --model, or train a model")
    for model in [*shipped, *persist.untrained()]:
        missing = [name for name in model.resources if not resources.available(name)]
        lines = [model.name, f"  {model.description}", f"  needs: {', '.join(model.resources) or 'nothing'}"]
        if missing:
            lines.append(f"  missing: {', '.join(missing)}; jacana-torch resources install {' '.join(missing)}")
        lines.append(f"  at: {model.path} ({f'{model.size / 1e6:.1f} MB' if model.size else 'nothing to train'})")
        sys.stdout.write("\n".join([*lines, ""]))
    return 0
