"""Fields: the declarations of stored arrays, and the functions that follow from them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from operator import attrgetter
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import numpy as np
import numpy.typing as npt

from kesler.errors import KeslerError
from kesler.state.capacity import aligned_zeros

Arrays = dict[str, npt.NDArray[Any]]
Axes = tuple[str | int, ...]


def record(**fields: str) -> np.dtype[Any]:
    """Return the type of a record of named numbers, which compiled code can write.

    Examples
    --------
    >>> counts = np.zeros(1, record(n_trials="i8"))[0]
    >>> counts.n_trials += 1
    >>> int(counts.n_trials)
    1
    """
    return np.dtype((np.record, list(fields.items())))


@dataclass(frozen=True)
class Field:
    """Declaration of a stored array.

    Parameters
    ----------
    dtype : dtype of the array, or of a record of named numbers.
    axes : names or lengths of the axes; empty for a record.
    initial : initial values of a record, in the order of its names.
    when : the attribute of the owner, such as "rule.update", that is true if it has the array, or
        the name that an attribute contains, such as "bets in preconditioner.keeps", "" if it always
        has; without the array, the axes without a fixed length have length 0.
    saved : whether a model file holds the array, cut to the part of each axis in use.
    at_least : minimum of valid values, None for any.
    at_most : the maximum of valid values, or the axis whose length in use it is, "" for any.
    index_into : the axis that the values are indices of, "" if they are not indices.
    mixed : how the arrays of learners trained separately are combined: their "mean", weighted by
        shares, their "sum", since all began alike, or the "largest" values.
    aligned : whether the rows, of float32, begin on cache lines.
    fill : the method of the owner that writes initial values other than 0, "" if there is none.
    allows_nan : whether NaN is a valid value, one that is missing.
    new : whether files of earlier versions lack the array, which is then 0.
    """

    dtype: Any
    axes: Axes = ()
    initial: tuple[float, ...] = ()
    when: str = ""
    saved: bool = True
    at_least: float | None = None
    at_most: str | int = ""
    index_into: str = ""
    mixed: Literal["mean", "sum", "largest"] = "sum"
    aligned: bool = False
    fill: str = ""
    allows_nan: bool = False
    new: bool = False

    def exists(self, owner: Any) -> bool:
        """Return whether the owner has the array."""
        name, _, attribute = self.when.rpartition(" in ")
        found: Any = not attribute or attrgetter(attribute)(owner)
        return name in found if name else bool(found)

    def limits(self, lengths: Mapping[str, int]) -> tuple[float | None, int | None]:
        """Return the minimum and the maximum of valid values, for these lengths in use."""
        if self.index_into:
            return 0, lengths[self.index_into] - 1
        most = self.at_most
        return self.at_least, (lengths[most] if isinstance(most, str) else most) if most else None

    def zeros(self, shape: tuple[int, ...]) -> npt.NDArray[Any]:
        """Return a new array of zeros, or an array of one record with its initial values."""
        if not self.axes:
            found = np.zeros(1, dtype=self.dtype)
            if self.initial:
                found[0] = self.initial
            return found
        return aligned_zeros(*shape) if self.aligned else np.zeros(shape, dtype=self.dtype)


@dataclass(frozen=True)
class Given:
    """Declaration of an array that is computed from the parts of a learner and not stored.

    Parameters
    ----------
    dtype : dtype of the array.
    n_axes : number of axes.
    """

    dtype: Any
    n_axes: int = 1


Declared = Field | Given | type


@cache
def declared_in(group: type) -> Mapping[str, Declared]:
    """Return the declarations of a compiled record by name, in order.

    A declaration is a `Field`, a `Given`, the class of a nested record, or `int` or `float` for a
    number.
    """
    hints = get_type_hints(group, include_extras=True)
    return {
        name: get_args(hint)[1] if get_origin(hint) is Annotated else hint
        for name, hint in hints.items()
        if name in group._fields  # type: ignore[attr-defined]
    }


@cache
def flattened(group: type, prefix: str = "") -> Mapping[str, Field | Given | type]:
    """Return the declarations of a record and of its nested records, by dotted names."""
    found: dict[str, Declared] = {}
    for name, kind in declared_in(group).items():
        key = prefix + name
        found |= flattened(kind, key + ".") if is_nested(kind) else {key: kind}
    return found


def is_nested(kind: Any) -> bool:
    """Return whether a declaration is the class of a nested record."""
    return isinstance(kind, type) and hasattr(kind, "_fields")


@cache
def fields_of(group: type) -> Mapping[str, Field]:
    """Return the stored fields of a record and of its nested records, by dotted names."""
    return {name: kind for name, kind in flattened(group).items() if isinstance(kind, Field)}


def converted(group: type, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings and computed arrays, by dotted names, with the types of compiled code.

    Numbers become int64 or float64, so that interpreted code gives the same bits.
    """
    kinds, numbers = flattened(group), {int: np.int64, float: np.float64}
    return {
        name: np.ascontiguousarray(value, dtype=kind.dtype)
        if isinstance(kind := kinds[name], Given)
        else numbers[kind](value)  # type: ignore[index]
        for name, value in values.items()
    }


def bind(group: type, values: Mapping[str, Any], prefix: str = "") -> Any:
    """Return the record that compiled code takes, made of values by dotted names.

    An array of one record becomes this record; a nested record may be among the values.
    """
    found = [
        bind(nested, values, key + ".")
        if nested is not None and key not in values
        else values[key][0]
        if is_record
        else values[key]
        for key, nested, is_record in _lines(group, prefix)
    ]
    return group(*found)


