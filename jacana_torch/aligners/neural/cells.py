"""Between pairs and grids: which pairs make a batch, gold as matrices, probabilities as alignments."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ...crf.inference import marginals
from ...crf.states import gold_states
from ...types import Alignment, trusted
from .network import Judged

# The mean posterior of both chains; each cell by itself; the mean of the two.
JUDGES = ("chains", "cells", "both")
JITTER = 0.3  # how far pairs of other sizes get into a batch
_SURE = 1e-12  # no probability is nearer to 0 or 1, for scores are logarithms


def batches(
    sizes: Sequence[tuple[int, int]], most_pairs: int, most_cells: int, random: Random | None = None
) -> list[list[int]]:
    """Numbers of pairs of like sizes; `random` makes them others each time, and in any order.

    Padded they have no more than `most_cells`, but that each has one pair at least.
    """
    wobble = (lambda: 1 + JITTER * random.random()) if random is not None else (lambda: 1.0)
    key = [m * n * wobble() for m, n in sizes]
    out: list[list[int]] = []
    tallest = widest = 0
    for k in sorted(range(len(sizes)), key=lambda k: key[k]):
        m, n = sizes[k]
        tall, wide = max(tallest, m), max(widest, n)
        if not out or len(out[-1]) == most_pairs or (len(out[-1]) + 1) * tall * wide > most_cells:
            out.append([])
            tall, wide = m, n
        out[-1].append(k)
        tallest, widest = tall, wide
    if random is not None:
        random.shuffle(out)
    return out


class Gold(NamedTuple):
    """What a pair trains: a state for each token of either side, all links [M, N], and how many no state holds."""

    ahead: np.ndarray
    back: np.ndarray
    links: np.ndarray
    dropped: int


def gold_of(gold: Alignment, policy: str) -> Gold:
    """The sure links, as states by that policy where a token has several."""
    ahead, back = gold_states(gold, policy).states, gold_states(gold.flip(), policy).states
    held = {(i, s - 1) for i, s in enumerate(ahead.tolist()) if s}
    held |= {(s - 1, j) for j, s in enumerate(back.tolist()) if s}
    return Gold(ahead, back, matrix_of(gold), len(gold.sure - held))


def matrix_of(gold: Alignment) -> np.ndarray:
    """[M, N] 1 where there is a sure link, 0 elsewhere."""
    out = np.zeros((gold.n_source, gold.n_target), np.float32)
    for i, j in gold.sure:
        out[i, j] = 1.0
    return out


def padded(matrices: Sequence[np.ndarray], device: str) -> Tensor:
    """[B, M, N] matrices of several sizes, 0 beyond their ends."""
    m, n = (max(one.shape[axis] for one in matrices) for axis in (0, 1))
    out = np.zeros((len(matrices), m, n), np.float32)
    for k, one in enumerate(matrices):
        out[k, : one.shape[0], : one.shape[1]] = one
    return torch.from_numpy(out).to(device)


def chances_of(judged: Judged, judge: str) -> Tensor:
    """[B, M, N] how likely each link is by that judge, in double precision."""
    if judge == "cells":
        return torch.sigmoid(judged.alone.double())
    ahead, back = (marginals(potentials).node[:, :, 1:].double() for potentials in (judged.ahead, judged.back))
    chains = (ahead + back.transpose(1, 2)) / 2
    return chains if judge == "chains" else (chains + torch.sigmoid(judged.alone.double())) / 2


def alignment_of(chances: np.ndarray, threshold: float) -> Alignment:
    """The cells that are likelier than the threshold; the score is the log-probability of all cells' being as they
    are, per source token."""
    m, n = chances.shape
    linked = chances > threshold
    rows, columns = np.nonzero(linked)
    links = list(zip(rows.tolist(), columns.tolist(), strict=True))
    confidence = dict(zip(links, chances[rows, columns].tolist(), strict=True))
    right = np.clip(np.where(linked, chances, 1 - chances), _SURE, 1.0)
    return trusted(m, n, frozenset(links), confidence=confidence, score=float(np.log(right).sum() / m))
