"""Features of the Stanford aligner: of two words, of a link in its context, and of two links on a dependency edge.

A `Problem` does not depend on weights, so training computes it once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...annotate.tokens import matching_form, wordnet_pos
from ...errors import ConfigError, JacanaError
from ...features.dependency_relations import canonical, relation_class
from ...features.grid import Grid
from ...features.wordlists import WORD_CLASSES, number_value, stem, variant, word_class
from ...features.words import WordKey
from ...types import Sentence, SentencePair

CLASSES = ("function", "punct", "content")  # of target tokens: features of context have weights for each
CLASS_OF = np.array([CLASSES.index(name) if name in CLASSES else 2 for name in WORD_CLASSES])
# How the source tokens of a target head and of its child are joined.
PATHS = (
    "child", "child_same_relation", "parent", "grandchild", "grandparent", "sibling", "descendant", "ancestor",
    "near", "else", "head_alone", "child_alone", "neither",
)  # fmt: skip
JOINT = tuple(f"{c}.{p}" for c in CLASSES for p in PATHS)

_RELATIONS = (
    "synonym", "hypernym", "hyponym", "entailing", "entailed_by", "causing", "caused_by", "similar", "verb_group",
    "antonym", "derived", "pertainym", "hypernym_deep", "hyponym_deep", "sister", "part_of", "has_part",
    "member_of", "has_member",
)  # fmt: skip
# Similarity of related words, where the same word has 1; features of context compare words by it.
_SIMILAR = {"synonym": 0.8, "derived": 0.8, "pertainym": 0.8, "hypernym": 0.6, "hyponym": 0.6, "similar": 0.6}
_SPELLING = (
    "identical", "lemma", "stem", "variant", *(f"same.{name}" for name in WORD_CLASSES),
    "close", "prefix", "inside", "numbers_differ", "names_differ",
    "tag", "tag_class", "same.other_tag", "classes_differ",
)  # fmt: skip
_BY_CLASS = (
    "link", "left_alike", "right_alike", "both_alike", "next_left_alike", "next_right_alike", "head_alike",
    "child_alike", "same_relation", "same_relation_class", "far", "rival_nearer", "no_rival", "identical",
)  # fmt: skip
_WORD = WordKey(str, ("lemma", "pos"))
_NEAR = 3  # tokens
_PAIRS_AT_ONCE = 4096  # word pairs whose vectors are in memory
_DECIMALS = 9  # so that summing in another order does not break ties


# Two words


class Word(NamedTuple):
    form: str
    lemma: str
    tag: str
    word_class: str

    @classmethod
    def of(cls, token: str, lemma: str, tag: str) -> Word:
        return cls(matching_form(token).lower(), str(lemma).lower(), str(tag), word_class(matching_form(token)))


@dataclass(frozen=True)
class Lexicon:
    """Features and similarity of two words. `wordnet`: whether to use it. `vectors`: a resource, file, or None."""

    wordnet: bool = True
    vectors: str | None = "glove-840b"

    def __post_init__(self) -> None:
        if self.vectors is not None and not self.vectors:
            raise ConfigError("vectors='': name word vectors (glove-840b, glove-6b, a file), or null for none")

    @property
    def resources(self) -> tuple[str, ...]:
        from ...resources.catalogue import CATALOGUE

        named = {self.vectors} & {*CATALOGUE}  # otherwise a file
        return tuple(sorted([*filter(None, named), *["wordnet"] * self.wordnet]))

    @property
    def names(self) -> tuple[str, ...]:
        vectors = ("cosine", "cosine2", "cosine4", "no_vector") if self.vectors is not None else ()
        return (*_SPELLING, *(_RELATIONS if self.wordnet else ()), *vectors)

    def __call__(
        self, words: Sequence[Word], left: np.ndarray, right: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """[U, K] features under `names`, and [U] similarity, of words[left[u]] and words[right[u]]."""
        columns, same = _spelling(words, left, right)
        similar = np.maximum(same, 0.8 * columns["close"] ** 2)
        if self.wordnet:
            found = _related(words, left, right, ~same)
            similar = np.max([similar, *(value * found[name] for name, value in _SIMILAR.items())], axis=0)
            columns |= found
        if self.vectors is not None:
            cosine, unknown = _cosine(self.vectors, words, left, right)
            cosine = np.where(same, 0.0, cosine)
            columns |= {"cosine": cosine, "cosine2": cosine**2, "cosine4": cosine**4, "no_vector": unknown & ~same}
            similar = np.maximum(similar, cosine**2)
        table = np.column_stack([columns[name] for name in self.names]).astype(np.float64)
        return table, np.round(similar, 6)


def _spelling(
    words: Sequence[Word], left: np.ndarray, right: np.ndarray
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """The columns of _SPELLING, and [U] whether the two are the same word in some form."""

    def equal(key: Callable[[Word], str]) -> np.ndarray:
        number: dict[str, int] = {}
        codes = np.array([number.setdefault(key(word), len(number)) for word in words], dtype=np.int64)
        found: np.ndarray = codes[left] == codes[right]
        return found

    columns = {
        "identical": equal(lambda w: w.form),
        "lemma": equal(lambda w: w.lemma),
        "stem": equal(lambda w: stem(w.form)),
        "variant": equal(lambda w: variant(w.form)),
        "tag": equal(lambda w: w.tag),
        "tag_class": equal(lambda w: w.tag[:2]),
    }
    number = np.array([number_value(word.form) is not None for word in words], dtype=bool)
    amount = equal(lambda w: repr(number_value(w.form))) & (number[left] & number[right])
    same = columns["identical"] | columns["lemma"] | columns["stem"] | columns["variant"] | amount
    classes = np.array([WORD_CLASSES.index(word.word_class) for word in words], dtype=np.int64)
    for k, name in enumerate(WORD_CLASSES):
        columns[f"same.{name}"] = same & (classes[right] == k)
    names = classes == WORD_CLASSES.index("name")
    columns["numbers_differ"] = number[left] & number[right] & ~same
    columns["names_differ"] = names[left] & names[right] & ~same
    columns["same.other_tag"] = same & ~columns["tag_class"]
    light = np.isin(classes, [WORD_CLASSES.index("function"), WORD_CLASSES.index("punct")])
    columns["classes_differ"] = light[left] != light[right]
    columns |= _close(words, left, right, ~same)
    return columns, same


def _close(words: Sequence[Word], left: np.ndarray, right: np.ndarray, other: np.ndarray) -> dict[str, np.ndarray]:
    """Columns of words with similar spelling, for `other` [U] than the same word."""
    from rapidfuzz.distance import JaroWinkler, Prefix
    from rapidfuzz.process import cpdist

    a, b = [words[i].form for i in left.tolist()], [words[i].form for i in right.tolist()]
    jaro = cpdist(a, b, scorer=JaroWinkler.normalized_similarity, dtype=np.float64) if a else np.zeros(0)
    shared = cpdist(a, b, scorer=Prefix.similarity, dtype=np.int64) if a else np.zeros(0)
    length = np.array([len(word.form) for word in words])
    shorter = np.minimum(length[left], length[right])
    long = other & (shorter > 3)  # short words are similar by accident
    return {
        "close": np.where(long, np.clip((np.round(jaro, 6) - 0.7) / 0.3, 0.0, 1.0), 0.0),
        "prefix": np.where(long, shared / shorter, 0.0),
        "inside": long & np.array([x in y or y in x for x, y in zip(a, b, strict=True)], dtype=bool),
    }


def _related(
    words: Sequence[Word], left: np.ndarray, right: np.ndarray, other: np.ndarray
) -> dict[str, np.ndarray]:
    """Columns of WordNet's relations, for `other` [U] than the same word."""
    from ... import resources

    queries = [(word.lemma, wordnet_pos(word.tag)) for word in words]
    known = np.array([pos is not None for _, pos in queries], dtype=bool)
    some = np.flatnonzero(other & known[left] & known[right])
    one, two = ([queries[k] for k in side[some].tolist()] for side in (left, right))
    found: Mapping[str, np.ndarray] = resources.wordnet().related(one, two)
    out = {name: np.zeros(len(left), dtype=bool) for name in _RELATIONS}
    for name, column in out.items():
        column[some] = found[name]
    return out


