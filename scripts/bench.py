"""How fast inference is: against other libraries on the same lattices, and against its own matrix products.

    python scripts/bench.py engine  [--threads 1] [--json FILE]   # vs pytorch-crf and torch-struct
    python scripts/bench.py scaling [--threads 1] [--json FILE]   # time over batch, source and target length
    python scripts/bench.py align   [--models M ...] [--json FILE]   # pairs a second of `jacana-torch align`

Every figure is a median of repeated runs in this process, systems taking turns, with the quartiles as its spread;
ratios are between medians of the same run. Needs `pip install jacana-torch[bench]` for the comparison.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import platform
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import torch

from jacana_torch.crf.inference import log_partition, marginals, viterbi
from jacana_torch.crf.potentials import Potentials

SHAPES = [(64, 30, 12), (64, 12, 30), (64, 30, 110), (512, 30, 30)]  # B, M, N
SYSTEMS = ["jacana", "pytorch-crf", "torch-struct"]


def lattices(B: int, M: int, N: int, ragged: bool = False, dtype: torch.dtype = torch.float32) -> Potentials:
    """Normal scores; one table, as the other libraries have one."""
    torch.manual_seed(0)
    S = N + 1
    lengths = torch.randint(max(1, M // 2), M + 1, (B,)) if ragged else torch.full((B,), M)
    lengths[0] = M
    scores = (torch.randn(*shape, dtype=dtype) for shape in ((B, M, S), (1, S, S), (1, S), (1, S)))
    return Potentials.build(*scores, torch.zeros(B, dtype=torch.long), lengths, torch.full((B,), S))


# Each system: the time of log Z with all marginals, and of the best path. What it needs is made beforehand.


def jacana(p: Potentials) -> dict[str, Callable]:
    return {
        "gradient": lambda: _gradient(p),
        "marginals": lambda: marginals(p),
        "partition": lambda: log_partition(p),
        "viterbi": lambda: viterbi(p),
    }


def _gradient(p: Potentials) -> None:
    leaves = [x.detach().requires_grad_() for x in (p.node, p.edge, p.start, p.end)]
    log_partition(Potentials(*leaves, p.table, p.lengths, p.sizes)).sum().backward()


def pytorch_crf(p: Potentials) -> dict[str, Callable]:
    from torchcrf import CRF

    B, M, S = p.shape
    crf = CRF(S)
    with torch.no_grad():
        crf.transitions.copy_(p.edge[0])
        crf.start_transitions.copy_(p.start[0])
        crf.end_transitions.copy_(p.end[0])
    mask = torch.arange(M)[:, None] < p.lengths
    node = p.node.transpose(0, 1).masked_fill(~mask[:, :, None], 0.0).contiguous()

    def gradient() -> None:
        emissions = node.clone().requires_grad_()
        for parameter in crf.parameters():
            parameter.grad = None
        crf._compute_normalizer(emissions, mask).sum().backward()

    def partition() -> None:
        with torch.no_grad():
            crf._compute_normalizer(node, mask)

    def decode() -> None:
        with torch.no_grad():
            crf.decode(node, mask)

    return {"gradient": gradient, "marginals": gradient, "partition": partition, "viterbi": decode}


def torch_struct(p: Potentials) -> dict[str, Callable] | None:
    from torch_struct import LinearChainCRF

    B, M, S = p.shape
    if B * (M // 2) * S**3 * 4 * 6 > _free_memory() / 4:
        return None  # its scan holds [B, M/2, S, S, S] several times over
    warnings.simplefilter("ignore")
    node = p.node.clamp_min(-1e5)
    scores = node[:, 1:, :, None] + p.edge[0].T  # [B, M-1, S (this), S (previous)]
    scores[:, 0] += (p.start[0] + node[:, 0])[:, None, :]
    scores[torch.arange(B), p.lengths - 2] += p.end[0][None, :, None]
    lengths = p.lengths

    def chain() -> LinearChainCRF:
        return LinearChainCRF(scores.clone().requires_grad_(), lengths=lengths)

    both = lambda: chain().marginals  # noqa: E731 - properties compute
    return {
        "gradient": both,
        "marginals": both,
        "partition": lambda: chain().partition,
        "viterbi": lambda: chain().argmax,
    }


MAKERS = {"jacana": jacana, "pytorch-crf": pytorch_crf, "torch-struct": torch_struct}


def products(p: Potentials) -> Callable:
    """The matrix products alone that log Z and its gradient are made of."""
    B, M, S = p.shape
    table, rows = torch.rand(S + 1, S + 1), torch.rand(M + 1, B, S + 1)
    out = torch.empty(M + 1, B, S + 1)
    steps, outs = rows.unbind(0), out.unbind(0)

    def run() -> None:
        for t in range(M + 1):
            torch.mm(steps[t], table, out=outs[t])
        for t in range(M + 1):
            torch.mm(steps[t], table.t(), out=outs[t])
        torch.mm(rows.view(-1, S + 1).t(), out.view(-1, S + 1))

    return run


def check(p: Potentials) -> None:
    """The systems compute the same thing, or the comparison means nothing."""
    from torchcrf import CRF

    ours = log_partition(p)
    M = p.shape[1]
    mask = torch.arange(M)[:, None] < p.lengths
    crf = CRF(p.shape[2])
    with torch.no_grad():
        crf.transitions.copy_(p.edge[0])
        crf.start_transitions.copy_(p.start[0])
        crf.end_transitions.copy_(p.end[0])
        theirs = crf._compute_normalizer(p.node.transpose(0, 1).masked_fill(~mask[:, :, None], 0.0), mask)
    if not torch.allclose(ours, theirs, atol=1e-3, rtol=1e-5):
        raise SystemExit(f"log Z differs from pytorch-crf's by up to {(ours - theirs).abs().max().item():.2g}")


def timings(runs: dict[str, Callable], seconds: float) -> dict[str, dict[str, float]]:
    """Median and quartiles in ms, the runs taking turns until each had `seconds` (at least 5 turns)."""
    taken: dict[str, list[float]] = {name: [] for name in runs}
    for run in runs.values():
        run()
    turn = 0
    while turn < 5 or any(sum(t) < seconds and len(t) < 200 for t in taken.values()):
        for name, run in runs.items():
            if turn >= 5 and sum(taken[name]) >= seconds:
                continue
            begun = time.perf_counter()
            run()
            taken[name].append(time.perf_counter() - begun)
        turn += 1
    return {name: _summary(times) for name, times in taken.items()}


def _summary(times: list[float]) -> dict[str, float]:
    low, middle, high = statistics.quantiles(times, n=4)
    return {"ms": middle * 1e3, "low": low * 1e3, "high": high * 1e3, "runs": len(times)}


def peak_memory(system: str, shape: tuple[int, int, int]) -> float | None:
    """MiB that log Z with its marginals adds to a fresh process; None where it cannot be run or measured."""
    if not Path("/proc/self/clear_refs").exists():
        return None
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return pool.apply(_peak, (system, shape))


def _peak(system: str, shape: tuple[int, int, int]) -> float | None:
    warm = MAKERS[system](lattices(2, 4, 3))
    if warm:
        warm["marginals"]()
    runs = MAKERS[system](lattices(*shape))
    if runs is None:
        return None
    before = _resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    runs["marginals"]()
    return (_resident("VmHWM") - before) / 1024


def _resident(which: str) -> int:
    """KiB, from Linux; resource.getrusage would count the parent process's peak as ours."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(which))


