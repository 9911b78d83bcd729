"""Prefetching: what the next trial reads is on its way while this one computes.

A row's features stand anywhere in tables that no cache holds: a trial would wait for memory longer
than it computes.
"""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import config, types
from numba.core import cgutils
from numba.extending import intrinsic

from kesler.compiled.jit import by_learner, inlined
from kesler.compiled.learner import LANES, OFFSET, WIDTH

# Tables smaller than this stay in a core's own cache, in numbers.
LEAST = 1 << 17
# Beyond so many cache lines in a row the machine fetches the next by itself.
MOST_LINES = 8


def fetch(table, row, column):
    """Ask for the cache line of table[row, column], and do not wait for it."""


if not config.DISABLE_JIT:

    def _fetch(_: Any, table: Any, row: Any, column: Any) -> Any:
        def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
            array = context.make_array(table)(context, builder, values[0])
            width = builder.extract_value(array.shape, 1)
            place = builder.add(builder.mul(values[1], width), values[2])
            address = builder.bitcast(builder.gep(array.data, [place]), cgutils.voidptr_t)
            number = ir.IntType(32)
            takes = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, number, number, number])
            prefetch = builder.module.declare_intrinsic("llvm.prefetch", [cgutils.voidptr_t], takes)
            # To be read, into the core's second cache, as data.
            builder.call(prefetch, [address, number(0), number(2), number(1)])
            return context.get_dummy_value()

        return types.void(table, types.intp, types.intp), generate

    fetch = intrinsic(_fetch)


@by_learner
def fetch_ahead(learner, rows, t, k):
    """Ask for what a trial on row t will read, if there is one."""
    too_few = learner.weights.shape[0] * learner.weights.shape[1] < LEAST
    if too_few or t + 1 >= rows.indptr.shape[0]:
        return
    indices = rows.indices[rows.indptr[t] : rows.indptr[t + 1]]
    width = 0
    for part in range(learner.parts.shape[0]):
        width = max(width, learner.parts[part, OFFSET] + learner.parts[part, WIDTH])
    fetch_rows(learner.weights, indices, width)
    if learner.evidence.shape[0]:
        fetch_rows(learner.evidence, indices, width)
    for layer in range(learner.statistics.shape[0]):
        fetch_rows(learner.statistics[layer], indices, k)
    if learner.pooled.shape[1]:
        fetch_rows(learner.pooled, indices, 1)


@inlined
def fetch_rows(table, indices, width):
    """Ask for the first columns of the features of a row."""
    last = min(width, MOST_LINES * LANES)
    for j in range(indices.shape[0]):
        for column in range(0, last, LANES):
            fetch(table, indices[j], column)
