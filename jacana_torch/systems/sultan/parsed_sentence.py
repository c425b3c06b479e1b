"""A parsed sentence as the pipeline reads it: forms, classes of words, names and collapsed dependencies.

The original reads Stanford's collapsed dependencies. Parsers give plain trees (Stanford's, spaCy's or Universal
Dependencies'), so prepositions (`prep_of`, `agent`) and conjunctions (`conj_and`) are folded into edges here, as
Stanford's converter does. The plain edges of prepositions stay, since they are evidence for stop words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ...annotate.tokens import matching_form
from ...errors import JacanaError
from ...features.dependency_relations import canonical
from ...features.name_spans import entity_spans
from ...features.wordlists import is_punctuation
from ...types import Sentence

# Words that are linked by their context, never by their similarity.
STOP_WORDS = frozenset(
    """i me my mine myself we our ours ourselves you your yours yourself yourselves he him his himself she her
    hers herself it its itself they them their theirs themselves what which who whom whose this that these those
    am is are was were be been being have has had having do does did doing a an the and but if or because as
    until while of at by for with about against between into through during before after above below to from up
    down in out on off over under again further then once here there when where why how all any both each few more
    most other some such no nor not only own same so than too very can will just should now
    's 'd 'll 're 've 'm n't ' ca wo would could may might must shall also upon onto within without towards toward
    among amongst across via per since till yet either neither every""".split()
)
_ALSO_NAMES = frozenset("may will can might".split())  # "Will came in May"
PROPER = ("NNP", "NNPS")
_PRONOUNS = ("PRP", "PRP$")
_NO_NAMES = frozenset("DATE TIME MONEY PERCENT QUANTITY CARDINAL ORDINAL NUMBER DURATION SET".split())

NOUN, VERB, ADJECTIVE, ADVERB = 1, 2, 3, 4
_OF_LETTER = {"N": NOUN, "V": VERB, "J": ADJECTIVE, "R": ADVERB}
_OTHERS = "DT IN TO CC CD MD WDT WP WP$ WRB PRP$ POS RP EX PDT $ # UH FW SYM LS".split()
_CATEGORY = {tag: 5 + k for k, tag in enumerate(_OTHERS)} | {"PRP": NOUN}

# Table 1, orientation (a): both words are the parents. Category of the words, of their children, the relations.
# `acl` is partmod and infmod, `poss` what the table calls pos.
BOTH_PARENTS = (
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
PARENT_AND_CHILD = (
    *((c, c, name, name) for c in (VERB, NOUN, ADJECTIVE, ADVERB) for name in ("conj_and", "conj_or", "conj_nor")),
    (VERB, NOUN, "dobj nsubjpass rel", "acl rcmod"),
    (VERB, ADJECTIVE, "acomp", "cop csubj"),
    (NOUN, ADJECTIVE, "amod rcmod", "nsubj"),
)

Arc = tuple[int, int, str]  # parent, child, relation
Marker = tuple[int, int, int]  # marker, parent, child


@dataclass(frozen=True)
class Name:
    """The words first .. behind - 1; `kind` is the entity type, empty where tags alone show the name."""

    first: int
    behind: int
    kind: str = ""

    def __len__(self) -> int:
        return self.behind - self.first

    @property
    def places(self) -> range:
        return range(self.first, self.behind)


@dataclass(frozen=True)
class Edges:
    """Every collapsed edge twice, once from each end: `down` says that `there` is the child of `here`.

    `alike`, `left` and `right` have a bit for each row of Table 1 that the edge may be part of. `markers` [K, 3]
    are the words that express a dependency ("of", "'s"), each with the parent and the child that it connects.
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

    def equivalent(self, other: Edges, some: slice, by_table: bool = True) -> np.ndarray:
        """[edges of `some`, edges of the other sentence] whether they have the same relation and direction, or
        (`by_table`) are equivalent by Table 1."""
        number = {label: k for k, label in enumerate(dict.fromkeys(self.labels))}
        labels = np.array([number[label] for label in self.labels[some]], dtype=np.int64)
        others = np.array([number.get(label, -1) for label in other.labels], dtype=np.int64)
        found: np.ndarray = (labels[:, None] == others) & (self.down[some, None] == other.down)
        if by_table:
            rows = (self.alike[some, None] & other.alike) | (self.left[some, None] & other.right)
            found |= (rows | (self.right[some, None] & other.left)) != 0
        return found


@dataclass(frozen=True)
class ParsedSentence:
    """`forms` and `lemmas` are lower case; `stop`, `punctuation` and `content` [T] are disjoint classes."""

    tokens: tuple[str, ...]
    forms: tuple[str, ...]
    lemmas: tuple[str, ...]
    tags: tuple[str, ...]
    category: np.ndarray
    stop: np.ndarray
    punctuation: np.ndarray
    edges: Edges
    names: tuple[Name, ...]

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def content(self) -> np.ndarray:
        neither: np.ndarray = ~(self.stop | self.punctuation)
        return neither


