"""Windows: the features of one row and its candidates, as the dense table of a small learner.

A trial runs on the window as it does for few classes. The features of the row are rows 0, 1, ... of
the table, the candidates its first classes, in the order of their numbers. An own class of the row
that is none of them follows, and joins as a new class does; then comes the virtual class. A weight
without an entry is that of the virtual class.

Of label sets, the threshold is the first class, which no row has, and an entry holds by how much a
weight and its evidence exceed those of the virtual label: labels that are no candidates move as the
virtual one does, which is what nearly all of them would do.
"""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import numpy as np

from kesler.compiled.candidates.choosing import choose, sort
from kesler.compiled.candidates.entries import NONE, append, hashed, is_listed, place_of
from kesler.compiled.jit.decorators import inlined
from kesler.compiled.jit.pointers import fetch
from kesler.compiled.trial.label_sets import PRIOR, SLOW, THE_THRESHOLD
from kesler.compiled.trial.records import PER_CLASS
from kesler.compiled.views.statistics import weigh_classes

WEIGHT, EVIDENCE = 0, 1
# How many features ahead the places of entries are prefetched: reading them one after another, from
# memory that no cache holds, took two thirds of the time of a row.
AHEAD = 2
# The weight of the last row in the share of rows whose class is no candidate.
SHARE_OF_LAST = 0.002


@inlined
def list_own(candidates, encoded, t):
    """List the classes that row t has, in the order of their numbers; others may join with it."""
    choice, n, last = candidates.choice, 0, np.int64(NONE)
    for e in range(encoded.indptr[t], encoded.indptr[t + 1]):
        last = max(last, np.int64(encoded.codes[e]))
        if encoded.levels[e] == 0:
            choice.own[n] = encoded.codes[e]
            n += 1
    sort(choice.own, n)
    choice.chosen.n_own, choice.chosen.last = n, last


@inlined
def open_window(learner, candidates, window, indices):
    """Choose the candidates of a row whose own classes are listed, and copy what a trial reads."""
    n = choose(learner, candidates, indices, learner.counts.n_classes)
    copy_row(learner, candidates, window, indices, n)


@inlined
def copy_row(learner, candidates, window, indices, n):
    """Copy what a trial reads of a row, the first n classes of the choice, and its own classes."""
    choice = candidates.choice
    for c in range(n):
        choice.columns[choice.classes[c]], choice.has_column[choice.classes[c]] = c, 1
    place_own(choice, n, learner.counts.n_classes)
    n_filled, ahead = choice.chosen.n_filled, min(AHEAD, indices.shape[0])
    for j in range(ahead):
        fetch_owners(candidates, indices[j], n_filled)
    for j in range(indices.shape[0]):
        if j + ahead < indices.shape[0]:
            fetch_owners(candidates, indices[j + ahead], n_filled)
        list_entries(candidates, indices[j], j, n_filled)
        copy_feature(learner, candidates, window, indices[j], j, choice.chosen.n_columns + 1)
    first = columns_of_classes(window)
    for e in range(choice.chosen.n_copied):
        copy_entry(candidates, window, first, e)
    copy_classes(learner, candidates, window, n, n_filled)
    for c in range(n_filled):
        choice.has_column[choice.classes[c]] = 0


@inlined
def place_own(choice, n, k):
    """Find the columns of the own classes: behind the candidates if they are none, new ones last.

    Those of k known classes come before new ones, since they are in the order of their numbers.
    """
    chosen = choice.chosen
    chosen.n, chosen.n_filled, chosen.n_columns, chosen.n_copied = n, n, n, 0
    for o in range(chosen.n_own):
        y = np.int64(choice.own[o])
        if y < k and choice.has_column[y]:
            choice.own_columns[o] = choice.columns[y]
            continue
        choice.own_columns[o], choice.classes[chosen.n_columns] = chosen.n_columns, y
        if y < k:
            choice.columns[y], choice.has_column[y] = chosen.n_columns, 1
            chosen.n_filled += 1
        chosen.n_columns += 1
    for c in range(chosen.n_columns):
        choice.own_of[c] = NONE
    for o in range(chosen.n_own):
        choice.own_of[choice.own_columns[o]] = o


@inlined
def copy_feature(learner, candidates, window, i, j, n_columns):
    """Copy what is stored of a feature: shared weights, the virtual class, and statistics.

    The threshold of label sets has no weights.
    """
    for part in range(learner.parts.kind.shape[0]):
        own, there = learner.parts.offset[part], window.parts.offset[part]
        last = there + (n_columns if learner.parts.kind[part] == PER_CLASS else 1)
        window.weights.values[j, there:last] = learner.weights.values[i, own]
        if learner.preconditioner.evidence.shape[0]:
            window.preconditioner.evidence[j, there:last] = learner.preconditioner.evidence[i, own]
        if learner.parts.kind[part] == PER_CLASS and has_threshold(learner, candidates):
            window.weights.values[j, there + candidates.choice.columns[THE_THRESHOLD]] = 0
    for layer in range(window.statistics.sums.shape[0]):
        window.statistics.sums[layer, j, :n_columns] = 0
    for n in range(learner.statistics.pooled.shape[1]):
        window.statistics.pooled[j, n] = learner.statistics.pooled[i, n]
    for n in range(learner.preprocessing.statistics.shape[1]):
        window.preprocessing.statistics[j, n] = learner.preprocessing.statistics[i, n]


