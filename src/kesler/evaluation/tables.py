"""Tables: rows of any kind with their labels, in pieces, as methods of any kind take them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.data.inputs import label_list, require_lengths, row_weights
from kesler.data.labels import Label
from kesler.data.ratings import Ratings
from kesler.data.sparse_rows import is_sparse
from kesler.errors import KeslerError


@dataclass(frozen=True, slots=True)
class Table:
    """All rows of a run, with their labels and weights.

    Parameters
    ----------
    X : array, CSR matrix, data frame or list
        The rows; X[start:stop] are some of them.
    labels : list
        The label of each row.
    weights : float64 array of shape (n_rows,) or None
        The weight of each row, above 0; None if all are 1.
    """

    X: Any
    labels: list[Label]
    weights: npt.NDArray[np.float64] | None

    @staticmethod
    def of(X: Any, y: Any, sample_weight: Any = None) -> Table:
        """Return the rows of weight above 0; raise KeslerError if numbers of rows differ.

        Examples
        --------
        >>> Table.of([[1, 2], [3, 4]], ["a", "b"], [1, 0]).X.tolist()
        [[1, 2]]
        """
        rows = _sliceable(X)
        labels = label_list(y)
        n_rows = int(rows.shape[0]) if hasattr(rows, "shape") else len(rows)
        require_lengths(n_rows, labels)
        weights = row_weights(sample_weight, n_rows)
        if weights is None or weights.all():
            return Table(rows, labels, weights)
        kept = np.flatnonzero(weights)
        return Table(_taken(rows, kept), [labels[i] for i in kept], weights[kept])

    def __len__(self) -> int:
        return len(self.labels)

    def rows(self, start: int, stop: int) -> Any:
        """Return some of the rows, in the form of X."""
        return self.X.iloc[start:stop] if hasattr(self.X, "iloc") else self.X[start:stop]

    def each(self, start: int, stop: int) -> Sequence[Any]:
        """Return rows one by one.

        Those of an array are arrays of shape (n_features,), of a sparse matrix sparse matrices of
        one row, of a data frame dictionaries, and of a list its items.
        """
        rows = self.rows(start, stop)
        if hasattr(rows, "iloc"):
            found: list[Any] = rows.to_dict("records")
            return found
        if hasattr(rows, "to_dicts"):  # polars
            return list(rows.to_dicts())
        if is_sparse(rows):
            return [rows[i : i + 1] for i in range(stop - start)]
        return list(rows)

    @property
    def is_dense(self) -> bool:
        """Whether rows list every feature: those of an array or of a data frame of numbers."""
        if isinstance(self.X, (list, Ratings)) or is_sparse(self.X):
            return False
        types = self.X.dtypes if hasattr(self.X, "dtypes") else [self.X.dtype]
        return all(getattr(each, "kind", "f") in "biuf" for each in types)

    @property
    def width(self) -> int:
        """Number of columns of an array, a matrix or a data frame."""
        return int(self.X.shape[1])


def _sliceable(X: Any) -> Any:
    """Return rows in a form of which slices can be taken."""
    if is_sparse(X):
        return X.tocsr()
    if isinstance(X, Mapping):
        return [X]
    if isinstance(X, (list, tuple)):
        named = len(X) > 0 and isinstance(X[0], (Mapping, str))
        return list(X) if named else np.asarray(X)
    return X


def _taken(rows: Any, kept: npt.NDArray[np.int64]) -> Any:
    if isinstance(rows, list):
        return [rows[i] for i in kept]
    if isinstance(rows, Ratings):
        return rows.take(kept)
    return rows.iloc[kept] if hasattr(rows, "iloc") else rows[kept]


@dataclass(frozen=True, slots=True)
class Piece:
    """Consecutive rows of a table.

    Parameters
    ----------
    table : Table
        The table.
    start, stop : int
        The bounds of the rows in it.
    """

    table: Table
    start: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.start

    def __getitem__(self, part: slice) -> Piece:
        """Return a slice of the piece."""
        start, stop, _ = part.indices(len(self))
        return Piece(self.table, self.start + start, self.start + stop)

    @property
    def X(self) -> Any:
        """The rows, in the form of the table."""
        return self.table.rows(self.start, self.stop)

    @property
    def labels(self) -> list[Label]:
        """The label of each row."""
        return self.table.labels[self.start : self.stop]

    @property
    def weights(self) -> npt.NDArray[np.float64] | None:
        """The weight of each row; None if all are 1."""
        weights = self.table.weights
        return None if weights is None else weights[self.start : self.stop]


def data_frame(columns: dict[str, Any]) -> Any:
    """Return columns as a pandas data frame; raise if pandas is not installed."""
    try:
        import pandas as pd
    except ImportError as error:
        raise KeslerError("to_frame needs pandas: install it with pip install pandas") from error
    return pd.DataFrame(columns)
