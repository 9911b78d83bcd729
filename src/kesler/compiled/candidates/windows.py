"""Windows: the features of one row and its candidates, as the dense table of a small learner.

A trial runs on the window as it does for few classes. The features of the row are rows 0, 1, ... of
the table, the candidates its first classes, in the order of their numbers. A target that is none of
them follows, and joins as a new class does; then comes the virtual class. A weight without an entry
is that of the virtual class.
"""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import numpy as np

from kesler.compiled.candidates.choosing import choose
from kesler.compiled.candidates.entries import NONE, append, place_of
from kesler.compiled.jit.decorators import inlined
from kesler.compiled.trial.records import PER_CLASS
from kesler.compiled.views.statistics import weigh_classes

WEIGHT, EVIDENCE = 0, 1
# Longer blocks than this multiple of the candidates are not read from end to end.
MOST_READ = 2
# The weight of the last row in the share of rows whose class is no candidate.
SHARE_OF_LAST = 0.002


@inlined
def open_window(learner, candidates, window, indices, y):
    """Choose the candidates of a row, and copy what a trial reads; y is -1 without target."""
    n = choose(learner, candidates, indices, learner.counts.n_classes)
    copy_row(learner, candidates, window, indices, y, n)


@inlined
def copy_row(learner, candidates, window, indices, y, n):
    """Copy what a trial reads of a row and the first n classes of the choice."""
    choice, k = candidates.choice, learner.counts.n_classes
    for c in range(n):
        choice.columns[choice.classes[c]] = c
    n_filled, choice.chosen.n = n, n
    choice.chosen.target, choice.chosen.is_new, choice.chosen.n_copied = NONE, y >= k, 0
    if y >= k or (y >= 0 and choice.columns[y] == NONE):
        choice.classes[n], choice.chosen.target = y, n
        if y < k:
            choice.columns[y] = n
            n_filled += 1
    elif y >= 0:
        choice.chosen.target = choice.columns[y]
    for j in range(indices.shape[0]):
        copy_feature(learner, window, indices[j], j, n + 2)
        copy_entries(candidates, window, indices[j], j, n_filled)
    copy_classes(learner, candidates, window, n, n_filled)
    for c in range(n_filled):
        choice.columns[choice.classes[c]] = NONE


@inlined
def copy_feature(learner, window, i, j, n_columns):
    """Copy what is stored of a feature: shared weights, the virtual class, and statistics."""
    for part in range(learner.parts.kind.shape[0]):
        own, there = learner.parts.offset[part], window.parts.offset[part]
        last = there + (n_columns if learner.parts.kind[part] == PER_CLASS else 1)
        window.weights.values[j, there:last] = learner.weights.values[i, own]
        if learner.preconditioner.evidence.shape[0]:
            window.preconditioner.evidence[j, there:last] = learner.preconditioner.evidence[i, own]
    for layer in range(window.statistics.sums.shape[0]):
        window.statistics.sums[layer, j, :n_columns] = 0
    for n in range(learner.statistics.pooled.shape[1]):
        window.statistics.pooled[j, n] = learner.statistics.pooled[i, n]
    for n in range(learner.preprocessing.statistics.shape[1]):
        window.preprocessing.statistics[j, n] = learner.preprocessing.statistics[i, n]


@inlined
def columns_of_classes(learner):
    """Return the first column of the hypotheses of classes."""
    for part in range(learner.parts.kind.shape[0]):
        if learner.parts.kind[part] == PER_CLASS:
            return learner.parts.offset[part]
    return NONE


@inlined
def copy_entries(candidates, window, i, j, n):
    """Copy the entries of feature i and the first n classes of the window to row j."""
    entries, choice, first = candidates.entries, candidates.choice, columns_of_classes(window)
    p, start = np.int64(entries.powers[i]), entries.starts[i]
    if p == NONE:
        return
    if 1 << p > MOST_READ * n:
        for c in range(n):
            place = place_of(entries, i, choice.classes[c])
            if place != NONE:
                copy_entry(candidates, window, first, j, c, place)
        return
    for place in range(start, start + (1 << p)):
        r = entries.owners[place]
        if r != NONE:
            column = np.int64(choice.columns[r])
            if column != NONE:
                copy_entry(candidates, window, first, j, column, place)


