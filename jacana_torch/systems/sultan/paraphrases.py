"""Which words mean the same: PPDB as in the paper, or WordNet with word vectors where there is no PPDB.

In: a source's name. Out: a function from pairs of words to booleans, and the resources that it reads.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from types import MappingProxyType

import numpy as np

from ...annotate.normalise import wordnet_pos
from ...errors import ConfigError
from .similarity import Key, Paraphrases

log = logging.getLogger(__name__)

PPDB, VECTORS = "mwa-ppdb", "glove-840b"
RESOURCES = MappingProxyType({"ppdb": (PPDB,), "wordnet": (VECTORS, "wordnet"), "none": ()})
SOURCES = ("auto", *RESOURCES)
# Relations of WordNet that stand for a paraphrase, and the cosine from which words do: chosen on MSR's dev set.
RELATIONS = ("synonym", "derived", "pertainym", "similar", "hypernym", "hyponym")
CLOSE = 0.7


def check(source: str) -> None:
    if source not in SOURCES:
        raise ConfigError(f"paraphrases={source!r} is none of {', '.join(SOURCES)}")


def chosen(source: str) -> str:
    """What `auto` is on this machine. A PPDB that somebody points to is used, or what is wrong with it is told."""
    from ...resources import available

    if source != "auto":
        return source
    return "ppdb" if available(PPDB) or os.environ.get("JACANA_PPDB") else "wordnet"


def told(source: str) -> str:
    """As `chosen`, with a warning where it is not what the paper reads."""
    found = chosen(source)
    if source == "auto" and found != "ppdb":
        log.warning(
            "there is no PPDB on this machine, so paraphrases come from WordNet and word vectors, which is worse; "
            "`jacana-torch resources` says how to get %s (or set paraphrases=wordnet)",
            PPDB,
        )
    return found


def function(source: str) -> Paraphrases:
    return {"ppdb": in_ppdb, "wordnet": in_wordnet, "none": nowhere}[source]


def in_ppdb(keys: Sequence[Key], left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Whether PPDB pairs the two forms or the two lemmas."""
    from ...resources import ppdb

    found = np.zeros(len(left), dtype=bool)
    for names in ([key.form for key in keys], [key.lemma for key in keys]):
        found |= ppdb().contains([names[k] for k in left.tolist()], [names[k] for k in right.tolist()])
    return found


def in_wordnet(keys: Sequence[Key], left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Whether WordNet relates the two lemmas, or the two forms' vectors are close; of content words alone."""
    from ...resources import vectors, wordnet

    found = np.zeros(len(left), dtype=bool)
    stop = np.array([key.stop for key in keys], dtype=bool)
    some = np.flatnonzero(~stop[left]) if len(keys) else np.zeros(0, dtype=np.int64)
    if not len(some):
        return found
    asked = [(key.lemma, wordnet_pos(key.tag)) for key in keys]
    one, other = left[some], right[some]
    queries = [[asked[k] for k in side.tolist()] for side in (one, other)]
    related = wordnet().related(queries[0], queries[1])
    embedded = vectors(VECTORS)
    rows = embedded.rows(embedded.lookup([key.form for key in keys]))
    found[some] = np.logical_or.reduce([related[name] for name in RELATIONS])
    found[some] |= np.einsum("kd,kd->k", rows[one], rows[other]) >= CLOSE
    return found


def nowhere(keys: Sequence[Key], left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Words are paraphrases of themselves alone."""
    return np.zeros(len(left), dtype=bool)
