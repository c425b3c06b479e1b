"""The stages of Sultan et al.'s pipeline as nested loops over words, as in the paper's algorithms.

A twin shares no code with what it checks: it collapses dependencies and has Table 1 itself, and every stage takes
the links so far as a set of pairs and returns them with its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

Cell = tuple[int, int]
Links = set[Cell]

# POS of the two words, POS of their neighbours, relations of the one, relations of the other.
BOTH_PARENTS = [
    ("v", "v", {"purpcl", "xcomp"}, {"purpcl", "xcomp"}),
    ("v", "n", {"agent", "nsubj", "xsubj"}, {"agent", "nsubj", "xsubj"}),
    ("v", "n", {"dobj", "nsubjpass", "rel"}, {"dobj", "nsubjpass", "rel"}),
    ("v", "n", {"tmod", "prep_in", "prep_at", "prep_on"}, {"tmod", "prep_in", "prep_at", "prep_on"}),
    ("v", "n", {"iobj", "prep_to"}, {"iobj", "prep_to"}),
    ("n", "v", {"acl", "rcmod"}, {"acl", "rcmod"}),
    ("n", "n", *[{"poss", "nn", "prep_of", "prep_in", "prep_at", "prep_for"}] * 2),
    ("n", "a", {"amod", "rcmod"}, {"amod", "rcmod"}),
]
PARENT_AND_CHILD = [
    *[(x, x, {f"conj_{w}"}, {f"conj_{w}"}) for x in "vnar" for w in ("and", "or", "nor")],
    ("v", "n", {"dobj", "nsubjpass", "rel"}, {"acl", "rcmod"}),
    ("v", "a", {"acomp"}, {"cop", "csubj"}),
    ("n", "a", {"amod", "rcmod"}, {"nsubj"}),
]


@dataclass
class Side:
    """Stanford's relations, which need no other spelling; `kind` is one of c(ontent), s(top), p(unctuation)."""

    forms: list[str]
    tags: list[str]
    heads: list[int]
    relations: list[str]
    kind: list[str]

    def __len__(self) -> int:
        return len(self.forms)

    def pos(self, k: int) -> str:
        tag = self.tags[k]
        if tag == "PRP":
            return "n"
        return {"N": "n", "V": "v", "J": "a"}.get(tag[0]) or ("r" if tag[:2] == "RB" else tag)

    def arcs(self) -> list[tuple[int, int, str]]:
        found = []
        for child, head in enumerate(self.heads):
            if head < 0:
                continue
            relation = self.relations[child]
            if relation == "conj":
                of = [c for c in range(len(self)) if self.relations[c] == "cc" and self.heads[c] == child]
                of += [c for c in range(len(self)) if self.relations[c] == "cc" and self.heads[c] == head]
                relation = f"conj_{self.forms[of[0]] if of else 'and'}"
            found.append((head, child, relation))
            if self.relations[child] == "pobj" and self.relations[head] == "prep" and self.heads[head] >= 0:
                above = self.heads[head]
                passive = any(
                    self.heads[k] == above and self.relations[k] in ("nsubjpass", "auxpass")
                    for k in range(len(self))
                )
                by = self.forms[head] == "by" and passive
                found.append((above, child, "agent" if by else f"prep_{self.forms[head]}"))
        return found

    def markers(self) -> list[tuple[int, int, int]]:
        return [
            (head, self.heads[head], child)
            for child, head in enumerate(self.heads)
            if head >= 0 and self.relations[child] == "pobj" and self.relations[head] == "prep"
            if self.heads[head] >= 0
        ]

    def neighbours(self, k: int) -> list[tuple[int, str, bool]]:
        """(neighbour, relation, whether k is the parent)."""
        arcs = self.arcs()
        return [(c, r, True) for p, c, r in arcs if p == k] + [(p, r, False) for p, c, r in arcs if c == k]

    def content(self, k: int) -> bool:
        return self.kind[k] == "c"

    def next_content(self, k: int, step: int) -> int | None:
        k += step
        while 0 <= k < len(self):
            if self.content(k):
                return k
            k += step
        return None


