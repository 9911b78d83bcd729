"""Validation of matrices: sparse ones are checked before any library reads their arrays."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.data.sparse_rows import is_sparse
from kesler.errors import KeslerError

COMPRESSED = {"csr": ("row", 0), "csc": ("column", 1), "bsr": ("block row", 0)}
"""Compressed formats: what each list of entries is, and the axis along which lists are stored."""
TEXTS = re.compile("could not convert string|arrays of bytes/strings")
"""What scikit-learn says of texts in place of numbers."""
MOST = 2**31 - 1
"""The largest number of rows or columns, which int32 can hold."""
INDEX_TYPES = [(np.dtype(kind), np.dtype(kind)) for kind in (np.int32, np.int64)]


def validate_data(estimator: Any, X: Any, *y: Any, **options: Any) -> Any:
    """Validate inputs as scikit-learn's function of this name, after :func:`well_formed`.

    SciPy and scikit-learn read and write memory outside the arrays of malformed matrices.
    """
    from sklearn.utils import validation

    checked = canonical(well_formed(X)) if is_sparse(X) else unmasked(X)
    try:
        return validation.validate_data(estimator, checked, *map(unmasked, y), **options)
    except OverflowError as error:
        raise KeslerError(f"X holds an integer that no number can hold ({error})") from error
    except ValueError as error:
        if not TEXTS.search(str(error)):
            raise
        raise KeslerError(
            f"X holds texts, and {type(estimator).__name__} reads its columns as numbers here "
            f"({error}): encode them as numbers; OnlineClassifier also learns texts and categories "
            "of a data frame that has them from the first row on"
        ) from error


def unmasked(values: Any) -> Any:
    """Return a masked array with NaN or None in place of what is masked; others as they are.

    Examples
    --------
    >>> unmasked(np.ma.array([1, 2], mask=[False, True])), unmasked([1, 2])
    (array([ 1., nan]), [1, 2])
    """
    if not isinstance(values, np.ma.MaskedArray) or not values.mask.any():
        return values
    missing: Any = np.nan if values.dtype.kind in "biuf" else None
    return np.where(values.mask, missing, values.data)


def well_formed(matrix: Any, name: str = "X") -> Any:
    """Return a matrix, after a check that a sparse one has no index out of range or odd lists.

    Matrices that are not sparse are not checked. Costs O(number of entries).

    Raises
    ------
    KeslerError
        If an array of the matrix does not agree with its shape or with the other arrays, or holds
        no numbers.

    Examples
    --------
    >>> from scipy import sparse
    >>> matrix = sparse.csr_array([[0.0, 2.0]])
    >>> well_formed(matrix) is matrix
    True
    >>> matrix.indices[0] = 7
    >>> well_formed(matrix)
    Traceback (most recent call last):
    ...
    kesler.errors.KeslerError: X is a malformed sparse matrix: its indices must lie between 0 and \
