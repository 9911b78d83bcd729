"""Rows with candidates: how a learner learns and assesses them, and what is said of all classes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.data.labels import Label, TopLabel, top_labels
from kesler.data.rows import Rows
from kesler.learner.events import Event, encoded_targets_of, task_of
from kesler.learner.observing import Learnt
from kesler.learner.targets import Answers
from kesler.learner.uncertainty import Assessment

Codes = npt.NDArray[np.int32]
Doubles = npt.NDArray[np.float64]
Scores = npt.NDArray[np.float32]


def learn_in_parts(
    learner: Any,
    rows: Rows | Event,
    labels: Sequence[Label],
    weights: Doubles | None,
    answers: Callable[[Codes], Answers],
    *results: Any,
) -> Learnt:
    """Learn rows as long as they are compared with all classes, and the others with candidates.

    Parameters
    ----------
    learner : a learner that has candidates; its lock must be held.
    rows, labels, weights, answers : as for its method `learn`.
    results : scores, probabilities and, if uncertainty is learnt, traces.

    Raises
    ------
    KeslerError
        If a row or a label is refused; no row is learnt then.
    """
    given = rows.rows if isinstance(rows, Event) else rows
    learner._require_weighable(weights)
    learner._admitted_with(given, labels)
    first, found = first_beyond(learner, labels), []
    for part in (slice(0, first), slice(first, len(labels))):
        if part.start == part.stop:
            continue
        if part.start == first and learner.comparing is None:
            learner.compare_candidates()
        some = None if weights is None else weights[part]
        learning = given[part], labels[part], some, answers, *(each[part] for each in results)
        if learner.comparing is not None:
            found.append(_learn(learner, *learning))
        else:
            learn = learner.learn if len(results) == 2 else learner.observe
            found.append(learn(*learning))
    learner._require_finite_steps()
    predictions, codes = zip(*found, strict=True)
    return np.concatenate(predictions), np.concatenate(codes)


def first_beyond(learner: Any, labels: Sequence[Label]) -> int:
    """Return the first row whose class is one too many to be compared with all others."""
    if learner.comparing is not None:
        return 0
    seen = set(learner.classes.labels)
    for i, label in enumerate(labels):
        seen.add(label)
        if len(seen) > learner.candidates.beyond:
            return i
    return len(labels)


def _learn(
    learner: Any,
    rows: Rows,
    labels: Sequence[Label],
    weights: Doubles | None,
    answers: Callable[[Codes], Answers],
    scores: Scores,
    probabilities: Doubles,
    traces: Doubles | None = None,
) -> Learnt:
    codes, blocks = learner._encode(learner._admitted_with(rows, labels), labels)
    encoded = encoded_targets_of(answers(codes), weights, learner._class_capacity)
    task, n_known = task_of(blocks, encoded, len(rows)), learner.n_known
    for part, said in learner.comparing.learn(learner, task):
        write_scores(said, scores[part])
        if len(probabilities):
            found = probabilities[part]
            found[:, :2] = said.arrays.probabilities[: len(found), :2]
            write_probabilities(said, found[:, 2:])
        if traces is not None:
            learner.uncertainty.observe_compared(n_known, said, codes[part], traces[part])
        n_known = learner.n_known
    return task.arrays.predictions, codes


def predict(learner: Any, task: Any) -> None:
    """Score the rows of a task, whose arrays receive what is said of all classes if asked."""
    results = task.arrays
    for part, said in learner.comparing.predict(learner, task):
        write_scores(said, results.scores[part])
        write_probabilities(said, results.probabilities[part])


def assess(learner: Any, rows: Rows | Event) -> Assessment:
    """Return what a learner says of rows that have candidates."""
    with learner.lock:
        n_rows, n_known = len(rows), learner.n_known
        chances, told = np.empty((n_rows, 2 + n_known)), np.empty((n_rows, 2))
        task = learner._scoring_task(rows)
        for part, said in learner.comparing.predict(learner, task):
            write_probabilities(said, chances[part, 2:])
            learner.uncertainty.tell_compared(n_known, said, told[part])
    return Assessment(task.arrays.predictions, chances, told[:, 0].copy(), told[:, 1].copy())


def top_candidates(learner: Any, rows: Rows | Event, n: int) -> list[list[TopLabel]] | None:
    """Return the candidates of highest score of each row; None if a row has fewer than n."""
    found: list[list[TopLabel]] = []
    with learner.lock:
        labels, n = learner.classes.labels, min(n, learner.n_known)
        for part, said in learner.comparing.predict(learner, learner._scoring_task(rows)):
            compared, n_rows = said.arrays, part.stop - part.start
            if compared.counts[:n_rows].min() < n:
                return None
            for t, count in enumerate(compared.counts[:n_rows].tolist()):
                names = [labels[code] for code in compared.classes[t, :count].tolist()]
                chances = compared.probabilities[t : t + 1, 2 : 2 + count]
                found += top_labels(names, compared.scores[t : t + 1, :count], chances, n)
    return found


# ---- results for all classes ---------------------------------------------------------------------


def write_scores(said: Any, scores: Scores) -> None:
    """Write the scores of all known classes; those of no candidates are below all others."""
    compared = said.arrays
    for t, row in enumerate(scores):
        known, n = int(compared.known[t]), int(compared.counts[t])
        if n < known:
            row[:known] = compared.scores[t, :n].min() - 1
        row[compared.classes[t, :n]] = compared.scores[t, :n]


def write_probabilities(said: Any, found: Doubles) -> None:
    """Write the probabilities of all known classes; those of no candidates share what is left."""
    compared = said.arrays
    for t, row in enumerate(found if found.shape[1] else ()):
        known, n = int(compared.known[t]), int(compared.counts[t])
        chances = compared.probabilities[t, 2 : 2 + n]
        if n < known:
            row[:known] = max(0.0, 1.0 - float(chances.sum())) / (known - n)
        row[compared.classes[t, :n]] = chances
