"""Explanations against the weights of training, against all paths of small chains, and against `align`."""

from __future__ import annotations

import copy
import itertools
import json
import math
import pickle

import numpy as np
import pytest
import templates
from hypothesis import given
from hypothesis import strategies as st
from variants import variants

import jacana_torch as jt
from jacana_torch import resources
from jacana_torch.aligners.crf import Crf
from jacana_torch.crf.scores import LinearScores, node_scores
from jacana_torch.errors import ConfigError, JacanaError
from jacana_torch.explain import Choice, Reason, Reasons
from jacana_torch.explain.alternatives import Alternatives
from jacana_torch.explain.chains import reasons_of
from jacana_torch.features.api import Block
from jacana_torch.features.featureset import blocks_of
from jacana_torch.features.grid import Grid
from jacana_torch.model import persist
from jacana_torch.types import Alignment, Sentence, SentencePair

SENTENCES = ("She bought a used car last week.", "Last week she purchased a second-hand car.")
EXACT = 1e-9


def loaded(name: str):
    needs = next(info.resources for info in persist.shipped() if info.name == name)
    missing = [resource for resource in needs if not resources.available(resource)]
    if missing:
        pytest.skip(f"not on this machine: {', '.join(missing)}")
    return jt.load(name)


@pytest.fixture(scope="module")
def core():
    return jt.load("core")


def pairs(model, count: int) -> list[SentencePair]:
    made = [example.pair for example in templates.corpus(count, seed=7)]
    return model.prepare([SentencePair(*(Sentence(x.tokens) for x in (p.source, p.target))) for p in made])


def matrix_scores(crf: Crf, grid: Grid) -> np.ndarray:
    """[M, S] of the one pair of a grid: its features written out, times the weights of their names."""
    weight = dict(zip(crf.names, crf.weights, strict=True))
    (m,), (n,) = grid.n_source, grid.n_target
    null, link = np.zeros(m), np.zeros(m * n)
    for family in crf.features.node:
        blocks = blocks_of(family, grid)
        for total, part in ((null, blocks.null), (link, blocks.link)):
            for block in part:
                weights = np.array([weight.get(f"{family.name}.{name}", 0.0) for name in block.names])
                total += block.dense().astype(np.float64) @ weights
    return np.column_stack([null, link.reshape(m, n)])


@pytest.mark.parametrize("name", variants(["standard", "core"]))
def test_contributions_add_up_to_the_node_scores_of_every_cell(name):
    model = loaded(name)
    chains = model.aligner.forward, model.aligner.backward
    weights = [dict(zip(crf.names, crf.weights, strict=True)) for crf in chains]
    for pair in pairs(model, 20):
        grid, explanation = Grid([pair]), model.explain(pair)
        quick = node_scores(Grid([pair]), *(crf.scorer() for crf in chains))  # in single precision here and there
        sides = zip(explanation.directions, chains, weights, (grid, grid.flipped()), quick, strict=True)
        for direction, crf, weight, seen, scores in sides:
            expected = matrix_scores(crf, seen)
            assert np.abs(expected[:, 0] - scores[: len(expected)]).max() < 1e-5
            assert np.abs(expected[:, 1:].ravel() - scores[len(expected) :]).max() < 1e-5
            for token, position in itertools.product(*map(range, expected.shape)):
                place = position - 1 if position else None
                reasons = direction.reasons(token, place)
                parts = [reason.contribution for reason in reasons]
                assert abs(math.fsum(parts) - expected[token, position]) < EXACT
                assert parts == sorted(parts, key=abs, reverse=True)
                assert all(weight[reason.feature] == reason.weight for reason in reasons)
                if direction.states[token] == position or (token + position) % 7 == 0:
                    choice = direction.choice(token, place)
                    assert abs(choice.score - expected[token, position]) < EXACT
                    assert list(choice.reasons) == list(reasons)
                    assert_margin_adds_up(choice)


def assert_margin_adds_up(choice: Choice) -> None:
    margin = choice.margin
    assert margin is not None
    assert (margin.value > -EXACT) if choice.chosen else (margin.value < EXACT)
    parts = [reason.contribution for reasons in (margin.own, margin.transitions) for reason in reasons]
    parts += [moved.difference for moved in margin.moved]
    assert abs(math.fsum(parts) - margin.value) < EXACT
    assert choice.token not in {moved.token for moved in margin.moved}


