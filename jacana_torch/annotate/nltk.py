"""NLTK's part-of-speech tags and WordNet's lemmas, without NLTK. Provides pos and lemma.

`resources` supplies the weights of NLTK's averaged perceptron. The tags equal NLTK's.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import MissingResource
from ..types import Sentence
from . import LayerAnnotator, Layers
from .tokens import lemmas, unescaped


class NltkAnnotator(LayerAnnotator):
    """Fast, deterministic annotator for everything but parses and entities.

    `lemmas=False` fills only pos, and needs no WordNet. `unescape` shows the tagger `(` for `-LRB-` and `'` for
    `’`, as in its training data. Without it, the tags are NLTK's for the tokens as they are.
    """

    def __init__(self, lemmas: bool = True, overwrite: bool = False, unescape: bool = False) -> None:
        self.provides = ("pos", "lemma") if lemmas else ("pos",)
        self.resources = ("tagger", "wordnet") if lemmas else ("tagger",)
        self.overwrite, self.unescape = overwrite, unescape

    def layers_of(self, sentences: Sequence[Sentence]) -> list[Layers]:
        from .. import resources

        if "lemma" in self.provides:
            try:
                resources.wordnet()  # before any work, whether or not these words need it
            except MissingResource as error:
                raise MissingResource(f"{error} (or set lemmas=false, which fills the tags alone)") from None
        words: list[tuple[str, ...]] = []
        tags: list[tuple[str, ...]] = []
        untagged: list[int] = []
        shown: list[tuple[str, ...]] = []
        for k, sentence in enumerate(sentences):
            words.append(sentence.tokens)
            tags.append(sentence.layers.get("pos", ()))
            if self.overwrite or "pos" not in sentence.layers:
                untagged.append(k)
                shown.append(tuple(map(unescaped, sentence.tokens)) if self.unescape else sentence.tokens)
        if shown:
            from .perceptron import load

            for k, found in zip(untagged, load(resources.located("tagger")).tag(shown), strict=True):
                tags[k] = found
        if "lemma" not in self.provides:
            return [{"pos": found} for found in tags]
        layers: list[Layers] = []
        for found, bases in zip(tags, lemmas(words, tags), strict=True):
            layers.append({"pos": found, "lemma": bases})
        return layers
