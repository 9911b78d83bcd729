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


def require_memory(n_bytes: int, what: str) -> None:
    """Raise unless arrays of this size fit into the memory of the machine.

    The system would grant more, and end the process when it is written.

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
            "machine: number the features from 0 without large gaps, or name them"
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
