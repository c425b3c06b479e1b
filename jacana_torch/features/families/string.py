"""The string family: how similar two words look (Sharma et al., 2018, Algorithm 1), with its special cases.

Besides the usual string measures: numbers, short names, acronyms, and closed classes of words by name.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Annotated, ClassVar

import numpy as np

from ...util.build import INTERNAL, Share
from ..api import Block, NodeBlocks, prefixed
from ..grid import Grid, Named
from ..string_similarity import (
    FORM,
    MEASURES,
    SAME,
    base_similarity,
    best_measure,
    best_of,
    identical,
    of_lower_case,
    same_word,
    similarities,
)
from ..wordlists import (
    FUNCTION_WORDS,
    NEGATIONS,
    NICKNAMES,
    WORD_CLASSES,
    number_value,
    variant,
    word_class,
    word_classes,
)
from ..words import WordKey, WordPairs

NULL_COLUMNS = ("bias", "best_identical", "best_same", "best_max", "no_same", "nothing_alike", "rival")
_NICKNAME_WORDS = frozenset().union(*NICKNAMES)


@dataclass(frozen=True)
class String:
    """`threshold`: the maximum of the measures counts as a match above it (Algorithm 1)."""

    threshold: Share = 0.75
    name: str = "string"
    requires: Annotated[tuple[str, ...], INTERNAL] = ()
    resources: Annotated[tuple[str, ...], INTERNAL] = ()
    key: ClassVar[WordKey] = FORM

    def word_blocks(self, pairs: WordPairs) -> tuple[Block, ...]:
        similarity = pairs.shared(("string.similarity", self.threshold), partial(self._similarity, pairs))
        alike = identical(pairs)
        own = partial(_own_columns, prefix="same=", classes=("punct",))
        identity, number = pairs.lexicon.named("string.identity", own)
        class_names, class_table = _class_table()
        classes = pairs.lexicon.attribute("class", word_classes)
        row = classes[pairs.left] * len(WORD_CLASSES) + classes[pairs.right]
        # A column for each two different function words (`of~for`), a class so small that training sees them all.
        both = pairs.both("function", partial(of_lower_case, FUNCTION_WORDS.__contains__, dtype=bool)) & ~alike
        words, names = pairs.lexicon.words, dict[str, int]()
        two = np.full(len(pairs), -1, dtype=np.int64)
        for u in np.flatnonzero(both).tolist():
            name = f"{words[pairs.left[u]].lower()}~{words[pairs.right[u]].lower()}"
            two[u] = names.setdefault(name, len(names))
        return (
            Block(*similarity),
            Block(class_names, class_table, (row * 2 + alike) * 2 + same_word(pairs)),
            Block(identity, None, np.where(alike, number[pairs.left], -1)),
            Block(tuple(names), None, two),
        )

    def __call__(self, grid: Grid) -> NodeBlocks:
        """Acronyms; and evidence of NULL: the word's class, and how good its best partner would be."""
        base, best = grid.per_cell(base_similarity), grid.row_max(grid.per_cell(best_measure))
        alike, same, best = grid.row_max(base) >= 1, best == SAME, np.minimum(best, 1.0)
        column_best = grid.column_max(base)[grid.target_token]
        competitor = grid.row_max(np.where(base > 0, column_best - base, 0.0))
        values = np.column_stack([np.ones(len(best)), alike, same, best, ~same, best < 0.5, competitor])
        words = grid.words(FORM)
        classes = words.lexicon.attribute("class", word_classes)[words.source]
        own = partial(_own_columns, prefix="word=", classes=WORD_CLASSES)
        names, number = words.lexicon.named("string.null", own)
        null = (
            Block(NULL_COLUMNS, values),
            Block(prefixed("class=", WORD_CLASSES), None, classes),
            Block(prefixed("unmatched=", WORD_CLASSES), None, np.where(same, -1, classes)),
            Block(names, None, number[words.source]),
        )
        return NodeBlocks((Block(("acronym",), _acronyms(grid)[:, None]),), null)

    def _similarity(self, pairs: WordPairs) -> Named:
        """Names and a table [U, K] of what is the same for two words in either order."""
        measures, same, alike, best = (
            similarities(pairs),
            same_word(pairs),
            identical(pairs),
            np.minimum(best_of(pairs), 1.0),
        )
        columns = dict(zip(MEASURES, measures.T, strict=True))
        columns |= {"identical": pairs.left == pairs.right, "identical_ci": alike, "same_word": same}
        columns["same_word_only"] = same & ~alike
        columns["max"] = best
        columns["max_match"] = np.where(~same & (best > self.threshold), best, 0.0)
        for bound in (0.6, 0.75, 0.85, 0.92):
            columns[f"jaro_winkler>{bound}"] = ~same & (measures[:, 0] > bound)
        columns["variant"] = ~alike & pairs.equal("variant", partial(of_lower_case, variant))
        columns["phonetic"] = ~same & pairs.equal("phonetic", partial(of_lower_case, _phonetic))
        value = pairs.lexicon.attribute("number", partial(of_lower_case, number_value, dtype=float))
        left, right = value[pairs.left], value[pairs.right]
        both = ~np.isnan(left) & ~np.isnan(right)
        columns |= {"number_equal": both & (left == right), "number_differs": both & (left != right)}
        columns["number_or_not"] = np.isnan(left) != np.isnan(right)
        columns["nickname"] = np.zeros(len(pairs), dtype=bool)
        listed = pairs.both("nickname", partial(of_lower_case, _NICKNAME_WORDS.__contains__, dtype=bool))
        words = pairs.lexicon.words
        for u in np.flatnonzero(listed).tolist():
            two = frozenset((words[pairs.left[u]].lower(), words[pairs.right[u]].lower()))
            columns["nickname"][u] = two in NICKNAMES
        columns["negations"] = pairs.both("negation", partial(of_lower_case, NEGATIONS.__contains__, dtype=bool))
        table = np.empty((len(columns), len(pairs)))
        for line, values in zip(table, columns.values(), strict=True):
            line[:] = values
        return tuple(columns), table.T


