"""WordNet as arrays: base forms as NLTK finds them, and the relations of many word pairs at once.

wordnet_files.py compiles the database; this module only opens the arrays. Relations are joins of flat arrays:
sparse matrices were no faster, and importing scipy.sparse took a third of the time to align one pair.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from .catalogue import WORDNET_FILES
from .store import Arrays, StringTable, compiled, entries

if TYPE_CHECKING:
    from scipy import sparse

    from .build import Writer

VERSION = 4
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

# Relations of the compiled edges, by number. The first three do not occur there: they come from hypernyms.
EDGES = (
    "synonym", "hypernym", "hypernym_deep", "entailing", "causing", "member_of", "substance_of", "part_of",
    "similar", "verb_group", "antonym", "derived", "pertainym",
)  # fmt: skip
# name -> (relation of an edge, whether the edge leads from the right word to the left one)
_READ = {
    "synonym": ("synonym", False), "hypernym": ("hypernym", False), "hyponym": ("hypernym", True),
    "entailing": ("entailing", False), "entailed_by": ("entailing", True), "causing": ("causing", False),
    "caused_by": ("causing", True), "member_of": ("member_of", False), "has_member": ("member_of", True),
    "substance_of": ("substance_of", False), "has_substance": ("substance_of", True),
    "part_of": ("part_of", False), "has_part": ("part_of", True),
    "similar": ("similar", False), "verb_group": ("verb_group", False),
    "antonym": ("antonym", False), "derived": ("derived", False), "pertainym": ("pertainym", False),
    "hypernym_deep": ("hypernym_deep", False), "hyponym_deep": ("hypernym_deep", True),
}  # fmt: skip
RELATIONS = (*_READ, "sister")
_PAIRS_AT_ONCE = 1 << 17
_CACHED_QUERIES = 1 << 14  # a tenth of a kilobyte each


@lru_cache(maxsize=2)
def load(path: Path) -> WordNet:
    """The WordNet in a directory or zip, compiled at its first use."""

    def fill(writer: Writer) -> None:
        from .wordnet_files import compile_wordnet

        compile_wordnet(path, writer)

    sources = map(path.joinpath, WORDNET_FILES) if path.is_dir() else (path,)
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
        self._up_starts, self._up = arrays["hypernyms.starts"], arrays["hypernyms.to"]
        self._senses: dict[Query, np.ndarray] = {}

    def __reduce__(self) -> tuple[Callable[[Path], WordNet], tuple[Path]]:
        return load, (self.path,)  # worker processes open the same arrays from the cache

    # -- base forms

    def morphy(self, form: str, pos: str | None = None) -> str | None:
        """Return the first base form that WordNet has, as NLTK's `morphy`. Case stays as it is."""
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
        """All base forms in the order of the forms: their names, their rows and which form each one is of.

        Candidates are the form itself, and what the list of exceptions has for it or else the suffix rules make.
        """
        candidates: list[str] = []
        counts = []
        for form, part in zip(forms, pos, strict=True):
            part = "a" if part == "s" else part
            exceptions = self._exceptions[part].get(form)
            found = dict.fromkeys([form, *(exceptions or ())])
            if exceptions is None:
                for old, new in _SUFFIXES[part].get(form[-1:], ()):
                    if form.endswith(old):
                        found[form[: -len(old)] + new] = None
            candidates += found
            counts.append(len(found))
        of_form = np.repeat(np.arange(len(forms)), counts)
        column = _COLUMN[np.frombuffer("".join(pos).encode("ascii"), np.uint8)][of_form]
        rows = self.forms.lookup(candidates)
        known = np.flatnonzero((rows >= 0) & (self._starts[column, rows + 1] > self._starts[column, rows]))
        return list(map(candidates.__getitem__, known.tolist())), rows[known], of_form[known]

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
            base, senses = entries(self._starts.ravel(), column * self._starts.shape[1] + rows)
            of_sense = np.repeat(np.arange(len(new)), counts)[of_form][base]
            cuts = np.searchsorted(of_sense, np.arange(1, len(new)))
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

    def _flat_senses(self, queries: Sequence[Query]) -> tuple[np.ndarray, np.ndarray]:
        """The senses of all queries, one after the other, and the number of each one's query."""
        senses = self._find_senses(queries)
        query = np.repeat(np.arange(len(senses)), np.fromiter(map(len, senses), np.int64, len(senses)))
        return np.concatenate([np.zeros(0, np.int64), *senses]), query

    def incidence(self, queries: Sequence[Query]) -> sparse.csr_matrix:
        """[queries, synsets] true where the query has the synset."""
        from scipy import sparse

        senses, query = self._flat_senses(queries)
        true = np.ones(len(senses), dtype=bool)
        shape = len(queries), len(self._arrays["synset.offset"])
        return sparse.csr_matrix((true, (query, self._synset_of[senses])), shape)

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
        return self.related_both_ways(queries, rows[: len(left)], rows[len(left) :], depth)[0]

    def related_both_ways(
        self, queries: Sequence[Query], left: np.ndarray, right: np.ndarray, depth: int = 3
    ) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        """`related` of the queries numbered left[k] and right[k], and of right[k] and left[k]."""
        if depth < 1:
            raise ValueError(f"depth is {depth}; a hypernym is at least one step away")
        senses, word = self._flat_senses(queries)
        synset = self._synset_of[senses]
        knows = np.bincount(word, minlength=len(queries)) > 0
        asked = np.flatnonzero(knows[left] & knows[right])  # unknown words have no relations
        one, other = left[asked], right[asked]
        ways = np.zeros((len(EDGES), 2, len(left)), dtype=bool)  # from left to right, and back
        if len(asked):
            keys = np.concatenate([one * len(queries) + other, other * len(queries) + one])
            distinct, place = np.unique(keys, return_inverse=True)
            found = self._connected(senses, synset, word, distinct, len(queries), depth)
            ways[:, :, asked] = found[:, place].reshape(len(EDGES), 2, -1)
        there, back = {}, {}
        for name, (edge, swapped) in _READ.items():
            there[name] = ways[EDGES.index(edge), int(swapped)]
            back[name] = ways[EDGES.index(edge), int(not swapped)]
        there["sister"] = back["sister"] = np.zeros(len(left), dtype=bool)
        for start in range(0, len(asked), _PAIRS_AT_ONCE):  # bounded memory
            part = slice(start, start + _PAIRS_AT_ONCE)
            there["sister"][asked[part]] = self._sisters(synset, word, one[part], other[part], len(queries))
        return there, back

    def _connected(
        self, senses: np.ndarray, synset: np.ndarray, word: np.ndarray, keys: np.ndarray, n_words: int, depth: int
    ) -> np.ndarray:
        """[EDGES, keys] whether an edge leads from one word to another. Keys are from * n_words + to, sorted.

        The nodes of the graph are synsets, then senses. All edges from the words' nodes are joined with the words
        that have the node where they end.
        """
        nodes, owner = np.concatenate([synset, len(self._up_starts) - 1 + senses]), np.concatenate([word, word])
        row, at = entries(self._arrays["edges.starts"], nodes)
        ends = [(word, synset, np.full(len(word), EDGES.index("synonym"), np.uint8))]
        ends.append((owner[row], self._arrays["edges.to"][at], self._arrays["edges.kind"][at]))
        reaching, reached = word, synset
        for step in range(depth):
            row, at = entries(self._up_starts, reached)
            reaching, reached = reaching[row], self._up[at]
            for name in ("hypernym", "hypernym_deep")[step > 0 :]:
                ends.append((reaching, reached, np.full(len(row), EDGES.index(name), np.uint8)))
        reaching, reached, kind = map(np.concatenate, zip(*ends, strict=True))
        starts = np.zeros(len(self._arrays["edges.starts"]), np.int64)
        np.cumsum(np.bincount(nodes, minlength=len(starts) - 1), out=starts[1:])
        row, at = entries(starts, reached)
        joined = reaching[row] * n_words + owner[np.argsort(nodes, kind="stable")][at]
        place = np.minimum(np.searchsorted(keys, joined), len(keys) - 1)
        match = keys[place] == joined
        found = np.zeros((len(EDGES), len(keys)), dtype=bool)
        found[kind[row][match], place[match]] = True
        return found

    def _sisters(
        self, synset: np.ndarray, word: np.ndarray, left: np.ndarray, right: np.ndarray, n_words: int
    ) -> np.ndarray:
        """[pairs] whether different synsets of the two words share a direct hypernym."""
        row, at = entries(self._up_starts, synset)
        synset, word, above = synset[row], word[row], self._up[at]
        sisters = np.zeros(len(left), dtype=bool)
        if not len(word):
            return sisters
        key = word * len(self._up_starts) + above
        order = np.argsort(key, kind="stable")
        keys, first = np.unique(key[order], return_index=True)
        lowest = np.minimum.reduceat(synset[order], first)  # of the word's synsets below this hypernym
        highest = np.maximum.reduceat(synset[order], first)
        starts = np.zeros(n_words + 1, np.int64)
        np.cumsum(np.bincount(word, minlength=n_words), out=starts[1:])
        pair, at = entries(starts, left)
        wanted = right[pair] * len(self._up_starts) + above[at]
        place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        differs = (lowest[place] != synset[at]) | (highest[place] != synset[at])
        sisters[pair[(keys[place] == wanted) & differs]] = True
        return sisters
