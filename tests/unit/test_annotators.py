"""The contract of annotators: nothing is mutated, each sentence once, existing layers, chunks, pickling."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from jacana_torch.annotate import Annotator, LayerAnnotator, NoAnnotator, annotate, annotate_stream, missing
from jacana_torch.annotate.given import GivenAnnotator
from jacana_torch.annotate.nltk import NltkAnnotator
from jacana_torch.annotate.spacy import SpacyAnnotator
from jacana_torch.errors import ConfigError, MissingLayer
from jacana_torch.types import PROVIDERS, Sentence, SentencePair

CONF = Path(__file__).parents[2] / "conf" / "annotate"


class Lengths(LayerAnnotator):
    """Tags a token with its length, and records its calls."""

    provides = ("pos",)

    def __init__(self, overwrite: bool = False) -> None:
        self.overwrite, self.seen = overwrite, []

    def layers_of(self, sentences):
        self.seen.append([sentence.tokens for sentence in sentences])
        return [{"pos": tuple(str(len(token)) for token in sentence.tokens)} for sentence in sentences]


def pair(source: str, target: str, name: str | None = None) -> SentencePair:
    return SentencePair(Sentence(tuple(source.split())), Sentence(tuple(target.split())), name)


def test_each_distinct_sentence_once_and_nothing_mutated():
    pairs = [pair("a bb", "ccc", "1"), pair("ccc", "a bb", "2"), pair("", "a bb", "3")]
    annotator = Lengths()
    done = annotator(pairs)
    assert annotator.seen == [[("a", "bb"), ("ccc",), ()]]
    assert [(p.source.layer("pos"), p.target.layer("pos"), p.id) for p in done] == [
        (("1", "2"), ("3",), "1"),
        (("3",), ("1", "2"), "2"),
        ((), ("1", "2"), "3"),
    ]
    assert all(not p.source.layers and not p.target.layers for p in pairs)


def test_existing_layers_are_kept_unless_overwritten():
    tagged = Sentence(("a", "bb"), {"pos": ("X", "Y"), "ner": ("O", "O")}, text="a bb")
    given = [SentencePair(tagged, Sentence(("a", "bb")))]
    kept, new = Lengths()(given)[0], Lengths(overwrite=True)(given)[0]
    assert kept.source is tagged and kept.target.layer("pos") == ("1", "2")
    assert new.source.layer("pos") == ("1", "2") and new.source.layer("ner") == ("O", "O")
    assert new.source.text == "a bb" and tagged.layer("pos") == ("X", "Y")


def test_an_existing_layer_is_kept_beside_new_ones():
    class Two(Lengths):
        provides = ("pos", "lemma")

        def layers_of(self, sentences):
            return [
                {"pos": ("NEW",), "lemma": (s.layers["pos"][0] if "pos" in s.layers else "",)} for s in sentences
            ]

    one, other = Sentence(("a",), {"pos": ("X",)}), Sentence(("a",), {"pos": ("Y",)})
    done = Two()([SentencePair(one, other)])[0]
    assert dict(done.source.layers) == {"pos": ("X",), "lemma": ("X",)}
    assert dict(done.target.layers) == {
        "pos": ("Y",),
        "lemma": ("Y",),
    }  # the same tokens, but not the same sentence
    over = Two(overwrite=True)([SentencePair(one, Sentence(("a",)))])[0]
    assert (over.source.layers["pos"], over.target.layers["lemma"]) == (("NEW",), ("",))


def test_a_required_layer_that_is_missing_says_who_provides_it():
    annotator = Lengths()
    annotator.requires = ("head",)
    with pytest.raises(MissingLayer, match="spacy or given"):
        annotator([pair("a", "b")])


def test_missing():
    bare, half = pair("a", "b"), Lengths()([pair("a", "b")])[0]
    assert missing([bare], ["pos", "ner"]) == {"pos", "ner"}
    assert missing([half], ["pos"]) == set() and missing([half, bare], ["pos", "ner"]) == {"pos", "ner"}
    assert missing([], ["pos"]) == set() and missing([bare], []) == set()
    one_side = SentencePair(half.source, bare.target)
    assert missing([one_side], ("pos",)) == {"pos"}
    with pytest.raises(ConfigError, match="tags"):
        missing([bare], ["tags"])


def test_chunks():
    pairs = [pair(f"w{k}", "same") for k in range(5)]
    annotator = Lengths()
    assert annotate(iter(pairs), annotator, chunk=2) == Lengths()(pairs)
    assert [len(sentences) for sentences in annotator.seen] == [3, 3, 2]
    assert annotate([], annotator) == []
    with pytest.raises(ConfigError, match="chunk"):
        annotate(pairs, annotator, chunk=0)


def test_a_stream_is_read_lazily():
    read = []

    def endless():
        while True:
            read.append(len(read))
            yield pair("a", "b")

    first = next(annotate_stream(endless(), Lengths(), chunk=3))
    assert first.source.layer("pos") == ("1",) and len(read) == 3


def test_whole_corpus_annotators_are_called_once():
    annotator = Lengths()
    annotator.by_chunk = False
    annotate([pair(f"w{k}", "same") for k in range(5)], annotator, chunk=2)
    assert len(annotator.seen) == 1


@pytest.mark.parametrize("annotator", [NoAnnotator(), NltkAnnotator(), SpacyAnnotator(), GivenAnnotator("x.mst")])
def test_annotators_pickle_and_state_real_layers(annotator):
    assert isinstance(annotator, Annotator)
    assert set(annotator.provides) | set(annotator.requires) <= set(PROVIDERS)
    again = pickle.loads(pickle.dumps(annotator))
    assert type(again) is type(annotator) and again.provides == annotator.provides


def test_no_annotator_returns_its_input():
    pairs = [pair("a", "b")]
    assert NoAnnotator()(pairs) == pairs and NoAnnotator()(pairs) is not pairs


@pytest.mark.parametrize("file", sorted(CONF.glob("*.yaml")), ids=lambda file: file.stem)
def test_configs_name_annotators_with_arguments_that_they_take(file):
    from hydra.utils import instantiate
    from omegaconf import OmegaConf

    config = OmegaConf.load(file)
    if file.stem == "given":  # the path is the data's to say
        config.path = "some.parse.jsonl"
    annotator = instantiate(config)
    assert isinstance(annotator, Annotator)
    for layer, providers in PROVIDERS.items():
        assert (file.stem in providers) == (layer in annotator.provides)


def test_there_are_configs():
    assert {file.stem for file in CONF.glob("*.yaml")} >= {"nltk", "spacy", "given", "none"}
