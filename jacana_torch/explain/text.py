"""Explanations as plain text with bars, for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from .explanation import Choice, Explanation, LinkExplanation, Reasons

BAR = 12  # characters of the longest bar
TITLES = {  # of feature families; others keep their names
    "string": "spelling",
    "position": "place in the sentence",
    "context": "neighbours",
    "distortion": "jump",
    "pos": "tags",
    "wordnet": "WordNet",
    "distsim": "word vectors",
    "dependency": "parse",
    "attachment": "approximate parse",
    "contextual": "meaning in the sentence",
    "ppdb": "paraphrases",
    "ner": "names",
    "kinds": "neighbours of such words",
    "sultan": "Sultan et al.",
}


def feature_text(feature: str) -> str:
    """Describe a feature: `wordnet.verb_group` becomes `WordNet: verb group`."""
    family, _, name = feature.partition(".")
    return f"{TITLES.get(family, family)}: {name.replace('_', ' ')}" if name else feature


def explanation_text(explanation: Explanation, top: int = 3) -> str:
    """Describe every link of an alignment, then list the words without links."""
    pair = explanation.pair
    sides = (("source", pair.source.tokens), ("target", pair.target.tokens))
    lines = [f"{name}  {' '.join(f'{k}:{token}' for k, token in enumerate(tokens))}" for name, tokens in sides]
    if explanation.note:
        lines += ["", explanation.note]
    for link in explanation.links():
        lines += ["", link_text(link, top)]
    unlinked = []
    for side, (name, tokens) in enumerate(sides):
        covered = {link[side] for link in explanation.alignment.all_links}
        if alone := [f"{k}:{token}" for k, token in enumerate(tokens) if k not in covered]:
            unlinked.append(f"{name} words without a link: {' '.join(alone)}")
    return "\n".join([*lines, *(["", *unlinked] if unlinked else [])])


def link_text(link: LinkExplanation, top: int = 8) -> str:
    """Describe two words, linked or not: the verdict, then the choice of each direction."""
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
    took, margin = _place(choice.position, other), choice.margin
    lines = [f"{choice.direction}: {own[choice.token]} takes {took}, probability {choice.posterior:.3f}"]
    if margin is not None:
        won = f"wins by {margin.value:.2f} over" if choice.chosen else f"loses by {-margin.value:.2f} to"
        lines[0] += f"; {won} {_place(choice.rival, other)} ({choice.rival_posterior:.3f})"
    lines += _reason_lines(f"score {choice.score:+.2f}", choice.reasons, top)
    if margin is not None:
        lines += _reason_lines(f"margin {margin.value:+.2f}", margin.own, top)
        if margin.transitions:
            lines += _reason_lines(f"steps {margin.transitions.total:+.2f}", margin.transitions, top)
        for moved in margin.moved[:top]:
            there = f"{_place(moved.here, other)}, not {_place(moved.there, other)}"
            lines.append(f"  {moved.difference:+7.2f}  {own[moved.token]} takes {there}")
    return lines


def _reason_lines(heading: str, reasons: Reasons, top: int) -> list[str]:
    shown, rest = reasons[:top], reasons[top:]
    largest = max((abs(reason.contribution) for reason in shown), default=1.0) or 1.0
    lines = [f"  {heading}"]
    for reason in shown:
        size = max(1, round(BAR * abs(reason.contribution) / largest))
        bar = ("#" if reason.contribution > 0 else "-") * size
        lines.append(
            f"  {reason.contribution:+7.2f} {bar:{BAR}} {feature_text(reason.feature)} "
            f"({reason.value:.3g} x {reason.weight:.2f})"
        )
    if rest:
        lines.append(f"  {sum(reason.contribution for reason in rest):+7.2f} {'':{BAR}} {len(rest)} more")
    return lines


def _place(position: int | None, tokens: Sequence[str]) -> str:
    return "no word" if position is None else f"{tokens[position]} ({position})"
