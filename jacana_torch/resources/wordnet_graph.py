"""WordNet as arrays: base forms as NLTK finds them, and the relations of many word pairs at once.

wordnet_files.py compiles the database; this module only opens the arrays. Relations need sparse matrices, so scipy
is loaded with the first one: base forms do without.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from .catalogue import WORDNET_FILES
from .store import Arrays, StringTable, compiled

if TYPE_CHECKING:
    from scipy import sparse

    from .build import Writer

VERSION = 3
Query = tuple[str, str | None]  # a word in any case, and n, v, a, s, r or None for every part of speech

POS = "nvar"
_COLUMN = np.zeros(128, np.int64)  # of a part of speech in the arrays; satellite adjectives (s) are adjectives
_COLUMN[[ord("v"), ord("a"), ord("s"), ord("r")]] = 1, 2, 2, 3
# NLTK's WordNetCorpusReader.MORPHOLOGICAL_SUBSTITUTIONS by the last letter, so that most words need one look.
_SUFFIXES: dict[str, dict[str, tuple[tuple[str, str], ...]]] = {
    "n": {
        "s": (
            ("s", ""), ("ses", "s"), ("ves", "f"), ("xes", "x"), ("zes", "z"), ("ches", "ch"), ("shes", "sh"),
            ("ies", "y"),
        ),
        "n": (("men", "man"),),
    },
    "v": {
        "s": (("s", ""), ("ies", "y"), ("es", "e"), ("es", "")),
        "d": (("ed", "e"), ("ed", "")),
        "g": (("ing", "e"), ("ing", "")),
    },
    "a": {"r": (("er", ""), ("er", "e")), "t": (("est", ""), ("est", "e"))},
    "r": {},
}  # fmt: skip

# name -> (stored relation, whether it is read from right to left)
_SYNSET_RELATIONS = {
    "hypernym": ("hypernym", False), "hyponym": ("hypernym", True), "entailing": ("entailing", False),
    "entailed_by": ("entailing", True), "causing": ("causing", False), "caused_by": ("causing", True),
    "member_of": ("member_of", False), "has_member": ("member_of", True), "substance_of": ("substance_of", False),
    "has_substance": ("substance_of", True), "part_of": ("part_of", False), "has_part": ("part_of", True),
    "similar": ("similar", False), "verb_group": ("verb_group", False),
}  # fmt: skip
_SENSE_RELATIONS = {
    "antonym": ("antonym", False), "derived": ("derived", False), "pertainym": ("pertainym", False),
}  # fmt: skip
_STORED = {**_SYNSET_RELATIONS, **_SENSE_RELATIONS}
RELATIONS = ("synonym", *_STORED, "hypernym_deep", "hyponym_deep", "sister")
# The name of a relation seen from the other word; the others have no name for that.
_CONVERSE = {
    "synonym": "synonym", "sister": "sister", "hypernym": "hyponym", "hyponym": "hypernym",
    "hypernym_deep": "hyponym_deep", "hyponym_deep": "hypernym_deep", "entailing": "entailed_by",
    "entailed_by": "entailing", "causing": "caused_by", "caused_by": "causing", "member_of": "has_member",
    "has_member": "member_of", "substance_of": "has_substance", "has_substance": "substance_of",
    "part_of": "has_part", "has_part": "part_of",
}  # fmt: skip
_PAIRS_AT_ONCE = 1 << 17
_CACHED_QUERIES = 1 << 14  # a tenth of a kilobyte each


@lru_cache(maxsize=2)
def load(path: Path) -> WordNet:
    """The WordNet in a directory or zip, compiled at its first use."""

    def fill(writer: Writer) -> None:
        from .wordnet_files import compile_wordnet

        compile_wordnet(path, writer)

    sources = [path / file for file in WORDNET_FILES] if path.is_dir() else [path]
    return WordNet(compiled("wordnet", VERSION, sources, fill), path)


class WordNet:
    """Synsets and senses are numbers; a sense is a lower-case form in a synset."""

    def __init__(self, arrays: Arrays, path: Path) -> None:
        self.path = path
        self._arrays = arrays
        self.forms = StringTable(arrays, "forms")
        self._exceptions: dict[str, dict[str, list[str]]] = arrays.meta["exceptions"]
        self._starts = arrays["senses.starts"]  # [len(POS), forms + 1] where each form's senses begin
        self._synset_of = arrays["senses.synset"]  # [senses]
        self._steps: dict[tuple[str, bool], sparse.csr_matrix] = {}
        self._senses: dict[Query, np.ndarray] = {}

    def __reduce__(self) -> tuple[Callable[[Path], WordNet], tuple[Path]]:
        return load, (self.path,)  # worker processes open the same arrays from the cache

    # -- base forms

    def morphy(self, form: str, pos: str | None = None) -> str | None:
        """The first base form that WordNet has, as NLTK's `morphy`. It does not change case."""
        parts = POS if pos is None else pos
        names, _, _ = self._bases([form] * len(parts), parts)
        return names[0] if names else None

    def morphy_all(self, forms: Sequence[str], pos: Sequence[str]) -> list[str | None]:
        """`morphy` of many forms, each with its own part of speech."""
        first: list[str | None] = [None] * len(forms)
        names, _, of_form = self._bases(forms, pos)
        for name, k in zip(reversed(names), reversed(of_form.tolist()), strict=True):
            first[k] = name
        return first

    def _bases(self, forms: Sequence[str], pos: Sequence[str]) -> tuple[list[str], np.ndarray, np.ndarray]:
        """All base forms in the order of the forms: their names, their rows and which form each one is of."""
        candidates: list[str] = []
        counts = []
        for form, part in zip(forms, pos, strict=True):
            found = self._analyses(form, "a" if part == "s" else part)
            candidates += found
            counts.append(len(found))
        of_form = np.repeat(np.arange(len(forms)), counts)
        column = _COLUMN[np.frombuffer("".join(pos).encode("ascii"), np.uint8)][of_form]
        rows = self.forms.lookup(candidates)
        known = np.flatnonzero((rows >= 0) & (self._starts[column, rows + 1] > self._starts[column, rows]))
        return [candidates[k] for k in known.tolist()], rows[known], of_form[known]

    def _analyses(self, form: str, pos: str) -> list[str]:
        """The form and its possible base forms: by the list of exceptions, else by the suffix rules."""
        bases = self._exceptions[pos].get(form)
        if bases is None:
            rules = _SUFFIXES[pos].get(form[-1:])
            if rules is None:
                return [form]
            bases = [form[: -len(old)] + new for old, new in rules if form.endswith(old)]
        return list(dict.fromkeys([form, *bases]))

    # -- senses

    def _find_senses(self, queries: Sequence[Query]) -> list[np.ndarray]:
        """The senses of each query's base forms, looked up together and remembered."""
        if len(self._senses) > _CACHED_QUERIES:
            self._senses = {}
        known = self._senses  # another thread may replace it meanwhile
        new = list(set(queries).difference(known))
        if new:
            forms: list[str] = []
            parts, counts = "", []
            for word, pos in new:
                own = POS if pos is None else pos
                forms += [word.lower().replace(" ", "_")] * len(own)
                parts += own
                counts.append(len(own))
            _, rows, of_form = self._bases(forms, parts)
            column = _COLUMN[np.frombuffer(parts.encode("ascii"), np.uint8)][of_form]
            begins, ends = self._starts[column, rows].astype(np.int64), self._starts[column, rows + 1]
            offsets = np.cumsum(ends - begins)
            senses = np.arange(offsets[-1] if len(offsets) else 0) + np.repeat(ends - offsets, ends - begins)
            of_query = np.repeat(np.arange(len(new)), counts)[of_form]
            cuts = np.concatenate([[0], offsets])[np.searchsorted(of_query, np.arange(1, len(new)))]
            known.update(zip(new, np.split(senses, cuts), strict=True))
        return list(map(known.__getitem__, queries))

    def knows(self, queries: Sequence[Query]) -> np.ndarray:
        """[queries] whether WordNet has any sense of it."""
        return np.fromiter(map(len, self._find_senses(queries)), np.int64, len(queries)) > 0

    def synsets(self, word: str, pos: str | None = None) -> np.ndarray:
        """The synset numbers of a word's base forms, in NLTK's order."""
        return np.asarray(self._synset_of[self._find_senses([(word, pos)])[0]])

    def offset(self, synset: int) -> tuple[str, int]:
        """(part of speech, byte offset): WordNet's own name of a synset. Satellites are "s"."""
        return chr(self._arrays["synset.pos"][synset]), int(self._arrays["synset.offset"][synset])

    def incidence(self, queries: Sequence[Query]) -> tuple[sparse.csr_matrix, sparse.csr_matrix]:
        """[queries, synsets] and [queries, senses], true where the query has it."""
        from scipy import sparse

        senses = self._find_senses(queries)
        starts = np.zeros(len(senses) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, senses), np.int64, len(senses)), out=starts[1:])
        columns = np.concatenate([np.zeros(0, np.int64), *senses])
        true = np.ones(len(columns), dtype=bool)
        n_synsets, n_senses = len(self._arrays["synset.offset"]), len(self._synset_of)
        by_synset = sparse.csr_matrix((true, self._synset_of[columns], starts), (len(senses), n_synsets))
        by_sense = sparse.csr_matrix((true.copy(), columns, starts), (len(senses), n_senses))
        by_synset.sum_duplicates()
        return by_synset, by_sense

    # -- relations

    def related(self, left: Sequence[Query], right: Sequence[Query], depth: int = 3) -> dict[str, np.ndarray]:
        """For each name in RELATIONS, [pairs] whether it holds between left[k] and right[k].

        A relation holds if it does between any sense of the one and any sense of the other: "hypernym" if a synset
        of right is a direct hypernym (or the class of an instance) of one of left, "hypernym_deep" if it is one
        within `depth` steps, "sister" if two different synsets share a direct hypernym. "antonym", "derived" and
        "pertainym" hold between the words themselves. A known word is its own synonym.
        """
        if len(left) != len(right):
            raise ValueError(f"{len(left)} left words do not pair with {len(right)} right words")
        queries = list(dict.fromkeys(chain(left, right)))
        number = dict(zip(queries, range(len(queries)), strict=True))
        rows = np.fromiter(map(number.__getitem__, chain(left, right)), np.int64, 2 * len(left))
        return self._related(_Pairs(self, queries, rows[: len(left)], rows[len(left) :]), depth)

    def related_both_ways(
        self, queries: Sequence[Query], left: np.ndarray, right: np.ndarray, depth: int = 3
    ) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        """`related` of the queries numbered left[k] and right[k], and of right[k] and left[k]."""
        knows = self.knows(queries)
        asked = np.flatnonzero(knows[left] & knows[right])  # unknown words have no relations
        pairs = _Pairs(self, queries, left[asked], right[asked])
        found = self._related(pairs, depth)
        there, back = {}, {}
        for name in RELATIONS:
            other = _CONVERSE.get(name)
            there[name], back[name] = np.zeros((2, len(left)), dtype=bool)
            there[name][asked] = found[name]
            back[name][asked] = found[other] if other else pairs.linked(name, swapped=True)
        return there, back

    def _related(self, pairs: _Pairs, depth: int) -> dict[str, np.ndarray]:
        if depth < 1:
            raise ValueError(f"depth is {depth}; a hypernym is at least one step away")
        found = {"synonym": pairs.pick(pairs.left @ pairs.having)}
        for name in _STORED:
            found[name] = pairs.linked(name)
        up = self.step("hypernym")
        found["hypernym_deep"] = pairs.pick(_reach(pairs.left, up, depth) @ pairs.having)
        found["hyponym_deep"] = pairs.pick(pairs.left @ _reach(pairs.right, up, depth).T.tocsr())
        found["sister"] = pairs.sisters(*self._upwards)
        return found

    def step(self, stored: str, inverse: bool = False) -> sparse.csr_matrix:
        """[from, to] true where the stored relation leads from one synset or sense to another."""
        if (stored, inverse) not in self._steps:
            from scipy import sparse

            size = len(self._synset_of if stored in _SENSE_RELATIONS else self._arrays["synset.offset"])
            ends = self._arrays[f"relation.{stored}"][:, :: -1 if inverse else 1]
            true = np.ones(len(ends), dtype=bool)
            self._steps[stored, inverse] = sparse.csr_matrix((true, (ends[:, 0], ends[:, 1])), shape=(size, size))
        return self._steps[stored, inverse]

    @cached_property
    def _upwards(self) -> tuple[sparse.csr_matrix, np.ndarray]:
        """The steps to hypernyms as counts, and [synsets] how many hypernyms each has."""
        up = self.step("hypernym").astype(np.int32)
        return up, np.asarray(up.sum(1)).ravel()


