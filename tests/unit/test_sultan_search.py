"""The search for the settings of Sultan's pipeline that align the training examples best."""

from __future__ import annotations

import pytest
from sultan_sentences import made, paired
from templates import corpus

from jacana_torch.aligners.base import Aligner, Trainable
from jacana_torch.errors import ConfigError
from jacana_torch.evaluate import score
from jacana_torch.systems.sultan import word_similarity
from jacana_torch.systems.sultan.sultan import Sultan, TunedSultan
from jacana_torch.types import Alignment, Example, SentencePair


def competitors() -> list[Example]:
    """A word's paraphrase beside its neighbours, and the word itself elsewhere: the settings decide."""
    source = made(["old", "crew", "sailed", "slowly"], [1, 2, -1, 2], ["amod", "nsubj", "root", "advmod"])
    forms = ["old", "crew", "left", "slowly", ".", ".", ".", ".", "sailed"]
    target = made(forms, [-1] * 9, ["root"] * 9)
    return [Example(SentencePair(source, target), Alignment(4, 9, frozenset({(0, 0), (1, 1), (2, 2), (3, 3)})))]


@pytest.fixture
def searched(monkeypatch):
    monkeypatch.setattr(word_similarity, "nowhere", paired)
    return TunedSultan(paraphrases="none", weight=1.0, grid=[0.1, 0.9])


def test_search_finds_the_best_settings(searched):
    assert (
        isinstance(searched, Trainable) and not isinstance(Sultan(), Trainable) and isinstance(Sultan(), Aligner)
    )
    examples = competitors()
    gold = [e.gold for e in examples]
    before = score(gold, searched.align([e.pair for e in examples])).f1
    steps = []
    report = searched.fit(examples, watch=lambda step: steps.append((step.iteration, round(1 - step.loss, 6))))
    found = score(gold, searched.align([e.pair for e in examples])).f1
    assert found > before and report.loss["search"] == pytest.approx(1 - found) and report.converged
    assert found == pytest.approx(max(f1 for _, f1 in steps)) and [k for k, _ in steps] == [1, 2, 3, 4, 5]
    assert (searched.similarity, searched.weight) == (0.9, 0.9)  # the greatest among equals


def test_present_settings_are_kept_among_equals(searched):
    examples = [Example(e.pair, e.gold) for e in corpus(3)]
    searched.fit(examples)
    assert (searched.similarity, searched.weight) == (0.9, 1.0)


def test_interrupted_search_keeps_the_best_settings(searched):
    def stop(step):
        if step.iteration == 3:
            raise KeyboardInterrupt

    report = searched.fit(competitors(), watch=stop)
    assert report.interrupted and not report.converged
    assert (searched.similarity, searched.weight) in [(0.9, 1.0), (0.9, 0.9), (0.9, 0.1)]


def test_state_has_the_settings_and_the_source_of_paraphrases(searched):
    searched.fit(competitors())
    again = TunedSultan(paraphrases="auto")
    again.restore(searched.state())
    assert (again.similarity, again.weight, again.paraphrases) == (searched.similarity, searched.weight, "none")


def test_restored_source_of_paraphrases_is_used_at_once(searched, monkeypatch):
    monkeypatch.setattr(word_similarity, "in_wordnet", lambda words, left, right: left < 0)
    pairs = [e.pair for e in competitors()]
    searched.similarity = searched.weight = 0.9
    with_paraphrases = searched.align(pairs)
    searched.restore({"parameters": [0.9, 0.9], "paraphrases": ["wordnet"]})
    assert searched.align(pairs) != with_paraphrases


def test_search_needs_examples_and_a_grid(searched):
    with pytest.raises(ConfigError, match="no aligned examples"):
        searched.fit([Example(competitors()[0].pair)])
    for grid in ([], [2.0]):
        with pytest.raises(ConfigError, match="grid"):
            TunedSultan(grid=grid)
