"""User-defined functions with faults, for each kind of part.

`FAULTS` has a fault of every call, which trial calls in Python meet. `LATE` has parts whose fault
depends on a value that trial calls do not have, so that only compiled code meets it: a row with the
value `TRIGGER`. Both may be extended; the tests run over whatever they contain.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from kesler import (
    LinearMax,
    OnlineClassifier,
    feature_map,
    link_function,
    mercer_kernel,
    preconditioner,
    threshold_algorithm,
    update_rule,
)

TRIGGER = 1000.0

# ---- faults of every call -----------------------------------------------------------------------


def write_out_of_range(a, x):
    a[len(a)] = 1.0
    return 1.0


def write_far_out_of_range(a, x):
    a[-(10**9)] = 1.0
    return 1.0


def read_out_of_range(a, x):
    return a[len(a)]


@njit
def read_far_out_of_range(a, x):
    return a[10**9]


def raise_an_error(a, x):
    raise RuntimeError("no answer")


def divide_by_zero(a, x):
    return 1.0 / (len(a) - len(a))


def divide_numpy_by_zero(a, x):
    return np.float64(1.0) / np.float64(len(a) - len(a))


def loop_forever(a, x):
    while True:
        pass


def loop_forever_in_a_generator(a, x):
    def numbers():
        while True:
            yield 1.0

    return sum(numbers())


def recurse_forever(a, x):
    return recurse_forever(a, x)


def return_an_array(a, x):
    return np.ones(3)


def return_text(a, x):
    return "one"


FAULTS: dict[str, Callable[[Any], Any]] = {
    each.__name__: each
    for each in (
        write_out_of_range,
        write_far_out_of_range,
        read_out_of_range,
        read_far_out_of_range,
        raise_an_error,
        divide_by_zero,
        divide_numpy_by_zero,
        loop_forever,
        loop_forever_in_a_generator,
        recurse_forever,
        return_an_array,
        return_text,
    )
}
"""Functions of an array or a tuple and a value, by name; each does what its name says."""


def faulty_rule(fault):
    @update_rule(requires="norms")
    def rule(parameters, weight, losses, squared_norms, gram, steps):
        steps[0] = fault(steps, squared_norms[0])

    return rule


def faulty_algorithm(fault):
    @threshold_algorithm()
    def algorithm(parameters, positions, z, margin, weights, states, numbers):
        weights[0] = fault(weights, z[0])

    return algorithm


def faulty_map(fault):
    @feature_map(parameters=(1.0,))
    def mapped(x, p, q):
        return fault(q, x)

    return mapped


def faulty_kernel(fault):
    @mercer_kernel()
    def similar(x, z):
        return fault(x, x[0])

    return similar


def faulty_kernel_of_products(fault):
    @mercer_kernel(of="products", parameters=(1.0,))
    def similar(inner, distance, q):
        return fault(q, distance)

    return similar


def faulty_link(fault):
    @link_function(parameters=(1.0,))
    def linked(v, q):
        return fault(q, v)

    return linked


def faulty_preconditioner(fault):
    @preconditioner(parameters=(1.0,))
    def rate(evidence, q):
        return fault(q, evidence)

    return rate


class UserKind(NamedTuple):
    """A kind of part: how one is made with a fault, and an estimator that uses a part."""

    faulty: Callable[[Any], Any]
    estimator: Callable[[Any], Any]


KINDS: dict[str, UserKind] = {
    "rule": UserKind(faulty_rule, lambda part: OnlineClassifier("multi", update=part)),
    "algorithm": UserKind(faulty_algorithm, LinearMax),
    "map": UserKind(faulty_map, lambda part: OnlineClassifier("single", part, update="pa1")),
    "kernel": UserKind(
        faulty_kernel, lambda part: OnlineClassifier("multi", update="pa1", kernel=part)
    ),
    "kernel of products": UserKind(
        faulty_kernel_of_products,
        lambda part: OnlineClassifier("multi", update="pa1", kernel=part),
    ),
    "link": UserKind(
        faulty_link, lambda part: OnlineClassifier("multi", update="perceptron", link=part)
    ),
    "preconditioner": UserKind(
        faulty_preconditioner,
        lambda part: OnlineClassifier("multi", update="perceptron", preconditioner=part),
    ),
}

# ---- faults that trial calls do not meet --------------------------------------------------------


@njit
def at(a, i):
    return a[i]


@update_rule(requires="norms")
def late_rule(parameters, weight, losses, squared_norms, gram, steps):
    far = 10**9 if squared_norms[0] > 10**5 else 0
    steps[far] = losses[0] / (squared_norms[0] + 1e-9)


@update_rule(requires="norms")
def late_raising_rule(parameters, weight, losses, squared_norms, gram, steps):
    if squared_norms[0] > 10**5:
        raise ValueError("too large")
    steps[0] = losses[0] / (squared_norms[0] + 1e-9)


@threshold_algorithm(n_states=1)
def late_algorithm(parameters, positions, z, margin, weights, states, numbers):
    for j in range(len(z)):
        weights[positions[j]] += z[j]
        states[0, positions[j]] += 1.0
        numbers[1] += 1.0
        if abs(z[j]) > 500:
            weights[positions[j] + 10**9] = 1.0


@threshold_algorithm()
def late_infinite_algorithm(parameters, positions, z, margin, weights, states, numbers):
    for j in range(len(z)):
        weights[positions[j]] += z[j] if abs(z[j]) < 500 else np.inf


@feature_map(statistic="mean", parameters=(1.0,))
def late_map(x, p, q):
    return x * p * at(q, 10**6 if x > 500 else 0)


@feature_map(statistic="contrast")
def late_raising_map(x, p, others):
    if x > 500:
        raise ValueError("too large")
    return x * (p - others)


@mercer_kernel()
def late_kernel(x, z):
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i] * at(z, i + (10**9 if x[i] > 500 else 0))
    return total


@mercer_kernel(of="products")
def late_kernel_of_products(inner, distance):
    if distance > 10**5:
        raise ValueError("too large")
    return 1.0 / (1.0 + distance)


@link_function(parameters=(1.0,))
def late_link(v, q):
    return v * q[10**6 if abs(v) > 500 else 0]


@preconditioner(parameters=(1.0,))
def late_preconditioner(evidence, q):
    return at(q, 10**6 if evidence > 10**5 else 0)


LATE: list[tuple[Any, str]] = [
    (late_rule, "rule"),
    (late_raising_rule, "rule"),
    (late_algorithm, "algorithm"),
    (late_infinite_algorithm, "algorithm"),
    (late_map, "map"),
    (late_raising_map, "map"),
    (late_kernel, "kernel"),
    (late_kernel_of_products, "kernel of products"),
    (late_link, "link"),
    (late_preconditioner, "preconditioner"),
]
"""Parts that fail on a row with a value of `TRIGGER`, and the kind of each."""
