"""`jacana-torch diff`: what changed between two texts, by words and their meaning; also for `git difftool`."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from ..errors import ConfigError

DIFFERENT = 1  # the exit code of --exit-code
FROM_GIT = 3  # lines of context, as git has them
FORMATS = ("text", "unified", "html", "json", "m2")
ABOUT = "Show what changed between two texts: words kept, moved, replaced, inserted and deleted."
EXAMPLES = """
examples:
  jacana-torch diff old.txt new.txt
  jacana-torch diff old.txt new.txt --format html --output changes.html
  jacana-torch diff old.txt new.txt --json | jq '.changes'
  jacana-torch diff old.md new.md --context 2
  git difftool -y -x 'jacana-torch diff' HEAD~1 -- README.md
  git -c diff.external='jacana-torch diff' diff -- README.md

A replaced word is shown as [-old-]{+new+}, what was inserted as {+new+}, what was deleted as [-old-], and what
moved as {>words>} where it is now. Sentences are paired first: one may become two, move, or have no counterpart.
The exit code is 0; with --exit-code, it is 1 if the texts differ."""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files", nargs="+", metavar="FILE", help="two texts, - for stdin (or the seven arguments that git gives)"
    )
    parser.add_argument(
        "-m", "--model", metavar="NAME|DIR", help="a model of `jacana-torch models`, or a directory"
    )
    parser.add_argument("--style", metavar="S", help="the convention to align by, of a model that has several")
    parser.add_argument("--format", choices=FORMATS, default="text", help="(text)")
    parser.add_argument("--json", action="store_const", const="json", dest="format", help="--format json")
    parser.add_argument("--html", action="store_const", const="html", dest="format", help="--format html")
    parser.add_argument("--case", action="store_true", help="words that differ in case alone are changes")
    parser.add_argument("--space", action="store_true", help="so is another space between words that are kept")
    parser.add_argument(
        "--color",
        choices=("auto", "always", "never"),
        default="auto",
        help="(auto: on a terminal and git's pager)",
    )
    parser.add_argument(
        "--context", type=_lines, metavar="N", help="lines around changes, as text (all; from git, 3)"
    )
    parser.add_argument("--exit-code", action="store_true", help="exit with 1 if the texts differ")
    parser.add_argument("-o", "--output", metavar="FILE", help="a file, written completely or not at all (stdout)")


def run(arguments: argparse.Namespace) -> int:
    if arguments.context is not None and arguments.format != "text":
        raise ConfigError(f"--context counts lines of --format text, not of {arguments.format}")
    old, new, title = _files(arguments.files)
    texts = _read(old), _read(new)
    from ..differences import diff
    from .loading import chosen

    found = diff(*texts, chosen(arguments.model, arguments.style), case=arguments.case, space=arguments.space)
    color = arguments.color == "always" or (arguments.color == "auto" and not arguments.output and _on_terminal())
    if arguments.format == "json":
        text = json.dumps(found.to_dict(), ensure_ascii=False, allow_nan=False) + "\n"
    elif arguments.format == "html":
        text = found.to_html(title)
    elif arguments.format == "m2":
        text = found.to_m2()
    else:
        from_git = len(arguments.files) == 7
        context = arguments.context if arguments.context is not None or not from_git else FROM_GIT
        text = found.to_text(color, context) if arguments.format == "text" else found.to_unified(color)
        if arguments.format == "text" and from_git:
            text = f"{title}\n{text}"
        text = text if not text or text.endswith("\n") else f"{text}\n"
    if arguments.output:
        from ..corpora import write_chunks

        write_chunks([text], Path(arguments.output).expanduser())
    else:
        sys.stdout.write(text)
    return DIFFERENT if arguments.exit_code and found else 0


def _lines(text: str) -> int:
    value = int(text) if text.isdecimal() and len(text) < 10 else -1
    if value < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0")
    return value


def _files(given: list[str]) -> tuple[str, str, str]:
    """The old and the new file, and a title. git gives path, old file, hash, mode, new file, hash, mode."""
    from .texts import readable

    if len(given) == 7:
        return given[1], given[4], readable(given[0])
    if len(given) != 2:
        raise ConfigError(f"diff takes two files, not {len(given)}")
    if given == ["-", "-"]:
        raise ConfigError("only one of the two texts can come from stdin")
    return given[0], given[1], readable(f"{given[0]} → {given[1]}")


def _read(name: str) -> str:
    if name in (os.devnull, "/dev/null"):
        return ""
    from .texts import read_text

    return read_text(name)


def _on_terminal() -> bool:
    if os.environ.get("NO_COLOR"):
        return False
    return sys.stdout.isatty() or os.environ.get("GIT_PAGER_IN_USE") in ("1", "true")
