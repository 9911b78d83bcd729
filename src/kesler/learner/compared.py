"""Rows with candidates: how a learner learns and assesses them, and what is said of all classes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.data.labels import Label, TopLabel, top_labels
from kesler.data.rows import Rows
from kesler.learner.events import NO_PLACES, Event, encoded_targets_of, task_of
from kesler.learner.observing import Learnt
from kesler.learner.targets import Answers
from kesler.learner.uncertainty import Assessment, Judged

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
    results : scores, probabilities and, as for `learn_observed`, traces and places.

    Raises
    ------
    KeslerError
        If a row or a label is refused; no row is learnt then.
    """
    given = rows.rows if isinstance(rows, Event) else rows
    learner._require_weighable(weights)
    learner._admitted_with(given, labels)
    targets = NamedTargets.of(labels, answers, learner.classes.n_virtual)
    first, found = first_beyond(learner, targets), []
    for part in (slice(0, first), slice(first, len(given))):
        if part.start == part.stop:
            continue
        if part.start == first and learner.comparing is None:
            learner.compare_candidates()
        some, named = None if weights is None else weights[part], targets[part]
        learning = some, named.answers, *(each[part] for each in results)
        if learner.comparing is not None:
            found.append(_learn(learner, given[part], named.labels, *learning))
        else:
            learn = learner.learn if len(results) == 2 else learner.observe
            found.append(learn(given[part], named.labels, *learning))
    learner._require_finite_steps()
    predictions, codes = zip(*found, strict=True)
    return np.concatenate(predictions), np.concatenate(codes)


@dataclass(frozen=True)
class NamedTargets:
    """Targets whose classes have no numbers yet, of which some rows can be taken.

    Parameters
    ----------
    labels : the labels of the targets, one target after the other.
    places : targets of the places in `labels`, counted from `n_virtual` on; below are virtual ones.
    """

    labels: Sequence[Label]
    places: Answers
    n_virtual: int

    @staticmethod
    def of(
        labels: Sequence[Label], answers: Callable[[Codes], Answers], n_virtual: int
    ) -> NamedTargets:
        """Return the targets that a function makes from the numbers of labels."""
        places = np.arange(n_virtual, n_virtual + len(labels), dtype=np.int32)
        return NamedTargets(labels, answers(places), n_virtual)

    def __getitem__(self, rows: slice) -> NamedTargets:
        """Return consecutive rows."""
        whole = self.places
        indptr = whole.indptr[rows.start : rows.stop + 1]
        named = slice(int(indptr[0]), int(indptr[-1]))
        codes = whole.codes[named].copy()
        is_label = codes >= self.n_virtual
        labels = [self.labels[i - self.n_virtual] for i in codes[is_label].tolist()]
        codes[is_label] = np.arange(self.n_virtual, self.n_virtual + len(labels))
        some = replace(whole, indptr=indptr - indptr[0], codes=codes, levels=whole.levels[named])
        return NamedTargets(labels, some, self.n_virtual)

    def answers(self, codes: Codes) -> Answers:
        """Return the encoded targets, given the numbers of `labels`."""
        virtual = np.arange(self.n_virtual, dtype=np.int32)
        return replace(self.places, codes=np.concatenate([virtual, codes])[self.places.codes])


def first_beyond(learner: Any, targets: NamedTargets) -> int:
    """Return the first row with a class that is one too many to be compared with all others."""
    n_rows = len(targets.places)
    if learner.comparing is not None:
        return 0
    seen, ends = set(learner.classes.labels), targets.places.indptr.tolist()
    codes = targets.places.codes.tolist()
    for t in range(n_rows):
        named = (code - targets.n_virtual for code in codes[ends[t] : ends[t + 1]])
        seen.update(targets.labels[i] for i in named if i >= 0)
        if len(seen) > learner.candidates.beyond:
            return t
    return n_rows


def _learn(
    learner: Any,
    rows: Rows,
    labels: Sequence[Label],
    weights: Doubles | None,
    answers: Callable[[Codes], Answers],
    scores: Scores,
    probabilities: Doubles,
    traces: Doubles | None = None,
    places: Codes = NO_PLACES,
) -> Learnt:
    codes, blocks = learner._encode(learner._admitted_with(rows, labels), labels)
    encoded = encoded_targets_of(answers(codes), weights, learner._class_capacity)
    task, n_known = task_of(blocks, encoded, len(rows)), learner.n_known
    for part, said in learner.comparing.learn(learner, task):
        write_scores(said, scores[part])
        if not learner.has_sets:
            _tell_classes(said, probabilities[part])
        if traces is not None and learner.uncertainty is not None and learner.observes:
            _observe(learner.uncertainty, n_known, said, codes, part, traces[part])
        if len(places):
            from kesler.learner.places import places_among_candidates

            places[part] = places_among_candidates(said, codes[part])
        n_known = learner.n_known
    return task.arrays.predictions, codes


