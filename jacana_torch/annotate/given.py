"""Layers that somebody else made, from a file beside the corpus (sidecars.py). Provides what the file holds.

The lemmas of `.parse.jsonl` (`source_lemma_auto`) are the output of a crude suffix stripper ("other" is "oth"), so
lemmas are computed from the given tags by default; CoNLL-U's lemma column is kept.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ..errors import ConfigError, CorpusError, MissingResource
from ..types import Sentence, SentencePair
from .base import Layers, keeping
from .lemmas import lemmas as wordnet_lemmas
from .lemmas import lower_case
from .normalise import matching_form
from .sidecars import Record, reader

log = logging.getLogger(__name__)

_LEMMAS = ("auto", "given", "wordnet", "lower", "none")


class GivenAnnotator:
    """Reads `path` once, and gives each sentence the layers that the file holds for it.

    `.parse.jsonl` is matched by the pairs' ids, or, where neither side's ids say anything, by order (the whole
    corpus in one call). `.mst` and CoNLL-U are matched by the tokens. Annotate before flipping pairs.

    `lemmas`: "auto" keeps CoNLL-U's, otherwise takes WordNet's for the given tags, or the lower-case token where
    there is no WordNet (with a warning); "wordnet" insists on it; "given" takes the file's; "lower"; "none".
    `unmatched`: "error", or "keep" to leave a sentence that the file does not have as it is.
    """

    requires: tuple[str, ...] = ()
    provides: tuple[str, ...] = ("pos", "lemma", "head", "deprel", "ner")
    by_chunk = False  # matching by order needs all pairs at once

    def __init__(
        self,
        path: str | Path,
        format: str | None = None,
        lemmas: str = "auto",
        unmatched: str = "error",
        overwrite: bool = False,
    ) -> None:
        if lemmas not in _LEMMAS:
            raise ConfigError(f"lemmas={lemmas!r} is none of {', '.join(_LEMMAS)}")
        if unmatched not in ("error", "keep"):
            raise ConfigError(f"unmatched={unmatched!r} is neither error nor keep")
        self.path, self.format, self.lemmas = Path(path), format, lemmas
        self.unmatched, self.overwrite = unmatched, overwrite
        self._read = reader(self.path, format)
        self._records: list[Record] | None = None

    def __getstate__(self) -> dict:
        return {**self.__dict__, "_records": None}  # a worker reads the file itself

    def __call__(self, pairs: Sequence[SentencePair]) -> list[SentencePair]:
        if self._records is None:
            self._records = self._read(self.path)
        matched = self._by_tokens(pairs) if self._has_tokens() else self._by_pair(pairs)
        has_wordnet = self._wordnet_is_there() if self.lemmas in ("auto", "wordnet") else False
        made: dict[tuple[int, tuple[str, ...]], Layers] = {}
        for pair, records in zip(pairs, matched, strict=True):
            for sentence, record in zip((pair.source, pair.target), records, strict=True):
                if record is not None and (id(record), sentence.tokens) not in made:
                    layers = self._layers(sentence, record, pair, has_wordnet)
                    made[id(record), sentence.tokens] = layers
        if has_wordnet:
            bare = [key for key, layers in made.items() if "lemma" not in layers]
            found = wordnet_lemmas([tokens for _, tokens in bare], [made[key]["pos"] for key in bare])
            made.update((key, {**made[key], "lemma": own}) for key, own in zip(bare, found, strict=True))

        def filled(sentence: Sentence, record: Record | None) -> Sentence:
            if record is None:
                return sentence
            return keeping(sentence, made[id(record), sentence.tokens], self.overwrite)

        return [
            replace(pair, source=filled(pair.source, source), target=filled(pair.target, target))
            for pair, (source, target) in zip(pairs, matched, strict=True)
        ]

    def _layers(self, sentence: Sentence, record: Record, pair: SentencePair, has_wordnet: bool) -> Layers:
        """The record's layers, if they fit the sentence, with the lemmas that were asked for but for WordNet's."""
        for name, values in record.layers.items():
            if len(values) != len(sentence):
                other = pair.target if record.side == "source" else pair.source
                hint = "; is the pair flipped? annotate before flipping" if len(values) == len(other) else ""
                raise record.error(
                    f"{len(values)} values of {name} for the {len(sentence)} tokens of the {record.side} "
                    f"{str(sentence)[:60]!r}{hint}"
                )
        layers = {name: values for name, values in record.layers.items() if name != "lemma"}
        lemma = self._lemma_layer(sentence, record, has_wordnet)
        return layers if lemma is None else {**layers, "lemma": lemma}

    def _lemma_layer(self, sentence: Sentence, record: Record, has_wordnet: bool) -> tuple[str, ...] | None:
        if self.lemmas == "none":
            return None
        given = record.layers.get("lemma")
        if self.lemmas == "given" or (self.lemmas == "auto" and record.tokens is not None and given):
            if given is None:
                raise record.error("the file gives no lemmas here: set lemmas=auto to compute them")
            return given
        if self.lemmas == "lower" or not has_wordnet:
            return lower_case(sentence.tokens)
        if "pos" not in record.layers:
            raise record.error("the file gives no tags here, which lemmas need: set lemmas=lower or lemmas=none")
        return None

    def _wordnet_is_there(self) -> bool:
        from ..resources import wordnet

        try:
            wordnet()
        except MissingResource as error:
            if self.lemmas == "wordnet":
                raise
            log.warning("lemmas are lower-case tokens, since WordNet is missing: %s", error)
            return False
        return True

    def _has_tokens(self) -> bool:
        return any(record.tokens is not None for record in self._records or ())

    def _by_pair(self, pairs: Sequence[SentencePair]) -> list[tuple[Record | None, Record | None]]:
        """The records of each pair: by its id, or by order where no id is known to the other side."""
        records = self._records or []
        both = list(zip(records[::2], records[1::2], strict=True))
        by_id: dict[str | None, tuple[Record, Record]] = {}
        for found in both:
            name = found[0].id
            if name is not None and by_id.setdefault(name, found) is not found:
                raise found[0].error(f"the id {name!r} was there before, on line {by_id[name][0].line}")
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

    def _by_tokens(self, pairs: Sequence[SentencePair]) -> list[tuple[Record | None, Record | None]]:
        """The record of each sentence: of the same side if there is one, and spelt the same if there is one."""
        exact: dict[tuple, Record] = {}
        alike: dict[tuple, Record] = {}
        for record in self._records or ():
            for side in (record.side, None):
                exact.setdefault((side, record.tokens), record)
                alike.setdefault((side, _alike(record.tokens or ())), record)

        def find(tokens: tuple[str, ...], side: str) -> Record | None:
            if not tokens:
                return Record(str(self.path), 0, dict.fromkeys(self.provides, ()), tokens, side)
            if found := exact.get((side, tokens)) or exact.get((None, tokens)):
                return found
            spelt = _alike(tokens)
            found = alike.get((side, spelt)) or alike.get((None, spelt))
            if found is None and self.unmatched == "error":
                raise self._no_match(f"there is no sentence {' '.join(tokens)[:80]!r}, tokenised like this, in it")
            return found

        return [(find(pair.source.tokens, "source"), find(pair.target.tokens, "target")) for pair in pairs]

    def _no_match(self, message: str) -> CorpusError:
        message += "; is this another corpus's file? unmatched=keep passes over what it lacks"
        return CorpusError(message, str(self.path))


def _alike(tokens: Sequence[str]) -> tuple[str, ...]:
    return tuple(matching_form(token).lower() for token in tokens)
