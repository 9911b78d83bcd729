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


@cache
def rule_address(function: Callable[..., Any]) -> int:
    """Return the address of a rule, compiled and cached in its own file."""
    return callback_address(function, RULE)
