"""Room: arrays that are larger than what they hold, and begin on cache lines."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

CACHE_LINE, LARGE_PAGE = 64, 1 << 21  # bytes
LANES = CACHE_LINE // 4  # float32 numbers in one


def grown(room: int, needed: int, times: float = 2.0) -> int:
    """Return room for `needed`: as it is if it suffices, else at least so many times as much.

    Examples
    --------
    >>> grown(32, 20), grown(32, 33), grown(32, 33, 1.25)
    (32, 64, 48)
    """
    return room if needed <= room else whole_lines(max(needed, int(times * room)))


def whole_lines(n: int) -> int:
    """Return n rounded up to full cache lines of float32 numbers."""
    return -(-n // LANES) * LANES


def aligned_zeros(*shape: int, dtype: npt.DTypeLike = np.float32) -> npt.NDArray[Any]:
    """Return zeros whose rows begin on cache lines, so that a row touches as few as can be.

    Where there are pages of 2 MB, a large table begins on one, so that it is made of no others.
    """
    size, item = math.prod(shape), np.dtype(dtype).itemsize
    unit = LARGE_PAGE if size * item >= 2 * LARGE_PAGE else CACHE_LINE
    flat = np.zeros(size + unit // item, dtype=dtype)
    start = -flat.ctypes.data % unit // item
    return flat[start : start + size].reshape(shape)
