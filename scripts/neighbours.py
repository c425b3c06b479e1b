"""Put other word aligners and ours on the same pairs: scores, pairs per second, memory, start-up.

    python -m venv neighbours
    neighbours/bin/pip install -e '.[neighbours]'
    JACANA_DATA=~/corpora python scripts/neighbours.py --python neighbours/bin/python --json report.json
    python scripts/neighbours.py --only core,fast_align --pairs 100     # some systems, the first pairs of each set

Every system runs in a process of its own, with one thread. CPU time counts the processes that it starts. The pairs
are MTRef dev (all links) and Wiki dev (sure links), without those that $JACANA_DATA/leaks lists and those that a
model of ours was trained on; rates are of MSR's pairs with misspellings (--speed N of them, and --slow N for
systems that run an encoder). fast_align and eflomal are trained on the pairs that they align, without links; for
scores, on the sentences of the corpus's training part as well.

--set SYSTEM.NAME=VALUE changes a setting, --corpus FILE:LINKS the pairs. A table goes to stdout.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import text
from benchmarks.measure import command, machine, markdown, progress, shown, write_json
from outcome import ROOT, outcome

CHILD = ROOT / "scripts" / "benchmarks" / "aligners.py"
CORPORA = ("multimwa/mtref-dev.jsonl:all", "multimwa/wiki-dev.jsonl:sure")
SPEED = "rate"
OURS = ("core", "standard", "neural")


@dataclass(frozen=True)
class System:
    """`kind` names a class of benchmarks/aligners.py; `packages` is what pip installs for it."""

    title: str
    kind: str
    packages: str = ""
    encoder: str = ""
    slow: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)


SYSTEMS: dict[str, System] = {
    **{name: System(name, "jacana", slow=name == "neural", settings={"model": name}) for name in OURS},
    "fast_align": System("fast_align (systran-align)", "fast_align", "systran-align"),
    "fast_align_thot": System("fast_align (sil-thot)", "thot", "sil-thot"),
    "eflomal": System("eflomal", "eflomal", "eflomal"),
    "simalign": System("simalign, MPNet", "simalign", "simalign networkx", "mpnet", True,
                       {"layer": 8, "tokens": "bpe"}),
    "simalign_minilm": System("simalign, MiniLM", "simalign", "simalign networkx", "minilm", True,
                              {"layer": 5, "tokens": "bpe"}),
    "awesome": System("awesome-align, MiniLM", "awesome", "awesome-align", "minilm", True,
                      {"layer": 4, "threshold": 0.001}),
    "awesome_method": System("awesome-align's method, MPNet", "awesome_method", "transformers", "mpnet", True,
                             {"layer": 8, "thresholds": [0.001, 0.3]}),
    "otalign_minilm": System("OTAlign's method, MiniLM", "transport", "POT transformers", "minilm", True,
                             {"layer": 5, "reg": 0.05, "tau": 0.1, "thresholds": [0.1, 0.2]}),
    "otalign_method": System("OTAlign's method, MPNet", "transport", "POT transformers", "mpnet", True,
                             {"layer": 8, "reg": 0.05, "tau": 0.1, "thresholds": [0.1, 0.2]}),
}  # fmt: skip


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--only", default=",".join(SYSTEMS), metavar="NAMES", help=f"of {', '.join(SYSTEMS)}")
    add("--pairs", type=int, metavar="N", help="the first N pairs of each corpus (all)")
    add("--speed", type=int, default=4000, metavar="N", help="pairs for rates (4000); 0: none")
    add("--slow", type=int, default=200, metavar="N", help="pairs for rates of systems with an encoder (200)")
    add("--jobs", type=int, default=1, metavar="N", help="systems at the same time (1); wall times need 1")
    add("--corpus", action="append", metavar="FILE:LINKS", help="relative to JACANA_DATA; may be repeated")
    add("--set", action="append", default=[], metavar="SYSTEM.NAME=VALUE", help="may be repeated")
    add("--python", default=sys.executable, metavar="PATH", help="the Python that has the other packages")
    add("--json", type=Path, metavar="FILE", help="write the report here, after each system")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    options = parsed(arguments)
    return outcome(lambda: run(options))


def run(options: argparse.Namespace) -> None:
    from jacana_torch.errors import ConfigError, did_you_mean

    names = [name.strip() for name in options.only.split(",") if name.strip()]
    for name in names:
        if name not in SYSTEMS:
            raise ConfigError(f"there is no system {name!r}{did_you_mean(name, list(SYSTEMS))}")
    for name, value in (("--pairs", options.pairs), ("--slow", options.slow), ("--jobs", options.jobs)):
        if value is not None and value < 1:
            raise ConfigError(f"{name} {value} is too small")
    changed = settings(options.set)
    root = Path(os.environ.get("JACANA_DATA") or ".").expanduser()
    sets = {one: examples(root, one, options.pairs) for one in options.corpus or CORPORA}
    rated = list(text.pairs(root / "msr/dev.jsonl", options.speed)) if options.speed else []
    report: dict[str, Any] = {"machine": machine(1), "systems": {}}

    def one(name: str) -> tuple[str, dict[str, Any]]:
        progress(name)
        system = SYSTEMS[name]
        given: dict[str, Any] = {
            which: {"pairs": words(pairs), "text": more(root, which, system)} for which, (pairs, _) in sets.items()
        }
        if rated:
            given[SPEED] = {"pairs": rated[: options.slow] if system.slow else rated, "text": []}
        entry = measured(system, {**system.settings, **changed.get(name, {})}, given, options.python)
        return name, {"title": system.title, **summarised(entry, sets)}

    done: dict[str, dict[str, Any]] = {}
    with ThreadPoolExecutor(options.jobs) as pool:
        for future in as_completed([pool.submit(one, name) for name in names]):
            name, entry = future.result()
            done[name] = entry
            report["systems"] = {name: done[name] for name in names if name in done}
            if options.json:
                write_json(options.json, report)
    print("\n".join(table(report)))


def settings(given: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Read settings such as `simalign.layer=7`."""
    from jacana_torch.errors import ConfigError, did_you_mean

    changed: dict[str, dict[str, Any]] = {}
    for item in given:
        where, _, value = item.partition("=")
        system, _, name = where.partition(".")
        known = [f"{one}.{key}" for one, it in SYSTEMS.items() for key in it.settings]
        if where not in known:
            raise ConfigError(f"--set {item}: there is no setting {where!r}{did_you_mean(where, known)}")
        try:
            changed.setdefault(system, {})[name] = json.loads(value)
        except ValueError:
            changed.setdefault(system, {})[name] = value
    return changed


