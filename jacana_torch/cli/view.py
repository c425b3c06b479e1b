"""`jacana-torch view`: make an HTML page that shows alignments, of files or of a model with its reasons."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from ..errors import CorpusError
from . import HEADER

if TYPE_CHECKING:
    from ..explain import Choice, Explanation
    from ..model.model import Model
    from ..types import Example, SentencePair
    from ..view import Why

ABOUT = "Make a page that shows alignments."
EXAMPLES = """
examples:
  jacana-torch view links.jsonl -o page.html                    links, darker the more probable they are
  jacana-torch view gold.jsonl predicted.jsonl -o page.html     correct, missed and spurious links
  jacana-torch view gold.jsonl --model standard -o page.html    the same for a model, with its reasons
  jacana-torch view pairs.txt --model core > page.html

The page is one file that needs no network: open it from disk, share it, print it. Any format can be read (see
convert); confidences are shown if the file has them, as `align --to jsonl --confidence` writes them."""

REASONS = 3  # features per link: a page of a thousand pairs should stay below a megabyte


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "gold", metavar="FILE", help="pairs with links, or without if there is --model; - is stdin"
    )
    parser.add_argument("predicted", nargs="?", metavar="FILE2", help="links to compare with those of FILE")
    parser.add_argument(
        "-o", "--output", default="-", metavar="PAGE", help="a file, written completely or not at all (stdout)"
    )
    parser.add_argument(
        "--model", metavar="NAME|DIR", help="aligns FILE if there is no FILE2, and gives reasons for every link"
    )
    parser.add_argument(
        "--symmetrize", metavar="S", help="how to combine the model's two directions: {symmetrizers} (as trained)"
    )
    parser.add_argument("--title", metavar="T", help="heading of the page (the names of the files)")
    parser.add_argument("--from", dest="from_", metavar="F", help="format of FILE: {read} (guessed)")
    parser.add_argument("--header", action=argparse.BooleanOptionalAction, help=f"of FILE: {HEADER}")
    parser.add_argument("--predicted-from", metavar="F", help="format of FILE2: {formats} (guessed)")


def run(arguments: argparse.Namespace) -> int:
    from .. import corpora
    from ..types import Example
    from ..view import page
    from .loading import Aligning, all_good

    gold, predicted, model = arguments.gold, arguments.predicted, arguments.model
    examples = list(corpora.read(gold, arguments.from_, header=arguments.header))
    _check(examples, gold, predicted is not None or model is not None)
    found = None if predicted is None else corpora.align_to(examples, predicted, arguments.predicted_from)
    why = None
    if model is not None:
        # Text without links is tokenised first: no links count its tokens yet.
        tokenise = examples[0].gold is None
        work = Aligning(model, symmetrize=arguments.symmetrize, confidence=True, tokenise=tokenise)
        ready = all_good(work.prepare([example.pair for example in examples]), gold)
        examples = [Example(pair, example.gold) for pair, example in zip(ready, examples, strict=True)]
        if found is None:
            found = all_good([alignment for _, alignment in work.finish(ready, ready)], gold)
        if not tokenise:
            _warn_if_seen(model, ready)
        why = _reasons(work.model, ready, arguments.symmetrize)
    names = [_named(name) for name in (gold, predicted or model) if name is not None]
    if found is not None and examples[0].gold is None:
        names = names[1:]
    text = page(examples, found, title=arguments.title or " and ".join(names), files=names, why=why)
    corpora.write_chunks([text], arguments.output)
    sys.stderr.write(f"jacana-torch: {len(examples)} pairs, {len(text.encode()) / 1e6:.2f} MB\n")
    return 0


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
    """Return the choice that made the link, or nearly made it, and the features with the largest contributions."""
    from ..explain.text import feature_text
    from ..view import Why

    if explanation is None or not explanation.directions:
        return None
    link = explanation.link(i, j)

    def near(choice: Choice) -> tuple[bool, float]:
        return (choice.chosen == link.linked, choice.posterior)

    choice = max(link.choices, key=near)
    reasons = [(feature_text(reason.feature), reason.contribution) for reason in choice.reasons[:REASONS]]
    margin = None if choice.margin is None else choice.margin.value
    return Why(link.verdict, reasons, choice.direction == "backward", choice.rival, margin, choice.posterior)
