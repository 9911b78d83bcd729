"""Contributions of the entries of a row to the scores of some classes, of learners with weights.

The score of class r is a sum over the parts and the entries of the row, weight times view. These
summands are written one by one, in float64, those of hypotheses that classes share apart from those
of the others.
"""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import numpy as np

from kesler.compiled.jit.decorators import always_inlined, inlined
from kesler.compiled.jit.pointers import pointer_reader
from kesler.compiled.jit.record_types import LEARNER_RECORD
from kesler.compiled.trial.decay import decay_offset_of, weights_decay
from kesler.compiled.trial.records import GIVEN, ITSELF, ORDERED, PER_CLASS, SHARED
from kesler.compiled.trial.variants import is_averaged
from kesler.compiled.weights.means import update_means
from kesler.compiled.weights.scores import compute_phi, scale_of_weights
from kesler.compiled.weights.sparse_rows import IN_TABLE, NONE, place_of

# The last axis of contributions: hypotheses of the class or its groups, and those of all classes.
OWN_PLACE, SHARED_PLACE = range(2)
THE_CONSTANT = 0  # the number of the constant feature

learner_at = pointer_reader(LEARNER_RECORD)


@always_inlined
def place_of_part(learner, part):
    """Return where the contributions of a part are written."""
    kind = learner.parts.kind[part]
    return SHARED_PLACE if kind == SHARED or kind == ORDERED else OWN_PLACE


@inlined
def weight_of(learner, part, i, r):
    """Return the weight of feature i in the hypotheses of class r, summed over them."""
    kind, offset, table = (
        learner.parts.kind[part],
        learner.parts.offset[part],
        learner.weights.values,
    )
    if kind == PER_CLASS:
        return np.float64(table[i, offset + r])
    if kind == SHARED:
        return np.float64(table[i, offset] + decay_offset_of(learner, part))
    total = 0.0
    for m in range(learner.parts.member_starts[part, r], learner.parts.member_starts[part, r + 1]):
        total += np.float64(table[i, offset + learner.parts.members[m]])
    return total


@inlined
def add_views(learner, part, indices, values, codes, scratch, start, out):
    """Add weight times view for each entry, where views are x itself or those of a map."""
    place, phi = place_of_part(learner, part), scratch.phi[: indices.shape[0]]
    for c in range(codes.shape[0]):
        r, is_mapped = codes[c], learner.parts.map[part] != ITSELF
        if is_mapped:
            compute_phi(learner, part, indices, values, r, scratch, phi)
        for j in range(indices.shape[0]):
            view = np.float64(phi[j] if is_mapped else values[j])
            out[start + j, c, place] += view * weight_of(learner, part, indices[j], r)


@inlined
def add_ratings(learner, part, codes, scratch, given):
    """Add weight times rating for each rating of the classes."""
    place, views = place_of_part(learner, part), scratch.views
    for c in range(codes.shape[0]):
        r = codes[c]
        for j in range(views.begins[r], views.ends[r]):
            weight = weight_of(learner, part, views.indices[j], r)
            given[j, c, place] += weight * np.float64(views.values[j])


@inlined
def add_ordered(learner, part, indices, values, codes, start, out):
    """Add the contributions along the direction of all ranks, and of the thresholds below each."""
    offset, table = learner.parts.offset[part], learner.weights.values
    for c in range(codes.shape[0]):
        rank = learner.ranks.positions[codes[c]]
        for j in range(indices.shape[0]):
            x = np.float64(values[j])
            if indices[j] == THE_CONSTANT:
                for i in range(1, rank + 1):
                    below = learner.ranks.order[i]
                    out[start + j, c, OWN_PLACE] += x * np.float64(table[0, offset + 1 + below])
            else:
                weight = np.float64(table[indices[j], offset])
                out[start + j, c, SHARED_PLACE] += rank * x * weight


@inlined
def add_parts(learner, indices, values, codes, scratch, start, out, given):
    """Add the contributions of all parts."""
    for part in range(learner.parts.kind.shape[0]):
        if learner.parts.kind[part] == ORDERED:
            add_ordered(learner, part, indices, values, codes, start, out)
        elif learner.parts.map[part] == GIVEN:
            add_ratings(learner, part, codes, scratch, given)
        else:
            add_views(learner, part, indices, values, codes, scratch, start, out)


@inlined
def multiply(factor, start, stop, out):
    """Multiply the contributions of some entries."""
    for j in range(start, stop):
        for c in range(out.shape[1]):
            out[j, c, OWN_PLACE] *= factor
            out[j, c, SHARED_PLACE] *= factor


@inlined
def multiply_all(factor, indices, codes, scratch, start, out, given):
    """Multiply the contributions of a row and of its ratings of the classes."""
    multiply(factor, start, start + indices.shape[0], out)
    for c in range(codes.shape[0]):
        multiply(factor, scratch.views.begins[codes[c]], scratch.views.ends[codes[c]], given)


@inlined
def update_predictor(learner, predictor, indices, codes, scratch):
    """Compute the means of the weights that a row reads."""
    update_means(learner, predictor, indices, 0, indices.shape[0])
    views = scratch.views
    for c in range(codes.shape[0] if views.indices.shape[0] else 0):
        update_means(
            learner, predictor, views.indices, views.begins[codes[c]], views.ends[codes[c]]
        )


@inlined
def dense_add_contributions(learner, indices, values, codes, scratch, start, out, given):
    """Write the contributions of a row whose entries begin at `start` of `out`."""
    if is_averaged(learner):
        predictor = learner_at(learner.settings.predictor)
        update_predictor(learner, predictor, indices, codes, scratch)
        add_parts(predictor, indices, values, codes, scratch, start, out, given)
    else:
        add_parts(learner, indices, values, codes, scratch, start, out, given)
        if learner.link.scale_source:
            factor = scale_of_weights(learner)
            multiply_all(factor, indices, codes, scratch, start, out, given)
    if weights_decay(learner):
        factor = 1.0 / learner.decay.row.weight
        multiply_all(factor, indices, codes, scratch, start, out, given)


@inlined
def stored_weight(rows, i, r):
    """Return the weight of feature i for class r, 0 if none is stored."""
    if rows.counts[i] == IN_TABLE:
        return np.float64(rows.table[rows.heads[i], r])
    place = place_of(rows, i, r)
    return 0.0 if place == NONE else np.float64(rows.values[place])


@inlined
def sparse_add_contributions(learner, indices, values, codes, scratch, start, out, given):
    """Write the contributions of a row, as `dense_add_contributions` does."""
    factor = 1.0 / learner.decay.row.weight if learner.decay.growth != 1 else 1.0
    for j in range(indices.shape[0]):
        for c in range(codes.shape[0]):
            weight = stored_weight(learner.weights.rows, indices[j], codes[c])
            out[start + j, c, OWN_PLACE] = factor * np.float64(values[j]) * weight
