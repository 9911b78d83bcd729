"""Blocks of finite rows, as readers yield them: how an estimator learns and scores them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kesler.data.inputs import parts_of
from kesler.data.labels import Label
from kesler.errors import KeslerError
from kesler.learner.uncertainty import Assessment, Judged, SetRequest, require_coverage
from kesler.online.contract import exclusive_trials
from kesler.online.training import Trials, names_of_learnt_rows
from kesler.online.uncertain import assessed_rows, sets

if TYPE_CHECKING:
    from kesler.data.rows import Rows
    from kesler.learner.ensemble import AnyLearner
    from kesler.learner.explanations import Explanation
    from kesler.online.model import Model
    from kesler.trees.paths import PathAnswer

Codes = npt.NDArray[np.int32]


@exclusive_trials
def learn_rows(
    model: Model,
    rows: Any,
    labels: list[Label],
    weights: npt.NDArray[np.float64] | None = None,
    *,
    keep_places: bool = False,
) -> Trials:
    """Learn from rows of numbers, or the raw cells of a table.

    Parameters
    ----------
    model : OnlineClassifier
    rows : Rows, or Table
    labels, weights : the label and the weight of each row; None if all weights are 1.
    keep_places : whether the places of targets are found.

    Returns
    -------
    The trials; rows of weight 0 are skipped.

    Raises
    ------
    KeslerError
        If the rows do not have the model's number of features, which its first dense rows, or
        the array or data frame that it learnt from, have determined.
    """
    reader = model._input
    if reader.columns.read_table(model, rows) is not None:
        return model._run_trials(rows, labels, weights, keep_places=keep_places)
    reader.columns.close()
    reader.require_readable(model, rows)
    with names_of_learnt_rows(model):
        rated = replace(rows, ratings=reader.numbered(model, rows.ratings, learn=True))
        targets = model.answer.encoded_labels(labels, model._known_classes())
        return model._learn(rated, targets, weights, keep_places=keep_places)


def readable_rows(model: Model, rows: Any) -> Rows:
    """Return rows of numbers, or the raw cells of a table, as a model scores them."""
    return model._input.readable(model, rows)


def estimates(model: Model) -> bool:
    """Return whether a model estimates its uncertainty."""
    return model._fitted().uncertainty is not None


def assess_rows(model: Model, rows: Rows) -> Assessment:
    """Return what is said of the uncertainty of rows."""
    return Assessment.concatenate([*assessed_rows(model, rows)])


def judged_rows(model: Model, rows: Rows, codes: Codes) -> Judged:
    """Return what a model says of rows, and of their classes; no row needs the scores of all.

    Parameters
    ----------
    model : OnlineClassifier
    rows : as `readable_rows` returns them.
    codes : the number of the class of each row; that of an unknown class is at least `n_known_`.
    """
    learner = model._fitted()
    if learner.comparing is not None:
        from kesler.learner.compared import judge

        return Judged.concatenate([*judge(learner, rows, codes)])
    found, start = [], 0
    for part in parts_of(rows, learner.n_known):
        found.append(_judged(learner, part, codes[start : start + len(part)]))
        start += len(part)
    return Judged.concatenate(found)


def _judged(learner: AnyLearner, rows: Rows, codes: Codes) -> Judged:
    """Return what a learner says of rows that are compared with all classes."""
    from kesler.metrics import places

    each, is_known = np.arange(len(codes)), codes < learner.n_known
    known = np.minimum(codes, learner.n_known - 1)
    if learner.uncertainty is not None:
        said = learner.assess(rows)
        predicted, confidences, found = said.predictions, said.confidence, said.probabilities[:, 2:]
    else:
        predicted, found = learner.predict(rows), learner.probabilities(rows)
        confidences = found[each, predicted]
    of_targets = np.where(is_known, found[each, known], np.nan)
    among = np.where(is_known, places(found, known), 0)
    return Judged(predicted, confidences, of_targets, among.astype(np.int32))


def sets_of(model: Model, said: Assessment, coverage: float) -> list[list[Any]]:
    """Return the prediction sets of rows, given what is said of them."""
    return sets(model, said, SetRequest(require_coverage(coverage)))


def path_rows(model: Model, rows: Rows, least: float, separator: str) -> list[PathAnswer]:
    """Return the answer of each row where labels are paths."""
    from kesler.online.backing_off import path_answers

    return [*path_answers(model._fitted(), [rows], least, separator)]


def path_of_row(model: Any, x: Any, **options: Any) -> PathAnswer:
    """Return the answer of `predict_path_one`; raise if an estimator has no such answers."""
    if not hasattr(model, "predict_path_one"):
        raise KeslerError(
            f"{type(model).__name__} has no answers by paths: they are of learners whose rows have "
            "one class, such as OnlineClassifier"
        )
    found: PathAnswer = model.predict_path_one(x, **options)
    return found


def explain_rows(
    model: Model,
    rows: Any,
    label: Any,
    rival: Any,
    n: int,
    *,
    features: bool,
) -> Iterator[Explanation]:
    """Yield the explanation of each row; other parameters are those of `explain_one`."""
    from kesler.online.explaining import Question, explained, explained_cells, names_of_model

    learner, columns = model._fitted(), model._input.columns
    table = columns.read_table(model, rows) if columns.state is not None else None
    found = readable_rows(model, rows) if table is None else table
    name_of, asked = names_of_model(model._input), Question(label, rival, n, features)
    for i in range(len(found)):
        with learner.lock:
            if table is None:
                explanation = explained(learner, found[i : i + 1], name_of, asked)
            else:
                explanation = explained_cells(model, learner, table[i : i + 1], asked)
        yield explanation
