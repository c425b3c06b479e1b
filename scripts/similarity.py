"""Correlate the share of aligned content words with people's judgements of similarity (STS 2012), as Markdown.

    JACANA_DATA=~/corpora python scripts/similarity.py standard core

The similarity of a pair is the harmonic mean of the shares of content words that are aligned, of either side
(Sultan et al., 2014). Nothing is fitted to the judgements. Pairs whose ids `leaks/drop_from_*.txt` lists are left
out: they are, or share sentences with, test sets. `jacana-torch compare task=sts` measures more scores.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from outcome import outcome

import jacana_torch as jt
from jacana_torch.errors import CorpusError
from jacana_torch.model.model import Model
from jacana_torch.tasks.metrics import pearson
from jacana_torch.tasks.scores import similarity
from jacana_torch.types import Sentence, SentencePair

SETS = ("MSRpar", "OnWN")


def read(root: Path, name: str) -> tuple[list[SentencePair], list[float], int]:
    """Return the pairs of one set, their scores, and how many were left out."""
    file, leaks = root / "extrinsic" / f"sts2012.{name}.jsonl", root / "leaks" / f"drop_from_sts2012.{name}.txt"
    try:
        dropped = set(leaks.read_text(encoding="utf-8").split())
        rows = list(map(json.loads, file.read_text(encoding="utf-8").splitlines()))
    except (OSError, ValueError) as error:
        raise CorpusError(
            f"cannot be read ({error}): set JACANA_DATA to the folder of the corpora", str(file)
        ) from None
    pairs, scores = [], []
    for row in rows:
        if row["id"] not in dropped:
            pairs.append(SentencePair(Sentence(row["source"]), Sentence(row["target"]), row["id"]))
            scores.append(float(row["score"]))
    return pairs, scores, len(rows) - len(pairs)


def correlation(model: Model, pairs: Sequence[SentencePair], scores: Sequence[float]) -> float:
    """Return Pearson's r × 100 of the shares of aligned content words and people's scores."""
    found = model.align(pairs, confidence=False)
    return 100 * pearson(list(map(similarity, pairs, found)), scores)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="MODEL", help="shipped models or folders of models")
    options = parser.parse_args(arguments)

    def script() -> None:
        sets = {name: read(Path(os.environ.get("JACANA_DATA", ".")), name) for name in SETS}
        sizes = (f"{name}: {len(scores)} pairs, {left} left out" for name, (_, scores, left) in sets.items())
        print(f"Pearson's r × 100; {'; '.join(sizes)}.\n")
        print(f"| model | {' | '.join(sets)} |\n|---|{'---:|' * len(sets)}", flush=True)
        for name in options.models:
            model, figures = jt.load(name), []
            for pairs, scores, _ in sets.values():
                figures.append(f"{correlation(model, pairs, scores):.1f}")
            print(f"| {Path(name).name} | {' | '.join(figures)} |", flush=True)

    return outcome(script)


if __name__ == "__main__":
    sys.exit(main())
