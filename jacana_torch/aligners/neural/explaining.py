"""Reasons of the neural aligner: the log-odds of each link as a sum over groups of the network's inputs.

The inputs of a group (the columns of one kind, or the encoder's view) are put in place of their means, one group
after the other, in all cells at once. What the log-odds of a cell gain by a group is its part, so the parts add
up to the change from means to inputs exactly, whatever the network does. How much a group gains depends on the
groups before it: parts are means over an order of the groups and its reverse, and half their difference is the
spread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ...explain import Explanation
from ...explain.parts import Parts
from ...explain.sentence import CHAINS
from ...features.titles import Titles
from ...types import Link, SentencePair
from ..posterior import log_odds
from .inputs import Batch, Encoded, Inputs
from .network import GridNetwork
from .neural import Neural, alignment_of, link_probabilities

if TYPE_CHECKING:
    from .mixed import Mixed

AT_A_TIME = 16  # pairs that the encoder reads together
ENCODER, MARKS = "encoder", "words and tags"
METHOD = (
    "Log-odds of the network, group by group of its inputs against their means (columns: over the training cells; "
    "encoder: over the cells of the pair). The groups add up exactly. How much each of them has is approximate: "
    "the mean of two orders of the groups, each of which differs from it by the spread."
)
NO_WORDS = "one of the sentences has no words, so there is nothing to link"


class Occluded(NamedTuple):
    """Probabilities [M, N] and their log-odds as parts, of one pair."""

    probabilities: np.ndarray
    parts: Parts


def explain_network(network: Neural, pairs: Sequence[SentencePair]) -> Iterator[Explanation]:
    """Yield the explanation of each pair by a network alone."""
    titles = Titles(network.features.node)
    for pair, found in zip(pairs, occlusions(network, pairs, titles), strict=True):
        if found is None:
            yield Explanation(pair, network.align([pair])[0], note=NO_WORDS)
        else:
            alignment = alignment_of(found.probabilities, network.threshold)
            yield Explanation(pair, alignment, titles=titles, parts=found.parts)


def explain_mixed(mixed: Mixed, pairs: Sequence[SentencePair]) -> Iterator[Explanation]:
    """Yield the explanation of each pair by a network and two chains, whose log-odds are added with weights."""
    titles = Titles(mixed.network.features.node)
    for start in range(0, len(pairs), AT_A_TIME):
        some = pairs[start : start + AT_A_TIME]
        posteriors = mixed.linear.posteriors(some)
        assert posteriors is not None  # both directions are chains
        networks = occlusions(mixed.network, some, titles)
        for pair, network, linear, chains in zip(
            some, networks, posteriors, mixed.linear.explain(some), strict=True
        ):
            if network is None:
                yield Explanation(pair, mixed.align([pair])[0], note=NO_WORDS)
                continue
            parts = _combined(mixed, network, linear)
            alignment = alignment_of(parts.combined, mixed.combination.threshold)
            yield replace(chains, alignment=alignment, symmetrizer=None, parts=parts)


def _combined(mixed: Mixed, network: Occluded, linear: np.ndarray) -> Parts:
    weights, one, other = mixed.combination, log_odds(network.probabilities), log_odds(linear)
    less = weights.smaller * (one <= other), weights.smaller * (one > other)
    own = network.parts.scaled(weights.forward + less[0])
    of_chains = (weights.backward + less[1]) * other
    return replace(
        own,
        names=(*own.names, CHAINS),
        start=own.start + weights.bias,
        parts=np.concatenate([own.parts, of_chains[None]]),
        spread=np.concatenate([own.spread, np.zeros_like(of_chains)[None]]),
        given={"the network": network.probabilities, f"the {CHAINS}": linear},
        combined=weights.combine(network.probabilities, linear),
        method=f"{METHOD} The log-odds of the linear chains are exact.",
    )


@torch.no_grad()
def occlusions(neural: Neural, pairs: Sequence[SentencePair], titles: Titles) -> Iterator[Occluded | None]:
    """Yield the log-odds of each pair as parts, None for a pair without words on a side."""
    networks = neural.ready()
    for start in range(0, len(pairs), AT_A_TIME):
        prepared = neural.prepared(pairs[start : start + AT_A_TIME])
        readings = neural.readings(prepared.inputs, finely=True)
        found: list[Occluded | None] = [None] * len(prepared.sizes)
        for k, (place, inputs) in enumerate(zip(prepared.full, prepared.inputs, strict=True)):
            encoded = [reading[k : k + 1] for reading in readings]
            found[place] = _occluded(neural, list(zip(networks, encoded, strict=True)), inputs, titles)
        yield from found


def _occluded(
    neural: Neural, networks: Sequence[tuple[GridNetwork, Sequence[Encoded]]], inputs: Inputs, titles: Titles
) -> Occluded:
    """Return the parts of a pair, given each network and what its encoder puts out."""
    batch = Batch.of([inputs], neural.columns, neural.device)
    groups, full, occluded, vectors, cosines = _groups(neural, titles), [], [], [], None
    for network, encoded in networks:
        own = replace(batch, encoded=encoded)
        full.append(link_probabilities(network.eval()(own), neural.judge))
        first = _first_vectors(network, own, list(groups.values()))
        states = _states(len(groups)).to(first)
        occluded.append(_judged(neural, network, batch, len(states), partial(_of_states, states, first)))
        vectors.append((first[0], first[1:].sum(0)))
        if cosines is None and encoded:
            cosines = encoded[0].cosines[:, :, -1].float().cpu().numpy()
    probabilities = torch.stack(full).mean(0).cpu().numpy()[0]
    none, *some = log_odds(torch.stack(occluded).mean(0).cpu().numpy())
    every = log_odds(probabilities)
    ahead = np.diff([none, *some[: len(groups) - 1], every], axis=0)
    back = np.diff([none, *some[len(groups) - 1 :], every], axis=0)[::-1]
    parts = Parts(
        tuple(groups), none, (ahead + back) / 2, np.abs(ahead - back) / 2, {"the network": probabilities},
        probabilities, METHOD, cosines, neural.columns.values, inputs.values,
        partial(_cells, neural, [network for network, _ in networks], vectors, batch, (none, every)),
    )  # fmt: skip
    return Occluded(probabilities, parts)


def _judged(
    neural: Neural, network: GridNetwork, batch: Batch, states: int, first: Callable[[slice], Tensor]
) -> Tensor:
    """[states, M, N] probabilities, given the first vectors [some, M, N, width] of some states of one pair."""
    (m, n), found = batch.sizes[0], []
    at_once = max(1, neural.batch_cells // (m * n))
    for start in range(0, states, at_once):
        h = first(slice(start, start + at_once))
        inside = batch.inside.expand(len(h), -1, -1, -1)
        found.append(link_probabilities(network.judged(h, inside, batch.sizes * len(h)), neural.judge))
    return torch.cat(found)


def _of_states(states: Tensor, vectors: Tensor, some: slice) -> Tensor:
    return torch.einsum("sg,gmnd->smnd", states[some], vectors)


def _of_masks(masks: Tensor, mean: Tensor, added: Tensor, some: slice) -> Tensor:
    return mean + masks[some].to(mean) * added


@torch.no_grad()
def _cells(
    neural: Neural,
    networks: Sequence[GridNetwork],
    vectors: Sequence[tuple[Tensor, Tensor]],
    batch: Batch,
    ends: tuple[np.ndarray, np.ndarray],
    link: Link,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the change of a link's log-odds from means to inputs by cells: parts [3], and spread.

    The cells are its own, the others of its row and column, and the rest, in this order and in reverse.
    """
    m, n = ends[0].shape
    own, line = torch.zeros(2, m, n)
    own[link] = 1.0
    line[link[0]] = line[:, link[1]] = 1.0
    masks = torch.stack([own, line, 1 - line, 1 - own])[..., None]
    of_networks = [
        _judged(neural, network, batch, len(masks), partial(_of_masks, masks, *own_vectors))[:, link[0], link[1]]
        for network, own_vectors in zip(networks, vectors, strict=True)
    ]
    some = log_odds(torch.stack(of_networks).mean(0).cpu().numpy())
    none, every = (float(end[link]) for end in ends)
    ahead = np.diff([none, some[0], some[1], every])
    back = np.diff([none, some[2], some[3], every])[::-1]
    return (ahead + back) / 2, np.abs(ahead - back) / 2