def _free_memory() -> float:
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def machine() -> dict[str, object]:
    return {
        "torch": torch.__version__, "python": platform.python_version(), "threads": torch.get_num_threads(),
        "cores": os.cpu_count(), "cpu": platform.processor() or platform.machine(),
    }  # fmt: skip


def engine(arguments: argparse.Namespace) -> dict:
    report: dict = {"machine": machine(), "shapes": []}
    for shape in SHAPES:
        p = lattices(*shape, ragged=arguments.ragged)
        check(p)
        systems = {name: MAKERS[name](p) for name in SYSTEMS}
        runs = {f"{name} {what}": run for name, made in systems.items() if made for what, run in made.items()}
        runs["products"] = products(p)
        times = timings(runs, arguments.seconds)
        entry = {"shape": shape, "times": times, "ratios": _ratios(times)}
        if not arguments.no_memory:
            entry["memory_mib"] = {name: peak_memory(name, shape) for name in SYSTEMS}
        report["shapes"].append(entry)
        _show(entry)
    report["geometric_means"] = _geometric(report["shapes"])
    print("geometric means", {k: round(v, 1) for k, v in report["geometric_means"].items()})
    return report


def _ratios(times: dict[str, dict[str, float]]) -> dict[str, float]:
    out = {}
    for what in ("gradient", "marginals", "partition", "viterbi"):
        ours = times[f"jacana {what}"]["ms"]
        for other in SYSTEMS[1:]:
            if f"{other} {what}" in times:
                out[f"{what} vs {other}"] = times[f"{other} {what}"]["ms"] / ours
    out["marginals over bare products"] = times["jacana marginals"]["ms"] / times["products"]["ms"]
    return out


