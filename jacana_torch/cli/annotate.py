"""`jacana-torch annotate`: a page to correct links on, or the export of what was annotated."""

from __future__ import annotations

import argparse
import getpass
import importlib.util
import os
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from ..annotation import ORDERS
from ..errors import ConfigError, CorpusError
from . import HEADER, at_least_one, note
from .serve import _port, _warn_of_networks

if TYPE_CHECKING:
    from ..annotation.journal import Journal
    from ..annotation.session import Session
    from ..corpora._annotations import Annotations, Annotator
    from ..corpora.journal import Header
    from ..types import Example

ABOUT = "Correct links on a page, the least certain pairs first."
EXAMPLES = """
examples:
  jacana-torch annotate pairs.txt --model standard              a page at http://127.0.0.1:8765/
  jacana-torch annotate pairs.txt --annotator ann ben           two people; the page asks who you are
  jacana-torch annotate pairs.txt --compare                     where they disagree, to be decided
  jacana-torch annotate pairs.txt --export gold.jsonl           the accepted pairs, in any format with links
  jacana-torch train data.train=[$PWD/pairs.txt.journal]        train on them as they are
  jacana-torch annotate pairs.txt --retrain every=50            fit the model on what is accepted, every 50 pairs

FILE is never changed. Every change is on the disk before the page shows it, as a line of FILE.journal; killed at
any moment and started again, the command goes on where it was. Anyone who can reach the address can annotate,
unless there is a token: see serve."""
ADJUDICATOR = "adjudicator"
MANY = 1000  # pairs that take seconds to align


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="pairs to annotate, with links to correct or without")
    parser.add_argument(
        "-m", "--model", metavar="NAME|DIR", help="proposes links; none for no model (the best that can run)"
    )
    parser.add_argument(
        "--annotator",
        nargs="+",
        action="extend",
        metavar="NAME",
        help="who annotates; the page lets several choose (your login)",
    )
    parser.add_argument(
        "--order", choices=ORDERS, help="which pair comes next (confidence: most expected mistakes first)"
    )
    parser.add_argument(
        "--compare",
        nargs="*",
        action="extend",
        metavar="JOURNAL",
        help="show where annotators disagree, also those of other journals",
    )
    parser.add_argument("--export", metavar="OUT", help="write the accepted pairs and end; - is stdout")
    parser.add_argument("--to", metavar="F", help="format of exports: {aligned} (by the name of OUT, or jsonl)")
    parser.add_argument("--guidelines", metavar="TEXT", help="a text file that is shown beside the pairs")
    parser.add_argument(
        "--retrain", type=_every, metavar="every=N", help="fit the model anew after every N accepted pairs"
    )
    parser.add_argument("--journal", metavar="FILE", help="where changes are written (FILE.journal)")
    parser.add_argument("--from", dest="from_", metavar="F", help="format of FILE: {read} (guessed)")
    parser.add_argument("--header", action=argparse.BooleanOptionalAction, help=f"of FILE: {HEADER}")
    parser.add_argument("--host", default="127.0.0.1", metavar="H", help="the address to listen on (127.0.0.1)")
    parser.add_argument(
        "--port", type=_port, default=8765, metavar="N", help="a port, or 0 for any free one (8765)"
    )
    parser.add_argument(
        "--allow-host", nargs="+", action="extend", default=[], metavar="NAME", help="as for serve"
    )
    parser.add_argument("--token-file", metavar="FILE", help="answer only requests with the token in this file")


def _every(text: str) -> int:
    return at_least_one(text.removeprefix("every="))


def run(arguments: argparse.Namespace) -> int:
    from ..annotation.journal import ENDING, header_of
    from .texts import readable

    if arguments.file == "-":
        raise ConfigError("annotate needs a file: its journal is beside it")
    for name in arguments.annotator or ():
        _check_name(name)
    examples = _examples(arguments)
    header = header_of(readable(arguments.file), [example.pair for example in examples])
    path = Path(arguments.journal or arguments.file + ENDING)
    for option, place in (("--journal", path), ("--export", arguments.export)):
        if place not in (None, "-") and os.path.exists(place) and os.path.samefile(place, arguments.file):
            raise ConfigError(
                f"{option} {place} is the annotated file itself, which is never changed: name another"
            )
    if arguments.export is not None:
        if arguments.export != "-" and path.exists() and os.path.exists(arguments.export):
            if os.path.samefile(path, arguments.export):
                raise ConfigError(f"--export {arguments.export} is the journal itself: name another file")
        return _export(arguments, examples, path, header)
    return _annotate(arguments, examples, path, header)


def _examples(arguments: argparse.Namespace) -> list[Example]:
    """Read the pairs, with tokens that are final."""
    from dataclasses import replace

    from .. import corpora
    from ..annotate.tokens import tokenized

    examples = []
    for example in corpora.read(arguments.file, arguments.from_, header=arguments.header):
        examples.append(replace(example, pair=tokenized(example.pair)) if example.gold is None else example)
    if not examples:
        raise CorpusError("has no pairs to annotate", arguments.file)
    return examples


