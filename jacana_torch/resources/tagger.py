"""Read the averaged perceptron tagger that NLTK distributes, as JSON files or as a pickle.

In: the resource `tagger`. Out: TaggerWeights. The pickle goes through an unpickler that builds nothing but sets.
"""

from __future__ import annotations

import io
import json
import pickle
from dataclasses import dataclass
from pathlib import Path

from ..errors import JacanaError
from .places import read_member

_PICKLE = "averaged_perceptron_tagger.pickle"
_JSON = "averaged_perceptron_tagger_eng.{}.json"
_PARTS = ("weights", "tagdict", "classes")


@dataclass(frozen=True)
class TaggerWeights:
    """What NLTK's PerceptronTagger holds: feature -> tag -> weight, word -> sole tag, and the tags."""

    weights: dict[str, dict[str, float]]
    tagdict: dict[str, str]
    classes: tuple[str, ...]  # sorted


class _SetsOnly(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> type:
        if (module, name) in (("__builtin__", "set"), ("builtins", "set")):
            return set
        raise pickle.UnpicklingError(f"it asks for {module}.{name}, which a tagger does not need")


def sources(path: Path) -> list[Path]:
    """The files that `load` reads."""
    if not path.is_dir():
        return [path]
    return [path / _JSON.format(part) for part in _PARTS] if path.stem.endswith("_eng") else [path / _PICKLE]


def load(path: Path) -> TaggerWeights:
    """The tagger in a directory or zip, whichever of the two formats it holds."""
    try:
        if path.stem.endswith("_eng"):
            parts = [json.loads(read_member(path, _JSON.format(part))) for part in _PARTS]
        else:
            parts = list(_SetsOnly(io.BytesIO(read_member(path, _PICKLE))).load())
        return _checked(*parts)
    except JacanaError:
        raise
    except Exception as error:  # a damaged pickle can raise nearly anything
        raise JacanaError(
            f"{path} is not NLTK's averaged perceptron tagger: {str(error)[:200]}. "
            "Remove it, then: jacana-torch resources install tagger"
        ) from None


def _checked(weights: dict, tagdict: dict, classes: list | set) -> TaggerWeights:
    names = tuple(sorted(classes))
    if not names or not weights:
        raise ValueError("it has no tags or no weights")
    known = set(names)
    for feature, by_tag in weights.items():
        if not known.issuperset(by_tag):
            raise ValueError(f"the feature {feature!r} has weights for tags that are not among its classes")
    if not known.issuperset(tagdict.values()):
        raise ValueError("its tag dictionary has tags that are not among its classes")
    return TaggerWeights(weights, tagdict, names)