def _observe(
    uncertainty: Any, n_known: int, said: Any, codes: Codes, part: slice, traces: Doubles
) -> None:
    """Let estimates learn from what was said of a part of the rows."""
    if uncertainty.answer == "sets":
        uncertainty.observe_labels_compared(said, part.stop - part.start, traces)
    else:
        uncertainty.observe_compared(n_known, said, codes[part], traces)


def _tell_classes(said: Any, found: Doubles) -> None:
    """Write the probabilities of predictions, targets and all classes, if asked."""
    if len(found):
        found[:, :2] = said.arrays.probabilities[: len(found), :2]
        write_probabilities(said, found[:, 2:])


def predict(learner: Any, task: Any) -> None:
    """Score the rows of a task, whose arrays receive what is said of all classes if asked."""
    results = task.arrays
    for part, said in learner.comparing.predict(learner, task):
        write_scores(said, results.scores[part])
        write_probabilities(said, results.probabilities[part], has_sets=learner.has_sets)


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


def judge(learner: Any, rows: Rows, codes: Codes) -> Iterator[Judged]:
    """Yield what a learner says of rows that have candidates, and of their classes.

    codes : the number of the class of each row, at least that of known classes for a new one.
    """
    from kesler.learner.places import places_among_candidates

    with learner.lock:
        n_known, task = learner.n_known, learner._scoring_task(rows)
        for part, said in learner.comparing.predict(learner, task):
            targets = codes[part]
            confidences = said.arrays.probabilities[: len(targets), 0].copy()
            if learner.uncertainty is not None:
                told = np.empty((len(targets), 2))
                learner.uncertainty.tell_compared(n_known, said, told)
                confidences = told[:, 1].copy()
            yield Judged(
                task.arrays.predictions[part].copy(),
                confidences,
                _of_targets(said, targets),
                places_among_candidates(said, targets).astype(np.int32),
            )


def _of_targets(said: Any, codes: Codes) -> Doubles:
    """Return the probability of the class of each row, as `write_probabilities` does; else NaN."""
    n_rows, compared = len(codes), said.arrays
    counts, known = compared.counts[:n_rows], compared.known[:n_rows]
    chances = compared.probabilities[:n_rows, 2:]
    is_candidate = np.arange(chances.shape[1]) < counts[:, None]
    is_own = is_candidate & (compared.classes[:n_rows] == codes[:, None])
    left = np.maximum(0.0, 1.0 - np.where(is_candidate, chances, 0.0).sum(axis=1))
    others = left / np.maximum(1, known - counts)
    own = np.where(is_own, chances, 0.0).sum(axis=1)
    return np.where(codes < known, np.where(is_own.any(axis=1), own, others), np.nan)


def top_candidates(learner: Any, rows: Rows | Event, n: int) -> list[list[TopLabel]] | None:
    """Return the candidates of highest score of each row; None if a row has fewer than n."""
    found: list[list[TopLabel]] = []
    with learner.lock:
        labels, first = learner.classes.labels, learner.classes.n_virtual
        n = min(n, len(labels))
        for part, said in learner.comparing.predict(learner, learner._scoring_task(rows)):
            compared, n_rows = said.arrays, part.stop - part.start
            if compared.counts[:n_rows].min() < first + n:
                return None
            for t, count in enumerate(compared.counts[:n_rows].tolist()):
                names = [labels[code - first] for code in compared.classes[t, first:count].tolist()]
                scores, chances = compared.scores[t], compared.probabilities[t, 2 + first :]
                own = scores[first:count] - (scores[0] if first else np.float32(0))
                found += top_labels(names, own[None], chances[None, : count - first], n)
    return found


def move_of_labels(learner: Any) -> float:
    """Return what a decision by the F1 adds to the scores of all labels above the threshold."""
    own, offset = learner.stored["sets.calibration"][0], float(learner.stored["sets.offsets"][0])
    unit = 1 / float(own["inverse"]) if own["inverse"] > 0 else 1.0
    hits, named = float(own["hits"]), float(own["named"])
    return unit * (offset - math.log(hits / (named - hits)))


# ---- results for all classes ---------------------------------------------------------------------


def write_scores(said: Any, scores: Scores) -> None:
    """Write the scores of all known classes; those of no candidates are below all others."""
    compared = said.arrays
    for t, row in enumerate(scores):
        known, n = int(compared.known[t]), int(compared.counts[t])
        if n < known:
            row[:known] = compared.scores[t, :n].min() - 1
        row[compared.classes[t, :n]] = compared.scores[t, :n]


def write_probabilities(said: Any, found: Doubles, *, has_sets: bool = False) -> None:
    """Write the probabilities of all known classes; those of no candidates share what is left.

    Of label sets, those of no candidates have the probability that is written for them.
    """
    compared = said.arrays
    for t, row in enumerate(found if found.shape[1] else ()):
        known, n = int(compared.known[t]), int(compared.counts[t])
        chances = compared.probabilities[t, 2 : 2 + n]
        if n < known and has_sets:
            row[:known] = compared.probabilities[t, 0]
        elif n < known:
            row[:known] = max(0.0, 1.0 - float(chances.sum())) / (known - n)
        row[compared.classes[t, :n]] = chances
