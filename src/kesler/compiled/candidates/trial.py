"""Rows of learners that compare candidates: what is done before and after the trial of a row."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import numpy as np
from numba import types

from kesler.compiled.candidates.entries import NONE, has_capacity_for
from kesler.compiled.candidates.windows import close_window, copy_row, list_own, open_window
from kesler.compiled.jit.decorators import INDICES, INT, inlined, kernel
from kesler.compiled.jit.pointers import fetch, pointer_reader, put, stay_apart
from kesler.compiled.jit.record_types import LEARNER_RECORD, tuple_type
from kesler.compiled.trial.calibration import chance, dense_soften, of_score, temper
from kesler.compiled.trial.label_sets import OF_THRESHOLD, RELEVANT, THE_THRESHOLD
from kesler.compiled.trial.tasks import task_at
from kesler.state.candidates import CandidateRecord, Compared

CANDIDATES, COMPARED = tuple_type(CandidateRecord), tuple_type(Compared)
learner_at = pointer_reader(LEARNER_RECORD)
candidates_at = pointer_reader(CANDIDATES)
compared_at = pointer_reader(COMPARED)


@kernel(types.void(CANDIDATES, INT))
def write_candidates(candidates, address):
    """Write the state of candidates to an address, from which other kernels read it."""
    put(candidates, address)


@kernel(types.void(COMPARED, INT))
def write_compared(compared, address):
    """Write the results of a block to an address, from which other kernels read it."""
    put(compared, address)


@inlined
def fetch_entries(entries, indices):
    """Prefetch the first entries of the features of a row."""
    for j in range(indices.shape[0]):
        start = entries.starts[indices[j]]
        fetch(entries.owners, start)
        fetch(entries.numbers, start * entries.numbers.shape[1])


@inlined
def fetch_features(learner, entries, indices):
    """Prefetch what is stored of the features of a row."""
    width = learner.weights.values.shape[1]
    for j in range(indices.shape[0]):
        i = int(indices[j])
        fetch(entries.starts, i)
        fetch(entries.lengths, i)
        fetch(entries.counts, i)
        fetch(learner.weights.values, i * width)
        if learner.preconditioner.evidence.shape[0]:
            fetch(learner.preconditioner.evidence, i * width)
        fetch(learner.statistics.pooled, i * learner.statistics.pooled.shape[1])
        statistics = learner.preprocessing.statistics
        fetch(statistics, i * statistics.shape[1])


@inlined
def lay_out(learner, candidates, window, task, local, t, learns):
    """Write row t to the window; return whether there was capacity for its entries."""
    stay_apart()
    first, last = task.rows.indptr[t], task.rows.indptr[t + 1]
    indices, chosen = task.rows.indices[first:last], candidates.choice.chosen
    chosen.n_own = 0
    if learns:
        list_own(candidates, task.encoded, t)
        if not has_capacity_for(candidates.entries, indices, chosen.n_own):
            return False
    fetch_entries(candidates.entries, indices)
    if t + 2 < task.rows.indptr.shape[0]:
        next_row = task.rows.indices[last : task.rows.indptr[t + 2]]
        fetch_features(learner, candidates.entries, next_row)
    open_window(learner, candidates, window, indices)
    local.rows.indptr[1] = last - first
    for j in range(last - first):
        local.rows.values[j] = task.rows.values[first + j]
    if learns:
        name_columns(candidates, local.encoded)
        weights = task.encoded.row_weights
        local.encoded.row_weights[0] = weights[t] if weights.shape[0] else 1.0
    return True


@inlined
def name_columns(candidates, encoded):
    """Write the target of a task of one row: the columns of its own classes, and the threshold."""
    choice, first = candidates.choice, candidates.n_virtual
    for r in range(first):
        encoded.codes[r], encoded.levels[r] = THE_THRESHOLD, OF_THRESHOLD
    for o in range(choice.chosen.n_own):
        encoded.codes[first + o], encoded.levels[first + o] = choice.own_columns[o], RELEVANT
    encoded.indptr[1] = first + choice.chosen.n_own


@kernel(types.boolean(INT, INT, INT, INT, INT, INT, types.boolean))
def begin(learner, candidates, window, task, local, t, learns):
    """Write row t of a task to the window and to a task of one row, unless capacity is exhausted.

    All but t and `learns`, which says whether the row is learnt, are addresses.
    """
    return lay_out(
        learner_at(learner),
        candidates_at(candidates),
        learner_at(window),
        task_at(task),
        task_at(local),
        t,
        learns,
    )


@kernel(types.void(INT, INT, INT, INDICES, INDICES))
def show(learner, candidates, window, indices, classes):
    """Copy what a trial reads of a row and some known classes to the window."""
    candidates_ = candidates_at(candidates)
    candidates_.choice.chosen.n_own = 0
    for c in range(classes.shape[0]):
        candidates_.choice.classes[c] = classes[c]
    copy_row(learner_at(learner), candidates_, learner_at(window), indices, classes.shape[0])


@inlined
def share_missing(learner, candidates, n):
    """Return the probability that the class is a known one that is no candidate, of n ones.

    Of label sets, it is the probability of each label that is no candidate.
    """
    return candidates.missing.share if n < learner.counts.n_classes else 0.0


@inlined
def write_row(learner, candidates, compared, local, t, is_told):
    """Write the candidates of row t with their scores and probabilities.

    is_told : whether the trial has written the probabilities of the candidates, if they are
    classes; those of labels are always written.
    """
    choice, n = candidates.choice, candidates.choice.chosen.n
    said = np.int64(local.predictions[0])
    compared.known[t], compared.counts[t], compared.said[t] = learner.counts.n_classes, n, said
    for c in range(n):
        compared.classes[t, c] = choice.classes[c]
        compared.scores[t, c] = local.scores[0, c]
    missing = share_missing(learner, candidates, n)
    if learner.settings.has_sets:
        for c in range(n):
            compared.probabilities[t, 2 + c] = local.probabilities[0, c]
        compared.probabilities[t, 0], compared.probabilities[t, 1] = missing, np.nan
        return
    if n and not is_told:
        tell_row(learner.calibration, local.scores[0], n, said, candidates, local.probabilities[0])
    for c in range(n):
        compared.probabilities[t, 2 + c] = (1 - missing) * local.probabilities[0, 2 + c]
    compared.probabilities[t, 0] = compared.probabilities[t, 2 + said] if n else np.nan
    compared.probabilities[t, 1] = np.nan


@inlined
def tell_row(calibration, scores, k, said, candidates, found):
    """Write the probabilities of k candidates, as `calibration.tell` does."""
    top, exponentials = np.float64(scores[said]), candidates.exponentials
    inverse = temper(calibration, scores, k, top)
    total, _ = dense_soften(calibration, inverse, scores, k, top, exponentials)
    lapse = calibration.lapses / calibration.n_targets
    for r in range(k):
        found[2 + r] = chance(of_score(inverse, scores[r], top), total, lapse, k)


@inlined
def tell_target(learner, candidates, compared, t):
    """Write the place of the class of row t, and its probability."""
    choice, chosen = candidates.choice, candidates.choice.chosen
    n, target, is_new = chosen.n, choice.own_columns[0], chosen.n_columns > chosen.n_filled
    compared.targets[t] = NONE if is_new else target
    if is_new:
        compared.probabilities[t, 0] = np.nan
        return
    if target == n:
        others = learner.counts.n_classes - n
        compared.classes[t, n] = choice.classes[n]
        compared.scores[t, n] = np.nan
        compared.probabilities[t, 2 + n] = share_missing(learner, candidates, n) / others
    compared.probabilities[t, 1] = compared.probabilities[t, 2 + target]


@inlined
def tell_irrelevant(learner, candidates, compared, t):
    """Write the highest probability of a known label that row t does not have."""
    choice, chosen, found = candidates.choice, candidates.choice.chosen, 0.0
    n_missed, n_others = chosen.n_filled - chosen.n, learner.counts.n_classes - chosen.n
    if n_others > n_missed:
        found = compared.probabilities[t, 0]
    for c in range(candidates.n_virtual, chosen.n):
        if choice.own_of[c] == NONE:
            found = max(found, compared.probabilities[t, 2 + c])
    compared.probabilities[t, 1] = found


@inlined
def learn_row(learner, candidates, window, task, local, compared, t):
    """Write what was said of row t, and store what its trial has changed."""
    stay_apart()
    first, last = task.rows.indptr[t], task.rows.indptr[t + 1]
    said = np.int64(local.predictions[0])
    task.predictions[t] = candidates.choice.classes[said] if said >= 0 else np.int32(NONE)
    write_row(learner, candidates, compared, local, t, True)
    if learner.settings.has_sets:
        tell_irrelevant(learner, candidates, compared, t)
    else:
        tell_target(learner, candidates, compared, t)
    close_window(learner, candidates, window, task.rows.indices[first:last])


@kernel(types.void(INT, INT, INT, INT, INT, INT, INT))
def learn_end(learner, candidates, window, task, local, compared, t):
    """Store what the trial of row t has changed; the arguments are those of `begin`."""
    learn_row(
        learner_at(learner),
        candidates_at(candidates),
        learner_at(window),
        task_at(task),
        task_at(local),
        compared_at(compared),
        t,
    )


@inlined
def predict_row(learner, candidates, task, local, compared, t):
    """Write what is said of row t, which is only scored."""
    stay_apart()
    said = np.int64(local.predictions[0])
    task.predictions[t] = candidates.choice.classes[said] if said >= 0 else np.int32(NONE)
    write_row(learner, candidates, compared, local, t, False)


@kernel(types.void(INT, INT, INT, INT, INT, INT))
def predict_end(learner, candidates, task, local, compared, t):
    """Write what is said of row t; the arguments are those of `begin`."""
    predict_row(
        learner_at(learner),
        candidates_at(candidates),
        task_at(task),
        task_at(local),
        compared_at(compared),
        t,
    )
