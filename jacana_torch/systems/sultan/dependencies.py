"""Collapsed dependencies of a sentence, and which of two sentences' dependencies say the same thing (Table 1).

In: heads and relations as parsers write them (Stanford's, spaCy's, Universal Dependencies'). Out: `Edges`, each
seen from either end, and which edges of two sentences are equivalent.

The original reads Stanford's collapsed dependencies. Parsers give plain trees, so prepositions (`prep_of`,
`agent`) and conjunctions (`conj_and`) are folded into the edges here as Stanford's converter does; the plain edges
of the prepositions stay, since they are evidence for stop words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ...errors import JacanaError
from ...features.dependency_relations import canonical
from ...types import Sentence

NOUN, VERB, ADJECTIVE, ADVERB = 1, 2, 3, 4

# Table 1, orientation (a): both words are the parents. Category of the words, of their children, the relations.
# `acl` is partmod and infmod, `poss` what the table calls pos.
ALIKE = (
    (VERB, VERB, "purpcl xcomp"),
    (VERB, NOUN, "agent nsubj xsubj"),
    (VERB, NOUN, "dobj nsubjpass rel"),
    (VERB, NOUN, "tmod prep_in prep_at prep_on"),
    (VERB, NOUN, "iobj prep_to"),
    (NOUN, VERB, "acl rcmod"),
    (NOUN, NOUN, "poss nn prep_of prep_in prep_at prep_for"),
    (NOUN, ADJECTIVE, "amod rcmod"),
)
# Orientation (c): one word is the parent by a relation of the left, the other the child by one of the right.
_CONJUNCTIONS = ("conj_and", "conj_or", "conj_nor")
CROSSED = (
    *((kind, kind, name, name) for kind in (VERB, NOUN, ADJECTIVE, ADVERB) for name in _CONJUNCTIONS),
    (VERB, NOUN, "dobj nsubjpass rel", "acl rcmod"),
    (VERB, ADJECTIVE, "acomp", "cop csubj"),
    (NOUN, ADJECTIVE, "amod rcmod", "nsubj"),
)

Arc = tuple[int, int, str]  # parent, child, relation
Marker = tuple[int, int, int]  # marker, parent, child


@dataclass(frozen=True)
class Edges:
    """Every edge twice, once from each end: `here` and `there` are tokens, `down` says that `there` is the child.

    `alike`, `left` and `right` hold a bit for each row of Table 1 that the edge could be part of. `markers` [K, 3]
    are the words that say what a dependency is ("of", "'s"), with the parent and the child that it connects.
    """

    here: np.ndarray
    there: np.ndarray
    down: np.ndarray
    labels: tuple[str, ...]
    alike: np.ndarray
    left: np.ndarray
    right: np.ndarray
    markers: np.ndarray

    def __len__(self) -> int:
        return len(self.labels)


def edges(sentence: Sentence, forms: Sequence[str], category: np.ndarray) -> Edges:
    """The collapsed dependencies of a sentence whose words have these forms and categories."""
    heads = _heads(sentence)
    relations = [canonical(str(label)) for label in sentence.layer("deprel")]
    markers = _markers(heads, relations)
    arcs = _arcs(heads, relations, forms, markers)
    kinds = category.tolist()
    both = [(p, c, label, True) for p, c, label in arcs] + [(c, p, label, False) for p, c, label in arcs]
    rows = [table_rows(label, kinds[here], kinds[there], down) for here, there, label, down in both]
    masks = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    ends = np.array([(here, there, down) for here, there, _, down in both], dtype=np.int64).reshape(-1, 3).T
    return Edges(
        here=ends[0],
        there=ends[1],
        down=ends[2] > 0,
        labels=tuple(edge[2] for edge in both),
        alike=masks[0],
        left=masks[1],
        right=masks[2],
        markers=np.array(markers, dtype=np.int64).reshape(-1, 3),
    )


def _heads(sentence: Sentence) -> list[int]:
    """The head of each token, -1 for roots; some parsers write a root as its own head."""
    heads = [int(head) for head in sentence.layer("head")]
    for token, head in enumerate(heads):
        if not -1 <= head < len(heads):
            raise JacanaError(
                f"token {token} of {str(sentence)[:60]!r} has head {head}, which is no token of its "
                f"{len(heads)}: heads count from 0, and a root's is -1"
            )
    return [-1 if head == token else head for token, head in enumerate(heads)]


def _markers(heads: Sequence[int], relations: Sequence[str]) -> list[Marker]:
    """Prepositions with what they connect (Stanford's prep and pobj, or UD's obl and case), and the `'s` between
    owner and owned."""
    found = []
    for token, (head, relation) in enumerate(zip(heads, relations, strict=True)):
        above = heads[head] if head >= 0 else -1
        if above < 0:
            continue
        if relation in ("pobj", "pcomp") and relations[head] in ("prep", "agent"):
            found.append((head, above, token))
        elif relation == "case" and relations[head] in ("obl", "nmod", "agent", "poss"):
            found.append((token, above, head))
    return found


def _arcs(
    heads: Sequence[int], relations: Sequence[str], forms: Sequence[str], markers: Sequence[Marker]
) -> list[Arc]:
    """The tree's own edges, and those that skip a preposition."""
    named = _conjunctions(heads, relations, forms)
    arcs = [(head, child, named[child]) for child, head in enumerate(heads) if head >= 0]
    passive = {head for head, _, relation in arcs if relation in ("nsubjpass", "auxpass")}
    for marker, parent, child in markers:
        if relations[child] == "poss":  # the tree says so already
            continue
        agent = "agent" in (relations[marker], relations[child]) or (forms[marker] == "by" and parent in passive)
        arcs.append((parent, child, "agent" if agent else f"prep_{forms[marker]}"))
    return arcs


