"""Aligners that learn from sentence pairs alone: IBM model 1, the HMM, and two directions that learn to agree.

`Ibm1` and `Hmm` align in one direction, and `Bidirectional` runs two. Gold links are never read.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, ClassVar

import numpy as np
import torch

from ...aligners.base import State, numbers_in
from ...aligners.bidirectional import Bidirectional
from ...aligners.training import UNKEPT, Checkpoint, Step, TrainingReport, Watcher
from ...crf.arrays import usable_device
from ...errors import ConfigError, ModelError, PairError
from ...types import Alignment, Example, SentencePair, trusted
from ...util.batches import by_size
from ...util.build import Cells, Inside, NotNegative, OneOf, Share, Within, check_bounds
from .em import Counted, Direction, Settings, agreed, iterate, separate
from .hmm_lattice import Chains, Jumps, Moves, Posterior, best_paths, independent, posteriors
from .translation_table import FORMS, Table, Text, WordPair, lexicon, read_text, words_of

log = logging.getLogger(__name__)

LONGEST = 4_000  # words of a sentence; jumps need a square of them
MOSTLY_NULL = 0.99  # a probability of NULL that shows that nothing was learnt
TIE = 1e-9
DECODERS = ("viterbi", "posterior")

_Rounds = Annotated[int, Within(1, 10**6)]


@dataclass
class OneDirection(ABC):
    """Each source word is linked to a target word, or to NULL with probability `p0` (estimated if `learn_p0`).

    `form`       what counts as one word: exact, lower (ignores case), stem (ignores inflection and abbreviation).
    `lexicon`    adds pairs of each word with itself to the training text, so many for each time that it might be
                 linked with itself there; 0 adds none. This improves the aligner more than any other setting.
    `prior`, `variational`, `null_prior`  see em.Settings.
    `text`       files of more sentence pairs to train on, with or without links.
    `decode`     viterbi: the best path; posterior: every link whose posterior exceeds `threshold`.
    `batch_cells` the number of cells that are processed together.
    """

    form: Annotated[str, OneOf(tuple(FORMS))] = "stem"
    lexicon: NotNegative = 5.0
    prior: NotNegative = 0.1
    variational: bool = True
    null_prior: NotNegative = 1.0
    p0: Inside = 0.3
    learn_p0: bool = True
    text: str | Sequence[str] | None = ()
    decode: Annotated[str, OneOf(DECODERS)] = "viterbi"
    threshold: Inside = 0.5
    batch_cells: Cells = 500_000
    device: str = "cpu"
    part: str = "forward"
    table: Table = field(default_factory=Table, init=False, repr=False)
    moves: Moves | None = field(default=None, init=False, repr=False)

    requires: ClassVar[tuple[str, ...]] = ()
    keeps_progress: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_bounds(type(self), vars(self))
        if self.variational and not self.prior:
            raise ConfigError("variational=true needs a prior above 0")
        self.files = [self.text] if isinstance(self.text, str) else list(self.text or ())
        self.device = usable_device(self.device)

    # What the models differ in

    @property
    @abstractmethod
    def stages(self) -> list[bool]:
        """An entry for each iteration: whether words jump in it."""

    @abstractmethod
    def first_moves(self) -> Moves:
        """The transitions that training starts from."""

    @abstractmethod
    def found(self, x: Chains, moves: Moves) -> tuple[torch.Tensor, torch.Tensor, Posterior]:
        """[M, B] the best positions (-1 for NULL), [B] their log probability, and the posteriors."""

    # Training

    def fit(
        self,
        examples: Sequence[Example],
        dev: Sequence[Example] = (),
        watch: Watcher | None = None,
        checkpoint: Checkpoint = UNKEPT,
    ) -> TrainingReport:
        return _train([self], [self.direction(self.training_pairs(examples))], separate, watch, checkpoint)

    def training_pairs(self, examples: Sequence[Example]) -> list[WordPair]:
        """The words of all pairs with words on both sides: those of the examples, then those of `text`."""
        words = read_text(examples, self.files, self.form, self.part == "backward")
        if not words:
            raise ConfigError("there is nothing to train on: no pair has words on both sides")
        for source, target in words:
            _cells(len(source), len(target))
        return words

    def direction(self, words: Sequence[WordPair]) -> Direction:
        """These pairs, and those of the lexicon, in training."""
        extra = lexicon(words) if self.lexicon else {}
        pairs = [*words, *(([word], [word]) for word in extra)]
        weights = [1.0] * len(words) + [self.lexicon * count for count in extra.values()]
        settings = Settings(self.prior, self.null_prior, self.variational, self.learn_p0, self.device)
        return Direction(Text(pairs, weights), self.table, self.moves or self.first_moves(), settings)

    # Alignment

    def align(self, pairs: Sequence[SentencePair]) -> list[Alignment]:
        """Links with their posteriors. The score of a best path is its log posterior per source word."""
        out = [Alignment(len(pair.source), len(pair.target)) for pair in pairs]
        full = [k for k, a in enumerate(out) if a.n_source and a.n_target]
        if full and self.moves is None:
            raise ModelError(f"the {self.part} direction has not been trained: fit it, or go on with resume=DIR")

        def cells(place: int) -> int:
            return _cells(out[place].n_source, out[place].n_target)

        for places in by_size(full, cells, 8 * self.batch_cells):
            words = [(words_of(pairs[k].source, self.form), words_of(pairs[k].target, self.form)) for k in places]
            for place, alignment in self._aligned(Text(words)):
                out[places[place]] = alignment
        return out

    @torch.no_grad()
    def _aligned(self, text: Text) -> Iterator[tuple[int, Alignment]]:
        """The place and the alignment of each pair."""
        assert self.moves is not None
        values, null = (
            torch.as_tensor(np.append(known, 0.0), device=self.device)
            for known in (self.table.between(text), self.table.of_null(text.source))
        )
        for group in text.groups(self.batch_cells):
            x = text.batch(group, self.device).chains(values, null)
            path, best, posterior = self.found(x, self.moves)
            scores: Sequence[float | None] = [None] * len(group)
            if self.decode == "posterior":
                linked = posterior.link > self.threshold
            else:
                linked = torch.arange(x.link.shape[2], device=path.device) == path[:, :, None]  # [M, B, N]
                scores = ((best - posterior.log_likelihood) / x.sizes).tolist()
            pair, i, j = linked.transpose(0, 1).nonzero().t().cpu()
            of_links = posterior.link[i, pair, j].clamp(max=1.0).tolist()
            ends = torch.bincount(pair, minlength=len(group)).cumsum(0).tolist()
            links, begin = list(zip(i.tolist(), j.tolist(), strict=True)), 0
            for k, end, score in zip(group.tolist(), ends, scores, strict=True):
                own = dict(zip(links[begin:end], of_links[begin:end], strict=True))
                m, n = int(text.n_source[k]), int(text.n_target[k])
                yield k, trusted(m, n, frozenset(own), confidence=own, score=score)
                begin = end

    # Persistence

    def state(self) -> State:
        moves = self.moves or self.first_moves()
        return {
            **self.table.state(), "p0": np.array([moves.p0]),
            "jumps": moves.jumps.weights.cpu().numpy(), "starts": moves.jumps.starts.cpu().numpy(),
        }  # fmt: skip

    def restore(self, state: State) -> None:
        first = self.first_moves()
        table = Table.of_state(state)
        weights, starts = (numbers_in(state, name, None) for name in ("jumps", "starts"))
        p0 = float(numbers_in(state, "p0", 1)[0])
        if len(weights) != len(first.jumps.weights) or len(starts) != len(first.jumps.starts):
            raise ConfigError(
                f"the model has {len(weights)} jumps and {len(starts)} starts: it was trained with another window"
            )
        both = np.concatenate([weights, starts])
        if not (np.isfinite(both).all() and both.min() >= 0 and 0 <= p0 < 1):
            raise ConfigError("the model's jumps or p0 are not probabilities: its files are damaged")
        jumps = Jumps(*(torch.as_tensor(array, device=self.device) for array in (weights, starts)))
        self.table, self.moves = table, replace(first, p0=p0, jumps=jumps) if len(table) else None


def _train(
    aligners: Sequence[OneDirection],
    directions: Sequence[Direction],
    combine: Callable[[Sequence[Posterior], int], Sequence[Counted]],
    watch: Watcher | None,
    checkpoint: Checkpoint,
) -> TrainingReport:
    """Iterate all directions together. The aligners keep what is learnt before an interruption."""
    stages, scale = aligners[0].stages, float(directions[0].text.weights.sum())
    losses: dict[str, list[float]] = {aligner.part: [] for aligner in aligners}

    def learn() -> None:
        for aligner, direction in zip(aligners, directions, strict=True):
            aligner.table, aligner.moves = direction.table(), direction.moves

    def after(iteration: int) -> None:
        for aligner, direction in zip(aligners, directions, strict=True):
            losses[aligner.part].append(-direction.objective / scale)
        if watch is not None:
            learn()
            for aligner in aligners:
                watch(Step(aligner.part, iteration, losses[aligner.part][-1], 0.0, aligner))

    try:
        done = iterate(directions, stages, aligners[0].batch_cells, combine, after, checkpoint)
    finally:
        if all(losses.values()):
            learn()
    final = {part: seen[-1] for part, seen in losses.items()}
    log.info("%d iterations: %s", done, ", ".join(f"{part} {loss:.6f}" for part, loss in final.items()))
    notes: tuple[str, ...] = ()
    if max(direction.moves.p0 for direction in directions) > MOSTLY_NULL:
        notes = ("nearly every word is linked to NULL: try a smaller prior (0.001), or a lexicon",)
    complete = done == len(stages)
    return TrainingReport(final, dict.fromkeys(losses, done), complete, not complete, notes=notes)


def _cells(m: int, n: int) -> int:
    """The cells of a pair of so many tokens, which are limited."""
    if max(m, n) > LONGEST:
        raise PairError(
            f"a pair of {m} x {n} tokens exceeds the limit of {LONGEST:,} tokens per side: split it into sentences"
        )
    return m * n


@dataclass
class Ibm1(OneDirection):
    """IBM model 1 (Brown et al. 1993): which words are linked, wherever they are.

    `iterations` of EM. Of equally likely positions, such as those of a word that occurs twice, best paths
    take the one nearest to the diagonal. The model itself has no preference.
    """

    iterations: _Rounds = 10

    @property
    def stages(self) -> list[bool]:
        return [False] * self.iterations

    def first_moves(self) -> Moves:
        return Moves(self.p0, 1.0, Jumps.uniform(0, self.device))

    def found(self, x: Chains, moves: Moves) -> tuple[torch.Tensor, torch.Tensor, Posterior]:
        posterior = independent(x, moves.p0)
        row, column = (torch.arange(n, device=x.link.device) for n in (x.link.shape[0], x.link.shape[2]))
        diagonal = (row[:, None] + 0.5) / x.sizes.double()  # [M, B]
        off = ((column + 0.5) / x.targets.double()[:, None] - diagonal[:, :, None]).abs()
        link, where = (posterior.link * (1 - TIE * off)).max(2)
        linked = (link >= posterior.null * (1 - TIE)) & x.inside
        best = torch.where(linked, posterior.link.gather(2, where[:, :, None])[:, :, 0], posterior.null)
        score = torch.where(x.inside, best, 1.0).clamp_min(1e-300).log().sum(0) + posterior.log_likelihood
        return torch.where(linked, where, -1), score, posterior


@dataclass
class Hmm(OneDirection):
    """The hidden Markov model of Vogel et al. (1996): adjacent words are linked to words near each other.

    `ibm1_iterations` of IBM 1 initialise the table, then `iterations` of the HMM follow. NULL remembers the
    position before it (Och & Ney 2003), so that a word without a counterpart does not break a sequence. The
    probability of a jump depends on its distance, up to `window` either way (longer ones are equally likely); a
    share `uniform` goes anywhere, since sentences with the same content often order their parts differently.
    """

    ibm1_iterations: Annotated[int, Within(0, 10**6)] = 5
    iterations: _Rounds = 5
    window: Annotated[int, Within(1, LONGEST)] = 5
    uniform: Share = 0.5

    @property
    def stages(self) -> list[bool]:
        begun = 0 if len(self.table) else self.ibm1_iterations  # an existing table needs no initialisation
        return [False] * begun + [True] * self.iterations

    def first_moves(self) -> Moves:
        return Moves(self.p0, self.uniform, Jumps.uniform(self.window, self.device))

    def found(self, x: Chains, moves: Moves) -> tuple[torch.Tensor, torch.Tensor, Posterior]:
        return *best_paths(x, moves), posteriors(x, moves)


@dataclass
class Agreement(Bidirectional):
    """Alignment by agreement (Liang, Taskar & Klein 2006), the Cross-EM of MANLI's Table 1.

    `forward` and `backward` are two IBM 1 or two HMMs, trained together on the same pairs. Each counts the
    product of both posteriors of a link, and the rest of a word's probability as NULL. Jumps are counted as each
    direction expects them by itself, which the paper leaves open. The sum of both log-likelihoods need not rise,
    since agreement is maximised. In the first `alone` iterations the directions do not agree yet: from uniform
    tables, the product of two posteriors is close to 0, and directions that agree on NULL everywhere never
    recover.
    """

    alone: Annotated[int, Within(0, 10**6)] = 5

    def __post_init__(self) -> None:
        check_bounds(type(self), vars(self))
        super().__post_init__()
        one, other = self._pair()
        for name, value, backward in (
            ("form", one.form, other.form),
            ("lexicon", one.lexicon, other.lexicon),
            ("text", one.files, other.files),
            ("stages", one.stages, other.stages),
            ("batch_cells", one.batch_cells, other.batch_cells),
            ("device", one.device, other.device),
        ):
            if value != backward:
                raise ConfigError(
                    f"{name} is {value} forward and {backward} backward: to agree, they must be the same"
                )

    def _pair(self) -> tuple[OneDirection, OneDirection]:
        one, other = self.forward, self.backward
        if isinstance(one, OneDirection) and isinstance(other, OneDirection):
            return one, other
        wrong = one if not isinstance(one, OneDirection) else other
        raise ConfigError(f"{type(wrong).__name__} cannot learn by agreement: Ibm1 and Hmm can")

    def fit(
        self,
        examples: Sequence[Example],
        dev: Sequence[Example] = (),
        watch: Watcher | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> TrainingReport:
        one, other = self._pair()
        words = one.training_pairs(examples)
        directions = one.direction(words), other.direction([(target, source) for source, target in words])
        alone = 0 if len(one.table) else self.alone  # earlier training gives something to agree upon

        def combine(found: Sequence[Posterior], iteration: int) -> Sequence[Counted]:
            return separate(found, iteration) if iteration <= alone else agreed(found)

        return _train((one, other), directions, combine, watch, checkpoint or UNKEPT)
