"""Blocks of finite rows, as readers yield them: how an estimator learns and scores them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kesler.data.labels import Label
from kesler.learner.uncertainty import Assessment, SetRequest, require_coverage
from kesler.online.contract import exclusive_trials
from kesler.online.training import names_of_learnt_rows
from kesler.online.uncertain import assessed_rows, sets

if TYPE_CHECKING:
    from kesler.data.rows import Rows
    from kesler.learner.explanations import Explanation
    from kesler.online.model import Model
    from kesler.trees.paths import PathAnswer

Codes = npt.NDArray[np.int32]


@exclusive_trials
def learn_rows(
    model: Model, rows: Any, labels: list[Label], weights: npt.NDArray[np.float64] | None = None
) -> tuple[Codes, Codes]:
    """Learn from rows of numbers, or the raw cells of a table.

    Parameters
    ----------
    model : OnlineClassifier
    rows : Rows, or Table
    labels, weights : the label and the weight of each row; None if all weights are 1.

    Returns
    -------
    The codes of the classes predicted before each update, and those of the targets; -1 if there
    was no prediction because no class was known. Rows of weight 0 are skipped.

    Raises
    ------
    KeslerError
        If the rows do not have the model's number of features, which its first dense rows, or
        the array or data frame that it learnt from, have determined.
    """
    reader, answer = model._input, model.answer
    if reader.columns.read_table(model, rows) is not None:
        trials = model._run_trials(rows, labels, weights)
    else:
        reader.columns.close()
        reader.require_readable(model, rows)
        with names_of_learnt_rows(model):
            rated = replace(rows, ratings=reader.numbered(model, rows.ratings, learn=True))
            targets = answer.encoded_labels(labels, model._known_classes())
            trials = model._learn(rated, targets, weights)
    return trials.predictions, answer.codes_of(trials, labels, weights)


def readable_rows(model: Model, rows: Any) -> Rows:
    """Return rows of numbers, or the raw cells of a table, as a model scores them."""
    return model._input.readable(model, rows)


def estimates(model: Model) -> bool:
    """Return whether a model estimates its uncertainty."""
    return model._fitted().uncertainty is not None


def assess_rows(model: Model, rows: Rows) -> Assessment:
    """Return what is said of the uncertainty of rows."""
    return Assessment.concatenate([*assessed_rows(model, rows)])


def sets_of(model: Model, said: Assessment, coverage: float) -> list[list[Any]]:
    """Return the prediction sets of rows, given what is said of them."""
    return sets(model, said, SetRequest(require_coverage(coverage)))


def path_rows(model: Model, rows: Rows, least: float, separator: str) -> list[PathAnswer]:
    """Return the answer of each row where labels are paths."""
    from kesler.online.backing_off import path_answers

    return [*path_answers(model._fitted(), [rows], least, separator)]


def explain_rows(
    model: Model, rows: Any, label: Any = None, rival: Any = None, n: int = 10
) -> Iterator[Explanation]:
    """Yield the explanation of each row; `label`, `rival` and `n` are those of `explain_one`."""
    from kesler.online.explaining import explained, names_of_model

    learner, found = model._fitted(), readable_rows(model, rows)
    name_of = names_of_model(model._input)
    for i in range(len(found)):
        with learner.lock:
            explanation = explained(learner, found[i : i + 1], name_of, label, rival, n)
        yield explanation
