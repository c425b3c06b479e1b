"""Fine-tune a shipped model on small samples of a corpus with other conventions, and score it on 40 unseen pairs.

    JACANA_DATA=CORPORA python scripts/fine_tuning.py                          # MTRef's and Wiki's dev part
    JACANA_DATA=CORPORA python scripts/fine_tuning.py --pull 0.3,1,3,10,30     # how strong the pull should be
    python scripts/fine_tuning.py --corpus my.jsonl --links sure --pairs 50    # a corpus of your own

Each split draws training pairs and 40 other pairs at random. `shipped` is the start, `scratch` the same
configuration trained on the sample alone, `fine-tuned` what `train start=MODEL data.train=[SAMPLE]` makes. Means
and standard deviations are over splits; `won` counts the splits in which fine-tuning has a higher F1 than both
others. MTRef is scored on all links, as its training part does not tell sure and possible ones apart.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from outcome import outcome

from jacana_torch.aligners.base import Aligner
from jacana_torch.errors import ConfigError
from jacana_torch.evaluate import score
from jacana_torch.model import persist
from jacana_torch.train import data, start
from jacana_torch.train.loop import fit
from jacana_torch.types import Example
from jacana_torch.util import conf
from jacana_torch.util.build import build

UNSEEN = 40  # pairs that each split scores
CORPORA = (("multimwa/mtref-dev.jsonl", "all"), ("multimwa/wiki-dev.jsonl", "sure"))
DROPPED = ("leaks/drop_from_mtref_dev_for_edinburgh_test.txt",)  # pairs that the shipped models were trained on


@dataclass
class Row:
    """Scores of one system, in percent, one for each split."""

    f1: list[float] = field(default_factory=list)
    exact: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def add(self, aligner: Aligner, examples: Sequence[Example], seconds: float = 0.0) -> None:
        gold = [e.gold for e in examples if e.gold is not None]
        found = score(gold, aligner.align([e.pair for e in examples]))
        self.f1.append(100 * found.f1)
        self.exact.append(100 * found.exact)
        self.seconds.append(seconds)


def examples_of(path: str, links: str, name: str) -> list[Example]:
    """The pairs of a corpus that the model was not trained on, with the layers that it reads."""
    root = os.environ.get("JACANA_DATA", ".")
    given = {"root": root, "train": [path], "dev": [], "sidecar": [], "limit": None}
    drop = [file for file in DROPPED if Path(root, file).is_file() and path.startswith("multimwa/")]
    found = data.annotated(persist.load(name), data.load({**given, "drop_ids": drop}, links)).train
    known = persist.trained_on(name)
    return [example for example in found if example.pair.checksum not in known]


def measured(
    name: str, examples: Sequence[Example], n: int, splits: int, pulls: Sequence[float]
) -> dict[str, Row]:
    """Scores of all systems on `splits` random splits with `n` training pairs each."""
    if n + UNSEEN > len(examples):
        raise ConfigError(
            f"--pairs {n}: with {UNSEEN} to score, that is more than the {len(examples)} pairs there are"
        )
    shipped, config = persist.load(name).aligner, persist.read_config(persist.locate(name))["model"]["aligner"]
    rows = {"shipped": Row(), "scratch": Row()}
    for split in range(splits):
        order = np.random.default_rng(split).permutation(len(examples))
        unseen, sample = ([examples[k] for k in part] for part in (order[:UNSEEN], order[UNSEEN : UNSEEN + n]))
        rows["shipped"].add(shipped, unseen)
        for pull in (None, *pulls):
            aligner, begun = build(config), time.perf_counter()
            if pull is not None:
                start.begin(aligner, name, pull)
            fit(aligner, sample)
            label = "scratch" if pull is None else "fine-tuned" if len(pulls) == 1 else f"pull {pull:g}"
            rows.setdefault(label, Row()).add(aligner, unseen, time.perf_counter() - begun)
    return rows


def lines(rows: dict[str, Row], title: str) -> list[str]:
    out = []
    for name, row in rows.items():
        won = sum(a > max(b, c) for a, b, c in zip(row.f1, rows["shipped"].f1, rows["scratch"].f1, strict=True))
        figures = (
            f"{np.mean(x):7.2f} ±{np.std(x, ddof=1) if len(x) > 1 else 0:5.2f}" for x in (row.f1, row.exact)
        )
        told = "" if name in ("shipped", "scratch") else f"{won:4} of {len(row.f1)}"
        out.append(f"{title:28}{name:12}{'  '.join(figures)}{told:>10}{np.mean(row.seconds):9.1f}")
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--start", default="core", help="models to start from, separated by commas (core)")
    parser.add_argument("--corpus", help="a corpus in JACANA_DATA, or any file (MTRef's and Wiki's dev part)")
    parser.add_argument("--links", choices=("sure", "all"), default="sure", help="of --corpus (sure)")
    parser.add_argument("--pairs", default="30,60,200", help="sizes of the samples (30,60,200)")
    parser.add_argument("--splits", type=int, default=5, help="random splits (5)")
    default = conf.read(conf.conf_directory() / "trainer" / "lbfgs.yaml")["pull"]
    parser.add_argument("--pull", default=str(default), help=f"strengths of the pull ({default})")
    given = parser.parse_args()
    torch.set_num_threads(1)
    pulls = [float(text) for text in given.pull.split(",")]
    print(f"{'':28}{'':12}{'F1':>7}{'':8}{'exact':>7}{'':8}{'won':>8}{'seconds':>9}")
    for name in given.start.split(","):
        for path, links in ((given.corpus, given.links),) if given.corpus else CORPORA:
            examples = examples_of(path, links, name)
            for n in map(int, given.pairs.split(",")):
                title = f"{name} {Path(path).stem} {n}"
                print("\n".join(lines(measured(name, examples, n, given.splits, pulls), title)), flush=True)


if __name__ == "__main__":
    sys.exit(outcome(main))
