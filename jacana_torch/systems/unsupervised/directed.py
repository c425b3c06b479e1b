"""What IBM 1 and the HMM share: one direction, learnt from sentence pairs alone; gold links are not looked at.

Examples (and files of more text) in, a translation table out; pairs in, alignments out. `Bidirectional` runs two,
`Agreement` trains two together.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
import torch

from ... import corpora
from ...aligners.base import Step, TrainingReport, Watcher
from ...crf.decoding import LARGEST_PAIR
from ...errors import ConfigError, ModelError
from ...types import Alignment, Example, SentencePair, trusted
from ...util.batches import portions
from ...util.device import usable_device
from .em import Direction, Settings, as_expected, iterate
from .jumps import Jumps
from .lattice import Chains, Moves, Posterior
from .table import Table
from .text import FORMS, Text, WordPair, words_of

log = logging.getLogger(__name__)

LONGEST = int(LARGEST_PAIR**0.5)  # words of a sentence; jumps need a square of them
HOPELESS = 0.99  # where so many words stand for NULL, nothing was learnt
DECODERS = ("viterbi", "posterior")


@dataclass
class Directed(ABC):
    """Each source word stands for a target word, or for NULL with the chance `p0` (estimated if `learn_p0`).

    `form`       what counts as one word: exact, lower (case ignored), stem (inflection and abbreviations ignored).
    `lexicon`    the lexicon trick: each word is paired with itself in extra training pairs, so many for each time
                 that it might be matched in the text; 0 for none. They make it stronger than anything else does.
    `prior`, `variational`, `null_prior`  see em.Settings.
    `text`       files of more sentence pairs to train on, with or without links.
    `decode`     viterbi: the best path; posterior: every link likelier than `threshold`.
    `batch_cells` how many cells of pairs go through at once.
    """

    form: str = "stem"
    lexicon: float = 5.0
    prior: float = 0.1
    variational: bool = True
    null_prior: float = 1.0
    p0: float = 0.3
    learn_p0: bool = True
    text: Sequence[str] = ()
    decode: str = "viterbi"
    threshold: float = 0.5
    batch_cells: int = 500_000
    device: str = "cpu"
    part: str = "forward"
    table: Table = field(default_factory=Table, init=False, repr=False)
    moves: Moves | None = field(default=None, init=False, repr=False)

    requires: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        for name, value, known in (("form", self.form, FORMS), ("decode", self.decode, DECODERS)):
            if value not in known:
                raise ConfigError(f"{name}={value!r} is none of {', '.join(known)}")
        for name in ("lexicon", "prior", "null_prior"):
            if not 0 <= getattr(self, name) < np.inf:
                raise ConfigError(f"{name}={getattr(self, name)}: must be at least 0, and finite")
        for name in ("p0", "threshold"):
            if not 0 < getattr(self, name) < 1:
                raise ConfigError(f"{name}={getattr(self, name)}: must be between 0 and 1")
        if self.variational and not self.prior:
            raise ConfigError("variational=true needs a prior above 0")
        if self.batch_cells < 1:
            raise ConfigError(f"batch_cells={self.batch_cells}: must be at least 1")
        self.text = [self.text] if isinstance(self.text, str) else list(self.text or ())
        self.device = usable_device(self.device)

    # What the models differ in

    @property
    @abstractmethod
    def stages(self) -> list[bool]:
        """An entry an iteration: whether words jump in it."""

    @abstractmethod
    def first_moves(self) -> Moves: ...

    @abstractmethod
    def found(self, x: Chains, moves: Moves) -> tuple[torch.Tensor, torch.Tensor, Posterior]:
        """[M, B] the best positions (-1 for NULL), [B] the log probability of these, and the posteriors."""

    # Training

    def fit(
        self, examples: Sequence[Example], dev: Sequence[Example] = (), watch: Watcher | None = None
    ) -> TrainingReport:
        direction = self.direction(self.training_pairs(examples))
        stages, scale = self.stages, float(direction.text.weights.sum())
        losses: list[float] = []

        def after(iteration: int) -> None:
            losses.append(-direction.objective / scale)
            if watch is not None:
                self.learn(direction)
                watch(Step(self.part, iteration, losses[-1], 0.0, self))

        try:
            done = iterate([direction], stages, self.batch_cells, as_expected, after)
        finally:
            if losses:
                self.learn(direction)
        return report({self.part: losses}, done, len(stages), [direction.moves.p0])

    def training_pairs(self, examples: Sequence[Example]) -> list[WordPair]:
        """The words of all pairs that have any on both sides, those of `text` after the examples'."""
        words = read_text(examples, self.text, self.form, self.part == "backward")
        if not words:
            raise ConfigError("there is nothing to train on: no pair has words on both sides")
        for pair in words:
            check_length(*map(len, pair))
        return words

    def direction(self, words: Sequence[WordPair]) -> Direction:
        """These pairs, and those of the lexicon, ready to be learnt from."""
        extra = lexicon(words) if self.lexicon else {}
        pairs = [*words, *(([word], [word]) for word in extra)]
        weights = [1.0] * len(words) + [self.lexicon * count for count in extra.values()]
        settings = Settings(self.prior, self.null_prior, self.variational, self.learn_p0, self.device)
        return Direction(Text(pairs, weights), self.table, self.moves or self.first_moves(), settings)

    def learn(self, direction: Direction) -> None:
        self.table, self.moves = direction.table(), direction.moves

    # Alignment

    def align(self, pairs: Sequence[SentencePair]) -> list[Alignment]:
        """Links with their posteriors; as the score of a best path, its log posterior per source word."""
        out = [Alignment(len(pair.source), len(pair.target)) for pair in pairs]
        full = [k for k, a in enumerate(out) if a.n_source and a.n_target]
        if full and self.moves is None:
            raise ModelError(f"the {self.part} direction has not been trained: fit it, or go on with resume=DIR")

        def cells(place: int) -> int:
            return check_length(out[place].n_source, out[place].n_target)

        for places in portions(full, cells, 8 * self.batch_cells):
            words = [(words_of(pairs[k].source, self.form), words_of(pairs[k].target, self.form)) for k in places]
            for place, alignment in self._aligned(Text(words)):
                out[places[place]] = alignment
        return out

    @torch.no_grad()
    def _aligned(self, text: Text) -> Iterator[tuple[int, Alignment]]:
        assert self.moves is not None
        values = self.table.between(text.source, text.target, *text.numbers)
        arrays = (np.append(values, 0.0), np.append(self.table.of_null(text.source), 0.0))
        probability, null = (torch.as_tensor(array, device=self.device) for array in arrays)
        for group in text.buckets(self.batch_cells):
            x = text.batch(group, self.device).chains(probability, null)
            path, score, posterior = self.found(x, self.moves)
            if self.decode == "posterior":
                linked, scores = posterior.link > self.threshold, [None] * len(group)
            else:
                linked = torch.arange(x.link.shape[2], device=path.device) == path[:, :, None]  # [M, B, N]
                scores = ((score - posterior.log_likelihood) / x.sizes).tolist()
            pair, i, j = linked.transpose(0, 1).nonzero().t().cpu()
            chance = posterior.link[i, pair, j].clamp(max=1.0).tolist()
            ends = torch.bincount(pair, minlength=len(group)).cumsum(0).tolist()
            links, begin = list(zip(i.tolist(), j.tolist(), strict=True)), 0
            for k, end, own in zip(group.tolist(), ends, scores, strict=True):
                here = dict(zip(links[begin:end], chance[begin:end], strict=True))
                m, n = int(text.n_source[k]), int(text.n_target[k])
                yield k, trusted(m, n, frozenset(here), confidence=here, score=own)
                begin = end

    # Persistence

    def state(self) -> dict[str, np.ndarray | list[str]]:
        moves = self.moves or self.first_moves()
        return {
            **self.table.state(), "p0": np.array([moves.p0]),
            "jumps": moves.jumps.weights.cpu().numpy(), "starts": moves.jumps.starts.cpu().numpy(),
        }  # fmt: skip

    def restore(self, state: Mapping[str, np.ndarray | list[str]]) -> None:
        first = self.first_moves()
        table = Table.of_state(state)
        weights, starts = (np.array(state[name], dtype=np.float64) for name in ("jumps", "starts"))
        p0 = float(np.asarray(state["p0"]).reshape(-1)[0])
        if len(weights) != len(first.jumps.weights) or len(starts) != len(first.jumps.starts):
            raise ConfigError(
                f"weights of {len(weights)} jumps and {len(starts)} starts: another window was trained"
            )
        if not (np.isfinite([*weights, *starts]).all() and min([*weights, *starts]) >= 0 and 0 <= p0 < 1):
            raise ConfigError("jumps or p0 are no probabilities")
        jumps = Jumps(*(torch.as_tensor(array, device=self.device) for array in (weights, starts)))
        self.table, self.moves = table, replace(first, p0=p0, jumps=jumps) if len(table) else None


