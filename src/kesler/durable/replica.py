"""A replica: the learner of a model in this process, which follows the history in the database."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import groupby, islice
from typing import Any

import numpy as np

from kesler.durable.contents import ARRAY, PAIR, answer_from_text, row_from_text
from kesler.durable.naming import Naming
from kesler.durable.settings import depends_on_names, estimator_of, labels_in
from kesler.durable.storage import Learnt, Storage
from kesler.errors import KeslerError

BLOCK = 2048  # rows that are learnt at a time: more would not be faster


class Replica:
    """The learner of a model, which has met its remaining history up to some event.

    Parameters
    ----------
    storage : the database.
    key : the key of the model in it.
    settings : the settings of the estimator, as :func:`~kesler.durable.settings.settings_of`
        returns them.
    """

    def __init__(self, storage: Storage, key: int, settings: dict[str, Any]) -> None:
        self._storage, self._key, self._settings = storage, key, settings
        self.learner: Any = estimator_of(settings)
        self.applied = 0
        self.is_dirty = False  # whether the learner may have met what was not written
        self.by_name = depends_on_names(self.learner)

    @property
    def labels(self) -> list[Any]:
        """The labels of the known classes, in the order of their first rows."""
        found: list[Any] = self.learner._known_classes().labels
        return found

    def require_unnamed(self, label: Any) -> None:
        """Raise if the settings name a class: it cannot be renamed, merged or forgotten."""
        if label in labels_in(self.learner):
            raise KeslerError(
                f"the settings of the model name the class {label!r}, in order= or costs=: open "
                "another model with other settings"
            )

    def catch_up(self) -> None:
        """Learn what has been added to the history, or learn again from where it has changed."""
        last = self._storage.last(self._key)
        if last is None:
            raise KeslerError("this model has been deleted from the journal")
        if last == self.applied:
            return
        changes = self._storage.changes(self._key, self.applied)
        learner, applied = self.learner, self.applied
        if changes:
            learner, applied = estimator_of(self._settings), 0
        self.is_dirty = True
        self._learn(learner, applied)
        self.learner, self.applied, self.is_dirty = learner, last, False

    def _learn(self, learner: Any, after: int) -> None:
        naming = naming_of(self._storage, self._key)
        for block in blocks_of(self._storage.learnt(self._key, after)):
            answers = [naming.current(each.number, answer_from_text(each.answer)) for each in block]
            learn(learner, block, answers)

    def differences(self, name: str) -> list[str]:
        """Return whether the learner differs from one that learns the history anew, in words."""
        again = estimator_of(self._settings)
        with self._storage.reading():
            self._learn(again, 0)
        if written(again) == written(self.learner):
            return []
        return [f"the model {name!r} differs from one that learns its history anew"]

    def reset(self) -> None:
        """Discard the learner, which may have learnt what has not been written."""
        self.learner, self.applied, self.is_dirty = estimator_of(self._settings), 0, False


def naming_of(storage: Storage, key: int) -> Naming:
    """Return the current answers of a model."""
    relabels = {
        row: (number, json.loads(answer)) for row, number, answer in storage.relabels(key)
    }
    renames = [
        (number, json.loads(old), json.loads(new)) for number, old, new in storage.renames(key)
    ]
    return Naming(relabels, renames)


def blocks_of(rows: Iterable[Learnt]) -> Iterator[list[Learnt]]:
    """Yield consecutive rows of one form, in blocks."""
    for _, run in groupby(rows, key=lambda row: row.form):
        while block := [*islice(run, BLOCK)]:
            yield block


def learn(learner: Any, block: list[Learnt], answers: list[Any]) -> None:
    """Learn rows of one form: in one batch where their form has batches."""
    rows = [row_from_text(each.form, each.row) for each in block]
    form = block[0].form
    if len(rows) == 1 or form == PAIR:
        for row, answer in zip(rows, answers, strict=True):
            learner.learn_one(row, answer)
        return
    for X, y in _batches(rows, answers) if form == ARRAY else [(rows, answers)]:
        learner.partial_fit(X, y)


def _batches(rows: list[Any], answers: list[Any]) -> Iterator[tuple[Any, list[Any]]]:
    """Yield arrays of rows of the same length, with their answers."""
    pairs = zip(rows, answers, strict=True)
    for _, run in groupby(pairs, key=lambda pair: (len(pair[0]), pair[0].dtype)):
        X, y = zip(*run, strict=True)
        yield np.stack(X), list(y)


def written(learner: Any) -> bytes:
    """Return the model file of a learner; empty before its first row."""
    if not learner.n_known_:
        return b""
    from kesler.data.model_file import to_bytes
    from kesler.online.saving import described

    return to_bytes(*described(learner, learner._fitted(), "the model", {}))
