"""Made pairs: links are those of the pair that they were made of, and all other words are unlinked."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import combinations, product

import pytest

from jacana_torch import resources
from jacana_torch.annotate.nltk import NltkAnnotator
from jacana_torch.errors import ConfigError
from jacana_torch.resources.wordnet_glosses import Gloss
from jacana_torch.systems.bag_of_words import BagOfWords
from jacana_torch.train.augment import Augmentation, augmented, glosses
from jacana_torch.train.augment.again import Again
from jacana_torch.train.augment.crossing import Crossing
from jacana_torch.train.augment.edits import Exchange, Negation, Phrases
from jacana_torch.train.augment.glosses import Glosses, common_links, frames
from jacana_torch.train.augment.substitution import Substitution, Synonyms
from jacana_torch.types import Alignment, Example, Sentence, SentencePair

TEXT = """The old baker in Turin sold bread to 12 hungry students|Hungry students bought 12 loaves from a baker
A storm destroyed two wooden bridges near the village on Monday|Two bridges near the village were not rebuilt
Anna Ricci wrote 3 books about the river and its birds|The river and its birds were described by Anna Ricci
The committee did not approve the plan of Mr. Okafor in 1998|Okafor saw his plan rejected by the committee
Engineers repaired the damaged pipeline within 48 hours|The pipeline was repaired by engineers after 48 hours
The museum opened a large exhibition of Dutch maps|A large exhibition of maps from Holland opened at the museum"""


def examples() -> list[Example]:
    """Pairs whose same words are linked, tagged by hand: capitals are names, digits numbers, other words nouns."""
    out = []
    for k, line in enumerate(TEXT.splitlines()):
        source, target = (side.split() for side in line.split("|"))
        lower = [word.lower() for word in target]
        links = {(i, lower.index(word.lower())) for i, word in enumerate(source) if word.lower() in lower}
        pair = SentencePair(*map(tagged, (source, target)), f"p{k}")
        out.append(Example(pair, Alignment(len(source), len(target), frozenset(links)), group=f"g{k}"))
    return out


def tagged(tokens: list[str]) -> Sentence:
    tags = ["CD" if t.isdigit() else "NNP" if t[0].isupper() and k else "NN" for k, t in enumerate(tokens)]
    return Sentence(tuple(tokens), {"pos": tuple(tags), "lemma": tuple(map(str.lower, tokens))})


def needs(*names: str) -> None:
    missing = [name for name in names if not resources.available(name)]
    if missing:
        pytest.skip(f"needs {', '.join(missing)}")


def numbered(example: Example) -> Example:
    """The same pair with tokens that occur once: `word#side.position`."""
    sides = []
    for number, side in enumerate((example.pair.source, example.pair.target)):
        sides.append(replace(side, tokens=tuple(f"{token}#{number}.{k}" for k, token in enumerate(side.tokens))))
    return replace(example, pair=SentencePair(*sides, example.pair.id))


def linked_words(example: Example) -> set[tuple[str, str]]:
    assert example.gold is not None
    source, target = example.pair.source.tokens, example.pair.target.tokens
    return {(source[i], target[j]) for i, j in example.gold.sure}


MAKERS = {
    "phrases": Phrases(), "insertions": Phrases(insertions=1.0), "deletions": Phrases(insertions=0.0, longest=2),
    "exchange": Exchange(), "negation": Negation(),
}  # fmt: skip


@pytest.mark.parametrize("name", MAKERS)
def test_an_edit_keeps_the_links_of_the_words_that_stay(name, monkeypatch):
    """With tokens that occur once, a made pair has exactly the links whose two words are both still there."""
    from jacana_torch.train.augment import edits

    plain = lambda token: token.split("#")[0]  # noqa: E731
    known = edits.word_class
    monkeypatch.setattr(edits, "word_class", lambda token: known(plain(token)))
    own, count = list(map(numbered, examples())), 0
    for seed in range(30):
        made = list(MAKERS[name].make(own, random.Random(seed)))
        count += len(made)
        for example in made:
            before = own[int(example.pair.id[1:])]
            words = set(example.pair.source.tokens), set(example.pair.target.tokens)
            stay = {(a, b) for a, b in linked_words(before) if a in words[0] and b in words[1]}
            assert linked_words(example) == stay
            assert example.group == before.group
            old = set(before.pair.source.tokens) | set(before.pair.target.tokens)
            if name == "deletions":
                assert words[0] | words[1] < old
            if name == "exchange":
                assert words[0] | words[1] == old and example.pair != before.pair
    assert count > 0 or name == "negation"  # numbered tokens are no negations


def test_negations_come_and_go():
    texts = set()
    for seed in range(20):
        for example in Negation().make(examples(), random.Random(seed)):
            texts.update((" ".join(example.pair.source.tokens), " ".join(example.pair.target.tokens)))
            assert linked_words(example) <= linked_words(examples()[int(example.pair.id[1:])])
    assert "The committee did approve the plan of Mr. Okafor in 1998" in texts
    assert "Two bridges near the village were rebuilt" in texts
    assert "The pipeline was not repaired by engineers after 48 hours" in texts


def test_substitutes_are_unrelated_unlinked_and_of_the_same_kind():
    needs("wordnet", "glove-840b")
    from jacana_torch.train.augment.lexicon import is_content, kind, related

    maker, count = Substitution(share=0.5), 0
    vocabulary = {token for e in examples() for side in (e.pair.source, e.pair.target) for token in side.tokens}
    for seed in range(10):
        for example in maker.make(examples(), random.Random(seed)):
            before = examples()[int(example.pair.id[1:])]
            for side, other in ((0, 1), (1, 0)):
                old = (before.pair.source, before.pair.target)[side]
                new = (example.pair.source, example.pair.target)[side]
                there = (example.pair.source, example.pair.target)[other].tokens
                changed = [k for k in range(len(old)) if old.tokens[k] != new.tokens[k]]
                for k in changed:
                    count += 1
                    assert new.tokens[k] in vocabulary
                    assert all(link[side] != k for link in example.gold.sure)
                    tag = old.layer("pos")[k]
                    assert kind(new.tokens[k], tag) == kind(old.tokens[k], tag)
                    content = [word for word in there if is_content(word)]
                    assert not related([new.tokens[k]] * len(content), content, None, 1.0).any()
                if changed:
                    kept = {link for link in before.gold.sure if link[side] not in changed}
                    assert kept == example.gold.sure
    assert count > 20


def test_words_are_related_by_spelling_wordnet_or_vectors():
    needs("wordnet", "glove-840b")
    from jacana_torch.train.augment.lexicon import related

    left = ["repaired", "storm", "baker", "car", "killed", "hot"]
    right = ["Repairs", "bread", "bakeries", "automobile", "murdered", "cold"]
    assert related(left, right, None, 1.0).tolist() == [True, False, True, True, True, False]
    assert related(["hot"], ["cold"], "glove-840b", 0.5).tolist() == [True]


@pytest.mark.slow
def test_synonyms_keep_their_links():
    needs("wordnet")
    pair = SentencePair(tagged(["the", "car", "stopped"]), tagged(["a", "car", "had", "stopped"]), "p0")
    example = Example(pair, Alignment(3, 4, frozenset({(1, 1), (2, 3)})))
    seen = set()
    for seed in range(20):
        for made in Synonyms(share=1.0).make([example], random.Random(seed)):
            assert made.gold == example.gold
            seen.update({made.pair.source.tokens[1], made.pair.target.tokens[1]})
    assert {"car", "auto", "automobile"} <= seen


def best_common(one: str, other: str) -> int:
    """The length of the longest common subsequence, by trying all of them."""
    for n in range(min(len(one), len(other)), 0, -1):
        found = {"".join(c) for c in combinations(one, n)} & {"".join(c) for c in combinations(other, n)}
        if found:
            return n
    return 0


def test_common_words_in_order_are_linked():
    rng = random.Random(5)
    for _ in range(60):
        one, other = ("".join(rng.choices("pqrs", k=rng.randint(1, 7))) for _ in range(2))
        source, target = ([f"{letter}word" for letter in text] for text in (one, other))
        links = common_links(source, target)
        assert len(links) == best_common(one, other)
        assert all(source[i] == target[j] for i, j in links)
        assert all(a < c and b < d for (a, b), (c, d) in zip(links, links[1:], strict=False))


def test_function_words_alone_are_linked_at_the_ends_only():
    source = "the act of lifting a thing of stone".split()
    target = "the act of leaning on a wall of stone".split()
    words = [source[i] for i, _ in common_links(source, target)]
    assert words == ["the", "act", "of", "of", "stone"]


NOUNS = "act art end top use way rim sum set lot rod fan ink oar peg sap tub urn vet wig".split()
GLOSSES = tuple(
    Gloss((f"w{k % 3}",), "n", f"the {noun} of {colour} things", (f"he saw w{k % 3} {colour}",))
    for k, (noun, colour) in enumerate(product(NOUNS, ("red", "big")))
)


def test_gloss_pairs_share_a_frame_and_some_are_kept_out(monkeypatch):
    monkeypatch.setattr(glosses, "glosses", lambda: GLOSSES)
    frames.cache_clear()
    glosses.two_uses.cache_clear()
    trained, kept = ({name for name, _ in frames(14, out)} for out in (False, True))
    assert trained and kept and not trained & kept and len(trained | kept) == 20
    made = list(Glosses(share=2.0, uses=0.5).make(examples(), random.Random(1)))
    assert len(made) == 12
    for k, example in enumerate(made):
        source, target = example.pair.source.tokens, example.pair.target.tokens
        if k < 6:
            assert source[:3] == target[:3] and " ".join(source[:3]) in trained
            assert example.gold.sure == {(0, 0), (1, 1), (2, 2), (4, 4)}
        else:
            assert source[2] == target[2] in ("w0", "w1", "w2")
    frames.cache_clear()
    glosses.two_uses.cache_clear()


def test_crossed_pairs_link_what_both_have_once():
    own = examples()
    made = list(Crossing(most=1.0).make(own, random.Random(1)))
    assert len(made) == 6
    sources = {e.pair.source.tokens: e for e in own}
    for example in made:
        assert sources[example.pair.source.tokens].pair.target.tokens != example.pair.target.tokens
        assert all(a.lower() == b.lower() for a, b in linked_words(example))
    assert list(Crossing(most=0.0, tried=1).make(own, random.Random(1))) != made


class Marker:
    """An annotator that tags everything alike."""

    provides = ("pos",)
    resources = ()

    def __call__(self, pairs):
        sides = lambda s: replace(s, layers={**s.layers, "pos": ("NN",) * len(s)})  # noqa: E731
        return [SentencePair(sides(pair.source), sides(pair.target), pair.id) for pair in pairs]


def test_an_augmentation_joins_its_makers():
    bare = [Example(SentencePair(Sentence(e.pair.source.tokens), Sentence(e.pair.target.tokens)), e.gold)
            for e in examples()]  # fmt: skip
    makers = {"phrases": Phrases(weight=0.5), "nothing": None, "negation": Negation(weight=2.0)}
    both = Augmentation(makers, Marker())(bare, Marker())
    assert [e.pair for e in both[:6]] == [e.pair for e in bare] and len({e.group for e in both[:6]}) == 6
    made = both[6:]
    assert {(e.origin, e.weight) for e in made} == {("phrases", 0.5), ("negation", 2.0)}
    assert {e.group for e in made} <= {e.group for e in both[:6]}
    assert all("pos" in e.pair.source.layers for e in made)
    assert Augmentation(makers, Marker())(bare, Marker()) == both
    alone = Augmentation({"negation": Negation(weight=2.0)}, Marker())(bare, Marker())
    assert alone[6:] == [e for e in made if e.origin == "negation"]
    assert Augmentation(makers, Marker(), seed=2)(bare, Marker()) != both


class OfNone:
    """A maker of pairs that are made of no pair, perhaps of one style."""

    weight, requires = 0.5, ()

    def __init__(self, style=None):
        self.style = style

    def make(self, examples, rng):
        for k in range(200):
            yield replace(examples[k % 2], group=f"of none {k}", style=self.style)


def test_what_is_made_of_no_pair_is_dealt_to_the_styles():
    own = [
        replace(e, style="one" if k < 2 else "other", weight=1 if k < 2 else 0.3) for k, e in enumerate(examples())
    ]
    made = Augmentation({"x": OfNone()}, Marker())(own, Marker())[6:]
    dealt = [(e.style, e.weight) for e in made]
    assert set(dealt) == {("one", 0.5), ("other", 0.15)} and 40 < dealt.count(("one", 0.5)) < 95
    assert dealt == [(e.style, e.weight) for e in Augmentation({"x": OfNone()}, Marker())(own, Marker())[6:]]
    made = Augmentation({"x": OfNone("other")}, Marker())(own, Marker())[6:]
    assert {(e.style, e.weight) for e in made} == {("other", 0.15)}
    with pytest.raises(
        ConfigError, match="makers.x: no training pair has the style 'third': name it in data.styles"
    ):
        Augmentation({"x": OfNone("third")}, Marker())(own, Marker())
    assert {(e.style, e.weight) for e in Augmentation({"x": OfNone()}, Marker())(examples(), Marker())[6:]} == {
        (None, 0.5)
    }


def test_pairs_of_some_styles_are_those_of_another_too():
    own = [replace(e, style="abc"[k // 2]) for k, e in enumerate(examples())]
    again = Again(["a", "b"], "any")
    made = Augmentation({"again": again, "x": OfNone()}, Marker())(own, Marker())[6:]
    assert {(e.style, e.origin) for e in made[:4]} == {("any", None)} and [e.group for e in made[:4]] == [
        e.group for e in own[:4]
    ]
    assert list(map(linked_words, made[:4])) == list(map(linked_words, own[:4]))
    assert {e.style for e in made[4:]} == {"a", "b", "c", "any"}  # it has its share of what is made of none
    made = Augmentation({"again": again, "x": OfNone("any")}, Marker())(own, Marker())[10:]
    assert {e.style for e in made} == {"any"}


def test_wrong_settings_are_errors():
    with pytest.raises(ConfigError, match="not a Maker"):
        Augmentation({"x": "y"}, Marker())
    target = "jacana_torch.train.augment."
    config = {
        "_target_": f"{target}Augmentation",
        "annotate": {"_target_": "jacana_torch.annotate.nltk.NltkAnnotator"},
    }
    config["makers"] = {"a": {"_target_": f"{target}edits.Negation", "weight": 0.0}}
    with pytest.raises(ConfigError, match="weight"):
        augmented(config, examples(), NltkAnnotator(), BagOfWords())
    with pytest.raises(ConfigError, match="annotate=given"):
        augmented(config, examples(), None, BagOfWords())