def _phonetic(word: str) -> str:
    import jellyfish

    return jellyfish.metaphone(word) if word.isalpha() and word.isascii() else ""


def _own_columns(words: Sequence[str], prefix: str, classes: Container[str]) -> list[str | None]:
    """[W] a column for each function word (`the` says less than `between`) and each character of some classes."""
    columns: list[str | None] = []
    for word in map(str.lower, words):
        own = word in FUNCTION_WORDS or len(word) == 1 and word_class(word) in classes
        columns.append(f"{prefix}{word}" if own else None)
    return columns


@lru_cache(maxsize=1)
def _class_table() -> Named:
    """A row for each two word classes, identical or not, the same word or not."""
    n = len(WORD_CLASSES)
    left, right, alike, same = np.indices((n, n, 2, 2)).reshape(4, -1)
    columns = {}
    for i, a in enumerate(WORD_CLASSES):
        columns[f"identical:{a}"] = (alike == 1) & (left == i)
        columns[f"same:{a}"] = (same == 1) & (alike == 0) & (left == i)
        for j, b in enumerate(WORD_CLASSES):
            columns[f"differ:{a}-{b}"] = (same == 0) & (left == i) & (right == j)
    return tuple(columns), np.column_stack(list(columns.values())).astype(np.float64)


# Acronyms: `U.N.` and `United Nations`


def are_acronyms(words: Sequence[str]) -> np.ndarray:
    """[W] whether words could be acronyms: two to six capitals, with or without dots."""
    found = np.array(list(map(str.isupper, words)), dtype=bool)  # most are not
    for k in np.flatnonzero(found).tolist():
        letters = words[k].replace(".", "")
        found[k] = 1 < len(letters) <= 6 and letters.isalpha()
    return found


def _acronyms(grid: Grid) -> np.ndarray:
    """[C] whether one word is an acronym and the other one of the words whose initials it spells."""
    found, words = np.zeros(grid.n_cells), grid.words(FORM)
    candidate = words.lexicon.attribute("acronym", are_acronyms)
    for token in np.flatnonzero(candidate[words.source]).tolist():
        pair, m = int(grid.source_pair[token]), int(grid.source_position[token])
        one, other = grid.pairs[pair].source.tokens, grid.pairs[pair].target.tokens
        found[grid.cell_start[pair] + m * len(other) + _spelled_by(one[m], other)] = 1.0
    for token in np.flatnonzero(candidate[words.target]).tolist():
        pair, n = int(grid.target_pair[token]), int(grid.target_position[token])
        one, other = grid.pairs[pair].target.tokens, grid.pairs[pair].source.tokens
        found[grid.cell_start[pair] + _spelled_by(one[n], other) * len(one) + n] = 1.0
    return found


def _spelled_by(acronym: str, tokens: Sequence[str]) -> np.ndarray:
    """Positions of capitalised words whose initials spell an acronym; words like "of" between may be left out."""
    letters, found = acronym.replace(".", "") if are_acronyms([acronym])[0] else "", list[int]()
    for start, token in enumerate(tokens if letters else ()):
        if token[:1] != letters[0] or len(token) < 2:
            continue
        run, k = [start], start + 1
        while len(run) < len(letters) and k < len(tokens):
            if tokens[k][:1] == letters[len(run)]:
                run.append(k)
            elif tokens[k].lower() not in FUNCTION_WORDS:
                break
            k += 1
        if len(run) == len(letters):
            found += run
    return np.array(found, dtype=np.int64)