def _groups(neural: Neural, titles: Titles) -> dict[str, list[int]]:
    """Return the groups of the network's inputs, and the numbers of their columns (encoder and marks: none)."""
    groups: dict[str, list[int]] = {}
    for number, column in enumerate(neural.columns.values):
        groups.setdefault(titles[column].group, []).append(number)
    if neural.columns.marks:
        groups[MARKS] = []
    if neural.encoder is not None:
        groups[ENCODER] = []
    return groups


def _states(groups: int) -> Tensor:
    """[states, 1 + groups] of 0 and 1: which groups have their inputs, in order and in reverse order; none first.

    The last state, where all have them, is left out. The first column is that of the means.
    """
    ahead = torch.tril(torch.ones(groups, groups))[:-1]
    states = torch.cat([torch.zeros(1, groups), ahead, ahead.flip(1)])
    return torch.cat([torch.ones(len(states), 1), states], 1)


def _first_vectors(network: GridNetwork, batch: Batch, groups: Sequence[Sequence[int]]) -> Tensor:
    """[1 + groups, M, N, width] the first vector of each cell of one pair: of means, and what each group adds.

    Standardised columns have the mean 0.
    """
    seen, weight = network.seen(batch)[0], network.values.weight
    columns = batch.values.shape[3]
    view = seen[:, :, columns:]
    mean = view.mean((0, 1))
    means = (network.values.bias + weight[:, columns:] @ mean).expand(*seen.shape[:2], -1)
    added = []
    for numbers in groups:
        if numbers:
            added.append(seen[:, :, numbers] @ weight[:, numbers].T)
    if network.marks.num_embeddings > 1:
        added.append(network.marks(batch.marks[0]).sum(2))
    if network.contextual is not None:
        added.append((view - mean) @ weight[:, columns:].T)
    return torch.stack([means, *added])
