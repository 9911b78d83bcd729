"""Compact classifiers behind fastText's methods."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from kesler.compact.classifier import CompactClassifier
from kesler.compact.model import CompactModel, read
from kesler.compact.multilabel import CompactMultilabelClassifier
from kesler.errors import KeslerError
from kesler.online.classifier import OnlineClassifier
from kesler.online.multilabel import OnlineMultilabelClassifier

AT_ONCE = 1024  # texts


class Compact:
    """A compact classifier, which predicts and does not learn.

    Parameters
    ----------
    classifier : CompactClassifier or CompactMultilabelClassifier
        The labels of it have their prefix.
    """

    def __init__(self, classifier: CompactModel) -> None:
        self.classifier = classifier

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Compact:
        """Read a file of `save`, see :meth:`kesler.compact.CompactClassifier.load`."""
        content = read(path)
        kind = CompactMultilabelClassifier if content.has_sets else CompactClassifier
        return cls(kind(content))

    @classmethod
    def of(cls, model: OnlineClassifier | OnlineMultilabelClassifier, **given: Any) -> Compact:
        """Return the compact form of a classifier, with the arguments of `CompactClassifier.of`."""
        has_sets = isinstance(model, OnlineMultilabelClassifier)
        kind = CompactMultilabelClassifier if has_sets else CompactClassifier
        return cls(kind.of(model, **given))

    @property
    def prefix(self) -> str:
        """What labels begin with."""
        return self.classifier.prefix

    @property
    def labels(self) -> list[str]:
        """The labels, with their prefix."""
        return self.classifier.classes_

    @property
    def words(self) -> list[str]:
        """Raise KeslerError."""
        raise KeslerError("a quantized model holds hashes in place of its words")

    def probabilities(self, texts: Sequence[str]) -> Iterator[npt.NDArray[np.float64]]:
        """Yield the probability of each label for each text."""
        for start in range(0, len(texts), AT_ONCE):
            yield from self.classifier.predict_proba(texts[start : start + AT_ONCE])

    def learn(self, texts: list[str], labels: list[Any]) -> NoReturn:
        """Raise KeslerError."""
        raise KeslerError(
            "a quantized model does not learn: keep the model that it was made of, and quantize a "
            "copy"
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the file."""
        self.classifier.save(path)

    def quantized(self, **given: Any) -> NoReturn:
        """Raise KeslerError."""
        raise KeslerError("this model has been quantized: quantize the one that it was made of")

    def vector(self, text: str) -> NoReturn:
        """Raise KeslerError."""
        raise KeslerError("a classifier of kesler has no vectors of words and texts")

    vector_of_word = vector