@inlined
def copy_entry(candidates, window, first, j, c, place):
    """Copy an entry, and note where it came from."""
    numbers, choice = candidates.entries.numbers, candidates.choice
    window.weights.values[j, first + c] = numbers[place, WEIGHT]
    with_evidence = window.preconditioner.evidence.shape[0] != 0
    if with_evidence:
        window.preconditioner.evidence[j, first + c] = numbers[place, EVIDENCE]
    for layer in range(window.statistics.sums.shape[0]):
        window.statistics.sums[layer, j, c] = numbers[place, 1 + with_evidence + layer]
    n_copied = choice.chosen.n_copied
    choice.places[n_copied], choice.rows[n_copied], choice.cells[n_copied] = place, j, c
    choice.chosen.n_copied = n_copied + 1


@inlined
def copy_classes(learner, candidates, window, n, n_filled):
    """Copy the counts of the classes, and those of trials."""
    choice, own = candidates.choice, learner.counts
    window.counts.n_trials, window.counts.n_classes = own.n_trials, n
    window.counts.n_mistakes, window.counts.n_not_finite = own.n_mistakes, own.n_not_finite
    for c in range(n + 2):
        is_filled = c < n_filled
        amounts, divisors = window.statistics.amounts, window.statistics.divisors
        amounts[c] = learner.statistics.amounts[choice.classes[c]] if is_filled else 0.0
        divisors[:, c] = 0
    weigh_classes(window)


# ---- after the trial -----------------------------------------------------------------------------


@inlined
def close_window(learner, candidates, window, indices, y):
    """Copy back what a trial has changed."""
    choice, own, found = candidates.choice, learner.counts, window.counts
    n, target = choice.chosen.n, choice.chosen.target
    store_entries(candidates, window, indices)
    for j in range(indices.shape[0]):
        store_feature(learner, window, indices[j], j, max(n, target + 1))
    own.n_trials, own.n_not_finite = found.n_trials, found.n_not_finite
    own.n_mistakes = found.n_mistakes + (target == n and not choice.chosen.is_new)
    own.n_classes = max(own.n_classes, y + 1)
    learner.statistics.amounts[y] = window.statistics.amounts[target]
    count_recall(learner, candidates, y)


@inlined
def count_recall(learner, candidates, y):
    """Count whether the class was a candidate, and keep the class of most rows."""
    recall, chosen = candidates.recall, candidates.choice.chosen
    amounts = learner.statistics.amounts
    if not chosen.is_new:
        is_found = chosen.target < chosen.n
        recall.n_rows += 1
        recall.n_found += is_found
        candidates.missing.share += SHARE_OF_LAST * ((not is_found) - candidates.missing.share)
    if amounts[y] > amounts[recall.frequent]:
        recall.frequent = y


@inlined
def store_entries(candidates, window, indices):
    """Write back entries, and add those of the features that the class has had for the first time.

    What other classes have learnt of features that none of their rows had is not kept.
    """
    entries, choice, first = candidates.entries, candidates.choice, columns_of_classes(window)
    target = choice.chosen.target
    for i in range(choice.chosen.n_copied):
        write(entries, choice.places[i], window, first, choice.rows[i], choice.cells[i])
        if choice.cells[i] == target:
            choice.is_stored[choice.rows[i]] = True
    for j in range(indices.shape[0]):
        if not choice.is_stored[j] and has_met(window, j, target):
            place = append(entries, indices[j], choice.classes[target])
            write(entries, place, window, first, j, target)
        choice.is_stored[j] = False


@inlined
def has_met(window, j, c):
    """Return whether a row of a class had a feature."""
    for layer in range(window.statistics.sums.shape[0]):
        if window.statistics.sums[layer, j, c] != 0:
            return True
    return False


@inlined
def write(entries, place, window, first, j, c):
    """Write the numbers of an entry."""
    with_evidence = window.preconditioner.evidence.shape[0] != 0
    entries.numbers[place, WEIGHT] = window.weights.values[j, first + c]
    if with_evidence:
        entries.numbers[place, EVIDENCE] = window.preconditioner.evidence[j, first + c]
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