def test_explanations_are_of_the_links_that_align_finds(core):
    found = pairs(core, 80)
    for join in (None, "union", "intersection", "backward"):
        aligned = core.align(found, join)
        for explanation, alignment in zip(core.explanations(found, join), aligned, strict=True):
            assert explanation.alignment == alignment
            for link in explanation.links():
                probability = alignment.confidence[link.source, link.target]
                assert link.linked and link.confidence == pytest.approx(probability, abs=1e-6)
    forward, backward = core.aligner.directions(found)
    for explanation, *directions in zip(core.explanations(found), forward, backward, strict=True):
        for direction, alignment in zip(explanation.directions, directions, strict=True):
            assert direction.alignment == alignment
            for link, probability in alignment.confidence.items():
                assert direction.alignment.confidence[link] == pytest.approx(probability, abs=1e-4)


def every_path(crf: Crf, pair: SentencePair) -> dict[tuple[int, ...], float]:
    """The score of every state sequence."""
    node, n = matrix_scores(crf, Grid([pair])), len(pair.target)
    weight = dict(zip(crf.names, crf.weights, strict=True))
    step = {}
    for kind in ("edge", "start", "end"):
        block = getattr(crf.families["distortion"], kind)(n)
        names = [weight.get(f"distortion.{name}", 0.0) for name in block.names]
        step[kind] = block.dense() @ np.array(names)
    return {
        path: sum(node[m, s] for m, s in enumerate(path)) + step["start"][path[0]] + step["end"][path[-1]]
        + sum(step["edge"][a * (n + 1) + b] for a, b in itertools.pairwise(path))
        for path in itertools.product(range(n + 1), repeat=len(pair.source))
    }  # fmt: skip


@pytest.mark.parametrize(
    "sides", [("old dogs sleep", "the old dog sleeps"), ("red red car", "car red"), ("yes", "no never")]
)
def test_competitors_margins_and_posteriors_agree_with_enumeration(core, sides):
    pair = SentencePair(*(Sentence(tuple(side.split())) for side in sides))
    explanation = core.explain(pair)
    for direction, crf, seen in zip(
        explanation.directions, (core.aligner.forward, core.aligner.backward), (pair, pair.flip()), strict=True
    ):
        paths = every_path(crf, seen)
        log_z = np.logaddexp.reduce(list(paths.values()))
        best = max(paths, key=paths.__getitem__)
        for token, state in itertools.product(range(len(seen.source)), range(len(seen.target) + 1)):
            choice = direction.choice(token, state - 1 if state else None)
            assert choice.chosen == (best[token] == state)
            probability = sum(math.exp(score - log_z) for path, score in paths.items() if path[token] == state)
            assert choice.posterior == pytest.approx(probability, abs=1e-6)

            def through(s, token=token, paths=paths) -> tuple[float, tuple[int, ...]]:
                return max((score, path) for path, score in paths.items() if path[token] == s)

            others = [s for s in range(len(seen.target) + 1) if s != state]
            competitor = max(others, key=through) if choice.chosen else best[token]
            assert choice.rival == (competitor - 1 if competitor else None)
            (here, path), (there, other) = through(state), through(competitor)
            assert choice.margin.value == pytest.approx(here - there, abs=EXACT)
            moved = {(m, a - 1, b - 1) for m, (a, b) in enumerate(zip(path, other, strict=True))
                     if a != b and m != token}  # fmt: skip
            said = {(x.token, -1 if x.here is None else x.here, -1 if x.there is None else x.there)
                    for x in choice.margin.moved}  # fmt: skip
            assert said == moved
            around = [(s - 1 if s else None) for s in path[max(token - 1, 0) : token + 2]]
            assert [choice.steps[0].after, choice.steps[1].before] == [choice.position] * 2
            if 0 < token < len(path) - 1:
                assert [choice.steps[0].before, choice.position, choice.steps[1].after] == around
            assert choice.steps[0].kind == ("step" if token else "start")
            assert choice.steps[1].kind == ("end" if token == len(path) - 1 else "step")


