"""CostSensitiveClassifier: an online classifier whose targets are costs of classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np

from kesler.data.labels import Label
from kesler.errors import keep_settings
from kesler.hypotheses import Part
from kesler.kernels.mercer import MercerKernel
from kesler.learner.classes import ClassTable, OnNewClass
from kesler.learner.targets import Kind, Targets
from kesler.links.link import Link
from kesler.maps.feature_map import FeatureMap
from kesler.online.answers import ClassAnswer, Codes, LabelsAnswer
from kesler.online.classifier import OnlineClassifier
from kesler.online.cost_vectors import cheapest, costs_of, targets_of_costs
from kesler.online.making import Maker
from kesler.preconditioners import Preconditioner
from kesler.preprocessing import Preprocessing
from kesler.updates.rule import UpdateRule


class CostAnswer(LabelsAnswer):
    """Each row has the costs of classes, of which one is predicted."""

    kind: Kind = "costs"
    by_scores = False

    def encoded(self, y: Any, classes: Any, known: ClassTable) -> Targets:
        """Return the encoded costs of rows."""
        return targets_of_costs(y, classes)

    def codes_of(self, trials: Any, labels: list[Any], weights: Any) -> Codes:
        """Return the cheapest class of each row: of several, the predicted one or the first."""
        targets = targets_of_costs(labels, None)
        if weights is not None:
            targets = targets.take(np.flatnonzero(weights))
        return cheapest(trials.predictions, targets, trials.codes)


class CostSensitiveClassifier(OnlineClassifier):
    r"""A multiclass classifier that learns online from the costs of the classes of each row.

    Classes are scored and predicted as in :class:`~kesler.OnlineClassifier`. A row with the costs
    c has the constraints

    .. math:: h(x, r) \ge h(x, s) + \text{margin} \cdot (c_s - c_r) \qquad
        \forall r \in \arg\min_{r'} c_{r'}, \; c_s > c_r

    among the classes that it names and that have been seen. Classes of the same least cost are not
    compared with each other, and classes that a row does not name are not compared at all.

    Parameters
    ----------
    hypotheses, feature_map, link, averaged, intercept, kernel, sigma, budget
        As in :class:`~kesler.OnlineClassifier`; "auto" is "hybrid", or "multi" with a kernel.
    update : "pa", "pa1", "pa2", "margin-perceptron", "conproj", "simproj", "mira", "hinge", \
"arow", rule or "auto", default "auto"
        The update rule, which must have a margin. "auto" is "pa1" on rows that are prepared by
        their kind. Smaller C (0.001 to 0.1) is more robust to noise.
    preconditioner, preprocessing, half_life, memory_limit
        As in :class:`~kesler.OnlineClassifier`. With a named rule, preprocessing is None.
    on_new_class : "register", "learn" or "auto", default "auto"
        As in :class:`~kesler.OnlineClassifier`; all classes that a row names for the first time are
        new. "auto" is "learn", or "register" with a named rule.
    epochs, shuffle, random_state
        As in :class:`~kesler.OnlineClassifier`; "auto" is one pass, in a random order unless an
        update rule is named.
    C, eta, delta, r, columns, on_mismatch
        As in :class:`~kesler.OnlineClassifier`.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels named so far, sorted.
    total_cost_ : float
        The sum of the costs of what was predicted for each row before it was learnt. A prediction
        that the row does not name costs as much as the costliest class that it names; rows before
        the first class cost nothing.
    n_trials_, n_mistakes_ : int
        Number of rows learnt from, and number of rows of which a cheapest and another class had
        been seen and none of the cheapest was predicted.
    feature_map_, n_features_in_, feature_names_in_
        As in :class:`~kesler.OnlineClassifier`.

    Raises
    ------
    KeslerError
        If a row names no class, a cost is negative or not finite, the rule has no margin, or for
        the reasons given in :class:`~kesler.OnlineClassifier`. The model is then unchanged.

    Notes
    -----
    Targets y are one mapping {label: cost} for each row, or an array of shape (n_rows, n_classes)
    with NaN for classes that a row does not name. The columns of an array are the labels 0 to
    n_classes - 1, or the names of the columns of a data frame, unless `classes` is passed to
    `partial_fit`.

    Costs of 0 for one class and 1 for all other classes seen give the constraints of
    :class:`~kesler.OnlineClassifier`, bit for bit. A row costs O(nnz k) to score for k classes,
    O(k) to compare, and an update as much as that of the rule. Learning in batches of any size
    gives the same weights bit for bit.

    References
    ----------
    Crammer et al. (2006), Section 10, cost-sensitive passive-aggressive updates by the largest
    loss; Beygelzimer et al. (2005), the targets of Vowpal Wabbit's csoaa.

    Examples
    --------
    >>> from kesler import CostSensitiveClassifier
    >>> triage = CostSensitiveClassifier("multi")
    >>> for words, costs in [("fever", {"ward": 0, "home": 9}), ("cough", {"home": 0, "ward": 2})]:
    ...     triage = triage.learn_one({words: 1.0}, costs)
    >>> triage.predict_one({"fever": 1.0}), triage.total_cost_
    ('ward', 2.0)
    """

    answer: ClassVar[ClassAnswer] = CostAnswer()
    _maker: ClassVar[Maker] = Maker(answer)

    def __init__(
        self,
        hypotheses: str | Part | list[Part] = "auto",
        feature_map: str | FeatureMap = "auto",
        update: str | UpdateRule = "auto",
        link: str | Link = "linear",
        averaged: bool = False,
        intercept: float | str = "auto",
        kernel: str | MercerKernel | None = None,
        sigma: float | Literal["auto"] = "auto",
        budget: int | None = None,
        preconditioner: str | Preconditioner = "auto",
        on_new_class: OnNewClass | str = "auto",
        preprocessing: str | Preprocessing | None = "auto",
        half_life: float | None = None,
        memory_limit: int | str | None = None,
        epochs: int | str = "auto",
        shuffle: bool | str = "auto",
        random_state: int = 0,
        C: float | None = None,
        eta: float | None = None,
        delta: float | None = None,
        r: float | None = None,
        columns: Mapping[str, Any] | str | None = "auto",
        on_mismatch: str = "missing",
    ) -> None:
        keep_settings(self, locals())

    @property
    def total_cost_(self) -> float:
        """The sum of the costs of what was predicted for each row before it was learnt."""
        from kesler.online.linear_weights import single

        return float(single(self._fitted()).stored["charged"]["total"][0])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return minus the mean cost of the predictions, so that larger is better.

        Parameters
        ----------
        X : rows as in `fit`.
        y : costs as in `fit`.
        sample_weight : array of shape (n_rows,) or None, default None
            Weight of each row in the mean.
        """
        learner = self._fitted()
        targets = self.answer.encoded(y, None, learner.classes)
        said = np.concatenate(
            [learner.predict(rows) for rows in self._input.rows_to_score(self, X)]
        )
        codes = np.array([_code(learner.classes, label) for label in targets.labels])
        return -float(np.average(costs_of(said, targets, codes), weights=sample_weight))


def _code(classes: Any, label: Label) -> int:
    """Return the number of a label, -2 for one that has not been seen and is not predicted."""
    code = classes.code(label)
    return -2 if code is None else int(code)
