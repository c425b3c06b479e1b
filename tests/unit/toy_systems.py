"""Systems of known scores and small corpora, for tests of comparisons."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar

from templates import corpus, layerless

from jacana_torch import corpora
from jacana_torch.aligners.base import TrainingReport
from jacana_torch.types import Alignment

EXAMPLES, DEV = layerless(corpus(30)), layerless(corpus(9, seed=2))


class Equal:
    """Links equal words."""

    requires: ClassVar[tuple[str, ...]] = ()
    calls: ClassVar[list[int]] = []

    def align(self, pairs):
        self.calls.append(len(pairs))
        return [self.one(pair) for pair in pairs]

    def one(self, pair):
        links = [
            (i, j) for i, a in enumerate(pair.source.tokens) for j, b in enumerate(pair.target.tokens) if a == b
        ]
        return Alignment(len(pair.source), len(pair.target), frozenset(links))


class Memory(Equal):
    """Links the pairs that it was trained on, by their ids, and no others."""

    def __init__(self):
        self.known = {}

    def fit(self, examples, dev=(), watch=None):
        self.known = {e.pair.id: e.gold.links for e in examples}
        return TrainingReport()

    def one(self, pair):
        return Alignment(len(pair.source), len(pair.target), frozenset(self.known.get(pair.id, ())))

    def state(self):
        return {"known": [json.dumps(item) for item in self.known.items()]}

    def restore(self, state):
        self.known = {name: [tuple(link) for link in links] for name, links in map(json.loads, state["known"])}


class Broken(Equal):
    def one(self, pair):
        raise ZeroDivisionError("by nought")


class Interrupted(Equal):
    """Is interrupted by Ctrl-C the first time."""

    still: ClassVar[list[str]] = []

    def one(self, pair):
        if self.still:
            self.still.pop()
            raise KeyboardInterrupt
        return super().one(pair)


class Tagged(Equal):
    requires = ("pos",)


# The config of each, as in conf/aligner.
ALIGNERS: dict[str, dict[str, Any]] = {
    kind.__name__.lower(): {"_target_": f"{__name__}.{kind.__name__}"}
    for kind in (Equal, Memory, Broken, Interrupted, Tagged)
} | {
    "lacking": {"_target_": "jacana_torch.systems.sultan.sultan.Sultan", "paraphrases": "nowhere"},
    "both": {
        "_target_": "jacana_torch.aligners.bidirectional.Bidirectional",
        "forward": {"_target_": "jacana_torch.systems.unsupervised.unsupervised.Ibm1"},
        "backward": {"_target_": "jacana_torch.systems.unsupervised.unsupervised.Ibm1"},
    },
}


def write_corpora(folder: Path) -> None:
    corpora.write(EXAMPLES, str(folder / "words.jsonl"), "jsonl")
    corpora.write(DEV, str(folder / "dev.jsonl"), "jsonl")


def write_configs(folder: Path) -> None:
    """Write a folder for --config-dir."""
    (folder / "aligner").mkdir(parents=True)
    for name, settings in ALIGNERS.items():  # JSON is YAML as well
        (folder / "aligner" / f"{name}.yaml").write_text(json.dumps(settings))
