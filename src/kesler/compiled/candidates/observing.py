"""Uncertainty where rows have candidates: what is said of them, and what is learnt from it.

See `kesler.compiled.trial.uncertainty`. Classes are numbered by their columns in a row; the offsets
of thresholds of its classes are copied to a state with as many classes as a row has candidates.
"""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import numpy as np
from numba import types

from kesler.compiled.candidates.trial import compared_at
from kesler.compiled.jit.decorators import DOUBLE_TABLE, INDICES, INT, inlined, kernel
from kesler.compiled.jit.pointers import stay_apart
from kesler.compiled.trial.other_sets import track_one
from kesler.compiled.trial.uncertainty import (
    N_COVERAGES,
    begin,
    confidence_of,
    count_arrival,
    estimate,
    measure_members,
    new_scratch,
    observe_row,
    probability_of_new,
    uncertainties_at,
)
from kesler.state.uncertainty import COVERED, CURRENT, SIZE


@inlined
def observe_all(u, few, n_known, compared, codes, traces, scratch):
    """Observe one row after another."""
    stay_apart()
    k, scores = n_known, compared.scores.reshape((1, *compared.scores.shape))
    for t in range(codes.shape[0]):
        y, n, target = np.int64(codes[t]), np.int64(compared.counts[t]), compared.targets[t]
        prior = estimate(u.arrivals, k, scratch.estimates)
        if n == 0:
            begin(traces, t)
        elif is_finite(compared.scores[t], n):
            n_classes = max(n, np.int64(target) + 1)
            for c in range(n_classes):
                copy_offsets(u.offsets, compared.classes[t, c], few.offsets, c)
            trace = traces[t] if traces.shape[0] else scratch.none
            is_new = target < 0
            own = np.int64(n_classes if is_new else target)
            observe_row(
                few,
                scores,
                compared.probabilities,
                t,
                n_classes,
                n,
                np.int64(compared.said[t]),
                own,
                is_new,
                prior,
                scratch,
                trace,
            )
            if not is_new:
                copy_offsets(few.offsets, own, u.offsets, y)
        count_arrival(u.arrivals, scratch.estimates, y, y >= k)
        k = max(k, y + 1)


@inlined
def copy_offsets(source, r, target, s):
    """Copy the offsets of a class."""
    for c in range(source.shape[1]):
        target[s, c] = source[r, c]


@inlined
def is_finite(scores, n):
    """Return whether the first n scores are finite."""
    total = 0.0
    for c in range(n):
        total += 0.0 * scores[c]
    return total == 0


@inlined
def tell_all(u, n_known, compared, found, scratch):
    """Say of each row how likely its class is new, and how likely its prediction is right."""
    stay_apart()
    scores = compared.scores.reshape((1, *compared.scores.shape))
    prior = estimate(u.arrivals, n_known, scratch.estimates)
    for t in range(found.shape[0]):
        n = np.int64(compared.counts[t])
        lead = measure_members(u, scores, t, n, scratch.measures, scratch.evidence)
        found[t, 0] = probability_of_new(u, prior, scratch.evidence, scratch.opinions)
        said = compared.probabilities[t, 2 + compared.said[t]]
        found[t, 1] = confidence_of(u, said, found[t, 0], lead, scratch.reasons)


@kernel(types.void(INT, INT, INT, INT, INDICES, DOUBLE_TABLE))
def observe(address, few, n_known, compared, codes, traces):
    """Observe rows with what was said of their candidates before they were learnt.

    address, few : of the state, and of one that shares its arrays except the offsets, which are
    those of the classes of one row; n_known : number of classes known before the first row;
    compared : address of what was said; codes : the target of each row; traces : as in
    `kesler.compiled.trial.uncertainty.observe`.
    """
    u, said = uncertainties_at(address), compared_at(compared)
    scratch = new_scratch(1, 0, said.probabilities.shape[1] if traces.shape[0] else 0)
    observe_all(u, uncertainties_at(few), n_known, said, codes, traces, scratch)


@kernel(types.void(INT, INT, INT, DOUBLE_TABLE))
def tell(address, n_known, compared, found):
    """Write the probability of a new class and the confidence of each row to `found`."""
    u, scratch = uncertainties_at(address), new_scratch(1, 0, 0)
    tell_all(u, n_known, compared_at(compared), found, scratch)


# ---- label sets ----------------------------------------------------------------------------------


@inlined
def n_above(compared, t, bound):
    """Return the number of known labels whose probability is above a bound."""
    n, found = compared.counts[t], 0
    for c in range(1, n):
        found += compared.probabilities[t, 2 + c] > bound
    if compared.probabilities[t, 0] > bound:
        found += compared.known[t] - n
    return found


@kernel(types.void(DOUBLE_TABLE, INT, INT, DOUBLE_TABLE))
def observe_labels(thresholds, compared, n_rows, traces):
    """Observe rows of label sets, as `kesler.compiled.trial.other_sets.observe_labels` does.

    compared : address of what was said of their candidates.
    """
    said = compared_at(compared)
    for t in range(n_rows):
        score = said.probabilities[t, 1]
        if traces.shape[0]:
            for c in range(N_COVERAGES):
                traces[t, COVERED + c] = score <= thresholds[c, CURRENT]
                traces[t, SIZE + c] = n_above(said, t, thresholds[c, CURRENT])
        if said.known[t] > 1:
            track_one(thresholds, score)
