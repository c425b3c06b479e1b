"""The hidden Markov model of Vogel et al. (1996): IBM 1 where neighbours stand for words near each other.

In one direction; `Bidirectional` runs two, `Agreement` trains two together. See directed.py for other settings.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ...errors import ConfigError
from .directed import Directed
from .jumps import Jumps
from .lattice import Chains, Moves, Posterior, best_paths, posteriors


@dataclass
class Hmm(Directed):
    """`ibm1_iterations` of IBM 1 come first and start the table, then `iterations` of the HMM.

    NULL remembers the position before it (Och & Ney 2003), so that a word without a counterpart does not break a
    sequence. A jump's chance depends on its distance, up to `window` either way (longer ones are equally likely),
    and `uniform` of it goes anywhere: sentences that say the same often put their parts in another order.
    """

    ibm1_iterations: int = 5
    iterations: int = 5
    window: int = 5
    uniform: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, least in (("ibm1_iterations", 0), ("iterations", 1), ("window", 1)):
            if getattr(self, name) < least:
                raise ConfigError(f"{name}={getattr(self, name)}: must be at least {least}")
        if not 0 <= self.uniform <= 1:
            raise ConfigError(f"uniform={self.uniform}: must be between 0 and 1")

    @property
    def stages(self) -> list[bool]:
        begun = 0 if len(self.table) else self.ibm1_iterations  # a table that there is needs no start
        return [False] * begun + [True] * self.iterations

    def first_moves(self) -> Moves:
        return Moves(self.p0, self.uniform, Jumps.uniform(self.window, self.device))

    def found(self, x: Chains, moves: Moves) -> tuple[torch.Tensor, torch.Tensor, Posterior]:
        return *best_paths(x, moves), posteriors(x, moves)
