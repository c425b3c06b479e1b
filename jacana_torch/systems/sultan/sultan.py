"""The pipeline of Algorithm 5, and a search for its two parameters.

Annotated pairs in, alignments out. `Sultan` learns nothing; `TunedSultan` chooses `similarity` (the paper's
ppdbSim) and `weight` (w) by the F1 of its training examples, as the paper does.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ...aligners.base import State, Step, TrainingReport, Watcher
from ...errors import ConfigError
from ...evaluate import score
from ...types import Alignment, Example, SentencePair, trusted
from ...util.batches import portions
from . import content, entities, paraphrases, sequences, stopwords
from .board import Board
from .similarity import tables
from .word_tables import Words, words_of

log = logging.getLogger(__name__)

STAGES = (
    sequences.link_sequences,
    sequences.link_hyphenated,
    entities.link_entities,
    content.link_by_dependencies,
    content.link_by_neighbourhood,
    sequences.link_compounds,
    stopwords.link_by_linked_dependencies,
    stopwords.link_markers,
    stopwords.link_by_linked_neighbours,
)
LARGEST_PAIR = 16_000_000  # cells of one pair
CELLS_AT_ONCE = 1 << 19
GRID = tuple(round(0.1 * k, 1) for k in range(1, 11))

Prepared = tuple[Words, Words, np.ndarray]


@dataclass
class Sultan:
    """The aligner of Sultan, Bethard and Sumner (2014).

    `similarity`   what a paraphrase counts where the same word counts 1 (ppdbSim).
    `weight`       what the likeness of two words counts beside their contexts' (w).
    `paraphrases`  where they come from: ppdb, wordnet (with word vectors), none; auto is ppdb where there is one.
    `names`        what a name is: runs of proper nouns (tags), or what the layer ner says (ner).
    """

    similarity: float = 0.9
    weight: float = 0.9
    paraphrases: str = "auto"
    names: str = "tags"

    def __post_init__(self) -> None:
        for name in ("similarity", "weight"):
            if not 0 <= getattr(self, name) <= 1:
                raise ConfigError(f"{name}={getattr(self, name)} is not between 0 and 1")
        paraphrases.check(self.paraphrases)
        if self.names not in ("tags", "ner"):
            raise ConfigError(f"names={self.names!r} is neither tags nor ner")

    @property
    def requires(self) -> tuple[str, ...]:
        return ("pos", "lemma", "head", "deprel", *(["ner"] if self.names == "ner" else []))

    @property
    def resources(self) -> tuple[str, ...]:
        return paraphrases.RESOURCES[paraphrases.chosen(self.paraphrases)]

    def align(self, pairs: Sequence[SentencePair]) -> list[Alignment]:
        return [self._one(pair) for some in portions(pairs, _size, CELLS_AT_ONCE) for pair in self.prepared(some)]

    def prepared(self, pairs: Sequence[SentencePair]) -> list[Prepared]:
        """All that does not depend on the parameters."""
        words = [[words_of(side, self.names == "ner") for side in (pair.source, pair.target)] for pair in pairs]
        levels = tables([(source, target) for source, target in words], paraphrases.function(self._source()))
        return [(source, target, level) for (source, target), level in zip(words, levels, strict=True)]

    def decode(self, prepared: Sequence[Prepared]) -> list[Alignment]:
        return [self._one(pair) for pair in prepared]

    def _one(self, prepared: Prepared) -> Alignment:
        board = Board(*prepared, self.similarity, self.weight)
        if board.level.size:
            for stage in STAGES:
                stage(board)
        links = zip(*(part.tolist() for part in np.nonzero(board.links)), strict=True)
        return trusted(len(board.source), len(board.target), frozenset(links))

    def _source(self) -> str:
        """Where paraphrases come from; that it is not PPDB is said once."""
        known: str | None = self.__dict__.get("_told")
        if known is None:
            known = self.__dict__["_told"] = paraphrases.told(self.paraphrases)
        return known


def _size(pair: SentencePair) -> int:
    """The cells of a pair; one beyond LARGEST_PAIR is an error, not an hour."""
    m, n = len(pair.source), len(pair.target)
    if m * n > LARGEST_PAIR:
        raise ConfigError(
            f"a pair of {m} x {n} tokens is more than this aligns ({LARGEST_PAIR:,} cells): "
            "split it into sentences"
        )
    return m * n


@dataclass
class TunedSultan(Sultan):
    """Sultan with the `similarity` and `weight` of `grid` x `grid` that align the training examples best.

    Of equals the pair that comes first is taken: what it has now, then the greater figures. A saved model
    remembers where its paraphrases came from, and needs the same.
    """

    grid: Sequence[float] = field(default=GRID)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.grid = tuple(float(value) for value in self.grid)
        if not self.grid or not all(0 <= value <= 1 for value in self.grid):
            raise ConfigError(f"grid={list(self.grid)} should be figures between 0 and 1")

    def fit(
        self, examples: Sequence[Example], dev: Sequence[Example] = (), watch: Watcher | None = None
    ) -> TrainingReport:
        """Every combination is tried; Ctrl-C keeps the best one so far."""
        gold = [e.gold for e in examples if e.gold is not None]
        if not gold:
            raise ConfigError("there are no aligned examples to search with")
        pairs = [e.pair for e in examples if e.gold is not None]
        prepared = [pair for some in portions(pairs, _size, CELLS_AT_ONCE) for pair in self.prepared(some)]
        descending = sorted(self.grid, reverse=True)
        combinations = [(self.similarity, self.weight), *((s, w) for s in descending for w in descending)]
        best: tuple[float, float, float] | None = None
        tried = 0
        try:
            for tried, (similarity, weight) in enumerate(dict.fromkeys(combinations), start=1):
                self.similarity, self.weight = similarity, weight
                f1 = score(gold, self.decode(prepared)).f1
                log.info("similarity %.1f weight %.1f F1 %.2f", similarity, weight, 100 * f1)
                if best is None or f1 > best[0]:
                    best = f1, similarity, weight
                if watch is not None:
                    watch(Step("search", tried, 1 - f1, 0.0, self))
        except KeyboardInterrupt:
            if best is None:
                self.similarity, self.weight = combinations[0]
                raise
            return self._keep(best, tried, interrupted=True)
        assert best is not None
        return self._keep(best, tried, interrupted=False)

    def _keep(self, best: tuple[float, float, float], tried: int, interrupted: bool) -> TrainingReport:
        f1, self.similarity, self.weight = best
        self.paraphrases = self._source()
        return TrainingReport(
            {"search": 1 - f1}, {"search": tried}, converged=not interrupted, interrupted=interrupted
        )

    def state(self) -> State:
        return {"parameters": np.array([self.similarity, self.weight]), "paraphrases": [self.paraphrases]}

    def restore(self, state: State) -> None:
        self.similarity, self.weight = (float(value) for value in state["parameters"])
        self.paraphrases = str(state["paraphrases"][0])
        self.__dict__.pop("_told", None)
        self.__post_init__()
