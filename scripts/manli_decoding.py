"""Compare MANLI's decoders in one run: annealing, exact, exact under constraints, HiGHS on the whole programme.

The pairs are MSR dev, and pairs of Edinburgh with about 27 tokens per side. Times are CPU time per pair, given the
scores of all edits, whose computation is a row of its own. Without --model, a model is trained on MSR dev first.

    JACANA_DATA=DIR python scripts/manli_decoding.py [--model DIR] [--pairs N] [--whole N]
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from jacana_torch import corpora, load
from jacana_torch.annotate.given import GivenAnnotator
from jacana_torch.systems.manli.edit_decoding import conditions, decode, decode_under, maximise
from jacana_torch.systems.manli.edit_features import Problem
from jacana_torch.systems.manli.manli import Manli, ManliExact
from jacana_torch.types import Example, SentencePair

EXACT = 1e-9


def examples(corpus: str, sidecar: str) -> list[Example]:
    root = Path(os.environ["JACANA_DATA"])
    found = list(corpora.read(str(root / corpus)))
    pairs = GivenAnnotator(root / sidecar)([e.pair for e in found])
    return [replace(e, pair=pair) for e, pair in zip(found, pairs, strict=True)]


def timed(function: Callable[[int], object], count: int) -> tuple[float, list]:
    """Milliseconds of CPU time per call, and the results."""
    start = time.process_time()
    answers = [function(k) for k in range(count)]
    return 1000 * (time.process_time() - start) / max(count, 1), answers


def whole_programme(problem: Problem, gains: np.ndarray) -> list:
    """Solve the published programme: a variable for every edit except deletions and insertions."""
    s, t = (k.ravel() for k in np.indices(gains.shape))
    chosen = maximise(gains.ravel(), problem.source, problem.target, s, t)
    return list(zip(s[chosen].tolist(), t[chosen].tolist(), strict=True))


def is_integral(problem: Problem, gains: np.ndarray) -> bool:
    s, t = np.nonzero(gains > 0)
    if not len(s):
        return True
    values = maximise(gains[s, t], problem.source, problem.target, s, t, relaxed=True)
    return bool(np.minimum(values, 1 - values).max() < 1e-6)


def report(name: str, pairs: Sequence[SentencePair], annealer: Manli, whole: int) -> None:
    n, weights, columns = len(pairs), annealer.weights, annealer.extract.columns
    features, (problems,) = timed(lambda _: annealer.problems(pairs), 1)
    features /= n
    assert weights is not None
    scoring, gains = timed(lambda k: columns.gains(problems[k], weights), n)
    sides = [(p.source, p.target) for p in problems]
    asked = [conditions(pair, True, True) for pair in pairs]
    annealing, annealed = timed(lambda k: annealer.edits(pairs[k], problems[k], gains[k]), n)
    exact, best = timed(lambda k: decode(gains[k], *sides[k]), n)
    constrained, _ = timed(lambda k: decode_under(gains[k], *sides[k], asked[k]), n)
    sample = min(whole, n)
    programme, solved = timed(lambda k: whole_programme(problems[k], gains[k]), sample)
    worth = [[sum(g[e] for e in edits) for g, edits in zip(gains, found, strict=False)]
             for found in (annealed, best, solved)]  # fmt: skip
    difference = np.array(worth[0]) - np.array(worth[1])
    lengths = np.mean([(len(p.source), len(p.target)) for p in pairs], axis=0)
    integral = np.mean([is_integral(p, g) for p, g in zip(problems, gains, strict=True)])
    edits = np.mean([g.size for g in gains])
    print(f"{name}: {n} pairs of {lengths[0]:.1f}/{lengths[1]:.1f} tokens, {edits:.0f} edits of two phrases each")
    rows = {
        "features": features,
        "scores of all edits": scoring,
        "annealing": annealing,
        "exact": exact,
        "exact under M and L": constrained,
        f"HiGHS on the whole programme (first {sample})": programme,
    }
    for row, milliseconds in rows.items():
        print(f"  {row:48} {milliseconds:9.3f} ms per pair")
    print(f"  {'exact is faster than annealing by':48} {annealing / exact:9.1f} times")
    both = scoring + features
    print(f"  {'the same with features and scores':48} {(annealing + both) / (exact + both):9.1f} times")
    print(f"  {'annealing reaches the optimum':48} {100 * np.mean(difference > -EXACT):9.2f} % of pairs")
    print(f"  {'annealing exceeds the optimum':48} {int((difference > EXACT).sum()):9d} pairs")
    agree = np.abs(np.array(worth[1][:sample]) - np.array(worth[2])) < 1e-5
    print(f"  {'HiGHS finds what exact finds':48} {100 * agree.mean():9.2f} % of {sample} pairs")
    print(f"  {'the linear relaxation is integral':48} {100 * integral:9.2f} % of pairs", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", help="a model of aligner=manli or aligner=manli_exact")
    parser.add_argument("--pairs", type=int, help="only the first N pairs of each corpus")
    parser.add_argument("--whole", type=int, default=20, help="pairs for HiGHS on the whole programme")
    arguments = parser.parse_args()
    msr = examples("msr/dev.jsonl", "msr/dev.parse.jsonl")
    if arguments.model:
        learnt = load(arguments.model).aligner
        settings = {name: getattr(learnt, name) for name in ("max_phrase", "wordnet", "vectors", "ppdb")}
    else:
        settings, learnt = {}, ManliExact()
        learnt.fit(msr)
    annealer = Manli(**settings)
    annealer.restore(learnt.state())
    edinburgh = [e.pair for e in examples("edinburgh/train.jsonl", "edinburgh/train.parse.jsonl")]
    alike = [p for p in edinburgh if all(25 <= len(side) <= 29 for side in (p.source, p.target))]
    for name, pairs in (("MSR dev", [e.pair for e in msr]), ("Edinburgh, 25 to 29 tokens per side", alike)):
        report(name, pairs[: arguments.pairs], annealer, arguments.whole)


if __name__ == "__main__":
    main()
