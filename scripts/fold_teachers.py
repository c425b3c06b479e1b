"""Label pairs by teachers that have not seen a fold of a corpus: silver pairs for its cross-validation.

    python scripts/unlabelled.py > pairs.jsonl
    python scripts/fold_teachers.py pairs.jsonl FOLDER msr      # FOLDER/msr.fold0.jsonl to msr.fold4.jsonl

The teacher of a fold is experiment=neural with pairs of glosses, trained on the other folds of the corpus and on
the other corpus (of MSR and Edinburgh). Folds are those of `jacana-torch train data=CORPUS cv=5`, counted from 0.
Before that, its network is trained on MTRef, without the pairs that share sentences with Edinburgh, and on some of
Wiki. Of the model --start it has the encoder's adapters alone: experiment=neural_pretrain trains them on MTRef and
Wiki, and experiment=neural leaves them as they are. So no part of a teacher has seen the fold.

FOLDER/CORPUS.majority.jsonl has the links of most teachers: for models that no fold scores.
With --unseen, one teacher that has seen nothing of the corpus serves all folds: FOLDER/CORPUS.unseen.jsonl.
FOLDER/CORPUS.held_out.jsonl is what each teacher makes of its own fold. Their scores are printed.
"""

from __future__ import annotations

import argparse
import logging
import os
import random
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import torch
from outcome import outcome
from shared_sentences import sentences

from jacana_torch import corpora
from jacana_torch.aligners.bidirectional import Bidirectional
from jacana_torch.aligners.neural import network, weights
from jacana_torch.aligners.neural.inputs import Encoded, Inputs, Projection
from jacana_torch.aligners.neural.mixed import Mixed
from jacana_torch.aligners.neural.neural import Neural
from jacana_torch.evaluate import score
from jacana_torch.model.model import Model
from jacana_torch.model.persist import locate
from jacana_torch.model.saving import save, signed
from jacana_torch.train.augment.glosses import Glosses
from jacana_torch.train.compose import composed
from jacana_torch.train.loop import folds
from jacana_torch.types import Alignment, Example, Sentence, SentencePair
from jacana_torch.util import conf
from jacana_torch.util.build import build

ROOT = Path(os.environ.get("JACANA_DATA", "."))
CORPORA, FOLDS, SEED = ("msr", "edinburgh"), 5, 1
PRETRAINING = {"epochs": 3, "rate": 2e-3}  # as experiment=neural_pretrain, whose adapters are there already
PRETRAINED_ON = 2000  # pairs
LAYERS = [0, 2, 4, 6, 8]  # of MPNet's twelve
SETTINGS = {  # fewer epochs and less exact chains than experiment=neural; weights that suit training with glosses
    "aligner.network.layers": LAYERS,
    "aligner.network.epochs": 4,
    "trainer.tolerance": 1e-5,
    "aligner.weights": [0.7, 0.3],
    "aligner.bias": 0.0,
}
GLOSSES = Glosses(share=0.4, longest=14, weight=0.6)
MODEL = {"_target_": "jacana_torch.model.model.Model"}
log = logging.getLogger("fold_teachers")


@dataclass
class Remembering(Neural):
    """A network with a frozen encoder, which reads each pair once, whichever fold the pair is in."""

    read: dict[tuple[tuple[str, ...], ...], Inputs] = field(default_factory=dict, repr=False)

    def _inputs(self, pairs: Sequence[SentencePair], projection: Projection | None = None) -> list[Inputs]:
        if projection is not None:  # small, and of the networks' present weights
            return super()._inputs(pairs, projection)
        keys = [(pair.source.tokens, pair.target.tokens) for pair in pairs]
        new = {key: pair for key, pair in zip(keys, pairs, strict=True) if key not in self.read}
        self.read.update(zip(new, super()._inputs(list(new.values())), strict=True))
        return [self.read[key] for key in keys]

    def encoded(
        self, network: Any, inputs: Sequence[Inputs], keep: bool = True, finely: bool = True
    ) -> list[Encoded]:
        return super().encoded(network, inputs, keep=True)

    def _fold(self, networks: Sequence[Any]) -> None:
        """Leave the encoder as it is: it has read the pairs already."""


