"""`jacana-torch view`: files of pairs and links in, one HTML page out. A model may align, and gives reasons."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import CorpusError

if TYPE_CHECKING:
    from ..explain import Choice, Explanation, LinkExplanation
    from ..types import Alignment, Example, SentencePair
    from ..view import Why

EXAMPLES = """
examples:
  jacana-torch view links.jsonl -o page.html                    links, darker the more probable they are
  jacana-torch view gold.jsonl predicted.jsonl -o page.html     what was hit, missed and invented
  jacana-torch view gold.jsonl --model standard -o page.html    the same of a model, and its reasons
  jacana-torch view pairs.txt --model core > page.html

One file that needs no network: open it from disk, pass it on, print it. Any format is read (see convert);
confidences are shown where the file holds them, as `align --to jsonl --confidence` writes them."""

REASONS = 3  # features told of a link; a page of a thousand pairs should stay below a megabyte


def add_options(view: argparse.ArgumentParser) -> None:
    view.add_argument(
        "gold", metavar="FILE", help="pairs with links, or without where there is --model; - is stdin"
    )
    view.add_argument("predicted", nargs="?", metavar="FILE2", help="links to hold against those of FILE")
    view.add_argument("-o", "--output", default="-", metavar="PAGE", help="written whole or not at all (stdout)")
    view.add_argument(
        "--model", metavar="NAME|DIR", help="aligns FILE where there is no FILE2, and gives reasons for every link"
    )
    view.add_argument("--symmetrize", metavar="S", help="how the model's two directions are combined")
    view.add_argument("--title", metavar="T", help="heading of the page (the names of the files)")
    view.add_argument("--from", dest="from_", metavar="F", help="format of FILE (guessed)")
    view.add_argument("--predicted-from", metavar="F", help="format of FILE2 (guessed)")


def run(arguments: argparse.Namespace) -> int:
    return view(
        arguments.gold,
        arguments.predicted,
        output=arguments.output,
        model=arguments.model,
        symmetrize=arguments.symmetrize,
        title=arguments.title,
        from_=arguments.from_,
        predicted_from=arguments.predicted_from,
    )


def view(
    gold: str,
    predicted: str | None = None,
    *,
    output: str = "-",
    model: str | None = None,
    symmetrize: str | None = None,
    title: str | None = None,
    from_: str | None = None,
    predicted_from: str | None = None,
) -> int:
    """Write the page; returns the exit code."""
    from .. import corpora
    from ..corpora._sink import write_chunks
    from ..view import page

    examples = list(corpora.read(gold, from_))
    _check(examples, gold, predicted is not None or model is not None)
    found = None if predicted is None else corpora.align_to(examples, predicted, predicted_from)
    why = None
    if model is not None:
        work = _Work.loaded(model, symmetrize, examples)
        examples = work.examples
        found = work.align() if found is None else found
        why = work.reasons()
    names = [_named(name) for name in (gold, predicted or model) if name is not None]
    if found is not None and examples[0].gold is None:
        names = names[1:]
    text = page(examples, found, title=title or " and ".join(names), files=names, why=why)
    write_chunks([text], output)
    sys.stderr.write(f"jacana-torch: {len(examples)} pairs, {len(text.encode()) / 1e6:.2f} MB\n")
    return 0


def _check(examples: Sequence[Example], file: str, others: bool) -> None:
    if not examples:
        raise CorpusError("there are no pairs in it to show", file)
    bare = [number for number, example in enumerate(examples, start=1) if example.gold is None]
    if bare and not others:
        raise CorpusError(
            f"pair {bare[0]} has no links to show: name a second file that has them, or align with --model", file
        )
    if bare and len(bare) < len(examples):
        raise CorpusError(f"pair {bare[0]} has no links, and others have: all must have some, or none", file)


def _named(path: str) -> str:
    return "stdin" if path == "-" else os.path.basename(os.path.normpath(path))


@dataclass
class _Work:
    """What a model does for the page."""

    align: Callable[[], list[Alignment]]
    reasons: Callable[[], Iterator[Callable[[int, int], Why | None]]]
    examples: list[Example]

    @classmethod
    def loaded(cls, name: str, symmetrize: str | None, examples: Sequence[Example]) -> _Work:
        """Text without links is tokenised first: nobody has counted its tokens yet."""
        from ..types import Example
        from .align import Aligning

        work = Aligning(name, symmetrize=symmetrize, confidence=True, tokenise=examples[0].gold is None)
        model = work.model
        ready = work.prepare([example.pair for example in examples])
        examples = [Example(pair, example.gold) for pair, example in zip(ready, examples, strict=True)]
        worded = [pair for pair in ready if pair.source.tokens and pair.target.tokens]

        def align() -> list[Alignment]:
            return [alignment for _, alignment in work.finish(ready, ready)]

        def reasons() -> Iterator[Callable[[int, int], Why | None]]:
            explanations = model.explanations(worded, symmetrize)
            for pair in ready:
                yield _explainer(next(explanations) if _has_words(pair) else None)

        return cls(align, reasons, examples)


def _has_words(pair: SentencePair) -> bool:
    return bool(pair.source.tokens and pair.target.tokens)


def _explainer(explanation: Explanation | None) -> Callable[[int, int], Why | None]:
    def why(i: int, j: int) -> Why | None:
        if explanation is None or not explanation.directions:
            return None
        return _why(explanation.link(i, j))

    return why


def _why(link: LinkExplanation) -> Why:
    """The choice that made the link, or the one that came nearest to making it, and what weighed most in it."""
    from ..explain.text import feature_text
    from ..view import Why

    def near(choice: Choice) -> tuple[bool, float]:
        return (choice.chosen == link.linked, choice.posterior)

    choice = max(link.choices, key=near)
    reasons = [(feature_text(reason.feature), reason.contribution) for reason in choice.reasons[:REASONS]]
    margin = None if choice.margin is None else choice.margin.value
    return Why(link.verdict, reasons, choice.direction == "backward", choice.rival, margin, choice.posterior)
