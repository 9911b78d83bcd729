"""Answers that say how sure they are: new classes, confidence and prediction sets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from kesler.data.labels import NEW, Label
from kesler.errors import KeslerError
from kesler.learner.targets import Kind
from kesler.learner.uncertainty import (
    Assessment,
    SetRequest,
    Uncertainty,
    require_confidence,
    require_coverage,
    require_use,
)
from kesler.online.contract import between_trials

if TYPE_CHECKING:
    from kesler.data.rows import Rows
    from kesler.learner.ensemble import AnyLearner
    from kesler.learner.events import Event


class UncertainLearner:
    """The part of an estimator that says how sure its predictions are."""

    answer: ClassVar[Kind]
    _fitted: Callable[[], AnyLearner]
    _rows_to_score: Callable[[Any], Iterator[Rows]]
    _read: Callable[..., bool]
    _row: Callable[..., Rows]
    _readable: Callable[[Any], Rows]

    # ---- estimates --------------------------------------------------------------------------

    def _new_uncertainty(self, learner: AnyLearner, *, dense: bool) -> Uncertainty | None:
        """Return new estimates for a learner, or None if none are asked for."""
        use = require_use(vars(self).get("uncertainty", False))
        if use is False or (use == "auto" and not self._is_chosen_by_default):
            return None
        remembers = use == "full" and dense and self.answer != "sets"  # sets have no distances
        return Uncertainty(self.answer, learner.n_scored, remembers=remembers)

    @property
    def _is_chosen_by_default(self) -> bool:
        """Whether no update rule is named."""
        update = vars(self).get("update", "auto")
        return isinstance(update, (list, tuple)) or (
            isinstance(update, str) and update in ("auto", "ensemble")
        )

    def _estimating(self) -> AnyLearner:
        """Return the learner; raise unless it has estimates of uncertainty."""
        learner = self._fitted()
        if learner.uncertainty is None:
            raise KeslerError(
                f"this {type(self).__name__} does not estimate its uncertainty: create it with "
                "uncertainty=True and let it learn again"
                if "uncertainty" in vars(self)
                else f"{type(self).__name__} does not estimate its uncertainty: use a classifier "
                "that does, such as OnlineClassifier()"
            )
        return learner

    def _assessed(self, X: Any) -> Assessment:
        """Return what is said of rows."""
        learner = self._estimating()
        pieces = [learner.assess(rows) for rows in self._rows_to_score(X)]
        return Assessment.concatenate(pieces)

    def assess_rows(self, rows: Any) -> Assessment:
        """Return what is said of rows of numbers or a table, as readers yield them."""
        return self._estimating().assess(self._readable(rows))

    def sets_of(self, said: Assessment, coverage: float) -> list[list[Any]]:
        """Return the prediction sets of rows, given what is said of them."""
        return self._sets(self._estimating(), said, SetRequest(require_coverage(coverage)))

    def _assessed_one(self, x: Any) -> Assessment:
        """Return what is said of one row."""
        learner = self._estimating()
        with learner.lock:
            event: Event = learner.event
            is_read = self._read(x, learner, learn=False)
            return learner.assess(event if is_read else self._row(x, learn=False))

    # ---- prediction sets --------------------------------------------------------------------

    @between_trials
    def predict_set(
        self,
        X: Any,
        coverage: float = 0.9,
        *,
        by_class: bool = False,
        allow_empty: bool = True,
    ) -> list[list[Any]]:
        r"""Return a set of classes for each row, which contains the right one with given frequency.

        The set of class r contains the classes whose score is at most a threshold,
        :math:`\{r : v_r \le \tau\}`. The threshold follows the rows learnt so far, so that over
        any stream the share of sets that contained the class of their row tends to `coverage`; see
        :mod:`kesler.learner.uncertainty`. It is the mean of the last ones here, as the targets of
        these rows do not follow one by one; `predict_set_one` has the present one.

        Parameters
        ----------
        X : rows as in `predict`.
        coverage : float from 0.8 to below 1, default 0.9
            The share of rows whose target is in the set. Larger values give larger sets. 0.8, 0.9,
            0.95 and 0.99 are tracked; others are interpolated.
        by_class : bool, default False
            Whether the share holds for the rows of each class, with a threshold for each; the sets
            are larger. For single classes only.
        allow_empty : bool, default True
            Whether a set may be empty, as it must be for some rows where more predictions are right
            than `coverage` asks for. False adds the most probable class; more rows are then covered
            than asked for.

        Returns
        -------
        A list of labels for each row, the most probable first. For single classes, it may contain
        :data:`kesler.NEW`, a class that has not been seen yet. For ranks, it is an interval of
        known ranks in their order. For label sets, it is a list of labels that are surely relevant:
        in the share `coverage` of the rows, all of them are; `allow_empty` has no effect.

        Raises
        ------
        KeslerError
            If uncertainty is not estimated, or an argument is out of its range.

        Notes
        -----
        A row costs O(k) for each class in its set, of k classes.

        References
        ----------
        Gibbs and Candes (2021), "Adaptive conformal inference under distribution shift"; Romano,
        Sesia and Candes (2020), "Classification with valid and adaptive coverage"; Angelopoulos,
        Candes and Tibshirani (2023), "Conformal PID control for time series prediction".

        Examples
        --------
        >>> from kesler import OnlineClassifier
        >>> model = OnlineClassifier().fit([{"cash": 1}, {"team": 1}] * 200, ["spam", "work"] * 200)
        >>> model.predict_set([{"cash": 1}], allow_empty=False)
        [['spam']]
        """
        ask = self._set_request(coverage, by_class=by_class, allow_empty=allow_empty)
        return self._sets(self._estimating(), self._assessed(X), ask)

    def predict_set_one(
        self,
        x: Any,
        coverage: float = 0.9,
        *,
        by_class: bool = False,
        allow_empty: bool = True,
    ) -> list[Any]:
        """Return the set of the next row of the stream, given as in `learn_one`.

        Parameters, labels and errors are those of `predict_set`. The threshold is the present one,
        which each row that is learnt moves; with it, the bound on the share of sets that miss their
        target holds for any stream.
        """
        ask = self._set_request(coverage, by_class=by_class, allow_empty=allow_empty, is_next=True)
        learner = self._estimating()
        with learner.lock:
            return self._sets(learner, self._assessed_one(x), ask)[0]

    def _set_request(self, coverage: Any, *, by_class: bool, **options: bool) -> SetRequest:
        """Return which sets are asked for; raise if an argument is invalid."""
        if by_class and self.answer != "class":
            raise KeslerError(
                "by_class=True gives each class a threshold, and there is one for all ranks or "
                "labels here: leave it out"
            )
        return SetRequest(require_coverage(coverage), by_class, **options)

    def _sets(self, learner: AnyLearner, said: Assessment, ask: SetRequest) -> list[list[Any]]:
        """Return the classes, ranks or labels of the set of each row."""
        own = learner.uncertainty
        assert own is not None
        if self.answer == "rank":
            order = learner.classes.order
            chosen = own.ranks_in_intervals(said, order, ask)
            labels = learner.classes.labels
            return [[labels[r] for r in order if row[r]] for row in chosen.tolist()]
        if self.answer == "sets":
            return _most_probable(
                said.probabilities[:, 1:],
                said.probabilities[:, 1:] > own.bound(ask),
                learner.classes.labels,
            )
        chosen = own.classes_in_sets(said, ask)
        return _most_probable(said.with_new, chosen, [*learner.classes.labels, NEW])

    # ---- labels worth asking for ------------------------------------------------------------

    def query_one(self, x: Any) -> bool:
        """Return whether to ask for the label of one row, and count the row as offered.

        Nothing is learnt: ``if model.query_one(x): model.learn_one(x, ask(x))``. Rows that are
        learnt without this call do not count. The rule is the parameter `label_budget`; what it
        remembers, and its random draws, are part of the model: a saved and loaded model asks for
        the same rows. A call with another rule than before begins anew.

        Parameters
        ----------
        x : the row, given as in `learn_one`.

        Returns
        -------
        Whether the label is worth asking for. Before a class is known it always is, and the row is
        not counted.

        Raises
        ------
        KeslerError
            If there is no label budget, the row cannot be scored, or a function of the user fails.
            The row is then not counted.

        Notes
        -----
        Costs one prediction, and what the rule adds; see :mod:`kesler.queries`.

        Examples
        --------
        >>> from kesler import OnlineClassifier
        >>> mail = OnlineClassifier(label_budget=0.2)
        >>> for words, folder in [("win cash", "spam"), ("team lunch", "work")] * 50:
        ...     if mail.query_one(words):
        ...         mail = mail.learn_one(words, folder)
        >>> mail.n_offered_, mail.n_asked_, mail.n_trials_
        (99, 37, 38)
        """
        from kesler.online.querying import query_one

        return query_one(self, x)

    @property
    def n_offered_(self) -> int:
        """Number of rows offered to `query_one` since a class is known."""
        from kesler.online.querying import counted

        return counted(self)[0]

    @property
    def n_asked_(self) -> int:
        """Number of these rows whose label was asked for."""
        from kesler.online.querying import counted

        return counted(self)[1]

    # ---- confidence -------------------------------------------------------------------------

    @between_trials
    def confidence(self, X: Any) -> npt.NDArray[np.float64]:
        r"""Return the probability that the prediction of each row is right.

        .. math:: \sigma(a + b \operatorname{logit}(p (1 - p_{new})) + c \, z)

        of the probability p of the predicted class, that of a new class and the lead z of its
        score, learnt online from whether earlier predictions were right. It is better calibrated
        than p, and rows that are easily confused have less of it.

        Parameters
        ----------
        X : rows as in `predict`.

        Returns
        -------
        Array of shape (n_rows,), between 0 and 1.

        Raises
        ------
        KeslerError
            If uncertainty is not estimated, or targets are label sets.
        """
        return self._require_single()._assessed(X).confidence

    def confidence_one(self, x: Any) -> float:
        """Return the probability that the prediction of one row is right; see `confidence`."""
        return float(self._require_single()._assessed_one(x).confidence[0])

    def _require_single(self) -> UncertainLearner:
        """Return the estimator; raise unless a prediction is one class."""
        if self.answer in ("sets", "levels"):
            raise KeslerError(
                f"{type(self).__name__} predicts several labels, whose confidence is that of each "
                "label: use predict_proba, or predict_set for labels that are surely relevant"
                if self.answer == "sets"
                else f"{type(self).__name__} predicts rankings, which have no probability: use a "
                "classifier"
            )
        return self

    def _answered(
        self, predicted: list[Label], confidence: npt.NDArray[np.float64], least: Any
    ) -> npt.NDArray[Any]:
        """Return predictions as an array of objects, None where confidence is below the least."""
        least = require_confidence(least)
        answers = np.empty(len(predicted), dtype=object)
        answers[:] = predicted
        answers[confidence < least] = None
        return answers


def _most_probable(
    probabilities: npt.NDArray[np.float64], chosen: npt.NDArray[np.bool_], labels: list[Any]
) -> list[list[Any]]:
    """Return the chosen labels of each row, the most probable first."""
    order = np.argsort(-probabilities, axis=1, kind="stable")
    rows = zip(order.tolist(), chosen.tolist(), strict=True)
    return [[labels[r] for r in codes if inside[r]] for codes, inside in rows]