@inlined
def has_threshold(learner, candidates):
    """Return whether one of the columns is that of the threshold of label sets."""
    return learner.settings.has_sets and candidates.choice.has_column[THE_THRESHOLD]


@inlined
def columns_of_classes(learner):
    """Return the first column of the hypotheses of classes."""
    for part in range(learner.parts.kind.shape[0]):
        if learner.parts.kind[part] == PER_CLASS:
            return learner.parts.offset[part]
    return NONE


@inlined
def fetch_owners(candidates, i, n):
    """Prefetch the first places that the entries of feature i and the first n classes may have."""
    entries, length = candidates.entries, np.int64(candidates.entries.lengths[i])
    if not is_listed(length):
        for c in range(n):
            fetch(entries.owners, entries.starts[i] + hashed(candidates.choice.classes[c], length))


@inlined
def list_entries(candidates, i, j, n):
    """List where the entries of feature i and the first n classes of the window are and go.

    j : the row of the feature there. The numbers of the entries are prefetched.
    """
    entries, choice, numbers = candidates.entries, candidates.choice, candidates.entries.numbers
    before = after = choice.chosen.n_copied
    if is_listed(np.int64(entries.lengths[i])):
        # Without a branch: which classes are candidates cannot be foreseen.
        for place in range(entries.starts[i], entries.starts[i] + entries.counts[i]):
            choice.places[after] = place
            after += np.int64(choice.has_column[entries.owners[place]])
    else:
        for c in range(n):
            choice.places[after] = place_of(entries, i, choice.classes[c])
            after += choice.places[after] != NONE
    for e in range(before, after):
        place = choice.places[e]
        choice.rows[e], choice.cells[e] = j, choice.columns[entries.owners[place]]
        fetch(numbers, place * numbers.shape[1])
    choice.chosen.n_copied = after


@inlined
def copy_entry(candidates, window, first, e):
    """Copy entry e of the list."""
    numbers, choice = candidates.entries.numbers, candidates.choice
    place, j, c = choice.places[e], np.int64(choice.rows[e]), np.int64(choice.cells[e])
    weights, evidence = window.weights.values, window.preconditioner.evidence
    column, with_evidence, is_relative = first + c, has_evidence(window), window.settings.has_sets
    base = weights[j, column] if is_relative else np.float32(0)
    weights[j, column] = base + numbers[place, WEIGHT]
    if with_evidence:
        base = evidence[j, column] if is_relative else np.float32(0)
        # A sum with a difference may be below 0 by rounding.
        evidence[j, column] = max(np.float32(0), base + numbers[place, EVIDENCE])
    for layer in range(window.statistics.sums.shape[0]):
        window.statistics.sums[layer, j, c] = numbers[place, 1 + with_evidence + layer]


@inlined
def has_evidence(window):
    """Return whether weights have evidence."""
    return window.preconditioner.evidence.shape[0] != 0


@inlined
def copy_classes(learner, candidates, window, n, n_filled):
    """Copy the counts of the classes, and those of trials."""
    choice, own = candidates.choice, learner.counts
    window.counts.n_trials, window.counts.n_classes = own.n_trials, n
    window.counts.n_mistakes, window.counts.n_not_finite = own.n_mistakes, own.n_not_finite
    window.imperfect.n_trials = learner.imperfect.n_trials
    for c in range(choice.chosen.n_columns + 1):
        is_filled = c < n_filled
        amounts, divisors = window.statistics.amounts, window.statistics.divisors
        amounts[c] = learner.statistics.amounts[choice.classes[c]] if is_filled else 0.0
        divisors[:, c] = 0
    if learner.settings.has_sets:
        window.sets.offsets[:n] = learner.sets.offsets[THE_THRESHOLD]
        window.sets.evidence[:n] = learner.sets.evidence[THE_THRESHOLD]
    weigh_classes(window)


# ---- after the trial -----------------------------------------------------------------------------


@inlined
def close_window(learner, candidates, window, indices):
    """Copy back what a trial has changed."""
    chosen, own, found = candidates.choice.chosen, learner.counts, window.counts
    store_entries(candidates, window, indices)
    for j in range(indices.shape[0]):
        store_feature(learner, window, indices[j], j, chosen.n_columns)
    n_missed = chosen.n_filled - chosen.n
    is_mistake = found.n_mistakes > own.n_mistakes or n_missed > 0
    count_recall(learner, candidates, n_missed)
    store_classes(learner, candidates, window)
    own.n_trials, own.n_not_finite = found.n_trials, found.n_not_finite
    own.n_mistakes += is_mistake
    is_imperfect = window.imperfect.n_trials > learner.imperfect.n_trials or n_missed > 0
    learner.imperfect.n_trials += is_imperfect
    own.n_classes = max(own.n_classes, chosen.last + 1)


