"""Kinds of links for the tables of errors: the words, the evidence for the link, its context and the alternative.

`GROUPS` maps each kind to a predicate over a `Case` and a link; `cases_of` makes the cases.
"""

from __future__ import annotations

import logging
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from jacana_torch import resources  # noqa: E402
from jacana_torch.annotate.tokens import matching_form, wordnet_pos  # noqa: E402
from jacana_torch.features.wordlists import stem, word_class  # noqa: E402
from jacana_torch.types import Alignment, Example, Link, SentencePair  # noqa: E402

TAGS = {"NN": "noun", "VB": "verb", "JJ": "adjective", "RB": "adverb", "IN": "preposition", "TO": "preposition",
        "DT": "determiner", "PR": "pronoun", "CD": "number", "MD": "auxiliary", "CC": "conjunction"}  # fmt: skip


@dataclass
class Case:
    """One pair with its gold and predicted links, and which of them WordNet or PPDB relate."""

    pair: SentencePair
    gold: frozenset[Link]
    found: frozenset[Link]
    related: frozenset[Link] = frozenset()
    paraphrases: frozenset[Link] = frozenset()

    def __post_init__(self) -> None:
        self.words = tuple(
            [matching_form(t) for t in side.tokens] for side in (self.pair.source, self.pair.target)
        )
        self.lower = tuple([w.lower() for w in side] for side in self.words)
        self.classes = tuple([word_class(w) for w in side] for side in self.words)

    def same(self, link: Link) -> bool:
        return self.lower[0][link[0]] == self.lower[1][link[1]]

    def alike(self, link: Link) -> bool:
        """The same word in another form: by stem, or by lemma where there are lemmas."""
        i, j = link
        if self.same(link):
            return False
        lemmas = [side.layers.get("lemma") for side in (self.pair.source, self.pair.target)]
        by_lemma = None not in lemmas and lemmas[0][i].lower() == lemmas[1][j].lower()  # type: ignore[index]
        return by_lemma or stem(self.lower[0][i]) == stem(self.lower[1][j])

    def is_class(self, link: Link, name: str) -> bool:
        return all(self.classes[side][k] == name for side, k in enumerate(link))

    @cached_property
    def repeated(self) -> tuple[Counter, Counter]:
        return Counter(self.lower[0]), Counter(self.lower[1])

    def beside(self, link: Link) -> bool:
        """Whether one of the two words has another link in the same alignment."""
        own = self.gold if link in self.gold else self.found
        return any((i == link[0]) != (j == link[1]) for i, j in own)

    def in_phrase(self, link: Link) -> bool:
        """Whether both words have other links in the same alignment: a phrase that is aligned as a whole."""
        own = self.gold if link in self.gold else self.found
        return any(i == link[0] and j != link[1] for i, j in own) and any(
            j == link[1] and i != link[0] for i, j in own
        )

    def in_sequence(self, link: Link) -> bool:
        i, j = link
        return any((i + d, j + d) in self.gold and self.same((i + d, j + d)) for d in (-1, 1))

    def tags(self, link: Link) -> tuple[str, str] | None:
        layers = [side.layers.get("pos") for side in (self.pair.source, self.pair.target)]
        if None in layers:
            return None
        return tuple(TAGS.get(layers[side][k][:2], "other") for side, k in enumerate(link))  # type: ignore


def _class(name: str) -> Kind:
    return lambda case, link: case.is_class(link, name)


def _mixed(case: Case, link: Link) -> bool:
    return case.classes[0][link[0]] != case.classes[1][link[1]] and (
        "function" in (case.classes[0][link[0]], case.classes[1][link[1]])
    )


def _evident(case: Case, link: Link) -> bool:
    return case.same(link) or case.alike(link) or link in case.related or link in case.paraphrases


def _repeated(case: Case, link: Link) -> bool:
    sides = case.repeated
    return case.same(link) and max(side[case.lower[0][link[0]]] for side in sides) > 1


def _elsewhere(case: Case, link: Link) -> tuple[bool, bool]:
    """Whether each of the two words has links in the other alignment."""
    other = case.found if link in case.gold else case.gold
    return any(i == link[0] for i, _ in other), any(j == link[1] for _, j in other)


