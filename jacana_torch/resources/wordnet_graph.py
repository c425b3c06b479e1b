"""WordNet as arrays: morphology as NLTK's, and the relations of many word pairs at once.

In: the resource `wordnet`, compiled by wordnet_files.py. Out: base forms, synset numbers, boolean arrays.
What needs sparse matrices loads scipy when it is first asked for: lemmas do without.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from .morphology import POS, Morphology, plain
from .store import Arrays, Writer, compiled

if TYPE_CHECKING:
    from scipy import sparse

VERSION = 3
Query = tuple[str, str | None]

# name -> (stored relation, whether it is read from right to left)
_SYNSET_RELATIONS = {
    "hypernym": ("hypernym", False), "hyponym": ("hypernym", True), "entailing": ("entailing", False),
    "entailed_by": ("entailing", True), "causing": ("causing", False), "caused_by": ("causing", True),
    "member_of": ("member_of", False), "has_member": ("member_of", True), "substance_of": ("substance_of", False),
    "has_substance": ("substance_of", True), "part_of": ("part_of", False), "has_part": ("part_of", True),
    "similar": ("similar", False), "verb_group": ("verb_group", False),
}  # fmt: skip
_SENSE_RELATIONS = {
    "antonym": ("antonym", False),
    "derived": ("derived", False),
    "pertainym": ("pertainym", False),
}
RELATIONS = ("synonym", *_SYNSET_RELATIONS, *_SENSE_RELATIONS, "hypernym_deep", "hyponym_deep", "sister")
_ONE_WAY = {**_SYNSET_RELATIONS, **_SENSE_RELATIONS}
# What a relation is called seen from the other word; those that are not here have no name for that.
_INVERSE = {"synonym": "synonym", "sister": "sister"}
_INVERSE |= {"hypernym_deep": "hyponym_deep", "hyponym_deep": "hypernym_deep"}
_INVERSE |= {
    name: other
    for name, (stored, inverse) in _ONE_WAY.items()
    for other, found in _ONE_WAY.items()
    if found == (stored, not inverse)
}
_PAIRS_AT_ONCE = 1 << 17
_CACHED_QUERIES = 1 << 14  # a tenth of a kilobyte each


@lru_cache(maxsize=2)
def load(path: Path) -> WordNet:
    """The WordNet in a directory or zip, compiled at its first use."""
    from .wordnet_files import FILES, compile_wordnet

    sources = [path]
    if path.is_dir():
        sources = [path / f"{kind}.{name}" for name in FILES.values() for kind in ("data", "index")]
        sources += [path / f"{name}.exc" for name in FILES.values()]

    def build(writer: Writer) -> None:
        compile_wordnet(path, writer)

    return WordNet(compiled("wordnet", VERSION, sources, build), path)


class WordNet:
    """Words are looked up in lower case with underscores for spaces; the part of speech is n, v, a, r or None."""

    def __init__(self, arrays: Arrays, path: Path) -> None:
        self.path = path
        self._arrays = arrays
        self._morphology = Morphology(arrays)
        self._starts, self._synset_of = arrays["senses.starts"], arrays["senses.synset"]
        self._n_synsets, self._n_senses = len(arrays["synset.offset"]), len(self._synset_of)
        self._steps: dict[tuple[str, bool], sparse.csr_matrix] = {}
        self._senses: dict[Query, np.ndarray] = {}

    def __reduce__(self):  # worker processes open the same arrays from the cache
        return load, (self.path,)

    # -- words

    def morphy(self, form: str, pos: str | None = None) -> str | None:
        """The first base form that WordNet knows, as NLTK's `morphy`; it does not change case."""
        parts = POS if pos is None else pos
        names, _, _ = self._morphology.bases([form] * len(parts), parts)
        return names[0] if names else None

    def morphy_all(self, forms: Sequence[str], pos: Sequence[str]) -> list[str | None]:
        """`morphy` of many forms at once, each with its own part of speech."""
        return self._morphology.first_bases(forms, pos)

    def lemma(self, word: str, pos: str | None = None) -> str:
        """The base form of a word in any case; the lower-case word itself where WordNet knows none."""
        word = word.lower()
        return self.morphy(word, pos) or word

    # -- senses

    def _find_senses(self, queries: Sequence[Query]) -> list[np.ndarray]:
        """The senses of each query's base forms, found for all at once and remembered."""
        if len(self._senses) > _CACHED_QUERIES:
            self._senses = {}
        known = self._senses  # which another thread may replace meanwhile
        new = [query for query in dict.fromkeys(queries) if query not in known]
        if new:
            forms = [word.lower().replace(" ", "_") for word, _ in new]
            parts = [POS if pos is None else plain(pos) for _, pos in new]
            of_query = np.repeat(np.arange(len(new)), [len(each) for each in parts])
            _, rows, asked = self._morphology.bases([forms[k] for k in of_query.tolist()], "".join(parts))
            column = np.array([POS.index(each) for each in "".join(parts)], dtype=np.int64)[asked]
            spans = zip(self._starts[column, rows].tolist(), self._starts[column, rows + 1].tolist(), strict=True)
            found: list[list[int]] = [[] for _ in new]
            for k, (begin, end) in zip(of_query[asked].tolist(), spans, strict=True):
                found[k] += range(begin, end)
            known.update(zip(new, (np.array(each, dtype=np.int64) for each in found), strict=True))
        return [known[query] for query in queries]

    def knows(self, queries: Sequence[Query]) -> np.ndarray:
        """[queries] whether it has any sense."""
        return np.array([len(senses) > 0 for senses in self._find_senses(queries)], dtype=bool)

    def synsets(self, word: str, pos: str | None = None) -> np.ndarray:
        """The synset numbers of a word's base forms, in NLTK's order."""
        return np.asarray(self._synset_of[self._find_senses([(word, pos)])[0]])

    def offset(self, synset: int) -> tuple[str, int]:
        """(part of speech, byte offset), the name WordNet itself gives a synset; satellites are "s"."""
        return chr(self._arrays["synset.pos"][synset]), int(self._arrays["synset.offset"][synset])

    # -- relations

    def related(self, left: Sequence[Query], right: Sequence[Query], depth: int = 3) -> dict[str, np.ndarray]:
        """For each pair (left[k], right[k]) of (word, part of speech or None), which of RELATIONS hold.

        A relation holds where it does between any sense of the one and any sense of the other: "hypernym" where
        a synset of right is a direct hypernym (or class, of an instance) of one of left, "hypernym_deep" where
        it is one within `depth` steps, "sister" where two different synsets share a direct hypernym. "antonym",
        "derived" and "pertainym" hold between the words themselves. A known word is its own synonym.
        """
        if len(left) != len(right):
            raise ValueError(f"{len(left)} left words do not pair with {len(right)} right words")
        if depth < 1:
            raise ValueError(f"depth is {depth}; a hypernym is at least one step away")
        number: dict[Query, int] = {}
        rows = [np.array([number.setdefault(q, len(number)) for q in side], np.int64) for side in (left, right)]
        return self._related(_Pairs(self, list(number), rows[0], rows[1]), depth)

    def related_both_ways(
        self, queries: Sequence[Query], left: np.ndarray, right: np.ndarray, depth: int = 3
    ) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        """As `related`, for the queries numbered left[k] and right[k], and for right[k] and left[k]."""
        if depth < 1:
            raise ValueError(f"depth is {depth}; a hypernym is at least one step away")
        knows = self.knows(queries)
        asked = np.flatnonzero(knows[left] & knows[right])  # what WordNet does not know is related to nothing
        pairs = _Pairs(self, queries, left[asked], right[asked])
        there = self._related(pairs, depth)
        back = {name: there[other] for name, other in _INVERSE.items()}
        for name in set(RELATIONS) - set(back):
            back[name] = self._linked(pairs, name, swapped=True)
        one, other = ({name: _spread(way[name], asked, len(left)) for name in RELATIONS} for way in (there, back))
        return one, other

    def _linked(self, pairs: _Pairs, name: str, swapped: bool = False) -> np.ndarray:
        stored, inverse = _ONE_WAY[name]
        step = self._step(stored, inverse != swapped)
        if name in _SENSE_RELATIONS:
            return pairs.pick(pairs.left_senses @ step @ pairs.having_sense)
        return pairs.pick(pairs.left @ step @ pairs.having)

    def _related(self, pairs: _Pairs, depth: int) -> dict[str, np.ndarray]:
        found = {"synonym": pairs.pick(pairs.left @ pairs.having)}
        found |= {name: self._linked(pairs, name) for name in _ONE_WAY}
        up = self._step("hypernym")
        found["hypernym_deep"] = pairs.pick(_reach(pairs.left, up, depth) @ pairs.having)
        found["hyponym_deep"] = pairs.pick(pairs.left @ _reach(pairs.right, up, depth).T.tocsr())
        found["sister"] = pairs.sisters(*self._upwards)
        return {name: found[name] for name in RELATIONS}

    def _step(self, name: str, inverse: bool = False) -> sparse.csr_matrix:
        """From what to what a stored relation leads, true in [from, to]."""
        if (name, inverse) not in self._steps:
            from scipy import sparse

            size = self._n_senses if name in _SENSE_RELATIONS else self._n_synsets
            ends = self._arrays[f"relation.{name}"][:, :: -1 if inverse else 1]
            true = np.ones(len(ends), dtype=bool)
            self._steps[name, inverse] = sparse.csr_matrix((true, (ends[:, 0], ends[:, 1])), shape=(size, size))
        return self._steps[name, inverse]

    @cached_property
    def _upwards(self) -> tuple[sparse.csr_matrix, np.ndarray]:
        """The steps to hypernyms, to be counted, and how many each synset has."""
        up = self._step("hypernym").astype(np.int32)
        return up, np.asarray(up.sum(1)).ravel()

    def incidence(self, queries: Sequence[Query]) -> tuple[sparse.csr_matrix, sparse.csr_matrix]:
        """(queries x synsets, queries x senses), true where the query has it."""
        from scipy import sparse

        senses = self._find_senses(queries)
        starts = np.concatenate([[0], np.cumsum([len(s) for s in senses], dtype=np.int64)])
        columns = np.concatenate(senses) if senses else np.zeros(0, np.int64)
        true = np.ones(len(columns), dtype=bool)
        by_synset = sparse.csr_matrix((true, self._synset_of[columns], starts), (len(senses), self._n_synsets))
        by_sense = sparse.csr_matrix((true.copy(), columns, starts), (len(senses), self._n_senses))
        by_synset.sum_duplicates()
        return by_synset, by_sense


