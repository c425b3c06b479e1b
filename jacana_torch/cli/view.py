"""`jacana-torch view`: make an HTML page that shows alignments, of files or of a model with its reasons."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from ..errors import ConfigError, CorpusError
from . import HEADER, note

if TYPE_CHECKING:
    from ..explain import Explanation
    from ..model.model import Model
    from ..types import Alignment, Example, SentencePair
    from ..view import Why

ABOUT = "Make a page that shows alignments."
EXAMPLES = """
examples:
  jacana-torch view links.jsonl -o page.html                    links, darker the more probable they are
  jacana-torch view gold.jsonl predicted.jsonl -o page.html     correct, missed and spurious links
  jacana-torch view gold.jsonl --model standard -o page.html    the same for a model, with its reasons
  jacana-torch view gold.jsonl old.jsonl new.jsonl --model core -o page.html    three systems side by side
  jacana-torch view pairs.txt --model core --model standard > page.html         where two models differ

The page is one file that needs no network: open it from disk, share it, print it. Any format can be read (see
convert); confidences are shown if the file has them, as `align --to jsonl --confidence` writes them."""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "gold", metavar="FILE", help="pairs with links, or without if there is --model; - is stdin"
    )
    parser.add_argument(
        "predicted",
        nargs="*",
        metavar="FILE2",
        help="links of a system, compared with those of FILE; several systems",
    )
    parser.add_argument(
        "-o", "--output", default="-", metavar="PAGE", help="a file, written completely or not at all (stdout)"
    )
    parser.add_argument(
        "-m",
        "--model",
        metavar="NAME|DIR",
        action="append",
        default=[],
        help="a system that aligns FILE, and gives reasons for every link; may be repeated",
    )
    parser.add_argument("--style", metavar="S", help="the convention that each model aligns by, if it has several")
    parser.add_argument(
        "--symmetrize", metavar="S", help="how to combine each model's two directions: {symmetrizers} (as trained)"
    )
    parser.add_argument("--title", metavar="T", help="heading of the page (the names of the files and models)")
    parser.add_argument("--from", dest="from_", metavar="F", help="format of FILE: {read} (guessed)")
    parser.add_argument("--header", action=argparse.BooleanOptionalAction, help=f"of FILE: {HEADER}")
    parser.add_argument("--predicted-from", metavar="F", help="format of FILE2: {formats} (guessed)")


def run(arguments: argparse.Namespace) -> int:
    from .. import corpora
    from ..types import Example
    from ..view import page

    gold, files, models = arguments.gold, arguments.predicted, arguments.model
    if arguments.symmetrize is not None and not models:
        raise ConfigError("--symmetrize combines the directions of a model: name one with --model")
    if arguments.style is not None and not models:
        raise ConfigError("--style is one of a model: name one with --model")
    if arguments.predicted_from is not None and not files:
        raise ConfigError("--predicted-from is the format of a second file: name that file after the first")
    examples = list(corpora.read(gold, arguments.from_, header=arguments.header))
    _check(examples, gold, bool(files or models))
    given = examples
    systems = [corpora.align_to(examples, file, arguments.predicted_from) for file in files]
    # Text without links is tokenised first: no links count its tokens yet.
    tokenise = not files and examples[0].gold is None
    why: dict[str, Iterator[Callable[[int, int], Why | None]]] = {}
    names = _distinct([_named(name) for name in (gold, *files, *models)])
    for name, model in zip(names[1 + len(files) :], models, strict=True):
        ready, found, why[name] = _aligned(model, given, arguments, tokenise)
        examples = [Example(pair, example.gold) for pair, example in zip(ready, given, strict=True)]
        systems.append(found)
        if not tokenise:
            _warn_if_seen(model, ready)
    title = _title(names)
    if systems and examples[0].gold is None:
        title, names = names[0], names[1:]
    text = page(examples, *systems, title=arguments.title or title, files=names, why=why)
    corpora.write_chunks([text], arguments.output)
    note(f"{len(examples)} pairs, {len(text.encode()) / 1e6:.2f} MB")
    return 0


def _aligned(
    model: str, examples: Sequence[Example], arguments: argparse.Namespace, tokenise: bool
) -> tuple[list[SentencePair], list[Alignment], Iterator[Callable[[int, int], Why | None]]]:
    """Return the pairs as the model reads them, its alignments, and what explains them."""
    from .loading import Aligning, all_good

    work = Aligning(
        model, symmetrize=arguments.symmetrize, confidence=True, tokenise=tokenise, style=arguments.style
    )
    ready = all_good(work.prepare([example.pair for example in examples]), arguments.gold)
    found = all_good([alignment for _, alignment in work.finish(ready, ready)], arguments.gold)
    return ready, found, _reasons(work.model, ready, arguments.symmetrize)


def _distinct(names: Sequence[str]) -> list[str]:
    """Number the names that occur several times."""
    return [
        name if names.count(name) == 1 else f"{name} ({names[: k + 1].count(name)})"
        for k, name in enumerate(names)
    ]


def _title(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _warn_if_seen(model: str, pairs: Sequence[SentencePair]) -> None:
    from ..model.seen import warning

    if said := warning(model, pairs):
        sys.stderr.write(f"jacana-torch: warning: {said}\n")


def _check(examples: Sequence[Example], file: str, others: bool) -> None:
    if not examples:
        raise CorpusError("has no pairs to show", file)
    bare = [number for number, example in enumerate(examples, start=1) if example.gold is None]
    if bare and not others:
        raise CorpusError(
            f"pair {bare[0]} has no links to show: name a second file that has them, or align with --model", file
        )
    if bare and len(bare) < len(examples):
        raise CorpusError(
            f"pair {bare[0]} has no links, but others have: all pairs must have links, or none", file
        )


def _named(path: str) -> str:
    return "stdin" if path == "-" else os.path.basename(os.path.normpath(path))


def _reasons(
    model: Model, pairs: Sequence[SentencePair], symmetrize: str | None
) -> Iterator[Callable[[int, int], Why | None]]:
    """Yield for each pair a function that explains its links."""
    from .loading import has_words

    explanations = model.explanations([pair for pair in pairs if has_words(pair)], symmetrize)
    for pair in pairs:
        yield partial(_why, next(explanations) if has_words(pair) else None)


def _why(explanation: Explanation | None, i: int, j: int) -> Why | None:
    """Return the reasons for a link, or against it."""
    from ..explain.groups import bars
    from ..view import Why

    if explanation is None:
        return None
    link = explanation.link(i, j)
    if not link.groups:
        return None
    groups = [(group.title, group.sum) for group in bars(link.groups)]
    probability = max((choice.posterior for choice in link.choices), default=None)
    return Why(link.verdict, link.because, groups, probability)
