"""The conditional random field in one direction: each source token takes a target position or NULL.

`Bidirectional` trains one for each direction.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np

from ..crf.arrays import usable_device
from ..crf.kernel import Flat
from ..crf.layout import Layout
from ..crf.links import decoded
from ..crf.scores import ChainScores, RawBlock, Scorer, known_columns, node_scores, numbered
from ..crf.states import PLAIN, POLICIES, REMEMBERING, readings
from ..errors import ConfigError, ModelError
from ..features.api import Block
from ..features.featureset import Families, FeatureBatch, FeatureSet, join
from ..features.grid import grids
from ..symmetrize import Symmetrizer
from ..types import Alignment, Example, SentencePair
from ..util import ranks
from ..util.build import INTERNAL, Cells, Count, Inside, Items, NotNegative, OneOf, Positive, check_bounds
from ..util.geometry import Geometry
from .base import numbers_in, words_in

if TYPE_CHECKING:
    from ..crf.objective import Part
    from ..explain import Explanation
    from .training import Checkpoint, TrainingReport, Watcher

log = logging.getLogger(__name__)

Policy = Annotated[str, OneOf(tuple(POLICIES))]
Precision = Annotated[str, OneOf(("float64", "float32"))]

NOISE = {"float64": 0.0, "float32": 2e-7}  # the relative error of a loss by which steps of the search are judged


@dataclass(frozen=True)
class Prepared:
    """Pairs with their features: sizes, the places of those with words on both sides, and their scores by weight.

    The scores are linear in the weights of `names`.
    """

    sizes: list[tuple[int, int]]
    full: list[int]
    names: list[str]
    scores: ChainScores | None


@dataclass
class Crf:
    """A first-order chain over source tokens.

    `families`    feature families by name; `drop` leaves some out.
    `l2`          inverse variance of the Gaussian prior on the weights; `priors` multiplies it for columns by the
                  longest matching beginning of their names, e.g. `{"pos.": 4}`.
    `cost_null`, `cost_link`  softmax-margin cost of a wrong state where gold is NULL, where gold is a link.
    `policy`      which link trains where a source token has several (see crf/states.py); if several policies are
                  named, each chooses for an equal share.
    `remember`    whether NULL remembers the last link, so that jumps go on across it (see crf/states.py).
    `prune`       columns that change no score by this much (weight times value) are removed, and the others
                  trained further.
    `l2_style`    inverse variance of the prior on the deviations of a style. Training pairs of several styles
                  (conventions) share weights, from which those of each style deviate.
    `style`       the style to align by if none is chosen; null: the shared weights alone.
    `start`       initial value of all weights; the optimum does not depend on it.
    `batch_cells` how many lattice cells go through inference at once.
    `precision`   of training; "float32" for devices that are slow in double precision.
    `mean`        where the prior has the weights, by column (0 elsewhere), as `start_from` sets it; `pull`
                  multiplies the prior of these columns.
    """

    families: Families
    drop: str | Sequence[str] = ()
    l2: Positive = 1.0
    priors: Mapping[str, Positive] = field(default_factory=dict)
    cost_null: NotNegative = 1.0
    cost_link: NotNegative = 1.0
    policy: Policy | Annotated[Sequence[Policy], Items(1)] = "monotone"
    remember: bool = False
    prune: NotNegative = 0.0
    max_iterations: Count = 500
    tolerance: Inside = 1e-7
    l2_style: Positive = 8.0
    style: str | None = None
    start: float = 0.0
    batch_cells: Cells = 500_000
    device: str = "cpu"
    precision: Precision = "float64"
    part: str = "forward"
    names: Annotated[list[str], INTERNAL] = field(default_factory=list, repr=False)
    weights: Annotated[np.ndarray, INTERNAL] = field(default_factory=partial(np.zeros, 0), repr=False)
    mean: Annotated[Mapping[str, float], INTERNAL] = field(default_factory=dict, repr=False)
    pull: Annotated[float, INTERNAL] = 1.0
    deviations: dict[str, np.ndarray] = field(default_factory=dict, init=False, repr=False)

    keeps_progress: ClassVar[bool] = True
    splits_pairs: ClassVar[bool] = True
    weighs_examples: ClassVar[bool] = True
    learns_styles: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_bounds(Crf, vars(self))
        self.features = FeatureSet(self.families, self.drop, gaps=self.remember)
        self._scorer: Scorer | None = None
        self._chosen: str | None = None
        self._policies = [self.policy] if isinstance(self.policy, str) else list(self.policy)
        self.device = usable_device(self.device)
        self.shared = self.weights

    @property
    def styles(self) -> tuple[str, ...]:
        return tuple(self.deviations)

    @property
    def requires(self) -> tuple[str, ...]:
        return self.features.requires

    @property
    def resources(self) -> tuple[str, ...]:
        return self.features.resources

    # Training

    def fit(
        self,
        examples: Sequence[Example],
        dev: Sequence[Example] = (),
        watch: Watcher | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> TrainingReport:
        from ..crf.objective import Objective, among, mattering, prior, scattered  # imports torch
        from ..optimize.minimise import minimise
        from .training import UNKEPT, Step, TrainingReport, learnable, styles_of

        examples = learnable(examples)
        styles = styles_of(examples)
        parts, batches, names, (dropped, links) = self._parts(examples, styles)
        first = dict.fromkeys(names, 0.0 if self.names or self.mean else self.start)
        first.update(self.mean)
        first.update(zip(self.names, self.shared if self.deviations else self.weights, strict=True))
        begin = np.append([*first.values()], np.zeros(len(styles) * len(names)))
        mean, strength = prior(names, self.priors, self.mean, self.pull)
        widths = np.array([self.l2, *[self.l2_style] * len(styles)])
        l2 = np.outer(widths, strength).reshape(-1)
        costs = {"cost_null": self.cost_null, "cost_link": self.cost_link}
        mean = np.append(mean, np.zeros(len(begin) - len(mean)))
        objective = Objective(parts, l2, costs, self.batch_cells, self.device, mean, len(styles))

        def step(iteration: int, x: np.ndarray, loss: float, gradient_norm: float) -> None:
            self._take(names, styles, x)
            if watch is not None:
                watch(Step(self.part, iteration, loss, gradient_norm, self))

        search = partial(
            minimise,
            max_iterations=self.max_iterations,
            tolerance=self.tolerance,
            noise=NOISE[self.precision],
            curvature=float(l2.min()),
            history=100,  # shorter memories take up to eight times the steps on features as correlated as these
        )
        checkpoint = checkpoint or UNKEPT
        phase = checkpoint.phase("all") if self.prune else checkpoint  # all columns, and then those that are kept
        first_search = partial(search, callback=step, resume=phase.kept(), keep=phase.keep)
        scale = np.repeat(np.sqrt(self.l2 / widths), len(names))  # in which all priors are equally wide
        result, done = first_search(objective, begin, scale=scale), 0
        self._take(names, styles, result.x)
        if self.prune and not result.interrupted:
            kept, done = mattering(batches, names, result.x, self.prune), result.iterations
            log.info("%s: %d of %d columns are kept, the others removed", self.part, kept.sum(), len(names))
            every = np.tile(kept, len(widths))

            def later(iteration: int, x: np.ndarray, loss: float, gradient_norm: float) -> None:
                step(done + iteration, scattered(x, every), loss, gradient_norm)  # the same columns throughout

            last_search = partial(search, callback=later, resume=checkpoint.kept(), keep=checkpoint.keep)
            result = last_search(among(objective, every), result.x[every], scale=scale[every])
            self._take([names[k] for k in np.flatnonzero(kept)], styles, result.x)
        iterations = done + result.iterations
        log.info(
            "%s: loss %.6f after %d iterations, %d evaluations (%s)",
            self.part, result.loss, iterations, result.evaluations, result.message,
        )  # fmt: skip
        return TrainingReport(
            {self.part: result.loss}, {self.part: iterations}, result.converged, result.interrupted, dropped, links
        )

    def _parts(
        self, examples: Sequence[Example], styles: Sequence[str]
    ) -> tuple[list[Part], list[FeatureBatch], list[str], tuple[int, int]]:
        """Return the pairs of each style with their scores and gold paths, their features, and all columns.

        Processes that train together have a share of the pairs each.
        After them come how many links of gold no path takes, and how many there are.
        """
        from ..crf.objective import Part

        if ranks.world > 1:
            cells = [len(example.pair.source) * len(example.pair.target) for example in examples]
            examples = [examples[k] for k in ranks.share(cells)]
        lengths = list(map(len, map(attrgetter("pair.target"), examples)))
        own: dict[int | None, list[Example]] = {}
        for k in np.argsort(lengths, kind="stable").tolist():  # features are fastest in this order
            example = examples[k]
            own.setdefault(styles.index(example.style) if example.style in styles else None, []).append(example)
        batches: list[FeatureBatch] = []
        known = {*self.names, *self.mean}
        for some in own.values():
            batches.append(self.features(list(map(attrgetter("pair"), some))))
            known.update(batches[-1].names())
        if ranks.world > 1:
            known = known.union(*ranks.gathered(known))
        names, parts, dropped, links = sorted(known), [], 0, 0
        for (style, some), batch in zip(own.items(), batches, strict=True):
            gold = []
            for example in some:
                if example.gold is not None:
                    reading = readings(example.gold, self._policies)
                    gold.append(reading.paths)
                    dropped += reading.dropped
                    links += len(example.gold.sure)
            counts = np.fromiter(map(attrgetter("weight"), some), np.float64, len(some))
            scores = self.chain_scores(batch, names)
            parts.append(Part(scores, gold, None if (counts == 1).all() else counts, style))
        if ranks.world > 1:
            dropped, links = (sum(counts) for counts in zip(*ranks.gathered((dropped, links)), strict=True))
        return parts, batches, names, (dropped, links)

    def _take(self, names: list[str], styles: Sequence[str], x: np.ndarray) -> None:
        """Take the weights of these columns: the shared ones, and then the deviation of each style.

        Deviations are rounded to single precision, in which they are saved: they are most of a model.
        """
        shared, *deviations = x.reshape(1 + len(styles), -1)
        self.names, self.shared, self.deviations = names, shared, {}
        for style, deviation in zip(styles, deviations, strict=True):
            self.deviations[style] = deviation.astype(np.float32).astype(np.float64)
        self.weights = shared
        if styles:
            self.choose(self._chosen)

    def choose(self, style: str | None) -> None:
        """Align by a style from now on: by the shared weights plus its deviation. None: by the usual style."""
        if style is not None and style not in self.deviations:
            from .styles import no_style

            raise no_style(style, self.deviations)
        self._chosen, usual = style, style or self.style
        self.weights = self.shared + self.deviations[usual] if usual in self.deviations else self.shared

    def chain_scores(self, batch: FeatureBatch, names: Sequence[str]) -> ChainScores:
        """Return the scores of a batch of features as functions of the weights of `names`."""
        number = dict(zip(names, range(len(names)), strict=True))
        layout = self.layout(Geometry(batch.n_source, batch.n_target))

        blocks: dict[str, Sequence[Block]] = {"null": batch.null, "link": batch.link}
        for kind, per_length in (("edge", batch.edge), ("start", batch.start), ("end", batch.end)):
            blocks[kind] = list(map(join, zip(*map(per_length.__getitem__, layout.distinct), strict=True)))
        known: dict[str, Sequence[RawBlock]] = {}
        for kind, own in blocks.items():
            known[kind] = raw = []
            for block in own:
                raw.append(known_columns(block, numbered(block.names, number)))
        return ChainScores(layout, known, len(names), self.device, self.precision)

    def layout(self, geometry: Geometry) -> Layout:
        """Return where the scores of the pairs of a geometry stand."""
        return Layout(geometry, REMEMBERING if self.remember else PLAIN)

    # Alignment

    def prepared(self, pairs: Sequence[SentencePair]) -> Prepared:
        """Compute the features of pairs, to be decoded as often as the weights change."""
        sizes = [(len(p.source), len(p.target)) for p in pairs]
        full = sorted((k for k, (m, n) in enumerate(sizes) if m and n), key=lambda k: sizes[k][1])
        if not full:
            return Prepared(sizes, full, self.names, None)
        self.scorer()  # which says so if there are no weights
        scores = self.chain_scores(self.features([pairs[k] for k in full]), self.names)
        return Prepared(sizes, full, self.names, scores)

    def decode(self, prepared: Prepared, confidence: bool = True) -> list[Alignment]:
        """Align prepared pairs by Viterbi.

        `confidence` adds posteriors and, as the score, log p(states | pair) per source token.
        """
        import torch  # training, which prepares pairs, has imported it

        out = [Alignment(m, n) for m, n in prepared.sizes]
        if prepared.scores is None:
            return out
        if prepared.names != self.names:
            raise ValueError("these pairs were prepared for another set of features")
        weights = torch.as_tensor(self.weights, dtype=torch.float64, device=self.device)
        flat: Flat = prepared.scores.flat(weights)
        if self.device == "cpu":
            flat = list(map(torch.Tensor.numpy, flat))
        found = decoded(prepared.scores.layout, flat, self.device, confidence)
        for place, alignment in zip(prepared.full, found, strict=True):
            out[place] = alignment
        return out

    def align(self, pairs: Sequence[SentencePair], confidence: bool = True) -> list[Alignment]:
        """Do what decode(prepared(pairs)) does without keeping features: each family is scored and forgotten."""
        out = [Alignment(len(pair.source), len(pair.target)) for pair in pairs]
        for places, grid in grids(pairs, self.batch_cells):
            (nodes,) = node_scores(grid, self.scorer())
            for place, alignment in zip(places, decoded(*self.scored(grid, nodes), confidence), strict=True):
                out[place] = alignment
        return out

    def align_links(self, pairs: Sequence[SentencePair]) -> list[Alignment]:
        """Return the links that `align` finds, without posteriors and scores, which is faster."""
        return self.align(pairs, confidence=False)

    def scorer(self) -> Scorer:
        """Return the scorer for the present weights; an error if there are none."""
        if not self.names:
            raise ModelError(
                f"the {self.part} direction has not been trained: fit it, or continue with resume=DIR"
            )
        found = self._scorer
        if found is None or found.names is not self.names or not np.array_equal(found.weights, self.weights):
            found = self._scorer = Scorer(self.features, self.names, self.weights)  # training changes weights
        return found

    def scored(self, geometry: Geometry, nodes: np.ndarray) -> tuple[Layout, Flat, str]:
        """Return the layout of pairs, their flat scores given those of the nodes, and the device to decode on."""
        layout = self.layout(geometry)
        return layout, (nodes, *self.scorer().edges(layout)), self.device

    def explain(
        self, pairs: Sequence[SentencePair], symmetrize: Symmetrizer | str | None = None
    ) -> Iterator[Explanation]:
        """Explain the links that `align` finds; there is one direction, so nothing to symmetrize."""
        from ..explain.chains import explained

        return explained(self, None, pairs, self.align)

    # Persistence

    def start_from(self, state: Mapping[str, np.ndarray | list[str]], pull: float) -> None:
        """Take a chain's weights, without those of families that this chain lacks, as the mean of the prior."""
        if not 0 < pull < np.inf:
            raise ConfigError(f"pull={pull}: must be positive, and finite")
        self.restore(state)
        mean = {}
        for name, weight in zip(self.names, self.weights.tolist(), strict=True):
            if name.partition(".")[0] in self.features.names:
                mean[name] = weight
        if len(mean) < len(self.names):
            log.warning(
                "%s: %d of the start's %d weights are of feature families that are not read here",
                self.part, len(self.names) - len(mean), len(self.names),
            )  # fmt: skip
        self._take(list(mean), (), np.array([*mean.values()]))
        self.mean, self.pull = mean, pull

    def state(self) -> dict[str, np.ndarray | list[str]]:
        state: dict[str, np.ndarray | list[str]] = {"names": list(self.names), "weights": self.weights}
        if self.deviations:
            state["weights"] = self.shared
            state |= {
                "styles": list(self.deviations),
                "deviations": np.array([*self.deviations.values()], np.float32),
            }
        return state

    def restore(self, state: Mapping[str, np.ndarray | list[str]]) -> None:
        names, weights = words_in(state, "names"), numbers_in(state, "weights", None)
        if len(names) != len(weights) or len(set(names)) != len(names):
            raise ConfigError(
                f"{len(names)} feature names, {len(set(names))} of them distinct, for {len(weights)} weights"
            )
        self.names, self.weights, self.shared, self.deviations = names, weights, weights, {}
        if "styles" in state:
            styles = words_in(state, "styles")
            deviations = numbers_in(state, "deviations", len(set(styles)), len(names))
            self._chosen, self.deviations = None, dict(zip(dict.fromkeys(styles), deviations, strict=True))
            if self.style in self.deviations:
                self.weights = weights + self.deviations[self.style]

    def check_columns(self, others: Sequence[str] = ()) -> None:
        """Raise ConfigError unless the columns are those of the families, and `others`; none may be missing."""
        self.features.check_columns(self.names, self.prune > 0, others)
