"""Asking for memory before it is read: LLVM's prefetch, as a function of compiled code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import config, types
from numba.core import cgutils
from numba.extending import intrinsic

# Into which of a core's caches, as LLVM numbers them.
FIRST, SECOND = 3, 2


def _ask(builder: ir.IRBuilder, address: Any, cache: int) -> None:
    """Ask for the cache line of an address, to be read, as data."""
    number = ir.IntType(32)
    takes = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, number, number, number])
    prefetch = builder.module.declare_intrinsic("llvm.prefetch", [cgutils.voidptr_t], takes)
    builder.call(prefetch, [address, number(0), number(cache), number(1)])


def _fetcher(cache: int) -> Callable[[Any, int], None]:
    """Return a function that asks for a cache line, to be read soon."""

    def fetch(array: Any, position: int) -> None:
        """Ask for the cache line of a number of an array, counted row by row; do not wait."""

    def _fetch(_: Any, array: Any, position: Any) -> Any:
        def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
            data = context.make_array(array)(context, builder, values[0]).data
            address = builder.bitcast(builder.gep(data, [values[1]]), cgutils.voidptr_t)
            _ask(builder, address, cache)
            return context.get_dummy_value()

        return types.void(array, types.intp), generate

    return fetch if config.DISABLE_JIT else intrinsic(_fetch)


def _address_fetcher() -> Callable[[int], None]:
    """Return a function that asks for what lies at an address."""

    def fetch_at(address: int) -> None:
        """Ask for the cache line of an address; do not wait."""

    def _fetch_at(_: Any, address: Any) -> Any:
        def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
            _ask(builder, builder.inttoptr(values[0], cgutils.voidptr_t), FIRST)
            return context.get_dummy_value()

        return types.void(address), generate

    return fetch_at if config.DISABLE_JIT else intrinsic(_fetch_at)


fetch_near = _fetcher(FIRST)
fetch = _fetcher(SECOND)
fetch_at = _address_fetcher()
