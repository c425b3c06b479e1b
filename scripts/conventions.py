"""Cross-validate one model of several conventions against models of one corpus each, and print Markdown.

    python scripts/conventions.py standard core --l2-style 4,12

Each fold of MSR and Edinburgh is aligned by a model that was trained on their other folds and on all of the
other corpora: MTRef without the pairs that share sentences with Edinburgh, and `--wiki` pairs of Wiki of at most
40 words a side. Pairs of MSR that `data=conventions` drops are scored, and trained on by no model. *alone* is a
model of the corpus, *pooled* one of MSR and Edinburgh without styles. The combination of both directions is learnt
from the other held-out folds. `--dev` scores a file of `$JACANA_DATA`, all links, by every style as well: both
halves are calibrated on each other, and the model is that of the first fold.

`--glosses` adds so many pairs of WordNet's glosses that begin alike, which change the shared weights, as made
pairs of the shipped models do. The last table then has links between unlike words of glosses (`unrelated.py`), by
the model of the first fold, calibrated on its held-out pairs.
"""

from __future__ import annotations

import argparse
import logging
import os
import random
import sys
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
from outcome import outcome
from shared_sentences import sentences
from unrelated import definitions, drawn, unlike_links

from jacana_torch import corpora
from jacana_torch.aligners.base import styles_of
from jacana_torch.aligners.bidirectional import Bidirectional
from jacana_torch.aligners.calibration import Sample, best_threshold, fitted, sampled
from jacana_torch.aligners.crf import Crf
from jacana_torch.aligners.posterior import Combination
from jacana_torch.crf.objective import Objective, prior
from jacana_torch.evaluate import Counts, Score
from jacana_torch.model.model import Model
from jacana_torch.optimize.minimise import minimise
from jacana_torch.train.augment.glosses import Glosses
from jacana_torch.train.compose import composed
from jacana_torch.train.loop import folds
from jacana_torch.types import Example
from jacana_torch.util import conf
from jacana_torch.util.build import build

SCORED, FOLDS, LONGEST = ("msr", "edinburgh"), 5, 40
ROOT = Path(os.environ.get("JACANA_DATA", "."))
Chains = dict[str, Crf]
log = logging.getLogger("conventions")


def read(wiki: int, glosses: int) -> tuple[list[Example], list[bool], set[str]]:
    """Return the pairs of all corpora with styles and weights, whether each may be trained on, and dropped ids."""
    data = conf.read(conf.conf_directory() / "data" / "conventions.yaml")
    dropped = {line for file in data["drop_ids"] for line in (ROOT / file).read_text().split()}
    known, found = set[str](), list[Example]()
    for file, style, weight in zip(data["train"], data["styles"], data["weights"], strict=True):
        own = [replace(e, style=style, weight=float(weight)) for e in corpora.read(str(ROOT / file))]
        if style in SCORED:
            known.update(text for example in own for text in sentences(example.pair))
        else:
            own = [e for e in own if e.pair.id not in dropped and known.isdisjoint(sentences(e.pair))]
        if style == "wiki":
            own = [e for e in own if max(len(e.pair.source), len(e.pair.target)) <= LONGEST]
            own = [own[k] for k in np.random.default_rng(1).permutation(len(own))[:wiki]]
        found += own
    made = Glosses(longest=14).make(found, random.Random(1)) if glosses else ()
    found += [replace(example, weight=0.6) for example in islice(made, glosses)]
    return found, [example.pair.id not in dropped for example in found], dropped


class Corpora:
    """The features of all pairs in one direction, and trainings on some of the pairs."""

    def __init__(self, chain: Crf, examples: Sequence[Example]) -> None:
        order = sorted(range(len(examples)), key=lambda k: len(examples[k].pair.target))
        self.chain, self.styles = chain, styles_of(examples)
        self.parts, _, self.names, _ = chain._parts([examples[k] for k in order], self.styles)
        self.places = [[k for k in order if examples[k].style == style] for style in dict.fromkeys(
            examples[k].style for k in order)]  # fmt: skip

    def trained(self, counts: np.ndarray, styled: bool, l2_style: float) -> Crf:
        """Return a chain of the pairs that count; those of a style that has none are left out."""
        made = replace(self.chain, names=[], weights=np.zeros(0))
        parts = []
        for part, places in zip(self.parts, self.places, strict=True):
            if counts[places].any():
                parts.append(part._replace(counts=counts[places], style=part.style if styled else None))
        styles = self.styles if styled else []
        widths = np.array([made.l2, *[l2_style] * len(styles)])
        l2 = np.outer(widths, prior(self.names, made.priors, {}, 1.0)[1]).reshape(-1)
        costs = {"cost_null": made.cost_null, "cost_link": made.cost_link}
        result = minimise(
            Objective(parts, l2, costs, styles=len(styles)), np.zeros(len(l2)), tolerance=1e-5, noise=2e-7,
            curvature=float(l2.min()), history=100, scale=np.repeat(np.sqrt(made.l2 / widths), len(self.names)),
        )  # fmt: skip
        log.info("%s: loss %.2f after %d iterations", made.part, result.loss, result.iterations)
        made._take(self.names, styles, result.x)
        return made


def calibrated(sample: Sample) -> Combination:
    found = fitted(sample)
    return replace(found, threshold=best_threshold(sample, found))


def counted(sample: Sample, others: Sequence[Sample]) -> np.ndarray:
    """Return the counts of gold, predicted and correct links of each pair, as the other samples calibrate them."""
    combination = calibrated(Sample.joined(others))
    chosen = combination.combine(sample.forward, sample.backward) >= combination.threshold
    pairs = int(sample.pair.max()) + 1
    columns = (np.bincount(sample.pair, kind, pairs) for kind in (sample.gold, chosen, sample.gold & chosen))
    return np.stack([*columns], 1).astype(np.int64)


