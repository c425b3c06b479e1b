"""Pairs in which words were replaced on one side: by unrelated words, which are not linked, or by synonyms."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, repeat

from ... import resources
from ...annotate.tokens import wordnet_pos
from ...features.wordlists import stem, word_class
from ...resources.wordnet_glosses import glosses
from ...types import Example, Link
from ...util.build import Positive, Share
from . import sides, with_side
from .lexicon import Kind, Vocabulary, kind, lower_content, related

DRAWN = 8  # words that are tried in the place of one


@dataclass(frozen=True)
class _Slot:
    """A word to be replaced: its example and side, the word, and the words that may take its place."""

    example: int
    side: int
    word: str
    drawn: list[str]


@dataclass(frozen=True)
class Substitution:
    """Replace a `share` of the linked content words of one side by words that mean something else.

    A new word has the tag and the case of the old one, and occurs in the training pairs. It is related neither to
    the old word nor to any word of the other side: WordNet has no relation, and the cosine of their `vectors`, if
    any, is below `most`. It has no links.
    """

    share: Share = 0.25
    vectors: str | None = "glove-840b"
    most: float = 0.5
    weight: Positive = 1.0
    requires: tuple[str, ...] = ("pos",)

    @property
    def resources(self) -> tuple[str, ...]:
        return ("wordnet",) if self.vectors is None else ("wordnet", self.vectors)

    def make(self, examples: Sequence[Example], rng: random.Random) -> Iterator[Example]:
        slots = list(self._slots(examples, rng))
        left, right, counts = list[str](), list[str](), list[int]()
        for slot in slots:
            other = lower_content(sides(examples[slot.example])[1 - slot.side])
            for new in slot.drawn:
                left += repeat(new, 1 + len(other))
                right += [slot.word, *other]
                counts.append(1 + len(other))
        unfit, at = related(left, right, self.vectors, self.most), 0
        fitting = []
        for count in counts:
            fitting.append(not unfit[at : at + count].any())
            at += count
        usable, chosen = iter(fitting), dict[int, dict[str, str]]()
        for slot in slots:
            for new in slot.drawn:
                if next(usable):
                    chosen.setdefault(slot.example, {}).setdefault(slot.word, new)
        for k, new_words in chosen.items():
            yield self._replaced(examples[k], next(s.side for s in slots if s.example == k), new_words)

    def _slots(self, examples: Sequence[Example], rng: random.Random) -> Iterator[_Slot]:
        vocabulary = Vocabulary(examples)
        for k, example in enumerate(examples):
            side = rng.randrange(2)
            sentence, words = sides(example)[side], dict[str, Kind]()
            assert example.gold is not None
            for position in sorted({link[side] for link in example.gold.sure}):
                token = sentence.tokens[position]
                if word_class(token) in ("number", "name", "content"):
                    words.setdefault(token, kind(token, sentence.layer("pos")[position]))
            some = min(max(1, round(self.share * len(words))), len(words))
            for word in rng.sample(list(words), some):
                yield _Slot(k, side, word, vocabulary.draw(words[word], DRAWN, rng))

    def _replaced(self, example: Example, side: int, new: dict[str, str]) -> Example:
        """Replace the words everywhere on one side, and remove their links."""
        assert example.gold is not None
        old = sides(example)[side].tokens
        links: list[Link] = []
        for link in example.gold.sure:
            if old[link[side]] not in new:
                links.append(link)
        return with_side(example, side, [new.get(token, token) for token in old], links)


@dataclass(frozen=True)
class Synonyms:
    """Replace words of one side that are linked to the same word by synonyms, which keep the link.

    Each such word is replaced with probability `share`, by a word of its most frequent sense in WordNet. A tag of
    other than base forms needs a form that has it in the training pairs.
    """

    share: Share = 0.3
    weight: Positive = 1.0
    requires: tuple[str, ...] = ("pos", "lemma")
    resources: tuple[str, ...] = ("wordnet",)

    def make(self, examples: Sequence[Example], rng: random.Random) -> Iterator[Example]:
        forms = _forms(examples)
        for example in examples:
            side = rng.randrange(2)
            one, other = sides(example)[side], sides(example)[1 - side]
            tokens = list(one.tokens)
            for here, there in _single_links(example, side):
                token, tag, lemma = one.tokens[here], one.layer("pos")[here], one.layer("lemma")[here]
                if token.lower() != other.tokens[there].lower() or word_class(token) != "content":
                    continue
                if rng.random() < self.share and (found := _synonyms(lemma, tag, forms)):
                    tokens[here] = rng.choice(found)
            if example.gold is not None and tuple(tokens) != one.tokens:
                yield with_side(example, side, tokens, list(example.gold.sure))


BASE_TAGS = frozenset(("NN", "VB", "VBP", "JJ", "RB"))


def _forms(examples: Sequence[Example]) -> dict[tuple[str, str], str]:
    """The form of each lemma and tag in the training pairs."""
    forms: dict[tuple[str, str], str] = {}
    for sentence in chain.from_iterable(map(sides, examples)):
        layers = sentence.tokens, sentence.layer("lemma"), sentence.layer("pos")
        for token, lemma, tag in zip(*layers, strict=True):
            if token.islower():
                forms.setdefault((lemma, tag), token)
    return forms


def _synonyms(lemma: str, tag: str, forms: dict[tuple[str, str], str]) -> list[str]:
    """The other words of the most frequent sense, in the form of the tag; those of the same stem are left out."""
    pos = wordnet_pos(tag)
    synsets = resources.wordnet().synsets(lemma, pos).tolist() if pos else []
    found = []
    for word in glosses()[synsets[0]].words if synsets else ():
        form = word if tag in BASE_TAGS else forms.get((word, tag), "")
        if form.isalpha() and form.islower() and stem(form) != stem(lemma):
            found.append(form)
    return found


def _single_links(example: Example, side: int) -> list[Link]:
    """The links of words that have one link each, seen from one side, in order."""
    links = sorted(example.gold.sure) if example.gold is not None else []
    turned = [(i, j) if side == 0 else (j, i) for i, j in links]
    here, there = [a for a, _ in turned], [b for _, b in turned]
    return [(a, b) for a, b in sorted(turned) if here.count(a) == there.count(b) == 1]