@dataclass
class Twin:
    source: Side
    target: Side
    level: list[list[int]]
    similarity: float
    weight: float

    def cells(self) -> list[Cell]:
        return [(i, j) for i in range(len(self.source)) for j in range(len(self.target))]

    def sim(self, i: int, j: int) -> float:
        return (0.0, self.similarity, 1.0)[self.level[i][j]]

    def same_form(self, i: int, j: int) -> bool:
        return self.source.forms[i] == self.target.forms[j]

    def rank(self, i: int, j: int, *keys: float) -> tuple:
        off = abs((2 * i + 1) * len(self.target) - (2 * j + 1) * len(self.source))
        return (*(-key for key in keys), off, i + j, abs(i - j))

    def score(self, i: int, j: int, context: float) -> float:
        return self.weight * self.sim(i, j) + (1 - self.weight) * context

    # Evidence

    def dependencies(self, i: int, j: int) -> set[Cell]:
        found = set()
        s, t = self.source, self.target
        if not self.level[i][j] or s.pos(i) != t.pos(j) or s.kind[i] == "p":
            return found
        for k, one, down in s.neighbours(i):
            for l, other, also_down in t.neighbours(j):  # noqa: E741
                if not self.level[k][l] or s.pos(k) != t.pos(l) or s.kind[k] == "p":
                    continue
                exact = one == other and down == also_down
                if exact or equivalent(s.pos(i), s.pos(k), one, down, other, also_down):
                    found.add((k, l))
        return found

    def neighbourhood(self, i: int, j: int) -> float:
        near = [k for k in range(max(0, i - 3), min(len(self.source), i + 4)) if k != i and self.source.content(k)]
        also = [k for k in range(max(0, j - 3), min(len(self.target), j + 4)) if k != j and self.target.content(k)]
        return sum(self.sim(k, l) for k in near for l in also)  # noqa: E741

    def linked_dependencies(self, i: int, j: int, links: Links) -> int:
        return sum(
            (k, l) in links and one == other and down == also_down
            for k, one, down in self.source.neighbours(i)
            for l, other, also_down in self.target.neighbours(j)  # noqa: E741
        )

    def beside(self, i: int, j: int, links: Links) -> int:
        found = 0
        for step in (-1, 1):
            k, l = self.source.next_content(i, step), self.target.next_content(j, step)  # noqa: E741
            ends = k is None and l is None and self.source.kind[i] == self.target.kind[j] == "p"
            found += (i + step, j + step) in links or (k, l) in links or ends
        return found

    # Stages

    def sequences(self, links: Links) -> Links:
        found = []
        for i, j in self.cells():
            if i and j and self.same_form(i - 1, j - 1):
                continue
            length = 0
            while i + length < len(self.source) and j + length < len(self.target):
                if not self.same_form(i + length, j + length):
                    break
                length += 1
            if length >= 2 and any(self.source.content(i + k) for k in range(length)):
                found.append((self.rank(i, j, length), i, j, length))
        links = set(links)
        for _, i, j, length in sorted(found):
            for k in range(length):
                _link(links, i + k, j + k)
        return links

    def by_dependencies(self, links: Links) -> Links:
        found = []
        for i, j in self.cells():
            if self.source.content(i) and self.target.content(j) and _free(links, i, j):
                context = self.dependencies(i, j)
                if context:
                    score = self.score(i, j, sum(self.sim(*cell) for cell in context))
                    found.append((self.rank(i, j, score, self.neighbourhood(i, j)), i, j, sorted(context)))
        links = set(links)
        for _, i, j, context in sorted(found):
            if _link(links, i, j):
                for k, l in context:  # noqa: E741
                    if self.source.kind[k] != "s":
                        _link(links, k, l)
        return links

    def by_neighbourhood(self, links: Links) -> Links:
        found = []
        for i, j in self.cells():
            if self.source.content(i) and self.target.content(j) and self.level[i][j] and _free(links, i, j):
                near = self.neighbourhood(i, j)
                if near > 0 or self.level[i][j] == 2:
                    found.append((self.rank(i, j, self.score(i, j, near)), i, j))
        return _all(found, links)

    def stop_words(self, links: Links, kinds: str, first: Callable, more: Callable) -> Links:
        found = []
        for i, j in self.cells():
            if self.source.kind[i] not in kinds or self.target.kind[j] not in kinds or not _free(links, i, j):
                continue
            evidence, other = first(i, j, links), more(i, j, links)
            if self.level[i][j] and evidence and (self.same_form(i, j) or evidence + other > 1):
                found.append((self.rank(i, j, self.score(i, j, evidence), other), i, j))
        return _all(found, links)

    def by_linked_dependencies(self, links: Links) -> Links:
        return self.stop_words(links, "s", self.linked_dependencies, self.beside)

    def markers(self, links: Links) -> Links:
        found = [
            (self.rank(m, n, self.sim(m, n)), m, n)
            for m, parent, child in self.source.markers()
            for n, also_parent, also_child in self.target.markers()
            if (parent, also_parent) in links and (child, also_child) in links
        ]
        return _all(found, links)

    def by_linked_neighbours(self, links: Links) -> Links:
        while True:
            more = self.stop_words(links, "sp", self.beside, self.linked_dependencies)
            if more == links:
                return links
            links = more


def equivalent(word: str, neighbour: str, one: str, down: bool, other: str, also_down: bool) -> bool:
    """Table 1 in all four orientations: (a) and (c) as printed, (b) and (d) the same seen from the neighbour."""
    for x, y, left, right in BOTH_PARENTS:
        here = (x, y) if down else (y, x)
        if down == also_down and (word, neighbour) == here and one in left and other in right:
            return True
    for x, y, left, right in PARENT_AND_CHILD:
        if down == also_down:
            continue
        if (word, neighbour) == (x, y):  # (c): the word is the parent by the left relation
            if (one if down else other) in left and (other if down else one) in right:
                return True
        if (neighbour, word) == (x, y):  # (d): the neighbour is
            if (other if down else one) in left and (one if down else other) in right:
                return True
    return False


def _free(links: Links, i: int, j: int) -> bool:
    return not any(k == i or l == j for k, l in links)  # noqa: E741


def _link(links: Links, i: int, j: int) -> bool:
    if not _free(links, i, j):
        return False
    links.add((i, j))
    return True


def _all(found: list, links: Links) -> Links:
    links = set(links)
    for _, i, j in sorted(found):
        _link(links, i, j)
    return links
