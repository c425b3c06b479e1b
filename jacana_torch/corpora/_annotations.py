"""What the events of an annotation add up to: pairs, and for each annotator links, marks and what can be undone.

An event is a JSON object with `do`:

    pair    pair, id, source, target         the tokens of a pair, before anything else is said of it
    begin   by, pair, sure, possible, of     the links that one starts from; `of`: whose work is to be adjudicated
    edit    by, pair, cells                  cells is a list of [i, j, kind], where kind is sure, possible or none
    status  by, pair, status, note           open, accepted, skipped or flagged
    undo    by                               takes back the annotator's last edit or status that is not taken back
    redo    by                               does again what was taken back last
    model   name, pairs                      a model was fitted on so many pairs

`Annotations` is a pure fold over them: the same events give the same state. An event that does not fit is a
ValueError and changes nothing. Other keys, such as `at`, are for people.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..types import Alignment, Link, Sentence, SentencePair
from ..util.json_values import encodable, identifier, shown
from ..util.json_values import field as value_of

KINDS = ("sure", "possible", "none")
OPEN, ACCEPTED, SKIPPED, FLAGGED = STATUSES = ("open", "accepted", "skipped", "flagged")
LONGEST_NAME, LONGEST_NOTE = 60, 2000

Cell = tuple[int, int, str]


@dataclass(frozen=True)
class Work:
    """What an annotator has made of a pair."""

    sure: frozenset[Link] = frozenset()
    possible: frozenset[Link] = frozenset()
    status: str = OPEN
    note: str = ""

    def edited(self, cells: Iterable[Cell]) -> Work:
        """Return the work with these cells changed."""
        sure, possible = set(self.sure), set(self.possible)
        for i, j, kind in cells:
            for name, links in (("sure", sure), ("possible", possible)):
                (links.add if kind == name else links.discard)((i, j))
        return replace(self, sure=frozenset(sure), possible=frozenset(possible))

    @property
    def links(self) -> tuple[frozenset[Link], frozenset[Link]]:
        return self.sure, self.possible

    def alignment(self, pair: SentencePair) -> Alignment:
        return Alignment(len(pair.source), len(pair.target), self.sure, self.possible)


@dataclass(frozen=True)
class Change:
    """The work on a pair before and after an edit or a status."""

    pair: int
    before: Work
    after: Work


@dataclass
class Annotator:
    """The work of one person. `adjudicates` are pairs whose other annotators were known to this one."""

    works: dict[int, Work] = field(default_factory=dict)
    adjudicates: set[int] = field(default_factory=set)
    done: list[Change] = field(default_factory=list)
    undone: list[Change] = field(default_factory=list)
    revision: int = 0  # number of events besides `begin`


class Annotations:
    """The state after some events; `step` checks an event, and `take` or `add` adds it."""

    def __init__(self) -> None:
        self.pairs: dict[int, SentencePair] = {}
        self.people: dict[str, Annotator] = {}
        self.model: tuple[str, int] | None = None  # the last one that was fitted, and on how many pairs

    def add(self, event: Mapping[str, Any]) -> None:
        self.step(event)()

    def step(self, event: Mapping[str, Any]) -> Callable[[], None]:
        """Check an event, and return what adds it; a ValueError says what is wrong with it."""
        do = value_of(event, "do")
        if do == "pair":
            return self._pair(event)
        if do == "model":
            name, pairs = value_of(event, "name"), value_of(event, "pairs")
            if not isinstance(name, str) or type(pairs) is not int:
                raise ValueError(f"a model has a name and a number of pairs, not {shown(name)} and {shown(pairs)}")
            return lambda: setattr(self, "model", (encodable(name), pairs))
        by = named(value_of(event, "by"))
        if do == "begin":
            return self._begin(event, by)
        person = self.people.get(by)
        if do in ("undo", "redo"):
            return self._turned(person, do)
        if do not in ("edit", "status"):
            raise ValueError(f"'do' should be pair, begin, edit, status, undo, redo or model and is {shown(do)}")
        number = self._number(event)
        if person is None or number not in person.works:
            raise ValueError(f"{by} has not begun pair {number}")
        before = person.works[number]
        if do == "edit":
            after = before.edited(self._cells(value_of(event, "cells"), number))
        else:
            after = replace(before, status=_status(event), note=_note(event))
        return lambda: _changed(person, Change(number, before, after))

    def _pair(self, event: Mapping[str, Any]) -> Callable[[], None]:
        number = value_of(event, "pair")
        if type(number) is not int or number < 0:
            raise ValueError(f"'pair' should be a number, from 0, and is {shown(number)}")
        sides = [_sentence(value_of(event, side), side) for side in ("source", "target")]
        pair = SentencePair(sides[0], sides[1], identifier(event, "id"))
        if self.pairs.setdefault(number, pair) != pair:
            raise ValueError(f"pair {number} has other words than before")
        return lambda: None

    def _begin(self, event: Mapping[str, Any], by: str) -> Callable[[], None]:
        number = self._number(event)
        if by in self.people and number in self.people[by].works:
            raise ValueError(f"{by} has begun pair {number} already")
        cells = [(*link, kind) for kind in KINDS[:2] for link in _listed(event, kind)]
        work = Work().edited(self._cells(cells, number))
        of = event.get("of")

        def begin() -> None:
            person = self.people.setdefault(by, Annotator())
            person.works[number] = work
            if of:
                person.adjudicates.add(number)

        return begin

    def _turned(self, person: Annotator | None, do: str) -> Callable[[], None]:
        left = () if person is None else person.done if do == "undo" else person.undone
        if person is None or not left:
            raise ValueError(f"there is nothing to {do}")

        def turn() -> None:
            here, there = (person.done, person.undone) if do == "undo" else (person.undone, person.done)
            change = here.pop()
            there.append(change)
            person.works[change.pair] = change.before if do == "undo" else change.after
            person.revision += 1

        return turn

    def _number(self, event: Mapping[str, Any]) -> int:
        number = value_of(event, "pair")
        if type(number) is not int or number not in self.pairs:
            raise ValueError(f"'pair' should be the number of a known pair and is {shown(number)}")
        return number

    def _cells(self, given: Any, number: int) -> list[Cell]:
        pair = self.pairs[number]
        sizes = len(pair.source), len(pair.target)
        if not isinstance(given, list):
            raise ValueError(f"'cells' should be a list of [i, j, kind] and is {shown(given)}")
        cells = []
        for cell in given:
            i, j, kind = cell if isinstance(cell, (list, tuple)) and len(cell) == 3 else (None, None, None)
            if type(i) is not int or type(j) is not int or kind not in KINDS:
                raise ValueError(f"a cell is [i, j, {' or '.join(KINDS)}], and not {shown(cell)}")
            if not (0 <= i < sizes[0] and 0 <= j < sizes[1]):
                raise ValueError(f"link {i}-{j} is out of range for {sizes[0]} x {sizes[1]} tokens")
            cells.append((i, j, kind))
        return cells

    def accepted(self, number: int) -> dict[str, Work]:
        """The work of those who accepted the pair; that of adjudicators alone if there is any."""
        found = {name: one.works[number] for name, one in self.people.items() if number in one.works}
        found = {name: work for name, work in found.items() if work.status == ACCEPTED}
        last = {name: work for name, work in found.items() if number in self.people[name].adjudicates}
        return last or found

    def settled(self, by: str | None = None) -> Iterator[tuple[int, Work | tuple[str, ...]]]:
        """Yield the pairs that were accepted: one's own work, or without `by` what all who count agree on.

        Where they disagree, their names stand in its place.
        """
        for number in sorted(self.pairs):
            found = self.accepted(number)
            if by is not None:
                person = self.people.get(by)
                own = person.works.get(number) if person is not None else None
                found = {by: own} if own is not None and own.status == ACCEPTED else {}
            if found:
                same = len({work.links for work in found.values()}) == 1
                yield number, next(iter(found.values())) if same else tuple(found)


def named(name: Any) -> str:
    """Check the name of an annotator."""
    if not isinstance(name, str) or not name.strip() or not name.isprintable() or len(name) > LONGEST_NAME:
        raise ValueError(f"the name of an annotator has 1 to {LONGEST_NAME} letters, and is {shown(name)}")
    return name


def _changed(person: Annotator, change: Change) -> None:
    person.works[change.pair] = change.after
    person.done.append(change)
    person.undone.clear()
    person.revision += 1


def _sentence(given: Any, side: str) -> Sentence:
    if not isinstance(given, list) or not all(isinstance(token, str) and token for token in given):
        raise ValueError(f"{side!r} should be a list of tokens and is {shown(given)}")
    encodable("".join(given))
    return Sentence(tuple(given))


def _listed(event: Mapping[str, Any], kind: str) -> list[Any]:
    links = value_of(event, kind)
    if not isinstance(links, list) or not all(isinstance(link, list) for link in links):
        raise ValueError(f"{kind!r} should be a list of [i, j] and is {shown(links)}")
    return links


def _status(event: Mapping[str, Any]) -> str:
    status = value_of(event, "status")
    if status not in STATUSES:
        raise ValueError(f"'status' should be one of {', '.join(STATUSES)} and is {shown(status)}")
    return str(status)


def _note(event: Mapping[str, Any]) -> str:
    note = event.get("note", "")
    if not isinstance(note, str) or len(note) > LONGEST_NOTE:
        raise ValueError(f"'note' should be a text of at most {LONGEST_NOTE} characters and is {shown(note)}")
    return encodable(note)
