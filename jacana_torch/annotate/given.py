"""Use layers from a file beside the corpus (sidecars.py reads it). Provides the layers that the file holds."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from ..errors import ConfigError, CorpusError, MissingResource
from ..types import Sentence, SentencePair
from ..util.build import OnDisk, OneOf
from . import Annotator, Layers
from .sidecars import Record, reader
from .tokens import lemmas as wordnet_lemmas
from .tokens import lower_case

log = logging.getLogger(__name__)

Records = tuple[Record | None, Record | None]  # of a pair's source and target
_LEMMAS = ("auto", "given", "wordnet", "lower", "none")


class GivenAnnotator(Annotator):
    """Reads `path` once, and gives each sentence the layers that the file holds for it.

    `.parse.jsonl` is matched by the ids of pairs, or by order if no ids agree (then the whole corpus must come in
    one call). `.mst` and CoNLL-U are matched by tokens. Annotate before flipping pairs.

    `lemmas`: "given" takes those of the file. "wordnet" computes them from the given tags. "lower" takes the
    lower-case token. "none" gives no lemmas. "auto" takes CoNLL-U's, but not those of `.parse.jsonl`
    (`source_lemma_auto`), where a crude suffix stripper writes "oth" for "other". Instead it computes WordNet's.
    Without WordNet it warns and takes lower-case tokens.
    `unmatched`: "error", or "keep" to leave sentences unchanged that the file does not have.
    """

    provides = ("pos", "lemma", "head", "deprel", "ner")
    by_chunk = False  # matching by order needs all pairs at once

    def __init__(
        self,
        path: Annotated[str | Path, OnDisk()],
        format: str | None = None,
        lemmas: Annotated[str, OneOf(_LEMMAS)] = "auto",
        unmatched: Annotated[str, OneOf(("error", "keep"))] = "error",
        overwrite: bool = False,
    ) -> None:
        if lemmas not in _LEMMAS:
            raise ConfigError(f"lemmas={lemmas!r}: choose from {', '.join(_LEMMAS)}")
        if unmatched not in ("error", "keep"):
            raise ConfigError(f"unmatched={unmatched!r}: choose error or keep")
        self.path, self.format, self.lemmas = Path(path), format, lemmas
        self.unmatched, self.overwrite = unmatched, overwrite
        self._read = reader(self.path, format)
        self._records: list[Record] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_records": None}  # a worker reads the file itself

    def __call__(self, pairs: Sequence[SentencePair]) -> list[SentencePair]:
        if self._records is None:
            self._records = self._read(self.path)
        by_tokens = any(record.tokens is not None for record in self._records)
        matched = self._by_tokens(self._records, pairs) if by_tokens else self._by_pair(self._records, pairs)
        has_wordnet = self._has_wordnet() if self.lemmas in ("auto", "wordnet") else False
        layers: dict[tuple[int, tuple[str, ...]], Layers] = {}  # by record and tokens
        for pair, records in zip(pairs, matched, strict=True):
            for sentence, record in zip((pair.source, pair.target), records, strict=True):
                if record is not None and (id(record), sentence.tokens) not in layers:
                    layers[id(record), sentence.tokens] = self._layers(sentence, record, pair, has_wordnet)
        if has_wordnet:
            bare = [key for key, found in layers.items() if "lemma" not in found]
            lemmas = wordnet_lemmas([tokens for _, tokens in bare], [layers[key]["pos"] for key in bare])
            layers.update((key, {**layers[key], "lemma": own}) for key, own in zip(bare, lemmas, strict=True))

        def filled(sentence: Sentence, record: Record | None) -> Sentence:
            if record is None:
                return sentence
            new = layers[id(record), sentence.tokens]
            return sentence.with_layers(**(new if self.overwrite else {**new, **sentence.layers}))

        return [
            SentencePair(filled(pair.source, source), filled(pair.target, target), pair.id)
            for pair, (source, target) in zip(pairs, matched, strict=True)
        ]

    def _layers(self, sentence: Sentence, record: Record, pair: SentencePair, has_wordnet: bool) -> Layers:
        """Check that a record fits the sentence; return its layers, with all lemmas but WordNet's."""
        for name, values in record.layers.items():
            if len(values) != len(sentence):
                other = pair.target if record.side == "source" else pair.source
                hint = "; is the pair flipped? annotate before flipping" if len(values) == len(other) else ""
                raise record.error(
                    f"{len(values)} values of {name} for the {len(sentence)} tokens of the {record.side} "
                    f"{str(sentence)[:60]!r}{hint}"
                )
        layers = {name: values for name, values in record.layers.items() if name != "lemma"}
        given = record.layers.get("lemma")
        if self.lemmas == "none":
            return layers
        if self.lemmas == "given" or (self.lemmas == "auto" and record.tokens is not None and given):
            if given is None:
                raise record.error("the file gives no lemmas here: set lemmas=auto to compute them")
            return {**layers, "lemma": given}
        if self.lemmas == "lower" or not has_wordnet:
            return {**layers, "lemma": lower_case(sentence.tokens)}
        if "pos" not in layers:
            raise record.error("the file gives no tags here, which lemmas need: set lemmas=lower or lemmas=none")
        return layers

    def _has_wordnet(self) -> bool:
        from ..resources import wordnet

        try:
            wordnet()
        except MissingResource as error:
            if self.lemmas == "wordnet":
                raise
            log.warning("lemmas are lower-case tokens, since WordNet is missing: %s", error)
            return False
        return True

    def _by_pair(self, records: Sequence[Record], pairs: Sequence[SentencePair]) -> list[Records]:
        """Match records to pairs by id, or by order if no id agrees."""
        both = list(zip(records[::2], records[1::2], strict=True))
        by_id: dict[str | None, tuple[Record, Record]] = {}
        for found in both:
            name = found[0].id
            if name is not None and by_id.setdefault(name, found) is not found:
                raise found[0].error(f"duplicate id {name!r}, first on line {by_id[name][0].line}")
        if not any(pair.id in by_id for pair in pairs):
            if len(pairs) == len(both):
                return list(both)
            if pairs and self.unmatched == "error":
                raise self._no_match(
                    f"{len(both)} annotated pairs for {len(pairs)} pairs, and no ids in common to match them by"
                )
        absent = [pair.id for pair in pairs if pair.id not in by_id]
        if absent and self.unmatched == "error":
            raise self._no_match(f"nothing for {len(absent)} of {len(pairs)} pairs, the first {absent[0]!r}")
        return [by_id.get(pair.id, (None, None)) for pair in pairs]

    def _by_tokens(self, records: Sequence[Record], pairs: Sequence[SentencePair]) -> list[Records]:
        """Match records to sentences by tokens. The same spelling is preferred, then the same side."""
        exact: dict[tuple[str | None, tuple[str, ...]], Record] = {}
        alike: dict[tuple[str | None, tuple[str, ...]], Record] = {}
        for record in records:
            tokens = record.tokens or ()
            for side in (record.side, None):
                exact.setdefault((side, tokens), record)
                alike.setdefault((side, lower_case(tokens)), record)

        def find(tokens: tuple[str, ...], side: str) -> Record | None:
            if not tokens:
                return Record(str(self.path), 0, dict.fromkeys(self.provides, ()), tokens, side)
            if found := exact.get((side, tokens)) or exact.get((None, tokens)):
                return found
            form = lower_case(tokens)
            found = alike.get((side, form)) or alike.get((None, form))
            if found is None and self.unmatched == "error":
                raise self._no_match(f"there is no sentence {' '.join(tokens)[:80]!r} with these tokens")
            return found

        return [(find(pair.source.tokens, "source"), find(pair.target.tokens, "target")) for pair in pairs]

    def _no_match(self, message: str) -> CorpusError:
        message += "; is this the file of another corpus? unmatched=keep leaves such pairs unchanged"
        return CorpusError(message, str(self.path))
