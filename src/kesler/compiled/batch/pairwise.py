"""Pairwise steps inside one example of the dual of a multiclass SVM: what its solvers share.

The duals of an example, alpha, sum to 0 and lie below C at the right class and below 0 elsewhere. A
step takes from one class what it gives to another (Platt 1998; Keerthi et al. 2008).
"""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

from kesler.compiled.jit.decorators import inlined

# An example is left when the worst pair of its classes violates optimality by less than this share
# of what it did when the visit began, or after so many steps.
SHARE, MOST_STEPS = 1e-3, 1000
# Of gradients: differences below this share are rounding.
ROUNDING = 1e-15


@inlined
def cap_of(r, y, most):
    """Return the highest that the dual of class r may be."""
    return most if r == y else 0.0


@inlined
def find_pair(gradients, alphas, y, most, pair):
    """Write the class to take from and the one to give to; return by how much they violate.

    The dual falls fastest from the highest gradient to the lowest of those below their cap.
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
    """Move a pair to where its gradients meet, or to the cap; return how far."""
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
    """Return what an example adds to the duality gap: 0 or more, 0 if it is solved."""
    highest, product = gradients[0], 0.0
    for r in range(gradients.shape[0]):
        highest = max(highest, gradients[r])
        product += alphas[r] * gradients[r]
    return most * (highest - gradients[y]) + product


@inlined
def lead_of(gradients, alphas, y, most):
    """Return by how much the only class that may rise leads all others; -1 if there are several.

    An example whose duals stand in such a corner will hardly move.
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