def _conjunctions(heads: Sequence[int], relations: Sequence[str], forms: Sequence[str]) -> list[str]:
    """The relations, `conj` as `conj_and`: the coordinator hangs on the first conjunct, or (UD) on the later."""
    words: dict[int, str] = {}
    for token, relation in enumerate(relations):
        if relation == "cc" and heads[token] >= 0:
            words.setdefault(heads[token], forms[token])
    return [
        f"conj_{words.get(token) or words.get(heads[token]) or 'and'}" if relation == "conj" else relation
        for token, relation in enumerate(relations)
    ]


@lru_cache(maxsize=1 << 14)
def table_rows(label: str, here: int, there: int, down: bool) -> tuple[int, int, int]:
    """The rows of Table 1 that an edge is part of, as bits: orientations (a) and (b), and either side of (c), (d).

    Orientation (b) is (a) and (d) is (c) as the neighbour sees it, with the two categories in each other's places.
    """
    parent, child = (here, there) if down else (there, here)
    alike = left = right = 0
    for bit, (of_parent, of_child, relations) in enumerate(ALIKE):
        if (parent, child) == (of_parent, of_child) and label in relations.split():
            alike |= 1 << (2 * bit + down)
    for bit, (of_word, of_neighbour, ones, others) in enumerate(CROSSED):
        for seen, word, neighbour in ((0, here, there), (1, there, here)):
            if (word, neighbour) == (of_word, of_neighbour):
                left |= (down != bool(seen) and label in ones.split()) << (2 * bit + seen)
                right |= (down == bool(seen) and label in others.split()) << (2 * bit + seen)
    return alike, left, right


def equivalent(source: Edges, target: Edges, some: slice, by_table: bool = True) -> np.ndarray:
    """[edges of `some` of the source, edges of the target]: the same relation in the same direction, or
    (`by_table`) one that Table 1 holds equivalent."""
    number = {label: k for k, label in enumerate(dict.fromkeys(source.labels))}
    one = np.array([number[label] for label in source.labels[some]], dtype=np.int64)
    other = np.array([number.get(label, -1) for label in target.labels], dtype=np.int64)
    same = (one[:, None] == other) & (source.down[some, None] == target.down)
    if not by_table:
        return same
    rows = (source.alike[some, None] & target.alike) | (source.left[some, None] & target.right)
    return same | ((rows | (source.right[some, None] & target.left)) != 0)
