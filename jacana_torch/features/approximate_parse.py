"""An approximate dependency parse from tags, for many sentences at once and at almost no cost.

Determiners, adjectives and nouns depend on the last noun of their phrase, owners on what is owned, auxiliaries on
the next verb, prepositions on what came last, and whole phrases on the preposition or the verb beside them. Two
thirds of the heads are those of a parser, and two words may depend on each other. That is enough to compare two
sentences, because similar words in similar places get similar errors.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ..util.geometry import nearest

RELATIONS = (
    "root", "det", "poss", "nn", "num", "case", "amod", "nsubj", "pobj", "conj", "dobj", "dep", "aux", "advmod",
    "acl", "rcmod", "pcomp", "xcomp", "ccomp", "prep", "mark", "cc", "punct",
)  # fmt: skip
AUXILIARIES = frozenset(
    "be is are was were been being am 's 're 'm have has had having do does did get got".split()
)
MARKS = frozenset("that because although if while whether".split())  # prepositions that begin clauses
_AUXILIARY_STEPS = 2  # 2 ** 2 words from the first auxiliary to the verb: "could not have been being seen"


# Word classes by Penn tag that the rules distinguish.
KINDS = (
    "other", "punct", "noun", "adjective", "number", "determiner", "owner", "genitive", "pronoun", "relative",
    "verb", "participle", "gerund", "modal", "to", "preposition", "and", "adverb",
)  # fmt: skip
_OF_TAG = {
    "DT": "determiner", "PDT": "determiner", "PRP$": "owner", "POS": "genitive", "CD": "number",
    "$": "number", "#": "number", "PRP": "pronoun", "EX": "pronoun", "WP": "relative",
    "WDT": "relative", "VBN": "participle", "VBG": "gerund", "MD": "modal", "TO": "to",
    "IN": "preposition", "CC": "and", "RP": "adverb", "WRB": "adverb",
}  # fmt: skip
_OF_START = {"NN": "noun", "JJ": "adjective", "VB": "verb", "RB": "adverb"}


def kinds_of_tags(tags: Iterable[tuple[str]]) -> np.ndarray:
    """[W] which of the KINDS each tag belongs to; a tag is the only part of a word here."""
    kinds: list[int] = []
    for (tag,) in tags:
        other = "other" if tag[:1].isalpha() else "punct"
        kinds.append(KINDS.index(_OF_TAG.get(tag) or _OF_START.get(tag[:2]) or other))
    return np.array(kinds, dtype=np.int8)


Rule = tuple[np.ndarray | bool, np.ndarray, str]  # where it holds, the heads there, and the relation
Rules = tuple[np.ndarray, tuple[Rule, ...]]  # the tokens whose heads they give; the first rule that holds decides


def approximate_parse(
    kind: np.ndarray, auxiliary: np.ndarray, mark: np.ndarray, sentence: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Parse the tokens of many sentences, stored one after the other.

    Returns [T] each token's head in the same sentence, -1 for a root, and [T] the relation to it, of RELATIONS.
    `kind` [T] by their tags; `auxiliary` and `mark` [T] whether they may be one, as a verb or a preposition;
    `sentence` [T] the number of each token's sentence, ascending.
    """
    head, relation = np.full(len(kind), -1), np.full(len(kind), -1)
    phrases = _Phrases(kind, sentence)
    verbs = _Verbs(kind, auxiliary, phrases, sentence)
    nominal = phrases.heads | _is(kind, "relative", "pronoun")
    # The root: the first finite main verb; else the first head of a phrase or main verb; else the first token.
    token = np.arange(len(kind))
    first = np.maximum.accumulate(np.where(phrases.left < 0, token, -1))
    finite, content = verbs.main & ~_is(kind, "gerund"), verbs.main | nominal
    first_finite = np.where(finite, token, nearest(finite, sentence, 1))[first]
    first_content = np.where(content, token, nearest(content, sentence, 1))[first]
    root = _either(first_finite, first_content, first)
    is_owner = phrases.owned & (phrases.owner == token)
    inner = np.where(phrases.owned & ~is_owner, phrases.owner, phrases.head)  # heads inside a phrase
    inner_rules = (
        (is_owner | _is(kind, "owner"), inner, "poss"),
        (_is(kind, "noun"), inner, "nn"),
        (_is(kind, "determiner"), inner, "det"),
        (_is(kind, "number"), inner, "num"),
        (_is(kind, "genitive"), inner, "case"),
        (True, inner, "amod"),
    )
    inside = (phrases.inside & ~phrases.heads, inner_rules), (verbs.helps, ((True, verbs.verb, "aux"),))
    for tokens, rules in (*inside, *_outside(kind, mark, phrases, verbs, nominal, root, sentence)):
        left = tokens & (relation < 0)
        for holds, heads, name in rules:
            now = np.flatnonzero(left & holds)
            head[now] = heads[now]
            relation[now] = RELATIONS.index(name)
            left[now] = False
    top = (head < 0) | (root == token)
    head[top], relation[top] = -1, RELATIONS.index("root")
    return head, relation


