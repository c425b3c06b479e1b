"""Parsers of the command line. A mistake shows the usage of its command, and the name that was probably meant."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NoReturn

from ..errors import did_you_mean
from ..version import __version__
from . import COMMANDS, QUIET, VERBOSE, command, presentable

EXAMPLES = """
examples:
  printf 'The cat sat down .\\tA cat was sitting .\\n' | jacana-torch align
  jacana-torch evaluate gold.jsonl predicted.txt
  jacana-torch resources
  jacana-torch COMMAND --help"""


class Parser(argparse.ArgumentParser):
    """Names what was probably meant instead of an unknown option or value."""

    given: Sequence[str] = ()

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        self.given = sys.argv[1:] if args is None else args
        self.values: dict[str, Any] = {}
        return super().parse_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        super().error(presentable(self._unknown() or message))

    def _unknown(self) -> str | None:
        """Say which option there is not. argparse may complain first of what is missing because of it."""
        known = self._option_string_actions
        for word in self.given:
            if word == "--":
                break
            name = word.partition("=")[0]
            if re.match(r"--\w", name) and not any(option.startswith(name) for option in known):
                return f"there is no option {name}{did_you_mean(name, known, listed=False)}"
        return None

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        what = "there is no command" if isinstance(action, argparse._SubParsersAction) else "it cannot be"
        instead = did_you_mean(value, map(str, action.choices))
        raise argparse.ArgumentError(action, f"{what} {value!r}{instead}")


class Once(argparse._StoreAction):
    """Stores the value of an option, and refuses a second one, which argparse takes in silence."""

    def __call__(self, parser: Any, namespace: argparse.Namespace, values: Any, option: str | None = None) -> None:
        if option and parser.values.setdefault(self.dest, values) != values:
            raise argparse.ArgumentError(self, f"it is given twice, as {parser.values[self.dest]} and as {values}")
        super().__call__(parser, namespace, values, option)


class Help(argparse.RawDescriptionHelpFormatter):
    """Fills in the names of formats and symmetrizers, which only --help has to look up."""

    def _get_help_string(self, action: argparse.Action) -> str:
        text = action.help or ""
        for name in named(text):
            text = text.replace(name, ", ".join(LISTS[name]()))
        return text


def named(text: str) -> list[str]:
    """Return the lists that a help text refers to."""
    return [name for name in LISTS if name in text]


def _formats(able: str | None = None) -> Sequence[str]:
    from .. import corpora

    return corpora.formats() if able is None else corpora.formats(vars(corpora)[able])


def _symmetrizers() -> Sequence[str]:
    from ..symmetrize import names

    return [name.replace("_", "-") for name in names()]


# What help texts and the completion of shells list.
LISTS: dict[str, Callable[[], Sequence[str]]] = {
    "{formats}": _formats,
    "{read}": lambda: _formats("can_read"),
    "{written}": lambda: _formats("can_write"),
    "{aligned}": lambda: _formats("can_align"),
    "{symmetrizers}": cache(_symmetrizers),
}


def build_parser() -> Parser:
    """Build the parser of what stands before a command; it knows the commands by name alone."""
    parser = Parser(
        prog="jacana-torch",
        description="Align the words of two English sentences.",
        epilog=EXAMPLES.strip("\n"),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("-V", "--version", action="version", version=f"jacana-torch {__version__}")
    _add_messages(parser)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name in COMMANDS:
        about = command(name).ABOUT
        commands.add_parser(name, help=about[0].lower() + about[1:].rstrip("."), add_help=False)
    return parser


def command_parser(name: str) -> Parser:
    """Build the parser of what follows a command."""
    module = command(name)
    parser = Parser(
        prog=f"jacana-torch {name}",
        description=module.ABOUT,
        epilog=module.EXAMPLES.strip("\n"),
        formatter_class=Help,
    )
    parser.register("action", None, Once)
    module.add_options(parser)
    _add_messages(parser)
    return parser


def _add_messages(parser: argparse.ArgumentParser) -> None:
    group = parser.add_mutually_exclusive_group()
    group.add_argument(*VERBOSE, action="store_true", help="say more on stderr")
    group.add_argument(*QUIET, action="store_true", help="say only what went wrong")
