"""Titles of features, groups of contributions, and sentences whose every clause is true of the pair."""

from __future__ import annotations

import importlib
import math
import re
import sys

import pytest
from composed import composed, options
from hypothesis import given, settings
from hypothesis import strategies as st
from test_explain import loaded, pairs

import jacana_torch as jt
from jacana_torch.errors import JacanaError, MissingResource
from jacana_torch.explain.facts import Facts, clauses, percent
from jacana_torch.explain.groups import REST, Detail, Group, bars
from jacana_torch.explain.sentence import because
from jacana_torch.features.families.contextual import _LINK, _NULL, Contextual
from jacana_torch.features.families.ppdb import Ppdb
from jacana_torch.features.families.string import String
from jacana_torch.features.featureset import FeatureSet
from jacana_torch.features.titles import UNTITLED, Title, Titles, _read
from jacana_torch.model import persist
from jacana_torch.types import Sentence, SentencePair

WORDS = "The cat n't 3 three U.S. bought purchased , big-eyed".split()


def families_of(model):
    chains = getattr(model.aligner, "linear", model.aligner)
    return [*chains.forward.features.node, *chains.forward.features.edge]


QUICK = ("core", "standard")


@pytest.mark.parametrize(
    "name", [pytest.param(m.name, marks=() if m.name in QUICK else pytest.mark.slow) for m in persist.shipped()]
)
def test_every_column_of_a_shipped_model_has_a_title(name):
    model = persist.load(name)
    titles, columns = Titles(families_of(model)), set()
    for key, value in model.aligner.state().items():
        columns.update(value if key.endswith(("names", "columns", "values")) and isinstance(value, list) else ())
    assert len(columns) > 10_000 and [column for column in columns if column not in titles] == []
    for column in columns:
        text = re.sub("“.*?”", "", titles[column].text)  # words stay as they are
        assert not re.search(r"[_@{}*]|\w[=|~]\w|[a-z]\.[a-z]", text), (column, text)


@pytest.mark.parametrize("name", [name for name in options("features") if name not in ("contextual", "ppdb")])
def test_every_column_of_a_family_has_a_title(name):
    more = ["features.distsim.own=true"] if name == "distsim" else []
    family = persist.build(composed(f"features=[{name}]", *more)["features"][name])
    titles = Titles([family])
    if name == "distortion":
        columns = [
            f"{name}.{column}"
            for kind in ("edge", "start", "end", "gap")
            for column in getattr(family, kind)(3).names
        ]
    else:
        try:
            columns = FeatureSet({name: family})([annotated()]).names()
        except MissingResource as error:
            pytest.skip(str(error))
    assert columns and [column for column in columns if column not in titles] == []


def annotated() -> SentencePair:
    n = len(WORDS)
    layers = {
        "pos": ["DT", "NN", "RB", "CD", "CD", "NNP", "VBD", "VBD", ",", "JJ"], "lemma": [w.lower() for w in WORDS],
        "head": [1, 6, 6, 1, 1, 1, -1, 6, 6, 1], "deprel": ["det", "nsubj", "neg", *["dep"] * (n - 3)],
        "ner": ["O", "O", "O", "O", "O", "B-GPE", *["O"] * (n - 6)],
    }  # fmt: skip
    return SentencePair(Sentence(WORDS, layers), Sentence(WORDS[::-1], {k: v[::-1] for k, v in layers.items()}))


@pytest.mark.parametrize(
    "line", ["broken", "a*b  no such {1}", "a  {", "a  similar  similar words", "a  similar  + {c}", "a  {x}"]
)
def test_a_title_file_with_a_mistake_names_its_line(tmp_path, line):
    path = tmp_path / f"{len(line)}.titles"
    path.write_text(f"[spelling]\n# a comment\nalike  similar\n{line}\n")
    with pytest.raises(JacanaError, match=f"{path.name}, line 4"):
        _read(path)


OWN = """
from jacana_torch.features.api import Block, NodeBlocks
class Family:
    name, requires = "mine", ()
    def __call__(self, grid):
        return NodeBlocks()
"""


