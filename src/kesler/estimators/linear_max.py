"""LinearMax: any linear-threshold algorithm as a multiclass learner."""

from __future__ import annotations

from typing import Any

from kesler.algorithms import Algorithm, QuasiAdditive, RivalStep, resolve_algorithm
from kesler.conditioning import Conditioning
from kesler.estimators.online import OnlineClassifier
from kesler.hypotheses import Part
from kesler.links import Linear
from kesler.machine import Machine
from kesler.maps import FeatureMap


class LinearMax(OnlineClassifier):
    r"""A multiclass learner made of any algorithm that learns linear thresholds.

    Of each row the algorithm sees one instance of label 1, the view of the right class less that
    of its best rival:

    .. math:: z = \phi(x, \rho) - \phi(x, A), \quad
        A = \begin{cases} \lambda_1 & \rho \ne \lambda_1 \\ \lambda_2 & \rho = \lambda_1 \end{cases}

    with :math:`\lambda_1, \lambda_2` the classes of highest and second highest score. It makes no
    more mistakes than the algorithm makes on these instances, so that every mistake bound of the
    algorithm is one of the multiclass learner.

    Parameters
    ----------
    algorithm : "perceptron", "wma", "winnow", "p-norm", "romma", "alma" or algorithm, \
default "winnow"
        An object of :mod:`kesler.algorithms`, for instance ``QuasiAdditive(Exponential(1.5))``, or
        the user's own, see :func:`~kesler.threshold_algorithm`. "wma" learns positive weights
        only, which is meant for sub-experts; "winnow" is its balanced form.
    hypotheses : "multi", "single", "hybrid", "sub-experts" or list of parts, default "multi"
        Which classes share which weights, as in :class:`~kesler.OnlineClassifier`: "sub-experts"
        is what the algorithm is about, ratings of the classes given with each row; "multi" turns
        each feature into one sub-expert a class (Mesterharm 2001, Section 5.2).
    feature_map : "auto", "product", "product-mean", "frequency", "contrast", "distance", \
"difference", "gaussian-ratio" or map, default "auto"
        The view of an instance that a shared vector has; not used by "multi".
    conditioning
        As in :class:`~kesler.OnlineClassifier`.

    Attributes
    ----------
    classes_, n_trials_, n_mistakes_, feature_map_, n_features_in_, feature_names_in_
        As in :class:`~kesler.OnlineClassifier`.

    Raises
    ------
    KeslerError
        If an argument is not known, for what :class:`~kesler.OnlineClassifier` refuses, or if rows
        have weights other than 0 and 1 and the algorithm is not quasi-additive.

    Notes
    -----
    A row costs O(nnz k) to score for k classes and what the algorithm costs on z, O(nnz) for all
    of ours. For quasi-additive algorithms `sample_weight` is the length of the step.

    References
    ----------
    Mesterharm (2001), "Transforming linear-threshold learning algorithms into multi-class linear
    learning algorithms".

    Examples
    --------
    >>> from kesler import LinearMax
    >>> animals = LinearMax("romma").fit([[1, 0], [0, 1], [1, 0]], ["cat", "dog", "cat"])
    >>> animals.predict([[1, 0]]).tolist()
    ['cat']
    """

    def __init__(
        self,
        algorithm: str | Algorithm = "winnow",
        hypotheses: str | Part | list[Part] = "multi",
        feature_map: str | FeatureMap = "auto",
        conditioning: str | Conditioning | None = None,
    ) -> None:
        self.algorithm = algorithm
        self.hypotheses = hypotheses
        self.feature_map = feature_map
        self.conditioning = conditioning

    def _moves(self, chosen: dict[str, Any]) -> dict[str, Any]:
        algorithm = resolve_algorithm(self.algorithm)
        if isinstance(algorithm, QuasiAdditive):
            return {"rule": algorithm.rule, "link": algorithm.link}
        return {"rule": algorithm, "link": Linear()}

    @classmethod
    def _of_machine(cls, machine: Machine) -> LinearMax:
        algorithm: Any = machine.rule
        if isinstance(machine.rule, RivalStep):
            algorithm = QuasiAdditive(machine.link, machine.rule.rate)
        return cls(algorithm, machine.parts, conditioning=machine.conditioning)
