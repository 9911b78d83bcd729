"""Capacity: growth of arrays, and arrays aligned to cache lines."""

from __future__ import annotations

import math
import os
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.errors import KeslerError

CACHE_LINE, LARGE_PAGE = 64, 1 << 21  # bytes
SIMD_WIDTH = CACHE_LINE // 4  # float32 numbers in one
ANY_MACHINE = 1 << 36  # bytes


def enlarged(capacity: int, needed: int, times: float = 2.0) -> int:
    """Return `capacity` if it is at least `needed`, else at least `times` times as much.

    Examples
    --------
    >>> enlarged(32, 20), enlarged(32, 33), enlarged(32, 33, 1.25)
    (32, 64, 48)
    """
    return capacity if needed <= capacity else whole_lines(max(needed, int(times * capacity)))


def whole_lines(n: int) -> int:
    """Return n rounded up to full cache lines of float32 numbers."""
    return -(-n // SIMD_WIDTH) * SIMD_WIDTH


@cache
def machine_memory() -> int:
    """Return the bytes of memory of the machine, or `ANY_MACHINE` if the system does not say.

    Examples
    --------
    >>> machine_memory() > 1 << 27
    True
    """
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return ANY_MACHINE


def require_memory(
    n_bytes: int, what: str, instead: str = "number the features from 0 without large gaps"
) -> None:
    """Raise unless arrays of this size fit into the memory of the machine.

    The system would grant more, and end the process when it is written.

    Parameters
    ----------
    n_bytes : the size of the arrays.
    what : what they hold.
    instead : what to do, beside naming the features.

    Examples
    --------
    >>> require_memory(1 << 60, "a table")
    Traceback (most recent call last):
    ...
    kesler.errors.KeslerError: a table would take 1,073,741,824 GiB, more than the memory of this \
machine: number the features from 0 without large gaps, or name them
    """
    if n_bytes > machine_memory():
        raise KeslerError(
            f"{what} would take {n_bytes / (1 << 30):,.0f} GiB, more than the memory of this "
            f"machine: {instead}, or name them"
        )


def aligned_zeros(*shape: int, dtype: npt.DTypeLike = np.float32) -> npt.NDArray[Any]:
    """Return zeros whose rows begin on cache lines, so that a row spans as few lines as possible.

    Large tables begin on a boundary of 2 MB, so that the system can use pages of that size.
    """
    size, item = math.prod(shape), np.dtype(dtype).itemsize
    unit = LARGE_PAGE if size * item >= 2 * LARGE_PAGE else CACHE_LINE
    flat = np.zeros(size + unit // item, dtype=dtype)
    start = -flat.ctypes.data % unit // item
    return flat[start : start + size].reshape(shape)


KEPT_AT_ONCE = 1 << 16  # rows that are moved together, of which there is a copy


def keep_along(
    array: npt.NDArray[Any], axis: int, kept: npt.NDArray[np.int64], n_before: int
) -> npt.NDArray[Any]:
    """Move some of the first `n_before` rows of an axis, in ascending order, to its beginning.

    Return a view of the places that are free since, which are then zeros. This happens in place,
    since a copy would take as much memory again.

    Examples
    --------
    >>> array = np.arange(5)
    >>> keep_along(array, 0, np.array([1, 3]), 4), array
    (array([0, 0]), array([1, 3, 0, 0, 4]))
    """
    rows = np.moveaxis(array, axis, 0)
    for start in range(0, len(kept), KEPT_AT_ONCE):
        some = kept[start : start + KEPT_AT_ONCE]
        rows[start : start + len(some)] = rows[some]
    free = rows[len(kept) : n_before]
    free[...] = 0
    return np.moveaxis(free, 0, axis)


def return_memory() -> None:
    """Return memory that has been freed to the system, where the C library offers it.

    Otherwise the GNU C library keeps freed arrays of up to 64 MB for later ones.
    """
    trim = _trim()
    if trim is not None:
        trim(0)


@cache
def _trim() -> Any:
    import ctypes

    try:
        return ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # another C library
        return None
