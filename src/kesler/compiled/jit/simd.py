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
from numba import types
from numba.extending import intrinsic

from kesler.compiled.jit.cache import is_shipping
from kesler.compiled.jit.decorators import IS_INTERPRETED, always_inlined, inlined
from kesler.compiled.jit.numba_internals import (
    cgutils,
    lower_builtin,
    models,
    populate_array,
    register_model,
    register_width,
    type_callable,
    value_of,
)

SIMD_WIDTH = 16
HALF = SIMD_WIDTH // 2


@always_inlined
def whole_lines(n: int) -> int:
    """Return n rounded up to whole lines, the length of arrays over classes."""
    return (n + SIMD_WIDTH - 1) // SIMD_WIDTH * SIMD_WIDTH


@always_inlined
def padded(n: int) -> int:
    """Return n rounded up to whole lines, for loops that LLVM then vectorises without a remainder.

    The interpreter, which would warn of what is computed after the last class, gets n itself.
    """
    return n if IS_INTERPRETED else whole_lines(n)


class Line(types.Type):
    """The type of a line: sixteen numbers of one type, or half as many."""

    def __init__(self, dtype: types.Float, lanes: int = SIMD_WIDTH) -> None:
        self.dtype, self.lanes = dtype, lanes
        super().__init__(name=f"Line[{dtype}, {lanes}]")


@register_model(Line)
class _Vector(models.PrimitiveModel):
    def __init__(self, manager: Any, line: Line) -> None:
        number = manager.lookup(line.dtype).get_value_type()
        super().__init__(manager, line, ir.VectorType(number, line.lanes))


# ---- the code of each operation ------------------------------------------------------------------


def _place(context: Any, builder: ir.IRBuilder, array: Any, values: Any, vector: Any) -> Any:
    """Return the address of a line in an array, which need not be aligned to a cache line."""
    data = context.make_array(array)(context, builder, values[0]).data
    return builder.bitcast(builder.gep(data, [values[1]]), vector.as_pointer())


