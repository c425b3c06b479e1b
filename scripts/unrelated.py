"""Count links between unlike words of sentences that do not mean the same, as Markdown.

    python scripts/unrelated.py standard core [--pairs 2000] [--seed 1] [--corpus msr/dev.jsonl]

Three kinds of pairs are drawn at random: glosses of WordNet that begin with the same three words ("the act of
lifting ...", "the act of describing ..."), any two glosses, and, with --corpus, the source of a pair with the
target of another. A link counts if both words are content words (tasks/content.py) whose first four letters
differ. Figures are links per 100 pairs, and those of them that are at least --confident.

Glosses have 5 to 12 words.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
from collections.abc import Sequence
from pathlib import Path

from outcome import outcome

import jacana_torch as jt
from jacana_torch import corpora
from jacana_torch.annotate.tokens import tokenize
from jacana_torch.errors import ConfigError
from jacana_torch.model.model import Model
from jacana_torch.resources.wordnet_glosses import glosses
from jacana_torch.tasks.content import STOP, content
from jacana_torch.types import Sentence, SentencePair

SHARED = 3  # words that two glosses begin with
SHORTEST, LONGEST = 5, 12  # words of a gloss: longer ones often share more than their beginning
PREFIX = 4  # letters; words that share them may be forms of one word


def definitions() -> list[str]:
    """Return the distinct definitions of a medium length."""
    found = []
    for text in sorted({gloss.definition for gloss in glosses()}):
        if SHORTEST <= len(text.split()) <= LONGEST:
            found.append(text)
    return found


def by_beginning(texts: Sequence[str]) -> list[list[str]]:
    """Group the texts that begin with the same words, leaving single ones out."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for text in texts:
        groups.setdefault(tuple(text.split()[:SHARED]), []).append(text)
    return [group for group in groups.values() if len(group) > 1]


def drawn(texts: Sequence[str], n: int, seed: int) -> dict[str, list[SentencePair]]:
    """Draw n pairs that share a beginning (each gloss is as likely), and n pairs of any two."""
    rng, groups = random.Random(seed), by_beginning(texts)
    if not groups:
        raise ConfigError("no two glosses begin with the same words")
    chosen = rng.choices(groups, list(map(len, groups)), k=n)
    return {
        "a common beginning": [_pair(*rng.sample(group, 2)) for group in chosen],
        "any two glosses": [_pair(*rng.sample(texts, 2)) for _ in range(n)],
    }


def crossed(file: str, n: int, seed: int) -> list[SentencePair]:
    """Draw n sources of a corpus, each with the target of another pair."""
    pairs, rng = [example.pair for example in corpora.read(file)], random.Random(seed)
    if len(pairs) < 2:
        raise ConfigError(f"{file} has fewer than two pairs")
    two = (rng.sample(pairs, 2) for _ in range(n))
    return [SentencePair(one.source, other.target) for one, other in two]


def _pair(one: str, other: str) -> SentencePair:
    return SentencePair(Sentence(tokenize(one)), Sentence(tokenize(other)))


def unlike_links(model: Model, pairs: Sequence[SentencePair], confident: float) -> tuple[float, float]:
    """Return the links between unlike content words per 100 pairs, and the confident ones."""
    every = sure = 0
    for pair, alignment in zip(pairs, model.align(pairs), strict=True):
        source, target = content(pair.source, STOP), content(pair.target, STOP)
        for i, j in alignment.sure:
            one, other = source[i], target[j]
            if one is not None and other is not None and one[:PREFIX] != other[:PREFIX]:
                every += 1
                sure += alignment.confidence.get((i, j), 0.0) >= confident
    return 100 * every / len(pairs), 100 * sure / len(pairs)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="MODEL", help="shipped models or folders of models")
    parser.add_argument("--pairs", type=int, default=2000, help="how many pairs of each kind (2000)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--confident", type=float, default=0.8, help="confidence of confident links (0.8)")
    parser.add_argument("--corpus", help="draw random pairs from this corpus too; relative to JACANA_DATA")
    options = parser.parse_args(arguments)

    def script() -> None:
        if options.pairs < 1:
            raise ConfigError(f"--pairs {options.pairs}: at least one")
        kinds = drawn(definitions(), options.pairs, options.seed)
        if options.corpus:
            file = Path(os.environ.get("JACANA_DATA", ".")) / options.corpus
            kinds["a corpus, crossed"] = crossed(str(file), options.pairs, options.seed)
        heads = [f"{kind}{which}" for kind in kinds for which in ("", f", ≥ {options.confident:g}")]
        print(f"{options.pairs} pairs of each kind, seed {options.seed}.\n")
        print(f"| model | {' | '.join(heads)} |\n|---|{'---:|' * len(heads)}", flush=True)
        for name in options.models:
            model, figures = jt.load(name), list[str]()
            for pairs in kinds.values():
                figures += (f"{x:.1f}" for x in unlike_links(model, pairs, options.confident))
            print(f"| {Path(name).name} | {' | '.join(figures)} |", flush=True)

    return outcome(script)


if __name__ == "__main__":
    sys.exit(main())