def remembering(neural: Neural) -> Remembering:
    network.MOST_WORDS = sys.maxsize
    return Remembering(**{one.name: getattr(neural, one.name) for one in fields(Neural) if one.init})


def with_adapters_of(start: str, neural: Neural) -> None:
    """Give networks the columns and adapters of a model, and random weights otherwise."""
    neural.restore(weights.read(str(locate(start))))
    adapters = {name: array for name, array in neural._kept.items() if name.startswith(f"0.{network.ENCODER}")}
    neural._kept = {}
    made = neural._made()
    neural._kept = {**weights.arrays(made, shared=True), **adapters}


def read(corpus: str, model: Model) -> list[Example]:
    """The training pairs of a corpus of conf/data, annotated."""
    found = []
    data = conf.read(conf.conf_directory() / "data" / f"{corpus}.yaml")
    dropped = {line for file in data.get("drop_ids", ()) for line in (ROOT / file).read_text().split()}
    for file in data["train"]:
        found += [example for example in corpora.read(str(ROOT / file)) if example.pair.id not in dropped]
    return annotated(found, model)


def annotated(examples: Sequence[Example], model: Model) -> list[Example]:
    ready = model.prepare([example.pair for example in examples])
    return [replace(example, pair=pair) for example, pair in zip(examples, ready, strict=True)]


def pretraining(model: Model, scored: Sequence[Example]) -> list[Example]:
    """Pairs of MTRef and Wiki, all links, none of which shares a sentence with those that are scored."""
    known = {text for example in scored for text in sentences(example.pair)}
    found = []
    for example in read("multimwa", model):
        if example.gold is not None and known.isdisjoint(sentences(example.pair)):
            gold = replace(example.gold, sure=frozenset(example.gold.all_links), possible=frozenset())
            found.append(replace(example, gold=gold))
    return found[:PRETRAINED_ON]


def pretrained(neural: Neural, examples: Sequence[Example], start: str) -> dict[str, Any]:
    """Return the state of networks that know MTRef and Wiki alone."""
    neural = replace(neural, **PRETRAINING)
    with_adapters_of(start, neural)
    neural.fit(examples)
    return dict(neural.state())


def keep(state: dict[str, Any], examples: Sequence[Example], folder: str) -> None:
    """Write pretrained networks as a model that training can start from."""
    config = composed("neural_pretrain", settings={"aligner.encoder_rate": 0.0, "aligner.layers": LAYERS})
    model = Model(build(config["aligner"], Neural), build(config["annotate"]))
    model.aligner.restore(state)
    made = {
        "_target_": "jacana_torch.model.model.Model",
        "aligner": config["aligner"],
        "annotate": config["annotate"],
    }
    resources = sorted({*model.aligner.resources, *model.annotate.resources}) if model.annotate else []
    described = {
        "description": "adapters, and networks of MTRef and Wiki",
        "resources": resources,
        "model": {**MODEL, **made},
    }
    save(model, folder, described, signed({example.pair.checksum for example in examples}))


