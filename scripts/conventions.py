"""Cross-validate one model of several conventions on MSR and Edinburgh, and print Markdown.

    python scripts/conventions.py experiment=conventions --silver FOLDER # as `jacana-torch train`

`data.styles` must name the conventions `msr` and `edinburgh`. Each fold of these corpora, as `cv=5` draws them,
is aligned by a model that was trained on their other folds and on all of the other corpora, without the pairs
that share sentences with MSR or Edinburgh. Pairs of MSR that `data.drop_ids` names are scored, and trained on by
no model; nor is what is made of a held-out pair. The folds are aligned by both styles and by the shared weights.
The combination of both directions is learnt from the other held-out folds, of the corpus that the style is of.

Pairs that a model has aligned (`data.augment.makers`, the class `Labelled`) need a teacher that has not seen the
scored fold, though it may have seen the other corpus: FOLDER holds them as msr.fold0.jsonl and so on
(`fold_teachers.py`), and models are trained for each scored corpus. Without `--silver` these pairs are left out.

`--dev` scores files of `$JACANA_DATA`, all links, by every style: both halves are calibrated on each other, and
the model is that of the first fold. `--without CORPUS` leaves `msr` or `edinburgh` out of training, and scores it
by the other's style and calibration. The last table has links between unlike words of glosses (`unrelated.py`)
and the correlation with judgements (`similarity.py`), by the model of the first fold, calibrated on its held-out
pairs.
"""

from __future__ import annotations

import argparse
import logging
import os
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain, product
from pathlib import Path

import numpy as np
from outcome import outcome
from shared_sentences import sentences
from similarity import SETS, correlation
from similarity import read as judged
from unrelated import definitions, drawn, unlike_links
from validation import Validation

from jacana_torch import corpora
from jacana_torch.aligners.base import styles_of
from jacana_torch.aligners.bidirectional import Bidirectional
from jacana_torch.aligners.calibration import Sample, best_threshold, fitted, sampled
from jacana_torch.aligners.crf import Crf
from jacana_torch.aligners.posterior import SHARED, Combination
from jacana_torch.crf.objective import Objective, prior
from jacana_torch.crf.states import readings
from jacana_torch.errors import ConfigError
from jacana_torch.evaluate import Counts, Score
from jacana_torch.evaluate.calibration import reliability
from jacana_torch.optimize.minimise import minimise
from jacana_torch.train import data as dataset
from jacana_torch.train.augment import Augmentation
from jacana_torch.train.augment.labelled import Labelled
from jacana_torch.train.loop import folds
from jacana_torch.types import Alignment, Example
from jacana_torch.util.build import build

SCORED, FOLDS = ("msr", "edinburgh"), 5
CANDIDATE = 0.01
ROOT = Path(os.environ.get("JACANA_DATA", "."))
log = logging.getLogger("conventions")


@dataclass
class Pairs:
    """All pairs that some model is trained on or scored on, annotated.

    `parent` is the pair that a made pair is made of, or the pair's own number; -1 if there is none.
    `held` [folds, n] says which pairs are held out, `usable` [n] whether a pair may be trained on. `silver`
    has the links of labelled pairs, by corpus and fold.
    """

    examples: list[Example]
    parent: np.ndarray
    held: np.ndarray
    usable: np.ndarray
    silver: dict[str, list[dict[int, Alignment]]]

    def counts(self, fold: int, without: str | None) -> np.ndarray:
        """Return how much each pair counts for the model of a fold."""
        out = np.array([example.weight for example in self.examples])
        of_pair = self.parent >= 0
        out[of_pair] *= self.usable[self.parent[of_pair]] & ~self.held[fold][self.parent[of_pair]]
        own = [self.examples[k if parent < 0 else parent].style for k, parent in enumerate(self.parent)]
        return np.where([style == without for style in own], 0.0, out)


