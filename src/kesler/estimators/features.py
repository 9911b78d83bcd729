"""How an estimator knows the features of its rows: by position, or by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kesler.errors import KeslerError
from kesler.estimators import inputs
from kesler.rows import Rows, Vocabulary


class FeatureReader:
    """The part of an estimator that turns what it is given into rows."""

    @property
    def vocabulary_(self) -> Vocabulary | None:
        """The names of the features; None if they are known by position."""
        return self._vocabulary

    @property
    def _vocabulary(self) -> Vocabulary | None:
        return self.__dict__.get("_names")

    @_vocabulary.setter
    def _vocabulary(self, vocabulary: Vocabulary | None) -> None:
        self.__dict__["_names"] = vocabulary

    def _rows_to_score(self, X: Any) -> Iterable[Rows]:
        if inputs.holds_names(X):
            return [self._named_rows(X, learn=False)]
        return inputs.blocks(self._array_rows(X, learn=False))

    def _require_positions(self) -> None:
        if self._vocabulary is not None and not hasattr(self, "n_features_in_"):
            raise KeslerError(
                "this model learns from named features, so it cannot tell what the columns of an "
                "array are: give mappings of names to values, or a model of its own"
            )

    def _array_rows(self, X: Any, *, learn: bool) -> Any:
        self._require_positions()
        first = learn and not hasattr(self, "n_features_in_")
        data = inputs.array_rows(self, X, reset=first)
        if first and hasattr(self, "feature_names_in_"):
            self._vocabulary = Vocabulary.of(self.feature_names_in_)
        return data

    def _named_rows(self, X: Any, *, learn: bool) -> Rows:
        if self._vocabulary is None and self._knows_features():
            raise KeslerError(
                "this model learnt from arrays without column names, so it cannot tell what named "
                "features are: give arrays, or learn from a data frame or from mappings"
            )
        if self._vocabulary is None:
            self._vocabulary = Vocabulary()
        if hasattr(self, "n_features_in_"):
            return inputs.framed_rows(X, self._vocabulary)
        return inputs.named_rows(X, self._vocabulary, learn=learn)

    def _knows_features(self) -> bool:
        """Whether rows have been learnt, by name or by position."""
        machine = getattr(self, "_machine", None)
        return hasattr(self, "n_features_in_") or (machine is not None and machine.n_trials > 0)

    def _row(self, x: Any, *, learn: bool) -> Rows:
        """Return one row, by names or by position."""
        if isinstance(x, Mapping):
            return self._named_rows(x, learn=learn)
        self._require_positions()
        return inputs.positional_row(x, getattr(self, "n_features_in_", None))