def teachers(options: argparse.Namespace) -> None:
    config = composed("neural", settings={**SETTINGS, "aligner.network.members": options.members})
    aligner = build(config["aligner"], Mixed)
    model = Model(aligner, build(config["annotate"]))
    gold = {corpus: read(corpus, model) for corpus in CORPORA}
    every = [example for examples in gold.values() for example in examples]
    made = annotated(list(GLOSSES.make(every, random.Random(f"{SEED} glosses"))), model)
    glosses = [replace(example, weight=GLOSSES.weight) for example in made]
    unlabelled = annotated(list(corpora.read(options.pairs))[: options.most], model)
    aligner.network = remembering(aligner.network)
    first = pretraining(model, every)
    begun = pretrained(aligner.network, first, options.start)
    if options.save:
        keep(begun, first, options.save)
    for corpus in options.corpora:
        own = gold[corpus]
        others = [example for name in CORPORA if name != corpus for example in gold[name]]
        found: dict[int, Alignment] = {}
        votes: list[list[Alignment]] = []
        for name, rest, test in parts(corpus, len(own), options.unseen):
            teacher = replace(aligner, linear=build(config["aligner"]["linear"], Bidirectional))
            teacher.network.restore(begun)
            teacher.fit([*(own[k] for k in rest), *others, *glosses])
            found.update(zip(test, teacher.align([own[k].pair for k in test]), strict=True))
            print(f"{name}: {line([own[k] for k in test], [found[k] for k in test])}", flush=True)
            labels = teacher.align([example.pair for example in unlabelled])
            write(options.folder, name, unlabelled, labels)
            votes.append(labels)
        if not options.unseen:
            write(
                options.folder,
                f"{corpus}.majority",
                unlabelled,
                [majority(one) for one in zip(*votes, strict=True)],
            )
        ordered = [found[k] for k in range(len(own))]
        print(f"{corpus}: {line(own, ordered)}", flush=True)
        write(options.folder, f"{corpus}.held_out", own, ordered)


def majority(alignments: Sequence[Alignment]) -> Alignment:
    """Return the links of more than half of the alignments, with their mean confidence; without a link it is 0."""
    counts = Counter(link for one in alignments for link in one.sure)
    links = [link for link, count in counts.items() if 2 * count > len(alignments)]
    confidence = {
        link: sum(one.confidence.get(link, 0.0) for one in alignments) / len(alignments) for link in links
    }
    return replace(alignments[0], sure=frozenset(links), confidence=confidence, score=None)


def parts(corpus: str, size: int, unseen: bool) -> Iterator[tuple[str, list[int], list[int]]]:
    """Yield the name of each teacher, the pairs of the corpus that it learns from, and those it must not see."""
    if unseen:
        yield f"{corpus}.unseen", [], list(range(size))
        return
    for number, (rest, test) in enumerate(folds(size, FOLDS, SEED)):
        yield f"{corpus}.fold{number}", rest.tolist(), test.tolist()


def write(folder: str, name: str, examples: Sequence[Example], found: Sequence[Alignment]) -> None:
    rows = []
    for example, alignment in zip(examples, found, strict=True):
        source, target = (Sentence(side.tokens) for side in (example.pair.source, example.pair.target))
        rows.append(Example(SentencePair(source, target, example.pair.id), alignment))
    corpora.write(rows, str(Path(folder) / f"{name}.jsonl"))


def line(examples: Sequence[Example], found: Sequence[Alignment]) -> str:
    value = score([example.gold for example in examples if example.gold is not None], found)
    figures = (value.precision, value.recall, value.f1, value.exact)
    return "P {:.2f}, R {:.2f}, F1 {:.2f}, exact {:.2f}".format(*(100 * figure for figure in figures))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", help="the pairs to label: JSON lines")
    parser.add_argument("folder", help="for the labelled pairs; it must be there")
    parser.add_argument("corpora", nargs="+", choices=CORPORA, metavar="CORPUS", help=" or ".join(CORPORA))
    parser.add_argument("--start", default="neural", help="a model whose encoder's adapters are taken (neural)")
    parser.add_argument("--members", type=int, default=1, help="networks of a teacher (1)")
    parser.add_argument("--save", metavar="FOLDER", help="for the network that has seen MTRef and Wiki")
    parser.add_argument("--unseen", action="store_true", help="one teacher that has seen nothing of the corpus")
    parser.add_argument("--most", type=int, help="label the first so many pairs")
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    torch.set_num_threads(1)
    return outcome(lambda: teachers(options))


if __name__ == "__main__":
    sys.exit(main())