class _Pairs:
    """Word pairs as rows of incidence matrices over the distinct words of either side."""

    def __init__(self, net: WordNet, queries: Sequence[Query], left: np.ndarray, right: np.ndarray) -> None:
        self._net = net
        one, self._left_row = np.unique(left, return_inverse=True)
        other, self._right_row = np.unique(right, return_inverse=True)
        self.left, self._left_senses = net.incidence(list(map(queries.__getitem__, one.tolist())))
        self.right, right_senses = net.incidence(list(map(queries.__getitem__, other.tolist())))
        self.having, self._having_sense = self.right.T.tocsr(), right_senses.T.tocsr()  # [synset or sense, word]

    def pick(self, related: sparse.csr_matrix) -> np.ndarray:
        """[pairs] the value in the row of the left word and the column of the right word."""
        if not len(self._left_row) or not related.nnz:
            return np.zeros(len(self._left_row), dtype=bool)
        related.sum_duplicates()  # sorted rows are searched by bisection
        return np.asarray(related[self._left_row, self._right_row]).ravel().astype(bool)

    def linked(self, name: str, swapped: bool = False) -> np.ndarray:
        """[pairs] whether a stored relation holds from left to right, or from right to left if `swapped`."""
        stored, inverse = _STORED[name]
        step = self._net.step(stored, inverse != swapped)
        if name in _SENSE_RELATIONS:
            return self.pick(self._left_senses @ step @ self._having_sense)
        return self.pick(self.left @ step @ self.having)

    def sisters(self, up: sparse.csr_matrix, n_hypernyms: np.ndarray) -> np.ndarray:
        """[pairs] whether the words share a direct hypernym other than through a synset that both have."""
        left, right = self.left.astype(np.int32), self.right.astype(np.int32)
        above_left, above_right = left @ up, right @ up
        weighted = left.multiply(n_hypernyms[None, :]).tocsr()
        found = np.zeros(len(self._left_row), dtype=bool)
        for start in range(0, len(found), _PAIRS_AT_ONCE):  # one row a pair: bounded memory
            part = slice(start, start + _PAIRS_AT_ONCE)
            one, other = self._left_row[part], self._right_row[part]
            shared = above_left[one].multiply(above_right[other]).sum(1)
            same = weighted[one].multiply(right[other]).sum(1)
            found[part] = np.asarray(shared - same).ravel() > 0
        return found


def _reach(start: sparse.csr_matrix, step: sparse.csr_matrix, depth: int) -> sparse.csr_matrix:
    """The columns one to `depth` steps away from each row's own."""
    edge = start @ step
    reached = edge
    for _ in range(depth - 1):
        edge = edge @ step
        if not edge.nnz:
            break
        reached = reached + edge
    return reached
