"""Selective sampling: which rows an estimator asks about, and streams of which it learns these."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.data.labels import Label
from kesler.data.rows import Rows
from kesler.errors import KeslerError
from kesler.learner.queries import Estimates, Queries, estimated
from kesler.learner.targets import Targets
from kesler.online.contract import exclusive_trials
from kesler.queries import resolve_query
from kesler.queries.budget import LabelBudget
from kesler.queries.query import Query

# Rows that are scored at once: those behind the first one that is asked for are scored again.
FEWEST_AT_ONCE, MOST_AT_ONCE = 4, 256


@dataclass(frozen=True, slots=True)
class Asked:
    """The trials of rows of which only those asked for were learnt.

    Parameters
    ----------
    predicted : list
        The label predicted for each row before its label was known; None before any class was.
    asked : bool array of shape (n_rows,)
        Whether the label was asked for.
    known : bool array of shape (n_rows,)
        Whether the learner knew the class of the row.
    probabilities : float64 array of shape (n_rows, 2)
        The probabilities of the predicted class and of the class of the row, NaN if not known.
    """

    predicted: list[Label | None]
    asked: npt.NDArray[np.bool_]
    known: npt.NDArray[np.bool_]
    probabilities: npt.NDArray[np.float64]

    @staticmethod
    def nothing(n_rows: int) -> Asked:
        """Return the trials of rows without predictions."""
        none = np.zeros(n_rows, dtype=np.bool_)
        return Asked([None] * n_rows, none, none.copy(), np.full((n_rows, 2), np.nan))

    @staticmethod
    def concatenate(pieces: Sequence[Asked]) -> Asked:
        """Return the trials of pieces, one after another."""
        pieces = pieces or [Asked.nothing(0)]
        return Asked(
            [each for piece in pieces for each in piece.predicted],
            np.concatenate([piece.asked for piece in pieces]),
            np.concatenate([piece.known for piece in pieces]),
            np.concatenate([piece.probabilities for piece in pieces]),
        )

    def note(self, t: int, learner: Any, estimates: Estimates, row: int, label: Label) -> None:
        """Store the prediction for row t, which is one of the rows that were estimated."""
        predicted, code = int(estimates.predictions[row]), learner.classes.code(label)
        self.predicted[t] = learner.classes.labels[predicted]
        self.known[t] = code is not None
        self.probabilities[t, 0] = estimates.probabilities[row, predicted]
        if code is not None:
            self.probabilities[t, 1] = estimates.probabilities[row, code]


# ---- the rule of an estimator -------------------------------------------------------------------


def rule_of(model: Any) -> Query:
    """Return the rule of asking of an estimator.

    Raises
    ------
    KeslerError
        If it has none.
    """
    name = type(model).__name__
    if "label_budget" not in model.get_params(deep=False):
        raise KeslerError(
            f"{name} does not choose the rows to ask about: use OnlineClassifier, Ensemble, "
            "LinearMax, OnlineOrdinalClassifier or OnlineMultilabelClassifier"
        )
    rule = resolve_query(model.label_budget)
    if rule is None:
        raise KeslerError(
            f"this {name} has no label budget: create it with label_budget=0.2, the share of rows "
            "whose label is asked for, or with a rule of kesler.queries"
        )
    return rule


def queries_of(model: Any) -> Queries:
    """Return the state of the rule of an estimator; a rule that has been changed begins anew."""
    rule = rule_of(model)
    if model._queries is None or model._queries.rule != rule:
        model._queries = Queries(rule)
    found: Queries = model._queries
    return found


def _knows_a_class(model: Any) -> bool:
    """Return whether the learner of an estimator knows a class."""
    return bool(model.n_known_)


# ---- single rows --------------------------------------------------------------------------------


def query_one(model: Any, x: Any) -> bool:
    """Return whether to ask for the label of a row, and count the row as offered."""
    rule_of(model)
    if not _knows_a_class(model):
        return True
    with model._lock:
        queries = queries_of(model)
        return queries.decide(_estimates_for(model, x).of(0))


def doubt_one(model: Any, x: Any) -> float:
    """Return the doubt about a row, from 0 to 1, by which a label budget would rank it.

    Nothing is counted: see :class:`~kesler.queries.LabelBudget`.

    Raises
    ------
    KeslerError
        If the model knows no class or predicts other than single classes, or the row cannot be
        scored.
    """
    if model.answer.kind != "class":
        raise KeslerError(f"{type(model).__name__} has no doubts about single classes")
    return LabelBudget().doubt(_estimates_for(model, x).of(0))


def _estimates_for(model: Any, x: Any) -> Estimates:
    """Return the estimates for one row by a model that knows a class."""
    learner = model._fitted()
    with learner.lock:
        return estimated(learner, model._input.row_to_score(model, x, learner))


# ---- streams ------------------------------------------------------------------------------------


def ask_one_by_one(model: Any, events: Iterable[Any], labels: Sequence[Label]) -> Asked:
    """Predict rows in any form of `learn_one`, and learn those that are asked for."""
    found = Asked.nothing(len(labels))
    for t, (x, label) in enumerate(zip(events, labels, strict=True)):
        asks = True
        if _knows_a_class(model):
            estimates = _estimates_for(model, x)
            found.note(t, model._learner, estimates, 0, label)
            asks = queries_of(model).decide(estimates.of(0))
        found.asked[t] = asks
        if asks:
            model.learn_one(x, label)
    return found


@exclusive_trials
def ask_in_windows(model: Any, rows: Rows, labels: Sequence[Label]) -> Asked:
    """Predict rows, and learn those that are asked for, as `ask_one_by_one` does.

    Several rows are scored at once, up to the first that is asked for and learnt.
    """
    found, t, width = Asked.nothing(len(rows)), 0, FEWEST_AT_ONCE
    queries = queries_of(model)
    while t < len(rows):
        n = 0
        if _knows_a_class(model):
            n = _left_out(model, queries, rows[t : t + width], labels, t, found)
            width = min(MOST_AT_ONCE, max(FEWEST_AT_ONCE, 2 * n))
        t += n
        if t < len(rows) and (found.asked[t] or not _knows_a_class(model)):
            found.asked[t] = True
            _learn_row(model, rows, t, labels[t])
            t += 1
    return found


def _learn_row(model: Any, rows: Rows, t: int, label: Label) -> None:
    """Learn one of some rows, as an event if its features have no names: that is faster."""
    if model.vocabulary_ is not None or not _knows_a_class(model):
        model._learn(rows[t : t + 1], Targets.of_classes([label]))
        return
    entries = slice(rows.indptr[t], rows.indptr[t + 1])
    values = rows.values[entries]
    model.learn_one(values if rows.dense else (rows.indices[entries], values), label)


def _left_out(
    model: Any, queries: Queries, window: Rows, labels: Sequence[Label], start: int, found: Asked
) -> int:
    """Store the predictions for the rows of a window up to the one that is asked for.

    Returns
    -------
    The number of rows that are left out.
    """
    estimates = estimated(model._learner, window)
    for i in range(len(window)):
        t = start + i
        asks = queries.decide(estimates.of(i))
        found.note(t, model._learner, estimates, i, labels[t])
        if asks:
            found.asked[t] = True
            return i
    return len(window)


def blocks_of_rows(model: Any, X: Any, y: Sequence[Label]) -> Iterator[tuple[Rows, list[Label]]]:
    """Yield the validated rows of arrays and sparse matrices, in blocks, with their labels."""
    start = 0
    for rows, _, _ in model._blocks(X, y):
        yield rows, list(y[start : (start := start + len(rows))])
