"""One sentence that gives the reasons for a link, or against it, from the strongest groups of contributions.

Every clause is true of the pair (facts.py). The contributions decide which ones are given, and in which order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .facts import quoted
from .groups import Group

MOST = 3  # clauses about the words themselves; with fewer of them, other links are named
AGAINST = 0.3  # a group that opposes the decision by less needs no mention
WEAK_MARGIN, WEAK_CONFIDENCE = 1.0, 0.7
CHAINS = "linear chains"  # the group of a component, which has reasons of its own
AROUND = ("word order", "no link instead", "context", CHAINS)  # groups about what is around the words come last

Clauses = Mapping[str, Sequence[Sequence[str]]]


def sentence(words: tuple[str, str], linked: bool, reasons: str) -> str:
    """Write the sentence, given what `because` returns."""
    one, other = map(quoted, words)
    return f"{one} ↔ {other}: {reasons}" if linked else f"{one} and {other} are not linked: {reasons}"


def because(linked: bool, confidence: float | None, groups: Sequence[Group], clauses: Clauses) -> str:
    """Write the reasons; the clauses of each group are in lists, each about one thing, with + or - before them."""
    text = ", ".join(_reasons(_some(groups, clauses, linked)))
    text = text or ("no single fact stands out" if linked else "too little supports a link")
    margin = sum(group.sum for group in groups)
    if linked and (margin < WEAK_MARGIN or (confidence is not None and confidence < WEAK_CONFIDENCE)):
        text = f"weak evidence: {text}"
    for group, (objection, *_) in _some(groups, clauses, not linked)[:1]:
        if abs(group.sum) >= AGAINST:
            text += f", although {objection}"
    return f"{text}."


def _reasons(found: Sequence[tuple[Group, list[str]]]) -> list[str]:
    reasons = [texts[0] for group, texts in found if group.title not in AROUND][:MOST]
    around = {group.title: texts for group, texts in found}
    for title in AROUND:
        if title in ("context", CHAINS) or len(reasons) < MOST:
            reasons += around.get(title, ())
    return reasons


def _some(groups: Sequence[Group], clauses: Clauses, pro: bool) -> list[tuple[Group, list[str]]]:
    """Return the groups that support a link (`pro`) or oppose it and have clauses that do, the strongest first."""
    sign, found = "+" if pro else "-", []
    for group in groups:
        of_group = (
            [text[2:] for text in texts if text.startswith(sign)] for texts in clauses.get(group.title, ())
        )
        texts = [own[0] for own in of_group if own]
        if texts and (group.sum > 0) == pro:
            found.append((group, texts))
    return found
