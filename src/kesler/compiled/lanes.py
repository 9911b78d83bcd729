"""Sixteen numbers as one: what a loop over classes does to a cache line of float32.

LLVM makes vectors of plain loops too, but asks before each whether what it writes might be what it
reads, has a second loop for the numbers that fill no vector, and may not change the order of a sum.
Here lanes never meet but where they are put together, two halves at a time, so that a sum has one
order on every machine.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import config, types
from numba.extending import intrinsic, lower_builtin, models, register_model, type_callable

from kesler.compiled.jit import always_inlined

LANES = 16


@always_inlined
def whole_lines(n: int) -> int:
    """Return n rounded up to whole lines: arrays over classes have room for them."""
    return (n + LANES - 1) // LANES * LANES


class Line(types.Type):
    """Sixteen numbers of one type."""

    def __init__(self, dtype: types.Float) -> None:
        self.dtype = dtype
        super().__init__(name=f"Line[{dtype}]")


@register_model(Line)
class _Vector(models.PrimitiveModel):
    def __init__(self, manager: Any, line: Line) -> None:
        number = manager.lookup(line.dtype).get_value_type()
        super().__init__(manager, line, ir.VectorType(number, LANES))


# ---- the code of each operation ------------------------------------------------------------------


def _place(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
    """Return the address of a line in an array, which need not begin a cache line."""
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
    vector = ir.Constant(ir.VectorType(number.type, LANES), ir.Undefined)
    first = builder.insert_element(vector, number, ir.Constant(ir.IntType(32), 0))
    return _shuffled(builder, first, [0] * LANES)


def _shuffled(builder: ir.IRBuilder, vector: Any, lanes: list[int]) -> Any:
    places = ir.Constant(ir.VectorType(ir.IntType(32), len(lanes)), lanes)
    return builder.shuffle_vector(vector, ir.Constant(vector.type, ir.Undefined), places)


def _larger(_: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
    return builder.select(builder.fcmp_ordered(">", *values), *values)


def _sum(_: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
    return builder.fadd(*values)


def _folded(meet: Callable[..., Any]) -> Callable[..., Any]:
    """Return code that puts the lanes together, two halves at a time."""

    def code(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
        vector, n = values[0], LANES
        while n > 1:
            n //= 2
            halves = [_shuffled(builder, vector, list(range(s, s + n))) for s in (0, n)]
            vector = meet(context, builder, signature, halves)
        return builder.extract_element(vector, ir.Constant(ir.IntType(32), 0))

    return code


def _holds(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
    number = _spread(context, builder, signature, values)
    bits = builder.bitcast(builder.fcmp_ordered("==", values[0], number), ir.IntType(LANES))
    return builder.icmp_unsigned("!=", bits, ir.Constant(bits.type, 0))


def _beyond(_: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
    number, bound, value = values
    nothing = ir.Constant(value.type, None)
    size = builder.select(builder.fcmp_ordered("<", number, nothing), builder.fneg(number), number)
    return builder.select(builder.fcmp_ordered(">", size, bound), value, nothing)


def _first_of(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
    line, n = values[0], builder.trunc(values[1], ir.IntType(32))
    lanes = ir.Constant(ir.VectorType(n.type, LANES), list(range(LANES)))
    is_first = builder.icmp_signed("<", lanes, _spread(context, builder, signature, [n]))
    return builder.select(is_first, line, ir.Constant(line.type, None))


def _converted(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
    wider = signature.return_type.dtype.bitwidth > signature.args[0].dtype.bitwidth
    convert = builder.fpext if wider else builder.fptrunc
    return convert(values[0], context.get_value_type(signature.return_type))


# ---- the operations ------------------------------------------------------------------------------


def _compiled(result: Callable[..., Any], code: Callable[..., Any]) -> Callable[[Any], Any]:
    """Give a function on arrays of 16 numbers, for Python, a twin on lines.

    `result` tells the type of what it returns from those of its arguments.
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
    """Return the line of an array that begins at a number, counted row by row."""
    return array.reshape(-1)[position : position + LANES].copy()


@_compiled(lambda *_: types.void, _store)
def store(array: Any, position: int, line: Any) -> None:
    """Write a line to where `load` would read it."""
    array.reshape(-1)[position : position + LANES] = line


@_compiled(Line, _spread)
def spread(number: Any) -> Any:
    """Return a line of one number."""
    return np.full(LANES, number)


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
    """Return the larger number of each lane, the other's where neither is."""
    return np.where(line > other, line, other)


@_compiled(lambda line: line.dtype, _folded(_sum))
def total_of(line: Any) -> Any:
    """Return the sum of the lanes: the halves are added, then their halves, and so on."""
    while len(line) > 1:
        line = line[: len(line) // 2] + line[len(line) // 2 :]
    return line[0]


@_compiled(lambda line: line.dtype, _folded(_larger))
def highest_of(line: Any) -> Any:
    """Return the largest number of the lanes."""
    while len(line) > 1:
        half, other = line[: len(line) // 2], line[len(line) // 2 :]
        line = np.where(half > other, half, other)
    return line[0]


@_compiled(lambda *_: types.boolean, _holds)
def holds(line: Any, number: Any) -> bool:
    """Whether a lane equals a number."""
    return bool((line == number).any())


@_compiled(lambda number, *_: number, _beyond)
def beyond(number: Any, bound: Any, value: Any) -> Any:
    """Return a value where the size of a number is beyond a bound, else 0; of one number or 16."""
    return np.where(np.abs(number) > bound, value, np.zeros_like(value))[()]


@_compiled(lambda line, _: line, _first_of)
def first_of(line: Any, n: int) -> Any:
    """Return the first n lanes, 0 behind them."""
    return np.where(np.arange(LANES) < n, line, np.zeros_like(line))


def _operate(operation: Any, code: str) -> None:
    """Let lines be added, or whatever it is, to each other and to numbers of their type."""

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