@given(st.integers(0, 10_000), st.integers(1, 4), st.integers(1, 4))
def test_the_best_path_through_every_state(seed, m, s):
    random = np.random.default_rng(seed)
    node, edge, start, end = (random.normal(size=size) for size in ((m, s), (s, s), s, s))
    found = Alternatives(node, edge, start, end)
    scores = {
        path: start[path[0]] + end[path[-1]] + sum(node[k, x] for k, x in enumerate(path))
        + sum(edge[a, b] for a, b in itertools.pairwise(path))
        for path in itertools.product(range(s), repeat=m)
    }  # fmt: skip
    best = max(scores, key=scores.__getitem__)
    for position, state in itertools.product(range(m), range(s)):
        path = max((p for p in scores if p[position] == state), key=scores.__getitem__)
        assert found.score[position, state] == pytest.approx(scores[path])
        assert tuple(found.path(position, state, np.array(best))) == path
        others = [x for x in range(s) if x != state]
        competitor = max(others, key=lambda x, k=position: found.score[k, x], default=None)
        assert found.competitor(position, state) == competitor


def test_reasons_are_a_sequence_sorted_by_strength():
    names = ["a.x", "b.y", "c.z"]
    some = Reasons(names, np.array([0, 2]), np.array([1.0, 2.0]), np.array([0.5, -3.0]))
    other = Reasons(names, np.array([1, 2]), np.array([1.0, 2.0]), np.array([7.0, -3.0]))
    assert list(some) == [Reason("c.z", 2.0, -3.0), Reason("a.x", 1.0, 0.5)] == some[:]
    assert (len(some), some[0], some[-1], some[1:]) == (2, some[0], Reason("a.x", 1.0, 0.5), [some[1]])
    assert some.total == -5.5 and some.to_dicts(1) == [
        {"feature": "c.z", "title": "c z", "value": 2.0, "weight": -3.0, "contribution": -6.0}
    ]
    with pytest.raises(IndexError):
        some[2]
    apart = Reasons.difference([some], [other])  # what both say alike is no difference
    assert list(apart) == [Reason("b.y", -1.0, 7.0), Reason("a.x", 1.0, 0.5)]
    assert len(Reasons.difference([], [])) == 0


@given(st.integers(0, 10_000))
def test_reasons_of_cells_agree_with_dense_blocks(seed):
    """Tables and one-hot columns, with and without an index, cells that have no row, features named twice."""
    random, cells, names = np.random.default_rng(seed), 7, [f"x.{k}" for k in range(6)]
    weights, blocks, expected = random.normal(size=6), [], np.zeros((cells, 6))
    for with_index, one_hot in itertools.product((True, False), repeat=2):
        columns = random.permutation(6)[: cells if one_hot else 3] if with_index else random.permutation(6)[:3]
        table = None if one_hot else random.integers(-1, 3, (4 if with_index else cells, 3)).astype(float)
        rows = len(columns) if table is None else len(table)
        index = random.integers(-1, rows, cells) if with_index or one_hot else None
        written = Block(tuple(map(str, columns)), table, index).dense()
        np.add.at(expected, (slice(None), columns), written)
        blocks.append((columns, table, index))
    linear = LinearScores(blocks, cells, len(names))
    asked = random.integers(0, cells, 5).tolist()
    for cell, reasons in zip(asked, reasons_of(linear, names, weights, asked), strict=True):
        said = {reason.feature: (reason.value, reason.weight) for reason in reasons}
        assert len(said) == len(reasons)
        for name, value, weight in zip(names, expected[cell], weights, strict=True):
            assert said.get(name, (0.0, weight)) == (value, weight)
    assert linear.once(weights) == pytest.approx(expected @ weights)
    assert reasons_of(linear, names, weights, []) == []


def test_an_alignment_explains_itself(core):
    (alignment,) = core.align([SENTENCES])
    link = alignment.explain(1, 3)
    assert link.linked and link.to_dict() == core.explain(SENTENCES).link(1, 3).to_dict()
    assert not alignment.explain(1, 0).linked
    assert "“bought” takes “purchased” with probability" in str(link) and "both directions have it" in str(link)
    others = [Alignment(2, 2), alignment.flip(), alignment | alignment, copy.copy(alignment)]
    for other in [*others, pickle.loads(pickle.dumps(alignment))]:
        with pytest.raises(JacanaError, match=r"model\.explain"):
            other.explain(0, 0)
    (alone,) = core.align([SENTENCES], confidence=False)
    assert alone.explain(1, 3).linked
    (union,) = core.align([SENTENCES], "union")
    assert union.explain(0, 2).to_dict() == core.explain(SENTENCES, "union").link(0, 2).to_dict()


def test_an_alignment_refuses_to_explain_after_its_model_changed():
    model = jt.load("core")
    (alignment,) = model.align([SENTENCES])
    state = model.aligner.state()
    for part in ("forward", "backward"):
        state[f"{part}.weights"] = -state[f"{part}.weights"]
    model.aligner.restore(state)
    with pytest.raises(JacanaError, match="changed"):
        alignment.explain(0, 2)


