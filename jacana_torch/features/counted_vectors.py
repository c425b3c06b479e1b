"""Distributional vectors counted over a corpus: the contexts in which each word was seen, and how often.

A corpus of tokenised sentences (parsed, for dependency contexts) is read once, a few thousand sentences at a time,
and only counts are kept. They are saved as one file, and compared by the measures of Sharma et al.'s Algorithm 2.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from ..errors import ConfigError, JacanaError
from ..resources.store import put_in_place, unfinished
from ..types import Sentence
from .api import Block
from .association import ASSOCIATIONS, NOTHING, measure_blocks, measures
from .dependency_relations import canonical
from .grid import Grid
from .lexical import LOWER, lower_form

SENTENCES_AT_A_TIME = 2000
PAIRS_AT_A_TIME = 20_000
FORMAT = "jacana-torch counts 1"
CONTEXTS = ("window", "dependency")


@dataclass(frozen=True)
class CountedVectors:
    """`counts` [W, F] for `words`; `word_total` [W], `context_total` [F] and `total` as before pruning."""

    words: tuple[str, ...]
    counts: sparse.csr_matrix
    word_total: np.ndarray
    context_total: np.ndarray
    total: int
    contexts: str
    _number: dict[str, int] = field(init=False, repr=False, compare=False)
    _tables: list[tuple[sparse.csr_matrix, np.ndarray, np.ndarray]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        number = {word: i for i, word in enumerate(self.words)}
        entries = self.counts.tocoo()
        rows, columns, observed = entries.row, entries.col, entries.data.astype(np.float64)
        expected = self.word_total[rows] * (self.context_total[columns] / max(self.total, 1))
        tables = []
        for measure in ASSOCIATIONS:
            table = sparse.csr_matrix((measure(observed, expected), (rows, columns)), shape=self.counts.shape)
            table.eliminate_zeros()
            tables.append((table, _row_sums(table), np.sqrt(_row_sums(table.multiply(table)))))
        object.__setattr__(self, "_number", number)
        object.__setattr__(self, "_tables", tables)

    def lookup(self, words: Sequence[str]) -> np.ndarray:
        """[len(words)] the row of each word, -1 if it was not counted."""
        return np.array([self._number.get(lower_form(word), -1) for word in words], dtype=np.int64)

    def similarity(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """[U, 6] association.MEASURES of rows `left` and `right`; 0 where either is -1."""
        out = np.zeros((len(left), 3 * len(ASSOCIATIONS)))
        known = np.flatnonzero((left >= 0) & (right >= 0))
        for start in range(0, len(known), PAIRS_AT_A_TIME):
            at = known[start : start + PAIRS_AT_A_TIME]
            a, b = left[at], right[at]
            columns = []
            for table, total, norm in self._tables:
                x, y = table[a], table[b]
                dot, shared = _row_sums(x.multiply(y)), _row_sums(x.minimum(y))
                columns += measures(shared, total[a], total[b], dot, norm[a] * norm[b])
            out[at] = np.stack(columns, axis=1)
        return out

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one .npz file, completely or not at all."""
        path = Path(path)
        meta = json.dumps({"format": FORMAT, "contexts": self.contexts, "total": self.total})
        text = json.dumps(self.words).encode()
        try:
            with unfinished(path.parent) as part:
                with open(part, "wb") as file:
                    np.savez_compressed(
                        file, meta=np.frombuffer(meta.encode(), np.uint8), words=np.frombuffer(text, np.uint8),
                        data=self.counts.data, indices=self.counts.indices, indptr=self.counts.indptr,
                        word_total=self.word_total, context_total=self.context_total,
                    )  # fmt: skip
                put_in_place(part, path)
        except OSError as error:
            raise JacanaError(f"{path}: cannot be written: {error.strerror}") from None

    @staticmethod
    def load(path: str | os.PathLike[str]) -> CountedVectors:
        try:
            with np.load(path, allow_pickle=False) as file:
                meta = json.loads(file["meta"].tobytes().decode())
                if meta["format"] != FORMAT:
                    raise ValueError(f"its format is {meta['format']!r}")
                words = tuple(json.loads(file["words"].tobytes().decode()))
                shape = (len(words), len(file["context_total"]))
                counts = sparse.csr_matrix((file["data"], file["indices"], file["indptr"]), shape=shape)
                counts.check_format(full_check=True)
                if len(file["word_total"]) != len(words):
                    raise ValueError(f"{len(file['word_total'])} totals for {len(words)} words")
                return CountedVectors(
                    words, counts, file["word_total"], file["context_total"], int(meta["total"]), meta["contexts"]
                )
        except FileNotFoundError:
            raise JacanaError(
                f"{path}: no such file of counted vectors; write one with `jacana-torch count`"
            ) from None
        except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as error:
            raise JacanaError(
                f"{path}: not a file of counted vectors, or damaged ({error}); count again"
            ) from error


def _row_sums(table: sparse.csr_matrix) -> np.ndarray:
    return np.asarray(table.sum(axis=1), dtype=np.float64).ravel()


