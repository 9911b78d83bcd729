"""SIMD: lines of sixteen numbers, sums of squares, and scratch arrays of whole lines.

LLVM vectorises plain loops too, but tests before each whether the arrays overlap, adds a second
loop for the numbers that do not fill a vector, and may not change the order of a sum. Here lanes
are combined only in reductions, two halves at a time, so that a sum has the same order on every
machine.

Scratch arrays are cut from one allocation: a trial of one row took less time than allocating forty
arrays and counting their references.
"""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import config, types
from numba.extending import intrinsic

from kesler.compiled.jit.decorators import always_inlined, inlined
from kesler.compiled.jit.numba_internals import (
    cgutils,
    lower_builtin,
    models,
    populate_array,
    register_model,
    type_callable,
    value_of,
)

SIMD_WIDTH = 16


@always_inlined
def whole_lines(n: int) -> int:
    """Return n rounded up to whole lines, the length of arrays over classes."""
    return (n + SIMD_WIDTH - 1) // SIMD_WIDTH * SIMD_WIDTH


class Line(types.Type):
    """The type of a line: sixteen numbers of one type."""

    def __init__(self, dtype: types.Float) -> None:
        self.dtype = dtype
        super().__init__(name=f"Line[{dtype}]")


@register_model(Line)
class _Vector(models.PrimitiveModel):
    def __init__(self, manager: Any, line: Line) -> None:
        number = manager.lookup(line.dtype).get_value_type()
        super().__init__(manager, line, ir.VectorType(number, SIMD_WIDTH))


# ---- the code of each operation ------------------------------------------------------------------