def test_verdicts_describe_the_combination_of_directions(core):
    seen = set()
    for join in ("union", "intersection", "grow-diag-final", "forward", "backward"):
        for explanation in core.explanations(pairs(core, 40), join):
            assert explanation.symmetrizer == join
            forward, backward = (direction.alignment.sure for direction in explanation.directions)
            for link in sorted(forward | backward | {(0, 0)}):
                verdict, linked = explanation.link(*link).verdict, link in explanation.alignment.sure
                have = [side for side, links in (("forward", forward), ("backward", backward)) if link in links]
                assert verdict.startswith(
                    {0: "neither direction", 1: f"only the {[*have, ''][0]} direction", 2: "both directions"}[
                        len(have)
                    ]
                )
                if len(have) == 1:
                    assert (f"{join} keeps it" if linked else f"{join} leaves it out") in verdict
                    seen.add(linked)
    assert seen == {True, False}


def test_one_direction_alone_is_explained(core):
    alone = type(core)(core.aligner.backward)
    explanation = alone.explain(SENTENCES)
    assert [direction.name for direction in explanation.directions] == [
        "forward"
    ] and explanation.symmetrizer is None
    assert explanation.alignment == alone.align([SENTENCES])[0]
    assert explanation.link(0, 2).backward is None and explanation.link(0, 2).forward.chosen


def test_aligners_without_reasons_give_a_note():
    model = jt.load("bag_of_words") if "bag_of_words" in {i.name for i in persist.untrained()} else jt.load("ted")
    explanation = model.explain((["red", "car"], ["car"]))
    assert (
        explanation.directions == ()
        and "gives no reasons" in explanation.note
        and explanation.note in explanation.to_text()
    )
    link = explanation.link(1, 0)
    assert link.linked and link.forward is link.backward is None
    json.dumps(explanation.to_dict(), allow_nan=False)
    with pytest.raises(ConfigError, match="nothing to symmetrize"):
        model.explain((["red"], ["red"]), "union")


def test_bad_requests_are_errors(core):
    explanation = core.explain(SENTENCES)
    for i, j, side in ((-1, 0, "source"), (99, 0, "source"), (0, 99, "target")):
        with pytest.raises(ConfigError, match=f"no {side} token"):
            explanation.link(i, j)
    with pytest.raises(ConfigError, match="no symmetrizer"):
        core.explain(SENTENCES, "magic")
    empty = core.explain((["a"], []))
    assert empty.links() == [] and "no words" in empty.note and "no words" in empty.to_text()


def test_the_command_prints_the_same(cli, core):
    code, out, err = cli("explain", *SENTENCES, "--model", "core")
    explanation = core.explain(SENTENCES)
    assert (code, out) == (0, f"{explanation.to_text()}\n") and not err
    code, out, _ = cli("explain", *SENTENCES, "--model", "core", "--json", "--top", "2", "--symmetrize", "union")
    assert code == 0 and json.loads(out) == core.explain(SENTENCES, "union").to_dict(2)
    asked = ("--why", "bought", "Purchased", "--why", "0", "2", "--link", "1-0", "--top", "4")
    code, out, _ = cli("explain", *SENTENCES, "--model", "core", *asked)
    expected = [explanation.link(i, j).to_text(4) for i, j in ((1, 0), (1, 3), (0, 2))]
    assert code == 0 and out == "\n\n".join(expected) + "\n"
    code, out, _ = cli("explain", "a b-c", "b-c", "--model", "core", "--pretokenized", "--json")
    assert json.loads(out)["source"] == ["a", "b-c"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a b", "b", "--link", "one"], "--link 'one'"),
        (["a b", "b", "--link", "7-0"], "no source token 7"),
        (["a b a", "b", "--why", "a", "b"], "at 0, 2"),
        (["a b", "b", "--why", "b", "c"], "the target has no word 'c'"),
        (["a", " ", "--link", "0-0"], "the target sentence has no words"),
        (["a", "b", "--symmetrize", "magic"], "no symmetrizer"),
        (["a", "b", "--model", "nothing/here"], "no model"),
    ],
)
def test_the_command_reports_bad_arguments(cli, arguments, message):
    code, out, err = cli("explain", *arguments, *([] if "--model" in arguments else ["--model", "core"]))
    assert (code, out) == (2, "") and message in err and "Traceback" not in err
