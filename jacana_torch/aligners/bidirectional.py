"""Two one-to-many aligners, one per direction, and a symmetrizer that makes their links one alignment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np

from ..errors import ConfigError
from ..symmetrize import BY_LINKS, Symmetrizer, name_of, symmetrizer
from ..types import Alignment, Example, SentencePair, resources_of
from ..util.build import INTERNAL
from .base import CannotExplain, HasColumns, OneWay, ReadsNatively, Trainable
from .crf import Crf
from .posterior import SHARED, Combination, Posterior, aligned, both_ways

if TYPE_CHECKING:
    from ..explain import Explanation
    from .training import Checkpoint, TrainingReport, Watcher


@dataclass
class Bidirectional:
    """Align in both directions and symmetrize.

    `forward` aligns source to target, `backward` target to source; `symmetrize` (a function or its name) joins
    them. A `Posterior` needs the posteriors of all links, and so two chains (Crf). `combination` makes one
    calibrated probability of the two posteriors of a link; confidences are such probabilities, whichever
    symmetrizer chose the links. `usual` is the combination of the model that training started from, if any.
    `combinations` has those of the styles, if the chains have learnt several.
    """

    forward: Trainable
    backward: Trainable
    symmetrize: Symmetrizer | Posterior | str = "intersection"
    combination: Annotated[Combination, INTERNAL] = field(default_factory=Combination)
    usual: Annotated[Combination | None, INTERNAL] = None
    combinations: dict[str, Combination] = field(default_factory=dict, init=False, repr=False)

    keeps_progress: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for part, aligner in (("forward", self.forward), ("backward", self.backward)):
            if not isinstance(aligner, Trainable):
                raise ConfigError(f"{part}={aligner!r} is not a trainable aligner")
            if isinstance(aligner, OneWay):
                aligner.part = part
        join = self._join()  # what cannot be joined is an error now, not after training
        if isinstance(join, Posterior):
            self.symmetrize = join

    @property
    def requires(self) -> tuple[str, ...]:
        return tuple(sorted({*self.forward.requires, *self.backward.requires}))

    @property
    def resources(self) -> tuple[str, ...]:
        return resources_of(self.forward, self.backward)

    @property
    def reads_natively(self) -> bool:
        """Whether foreign native code reads the weights of a direction."""
        for aligner in (self.forward, self.backward):
            if isinstance(aligner, ReadsNatively) and aligner.reads_natively:
                return True
        return False

    @property
    def weighs_examples(self) -> bool:
        """Whether both directions do."""
        from .training import Weighs

        return all(isinstance(one, Weighs) and one.weighs_examples for one in (self.forward, self.backward))

    @property
    def learns_styles(self) -> bool:
        """Whether both directions are chains (Crf), which tell conventions apart."""
        return self.chains() is not None

    @property
    def styles(self) -> tuple[str, ...]:
        """The conventions that both directions have learnt."""
        chains = self.chains()
        return () if chains is None else chains[0].styles

    @property
    def splits_pairs(self) -> bool:
        """Whether several processes can train both directions, each on its share of the pairs."""
        return self.chains() is not None

    @property
    def symmetrizer_name(self) -> str:
        return name_of(self.symmetrize)

    def fit(
        self,
        examples: Sequence[Example],
        dev: Sequence[Example] = (),
        watch: Watcher | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> TrainingReport:
        from .training import UNKEPT, fit_phase

        checkpoint = checkpoint or UNKEPT
        forward = fit_phase(self.forward, examples, dev, watch, checkpoint.phase("forward"))
        if forward.interrupted:
            return forward
        try:
            flipped, dev = list(map(Example.flip, examples)), list(map(Example.flip, dev))
            backward = fit_phase(self.backward, flipped, dev, watch, checkpoint.phase("backward"))
        except KeyboardInterrupt:  # before its first step: the other direction is done, and must not be lost
            return replace(forward, converged=False, interrupted=True)
        report = forward + backward
        chains = self.chains()
        join = self.symmetrize
        if chains is None or not isinstance(join, Posterior) or report.interrupted or not join.folds:
            return report
        from .calibration import learnt

        try:
            phase = checkpoint.phase("calibration")
            found = learnt(*chains, examples, (join.folds, join.seed), self.usual, phase)
            self.combination = found.get(SHARED, self.combination)
            if len(found) > 1:
                self.combinations = found
                self.choose(None)
        except KeyboardInterrupt:  # the directions are done
            return replace(report, converged=False, interrupted=True)
        return report

    def parts(self, examples: Sequence[Example]) -> list[str]:
        """Return the phases of `fit` that need nothing of each other: directions, and folds of the calibration."""
        found = ["forward", "backward"]
        if self.chains() is not None and isinstance(self.symmetrize, Posterior):
            from .calibration import PART, folds_of

            found += [f"{PART}{number + 1}" for number in range(folds_of(examples, self.symmetrize.folds))]
        return found

    def fit_part(self, part: str, examples: Sequence[Example], checkpoint: Checkpoint) -> None:
        """Train a part as a phase of the checkpoint."""
        from .calibration import PART, held_out
        from .training import fit_phase, learnable

        if part.startswith(PART):
            chains, join = self.chains(), self.symmetrize
            assert chains is not None and isinstance(join, Posterior)
            phase, only = checkpoint.phase("calibration"), int(part.removeprefix(PART))
            list(held_out(*chains, learnable(examples), join.folds, join.seed, phase, only))
            return
        seen = list(map(Example.flip, examples)) if part == "backward" else examples
        fit_phase(getattr(self, part), seen, phase=checkpoint.phase(part))

    def directions(
        self, pairs: Sequence[SentencePair], confidence: bool = True
    ) -> tuple[list[Alignment], list[Alignment]]:
        """Return the alignments of both directions, from source to target."""
        if chains := self.chains():
            forward: list[Alignment] = []
            for pair in pairs:
                forward.append(Alignment(len(pair.source), len(pair.target)))
            backward = list(forward)
            for places, both in both_ways(*chains, pairs):  # features of word pairs are computed once for the two
                for place, there, back in zip(places, *both.links(confidence), strict=True):
                    forward[place], backward[place] = there, back
            return forward, backward
        backward = self.backward.align(list(map(SentencePair.flip, pairs)))
        return self.forward.align(pairs), list(map(Alignment.flip, backward))

    def align(
        self,
        pairs: Sequence[SentencePair],
        symmetrize: Symmetrizer | Posterior | str | None = None,
        confidence: bool = True,
    ) -> list[Alignment]:
        join, chains = self._join(symmetrize), self.chains()
        if chains and (isinstance(join, Posterior) or _function(join) in BY_LINKS.values()):
            return aligned(*chains, pairs, join, self.combination, confidence)
        assert not isinstance(join, Posterior)  # these need chains
        return [join(f, b) for f, b in zip(*self.directions(pairs, confidence), strict=True)]

    def _join(self, asked: Symmetrizer | Posterior | str | None = None) -> Symmetrizer | Posterior:
        """Return what joins the directions: the one asked for, else its own. A `Posterior` needs two chains."""
        join = asked or self.symmetrize
        if isinstance(join, str) and name_of(join) == "posterior" and isinstance(self.symmetrize, Posterior):
            join = self.symmetrize
        made: Symmetrizer | Posterior = symmetrizer(join) if isinstance(join, str) else join
        if isinstance(made, Posterior) and self.chains() is None:
            raise ConfigError(
                f"symmetrize=posterior needs the posteriors of all links, which {type(self.forward).__name__} "
                f"does not give: choose one of {', '.join(BY_LINKS)}"
            )
        return made

    def choose(self, style: str | None) -> None:
        """Align by a style from now on; None: by the usual one."""
        chains = self.chains()
        if chains is None:
            from .styles import no_style

            raise no_style(str(style), ())
        for chain in chains:
            chain.choose(style)
        if self.combinations:
            usual = self.combinations[SHARED]
            self.combination = self.combinations.get(style or chains[0].style or SHARED, usual)

    def chains(self) -> tuple[Crf, Crf] | None:
        """Return both directions if they are chains (Crf), else None."""
        one, other = self.forward, self.backward
        if isinstance(one, Crf) and isinstance(other, Crf):
            return one, other
        return None

    def posteriors(self, pairs: Sequence[SentencePair]) -> list[np.ndarray] | None:
        """[M, N] probability of a link in each cell of each pair; None unless both directions are chains (Crf)."""
        chains = self.chains()
        if chains is None:
            return None
        out: list[np.ndarray] = [np.zeros((len(pair.source), len(pair.target))) for pair in pairs]
        for places, both in both_ways(*chains, pairs):
            flat = self.combination.combine(*both.posteriors())
            for place, own in zip(places, np.split(flat, both.grid.cell_start[1:]), strict=True):
                out[place] = own.reshape(out[place].shape)
        return out

    def explain(
        self, pairs: Sequence[SentencePair], symmetrize: Symmetrizer | Posterior | str | None = None
    ) -> Iterator[Explanation]:
        """Explain the links of both directions, and of the alignment that they are joined to."""
        from ..explain.chains import explained

        chains = self.chains()
        if chains is None:
            raise CannotExplain(f"two chains (Crf) can be explained, {type(self.forward).__name__} cannot")
        join = symmetrize or self.symmetrize
        self._join(join)  # an unknown name is an error now, not at the first explanation
        return explained(*chains, pairs, partial(self.align, symmetrize=join), name_of(join).replace("_", "-"))

    def start_from(self, state: Mapping[str, np.ndarray | list[str]], pull: float) -> None:
        """Start from two directions, also from those within a mixed model, and from how they were combined."""
        from .training import FineTunable

        within = {k.removeprefix("linear."): v for k, v in state.items() if k.startswith("linear.")}
        parts, state = _parts(within or state), within or state
        for part, aligner in (("forward", self.forward), ("backward", self.backward)):
            if not isinstance(aligner, FineTunable):
                raise ConfigError(f"{part}: {type(aligner).__name__} cannot start from another model")
            aligner.start_from(parts[part], pull)
        style = self.forward.style if isinstance(self.forward, Crf) else None
        self.combination = self.usual = Combination.restored(state, style or SHARED)

    def state(self) -> dict[str, np.ndarray | list[str]]:
        parts = {"forward": self.forward.state(), "backward": self.backward.state()}
        state: dict[str, np.ndarray | list[str]] = {}
        for part, own in parts.items():
            for key, value in own.items():
                state[f"{part}.{key}"] = value
        for style, combination in (self.combinations or {SHARED: self.combination}).items():
            if combination != Combination():
                state |= combination.state(style)
        return state

    def restore(self, state: Mapping[str, np.ndarray | list[str]]) -> None:
        parts = _parts(state)
        self.forward.restore(parts["forward"])
        self.backward.restore(parts["backward"])
        self.combination = Combination.restored(state)
        if "forward.styles" in state and isinstance(self.forward, Crf):
            self.combinations = {SHARED: self.combination}
            for style in self.forward.deviations:
                self.combinations[style] = Combination.restored(state, style)
            self.combination = self.combinations.get(self.forward.style or SHARED, self.combination)

    def check_columns(self) -> None:
        """Raise ConfigError unless the columns of both directions are those of their families."""
        for part, aligner in (("forward", self.forward), ("backward", self.backward)):
            if isinstance(aligner, HasColumns):
                try:
                    aligner.check_columns()
                except ConfigError as error:
                    raise ConfigError(f"{part}: {error}") from None


def _parts(state: Mapping[str, np.ndarray | list[str]]) -> dict[str, dict[str, np.ndarray | list[str]]]:
    """Return the state of each direction."""
    parts: dict[str, dict[str, np.ndarray | list[str]]] = {"forward": {}, "backward": {}}
    for key, value in state.items():
        part, _, name = key.partition(".")
        if part in parts and name:
            parts[part][name] = value
    return parts


def _function(join: object) -> object:
    """Return the function that a config names; configs make partial functions."""
    return join.func if isinstance(join, partial) else join
