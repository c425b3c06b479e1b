"""spaCy: its documents as sentences, and the component `jacana`, which aligns a document with a reference.

import jacana_torch.interop.spacy
nlp.add_pipe("jacana", config={"model": "standard"})
doc = nlp.make_doc("A cat was sitting.")
doc._.reference = nlp("The cat sat down.")
doc = nlp(doc)
doc._.alignment.pairs()
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc, Span

from ..model import persist
from ..types import Alignment, Sentence

_AT_ONCE = 256  # documents aligned at a time
_LAYERS = (("pos", "TAG"), ("lemma", "LEMMA"), ("head", "DEP"), ("deprel", "DEP"), ("ner", "ENT_IOB"))


def sentence_of(doc: Doc | Span) -> Sentence:
    """Return a document or a part of it as a sentence: its tokens without white space, and the layers that it has.

    The offsets count characters of the document's text.
    """
    tokens = [token for token in doc if not token.is_space]
    place = {token.i: k for k, token in enumerate(tokens)}
    owner = doc if isinstance(doc, Doc) else doc.doc
    layers: dict[str, tuple[Any, ...]] = {}
    has = {name for name, attribute in _LAYERS if owner.has_annotation(attribute)}
    if "pos" in has:
        layers["pos"] = tuple(token.tag_ for token in tokens)
    if "lemma" in has:
        layers["lemma"] = tuple((token.lemma_ or token.text).lower() for token in tokens)
    if "head" in has:
        layers["head"] = tuple(-1 if t.head.i == t.i else place.get(t.head.i, -1) for t in tokens)
        layers["deprel"] = tuple(token.dep_ for token in tokens)
    if "ner" in has:
        layers["ner"] = tuple(f"{t.ent_iob_}-{t.ent_type_}" if t.ent_type_ else "O" for t in tokens)
    offsets = [(token.idx, token.idx + len(token)) for token in tokens]
    return Sentence([token.text for token in tokens], layers, None, offsets)


class Aligner:
    """The component: sets `doc._.alignment`, from the tokens of the document to those of `doc._.reference`.

    The reference is a document or a string. Without one, the alignment is None.
    """

    def __init__(self, model: str) -> None:
        self.model = persist.load(model)

    def __call__(self, doc: Doc) -> Doc:
        return next(self.pipe([doc]))

    def pipe(self, stream: Iterable[Doc], batch_size: int = _AT_ONCE) -> Iterator[Doc]:
        remaining = iter(stream)
        while docs := list(islice(remaining, batch_size)):
            with_reference = [doc for doc in docs if doc._.reference is not None]
            pairs: list[tuple[Sentence, Sentence | str]] = []
            for doc in with_reference:
                other = doc._.reference
                pairs.append((sentence_of(doc), sentence_of(other) if isinstance(other, (Doc, Span)) else other))
            found = self.model.align_stream(pairs)
            for doc, alignment in zip(with_reference, found, strict=True):
                assert isinstance(alignment, Alignment)
                doc._.alignment = alignment
            yield from docs


@Language.factory("jacana", default_config={"model": "core"})
def make(nlp: Language, name: str, model: str) -> Aligner:
    """Make the component; `model` is a shipped model or a directory."""
    return Aligner(model)


for _name in ("alignment", "reference"):
    if not Doc.has_extension(_name):
        Doc.set_extension(_name, default=None)
