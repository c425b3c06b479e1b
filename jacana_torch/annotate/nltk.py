"""Penn tags with the weights of NLTK's averaged perceptron, and WordNet lemmas. Provides pos and lemma.

NLTK itself is not imported: the weights and WordNet come from `resources`, and the tags are exactly NLTK's.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from ..errors import MissingResource
from ..types import Sentence
from .base import LayerAnnotator, Layers
from .lemmas import lemmas
from .normalise import unescaped

if TYPE_CHECKING:
    from ..resources.store import Arrays
    from .perceptron import LockstepTagger


class NltkAnnotator(LayerAnnotator):
    """The annotator of a machine without spaCy: fast, deterministic, and enough for all but the parse.

    `lemmas=False` does without WordNet and fills pos alone. `unescape` shows the tagger, which was trained on
    plain brackets and apostrophes, `(` for `-LRB-` and `'` for `’`; without it the tags are NLTK's for the very
    tokens.
    """

    requires: tuple[str, ...] = ()
    provides: tuple[str, ...] = ("pos", "lemma")

    def __init__(self, lemmas: bool = True, overwrite: bool = False, unescape: bool = False) -> None:
        self.provides = ("pos", "lemma") if lemmas else ("pos",)
        self.overwrite, self.unescape = overwrite, unescape

    @property
    def resources(self) -> tuple[str, ...]:
        return ("tagger", "wordnet") if "lemma" in self.provides else ("tagger",)

    def layers_of(self, sentences: Sequence[Sentence]) -> list[Layers]:
        if "lemma" in self.provides:
            _check_wordnet()
        tags = self._tags(sentences)
        if "lemma" not in self.provides:
            return [{"pos": of_sentence} for of_sentence in tags]
        bases = lemmas([sentence.tokens for sentence in sentences], tags)
        return [{"pos": of_sentence, "lemma": of_words} for of_sentence, of_words in zip(tags, bases, strict=True)]

    def _tags(self, sentences: Sequence[Sentence]) -> list[tuple[str, ...]]:
        """The tags that are kept, or new ones where there are none."""
        kept = [None if self.overwrite else sentence.layers.get("pos") for sentence in sentences]
        untagged = [sentence.tokens for sentence, tags in zip(sentences, kept, strict=True) if tags is None]
        if untagged and self.unescape:
            untagged = [tuple(map(unescaped, tokens)) for tokens in untagged]
        new = iter(_tagger().tag(untagged)) if untagged else iter(())
        return [next(new) if tags is None else tags for tags in kept]


def _check_wordnet() -> None:
    """Before any work, and whether or not some word of these sentences happens to need it."""
    from ..resources import wordnet

    try:
        wordnet()
    except MissingResource as error:
        raise MissingResource(f"{error} (or set lemmas=false, which fills the tags alone)") from None


def _tagger() -> LockstepTagger:
    """The tagger, opened once per process; an annotator that is sent to a worker carries none of it."""
    from ..resources import compiled_tagger

    return _opened(compiled_tagger())


@lru_cache(maxsize=1)
def _opened(arrays: Arrays) -> LockstepTagger:
    from .perceptron import LockstepTagger

    return LockstepTagger(arrays)
