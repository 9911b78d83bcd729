"""Trials of learners that are told only whether the class that they show is right."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

from functools import cache
from typing import Any

from kesler.compiled.jit.background import recipe
from kesler.compiled.jit.decorators import inlined
from kesler.compiled.jit.pointers import stay_apart
from kesler.compiled.trial import facts
from kesler.compiled.trial.exploration import drawn, find_chances, share_of
from kesler.compiled.trial.feedback import calibrate_shown, learn_feedback
from kesler.compiled.trial.forgetting import age
from kesler.compiled.trial.preprocessing import is_preprocessed, preprocess, remember
from kesler.compiled.trial.records import NOTHING, Blocks, EncodedTargets, Ratings
from kesler.compiled.trial.tasks import Kernels
from kesler.compiled.trial.trial import (
    brings_new,
    ends_here,
    join_new,
    keep,
    meet,
    predict_by_means,
    score_candidates,
)
from kesler.compiled.trial.variants import (
    best,
    is_averaged,
    keep_pace,
    keep_up,
    list_features,
    meet_features,
    meet_hypotheses,
    rescale,
    settle,
)
from kesler.compiled.trial.weight_trial import compiled_for, write_arguments
from kesler.compiled.views.statistics import join, weigh_classes

__all__ = ["Blocks", "EncodedTargets", "Ratings", "kernels_for", "write_arguments"]


@inlined
def learn_shown(learner, rows, encoded, predictions, scores, probabilities, scratch, solver):
    """Run one trial per row: show a class, and learn whether it is right.

    Where the probability of the shown class is given, a target names this class, at level 0 if it
    is right. Otherwise a target names the right class, the class to show is drawn, and nothing but
    whether it is the right one is used; a class that is named for the first time becomes known.
    """
    stay_apart()
    introduce(learner, scratch.out)
    is_answer = learner.exploration.given.probability > 0
    for t in range(rows.indptr.shape[0] - 1):
        row = rows.indices[rows.indptr[t] : rows.indptr[t + 1]]
        values = rows.values[rows.indptr[t] : rows.indptr[t + 1]]
        codes = encoded.codes[encoded.indptr[t] : encoded.indptr[t + 1]]
        levels = encoded.levels[encoded.indptr[t] : encoded.indptr[t + 1]]
        weight = encoded.row_weights[t] if encoded.row_weights.shape[0] else 1.0
        k = learner.counts.n_classes
        x = values
        if is_preprocessed(learner):
            preprocess(learner, row, values, scratch)
            x = scratch.conditioned[: values.shape[0]]
        keep_up(learner, row, x, scratch)
        averaged = is_averaged(learner)
        if averaged:
            predict_by_means(learner, rows, t, row, x, scratch)
        else:
            score_candidates(learner, rows, t, row, x, scratch)
        winner = best(learner, scratch.scores, k)
        shown, right, p = winner, False, learner.exploration.given.probability
        if is_answer:
            shown, right = codes[0], levels[0] == 0
        elif k > 0:
            shown, p = show(learner, k, winner, scratch)
            right = shown == codes[0]
        predictions[t] = shown
        if ends_here(learner, scratch):
            return t
        keep(learner, scratch.scores, k, scores, t)
        calibrate_shown(
            learner,
            scratch.scores,
            k,
            winner,
            shown,
            right,
            codes[0],
            solver.exponentials,
            probabilities,
            t,
        )
        meet_features(learner, row, k, scratch)
        list_features(learner, row)
        if rescale(learner, row, x, weight * learner.decay.row.weight) or averaged:
            score_candidates(learner, rows, t, row, x, scratch)
        if k > 0:
            learn_feedback(
                learner, row, x, codes, levels, weight, winner, shown, right, p, scratch, solver
            )
        if ends_here(learner, scratch):
            return t
        learner.counts.n_trials += 1
        if is_answer:
            learner.exploration.pending[shown] -= 1
        learner.counts.n_mistakes += not right and (is_answer or codes[0] < k)
        keep_pace(learner)
        age(learner, row.shape[0], scratch)
        counted = weight * learner.decay.row.weight
        if right:
            meet(learner, row, x, codes, levels, counted, scratch.out)
        else:
            codes, levels = meet_wrong(learner, codes, levels, scratch)
        remember(learner, row, values, codes, levels, counted)
    return rows.indptr.shape[0] - 1


@inlined
def introduce(learner, out):
    """Add the classes that are to be known from the start."""
    n_before = learner.counts.n_classes
    for y in range(n_before, learner.exploration.given.n_known):
        learner.counts.n_classes = y + 1
        join(learner, y)
        meet_hypotheses(learner, y, out)
    if learner.counts.n_classes > n_before and learner.statistics.pooled.shape[1]:
        weigh_classes(learner)


@inlined
def show(learner, k, winner, scratch):
    """Draw the class to show; return it and its probability."""
    exploration, chances = learner.exploration, scratch.products
    n_trials = learner.counts.n_trials
    find_chances(
        exploration.kind, exploration.parameters, n_trials, scratch.scores, k, winner, chances
    )
    share = share_of(exploration.draws.n_drawn, exploration.seed)
    learner.exploration.draws.n_drawn += 1
    shown = drawn(chances, k, share)
    return shown, chances[shown]


@inlined
def meet_wrong(learner, codes, levels, scratch):
    """Add the classes that are named for the first time; return a target that names no class.

    The row is in no statistics of a class, since its class is not known.
    """
    if brings_new(learner, codes):
        join_new(learner, codes, scratch.out)
    settle(learner, scratch.out)
    return codes[:NOTHING], levels[:NOTHING]


def kernels_for(learner: Any) -> Kernels:
    """Return the kernels for a learner, given its record."""
    return kernels(next(n for n, each in facts.BANDITS.items() if facts.hold(each, learner)))


@recipe
@cache
def kernels(name: str) -> Kernels:
    """Return the kernels of a variant, compiled for its facts."""
    return compiled_for(name, facts.BANDITS[name], learn_all=learn_shown)