# Tokens are numbers, -1 for no token.


def at(values: np.ndarray, token: np.ndarray) -> np.ndarray:
    """The values of these tokens; False or -1 for no token."""
    return np.where(token >= 0, values[token], False if values.dtype == bool else -1) if len(values) else values


def _either(*choices: np.ndarray) -> np.ndarray:
    """The first of the choices that is a token."""
    found = choices[0]
    for other in choices[1:]:
        found = np.where(found >= 0, found, other)
    return found


def _is(kind: np.ndarray, *kinds: str) -> np.ndarray:
    member = np.zeros(len(KINDS), dtype=bool)
    member[list(map(KINDS.index, kinds))] = True
    return np.asarray(member[kind])


class _Phrases:
    """Runs of nouns and the words before them.

    [T] each: `inside`, whether a token is in a phrase; `start`, `end` and `head` of its phrase; `heads`, whether
    it is a head; `between`, whether it is an adverb or a participle inside; `owned`, whether it belongs to an
    `owner`. `left` and `right` are the neighbours in the sentence.
    """

    def __init__(self, kind: np.ndarray, sentence: np.ndarray) -> None:
        token, every = np.arange(len(kind)), np.ones(len(kind), dtype=bool)
        self.left, self.right = nearest(every, sentence, -1), nearest(every, sentence, 1)
        noun, genitive = _is(kind, "noun"), _is(kind, "genitive")
        before_nouns = _is(kind, "adjective", "number", "determiner", "owner")
        between = at(before_nouns, self.left) & at(_is(kind, "noun", "adjective"), self.right)
        self.between = between & _is(kind, "participle", "gerund", "adverb")
        self.inside = noun | before_nouns | genitive | self.between
        opens = _is(kind, "determiner", "owner") & ~at(_is(kind, "determiner"), self.left)
        starts = ~self.inside | opens | ~at(self.inside, self.left)
        first = np.flatnonzero(starts)
        length = np.diff(np.append(first, len(kind)))
        self.start, self.end = np.repeat(first, length), np.repeat(first + length - 1, length)
        last_noun = np.maximum.accumulate(np.where(noun, token, -1))  # up to each token
        bare = np.where(genitive[self.end] & (self.end > self.start), self.end - 1, self.end)
        self.head = np.where(last_noun[self.end] >= self.start, last_noun[self.end], bare)
        self.heads = self.inside & (token == self.head)
        # The words before a genitive, and the genitive, belong to the owner; the owner belongs to the phrase.
        mark = np.where(genitive, token, nearest(genitive, self.start, 1))
        begins = starts | at(genitive, self.left)
        begin = np.maximum.accumulate(np.where(begins, token, -1))[mark]
        before = np.maximum(mark - 1, 0)
        self.owner = np.where(last_noun[before] >= begin, last_noun[before], begin)
        self.owned = self.inside & (mark >= 0) & (mark <= self.head)