def _export(arguments: argparse.Namespace, examples: list[Example], path: Path, header: Header) -> int:
    from .. import corpora
    from ..annotation.journal import read
    from ..annotation.session import settled

    if not path.exists():
        raise ConfigError(f"{path}: there is no such journal; annotate first, or name it with --journal")
    out = arguments.export
    to = _writable(arguments.to or ("jsonl" if out == "-" else corpora.format_for_writing(out)))
    state = read(path, header)
    by = _one(arguments.annotator, state)
    number = corpora.write(settled(state, examples, by, str(path)), out, to)
    note(f"{number} accepted pairs")
    return 0


def _check_name(name: str) -> None:
    from ..corpora._annotations import named

    try:
        named(name)
    except ValueError as error:
        raise ConfigError(f"--annotator: {error}") from None


def _writable(to: str) -> str:
    """Return the format of exports, if alignments can be written in it."""
    from ..corpora import can_align, format_named, formats

    if not can_align(format_named(to)):
        raise ConfigError(f"links cannot be written as {to}: --to takes {', '.join(formats(can_align))}")
    return to


def _one(names: Sequence[str] | None, state: Annotations) -> str | None:
    if not names:
        return None
    if len(names) > 1 or names[0] not in state.people:
        raise ConfigError(f"--annotator with --export takes one of {', '.join(state.people) or 'nobody yet'}")
    return names[0]


def _annotate(arguments: argparse.Namespace, examples: list[Example], path: Path, header: Header) -> int:
    missing = [name for name in ("starlette", "uvicorn") if importlib.util.find_spec(name) is None]
    if missing:
        raise ConfigError(f"annotating needs {' and '.join(missing)}: pip install 'jacana-torch[serve]'")
    from ..annotation.app import Settings, application
    from ..annotation.guidelines import guidelines
    from ..annotation.journal import Journal
    from ..annotation.refit import ENDING, Refit
    from ..serve import Limits
    from ..serve.access import Access, allowed_hosts, read_token
    from ..serve.server import address, is_private, listening, server, url
    from .loading import chosen_model

    token = None if arguments.token_file is None else read_token(arguments.token_file)
    settings = Settings(header.file, guidelines(arguments.guidelines), _writable(arguments.to or "jsonl"))
    model = None if arguments.model == "none" or arguments.compare is not None else chosen_model(arguments.model)
    hosts = allowed_hosts(arguments.host, arguments.allow_host)
    with listening(arguments.host, arguments.port) as listener, closing(Journal(path, header)) as journal:
        refit = Refit(model, f"{path.absolute()}{ENDING}", arguments.retrain)
        refit.resume(journal.state)
        session = _session(arguments, examples, journal, _current(model, journal.state), header)
        limits = Limits()
        access = Access(hosts | allowed_hosts(address(listener)), token)
        app = application(session, settings, refit, limits, access)
        if not is_private(listener):
            _warn_of_networks(arguments.host, token is not None)
        note(f"{len(examples)} pairs at {url(listener)} (journal: {path}; Ctrl-C stops)")
        sys.stderr.flush()
        server(app, limits).run(sockets=[listener])
    return 0


def _current(model: str | None, state: Annotations) -> str | None:
    """Return the model that proposes links: the one that was fitted last, if it is there."""
    if model is not None and state.model is not None and os.path.isdir(state.model[0]):
        note(f"links from {state.model[0]}, fitted on {state.model[1]} pairs")
        return state.model[0]
    return model


def _session(
    arguments: argparse.Namespace, examples: list[Example], journal: Journal, model: str | None, header: Header
) -> Session:
    from ..annotation.proposals import proposals
    from ..annotation.session import Session
    from .loading import Aligning

    comparing = arguments.compare is not None
    guests = _guests(arguments.compare or (), journal.state, header)
    names = arguments.annotator or [ADJUDICATOR if comparing else getpass.getuser()]
    order = arguments.order or ("file" if model is None else "confidence")
    if model is not None and len(examples) > MANY:
        note(f"aligning {len(examples)} pairs first")
    found = proposals(None if model is None else Aligning(model).model, examples)
    return Session(examples, journal, found, "file" if comparing else order, names, comparing, guests)


def _guests(paths: Sequence[str], state: Annotations, header: Header) -> dict[str, Annotator]:
    from ..annotation.journal import read

    found: dict[str, Annotator] = {}
    for path in paths:
        for name, person in read(Path(path), header).people.items():
            if name in state.people or name in found:
                raise ConfigError(
                    f"{path}: another journal has work of {name} too; annotators need different names"
                )
            found[name] = person
    return found
