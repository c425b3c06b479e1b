"""`jacana-torch resources`: list linguistic data, or install it."""

from __future__ import annotations

import argparse
import json
import sys

from ..errors import ConfigError
from . import ending_on_sigterm, note

ABOUT = "List linguistic data, or install it."
EXAMPLES = """
examples:
  jacana-torch resources                             what is here, what is missing, what needs it
  jacana-torch resources --json | jq -r '.[] | select(.path) | .name'
  jacana-torch resources install wordnet tagger
  jacana-torch resources install                     all except the very large ones"""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", nargs="?", choices=("install",), help="install missing data")
    parser.add_argument("names", nargs="*", metavar="NAME", help="which data (all except the very large)")
    parser.add_argument("--json", action="store_true", help="list them as JSON")


def run(arguments: argparse.Namespace) -> int:
    from .. import resources

    if arguments.action is None:
        if arguments.json:
            rows = [{**vars(row), "path": row.path and str(row.path)} for row in resources.status()]
            sys.stdout.write(f"{json.dumps(rows, ensure_ascii=False, indent=1)}\n")
        else:
            sys.stdout.write(f"{resources.format_status()}\n")
        return 0
    if arguments.json:
        raise ConfigError("--json lists resources, and goes without `install`")
    with ending_on_sigterm():
        resources.install(arguments.names, progress=not arguments.quiet)
    for row in resources.status():
        if row.found and (row.name in arguments.names or not arguments.names):
            note(f"{row.name} is at {row.path}")
    return 0
