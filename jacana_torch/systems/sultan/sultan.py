"""The pipeline of Algorithm 5 as an aligner, a search for its two parameters, and its links as features.

`Sultan` learns nothing. `TunedSultan` chooses `similarity` (the paper's ppdbSim) and `weight` (w) by the F1 of the
training examples, as the paper does. `SultanLinks` is a feature family: the pipeline decides a link by other
links, and weighs evidence that no other family has.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Annotated, ClassVar

import numpy as np

from ...aligners.base import State, numbers_in, words_in
from ...aligners.training import UNKEPT, Checkpoint, Step, TrainingReport, Watcher
from ...errors import ConfigError, PairError
from ...evaluate import score
from ...features.api import Block, NodeBlocks
from ...features.families.kinds import KINDS, kind_of_words
from ...features.grid import Grid
from ...features.string_similarity import base_similarity
from ...types import Alignment, Example, SentencePair, trusted
from ...util.batches import by_size
from ...util.build import Items, OneOf, Share, check_bounds
from . import stages
from .name_links import link_names
from .parsed_sentence import ParsedSentence, parsed
from .word_similarity import PPDB, RESOURCES, SOURCES, available_source, paraphrase_function, similarity_tables

log = logging.getLogger(__name__)

STAGES = (
    stages.link_sequences,
    stages.link_hyphenated,
    link_names,
    stages.link_by_dependencies,
    stages.link_by_neighbourhood,
    stages.link_compounds,
    stages.link_by_linked_dependencies,
    stages.link_markers,
    stages.link_by_linked_neighbours,
)
LARGEST_PAIR = 16_000_000  # cells of one pair
CELLS_AT_ONCE = 1 << 19
GRID = tuple(round(0.1 * k, 1) for k in range(1, 11))

_Source = Annotated[str, OneOf(SOURCES)]
_Names = Annotated[str, OneOf(("tags", "ner"))]
Prepared = tuple[ParsedSentence, ParsedSentence, np.ndarray]


@dataclass
class Sultan:
    """The aligner of Sultan, Bethard and Sumner (2014).

    `similarity`   the similarity of a paraphrase, where that of the same word is 1 (ppdbSim).
    `weight`       the weight of two words' own similarity as against that of their contexts (w).
    `paraphrases`  their source: ppdb, wordnet (with word vectors) or none; auto is ppdb if it is available.
    `names`        tags: names are runs of proper nouns; ner: names are entities of the layer ner.
    """

    similarity: Share = 0.9
    weight: Share = 0.9
    paraphrases: _Source = "auto"
    names: _Names = "tags"
    _source: str | None = field(default=None, init=False, repr=False, compare=False)  # `auto` resolved

    def __post_init__(self) -> None:
        check_bounds(type(self), vars(self))

    @property
    def requires(self) -> tuple[str, ...]:
        return ("pos", "lemma", "head", "deprel", *(["ner"] if self.names == "ner" else []))

    @property
    def resources(self) -> tuple[str, ...]:
        return RESOURCES[available_source(self.paraphrases)]

    def align(self, pairs: Sequence[SentencePair]) -> list[Alignment]:
        return [self._one(pair) for some in by_size(pairs, _size, CELLS_AT_ONCE) for pair in self.prepared(some)]

    def prepared(self, pairs: Sequence[SentencePair]) -> list[Prepared]:
        """What does not depend on the parameters."""
        sides = [
            (parsed(pair.source, self.names == "ner"), parsed(pair.target, self.names == "ner")) for pair in pairs
        ]
        levels = similarity_tables(sides, paraphrase_function(self._paraphrase_source()))
        return [(source, target, level) for (source, target), level in zip(sides, levels, strict=True)]

    def decode(self, prepared: Sequence[Prepared]) -> list[Alignment]:
        return [self._one(pair) for pair in prepared]

    def _one(self, prepared: Prepared) -> Alignment:
        pair = stages.PairState(*prepared, self.similarity, self.weight)
        if pair.level.size:
            for stage in STAGES:
                stage(pair)
        links = zip(*(part.tolist() for part in np.nonzero(pair.links)), strict=True)
        return trusted(len(pair.source), len(pair.target), frozenset(links))

    def _paraphrase_source(self) -> str:
        """The source of paraphrases on this machine, with one warning if it is not the paper's."""
        if self._source is None:
            self._source = available_source(self.paraphrases)
            if self.paraphrases == "auto" and self._source != "ppdb":
                log.warning(
                    "there is no PPDB on this machine, so paraphrases come from WordNet and word vectors, which "
                    "is worse; `jacana-torch resources` explains how to get %s (or set paraphrases=wordnet)",
                    PPDB,
                )
        return self._source


def _size(pair: SentencePair) -> int:
    """The cells of a pair. More than LARGEST_PAIR would take hours, so they are an error."""
    m, n = len(pair.source), len(pair.target)
    if m * n > LARGEST_PAIR:
        raise PairError(
            f"a pair of {m} x {n} tokens exceeds the limit of {LARGEST_PAIR:,} cells: split it into sentences"
        )
    return m * n


