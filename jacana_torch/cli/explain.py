"""`jacana-torch explain`: show the features for and against the links of two sentences."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..errors import ConfigError, PairError
from . import at_least_one

if TYPE_CHECKING:
    from ..explain import Explanation
    from ..types import Link

ABOUT = "Explain why two words are linked, or are not."
EXAMPLES = """
examples:
  jacana-torch explain "She bought a car ." "She purchased an automobile ."
  jacana-torch explain "She bought a car ." "She purchased an automobile ." --why bought purchased
  jacana-torch explain "She bought a car ." "She purchased an automobile ." --link 3-1 --details --top 20
  jacana-torch explain "She bought a car ." "She purchased an automobile ." --json | jq '.links[].reason'

For each link, or each word pair that --link and --why name, one sentence says what supports and opposes it. At
most five groups of evidence add up to the log-odds of two paths: the best one with the link against the best one
without it, averaged over the directions. --link and --why show what each direction compared; --details adds single
features for it (#) and against it (-) with value x weight. Tokens are counted from 0."""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", metavar="SOURCE", help="a sentence")
    parser.add_argument("target", metavar="TARGET", help="another sentence")
    parser.add_argument(
        "-m", "--model", metavar="NAME|DIR", help="a model of `jacana-torch models`, or a directory"
    )
    parser.add_argument("--style", metavar="S", help="the convention to align by, of a model that has several")
    parser.add_argument(
        "--symmetrize", metavar="S", help="how to combine the two directions: {symmetrizers} (as trained)"
    )
    parser.add_argument("--pretokenized", action="store_true", help="tokens are separated by spaces")
    parser.add_argument("--link", action="append", default=[], metavar="I-J", help="explain this link; repeatable")
    parser.add_argument(
        "--why", action="append", nargs=2, default=[], metavar=("WORD", "WORD"),
        help="explain the link of these words of source and target, or their numbers; repeatable",
    )  # fmt: skip
    parser.add_argument("--details", action="store_true", help="show single features as well")
    parser.add_argument("--top", type=at_least_one, metavar="N", help="features per list (3; with --link 8)")
    parser.add_argument(
        "--json", action="store_true", help="write all numbers, unrounded, and all features as JSON"
    )


def run(arguments: argparse.Namespace) -> int:
    from ..types import Sentence, SentencePair
    from .loading import Aligning, chosen_model

    raw = (arguments.source, arguments.target)
    source, target = (Sentence(tuple(text.split()), text=text) for text in raw)
    named = [_link(text) for text in arguments.link]  # report mistakes before anything is loaded
    work = Aligning(
        chosen_model(arguments.model),
        symmetrize=arguments.symmetrize,
        tokenise=not arguments.pretokenized,
        style=arguments.style,
    )
    (pair,) = work.prepare([SentencePair(source, target)])
    if isinstance(pair, PairError):
        raise pair
    for side, sentence in (("source", pair.source), ("target", pair.target)):
        if not len(sentence):
            raise ConfigError(f"the {side} sentence has no words to explain")
    explanation = work.model.explain(pair, arguments.symmetrize)
    asked = named + [_words(explanation, *words) for words in arguments.why]
    if arguments.json:
        text = json.dumps(explanation.to_dict(arguments.top, asked or None), ensure_ascii=False, allow_nan=False)
    else:
        text = _as_text(explanation, asked, arguments.top, arguments.details)
    sys.stdout.write(f"{text}\n")
    return 0


def _as_text(explanation: Explanation, asked: Sequence[Link], top: int | None, details: bool) -> str:
    from ..explain.text import method_lines

    if not asked:
        return explanation.to_text(top or 3, details)
    note = [explanation.note] if explanation.note else []
    text = "\n\n".join([*note, *(explanation.link(i, j).to_text(top or 8, details) for i, j in asked)])
    return text if explanation.parts is None else "\n".join([text, *method_lines(explanation)])


def _link(text: str) -> Link:
    found = re.fullmatch(r"(\d+)-(\d+)", text)
    if found is None:
        raise ConfigError(f"--link {text!r}: name two tokens by their numbers from 0, as in 1-3")
    return int(found[1]), int(found[2])


def _words(explanation: Explanation, source: str, target: str) -> Link:
    pair = explanation.pair
    return _place(source, "source", pair.source.tokens), _place(target, "target", pair.target.tokens)


def _place(word: str, side: str, tokens: Sequence[str]) -> int:
    """Return the number of a word; a number that is no word stands for itself."""
    same = [k for k, token in enumerate(tokens) if token == word]
    same = same or [k for k, token in enumerate(tokens) if token.casefold() == word.casefold()]
    if len(same) == 1:
        return same[0]
    if same:
        raise ConfigError(f"the {side} has {word!r} at {', '.join(map(str, same))}: name one by its number")
    if word.isdecimal():
        return int(word)
    raise ConfigError(f"the {side} has no word {word!r}; its words are {' '.join(tokens)[:200]}")
