"""Sultan et al.'s pipeline: every stage against its twin, and properties of the whole."""

from __future__ import annotations

import itertools
import logging
import os
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sultan_sentences import LEXICON, made, pair_of, paired, sentences
from sultan_twin import BOTH_PARENTS, PARENT_AND_CHILD, Side, Twin, equivalent
from templates import corpus

from jacana_torch import resources
from jacana_torch.annotate.given import GivenAnnotator
from jacana_torch.corpora import read
from jacana_torch.errors import ConfigError, JacanaError, MissingLayer
from jacana_torch.evaluate import score
from jacana_torch.systems.sultan import stages, word_similarity
from jacana_torch.systems.sultan import sultan as module
from jacana_torch.systems.sultan.parsed_sentence import parsed, table_rows
from jacana_torch.systems.sultan.stages import PairState
from jacana_torch.systems.sultan.sultan import Sultan, TunedSultan
from jacana_torch.systems.sultan.word_similarity import WordType, similarity_tables
from jacana_torch.types import Alignment, Example, Sentence, SentencePair

STAGES = [
    (stages.link_sequences, Twin.sequences),
    (stages.link_by_dependencies, Twin.by_dependencies),
    (stages.link_by_neighbourhood, Twin.by_neighbourhood),
    (stages.link_by_linked_dependencies, Twin.by_linked_dependencies),
    (stages.link_markers, Twin.markers),
    (stages.link_by_linked_neighbours, Twin.by_linked_neighbours),
]


def side(sentence: Sentence) -> Side:
    layers, forms = sentence.layers, list(sentence.tokens)
    kinds = [LEXICON[form][1] for form in forms]
    return Side(forms, list(layers["pos"]), list(layers["head"]), list(layers["deprel"]), kinds)


# Binary fractions: sums are exact in any order, so both implementations have the same ties.
WEIGHTS = st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0])


def assert_like_the_twin(source, target, similarity, weight):
    words = parsed(source), parsed(target)
    (level,) = similarity_tables([words], paired)
    board = PairState(*words, level, similarity, weight)
    twin = Twin(side(source), side(target), level.tolist(), similarity, weight)
    links = set()
    for stage, same in STAGES:
        assert_like_evidence(board, twin, links)
        stage(board)
        links = same(twin, links)
        assert set(zip(*(x.tolist() for x in np.nonzero(board.links)), strict=True)) == links, stage.__name__


def assert_like_evidence(board, twin, links):
    at, by = stages.dependency_evidence(board)
    near, shared, beside = (
        f(board) for f in (stages.neighbourhood, stages.linked_dependencies, stages.linked_beside)
    )
    for i, j in twin.cells():
        found = [divmod(cell, len(twin.target)) for cell in by[at == i * len(twin.target) + j].tolist()]
        assert sorted(found) == sorted(twin.dependencies(i, j))
        assert near[i, j] == twin.neighbourhood(i, j)
        assert shared[i, j] == twin.linked_dependencies(i, j, links)
        assert beside[i, j] == twin.beside(i, j, links)


@settings(max_examples=60)
@given(sentences(), sentences(), st.sampled_from([0.25, 0.75]), WEIGHTS)
def test_every_stage_agrees_with_its_twin(source, target, similarity, weight):
    assert_like_the_twin(source, target, similarity, weight)


@pytest.mark.parametrize("seed", range(4))
def test_every_stage_agrees_with_its_twin_on_similar_sentences(seed):
    random = Random(seed)
    for _ in range(40):
        assert_like_the_twin(*pair_of(random), random.choice([0.25, 0.75]), random.choice([0.25, 0.5, 0.75]))


def test_result_does_not_depend_on_slices_of_edges(monkeypatch):
    random = Random(9)
    pairs = [SentencePair(*pair_of(random)) for _ in range(60)]
    whole = Sultan(paraphrases="none").align(pairs)
    monkeypatch.setattr(stages, "EDGE_PAIRS_AT_ONCE", 1)
    assert Sultan(paraphrases="none").align(pairs) == whole


def test_table_1_agrees_with_the_twin_for_any_two_edges():
    """Every two relations in every direction between words of every category."""
    labels = sorted({name for _, _, *groups in [*BOTH_PARENTS, *PARENT_AND_CHILD] for g in groups for name in g})
    sides = [(label, down) for label in labels for down in (True, False)]
    kinds = {"n": 1, "v": 2, "a": 3, "r": 4}
    for here, there in itertools.product(kinds, kinds):
        rows = {one: table_rows(one[0], kinds[here], kinds[there], one[1]) for one in sides}
        for one, other in itertools.product(sides, sides):
            (alike, left, right), (also, also_left, also_right) = rows[one], rows[other]
            found = bool(alike & also or left & also_right or right & also_left)
            assert found == equivalent(here, there, *one, *other), (here, there, one, other)


