"""Where linguistic data comes from: look it up, install it, verify it, explain what is missing, and read it.

In: names of resources (the table is catalogue.py). Out: paths, and values ready for vectorised use.
Reading goes through arrays compiled once into the cache, and nothing is loaded before it is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .install import install
from .lookup import Status, available, format_status, located, path, status

if TYPE_CHECKING:
    from .ppdb_pairs import Ppdb
    from .static_vectors import Vectors
    from .store import Arrays
    from .tagger import TaggerWeights
    from .wordnet_graph import WordNet

__all__ = [
    "Status", "available", "compiled_tagger", "format_status", "install", "path", "ppdb", "status",
    "tagger_weights", "vectors", "wordnet",
]  # fmt: skip


def wordnet() -> WordNet:
    """WordNet as arrays, opened once per process."""
    from .wordnet_graph import load

    return load(located("wordnet"))


def compiled_tagger() -> Arrays:
    """The averaged perceptron's weights, compiled, opened once per process."""
    from .tagger_arrays import load

    return load(located("tagger"))


def tagger_weights() -> TaggerWeights:
    """The averaged perceptron's weights, tag dictionary and classes, as NLTK has them."""
    from .tagger import load

    return load(located("tagger"))


def vectors(name_or_path: str) -> Vectors:
    """Static word vectors: a resource's name, or a file in word2vec, GloVe or .npy format."""
    from .static_vectors import load, locate

    return load(locate(name_or_path))


def ppdb() -> Ppdb:
    """The lexical paraphrase pairs of PPDB."""
    from .ppdb_pairs import load

    return load(located("mwa-ppdb"))
