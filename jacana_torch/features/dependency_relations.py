"""Names of grammatical relations: one spelling for three label sets, their classes, and which are equivalent.

Labels of Stanford, spaCy and Universal Dependencies become one spelling (Stanford's where it has one), so that
weights trained on one parser's output apply to another's.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

_CANONICAL = {
    "p": "punct", "obj": "dobj", "nsubj:pass": "nsubjpass", "csubj:pass": "csubjpass", "aux:pass": "auxpass",
    "compound": "nn", "compound:prt": "prt", "nummod": "num", "number": "num", "relcl": "rcmod",
    "acl:relcl": "rcmod", "partmod": "acl", "infmod": "acl", "nmod:poss": "poss", "possessive": "case",
    "complm": "mark", "dative": "iobj", "obl:tmod": "tmod", "nmod:tmod": "tmod", "obl:npmod": "npadvmod",
    "obl:agent": "agent", "abbrev": "appos", "preconj": "cc", "cc:preconj": "cc", "det:predet": "predet",
}  # fmt: skip

_CLASSES = {
    "subject": "nsubj nsubjpass csubj csubjpass xsubj agent expl",
    "object": "dobj iobj pobj attr acomp oprd rel",
    "modifier": "nn poss amod num quantmod appos nounmod nmod predet det case",
    "clause": "ccomp xcomp advcl acl rcmod pcomp purpcl parataxis",
    "adverbial": "advmod npadvmod tmod neg prt prep obl",
    "auxiliary": "aux auxpass cop mark cc",
    "coordination": "conj",
}
_CLASS = {relation: name for name, members in _CLASSES.items() for relation in members.split()}

FUNCTION = frozenset("det predet aux auxpass cop mark cc punct case expl prt prep agent".split())

# Sultan et al. (2014), Table 1, without its parts of speech, which the relations nearly imply; the relation
# `prep_by` is beside the agent. Any two of a set are equivalent where both words are the parent or both
# the child ...
_ALIGNED = [
    {"purpcl", "xcomp"},
    {"agent", "nsubj", "xsubj", "prep_by"},
    {"dobj", "nsubjpass", "rel"},
    {"tmod", "prep_in", "prep_at", "prep_on"},
    {"iobj", "prep_to"},
    {"acl", "rcmod"},
    {"poss", "nn", "prep_of", "prep_in", "prep_at", "prep_for"},
    {"amod", "rcmod"},
]
# ... and one of the left is equivalent to one of the right where one word is the parent and the other the child
# ("wrote books" and "books that he wrote", seen from either word).
_CROSSED = [
    ({"conj"}, {"conj"}),
    ({"dobj", "nsubjpass", "rel"}, {"acl", "rcmod"}),
    ({"acomp"}, {"cop", "csubj"}),
    ({"amod", "rcmod"}, {"nsubj"}),
]


@lru_cache(maxsize=4096)
def canonical(label: str) -> str:
    """The one spelling of a relation; unknown subtypes are dropped (`obl:lmod` is `obl`)."""
    label = label.lower()
    if label in _CANONICAL:
        return _CANONICAL[label]
    base = label.split(":")[0]
    return _CANONICAL.get(base, base)


def relation_class(relation: str) -> str:
    return _CLASS.get(relation, relation)


def equivalence(names: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """[R, R] twice: whether relations are equivalent in the same direction, and in opposite directions."""
    member = _membership(names, _ALIGNED)
    same = (member @ member.T > 0) | np.eye(len(names), dtype=bool)
    left = _membership(names, [left for left, _ in _CROSSED])
    right = _membership(names, [right for _, right in _CROSSED])
    return same, left @ right.T + right @ left.T > 0


def _membership(names: list[str], groups: list[set[str]]) -> np.ndarray:
    return np.array([[name in group for group in groups] for name in names], dtype=np.int64).reshape(
        -1, len(groups)
    )
