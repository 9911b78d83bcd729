"""Changes of weights: plainly added, or through a link from sums that are kept beside them."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import types

from kesler.compiled.jit import (
    DOUBLES,
    INT,
    always_inlined,
    by_address,
    by_learner,
    callback_address,
    inlined,
    instantiate,
)
from kesler.compiled.learner import (
    FACTOR,
    GIVEN,
    GROUPED,
    KIND,
    LINK_SCALE,
    MAP,
    N_MET_FEATURES,
    N_MET_HYPOTHESES,
    NOT_FINITE,
    OFFSET,
    PEAK,
    PER_CLASS,
    REFERENCE,
    STALE,
    SUM,
    TRIALS,
)
from kesler.compiled.rates import step_in_metric

# What a link is asked for, as in `kesler.links.link`.
WEIGHT, MASS, SCALE, EXTENT, ROOM = np.arange(5)  # no literals, as in `learner.py`
# When a sum has fallen to this share of its peak, little of it is left but rounding.
LEAST = 1e-6

# task, v, reference, parameters, out
LINK = types.void(INT, types.float64, types.float64, DOUBLES, DOUBLES)
call_link = by_address(LINK)


def f(*arguments: Any) -> Any:
    """Stand for the link's function; `instantiate` puts the real one in its place."""
    raise NotImplementedError


def geometry_task(task, v, reference, parameters, out):
    """Write the answer of one of our own links."""
    out[0] = f(task, v, reference, parameters)


def plain_task(task, v, reference, parameters, out):
    """Write the answer of a user's f(v), which has neither scale nor reference."""
    out[0] = f(v) if task == WEIGHT else 1.0


def plain_task_with_parameters(task, v, reference, parameters, out):
    """Write the answer of a user's f(v, q)."""
    out[0] = f(v, parameters) if task == WEIGHT else 1.0


@cache
def link_address(function: Callable[..., Any], *, custom: bool) -> int:
    """Return the address of a link's function, compiled and cached in its own file."""
    template = geometry_task
    if custom:
        takes_parameters = function.__code__.co_argcount == 2
        template = plain_task_with_parameters if takes_parameters else plain_task
    return callback_address(instantiate(template, "f", function), LINK)


@inlined
def ask(learner, task, v, out):
    """Return what the link says of a number."""
    call_link(learner.link[0], task, v, learner.numbers[REFERENCE], learner.link_parameters, out)
    return out[0]


@always_inlined
def change(learner, walk, feature, column, amount, out):
    """Add to a weight, or to the sum that it follows from. Weights change here and below alone."""
    amount = step_in_metric(learner, walk, feature, column, amount)
    if learner.states.shape[0] == 0:
        learner.weights[feature, column] += amount
    elif learner.link[0] == 0:
        # What a step adds to the mean of all weights so far depends on when it was taken.
        before = np.float64(learner.counters[TRIALS])
        learner.states[0, feature, column] += before * np.float64(amount)
        learner.weights[feature, column] += amount
    else:
        change_sum(learner, feature, column, np.float64(amount), out)


@always_inlined
def change_plainly(weights, column, indices, phi, coefficient):
    """Change the weights of one hypothesis as `change` does on a plain walk.

    With nothing read from the learner, which might change with every weight for all that LLVM
    knows, a pass of PA-I takes a sixth less time.
    """
    for j in range(indices.shape[0]):
        weights[indices[j], column] += coefficient * phi[j]


@inlined
def change_sum(learner, feature, column, amount, out):
    """Add to the sum behind a weight and let the weight follow."""
    old = learner.states[0, feature, column]
    new = old + amount
    if learner.link[1] == LINK_SCALE and ask(learner, ROOM, new, out) == 0:
        # Its weight would be out of range beside the others': `settle` finds a new reference.
        learner.states[0, feature, column] = new
        learner.numbers[STALE] = 1
        return
    weight = ask(learner, WEIGHT, new, out)
    if not abs(weight) < np.inf:
        learner.counters[NOT_FINITE] += 1
        return
    if learner.link[1] == LINK_SCALE:
        numbers = learner.numbers
        numbers[SUM] += ask(learner, MASS, new, out) - ask(learner, MASS, old, out)
        numbers[PEAK] = max(numbers[PEAK], numbers[SUM])
    learner.states[0, feature, column] = new
    learner.weights[feature, column] = np.float32(weight)