def _load(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
    array, vector = signature.args[0], context.get_value_type(signature.return_type)
    place = _place(context, builder, array, values, vector)
    return builder.load(place, align=array.dtype.bitwidth // 8)


def _store(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
    array = signature.args[0]
    place = _place(context, builder, array, values, values[2].type)
    builder.store(values[2], place, align=array.dtype.bitwidth // 8)
    return context.get_dummy_value()


def _spread(_: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
    return _filled(builder, values[-1], signature.return_type.lanes)


def _filled(builder: ir.IRBuilder, number: Any, lanes: int) -> Any:
    """Return a vector with a number in all lanes."""
    vector = ir.Constant(ir.VectorType(number.type, lanes), ir.Undefined)
    first = builder.insert_element(vector, number, ir.Constant(ir.IntType(32), 0))
    return _shuffled(builder, first, [0] * lanes)


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
        vector, n = values[0], values[0].type.count
        while n > 1:
            n //= 2
            halves = [_shuffled(builder, vector, list(range(s, s + n))) for s in (0, n)]
            vector = combine(context, builder, signature, halves)
        return builder.extract_element(vector, ir.Constant(ir.IntType(32), 0))

    return code


def _holds(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
    line, lanes = values[0], values[0].type.count
    number = _filled(builder, values[1], lanes)
    bits = builder.bitcast(builder.fcmp_ordered("==", line, number), ir.IntType(lanes))
    return builder.icmp_unsigned("!=", bits, ir.Constant(bits.type, 0))


def _beyond(_: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
    number, bound, value = values
    nothing = ir.Constant(value.type, None)
    size = builder.select(builder.fcmp_ordered("<", number, nothing), builder.fneg(number), number)
    return builder.select(builder.fcmp_ordered(">", size, bound), value, nothing)


def _first_of(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
    line, n = values
    # One form is shipped for all processors: the second, which costs little anywhere.
    if register_width() == 512 and not is_shipping():
        return builder.select(
            _lane_is_below(builder, n, line.type.count), line, ir.Constant(line.type, None)
        )
    bits = ir.VectorType(ir.IntType(signature.args[0].dtype.bitwidth), line.type.count)
    chosen = builder.and_(builder.bitcast(line, bits), _ones_then_zeros(builder, bits, n))
    return builder.bitcast(chosen, line.type)


def _lane_is_below(builder: ir.IRBuilder, n: Any, lanes: int) -> Any:
    """Return for each lane whether its number is below n."""
    n = builder.trunc(n, ir.IntType(32))
    numbers = ir.Constant(ir.VectorType(n.type, lanes), list(range(lanes)))
    return builder.icmp_signed("<", numbers, _filled(builder, n, lanes))


def _ones_then_zeros(builder: ir.IRBuilder, bits: ir.VectorType, n: Any) -> Any:
    """Return ones in the bits of the first n lanes, zeros in the others, read from a table.

    Of a comparison, LLVM would make a masked store where the line goes back to its place, and
    AMD's processors take tens of cycles for one that is not AVX-512's.
    """
    lanes, number = bits.count, bits.element
    name, least, most = f"kesler.{lanes}.{number}", ir.IntType(64)(0), ir.IntType(64)(lanes)
    stored = builder.module.globals.get(name)
    if stored is None:
        kind = ir.ArrayType(number, 2 * lanes)
        stored = ir.GlobalVariable(builder.module, kind, name)
        stored.initializer = ir.Constant(kind, [-1] * lanes + [0] * lanes)
        stored.linkage, stored.global_constant = "internal", True
    n = builder.select(builder.icmp_signed("<", n, least), least, n)
    n = builder.select(builder.icmp_signed(">", n, most), most, n)
    start = cgutils.gep_inbounds(builder, stored, 0, builder.sub(most, n))
    return builder.load(builder.bitcast(start, bits.as_pointer()), align=number.width // 8)


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
        found = intrinsic(takes[function.__code__.co_argcount])
        found.py_func = function  # for interpreted copies of the functions that call it
        return found

    return (lambda function: function) if IS_INTERPRETED else decorate


@_compiled(lambda array, _: Line(array.dtype), _load)
def load(array: Any, position: int) -> Any:
    """Return the line of an array that begins at a flat index."""
    return array.reshape(-1)[position : position + SIMD_WIDTH].copy()


@_compiled(lambda array, _: Line(array.dtype, HALF), _load)
def load_half(array: Any, position: int) -> Any:
    """Return the half of a line that begins at a flat index."""
    return array.reshape(-1)[position : position + HALF].copy()


@_compiled(lambda *_: types.void, _store)
def store(array: Any, position: int, line: Any) -> None:
    """Write a line, or half of one, to the position that it is loaded from."""
    array.reshape(-1)[position : position + len(line)] = line


@_compiled(Line, _spread)
def spread(number: Any) -> Any:
    """Return a line with a number in all lanes."""
    return np.full(SIMD_WIDTH, number)


@_compiled(lambda line: Line(types.float64, line.lanes), _converted)
def widen(line: Any) -> Any:
    """Return a line of float32 as float64."""
    return line.astype(np.float64)


@_compiled(lambda line: Line(types.float32, line.lanes), _converted)
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
    return np.where(np.arange(len(line)) < n, line, np.zeros_like(line))


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
            value
            if isinstance(kind, Line)
            else _filled(builder, value, signature.return_type.lanes)
            for kind, value in zip(signature.args, values, strict=True)
        ]
        return getattr(builder, code)(*lines)

    for pair in ((Line, Line), (Line, types.Float), (types.Float, Line)):
        lower_builtin(operation, *pair)(generate)


if not IS_INTERPRETED:
    _operate(operator.add, "fadd")
    _operate(operator.sub, "fsub")
    _operate(operator.mul, "fmul")
    _operate(operator.truediv, "fdiv")


@always_inlined
def squared(x):
    """Return x * x, which Python's x**2 is not to the last bit."""
    return x * x


@inlined
def squared_length(values):
    """Return ||x||^2 in float64, summed in lines, which shortens the chain of additions."""
    n, line, total = values.shape[0], spread(0.0), 0.0
    in_lines = n // SIMD_WIDTH * SIMD_WIDTH
    for j in range(0, in_lines, SIMD_WIDTH):
        some = widen(load(values, j))
        line = line + some * some
    for j in range(in_lines, n):
        total += np.float64(values[j]) * np.float64(values[j])
    return total_of(line) + total


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


if not IS_INTERPRETED:
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
