"""`jacana-torch explain`: two sentences in, what speaks for their links and against others out."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..errors import ConfigError

if TYPE_CHECKING:
    from ..explain import Explanation
    from ..types import Link

EXAMPLES = """
examples:
  jacana-torch explain "She bought a car ." "She purchased an automobile ."
  jacana-torch explain "She bought a car ." "She purchased an automobile ." --why bought purchased
  jacana-torch explain "She bought a car ." "She purchased an automobile ." --link 3-1 --top 20
  jacana-torch explain "She bought a car ." "She purchased an automobile ." --json | jq '.links[].verdict'

Of every link, or of the pairs of words that --link and --why name, linked or not: its probability in either
direction, the features that speak for it (#) and against it (-) with value x weight, the next best choice and
what the margin over it is made of, and what was made of the two directions. Tokens are counted from 0."""


def add_options(explain: argparse.ArgumentParser) -> None:
    explain.add_argument("source", metavar="SOURCE", help="a sentence")
    explain.add_argument("target", metavar="TARGET", help="another")
    explain.add_argument("--model", metavar="NAME|DIR", help="a model of `jacana-torch models`, or a directory")
    explain.add_argument("--symmetrize", metavar="S", help="how the two directions are combined")
    explain.add_argument("--pretokenized", action="store_true", help="tokens are what spaces separate")
    explain.add_argument("--link", action="append", default=[], metavar="I-J", help="this one only; repeatable")
    explain.add_argument(
        "--why", action="append", nargs=2, default=[], metavar=("WORD", "WORD"),
        help="the same by words of source and target, or their numbers; repeatable",
    )  # fmt: skip
    explain.add_argument("--top", type=_at_least_one, metavar="N", help="reasons told of each (3; of --link 8)")
    explain.add_argument("--json", action="store_true", help="every figure, unrounded, and all reasons")


def _at_least_one(text: str) -> int:
    if not (text.isdecimal() and int(text)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def run(arguments: argparse.Namespace) -> int:
    """Explain one pair; returns the exit code."""
    from ..types import Sentence, SentencePair
    from .align import Aligning, chosen_model

    raw = (arguments.source, arguments.target)
    source, target = (Sentence(tuple(text.split()), text=text) for text in raw)
    named = [_link(text) for text in arguments.link]  # mistakes are told before anything is loaded
    work = Aligning(
        chosen_model(arguments.model), symmetrize=arguments.symmetrize, tokenise=not arguments.pretokenized
    )
    (pair,) = work.prepare([SentencePair(source, target)])
    for side, sentence in (("source", pair.source), ("target", pair.target)):
        if not len(sentence):
            raise ConfigError(f"the {side} sentence has no words: there is nothing to explain")
    explanation = work.model.explain(pair, arguments.symmetrize)
    asked = named + [_words(explanation, *words) for words in arguments.why]
    write = _as_json if arguments.json else _as_text
    sys.stdout.write(f"{write(explanation, asked, arguments.top)}\n")
    return 0


def _as_text(explanation: Explanation, asked: Sequence[Link], top: int | None) -> str:
    if not asked:
        return explanation.to_text(top or 3)
    note = [explanation.note] if explanation.note else []
    return "\n\n".join([*note, *(explanation.link(i, j).to_text(top or 8) for i, j in asked)])


def _as_json(explanation: Explanation, asked: Sequence[Link], top: int | None) -> str:
    told = explanation.to_dict(top, links=asked or None)
    return json.dumps(told, ensure_ascii=False, allow_nan=False)


def _link(text: str) -> Link:
    found = re.fullmatch(r"(\d+)-(\d+)", text)
    if found is None:
        raise ConfigError(f"--link {text!r}: two numbers of tokens, from 0, as in 1-3")
    return int(found[1]), int(found[2])


def _words(explanation: Explanation, source: str, target: str) -> Link:
    pair = explanation.pair
    return _place(source, "source", pair.source.tokens), _place(target, "target", pair.target.tokens)


def _place(word: str, side: str, tokens: Sequence[str]) -> int:
    """A word's number; the number itself where no word looks like that."""
    same = [k for k, token in enumerate(tokens) if token == word]
    same = same or [k for k, token in enumerate(tokens) if token.casefold() == word.casefold()]
    if len(same) == 1:
        return same[0]
    if same:
        raise ConfigError(f"the {side} has {word!r} at {', '.join(map(str, same))}: say the number that you mean")
    if word.isdecimal():
        return int(word)
    raise ConfigError(f"the {side} has no word {word!r}; its words are {' '.join(tokens)[:200]}")
