"""A sentence as the pipeline reads it: forms to compare, classes of words, names, and who depends on whom.

In: a `Sentence` with tags, lemmas, heads and relations (and entities, if asked for). Out: `Words`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ...annotate.normalise import matching_form
from ...features.name_spans import entity_spans
from ...features.wordlists import is_punctuation
from ...types import Sentence
from .dependencies import ADJECTIVE, ADVERB, NOUN, VERB, Edges, edges

# Words that are linked for their context alone, never for being alike.
STOP_WORDS = frozenset(
    """i me my mine myself we our ours ourselves you your yours yourself yourselves he him his himself she her
    hers herself it its itself they them their theirs themselves what which who whom whose this that these those
    am is are was were be been being have has had having do does did doing a an the and but if or because as
    until while of at by for with about against between into through during before after above below to from up
    down in out on off over under again further then once here there when where why how all any both each few more
    most other some such no nor not only own same so than too very can will just should now
    's 'd 'll 're 've 'm n't ' ca wo would could may might must shall also upon onto within without towards toward
    among amongst across via per since till yet either neither every""".split()
)
_ALSO_NAMES = frozenset("may will can might".split())  # "Will came in May"
PROPER = ("NNP", "NNPS")
_PRONOUNS = ("PRP", "PRP$")

_OF_LETTER = {"N": NOUN, "V": VERB, "J": ADJECTIVE, "R": ADVERB}
_OTHERS = "DT IN TO CC CD MD WDT WP WP$ WRB PRP$ POS RP EX PDT $ # UH FW SYM LS".split()
_CATEGORY = {tag: 5 + k for k, tag in enumerate(_OTHERS)} | {"PRP": NOUN}
_NO_NAMES = frozenset("DATE TIME MONEY PERCENT QUANTITY CARDINAL ORDINAL NUMBER DURATION SET".split())


@dataclass(frozen=True)
class Name:
    """The words of a name are first .. behind - 1; `kind` is its entity type, empty where nobody said."""

    first: int
    behind: int
    kind: str = ""

    def __len__(self) -> int:
        return self.behind - self.first

    @property
    def places(self) -> range:
        return range(self.first, self.behind)


@dataclass(frozen=True)
class Words:
    """`forms` and `lemmas` are lower case; `stop` and `punctuation` [T] bool; what is neither is content."""

    tokens: tuple[str, ...]
    forms: tuple[str, ...]
    lemmas: tuple[str, ...]
    tags: tuple[str, ...]
    category: np.ndarray
    stop: np.ndarray
    punctuation: np.ndarray
    edges: Edges
    names: tuple[Name, ...]

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def content(self) -> np.ndarray:
        return ~(self.stop | self.punctuation)


def words_of(sentence: Sentence, entities: bool = False) -> Words:
    """`entities`: names are what the layer `ner` says, not runs of proper nouns."""
    tokens = tuple(map(matching_form, sentence.tokens))
    forms = tuple(token.lower() for token in tokens)
    tags = tuple(map(str, sentence.layer("pos")))
    categories = np.array([category(tag) for tag in tags], dtype=np.int64)
    punctuation = np.array([is_punctuation(form) for form in forms], dtype=bool)
    stop = np.array([_is_stop(form, tag) for form, tag in zip(forms, tags, strict=True)], dtype=bool)
    return Words(
        tokens=tokens,
        forms=forms,
        lemmas=tuple(matching_form(str(lemma)).lower() for lemma in sentence.layer("lemma")),
        tags=tags,
        category=categories,
        stop=stop & ~punctuation,
        punctuation=punctuation,
        edges=edges(sentence, forms, categories),
        names=_entities(sentence.layer("ner")) if entities else _proper_nouns(tags),
    )


@lru_cache(maxsize=256)
def category(tag: str) -> int:
    """The lexical category of a Penn tag; pronouns are nouns, as in the original. 0 for what has none."""
    known = _CATEGORY.get(tag)
    return known if known is not None else _OF_LETTER.get(tag[:1], 0)


def _is_stop(form: str, tag: str) -> bool:
    if form in _ALSO_NAMES and tag in PROPER:
        return False
    return form in STOP_WORDS or tag in _PRONOUNS


def _proper_nouns(tags: Sequence[str]) -> tuple[Name, ...]:
    proper = np.array([False, *(tag in PROPER for tag in tags), False])
    changes = np.flatnonzero(proper[1:] != proper[:-1]).tolist()
    return tuple(Name(first, behind) for first, behind in zip(changes[::2], changes[1::2], strict=True))


def _entities(labels: Sequence[str]) -> tuple[Name, ...]:
    kinds = (
        (first, behind, str(labels[first]).partition("-")[2].upper()) for first, behind in entity_spans(labels)
    )
    return tuple(Name(*span) for span in kinds if span[2] not in _NO_NAMES)