def _geometric(entries: list[dict]) -> dict[str, float]:
    names = dict.fromkeys(name for entry in entries for name in entry["ratios"])
    values = {name: [e["ratios"][name] for e in entries if name in e["ratios"]] for name in names}
    return {name: math.exp(sum(map(math.log, found)) / len(found)) for name, found in values.items()}


def _show(entry: dict) -> None:
    print("B, M, N =", *entry["shape"])
    for name, t in entry["times"].items():
        print(f"  {name:24} {t['ms']:10.3f} ms   ({t['low']:.3f} .. {t['high']:.3f}, {t['runs']} runs)")
    for name, value in entry["ratios"].items():
        print(f"  {name:40} {value:8.2f}")
    for name, value in entry.get("memory_mib", {}).items():
        print(f"  peak memory of {name:24} " + ("not run" if value is None else f"{value:8.1f} MiB"))


def scaling(arguments: argparse.Namespace) -> dict:
    """One length grows at a time; the exponent is the slope of log time over its last doubling."""
    report: dict = {"machine": machine(), "scaling": []}
    base = {"B": 64, "M": 24, "N": 24}
    for name, values in (("B", (16, 64, 256, 1024)), ("M", (12, 24, 48, 96)), ("N", (12, 24, 48, 96))):
        rows = []
        for value in values:
            p = lattices(*{**base, name: value}.values())
            runs = jacana(p)
            times = timings({what: runs[what] for what in ("marginals", "viterbi")}, arguments.seconds)
            rows.append({name: value, **{what: t["ms"] for what, t in times.items()}})
            print(f"{name} = {value:5}: " + "  ".join(f"{w} {t['ms']:8.3f} ms" for w, t in times.items()))
        growth = {w: math.log2(rows[-1][w] / rows[-2][w]) for w in ("marginals", "viterbi")}
        print(f"  grows as {name} to the power of", {w: round(g, 2) for w, g in growth.items()})
        report["scaling"].append({"over": name, "rows": rows, "exponent": growth})
    return report


def align(arguments: argparse.Namespace) -> dict:
    import bench_align

    return {
        "machine": machine(),
        "align": bench_align.align(arguments.models, arguments.pairs, max(arguments.runs, 3)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["engine", "scaling", "align"])
    parser.add_argument(
        "--threads", type=int, default=1, help="torch threads; 0 leaves torch's default (default: 1)"
    )
    parser.add_argument("--seconds", type=float, default=1.0, help="time to spend on each figure")
    parser.add_argument("--ragged", action="store_true", help="lengths between M/2 and M instead of all M")
    parser.add_argument("--no-memory", action="store_true", help="skip measuring peak memory in child processes")
    parser.add_argument("--models", nargs="+", default=["core", "standard"], help="align: which models")
    parser.add_argument("--pairs", type=int, default=1000, help="align: pairs of a run")
    parser.add_argument("--runs", type=int, default=5, help="align: how many runs (at least 3)")
    parser.add_argument("--json", type=Path, help="write the report here")
    arguments = parser.parse_args()
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    report = {"engine": engine, "scaling": scaling, "align": align}[arguments.part](arguments)
    if arguments.json:
        partial = arguments.json.with_suffix(".partial")
        partial.write_text(json.dumps(report, indent=1) + "\n")
        os.replace(partial, arguments.json)
        print(f"wrote {arguments.json}", file=sys.stderr)


if __name__ == "__main__":
    main()