def read(validation: Validation, silver: Path | None, scored: Sequence[str], unseen: str) -> Pairs:
    """Read the corpora of an experiment, and make the pairs that it makes.

    `silver` is as `taught` reads it, for each of the corpora `scored`.
    """
    run, found, known = validation.run, list[Example](), set[str]()
    data = run.cfg["data"]
    dropped = {line for file in data["drop_ids"] for line in (ROOT / file).read_text().split()}
    whole = dataset.load({**data, "drop_ids": []}).train
    for style in SCORED:
        own = [example for example in whole if example.style == style]
        if not own:
            raise ConfigError(f"data.styles={data['styles']}: name the corpora of {' and '.join(SCORED)}")
        known.update(text for example in own for text in sentences(example.pair))
    for example in whole:
        if example.style in SCORED:
            found.append(example)
        elif example.pair.id not in dropped and known.isdisjoint(sentences(example.pair)):
            found.append(example)
    labelled, makers = [], {}
    config = data["augment"] or {"makers": {}}
    for name, maker in config["makers"].items():
        made = None if maker is None else build(maker)
        makers[name] = None if isinstance(made, Labelled) else maker
        labelled += [made] if isinstance(made, Labelled) else []
    real = len(found)
    if any(makers.values()):
        augmentation: Augmentation = build({**config, "makers": makers})
        found = augmentation(found, list)
    number = {example.group: k for k, example in enumerate(found[:real])}
    parent = [number.get(example.group, -1) if example.group else k for k, example in enumerate(found)]
    links: dict[str, list[dict[int, Alignment]]] = {corpus: [{} for _ in range(FOLDS)] for corpus in scored}
    for maker in labelled if silver is not None else ():
        assert silver is not None
        files = {
            corpus: [silver / f"{corpus}.{unseen or f'fold{k}'}.jsonl" for k in range(FOLDS)] for corpus in scored
        }
        for example, golds in taught(maker, files, real):
            for corpus, fold in product(scored, range(FOLDS)):
                links[corpus][fold][len(found)] = golds[corpus][fold]
            parent.append(-1)
            found.append(example)
    ready = run.model.prepare([example.pair for example in found])
    found = [replace(example, pair=pair) for example, pair in zip(found, ready, strict=True)]
    held = np.zeros((FOLDS, len(found)), dtype=bool)
    for style in SCORED:
        places = np.array([k for k in range(real) if found[k].style == style])
        for fold, (_, test) in enumerate(folds(len(places), FOLDS, run.cfg["seed"])):
            held[fold, places[test]] = True
    return Pairs(found, np.array(parent), held, np.array([e.pair.id not in dropped for e in found]), links)


def taught(
    maker: Labelled, files: dict[str, list[Path]], pairs: int
) -> list[tuple[Example, dict[str, list[Alignment]]]]:
    """Return pairs that the teachers of all folds have aligned, and the links of each."""
    read = {file: {e.pair.id: e for e in corpora.read(str(file))} for file in chain.from_iterable(files.values())}
    names = sorted(set.intersection(*map(set, read.values())), key=str)  # type: ignore[arg-type]
    if maker.share is not None:
        names = random.Random(maker.style).sample(names, min(len(names), round(maker.share * pairs)))
    out = []
    for name in names:
        golds = {corpus: [read[file][name].gold for file in own] for corpus, own in files.items()}
        first = next(iter(read.values()))[name]
        example = replace(first, style=maker.style, weight=maker.weight, group=f"labelled {name}")
        out.append((example, golds))
    return out  # type: ignore[return-value]


class Side:
    """The features of all pairs in one direction, and trainings on some of the pairs."""

    def __init__(self, chain: Crf, examples: Sequence[Example]) -> None:
        order = sorted(range(len(examples)), key=lambda k: len(examples[k].pair.target))
        self.chain, self.styles = chain, styles_of(examples)
        self.parts, _, self.names, _ = chain._parts([examples[k] for k in order], self.styles)
        self.places = [[k for k in order if examples[k].style == style] for style in dict.fromkeys(
            examples[k].style for k in order)]  # fmt: skip

    def trained(self, counts: np.ndarray, links: dict[int, Alignment]) -> Crf:
        """Return a chain of the pairs that count; those of a style that has none are left out."""
        made, parts = replace(self.chain, names=[], weights=np.zeros(0)), []
        for part, places in zip(self.parts, self.places, strict=True):
            gold = list(part.gold)
            for k, place in enumerate(places):
                if place in links:
                    own = links[place].flip() if made.part == "backward" else links[place]
                    gold[k] = readings(own, made._policies).paths
            if counts[places].any():
                parts.append(part._replace(counts=counts[places], gold=gold))
        used = sorted({part.style for part in parts} - {None})
        parts = [part._replace(style=None if part.style is None else used.index(part.style)) for part in parts]
        widths = np.array([made.l2, *[made.l2_style] * len(used)])
        l2 = np.outer(widths, prior(self.names, made.priors, {}, 1.0)[1]).reshape(-1)
        costs = {"cost_null": made.cost_null, "cost_link": made.cost_link}
        result = minimise(
            Objective(parts, l2, costs, styles=len(used)), np.zeros(len(l2)), tolerance=1e-5, noise=2e-7,
            curvature=float(l2.min()), history=100, scale=np.repeat(np.sqrt(made.l2 / widths), len(self.names)),
        )  # fmt: skip
        log.info("%s: loss %.2f after %d iterations", made.part, result.loss, result.iterations)
        made._take(self.names, [self.styles[number] for number in used], result.x)
        return made


