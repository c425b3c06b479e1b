"""Time one EM iteration of the HMM against thot's (the package sil-thot), on the same pairs in the same run.

    python scripts/hmm_speed.py                    # 20,000 generated pairs
    python scripts/hmm_speed.py pairs.tsv --threads 2 --device cuda --skip-thot

One direction, plain words, no lexicon. An iteration computes the expectations of every pair and the new
parameters. Preparation (numbering words and word pairs) is reported separately. Times are CPU seconds of all
threads and wall seconds, the best of several iterations.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable

import torch

from jacana_torch import corpora
from jacana_torch.systems.unsupervised.em import Direction, Settings, separate
from jacana_torch.systems.unsupervised.hmm_lattice import Jumps, Moves
from jacana_torch.systems.unsupervised.translation_table import Table, Text, WordPair, words_of


def made(count: int, seed: int = 1) -> list[WordPair]:
    """Generate premises of about 30 words with Zipfian frequencies, and hypotheses of a third of their words."""
    draw = random.Random(seed)
    vocabulary = [f"w{k}" for k in range(30_000)]
    weights = [1 / (k + 3) for k in range(len(vocabulary))]
    pairs = []
    for _ in range(count):
        source = draw.choices(vocabulary, weights, k=max(4, int(draw.gauss(30, 10))))
        kept = sorted(draw.sample(range(len(source)), max(2, len(source) // 3)))
        target = [draw.choice(vocabulary) if draw.random() < 0.2 else source[k] for k in kept]
        pairs.append((source, target))
    return pairs


def timed(what: Callable[[], object]) -> tuple[float, float]:
    """Measure CPU seconds and wall seconds."""
    cpu, clock = time.process_time(), time.perf_counter()
    what()
    return time.process_time() - cpu, time.perf_counter() - clock


def ours(pairs: list[WordPair], iterations: int, device: str) -> None:
    state: dict = {}

    def prepare() -> None:
        settings = Settings(0.01, 1.0, True, True, device)
        moves = Moves(0.2, 0.5, Jumps.uniform(5, device))
        direction = state["direction"] = Direction(Text(pairs), Table(), moves, settings)
        groups = direction.text.groups(500_000)
        state["batches"] = [direction.text.batch(group, device) for group in groups]

    def iterate(jumping: bool) -> None:
        direction = state["direction"]
        direction.clear()
        for batch in state["batches"]:
            direction.count(batch, *separate([direction.expect(batch, jumping)], 1)[0])
        direction.update(jumping)
        float(direction.values[0])  # wait for a GPU

    print_row("ours, preparation", timed(prepare))
    for name, jumping in (("ours, IBM 1", False), ("ours, HMM", True)):
        print_row(name, min(timed(lambda jumping=jumping: iterate(jumping)) for _ in range(iterations)))


def thots(pairs: list[WordPair], iterations: int) -> None:
    from thot import alignment

    before = None
    for name, kind in (("IBM 1", alignment.Ibm1AlignmentModel), ("HMM", alignment.HmmAlignmentModel)):
        model = kind() if before is None else kind(before)
        if before is None:
            for source, target in pairs:
                model.add_sentence_pair(target, source, 1.0)
        print_row(f"thot, {name}, preparation", timed(model.start_training))
        print_row(f"thot, {name}", min(timed(model.train) for _ in range(iterations)))
        model.end_training()
        before = model


def print_row(name: str, seconds: tuple[float, float]) -> None:
    print(f"{name:28}{seconds[0]:9.2f} s{seconds[1]:9.2f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", nargs="?", help="sentence pairs in any format that the package reads")
    parser.add_argument("--pairs", type=int, default=20_000)
    parser.add_argument("--iterations", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1, help="OMP_NUM_THREADS sets thot's")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--skip-thot", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.file:
        read = (example.pair for example in corpora.read(options.file))
        pairs = [(words_of(pair.source, "lower"), words_of(pair.target, "lower")) for pair in read]
        pairs = [pair for pair in pairs if pair[0] and pair[1]][: options.pairs]
    else:
        pairs = made(options.pairs)
    cells = sum(len(source) * len(target) for source, target in pairs)
    print(f"{len(pairs):,} pairs, {cells:,} cells{'CPU':>14}{'wall':>11}")
    ours(pairs, options.iterations, options.device)
    if not options.skip_thot:
        thots(pairs, options.iterations)


if __name__ == "__main__":
    main()
