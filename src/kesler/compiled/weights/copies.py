"""Copies of tables to where there is more room."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import types

from kesler.compiled.jit.decorators import INT, inlined, kernel
from kesler.compiled.jit.pointers import copy_bytes

SPAN = 1 << 16  # bytes that are touched together, or not


def _signature(number: types.Integer) -> Any:
    source = types.Array(number, 1, "C", readonly=True)
    return types.void(source, INT, types.Array(number, 1, "C"), INT, INT, INT)


@inlined
def holds_any(source, source_step, first, last, n_columns):
    """Whether a run of rows holds a number that is not 0."""
    for i in range(first, last):
        for j in range(i * source_step, i * source_step + n_columns):
            if source[j]:
                return True
    return False


@kernel([_signature(types.int32), _signature(types.int64)])
def copy_rows(source, source_step, target, target_step, n_rows, n_columns):
    """Copy rows to where all is 0, but for spans of memory to which they bring nothing else.

    Rows begin every so many numbers, and are compared and copied as whole numbers of their size.
    """
    size = source.itemsize
    begin, to = source.ctypes.data, target.ctypes.data
    together = max(1, SPAN // (size * target_step))
    for first in range(0, n_rows, together):
        last = min(n_rows, first + together)
        if holds_any(source, source_step, first, last, n_columns):
            for i in range(first, last):
                start, end = begin + size * i * source_step, to + size * i * target_step
                copy_bytes(end, start, size * n_columns)


def copy_filled(source: npt.NDArray[Any], target: npt.NDArray[Any]) -> None:
    """Copy the rows of a table to the first ones of another, which are all 0.

    Both may be columns of larger tables; numbers are rounded to the other's type. Memory that only
    rows of zeros would fill stays untouched, and takes none of the machine's: a table most of whose
    features are yet to be seen grows in half the time.

    Examples
    --------
    >>> table = np.zeros((3, 4), dtype=np.float32)
    >>> copy_filled(np.array([[1, 2], [0, 0]], dtype=np.float32), table[:, 1:3])
    >>> table.tolist()
    [[0.0, 1.0, 2.0, 0.0], [0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]]
    """
    if source.size:
        columns, source = source.shape[1], source.astype(target.dtype, copy=False)
        copy_rows(*_bits(source), *_bits(target), len(source), columns)


def _bits(table: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], int]:
    """Return the bits of a table from its first number to its last, and how far rows are apart."""
    step = table.strides[0] // table.itemsize
    length = (len(table) - 1) * step + table.shape[1]
    flat = np.lib.stride_tricks.as_strided(table, (length,), (table.itemsize,))
    return flat.view(f"i{table.itemsize}"), step
