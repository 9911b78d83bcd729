"""How an estimator knows the features and sub-experts of its rows: by position, or by name."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from kesler.errors import KeslerError
from kesler.estimators import inputs
from kesler.events import DICTIONARIES
from kesler.ratings import Ratings
from kesler.readers.tokens import presence
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

    @property
    def sub_experts_(self) -> Vocabulary | None:
        """The names of the sub-experts; None if they are known by number, or there are none."""
        return self._sub_experts

    @property
    def _sub_experts(self) -> Vocabulary | None:
        return self.__dict__.get("_sub_expert_names")

    @_sub_experts.setter
    def _sub_experts(self, vocabulary: Vocabulary | None) -> None:
        self.__dict__["_sub_expert_names"] = vocabulary

    @abstractmethod
    def _takes_ratings(self) -> bool:
        """Return whether a part looks at what sub-experts say."""

    def _rows_to_score(self, X: Any) -> Iterator[Rows]:
        X, ratings = inputs.apart(X, rated=self._takes_ratings())
        named = inputs.holds_names(X)
        data = self._named_rows(X, learn=False) if named else self._array_rows(X, learn=False)
        inputs.require_rated(inputs.count_rows(data), ratings)
        return inputs.blocks(data, self._numbered(ratings, learn=False))

    def _require_positions(self) -> None:
        if self._vocabulary is not None and not hasattr(self, "n_features_in_"):
            raise KeslerError(
                "this model learns from named features, so it cannot tell what the columns of an "
                "array are: give mappings of names to values, or a model of its own"
            )

    def _array_rows(self, X: Any, *, learn: bool) -> Any:
        if isinstance(X, Rows):
            self._require_no_attributes()
            return X
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

    def _require_no_attributes(self) -> None:
        if hasattr(self, "n_features_in_"):
            raise KeslerError(
                f"this model learnt from {self.n_features_in_} attributes beside the ratings, but "
                "these rows bring none: give Ratings with attributes=..."
            )

    def _numbered(self, ratings: Ratings | None, *, learn: bool) -> Ratings | None:
        """Return ratings with sub-experts by number; new names join if `learn`.

        Else they share the number that the next one would have.

        Raises
        ------
        KeslerError
            If the model knows its sub-experts otherwise.
        """
        if ratings is None or not len(ratings.vectors.indices):
            return ratings
        known, machine = self._sub_experts, getattr(self, "_machine", None)
        by_number = known is None and machine is not None and machine.n_sub_experts > 0
        if (ratings.names is None and known is not None) or (ratings.names and by_number):
            ways = ("number", "name") if by_number else ("name", "number")
            raise KeslerError(
                f"this model knows its sub-experts by {ways[0]}, so it cannot tell who those are "
                f"that the ratings know by {ways[1]}: give ratings as before"
            )
        if ratings.names is None:
            return ratings
        if known is None:
            known = self._sub_experts = Vocabulary()
        if learn:
            numbers = [known.add(name) for name in ratings.names]
            return ratings.numbered(numbers, len(known))
        unseen = len(known)
        numbers = [known.indices.get(name, unseen) for name in ratings.names]
        return ratings.numbered(numbers, unseen + 1)

    def _knows_features(self) -> bool:
        """Whether rows have been learnt, by name or by position."""
        machine = getattr(self, "_machine", None)
        return hasattr(self, "n_features_in_") or (machine is not None and machine.n_trials > 0)

    def _row(self, x: Any, *, learn: bool) -> Rows:
        """Return one row, by names or by position."""
        x, ratings = inputs.apart(x, rated=self._takes_ratings())
        if ratings is None:
            return self._features_of(x, learn=learn)
        rows = self._features_of(inputs.only_row(x), learn=learn)
        inputs.require_rated(1, ratings)
        return replace(rows, ratings=self._numbered(ratings, learn=learn))

    def _features_of(self, x: Any, *, learn: bool) -> Rows:
        if isinstance(x, str):
            x = presence([x])
        if isinstance(x, Mapping):
            return self._named_rows(x, learn=learn)
        if isinstance(x, Rows):
            return self._array_rows(x, learn=learn)
        self._require_positions()
        width = getattr(self, "n_features_in_", None)
        listed = inputs.listed_features(x)
        if listed is not None:
            return inputs.listed_row(*listed, width)
        return inputs.positional_row(x, width)

    def _read(self, x: Any, machine: Any, *, learn: bool) -> bool:
        """Read one row into the machine's event; return whether it could be read that way.

        New names of features join if `learn`, even if it could not.
        """
        if machine.takes_ratings:
            return False
        own, event = self.__dict__, machine.event
        if type(x) is str:
            x = presence([x])
        if type(x) in DICTIONARIES:
            names = None if "n_features_in_" in own else own.get("_names")
            return names is not None and event.read_mapping(x, names, joins=learn)
        width = own.get("n_features_in_")
        if type(x) is np.ndarray:
            return x.shape == (width,) and event.read_array(x)
        listed = None if own.get("_names") is not None else inputs.listed_features(x)
        return listed is not None and event.read_pair(*listed, width)
