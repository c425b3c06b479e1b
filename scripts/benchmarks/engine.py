"""Time inference against other libraries on the same lattices, and against its own matrix products."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import Any

from .measure import in_ms, markdown, peak_of, progress, ratio, shown, timings

SHAPES = [(64, 30, 12), (64, 12, 30), (64, 30, 110), (512, 30, 30)]  # B, M, N
OTHERS = ["pytorch-crf", "torch-struct"]
PEAK_SIZE = 1024


def run(options: argparse.Namespace) -> dict[str, Any]:
    needs = _missing()
    if needs:
        raise SystemExit(f"the engine is compared with {' and '.join(needs)}: pip install 'jacana-torch[bench]'")
    entries = [_shape(shape, options) for shape in SHAPES]
    return {"shapes": entries, "geometric_means": _geometric(entries), "decoding": _decoding(options)}


def _missing() -> list[str]:
    import importlib.util

    return [name for name, module in zip(OTHERS, ("torchcrf", "torch_struct"), strict=True)
            if importlib.util.find_spec(module) is None]  # fmt: skip


def _shape(shape: tuple[int, int, int], options: argparse.Namespace) -> dict[str, Any]:
    from . import libraries

    progress(f"engine: B, M, N = {shape}")
    p, mixed = libraries.lattices(*shape), libraries.lattices(*shape, ragged=True)
    libraries.check(p)
    libraries.check(mixed)
    systems = {name: maker(p) for name, maker in libraries.MAKERS.items()}
    runs = {f"{name} {what}": r for name, made in systems.items() if made for what, r in made.items()}
    runs |= {f"mixed {what}": r for what, r in libraries.jacana(mixed).items()}
    runs |= {"products": libraries.products(p), "peak": libraries.peak_rate(PEAK_SIZE)}
    # torch-struct allocates gigabytes, which slows down the run after it, so it is timed separately.
    huge = {name: runs.pop(name) for name in list(runs) if name.startswith("torch-struct")}
    times = timings(runs, options.seconds) | timings(huge, options.seconds)
    at_peak = libraries.operations(p) * times["peak"]["median"] / (2 * PEAK_SIZE**3)
    return {
        "shape": shape,
        "seconds": times,
        "ratios": _ratios(times),
        "gigaflops_at_peak": 2 * PEAK_SIZE**3 / times["peak"]["median"] / 1e9,
        "share_of_peak": at_peak / times["jacana marginals"]["median"],
        "operations": {w: libraries.dispatched(run) for w, run in systems["jacana"].items()},
        "memory_mib": {n: peak_of(libraries.one_run, n, "marginals", shape) for n in libraries.MAKERS},
    }


def _ratios(times: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
    """Times of the others over ours, of ours over its products, and of mixed lengths over equal ones."""
    out = {}
    for what in ("marginals", "gradient", "partition", "viterbi"):
        theirs = "marginals" if what == "gradient" else what
        for other in OTHERS:
            if f"{other} {theirs}" in times:
                out[f"{what}: {other}"] = ratio(times[f"{other} {theirs}"], times[f"jacana {what}"])
        out[f"{what}: mixed over longest"] = ratio(times[f"mixed {what}"], times[f"jacana {what}"])
    out["marginals: over bare products"] = ratio(times["jacana marginals"], times["products"])
    return out


def _geometric(entries: list[dict]) -> dict[str, dict[str, float]]:
    """The geometric mean of each ratio over the shapes where it was measured, and their number."""
    out = {}
    for name in dict.fromkeys(name for entry in entries for name in entry["ratios"]):
        found = [e["ratios"][name]["median"] for e in entries if name in e["ratios"]]
        out[name] = {"mean": math.exp(sum(map(math.log, found)) / len(found)), "shapes": len(found)}
    memory = [(e["memory_mib"]["torch-struct"], e["memory_mib"]["jacana"]) for e in entries]
    shares = [theirs / max(ours, 0.1) for theirs, ours in memory if theirs and ours is not None]
    if shares:
        out["memory: torch-struct"] = {
            "mean": math.exp(sum(map(math.log, shares)) / len(shares)),
            "shapes": len(shares),
        }
    return out


def _decoding(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Time decoding in both directions, from flat scores to states, on lattices with the lengths of a corpus."""
    import numpy as np

    from jacana_torch.cli.loading import keep_freed
    from jacana_torch.crf.kernel import posteriors
    from jacana_torch.crf.viterbi import best_paths

    from .text import lengths

    keep_freed()  # as `align` does
    m, n = np.array(lengths(options.data, 800)).T
    out = []
    for direction, sizes in (("source to target", (m, n)), ("target to source", (n, m))):
        laid, scores, tensors = _lattices(*sizes)
        runs = {
            "viterbi": lambda laid=laid, scores=scores: best_paths(laid(), scores),
            "posteriors": lambda laid=laid, scores=scores: posteriors(laid(), scores),
            "viterbi by torch": lambda laid=laid, tensors=tensors: best_paths(laid(), tensors),
            "posteriors by torch": lambda laid=laid, tensors=tensors: posteriors(laid(), tensors),
        }
        times = timings(runs, max(options.seconds, 2.0))
        rates = {k: {q: len(m) / t[w] for q, w in _SWAPPED.items()} for k, t in times.items()}
        out.append({"direction": direction, "lattices": len(m), "mean_positions": float(sizes[0].mean()),
                    "mean_targets": float(sizes[1].mean()), "per_second": rates})  # fmt: skip
    return out


