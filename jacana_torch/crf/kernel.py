"""Forward-backward over packed chains: log Z, posteriors and expected counts, on any device.

Probabilities are multiplied as they are, one batched matrix product a step, and rescaled every few steps; where
the scores spread too far for that, the same recursion runs on logarithms. Both are exact up to rounding:

Let R be the spread of the finite transition scores, and S the number of states. The transition scores are shifted
to the middle of their range, so a step changes the sum of a row by a factor within e^±(R + log S)/2, and K steps
without rescaling stay within e^±K(R + log S)/2. What underflows at a position could count for at most e^R more
than its share, because the continuations of two states differ by at most e^R. (Where not every step is possible
they may differ by more: `StateSpace.reach` multiplies R.) Node scores may have any size: those of a position are
shifted by their maximum, so some state always has the emission 1.

A chain begins with its first token and ends in the boundary state, where it stays until its group ends; therefore
lengths need no masks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ..errors import JacanaError
from ..util.geometry import Geometry
from .arrays import Array, Arrays, arrays_of
from .layout import Layout, Pack, packs

T = TypeVar("T")
Flat = Sequence[Array]  # nodes, edges, starts and ends, as a Layout has them

# The log of the largest number of a type, less what a sum over positions and states still has to resolve.
ROOM = {"float32": 87.0 - 18.0, "float64": 708.0 - 50.0}
MOST_STEPS = 8  # between two rescalings
TOGETHER = 4  # chains of a group on a CPU: those of one target length that end at about the same time


class Posteriors(NamedTuple):
    """`nodes` [NULLs and links] the probability of each, `log_z` [P] the log of the sum over paths."""

    nodes: np.ndarray
    log_z: np.ndarray


def posteriors(layout: Layout, flat: Flat) -> Posteriors:
    """Return the posterior of every NULL and link, and log Z of every pair, in the type of the scores."""
    ns = arrays_of(flat[0])
    chains = Chains(layout, packs(layout, together=TOGETHER), ns)
    log_z, found = chains.sweep(flat, chains.backward)
    joints = list(map(itemgetter(0), found))
    dtype = ns.float64 if flat[0].dtype == ns.float64 else ns.float32
    return Posteriors(ns.host(chains.node_counts(joints, dtype)).clip(0.0, 1.0), ns.host(ns.cast(log_z, dtype)))


@dataclass
class Lattice:
    """The chains of a pack.

    `emission` [R, c, W] and `table` [G, W, W] are probabilities, or logarithms where `every`, the number of steps
    between two rescalings, is 0. The forward sweep fills `alpha` [R, c, W] likewise, `scale` [R, c, 1], what its
    rows were divided by, and `log_z` [G * c].
    """

    pack: Pack
    emission: Array
    table: Array
    every: int
    alpha: Array
    scale: Array
    log_z: Array


def step_scores(layout: Layout, flat: Flat, ns: Arrays) -> Array:
    """Return all transition scores in one vector: edges, starts, ends, -inf and 0, as a layout numbers them."""
    scores = ns.concatenate(flat[1:])
    steps = ns.zeros((len(scores) + 2,), dtype=ns.float64)
    steps[:-2], steps[-2] = scores, -math.inf
    return steps


class Chains:
    """Packed chains, to be swept under any number of score vectors."""

    def __init__(self, layout: Layout, packed: Sequence[Pack], ns: Arrays) -> None:
        self.layout, self.packs, self._ns = layout, packed, ns
        self._widest = max([0, *map(attrgetter("width"), packed)])

    def sweep(self, flat: Flat, then: Callable[[Lattice], T], check: bool = True) -> tuple[Array, list[T]]:
        """Sweep forward over every pack and call `then` with its lattice: log Z of every pair, and the results.

        log Z is in double precision, as are the sums that it consists of.

        A log Z that is not finite is an error, unless `check` is False.
        """
        ns, layout, g = self._ns, self.layout, self.layout.geometry
        # The type to compute each pack in, and how many steps go by without rescaling; 0: only logarithms will do.
        paces, precise = list[tuple[str, int]](), False
        with np.errstate(all="ignore"):  # logs may be infinite, and what is not a number is reported
            steps = step_scores(layout, flat, ns)
            middle, spread = self._ranges(ns.host(steps))
            for pack in self.packs:
                widest, pace = layout.space.reach * float(spread[pack.tables].max()), ("float64", 0)
                # Fewer than a thousand states count alike, so that their number in a batch changes no result.
                step = widest + math.log(max(pack.width, 1000) + 1)
                for kind, room in reversed(ROOM.items()):
                    if (kind == "float64" or flat[0].dtype != ns.float64) and (room - widest) / step >= 1:
                        pace = kind, min(int((room - widest) / step), MOST_STEPS)
                paces.append(pace)
                precise |= pace[0] == "float64"
            nodes, top = self._shifted(ns.cast(flat[0], ns.float64 if precise else ns.float32))
            log_z = ns.sums(ns.index(g.source_pair), ns.cast(top, ns.float64), len(g.n_source))
            emissions, found = {"logs": nodes}, []
            for pack, (kind, every) in zip(self.packs, paces, strict=True):
                form = kind if every else "logs"
                if form not in emissions:
                    emissions[form] = ns.exp(shifted := ns.copy(nodes, getattr(ns, kind)), out=shifted)
                table = self._tables(pack, steps, middle, getattr(ns, kind), every)
                x = self._forward(pack, self._emission(pack, emissions[form], every), table, every)
                chains, pairs, _, _ = pack.chains
                # A chain of M tokens takes an edge M - 1 times, a start and an end once.
                edge, start, end = middle[layout.table[pairs]].T
                shift = ns.array(edge * (g.n_source[pairs] - 1) + start + end)
                ns.add_at(log_z, ns.index(pairs), ns.take(x.log_z, ns.index(chains)) + shift)
                found.append(then(x))
            if check and not (finite := np.isfinite(ns.host(log_z))).all():
                self._report(flat, np.flatnonzero(~finite))
        return log_z, found

    def _shifted(self, nodes: Array) -> tuple[Array, Array]:
        """Return node scores less the maximum of their token, followed by a row of -inf; and these maxima."""
        ns, layout = self._ns, self.layout
        null, link, runs = nodes[: layout.n_tokens], nodes[layout.n_tokens :], layout.runs
        top = ns.largest_of_runs(link, runs, null).clip(-1e30)  # so that a forbidden token gives no NaN
        out = ns.empty((layout.n_nodes + self._widest + 1,), dtype=nodes.dtype)
        out[: layout.n_tokens], out[layout.n_nodes :] = null - top, -math.inf
        out[layout.n_tokens : layout.n_nodes] = link - ns.repeat(top, runs)
        return out, top

    def _ranges(self, steps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the ranges of transition scores of each distinct target length, given all of them.

        These are the middles of the edges', starts' and ends' ranges [U, 3], and the widest of the three [U].
        """
        layout, ranges = self.layout, []
        edges, starts = layout.sizes["edge"], layout.sizes["edge"] + layout.sizes["start"]
        begin = layout.edge_start, layout.first_start, layout.first_start
        for values, at in zip(np.split(steps[:-2], [edges, starts]), begin, strict=True):
            ranges.append((np.minimum.reduceat(values, at), np.maximum.reduceat(values, at)))
        low, high = np.stack(ranges, 2)  # [U, 3] each
        middle = (low + high + np.log(layout.space.size(layout.distinct) + 1)[:, None]) / 2
        return np.where(np.isfinite(middle), middle, 0.0), (high - low).max(1)

    def _tables(self, pack: Pack, steps: Array, middle: np.ndarray, dtype: Any, every: int) -> Array:
        """Return [G, W, W] the transitions of each group, the boundary's among them, shifted to their middle."""
        ns, shape = self._ns, (len(pack.tables), pack.width, pack.width)
        table = ns.take(steps, ns.index(pack.step)).reshape(shape)
        edge, start, end = ns.array(middle[pack.tables].T)[:, :, None]
        table -= edge[:, :, None]
        table[:, pack.final] += edge - start
        table[:, :, pack.final] += edge - end
        table[:, pack.final, pack.final] = 0.0
        return ns.take(ns.cast(ns.exp(table, out=table) if every else table, dtype), ns.index(pack.table))

    def _emission(self, pack: Pack, nodes: Array, every: int) -> Array:
        """Return [R, c, W] the emissions.

        A row is read as wide as the pack, whatever follows in `nodes`: it is finite, and no transition leads to
        it.
        """
        ns, (rows, c) = self._ns, pack.has_token.shape
        out = ns.windows(nodes, pack.width, ns.index(pack.places[1])).reshape(rows, c, pack.width)
        out[..., 0] = ns.take(nodes, ns.index(pack.places[0])).reshape(rows, c)
        if pack.nulls is not None:
            first, others, _ = pack.nulls
            ns.fill(out[..., first:], out[..., :1], where=ns.index(others))
        ended = ns.cast(~ns.index(pack.has_token), out.dtype)
        out[..., pack.final] = ended if every else ns.log(ended)
        return out

    def _forward(self, pack: Pack, emission: Array, table: Array, every: int) -> Lattice:
        ns, alive, dtype, (rows, c, width) = self._ns, pack.alive, emission.dtype, emission.shape
        combine = ns.multiply if every else ns.add
        alpha, scale = ns.empty((rows, c, width), dtype=dtype), ns.ones((rows, c, 1), dtype=dtype)
        alphas, emissions, scales = ns.split(alpha, alive), ns.split(emission, alive), ns.split(scale, alive)
        combine(table[:, pack.final, None], emissions[0], out=alphas[0])
        for t in range(1, len(alive)):
            k, now = alive[t], alphas[t]
            self._product(alphas[t - 1][:k], table[:k], now, every)
            combine(now, emissions[t], out=now)
            if every and t % every == 0:
                ns.total(now, out=scales[t])
                now /= scales[t]
        _, _, chain, last_row = pack.chains
        last = ns.take(alpha, ns.index(last_row))[..., pack.final].reshape(-1)
        log_z = ns.cast(ns.log(last) if every else last, ns.float64)
        logs = ns.log(ns.cast(scale, ns.float64).reshape(-1))
        log_z = log_z + ns.sums(ns.index(chain), logs, len(log_z))
        return Lattice(pack, emission, table, every, alpha, scale, log_z)

    def _product(self, x: Array, table: Array, out: Array, every: int) -> None:
        """Write x @ table [k, c, W] to `out`; of logarithms, the log of the sums."""
        if every:
            self._ns.matmul(x, table, out=out)
        else:
            out[:] = self._ns.logsumexp(x[..., None] + table[:, None], 2)

    def backward(self, x: Lattice, weight: Array | None = None, edges: bool = False) -> tuple[Array, Array | None]:
        """Sweep back: expected counts of states [R, c, W] and, if asked for, of transitions [G, W, W].

        The states' take the place of `x.emission`. Each chain counts by its `weight` [G * c], or by 1.
        """
        ns, alive, every, dtype = self._ns, x.pack.alive, x.every, x.emission.dtype
        combine, (rows, c, width) = ns.multiply if every else ns.add, x.emission.shape
        # `beta` is what follows a time, its emission included. Counts of edges need that of all times.
        sizes = alive if edges else [alive[0]] * 2
        beta, scale = ns.empty((sum(sizes), c, width), dtype=dtype), ns.ones((rows, c, 1), dtype=dtype)
        room, back = ns.empty((alive[0], c, width), dtype=dtype), x.table.swapaxes(1, 2)
        betas, scales = ns.split(beta, sizes), ns.split(scale, alive)
        alphas, joints = ns.split(x.alpha, alive), ns.split(x.emission, alive)
        after = 0
        for t in range(len(alive) - 1, -1, -1):
            k = alive[t]
            now, here = room[:k], betas[t if edges else t % 2][:k]
            if after:
                behind = betas[t + 1 if edges else (t + 1) % 2]
                self._product(behind[:after], back[:after], now[:after], every)
            if after < k:
                now[after:] = 1.0 if every else 0.0
            combine(now, joints[t], out=here)
            combine(now, alphas[t], out=joints[t])
            if every and t % every == 0:
                ns.total(here, out=scales[t])
                here /= scales[t]
            after = k
        return self._counted(x, beta, scale, weight, edges)

    def _counted(
        self, x: Lattice, beta: Array, scale: Array, weight: Array | None, edges: bool
    ) -> tuple[Array, Array | None]:
        ns, joint, (rows, c, width) = self._ns, x.emission, x.emission.shape
        weights = 1.0 if weight is None else ns.take(weight, ns.index(x.pack.chains[2])).reshape(rows, c, 1)
        if x.every:
            # The same Z at each time, but under that time's scales: what makes its probabilities sum to 1.
            share = weights / (joint @ ns.ones((width, 1), dtype=joint.dtype))
            joint *= share
            if not edges:
                return joint, None
            # alpha[t-1] table beta[t] sums to joint[t] times what alpha[t], and not beta[t], was divided by.
            beta *= share * scale / x.scale
            pairs = self._steps_taken(x, beta) * x.table
        else:
            joint -= ns.logsumexp(joint, 2)[..., None]
            ns.exp(joint, out=joint)
            joint *= weights
            if not edges:
                return joint, None
            pairs = self._steps_taken_in_logs(x, beta, weight)
        pairs[:, x.pack.final] = joint[: len(x.table)].sum(1)  # the starts
        return joint, pairs

    def _steps_taken(self, x: Lattice, beta: Array) -> Array:
        """Return [G, W, W] alpha of each time by beta of the next, summed over times and chains."""
        ns, alive, (_, c, width) = self._ns, x.pack.alive, x.alpha.shape
        if alive[-1] == alive[0]:  # one product
            shape, flat = (len(alive), -1, c, width), (alive[0], -1, width)
            left = x.alpha.reshape(shape)[:-1].swapaxes(0, 1).reshape(flat)
            return left.swapaxes(1, 2) @ beta.reshape(shape)[1:].swapaxes(0, 1).reshape(flat)
        total = ns.zeros((alive[0], width, width), dtype=beta.dtype)
        lefts, rights = ns.split(x.alpha.swapaxes(1, 2), alive), ns.split(beta, alive)
        for t in range(1, len(alive)):
            ns.add_product(total[: alive[t]], lefts[t - 1][: alive[t]], rights[t])
        return total

    def _steps_taken_in_logs(self, x: Lattice, beta: Array, weight: Array | None) -> Array:
        ns, alive, (_, c, _) = self._ns, x.pack.alive, x.alpha.shape
        alphas, betas = ns.split(x.alpha, alive), ns.split(beta, alive)
        log_z, total = x.log_z.reshape(-1, c, 1, 1), ns.zeros(tuple(x.table.shape), dtype=beta.dtype)
        groups = len(x.table)
        weights = (ns.ones((groups * c,), dtype=beta.dtype) if weight is None else weight).reshape(-1, c, 1, 1)
        for t in range(1, len(alive)):
            k = alive[t]
            both = alphas[t - 1][:k, :, :, None] + x.table[:k, None] + betas[t][:, :, None] - log_z[:k]
            total[:k] += (ns.exp(both, out=both) * weights[:k]).sum(1)
        return total

    # From packs to flat vectors

    @cached_property
    def _place(self) -> np.ndarray:
        """[NULLs and links] where each stands in the joints of all packs, one after the other."""
        layout, offset = self.layout, 0
        null = np.zeros(layout.n_tokens, np.int64)
        for pack in self.packs:
            chosen = np.flatnonzero(pack.has_token)
            null[pack.places[0][chosen]] = offset + chosen * pack.width
            offset += pack.has_token.size * pack.width
        return np.concatenate([null, null[layout.geometry.source_token] + layout.geometry.n + 1])

    def node_counts(self, joints: Sequence[Array], dtype: Any) -> Array:
        """Return the counts of every NULL and link, from those of the states in each pack."""
        ns, flat = self._ns, []
        for pack, joint in zip(self.packs, joints, strict=True):
            if pack.nulls is not None:
                joint[..., :1] = joint @ ns.cast(ns.index(pack.nulls[2]), joint.dtype)
            flat.append(ns.cast(joint, dtype).reshape(-1))
        return ns.take(ns.concatenate([ns.zeros((0,), dtype=dtype), *flat]), ns.index(self._place))

    def step_counts(self, pairs: Sequence[Array]) -> Sequence[Array]:
        """Return the counts of all edges, starts and ends, from those of the transitions in each pack."""
        ns, size = self._ns, self.layout.sizes
        steps = ns.zeros((size["edge"] + 2 * size["start"] + 2,), dtype=ns.float64)
        for pack, own in zip(self.packs, pairs, strict=True):
            tables = ns.zeros((len(pack.tables), pack.width, pack.width), dtype=ns.float64)
            ns.add_at(tables, ns.index(pack.table), ns.cast(own, ns.float64))
            ns.add_at(steps, ns.index(pack.step), tables.reshape(-1))
        return ns.split(steps, [size["edge"], size["start"], size["start"], 2])[:3]

    def _report(self, flat: Flat, bad: np.ndarray) -> None:
        """Raise the error of a pair whose log Z is not finite by itself: rows are read beyond a pair's cells."""
        layout, g, ns = self.layout, self.layout.geometry, self._ns
        found = []
        for pair in bad.tolist():
            token, cell, table = g.source_start[pair], layout.n_tokens + g.cell_start[pair], layout.table[pair]
            m, n, edge, outer = (
                g.n_source[pair],
                g.n_target[pair],
                layout.edge_start[table],
                layout.first_start[table],
            )
            nodes = ns.concatenate([flat[0][token : token + m], flat[0][cell : cell + m * n]])
            alone = Layout(Geometry(np.array([m]), np.array([n])), layout.space)
            ends = edge + alone.sizes["edge"], outer + n + 1
            own = nodes, flat[1][edge : ends[0]], flat[2][outer : ends[1]], flat[3][outer : ends[1]]
            log_z = float(Chains(alone, packs(alone), ns).sweep(own, lambda x: None, check=False)[0][0])
            if not math.isfinite(log_z):
                found.append((log_z, pair))
        log_z, pair = found[0]
        raise JacanaError(
            f"log Z is {log_z} for chain {pair} ({len(found)} of {len(g.n_source)} such): its scores hold NaN or "
            "infinity, or forbid every path; look for a diverged weight or a feature that is not finite"
        )