1, but one is 7: correct the arrays it was made from
    """
    if not is_sparse(matrix):
        return matrix
    _require_shape(matrix, name)
    if matrix.format in COMPRESSED:
        _require_lists(matrix, name)
        return _of_supported_types(matrix)
    if matrix.format == "coo":
        _require_numbers(matrix.data, name)
        for axis, indices in enumerate(matrix.coords):
            _require_same_length(indices, matrix.data, name)
            _require_below(indices, matrix.shape[axis], name)
    elif matrix.format == "lil":
        _require_lists_of_objects(matrix, name)
    return matrix


def _of_supported_types(matrix: Any) -> Any:
    """Return a compressed matrix; SciPy has no functions for arrays of some types."""
    kinds = (matrix.indices.dtype, matrix.indptr.dtype)
    if kinds in INDEX_TYPES and matrix.data.dtype != np.float16:
        return matrix
    short = matrix.data.dtype == np.float16
    data = matrix.data.astype(np.float32) if short else matrix.data
    arrays = data, matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
    return type(matrix)(arrays, shape=matrix.shape)


def canonical(matrix: Any) -> Any:
    """Return a well-formed matrix in CSR format, with increasing indices in each row.

    SciPy's own flags may be outdated: it does not notice that an array was replaced.
    """
    from scipy import sparse

    csr = sparse.csr_array(matrix)
    indices, indptr = csr.indices[: csr.indptr[-1]], csr.indptr
    increases = indices[1:] > indices[:-1]
    between = indptr[(indptr > 0) & (indptr < len(indices))] - 1  # a row ends, another begins
    increases[between] = True
    data = csr.data[: len(indices)]
    if increases.all():
        return sparse.csr_array((data, indices, indptr), shape=csr.shape)
    copied = sparse.csr_array((data.copy(), indices.copy(), indptr.copy()), shape=csr.shape)
    copied.sum_duplicates()
    return copied


def _require_shape(matrix: Any, name: str) -> None:
    if matrix.ndim > 2:
        raise KeslerError(f"{name} is a sparse array of {matrix.ndim} axes: give one of two")
    if min(matrix.shape, default=0) < 0 or max(matrix.shape, default=0) > MOST:
        raise _malformed(name, f"its shape is {matrix.shape}, and {MOST:,} is the maximum")


def _require_lists(matrix: Any, name: str) -> None:
    """Check the arrays `indptr`, `indices` and `data` of a compressed matrix."""
    what, axis = COMPRESSED[matrix.format]
    block = matrix.blocksize if matrix.format == "bsr" else (1, 1)
    shape = [n // size for n, size in zip((1, *matrix.shape)[-2:], block, strict=True)]
    indptr = matrix.indptr
    _require_numbers(matrix.data, name)
    _require_integers(indptr, "indptr", name)
    if indptr.shape != (shape[axis] + 1,):
        raise _malformed(
            name,
            f"its indptr has the shape {indptr.shape}, and a matrix of {shape[axis]} {what}s needs "
            f"({shape[axis] + 1},)",
        )
    _require_same_length(matrix.indices, matrix.data, name)
    if indptr[0] != 0 or indptr[-1] > len(matrix.indices) or (indptr[1:] < indptr[:-1]).any():
        raise _malformed(
            name,
            f"its indptr must begin with 0, never decrease and end with at most "
            f"{len(matrix.indices)}, the number of its indices",
        )
    _require_below(matrix.indices[: indptr[-1]], shape[1 - axis], name)


def _require_lists_of_objects(matrix: Any, name: str) -> None:
    n_rows, n_columns = (1, *matrix.shape)[-2:]
    if len(matrix.rows) != n_rows or len(matrix.data) != n_rows:
        raise _malformed(name, f"it has not as many lists as its {n_rows} rows")
    for indices, values in zip(matrix.rows, matrix.data, strict=True):
        _require_same_length(np.asarray(indices), np.asarray(values), name)
        if indices:
            _require_below(np.asarray(indices), n_columns, name)


def _require_same_length(indices: npt.NDArray[Any], data: npt.NDArray[Any], name: str) -> None:
    if indices.ndim != 1 or data.ndim < 1 or len(indices) != len(data):
        raise _malformed(
            name,
            f"its indices have the shape {indices.shape} and its data {data.shape}: there must be "
            "as many of each",
        )


def _require_below(indices: npt.NDArray[Any], n: int, name: str) -> None:
    _require_integers(indices, "indices", name)
    if not indices.size:
        return
    least, most = indices.min(), indices.max()
    if least < 0 or most >= n:
        odd = least if least < 0 else most
        raise _malformed(name, f"its indices must lie between 0 and {n - 1}, but one is {odd}")


def _require_numbers(data: npt.NDArray[Any], name: str) -> None:
    if data.dtype.kind not in "biufc":
        raise _malformed(name, f"its data are of the type {data.dtype}, not numbers")


def _require_integers(array: npt.NDArray[Any], what: str, name: str) -> None:
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "iu":
        kind = getattr(array, "dtype", type(array).__name__)
        raise _malformed(name, f"its {what} must be integers, not {kind}")


def _malformed(name: str, reason: str) -> KeslerError:
    return KeslerError(
        f"{name} is a malformed sparse matrix: {reason}: correct the arrays it was made from"
    )
