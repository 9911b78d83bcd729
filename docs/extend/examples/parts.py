"""A part of each kind, written by a user."""

import numpy as np

from kesler import (
    feature_map,
    link_function,
    mercer_kernel,
    preconditioner,
    query_rule,
    threshold_algorithm,
    update_rule,
)


# [rule]
@update_rule(constraints="worst", requires="norms", parameters=(0.5,))
def half_way(parameters, weight, losses, squared_norms, gram, steps):
    steps[0] = weight * parameters[0] * losses[0] / (squared_norms[0] + 1e-12)


# [map]
@feature_map(statistic="mean", zero_at_zero=True)
def agreement(x, p):
    return x * min(abs(x), abs(p))


# [link]
@link_function(exponent=2.0, factor=2.0)
def steep_at_zero(v):
    return v + np.tanh(v)


# [preconditioner]
@preconditioner(parameters=(0.25,))
def dwindling(evidence, q):
    return (1.0 + evidence) ** -q[0]


# [kernel]
@mercer_kernel(parameters=(2.0,))
def overlap(x, z, q):
    total = 0.0
    for i in range(x.shape[0]):
        total += min(abs(x[i]), abs(z[i]), q[0])
    return total


# [query]
@query_rule(parameters=(0.5,))
def unsure(parameters, margin, confidence, new):
    return 1.0 if confidence < parameters[0] else 0.05


# [algorithm]
@threshold_algorithm(parameters=(0.5,))
def lazy(parameters, positions, z, margin, weights, states, numbers):
    if margin <= 0:
        for j in range(len(z)):
            weights[positions[j]] += parameters[0] * z[j]
