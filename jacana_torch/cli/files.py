"""The commands that align nothing: convert, count, models, resources. Paths in, text and a code out."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from .. import corpora
from ..errors import JacanaError
from ..types import SentencePair
from . import presentable


def convert(
    source: str, target: str, *, from_: str | None = None, to: str | None = None, skip_bad: bool = False
) -> int:
    """Rewrite a corpus in another format."""
    skip = corpora.SkipBad() if skip_bad else None
    number = corpora.convert(source, target, from_, to, on_bad=skip)
    sys.stderr.write(f"jacana-torch: {number} pairs\n")
    if skip is not None and skip.count:
        sys.stderr.write(f"jacana-torch: {presentable(skip.report())}\n")
    return 0


def count(
    source: str, target: str, *, contexts: str, window: int, min_count: int, from_: str | None = None
) -> int:
    """Count word vectors over a corpus, for the distsim features."""
    from ..annotate import annotate_stream
    from ..features.counted_vectors import count_vectors

    pairs: Iterable[SentencePair] = (example.pair for example in corpora.read(source, from_))
    if contexts == "dependency":
        from ..annotate.spacy import SpacyAnnotator

        pairs = annotate_stream(pairs, SpacyAnnotator(layers=("head", "deprel")))
    sentences = (sentence for pair in pairs for sentence in (pair.source, pair.target))
    vectors = count_vectors(sentences, contexts=contexts, window=window, min_count=min_count)
    vectors.save(target)
    sys.stderr.write(f"jacana-torch: vectors of {len(vectors.words)} words\n")
    return 0


def models() -> int:
    """List the shipped models and those that need no training, and what each still lacks on this machine."""
    from .. import resources as data
    from ..model import persist

    shipped = persist.shipped()
    if not shipped:
        raise JacanaError("no model came with this installation: name a directory with --model, or train one")
    for model in [*shipped, *persist.untrained()]:
        missing = [name for name in model.resources if not data.available(name)]
        lines = [model.name, f"  {model.description}", f"  needs: {', '.join(model.resources) or 'nothing'}"]
        if missing:
            lines.append(f"  missing: {', '.join(missing)}; jacana-torch resources install {' '.join(missing)}")
        lines.append(f"  at: {model.path} ({f'{model.size / 1e6:.1f} MB' if model.size else 'nothing to train'})")
        sys.stdout.write("\n".join([*lines, ""]))
    return 0


def resources(action: str | None, names: Sequence[str]) -> int:
    """List linguistic data, or install some of it."""
    from .. import resources as data

    if action is None:
        sys.stdout.write(f"{data.format_status()}\n")
        return 0
    data.install(names)
    for row in data.status():
        if row.found and (row.name in names or not names):
            sys.stderr.write(f"jacana-torch: {row.name} is at {row.path}\n")
    return 0