def corpus_blocks(grid: Grid, path: str | os.PathLike[str]) -> tuple[tuple[Block, ...], tuple[Block, ...]]:
    """Link and NULL blocks of the distsim family, from a file of counted vectors."""
    path = os.path.abspath(os.path.expanduser(path))
    vectors = _loaded(path, os.stat(path).st_mtime_ns if os.path.exists(path) else 0)
    words = grid.words(LOWER)
    row = words.lexicon.attribute(("counted", path), vectors.lookup)
    left, right = row[words.pairs.left], row[words.pairs.right]
    values = vectors.similarity(left, right)
    values[words.pairs.left == words.pairs.right] = 1.0  # also where the word was never counted
    link, null = measure_blocks(grid, "corpus", values, words.cell)
    known = ((left >= 0) & (right >= 0)).astype(np.float64)[:, None]
    return (link, Block(("corpus.both_known",), known, words.cell)), (null,)


@lru_cache(maxsize=2)
def _loaded(path: str, changed: int) -> CountedVectors:
    """Read a file once, and again if it has changed."""
    return CountedVectors.load(path)


def count_vectors(
    sentences: Iterable[Sentence],
    contexts: str = "window",
    window: int = 2,
    min_count: int = 2,
    max_contexts: int = 200,
) -> CountedVectors:
    """Count contexts of words over a corpus.

    `contexts`      "window": the words up to `window` places away; "dependency": the relation and the head.
    `min_count`     less frequent words and contexts are left out, but count in the totals.
    `max_contexts`  the number of contexts kept of a word: those most strongly associated with it by the t-test.
    """
    if contexts not in CONTEXTS:
        raise ConfigError(f"contexts={contexts!r}: must be one of {list(CONTEXTS)}")
    if window < 1 or min_count < 1 or max_contexts < 1:
        raise ConfigError(f"{window=}, {min_count=} and {max_contexts=} must be at least 1")
    words: dict[str, int] = {}
    context_number: dict[Any, int] = words if contexts == "window" else {}
    table: sparse.csr_matrix | None = None
    for some in _batches(sentences):
        if contexts == "window":
            rows, columns = _window_contexts(some, words, window)
        else:
            rows, columns = _dependency_contexts(some, words, context_number)
        table = _added(table, rows, columns, (len(words), len(context_number)))
    if table is None:
        table = sparse.csr_matrix((0, 0), dtype=np.int64)
    return _pruned(list(words), table, contexts, min_count, max_contexts)


def _batches(sentences: Iterable[Sentence]) -> Iterator[list[Sentence]]:
    iterator = iter(sentences)
    while some := list(islice(iterator, SENTENCES_AT_A_TIME)):
        yield some


def _added(
    table: sparse.csr_matrix | None, rows: np.ndarray, columns: np.ndarray, shape: tuple[int, int]
) -> sparse.csr_matrix:
    """The table with equal entries summed, so that memory grows with distinct entries and not with the corpus."""
    more = sparse.csr_matrix((np.ones(len(rows), dtype=np.int64), (rows, columns)), shape=shape)
    if table is None:
        return more
    table.resize(shape)
    return table + more


def _window_contexts(
    sentences: list[Sentence], words: dict[str, int], window: int
) -> tuple[np.ndarray, np.ndarray]:
    ids = np.array(
        [words.setdefault(lower_form(t), len(words)) for s in sentences for t in s.tokens], dtype=np.int64
    )  # fmt: skip
    sentence = np.repeat(np.arange(len(sentences)), [len(s) for s in sentences])
    rows, columns = [], []
    for distance in range(1, window + 1):
        near = np.flatnonzero(sentence[:-distance] == sentence[distance:])
        left, right = ids[near], ids[near + distance]
        rows += [left, right]
        columns += [right, left]
    return np.concatenate(rows), np.concatenate(columns)


def _dependency_contexts(
    sentences: list[Sentence], words: dict[str, int], context_number: dict[Any, int]
) -> tuple[np.ndarray, np.ndarray]:
    rows, columns = [], []
    for sentence in sentences:
        forms = [lower_form(t) for t in sentence.tokens]
        for form, head, label in zip(forms, sentence.layer("head"), sentence.layer("deprel"), strict=True):
            context = (canonical(label), forms[head] if head >= 0 else None)
            rows.append(words.setdefault(form, len(words)))
            columns.append(context_number.setdefault(context, len(context_number)))
    return np.array(rows, dtype=np.int64), np.array(columns, dtype=np.int64)


def _pruned(
    words: list[str], table: sparse.csr_matrix, contexts: str, min_count: int, max_contexts: int
) -> CountedVectors:
    word_total, context_total = _row_sums(table), np.asarray(table.sum(axis=0), dtype=np.float64).ravel()
    total = int(word_total.sum())
    keep_words = np.flatnonzero(word_total >= min_count)
    keep_contexts = np.flatnonzero(context_total >= min_count)
    table = table[keep_words][:, keep_contexts].tocoo()
    word_total, context_total = word_total[keep_words], context_total[keep_contexts]
    expected = word_total[table.row] * (context_total[table.col] / max(total, 1))
    strength = ASSOCIATIONS[1](table.data, expected)
    order = np.lexsort((table.col, -strength, table.row))
    row = table.row[order]
    rank = np.arange(len(row)) - np.searchsorted(row, row)
    order = order[(rank < max_contexts) & (strength[order] > NOTHING)]
    counts = sparse.csr_matrix((table.data[order], (table.row[order], table.col[order])), shape=table.shape)
    kept = tuple(words[i] for i in keep_words)
    return CountedVectors(kept, counts, word_total, context_total, total, contexts)
