"""Limits on memory: how an estimator learns rows, and drops features between them.

Before row 256, 512, ... of a stream, and before a row whose classes are more than the tables have
columns for, features are dropped if the memory exceeds the limit. This is the same however the rows
are split into calls: rows that have been read, but not learnt, are numbered again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from kesler.data.labels import Label
from kesler.data.rows import Rows
from kesler.errors import KeslerError
from kesler.interrupts import Postponed
from kesler.learner.memory import EVERY, room_for
from kesler.learner.targets import Targets
from kesler.online import training
from kesler.state.capacity import return_memory

if TYPE_CHECKING:
    from kesler.data.rows import Vocabulary
    from kesler.online.model import Model


def learn(model: Model, rows: Rows, targets: Targets, weights: Any, **keep: bool) -> Any:
    """Learn rows of weights above 0 in parts; between these, features may be dropped."""
    names = require_names(model, dense=rows.dense)
    learner: Any = model._learner
    found = []
    with learner.lock:
        rows = _without_others(model, rows)
    while len(rows):
        with learner.lock:
            n = _n_alike(learner, targets)
            make_room(model, targets[:1].distinct)
            rows = names.renumbered(rows)
            part, some = training.part_of(rows, targets, slice(0, n))
            n_before = learner.n_trials
            try:
                own = None if weights is None else weights[:n]
                found.append(model._learn_rows(part, some, own, **keep))
            finally:
                learner.memory.count(part[: learner.n_trials - n_before].indices)
        rows, targets = rows[n:], targets[n:]
        weights = None if weights is None else weights[n:]
    return training.Trials.concatenate(found, len(learner.classes))


def _n_alike(learner: Any, targets: Targets) -> int:
    """Return how many rows follow each other without a measurement of the memory between them."""
    n = min(len(targets), EVERY - learner.n_trials % EVERY)
    return 1 if _needs_room(learner, targets[:n].distinct) else n


def _needs_room(learner: Any, labels: Sequence[Label]) -> bool:
    """Return whether rows with these labels have more classes than tables have columns for."""
    return room_for(learner, learner.classes.count_with(labels)) > room_for(
        learner, learner.n_known
    )


def is_due(learner: Any, labels: Sequence[Label]) -> bool:
    """Return whether the memory is measured before a row with these labels."""
    return learner.n_trials % EVERY == 0 or _needs_room(learner, labels)


def make_room(model: Model, labels: Sequence[Label]) -> None:
    """Drop features before a row with these labels, if the memory is to be measured.

    Raises
    ------
    KeslerError
        If the limit is too small for so many classes.
    """
    learner: Any = model._learner
    names = require_names(model)
    if not is_due(learner, labels):
        return
    n_before = learner.n_named_features
    kept = learner.memory.kept(learner, names, learner.classes.count_with(labels))
    if kept is None:
        return
    with Postponed():
        names.keep(kept)
        learner.memory.keep(kept, n_before)
        constant = bool(learner.constant)
        learner.keep_features(np.concatenate([np.arange(constant), kept + constant]))
    return_memory()


def _without_others(model: Model, rows: Rows) -> Rows:
    """Return rows after names were dropped that no row has, and none of these: of skipped rows."""
    learner: Any = model._learner
    names, n_learnt = require_names(model), learner.n_named_features
    new = np.unique(rows.indices[rows.indices >= n_learnt])
    if len(names) > n_learnt + len(new):
        names.keep(np.arange(n_learnt))
    return names.renumbered(rows)


def require_names(model: Model, *, dense: bool = False) -> Vocabulary:
    """Return the names of the features; raise if they are identified by position."""
    names = model._input.names
    if names is None or dense:
        limit = model.get_params(deep=False).get("memory_limit")
        raise KeslerError(
            f"memory_limit={limit!r}: features are dropped by their names, and these rows are of "
            "an array or matrix, which has as many columns as you give it: leave the limit out, or "
            "give texts or mappings of names"
        )
    return names
