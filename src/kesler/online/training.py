"""How rows and targets are validated, and learnt in blocks, by an estimator."""

from __future__ import annotations

from collections.abc import Iterator, Sized
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kesler.data import inputs
from kesler.data.rows import Rows
from kesler.errors import KeslerError
from kesler.learner.targets import Targets
from kesler.online.answers import Scores
from kesler.online.contract import exclusive_trials
from kesler.online.reader import n_learnt
from kesler.online.tables import table_blocks

if TYPE_CHECKING:
    from kesler.online.model import Model

Weights = npt.NDArray[np.float64] | None
Block = tuple[Rows, Targets, Weights]


def blocks(
    model: Model, X: Any, y: Any, sample_weight: Any = None, classes: Any = None
) -> Iterator[Block]:
    """Yield blocks of rows, their encoded targets, and their sample weights or None.

    All checks come before any change of state; new feature names are added last.
    """
    reader = model._input
    table = reader.columns.table_of(model, X)
    if table is not None:
        given = validated_targets(model, table.n_rows, y, sample_weight, classes)
        yield from table_blocks(model, table, *given)
        return
    X, ratings, texts = reader.apart(model, X)
    named = inputs.holds_names(X)
    data = X if named or texts else reader.array_rows(model, X, learn=True)
    n_rows = inputs.count_rows(data) if named else len(data)
    targets, weights = validated_targets(model, n_rows, y, sample_weight, classes)
    inputs.require_rated(n_rows, ratings)
    with model._between_trials():  # others may add the names of events
        if named:
            data = reader.named_rows(model, X, learn=True)
        elif texts:
            data = reader.text_rows(model, X, weights, learn=True)
        ratings = reader.numbered(model, ratings, learn=True)
    learner = model._prepared(dense=inputs.is_dense(data))
    learner.require_admissible(targets.distinct)
    if classes is not None:
        learner.reserve(len(classes), 0)
    start = 0
    for rows in inputs.blocks(data, ratings):
        part = slice(start, start := start + len(rows))
        yield rows, targets[part], None if weights is None else weights[part]


def validated_targets(
    model: Model, n_rows: int, y: Any, sample_weight: Any = None, classes: Any = None
) -> tuple[Targets, Weights]:
    """Return the encoded targets and the sample weights of this many rows, validated.

    The declared classes are stored, and forgotten if the call fails.
    """
    if classes is not None and not isinstance(classes, Sized):
        raise KeslerError(f"classes={classes!r}: give a sequence of labels, or None")
    known = model._known_classes()
    targets = model.answer.encoded(y, classes, known)
    inputs.require_lengths(n_rows, targets)
    weights = inputs.row_weights(sample_weight, n_rows)
    declared = [*model._declared, *model.answer.declared(classes)]
    known.require_admissible([*targets.distinct, *declared])
    if declared:
        model._declared = list(dict.fromkeys(declared))
    return targets, weights


@contextmanager
def names_of_learnt_rows(model: Model) -> Iterator[None]:
    """Count the texts that are learnt, and remove new names of rows that are not.

    Those are names of features and sub-experts of rows whose learning fails.
    """
    reader, n_before = model._input, n_learnt(model)
    n_names, n_sub_experts = len(reader.names or ()), len(reader.sub_experts or ())
    try:
        yield
        reader.count_texts(n_learnt(model) - n_before)
    except BaseException:
        reader.count_texts(n_learnt(model) - n_before)
        learner = model._learner
        with model._between_trials():
            if reader.names is not None:
                learnt = 0 if learner is None else learner.n_named_features
                reader.names.forget_from(max(n_names, learnt))
            if reader.sub_experts is not None:
                learnt = 0 if learner is None else learner.n_sub_experts
                reader.sub_experts.forget_from(max(n_sub_experts, learnt))
        raise


@exclusive_trials
def first_trial(
    model: Model, x: Any, y: Any, weights: Weights, *, keep_scores: bool
) -> tuple[int, Scores]:
    """Run the trial of one row as a batch of one; return the predicted code, and the scores."""
    reader, known = model._input, model._known_classes()
    targets, table = model.answer.encoded([y], None, known), reader.columns.table_of_row(model, x)
    known.require_admissible(targets.names)
    with model._between_trials(), names_of_learnt_rows(model):
        n_known = 0 if model._learner is None else int(model._learner.n_known)
        if table is None:
            row = reader.row(model, x, learn=True)
            trials = model._learn(row, targets, weights, keep_scores=keep_scores)
        else:
            given = table_blocks(model, table, targets, weights)
            (trials,) = [model._learn(*block, keep_scores=keep_scores) for block in given]
    scores = trials.scores[0, :n_known] if keep_scores else trials.scores
    return int(trials.predictions[0]), scores


def part_of(rows: Rows, targets: Targets, part: slice) -> tuple[Rows, Targets]:
    """Return consecutive rows, which name no feature that only later rows have."""
    some = rows[part]
    return some if rows.dense else some.without_later(), targets[part]
