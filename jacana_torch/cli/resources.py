"""`jacana-torch resources`: list linguistic data, or install it."""

from __future__ import annotations

import argparse
import sys

from . import ending_on_sigterm

ABOUT = "List linguistic data, or install it."
EXAMPLES = """
examples:
  jacana-torch resources                             what is here, what is missing, what needs it
  jacana-torch resources install wordnet tagger
  jacana-torch resources install                     all except the very large ones"""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", nargs="?", choices=("install",), help="install missing data")
    parser.add_argument("names", nargs="*", metavar="NAME", help="which data (all except the very large)")


def run(arguments: argparse.Namespace) -> int:
    from .. import resources

    if arguments.action is None:
        sys.stdout.write(f"{resources.format_status()}\n")
        return 0
    with ending_on_sigterm():
        resources.install(arguments.names)
    for row in resources.status():
        if row.found and (row.name in arguments.names or not arguments.names):
            sys.stderr.write(f"jacana-torch: {row.name} is at {row.path}\n")
    return 0