@settings(max_examples=60)
@given(sentences(), sentences())
def test_links_are_one_to_one(source, target):
    (found,) = Sultan(paraphrases="none").align([SentencePair(source, target)])
    assert len({i for i, _ in found.sure}) == len({j for _, j in found.sure}) == len(found.sure)


@settings(max_examples=100)
@given(sentences(), sentences())
def test_content_words_are_linked_with_themselves(source, target):
    (found,) = Sultan(paraphrases="none").align([SentencePair(source, source)])
    assert {i for i, _ in found.sure} >= set(np.flatnonzero(parsed(source).content).tolist())
    assert all(source.tokens[i] == source.tokens[j] or source.layers["lemma"][i] == "be" for i, j in found.sure)


def test_links_do_not_depend_on_the_direction():
    aligner = Sultan(paraphrases="none")
    pairs = [e.pair for e in corpus(40)]
    assert aligner.align([pair.flip() for pair in pairs]) == [a.flip() for a in aligner.align(pairs)]


def test_object_and_relative_clause_are_equivalent():
    """As in Figure 2: an object and a relative clause, whose words have different neighbours."""
    source = made(["crew", "left", "the", "ship"], [1, -1, 3, 1], ["nsubj", "root", "det", "dobj"])
    target = made(["the", "vessel", "it", "left"], [1, -1, 3, 1], ["det", "root", "nsubj", "rcmod"])
    words = parsed(source), parsed(target)
    (level,) = similarity_tables([words], paired)
    board = PairState(*words, level, 0.9, 0.9)
    stages.link_by_dependencies(board)
    assert [tuple(x) for x in np.argwhere(board.links)] == [(1, 3), (3, 1)]


def linked(stage, source, target, *links) -> list:
    words = parsed(source), parsed(target)
    board = PairState(*words, similarity_tables([words], paired)[0], 0.9, 0.9)
    for link in links:
        board.links[link] = True
    stage(board)
    return [tuple(x) for x in np.argwhere(board.links).tolist()]


def test_marker_needs_both_ends():
    source = made(["crew", "of", "ship"], [-1, 0, 1], ["root", "prep", "pobj"])
    target = made(["crew", "by", "vessel"], [-1, 0, 1], ["root", "prep", "pobj"])
    assert linked(stages.link_markers, source, target, (0, 0)) == [(0, 0)]
    assert linked(stages.link_markers, source, target, (2, 2)) == [(2, 2)]
    assert linked(stages.link_markers, source, target, (0, 0), (2, 2)) == [(0, 0), (1, 1), (2, 2)]


def test_new_links_are_evidence_for_further_links():
    source, target = (made([",", "it", word], [-1] * 3, ["root"] * 3) for word in ("ship", "crew"))
    assert linked(stages.link_by_linked_neighbours, source, target) == [(0, 0), (1, 1)]


def test_without_ppdb_it_warns_once_and_uses_wordnet(monkeypatch, tmp_path, caplog):
    monkeypatch.setattr(resources, "available", lambda name: name != "mwa-ppdb")
    monkeypatch.delenv("JACANA_PPDB", raising=False)
    asked = []
    monkeypatch.setattr(word_similarity, "in_wordnet", lambda keys, left, right: asked.append(1) or left < 0)
    aligner = Sultan()
    assert aligner.resources == ("glove-840b", "wordnet")
    pairs = [e.pair for e in corpus(2)]
    with caplog.at_level(logging.WARNING):
        aligner.align(pairs)
        aligner.align(pairs)
    assert len(asked) == 2
    assert [r.getMessage().count("no PPDB on this machine") for r in caplog.records] == [1]


