"""The contract of every aligner, as checks that raise AssertionError.

An aligner is built from its config each time, and trained if it is trainable.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

from templates import corpus

from jacana_torch.aligners.base import (
    CannotExplain,
    Directional,
    Explains,
    LinksOnly,
    PosteriorOfCells,
    Prepares,
    Trainable,
)
from jacana_torch.errors import MissingLayer
from jacana_torch.model import persist
from jacana_torch.model.model import Model
from jacana_torch.types import PROVIDERS, Alignment, Sentence, SentencePair

Config = dict[str, Any]
TRAINING, HELD_OUT = corpus(30), corpus(14, seed=7)


class Contract:
    """Checks of one aligner; `check` runs them all. It is trained once."""

    def __init__(self, config: Config, folder: Path) -> None:
        self.config, self.folder = config, folder
        self.aligner = self.trained()
        self.pairs = [e.pair for e in HELD_OUT]
        self.found = self.align(self.pairs)
        self.tolerance = getattr(self.aligner, "tolerance", 1e-9)

    def trained(self) -> Any:
        aligner = persist.build(copy.deepcopy(self.config))
        if isinstance(aligner, Trainable):
            aligner.fit(TRAINING)
        return aligner

    def align(self, pairs: Sequence[SentencePair]) -> list[Alignment]:
        return list(self.aligner.align(list(pairs)))

    def assert_alike(self, expected: Sequence[Alignment], found: Sequence[Alignment]) -> None:
        assert_alike(expected, found, self.tolerance)

    def check(self) -> None:
        for check in CHECKS:
            check(self)


def one_alignment_a_pair_in_its_range(c: Contract) -> None:
    assert len(c.found) == len(c.pairs), "as many alignments as pairs"
    assert any(a.sure for a in c.found), "something is aligned"
    for pair, a in zip(c.pairs, c.found, strict=True):
        assert (a.n_source, a.n_target) == (len(pair.source), len(pair.target)), "the size of its pair"
        assert all(0 <= i < a.n_source and 0 <= j < a.n_target for i, j in a.sure | a.possible)


def confidences_are_probabilities_of_links(c: Contract) -> None:
    for a in c.found:
        assert set(a.confidence) <= a.sure | a.possible, "confidences only of its own links"
        assert all(0.0 <= value <= 1.0 for value in a.confidence.values()), "a confidence is between 0 and 1"


def aligning_again_gives_the_same(c: Contract) -> None:
    assert exactly(c.align(c.pairs)) == exactly(c.found)


def training_again_gives_the_same(c: Contract) -> None:
    again = Contract.trained(c)
    assert exactly(again.align(list(c.pairs))) == exactly(c.found)


def the_order_of_pairs_does_not_matter(c: Contract) -> None:
    order = list(range(len(c.pairs)))
    Random(3).shuffle(order)
    shuffled = c.align([c.pairs[k] for k in order])
    c.assert_alike([c.found[k] for k in order], shuffled)


def other_pairs_do_not_matter(c: Contract) -> None:
    for pair, expected in zip(c.pairs, c.found, strict=True):
        c.assert_alike([expected], c.align([pair]))
    c.assert_alike(c.found[::3], c.align(c.pairs[::3]))
    twice = c.align([*c.pairs[:3], *c.pairs[:3]])
    c.assert_alike(twice[:3], twice[3:])


def small_and_empty_pairs_are_aligned(c: Contract) -> None:
    assert c.align([]) == []
    full = c.pairs[0]
    for m, n in ((1, 1), (1, None), (None, 1), (0, None), (None, 0), (0, 0)):
        pair = SentencePair(cut(full.source, m), cut(full.target, n))
        (alone,) = c.align([pair])
        assert (alone.n_source, alone.n_target) == (len(pair.source), len(pair.target))
        if 0 in (m, n):
            assert not alone.sure | alone.possible, "no links without words"
        among = c.align([full, pair, full])
        c.assert_alike([c.found[0], alone, c.found[0]], among)


def it_reads_exactly_the_layers_that_it_requires(c: Contract) -> None:
    requires = c.aligner.requires
    assert set(requires) <= set(PROVIDERS), "layers that exist"
    only = [with_layers(pair, requires) for pair in c.pairs]
    c.assert_alike(c.found, c.align(only))
    for layer in requires:
        lacking = [with_layers(pair, set(requires) - {layer}) for pair in c.pairs]
        try:
            c.align(lacking)
        except MissingLayer as error:
            assert layer in str(error) and any(who in str(error) for who in PROVIDERS[layer])
        else:
            raise AssertionError(f"{layer} is missing, and no error says so")


def saving_and_loading_changes_nothing(c: Contract) -> None:
    config = {"model": {"_target_": "jacana_torch.model.model.Model", "aligner": c.config}}
    directory = persist.save(Model(c.aligner), c.folder / "saved", config, {})
    assert exactly(persist.load(directory).aligner.align(list(c.pairs))) == exactly(c.found)


def its_abilities_agree_with_align(c: Contract) -> None:
    """Every protocol that it satisfies is another way to the links of `align`."""
    links = [a.sure for a in c.found]
    if isinstance(c.aligner, LinksOnly):
        assert [a.sure for a in c.aligner.align_links(c.pairs)] == links
    if isinstance(c.aligner, Prepares):
        assert [a.sure for a in c.aligner.decode(c.aligner.prepared(c.pairs))] == links
    if isinstance(c.aligner, Directional):
        own = c.aligner.symmetrizer_name
        assert [a.sure for a in c.aligner.align(c.pairs, own, confidence=False)] == links
        for direction in c.aligner.directions(c.pairs):
            assert [(a.n_source, a.n_target) for a in direction] == [(a.n_source, a.n_target) for a in c.found]
    posteriors = c.aligner.posteriors(c.pairs) if isinstance(c.aligner, PosteriorOfCells) else None
    for a, cells in zip(c.found, posteriors or [], strict=False):
        assert cells.shape == (a.n_source, a.n_target) and ((cells >= 0) & (cells <= 1 + 1e-9)).all()
        assert all(abs(a.confidence[link] - cells[link]) <= max(c.tolerance, 1e-6) for link in a.confidence)
    if isinstance(c.aligner, Explains):
        try:
            explained = [explanation.alignment.sure for explanation in c.aligner.explain(c.pairs)]
        except CannotExplain:
            return
        assert explained == links


CHECKS: tuple[Callable[[Contract], None], ...] = (
    one_alignment_a_pair_in_its_range,
    confidences_are_probabilities_of_links,
    aligning_again_gives_the_same,
    training_again_gives_the_same,
    the_order_of_pairs_does_not_matter,
    other_pairs_do_not_matter,
    small_and_empty_pairs_are_aligned,
    it_reads_exactly_the_layers_that_it_requires,
    saving_and_loading_changes_nothing,
    its_abilities_agree_with_align,
)


def exactly(alignments: Sequence[Alignment]) -> list[tuple]:
    """Alignments with their confidences and scores, which `==` leaves out."""
    return [(a, dict(a.confidence), a.score) for a in alignments]


def assert_alike(expected: Sequence[Alignment], found: Sequence[Alignment], tolerance: float) -> None:
    """Check for the same links, and for confidences that differ by the rounding of sums alone."""
    assert len(expected) == len(found)
    for a, b in zip(expected, found, strict=True):
        assert a == b
        assert set(a.confidence) == set(b.confidence)
        assert all(abs(a.confidence[link] - b.confidence[link]) <= tolerance for link in a.confidence)


def cut(sentence: Sentence, n: int | None) -> Sentence:
    if n is None:
        return sentence
    layers = {name: values[:n] for name, values in sentence.layers.items()}
    return Sentence(sentence.tokens[:n], layers | {"head": (-1,) * n})


def with_layers(pair: SentencePair, names: Any) -> SentencePair:
    sides = {}
    for side in ("source", "target"):
        sentence = getattr(pair, side)
        kept = {name: values for name, values in sentence.layers.items() if name in names}
        sides[side] = replace(sentence, layers=kept)
    return replace(pair, **sides)