def _place(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
    """Return the address of a line in an array, which need not be aligned to a cache line."""
    array = signature.args[0]
    data = context.make_array(array)(context, builder, values[0]).data
    vector = context.get_value_type(Line(array.dtype))
    return builder.bitcast(builder.gep(data, [values[1]]), vector.as_pointer())


def _load(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
    size = signature.args[0].dtype.bitwidth // 8
    return builder.load(_place(context, builder, signature, values), align=size)


def _store(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
    size = signature.args[0].dtype.bitwidth // 8
    builder.store(values[2], _place(context, builder, signature, values), align=size)
    return context.get_dummy_value()


def _spread(_: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
    number = values[-1]
    vector = ir.Constant(ir.VectorType(number.type, SIMD_WIDTH), ir.Undefined)
    first = builder.insert_element(vector, number, ir.Constant(ir.IntType(32), 0))
    return _shuffled(builder, first, [0] * SIMD_WIDTH)


def _shuffled(builder: ir.IRBuilder, vector: Any, lanes: list[int]) -> Any:
    places = ir.Constant(ir.VectorType(ir.IntType(32), len(lanes)), lanes)
    return builder.shuffle_vector(vector, ir.Constant(vector.type, ir.Undefined), places)


def _larger(_: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
    return builder.select(builder.fcmp_ordered(">", *values), *values)


def _sum(_: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
    return builder.fadd(*values)


def _folded(combine: Callable[..., Any]) -> Callable[..., Any]:
    """Return code that combines the lanes, two halves at a time."""

    def code(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
        vector, n = values[0], SIMD_WIDTH
        while n > 1:
            n //= 2
            halves = [_shuffled(builder, vector, list(range(s, s + n))) for s in (0, n)]
            vector = combine(context, builder, signature, halves)
        return builder.extract_element(vector, ir.Constant(ir.IntType(32), 0))

    return code


def _holds(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
    number = _spread(context, builder, signature, values)
    bits = builder.bitcast(builder.fcmp_ordered("==", values[0], number), ir.IntType(SIMD_WIDTH))
    return builder.icmp_unsigned("!=", bits, ir.Constant(bits.type, 0))


def _beyond(_: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
    number, bound, value = values
    nothing = ir.Constant(value.type, None)
    size = builder.select(builder.fcmp_ordered("<", number, nothing), builder.fneg(number), number)
    return builder.select(builder.fcmp_ordered(">", size, bound), value, nothing)


def _first_of(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
    line, n = values[0], builder.trunc(values[1], ir.IntType(32))
    lanes = ir.Constant(ir.VectorType(n.type, SIMD_WIDTH), list(range(SIMD_WIDTH)))
    is_first = builder.icmp_signed("<", lanes, _spread(context, builder, signature, [n]))
    return builder.select(is_first, line, ir.Constant(line.type, None))


def _converted(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
    wider = signature.return_type.dtype.bitwidth > signature.args[0].dtype.bitwidth
    convert = builder.fpext if wider else builder.fptrunc
    return convert(values[0], context.get_value_type(signature.return_type))


# ---- the operations ------------------------------------------------------------------------------


def _compiled(result: Callable[..., Any], code: Callable[..., Any]) -> Callable[[Any], Any]:
    """Give a Python function on arrays of 16 numbers a compiled version on lines.

    `result` returns the type of the result, given those of the arguments.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        def typed(*arguments: Any) -> Any:
            return result(*arguments)(*arguments), code

        takes: dict[int, Callable[..., Any]] = {
            1: lambda context, a: typed(a),
            2: lambda context, a, b: typed(a, b),
            3: lambda context, a, b, c: typed(a, b, c),
        }
        return intrinsic(takes[function.__code__.co_argcount])

    return (lambda function: function) if config.DISABLE_JIT else decorate


@_compiled(lambda array, _: Line(array.dtype), _load)
def load(array: Any, position: int) -> Any:
    """Return the line of an array that begins at a flat index."""
    return array.reshape(-1)[position : position + SIMD_WIDTH].copy()


@_compiled(lambda *_: types.void, _store)
def store(array: Any, position: int, line: Any) -> None:
    """Write a line to the position that `load` reads."""
    array.reshape(-1)[position : position + SIMD_WIDTH] = line


@_compiled(Line, _spread)
def spread(number: Any) -> Any:
    """Return a line with a number in all lanes."""
    return np.full(SIMD_WIDTH, number)


@_compiled(lambda _: Line(types.float64), _converted)
def widen(line: Any) -> Any:
    """Return a line of float32 as float64."""
    return line.astype(np.float64)


@_compiled(lambda _: Line(types.float32), _converted)
def narrow(line: Any) -> Any:
    """Return a line of float64 as float32."""
    return line.astype(np.float32)


@_compiled(lambda line, _: line, _larger)
def larger(line: Any, other: Any) -> Any:
    """Return the larger number of each lane, that of `other` if neither is larger."""
    return np.where(line > other, line, other)


@_compiled(lambda line: line.dtype, _folded(_sum))
def total_of(line: Any) -> Any:
    """Return the sum of the lanes: the halves are added, then their halves, and so on."""
    while len(line) > 1:
        line = line[: len(line) // 2] + line[len(line) // 2 :]
    return line[0]


@_compiled(lambda line: line.dtype, _folded(_larger))
def highest_of(line: Any) -> Any:
    """Return the largest number in the lanes."""
    while len(line) > 1:
        half, other = line[: len(line) // 2], line[len(line) // 2 :]
        line = np.where(half > other, half, other)
    return line[0]


@_compiled(lambda *_: types.boolean, _holds)
def holds(line: Any, number: Any) -> bool:
    """Return whether a lane equals a number."""
    return bool((line == number).any())


@_compiled(lambda number, *_: number, _beyond)
def beyond(number: Any, bound: Any, value: Any) -> Any:
    """Return `value` where |number| exceeds a bound, else 0, for one number or sixteen."""
    return np.where(np.abs(number) > bound, value, np.zeros_like(value))[()]


@_compiled(lambda line, _: line, _first_of)
def first_of(line: Any, n: int) -> Any:
    """Return the line with all but the first n lanes set to 0."""
    return np.where(np.arange(SIMD_WIDTH) < n, line, np.zeros_like(line))


def _operate(operation: Any, code: str) -> None:
    """Define a binary operation of lines with each other and with numbers of their type."""

    @type_callable(operation)
    def _typer(context: Any) -> Any:
        def typed(one: Any, other: Any) -> Any:
            line = one if isinstance(one, Line) else other
            fits = isinstance(line, Line) and {one, other} <= {line, line.dtype}
            return line if fits else None

        return typed

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
        lines = [
            value if isinstance(kind, Line) else _spread(context, builder, signature, [value])
            for kind, value in zip(signature.args, values, strict=True)
        ]
        return getattr(builder, code)(*lines)

    for pair in ((Line, Line), (Line, types.Float), (types.Float, Line)):
        lower_builtin(operation, *pair)(generate)


if not config.DISABLE_JIT:
    _operate(operator.add, "fadd")
    _operate(operator.sub, "fsub")
    _operate(operator.mul, "fmul")
    _operate(operator.truediv, "fdiv")


@inlined
def squared_length(values):
    """Return ||x||^2 in float64."""
    total = 0.0
    for j in range(values.shape[0]):
        total += np.float64(values[j]) * np.float64(values[j])
    return total


@inlined
def squared_length_from(numbers, first, n):
    """Return the sum of the squares of float64 numbers from index `first` to n - 1.

    Lines shorten the chain of dependent additions.
    """
    line, in_lines, total = spread(0.0), first + (n - first) // SIMD_WIDTH * SIMD_WIDTH, 0.0
    for j in range(first, in_lines, SIMD_WIDTH):
        some = load(numbers, j)
        line = line + some * some
    for j in range(in_lines, n):
        total += numbers[j] * numbers[j]
    return total_of(line) + total


@inlined
def largest(phi):
    """Return the largest |phi_j|, NaN if one is NaN.

    The bits of absolute values, read as integers, have the order of the values, with NaN last, and
    LLVM vectorises the maximum of integers.
    """
    bits, most = phi.view(np.int32), np.int32(0)
    for j in range(bits.shape[0]):
        most = max(most, np.int32(bits[j] & np.int32(0x7FFFFFFF)))
    return np.float64(np.int32(most).view(np.float32))


@inlined
def with_power(total, value, times, exponent):
    """Add a number, `times` times, to the sum of powers of a norm, or to the maximum."""
    if times == 0:
        return total
    if exponent == np.inf:
        return max(total, abs(value))
    return total + times * abs(value) ** exponent


@inlined
def squared_norm(total, exponent, factor):
    """Return factor ||d||^2, given the sum of powers of d, or the maximum."""
    if exponent == np.inf:
        return factor * total * total
    return factor * total ** (2.0 / exponent)


# Pieces begin at multiples of SIMD_WIDTH, so that no two pieces of float32 share a cache line.


def length_of(shapes: Any) -> int:
    """Return the length of an array from which pieces of these shapes can be cut.

    A shape is a length, or a tuple of lengths.
    """
    return sum(-(-math.prod(_lengths(shape)) // SIMD_WIDTH) * SIMD_WIDTH for shape in shapes)


def cut(array: Any, shapes: Any) -> Any:
    """Return pieces of an array, of these shapes.

    The pieces hold no reference to the array, which must be kept alive while they are used.
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
        """Return the lengths of each shape as LLVM values."""
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
        return builder.and_(builder.add(size, _WORD(SIMD_WIDTH - 1)), _WORD(-SIMD_WIDTH))

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
        return value_of(piece)

    length_of, cut = intrinsic(_length_of), intrinsic(_cut)
