"""A page of many pairs: examples, predictions and reasons in, one HTML file that needs nothing else out.

The page may run its own script, known by its hash, and nothing more: what is in it, it reads as data.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Sequence
from html import escape
from importlib import resources
from typing import TYPE_CHECKING

from ..errors import JacanaError
from ..version import __version__
from .payload import Explainer, payload

if TYPE_CHECKING:
    from ..types import Alignment, Example

SCRIPTS = ("draw.js", "pairs.js", "list.js", "page.js")


def page(
    examples: Iterable[Example],
    predicted: Sequence[Alignment] | None = None,
    *,
    title: str = "Alignments",
    files: Sequence[str] = ("gold", "predicted"),
    why: Iterable[Explainer] | None = None,
) -> str:
    """One page. `predicted` is held against the examples' gold; `files` are what both are called in it; `why`
    gives reasons for the links of each pair."""
    examples = list(examples)
    if predicted is not None:
        _check(examples, predicted)
    comparing = predicted is not None and any(example.gold is not None for example in examples)
    data = payload(examples, predicted, files[: 2 if comparing else 1], why)
    style, script = asset("page.css"), "\n".join(asset(name) for name in SCRIPTS)
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    parts = {
        "title": escape(title.encode("utf-8", "replace").decode()),
        "version": escape(__version__),
        "policy": policy,
        "style": style,
        "script": script,
        "data": data,
    }
    # One pass: what was put in is not looked through again.
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], asset("page.html"))


def asset(name: str) -> str:
    """The text of a file of the page."""
    return (resources.files(__package__) / "assets" / name).read_text(encoding="utf-8")


def _check(examples: Sequence[Example], predicted: Sequence[Alignment]) -> None:
    if len(examples) != len(predicted):
        raise JacanaError(
            f"there are {len(examples)} pairs and {len(predicted)} predictions: they must match one to one"
        )
    for number, (example, alignment) in enumerate(zip(examples, predicted, strict=True), start=1):
        sizes = len(example.pair.source), len(example.pair.target)
        if (alignment.n_source, alignment.n_target) != sizes:
            raise JacanaError(
                f"pair {number} has {sizes[0]} x {sizes[1]} tokens and its prediction {alignment.n_source} x "
                f"{alignment.n_target}: both must be of the same tokens, in the same direction"
            )


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
