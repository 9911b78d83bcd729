"""Rules, maps, kernels and groups as users write them: plain Python in a file of theirs."""

from kesler import (
    feature_map,
    link_function,
    mercer_kernel,
    preconditioner,
    threshold_algorithm,
    update_rule,
)


@update_rule(constraints="worst", requires="norms", parameters=(0.5,))
def part_way(parameters, weight, losses, squared_norms, gram, steps):
    """Go a given part of the way that would satisfy the constraint."""
    if squared_norms[0] > 0:
        steps[0] = weight * parameters[0] * losses[0] / squared_norms[0]


@feature_map(statistic="mean", zero_at_zero=True, parameters=(0.25,))
def damped(x, p, q):
    """Return a product that grows less than its second factor."""
    return x * p / (1 + q[0] * abs(p))


@feature_map(statistic="first")
def closeness(x, p):
    """Fall from 1 as x leaves the class's first instance."""
    return 1 / (1 + (x - p) * (x - p))


def sets_of(code):
    """Return the sets of a class that is named by its number; 5, 7 and 11 are in none."""
    sets = {"even": code % 2 == 0, "third": code % 3 == 0, "low": code < 5}
    return [name for name, holds in sets.items() if holds]


@update_rule(constraints="predicted", requires="losses")
def not_a_number(parameters, weight, losses, squared_norms, gram, steps):
    """Ask for a step that nobody can take."""
    steps[0] = losses[0] * float("nan")


@update_rule()
def not_arithmetic(parameters, weight, losses, squared_norms, gram, steps):
    """Do what Numba cannot compile."""
    steps[0] = len(format(losses[0], ".3f"))


@link_function(parameters=(0.5,))
def bent(v, q):
    """Begin at q and rise, faster and faster on either side."""
    return q[0] + v + v * v * v


@link_function(parameters=(0.5,), exponent=2.0, factor=2.0)
def rising(v, q):
    """Begin at q and rise, at most twice as fast as v."""
    return q[0] + v + v / (1.0 + abs(v))


@link_function(parameters=(0.5,), exponent=2.0, factor=1.5)
def stretched(v, q):
    """Rise on either side of 0 alike, at most one and a half times as fast as v."""
    return v + q[0] * v / (1.0 + abs(v))


@preconditioner(parameters=(0.5,))
def slowing(evidence, q):
    """Shrink steps by the cube root of the evidence, with a delay."""
    return (q[0] + evidence) ** (-1.0 / 3.0)


@threshold_algorithm(begins_at=0.25, n_states=1, parameters=(0.5,))
def counted(parameters, positions, z, margin, weights, states, numbers):
    """Step along z on mistakes, ever shorter in each place, and count them."""
    if margin > 0:
        return
    numbers[1] += 1
    for j in range(z.shape[0]):
        states[0, positions[j]] += abs(z[j])
        weights[positions[j]] += parameters[0] * z[j] / (1 + states[0, positions[j]])


@mercer_kernel(parameters=(2.0,))
def overlap(x, z, q):
    """Return how much of one row is in the other, up to a given amount of each feature."""
    total = 0.0
    for i in range(x.shape[0]):
        total += min(max(x[i] + q[0], 0.0), max(z[i] + q[0], 0.0))
    return total


@mercer_kernel(of="products")
def cauchy(inner, distance):
    """Fall from 1 with the distance, with heavier tails than a Gaussian."""
    return 1 / (1 + distance)
