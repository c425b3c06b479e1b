"""Models: what counts as a pair, which pairs are annotated, and what is checked before any work."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest
from templates import corpus, layerless

from jacana_torch import resources
from jacana_torch.errors import ConfigError, MissingLayer, MissingResource
from jacana_torch.model.model import Model, as_pair
from jacana_torch.types import Alignment, Sentence, SentencePair


@dataclass
class Tags:
    """Fills pos with "X", and records the pairs that it gets."""

    provides: tuple[str, ...] = ("pos",)
    requires: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    got: list = field(default_factory=list)

    def __call__(self, pairs):
        self.got += pairs

        def filled(sentence):
            return sentence.with_layers(pos=sentence.layers.get("pos", ["X"] * len(sentence)))

        return [replace(p, source=filled(p.source), target=filled(p.target)) for p in pairs]


@dataclass
class Diagonal:
    """Links equal positions of words with tags."""

    requires: tuple[str, ...] = ("pos",)
    resources: tuple[str, ...] = ()

    def align(self, pairs):
        out = []
        for p in pairs:
            both = zip(p.source.layer("pos"), p.target.layer("pos"), strict=False)
            links = frozenset((k, k) for k, (a, b) in enumerate(both) if a == b)
            out.append(Alignment(len(p.source), len(p.target), links))
        return out


def test_strings_tokens_sentences_and_pairs_are_all_pairs():
    model = Model(Diagonal(), Tags())
    ready = SentencePair(Sentence(("a", "dog", ".")), Sentence(("dogs",)))
    for pair in (("A dog.", "dogs"), (["A", "dog", "."], ["dogs"]), (Sentence(("a", "dog", ".")), "dogs"), ready):
        (found,) = model.align([pair])
        assert (found.n_source, found.n_target, found.links) == (3, 1, [(0, 0)])
    assert as_pair(ready) is ready


@pytest.mark.parametrize("bad", ["a string", ("one",), ("a", "b", "c"), (["a", 5], ["b"]), (["a"], [None])])
def test_anything_else_than_a_pair_is_an_error(bad):
    with pytest.raises(ConfigError):
        Model(Diagonal(), Tags()).align([bad])


def test_only_pairs_that_lack_a_layer_are_annotated_and_order_is_kept():
    examples = corpus(4)
    bare = layerless(examples)
    mixed = [bare[0].pair, examples[1].pair, bare[2].pair, examples[3].pair]
    tags = Tags()
    found = Model(Diagonal(), tags).align(mixed)
    assert tags.got == [mixed[0], mixed[2]]
    assert [(a.n_source, a.n_target) for a in found] == [(len(p.source), len(p.target)) for p in mixed]
    assert found[0].links == [(k, k) for k in range(min(found[0].n_source, found[0].n_target))]


def test_an_aligner_that_reads_no_layers_needs_no_annotator():
    tags = Tags(resources=("tagger",))
    model = Model(Diagonal(requires=()), tags)
    with pytest.raises(MissingLayer):  # this aligner reads more than it requires; its pairs were not annotated
        model.align([("a", "b")])
    assert tags.got == [] and model.resources == ()
    assert Model(Diagonal(resources=("wordnet",)), tags).resources == ("tagger", "wordnet")


def test_without_an_annotator_pairs_must_bring_their_layers():
    model = Model(Diagonal())
    assert model.align([corpus(1)[0].pair])
    with pytest.raises(MissingLayer, match="nltk"):
        model.align([("a", "b")])


def test_check_names_the_layers_that_the_annotator_does_not_fill():
    with pytest.raises(ConfigError, match="annotate=given or annotate=spacy"):
        Model(Diagonal(requires=("pos", "head")), Tags()).check()
    with pytest.raises(ConfigError, match="no known annotator"):
        Model(Diagonal(requires=("colour",)), Tags()).check()
    Model(Diagonal(), Tags()).check()
    Model(Diagonal(requires=("head",))).check()  # corpora may bring their layers


def test_check_names_the_resources_that_are_missing(monkeypatch):
    def missing(name):
        raise MissingResource(f"{name} is missing")

    monkeypatch.setattr(resources, "path", missing)
    with pytest.raises(MissingResource, match="tagger"):
        Model(Diagonal(), Tags(resources=("tagger",))).check()
    Model(Diagonal(requires=()), Tags(resources=("tagger",))).check()


def test_one_direction_has_nothing_to_symmetrize():
    with pytest.raises(ConfigError, match="Diagonal has one direction"):
        Model(Diagonal(), Tags()).align([("a", "b")], symmetrize="union")


def test_a_model_is_made_of_an_aligner_and_an_annotator():
    with pytest.raises(ConfigError, match="dict is not an Aligner"):
        Model({"forward": 1})  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="str is not an Annotator"):
        Model(Diagonal(), "nltk")  # type: ignore[arg-type]
