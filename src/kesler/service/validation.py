"""Validation: the report on the history of a model, which a thread makes and keeps."""

from __future__ import annotations

import logging
from threading import Condition, Thread
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from kesler.durable import Model
    from kesler.evaluation.reports.label_sets import LabelReport
    from kesler.evaluation.reports.report import Report

PATIENCE = 2.0
"""The seconds that a page waits for the report on the last event, before it shows an earlier one.

They are enough for about 10,000 rows; of more, no page waits."""

FEW_ROWS = 10_000

_log = logging.getLogger("kesler.service")


class Validated(NamedTuple):
    """The progressive validation of the history up to an event.

    Parameters
    ----------
    version : int
        The number of the event.
    report : Report, LabelReport or None
        The report, None if there is no row.
    times : list of float
        When each of its rows was learnt.
    """

    version: int
    report: Report | LabelReport | None
    times: list[float]


class Validation:
    """The last validation of a model; a newer one is made when it is asked for.

    Parameters
    ----------
    model : kesler.durable.Model

    Notes
    -----
    The rows are learnt anew by an unfitted learner, at about 10,000 a second.
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        self._last: Validated | None = None
        self._is_made = False  # whether a thread makes one
        self._changed = Condition()

    def last(self, patience: float = PATIENCE) -> tuple[Validated | None, bool]:
        """Return the last validation, and whether it is that of the whole history.

        Parameters
        ----------
        patience : float, default `PATIENCE`
            The seconds to wait for the latter, if the model has few rows.
        """
        if self._model.n_trials_ > FEW_ROWS:
            patience = 0.0
            if self._is_made:  # the history is being read, which others wait for
                return self._last, False
        version = version_of(self._model)
        with self._changed:
            if not self._is_current(version) and not self._is_made:
                self._is_made = True
                Thread(target=self._make, name="kesler-validation", daemon=True).start()
            self._changed.wait_for(lambda: self._is_current(version) or not self._is_made, patience)
            return self._last, self._is_current(version)

    def _is_current(self, version: int) -> bool:
        return self._last is not None and self._last.version >= version

    def _make(self) -> None:
        found = None
        try:
            found = validated(self._model)
        except Exception:  # the thread of a server must not end without a word
            _log.exception("the history of %s could not be validated", self._model.name)
        with self._changed:
            self._last, self._is_made = found or self._last, False
            self._changed.notify_all()


def version_of(model: Model) -> int:
    """Return the number of the last event, 0 before the first."""
    last = model.history(limit=1)
    return last[0].number if last else 0


def validated(model: Model) -> Validated:
    """Validate the remaining history of a model."""
    from kesler.evaluation.results import ProgressiveResult
    from kesler.evaluation.validation import progressive_validate
    from kesler.online.contract import unfitted

    version = version_of(model)  # first: a newer event would not be among the rows
    taught = [*model.remaining()]
    if not taught:
        return Validated(version, None, [])
    rows, answers = [each.row for each in taught], [each.current for each in taught]
    result = progressive_validate(unfitted(model.estimator), rows, answers)
    every = {"top": len(taught)} if isinstance(result, ProgressiveResult) else {}  # all confusions
    return Validated(version, result.report(**every), [each.time for each in taught])
