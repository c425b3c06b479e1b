"""spaCy's tags, lemmas, dependencies and entities, for the tokens as they are. Provides every layer.

Needs the extra `spacy` and a model, which `resources` finds ("spacy-en") or which is named: an installed package
or a directory. spaCy is imported when the first sentence comes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..errors import ConfigError, MissingResource
from ..types import Sentence
from .base import LayerAnnotator, Layers, known_layers
from .normalise import unescaped

# What each layer needs of a pipeline; everything else is left out, since it costs time.
_PIPES = {
    "pos": ("tok2vec", "transformer", "tagger"),
    "lemma": ("tok2vec", "transformer", "tagger", "morphologizer", "attribute_ruler", "lemmatizer"),
    "head": ("tok2vec", "transformer", "parser"),
    "deprel": ("tok2vec", "transformer", "parser"),
    "ner": ("tok2vec", "transformer", "ner"),
}


class SpacyAnnotator(LayerAnnotator):
    """`layers` are what is filled: leaving out head, deprel and ner where nothing reads them saves half the time.

    `unescape` shows the model `(` for `-LRB-` and `'` for `’`; the tokens themselves stay as they are.
    """

    requires: tuple[str, ...] = ()
    provides: tuple[str, ...] = ("pos", "lemma", "head", "deprel", "ner")

    def __init__(
        self,
        model: str = "spacy-en",
        layers: Iterable[str] = ("pos", "lemma", "head", "deprel", "ner"),
        batch_size: int = 128,
        overwrite: bool = False,
        unescape: bool = True,
    ) -> None:
        if batch_size < 1:
            raise ConfigError(f"batch_size must be at least 1, not {batch_size}")
        self.provides = known_layers(layers, _PIPES)
        self.model, self.batch_size = str(model), batch_size
        self.overwrite, self.unescape = overwrite, unescape

    @property
    def resources(self) -> tuple[str, ...]:
        return ("spacy-en",) if self.model == "spacy-en" else ()

    def layers_of(self, sentences: Sequence[Sentence]) -> list[Layers]:
        nlp = _pipeline(self.model, self.provides)
        from spacy.tokens import Doc

        shown = [tuple(map(unescaped, s.tokens)) if self.unescape else s.tokens for s in sentences]
        docs = (Doc(nlp.vocab, words=list(tokens)) for tokens in shown if tokens)
        parsed = nlp.pipe(docs, batch_size=self.batch_size)
        return [
            {name: _READERS[name](doc) for name in self.provides}
            for doc in (next(parsed) if tokens else () for tokens in shown)
        ]


def _heads(doc: Iterable[Any]) -> tuple[int, ...]:
    return tuple(-1 if token.head.i == token.i else token.head.i for token in doc)


def _entities(doc: Iterable[Any]) -> tuple[str, ...]:
    return tuple(f"{token.ent_iob_}-{token.ent_type_}" if token.ent_type_ else "O" for token in doc)


_READERS = {
    "pos": lambda doc: tuple(token.tag_ for token in doc),
    "lemma": lambda doc: tuple((token.lemma_ or token.text).lower() for token in doc),
    "head": _heads,
    "deprel": lambda doc: tuple(token.dep_ for token in doc),
    "ner": _entities,
}


@lru_cache(maxsize=2)
def _pipeline(model: str, layers: tuple[str, ...]) -> Any:
    """The model with the pipes that the layers need, loaded once per process."""
    try:
        import spacy
    except ImportError as error:
        raise MissingResource(
            f"the spaCy annotator needs spaCy, which does not load here ({error}): "
            "pip install 'jacana_torch[spacy]', or annotate with nltk"
        ) from None
    wanted = {pipe for layer in layers for pipe in _PIPES[layer]}
    location = _location(model)
    try:
        nlp = spacy.load(location)
    except Exception as error:  # spaCy raises many kinds for a model that is damaged or of another version
        raise MissingResource(f"the spaCy model {model!r} at {location} does not load: {error}") from error
    nlp.select_pipes(enable=[name for name in nlp.pipe_names if name in wanted])
    lacking = {layer for layer in layers if _PIPES[layer][-1] not in nlp.pipe_names}
    if lacking:
        raise MissingResource(
            f"the spaCy model {model!r} at {location} has no {', '.join(sorted(lacking))}: "
            f"it has {', '.join(nlp.pipe_names) or 'no pipes'}; take another model or fewer layers"
        )
    return nlp


def _location(model: str) -> str:
    """A directory, or the name of an installed package: as the user named it, or as `resources` finds it."""
    if model == "spacy-en":
        from ..resources import path

        return str(path("spacy-en"))
    if Path(model).is_dir():
        return model
    from spacy.util import is_package

    if is_package(model):
        return model
    raise MissingResource(
        f"the spaCy model {model!r} is neither a directory nor an installed package: "
        f"python -m spacy download {model}, or use model=spacy-en (jacana-torch resources install spacy-en)"
    )