# The pairs


def examples(root: Path, which: str, count: int | None) -> tuple[list[Any], str]:
    """Read the annotated pairs of FILE:LINKS that no model of ours was trained on, and the links that count."""
    from jacana_torch import corpora
    from jacana_torch.model import persist

    file, _, links = which.partition(":")
    dropped: set[str] = set()
    for path in (root / "leaks").glob("drop_from_*.txt"):
        dropped.update(path.read_text(encoding="utf-8").split())
    seen = frozenset[int]().union(*(persist.trained_on(name) for name in OURS))
    read = (one for one in corpora.read(root / file) if one.gold and one.pair.source and one.pair.target)
    new = (one for one in read if one.pair.id not in dropped)
    kept = (one for one in new if one.pair.checksum not in seen or file.startswith("msr/"))
    return list(itertools.islice(kept, count)), links or "sure"


def words(pairs: Sequence[Any]) -> list[text.Pair]:
    return [(list(one.pair.source.tokens), list(one.pair.target.tokens)) for one in pairs]


def more(root: Path, which: str, system: System) -> list[text.Pair]:
    """Return the sentences of the corpus's training part, for systems that are trained on text."""
    path = root / which.partition(":")[0].replace("-dev.", "-train.")
    trained = system.kind in ("fast_align", "thot", "eflomal")
    return text.read(path) if trained and "-dev." in which and path.is_file() else []


# A system in its process


def measured(system: System, chosen: Mapping[str, Any], given: Mapping[str, Any], python: str) -> dict[str, Any]:
    """Run a system on all sets. Without its package, return how to install it."""
    from jacana_torch import resources

    python = sys.executable if system.kind == "jacana" else python
    with tempfile.TemporaryDirectory() as folder:
        job = {"kind": system.kind, "sets": given, **chosen}
        if system.encoder:
            job["encoder"] = str(resources.path(system.encoder))
            if system.kind == "awesome":
                job["encoder"] = old_format(Path(job["encoder"]), Path(folder, "encoder"))
        job_file, out = Path(folder, "job.json"), Path(folder, "out.json")
        job_file.write_text(json.dumps({**job, "begun": time.time()}))
        finished = command(["env", *ENVIRONMENT, python, str(CHILD), str(job_file), str(out)], meter=True)
        if finished.code:
            missing = "No module named" in finished.complaint
            why = finished.complaint if missing or finished.code > 0 else f"ended by signal {-finished.code}"
            return {"failed": why, "install": install(system, python) if missing else ""}
        return {**json.loads(out.read_text()), "peak_mib": finished.peak}


