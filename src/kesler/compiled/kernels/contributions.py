"""Contributions of support vectors to the scores of some classes."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import numpy as np

from kesler.compiled.jit.decorators import inlined, kernel
from kesler.compiled.jit.pointers import dereference, hold
from kesler.compiled.kernels.kernel_trial import learner_at, pass_on_fault
from kesler.compiled.kernels.means import mean_coefficient
from kesler.compiled.kernels.scores import (
    compare,
    is_owner,
    n_in_panel,
    set_direction_view,
    set_plain_view,
    set_view,
)
from kesler.compiled.kernels.supports import PANEL, make_kernel_scratch
from kesler.compiled.trial.contributions import CONTRIBUTIONS, explain_all
from kesler.compiled.trial.records import ORDERED, SHARED
from kesler.compiled.weights.contributions import OWN_PLACE, place_of_part


@inlined
def coefficient_of(learner, part, s, r):
    """Return the coefficient of support vector s in the score of class r."""
    total, starts, kind = 0.0, learner.weights.entry_starts, learner.parts.kind[part]
    for e in range(starts[part, s], starts[part, s + 1]):
        owner = learner.weights.owners[part, e]
        if kind == SHARED or kind == ORDERED or is_owner(learner, part, r, owner):
            total += mean_coefficient(learner, part, e)
    return total * learner.ranks.positions[r] if kind == ORDERED else total


@inlined
def add_supports(learner, part, indices, view, c, r, factor, scratch, first, out, given):
    """Write coefficient times similarity for each support vector of a part, and the similarity."""
    oldest, following = learner.weights.oldest[part], learner.weights.following[part]
    place = place_of_part(learner, part)
    for panel in range(oldest // PANEL, (following + PANEL - 1) // PANEL):
        m = n_in_panel(learner, part, panel)
        compare(learner, part, panel, indices, view, m, scratch)
        for s in range(max(oldest, panel * PANEL), panel * PANEL + m):
            similarity = np.float64(scratch.similarities[s - panel * PANEL])
            at = first + s - oldest
            given[at, c, OWN_PLACE] = similarity
            out[at, c, place] = factor * coefficient_of(learner, part, s, r) * similarity


@inlined
def kernel_add_contributions(learner, indices, values, codes, scratch, start, out, given):
    """Write the contributions of the support vectors in use, one part after the other.

    Those to the score of codes[c] are in out[:, c], and the similarities to the view of the class
    in given[:, c, 0].
    """
    first = 0
    factor = 1.0 / learner.decay.row.weight if learner.decay.growth != 1 else 1.0
    note_places(learner, indices, 1)
    for part in range(learner.parts.kind.shape[0]):
        is_mapped = learner.parts.map[part] != 0
        for c in range(codes.shape[0]):
            r = codes[c]
            view = r if is_mapped else 0
            if is_mapped:
                set_view(learner, part, indices, values, r, scratch)
            elif learner.parts.kind[part] == ORDERED:
                set_direction_view(learner, indices, values, scratch)
            else:
                set_plain_view(learner, indices, values, scratch)
            add_supports(learner, part, indices, view, c, r, factor, scratch, first, out, given)
        first += learner.weights.following[part] - learner.weights.oldest[part]
    note_places(learner, indices, 0)


@inlined
def note_places(learner, indices, one):
    """Write 1 + the position of each feature of the row, or 0 if `one` is 0."""
    if not learner.weights.in_panels:
        for j in range(indices.shape[0]):
            learner.weights.places[indices[j]] = one * (j + 1)


@kernel(CONTRIBUTIONS)
def explain(learner, rows, codes, out, given):
    """Write the contributions of support vectors to the scores of classes of one row.

    codes : (classes,); out, given : (support vectors in use, classes, 2), zeros.
    """
    learner_, rows_ = learner_at(learner), dereference(rows)
    scratch = make_kernel_scratch(learner_, rows_.indptr)
    explain_all(learner_, rows_, codes, dereference(scratch), out, given)
    pass_on_fault(learner_, scratch)
    hold(scratch)