def test_ppdb_at_an_explicit_path_is_used(own_home, monkeypatch, tmp_path):
    path = tmp_path / "pairs"
    path.write_text("vessel\tship\nsailed\tleave\n", encoding="utf-8")
    monkeypatch.setenv("JACANA_PPDB", str(path))
    source = made(["old", "ship", "sailed"], [1, -1, 1], ["amod", "root", "acl"])
    target = made(["old", "vessel", "left"], [1, -1, 1], ["amod", "root", "acl"])
    pair = SentencePair(source, target)
    aligner = TunedSultan()
    assert aligner.resources == ("mwa-ppdb",)
    assert aligner.align([pair])[0].links == [(0, 0), (1, 1)]  # two forms, or two lemmas: not one of each
    lemmas = [["old", "x", "sailed"], ["old", "y", "leave"]]
    both = [side.with_layers(lemma=own) for side, own in zip((source, target), lemmas, strict=True)]
    assert aligner.align([SentencePair(*both)])[0].links == [(0, 0), (1, 1), (2, 2)]
    aligner.fit([Example(pair, Alignment(3, 3, frozenset({(0, 0)})))])
    assert aligner.paraphrases == "ppdb"  # the source that it was tuned with
    monkeypatch.setenv("JACANA_PPDB", str(tmp_path / "nowhere"))
    with pytest.raises(JacanaError, match="JACANA_PPDB"):
        Sultan().align([SentencePair(source, target)])


def test_wordnet_and_vectors_replace_ppdb():
    for name in ("wordnet", "glove-840b"):
        if not resources.available(name):
            pytest.skip(f"{name} is not on this machine")
    keys = [WordType(word, word, "NN", word == "the", False) for word in ("ship", "vessel", "sock", "the", "boat")]
    left, right = np.array([0, 1, 0, 3, 2]), np.array([1, 0, 2, 3, 4])
    assert word_similarity.in_wordnet(keys, left, right).tolist() == [True, True, False, False, False]
    source = made(["old", "ship", "left"], [1, 2, -1], ["amod", "nsubj", "root"])
    target = made(["ancient", "vessel", "sailed"], [1, 2, -1], ["amod", "nsubj", "root"])
    pair = SentencePair(source, target)
    assert (1, 1) in Sultan(paraphrases="wordnet").align([pair])[0].sure
    assert not Sultan(paraphrases="none").align([pair])[0].sure


@pytest.mark.parametrize(
    "wrong", [{"similarity": 1.5}, {"weight": -0.1}, {"paraphrases": "thesaurus"}, {"names": "all"}]
)
def test_invalid_settings_are_errors(wrong):
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        Sultan(**wrong)


def test_head_outside_the_sentence_is_an_error():
    bad = made(["old", "ship"], [5, -1], ["amod", "root"])
    with pytest.raises(JacanaError, match="head 5.*'?heads count from 0"):
        Sultan(paraphrases="none").align([SentencePair(bad, bad)])


def test_pair_beyond_the_limit_is_an_error(monkeypatch):
    monkeypatch.setattr(module, "LARGEST_PAIR", 3)
    sentence = made(["old", "ship"], [1, -1], ["amod", "root"])
    with pytest.raises(ConfigError, match="2 x 2 tokens"):
        Sultan(paraphrases="none").align([SentencePair(sentence, sentence)])


def test_result_does_not_depend_on_portions(monkeypatch):
    pairs = [e.pair for e in corpus(12)]
    whole = Sultan(paraphrases="none").align(pairs)
    monkeypatch.setattr(module, "CELLS_AT_ONCE", 1)
    assert Sultan(paraphrases="none").align(pairs) == whole


def test_entities_are_required_with_names_ner():
    aligner = Sultan(paraphrases="none", names="ner")
    assert "ner" in aligner.requires
    pair = SentencePair(*[made(["old", "ship"], [1, -1], ["amod", "root"])] * 2)
    with pytest.raises(MissingLayer, match="ner"):
        aligner.align([pair])


# Results on MSR


@pytest.mark.slow
def test_results_on_msr_dev_are_like_the_papers(data_root):
    path = data_root / "resources" / "mwa_ppdb"
    if not (resources.available("mwa-ppdb") or path.is_dir()):
        pytest.skip("there is no PPDB on this machine")
    sidecar = data_root / "msr" / "dev.parse.jsonl"
    if not sidecar.is_file() or not resources.available("wordnet"):
        pytest.skip("the parse or WordNet, for lemmas, is missing")
    examples = list(read(data_root / "msr" / "dev.jsonl"))
    pairs = GivenAnnotator(sidecar)([e.pair for e in examples])
    with pytest.MonkeyPatch.context() as patch:
        if "JACANA_PPDB" not in os.environ and path.is_dir():
            patch.setenv("JACANA_PPDB", str(path))
        found = score([e.gold for e in examples], Sultan(paraphrases="ppdb").align(pairs))
    assert found.f1 >= 0.900 and found.exact >= 0.40
