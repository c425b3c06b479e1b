"""NLTK: `AlignedSent` both ways, any of its taggers as an annotator, any of its tokenizers for sentences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..annotate import LayerAnnotator, Layers
from ..annotate.tokens import lemmas, lower_case
from ..errors import JacanaError
from ..types import Alignment, Sentence, SentencePair


def to_aligned_sent(alignment: Alignment) -> Any:
    """Return NLTK's `AlignedSent` of an alignment that knows its pair.

    The words are the target's and the mots the source's, as in NLTK's corpora: links are (word, mot). Possible
    links are left out, since NLTK has none.
    """
    from nltk.translate import AlignedSent
    from nltk.translate import Alignment as Links

    if alignment.pair is None:
        raise JacanaError("this alignment does not know its words: use alignment.of(pair)")
    links = Links([(j, i) for i, j in alignment.sure])
    return AlignedSent(list(alignment.pair.target.tokens), list(alignment.pair.source.tokens), links)


def from_aligned_sent(aligned: Any) -> Alignment:
    """Return the alignment of an `AlignedSent`: its mots are the source, its words the target.

    Words that NLTK aligns with None have no link.
    """
    pair = SentencePair(Sentence(aligned.mots), Sentence(aligned.words))
    links = []
    for word, *mots in aligned.alignment:
        if mots and mots[0] is not None:
            links.append((int(mots[0]), int(word)))
    return Alignment(len(pair.source), len(pair.target), frozenset(links)).of(pair)


def sentence(text: str, tokenizer: Any) -> Sentence:
    """Return the tokens that one of NLTK's tokenizers finds, with their offsets in the text.

    Quotes that the Treebank's tokenizer rewrites are found by their text.
    """
    return Sentence(tokenizer.tokenize(text), text=text)


class TaggedBy(LayerAnnotator):
    """An annotator that tags with any of NLTK's taggers: `TaggedBy(nltk.tag.PerceptronTagger())`.

    `tagger` has `tag(tokens)`, and gives Penn tags. `lemmas`: WordNet's, by those tags; or else lower-case tokens.
    """

    provides = ("pos", "lemma")

    def __init__(self, tagger: Any, lemmas: bool = True, overwrite: bool = False) -> None:
        self.tagger, self.lemmas, self.overwrite = tagger, lemmas, overwrite

    def layers_of(self, sentences: Sequence[Sentence]) -> list[Layers]:
        tag: Callable[[list[str]], list[tuple[str, str]]] = self.tagger.tag
        tags = [tuple(str(found or "NN") for _, found in tag(list(s.tokens))) for s in sentences]
        words = [s.tokens for s in sentences]
        own = lemmas(words, tags) if self.lemmas else [lower_case(tokens) for tokens in words]
        return [{"pos": pos, "lemma": lemma} for pos, lemma in zip(tags, own, strict=True)]
