"""Arrays in a .npz file: X, dense or in compressed sparse rows, and the labels y."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kesler.data.labels import decimals
from kesler.data.rows import Rows
from kesler.data.sparse_rows import as_float32, is_sparse
from kesler.errors import KeslerError
from kesler.readers.reader import BadRow, Example, Reader, readable
from kesler.readers.records import listed

LABELS_OF = {"X": "y", "X_train": "y_train"}
DAMAGE = (
    OSError,
    EOFError,
    ValueError,
    KeyError,
    RuntimeError,
    MemoryError,
    zipfile.BadZipFile,
    zlib.error,
)


def npz_reader(path: str, require_labels: bool) -> Reader:
    """Read NumPy arrays, X and y or X_train and y_train.

    X is a two-dimensional array, or is stored as the pieces of a scipy CSR matrix: ``X_data``,
    ``X_indices``, ``X_indptr`` and ``X_shape``. The labels keep the type of y.
    """
    with readable(path, "a .npz file without pickles", *DAMAGE):
        return array_reader(*_load(path, require_labels))


def array_reader(X: Any, labels: Sequence[Any]) -> Reader:
    """Read the rows of an array or a scipy CSR array, with their labels."""
    in_sparse_rows = is_sparse(X)

    def parse(row: int) -> Example:
        values = X.data[X.indptr[row] : X.indptr[row + 1]] if in_sparse_rows else X[row]
        odd = ~np.isfinite(as_float32(values)) & (in_sparse_rows | ~np.isnan(values))
        if odd.any():
            raise BadRow("a value is not a finite number that float32 can hold")
        return Example(labels[row], row)

    def gather(entries: Sequence[int]) -> Rows:
        picked = X[list(entries)]
        return Rows.from_sparse(picked) if in_sparse_rows else Rows.from_dense(picked)

    return Reader("row", ((row + 1, row) for row in range(X.shape[0])), parse, gather)


def _load(path: str, require_labels: bool) -> tuple[Any, list[Any]]:
    if not zipfile.is_zipfile(path):
        raise zipfile.BadZipFile("it is no archive of arrays")
    # NumPy does not close a file that it opened itself and cannot read.
    with open(path, "rb") as file, np.load(file, allow_pickle=False) as arrays:
        for name, label_name in LABELS_OF.items():
            if name in arrays or f"{name}_indptr" in arrays:
                X = _matrix(path, name, arrays)
                return X, _labels(path, label_name, X.shape[0], arrays, require_labels)
        raise KeslerError(
            f"{path} holds neither X nor X_train, whole or in CSR pieces: it has {listed(arrays)}"
        )


def _matrix(path: str, name: str, arrays: Mapping[str, Any]) -> Any:
    X = arrays[name] if name in arrays else _csr(name, arrays)
    if X.ndim != 2 or X.dtype.kind not in "biuf":
        raise KeslerError(
            f"{path}: {name} has the shape {X.shape} and the type {X.dtype}, but it should hold "
            "numbers in two dimensions, rows and features"
        )
    return X


def _csr(name: str, arrays: Mapping[str, Any]) -> Any:
    from scipy import sparse

    data, indices, indptr = (arrays[f"{name}_{piece}"] for piece in ("data", "indices", "indptr"))
    X = sparse.csr_array((data, indices, indptr), shape=arrays[f"{name}_shape"].tolist())
    X.check_format(full_check=True)
    X.sum_duplicates()
    return X


def _labels(
    path: str, name: str, n_rows: int, arrays: Mapping[str, Any], required: bool
) -> list[Any]:
    if name not in arrays and not required:
        return [None] * n_rows
    if name not in arrays or arrays[name].shape != (n_rows,):
        raise KeslerError(
            f"{path}: there should be an array {name} with one label for each of the {n_rows} "
            f"rows; the file has {listed(f'{key} {arrays[key].shape}' for key in arrays)}"
        )
    return decimals(arrays[name])
