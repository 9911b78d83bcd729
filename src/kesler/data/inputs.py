"""Validation of the inputs of estimators."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.data.labels import NARROW, classes_of, decimals, is_missing, shortest
from kesler.data.matrices import unmasked, validate_data, well_formed
from kesler.data.ratings import Ratings
from kesler.data.rows import MAX_FEATURES, Rows, Vocabulary
from kesler.data.sparse_rows import as_float32, is_sparse
from kesler.errors import KeslerError

MOST_WEIGHT = 1 << 20
LARGEST = float(np.finfo(np.float32).max)
LARGEST_EXACT = float(1 << 24)  # up to it, float32 holds all whole numbers
ROWS_COMPARED, MOST_MERGED = 1 << 16, 0.01
BLOCK_ENTRIES = 1 << 20  # dense rows are converted to entries in blocks of about 8 MB

Merged = Callable[[list[int]], None]


def holds_names(X: Any) -> bool:
    """Return whether X is one mapping of feature names to values, or a list of them."""
    if is_sparse(X):  # scipy's DOK format is a dict
        return False
    return isinstance(X, Mapping) or (
        isinstance(X, (list, tuple)) and len(X) > 0 and isinstance(X[0], Mapping)
    )


def array_rows(
    estimator: Any, X: Any, *, reset: bool, takes_missing: bool, merged: Merged | None = None
) -> Rows | npt.NDArray[np.float32]:
    """Validate an array, sparse matrix or data frame; return rows if sparse, else float32.

    `merged` is called as `measured` does.
    """
    checked = _validated(X, estimator, reset=reset)
    if is_sparse(checked):
        rows = Rows.from_sparse(checked)
        rows.require_finite()
        return rows
    return measured(checked, takes_missing=takes_missing, merged=merged)


def measured(
    X: Any, *, takes_missing: bool, merged: Merged | None = None
) -> npt.NDArray[np.float32]:
    """Return an array as float32; raise if it holds infinity, or NaN unless `takes_missing`.

    `merged` is called with the numbers of the columns that `are_merged` names, if there are some.
    """
    array = as_float32(X)
    require_values(array, takes_missing=takes_missing)
    if merged is not None and array is not X and len(array) > 1:
        largest = np.fmax(np.fmax.reduce(array), -np.fmin.reduce(array))
        large = np.flatnonzero(largest > LARGEST_EXACT).tolist()
        found = [j for j in large if are_merged(X[:, j])]
        if found:
            merged(found)
    return array


def are_merged(column: npt.NDArray[Any]) -> bool:
    """Return whether float32 merges large numbers of a column: over 1 % of the different ones.

    Of the first 65,536 numbers, those up to 16,777,216 are not compared: float32 holds 7 of their
    digits. Few of many continuous numbers are equal by chance, which loses nothing.

    Examples
    --------
    >>> are_merged(np.array([1.7e9, 1.7e9 + 1])), are_merged(np.array([1.5, 1.5 + 1e-9, 1e30]))
    (True, False)
    """
    some = column[:ROWS_COMPARED]
    large = some[np.abs(some) > LARGEST_EXACT]
    n_different = len(np.unique(large))
    return n_different - len(np.unique(as_float32(large))) > MOST_MERGED * n_different


def is_plain(X: Any) -> bool:
    """Return whether scikit-learn, which is slow to import, would accept a table unchanged."""
    return type(X) is np.ndarray and X.ndim == 2 and X.dtype.kind in "biuf" and X.size > 0


def _validated(X: Any, estimator: Any, *, reset: bool) -> Any:
    return validate_data(
        estimator,
        X,
        accept_sparse="csr",
        dtype="numeric",
        ensure_all_finite=False,
        reset=reset,
    )


def is_dense(data: Rows | npt.NDArray[np.float32]) -> bool:
    """Return whether the rows list every feature."""
    return data.dense if isinstance(data, Rows) else True


def blocks(data: Rows | npt.NDArray[np.float32], ratings: Ratings | None = None) -> Iterator[Rows]:
    """Yield the rows in blocks, in order, with their ratings."""
    if isinstance(data, Rows):
        yield replace(data, ratings=ratings)
        return
    step = max(1, BLOCK_ENTRIES // max(1, data.shape[1]))
    for start in range(0, len(data), step):
        part = slice(start, start + step)
        rows = Rows.from_dense(data[part])
        yield rows if ratings is None else replace(rows, ratings=ratings[part])


def parts_of(rows: Any, n_numbers: int) -> Iterator[Any]:
    """Yield parts of rows for which so many numbers of each row fit into a block; others whole."""
    if not isinstance(rows, Rows):
        yield rows
        return
    step = max(1, BLOCK_ENTRIES // max(1, n_numbers))
    for start in range(0, max(1, len(rows)), step):
        yield rows[start : start + step] if step < len(rows) else rows


def apart(X: Any, *, rated: bool) -> tuple[Any, Ratings | None]:
    """Return the attributes and the ratings in X.

    If `rated`, mappings are ratings, not features. Ratings without attributes give rows without
    features.
    """
    if rated and isinstance(X, np.ndarray) and X.ndim == 3:
        raise KeslerError(
            f"X has the shape {X.shape}, but does not say which classes its columns rate: give "
            "kesler.Ratings.from_dense(X, labels=...)"
        )
    ratings = Ratings.from_sparse_rows(X) if rated and holds_names(X) else X
    if not isinstance(ratings, Ratings):
        return X, None
    attributes = ratings.attributes
    alone = replace(ratings, attributes=None)
    return (Rows.empty(len(ratings)) if attributes is None else attributes), alone


def only_row(attributes: Any) -> Any:
    """Return the row of a list of one mapping or of an array of one row; else the argument."""
    if holds_names(attributes) and not isinstance(attributes, Mapping) and len(attributes) == 1:
        return attributes[0]
    is_table = isinstance(attributes, np.ndarray) and attributes.ndim == 2
    return attributes[0] if is_table and len(attributes) == 1 else attributes


def require_rated(n_rows: int, ratings: Ratings | None) -> None:
    """Raise if there are ratings, but not for each row."""
    if ratings is not None and len(ratings) != n_rows:
        raise KeslerError(
            f"the ratings are of {len(ratings)} rows, but their attributes of {n_rows}: give as "
            "many of each"
        )


def named_rows(X: Any, vocabulary: Vocabulary, *, learn: bool) -> Rows:
    """Return rows of mappings {feature name: value}.

    If `learn`, new names are added to the vocabulary; otherwise they get numbers beyond it.
    """
    entries = [X] if isinstance(X, Mapping) else X
    n_before = len(vocabulary)
    for entry in () if learn else entries:
        _require_text(entry)
    try:
        if learn:
            rows = vocabulary.rows_learnt(entries)
        else:
            n_features = len(vocabulary)
            rows = Rows.from_sparse_rows(map(vocabulary.numbered, entries), n_features)
        rows.require_finite()
        _require_text(vocabulary.since(n_before))
    except (TypeError, ValueError, AttributeError) as error:
        vocabulary.forget_from(n_before)
        raise KeslerError(
            f"a row of named features must map names to finite numbers ({error}): turn text and "
            "categories into indicator features such as {'colour=red': 1}, or give columns={} from "
            "the first row on if these are rows of a table"
        ) from None
    return rows


def require_entries(entries: Any, *, takes_missing: bool) -> None:
    """Raise unless rows map names to numbers that float32 can hold, or NaN if `takes_missing`."""
    for row, entry in enumerate(entries):
        for name, value in entry.items():
            if not isinstance(name, str):
                raise KeslerError(
                    f"row {row}: the feature name {name!r} is not text: give {{str(name): value, "
                    "...}"
                )
            if not (-LARGEST <= value <= LARGEST or (takes_missing and value != value)):
                raise KeslerError(
                    f"row {row}, feature {name!r} is NaN, infinity or too large for float32: fill, "
                    "drop or rescale such values before learning"
                )


def framed_rows(X: Any, vocabulary: Vocabulary, *, absent: float, takes_missing: bool) -> Rows:
    """Return rows of mappings that list every name, `absent` where one is not given."""
    entries, names = [X] if isinstance(X, Mapping) else X, vocabulary.indices
    n_rows, width = len(entries), len(names)
    for entry in entries:
        _require_text(entry)
    cells = [entry.get(name, absent) for entry in entries for name in names]
    values = cells if {*map(type, cells)} <= {float, int} else _numbers_of(cells) or cells
    lengths, indices = [0, *[width] * n_rows], [*range(width)] * n_rows
    rows = Rows.from_lists(lengths, indices, values, width, dense=True)
    require_values(rows.values.reshape(n_rows, width), takes_missing=takes_missing)
    return rows


def require_framed(X: Any, vocabulary: Vocabulary) -> None:
    """Raise if a mapping names what is no column of the data frame of the training."""
    for row, entry in enumerate([X] if isinstance(X, Mapping) else X):
        unknown = next((name for name in entry if name not in vocabulary.indices), None)
        if unknown is not None:
            raise KeslerError(
                f"row {row} names the feature {unknown!r}, which is not a column of the data frame "
                "that this model learnt from"
            )


def _require_text(names: Iterable[Any]) -> None:
    if not {*map(type, names)} <= {str}:
        for name in names:
            if not isinstance(name, str):
                raise KeslerError(
                    f"the feature name {name!r} is not text: give {{str(name): value, ...}}"
                )


def named_cells(x: Any) -> Any:
    """Return a row of a data frame or a named tuple as a mapping of names; others as they are.

    Examples
    --------
    >>> from pandas import DataFrame, Series
    >>> named_cells(Series({"size": 2.0})), named_cells([2.0])
    ({'size': 2.0}, [2.0])
    >>> [named_cells(row) for row in DataFrame({"size": [2.0]}).itertuples(index=False)]
    [{'size': 2.0}]
    """
    kind = type(x)
    as_mapping = getattr(x, "_asdict", None) if issubclass(kind, tuple) else None
    if as_mapping is not None:
        return as_mapping()
    if not (hasattr(kind, "to_dict") and hasattr(kind, "index") and not hasattr(kind, "columns")):
        return x
    return x.to_dict() if all(isinstance(name, str) for name in x.index) else x


def positional_row(x: Any, width: int | None, *, takes_missing: bool) -> Rows:
    """Return one row from an array of shape (n_features,); a width of None is unknown."""
    try:
        array = np.asarray(unmasked(x))
    except ValueError as error:
        raise KeslerError(f"a row must hold numbers ({error})") from None
    if array.dtype.kind == "O" and (numbers := _numbers_of(array.ravel().tolist())) is not None:
        array = np.array(numbers).reshape(array.shape)
    if array.dtype.kind not in "biuf":
        raise KeslerError(f"a row must hold numbers, not {array.dtype}: {x!r:.60}")
    array = as_float32(array)
    if array.ndim != 1:
        raise KeslerError(
            f"one row must be a mapping or an array of shape (n_features,), not {array.shape}: for "
            "several rows use partial_fit and predict"
        )
    if width is not None and len(array) != width:
        raise KeslerError(
            f"the row has {len(array)} features, but this model expects {width} features as input"
        )
    require_values(array[None], takes_missing=takes_missing)
    return Rows.from_dense(array[None])


def _numbers_of(objects: list[Any]) -> list[float] | None:
    """Return objects as numbers, NaN where one is missing; None if some are no numbers."""
    from kesler.data.schema.cells import UnfitError, plain

    try:
        cells = [plain(each) for each in objects]
        numbers = [
            math.nan if cell is None else float(cell)
            for cell in cells
            if cell is None or isinstance(cell, (int, float))
        ]
    except (UnfitError, OverflowError):  # what is no number, or larger than any float
        return None
    return numbers if len(numbers) == len(cells) else None


def listed_features(x: Any) -> tuple[npt.NDArray[Any], npt.NDArray[Any]] | None:
    """Return indices and values if x is a pair of arrays or one sparse row, None if it is neither.

    Raises
    ------
    KeslerError
        If x is a sparse matrix of several rows.
    """
    if type(x) is tuple and len(x) == 2 and all(isinstance(part, np.ndarray) for part in x):
        return x
    if not is_sparse(x):
        return None
    from scipy import sparse

    row = sparse.csr_array(well_formed(x if x.ndim == 2 else x.reshape(1, -1), "the row"))
    if row.shape[0] != 1:
        raise KeslerError(
            f"one sparse row must be of shape (1, n_features), not {row.shape}: for several rows "
            "use partial_fit and predict"
        )
    row.sum_duplicates()
    return row.indices, row.data


def listed_row(indices: npt.NDArray[Any], values: npt.NDArray[Any], width: int | None) -> Rows:
    """Return one row from the features that are not zero; a width of None is unknown."""
    if indices.ndim != 1 or indices.shape != values.shape:
        raise KeslerError(
            f"a row (indices, values) has arrays of the shapes {indices.shape} and "
            f"{values.shape}: give as many of each, of shape (n_non_zeros,)"
        )
    if indices.dtype.kind not in "iu" or values.dtype.kind not in "biuf":
        raise KeslerError(
            f"a row (indices, values) has arrays of {indices.dtype} and {values.dtype}: give whole "
            "numbers for the indices, and numbers for the values"
        )
    order = np.argsort(indices, kind="stable")
    indices, values = indices[order], as_float32(values[order])
    least, most = (int(indices[0]), int(indices[-1])) if len(indices) else (0, -1)
    limit = MAX_FEATURES if width is None else width
    if least < 0 or most >= limit:
        raise KeslerError(
            f"the row lists feature {least if least < 0 else most}, but this model expects "
            f"{limit} features as input, numbered from 0"
        )
    twice = np.flatnonzero(np.diff(indices) == 0)
    if len(twice):
        raise KeslerError(
            f"the row lists feature {indices[twice[0]]} twice: give each once, with the sum of its "
            "values if that is what they mean"
        )
    indptr = np.array([0, len(indices)], dtype=np.int64)
    n_features = most + 1 if width is None else width
    rows = Rows(indptr, indices.astype(np.int32), values, n_features, dense=False)
    rows.require_finite()
    return rows


def count_rows(X: Any) -> int:
    """Return the number of rows of X; one mapping is one row."""
    if holds_names(X):
        return 1 if isinstance(X, Mapping) else len(X)
    return int(X.shape[0])


def label_list(y: Any) -> list[Any]:
    """Return labels as a list of the classes that they name; a column is flattened with a warning.

    A list is not converted to an array, which would silently turn numbers among text into text, and
    columns of pandas, polars and Arrow keep their integers and booleans beside missing values.

    Raises
    ------
    KeslerError
        If there are no labels, or one is missing.

    Examples
    --------
    >>> label_list([" spam", np.str_("work")]), label_list(np.array([1, 2]))
    (['spam', 'work'], [1, 2])
    """
    if y is None:
        raise KeslerError(
            "requires y to be passed, but the target y is None: give one label for each row"
        )
    labels = classes_of(_as_list(y))
    try:
        row = labels.index(None)
    except ValueError:
        return labels
    raise KeslerError(f"row {row} of y: label None is no class: leave out rows without a label")


def _as_list(y: Any) -> list[Any]:
    """Return a column of values as a list of Python objects."""
    if isinstance(y, (list, tuple)):
        return list(y)
    if _n_axes(y) == 2 and hasattr(y, "columns"):
        _column(y)  # warns, or raises if there are several columns
        return _as_list(y[y.columns[0]])
    own = getattr(y, "to_pylist", None) or getattr(y, "to_list", None) or getattr(y, "tolist", None)
    if own is not None and not isinstance(getattr(y, "dtype", None), np.dtype) and _n_axes(y) == 1:
        found: list[Any] = own()
        kind = NARROW.get(str(getattr(y, "dtype", None) or getattr(y, "type", None)))
        if kind is None:
            return found
        return [each if is_missing(each) else shortest(kind(each)) for each in found]
    y = unmasked(y)
    array = y if type(y) is np.ndarray and y.ndim == 1 and y.dtype.kind != "c" else _column(y)
    return list(array) if array.dtype.kind in "mM" else decimals(array)


def _n_axes(y: Any) -> int:
    """Return the number of axes of values; arrays of Arrow, which do not say it, have one."""
    return len(getattr(y, "shape", (0,)))


def _column(y: Any) -> npt.NDArray[Any]:
    from sklearn.utils import column_or_1d

    column: npt.NDArray[Any] = column_or_1d(y, warn=True)
    return column


def require_rows(X: Sized) -> None:
    """Raise if there are no rows."""
    if not len(X):
        raise KeslerError("X has 0 rows, while a minimum of 1 is required: give rows")


def require_lengths(n_rows: int, labels: Sized) -> None:
    """Raise unless there is one label for each row."""
    if n_rows != len(labels):
        raise KeslerError(
            f"Found input variables with inconsistent numbers of samples: X has {n_rows} rows and "
            f"y {len(labels)} labels"
        )


def require_width(rows: Rows, width: int | None, *, more: bool) -> None:
    """Raise unless rows fit a model of `width` features; None allows any number.

    Dense rows must have exactly that many features; sparse rows at most as many, unless `more` is
    true, so that the others are ignored.
    """
    too_many = rows.n_features > (width or 0) and not more
    if width is not None and (too_many or (rows.dense and rows.n_features != width)):
        raise KeslerError(
            f"the rows have {rows.n_features} features, but this model expects {width}: give rows "
            "of that width"
        )


def intercept_value(intercept: Any) -> float:
    """Return the value of the constant feature."""
    if not (isinstance(intercept, Real) and math.isfinite(intercept)):
        raise KeslerError(
            f"intercept={intercept!r} must be a finite number: it is the value of a feature that "
            "every row is given, 0 for none"
        )
    return float(intercept)


def row_weights(sample_weight: Any, n_rows: int) -> npt.NDArray[np.float64] | None:
    """Return the weights as float64 of shape (n_rows,), None if there are none."""
    if sample_weight is None:
        return None
    try:
        weights = np.array(sample_weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise KeslerError(f"sample_weight must hold numbers ({error})") from None
    if weights.ndim == 0:
        weights = np.full(n_rows, weights)
    if weights.shape != (n_rows,):
        raise KeslerError(
            f"sample_weight has shape {weights.shape}, but there are {n_rows} rows: give one "
            "weight for each row"
        )
    refused = ~((weights == 0) | ((weights >= 1 / MOST_WEIGHT) & (weights <= MOST_WEIGHT)))
    if refused.any():
        row = int(np.flatnonzero(refused)[0])
        raise KeslerError(
            f"sample_weight of row {row} is {weights[row]}: the weight of a row must be 0, "
            f"or between 1/{MOST_WEIGHT:,} and {MOST_WEIGHT:,}, since sums are kept as float32"
        )
    return weights


def weighted_mean(values: Any, sample_weight: Any) -> float:
    """Return the mean over rows, each with its weight; raise if no row has any.

    Examples
    --------
    >>> weighted_mean([1.0, 0.0], [3.0, 1.0])
    0.75
    """
    weights = row_weights(sample_weight, len(values))
    if weights is not None and not weights.any():
        raise KeslerError("sample_weight is 0 for all rows: give one row a weight at least")
    return float(np.average(values, weights=weights))


def require_values(array: npt.NDArray[np.float32], *, takes_missing: bool) -> None:
    """Raise if an array of rows holds infinity, or NaN unless `takes_missing`."""
    refused = np.isinf(array) if takes_missing else ~np.isfinite(array)
    if not refused.any():
        return
    row, column = np.argwhere(refused)[0]
    if np.isnan(array[row, column]):
        raise KeslerError(
            f"row {row}, feature {column} is NaN, and this learner takes no missing "
            'values: fill or drop them, or choose preprocessing="z-scores" or the default learner'
        )
    raise KeslerError(
        f"row {row}, feature {column} is infinity or too large for float32: drop or "
        "rescale such values"
    )


def texts_of(X: Any) -> list[str] | None:
    """Return X as a list of texts, None if its rows are anything else.

    Examples
    --------
    >>> texts_of(("win cash", "lunch")), texts_of([{"win": 1.0}])
    (['win cash', 'lunch'], None)
    """
    if isinstance(X, np.ndarray) and (X.ndim != 1 or X.dtype.kind not in "OU"):
        return None
    if isinstance(X, (list, tuple)) and not (X and isinstance(X[0], str)):
        return None
    if isinstance(X, (Rows, Ratings, Mapping)) or is_sparse(X):
        return None
    from kesler.data.schema.records import texts_in

    return texts_in(X)
