"""The signature of an update rule, as the trial calls it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from numba import types

from kesler.compiled.jit import DOUBLE_TABLE, DOUBLES, by_address, callback_address

# parameters, weight, losses, squared_norms, gram, steps
RULE = types.void(DOUBLES, types.float64, DOUBLES, DOUBLES, DOUBLE_TABLE, DOUBLES)
call_rule = by_address(RULE)

# parameters, losses, gradient
GRADIENT = types.void(DOUBLES, DOUBLES, DOUBLES)
call_gradient = by_address(GRADIENT)


@cache
def rule_address(function: Callable[..., Any]) -> int:
    """Return the address of a rule, compiled and cached in its own file."""
    return callback_address(function, RULE)


@cache
def gradient_address(function: Callable[..., Any] | None) -> int:
    """Return the address of the gradient of a rule's loss, 0 if it is 1 along each constraint."""
    return 0 if function is None else callback_address(function, GRADIENT)