def _cosine(
    name: str, words: Sequence[Word], left: np.ndarray, right: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """[U] the cosine of the word vectors, at least 0, and whether either word has no vector."""
    from ... import resources

    vectors = resources.vectors(name)
    matrix = vectors.rows(vectors.lookup([word.form for word in words])).astype(np.float64)
    out = np.empty(len(left))
    for start in range(0, len(left), _PAIRS_AT_ONCE):
        part = slice(start, start + _PAIRS_AT_ONCE)
        out[part] = np.einsum("ij,ij->i", matrix[left[part]], matrix[right[part]])
    known = np.asarray(matrix.any(axis=1))
    return np.clip(np.round(out, 6), 0.0, 1.0), ~(known[left] & known[right])


# Dependency trees


@dataclass(frozen=True)
class Tree:
    """`head` [N], -1 for a root. `child` [E]: tokens with a head. `levels`: edge numbers, the deepest first."""

    head: np.ndarray
    child: np.ndarray
    levels: list[np.ndarray]


def tree(sentence: Sentence) -> Tree:
    """Check the heads of a sentence and arrange its edges by depth."""
    head = np.array(sentence.layer("head"), dtype=np.int64)
    n = len(head)
    if ((head < -1) | (head >= n)).any():
        raise JacanaError(
            f"{str(sentence)[:60]!r} of {n} tokens has the heads {head.tolist()}: count from 0, with -1 for a root"
        )
    head = np.where(head == np.arange(n), -1, head)  # some parsers write a root as its own head
    depth, at = np.zeros(n, dtype=np.int64), head
    while (at >= 0).any():
        depth += at >= 0
        at = np.where(at >= 0, head[at], -1)
        if depth.max(initial=0) > n:
            raise JacanaError(f"the heads of {str(sentence)[:60]!r} form a circle: a parse must be a tree")
    child = np.flatnonzero(head >= 0)
    levels = [np.flatnonzero(depth[child] == d) for d in range(int(depth.max(initial=0)), 0, -1)]
    return Tree(head, child, levels)


def paths(source: Tree) -> np.ndarray:
    """[M + 1, M + 1] which of PATHS joins the choices for a head and for its child; the last choice is nothing."""
    m, head = len(source.head), source.head
    out = np.full((m + 1, m + 1), PATHS.index("else"), dtype=np.int8)
    inner = out[:m, :m]
    tokens = np.arange(m)
    inner[np.abs(tokens[:, None] - tokens) <= _NEAR] = PATHS.index("near")
    above, at = np.zeros((m, m), dtype=bool), head
    while (at >= 0).any():
        below = np.flatnonzero(at >= 0)
        above[at[below], below] = True
        at = np.where(at >= 0, head[at], -1)
    inner[above] = PATHS.index("descendant")
    inner[above.T] = PATHS.index("ancestor")
    inner[(head[:, None] == head) & (head >= 0)] = PATHS.index("sibling")
    grand = np.where(head >= 0, head[head], -1)
    for up, down, name in ((grand, "grandchild", "grandparent"), (head, "child", "parent")):
        has = np.flatnonzero(up >= 0)
        inner[up[has], has] = PATHS.index(down)
        inner[has, up[has]] = PATHS.index(name)
    out[:m, m], out[m, :m] = PATHS.index("head_alone"), PATHS.index("child_alone")
    out[m, m] = PATHS.index("neither")
    return out


# Pairs


@dataclass(frozen=True)
class Problem:
    """Features of all links of a pair. Features of context have weights for each class of the target token.

    `cells` [N, M, K]: features of links. `classes` [N]: class of each target token. `tree`: of the target. `path`
    [M + 1, M + 1]: see `paths`. `same` [N, M]: whether two tokens have the same relation to their heads.
    """

    cells: np.ndarray
    tree: Tree
    path: np.ndarray
    same: np.ndarray
    classes: np.ndarray

    def joints(self) -> np.ndarray:
        """[E, M + 1, M + 1] which of JOINT joins the choices for the ends of each edge of the target."""
        child = self.tree.child
        of = np.repeat(self.path[None], len(child), axis=0)  # of one byte each
        same = np.zeros((len(child), len(self.path)), dtype=bool)
        same[:, :-1] = self.same[child]
        of[(self.path == PATHS.index("child"))[None] & same[:, None, :]] = PATHS.index("child_same_relation")
        of += (len(PATHS) * self.classes[child]).astype(np.int8)[:, None, None]
        return of


class Extractor:
    """Computes the problems of pairs. `names`: features of two words, then those of context for each class."""

    def __init__(self, lexicon: Lexicon) -> None:
        self._lexicon = lexicon
        self.names = (*lexicon.names, *(f"{c}.{name}" for c in CLASSES for name in _BY_CLASS))

    def __call__(self, pairs: Sequence[SentencePair]) -> list[Problem]:
        grid = Grid(pairs)
        words = grid.words(_WORD)
        found = [Word.of(*value) for value in words.lexicon.words]
        table, similar = self._lexicon(found, words.pairs.left, words.pairs.right)
        classes = CLASS_OF[[WORD_CLASSES.index(word_class(token)) for token in grid.target_tokens]]
        trees = [(tree(pair.source), tree(pair.target)) for pair in pairs]
        same = _relations(grid)
        context = _context(grid, similar[words.cell], trees, same)
        identical = table[words.cell, :1]
        cells = np.concatenate([table[words.cell], context, identical], axis=1).astype(np.float32)
        problems = []
        for k, (source, target) in enumerate(trees):
            m, n = int(grid.n_source[k]), int(grid.n_target[k])
            first, token = int(grid.cell_start[k]), int(grid.target_start[k])
            part = slice(first, first + m * n)
            own = cells[part].reshape(m, n, cells.shape[1]).transpose(1, 0, 2)
            related = same[0][part].reshape(m, n).T
            problems.append(Problem(own, target, paths(source), related, classes[token : token + n]))
        return problems

    def scores(self, problem: Problem, weights: np.ndarray) -> np.ndarray:
        """[N, M] the score of each link."""
        of_words = len(self._lexicon.names)
        of_class = weights[of_words:].reshape(len(CLASSES), -1)[problem.classes]
        own = np.concatenate([np.broadcast_to(weights[:of_words], (len(of_class), of_words)), of_class], axis=1)
        scores: np.ndarray = np.round((problem.cells @ own[:, :, None])[:, :, 0], _DECIMALS)
        return scores

    def total(self, problem: Problem, choice: np.ndarray) -> np.ndarray:
        """[K] the sum of the features of the links of a map (see `Stanford.features`)."""
        of_words = len(self._lexicon.names)
        linked = np.flatnonzero(choice < problem.cells.shape[1])
        own = problem.cells[linked, choice[linked]].astype(np.float64)
        of_class = np.zeros((len(CLASSES), len(_BY_CLASS)))
        np.add.at(of_class, problem.classes[linked], own[:, of_words:])
        return np.concatenate([own[:, :of_words].sum(axis=0), of_class.ravel()])


def _relations(grid: Grid) -> tuple[np.ndarray, np.ndarray]:
    """[C] whether two tokens have the same relation to their heads, and one of the same class."""
    number: dict[str, int] = {}
    sides = [
        [canonical(str(label)) for label in layer("deprel")] for layer in (grid.source_layer, grid.target_layer)
    ]
    out = []
    for name_of in (str, relation_class):
        ids = [
            np.array([number.setdefault(name_of(x), len(number)) for x in side], dtype=np.int64) for side in sides
        ]
        out.append(ids[0][grid.source_token] == ids[1][grid.target_token])
    return out[0], out[1]


def _context(
    grid: Grid, similar: np.ndarray, trees: Sequence[tuple[Tree, Tree]], same: tuple[np.ndarray, np.ndarray]
) -> np.ndarray:
    """[C, V] the features of _BY_CLASS but the last: of neighbours, heads and children, and of competitors."""
    padded = np.append(similar, 0.0)  # -1 is outside
    left, right = padded[grid.shift(-1, -1)], padded[grid.shift(1, 1)]
    heads = [np.concatenate([side[k].head for side in trees] or [np.zeros(0, np.int64)]) for k in (0, 1)]
    above = grid.cell_at(grid.pair, heads[0][grid.source_token], heads[1][grid.target_token])
    inside = (heads[0][grid.source_token] >= 0) & (heads[1][grid.target_token] >= 0)
    below = np.zeros(len(similar) + 1)
    np.maximum.at(below, np.where(inside, above, -1), similar)
    roots = (heads[0][grid.source_token] < 0) & (heads[1][grid.target_token] < 0)
    far = np.abs((grid.m + 0.5) / grid.n_source[grid.pair] - (grid.n + 0.5) / grid.n_target[grid.pair])
    nearer, alone = competitors(grid, similar)
    return np.column_stack([
        np.ones(len(similar)), left, right, left * right,
        padded[grid.shift(-2, -2)], padded[grid.shift(2, 2)],
        np.where(inside, padded[above], 0.5 * roots), below[:-1],
        same[0], same[1], far, nearer, alone,
    ])  # fmt: skip


def competitors(grid: Grid, similar: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """[C] whether the target token has a competitor that is nearer, and whether it has no competitor.

    A competitor is another source token that is at least as similar to the target token.
    """
    m, n = grid.n_source[grid.pair], grid.n_target[grid.pair]
    away = np.abs((2 * grid.m + 1) * n - (2 * grid.n + 1) * m)  # integers, so that ties are exact
    order = np.lexsort((-similar, grid.target_token))  # the cells of each target token, the most similar first
    token, value = grid.target_token[order], similar[order]
    apart = token * (int(away.max(initial=0)) + 1)  # keeps the running minimum of a token below those before
    nearest = np.minimum.accumulate(away[order] - apart) + apart
    new = np.append(True, (np.diff(token) != 0) | (np.diff(value) != 0))[: len(order)]
    group = np.cumsum(new) - 1
    last = np.append(np.flatnonzero(new)[1:] - 1, len(order) - 1)[group] if len(order) else group
    nearer, alone = np.empty(len(order), dtype=bool), np.empty(len(order), dtype=bool)
    nearer[order] = nearest[last] < away[order]
    alone[order] = last == np.searchsorted(token, token)
    return nearer, alone
