"""Fill the layers of sentence pairs (tags, lemmas, dependencies, entities): one module an annotator."""

from __future__ import annotations

from .base import Annotator, NoAnnotator, annotate, annotate_stream, missing

__all__ = ["Annotator", "NoAnnotator", "annotate", "annotate_stream", "missing"]
