"""Annotate with spaCy: tags, lemmas, dependencies and entities of the given tokens. Provides every layer.

Needs the extra `spacy` and a model: the resource "spacy-en", an installed package, or a directory. spaCy is
imported with the first sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

from ..errors import MissingResource
from ..types import Sentence
from ..util.build import Items, OnDisk, OneOf, Within, check_bounds
from . import LayerAnnotator, Layers, checked_layers
from .tokens import unescaped

# The pipes that each layer needs. All others are disabled to save time.
_PIPES = {
    "pos": ("tok2vec", "transformer", "tagger"),
    "lemma": ("tok2vec", "transformer", "tagger", "morphologizer", "attribute_ruler", "lemmatizer"),
    "head": ("tok2vec", "transformer", "parser"),
    "deprel": ("tok2vec", "transformer", "parser"),
    "ner": ("tok2vec", "transformer", "ner"),
}


Layer = Annotated[str, OneOf(tuple(_PIPES))]


def is_installed(model: str) -> bool:
    """Whether a model is the resource "spacy-en", or an installed package with a model of spaCy."""
    if model == "spacy-en":
        return True
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        found = distribution(model).entry_points
    except (PackageNotFoundError, ValueError):
        return False
    return bool(found.select(group="spacy_models", name=model))


class SpacyAnnotator(LayerAnnotator):
    """Fills `layers`. Without head, deprel and ner it takes half the time.

    `model`: "spacy-en", an installed package or a directory; a saved model may name a directory only if the user
    trusts it, because loading one can run code. `unescape` shows the model `(` for `-LRB-` and `'` for `’`; the
    tokens themselves stay as they are.
    """

    def __init__(
        self,
        model: Annotated[str, OnDisk(is_installed)] = "spacy-en",
        layers: Layer | Annotated[Iterable[Layer], Items()] = tuple(_PIPES),
        batch_size: Annotated[int, Within(1, 10**6)] = 128,
        overwrite: bool = False,
        unescape: bool = True,
    ) -> None:
        check_bounds(SpacyAnnotator, {"batch_size": batch_size})
        self.provides = checked_layers(layers, _PIPES)
        self.model, self.batch_size = str(model), batch_size
        self.resources = ("spacy-en",) if self.model == "spacy-en" else ()
        self.overwrite, self.unescape = overwrite, unescape

    def layers_of(self, sentences: Sequence[Sentence]) -> list[Layers]:
        nlp = _pipeline(self.model, self.provides)
        from spacy.tokens import Doc

        shown = [tuple(map(unescaped, s.tokens)) if self.unescape else s.tokens for s in sentences]
        docs = (Doc(nlp.vocab, words=list(tokens)) for tokens in shown if tokens)
        parsed = nlp.pipe(docs, batch_size=self.batch_size)
        return [
            {name: tuple(map(_VALUES[name], doc)) for name in self.provides}
            for doc in (next(parsed) if tokens else () for tokens in shown)
        ]


_VALUES: dict[str, Callable[[Any], Any]] = {  # of a spaCy token, by layer
    "pos": lambda token: token.tag_,
    "lemma": lambda token: (token.lemma_ or token.text).lower(),
    "head": lambda token: -1 if token.head.i == token.i else token.head.i,
    "deprel": lambda token: token.dep_,
    "ner": lambda token: f"{token.ent_iob_}-{token.ent_type_}" if token.ent_type_ else "O",
}


@lru_cache(maxsize=2)
def _pipeline(model: str, layers: tuple[str, ...]) -> Any:
    """Load the model with the pipes that the layers need, once per process."""
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
    except Exception as error:  # spaCy raises many types for a damaged model or one of another version
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
    """Return the directory of the model, or the name of its installed package."""
    if model == "spacy-en":
        from ..resources import path

        return str(path("spacy-en"))
    if Path(model).is_dir():  # spaCy prefers an installed package of that name
        return model
    from spacy.util import is_package

    if is_package(model):
        return model
    raise MissingResource(
        f"the spaCy model {model!r} is neither a directory nor an installed package: "
        f"python -m spacy download {model}, or use model=spacy-en (jacana-torch resources install spacy-en)"
    )
