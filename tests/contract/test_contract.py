"""Every aligner of conf/aligner keeps the contract, and aligners that break it are found out."""

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
from jacana_torch.errors import MissingResource
from jacana_torch.model.persist import build
from jacana_torch.types import Alignment

# Everything that reads no resource: the layers come with the pairs.
FEATURES = "features=[string,pos,position,context,dependency,ner,distortion]"


@pytest.fixture(scope="module", params=options("aligner"))
def kept(request, tmp_path_factory) -> Contract:
    config = composed(FEATURES, f"aligner={request.param}", "trainer.max_iterations=30")["aligner"]
    missing = [name for name in getattr(build(config), "resources", ()) if not resources.available(name)]
    if missing:
        pytest.skip(f"the aligner {request.param} needs {', '.join(missing)}")
    try:
        return Contract(config, tmp_path_factory.mktemp(request.param))
    except MissingResource as error:  # a package that is an extra
        pytest.skip(str(error))


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_aligners_keep_the_contract(kept, check):
    check(kept)


@dataclass
class Honest:
    """Links equal words: what the bad ones below would be, were they good."""

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
    """Gives each pair the alignment of the one before it."""

    def align(self, pairs):
        found = super().align(pairs)
        return found[-1:] + found[:-1]


class Dropping(Honest):
    def align(self, pairs):
        return super().align(pairs)[:-1]


class Silent(Honest):
    def one(self, pair):
        return Alignment(len(pair.source), len(pair.target))


class Boastful(Honest):
    def one(self, pair):
        found = super().one(pair)
        return Alignment(found.n_source, found.n_target, found.sure, confidence=dict.fromkeys(found.sure, 1.5))


class Inventive(Honest):
    def one(self, pair):
        found = super().one(pair)
        return Alignment(found.n_source, found.n_target, found.sure, confidence={(99, 99): 1.0})


class Moody(Honest):
    """Says something else every time."""

    count: ClassVar = itertools.count()

    def one(self, pair):
        found = super().one(pair)
        return found if next(self.count) % 3 else Alignment(found.n_source, found.n_target)


class Sociable(Honest):
    """Links less where there are many pairs."""

    def align(self, pairs):
        return [a if len(pairs) < 5 else Alignment(a.n_source, a.n_target, frozenset(sorted(a.sure)[:1]))
                for a in super().align(pairs)]  # fmt: skip


class Fickle(Honest):
    """The first pair of a batch is treated better than the others."""

    def align(self, pairs):
        found = super().align(pairs)
        return found[:1] + [Alignment(a.n_source, a.n_target, frozenset(sorted(a.sure)[:1])) for a in found[1:]]


class Fragile(Honest):
    def one(self, pair):
        assert pair.source.tokens[0] and pair.target.tokens[0]
        return super().one(pair)


class Presumptuous(Honest):
    """Links the last words, also where there are none."""

    def one(self, pair):
        if len(pair.source) and not len(pair.target):
            return Alignment(1, 1, frozenset({(0, 0)}))
        return super().one(pair)


class Secretive(Honest):
    """Reads tags without saying so."""

    def one(self, pair):
        found = super().one(pair)
        known = "pos" in pair.source.layers
        return found if known else Alignment(found.n_source, found.n_target)


class Pretentious(Honest):
    """Says that it needs tags, and does without."""

    requires: ClassVar[tuple[str, ...]] = ("pos",)


class Learner(Honest):
    """Something to learn, to be remembered, and not to depend on chance: how many links at most."""

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


class Forgetful(Learner):
    def restore(self, state):
        pass


class Random(Learner):
    """Learns something else each time."""

    count: ClassVar = itertools.count(1)

    def fit(self, examples, dev=(), watch=None):
        self.most = next(self.count)


BAD = {
    Shifted: "one_alignment_a_pair_in_its_range",
    Dropping: "one_alignment_a_pair_in_its_range",
    Silent: "one_alignment_a_pair_in_its_range",
    Boastful: "confidences_are_probabilities_of_links",
    Inventive: "confidences_are_probabilities_of_links",
    Moody: "asked_again_it_says_the_same",
    Random: "trained_again_it_says_the_same",
    Fickle: "the_order_of_pairs_does_not_matter",
    Sociable: "company_does_not_matter",
    Fragile: "small_and_empty_pairs_are_aligned",
    Presumptuous: "small_and_empty_pairs_are_aligned",
    Secretive: "it_reads_the_layers_that_it_names_and_no_others",
    Pretentious: "it_reads_the_layers_that_it_names_and_no_others",
    Forgetful: "saved_and_loaded_it_says_the_same",
}


def made(kind: type, folder, monkeypatch) -> Contract:
    monkeypatch.setenv("JACANA_TRUST", kind.__module__.split(".")[0])
    return Contract({"_target_": f"{kind.__module__}.{kind.__qualname__}"}, folder)


@pytest.mark.parametrize("kind", [Honest, Learner], ids=lambda kind: kind.__name__)
def test_good_ones_pass(kind, tmp_path, monkeypatch):
    made(kind, tmp_path, monkeypatch).check()


@pytest.mark.parametrize(("kind", "fails"), BAD.items(), ids=[kind.__name__ for kind in BAD])
def test_bad_ones_fail_where_they_are_bad(kind, fails, tmp_path, monkeypatch):
    c = made(kind, tmp_path, monkeypatch)
    with pytest.raises((AssertionError, IndexError)):
        getattr(contract, fails)(c)
    with pytest.raises((AssertionError, IndexError)):
        c.check()


def test_every_promise_is_broken_by_somebody():
    assert set(BAD.values()) == {check.__name__ for check in CHECKS}
