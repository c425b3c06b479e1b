"""Check and time the explanations of `neural`: do the groups of every link add up to its log-odds, and how fast?

python scripts/explain_neural.py                       50 generated pairs
python scripts/explain_neural.py pairs.txt --count 20

Times are milliseconds of CPU time per pair in one thread, for all links: of the encoder that reads the pairs, and
of what comes after it.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parent))
from benchmarks.text import pairs as generated

import jacana_torch as jt
from jacana_torch.explain import Explanation
from jacana_torch.explain.parts import START

Result = TypeVar("Result")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", nargs="?", type=Path, help="a corpus (generated pairs)")
    parser.add_argument("--model", default="neural")
    parser.add_argument("--count", type=int, default=50, help="number of pairs (50)")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    model = jt.load(arguments.model)
    pairs = model.prepare(generated(arguments.pairs, arguments.count))
    network = getattr(model.aligner, "network", model.aligner)
    clock = Clock(network.readings)
    network.readings = clock
    errors = [checked(explanation) for explanation in model.explanations(pairs)]  # fills caches, too
    links, *errors_of = zip(*errors, strict=True)
    clock.seconds = 0.0
    explained, groups = timed(lambda: list(model.explanations(pairs)))
    groups -= clock.seconds
    found, sentences = timed(lambda: [(link, link.reason) for one in explained for link in one.links()])
    _, cells = timed(lambda: [link.cells for link, _ in found])
    print(
        "| pairs | links | groups against log-odds | cells against groups | encoder | groups | sentences | cells |"
    )
    print("|---:|---:|---:|---:|---:|---:|---:|---:|")
    times = " | ".join(
        f"{1000 * seconds / len(pairs):.1f} ms" for seconds in (clock.seconds, groups, sentences, cells)
    )
    print(f"| {len(pairs)} | {sum(links)} | {max(errors_of[0]):.1e} | {max(errors_of[1]):.1e} | {times} |")


class Clock:
    """What the encoder reads, and the CPU time that it takes."""

    def __init__(self, read: Callable[..., object]) -> None:
        self._read, self.seconds = read, 0.0

    def __call__(self, inputs: object) -> object:
        found, seconds = timed(lambda: self._read(inputs))
        self.seconds += seconds
        return found


def checked(explanation: Explanation) -> tuple[int, float, float]:
    """Return the number of links, and how far groups and cells are from what they should add up to."""
    of_groups, of_cells = [0.0], [0.0]
    names = [START, "linear chains"]
    for link in explanation.links():
        odds = np.log(link.confidence / (1 - link.confidence))
        of_groups.append(abs(sum(group.sum for group in link.groups) - odds))
        network = sum(group.sum for group in link.groups if group.title not in names)
        of_cells.append(abs(sum(group.sum for group in link.cells) - network))
    return len(explanation.links()), max(of_groups), max(of_cells)


def timed(work: Callable[[], Result]) -> tuple[Result, float]:
    start = time.process_time()
    found = work()
    return found, time.process_time() - start


if __name__ == "__main__":
    main()
