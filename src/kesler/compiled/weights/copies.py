"""Copies of tables into larger ones."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import types

from kesler.compiled.jit.decorators import INT, inlined, kernel
from kesler.compiled.jit.pointers import copy_bytes

SPAN = 1 << 16  # bytes that are either copied together or not touched


def _signature(number: types.Integer) -> Any:
    source = types.Array(number, 1, "C", readonly=True)
    return types.void(source, INT, types.Array(number, 1, "C"), INT, INT, INT)


@inlined
def holds_any(source, source_step, first, last, n_columns):
    """Return whether a range of rows holds a number that is not 0."""
    for i in range(first, last):
        for j in range(i * source_step, i * source_step + n_columns):
            if source[j]:
                return True
    return False


@kernel([_signature(types.int32), _signature(types.int64)])
def copy_rows(source, source_step, target, target_step, n_rows, n_columns):
    """Copy rows to a target of zeros, except spans of memory that would receive only zeros.

    The steps are the distances of rows, in numbers; these are compared and copied as integers.
    """
    size = source.itemsize
    source_address, target_address = source.ctypes.data, target.ctypes.data
    together = max(1, SPAN // (size * target_step))
    for first in range(0, n_rows, together):
        last = min(n_rows, first + together)
        if holds_any(source, source_step, first, last, n_columns):
            for i in range(first, last):
                source_row, target_row = (
                    source_address + size * i * source_step,
                    target_address + size * i * target_step,
                )
                copy_bytes(target_row, source_row, size * n_columns)


def copy_filled(source: npt.NDArray[Any], target: npt.NDArray[Any]) -> None:
    """Copy the rows of a table to the first rows of another, which must be 0.

    Both may be columns of larger tables; numbers are converted to the type of the target. Memory
    that would receive only rows of zeros is not touched, so that it takes no physical memory: a
    table grows in half the time if most of its features are yet to be seen.

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
    """Return a table as integers, from its first number to its last, and the distance of rows."""
    step = table.strides[0] // table.itemsize
    length = (len(table) - 1) * step + table.shape[1]
    flat = np.lib.stride_tricks.as_strided(table, (length,), (table.itemsize,))
    return flat.view(f"i{table.itemsize}"), step
