"""Conventions of several corpora in one model: shared weights, and deviations of each style."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from jacana_torch.aligners.bidirectional import Bidirectional
from jacana_torch.aligners.crf import Crf
from jacana_torch.aligners.posterior import Posterior
from jacana_torch.crf.objective import Objective
from jacana_torch.errors import ConfigError
from jacana_torch.features.families.distortion import Distortion
from jacana_torch.features.families.position import Position
from jacana_torch.features.families.string import String
from jacana_torch.train import loop
from jacana_torch.types import Alignment, Example, Sentence, SentencePair

WORDS = "the old dog sat down near a river and slept until some birds came".split()


def families():
    return {"string": String(), "position": Position(), "distortion": Distortion()}


def examples(seed: int, count: int, style: str | None, generous: bool) -> list[Example]:
    """Sentences, and others with some words changed, which only a generous annotator links."""
    draw, found = np.random.default_rng(seed), []
    for _ in range(count):
        source = [WORDS[k] for k in draw.integers(0, len(WORDS), draw.integers(3, 8))]
        target = [word if draw.random() < 0.6 else f"{word}{word[-1]}y" for word in source]
        links = {(k, k) for k, word in enumerate(source) if generous or target[k] == word}
        pair = SentencePair(Sentence(tuple(source)), Sentence(tuple(target)))
        found.append(Example(pair, Alignment(len(source), len(target), frozenset(links)), style=style))
    return found


def corpus(sparing: str | None = "sparing", generous: str | None = "generous") -> list[Example]:
    return [*examples(1, 15, sparing, False), *examples(2, 15, generous, True)]


def crf(**options) -> Crf:
    return Crf(families(), tolerance=1e-10, **options)


def fitted(taught, **options) -> Crf:
    made = crf(**options)
    made.fit(taught)
    return made


@pytest.mark.parametrize("unstyled", [False, True])
def test_the_gradient_is_that_of_the_loss(unstyled):
    taught = corpus() + (examples(3, 5, None, True) if unstyled else [])
    made = crf()
    styles = ["generous", "sparing"]
    parts, _, names, _ = made._parts(taught, styles)
    draw = np.random.default_rng(1)
    size = 3 * len(names)
    l2, mean, at, way = draw.random((4, size))
    objective = Objective(parts, l2, {"cost_null": 0.7, "cost_link": 1.3}, mean=mean, styles=2)
    (above, _), (below, _), (_, gradient) = objective(at + 1e-5 * way), objective(at - 1e-5 * way), objective(at)
    assert gradient @ way == pytest.approx((above - below) / 2e-5, rel=1e-7)
    # The shared weights have the gradients of all styles together, and each deviation its own.
    shared, *own = (gradient - l2 * (at - mean)).reshape(3, -1)
    if not unstyled:
        assert np.allclose(shared, np.sum(own, 0), atol=1e-8)
    else:
        assert not np.allclose(shared, np.sum(own, 0), atol=1e-3)


def test_the_loss_is_the_sum_of_those_of_the_styles():
    taught, made = corpus(), crf()
    parts, _, names, _ = made._parts(taught, ["generous", "sparing"])
    costs = {"cost_null": 1.0, "cost_link": 1.0}
    shared, *deviations = at = np.random.default_rng(2).normal(size=(3, len(names)))
    alone = [Objective([part._replace(style=None)], 0.0, costs) for part in parts]
    losses = [objective(shared + deviations[part.style])[0] for objective, part in zip(alone, parts, strict=True)]
    assert Objective(parts, 0.0, costs, styles=2)(at.reshape(-1))[0] == pytest.approx(sum(losses), rel=1e-12)


def test_without_room_for_deviations_corpora_are_pooled():
    apart, pooled = fitted(corpus(), l2_style=1e9), fitted(corpus(None, None))
    assert apart.styles == ("generous", "sparing") and pooled.styles == ()
    assert apart.names == pooled.names
    assert np.allclose(apart.shared, pooled.weights, atol=1e-4)
    assert max(np.abs(deviation).max() for deviation in apart.deviations.values()) < 1e-6


def test_one_style_is_plain_training():
    one, plain = fitted(corpus("same", "same")), fitted(corpus(None, None))
    assert one.styles == () and one.names == plain.names and np.array_equal(one.weights, plain.weights)
    assert one.state().keys() == {"names", "weights"}


def test_a_style_without_shared_weights_is_its_corpus_alone():
    apart, alone = fitted(corpus(), l2=1e7, l2_style=1.0), fitted(examples(1, 15, None, False), l2=1.0)
    apart.choose("sparing")
    weights = dict(zip(apart.names, apart.weights, strict=True))
    assert np.allclose([weights[name] for name in alone.names], alone.weights, atol=1e-3)


def links(aligner, pairs) -> int:
    return sum(len(alignment.sure) for alignment in aligner.align(pairs))


@pytest.fixture(scope="module")
def trained() -> Bidirectional:
    made = Bidirectional(*(replace(crf(), tolerance=1e-4) for _ in range(2)), Posterior(folds=2))
    made.fit([*corpus(), *examples(3, 7, "sparing", False), *examples(4, 7, "generous", True)])
    assert made.styles == ("generous", "sparing")
    return made


def test_each_style_aligns_as_its_corpus(trained):
    held = [*examples(5, 20, "sparing", False), *examples(6, 20, "generous", True)]
    pairs = [example.pair for example in held]
    found = {}
    for style in trained.styles:
        trained.choose(style)
        found[style] = links(trained, pairs)
    trained.choose(None)
    assert found["sparing"] < found["generous"]
    own = loop.scores(held, loop.predictions(trained, held))["posterior"].f1
    for style in trained.styles:
        wrong = [replace(example, style=style) for example in held]
        assert loop.scores(held, loop.predictions(trained, wrong))["posterior"].f1 < own


def test_the_state_holds_all_styles_whichever_is_chosen(trained):
    before = trained.state()
    assert before["forward.deviations"].dtype == np.float32
    trained.choose("sparing")
    pairs = [example.pair for example in corpus()]
    chosen, after = trained.align(pairs), trained.state()
    trained.choose(None)
    assert before.keys() == after.keys()
    again = Bidirectional(crf(), crf(), "posterior")
    again.restore(after)
    assert again.styles == trained.styles and again.align(pairs) == trained.align(pairs)
    again.choose("sparing")
    assert again.align(pairs) == chosen
    usual = Bidirectional(crf(style="sparing"), crf(style="sparing"), "posterior")
    usual.restore(before)
    assert usual.align(pairs) == chosen


def test_a_style_has_its_own_calibration(trained):
    assert set(trained.combinations) == {"", *trained.styles}
    trained.choose("generous")
    assert trained.combination == trained.combinations["generous"]
    trained.choose(None)
    assert trained.combination == trained.combinations[""]


def test_a_style_that_there_is_not_is_an_error_with_those_that_there_are(trained):
    with pytest.raises(
        ConfigError, match=r"no style 'sparin'; did you mean sparing\? There are generous, sparing"
    ):
        trained.choose("sparin")
    with pytest.raises(ConfigError, match="no style 'sparing': this model has learnt one convention alone"):
        fitted(corpus(None, None)).choose("sparing")


def test_a_start_gives_its_usual_style(trained):
    made = Bidirectional(crf(style="sparing"), crf(style="sparing"), "posterior")
    made.start_from(trained.state(), 3.0)
    trained.choose("sparing")
    assert made.styles == () and np.array_equal(made.forward.weights, trained.forward.weights)
    assert made.combination == trained.combination
    trained.choose(None)


def test_pruned_columns_are_those_that_no_style_needs():
    pruned = replace(crf(prune=0.05), tolerance=1e-4)
    pruned.fit(corpus())
    assert 0 < len(pruned.names) < len(pruned.features([e.pair for e in corpus()]).names())
    assert pruned.styles == ("generous", "sparing")
    assert {len(pruned.names)} == {len(deviation) for deviation in pruned.deviations.values()}
