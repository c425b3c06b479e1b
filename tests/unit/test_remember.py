"""A trained chain that remembers against every path under its weights by name: links, chances, reasons, files."""

from __future__ import annotations

import itertools
import math
from functools import cache

import numpy as np
import pytest
from composed import composed
from feature_twin import random_pairs
from memory_enumeration import Remembered
from test_explain import assert_margin_adds_up, matrix_scores
from test_features_distortion import rows, transition

from jacana_torch.aligners.bidirectional import Bidirectional
from jacana_torch.aligners.crf import Crf
from jacana_torch.aligners.posterior import Posterior
from jacana_torch.crf.states import PLAIN, REMEMBERING
from jacana_torch.errors import ConfigError
from jacana_torch.features.families.context import Context
from jacana_torch.features.families.distortion import Distortion
from jacana_torch.features.families.string import String
from jacana_torch.features.featureset import FeatureSet
from jacana_torch.features.grid import Grid
from jacana_torch.model import persist
from jacana_torch.model.model import Model
from jacana_torch.systems.phrase.phrase_crf import PhraseCrf
from jacana_torch.types import Alignment, Example, Sentence, SentencePair

WORDS = ("a", "barn", "barns", "red", "read", "7", "b")


def examples(seed: int, count: int) -> list[Example]:
    """Words that begin alike are linked, but for some: NULLs stand between links."""
    out = []
    for pair in random_pairs(seed, count, WORDS, longest=4):
        links = {(i, j) for i, a in enumerate(pair.source.tokens) for j, b in enumerate(pair.target.tokens)
                 if a[0] == b[0] and i % 3 != 1}  # fmt: skip
        out.append(Example(pair, Alignment(len(pair.source), len(pair.target), frozenset(links))))
    return out


def made(remember: bool = True, symmetrize="union") -> Bidirectional:
    families = {"string": String(), "context": Context(), "distortion": Distortion()}
    sides = (Crf(families, max_iterations=15, batch_cells=60, remember=remember) for _ in range(2))
    return Bidirectional(*sides, symmetrize)


@cache
def trained() -> Bidirectional:
    both = made()
    both.fit(examples(1, 40))
    return both


def held_out() -> list[SentencePair]:
    return [pair for pair in random_pairs(2, 25, WORDS, longest=4) if len(pair.source) * len(pair.target) <= 24]


def twin(crf: Crf, pair: SentencePair) -> Remembered:
    """The scores of a pair from weights by name and the formula of distortion."""
    weight, n = dict(zip(crf.names, crf.weights, strict=True)), len(pair.target)

    def jump(a: int, b: int, prefix: str = "") -> float:
        said = transition(a, b, n).items()
        return math.fsum(value * weight.get(f"distortion.{prefix}{name}", 0.0) for name, value in said)

    family, outer = Distortion(), []
    for block in (family.start(n), family.end(n)):
        outer.append([sum(v * weight[f"distortion.{k}"] for k, v in row.items()) for row in rows(block, n + 1)])
    plain = [[jump(a, b) for b in range(n + 1)] for a in range(n + 1)]
    gap = [[jump(a, b, "gap_") for b in range(1, n + 1)] for a in range(1, n + 1)]
    return Remembered(matrix_scores(crf, Grid([pair])).tolist(), plain, gap, *outer)


def sides(both: Bidirectional, pair: SentencePair):
    return zip((both.forward, both.backward), (pair, pair.flip()), strict=True)


@pytest.mark.parametrize("N", [*range(1, 9), 25])
def test_jumps_across_gaps_are_those_between_neighbours_under_names_of_their_own(N):
    got = rows(Distortion().gap(N), N * N)
    for said, (a, b) in zip(got, itertools.product(range(1, N + 1), repeat=2), strict=True):
        expected = {f"gap_{name}": value for name, value in transition(a, b, N).items() if value}
        assert said == pytest.approx(expected)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_features_and_states_count_the_same_transitions(n):
    for gaps, space in ((False, PLAIN), (True, REMEMBERING)):
        features = FeatureSet(made().forward.families, gaps=gaps)
        assert features.step_sizes(n)["edge"] == space.edges(n)
        for block in features.edge_blocks(n)["edge"]:
            assert len(block.index) == space.edges(n)


def test_links_chances_and_scores_are_those_of_all_paths():
    both, gaps = trained(), 0
    for pair in held_out():
        for crf, seen in sides(both, pair):
            chain, (found,) = twin(crf, seen), crf.align([seen])
            log_z, chances = chain.log_z(), chain.posteriors()
            best, path = max(chain.paths())
            assert found.sure == {(i, column - 1) for i, column in enumerate(path) if column}
            assert found.score == pytest.approx((best - log_z) / len(path), abs=1e-5)
            for (i, j), chance in found.confidence.items():
                assert chance == pytest.approx(chances[i][j + 1], abs=1e-5)
            gaps += any(name == "gap" for name, _ in chain.used(path))
    assert gaps > 3  # or this has tested little


