"""Pairwise steps for the sub-problem of one example in the dual of the multiclass SVM.

The duals of an example, alpha, sum to 0; they are at most C for the right class and at most 0 for
others. A step moves mass from one class to another (Platt 1998; Keerthi et al. 2008).
"""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

from kesler.compiled.jit.decorators import inlined

# A visit of an example ends when the violation of its worst pair of classes is below this share of
# the initial one, or after this number of steps.
SHARE, MOST_STEPS = 1e-3, 1000
# The relative difference of gradients below which it is a rounding error.
ROUNDING = 1e-15


@inlined
def cap_of(r, y, most):
    """Return the upper bound of the dual of class r."""
    return most if r == y else 0.0


@inlined
def find_pair(gradients, alphas, y, most, pair):
    """Find the pair of classes to take from and to give to; return its violation of optimality.

    It is the class with the highest gradient, and the lowest gradient of those below their cap.
    """
    high, low = 0, -1
    for r in range(gradients.shape[0]):
        if gradients[r] > gradients[high]:
            high = r
        has_capacity = alphas[r] < cap_of(r, y, most)
        if has_capacity and (low < 0 or gradients[r] < gradients[low]):
            low = r
    pair[0], pair[1] = high, low
    if low < 0:
        return 0.0
    violation = gradients[high] - gradients[low]
    size = abs(gradients[high]) + abs(gradients[low])
    return violation if violation > ROUNDING * size else 0.0


@inlined
def step(violation, curvature, alphas, y, most, pair):
    """Move a pair until its gradients are equal, or to the cap; return the step length."""
    high, low = pair[0], pair[1]
    cap = cap_of(low, y, most)
    capacity = cap - alphas[low]
    if violation >= capacity * curvature:
        alphas[low] = cap
        alphas[high] -= capacity
        return capacity
    distance = violation / curvature
    alphas[low] += distance
    alphas[high] -= distance
    return distance


@inlined
def gap_of(gradients, alphas, y, most):
    """Return the contribution of an example to the duality gap: 0 or more, 0 if it is solved."""
    highest, product = gradients[0], 0.0
    for r in range(gradients.shape[0]):
        highest = max(highest, gradients[r])
        product += alphas[r] * gradients[r]
    return most * (highest - gradients[y]) + product


@inlined
def lead_of(gradients, alphas, y, most):
    """Return the lead of the only class below its cap over all others; -1 if there are several.

    The duals of an example at such a corner of the feasible set are unlikely to change.
    """
    corner = -1
    for r in range(gradients.shape[0]):
        if alphas[r] < cap_of(r, y, most):
            if corner >= 0:
                return -1.0
            corner = r
    if corner < 0:
        return -1.0
    lead = -1.0
    for r in range(gradients.shape[0]):
        if r != corner and (lead < 0.0 or gradients[corner] - gradients[r] < lead):
            lead = gradients[corner] - gradients[r]
            if lead < 0.0:
                return -1.0
    return lead