def parsed(sentence: Sentence, entities: bool = False) -> ParsedSentence:
    """Read tags, lemmas, heads and relations. Names are entities of the layer `ner`, or runs of proper nouns."""
    tokens = tuple(map(matching_form, sentence.tokens))
    forms = tuple(token.lower() for token in tokens)
    tags = tuple(map(str, sentence.layer("pos")))
    categories = np.array([category(tag) for tag in tags], dtype=np.int64)
    punctuation = np.array([is_punctuation(form) for form in forms], dtype=bool)
    stop = [
        (form in STOP_WORDS or tag in _PRONOUNS) and not (form in _ALSO_NAMES and tag in PROPER)
        for form, tag in zip(forms, tags, strict=True)
    ]
    return ParsedSentence(
        tokens=tokens,
        forms=forms,
        lemmas=tuple(matching_form(str(lemma)).lower() for lemma in sentence.layer("lemma")),
        tags=tags,
        category=categories,
        stop=np.array(stop, dtype=bool) & ~punctuation,
        punctuation=punctuation,
        edges=_edges(sentence, forms, categories),
        names=_entities(sentence.layer("ner")) if entities else _proper_nouns(tags),
    )


@lru_cache(maxsize=256)
def category(tag: str) -> int:
    """The lexical category of a Penn tag, 0 if it has none. Pronouns are nouns, as in the original."""
    known = _CATEGORY.get(tag)
    return known if known is not None else _OF_LETTER.get(tag[:1], 0)


def _proper_nouns(tags: Sequence[str]) -> tuple[Name, ...]:
    proper = np.array([False, *(tag in PROPER for tag in tags), False])
    changes = np.flatnonzero(proper[1:] != proper[:-1]).tolist()
    return tuple(Name(first, behind) for first, behind in zip(changes[::2], changes[1::2], strict=True))


def _entities(labels: Sequence[str]) -> tuple[Name, ...]:
    names = (
        Name(first, behind, str(labels[first]).partition("-")[2].upper()) for first, behind in entity_spans(labels)
    )
    return tuple(name for name in names if name.kind not in _NO_NAMES)


def _edges(sentence: Sentence, forms: Sequence[str], category: np.ndarray) -> Edges:
    """The collapsed dependencies of a sentence whose words have these forms and categories."""
    heads = _heads(sentence)
    relations = [canonical(str(label)) for label in sentence.layer("deprel")]
    markers = _markers(heads, relations)
    arcs = _arcs(heads, relations, forms, markers)
    both = [(p, c, label, True) for p, c, label in arcs] + [(c, p, label, False) for p, c, label in arcs]
    of = category.tolist()
    rows = [table_rows(label, of[here], of[there], down) for here, there, label, down in both]
    alike, left, right = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    ends = np.array([(here, there, down) for here, there, _, down in both], dtype=np.int64).reshape(-1, 3).T
    labels = tuple(edge[2] for edge in both)
    of_markers = np.array(markers, dtype=np.int64).reshape(-1, 3)
    return Edges(ends[0], ends[1], ends[2] > 0, labels, alike, left, right, of_markers)


def _heads(sentence: Sentence) -> list[int]:
    """The head of each token, -1 for roots; some parsers write a root as its own head."""
    heads = [int(head) for head in sentence.layer("head")]
    for token, head in enumerate(heads):
        if not -1 <= head < len(heads):
            raise JacanaError(
                f"token {token} of {str(sentence)[:60]!r} has head {head}, but the sentence has {len(heads)} "
                "tokens: heads count from 0, and a root's is -1"
            )
    return [-1 if head == token else head for token, head in enumerate(heads)]


def _markers(heads: Sequence[int], relations: Sequence[str]) -> list[Marker]:
    """Prepositions with the words that they connect (Stanford's prep and pobj, or UD's obl and case), and the `'s`
    between owner and owned."""
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
    coordinators: dict[int, str] = {}  # on the first conjunct, or (UD) on the later one
    for token, relation in enumerate(relations):
        if relation == "cc" and heads[token] >= 0:
            coordinators.setdefault(heads[token], forms[token])
    arcs = []
    for child, (head, relation) in enumerate(zip(heads, relations, strict=True)):
        if relation == "conj":
            relation = f"conj_{coordinators.get(child) or coordinators.get(head) or 'and'}"
        if head >= 0:
            arcs.append((head, child, relation))
    passive = {head for head, _, relation in arcs if relation in ("nsubjpass", "auxpass")}
    for marker, parent, child in markers:
        if relations[child] == "poss":  # the tree has this edge already
            continue
        agent = "agent" in (relations[marker], relations[child]) or (forms[marker] == "by" and parent in passive)
        arcs.append((parent, child, "agent" if agent else f"prep_{forms[marker]}"))
    return arcs


@lru_cache(maxsize=1 << 14)
def table_rows(label: str, here: int, there: int, down: bool) -> tuple[int, int, int]:
    """The rows of Table 1 that an edge is part of, as bits: orientations (a) and (b), and either side of (c), (d).

    Orientation (b) is (a) and (d) is (c) seen from the neighbour, with the two categories exchanged.
    """
    parent, child = (here, there) if down else (there, here)
    alike = left = right = 0
    for bit, (of_parent, of_child, relations) in enumerate(BOTH_PARENTS):
        if (parent, child) == (of_parent, of_child) and label in relations.split():
            alike |= 1 << (2 * bit + down)
    for bit, (of_word, of_neighbour, ones, others) in enumerate(PARENT_AND_CHILD):
        for seen, word, neighbour in ((0, here, there), (1, there, here)):
            if (word, neighbour) == (of_word, of_neighbour):
                left |= (down != bool(seen) and label in ones.split()) << (2 * bit + seen)
                right |= (down == bool(seen) and label in others.split()) << (2 * bit + seen)
    return alike, left, right
