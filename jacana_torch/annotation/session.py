"""The annotation of one file: its pairs and proposals, the journal, and what an annotator sees of them.

Nothing here is state of its own besides the journal's: whatever a request changes is an event there.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..corpora._annotations import ACCEPTED, OPEN, STATUSES, Annotations, Annotator, Work
from ..corpora.journal import disagreement
from ..evaluate.agreement import cohen
from ..evaluate.scores import score
from ..serve import Refused
from ..types import Example, Link
from .journal import Journal
from .proposals import Proposal, ordered

Shown = dict[str, Any]
ALL = "all"


class Session:
    """What the server knows. `comparing`: only pairs on which others disagree are shown, to be adjudicated.

    `guests` are annotators of other journals, who are only compared.
    """

    def __init__(
        self,
        examples: Sequence[Example],
        journal: Journal,
        found: Sequence[Proposal],
        order: str = "confidence",
        names: Sequence[str] = ("annotator",),
        comparing: bool = False,
        guests: Mapping[str, Annotator] | None = None,
    ) -> None:
        self.examples, self.journal, self.comparing = examples, journal, comparing
        self._by, self._guests = order, dict(guests or {})
        self.names: list[str] = list(dict.fromkeys([*names, *(() if comparing else journal.state.people)]))
        self.propose(found)

    def propose(self, found: Sequence[Proposal]) -> None:
        """Take new proposals for the pairs that nobody has begun, and their order."""
        self._found = list(found)
        self._order = ordered(found, self._by, str(self.journal.path.name))

    # ---- what is shown

    def first(self, by: str) -> int | None:
        """Return the pair to begin with: the first open one, else the first."""
        order = self._listed(by, ALL)
        return self._open_after(by, order, -1) if order else None

    def view(self, by: str, number: int, show: str = ALL) -> Shown:
        """Return all that the page shows of a pair."""
        order = self._listed(by, show)
        place = order.index(number) if number in order else None
        pair, work, found = self.examples[number].pair, self.work(by, number), self._found[number]
        person = self._person(by)
        begun = number in person.works
        return {
            "pair": number,
            "id": pair.id,
            "source": list(pair.source.tokens),
            "target": list(pair.target.tokens),
            "sure": sorted(work.sure),
            "possible": sorted(work.possible),
            "status": work.status,
            "note": work.note,
            "likely": found.likely,
            "mistakes": None if begun or self.comparing else found.mistakes,
            "version": self.version(by, number),
            "undo": len(person.done),
            "redo": len(person.undone),
            "place": place,
            "of": len(order),
            "previous": order[place - 1] if place else None,
            "next": order[place + 1] if place is not None and place + 1 < len(order) else None,
            "next_open": self._open_after(by, self._listed(by, ALL), number),
            "progress": self.progress(by),
            "others": self._others_shown(by, number) if self.comparing else [],
        }

    def progress(self, by: str) -> dict[str, int]:
        """Return how many pairs have each status, and how many there are."""
        person = self._person(by)
        numbers = self._listed(by, ALL)
        counted = Counter(person.works[k].status if k in person.works else OPEN for k in numbers)
        return {**{status: counted[status] for status in STATUSES}, "pairs": len(numbers)}

    def work(self, by: str, number: int) -> Work:
        """Return the work of an annotator, or what it would start from."""
        begun = self._person(by).works.get(number)
        if begun is not None:
            return begun
        if not self.comparing:
            return Work(self._found[number].sure, self._found[number].possible)
        others = list(self._others(by, number).values())
        sure = frozenset.intersection(*(work.sure for work in others)) if others else frozenset()
        linked = frozenset.intersection(*(work.sure | work.possible for work in others)) if others else frozenset()
        return Work(sure, linked - sure)

    def version(self, by: str, number: int) -> str:
        """Sum up what a page shows of a pair: it may change this only if nothing else came first."""
        work = self.work(by, number)
        content = repr((sorted(work.sure), sorted(work.possible), work.status))
        return f"{self._person(by).revision}-{number}-{zlib.crc32(content.encode()):08x}"

    def agreement(self) -> list[Shown]:
        """Return the agreement of each two annotators on the pairs that both have accepted."""
        people = {**self.journal.state.people, **self._guests}
        accepted = {
            name: {
                k: work for k, work in one.works.items() if work.status == ACCEPTED and k not in one.adjudicates
            }
            for name, one in people.items()
        }
        names = [name for name, works in accepted.items() if works]
        out = []
        for place, one in enumerate(names):
            for other in names[place + 1 :]:
                both = sorted(accepted[one].keys() & accepted[other].keys())
                if both:
                    first, second = (
                        [accepted[name][k].alignment(self.examples[k].pair) for k in both] for name in (one, other)
                    )
                    found = {"kappa": cohen(first, second), "f1": score(first, second).f1}
                    out.append({"first": one, "second": other, "pairs": len(both), **found})
        return out

    # ---- what is changed

    def act(self, by: str, version: str, number: int, event: Mapping[str, Any]) -> int:
        """Do what a page asks for, on the disk, and return the pair that was changed; raises `Refused`."""
        if version != self.version(by, number):
            raise Refused(409, "this page is out of date: it shows the present state now, so look again")
        changed = {**event, "by": by}
        try:
            if event["do"] in ("edit", "status"):
                changed["pair"] = number
                self._begin(by, number, changed)
            self.journal.append(changed)
        except ValueError as error:
            raise Refused(422, str(error)) from None
        except OSError as error:
            raise Refused(507, f"not saved: {self.journal.path} cannot be written ({error.strerror})") from None
        if event["do"] == "undo":
            return self._person(by).undone[-1].pair
        return self._person(by).done[-1].pair

    def fitted(self, name: str, pairs: int, found: Sequence[Proposal]) -> None:
        """Take the proposals of a model that was fitted on so many pairs."""
        self.journal.append({"do": "model", "name": name, "pairs": pairs})
        self.propose(found)

    def settled(self, by: str | None = None, strict: bool = True) -> Iterator[Example]:
        """Yield the accepted pairs; see the function of this name."""
        return settled(self.journal.state, self.examples, by, str(self.journal.path), strict)

    def in_dispute(self) -> int:
        """Return how many accepted pairs annotators disagree on, without a decision yet."""
        return sum(not isinstance(work, Work) for _, work in self.journal.state.settled())

    def _begin(self, by: str, number: int, first: Mapping[str, Any]) -> None:
        """Write down what an annotator starts from, before the first change; a ValueError if that does not fit."""
        if number in self._person(by).works:
            return
        trial, events = Annotations(), list[Mapping[str, Any]]()
        if number in self.journal.state.pairs:
            trial.pairs[number] = self.journal.state.pairs[number]
        else:
            pair = self.examples[number].pair
            known = {} if pair.id is None else {"id": pair.id}
            words = {"source": list(pair.source.tokens), "target": list(pair.target.tokens)}
            events.append({"do": "pair", "pair": number, **known, **words})
        work = self.work(by, number)
        links = {"sure": sorted(map(list, work.sure)), "possible": sorted(map(list, work.possible))}
        of = {"of": list(self._others(by, number))} if self.comparing else {}
        events.append({"do": "begin", "by": by, "pair": number, **links, **of})
        for event in (*events, first):
            trial.add(event)
        for event in events:
            self.journal.append(event)

    # ---- helpers

    def _person(self, by: str) -> Annotator:
        return self.journal.state.people.get(by) or Annotator()

    def _listed(self, by: str, show: str) -> list[int]:
        """Return the numbers of the pairs that are shown, in order."""
        order = self._disputed(by) if self.comparing else self._order
        if show == ALL:
            return order
        works = self._person(by).works
        return [k for k in order if (works[k].status if k in works else OPEN) == show]

    def _open_after(self, by: str, order: Sequence[int], number: int) -> int | None:
        """Return the next open pair of the order behind this one, else the first; without any, the next pair."""
        works = self._person(by).works
        place = order.index(number) + 1 if number in order else 0
        turned = [*order[place:], *order[:place]]
        for k in turned:
            if k != number and (k not in works or works[k].status == OPEN):
                return k
        return turned[0] if turned and number < 0 else None

    def _others(self, by: str, number: int) -> dict[str, Work]:
        """Return the accepted work of the others, but not that of adjudicators."""
        found = {}
        for name, one in {**self.journal.state.people, **self._guests}.items():
            if name != by and number in one.works and number not in one.adjudicates:
                if one.works[number].status == ACCEPTED:
                    found[name] = one.works[number]
        return found

    def _others_shown(self, by: str, number: int) -> list[Shown]:
        return [
            {"by": name, "sure": sorted(work.sure), "possible": sorted(work.possible)}
            for name, work in self._others(by, number).items()
        ]

    def _disputed(self, by: str) -> list[int]:
        """Return the pairs on which the others disagree, those with most differences first."""
        differing = {k: len(cells) for k in range(len(self.examples)) if (cells := self._differences(by, k))}
        return sorted(differing, key=lambda k: (-differing[k], k))

    def _differences(self, by: str, number: int) -> set[Link]:
        works = list(self._others(by, number).values())
        if len(works) < 2:
            return set()
        found: set[Link] = set()
        for work in works[1:]:
            found |= (work.sure ^ works[0].sure) | (work.possible ^ works[0].possible)
        return found


def settled(
    state: Annotations, examples: Sequence[Example], by: str | None, journal: str, strict: bool = True
) -> Iterator[Example]:
    """Yield the accepted pairs as examples; see `Annotations.settled`. Disagreements are errors if `strict`."""
    for number, work in state.settled(by):
        given = examples[number]
        if isinstance(work, Work):
            yield replace(given, gold=work.alignment(given.pair))
        elif strict:
            raise disagreement(given.pair.id, number, work, journal)