def halves(sample: Sample) -> list[Sample]:
    return [sample.only(sample.pair % 2 == half) for half in (0, 1)]


def row(name: str, corpus: str, style: str, samples: Sequence[Sample]) -> str:
    counts = [counted(one, [other for other in samples if other is not one]) for one in samples]
    score = Score.of(Counts(np.concatenate(counts)))
    figures = (100 * value for value in (score.precision, score.recall, score.f1, score.exact))
    return f"| {name} | {corpus} | {style} | {' | '.join(f'{figure:.2f}' for figure in figures)} |"


def report(experiment: str, given: argparse.Namespace) -> None:
    config = composed(experiment)
    aligner = build(config["aligner"], Bidirectional)
    model = Model(aligner, build(config["annotate"]) if config["annotate"] else None)
    examples, usable, unread = read(given.wiki, given.glosses)
    ready = model.prepare([example.pair for example in examples])
    examples = [replace(example, pair=pair) for example, pair in zip(examples, ready, strict=True)]
    dev: dict[str, list[Example]] = {}
    for file in given.dev:
        dev[file] = []
        own = [e for e in list(corpora.read(str(ROOT / file)))[: given.most] if e.pair.id not in unread]
        for e, pair in zip(own, model.prepare([e.pair for e in own]), strict=True):
            if e.gold is not None:
                gold = replace(e.gold, sure=frozenset(e.gold.all_links), possible=frozenset())
                dev[file].append(replace(e, pair=pair, gold=gold))
    sides = {}
    for part, flip in (("forward", False), ("backward", True)):
        chain = replace(getattr(aligner, part), precision="float32")
        sides[part] = Corpora(chain, [e.flip() for e in examples] if flip else examples)
        log.info("%s: features of %d pairs", part, len(examples))
    weight = np.array([example.weight * can for example, can in zip(examples, usable, strict=True)])
    style = np.array([example.style for example in examples])
    held = np.zeros((FOLDS, len(examples)), dtype=bool)
    for corpus in SCORED:
        places = np.flatnonzero(style == corpus)
        for number, (_, test) in enumerate(folds(len(places), FOLDS, 1)):
            held[number, places[test]] = True
    unlike, glossed = drawn(definitions(), 1000, 1)["a common beginning"] if given.glosses else [], list[str]()
    systems: dict[str, tuple[Sequence[str], float | None]] = {}
    for corpus in SCORED:
        systems[f"{corpus} alone"] = [corpus], None
    systems["pooled"] = SCORED, None
    for l2 in given.l2_style:
        systems[f"styles, l2_style={l2:g}"] = sorted({*style} - {None}), l2
    for name, (of, l2) in systems.items():
        if given.only and not name.startswith(tuple(given.only)):
            continue
        found: dict[tuple[str, str], list[Sample]] = {}
        for fold in range(FOLDS):
            trained_on = np.array([one is None or one in of for one in style])
            counts = np.where(trained_on & ~held[fold], weight, 0.0)
            one, other = (side.trained(counts, l2 is not None, l2 or 1.0) for side in sides.values())
            for corpus in of:
                if corpus in SCORED:
                    choose(one, other, corpus)
                    own = [examples[k] for k in np.flatnonzero(held[fold] & (style == corpus))]
                    found.setdefault((corpus, corpus), []).append(sampled(one, other, own))
                    if fold == 0 and given.glosses:
                        sample = found[corpus, corpus][0]
                        aligner.forward, aligner.backward, aligner.combination = one, other, calibrated(sample)
                        two = unlike_links(model, unlike, 0.8)
                        glossed.append(
                            f"| {experiment}, {name} | {corpus if l2 else ''} | {two[0]:.1f} | {two[1]:.1f} |"
                        )
            for file, own in dev.items() if fold == 0 and len(of) > 1 else ():
                for by in ("", *one.styles):
                    choose(one, other, by)
                    found[file, by or "shared"] = halves(sampled(one, other, own))
        for (corpus, by), samples in found.items():
            sys.stdout.write(row(f"{experiment}, {name}", corpus, by if l2 else "", samples) + "\n")
        sys.stdout.flush()
    if glossed:
        rows = "\n".join(glossed)
        sys.stdout.write(f"\n| model | style | links of unlike words | ≥ 0.8 |\n|---|---|---:|---:|\n{rows}\n")


def choose(one: Crf, other: Crf, style: str) -> None:
    for chain in (one, other):
        chain.choose(style if style in chain.styles else None)


def numbers(text: str) -> list[float]:
    return list(map(float, text.split(",")))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("experiments", nargs="+", metavar="EXPERIMENT")
    parser.add_argument("--l2-style", type=numbers, default=[4.0], metavar="N,...")
    parser.add_argument("--wiki", type=int, default=300, metavar="N")
    parser.add_argument("--glosses", type=int, default=0, metavar="N")
    parser.add_argument("--only", action="append", metavar="BEGINNING", help="systems whose names begin so")
    parser.add_argument("--dev", nargs="*", default=["multimwa/mtref-dev.jsonl"], metavar="FILE")
    parser.add_argument("--most", type=int, metavar="N", help="the first so many pairs of each file of --dev")
    given = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    sys.stdout.write("| model | corpus | style | P | R | F1 | exact |\n|---|---|---|---:|---:|---:|---:|\n")

    def script() -> None:
        for experiment in given.experiments:
            report(experiment, given)

    return outcome(script)


if __name__ == "__main__":
    sys.exit(main())