def test_every_way_to_decode_says_the_same():
    both, pairs = trained(), held_out()
    one = both.forward
    found = one.align(pairs)
    assert one.decode(one.prepared(pairs)) == found == one.align(pairs, confidence=False)
    other = made()
    other.restore(both.state())
    for chain in (other.forward, other.backward):
        chain.device = "cpu:0"  # by way of torch
    for name in ("posterior", "union"):
        for a, b in zip(both.align(pairs, name), other.align(pairs, name), strict=True):
            assert a == b and b.confidence == pytest.approx(a.confidence, abs=1e-6)


def test_reasons_rivals_and_posteriors_are_those_of_all_paths():
    both, told = trained(), 0
    for pair in held_out()[:12]:
        (explanation,) = both.explain([pair])
        for direction, (crf, seen) in zip(explanation.directions, sides(both, pair), strict=True):
            chain = twin(crf, seen)
            paths, chances = chain.paths(), chain.posteriors()
            _, best = max(paths)

            def through(token: int, column: int, paths=paths):
                return max((score, path) for score, path in paths if path[token] == column)

            for token, column in itertools.product(range(len(seen.source)), range(len(seen.target) + 1)):
                choice = direction.choice(token, column - 1 if column else None)
                others = [c for c in range(len(seen.target) + 1) if c != column]
                rival = max(others, key=lambda c: through(token, c)) if best[token] == column else best[token]
                assert choice.chosen == (best[token] == column)
                assert choice.posterior == pytest.approx(chances[token][column], abs=1e-6)
                assert choice.rival == (rival - 1 if rival else None)
                assert choice.rival_posterior == pytest.approx(chances[token][rival], abs=1e-6)
                here, there = through(token, column), through(token, rival)
                assert choice.margin.value == pytest.approx(here[0] - there[0], abs=1e-9)
                assert_margin_adds_up(choice)
                moved = {(m, a or None, b or None) for m, (a, b) in enumerate(zip(here[1], there[1], strict=True))
                         if a != b and m != token}  # fmt: skip
                said = {(x.token, *(None if p is None else p + 1 for p in (x.here, x.there)))
                        for x in choice.margin.moved}  # fmt: skip
                assert said == moved
                told += any(".gap_" in reason.feature for step in choice.steps for reason in step.reasons)
    assert told > 10


def test_a_model_that_remembers_is_saved_and_comes_back(tmp_path):
    config = composed("features=[string,distortion]", "aligner.forward.remember=true", "symmetrize=posterior")
    model = persist.build(
        {"_target_": "jacana_torch.model.model.Model", "aligner": config["aligner"], "annotate": None}
    )
    assert model.aligner.forward.remember and model.aligner.backward.remember
    model.aligner.symmetrize = Posterior(folds=2)
    model.aligner.fit(examples(3, 25))
    assert any(name.startswith("distortion.gap_") for name in model.aligner.backward.names)
    about = {
        "model": {"_target_": "jacana_torch.model.model.Model", "aligner": config["aligner"], "annotate": None}
    }
    again = persist.load(persist.save(model, tmp_path / "model", about, {}))
    assert again.aligner.forward.remember
    assert again.align(held_out()) == Model(model.aligner).align(held_out())


def test_nothing_is_remembered_unless_asked():
    plain = made(remember=False)
    plain.fit(examples(1, 40))
    assert not any(".gap_" in name for name in plain.forward.names)
    names = set(trained().forward.names) - set(plain.forward.names)
    assert names and all(name.startswith("distortion.gap_") for name in names)


def test_what_cannot_remember_says_so():
    class Jumps:
        name = "jumps"
        edge, start, end = Distortion().edge, Distortion().start, Distortion().end

    with pytest.raises(ConfigError, match="'jumps' has no `gap`"):
        Crf({"string": String(), "jumps": Jumps()}, remember=True)
    with pytest.raises(ConfigError, match="remember=True, .*only a chain of single words"):
        PhraseCrf({"string": String(), "distortion": Distortion()}, remember=True)


def test_pairs_without_words_and_without_jumps():
    crf = Crf({"string": String()}, remember=True, max_iterations=3)
    crf.fit(examples(4, 10))
    empty = SentencePair(Sentence(("a",)), Sentence(()))
    assert [len(a.sure) for a in crf.align([empty, empty.flip()])] == [0, 0]
    assert np.isfinite([a.score for a in crf.align(held_out())]).all()
