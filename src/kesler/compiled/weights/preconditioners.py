"""Coin betting, and user-defined preconditioners: from the evidence of a weight to its step."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import types

from kesler.codes import Follows
from kesler.compiled.jit.background import recipe
from kesler.compiled.jit.decorators import (
    DOUBLES,
    always_inlined,
    by_address,
    callback_address,
    inlined,
    instantiate,
)
from kesler.compiled.trial.records import ADAPTIVE, LARGEST

# The kinds of user-defined preconditioners and of coin betting, after the kinds in
# `kesler.compiled.trial.records`.
CUSTOM, BETTING = int(Follows.FUNCTION), int(Follows.BETS)

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


@recipe
@cache
def rate_address(function: Callable[..., Any] | None) -> int:
    """Return the address of a user's function, compiled and cached in its own file, or 0."""
    if function is None:
        return 0
    takes_q = function.__code__.co_argcount == 2
    if not takes_q:
        function = instantiate(without_parameters, "f", function, checked=True)
    return callback_address(instantiate(write_rate, "f", function, checked=takes_q), RATE)


# ---- what trials ask of a preconditioner ---------------------------------------------------------


@always_inlined
def gathers_gradients(learner):
    """Return whether the squares of gradients are added to the evidence before the step."""
    return learner.preconditioner.kind == ADAPTIVE or learner.preconditioner.kind == CUSTOM


@always_inlined
def are_plain_steps(learner):
    """Return whether steps are amounts times rates, which the loops over classes compute."""
    return learner.preconditioner.kind != CUSTOM and learner.preconditioner.kind != BETTING


@always_inlined
def steps_follow_views(learner):
    """Return whether steps depend on the views that the amounts are multiples of."""
    return learner.preconditioner.kind == BETTING


@always_inlined
def begin_steps(learner, n_moved, solver):
    """Do what a preconditioner does once before the weights are updated."""
    if learner.preconditioner.kind == BETTING:
        find_largest(learner, n_moved, solver)


# ---- user-defined preconditioners ----------------------------------------------------------------


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


# ---- coin betting --------------------------------------------------------------------------------


@inlined
def find_largest(learner, n_moved, solver):
    """Find the largest coefficient of a class, before the weights are updated."""
    bets = learner.preconditioner.bets
    for i in range(n_moved):
        bets.largest = max(bets.largest, abs(solver.coefficients[solver.moved[i]]))


@inlined
def bet(total, squares, size, wealth):
    """Return the weight of Kempka et al. (2019), Algorithm 2: at most half the wealth is lost."""
    scale = np.sqrt(squares + size * size)
    if not scale > 0:
        return 0.0
    return max(-1.0, min(1.0, total / scale)) * wealth / (2.0 * scale)


@inlined
def betting_step(learner, feature, column, amount, view):
    """Return the change of a weight, and update its sum, wealth and evidence.

    An amount may be larger than any before: the wealth changes by the bet that takes it into
    account. Sizes follow from `view`, the value of the feature, and the largest coefficient, since
    amounts may be nothing but rounding errors. If the step is not finite, it is counted and 0
    returned.
    """
    if view == 0 and amount == 0:
        return np.float32(0)
    own, change = learner.preconditioner, np.float64(amount)
    total, wealth = own.sums[feature, column], 1.0 + own.winnings[feature, column]
    squares = np.float64(own.evidence[feature, column])
    size = np.float64(own.sizes[feature, column])
    before = bet(total, squares, size, wealth)
    size = np.float64(np.float32(max(size, own.bets.largest * abs(np.float64(view)), abs(change))))
    wealth += change * bet(total, squares, size, wealth)
    total += change
    squares = np.float64(np.float32(min(squares + change * change, LARGEST)))
    step = bet(total, squares, size, wealth) - before
    if not (abs(step) <= LARGEST and size <= LARGEST):
        learner.counts.n_not_finite += 1
        return np.float32(0)
    own.sums[feature, column], own.winnings[feature, column] = total, wealth - 1.0
    own.evidence[feature, column], own.sizes[feature, column] = (
        np.float32(squares),
        np.float32(size),
    )
    return np.float32(step)
