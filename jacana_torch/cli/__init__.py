"""The command line: each command is a module of this package, which owns its options, examples and function.

Data goes to stdout, messages go to stderr. A user's mistake is one line on stderr and exit code 2; an interrupt is
130, a closed output pipe 141. SIGTERM ends a process after what is unfinished was removed. The module of a command
is imported only if the command is called.
"""

from __future__ import annotations

import argparse
import importlib
import io
import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import filterfalse
from typing import TYPE_CHECKING, Protocol, cast

from ..errors import JacanaError

USER_ERROR, INTERRUPTED, READER_GONE = 2, 130, 141
LONGEST_MESSAGE = 2000
quiet = False  # whether the running command leaves out its notes

# Modules of this package, in the order of --help.
COMMANDS = (
    "align", "diff", "coverage", "project", "evaluate", "convert", "count", "annotate", "train", "compare",
    "serve", "explain", "view", "models", "resources", "completion",
)  # fmt: skip
PASSED_ON = ("train", "compare")  # what follows belongs to Hydra: argparse would take -m and --cfg for its own

VERBOSE, QUIET = ("-v", "--verbose"), ("-q", "--quiet")  # of every command, before its name or after it

# Help of --header and --no-header.
HEADER = "whether the first line names columns instead of holding a pair (its words decide)"

if TYPE_CHECKING:
    from typing_extensions import Buffer

    class Command(Protocol):
        """What the module of a command defines; it imports nothing heavy before `run`."""

        ABOUT: str  # a sentence
        EXAMPLES: str

        def add_options(self, parser: argparse.ArgumentParser, /) -> None: ...

        def run(self, arguments: argparse.Namespace, /) -> int:
            """Do the work; return the exit code."""
            ...


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; return the exit code."""
    argv = list(sys.argv[1:] if argv is None else argv)
    try:
        if sys.stdin is None or sys.stdout is None or sys.stderr is None:
            from .closed_streams import reopen

            reopen()
        if sys.stderr is sys.__stderr__ and isinstance(sys.stderr, io.TextIOWrapper):
            sys.stderr = io.TextIOWrapper(_Messages(sys.stderr.fileno(), "w", closefd=False), write_through=True)
        for stream, errors in ((sys.stdout, "strict"), (sys.stderr, "backslashreplace")):
            if isinstance(stream, io.TextIOWrapper):  # programs read it: UTF-8 and \n in every locale
                stream.reconfigure(encoding="utf-8", errors=errors, newline="\n")
        with ending_on_sigterm(by_signal=True):
            code = _run(argv)
        sys.stdout.flush()  # notice a closed pipe here, not when the interpreter shuts down
        return code
    except BrokenPipeError:
        # The rest of the buffer has no reader; without this, the interpreter complains when it shuts down.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return READER_GONE
    except KeyboardInterrupt:
        return _failed("interrupted", INTERRUPTED)
    except JacanaError as error:
        return _failed(f"error: {error}", USER_ERROR)
    except MemoryError as error:
        return _failed(f"error: out of memory ({error}): split long texts", USER_ERROR)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return _failed(f"error: {where}{error.strerror or error}", USER_ERROR)


@contextmanager
def ending_on_sigterm(by_signal: bool = False) -> Iterator[None]:
    """Let SIGTERM unwind, so that nothing unfinished is left and no child goes on; then end with exit code 143.

    With `by_signal`, the process ends by the signal, as it does by default, and a handler that somebody else has
    set stays. A second SIGTERM does not wait for unwinding.
    """
    before = signal.getsignal(signal.SIGTERM)
    ours = threading.current_thread() is threading.main_thread()  # others get no signals
    if not ours or (by_signal and before is not signal.SIG_DFL):
        yield
        return
    came = []

    def end(number: int, frame: object) -> None:
        came.append(number)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        sys.exit(128 + number)

    signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
        if came and by_signal:
            os.kill(os.getpid(), signal.SIGTERM)


class _Messages(io.FileIO):
    """The end of stderr. If nobody can read them, messages are lost; the data are not."""

    def write(self, data: Buffer, /) -> int:
        try:
            return super().write(data)
        except OSError:
            return memoryview(data).nbytes


def _run(argv: list[str]) -> int:
    global quiet
    rest, said = argv, list[str]()
    while rest and rest[0] in (*VERBOSE, *QUIET):
        said, rest = [*said, rest[0]], rest[1:]
    if rest and rest[0] in PASSED_ON and {"-h", "--help"}.isdisjoint(rest):
        quiet = not {*QUIET}.isdisjoint(argv)
        own = list(filterfalse((*VERBOSE, *QUIET).__contains__, rest[1:]))
        return command(rest[0]).run(argparse.Namespace(overrides=own))
    from .parser import build_parser, command_parser

    if not rest or rest[0] not in COMMANDS:
        parser = build_parser()
        if not rest:
            parser.print_help(sys.stderr)
            return USER_ERROR
        parser.parse_args(rest)  # --help, --version or a mistake
        parser.error(f"{rest[0]}: the name of a command comes first")
    arguments = command_parser(rest[0]).parse_args([*said, *rest[1:]])
    quiet = arguments.quiet
    level = logging.INFO if arguments.verbose else logging.WARNING
    logging.basicConfig(level=level, format="jacana-torch: %(message)s", stream=sys.stderr)
    return command(rest[0]).run(arguments)


def command(name: str) -> Command:
    return cast("Command", importlib.import_module(f"{__name__}.{name}"))


def note(text: str) -> None:
    """Tell the user on stderr what is done; not with --quiet, which leaves warnings and errors."""
    if not quiet:
        sys.stderr.write(f"jacana-torch: {presentable(text)}\n")


def at_least_one(text: str) -> int:
    """Parse the value of an option that takes a whole number above 0."""
    if not (text.isdecimal() and int(text)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def two_names(text: str) -> tuple[str, str]:
    """Parse the value of --columns: two names, quoted as in CSV if they have commas."""
    import csv

    try:
        names = next(csv.reader([text]), [])
    except csv.Error:
        names = []
    if len(names) != 2 or names[0] == names[1] or not all(names):
        raise argparse.ArgumentTypeError(f"{text!r}: give two names, as in premise,hypothesis")
    return names[0], names[1]


def presentable(message: str, longest: int = LONGEST_MESSAGE) -> str:
    """Escape the control characters of a message for a terminal, and cut it if it is too long."""
    clean = "".join(c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode() for c in message)
    return clean if len(clean) <= longest else f"{clean[: longest - 20]} ... ({len(clean)} characters)"


def _failed(message: str, code: int) -> int:
    try:
        sys.stdout.flush()  # everything before the mistake is good
    except (OSError, ValueError):
        pass
    sys.stderr.write(f"jacana-torch: {presentable(message)}\n")
    return code