def test_titles_and_clauses_of_a_family_of_ones_own(tmp_path, monkeypatch):
    (tmp_path / "own_family.py").write_text(OWN)
    (tmp_path / "own_family.titles").write_text(
        "[sound]\nrhyme.*  they rhyme in {0!u}  + “{a}” rhymes with “{b}”\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    titles = Titles([importlib.import_module("own_family").Family()])
    assert titles["mine.rhyme.x"][:2] == ("they rhyme in X", "sound") and "mine.other" not in titles
    facts = Facts(SentencePair(Sentence(["cat"]), Sentence(["hat"])), (0, 0), {"mine.rhyme.x": 1.0})
    assert clauses(facts, titles)["sound"] == [["+ “cat” rhymes with “hat”"]]
    (tmp_path / "own_family.titles").write_text("[sound]\nrhyme.*  they rhyme  @rhyme\n")
    _read.cache_clear()
    with pytest.raises(JacanaError, match="@rhyme"):
        clauses(facts, Titles([importlib.import_module("own_family").Family()]))
    family = importlib.import_module("own_family").Family()
    monkeypatch.delitem(vars(sys.modules["own_family"]), "__file__")  # as in a notebook
    assert Titles([family])["mine.rhyme.x"] == Title("mine rhyme x", UNTITLED)


def test_families_whose_columns_need_resources():
    titles = Titles([Contextual(), Ppdb()])
    steps = [f"cosine>={step}" for step in Contextual().steps]
    columns = [f"contextual.{layer}.{name}" for layer in (0, -1) for name in (*_LINK, *_NULL, *steps)]
    names = ("pair", "lemma_pair", "either_pair")
    columns += [f"ppdb.{name}" for name in (*names, *(f"row.{name}" for name in names), "row.only_paraphrase")]
    assert [column for column in columns if column not in titles] == []


def test_titles_of_patterns_and_of_columns_that_have_none():
    titles = Titles([String()])
    assert titles["string.of~for"][:3] == Title("“of” and “for”", "word classes")[:3]
    assert titles["string.differ:name-punct"].text == "different words: name, punctuation"
    assert titles["mine.left_half"] == Title("mine left half", UNTITLED)
    assert "mine.left_half" not in titles and "string.no such column" not in titles


@pytest.mark.parametrize("name", ["core", "standard"])
def test_groups_add_up_to_what_two_paths_differ_by(name):
    model = loaded(name)
    for explanation in model.explanations(pairs(model, 8)):
        for link in [*explanation.links(), explanation.link(0, 0)]:
            margins = [choice.margin for choice in link.choices]
            parts = [r.contribution for m in margins for reasons in (m.own, m.transitions) for r in reasons]
            parts += [moved.difference for m in margins for moved in m.moved]
            expected = math.fsum(parts) / len(margins)
            shown = link.to_dict()["groups"]
            assert len(shown) <= 5
            for groups in (link.groups, bars(link.groups)):
                assert math.fsum(group.sum for group in groups) == pytest.approx(expected, abs=1e-9)
                for group in groups:
                    found = math.fsum(detail.contribution for detail in group.details)
                    assert group.sum == pytest.approx(found, abs=1e-9)
            assert "_" not in link.reason + link.to_text(details=True)


@given(st.lists(st.floats(-9, 9), max_size=9), st.integers(1, 6))
def test_bars_keep_the_sum(sums, most):
    groups = [Group(str(k), value, (Detail("x", value),)) for k, value in enumerate(sums)]
    shown = bars(groups, most)
    assert len(shown) <= most and sum(g.sum for g in shown) == pytest.approx(sum(sums), abs=1e-9)
    assert len(groups) <= most or shown[-1].title == REST


def test_probabilities_are_certain_only_if_they_are():
    said = [percent(p) for p in (0.0, 1e-9, 0.0002, 0.5, 0.9997, 1 - 1e-9, 1.0)]
    assert said == ["0.00 %", "under 0.01 %", "0.02 %", "50.0 %", "99.97 %", "over 99.99 %", "100.00 %"]


# Sentences

PAIRS = [
    ("She bought a car .", "She purchased an automobile ."),
    ("The red boat left the old harbour .", "At noon the boat departed from the old harbour ."),
    ("Twelve nurses worked all night .", "All night 12 nurses were working ."),
]
EXPECTED = {  # link: clauses that must be there
    (0, 1, 1): ("WordNet synonyms", "both after “She”", "no better candidate"),
    (0, 3, 3): ("WordNet synonyms",),
    (1, 6, 8): ("the same word", "both in “the old harbour .”"),
    (1, 3, 4): ("both tagged as verbs", "both after “boat”"),
    (2, 0, 2): ("the same number",),
    (2, 2, 5): ("the same stem",),
}


def test_sentences_name_what_is_true_of_the_pair():
    model = loaded("standard")
    explained = list(model.explanations([tuple(map(str.split, pair)) for pair in PAIRS]))
    for (k, i, j), wanted in EXPECTED.items():
        link = explained[k].link(i, j)
        source, target = explained[k].pair.source.tokens[i], explained[k].pair.target.tokens[j]
        assert link.reason.startswith(f"“{source}” ↔ “{target}”: ") and link.reason.endswith(".")
        for clause in wanted:
            assert clause in link.reason, link.reason
    apart = explained[0].link(1, 3)
    assert apart.reason.startswith("“bought” and “automobile” are not linked: tagged as verb and noun")
    assert "“bought” goes better with “purchased”" in apart.reason


def test_quoted_neighbours_are_the_neighbours():
    """Against the tokens alone: what a clause says of words before, after and around."""
    model = loaded("standard")
    seen = set()
    for explanation in model.explanations(pairs(model, 12)):
        source, target = (
            [t.lower() for t in side.tokens] for side in (explanation.pair.source, explanation.pair.target)
        )
        for link in explanation.links():
            i, j, text = link.source, link.target, link.reason.lower()
            for kind, steps in (("both after “(.+?)”", (-1,)), ("both followed by “(.+?)”", (1,)),
                                ("both between “(.+?)” and “(.+?)”", (-1, 1))):  # fmt: skip
                if found := re.search(kind, text):
                    seen.add(kind)
                    assert [source[i + s] for s in steps] == [target[j + s] for s in steps] == list(found.groups())
            if "the same word" in text:
                assert source[i] == target[j]
            if "no better candidate" in text:
                known = explanation.alignment.confidence
                assert all(known[i, j] >= p for (a, b), p in known.items() if (a == i) != (b == j))
            for run in re.findall("both in “(.+?)”", text):
                assert f" {run} " in f" {' '.join(source)} " and f" {run} " in f" {' '.join(target)} "
            if found := re.search("crosses the link “(.+?)” ↔ “(.+?)”", text):
                crossed = [(a, b) for a, b in explanation.alignment.sure if (a - i) * (b - j) < 0]
                assert found.groups() in [(source[a], target[b]) for a, b in crossed]
    assert len(seen) >= 2


@settings(max_examples=25)
@given(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=5),
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=5),
    st.data(),
)
def test_clauses_need_no_features_and_hold_at_the_borders(source, target, data):
    place = data.draw(st.integers(0, len(source) - 1)), data.draw(st.integers(0, len(target) - 1))
    facts = Facts(SentencePair(Sentence(source), Sentence(target)), place, {}, frozenset({(0, 0)}))
    for texts in clauses(facts, Titles()).values():
        assert all(text[:2] in ("+ ", "- ") for some in texts for text in some)


def test_weak_and_opposing_evidence_is_said():
    groups = [Group("spelling", 0.5, ()), Group("no link instead", -0.4, ())]
    found = {"spelling": [["+ the same stem"]], "no link instead": [["- “a” may have no link (40.0 %)"]]}
    weak = because(True, 0.6, groups, found)
    assert weak == "weak evidence: the same stem, although “a” may have no link (40.0 %)."
    assert because(True, 0.9, [Group("spelling", 3.0, ())], found) == "the same stem."
    assert because(True, 0.9, [Group("spelling", 3.0, ())], {}) == "no single fact stands out."
    assert because(False, None, [Group("spelling", 3.0, ())], found).endswith("although the same stem.")


def test_five_words_fit_a_screen(cli):
    code, out, _ = cli("explain", *PAIRS[0], "--model", "core")
    assert code == 0 and len(out.splitlines()) <= 25
    code, out, _ = cli("explain", *PAIRS[0], "--model", "core", "--details")
    assert code == 0 and len(out.splitlines()) > 25 and jt.load("core").explain(PAIRS[0]).to_text(3, True) in out
