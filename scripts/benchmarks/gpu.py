"""Time training and aligning on a CUDA device beside the CPU, in turns. Without such a device, say so."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from . import text
from .measure import markdown, progress, shown, timings

MADE_UP = 800  # pairs, without a corpus
WHAT = ("L-BFGS evaluation, float64", "L-BFGS evaluation, float32", "epoch of a network", "aligned batch")


def run(options: argparse.Namespace) -> dict[str, Any]:
    import torch

    if not torch.cuda.is_available():
        progress("gpu: there is no CUDA device on this machine, so nothing is measured")
        return {"device": None}
    from jacana_torch import corpora

    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "made.jsonl"
        text.write_gold(made, MADE_UP)
        examples = list(corpora.read(str(options.data or made)))
    name = torch.cuda.get_device_name()
    return {"device": name, **measured(examples, ["cpu", "cuda"], options.seconds)}


def measured(examples: Sequence[Any], devices: Sequence[str], seconds: float) -> dict[str, Any]:
    """Seconds of each of `WHAT` on each device."""
    runs = {}
    for device in devices:
        for what, work in zip(WHAT, works(examples, device), strict=True):
            runs[f"{what} | {device}"] = work
    return {"pairs": len(examples), "devices": list(devices), "seconds": timings(runs, seconds)}


def works(examples: Sequence[Any], device: str) -> list[Callable[[], object]]:
    """The functions that are timed. Each ends by reading a result, so the device has done its work."""
    import numpy as np

    from jacana_torch.aligners.crf import Crf
    from jacana_torch.aligners.neural.neural import Neural
    from jacana_torch.crf.objective import Objective, Part
    from jacana_torch.crf.states import readings
    from jacana_torch.features.families.distortion import Distortion
    from jacana_torch.features.families.position import Position
    from jacana_torch.features.families.string import String

    families = {family.name: family for family in (String(), Position(), Distortion())}
    pairs = [example.pair for example in examples]
    gold = [readings(example.gold, ["monotone"]).paths for example in examples]
    found: list[Callable[[], object]] = []
    for precision in ("float64", "float32"):
        chain = Crf(families, device=device, precision=precision)
        batch = chain.features(pairs)
        names = batch.names()
        scores = chain.chain_scores(batch, names)
        objective = Objective([Part(scores, gold)], 1.0, {"cost_null": 1.0, "cost_link": 1.0}, 5_000_000, device)
        weights = np.random.default_rng(1).normal(size=len(names)) * 0.1
        found.append(lambda objective=objective, weights=weights: objective(weights))
    chain.names, chain.weights = names, weights
    network = Neural(families, epochs=1, batch_pairs=64, device=device)
    return [*found, lambda: network.fit(examples), lambda: chain.align(pairs)]


def table(report: dict[str, Any]) -> list[str]:
    if report["device"] is None:
        return ["Not measured: there is no CUDA device on this machine."]
    devices = report["devices"]
    rows = [[what, *(shown(report["seconds"][f"{what} | {device}"]) for device in devices)] for what in WHAT]
    head = [f"seconds, {report['pairs']} pairs", *devices]
    return [*markdown(head, rows), "", f"Device: {report['device']}."]