class _Verbs:
    """Main verbs and their auxiliaries.

    [T] each: whether a token is a `main` verb, `helps` one, is `part` of such a group, or is an `adverb` outside
    of phrases; the `verb` that it helps; the `start` of its group, for a main verb; the `next` and the `previous`
    token that is not an adverb.
    """

    def __init__(self, kind: np.ndarray, auxiliary: np.ndarray, phrases: _Phrases, sentence: np.ndarray) -> None:
        token = np.arange(len(kind))
        self.adverb = _is(kind, "adverb") & ~phrases.between
        self.next, self.previous = nearest(~self.adverb, sentence, 1), nearest(~self.adverb, sentence, -1)
        any_verb = _is(kind, "verb", "participle", "gerund") & ~phrases.between
        before_verb, modal = at(any_verb, self.next), _is(kind, "modal")
        self.infinitive = _is(kind, "to") & before_verb
        self.helps = (modal | self.infinitive | (any_verb & auxiliary)) & before_verb
        self.main = (any_verb | modal) & ~self.helps
        self.part = self.main | self.helps
        self.verb, self.start = np.where(self.helps, self.next, token), token
        for _ in range(_AUXILIARY_STEPS):
            self.verb = self.verb[self.verb]
        for _ in range(2**_AUXILIARY_STEPS):
            earlier = at(self.previous, np.where(self.main | self.helps[self.start], self.start, -1))
            self.start = np.where(at(self.helps, earlier), earlier, self.start)


def _outside(
    kind: np.ndarray,
    mark: np.ndarray,
    phrases: _Phrases,
    verbs: _Verbs,
    nominal: np.ndarray,
    root: np.ndarray,
    sentence: np.ndarray,
) -> tuple[Rules, ...]:
    """Heads of phrases, verbs and the words between them."""
    main, relative = verbs.main, _is(kind, "relative")
    content = nominal | main
    preposition = _is(kind, "preposition") | (_is(kind, "to") & ~verbs.infinitive)
    mark = mark & _is(kind, "preposition")
    last, last_main = nearest(content, sentence, -1), nearest(main, sentence, -1)
    last_nominal, next_main = nearest(nominal, sentence, -1), nearest(main, sentence, 1)
    start = np.where(phrases.heads, phrases.start, verbs.start)
    left, right = phrases.left[start], phrases.right[np.where(phrases.heads, phrases.end, np.arange(len(kind)))]
    governor = nearest(content | (preposition & ~mark), sentence, -1)
    governor = np.where(at(content, governor), -1, governor)
    joined = at(_is(kind, "and"), nearest(content | _is(kind, "and"), sentence, -1))
    before_verb = at(verbs.part, right) | (at(verbs.adverb, right) & at(at(verbs.part, verbs.next), right))
    left_phrase = at(np.where(phrases.inside, phrases.head, -1), left)
    nominal_rules = (
        (relative, _either(next_main, last, root), "nsubj"),
        (governor >= 0, governor, "pobj"),
        (joined & (last_nominal >= 0), last_nominal, "conj"),
        (before_verb & (next_main >= 0), next_main, "nsubj"),
        (at(main, left), left, "dobj"),
        (left_phrase >= 0, left_phrase, "dep"),
        (last_main >= 0, last_main, "dep"),
        (next_main >= 0, next_main, "nsubj"),
        (True, root, "dep"),
    )
    antecedent = np.where(at(relative, left), at(last_nominal, left), -1)
    main_rules = (
        (joined & (last_main >= 0), last_main, "conj"),
        (_is(kind, "participle", "gerund") & (left_phrase >= 0), left_phrase, "acl"),
        (antecedent >= 0, antecedent, "rcmod"),
        (governor >= 0, governor, "pcomp"),
        (_is(kind[start], "to") & (last_main >= 0), last_main, "xcomp"),
        (last_main >= 0, last_main, "ccomp"),
        (True, root, "dep"),
    )
    adverb_rules = (
        (at(verbs.part, verbs.previous) & at(verbs.part, verbs.next), at(verbs.verb, verbs.next), "advmod"),
        (at(verbs.part, verbs.previous), at(verbs.verb, verbs.previous), "advmod"),
        (True, _either(next_main, last_main, root), "advmod"),
    )
    before = _either(last, root)
    return (
        (nominal, nominal_rules),
        (main, main_rules),
        (mark & (next_main >= 0), ((True, next_main, "mark"),)),
        (preposition, ((True, _either(last, next_main, root), "prep"),)),
        (verbs.adverb, adverb_rules),
        (_is(kind, "and"), ((True, before, "cc"),)),
        (_is(kind, "punct"), ((True, before, "punct"),)),
        (np.ones(len(kind), dtype=bool), ((True, before, "dep"),)),
    )
