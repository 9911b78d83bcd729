"""Answers that say how sure they are: new classes, confidence and prediction sets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from kesler.data.inputs import parts_of
from kesler.data.labels import NEW, Label
from kesler.errors import UNESTIMATED, KeslerError
from kesler.learner.uncertainty import (
    Assessment,
    SetRequest,
    require_confidence,
    require_coverage,
)

if TYPE_CHECKING:
    from kesler.data.rows import Rows
    from kesler.learner.ensemble import AnyLearner
    from kesler.online.model import Model

Estimator = TypeVar("Estimator", bound="Model")


def estimating(model: Model) -> AnyLearner:
    """Return the learner of an estimator; raise unless it has estimates of uncertainty."""
    learner, name = model._fitted(), type(model).__name__
    if learner.uncertainty is None:
        raise KeslerError(
            f"this {name} does not estimate its uncertainty: create it with uncertainty=True and "
            "let it learn again"
            if "uncertainty" in model.get_params(deep=False)
            else f"{name} {UNESTIMATED}"
        )
    return learner


def assessed(model: Model, X: Any) -> Iterator[Assessment]:
    """Yield what is said of parts of the rows, for the probabilities of all classes take memory."""
    for rows in model._input.rows_to_score(model, X):
        yield from assessed_rows(model, rows)


def assessed_rows(model: Model, rows: Rows) -> Iterator[Assessment]:
    """Yield what is said of parts of rows that have been read."""
    learner = estimating(model)
    yield from (learner.assess(part) for part in parts_of(rows, learner.n_known))


def assessed_one(model: Model, x: Any) -> Assessment:
    """Return what is said of one row."""
    return _assessed_by(estimating(model), model, x)


def _assessed_by(learner: AnyLearner, model: Model, x: Any) -> Assessment:
    with learner.lock:
        return learner.assess(model._input.row_to_score(model, x, learner))


# ---- prediction sets ----------------------------------------------------------------------------


def request(model: Model, coverage: Any, *, by_class: bool, **options: bool) -> SetRequest:
    """Return which sets are asked for; raise if an argument is invalid."""
    if by_class and model.answer.kind != "class":
        raise KeslerError(
            "by_class=True gives each class a threshold, and there is one for all ranks or "
            "labels here: leave it out"
        )
    return SetRequest(require_coverage(coverage), by_class, **options)


def sets(model: Model, said: Assessment, ask: SetRequest) -> list[list[Any]]:
    """Return the classes, ranks or labels of the set of each row, given what is said of it."""
    learner = estimating(model)
    own, labels = learner.uncertainty, learner.classes.labels
    assert own is not None
    if model.answer.kind == "rank":
        order = learner.classes.order
        chosen = own.ranks_in_intervals(said, order, ask)
        return [[labels[r] for r in order if row[r]] for row in chosen.tolist()]
    if model.answer.kind == "sets":
        known = said.probabilities[:, 1:]
        return _most_probable(known, known > own.bound(ask), labels)
    return _most_probable(said.with_new, own.classes_in_sets(said, ask), [*labels, NEW])


def _most_probable(
    probabilities: npt.NDArray[np.float64], chosen: npt.NDArray[np.bool_], labels: list[Any]
) -> list[list[Any]]:
    """Return the chosen labels of each row, the most probable first."""
    found = []
    for row, inside in zip(probabilities, chosen, strict=True):
        codes = np.flatnonzero(inside)
        codes = codes[np.argsort(-row[codes], kind="stable")]
        found.append([labels[r] for r in codes.tolist()])
    return found


# ---- confidence ---------------------------------------------------------------------------------


def require_single(model: Estimator) -> Estimator:
    """Return the estimator; raise unless a prediction is one class."""
    kind, name = model.answer.kind, type(model).__name__
    if kind in ("sets", "levels"):
        raise KeslerError(
            f"{name} predicts several labels, whose confidence is that of each label: use "
            "predict_proba, or predict_set for labels that are surely relevant"
            if kind == "sets"
            else f"{name} predicts rankings, which have no probability: use a classifier"
        )
    return model


def confident(model: Model, X: Any, least: Any) -> npt.NDArray[Any]:
    """Return the prediction of each row, None where its confidence is below the least."""
    pairs = [(said.predictions, said.confidence) for said in assessed(require_single(model), X)]
    found, confidence = map(np.concatenate, zip(*pairs, strict=True))
    return _answered(model._fitted().classes.by_code[found].tolist(), confidence, least)


def confident_one(model: Model, x: Any, least: Any) -> Any:
    """Return the prediction of one row, None if its confidence is below the least."""
    learner = estimating(require_single(model))  # the same for the label: others may begin again
    said = _assessed_by(learner, model, x)
    return _answered([learner.classes.labels[said.predictions[0]]], said.confidence, least)[0]


def require_no_new(model: Model, new: bool) -> None:
    """Raise if the probability of a new class is asked for, of an estimator of label sets."""
    if new:
        raise KeslerError(
            f"{type(model).__name__} estimates the probability of each label that it has seen, not "
            "that of labels to come: leave new=True out, or use a classifier of single classes"
        )


def _answered(
    predicted: list[Label], confidence: npt.NDArray[np.float64], least: Any
) -> npt.NDArray[Any]:
    """Return predictions as an array of objects, None where confidence is below the least."""
    least = require_confidence(least)
    answers = np.empty(len(predicted), dtype=object)
    answers[:] = predicted
    answers[confidence < least] = None
    return answers