def report(losses: Mapping[str, Sequence[float]], done: int, of: int, p0: Sequence[float]) -> TrainingReport:
    """How it ended, with the last loss of each direction; these are the chances of NULL that they arrived at."""
    log.info("%d iterations: %s", done, ", ".join(f"{part} {seen[-1]:.6f}" for part, seen in losses.items()))
    notes: tuple[str, ...] = ()
    if max(p0) > HOPELESS:
        notes = ("nearly every word stands for NULL: try a smaller prior (0.001), or a lexicon",)
    final = {part: seen[-1] for part, seen in losses.items()}
    return TrainingReport(final, dict.fromkeys(losses, done), done == of, done < of, notes=notes)


def read_text(examples: Sequence[Example], files: Sequence[str], form: str, flip: bool) -> list[WordPair]:
    """The words of all pairs that have any on both sides, those of the files after the examples'."""
    found: list[WordPair] = []
    found += [(words_of(e.pair.source, form), words_of(e.pair.target, form)) for e in examples]
    for path in files:
        for example in corpora.read(path):
            pair = example.pair.flip() if flip else example.pair
            found.append((words_of(pair.source, form, raw=True), words_of(pair.target, form, raw=True)))
    return [pair for pair in found if pair[0] and pair[1]]


def lexicon(pairs: Sequence[WordPair]) -> dict[str, int]:
    """How often each word of the text might be matched with itself, at least once."""
    counts: Counter[str] = Counter()
    for source, target in pairs:
        counts.update(Counter(source) & Counter(target))
    words = dict.fromkeys(word for pair in pairs for side in pair for word in side)
    return {word: max(counts[word], 1) for word in words}


def check_length(m: int, n: int) -> int:
    """The cells of a pair of so many tokens."""
    if max(m, n) > LONGEST:
        raise ConfigError(
            f"a pair of {m} x {n} tokens is more than this aligns ({LONGEST:,} on a side): split it into sentences"
        )
    return m * n