@by_learner
def settle(learner, out):
    """Bring the scale up to date, and all weights if they have lost touch with their reference."""
    if learner.link[1] != LINK_SCALE:
        return
    numbers = learner.numbers
    if numbers[STALE] != 0 or not numbers[SUM] >= LEAST * numbers[PEAK]:
        renew(learner, out)
    numbers[FACTOR] = ask(learner, SCALE, numbers[SUM], out)


@inlined
def renew(learner, out):
    """Compute reference, weights and their sum anew from the sums behind them."""
    numbers, sums = learner.numbers, learner.states[0]
    largest, n_met = 0.0, 0
    for i in range(sums.shape[0]):
        for part in range(learner.parts.shape[0]):
            if learner.is_met[i, part]:
                start = learner.parts[part, OFFSET]
                for c in range(start, start + learner.met[part, N_MET_HYPOTHESES]):
                    extent = ask(learner, EXTENT, sums[i, c], out)
                    if n_met == 0 or extent > largest:
                        largest = extent
                    n_met += 1
    numbers[REFERENCE] = largest
    for i in range(sums.shape[0]):
        for c in range(sums.shape[1]):
            learner.weights[i, c] = np.float32(ask(learner, WEIGHT, sums[i, c], out))
    total = 0.0
    for i in range(sums.shape[0]):
        for part in range(learner.parts.shape[0]):
            if learner.is_met[i, part]:
                start = learner.parts[part, OFFSET]
                for c in range(start, start + learner.met[part, N_MET_HYPOTHESES]):
                    total += ask(learner, MASS, sums[i, c], out)
    numbers[SUM], numbers[PEAK], numbers[STALE] = total, total, 0


@by_learner
def meet_features(learner, indices, k, scratch):
    """Let the weights of features and sub-experts that are new join the sum of the link."""
    if learner.link[1] != LINK_SCALE:
        return
    views = scratch.views
    mass = ask(learner, MASS, 0.0, scratch.out)
    for part in range(learner.parts.shape[0]):
        if learner.parts[part, MAP] == GIVEN:
            for r in range(k):
                for j in range(views.begins[r], views.ends[r]):
                    meet_feature(learner, views.indices[j], part, mass)
        else:
            for j in range(indices.shape[0]):
                meet_feature(learner, indices[j], part, mass)
    learner.numbers[PEAK] = max(learner.numbers[PEAK], learner.numbers[SUM])


@inlined
def meet_feature(learner, feature, part, mass):
    """Let the weights that a part has for a feature join the sum, if it is new."""
    if not learner.is_met[feature, part]:
        learner.is_met[feature, part] = True
        learner.met[part, N_MET_FEATURES] += 1
        learner.numbers[SUM] += mass * learner.met[part, N_MET_HYPOTHESES]


@by_learner
def meet_hypotheses(learner, y, out):
    """Let the weights of the hypotheses that class y brings along join the sum of the link."""
    if learner.link[1] != LINK_SCALE:
        return
    mass = ask(learner, MASS, 0.0, out)
    for part in range(learner.parts.shape[0]):
        n_before = learner.met[part, N_MET_HYPOTHESES]
        n = n_before
        if learner.parts[part, KIND] == PER_CLASS:
            n = y + 1
        elif learner.parts[part, KIND] == GROUPED:
            # Groups are numbered as their classes come.
            for m in range(learner.member_starts[part, y], learner.member_starts[part, y + 1]):
                n = max(n, learner.members[m] + 1)
        learner.met[part, N_MET_HYPOTHESES] = n
        learner.numbers[SUM] += mass * ((n - n_before) * learner.met[part, N_MET_FEATURES])
    learner.numbers[PEAK] = max(learner.numbers[PEAK], learner.numbers[SUM])
