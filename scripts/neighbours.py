"""Put other word aligners and ours on the same pairs: scores, pairs per second, memory, start-up.

    python -m venv neighbours
    neighbours/bin/pip install -e '.[neighbours]'
    JACANA_DATA=~/corpora python scripts/neighbours.py --python neighbours/bin/python --json report.json
    python scripts/neighbours_page.py report.json                       # fills docs/neighbours.md
    python scripts/neighbours.py --only core,fast_align --pairs 100     # some systems, the first pairs of each set

Every system runs in a process of its own, with one thread. The pairs are MTRef dev (all links) and Wiki dev (sure
links), without those that $JACANA_DATA/leaks lists and those that a model of ours was trained on. Rates are pairs
per CPU second, which other programs on the machine disturb less than wall time, and count the processes that a
system starts. They are of MSR's pairs with misspellings: three times N pairs (--speed, --slow for systems that run
an encoder), all distinct, and the median of the three. fast_align and eflomal are trained on the pairs that they
align, without links; for scores, on the sentences of the corpus's training part as well.

--set SYSTEM.NAME=VALUE changes a setting, --corpus FILE:LINKS the pairs. A table goes to stdout.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import text
from benchmarks.measure import Summary, command, machine, markdown, progress, shown, write_json
from outcome import ROOT, outcome

CHILD = ROOT / "scripts" / "benchmarks" / "aligners.py"
CORPORA = ("multimwa/mtref-dev.jsonl:all", "multimwa/wiki-dev.jsonl:sure")
ROUNDS = 3  # of rates
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
    add("--speed", type=int, default=4000, metavar="N", help="pairs for a rate (4000); 0: no rates")
    add("--slow", type=int, default=60, metavar="N", help="pairs for a rate of systems with an encoder (60)")
    add("--jobs", type=int, default=1, metavar="N", help="systems at the same time (1)")
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
    rated = list(text.pairs(root / "msr/dev.jsonl", ROUNDS * options.speed)) if options.speed else []
    report: dict[str, Any] = {"machine": machine(1), "systems": {}}

    def one(name: str) -> tuple[str, dict[str, Any]]:
        progress(name)
        system = SYSTEMS[name]
        given = {
            which: {"pairs": words(pairs), "text": more(root, which, system)} for which, (pairs, _) in sets.items()
        }
        size = min(options.slow, options.speed) if system.slow else options.speed
        rates = [rated[k * size : (k + 1) * size] for k in range(ROUNDS if size else 0)]
        job = {"sets": given, "rates": rates, **system.settings, **changed.get(name, {})}
        entry = measured(system, job, options.python)
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


def measured(system: System, given: Mapping[str, Any], python: str) -> dict[str, Any]:
    """Run a system on all sets. Without its package, return how to install it."""
    from jacana_torch import resources

    python = sys.executable if system.kind == "jacana" else python
    with tempfile.TemporaryDirectory() as folder:
        job = {"kind": system.kind, "packages": system.packages.split(), **given}
        if system.encoder:
            job["encoder"] = str(resources.path(system.encoder))
            if system.kind == "awesome":
                job["encoder"] = old_format(Path(job["encoder"]), Path(folder, "encoder"))
        job_file, out = Path(folder, "job.json"), Path(folder, "out.json")
        job_file.write_text(json.dumps(job))
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
        gold = [example.gold for example in sets[name][0]]
        found = variants(gold, one.pop("links"))
        rows[name] = {**one, "scores": scores(gold, found, sets[name][1])}
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
    """Return the scores of each variant in percent, and the 95% interval of F1."""
    from jacana_torch.evaluate.scores import Score, count
    from jacana_torch.evaluate.significance import intervals

    made = {}
    for name, alignments in found.items():
        counts = count(gold, alignments, links)
        value, likely = Score.of(counts), intervals(counts)["f1"]
        made[name] = {key: 100 * getattr(value, key) for key in ("precision", "recall", "f1", "exact")}
        made[name] |= {"low": 100 * likely.low, "high": 100 * likely.high}
    return made


def table(report: Mapping[str, Any]) -> list[str]:
    """Return the tables of scores, one for each corpus, and the table of costs."""
    here = [one for one in report["systems"].values() if "failed" not in one]
    lines: list[str] = []
    for which in dict.fromkeys(key for one in here for key in one["sets"]):
        lines += [*scored(report, which), ""]
    lines += [*costs(report), ""]
    for name, one in report["systems"].items():
        if "failed" in one:
            hint = f" To install it: `{one['install']}`" if one["install"] else ""
            lines.append(f"{name} did not run ({one['failed']}).{hint}")
    return lines


def scored(report: Mapping[str, Any], which: str) -> list[str]:
    """Return the table of scores on a corpus, with a line above it."""
    here = [one for one in report["systems"].values() if "failed" not in one]
    rows = [
        [", ".join(filter(None, (one["title"], variant))),
         *(f"{found[key]:.2f}" for key in ("precision", "recall", "f1")),
         f"{found['low']:.1f}–{found['high']:.1f}", f"{found['exact']:.2f}"]
        for one in here
        for variant, found in one["sets"][which]["scores"].items()
    ]  # fmt: skip
    file, _, links = which.partition(":")
    above = f"{file}, {here[0]['sets'][which]['pairs']} pairs, {links or 'sure'} links:"
    return [above, "", *markdown(["system", "P", "R", "F1", "95% interval", "exact"], rows)]


def costs(report: Mapping[str, Any]) -> list[str]:
    head = ["system", "pairs/s", "aligning alone", "start-up, s", "peak MiB"]
    return markdown(head, [cost(one) for one in report["systems"].values() if "failed" not in one])


def cost(one: Mapping[str, Any]) -> list[str]:
    """Return rates, with training on the same pairs if the system needs it, and once it is trained."""
    rates = one["rates"]
    whole = [round_["pairs"] / max(round_["cpu"], 0.01) for round_ in rates]
    alone = [round_["cpu"] - round_["training"] for round_ in rates]
    trained = any(round_["training"] > 0.05 * round_["cpu"] for round_ in rates) and min(alone) > 0.05
    later = [round_["pairs"] / seconds for round_, seconds in zip(rates, alone, strict=True)] if trained else []
    return [one["title"], spread(whole), spread(later), f"{one['start']:.1f}", shown(one["peak_mib"])]


def spread(values: Sequence[float]) -> str:
    """Show the median, the least and the greatest."""
    if not values:
        return "-"
    return shown(Summary(median=statistics.median(values), low=min(values), high=max(values)))


if __name__ == "__main__":
    sys.exit(main())