class _Pairs:
    """Word pairs as rows of incidence matrices over the distinct words of either side."""

    def __init__(self, net: WordNet, queries: Sequence[Query], left: np.ndarray, right: np.ndarray) -> None:
        self.rows: list[np.ndarray] = []
        sides = []
        for numbers in (left, right):
            distinct, rows = np.unique(numbers, return_inverse=True)
            self.rows.append(rows)
            sides.append(net.incidence([queries[k] for k in distinct.tolist()]))
        (self.left, self.left_senses), (self.right, right_senses) = sides
        self.having, self.having_sense = self.right.T.tocsr(), right_senses.T.tocsr()  # [synset or sense, word]

    def pick(self, related: sparse.csr_matrix) -> np.ndarray:
        """What is there for the left word's row and the right word's column of each pair."""
        if not len(self.rows[0]) or not related.nnz:
            return np.zeros(len(self.rows[0]), dtype=bool)
        related.sum_duplicates()  # sorted rows are searched by bisection
        return np.asarray(related[self.rows[0], self.rows[1]]).ravel().astype(bool)

    def sisters(self, up: sparse.csr_matrix, ways: np.ndarray) -> np.ndarray:
        """Ways for the two words to meet in a direct hypernym, less those through one synset that both have."""
        count = [side.astype(np.int32) for side in (self.left, self.right)]
        above = [side @ up for side in count]
        weighted = count[0].multiply(ways[None, :]).tocsr()
        found = np.zeros(len(self.rows[0]), dtype=bool)
        for start in range(0, len(found), _PAIRS_AT_ONCE):  # one row a pair: bounded memory
            part = slice(start, start + _PAIRS_AT_ONCE)
            left, right = self.rows[0][part], self.rows[1][part]
            meets = above[0][left].multiply(above[1][right]).sum(1)
            same = weighted[left].multiply(count[1][right]).sum(1)
            found[part] = np.asarray(meets - same).ravel() > 0
        return found


def _spread(values: np.ndarray, at: np.ndarray, size: int) -> np.ndarray:
    out = np.zeros(size, dtype=bool)
    out[at] = values
    return out


def _reach(start: sparse.csr_matrix, step: sparse.csr_matrix, depth: int) -> sparse.csr_matrix:
    """What lies one to `depth` steps away from each row's columns."""
    edge = start @ step
    reached = edge
    for _ in range(depth - 1):
        edge = edge @ step
        if not edge.nnz:
            break
        reached = reached + edge
    return reached
