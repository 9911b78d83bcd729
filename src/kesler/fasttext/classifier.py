"""Classifiers of Kesler behind fastText's methods."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kesler.errors import KeslerError
from kesler.fasttext.binary import Floats
from kesler.online.classifier import OnlineClassifier
from kesler.online.loading import load
from kesler.online.multilabel import OnlineMultilabelClassifier

if TYPE_CHECKING:
    from kesler.fasttext.compact import Compact

AT_ONCE = 1 << 22
"""The most probabilities that are computed together."""
COLUMN, NOTE = "text", "label_prefix"


class Classifier:
    """A classifier of texts, or of the label sets of texts.

    Parameters
    ----------
    estimator : OnlineClassifier or OnlineMultilabelClassifier
        The classifier, fitted or not.
    prefix : str
        What its labels begin with, which its classes do not have.
    """

    def __init__(
        self, estimator: OnlineClassifier | OnlineMultilabelClassifier, prefix: str
    ) -> None:
        self.estimator = estimator
        self.prefix = prefix

    @classmethod
    def new(cls, has_sets: bool, settings: dict[str, Any], prefix: str) -> Classifier:
        """Return a classifier, of label sets or not, that has learnt nothing."""
        estimator = OnlineMultilabelClassifier if has_sets else OnlineClassifier
        return cls(estimator(**settings), prefix)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Classifier:
        """Read a file of `save`.

        Raises
        ------
        KeslerError
            If it is missing, damaged, or holds another model.
        """
        estimator = load(path)
        prefix = estimator.notes_.get(NOTE)
        if prefix is None or not isinstance(
            estimator, OnlineClassifier | OnlineMultilabelClassifier
        ):
            raise KeslerError(
                f"{os.fspath(path)} is a model of kesler, but none of kesler.fasttext: load it "
                "with kesler.load"
            )
        return cls(estimator, prefix)

    @property
    def labels(self) -> list[str]:
        """The labels, with their prefix."""
        return [f"{self.prefix}{each}" for each in self.estimator.classes_.tolist()]

    @property
    def words(self) -> list[str]:
        """The features that are single words, without the runs of words and characters."""
        names = self.estimator.vocabulary_
        found = [] if names is None else names.names
        if not self._is_table:
            return [name for name in found if " " not in name and name == name.casefold()]
        sign = f"{COLUMN}:"
        of_column = (name.removeprefix(sign) for name in found if name.startswith(sign))
        return [name for name in of_column if " " not in name]

    def probabilities(self, texts: Sequence[str]) -> Iterator[npt.NDArray[np.float64]]:
        """Yield the probability of each label for each text."""
        n_rows = max(1, AT_ONCE // max(1, len(self.estimator.classes_)))
        for start in range(0, len(texts), n_rows):
            yield from self.estimator.predict_proba(self._rows(texts[start : start + n_rows]))

    def fit(self, texts: Sequence[str], labels: Sequence[Any]) -> None:
        """Learn all rows in several passes."""
        self.estimator.fit(self._rows(texts), [self._classes(each) for each in labels])

    def learn(self, texts: list[str], labels: list[Any]) -> None:
        """Learn more rows."""
        self.estimator.partial_fit(self._rows(texts), [self._classes(each) for each in labels])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the classifier, and the prefix as a note."""
        self.estimator.save(path, **{NOTE: self.prefix})

    def quantized(self, **given: Any) -> Compact:
        """Return the compact form, with the prefix before its labels."""
        from kesler.fasttext.compact import Compact

        return Compact.of(self.estimator, prefix=self.prefix, **given)

    def vector(self, text: str) -> Floats:
        """Raise KeslerError."""
        raise KeslerError(
            "a classifier of kesler has no vectors of words and texts: a model of fastText has"
        )

    vector_of_word = vector

    @property
    def _is_table(self) -> bool:
        return isinstance(self.estimator.columns, Mapping)

    def _rows(self, texts: Sequence[str]) -> list[Any]:
        """Return texts as rows of a table if the features of its column are given."""
        return [{COLUMN: text} for text in texts] if self._is_table else list(texts)

    def _classes(self, label: Any) -> Any:
        """Return the class, or the classes of a row, without the prefix."""
        if isinstance(self.estimator, OnlineMultilabelClassifier):
            labels = [label] if isinstance(label, str) else label
            return [each.removeprefix(self.prefix) for each in labels]
        labels = [label] if isinstance(label, str) else [*label]
        if len(labels) != 1:
            raise KeslerError(
                f"a text has {len(labels)} labels, and this model has one for each: train one of "
                'label sets, with loss="ova" or lines of several labels'
            )
        return labels[0].removeprefix(self.prefix)
