"""Two one-to-many aligners, one a direction, and a symmetrizer that makes one many-to-many alignment of theirs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ..errors import ConfigError
from ..explain import Explanation
from ..symmetrize import Symmetrizer, symmetrizer
from ..types import Alignment, Example, SentencePair
from .base import CannotExplain, Trainable, TrainingReport, Watcher
from .crf import Crf
from .decoding import grids
from .scoring import node_scores


@dataclass
class Bidirectional:
    """`forward` aligns source to target, `backward` target to source; `symmetrize` (a function, or its name) joins
    the two."""

    forward: Trainable
    backward: Trainable
    symmetrize: Symmetrizer | str = "intersection"

    def __post_init__(self) -> None:
        _function(self.symmetrize)  # an unknown name is an error now, not after an hour's training
        for part in ("forward", "backward"):
            if not isinstance(getattr(self, part), Trainable):
                raise ConfigError(f"{part}={getattr(self, part)!r} is no aligner that can be trained")
        self.forward.part, self.backward.part = "forward", "backward"  # type: ignore[attr-defined]

    @property
    def requires(self) -> tuple[str, ...]:
        return tuple(sorted({*self.forward.requires, *self.backward.requires}))

    @property
    def resources(self) -> tuple[str, ...]:
        both = (self.forward, self.backward)
        return tuple(sorted({name for aligner in both for name in getattr(aligner, "resources", ())}))

    def fit(
        self, examples: Sequence[Example], dev: Sequence[Example] = (), watch: Watcher | None = None
    ) -> TrainingReport:
        forward = self.forward.fit(examples, dev, watch)
        if forward.interrupted:
            return forward
        try:
            backward = self.backward.fit([e.flip() for e in examples], [e.flip() for e in dev], watch)
        except KeyboardInterrupt:  # before its first step: the other direction is done, and must not be lost
            return replace(forward, converged=False, interrupted=True)
        return forward + backward

    def directions(
        self, pairs: Sequence[SentencePair], confidence: bool = True
    ) -> tuple[list[Alignment], list[Alignment]]:
        """Both directions' alignments, both as source to target."""
        one, other = self.forward, self.backward
        if isinstance(one, Crf) and isinstance(other, Crf) and type(one).align is type(other).align is Crf.align:
            return _together(one, other, pairs, confidence)
        backward = other.align([pair.flip() for pair in pairs])
        return one.align(pairs), [alignment.flip() for alignment in backward]

    def align(
        self,
        pairs: Sequence[SentencePair],
        symmetrize: Symmetrizer | str | None = None,
        confidence: bool = True,
    ) -> list[Alignment]:
        join = _function(symmetrize or self.symmetrize)
        return [join(f, b) for f, b in zip(*self.directions(pairs, confidence), strict=True)]

    def explain(
        self, pairs: Sequence[SentencePair], symmetrize: Symmetrizer | str | None = None
    ) -> Iterator[Explanation]:
        """What features say of the links in either direction, and what was made of the two."""
        from .explaining import explained, name_of

        one, other = self.forward, self.backward
        if not (
            isinstance(one, Crf) and isinstance(other, Crf) and type(one).align is type(other).align is Crf.align
        ):
            raise CannotExplain(f"only two chains of single words can, and {type(one).__name__} is none")
        join = symmetrize or self.symmetrize
        _function(join)  # an unknown name is an error now, not at the first explanation
        return explained(one, other, pairs, partial(self.align, symmetrize=join), name_of(join))

    def state(self) -> dict[str, np.ndarray | list[str]]:
        parts = {"forward": self.forward.state(), "backward": self.backward.state()}
        return {f"{part}.{key}": value for part, state in parts.items() for key, value in state.items()}

    def restore(self, state: Mapping[str, np.ndarray | list[str]]) -> None:
        for part, aligner in (("forward", self.forward), ("backward", self.backward)):
            mine = {k.removeprefix(f"{part}."): v for k, v in state.items() if k.startswith(f"{part}.")}
            aligner.restore(mine)


def _together(
    one: Crf, other: Crf, pairs: Sequence[SentencePair], confidence: bool
) -> tuple[list[Alignment], list[Alignment]]:
    """As each aligner for itself, but what is known of two words in one direction serves the other."""
    forward = [Alignment(len(pair.source), len(pair.target)) for pair in pairs]
    backward = list(forward)
    for places, grid in grids(pairs, min(one.batch_cells, other.batch_cells)):
        nodes = node_scores(grid, one.scorer(), other.scorer())
        ahead = one.decode_scores(grid.n_source, grid.n_target, nodes[0], confidence)
        behind = other.decode_scores(grid.n_target, grid.n_source, nodes[1], confidence)
        for place, there, back in zip(places, ahead, behind, strict=True):
            forward[place], backward[place] = there, back.flip()
    return forward, backward


def _function(symmetrize: Symmetrizer | str) -> Symmetrizer:
    return symmetrizer(symmetrize) if isinstance(symmetrize, str) else symmetrize
