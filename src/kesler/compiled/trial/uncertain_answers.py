"""What is said of rows that are not learnt: a new class, confidence and prediction sets.

See `kesler.learner.uncertainty` for the models.
"""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

from numba import types

from kesler.compiled.jit.decorators import (
    DOUBLE_TABLE,
    DOUBLES,
    FLOAT_STACK,
    FLOAT_TABLE,
    INDICES,
    INT,
    inlined,
    kernel,
)
from kesler.compiled.jit.pointers import stay_apart
from kesler.compiled.trial.nearest_rows import NOBODY
from kesler.compiled.trial.uncertainty import (
    confidence_of,
    estimate,
    likeliest,
    measure_members,
    nearest_evidence,
    new_ranking,
    new_scratch,
    nonconformity,
    probability_of_new,
    rank_classes,
    uncertainties_at,
)

FLAGS = types.Array(types.boolean, 2, "C")


@inlined
def tell_all(u, scores, probabilities, predictions, inputs, found, scratch):
    """Say of each row how likely its class is new, and how likely its prediction is right."""
    stay_apart()
    k, evidence = scores.shape[2], scratch.evidence
    prior = estimate(u.arrivals, k, scratch.estimates)
    for t in range(found.shape[0]):
        if u.memory.rows.shape[0] > 0:
            nearest_evidence(u.memory, inputs[t], NOBODY, scratch)
        lead = measure_members(u, scores, t, k, scratch.measures, evidence)
        found[t, 0] = probability_of_new(u, prior, evidence, scratch.opinions)
        said = probabilities[t, 2 + predictions[t]]
        found[t, 1] = confidence_of(u, said, found[t, 0], lead, scratch.reasons)


@inlined
def choose_all(probabilities, new, bounds, is_empty_allowed, chosen, ranking):
    """Mark the classes of the set of each row; the last column is that of a new class.

    Time O(classes + size of the set x log(classes)) for a row.
    """
    k, most = bounds.shape[0] - 1, bounds[0]
    for r in range(1, k + 1):
        most = max(most, bounds[r])
    for t in range(chosen.shape[0]):
        rank_classes(ranking, probabilities, t, new[t], k)
        above = 0.0
        for rank in range(k + 1):
            r = likeliest(ranking, k + 1 - rank)
            own = ranking.masses[r]
            score = nonconformity(above, own, rank)
            chosen[t, r] = score <= bounds[r] or (rank == 0 and not is_empty_allowed)
            if score > most:  # scores grow along the classes
                break
            above += own


@kernel(types.void(INT, FLOAT_STACK, DOUBLE_TABLE, INDICES, FLOAT_TABLE, DOUBLE_TABLE))
def tell(address, scores, probabilities, predictions, inputs, found):
    """Write the probability of a new class and the confidence of each row to `found`.

    The other arguments are those of `kesler.compiled.trial.uncertainty.observe`.
    """
    u, scratch = uncertainties_at(address), new_scratch(scores.shape[0], inputs.shape[1], 0)
    tell_all(u, scores, probabilities, predictions, inputs, found, scratch)


@kernel(types.void(DOUBLE_TABLE, DOUBLES, DOUBLES, types.boolean, FLAGS))
def choose(probabilities, new, bounds, is_empty_allowed, chosen):
    """Mark the classes of the prediction set of each row.

    probabilities : (rows, 2 + classes); new : (rows,), the probability of a new class; bounds :
    (classes + 1,), the thresholds; chosen : (rows, classes + 1), the last column for a new class.
    """
    ranking = new_ranking(bounds.shape[0])
    choose_all(probabilities, new, bounds, is_empty_allowed, chosen, ranking)
