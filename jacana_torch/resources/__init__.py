"""Linguistic data: find it, install it, and open it as arrays that are ready for vectorised use.

catalogue.py is the table of all resources. Data is compiled into the cache at its first use and memory-mapped from
then on; nothing is loaded before the first call that needs it.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from .catalogue import TAGGER_JSON, TAGGER_PICKLE
from .lookup import Status, available, format_status, located, path, status

if TYPE_CHECKING:
    from .build import Writer
    from .ppdb_pairs import Ppdb
    from .static_vectors import Vectors
    from .store import Arrays
    from .tagger_files import TaggerWeights
    from .wordnet_graph import WordNet

__all__ = [
    "Status", "available", "compiled_tagger", "format_status", "install", "path", "ppdb", "status",
    "tagger_weights", "vectors", "wordnet",
]  # fmt: skip

_TAGGER_VERSION = 1


def install(names: Iterable[str] = (), progress: bool = True, force: bool = False) -> None:
    """Install the named resources, or all that an index has except the very large ones.

    Resources that this machine has already are kept unless `force` is set. `progress` shows pip's progress bar.
    """
    from .download import install as run

    run(names, progress, force)


def wordnet() -> WordNet:
    """WordNet as arrays, opened once per process."""
    from .wordnet_graph import load

    return load(located("wordnet"))


def compiled_tagger() -> Arrays:
    """The averaged perceptron tagger as arrays, opened once per process."""
    return _tagger(located("tagger"))


@lru_cache(maxsize=2)
def _tagger(path: Path) -> Arrays:
    from .store import compiled

    def fill(writer: Writer) -> None:
        from .tagger_files import compile_tagger, load

        compile_tagger(load(path), writer)

    files = TAGGER_JSON if path.stem.endswith("_eng") else (TAGGER_PICKLE,)
    return compiled("tagger", _TAGGER_VERSION, [path / file for file in files] if path.is_dir() else [path], fill)


def tagger_weights() -> TaggerWeights:
    """The averaged perceptron tagger as NLTK has it."""
    from .tagger_files import load

    return load(located("tagger"))


def vectors(name_or_path: str) -> Vectors:
    """Static word vectors: a resource's name, or a file in word2vec, GloVe or .npy format."""
    from .static_vectors import load, locate

    return load(locate(name_or_path))


def ppdb() -> Ppdb:
    """The lexical paraphrase pairs of PPDB."""
    from .ppdb_pairs import load

    return load(located("mwa-ppdb"))
