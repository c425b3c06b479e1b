"""What each word hangs on, guessed from tags: a rough parse of many sentences at once, for next to no time.

In: flattened sentences as `Words`. Out: a `Guess`, heads and relations. Determiners, adjectives and nouns hang on
the last noun of their phrase, owners on what is owned, auxiliaries on the next verb, prepositions on what came
last, and whole phrases on the preposition or the verb beside them. Two heads in three are those of a parser, and
two words may hang on each other. That is enough to compare two sentences, as like words in like places go wrong
alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum, auto
from functools import cached_property, lru_cache

import numpy as np

RELATIONS = (
    "root", "det", "poss", "nn", "num", "case", "amod", "nsubj", "pobj", "conj", "dobj", "dep", "aux", "advmod",
    "acl", "rcmod", "pcomp", "xcomp", "ccomp", "prep", "mark", "cc", "punct",
)  # fmt: skip
_NUMBER = {name: number for number, name in enumerate(RELATIONS)}
_AUXILIARIES = frozenset(
    "be is are was were been being am 's 're 'm have has had having do does did get got".split()
)
_MARKS = frozenset("that because although if while whether".split())  # prepositions that begin clauses
_GROUP = 2  # steps of two words each from the first auxiliary to the verb: "could not have been seen"


class Kind(IntEnum):
    """What a Penn tag says of a word, as far as it matters here."""

    OTHER = 0
    PUNCT = auto()
    NOUN = auto()
    ADJECTIVE = auto()
    NUMBER = auto()
    DETERMINER = auto()
    OWNER = auto()
    GENITIVE = auto()
    PRONOUN = auto()
    RELATIVE = auto()
    VERB = auto()
    PARTICIPLE = auto()
    GERUND = auto()
    MODAL = auto()
    TO = auto()
    PREPOSITION = auto()
    AND = auto()
    ADVERB = auto()


_OF_TAG = {
    "DT": Kind.DETERMINER, "PDT": Kind.DETERMINER, "PRP$": Kind.OWNER, "POS": Kind.GENITIVE, "CD": Kind.NUMBER,
    "$": Kind.NUMBER, "#": Kind.NUMBER, "PRP": Kind.PRONOUN, "EX": Kind.PRONOUN, "WP": Kind.RELATIVE,
    "WDT": Kind.RELATIVE, "VBN": Kind.PARTICIPLE, "VBG": Kind.GERUND, "MD": Kind.MODAL, "TO": Kind.TO,
    "IN": Kind.PREPOSITION, "CC": Kind.AND, "RP": Kind.ADVERB, "WRB": Kind.ADVERB,
}  # fmt: skip
_OF_START = {"NN": Kind.NOUN, "JJ": Kind.ADJECTIVE, "VB": Kind.VERB, "RB": Kind.ADVERB}


@lru_cache(maxsize=256)
def kind_of_tag(tag: str) -> Kind:
    """Of which kind words with that tag are."""
    known = _OF_TAG.get(tag) or _OF_START.get(tag[:2])
    return known or (Kind.OTHER if tag[:1].isalpha() else Kind.PUNCT)


def kinds_of_tags(tags: Sequence[str]) -> np.ndarray:
    return np.array([kind_of_tag(tag) for tag in tags], dtype=np.int8)


def are_auxiliaries(words: Sequence[str]) -> np.ndarray:
    return np.array([word.lower() in _AUXILIARIES for word in words], dtype=bool)


def are_marks(words: Sequence[str]) -> np.ndarray:
    return np.array([word.lower() in _MARKS for word in words], dtype=bool)


@dataclass(frozen=True)
class Words:
    """The tokens of many sentences, one after the other: `kind` [T] by their tags; `auxiliary` and `mark` [T]
    whether they may be one, as verbs or prepositions; `sentence` [T] which sentence each is of, ascending."""

    kind: np.ndarray
    auxiliary: np.ndarray
    mark: np.ndarray
    sentence: np.ndarray


@dataclass(frozen=True)
class Guess:
    """`head` [T] a token of the same sentence, -1 for a root; `relation` [T] to the head, which of RELATIONS."""

    head: np.ndarray
    relation: np.ndarray


def guess(words: Words) -> Guess:
    """A head for every token: the first rule that has one for it decides."""
    size = len(words.kind)
    if not size:
        return Guess(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
    look = _Look(words.sentence)
    phrases = _Phrases(words, look)
    verbs = _Verbs(words, phrases, look)
    guessed = Guess(np.full(size, -1), np.full(size, -1))
    root = _roots(words.kind, verbs.main, phrases, look)
    for whose, rules in (phrases.rules, verbs.rules, *_outside(words, phrases, verbs, root, look)):
        left = whose & (guessed.relation < 0)
        for holds, head, name in rules:
            now = np.flatnonzero(left & holds)
            guessed.head[now] = head[now]
            guessed.relation[now] = _NUMBER[name]
            left[now] = False
    top = (guessed.head < 0) | (root == look.token)
    guessed.head[top], guessed.relation[top] = -1, _NUMBER["root"]
    return guessed


Rule = tuple[np.ndarray | bool, np.ndarray, str]  # where it holds, the heads there, and the relation
Rules = tuple[np.ndarray, tuple[Rule, ...]]  # whose heads they give, the first that holds


class _Look:
    """Looking along sentences. Tokens are numbers, and -1 where there is none."""

    def __init__(self, sentence: np.ndarray) -> None:
        self.token = np.arange(len(sentence))
        begins = np.append(True, sentence[1:] != sentence[:-1])
        self.first, self.last = self.start_of(begins), self.end_of(np.append(begins[1:], True))
        self.left = np.where(begins, -1, self.token - 1)
        self.right = np.where(self.token == self.last, -1, self.token + 1)

    def start_of(self, starts: np.ndarray) -> np.ndarray:
        """[T] the last token up to each, itself too, that starts something; of all, the first one does."""
        return np.maximum.accumulate(np.where(starts, self.token, 0))

    def end_of(self, ends: np.ndarray) -> np.ndarray:
        """[T] the first token from each on that ends something; of all, the last one does."""
        last = len(self.token) - 1
        return np.minimum.accumulate(np.where(ends, self.token, last)[::-1])[::-1]

    def before(self, true: np.ndarray) -> np.ndarray:
        """[T] the last token of the sentence before each where this is true."""
        found = np.append(-1, np.maximum.accumulate(np.where(true, self.token, -1))[:-1])
        return np.where(found >= self.first, found, -1)

    def after(self, true: np.ndarray) -> np.ndarray:
        """[T] the first token of the sentence after each where this is true."""
        none = len(self.token)
        found = np.append(np.minimum.accumulate(np.where(true, self.token, none)[::-1])[::-1][1:], none)
        return np.where(found <= self.last, found, -1)


def _at(values: np.ndarray, token: np.ndarray) -> np.ndarray:
    """The values of these tokens; False or -1 where there is none."""
    return np.where(token >= 0, values[token], values.dtype.type(False) if values.dtype == bool else -1)


def _either(*choices: np.ndarray) -> np.ndarray:
    """The first of the choices that is a token."""
    found = choices[0]
    for other in choices[1:]:
        found = np.where(found >= 0, found, other)
    return found


def _is(kind: np.ndarray, *kinds: Kind) -> np.ndarray:
    member = np.zeros(len(Kind), dtype=bool)
    member[list(kinds)] = True
    return member[kind]


class _Phrases:
    """Runs of nouns and what stands before them. `inside` [T] whether a token is in one; `start`, `end`, `head`
    [T] of its phrase; `heads` [T] whether it is one; `between` [T] an adverb or a participle inside."""

    def __init__(self, words: Words, look: _Look) -> None:
        kind = words.kind
        noun, genitive = _is(kind, Kind.NOUN), _is(kind, Kind.GENITIVE)
        before_nouns = _is(kind, Kind.ADJECTIVE, Kind.NUMBER, Kind.DETERMINER, Kind.OWNER)
        between = _at(before_nouns, look.left) & _at(_is(kind, Kind.NOUN, Kind.ADJECTIVE), look.right)
        self.between = between & _is(kind, Kind.PARTICIPLE, Kind.GERUND, Kind.ADVERB)
        self.inside = noun | before_nouns | genitive | self.between
        opens = _is(kind, Kind.DETERMINER, Kind.OWNER) & ~_at(_is(kind, Kind.DETERMINER), look.left)
        starts = ~self.inside | opens | ~_at(self.inside, look.left)
        self.start = look.start_of(starts)
        self.end = look.end_of(np.append(starts[1:], True))
        last_noun = np.maximum.accumulate(np.where(noun, look.token, -1))
        bare = np.where(genitive[self.end] & (self.end > self.start), self.end - 1, self.end)
        self.head = np.where(last_noun[self.end] >= self.start, last_noun[self.end], bare)
        self.heads = self.inside & (look.token == self.head)
        self._owners(genitive, last_noun, starts, look)
        self._kind = kind

    def _owners(self, genitive: np.ndarray, last_noun: np.ndarray, starts: np.ndarray, look: _Look) -> None:
        """What stands before a genitive, and the genitive, are the owner's; the owner is the phrase's."""
        mark = look.end_of(genitive)
        owned = genitive[mark] & (mark <= self.head) & (self.start[mark] == self.start)
        begin = look.start_of(starts | _at(genitive, look.left))[mark]
        before = np.maximum(mark - 1, 0)
        owner = np.where(last_noun[before] >= begin, last_noun[before], begin)
        self._is_owned, self._owner = owned & self.inside, owner
        self._is_owner = self._is_owned & (owner == look.token)

    @property
    def rules(self) -> Rules:
        whose = self.inside & ~self.heads
        head = np.where(self._is_owned & ~self._is_owner, self._owner, self.head)
        of_kind = {
            "nn": Kind.NOUN, "det": Kind.DETERMINER, "num": Kind.NUMBER, "case": Kind.GENITIVE,
        }  # fmt: skip
        return whose, (
            (self._is_owner | _is(self._kind, Kind.OWNER), head, "poss"),
            *((_is(self._kind, kind), head, name) for name, kind in of_kind.items()),
            (True, head, "amod"),
        )


class _Verbs:
    """`main` [T] verbs; `helps` [T] their auxiliaries, `verb` [T] what these help; `part` [T] any of the two."""

    def __init__(self, words: Words, phrases: _Phrases, look: _Look) -> None:
        kind = words.kind
        self.adverb = _is(kind, Kind.ADVERB) & ~phrases.between
        self.next, self.previous = look.after(~self.adverb), look.before(~self.adverb)  # words that are no adverbs
        any_verb = _is(kind, Kind.VERB, Kind.PARTICIPLE, Kind.GERUND) & ~phrases.between
        before_verb = _at(any_verb, self.next)
        self.infinitive = _is(kind, Kind.TO) & before_verb
        modal = _is(kind, Kind.MODAL)
        self.helps = (modal | self.infinitive | (any_verb & words.auxiliary)) & before_verb
        self.main = (any_verb | modal) & ~self.helps
        self.part = self.main | self.helps
        verb = np.where(self.helps, self.next, look.token)
        for _ in range(_GROUP):
            verb = verb[verb]
        self.verb = verb

    @cached_property
    def start(self) -> np.ndarray:
        """[T] the first auxiliary of a main verb; any other token itself."""
        start = np.arange(len(self.main))
        for _ in range(2**_GROUP):
            earlier = _at(self.previous, np.where(self.main | self.helps[start], start, -1))
            start = np.where(_at(self.helps, earlier), earlier, start)
        return start

    @property
    def rules(self) -> Rules:
        return self.helps, ((True, self.verb, "aux"),)


def _roots(kind: np.ndarray, main: np.ndarray, phrases: _Phrases, look: _Look) -> np.ndarray:
    """[T] the root of each token's sentence: the first main verb that is no gerund, the first head of a phrase or
    main verb where there is none, else the first token."""
    finite, content = main & ~_is(kind, Kind.GERUND), main | _nominal(kind, phrases)
    found = [(true, look.end_of(true)[look.first]) for true in (finite, content)]
    return _either(*(np.where(true[token] & (token <= look.last), token, -1) for true, token in found), look.first)


def _nominal(kind: np.ndarray, phrases: _Phrases) -> np.ndarray:
    return phrases.heads | _is(kind, Kind.RELATIVE, Kind.PRONOUN)


def _outside(words: Words, phrases: _Phrases, verbs: _Verbs, root: np.ndarray, look: _Look) -> tuple[Rules, ...]:
    """What phrases, verbs and the words between them hang on."""
    kind, main = words.kind, verbs.main
    relative, nominal = _is(kind, Kind.RELATIVE), _nominal(kind, phrases)
    content = nominal | main
    preposition = _is(kind, Kind.PREPOSITION) | (_is(kind, Kind.TO) & ~verbs.infinitive)
    mark = words.mark & _is(kind, Kind.PREPOSITION)
    last, last_main, last_nominal = look.before(content), look.before(main), look.before(nominal)
    next_main = look.after(main)
    start = np.where(phrases.heads, phrases.start, verbs.start)
    left, right = look.left[start], look.right[np.where(phrases.heads, phrases.end, look.token)]
    governor = look.before(content | (preposition & ~mark))
    governor = np.where(_at(content, governor), -1, governor)
    joined = _at(_is(kind, Kind.AND), look.before(content | _is(kind, Kind.AND)))
    before_verb = _at(verbs.part, right) | (_at(verbs.adverb, right) & _at(_at(verbs.part, verbs.next), right))
    left_phrase = _at(np.where(phrases.inside, phrases.head, -1), left)
    nominal_rules = (
        (relative, _either(next_main, last, root), "nsubj"),
        (governor >= 0, governor, "pobj"),
        (joined & (last_nominal >= 0), last_nominal, "conj"),
        (before_verb & (next_main >= 0), next_main, "nsubj"),
        (_at(main, left), left, "dobj"),
        (left_phrase >= 0, left_phrase, "dep"),
        (last_main >= 0, last_main, "dep"),
        (next_main >= 0, next_main, "nsubj"),
        (True, root, "dep"),
    )
    antecedent = np.where(_at(relative, left), _at(last_nominal, left), -1)
    main_rules = (
        (joined & (last_main >= 0), last_main, "conj"),
        (_is(kind, Kind.PARTICIPLE, Kind.GERUND) & (left_phrase >= 0), left_phrase, "acl"),
        (antecedent >= 0, antecedent, "rcmod"),
        (governor >= 0, governor, "pcomp"),
        (_is(kind[start], Kind.TO) & (last_main >= 0), last_main, "xcomp"),
        (last_main >= 0, last_main, "ccomp"),
        (True, root, "dep"),
    )
    adverb_rules = (
        (_at(verbs.part, verbs.previous) & _at(verbs.part, verbs.next), _at(verbs.verb, verbs.next), "advmod"),
        (_at(verbs.part, verbs.previous), _at(verbs.verb, verbs.previous), "advmod"),
        (True, _either(next_main, last_main, root), "advmod"),
    )
    before = _either(last, root)
    return (
        (nominal, nominal_rules),
        (main, main_rules),
        (mark & (next_main >= 0), ((True, next_main, "mark"),)),
        (preposition, ((True, _either(last, next_main, root), "prep"),)),
        (verbs.adverb, adverb_rules),
        (_is(kind, Kind.AND), ((True, before, "cc"),)),
        (_is(kind, Kind.PUNCT), ((True, before, "punct"),)),
        (np.ones(len(kind), dtype=bool), ((True, before, "dep"),)),
    )
