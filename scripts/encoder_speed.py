"""Pairs per CPU second of a neural model by the numbers that its encoder computes with, and the links that differ.

JACANA_DATA=~/corpora python scripts/encoder_speed.py                   neural, on 256 pairs like MSR's
JACANA_DATA=~/corpora python scripts/encoder_speed.py --model neural_small --pairs 2000 --rounds 1

All run in one process and one thread, in turns; the figure is the best of the rounds. `products` is the rate if
aligning were nothing but the products of the encoder's matrices, with as many rows as its batches have: the limit.
The links are compared with those of the first kind, float32.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from bench import default_corpus
from benchmarks import text
from benchmarks.measure import markdown, progress
from torch import nn
from torch.nn import functional

import jacana_torch as jt
from jacana_torch.aligners.neural.mixed import Mixed
from jacana_torch.cli.loading import keep_freed
from jacana_torch.encoders import checkpoint, eight_bits
from jacana_torch.encoders.pieces import windows
from jacana_torch.types import Sentence, SentencePair

KINDS = {"float32": False, "bfloat16": True, "8 bits": None}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="neural", help="a model with an encoder (neural)")
    parser.add_argument("--data", type=Path, default=default_corpus(), help="aligned corpus ($JACANA_DATA's MSR)")
    parser.add_argument("--pairs", type=int, default=256, help="number of pairs (256)")
    parser.add_argument("--rounds", type=int, default=3, help="of each kind, in turns (3)")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS), help="numbers (all)")
    options = parser.parse_args()
    torch.set_num_threads(1)
    keep_freed()
    made = text.pairs(options.data, options.pairs)
    pairs = [SentencePair(Sentence(tuple(a)), Sentence(tuple(b))) for a, b in made]
    models = {kind: loaded(options.model, KINDS[kind]) for kind in options.kinds}
    best, links = dict.fromkeys(models, float("inf")), {}
    for turn in range(options.rounds):
        for kind, model in models.items():
            progress(f"{kind}, round {turn + 1} of {options.rounds}")
            start = time.process_time()
            links[kind] = [(k, link) for k, found in enumerate(model.align(pairs)) for link in found.links]
            best[kind] = min(best[kind], time.process_time() - start)
    limits = products(models[options.kinds[0]].aligner.network, pairs, options.kinds)
    first = set(links[options.kinds[0]])
    rows = [
        [kind, f"{len(pairs) / best[kind]:.1f}", f"{limits[kind]:.1f}", f"{len(links[kind]):,}",
         f"{len(first.symmetric_difference(links[kind])) / len(first):.3%}"]
        for kind in models
    ]  # fmt: skip
    print(*markdown(["encoder", "pairs/s", "products", "links", "that differ"], rows), sep="\n")


def loaded(name: str, mixed: bool | None) -> jt.Model:
    """A model whose encoder computes with the given numbers, ready to align."""
    model = jt.load(name)
    if not isinstance(model.aligner, Mixed) or model.aligner.network.encoder is None:
        raise SystemExit(f"{name} has no encoder")
    network = model.aligner.network
    network.mixed = mixed
    network.ready()
    if mixed is None and network.ready()[0].contextual.coarse is None:
        raise SystemExit("8 bits are not faster on this CPU: give --kinds float32 bfloat16")
    torch.set_num_threads(1)
    return model


def products(network, pairs: Sequence[SentencePair], kinds: Sequence[str]) -> dict[str, float]:
    """Pairs per second of the products of the encoder's linear maps alone."""
    tokenizer = checkpoint.tokenizer(network.encoder)
    pieces = sum(len(w.ids) for own in windows(pairs, tokenizer, network.reading) for w in own) / len(pairs)
    encoder = checkpoint.network(network.encoder)
    deepest = max(network.networks[0].contextual.layers)
    shapes = [
        map_.weight.shape
        for layer in encoder.encoder.layer[:deepest]
        for map_ in layer.modules()
        if isinstance(map_, nn.Linear)
    ]
    rows = round(network.batch_pairs * pieces)
    return {kind: rows / pieces / _least(_work(kind, shapes, rows)) for kind in kinds}


def _work(kind: str, shapes: Sequence[torch.Size], rows: int) -> Callable[[], object]:
    """Multiply with a matrix of each shape."""
    if kind == "8 bits":
        given = {d: torch.randint(0, 255, (rows, d), dtype=torch.uint8) for _, d in shapes}
        ready = [eight_bits.packed(torch.randint(-127, 127, shape, dtype=torch.int8)) for shape in shapes]
        scales = {e: (torch.ones(e), torch.zeros(e, dtype=torch.long)) for e, _ in shapes}
        return lambda: [
            eight_bits.product(given[d], one, *scales[e], 128) for one, (e, d) in zip(ready, shapes, strict=True)
        ]
    dtype = torch.bfloat16 if kind == "bfloat16" else torch.float32
    vectors = {d: torch.randn(rows, d).to(dtype) for _, d in shapes}
    weights = [torch.randn(shape).to(dtype) for shape in shapes]
    return lambda: [functional.linear(vectors[weight.shape[1]], weight) for weight in weights]


@torch.no_grad()
def _least(work: Callable[[], object]) -> float:
    """CPU seconds."""
    times = []
    for _ in range(6):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


if __name__ == "__main__":
    main()
