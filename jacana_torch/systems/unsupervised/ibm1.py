"""IBM model 1 (Brown et al. 1993): which words stand for which, wherever they are.

In one direction; `Bidirectional` runs two. See directed.py for its settings.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ...errors import ConfigError
from .directed import Directed
from .jumps import Jumps
from .lattice import Chains, Moves, Posterior, independent

TIE = 1e-9


@dataclass
class Ibm1(Directed):
    """`iterations` of EM. Among equally likely positions, as those of a word that comes twice, the one nearest to
    the diagonal is taken: the model itself does not care."""

    iterations: int = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.iterations < 1:
            raise ConfigError(f"iterations={self.iterations}: must be at least 1")

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
        linked = (link >= posterior.null * (1 - TIE)) & (row[:, None] < x.sizes)
        best = torch.where(linked, posterior.link.gather(2, where[:, :, None])[:, :, 0], posterior.null)
        inside = row[:, None] < x.sizes
        score = torch.where(inside, best, 1.0).clamp_min(1e-300).log().sum(0) + posterior.log_likelihood
        return torch.where(linked, where, -1), score, posterior
