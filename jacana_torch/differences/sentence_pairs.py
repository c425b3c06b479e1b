"""Which sentences of two texts belong together: candidates by their words, scored by their alignments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..annotate.tokens import matching_form
from ..features.wordlists import FUNCTION_WORDS, stem
from ..tasks.content import weight
from ..types import Alignment, Sentence, SentencePair
from .pairing import Block, Paired, paired

if TYPE_CHECKING:
    from ..model.model import Model

NEEDED = 0.35  # share of the words' weight that has to be aligned for two sentences to belong together
NEEDED_MOVED = 0.5  # of sentences that are not in the order of the text
_MOST_CANDIDATES = 4  # of each sentence, by the words that both have
_LEAST_SHARED = 0.12  # of their weight, for candidates
_MOST_REPEATED = 20  # places of a repeated sentence, before and after, that it may be paired with
_PUNCTUATION = 0.02  # weight of a punctuation mark


def paired_sentences(
    left: Sequence[Sentence], right: Sequence[Sentence], model: Model
) -> tuple[list[Paired], Mapping[Block, Alignment], tuple[np.ndarray, np.ndarray]]:
    """Pair the sentences; return the alignments of the blocks that were considered as well.

    Last comes the largest share of each sentence, of either text, that any sentence of the other text aligns.
    """
    forms = [[tuple(matching_form(w).lower() for w in s.tokens) for s in side] for side in (left, right)]
    weights = [[np.array([_weight(w) for w in own]) for own in side] for side in forms]
    blocks = _candidates(forms[0], forms[1], weights[0], weights[1])
    same = [b for b in blocks if _span(forms[0], b[0], b[1]) == _span(forms[1], b[2], b[3])]
    asked = sorted(set(blocks) - set(same))
    pairs = [SentencePair(bare(left, b[0], b[1]), bare(right, b[2], b[3])) for b in asked]
    found = {block: alignment for block, alignment in zip(asked, _aligned(model, pairs), strict=True) if alignment}
    scores, moved = {}, {}
    shared = np.zeros(len(left)), np.zeros(len(right))
    for block in same:
        total = 2 * float(sum(weights[0][i].sum() for i in range(block[0], block[1])))
        scores[block] = (1 - NEEDED) * total
        if any(map(_has_words, weights[0][block[0] : block[1]])):
            moved[block] = (1 - NEEDED_MOVED) * total
    for block, alignment in found.items():
        source = np.concatenate(weights[0][block[0] : block[1]])
        target = np.concatenate(weights[1][block[2] : block[3]])
        linked = (
            source[sorted({i for i, _ in alignment.sure})].sum(),
            target[sorted({j for _, j in alignment.sure})].sum(),
        )
        total = source.sum() + target.sum()
        scores[block] = float(sum(linked) - NEEDED * total)
        if _has_words(source) and _has_words(target):
            moved[block] = float(sum(linked) - NEEDED_MOVED * total)
        for side, k, own, words in ((0, block[0], linked[0], source), (1, block[2], linked[1], target)):
            if block[1] - block[0] == block[3] - block[2] == 1:
                shared[side][k] = max(shared[side][k], own / words.sum())
    return paired(scores, len(left), len(right), moved), found, shared


def _weight(word: str) -> float:
    return weight(word) if any(map(str.isalnum, word)) else _PUNCTUATION


def _has_words(weights: np.ndarray) -> bool:
    """Whether a sentence is more than punctuation, which does not move."""
    return bool((weights > _PUNCTUATION).any())


def _span(forms: Sequence[tuple[str, ...]], first: int, last: int) -> tuple[str, ...]:
    return tuple(word for k in range(first, last) for word in forms[k])


def _candidates(
    left: Sequence[tuple[str, ...]],
    right: Sequence[tuple[str, ...]],
    left_weights: Sequence[np.ndarray],
    right_weights: Sequence[np.ndarray],
) -> list[Block]:
    """Blocks worth aligning: sentences that are the same, or that share enough stems; and their neighbours."""
    from scipy import sparse

    if not left or not right:
        return []
    stems: dict[str, int] = {}
    tables = []
    for side in (left, right):
        rows, columns = [], []
        for k, words in enumerate(side):
            for one in {stem(word) for word in words if word not in FUNCTION_WORDS} or set(words):
                rows.append(k)
                columns.append(stems.setdefault(one, len(stems)))
        tables.append((rows, columns))
    value = np.array([_weight(word) for word in stems])
    dense = [
        sparse.csr_matrix((value[columns] ** 0.5, (rows, columns)), (len(side), len(stems)))
        for (rows, columns), side in zip(tables, (left, right), strict=True)
    ]
    shared = (dense[0] @ dense[1].T).toarray()
    totals = [np.maximum(np.asarray(d.multiply(d).sum(1)).ravel(), 1e-9) for d in dense]
    likely = 2 * shared / (totals[0][:, None] + totals[1])
    contained = shared / np.minimum(totals[0][:, None], totals[1])
    found: set[Block] = set()
    same: dict[tuple[str, ...], list[int]] = {}
    for j, words in enumerate(right):
        same.setdefault(words, []).append(j)
    seen: dict[tuple[str, ...], int] = {}
    settled: tuple[set[int], set[int]] = set(), set()
    for i, words in enumerate(left):
        rank = seen[words] = seen.get(words, -1) + 1  # of a line that comes a thousand times, only near ones
        for j in same.get(words, [])[max(0, rank - _MOST_REPEATED) : rank + _MOST_REPEATED + 1]:
            found.add((i, i + 1, j, j + 1))
            settled[0].add(i)
            settled[1].add(j)
    open_rows = [i for i in range(len(left)) if i not in settled[0]]
    open_columns = [j for j in range(len(right)) if j not in settled[1]]
    ones: set[tuple[int, int]] = set()
    for rows, columns, turned in ((open_rows, open_columns, False), (open_columns, open_rows, True)):
        table = likely.T if turned else likely
        for k in rows:
            order = sorted(columns, key=(-table[k]).__getitem__)[:_MOST_CANDIDATES]  # stable, so by number
            ones.update((o, k) if turned else (k, o) for o in order if table[k, o] >= _LEAST_SHARED)
    found.update((i, i + 1, j, j + 1) for i, j in ones)
    return sorted(found | _merged(ones, contained, settled, len(left), len(right)))


def _merged(
    ones: set[tuple[int, int]], contained: np.ndarray, settled: tuple[set[int], set[int]], m: int, n: int
) -> set[Block]:
    """Blocks of one and two sentences, both of which share words with the one."""
    found: set[Block] = set()
    for i, j in ones:
        for other in (j - 1, j + 1):
            if 0 <= other < n and other not in settled[1] and contained[i, other] >= 2 * _LEAST_SHARED:
                found.add((i, i + 1, min(j, other), max(j, other) + 1))
        for other in (i - 1, i + 1):
            if 0 <= other < m and other not in settled[0] and contained[other, j] >= 2 * _LEAST_SHARED:
                found.add((min(i, other), max(i, other) + 1, j, j + 1))
    return found


def _aligned(model: Model, pairs: Sequence[SentencePair]) -> Iterator[Alignment | None]:
    for found in model.align_stream(pairs, batch_size=256, on_error="yield"):
        yield found if isinstance(found, Alignment) else None


def bare(every: Sequence[Sentence], first: int, last: int) -> Sentence:
    return Sentence([token for k in range(first, last) for token in every[k].tokens])
