"""Shards: the rows of partitions as workers hold them, and what is to be the same of all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from kesler.errors import KeslerError
from kesler.estimators import inputs
from kesler.readers import Stream
from kesler.rows import Rows, Vocabulary


@dataclass(frozen=True, eq=False)
class Shard:
    """The rows of one partition.

    Parameters
    ----------
    X : array, CSR array or Rows
        Rows where features are known by name, which are numbered here for this shard alone.
    y : list or array
        Their labels.
    source : str
        What messages call it.
    names : list of str or None
        Of the features, or of the columns; None if they have none.
    """

    X: Any
    y: Any
    source: str
    names: list[str] | None = None

    @classmethod
    def of(cls, X: Any, y: Any, source: str) -> Shard:
        """Bring rows in any form that estimators take into one of these three.

        Raises
        ------
        KeslerError
            If there is not one label for each row.
        """
        rows, names = _in_one_form(X)
        labels = y if isinstance(y, list) else np.asarray(y)
        if rows.shape[0] != len(labels):
            raise KeslerError(
                f"{source} has {rows.shape[0]} rows and {len(labels)} labels: give one label for "
                "each row"
            )
        return cls(rows, labels, source, names)

    def __len__(self) -> int:
        return int(self.X.shape[0])

    @property
    def kind(self) -> str:
        """What its rows are: "dense", "sparse" or "named"."""
        if isinstance(self.X, Rows):
            return "named"
        return "sparse" if sparse.issparse(self.X) else "dense"

    def widened(self, n_features: int) -> Shard:
        """Return the shard with as many features as all have, where what is not listed is 0."""
        if self.kind != "sparse":
            return self
        X: Any = sparse.csr_array(self.X)
        X.resize(len(self), n_features)
        return replace(self, X=X)

    def description(self) -> Description:
        """Return what is told of it."""
        names = self.names if self.kind == "dense" else None
        return Description(len(self), int(self.X.shape[1]), self.kind, self.source, names)


@dataclass(frozen=True)
class Description:
    """What is told of a shard: its rows, features, their kind, source, and names of columns."""

    n_rows: int
    n_features: int
    kind: str
    source: str
    columns: list[str] | None


def require_alike(descriptions: Sequence[Description]) -> Description:
    """Return what holds for all shards that have rows, with as many features as any.

    Raises
    ------
    KeslerError
        If no shard has a row, or two differ in the kind of rows, in the number of dense columns or
        in the columns' names.
    """
    told = [each for each in descriptions if each.n_rows]
    if not told:
        raise KeslerError("no partition holds a row: check where they come from")
    first = told[0]
    for each in told:
        if each.kind != first.kind:
            raise KeslerError(
                f"{each.source} has {each.kind} rows, but {first.source} {first.kind} ones: give "
                "all partitions in one form (missing values make the rows of a table sparse)"
            )
        if each.kind == "dense" and each.n_features != first.n_features:
            raise KeslerError(
                f"{each.source} has {each.n_features} features, but {first.source} "
                f"{first.n_features}: give all partitions the same columns"
            )
        if each.columns != first.columns:
            raise KeslerError(
                f"{each.source} has other columns than {first.source}: give all partitions the "
                "same ones in the same order"
            )
    n_features = max(each.n_features for each in told)
    n_rows = sum(each.n_rows for each in told)
    return Description(n_rows, n_features, first.kind, first.source, first.columns)


def streamed(stream: Stream, source: str) -> Shard:
    """Return all rows of a stream as one shard.

    Raises
    ------
    KeslerError
        If its rows have weights, or ratings by sub-experts.
    """
    blocks = list(stream)
    rows = Rows.concatenate([block.rows for block in blocks])
    if rows.ratings is not None or any(block.weights is not None for block in blocks):
        raise KeslerError(
            f"{source} weighs its rows or rates classes in them, which partitions do not take: "
            "learn it on one machine, or leave weights and ratings out"
        )
    labels = [label for block in blocks for label in block.labels]
    if stream.vocabulary is None:
        return Shard(as_matrix(rows), labels, source)
    if rows.dense:
        return Shard(rows.values.reshape(rows.shape), labels, source, stream.vocabulary.names)
    return Shard(rows, labels, source, stream.vocabulary.names)


def as_matrix(rows: Rows) -> Any:
    """Return sparse rows as a CSR array."""
    return sparse.csr_array((rows.values, rows.indices, rows.indptr), shape=rows.shape)


def _in_one_form(X: Any) -> tuple[Any, list[str] | None]:
    """Return rows as a shard has them, and the names of their features."""
    if inputs.holds_names(X):
        vocabulary = Vocabulary()
        return inputs.named_rows(X, vocabulary, learn=True), vocabulary.names
    if sparse.issparse(X):
        rows: Any = X
        return sparse.csr_array(rows), None
    names = [str(name) for name in X.columns] if hasattr(X, "columns") else None
    array = np.asarray(X)
    if not array.size and array.ndim < 2:
        array = array.reshape(0, 0)
    if array.ndim != 2 or array.dtype.kind not in "biuf":
        raise KeslerError(
            f"a partition holds rows of shape {array.shape} and type {array.dtype}: give arrays of "
            "numbers of shape (n_rows, n_features), sparse rows, or mappings of names to values"
        )
    return array if array.dtype in (np.float32, np.float64) else array.astype(np.float64), names
