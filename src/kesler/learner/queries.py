"""The estimates of a learner for rows without a label, and the state of the rule that asks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kesler.queries.query import Past, Query, RowEstimates
from kesler.state.fields import Arrays, allocated, array_of, checked, damaged, fields_of, put
from kesler.state.queries import N_RECENT, QueryState

if TYPE_CHECKING:
    from kesler.data.rows import Rows
    from kesler.learner.ensemble import AnyLearner
    from kesler.learner.events import Event

PREFIX = "queries."
Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Estimates:
    """The estimates of a learner for rows, arrays of shape (n_rows,); see `RowEstimates`.

    Parameters
    ----------
    predictions : the predicted classes, by number.
    probabilities : of the known classes, shape (n_rows, n_classes).
    """

    predictions: npt.NDArray[np.int32]
    probabilities: Doubles
    margin: Doubles
    lead: Doubles
    confidence: Doubles
    new: Doubles

    def __len__(self) -> int:
        return len(self.predictions)

    def of(self, row: int) -> RowEstimates:
        """Return the estimates for one row."""
        arrays = self.margin, self.lead, self.confidence, self.new
        return RowEstimates(*(float(each[row]) for each in arrays))


def estimated(learner: AnyLearner, rows: Rows | Event) -> Estimates:
    """Return the estimates of a learner that knows a class; nothing is learnt.

    The margin is that of the scores of the learner, and of an ensemble that of its probabilities.
    """
    with learner.lock:
        predictions, stack, evidence = learner._evidence(rows)
        if learner.answer == "sets":
            return _of_sets(predictions, stack[0].astype(np.float64), evidence)
        probabilities = evidence[:, 2:]
        predicted = probabilities[np.arange(len(predictions)), predictions]
        confidence, new = predicted, np.zeros(len(predictions))
        if learner.uncertainty is not None:
            if learner.comparing is not None:
                found = learner.assess(rows)
            else:
                inputs = learner.uncertainty.inputs_of(rows)
                found = learner.uncertainty.assess(stack, evidence, predictions, inputs)
            confidence, new = found.confidence, found.new
    scores = probabilities if len(stack) > 1 else stack[0].astype(np.float64)
    only_one = probabilities.shape[1] == 1
    margin = np.zeros(len(predictions)) if only_one else _ahead(scores)
    lead = np.ones(len(predictions)) if only_one else _ahead(probabilities)
    return Estimates(predictions, probabilities, margin, lead, confidence, new)


def _of_sets(predictions: npt.NDArray[np.int32], scores: Doubles, evidence: Doubles) -> Estimates:
    """Return the estimates of label sets: those of the label of each row that is most in doubt."""
    above, probabilities = scores[:, 1:] - scores[:, :1], evidence[:, 1:]
    likelier = np.maximum(probabilities, 1 - probabilities)
    margin, lead = np.abs(above).min(axis=1), 2 * likelier.min(axis=1) - 1
    none = np.zeros(len(predictions))
    return Estimates(predictions, probabilities, margin, lead, likelier.prod(axis=1), none)


def _ahead(values: Doubles) -> Doubles:
    """Return the largest value of each row minus the second."""
    two = np.partition(values, -2, axis=1)[:, -2:]
    found: Doubles = two[:, 1] - two[:, 0]
    return found


class Queries:
    """A rule of asking with its state: the rows offered and asked for, and the last doubts.

    Parameters
    ----------
    rule : the rule.
    """

    def __init__(self, rule: Query) -> None:
        self.rule = rule
        self.stored = allocated(self._all_fields, self, {})

    @property
    def _all_fields(self) -> dict[str, Any]:
        """The stored fields by name."""
        fields = fields_of(QueryState).items()
        return {name: field for name, field in fields if field.exists(self)}

    @property
    def n_offered(self) -> int:
        """Number of rows offered."""
        return int(self.stored["counts"]["n_offered"][0])

    @property
    def n_asked(self) -> int:
        """Number of rows whose label was asked for."""
        return int(self.stored["counts"]["n_asked"][0])

    def decide(self, estimates: RowEstimates) -> bool:
        """Return whether to ask for a row, and count it; an error of the rule counts nothing."""
        n_offered, n_asked, rule = self.n_offered, self.n_asked, self.rule
        recent = self.stored.get("recent", np.empty(0))
        past = Past(n_offered, n_asked, recent[:n_offered])
        asks = rule.asks(estimates, past, rule.draw(n_offered))
        if rule.ranks:
            recent[n_offered % N_RECENT] = rule.doubt(estimates)
        self.stored["counts"][0] = n_offered + 1, n_asked + asks
        return asks

    # ---- saving -----------------------------------------------------------------------------

    def arrays(self) -> Arrays:
        """Return copies of the arrays, which a model file stores."""
        return {PREFIX + name: np.array(array_of(a)) for name, a in self.stored.items()}

    def restore(self, arrays: Arrays) -> None:
        """Restore what `arrays` returned.

        Raises
        ------
        KeslerError
            If an array is missing, has another dtype or shape, or holds invalid values.
        """
        for name, array in checked(self._all_fields, self, {}, arrays, PREFIX).items():
            put(array, self.stored[name])
        if self.n_asked > self.n_offered:
            raise damaged(f"{PREFIX}counts holds more rows asked for than offered")

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Copy the arrays, which may be a read-only memory map."""
        vars(self).update(state)
        self.stored = {name: array.copy() for name, array in self.stored.items()}
