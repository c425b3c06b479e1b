"""Time explanations: milliseconds of CPU time per pair, the least of several rounds, in one thread.

JACANA_DATA=~/corpora python scripts/explain_speed.py            MSR's dev pairs
python scripts/explain_speed.py pairs.txt --model core
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path

import torch

import jacana_torch as jt
from jacana_torch import corpora
from jacana_torch.model.model import Model
from jacana_torch.types import SentencePair

ROUNDS = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = Path(os.environ.get("JACANA_DATA", ".")) / "msr" / "RTE2_dev_M.align.txt"
    parser.add_argument("pairs", nargs="?", default=str(default))
    parser.add_argument("--model", nargs="+", default=["core", "standard"])
    parser.add_argument("--most", type=int, default=200, help="number of pairs (200)")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    read = [example.pair for example in islice(corpora.read(arguments.pairs), arguments.most)]
    print("| model | what | ms per pair |\n|---|---|---:|")
    for name in arguments.model:
        model = jt.load(name)
        pairs = model.prepare(read)
        for what, work in tasks(model, pairs).items():
            print(f"| {name} | {what} | {1000 * least_seconds(work) / len(pairs):.2f} |", flush=True)


def tasks(model: Model, pairs: Sequence[SentencePair]) -> dict[str, Callable[[], object]]:
    return {
        "align": lambda: model.align(pairs),
        "explain every link": lambda: [explanation.links() for explanation in model.explanations(pairs)],
        "the same as JSON, five reasons each": lambda: [
            explanation.to_dict(5) for explanation in model.explanations(pairs)
        ],
        "the same as JSON, all reasons": lambda: [
            explanation.to_dict() for explanation in model.explanations(pairs)
        ],
    }


def least_seconds(work: Callable[[], object]) -> float:
    work()  # fills caches
    return min(_seconds(work) for _ in range(ROUNDS))


def _seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


if __name__ == "__main__":
    main()
