"""Explanations as plain text with bars, for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap

from ..features.titles import Titles
from .choices import Choice, Reasons
from .explanation import Explanation, LinkExplanation
from .facts import percent
from .groups import REST, Group, bars

BAR = 12  # characters of the longest bar
WIDTH = 115


def explanation_text(explanation: Explanation, top: int = 3, details: bool = False) -> str:
    """Describe every link of an alignment, then list the words without links."""
    pair = explanation.pair
    sides = (("source", pair.source.tokens), ("target", pair.target.tokens))
    lines = [f"{name}  {' '.join(f'{k}:{token}' for k, token in enumerate(tokens))}" for name, tokens in sides]
    if explanation.note:
        lines += ["", explanation.note]
    for link in explanation.links():
        lines += ["", link_text(link, top, details) if details else _short_text(link)]
    unlinked = []
    for side, (name, tokens) in enumerate(sides):
        covered = {link[side] for link in explanation.alignment.all_links}
        if alone := [f"{k}:{token}" for k, token in enumerate(tokens) if k not in covered]:
            unlinked.append(f"{name} words without a link: {' '.join(alone)}")
    lines += ["", *unlinked] if unlinked else []
    return "\n".join([*lines, *method_lines(explanation)])


def method_lines(explanation: Explanation) -> list[str]:
    """Say how contributions were computed, and what they add up to."""
    return ["", *wrap(explanation.method, WIDTH)] if explanation.method and explanation.alignment.all_links else []


def _short_text(link: LinkExplanation) -> str:
    """Describe a link in two lines: the sentence, and the strongest groups."""
    sure = "" if link.confidence is None else f"  {percent(link.confidence)}"
    lines = [f"{link.source}-{link.target}{sure}  {link.reason or _words(link)}"]
    if link.groups:
        lines.append(f"     {_amounts(bars(link.groups))}")
    return "\n".join(lines)


def _amounts(groups: Sequence[Group]) -> str:
    shown = ", ".join(f"{group.title} {group.sum:+.1f}" for group in groups)
    return f"{sum(group.sum for group in groups):+.1f} = {shown}"


def link_text(link: LinkExplanation, top: int = 8, details: bool = False) -> str:
    """Describe two words, linked or not: the sentence, the groups, and what was compared in each direction."""
    state = "linked" if link.linked else "not linked"
    sure = "" if link.confidence is None else f", probability {percent(link.confidence)}"
    verdict = f"; {link.verdict}" if link.verdict and link.choices else ""
    lines = [f"{link.source}-{link.target}  {link.reason or _words(link)}", f"  {state}{sure}{verdict}"]
    lines += _group_lines(link.groups, link.total)
    assert link.whole is not None
    if details and link.cells:
        lines += [f"  {_amounts(link.cells)}: the network's part, by the words that it reads"]
    sides = link.whole.pair.source.tokens, link.whole.pair.target.tokens
    for choice in link.choices:
        own, other = sides if choice.direction == "forward" else sides[::-1]
        lines.append(f"  {choice.direction}: {choice.compared(own, other)}")
        if details:
            lines += [f"  {line}" for line in _detail_lines(choice, own, other, top, link.titles)]
    return "\n".join(lines)


def _words(link: LinkExplanation) -> str:
    assert link.whole is not None
    return f"{link.whole.pair.source.tokens[link.source]} = {link.whole.pair.target.tokens[link.target]}"


def _group_lines(groups: Sequence[Group], total: str) -> list[str]:
    shown = bars(groups)
    largest = max((abs(group.sum) for group in shown), default=1.0) or 1.0
    lines = []
    for group in shown:
        others = f" ({', '.join(detail.title for detail in group.details)})" if group.title == REST else ""
        spread = f" ± {group.spread:.2f}" if group.spread else ""
        lines.append(f"  {_bar(group.sum, largest)} {group.title}{spread}{others}")
    if lines:
        lines.append(f"  {sum(group.sum for group in groups):+7.2f} {'':{BAR}} in all: {total}")
    return lines


def _detail_lines(choice: Choice, own: Sequence[str], other: Sequence[str], top: int, titles: Titles) -> list[str]:
    margin = choice.margin
    lines = _reason_lines(
        f"score {choice.score:+.2f} of {_place(choice.position, other)}", choice.reasons, top, titles
    )
    if margin is not None:
        heading = f"difference {margin.own.total:+.2f} to {_place(choice.rival, other)}"
        lines += _reason_lines(heading, margin.own, top, titles)
        if margin.transitions:
            heading = f"difference {margin.transitions.total:+.2f} of the steps between links"
            lines += _reason_lines(heading, margin.transitions, top, titles)
        for moved in margin.moved[:top]:
            there = f"{_place(moved.here, other)}, not {_place(moved.there, other)}"
            lines.append(f"  {moved.difference:+7.2f}  {own[moved.token]} takes {there}")
    return lines


def _reason_lines(heading: str, reasons: Reasons, top: int, titles: Titles) -> list[str]:
    shown, rest = reasons[:top], reasons[top:]
    largest = max((abs(reason.contribution) for reason in shown), default=1.0) or 1.0
    lines = [f"  {heading}"]
    for reason in shown:
        bar, title = _bar(reason.contribution, largest), titles[reason.feature].text
        lines.append(f"  {bar} {title} ({reason.value:.3g} x {reason.weight:.2f})")
    if rest:
        lines.append(f"  {sum(reason.contribution for reason in rest):+7.2f} {'':{BAR}} {len(rest)} more")
    return lines


def _bar(amount: float, largest: float) -> str:
    bar = ("#" if amount > 0 else "-") * max(1, round(BAR * abs(amount) / largest))
    return f"{amount:+7.2f} {bar:{BAR}}"


def _place(position: int | None, tokens: Sequence[str]) -> str:
    return "no link" if position is None else f"{tokens[position]} ({position})"
