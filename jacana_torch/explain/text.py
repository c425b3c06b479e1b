"""Explanations for people: plain text with bars, as wide as a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .choice import Choice, Reasons
from .phrases import told

if TYPE_CHECKING:
    from .explanation import Explanation, LinkExplanation

_WIDEST = 12  # characters of a bar
_FOR, _AGAINST = "#", "-"


def explanation_text(explanation: Explanation, top: int = 3) -> str:
    """Every link of an alignment, and the words that have none."""
    lines = [
        _sentence("source", explanation.pair.source.tokens),
        _sentence("target", explanation.pair.target.tokens),
    ]
    if explanation.note:
        lines += ["", explanation.note]
    for link in explanation.links():
        lines += ["", link_text(link, top)]
    alone = _alone(explanation)
    return "\n".join([*lines, *(["", *alone] if alone else [])])


def link_text(link: LinkExplanation, top: int = 8) -> str:
    """One link, or what is none: the verdict, then what either direction made of it."""
    assert link.pair is not None
    source, target = link.pair.source.tokens, link.pair.target.tokens
    state = "linked" if link.linked else "not linked"
    sure = "" if link.confidence is None else f", confidence {link.confidence:.3f}"
    verdict = f"; {link.verdict}" if link.verdict and link.choices else ""
    lines = [f"{link.source}-{link.target}  {source[link.source]} = {target[link.target]}: {state}{sure}{verdict}"]
    for choice in link.choices:
        own, other = (source, target) if choice.direction == "forward" else (target, source)
        lines += [f"  {line}" for line in _choice_lines(choice, own, other, top)]
    return "\n".join(lines)


def _choice_lines(choice: Choice, own: Sequence[str], other: Sequence[str], top: int) -> list[str]:
    took, rival = _place(choice.position, other), _place(choice.rival, other)
    lines = [f"{choice.direction}: {own[choice.token]} takes {took}, probability {choice.posterior:.3f}"]
    margin = choice.margin
    if margin is not None:
        won = f"wins by {margin.value:.2f} over" if choice.chosen else f"loses by {-margin.value:.2f} to"
        lines[0] += f"; {won} {rival} ({choice.rival_posterior:.3f})"
    lines += [f"  {line}" for line in _reason_lines(f"score {choice.score:+.2f}", choice.reasons, top)]
    if margin is not None:
        lines += [f"  {line}" for line in _reason_lines(f"margin {margin.value:+.2f}", margin.own, top)]
        if margin.transitions:
            total = margin.transitions.total
            lines += [f"  {line}" for line in _reason_lines(f"steps {total:+.2f}", margin.transitions, top)]
        for moved in margin.moved[:top]:
            there = f"{_place(moved.here, other)}, not {_place(moved.there, other)}"
            lines.append(f"  {moved.difference:+7.2f}  {own[moved.token]} takes {there}")
    return lines


def _reason_lines(heading: str, reasons: Reasons, top: int) -> list[str]:
    shown, rest = reasons[:top], reasons[top:]
    largest = max((abs(reason.contribution) for reason in shown), default=1.0) or 1.0
    lines = [heading]
    for reason in shown:
        size = max(1, round(_WIDEST * abs(reason.contribution) / largest))
        bar = (_FOR if reason.contribution > 0 else _AGAINST) * size
        lines.append(
            f"{reason.contribution:+7.2f} {bar:{_WIDEST}} {told(reason.feature)} "
            f"({reason.value:.3g} x {reason.weight:.2f})"
        )
    if rest:
        lines.append(f"{sum(reason.contribution for reason in rest):+7.2f} {'':{_WIDEST}} {len(rest)} more")
    return lines


def _place(position: int | None, tokens: Sequence[str]) -> str:
    return "no word" if position is None else f"{tokens[position]} ({position})"


def _sentence(name: str, tokens: Sequence[str]) -> str:
    return f"{name}  {' '.join(f'{k}:{token}' for k, token in enumerate(tokens))}"


def _alone(explanation: Explanation) -> list[str]:
    links = explanation.alignment.all_links
    sides = (("source", explanation.pair.source, 0), ("target", explanation.pair.target, 1))
    lines = []
    for name, sentence, k in sides:
        covered = {link[k] for link in links}
        alone = [f"{i}:{token}" for i, token in enumerate(sentence.tokens) if i not in covered]
        if alone:
            lines.append(f"{name} words without a link: {' '.join(alone)}")
    return lines