@inlined
def store_classes(learner, candidates, window):
    """Copy back the counts of the own classes, and the offsets of labels."""
    choice, recall = candidates.choice, candidates.recall
    for o in range(choice.chosen.n_own):
        y, amounts = np.int64(choice.own[o]), learner.statistics.amounts
        amounts[y] = window.statistics.amounts[choice.own_columns[o]]
        if amounts[y] > amounts[recall.frequent]:
            recall.frequent = y
    if learner.settings.has_sets:
        learn_offset(learner.sets, window.sets, choice.chosen.n)


@inlined
def learn_offset(own, found, n):
    """Take the step of the offset that labels share, from the steps that each would have taken.

    It is in the place of the threshold. Few labels are candidates often enough for one of theirs.
    """
    before, slope, information = own.offsets[THE_THRESHOLD], 0.0, 0.0
    discounted = SLOW * own.evidence[THE_THRESHOLD]
    if n <= THE_THRESHOLD + 1 or found.evidence[n - 1] == own.evidence[THE_THRESHOLD]:
        return  # nothing was learnt
    for c in range(THE_THRESHOLD + 1, n):
        slope += (found.offsets[c] - before) * (found.evidence[c] + PRIOR)
        information += found.evidence[c] - discounted
    own.evidence[THE_THRESHOLD] = discounted + information
    own.offsets[THE_THRESHOLD] += slope / (own.evidence[THE_THRESHOLD] + PRIOR)


@inlined
def count_recall(learner, candidates, n_missed):
    """Count the own classes that were known, and those of them that were no candidates."""
    recall, chosen = candidates.recall, candidates.choice.chosen
    n_known = chosen.n_own - (chosen.n_columns - chosen.n_filled)
    recall.n_rows += n_known
    recall.n_found += n_known - n_missed
    missing = candidates.missing
    if learner.settings.has_sets:
        # A label that is no candidate is not predicted.
        learner.sets.calibration.named += n_missed
        n_others = learner.counts.n_classes - chosen.n
        if n_others > 0:
            missing.share += SHARE_OF_LAST * (n_missed / n_others - missing.share)
    elif n_known > 0:
        missing.share += SHARE_OF_LAST * (n_missed - missing.share)


@inlined
def store_entries(candidates, window, indices):
    """Write back entries, and add those of the features that a class has had for the first time.

    What other classes have learnt of features that none of their rows had is not kept.
    """
    entries, choice, first = candidates.entries, candidates.choice, columns_of_classes(window)
    n_own = choice.chosen.n_own
    for i in range(choice.chosen.n_copied):
        write(candidates, choice.places[i], window, first, choice.rows[i], choice.cells[i])
        o = choice.own_of[choice.cells[i]]
        if o != NONE:
            choice.is_stored[choice.rows[i] * n_own + o] = True
    for j in range(indices.shape[0]):
        for o in range(n_own):
            column = choice.own_columns[o]
            if not choice.is_stored[j * n_own + o] and has_met(window, j, column):
                place = append(entries, indices[j], choice.own[o])
                write(candidates, place, window, first, j, column)
            choice.is_stored[j * n_own + o] = False


@inlined
def has_met(window, j, c):
    """Return whether a row of a class had a feature."""
    for layer in range(window.statistics.sums.shape[0]):
        if window.statistics.sums[layer, j, c] != 0:
            return True
    return False


@inlined
def write(candidates, place, window, first, j, c):
    """Write the numbers of an entry."""
    entries, weights = candidates.entries, window.weights.values
    evidence, with_evidence = window.preconditioner.evidence, has_evidence(window)
    virtual = first + candidates.choice.chosen.n_columns
    is_relative = window.settings.has_sets
    base = weights[j, virtual] if is_relative else np.float32(0)
    entries.numbers[place, WEIGHT] = weights[j, first + c] - base
    if with_evidence:
        base = evidence[j, virtual] if is_relative else np.float32(0)
        entries.numbers[place, EVIDENCE] = evidence[j, first + c] - base
    for layer in range(window.statistics.sums.shape[0]):
        entries.numbers[place, 1 + with_evidence + layer] = window.statistics.sums[layer, j, c]


@inlined
def store_feature(learner, window, i, j, n):
    """Copy back what is stored of a feature; the virtual class is in column n."""
    for part in range(learner.parts.kind.shape[0]):
        own, there = learner.parts.offset[part], window.parts.offset[part]
        there += n if learner.parts.kind[part] == PER_CLASS else 0
        learner.weights.values[i, own] = window.weights.values[j, there]
        if learner.preconditioner.evidence.shape[0]:
            learner.preconditioner.evidence[i, own] = window.preconditioner.evidence[j, there]
    for m in range(learner.statistics.pooled.shape[1]):
        learner.statistics.pooled[i, m] = window.statistics.pooled[j, m]
    for m in range(learner.preprocessing.statistics.shape[1]):
        learner.preprocessing.statistics[i, m] = window.preprocessing.statistics[j, m]
