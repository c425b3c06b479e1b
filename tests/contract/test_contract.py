"""Every aligner of conf/aligner keeps the contract, and the checks detect aligners that break it."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import ClassVar

import contract
import numpy as np
import pytest
from composed import composed, options
from contract import CHECKS, Contract

from jacana_torch import resources
from jacana_torch.aligners.base import (
    Directional,
    Explains,
    LinksOnly,
    OneWay,
    PosteriorOfCells,
    Prepares,
    Trainable,
    TrainingOptional,
)
from jacana_torch.aligners.bidirectional import Bidirectional
from jacana_torch.errors import MissingResource
from jacana_torch.types import Alignment, resources_of
from jacana_torch.util.build import build

# The families that read no resource; the pairs have their layers.
FEATURES = "features=[string,pos,position,context,dependency,ner,distortion]"


@pytest.fixture(scope="module", params=options("aligner"))
def kept(request, tmp_path_factory) -> Contract:
    fewer = ["aligner.grid=[0.3,0.6]"] if request.param == "sultan_tuned" else []
    config = composed(FEATURES, f"aligner={request.param}", "trainer.max_iterations=30", *fewer)["aligner"]
    missing = [name for name in resources_of(build(config)) if not resources.available(name)]
    if missing:
        pytest.skip(f"the aligner {request.param} needs {', '.join(missing)}")
    try:
        return Contract(config, tmp_path_factory.mktemp(request.param))
    except MissingResource as error:  # a package that is an extra
        pytest.skip(str(error))


ABILITIES = {
    "crf": (Directional, PosteriorOfCells, Explains, Trainable),
    "hmm": (Directional, Trainable),
    "bag_of_words": (TrainingOptional,),
    "sultan": (Prepares,),
    "stanford": (Prepares, Trainable),
    "neural": (Prepares, Trainable),
}


@pytest.mark.parametrize("name", ABILITIES)
def test_aligners_have_the_abilities_that_protocols_describe(name):
    aligner = build(composed(FEATURES, f"aligner={name}")["aligner"])
    for protocol in (Directional, PosteriorOfCells, Prepares, LinksOnly, TrainingOptional, Trainable):
        if protocol in ABILITIES[name]:
            assert isinstance(aligner, protocol), protocol
        elif protocol in (Directional, TrainingOptional, LinksOnly):
            assert not isinstance(aligner, protocol), protocol
    for part in (aligner.forward, aligner.backward) if isinstance(aligner, Bidirectional) else ():
        assert isinstance(part, OneWay)
    if name == "crf":
        assert all(isinstance(aligner.forward, protocol) for protocol in (LinksOnly, Prepares, Explains))


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_aligners_keep_the_contract(kept, check):
    check(kept)


@dataclass
class Honest:
    """Links equal words. The classes below each break one promise of the contract."""

    requires: ClassVar[tuple[str, ...]] = ()

    def align(self, pairs):
        return [self.one(pair) for pair in pairs]

    def one(self, pair):
        links = {
            (i, j): 1.0
            for i, a in enumerate(pair.source.tokens)
            for j, b in enumerate(pair.target.tokens)
            if a == b
        }
        return Alignment(len(pair.source), len(pair.target), frozenset(links), confidence=links)


class Shifted(Honest):
    """Returns the alignments in another order."""

    def align(self, pairs):
        found = super().align(pairs)
        return found[-1:] + found[:-1]


class Dropping(Honest):
    def align(self, pairs):
        return super().align(pairs)[:-1]


class Empty(Honest):
    def one(self, pair):
        return Alignment(len(pair.source), len(pair.target))


class Overconfident(Honest):
    def one(self, pair):
        found = super().one(pair)
        return Alignment(found.n_source, found.n_target, found.sure, confidence=dict.fromkeys(found.sure, 1.5))


class ConfidentElsewhere(Honest):
    def one(self, pair):
        found = super().one(pair)
        return Alignment(found.n_source, found.n_target, found.sure, confidence={(99, 99): 1.0})


class Unstable(Honest):
    """Changes its output from call to call."""

    count: ClassVar = itertools.count()

    def one(self, pair):
        found = super().one(pair)
        return found if next(self.count) % 3 else Alignment(found.n_source, found.n_target)


class BatchDependent(Honest):
    """Links less if there are many pairs."""

    def align(self, pairs):
        return [a if len(pairs) < 5 else Alignment(a.n_source, a.n_target, frozenset(sorted(a.sure)[:1]))
                for a in super().align(pairs)]  # fmt: skip


class OrderDependent(Honest):
    """Treats the first pair of a batch differently."""

    def align(self, pairs):
        found = super().align(pairs)
        return found[:1] + [Alignment(a.n_source, a.n_target, frozenset(sorted(a.sure)[:1])) for a in found[1:]]


class Fragile(Honest):
    def one(self, pair):
        assert pair.source.tokens[0] and pair.target.tokens[0]
        return super().one(pair)


class LinksNothing(Honest):
    """Links words of an empty sentence."""

    def one(self, pair):
        if len(pair.source) and not len(pair.target):
            return Alignment(1, 1, frozenset({(0, 0)}))
        return super().one(pair)


class ReadsMore(Honest):
    """Reads tags and does not require them."""

    def one(self, pair):
        found = super().one(pair)
        known = "pos" in pair.source.layers
        return found if known else Alignment(found.n_source, found.n_target)


class ReadsLess(Honest):
    """Requires tags and does not read them."""

    requires: ClassVar[tuple[str, ...]] = ("pos",)


class FastAndWrong(Honest):
    """Finds other links without confidences."""

    def align_links(self, pairs):
        return [Alignment(a.n_source, a.n_target) for a in self.align(pairs)]


class PreparedAndWrong(Honest):
    """Finds other links in prepared pairs."""

    def prepared(self, pairs):
        return pairs[::-1]

    def decode(self, prepared):
        return self.align(prepared)


class Learner(Honest):
    """Learns the largest number of links."""

    requires: ClassVar[tuple[str, ...]] = ()

    def __init__(self):
        self.most = 0

    def fit(self, examples, dev=(), watch=None):
        self.most = max(len(e.gold.links) for e in examples)

    def one(self, pair):
        found = super().one(pair)
        return Alignment(found.n_source, found.n_target, frozenset(sorted(found.sure)[: self.most]))

    def state(self):
        return {"most": np.array([self.most])}

    def restore(self, state):
        self.most = int(state["most"][0])


class NotRestored(Learner):
    def restore(self, state):
        pass


class Random(Learner):
    """Learns a different number each time."""

    count: ClassVar = itertools.count(1)

    def fit(self, examples, dev=(), watch=None):
        self.most = next(self.count)


BAD = {
    Shifted: "one_alignment_a_pair_in_its_range",
    Dropping: "one_alignment_a_pair_in_its_range",
    Empty: "one_alignment_a_pair_in_its_range",
    Overconfident: "confidences_are_probabilities_of_links",
    ConfidentElsewhere: "confidences_are_probabilities_of_links",
    Unstable: "aligning_again_gives_the_same",
    Random: "training_again_gives_the_same",
    OrderDependent: "the_order_of_pairs_does_not_matter",
    BatchDependent: "other_pairs_do_not_matter",
    Fragile: "small_and_empty_pairs_are_aligned",
    LinksNothing: "small_and_empty_pairs_are_aligned",
    ReadsMore: "it_reads_exactly_the_layers_that_it_requires",
    ReadsLess: "it_reads_exactly_the_layers_that_it_requires",
    NotRestored: "saving_and_loading_changes_nothing",
    FastAndWrong: "its_abilities_agree_with_align",
    PreparedAndWrong: "its_abilities_agree_with_align",
}


def made(kind: type, folder, monkeypatch) -> Contract:
    monkeypatch.setenv("JACANA_TRUST", kind.__module__.split(".")[0])
    return Contract({"_target_": f"{kind.__module__}.{kind.__qualname__}"}, folder)


@pytest.mark.parametrize("kind", [Honest, Learner], ids=lambda kind: kind.__name__)
def test_an_aligner_that_keeps_the_contract_passes(kind, tmp_path, monkeypatch):
    made(kind, tmp_path, monkeypatch).check()


@pytest.mark.parametrize(("kind", "fails"), BAD.items(), ids=[kind.__name__ for kind in BAD])
def test_an_aligner_that_breaks_a_promise_fails_that_check(kind, fails, tmp_path, monkeypatch):
    c = made(kind, tmp_path, monkeypatch)
    with pytest.raises((AssertionError, IndexError)):
        getattr(contract, fails)(c)
    with pytest.raises((AssertionError, IndexError)):
        c.check()


def test_every_check_has_an_aligner_that_fails_it():
    assert set(BAD.values()) == {check.__name__ for check in CHECKS}