ENVIRONMENT = [
    f"PYTHONPATH={ROOT}", "OMP_NUM_THREADS=1", "MKL_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1", "HF_HUB_OFFLINE=1",
    "TOKENIZERS_PARALLELISM=false",
]  # fmt: skip


def install(system: System, python: str) -> str:
    return (
        f"{python} -m pip install {system.packages}" if system.packages else "pip install 'jacana-torch[neural]'"
    )


def old_format(encoder: Path, folder: Path) -> str:
    """Write an encoder as awesome-align reads it: pytorch_model.bin, not safetensors."""
    import torch
    from safetensors.torch import load_file

    folder.mkdir()
    torch.save(load_file(encoder / "model.safetensors"), folder / "pytorch_model.bin")
    for name in ("config.json", "vocab.txt"):
        (folder / name).write_bytes((encoder / name).read_bytes())
    kept = {"do_lower_case": True, "max_len": 512}  # its tokenizer does not know the other settings
    (folder / "tokenizer_config.json").write_text(json.dumps(kept))
    return str(folder)


# Figures


def summarised(entry: Mapping[str, Any], sets: Mapping[str, Any]) -> dict[str, Any]:
    """Replace links by their scores, for each variant."""
    if "failed" in entry:
        return dict(entry)
    rows = {}
    for name, one in entry["sets"].items():
        links = one.pop("links")
        rows[name] = {**one, "scores": {}}
        if name in sets:
            gold = [example.gold for example in sets[name][0]]
            rows[name]["scores"] = scores(gold, variants(gold, links), sets[name][1])
    return {**entry, "sets": rows}


def variants(gold: Sequence[Any], found: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return alignments by the name of the variant; two directions are combined in two ways."""
    from jacana_torch import symmetrize
    from jacana_torch.types import Alignment

    made = {
        name: [Alignment(one.n_source, one.n_target, frozenset(map(tuple, links)))
               for one, links in zip(gold, each, strict=True)]
        for name, each in found.items()
    }  # fmt: skip
    if "forward" in made:
        both = list(zip(made.pop("forward"), made.pop("backward"), strict=True))
        made["intersection"] = [symmetrize.intersection(*one) for one in both]
        made["grow-diag-final-and"] = [symmetrize.grow_diag_final_and(*one) for one in both]
    return made


def scores(gold: Sequence[Any], found: Mapping[str, Sequence[Any]], links: str) -> dict[str, dict[str, float]]:
    from jacana_torch.evaluate.scores import score

    made = {}
    for name, alignments in found.items():
        value = score(gold, alignments, links)
        made[name] = {key: 100 * getattr(value, key) for key in ("precision", "recall", "f1", "exact")}
    return made


def table(report: Mapping[str, Any]) -> list[str]:
    """Return the tables of scores, one for each corpus, and the table of costs."""
    systems = report["systems"]
    here = {name: one for name, one in systems.items() if "failed" not in one}
    lines: list[str] = []
    for which in dict.fromkeys(key for one in here.values() for key in one["sets"] if key != SPEED):
        rows = [
            [", ".join(filter(None, (one["title"], variant))), *(f"{value:.2f}" for value in figures.values())]
            for one in here.values()
            for variant, figures in one["sets"][which]["scores"].items()
        ]
        count = next(one["sets"][which]["pairs"] for one in here.values())
        file, _, links = which.partition(":")
        lines += [f"{file}, {count} pairs, {links or 'sure'} links:", ""]
        lines += [*markdown(["system", "P", "R", "F1", "exact"], rows), ""]
    lines += [*markdown(COSTS, [costs(one) for one in here.values()]), ""]
    for name, one in systems.items():
        if "failed" in one:
            hint = f" To install it: `{one['install']}`" if one["install"] else ""
            lines.append(f"{name} did not run ({one['failed']}).{hint}")
    return lines


COSTS = ["system", "pairs/s, CPU", "pairs/s, wall", "aligning alone, CPU", "start-up, CPU s", "wall s", "peak MiB"]


def costs(one: Mapping[str, Any]) -> list[str]:
    """Return rates, with training on the same pairs if the system needs it, and once it is trained."""
    rated = one["sets"].get(SPEED)
    cells = ["-"] * 3
    if rated:
        alone = rated["cpu"] - rated["training"]
        trained = rated["training"] > 0.05 * rated["cpu"]
        cells = [f"{rated['pairs'] / max(rated[key], 0.01):,.0f}" for key in ("cpu", "wall")]
        cells.append(f"{rated['pairs'] / alone:,.0f}" if trained and alone > 0.05 else "-")
    start = [f"{one['start'][key]:.1f}" for key in ("cpu", "wall")]
    return [one["title"], *cells, *start, shown(one["peak_mib"])]


if __name__ == "__main__":
    sys.exit(main())
