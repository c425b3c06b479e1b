"""IBM 1-4, HMM, fast_align and eflomal from the optional package sil-thot: the GIZA++ row of the papers' tables.

`Thot` aligns in one direction, and `Bidirectional` runs two. A trained model is thot's own files, kept as arrays.
"""

from __future__ import annotations

import logging
import math
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np

from ...aligners.base import State
from ...aligners.training import TrainingReport, Watcher
from ...errors import ConfigError, MissingResource, ModelError, PairError
from ...resources.store import unfinished
from ...types import Alignment, Example, SentencePair, trusted
from ...util.build import OneOf, Seed, Within, check_bounds
from .translation_table import FORMS, WordPair, lexicon, numbered, read_text, words_of

log = logging.getLogger(__name__)

# Each model, after those that initialise it.
CHAINS: Mapping[str, tuple[str, ...]] = {
    "ibm1": ("ibm1",),
    "ibm2": ("ibm1", "ibm2"),
    "hmm": ("ibm1", "hmm"),
    "ibm3": ("ibm1", "hmm", "ibm3"),
    "ibm4": ("ibm1", "hmm", "ibm3", "ibm4"),
    "fast_align": ("fast_align",),
    "eflomal": ("eflomal",),
}
_CLASSES = {name: f"{name.capitalize()}AlignmentModel" for name in CHAINS} | {"fast_align": "FastAlignModel"}
_SENTENCES = ("src", "trg", "srctrgc")  # the training text, which thot writes beside its model and does not need
_SUFFIX = re.compile(r"[A-Za-z0-9_]+(\.[0-9]+)?")
_UNKNOWN = "?"
_Rounds = Annotated[int, Within(1, 10**6)]


@dataclass
class Thot:
    """One of thot's models in one direction.

    `model` is a key of CHAINS. The models that initialise it are trained first: `iterations` of each, and
    `fertility_iterations` of IBM 3 and 4, as in Moses. eflomal sets its own number.

    `form`, `lexicon` and `text` are as in `OneDirection`, but thot takes whole numbers of extra pairs.
    `variational` is thot's own smoothing, without which rare words collect their accidental contexts. A word
    that is not in the training text is linked to the same word, if the other sentence has it. There are no
    confidences. Training always starts anew.
    """

    model: Annotated[str, OneOf(tuple(CHAINS))] = "ibm4"
    form: Annotated[str, OneOf(tuple(FORMS))] = "stem"
    lexicon: Annotated[int, Within(0, 10**6)] = 1
    variational: bool = True
    iterations: _Rounds = 5
    fertility_iterations: _Rounds = 3
    text: str | Sequence[str] | None = ()
    seed: Seed = 1
    part: str = "forward"
    _source: dict[str, int] = field(default_factory=dict, init=False, repr=False)
    _target: dict[str, int] = field(default_factory=dict, init=False, repr=False)
    _files: dict[str, np.ndarray] = field(default_factory=dict, init=False, repr=False)
    _loaded: Any = field(default=None, init=False, repr=False, compare=False)

    requires: ClassVar[tuple[str, ...]] = ()
    reads_natively: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_bounds(Thot, vars(self))
        self.files = [self.text] if isinstance(self.text, str) else list(self.text or ())

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_loaded": None}  # a worker process loads it again

    def fit(
        self, examples: Sequence[Example], dev: Sequence[Example] = (), watch: Watcher | None = None
    ) -> TrainingReport:
        words = read_text(examples, self.files, self.form, self.part == "backward")
        longest = _made(self.model).max_sentence_length
        kept = [pair for pair in words if max(map(len, pair)) <= longest]
        if not kept:
            raise ConfigError(
                f"there is nothing to train on: no pair has words on both sides, up to {longest} of them"
            )
        self._source, self._target = {}, {}
        for source, target in kept:
            numbered(source, self._source)
            numbered(target, self._target)
        model = self._trained(kept)
        self._files, self._loaded = _written(model), None
        notes: tuple[str, ...] = ()
        if len(kept) < len(words):
            notes = (f"{len(words) - len(kept)} pairs with sentences of more than {longest} words were left out",)
        log.info("%s: %s of %d pairs", self.part, self.model, len(kept))
        return TrainingReport(iterations={self.part: self.iterations}, notes=notes)

    def _trained(self, words: Sequence[WordPair]) -> Any:
        """Our target is thot's source: the side whose words may have several links."""
        model: Any = None
        for name in CHAINS[self.model]:
            before, model = model, _made(name, *([] if model is None else [model]))
            if before is None:
                self._add(model, words)
            model.variational_bayes = self.variational
            rounds = self.fertility_iterations if name in ("ibm3", "ibm4") else self.iterations
            if name == "eflomal":
                model.deterministic, model.seed = True, self.seed
                rounds = model.scheduled_iterations
            model.start_training()
            for _ in range(rounds):
                model.train()
            model.end_training()
        return model

    def _add(self, model: Any, words: Sequence[WordPair]) -> None:
        for source, target in words:
            model.add_sentence_pair(_named(target, self._target), _named(source, self._source), 1.0)
        for word, count in (lexicon(words) if self.lexicon else {}).items():
            for _ in range(self.lexicon * count):
                model.add_sentence_pair(_named([word], self._target), _named([word], self._source), 1.0)

    def align(self, pairs: Sequence[SentencePair]) -> list[Alignment]:
        """The best alignments, each with its log probability per source word as the score."""
        return [self._one(pair) for pair in pairs]

    def _one(self, pair: SentencePair) -> Alignment:
        source, target = words_of(pair.source, self.form), words_of(pair.target, self.form)
        m, n = len(source), len(target)
        if not (m and n):
            return Alignment(m, n)
        model = self._model()
        if max(m, n) > model.max_sentence_length:
            raise PairError(
                f"a pair of {m} x {n} tokens exceeds the limit of thot's {self.model}, "
                f"{model.max_sentence_length} tokens per side: split it into sentences"
            )
        score, matrix = model.get_best_alignment(_named(target, self._target), _named(source, self._source))
        columns = {i: j - 1 for i, j in enumerate(matrix.to_list()[:m]) if j > 0}
        columns.update(_same_unknown(source, target, self._source, self._target))
        return trusted(m, n, frozenset(columns.items()), score=score / m if math.isfinite(score) else None)

    def _model(self) -> Any:
        if not self._files:
            raise ModelError(f"the {self.part} direction has not been trained: fit it")
        if self._loaded is None:
            self._loaded = _read(self.model, self._files)
        return self._loaded

    def state(self) -> State:
        files = {f"files.{suffix}": content for suffix, content in self._files.items()}
        return {"source": list(self._source), "target": list(self._target), **files}

    def restore(self, state: State) -> None:
        files = {k.removeprefix("files."): np.asarray(v) for k, v in state.items() if k.startswith("files.")}
        for suffix, content in files.items():
            if not _SUFFIX.fullmatch(suffix) or content.dtype != np.uint8:
                raise ConfigError(f"{suffix!r} is not a file of a thot model: the model's files are damaged")
        self._source, self._target = (
            {word: i for i, word in enumerate(state[side])} for side in ("source", "target")
        )
        self._files, self._loaded = files, None


