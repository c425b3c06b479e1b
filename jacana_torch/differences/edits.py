"""Typed edits of words and phrases, from the links between two sentences (or groups of them)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..annotate.tokens import matching_form
from ..features.wordlists import FUNCTION_WORDS, is_punctuation
from ..tasks.content import weight
from ..types import Link
from .reasons import reason

KINDS = ("keep", "move", "substitute", "insert", "delete")


@dataclass(frozen=True)
class Edit:
    """One edit: `kind` is one of KINDS. The tokens first:last of either side, empty for what is not there.

    `reason` says why something was substituted (`reasons.REASONS`), or how what moved has changed; "" otherwise.
    `probability` is what the edit rests on: the mean posterior of its links, or that its words have none; None if
    the aligner does not know. Words that no link joins but that are the same in the same place have 1.
    """

    kind: str
    source: tuple[int, int]
    target: tuple[int, int]
    before: str = ""
    after: str = ""
    reason: str = ""
    probability: float | None = None

    def to_dict(self) -> dict[str, Any]:
        found: dict[str, Any] = {"kind": self.kind, "before": self.before, "after": self.after}
        if self.reason:
            found["reason"] = self.reason
        if self.probability is not None:
            found["probability"] = round(self.probability, 4)
        return {**found, "source_tokens": list(self.source), "target_tokens": list(self.target)}


@dataclass(frozen=True)
class _Part:
    """Tokens of both sides that belong together by links."""

    source: tuple[int, ...]
    target: tuple[int, ...]
    probability: float = 1.0
    moved: bool = False


def edits(
    source: Sequence[str],
    target: Sequence[str],
    links: Iterable[Link],
    confidence: Mapping[Link, float] | None = None,
    posteriors: np.ndarray | None = None,
) -> list[Edit]:
    """Return the edits that make the target of the source, in the order of the target.

    What is deleted stands before what stands in its place. `posteriors` [M, N] are the probabilities of all cells.
    """
    a, b = ([matching_form(word).lower() for word in side] for side in (source, target))
    parts = _parts(a, b, sorted(links), confidence or {})
    parts = _in_order(parts, a)
    parts = _filled(parts, a, b)
    parts = _phrases(parts, a, b)
    linked = {i for part in parts for i in part.source}, {j for part in parts for j in part.target}
    found: list[Edit] = []
    for part in parts:
        found.append(_edit(part, source, target))
    for side, n in ((0, len(source)), (1, len(target))):
        for first, last in _runs([k for k in range(n) if k not in linked[side]]):
            own = None
            if posteriors is not None:
                best = posteriors[first:last].max(1) if side == 0 else posteriors[:, first:last].max(0)
                own = float(np.mean(1 - best)) if best.size else 1.0
            span = first, last
            if side == 0:
                found.append(Edit("delete", span, (0, 0), before=" ".join(source[first:last]), probability=own))
            else:
                found.append(Edit("insert", (0, 0), span, after=" ".join(target[first:last]), probability=own))
    return _kept_together(_replaced(_sorted(found)))


def _replaced(found: Sequence[Edit]) -> list[Edit]:
    """Take a deletion and an insertion in the same place as a substitution, if the one could replace the other.

    That is so for numbers, names and function words, which aligners leave unlinked if they differ, and for single
    words. Longer stretches are one only if something says that they are related.
    """
    out: list[Edit] = []
    for edit in found:
        last = out[-1] if out else None
        if last is not None and last.kind == "delete" and edit.kind == "insert":
            sizes = last.source[1] - last.source[0], edit.target[1] - edit.target[0]
            one, other = last.before.split(" "), edit.after.split(" ")
            why = reason(one, other)
            marks = [all(map(is_punctuation, side)) for side in (one, other)]
            if marks[0] == marks[1] and (sizes == (1, 1) or (max(sizes) <= _LONGEST_REPLACED and why != "phrase")):
                known = [p for p in (last.probability, edit.probability) if p is not None]
                mean = sum(known) / len(known) if known else None
                out[-1] = Edit("substitute", last.source, edit.target, last.before, edit.after, why, mean)
                continue
        out.append(edit)
    return out


def _parts(
    a: Sequence[str], b: Sequence[str], links: Sequence[Link], confidence: Mapping[Link, float]
) -> list[_Part]:
    """Group links that share tokens. Of a group, the same words keep their links, and no others do."""
    same = {link for link in links if a[link[0]] == b[link[1]]}
    taken: tuple[set[int], set[int]] = set(), set()
    exact: list[_Part] = []
    for i, j in sorted(same, key=lambda link: (abs(link[0] * len(b) - link[1] * len(a)), link)):
        if i not in taken[0] and j not in taken[1]:
            taken[0].add(i)
            taken[1].add(j)
            exact.append(_Part((i,), (j,), confidence.get((i, j), 1.0)))
    rest = [link for link in links if link[0] not in taken[0] and link[1] not in taken[1]]
    owner: dict[tuple[int, int], int] = {}
    groups: list[list[Link]] = []
    for link in rest:
        keys = (0, link[0]), (1, link[1])
        owners = sorted({owner[key] for key in keys if key in owner})
        if not owners:
            owners = [len(groups)]
            groups.append([])
        groups[owners[0]].append(link)
        for other in owners[1:]:
            groups[owners[0]] += groups[other]
            groups[other] = []
        for own in groups[owners[0]]:
            owner[0, own[0]] = owner[1, own[1]] = owners[0]
    for group in groups:
        if group:
            exact += _contiguous(group, confidence)
    return sorted(exact, key=lambda part: part.source)


def _contiguous(group: Sequence[Link], confidence: Mapping[Link, float]) -> list[_Part]:
    """Make parts of a group whose tokens lie next to each other; others lose the weakest links."""
    strongest = max(group, key=lambda link: (confidence.get(link, 1.0), link))
    source, target = {strongest[0]}, {strongest[1]}
    grown = True
    while grown:
        grown = False
        for i, j in group:
            near = any(abs(i - k) <= 1 for k in source) and any(abs(j - k) <= 1 for k in target)
            if near and not (i in source and j in target):
                source.add(i)
                target.add(j)
                grown = True
    own = [confidence.get(link, 1.0) for link in group if link[0] in source and link[1] in target]
    part = _Part(tuple(sorted(source)), tuple(sorted(target)), sum(own) / len(own))
    left = [link for link in group if link[0] not in source and link[1] not in target]
    return [part, *(_contiguous(left, confidence) if left else [])]


def _light(words: Iterable[str]) -> bool:
    return all(word in FUNCTION_WORDS or is_punctuation(word) for word in words)


def _in_order(parts: list[_Part], a: Sequence[str]) -> list[_Part]:
    """Mark the parts outside of the heaviest sequence that has the same order on both sides as moved.

    Function words and punctuation do not move alone: they are deleted and inserted.
    """
    if not parts:
        return []
    weights = [sum(weight(a[i]) for i in part.source) + 0.01 for part in parts]
    best: list[float] = []
    before: list[int] = []
    for k, part in enumerate(parts):
        most, last = 0.0, -1
        for earlier in range(k):
            fits = parts[earlier].target[-1] < part.target[0] and parts[earlier].source[-1] < part.source[0]
            if fits and best[earlier] > most:
                most, last = best[earlier], earlier
        best.append(most + weights[k])
        before.append(last)
    k = int(np.argmax(best))
    chain: set[int] = set()
    while k >= 0:
        chain.add(k)
        k = before[k]
    out: list[_Part] = []
    joined = _joined([replace(part, moved=k not in chain) for k, part in enumerate(parts)])
    for part in joined:
        if not part.moved or not _light(a[i] for i in part.source):
            out.append(part)
    return out


def _joined(parts: Sequence[_Part]) -> list[_Part]:
    """Join moved parts that follow each other on both sides."""
    out: list[_Part] = []
    for part in parts:
        last = out[-1] if out else None
        if (
            last is not None
            and part.moved
            and last.moved
            and last.source[-1] + 1 == part.source[0]
            and last.target[-1] + 1 == part.target[0]
        ):
            size = len(last.source), len(part.source)
            mean = (last.probability * size[0] + part.probability * size[1]) / sum(size)
            out[-1] = _Part(last.source + part.source, last.target + part.target, mean, True)
        else:
            out.append(part)
    return out


def _filled(parts: list[_Part], a: Sequence[str], b: Sequence[str]) -> list[_Part]:
    """Between parts that keep their place, keep the same words that no link joins: the longest common sequence."""
    linked = {i for part in parts for i in part.source}, {j for part in parts for j in part.target}
    fixed = [part for part in parts if not part.moved]
    borders = [(-1, -1), *((part.source[-1], part.target[-1]) for part in fixed)]
    ends = [*((part.source[0], part.target[0]) for part in fixed), (len(a), len(b))]
    added: list[_Part] = []
    for (i, j), (to_i, to_j) in zip(borders, ends, strict=True):
        left = [k for k in range(i + 1, to_i) if k not in linked[0]]
        right = [k for k in range(j + 1, to_j) if k not in linked[1]]
        added += [_Part((x,), (y,)) for x, y in _common(left, right, a, b)]
    return sorted([*parts, *added], key=lambda part: part.source)


def _common(left: Sequence[int], right: Sequence[int], a: Sequence[str], b: Sequence[str]) -> list[Link]:
    """The longest common subsequence of two lists of places."""
    if not left or not right:
        return []
    table = np.zeros((len(left) + 1, len(right) + 1), dtype=int)
    for x in range(len(left) - 1, -1, -1):
        for y in range(len(right) - 1, -1, -1):
            same = a[left[x]] == b[right[y]]
            table[x, y] = table[x + 1, y + 1] + 1 if same else max(table[x + 1, y], table[x, y + 1])
    found, x, y = [], 0, 0
    while x < len(left) and y < len(right):
        if a[left[x]] == b[right[y]]:
            found.append((left[x], right[y]))
            x, y = x + 1, y + 1
        elif table[x + 1, y] >= table[x, y + 1]:
            x += 1
        else:
            y += 1
    return found


def _phrases(parts: list[_Part], a: Sequence[str], b: Sequence[str]) -> list[_Part]:
    """Let substituted words take in the function words beside them that nothing else explains.

    `gave up` for `quit` has one link; the particle belongs to the phrase. Neighbouring substitutions of a gap stay
    apart.
    """
    linked = {i for part in parts for i in part.source}, {j for part in parts for j in part.target}
    out = []
    for part in parts:
        same = [a[i] for i in part.source] == [b[j] for j in part.target]
        if same or part.moved:
            out.append(part)
            continue
        source, target = list(part.source), list(part.target)
        for words, own, taken, other in ((a, source, linked[0], len(target)), (b, target, linked[1], len(source))):
            after = own[-1] + 1
            while after < len(words) and after not in taken and words[after] in _PARTICLES and other:
                own.append(after)
                taken.add(after)
                after += 1
        out.append(replace(part, source=tuple(source), target=tuple(target)))
    return out


_LONGEST_REPLACED = 4  # tokens
_PARTICLES = frozenset("up down out off away back over in on of to for with at".split())


def _edit(part: _Part, source: Sequence[str], target: Sequence[str]) -> Edit:
    spans = (part.source[0], part.source[-1] + 1), (part.target[0], part.target[-1] + 1)
    one, other = source[slice(*spans[0])], target[slice(*spans[1])]
    same = [matching_form(w).lower() for w in one] == [matching_form(w).lower() for w in other]
    why = "" if list(one) == list(other) else reason(one, other)
    kind = "move" if part.moved else "keep" if same else "substitute"
    return Edit(kind, *spans, " ".join(one), " ".join(other), why, part.probability)


def _runs(places: Sequence[int]) -> list[tuple[int, int]]:
    """The stretches first:last of sorted numbers."""
    found: list[tuple[int, int]] = []
    for k in places:
        if found and found[-1][1] == k:
            found[-1] = found[-1][0], k + 1
        else:
            found.append((k, k + 1))
    return found


def _sorted(found: Sequence[Edit]) -> list[Edit]:
    """Sort by the target; a deletion stands behind what comes before it in the source."""
    place = {}
    fixed = sorted((e for e in found if e.kind in ("keep", "substitute")), key=lambda e: e.source)
    for edit in found:
        if edit.kind == "delete":
            before = [e for e in fixed if e.source[1] <= edit.source[0]]
            place[id(edit)] = (before[-1].target[1] - 0.5 if before else -0.5, 0, edit.source[0])
        else:
            place[id(edit)] = (float(edit.target[0]), 1, edit.source[0])
    return sorted(found, key=lambda edit: place[id(edit)])


def _kept_together(found: Sequence[Edit]) -> list[Edit]:
    """Join words that are kept next to each other, or that are written in another way: cannot and can't."""
    out: list[Edit] = []
    for edit in found:
        last = out[-1] if out else None
        if (
            last is not None
            and (last.kind, last.reason) == (edit.kind, edit.reason)
            and (last.kind, last.reason) in (("keep", ""), ("substitute", "notation"))
            and last.source[1] == edit.source[0]
            and last.target[1] == edit.target[0]
        ):
            sizes = last.source[1] - last.source[0], edit.source[1] - edit.source[0]
            known = last.probability, edit.probability
            mean = sum(p * n for p, n in zip(known, sizes, strict=True) if p is not None) / sum(sizes)
            spans = (last.source[0], edit.source[1]), (last.target[0], edit.target[1])
            words = f"{last.before} {edit.before}", f"{last.after} {edit.after}"
            out[-1] = Edit(edit.kind, *spans, *words, edit.reason, mean)
        else:
            out.append(edit)
    return out
