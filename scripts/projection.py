"""Project gold phrases by predicted links, and compare with where gold links lead, as Markdown.

    JACANA_DATA=~/corpora python scripts/projection.py standard neural [--pairs 200]

A gold phrase is a span of one to five source tokens with gold links at both ends, whose links lead to one
stretch of target tokens that are linked to nothing else. A projected span is right if it is that stretch. Token
F1 compares the tokens of all spans. The pairs are MSR dev and Edinburgh train, on which models were trained.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from outcome import outcome

import jacana_torch as jt
from jacana_torch import corpora
from jacana_torch.types import Alignment, Example

CORPORA = {"MSR dev": "msr/dev.jsonl", "Edinburgh train": "edinburgh/train.jsonl"}
LONGEST = 5


def phrases(gold: Alignment) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Yield the gold phrases: (span of the source, span of the target)."""
    there: dict[int, set[int]] = {}
    back: dict[int, set[int]] = {}
    for i, j in gold.sure:
        there.setdefault(i, set()).add(j)
        back.setdefault(j, set()).add(i)
    for start in sorted(there):
        for end in range(start + 1, start + LONGEST + 1):
            if end - 1 not in there:
                continue
            reached = {j for i in range(start, end) for j in there.get(i, ())}
            low, high = min(reached), max(reached) + 1
            sources = {i for j in range(low, high) for i in back.get(j, ())}
            if sources <= set(range(start, end)):
                yield (start, end), (low, high)


def figures(gold: list[Example], found: list[Alignment]) -> tuple[int, float, float, float]:
    """The number of phrases; F1 of spans; F1 of tokens; the share of spans that are projected in several parts."""
    total = given = right = parts = 0
    tokens = [0, 0, 0]
    for example, alignment in zip(gold, found, strict=True):
        assert example.gold is not None
        pairs = list(phrases(example.gold))
        projected = alignment.project([span for span, _ in pairs])
        for (_, wanted), one in zip(pairs, projected, strict=True):
            total += 1
            given += one.span is not None
            parts += one.discontinuous
            right += one.parts == (wanted,)
            ours = {k for start, end in one.parts for k in range(start, end)}
            theirs = set(range(*wanted))
            for k, size in enumerate((len(ours), len(theirs), len(ours & theirs))):
                tokens[k] += size
    return total, 200 * right / (total + given), 200 * tokens[2] / (tokens[0] + tokens[1]), 100 * parts / total


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--pairs", type=int, metavar="N", help="only the first N of each corpus")
    options = parser.parse_args()

    def script() -> None:
        root = Path(os.environ.get("JACANA_DATA", "."))
        print("| corpus | model | phrases | span F1 | token F1 | in parts % |\n|---|---|---:|---:|---:|---:|")
        for corpus, file in CORPORA.items():
            gold = [example for example in corpora.read(root / file) if example.gold][: options.pairs]
            for name in options.models:
                found = list(jt.load(name).align([example.pair for example in gold]))
                n, *rest = figures(gold, found)
                print(f"| {corpus} | {name} | {n} | {' | '.join(f'{x:.1f}' for x in rest)} |", flush=True)

    return outcome(script)


if __name__ == "__main__":
    sys.exit(main())
