"""Facts of learners: what their kernels assume, so that other branches are not compiled.

Compiling all branches of a trial takes half a minute. Learners of the most common kinds therefore
have kernels of their own; all others share kernels with every branch. The kernels of a learner are
chosen when its record is bound, by the values in the record: a fact that does not hold cannot be
assumed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from numbers import Integral
from operator import attrgetter
from typing import Any

import numpy as np

from kesler.compiled.jit import pruning  # noqa: F401  # which reads facts
from kesler.compiled.jit.pointers import Facts
from kesler.compiled.trial.preprocessing import COUNTS, NONE
from kesler.compiled.trial.records import (
    ADAPTIVE,
    ALL,
    CONTRAST,
    DISTANCE,
    EUCLIDEAN,
    F1,
    GROUPED,
    INHERIT,
    ITSELF,
    LEARN,
    LOSSES,
    NO_SCALE,
    NO_UNIT,
    NORMS,
    ONE_VS_REST,
    OWN_SCALE,
    PER_CLASS,
    PREDICTED,
    REGISTER,
    ROWS,
    SCORE,
    SHARED,
    VIOLATED_VS_REST,
    WORST,
)
from kesler.compiled.weights.second_order import SECOND_ORDER

# Stands for every address in the facts: those of functions are larger than all codes.
ADDRESS = 2
ADDRESSES = {"parts.map.each", "link.address", "algorithm.address", "settings.predictor"}


def facts(**values: Iterable[int]) -> Facts:
    """Return facts; double underscores in names stand for dots.

    Examples
    --------
    >>> print(facts(rule__selection={0}, ranks__order__shape__0={0}))
    [('ranks.order.shape.0', [0]), ('rule.selection', [0])]
    """
    return Facts((name.replace("__", "."), frozenset(each)) for name, each in values.items())


LINEAR = {
    "link__address": {0},
    "link__scale_source": {NO_SCALE},
    "algorithm__address": {0},
    "settings__predictor": {0},
    "weights__states__shape__0": {0},
    "ranks__order__shape__0": {0},
    "rule__margins__shape__1": {1},
    "rule__scales_steps": {0},
    "settings__has_costs": {0},
    "settings__decision": {SCORE, F1},
    "decay__growth": {1},
    "link__exponent": {2},
    "link__is_exact": {0},
}
"""Neither links nor algorithms, averages, ranks, costs, trees or decay."""

WITHOUT_MAPS = {
    "statistics__kinds__shape__0": {0},
    "statistics__sums__shape__0": {0},
    "statistics__pooled__shape__1": {0},
    "statistics__moments__shape__1": {0},
}
"""No statistics of classes."""

WITHOUT_STEP_SIZES = {
    "preconditioner__kind": {EUCLIDEAN},
    "preconditioner__unit": {NO_UNIT},
    "preconditioner__is_paced": {0},
    "preconditioner__evidence__shape__0": {0},
}
"""The same step size for every weight."""

ONE_PAIR = facts(
    **LINEAR,
    settings__on_new_class={REGISTER, LEARN},
    parts__kind__each={PER_CLASS},
    parts__map__each={ITSELF},
    **WITHOUT_MAPS,
    rule__selection={PREDICTED, WORST},
    rule__requires={LOSSES, NORMS},
    **WITHOUT_STEP_SIZES,
    preprocessing__method={NONE},
)
"""Perceptron, Passive-Aggressive and others of one constraint, with weights for each class."""

SHARED_PAIR = facts(
    **LINEAR,
    settings__ends_at_faults={0},
    settings__on_new_class={REGISTER, LEARN},
    parts__kind__each={PER_CLASS, SHARED},
    parts__map__each={ITSELF, ADDRESS},
    rule__selection={PREDICTED, WORST},
    rule__requires={LOSSES, NORMS},
    **WITHOUT_STEP_SIZES,
    preprocessing__method={NONE},
)
"""The same rules, with weights for each class and shared ones."""

WORDS = facts(
    **LINEAR,
    settings__ends_at_faults={0},
    settings__on_new_class={LEARN, INHERIT},
    parts__kind__each={PER_CLASS, SHARED},
    parts__map__each={ITSELF, ADDRESS},
    statistics__kinds__each={CONTRAST},
    statistics__moments__shape__1={0},
    rule__selection={VIOLATED_VS_REST},
    rule__requires={LOSSES, NORMS},
    preconditioner__kind={ADAPTIVE},
    preconditioner__unit={NO_UNIT},
    preconditioner__is_paced={0},
    preprocessing__method={COUNTS},
)
"""The default for rows that list only non-zeros (:mod:`kesler.online.defaults`)."""

EXPANDED = {
    "settings__ends_at_faults": {0},
    "settings__on_new_class": {LEARN},
    "parts__kind__each": {PER_CLASS},
    "parts__map__each": {ITSELF},
    **WITHOUT_MAPS,
    "rule__requires": {LOSSES, NORMS},
    "preconditioner__is_paced": {0},
    "preprocessing__method": {NONE},
}
"""Weights for each class, over rows that are expanded before the trial."""

MEASUREMENTS = facts(
    **LINEAR,
    **EXPANDED,
    rule__selection={ALL},
    preconditioner__kind={ADAPTIVE},
    preconditioner__unit={ROWS},
)
"""The first member of the default for rows that list every feature."""

LEAST_SQUARES = facts(
    **LINEAR,
    **EXPANDED,
    rule__selection={ONE_VS_REST},
    preconditioner__kind={SECOND_ORDER},
    preconditioner__unit={NO_UNIT},
    preconditioner__evidence__shape__0={0},
)
"""The second member of the default for rows that list every feature."""

VARIANTS = {
    "one_pair": ONE_PAIR,
    "shared_pair": SHARED_PAIR,
    "words": WORDS,
    "measurements": MEASUREMENTS,
    "least_squares": LEAST_SQUARES,
    "every": Facts(),
}
"""The facts of the kernels of learners with a table of weights; the first that hold are used."""

JUDGED = {"exploration__feedback": {0}}
"""Constraints from whether a shown class is right."""

BANDIT_RULES = facts(
    **LINEAR,
    settings__ends_at_faults={0},
    settings__on_new_class={LEARN},
    parts__kind__each={PER_CLASS},
    parts__map__each={ITSELF},
    **WITHOUT_MAPS,
    rule__selection={ONE_VS_REST},
    rule__requires={LOSSES},
    **WITHOUT_STEP_SIZES,
    preprocessing__method={NONE},
    exploration__feedback={1, 2},
)
"""Banditron and SOBA, with weights for each class."""

JUDGED_MEASUREMENTS = facts(
    **LINEAR,
    **EXPANDED,
    **JUDGED,
    rule__selection={ONE_VS_REST},
    preconditioner__kind={ADAPTIVE},
    preconditioner__unit={ROWS},
)
"""The default for bandit feedback, for rows that list every feature."""

BANDITS = {
    "bandit_rules": BANDIT_RULES,
    "bandit_words": Facts(WORDS | facts(**JUDGED)),
    "bandit_measurements": JUDGED_MEASUREMENTS,
    "bandit": facts(**JUDGED),
    "bandit_every": Facts(),
}
"""The facts of the kernels of learners that explore; the first that hold are used."""

SPARSE = facts(
    link__address={0},
    link__exponent={2},
    link__scale_source={NO_SCALE},
    link__is_exact={0},
    algorithm__address={0},
    settings__predictor={0},
    settings__on_new_class={REGISTER, LEARN},
    ranks__order__shape__0={0},
    rule__margins__shape__1={1},
    rule__scales_steps={0},
    settings__has_costs={0},
    settings__decision={SCORE, F1},
    parts__kind__each={PER_CLASS},
    parts__map__each={ITSELF},
    **WITHOUT_MAPS,
    **WITHOUT_STEP_SIZES,
)
"""What :attr:`kesler.learner.state.LearnerState.may_be_sparse` requires."""

OVER_KERNEL = {
    "link__address": {0},
    "link__exponent": {2},
    "link__scale_source": {NO_SCALE, OWN_SCALE},
    "link__is_exact": {0},
    "settings__on_new_class": {REGISTER, LEARN},
    "parts__map__each": {ITSELF, ADDRESS},
    **WITHOUT_STEP_SIZES,
}
"""What :class:`kesler.learner.kernel_learner.KernelLearner` requires."""

KERNEL = facts(**OVER_KERNEL)
"""Learners over a kernel."""

OF_LAST_COEFFICIENTS = {
    "algorithm__address": {0},
    "settings__predictor": {0},
    "settings__decision": {SCORE, F1, DISTANCE},
    "ranks__order__shape__0": {0},
    "parts__kind__each": {PER_CLASS, SHARED, GROUPED},
}
"""Neither algorithms nor means of coefficients nor ranks."""

KERNELS = {
    "least_recent": facts(**OVER_KERNEL, **OF_LAST_COEFFICIENTS, weights__policy={0}),
    "budget": facts(**OVER_KERNEL, **OF_LAST_COEFFICIENTS, weights__policy={1, 2, 3, 4}),
    "over_kernel": KERNEL,
}
"""The facts of their kernels: of those whose budget, if any, removes the oldest support vectors,
of those with another policy of :class:`kesler.budgets.Budget`, and of all others; the first that
hold are used."""

JUDGED_OVER_KERNEL = facts(**OVER_KERNEL, exploration__feedback={0, 1})
"""Learners over a kernel that explore."""

MEASURED = facts(
    settings__predictor={0},
    rule__selection={ALL},
    rule__requires={NORMS},
    link__is_exact={0},
    preconditioner__kind={EUCLIDEAN},
    preconditioner__unit={NO_UNIT},
)
"""What :meth:`kesler.learner.learner.Learner.measure` sets."""


def hold(of_kernel: Facts, learner: Any) -> bool:
    """Return whether facts hold for the record of a learner."""
    return all(values_of(learner, name) <= values for name, values in of_kernel)


def values_of(learner: Any, name: str) -> frozenset[int]:
    """Return the values that a number has in a record, by its name in `Facts`."""
    field, axis = _place(name)
    found = field(learner)
    if axis is not None:
        return frozenset([found.shape[axis]])
    values = found.tolist() if isinstance(found, np.ndarray) else [found]
    return frozenset(map(_kind_of_address, values) if name in ADDRESSES else values)


def _kind_of_address(value: Any) -> int:
    """Return what facts say of an address; loops that are interpreted have objects in its place."""
    return min(int(value), ADDRESS) if isinstance(value, Integral) else ADDRESS


@cache
def _place(name: str) -> tuple[Callable[[Any], Any], int | None]:
    """Return how to read the field of a name, and the axis whose length it means, if it does."""
    field, _, axis = name.removesuffix(".each").partition(".shape.")
    return attrgetter(field), int(axis) if axis else None
