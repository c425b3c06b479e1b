"""Model cards: what a model of the package was trained on, how good it is and where, and what it is not for.

`card.json` lies beside the model's weights; `scripts/model_card.py` measures and writes it, and training a model
anew removes it. Loading a model does not read it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from textwrap import fill
from typing import Any

from ..errors import ModelError
from .info import ModelInfo
from .saving import CARD, WEIGHTS

METRICS = ("precision", "recall", "f1", "exact")
WIDTH = 100
_TEXTS = {"data": "Data", "conventions": "Conventions", "limits": "Limits", "licence": "Licence"}


def read(directory: Path) -> dict[str, Any] | None:
    """Return the card of a model directory; None if it has none. One of other weights is an error."""
    from .persist import _read_json

    path = directory / CARD
    if not path.is_file():
        return None
    card = _read_json(path)
    if card.get("weights_sha256") != checksum(directory):
        raise ModelError(f"{path}: was made for other weights: python scripts/model_card.py {directory.name}")
    return card


def checksum(directory: Path) -> str:
    """Return the checksum of a model's weights, by which a card knows its model."""
    return hashlib.sha256((directory / WEIGHTS).read_bytes()).hexdigest()


def text(info: ModelInfo, card: Mapping[str, Any] | None) -> str:
    """Return what `jacana-torch models NAME` shows."""
    lines = [f"{info.name}: {info.description}", f"  needs: {', '.join(info.resources) or 'nothing'}"]
    lines += [f"  at: {info.path}", *_signature(info.signature)]
    if card is None:
        return "\n".join([*lines, "  It has no card: nothing was measured."])
    measured = card["measured"]
    lines += _table("In domain: pairs like those that it was trained on", card["in_domain"])
    lines += _table("Out of domain: other corpora", card["out_of_domain"])
    lines += ["", "F1 is the harmonic mean of macro P and R; brackets have 95% intervals (bootstrap over pairs)."]
    lines += ["ECE is the mean distance of the links' probabilities from the share of them that gold has."]
    speed, size = card["speed"], card["size"]
    lines += _section(
        "Speed", f"{speed['pairs_per_second']:,.0f} pairs a second of CPU time, from {speed['input']}."
    )
    lines += _section("Size", f"{size['bytes'] / 1e6:.1f} MB, {size['weights']:,} weights.")
    for key, title in _TEXTS.items():
        lines += _section(title, card[key])
    lines += ["", f"Measured {measured['date']} by `{measured['command']}`, version {measured['version']}, "]
    lines[-1] += f"{measured['processor']}."
    return "\n".join(lines)


def _signature(signature: Mapping[str, Any]) -> Iterator[str]:
    if signature:
        made = ", ".join(f"{name} (weight {weight:g})" for name, weight in signature.get("made_pairs", {}).items())
        yield f"  trained: {str(signature['trained'])[:10]} on {signature['pairs']:,} pairs"
        yield f"  of: {', '.join(signature['data'])}"
        if styles := signature.get("styles"):
            yield f"  styles: {', '.join(styles)} (align --style NAME)"
        if made:
            yield f"  and made pairs: {made}"


def _table(title: str, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    if not rows:
        return ["", f"{title}: not measured"]
    lines = ["", title, f"  {'':25}{'P':>20}{'R':>20}{'F1':>20}{'exact':>20}{'ECE':>8}"]
    for row in rows:
        cells = "".join(f"{_figure(row[name]):>20}" for name in METRICS)
        error = "-" if row.get("ece") is None else f"{row['ece']:.2f}%"
        lines.append(f"  {row['corpus']:25}{cells}{error:>8}")
        said = f"{row['pairs']} pairs, {row['links']} links; {row['how']}"
        lines.append(fill(said, WIDTH, initial_indent="    ", subsequent_indent="    "))
    return lines


def _figure(values: Sequence[float]) -> str:
    """Return a percentage, with its interval if that was measured."""
    value, *interval = values
    return f"{value:.2f}" + (f" [{interval[0]:.1f}-{interval[1]:.1f}]" if interval else "")


def _section(title: str, content: str | Sequence[str]) -> list[str]:
    if isinstance(content, str):
        return ["", title, fill(content, WIDTH, initial_indent="  ", subsequent_indent="  ")]
    items = (fill(item, WIDTH, initial_indent="  - ", subsequent_indent="    ") for item in content)
    return ["", title, *items]