def calibrated(sample: Sample) -> Combination:
    found = fitted(sample)
    return replace(found, threshold=best_threshold(sample, found))


@dataclass
class Judged:
    """Counts of gold, predicted and correct links of pairs, and the probabilities of candidates."""

    counts: np.ndarray
    probability: np.ndarray
    gold: np.ndarray

    @classmethod
    def of(cls, sample: Sample, combination: Combination) -> Judged:
        probability = combination.combine(sample.forward, sample.backward)
        chosen, pairs = probability >= combination.threshold, int(sample.pair.max()) + 1
        columns = (np.bincount(sample.pair, kind, pairs) for kind in (sample.gold, chosen, sample.gold & chosen))
        candidate = np.maximum(sample.forward, sample.backward) >= CANDIDATE
        return cls(np.stack([*columns], 1).astype(np.int64), probability[candidate], sample.gold[candidate])

    @classmethod
    def crossed(cls, samples: Sequence[Sample], taught: Sequence[Sequence[Sample]]) -> list[Judged]:
        """Judge each sample as the others of `taught` calibrate it."""
        found = []
        for k, sample in enumerate(samples):
            others = [other for own in taught for n, other in enumerate(own) if n != k]
            found.append(cls.of(sample, calibrated(Sample.joined(others))))
        return found


def row(corpus: str, style: str, judged: Sequence[Judged]) -> str:
    score = Score.of(Counts(np.concatenate([one.counts for one in judged])))
    error = reliability(
        *(np.concatenate([getattr(one, name) for one in judged]) for name in ("probability", "gold"))
    )
    figures = (100 * value for value in (score.precision, score.recall, score.f1, score.exact, error.error))
    return f"| {corpus} | {style} | {' | '.join(f'{figure:.2f}' for figure in figures)} |"


def other_corpora(validation: Validation, files: Sequence[str], most: int | None) -> dict[str, list[Example]]:
    """Read the files of --dev, without the pairs that `data.drop_ids` names; all links count."""
    unread = {e for file in validation.run.cfg["data"]["drop_ids"] for e in (ROOT / file).read_text().split()}
    found: dict[str, list[Example]] = {}
    for file in files:
        own = [
            e
            for e in list(corpora.read(str(ROOT / file)))[:most]
            if e.pair.id not in unread and e.gold is not None
        ]
        found[file] = []
        for e, pair in zip(own, validation.run.model.prepare([e.pair for e in own]), strict=True):
            assert e.gold is not None
            gold = replace(e.gold, sure=frozenset(e.gold.all_links), possible=frozenset())
            found[file].append(replace(e, pair=pair, gold=gold))
    return found


def choose(sides: Sequence[Crf], style: str) -> None:
    for side in sides:
        side.choose(style if style in side.styles else None)


def meaning(validation: Validation, chains: Sequence[Crf], sample: Sample, style: str) -> str:
    """Return a row of what a style makes of sentences that do not mean the same."""
    model = validation.run.model
    aligner = model.aligner
    assert isinstance(aligner, Bidirectional)
    aligner.forward, aligner.backward = chains
    aligner.combination = calibrated(sample)
    figures = list(unlike_links(model, drawn(definitions(), 1000, 1)["a common beginning"], 0.8))
    figures += [correlation(model, *judged(ROOT, name)[:2]) for name in SETS]
    return f"| {style} | {' | '.join(f'{figure:.1f}' for figure in figures)} |"


