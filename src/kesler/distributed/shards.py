"""Shards and batches: the rows of partitions on workers, and the form that solvers need."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from kesler.batch.estimator import class_weights
from kesler.batch.softmax import summed
from kesler.data import inputs
from kesler.data.rows import Rows, Vocabulary
from kesler.data.schema.records import Places, Table, is_table, table_of
from kesler.distributed.scattered import Scattered
from kesler.errors import KeslerError
from kesler.learner.classes import ClassTable
from kesler.readers.stream import Stream


@dataclass(frozen=True, eq=False)
class Shard:
    """The rows of one partition.

    Parameters
    ----------
    X : array, CSR array, Rows or Table
        `Rows` if features are identified by name; their numbers are specific to this shard. A
        `Table` has columns of text, or cells that are missing, which are no features yet.
    y : list or array
        Labels of the rows.
    source : str
        Name of the partition in messages.
    names : list of str or None
        Names of the features or columns; None if they have no names.
    """

    X: Any
    y: Any
    source: str
    names: list[str] | None = None

    @classmethod
    def of(cls, X: Any, y: Any, source: str) -> Shard:
        """Return a shard of rows in any form that estimators accept.

        Raises
        ------
        KeslerError
            If there is not one label for each row.
        """
        rows, names = _in_one_form(X, source)
        labels = y if isinstance(y, list) else np.asarray(y)
        shard = cls(rows, labels, source, names)
        if len(shard) != len(labels):
            raise KeslerError(
                f"{source} has {len(shard)} rows and {len(labels)} labels: give one label for "
                "each row"
            )
        return shard

    def __len__(self) -> int:
        return len(self.X) if isinstance(self.X, Table) else int(self.X.shape[0])

    @property
    def kind(self) -> str:
        """The kind of rows: "dense", "sparse", "named" or "table"."""
        if isinstance(self.X, Table):
            return "table"
        if isinstance(self.X, Rows):
            return "named"
        return "sparse" if sparse.issparse(self.X) else "dense"

    @property
    def dtype(self) -> np.dtype[Any]:
        """The precision in which batch learners take the rows, float32 or float64."""
        is_single = self.kind in ("dense", "sparse") and self.X.dtype == np.float32
        return np.dtype(np.float32 if is_single else np.float64)

    def widened(self, n_features: int) -> Shard:
        """Return the shard with sparse rows padded with zeros to `n_features` columns."""
        if self.kind != "sparse":
            return self
        X: Any = sparse.csr_array(self.X)
        X.resize(len(self), n_features)
        return replace(self, X=X)

    def description(self) -> Description:
        """Return the description of the shard."""
        kind = self.kind
        n_features = self.X.n_features if kind == "table" else int(self.X.shape[1])
        names = self.names if kind == "dense" else None
        return Description(len(self), n_features, kind, self.source, names, self.dtype)


@dataclass(frozen=True)
class Description:
    """The numbers of rows and features of a shard, its kind, source, column names and precision."""

    n_rows: int
    n_features: int
    kind: str
    source: str
    columns: list[str] | None
    dtype: np.dtype[Any]


def require_alike(descriptions: Sequence[Description]) -> Description:
    """Return the common description of all shards with rows, with the largest n_features.

    The precision is float64 if it is that of any shard.

    Raises
    ------
    KeslerError
        If no shard has a row, or two shards differ in the kind of rows, in the number of dense
        columns or in the names of columns.
    """
    filled = [each for each in descriptions if each.n_rows]
    if not filled:
        raise KeslerError("no partition has a row: check the source of the partitions")
    first = filled[0]
    for each in filled:
        if each.kind != first.kind:
            raise KeslerError(
                f"{each.source} has {each.kind} rows, but {first.source} {first.kind} ones: give "
                "all partitions in one form"
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
    n_features = max(each.n_features for each in filled)
    n_rows = sum(each.n_rows for each in filled)
    dtype = np.result_type(*{each.dtype for each in filled})
    return Description(n_rows, n_features, first.kind, first.source, first.columns, dtype)


def streamed(stream: Stream, source: str) -> Shard:
    """Return all rows of a stream as one shard.

    Raises
    ------
    KeslerError
        If its rows have weights, or ratings by sub-experts.
    """
    blocks = list(stream)
    rows: Any = [block.rows for block in blocks]
    of_cells = bool(rows) and isinstance(rows[0], Table)
    rows = Table.concatenate(rows) if of_cells else Rows.concatenate(rows)
    if (not of_cells and rows.ratings is not None) or any(
        block.weights is not None for block in blocks
    ):
        raise KeslerError(
            f"{source} has row weights or ratings of classes, which partitions do not support: "
            "learn it on one machine, or remove weights and ratings"
        )
    labels = [label for block in blocks for label in block.labels]
    if of_cells:
        return Shard(rows, labels, source)
    if stream.vocabulary is None:
        return Shard(as_matrix(rows), labels, source)
    if rows.dense:
        return Shard(rows.values.reshape(rows.shape), labels, source, stream.vocabulary.names)
    return Shard(rows, labels, source, stream.vocabulary.names)


def as_matrix(rows: Rows) -> Any:
    """Return sparse rows as a CSR array."""
    return sparse.csr_array((rows.values, rows.indices, rows.indptr), shape=rows.shape)


def holds_text(table: Table) -> bool:
    """Return whether a cell of a table is a text."""
    return any(type(cell) is str for cells in table.columns.values() for cell in cells)


def placed(table: Table, source: str) -> Table:
    """Return the table of a partition whose rows messages name, counted from 1."""
    return replace(table, places=Places(source, "row", [*range(1, len(table) + 1)]))


def _in_one_form(X: Any, source: str) -> tuple[Any, list[str] | None]:
    """Return rows in the form of a shard, and the names of their features."""
    if is_table(X):
        return placed(table_of(X), source), None
    if inputs.holds_names(X):
        vocabulary = Vocabulary()
        return inputs.named_rows(X, vocabulary, learn=True), vocabulary.names
    given: Any = X
    array: Any = sparse.csr_array(given) if sparse.issparse(X) else np.asarray(X)
    if not array.size and array.ndim < 2:
        array = array.reshape(0, 0)
    if array.ndim != 2 or array.dtype.kind not in "biuf":
        raise KeslerError(
            f"a partition holds rows of shape {array.shape} and type {array.dtype}: give arrays of "
            "numbers of shape (n_rows, n_features), sparse rows, or mappings of names to values"
        )
    names = [str(name) for name in X.columns] if hasattr(X, "columns") else None
    return array if array.dtype in (np.float32, np.float64) else array.astype(np.float64), names


Floats = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Batch:
    """The rows of one partition in the form that solvers need.

    Parameters
    ----------
    X : array or CSR array
    labels : int64 array of shape (n_rows,)
        Classes by number.
    counts : float64 array of shape (n_rows,)
        Weight of each row.
    """

    X: Any
    labels: npt.NDArray[np.int64]
    counts: Floats


@dataclass(frozen=True, eq=False)
class Batches:
    """The rows of all partitions that are not empty.

    Parameters
    ----------
    parts : Scattered
        The `Batch` of each partition.
    first_rows : list of int
        Index of the first row of each partition among all rows, and at the end the number of rows.
    classes : array of shape (n_classes,)
        Sorted labels.
    kind : Description
        Description of all rows.
    total : float
        Sum of the weights of all rows.
    """

    parts: Scattered
    first_rows: list[int]
    classes: npt.NDArray[Any]
    kind: Description
    total: float


def numbered(shards: Scattered, class_weight: Any) -> Batches:
    """Return the rows with classes by number, and the weight of each row."""
    descriptions = shards.collect(Shard.description)
    kind = require_alike(descriptions)
    if kind.kind in ("named", "table"):
        has = "features that are identified by name"
        if kind.kind == "table":
            has = "columns of text, or cells that are missing"
        raise KeslerError(
            f"{kind.source} has {has}: give numeric columns, for example by "
            "sklearn.feature_extraction.FeatureHasher"
        )
    filled = [number for number, each in enumerate(descriptions) if each.n_rows]
    shards = shards.some(filled)
    table, n_rows = ClassTable(), dict[Any, int]()
    for each in shards.collect(_labels_of):
        table.encode(list(each))
        for label, count in each.items():
            n_rows[label] = n_rows.get(label, 0) + count
    classes = table.in_order
    counts = np.array([n_rows[label] for label in classes.tolist()])
    per_class = class_weights(classes, counts, class_weight)
    firsts = np.cumsum([0, *(descriptions[number].n_rows for number in filled)]).tolist()
    numbered = shards.each(_batch, kind.n_features, classes.tolist(), per_class)
    return Batches(numbered, firsts, classes, kind, float(per_class @ counts))


def _labels_of(shard: Shard) -> dict[Any, int]:
    """Return the number of rows of each label, in order of appearance."""
    return dict(Counter(inputs.label_list(shard.y)))


def _batch(shard: Shard, n_features: int, classes: list[Any], per_class: Floats) -> Batch:
    """Return the rows of a shard with classes by number."""
    X = shard.widened(n_features).X
    X = summed(X) if sparse.issparse(X) else X
    _require_finite(X, shard.source)
    numbers = {label: number for number, label in enumerate(classes)}
    labels = np.array([numbers[each] for each in inputs.label_list(shard.y)], dtype=np.int64)
    return Batch(X, labels, per_class[labels])


def _require_finite(X: Any, source: str) -> None:
    stored: Any = X
    values = stored.data if sparse.issparse(X) else stored
    if not np.isfinite(values).all():
        raise KeslerError(
            f"{source} contains NaN or infinity: fill, drop or rescale such values before learning"
        )