@dataclass
class TunedSultan(Sultan):
    """Sultan with the `similarity` and `weight` of `grid` x `grid` that align the training examples best.

    Among equally good pairs, the present one is kept, or else the greatest chosen. A saved model records the
    source of its paraphrases and needs the same source.
    """

    grid: Annotated[Sequence[Share], Items(1, 100)] = field(default=GRID)

    keeps_progress: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self.grid = tuple(float(value) for value in self.grid)

    def fit(
        self,
        examples: Sequence[Example],
        dev: Sequence[Example] = (),
        watch: Watcher | None = None,
        checkpoint: Checkpoint = UNKEPT,
    ) -> TrainingReport:
        """Try every combination. Ctrl-C keeps the best one so far."""
        gold = [e.gold for e in examples if e.gold is not None]
        if not gold:
            raise ConfigError("there are no aligned examples to search with")
        pairs = [e.pair for e in examples if e.gold is not None]
        prepared = [pair for some in by_size(pairs, _size, CELLS_AT_ONCE) for pair in self.prepared(some)]
        descending = sorted(self.grid, reverse=True)
        combinations = [(self.similarity, self.weight), *((s, w) for s in descending for w in descending)]
        best: tuple[float, float, float] | None = None
        tried = 0
        if (kept := checkpoint.kept()) is not None:
            f1, similarity, weight = map(float, kept["best"])
            tried, best = int(kept["tried"][0]), (f1, similarity, weight)
        left = list(dict.fromkeys(combinations))[tried:]
        try:
            for similarity, weight in left:
                tried += 1
                self.similarity, self.weight = similarity, weight
                f1 = score(gold, self.decode(prepared)).f1
                log.info("similarity %.1f weight %.1f F1 %.2f", similarity, weight, 100 * f1)
                if best is None or f1 > best[0]:
                    best = f1, similarity, weight
                if watch is not None:
                    watch(Step("search", tried, 1 - f1, 0.0, self))
                checkpoint.keep(partial(dict, tried=np.array([tried]), best=np.array(best)))
        except KeyboardInterrupt:
            if best is None:
                self.similarity, self.weight = combinations[0]
                raise
            return self._keep(best, tried, interrupted=True)
        assert best is not None
        return self._keep(best, tried, interrupted=False)

    def _keep(self, best: tuple[float, float, float], tried: int, interrupted: bool) -> TrainingReport:
        f1, self.similarity, self.weight = best
        self.paraphrases = self._paraphrase_source()
        return TrainingReport(
            {"search": 1 - f1}, {"search": tried}, converged=not interrupted, interrupted=interrupted
        )

    def state(self) -> State:
        return {"parameters": np.array([self.similarity, self.weight]), "paraphrases": [self.paraphrases]}

    def restore(self, state: State) -> None:
        self.similarity, self.weight = numbers_in(state, "parameters", 2).tolist()
        sources = words_in(state, "paraphrases")
        if len(sources) != 1:
            raise ConfigError(f"'paraphrases' names {len(sources)} sources, and should name one")
        self.paraphrases = sources[0]
        self._source = None
        self.__post_init__()


@dataclass(frozen=True)
class SultanLinks:
    """The pipeline's links as features. The settings are those of `Sultan`, which needs no training.

    For each cell: whether the pipeline links its words, by their word classes, and links in its row, its column
    and beside it. For NULL: whether the pipeline links the token at all.
    """

    similarity: Share = 0.9
    weight: Share = 0.9
    paraphrases: _Source = "auto"
    names: _Names = "tags"
    name: str = "sultan"

    @cached_property
    def pipeline(self) -> Sultan:
        return Sultan(self.similarity, self.weight, self.paraphrases, self.names)

    @property
    def requires(self) -> tuple[str, ...]:
        return self.pipeline.requires

    @property
    def resources(self) -> tuple[str, ...]:
        return self.pipeline.resources

    def __call__(self, grid: Grid) -> NodeBlocks:
        flipped, linked = grid.shared(self, lambda: (grid.is_flipped, self._linked(grid)))
        if flipped != grid.is_flipped:
            linked = linked[grid.flipped().by_column]
        kind = grid.per_cell(kind_of_words).astype(np.int64)
        by_class = Block(tuple(f"linked:{name}" for name in KINDS), None, np.where(linked, kind, -1))
        some = np.bincount(grid.source_token[linked], minlength=grid.n_tokens) > 0
        null = np.column_stack([some, ~some]).astype(np.float64)
        return NodeBlocks((_around(grid, linked), by_class), (Block(("null_linked", "null_unlinked"), null),))

    def _linked(self, grid: Grid) -> np.ndarray:
        """[C] whether the pipeline links the cell's words; it does so from either side."""
        out = np.zeros(grid.n_cells, dtype=bool)
        for k, alignment in enumerate(self.pipeline.align(grid.pairs)):
            for i, j in alignment.sure:
                out[grid.cell_start[k] + i * grid.n_target[k] + j] = True
        return out


def _around(grid: Grid, linked: np.ndarray) -> Block:
    """Whether each cell is linked, and links in its row, its column and beside it."""
    base = grid.per_cell(base_similarity)
    s, t = grid.source_token, grid.target_token
    in_row = np.bincount(s[linked], minlength=grid.n_tokens)[s]
    in_column = np.bincount(t[linked], minlength=len(grid.target_pair))[t]
    padded = np.append(linked, False)  # outside is -1, the last
    left, right = padded[grid.shift(-1, -1)], padded[grid.shift(1, 1)]
    columns = {
        "linked": linked,
        "linked_unlike": linked & (base == 0),
        "several": linked & ((in_row > 1) | (in_column > 1)),
        "row_linked": ~linked & (in_row > 0),
        "column_linked": ~linked & (in_column > 0),
        "both_linked": ~linked & (in_row > 0) & (in_column > 0),
        "identical_unlinked": ~linked & (base >= 1),
        "left_linked": left,
        "right_linked": right,
        "beside_linked": left & right,
    }
    return Block(tuple(columns), np.column_stack(list(columns.values())).astype(np.float64))
