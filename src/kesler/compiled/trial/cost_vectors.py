"""Targets that are costs: the margins of a trial, and the cost of what was predicted."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

from kesler.compiled.jit.decorators import inlined


@inlined
def price(learner, encoded, t):
    """Write the margin that the cheapest classes of target t must keep above each class."""
    start, end = encoded.indptr[t], encoded.indptr[t + 1]
    least = encoded.costs[start]
    for i in range(start, end):
        least = min(least, encoded.costs[i])
    for i in range(start, end):
        margin = learner.rule.margin * (encoded.costs[i] - least)
        learner.rule.margins[0, encoded.codes[i]] = margin


@inlined
def is_costly(said, codes, levels):
    """Return whether a predicted class is none of the cheapest, whose level is 0."""
    for i in range(codes.shape[0]):
        if codes[i] == said and levels[i] == 0:
            return False
    return True


@inlined
def charge(learner, said, encoded, t):
    """Add the cost of a prediction: the largest of the target if this does not name the class."""
    if said < 0:
        return
    start, end = encoded.indptr[t], encoded.indptr[t + 1]
    found = encoded.costs[start]
    for i in range(start, end):
        if encoded.codes[i] == said:
            found = encoded.costs[i]
            break
        found = max(found, encoded.costs[i])
    learner.charged.total += found