_DECODING = {
    "viterbi": "Viterbi",
    "posteriors": "posteriors",
    "viterbi by torch": "Viterbi by torch",
    "posteriors by torch": "posteriors by torch",
}
_SWAPPED = {"median": "median", "low": "high", "high": "low"}  # the slowest time is the lowest rate


def _lattices(m: Any, n: Any) -> tuple[Callable[[], Any], list[Any], list[Any]]:
    """A function that makes a layout, and random scores for it, in float32 as in the aligner."""
    import numpy as np
    import torch

    from jacana_torch.crf.layout import Layout
    from jacana_torch.util.geometry import Geometry

    def laid() -> Layout:
        return Layout(Geometry(m, n))

    layout, random = laid(), np.random.default_rng(0)
    counts = (layout.n_nodes, *(layout.sizes[kind] for kind in ("edge", "start", "end")))
    scores = [random.standard_normal(count, dtype=np.float32) for count in counts]
    return laid, scores, [torch.from_numpy(x) for x in scores]


def table(report: dict[str, Any]) -> list[str]:
    speed, limits = [], []
    for e in report["shapes"]:
        shape, r, t = ", ".join(map(str, e["shape"])), e["ratios"], e["seconds"]
        for what in ("marginals", "viterbi"):
            others = (shown(r.get(f"{what}: {other}")) for other in OTHERS)
            mixed = shown(r[f"{what}: mixed over longest"])
            speed.append([shape, what, shown(in_ms(t[f"jacana {what}"])), *others, mixed])
        memory = (shown(e["memory_mib"][name]) for name in ("jacana", *OTHERS))
        calls = (str(e["operations"][what]) for what in ("marginals", "viterbi"))
        limits.append(
            [shape, shown(r["marginals: over bare products"]), f"{e['share_of_peak']:.0%}", *memory, *calls]
        )
    means = [[name, shown(g["mean"]), str(g["shapes"])] for name, g in report["geometric_means"].items()]
    decoding = [
        [f"{d['direction']}, {d['mean_positions']:.0f} × {d['mean_targets']:.0f} tokens", str(d["lattices"]),
         *(shown(d["per_second"][what], 4) for what in _DECODING)]
        for d in report["decoding"]
    ]  # fmt: skip
    sizes = [f"{name}, MiB" for name in ("ours", *OTHERS)]
    bounds = ["B, M, N", "time over bare products", "share of peak", *sizes, "operations", "Viterbi's"]
    return [
        *markdown(["B, M, N", "", "ms", *(f"{o}, times that" for o in OTHERS), "mixed lengths"], speed),
        "", *markdown(bounds, limits),
        "", "Geometric means:", "", *markdown(["ratio", "mean", "of shapes"], means), "",
        *markdown(["decoding alone", "lattices", *(f"{what}, pairs/s" for what in _DECODING.values())], decoding),
    ]  # fmt: skip
