"""The report of `jacana-torch evaluate`: scores of some systems on the same pairs, as tables or as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ..errors import ConfigError
from ..types import Alignment, Example, SentencePair
from ..util.tables import Sheet
from ..version import __version__
from .scores import Counts, Score, alignment_error_rate, count
from .significance import METRICS, Difference, Interval, differences, intervals
from .splits import SPLITS, Group, groups

BY = (*SPLITS, "length")
MACRO = METRICS[:4]  # precision, recall, F1 and exact match
LEVELS = ((0.01, "**"), (0.05, "*"))
HEADINGS = ("system", "P", "R", "F1", "exact", "micro P", "micro R", "micro F1", "AER")


@dataclass(frozen=True)
class System:
    """The figures of one system. `against` has the differences from the first system, `by` the splits."""

    name: str
    counts: Counts
    score: Score
    aer: float
    intervals: Mapping[str, Interval]
    against: Mapping[str, Difference] | None
    by: Mapping[str, Sequence[Group]]

    def to_dict(self, sym: str | None) -> dict[str, Any]:
        against = None
        if self.against is not None:
            against = {name: asdict(difference) for name, difference in self.against.items()}
        return {
            "system": self.name,
            **self.score.to_dict(),
            "signature": self.score.signature(sym=sym),
            "aer": self.aer,
            "intervals": {name: [found.low, found.high] for name, found in self.intervals.items()},
            "against_first": against,
            "by": {split: [group.to_dict() for group in found] for split, found in self.by.items()},
        }


@dataclass(frozen=True)
class Report:
    """Systems on the same pairs. `sym` names their symmetrizer in signatures, if it is known."""

    systems: Sequence[System]
    rounds: int
    seed: int
    sym: str | None = None

    @classmethod
    def of(
        cls,
        gold: Sequence[Example],
        predicted: Mapping[str, Sequence[Alignment]],
        links: str = "sure",
        by: Sequence[str] = (),
        rounds: int = 10_000,
        seed: int = 1,
        sym: str | None = None,
    ) -> Report:
        """Score predictions by name, and compare each with the first."""
        unknown = [split for split in by if split not in BY]
        if unknown:
            raise ConfigError(f"there is no split by {unknown[0]!r}: choose {', '.join(BY)}")
        pairs, right = [example.pair for example in gold], [example.gold for example in gold if example.gold]
        tables = {name: count(right, found, links) for name, found in predicted.items()}
        first = next(iter(tables.values()))
        systems = [
            System(
                name,
                counts,
                Score.of(counts),
                alignment_error_rate(right, predicted[name], links),
                intervals(counts, rounds, seed),
                None if counts is first else differences(counts, first, rounds, seed),
                {split: groups(split, pairs, right, predicted[name], links) for split in by},
            )
            for name, counts in tables.items()
        ]
        return cls(systems, rounds, seed, sym)

    def to_dict(self) -> dict[str, Any]:
        """Every figure, unrounded."""
        systems = [system.to_dict(self.sym) for system in self.systems]
        return {"version": __version__, "rounds": self.rounds, "seed": self.seed, "systems": systems}

    def sheets(self) -> list[Sheet]:
        """The tables: scores, intervals, differences from the first system, splits."""
        several = len(self.systems) > 1
        return [
            self._scores(several),
            self._intervals(),
            *([self._differences()] if several else []),
            *(self._split(split, several) for split in self.systems[0].by),
        ]

    def _scores(self, several: bool) -> Sheet:
        lines, score = [], self.systems[0].score
        for system in self.systems:
            figures = asdict(system.score)
            against = system.against or {}
            marks = [_mark(against.get(name)) for name in METRICS] if several else []
            cells = [_percent(figures[name]) for name in METRICS]
            lines.append(([system.name, *cells, _percent(system.aer)], marks))
        notes = [
            score.signature("P,R,F1,exact", sym=self.sym),
            score.signature("P,R,F1,AER", "micro", sym=self.sym),
        ]
        if several:
            levels = ", ".join(f"{mark} p < {level}" for level, mark in reversed(LEVELS))
            notes.append(
                f"{levels} against {self.systems[0].name}: approximate randomisation over pairs, {self._drawn}"
            )
        return Sheet(HEADINGS, lines, notes)

    @property
    def _drawn(self) -> str:
        return f"{self.rounds} rounds, seed {self.seed}"

    def _intervals(self) -> Sheet:
        lines = [
            ([s.name, *(f"{_percent(s.intervals[x].low)}-{_percent(s.intervals[x].high)}" for x in MACRO)], ())
            for s in self.systems
        ]
        return Sheet(HEADINGS[:5], lines, title=f"95% intervals, bootstrap over pairs, {self._drawn}")

    def _differences(self) -> Sheet:
        lines = []
        for system in self.systems[1:]:
            assert system.against is not None
            lines.append(([system.name, *(_difference(system.against[name]) for name in MACRO)], ()))
        title = (
            f"Differences from {self.systems[0].name}, their 95% intervals (paired bootstrap) and p, {self._drawn}"
        )
        return Sheet(HEADINGS[:5], lines, title=title)

    def _split(self, split: str, several: bool) -> Sheet:
        lines = [
            ([group.name, *([system.name] if several else []), str(group.gold), str(group.predicted),
              *map(_percent, (group.precision, group.recall, group.f1))], ())
            for name in _names(self.systems, split)
            for system in self.systems
            for group in system.by[split]
            if group.name == name
        ]  # fmt: skip
        headings = (split, *(["system"] if several else []), "gold", "predicted", "P", "R", "F1")
        average, case = "macro" if split == "length" else "micro", "ignored" if split == "identical" else None
        note = self.systems[0].score.signature(f"P,R,F1 by {split}", average, self.sym, case)
        return Sheet(headings, lines, [note], left=2 if several else 1)


def _names(systems: Sequence[System], split: str) -> list[str]:
    """The names of the groups of all systems, in order."""
    found: dict[str, None] = {}
    for system in sorted(systems, key=lambda system: -len(system.by[split])):
        found |= dict.fromkeys(group.name for group in system.by[split])
    return list(found)


def tagged(examples: Sequence[Example], pairs: Sequence[SentencePair]) -> list[Example]:
    """The gold alignments of `examples` for the same pairs with more layers."""
    return [Example(pair, example.gold) for pair, example in zip(pairs, examples, strict=True)]


def _percent(value: float) -> str:
    return f"{100 * value:.2f}"


def _mark(difference: Difference | None) -> str:
    return "" if difference is None else next((mark for level, mark in LEVELS if difference.p < level), "")


def _difference(found: Difference) -> str:
    low, high = 100 * found.low, 100 * found.high
    return f"{100 * found.value:+.2f} ({low:+.2f} to {high:+.2f}, p {found.p:.4f})"
