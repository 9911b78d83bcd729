"""User-defined preconditioners: functions from the evidence of a weight to its step size."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import types

from kesler.compiled.jit.decorators import (
    DOUBLES,
    by_address,
    callback_address,
    inlined,
    instantiate,
)
from kesler.compiled.trial.records import LARGEST

# The kind of a user-defined preconditioner, after the kinds in `kesler.compiled.trial.records`.
CUSTOM = 3

# evidence, parameters, out
RATE = types.void(types.float64, DOUBLES, DOUBLES)
call_rate = by_address(RATE)


def f(*arguments: Any) -> Any:
    """Stand for the user-defined function, which `instantiate` inserts."""
    raise NotImplementedError


def without_parameters(evidence, q):
    """Call an f that takes no parameters."""
    return f(evidence)


def write_rate(evidence, parameters, out):
    """Write the result of an f(evidence, q); if it is not finite, set the fault word."""
    out[0] = np.nan
    try:
        out[0] = f(evidence, parameters[:-1])
    except Exception:
        parameters[-1] = 1.0
    if not abs(out[0]) < np.inf:
        parameters[-1] = 1.0


@cache
def rate_address(function: Callable[..., Any] | None) -> int:
    """Return the address of a user's function, compiled and cached in its own file, or 0."""
    if function is None:
        return 0
    takes_q = function.__code__.co_argcount == 2
    if not takes_q:
        function = instantiate(without_parameters, "f", function, checked=True)
    return callback_address(instantiate(write_rate, "f", function, checked=takes_q), RATE)


@inlined
def custom_step(learner, evidence, amount, out):
    """Return the step for an amount at the user-defined rate, 0 without evidence.

    If the rate is negative, or the step NaN or larger than LARGEST, it is counted and 0 returned.
    """
    if not evidence > 0:
        return np.float32(0)
    preconditioner = learner.preconditioner
    gathered = np.float64(evidence) / learner.decay.row.weight
    call_rate(preconditioner.address, gathered, preconditioner.parameters, out)
    rate = out[0]
    step = np.float64(amount) * rate
    if not (rate >= 0 and abs(step) <= LARGEST):
        learner.counts.n_not_finite += 1
        return np.float32(0)
    return np.float32(step)