def _made(name: str, *start: Any) -> Any:
    """A new model of that name, initialised by another. thot is imported on first use."""
    try:
        module = import_module("thot.alignment")
    except ImportError as error:
        raise MissingResource(
            f"aligner=thot needs the package sil-thot ({error}): pip install 'jacana-torch[thot]'"
        ) from None
    return getattr(module, _CLASSES[name])(*start)


def _written(model: Any) -> dict[str, np.ndarray]:
    """The files that a model writes, by the ends of their names."""
    with unfinished(Path(tempfile.gettempdir()), folder=True) as folder:
        if not model.print(f"{folder}/m"):
            raise ModelError(f"thot could not write its model to {folder}: is the disk full?")
        paths = sorted(folder.iterdir())
        contents = {path.name.removeprefix("m."): path.read_bytes() for path in paths}
    return {k: np.frombuffer(v, dtype=np.uint8) for k, v in contents.items() if k not in _SENTENCES}


def _read(name: str, files: Mapping[str, np.ndarray]) -> Any:
    model = _made(name)
    with unfinished(Path(tempfile.gettempdir()), folder=True) as folder:
        for suffix, content in [*files.items(), *((suffix, np.zeros(0, np.uint8)) for suffix in _SENTENCES)]:
            (folder / f"m.{suffix}").write_bytes(content.tobytes())
        try:
            loaded = model.load(f"{folder}/m")
        except Exception as error:  # of C++
            raise ModelError(f"thot cannot read this model of {name} ({str(error)[:200]})") from None
        if not loaded:
            raise ModelError(f"thot cannot read this model of {name}: was it trained by another version?")
    return model


def _named(words: Sequence[str], numbers: Mapping[str, int]) -> list[str]:
    """Words as numbers, since thot's files cannot contain blanks and some words have a meaning to it."""
    return [str(numbers.get(word, _UNKNOWN)) for word in words]


def _same_unknown(
    source: Sequence[str], target: Sequence[str], known_source: Mapping[str, int], known_target: Mapping[str, int]
) -> Iterator[tuple[int, int]]:
    """Unknown source words, each with the place of the same target word that is nearest to the diagonal."""
    for i, word in enumerate(source):
        if word not in known_source and word not in known_target and word in target:
            places = [j for j, other in enumerate(target) if other == word]
            yield i, min(places, key=lambda j: abs(j / len(target) - i / len(source)))
