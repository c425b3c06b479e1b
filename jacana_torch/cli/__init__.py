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
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol, cast

from ..errors import JacanaError
from ..version import __version__

USER_ERROR, INTERRUPTED, READER_GONE = 2, 130, 141
LONGEST_MESSAGE = 2000

# Modules of this package, in the order of --help.
COMMANDS = (
    "align", "evaluate", "convert", "count", "train", "compare", "serve", "explain", "view", "models", "resources"
)  # fmt: skip
PASSED_ON = ("train", "compare")  # what follows belongs to Hydra: argparse would take -m and --cfg for its own

EXAMPLES = """
examples:
  printf 'The cat sat down .\\tA cat was sitting .\\n' | jacana-torch align
  jacana-torch evaluate gold.jsonl predicted.txt
  jacana-torch resources
  jacana-torch COMMAND --help"""

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
        _prepare_streams()
        with _cleaning_up_on_sigterm():
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


class _Terminated(BaseException):
    """SIGTERM has come: remove what is unfinished, stop workers, and end."""


@contextmanager
def _cleaning_up_on_sigterm() -> Iterator[None]:
    """Let SIGTERM end the process as it does by default, but unwind first. A second one does not wait for that."""
    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    except _Terminated:
        os.kill(os.getpid(), signal.SIGTERM)  # by default again
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _terminate(number: int, frame: object) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    raise _Terminated


def _prepare_streams() -> None:
    if sys.stdin is None or sys.stdout is None or sys.stderr is None:
        from .closed_streams import reopen

        reopen()
    if sys.stderr is sys.__stderr__ and isinstance(sys.stderr, io.TextIOWrapper):
        sys.stderr = io.TextIOWrapper(_Messages(sys.stderr.fileno(), "w", closefd=False), write_through=True)
    for stream, errors in ((sys.stdout, "strict"), (sys.stderr, "backslashreplace")):
        if isinstance(stream, io.TextIOWrapper):  # programs read it: UTF-8 and \n in every locale
            stream.reconfigure(encoding="utf-8", errors=errors, newline="\n")


class _Messages(io.FileIO):
    """The end of stderr. If nobody can read them, messages are lost; the data are not."""

    def write(self, data: Buffer, /) -> int:
        try:
            return super().write(data)
        except OSError:
            return memoryview(data).nbytes


def _run(argv: list[str]) -> int:
    if argv[:1] and argv[0] in PASSED_ON and not {"-h", "--help"} & set(argv[1:]):
        return command(argv[0]).run(argparse.Namespace(overrides=argv[1:]))
    rest = argv[1:] if argv[:1] in (["-v"], ["--verbose"]) else argv
    parser = build_parser(rest[:1] if rest and rest[0] in COMMANDS else COMMANDS)
    arguments = parser.parse_args(argv)
    if arguments.command is None:
        parser.print_help(sys.stderr)
        return USER_ERROR
    level = logging.INFO if arguments.verbose else logging.WARNING
    logging.basicConfig(level=level, format="jacana-torch: %(message)s", stream=sys.stderr)
    return command(arguments.command).run(arguments)


@contextmanager
def ending_on_sigterm() -> Iterator[None]:
    """Turn SIGTERM into SystemExit, so that nothing unfinished is left and no child goes on."""

    if threading.current_thread() is not threading.main_thread():  # others get no signals
        yield
        return

    def end(number: int, frame: object) -> None:
        sys.exit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def command(name: str) -> Command:
    return cast("Command", importlib.import_module(f"{__name__}.{name}"))


def build_parser(names: Sequence[str]) -> argparse.ArgumentParser:
    """Build the parser of these commands."""
    parser = argparse.ArgumentParser(
        prog="jacana-torch",
        description="Align the words of two English sentences.",
        epilog=EXAMPLES.strip("\n"),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"jacana-torch {__version__}")
    parser.add_argument("-v", "--verbose", action="store_true", help="say more on stderr")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name in names:
        module = command(name)
        added = commands.add_parser(
            name,
            help=module.ABOUT[0].lower() + module.ABOUT[1:].rstrip("."),
            description=module.ABOUT,
            epilog=module.EXAMPLES.strip("\n"),
            formatter_class=Help,
        )
        module.add_options(added)
    return parser


class Help(argparse.RawDescriptionHelpFormatter):
    """Fills in the names of formats and symmetrizers, which only --help has to look up."""

    def _get_help_string(self, action: argparse.Action) -> str:
        from ..corpora import can_align, can_read, can_write, formats
        from ..symmetrize import names

        text = action.help or ""
        lists: dict[str, Callable[[], Sequence[str]]] = {
            "{formats}": formats,
            "{read}": lambda: formats(can_read),
            "{written}": lambda: formats(can_write),
            "{aligned}": lambda: formats(can_align),
            "{symmetrizers}": lambda: [name.replace("_", "-") for name in names()],
        }
        for name, known in lists.items():
            text = text.replace(name, ", ".join(known())) if name in text else text
        return text


def at_least_one(text: str) -> int:
    """Parse the value of an option that takes a whole number above 0."""
    if not (text.isdecimal() and int(text)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


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