@cache
def _lines(group: type, prefix: str) -> list[tuple[str, type | None, bool]]:
    """Return the dotted name of each entry, and how `bind` finds its value."""
    return [
        (
            prefix + name,
            kind if is_nested(kind) else None,  # type: ignore[misc]
            isinstance(kind, Field) and not kind.axes,
        )
        for name, kind in declared_in(group).items()
    ]


def array_of(numbers: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the values of a record as a plain array, which a model file can hold."""
    if numbers.dtype.names is None:
        return numbers
    return np.array(numbers[0].item(), dtype=_plain(numbers.dtype))


def number_type(field: Field) -> np.dtype[Any]:
    """Return the dtype of a field in a model file."""
    return _plain(np.dtype(field.dtype))


def _plain(dtype: np.dtype[Any]) -> np.dtype[Any]:
    names = dtype.names
    return dtype if names is None else np.result_type(*(dtype[name] for name in names))


def allocated(fields: Mapping[str, Field], owner: Any, lengths: Mapping[str, int]) -> Arrays:
    """Return new arrays for the fields; zeros take no memory before they are written."""
    return {name: field.zeros(shape_of(field, owner, lengths)) for name, field in fields.items()}


def size_of(fields: Mapping[str, Field], owner: Any, lengths: Mapping[str, int]) -> int:
    """Return the bytes of the arrays that `allocated` returns."""
    shapes = ((field, shape_of(field, owner, lengths)) for field in fields.values())
    return sum(math.prod(shape) * np.dtype(field.dtype).itemsize for field, shape in shapes)


def shape_of(field: Field, owner: Any, lengths: Mapping[str, int]) -> tuple[int, ...]:
    """Return the shape of a field for axes of these lengths."""
    if not field.exists(owner):
        return tuple(0 if isinstance(axis, str) else axis for axis in field.axes)
    return tuple(lengths[axis] if isinstance(axis, str) else axis for axis in field.axes)


def put(array: npt.NDArray[Any], target: npt.NDArray[Any]) -> None:
    """Copy an array to the beginning of a larger one, or plain values into a record."""
    if target.dtype.names is None:
        target[tuple(map(slice, array.shape))] = array
    else:
        target[0] = tuple(array.tolist())


# ---- validation of model files -------------------------------------------------------------------


def checked(
    fields: Mapping[str, Field],
    owner: Any,
    lengths: Mapping[str, int],
    arrays: Mapping[str, npt.NDArray[Any]],
    prefix: str,
) -> Arrays:
    """Return the arrays of a model file that belong to the fields, after validation.

    Raises
    ------
    KeslerError
        If an array is missing or does not fit its field.
    """
    return {
        name: valid_array(prefix + name, arrays, field, shape_of(field, owner, lengths), lengths)
        for name, field in fields.items()
    }


def valid_array(
    name: str,
    arrays: Mapping[str, npt.NDArray[Any]],
    field: Field,
    shape: tuple[int, ...],
    lengths: Mapping[str, int],
) -> npt.NDArray[Any]:
    """Return the array of a model file that belongs to a field, after validation.

    Raises
    ------
    KeslerError
        If it is missing, its dtype or shape differs from the expected one, or a value is not
        finite, below the minimum of the field or above its maximum.
    """
    if field.new and name not in arrays:
        return array_of(field.zeros(shape))
    if name not in arrays:
        raise damaged(f"{name} is missing")
    array, kind = arrays[name], number_type(field)
    wanted = shape if field.axes else (len(np.dtype(field.dtype).names or ()),)
    if array.shape != wanted or array.dtype != kind:
        raise damaged(
            f"{name} is an array of {array.dtype} of shape {array.shape}, not of {kind} of shape "
            f"{wanted}, which its classes and features require"
        )
    if not array.size:
        return array
    least, most = field.limits(lengths)
    if array.dtype.kind == "f" and not is_finite(array, or_missing=field.allows_nan):
        raise damaged(f"{name} holds numbers that are not finite")
    if least is not None and array.min() < least:
        raise damaged(f"{name} holds {array.min()}, and the minimum is {least:g}")
    if most is not None and array.max() > most:
        raise damaged(f"{name} holds {array.max()}, and the maximum is {most}")
    return array


def is_finite(values: npt.NDArray[Any], *, or_missing: bool = False) -> bool:
    """Return whether all values are finite, or NaN if that is allowed.

    Examples
    --------
    >>> is_finite(np.array([1.0, np.nan])), is_finite(np.array([1.0, np.nan]), or_missing=True)
    (False, True)
    """
    return not np.isinf(values).any() if or_missing else bool(np.isfinite(values).all())


def require_lists(
    name: str, starts: npt.NDArray[np.integer[Any]], n_items: int | None = None
) -> None:
    """Raise unless these are the positions of lists that follow each other, up to the last item."""
    whole = n_items is None or starts[-1] == n_items
    if starts[0] != 0 or (np.diff(starts) < 0).any() or not whole:
        raise damaged(f"{name} are not the positions of lists that follow each other")


def damaged(reason: str) -> KeslerError:
    """Return the error for a model file whose arrays are missing or inconsistent."""
    return KeslerError(
        f"the model's {reason}: the file is damaged or was changed; use an earlier copy or train "
        "again"
    )
