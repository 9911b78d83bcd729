"""The loops around a Mercer kernel, made once for each function k."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from numba import types

from kesler.compiled.jit import (
    DOUBLES,
    FLOAT_TABLE,
    FLOATS,
    by_address,
    callback_address,
    instantiate,
)

# view, panel, inner products, squared distances, parameters, out
SINGLE = types.void(FLOATS, FLOAT_TABLE, FLOATS, FLOATS, FLOATS, FLOATS)
DOUBLE = types.void(FLOATS, FLOAT_TABLE, DOUBLES, DOUBLES, DOUBLES, DOUBLES)
call_single = by_address(SINGLE)
call_double = by_address(DOUBLE)


def k(*arguments: Any) -> Any:
    """Stand for the function; `instantiate` puts the real one in its place."""
    raise NotImplementedError


def of_products(view, panel, inner, distances, parameters, out):  # type: ignore[no-untyped-def]
    """out[s] = K(view, u_s), told from <view, u_s> and ||view - u_s||^2."""
    q = (parameters[0], parameters[1], parameters[2], parameters[3])
    for s in range(out.shape[0]):
        out[s] = k(inner[s], distances[s], q)


def of_vectors(view, panel, inner, distances, parameters, out):  # type: ignore[no-untyped-def]
    """out[s] = K(view, u_s), u_s the s-th column of the panel."""
    q = (parameters[0], parameters[1], parameters[2], parameters[3])
    for s in range(out.shape[0]):
        out[s] = k(view, panel[: view.shape[0], s], q)


def without_parameters(one, other, q):  # type: ignore[no-untyped-def]
    """Call a k that takes no parameters."""
    return k(one, other)


LOOPS = {"products": of_products, "vectors": of_vectors}


@cache
def kernel_addresses(function: Callable[..., Any], of: str) -> tuple[int, int]:
    """Return the addresses of the loops around k, for scores and, in double, for norms."""
    if function.__code__.co_argcount == 2:
        function = instantiate(without_parameters, "k", function)
    loop = instantiate(LOOPS[of], "k", function)
    return callback_address(loop, SINGLE), callback_address(loop, DOUBLE)
