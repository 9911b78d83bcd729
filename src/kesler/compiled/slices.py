"""Slices: short arrays that are cut out of one, in compiled code.

A trial of one row took less time than to ask for forty arrays, and to count who refers to them.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import config, types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array

from kesler.compiled.lanes import LANES

# Pieces begin at multiples of LANES, so that no two of float32 share a cache line.


def length_of(shapes: Any) -> int:
    """Return how long an array must be that pieces of these shapes are cut out of.

    A shape is a length, or a tuple of lengths.
    """
    return sum(-(-math.prod(_lengths(shape)) // LANES) * LANES for shape in shapes)


def cut(array: Any, shapes: Any) -> Any:
    """Return pieces of an array, of these shapes.

    They have no claim to it: the array must be held as long as they are used.
    """
    ends = np.cumsum([length_of((shape,)) for shape in shapes])
    return tuple(
        array[end - length_of((shape,)) :][: math.prod(_lengths(shape))].reshape(_lengths(shape))
        for shape, end in zip(shapes, ends, strict=True)
    )


def _lengths(shape: Any) -> tuple[int, ...]:
    return shape if isinstance(shape, tuple) else (shape,)


if not config.DISABLE_JIT:
    _WORD = ir.IntType(64)

    def _shapes_in(builder: ir.IRBuilder, kinds: Any, shapes: Any) -> list[list[Any]]:
        """Return the lengths of each shape, as LLVM's numbers."""
        found = []
        for i, kind in enumerate(kinds):
            shape = builder.extract_value(shapes, i)
            is_tuple = isinstance(kind, types.BaseTuple)
            found.append(cgutils.unpack_tuple(builder, shape) if is_tuple else [shape])
        return found

    def _size(builder: ir.IRBuilder, shape: list[Any]) -> Any:
        size = _WORD(1)
        for length in shape:
            size = builder.mul(size, length)
        return size

    def _in_lines(builder: ir.IRBuilder, size: Any) -> Any:
        return builder.and_(builder.add(size, _WORD(LANES - 1)), _WORD(-LANES))

    def _length_of(_: Any, shapes: Any) -> Any:
        def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
            total = _WORD(0)
            for shape in _shapes_in(builder, shapes, values[0]):
                total = builder.add(total, _in_lines(builder, _size(builder, shape)))
            return total

        return types.int64(shapes), generate

    def _cut(_: Any, array: Any, shapes: Any) -> Any:
        n_dimensions = [len(each) if isinstance(each, types.BaseTuple) else 1 for each in shapes]
        kinds = types.Tuple([types.Array(array.dtype, n, "C") for n in n_dimensions])

        def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
            whole = context.make_array(array)(context, builder, values[0])
            start, pieces = _WORD(0), []
            for kind, shape in zip(kinds, _shapes_in(builder, shapes, values[1]), strict=True):
                data = builder.gep(whole.data, [start])
                pieces.append(_piece(context, builder, kind, data, shape, whole.itemsize))
                start = builder.add(start, _in_lines(builder, _size(builder, shape)))
            return context.make_tuple(builder, kinds, pieces)

        return kinds(array, shapes), generate

    def _piece(
        context: Any, builder: ir.IRBuilder, kind: Any, data: Any, shape: list[Any], itemsize: Any
    ) -> Any:
        piece = context.make_array(kind)(context, builder)
        strides = [itemsize]
        for length in reversed(shape[1:]):
            strides.insert(0, builder.mul(strides[0], length))
        populate_array(piece, data, shape, strides, itemsize, None)
        return piece._getvalue()

    length_of, cut = intrinsic(_length_of), intrinsic(_cut)