def report(given: argparse.Namespace) -> None:
    validation = Validation([*given.overrides, "symmetrize=posterior", "trainer.precision=float32"])
    aligner = validation.run.model.aligner
    if not isinstance(aligner, Bidirectional) or not isinstance(aligner.forward, Crf):
        raise ConfigError("conventions are those of chains: choose aligner=crf")
    scored = [corpus for corpus in given.scored or SCORED if corpus != given.without]
    taught = [given.without] if given.without else scored
    pairs = read(validation, given.silver, taught, "unseen" if given.without else "")
    dev = other_corpora(validation, given.dev, given.most)
    sides = [Side(aligner.forward, pairs.examples), Side(aligner.backward, [e.flip() for e in pairs.examples])]
    rows, last = list[str](), list[str]()
    for of in [[corpus] for corpus in scored] if given.silver else [scored]:
        silver = pairs.silver[given.without or of[0]] if given.silver else [{}] * FOLDS
        measured(validation, pairs, sides, silver, of, given.without, dev, rows, last)
    print("| corpus | style | P | R | F1 | exact | ECE |\n|---|---|---:|---:|---:|---:|---:|", *rows, sep="\n")
    heads = f"links of unlike words | ≥ 0.8 | {' | '.join(SETS)}"
    print(f"\n| style | {heads} |\n|---|{'---:|' * 4}", *last, sep="\n")


def measured(
    validation: Validation,
    pairs: Pairs,
    sides: Sequence[Side],
    silver: Sequence[dict[int, Alignment]],
    scored: Sequence[str],
    without: str | None,
    dev: dict[str, list[Example]],
    rows: list[str],
    last: list[str],
) -> None:
    """Train the models of all folds, and add their rows to both tables."""
    style = np.array([example.style for example in pairs.examples])
    found: dict[tuple[str, str], list[Sample]] = {}
    for fold in range(FOLDS if without is None else 1):
        counts = pairs.counts(fold, without)
        chains = [side.trained(counts, silver[fold]) for side in sides]
        others = [name for name in chains[0].styles if name not in validation.run.cfg["data"]["styles"]]
        for corpus, by in product(SCORED, (*SCORED, *others, SHARED)):
            if without in (corpus, by):
                continue
            choose(chains, by)
            own = [pairs.examples[k] for k in np.flatnonzero(pairs.held[fold] & (style == corpus))]
            sample = sampled(*chains, own)
            found.setdefault((corpus, by), []).append(sample)
            if without is not None and corpus != without and by != SHARED:
                real = (style == without) & (pairs.parent == np.arange(len(style)))
                there = sampled(*chains, [pairs.examples[k] for k in np.flatnonzero(real)])
                rows.append(row(without, by, [Judged.of(there, calibrated(sample))]))
        for by in (*scored, *others) if fold == 0 else ():
            choose(chains, by)
            sample = Sample.joined(
                [found[one, by][0] for one in SCORED if by in (one, *others) and (one, by) in found]
            )
            last.append(meaning(validation, chains, sample, by))
        for file, own in dev.items() if fold == 0 and scored[0] == SCORED[0] else ():
            for by in (*chains[0].styles, SHARED):
                choose(chains, by)
                sample = sampled(*chains, own)
                found[file, by] = [sample.only(sample.pair % 2 == half) for half in (0, 1)]
    for (corpus, by), samples in found.items() if without is None else ():
        calibrating = [found[by, by]] if by in SCORED else [found[one, by] for one in SCORED]
        if corpus in (*scored, *dev):
            rows.append(
                row(corpus, by or "shared", Judged.crossed(samples, [samples] if corpus in dev else calibrating))
            )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("overrides", nargs="+", metavar="OVERRIDE")
    parser.add_argument("--silver", type=Path, metavar="FOLDER")
    parser.add_argument(
        "--scored", nargs="+", choices=SCORED, help="one of the two corpora, or both (the default)"
    )
    parser.add_argument("--without", choices=SCORED)
    parser.add_argument("--dev", nargs="*", default=[], metavar="FILE")
    parser.add_argument("--most", type=int, metavar="N", help="the first so many pairs of each file of --dev")
    given = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    return outcome(lambda: report(given))


if __name__ == "__main__":
    sys.exit(main())