Kind = Callable[[Case, Link], bool]
Kinds = dict[str, Kind]
GROUPS: dict[str, Kinds] = {
    "The words": {
        "punctuation": _class("punct"),
        "function words": _class("function"),
        "a function word and another": _mixed,
        "names": _class("name"),
        "numbers": _class("number"),
        "content words": _class("content"),
        "other classes together": lambda c, x: c.classes[0][x[0]] != c.classes[1][x[1]] and not _mixed(c, x),
    },
    "Evidence": {
        "the same word, once per side": lambda c, x: c.same(x) and not _repeated(c, x),
        "the same word, repeated": _repeated,
        "another form of the word": lambda c, x: c.alike(x),
        "WordNet relates them": lambda c, x: not c.same(x) and not c.alike(x) and x in c.related,
        "PPDB pairs them": lambda c, x: not c.same(x) and not c.alike(x) and x in c.paraphrases,
        "only PPDB pairs them": lambda c, x: not c.same(x) and not c.alike(x) and x in c.paraphrases - c.related,
        "no lexical evidence": lambda c, x: not _evident(c, x),
        "no lexical evidence, content words or names": lambda c, x: (
            not _evident(c, x) and {c.classes[0][x[0]], c.classes[1][x[1]]} <= {"content", "name"}
        ),
    },
    "Context": {
        "beside the same words": lambda c, x: c.in_sequence(x),
        "one of several links of a word": lambda c, x: c.beside(x),
        "inside a phrase": lambda c, x: c.in_phrase(x),
    },
    "Alternative": {
        "both words without a link": lambda c, x: _elsewhere(c, x) == (False, False),
        "the source word linked elsewhere": lambda c, x: _elsewhere(c, x) == (True, False),
        "the target word linked elsewhere": lambda c, x: _elsewhere(c, x) == (False, True),
        "both linked elsewhere": lambda c, x: _elsewhere(c, x) == (True, True),
    },
}


def _by_tag() -> Kinds:
    def of(name: str) -> Kind:
        return lambda case, link: (tags := case.tags(link)) is not None and set(tags) == {name}

    kinds = {f"both {name}": of(name) for name in dict.fromkeys([*TAGS.values(), "other"])}
    kinds["different parts of speech"] = lambda case, link: (t := case.tags(link)) is not None and t[0] != t[1]
    return kinds


GROUPS["Parts of speech"] = _by_tag()


def cases_of(examples: Sequence[Example], found: Sequence[Alignment]) -> list[Case]:
    """Make the cases of a corpus, with the relations of WordNet and PPDB where these are installed."""
    cases = []
    for example, alignment in zip(examples, found, strict=True):
        assert example.gold is not None
        cases.append(Case(example.pair, frozenset(example.gold.sure), frozenset(alignment.sure)))
    links = [(case, link) for case in cases for link in case.gold | case.found]
    for name, ask in (("related", _wordnet), ("paraphrases", _ppdb)):
        yes = ask(links) if links else []
        own: dict[int, set[Link]] = {}
        for (case, link), found_it in zip(links, yes, strict=False):
            if found_it:
                own.setdefault(id(case), set()).add(link)
        for case in cases:
            setattr(case, name, frozenset(own.get(id(case), ())))
    return cases


def _wordnet(links: Sequence[tuple[Case, Link]]) -> Iterable[bool]:
    if not resources.available("wordnet") or any(case.tags(link) is None for case, link in links):
        logging.warning("WordNet or tags are missing: the table has no relations of WordNet")
        return []
    queries: dict[tuple[str, str | None], int] = {}
    numbers = []
    for case, link in links:
        for side, k in zip((case.pair.source, case.pair.target), link, strict=True):
            query = (str(side.layer("lemma")[k]).lower(), wordnet_pos(side.layer("pos")[k]))
            numbers.append(queries.setdefault(query, len(queries)))
    left, right = np.array(numbers[::2]), np.array(numbers[1::2])
    columns = resources.wordnet().related_both_ways(list(queries), left, right, 3)[0]
    return np.logical_or.reduce([v for k, v in columns.items() if k not in ("antonym", "sister")])


def _ppdb(links: Sequence[tuple[Case, Link]]) -> Iterable[bool]:
    if not resources.available("mwa-ppdb"):
        logging.warning("PPDB is missing: the table has no paraphrases")
        return []
    words = [(case.lower[0][i], case.lower[1][j]) for case, (i, j) in links]
    return resources.ppdb().contains([a for a, _ in words], [b for _, b in words])
