"""A transformer of scikit-learn: from sentence pairs to features of their alignments. Extra `sklearn`."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import MissingResource
from ..types import Alignment, SentencePair
from .features import features, matrix

if TYPE_CHECKING:
    from ..model.model import Model

try:
    from sklearn.base import BaseEstimator, TransformerMixin
except ImportError as error:
    raise MissingResource(
        f"AlignmentFeatures needs scikit-learn ({error}): pip install 'jacana_torch[sklearn]'"
    ) from None


_CHUNK = 1024  # pairs aligned at a time


class AlignmentFeatures(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Turns pairs of sentences into [pairs, features], for pipelines and feature unions.

    `model` is the name or directory of a model, or a `Model`. `confidence` False takes links alone, which is
    faster: probabilities are then 1. Pairs are two strings, two lists of tokens, `SentencePair`s, or rows of an
    array with two columns. Nothing is learnt from data; features have the names of `get_feature_names_out`.
    """

    def __init__(self, model: str | Model = "standard", confidence: bool = True) -> None:
        self.model = model
        self.confidence = confidence

    def fit(self, X: Iterable[Any], y: Any = None) -> AlignmentFeatures:
        """Load the model; the data are not looked at."""
        self.model_ = self._loaded()
        return self

    def transform(self, X: Iterable[Any]) -> np.ndarray:
        """[pairs, features] the features of each pair; see `jacana_torch.tasks.features`."""
        model = self.model_ if "model_" in vars(self) else self._loaded()
        parts = []
        remaining = map(_pair, X)
        while chunk := list(islice(remaining, _CHUNK)):
            pairs = model.prepare(chunk)
            parts.append(matrix(pairs, model.align(pairs, confidence=self.confidence))[0])
        return np.concatenate(parts) if parts else matrix([], [])[0]

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """The names of the columns."""
        from ..types import Sentence

        empty = SentencePair(Sentence(()), Sentence(()))
        return np.array(list(features(empty, Alignment(0, 0))), dtype=object)

    def _loaded(self) -> Model:
        from ..model import persist

        return persist.load(self.model) if isinstance(self.model, str) else self.model

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.requires_fit = False
        tags.no_validation = True
        return tags


def _pair(given: Any) -> Any:
    """A row of an array is a pair of strings."""
    return tuple(map(str, given)) if isinstance(given, np.ndarray) else given
