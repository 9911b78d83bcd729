"""OnlineClassifier: the online learners behind scikit-learn's face."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from kesler.answers import Answers, Kind
from kesler.bank_machine import BankMachine
from kesler.classes import Label, Newcomers
from kesler.conditioning import Conditioning
from kesler.errors import KeslerError
from kesler.estimators import inputs
from kesler.estimators.base import AnyMachine, OnlineLearner
from kesler.estimators.contract import Classifier
from kesler.estimators.members import bank_of, require_only, resolve_members
from kesler.estimators.told import Told
from kesler.geometry import Metric
from kesler.hypotheses import Part
from kesler.kernels import MercerKernel
from kesler.links import Link
from kesler.maps import FeatureMap
from kesler.rows import Rows
from kesler.updates import UpdateRule

Self = TypeVar("Self", bound="OnlineClassifier")


class OnlineClassifier(Classifier, OnlineLearner):
    r"""A classifier that meets its classes as it learns, one row after the other.

    The score of class r is the sum over the hypotheses t that it belongs to,

    .. math:: h(x, r) = \sum_{t \ni r} \langle w^t, \phi^t(x, r) \rangle, \quad
        \hat y = \arg\max_r h(x, r)

    over the classes met so far, and each row moves the hypotheses by the steps of an update rule,
    :math:`w^t \mathrel{+}= \sum_s \alpha_s (\phi^t(x, y) - \phi^t(x, s))`. The first row of a class
    makes it known and moves nothing.

    Parameters
    ----------
    hypotheses : "default", "multi", "single", "hybrid", "sub-experts" or list of parts, \
default "default"
        Which classes share which weights: one vector for each class, one for all over a feature
        map, both (their scores add up), one weight for each sub-expert that rates the classes
        (:class:`~kesler.maps.SubExperts`), or any list of :class:`~kesler.hypotheses.PerClass`,
        :class:`~kesler.hypotheses.Shared` and :class:`~kesler.hypotheses.Grouped`. Names may be
        joined: "multi+sub-experts".
    feature_map : "auto", "product", "product-mean", "frequency", "contrast", "distance", \
"difference", "gaussian-ratio" or map, default "auto"
        The view of an instance that the shared vector has; not used by "multi". "auto" takes
        "frequency" if the first rows are sparse or named, "distance" if they are dense, or
        "difference" if there is a kernel too.
    update : "perceptron", "margin-perceptron", "pa", "pa1", "pa2", "simperc", "conproj", \
"simproj", "mira", "hinge", "softmax", "logistic", "ovr-squared", "ovr-logistic", "ovr-hinge", \
"arow", "scw1", "scw2", "bank", "default", rule or list of learners, default "default"
        How far to move. "default" is the learner that is best where nothing is chosen: see Notes.
        Whoever names a rule gets it as its source has it: what else is left at "default" is then
        hybrid hypotheses on rows as they are, first rows of classes that move nothing, and no
        intercept. A name stands for the rule of :mod:`kesler.updates` with C = 1; smaller C
        (0.001 to 0.1) bears noise better, on text above all. A list of learners, each with its own
        settings, is combined as by :class:`~kesler.Bank`; "bank" stands for a list of ours.
    link : "linear", "exponential", "positive", "p-norm" or link, default "linear"
        The geometry in which the rule moves: additive updates, multiplicative ones (with weights of
        either sign, or positive ones alone), what lies between, or any link of
        :mod:`kesler.links`. Where few of many features matter, "exponential" makes fewer mistakes.
    averaged : bool, default False
        Whether to predict by the mean of the weights after each row, which bears noise better than
        the last ones. Learning itself is the same; the mean is computed anew when a prediction
        follows learning, O(weights). Linear link only.
    costs : mapping {(right, wrong): cost}, callable or None, default None
        What it costs to predict one class where another is right, 1 unless told. Rules that look
        at margins ask for one in proportion, so that dear confusions become rarer; see
        :class:`~kesler.costs.Costs`.
    intercept : float or "default", default "default"
        The value of a feature that every row is given, 0 for none. Under "multi" its weights are a
        threshold for each class; beside sub-experts, Mesterharm's threshold sub-experts. Larger
        values let them learn faster.
    kernel : "rbf", "polynomial", "linear", kernel or None, default None
        A Mercer kernel of :mod:`kesler.kernels` or the user's own (:func:`~kesler.mercer_kernel`):
        hypotheses are then sums of K over the rows, or views of rows, that moved them,
        :math:`h(x, r) = \sum_j \beta_{j,r} K(\phi_j, \phi(x, r))`. None is for weights.
    sigma : "auto" or float above 0, default "auto"
        The variance of "rbf", :math:`K(x, z) = e^{-\|x - z\|^2 / (2 \sigma)}`; others don't look
        at it. Larger values: smoother boundaries. "auto" is 0.04 times the median squared distance
        between rows so far.
    budget : int or None, default None
        The most support vectors that each part of the hypotheses keeps: the oldest makes room
        (Cavallanti, Cesa-Bianchi and Gentile 2007, least recent). Larger values: fewer mistakes,
        slower; None keeps all.
    metric : "auto", "euclidean", "adagrad", "scale-free", "scale-free-adagrad", "confidence" or \
metric, default "auto"
        The step size of each weight: the same for all, smaller where gradients were large, in units
        of the largest value of a feature, or smaller the surer the weight is; see
        :mod:`kesler.geometry`. "auto" is the one that the rule brings along, or "euclidean".
    newcomers : "wait", "learn", "virtual" or "default", default "default"
        What the first row of a class does: make it known and move nothing, as the theorems have
        it; be learnt from too; or be learnt from with the weights of a virtual class to begin with,
        one that is wrong on every row and never predicted. See :data:`~kesler.classes.Newcomers`.
    conditioning : "auto", "counts", "idf", "z-scores", "ranges", "none", "default", conditioning \
or None, default "default"
        What is done to each row before its trial, from the rows before it only; see
        :mod:`kesler.conditioning`. "counts" is for words, "z-scores" for measurements in units of
        their own, "ranges" for these over a kernel; "auto" takes the former if the first rows are
        sparse or named, if they are dense "ranges" over a kernel without feature maps, and
        "z-scores" elsewhere. None leaves rows as they are.
    half_life : float, 1 or more, or None, default None
        After how many rows what was learnt counts half, for streams that drift. Larger values
        forget more slowly: thousands where features are rare, as words are, hundreds where they
        are not; a :class:`~kesler.Bank` can hold learners of several. None never forgets. Linear
        link only, not averaged.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels met so far, sorted.
    n_trials_, n_mistakes_ : int
        Rows learnt from, and rows of a known class for which another one was predicted before the
        answer was heard (progressive validation; one pass over data never seen is an honest test).
    feature_map_ : FeatureMap or None
        The map in use, None for "multi".
    n_support_vectors_ : list of int
        With a kernel, how many support vectors each part of the hypotheses has; else empty.
    sigma_ : float or None
        What sigma="auto" has led to by now.
    conditioning_ : Conditioning or None
        What is done to rows.
    spelt_out_ : OnlineClassifier
        A learner that has not learnt, in which nothing is left open: what this one is made of.
    n_features_in_, feature_names_in_
        As in scikit-learn; not set while learning from named features, whose number grows.

    Raises
    ------
    KeslerError
        If an argument is not known, a label cannot be ordered among the others, or a row holds NaN
        or infinity, has the wrong width, or is sparse under a map that is not zero at zero. The
        model is then as it was before.

    Notes
    -----
    What is left at "default" is chosen by the kind of the first rows
    (:mod:`kesler.estimators.defaults`). Where only non-zeros are listed, as of words: counts damped
    and rows of length 1; one-vs-rest hinge loss in the AdaGrad metric, with steps that never
    overshoot; a hypothesis for each class and one for all over the contrast of word frequencies.
    Where every feature is listed: z-scores; softmax; the log-ratio of Gaussians. Both learn from
    the first row of a class. `benchmarks/results/defaults.md` has the mistakes of this one setting
    beside those of others, tuned.

    With `half_life` all that is kept fades after each row, before the row is taken in:

    .. math:: w \leftarrow b + \gamma (w - b), \quad S \leftarrow \gamma S + s_t, \quad
        \gamma = 2^{-1 / \text{half\_life}}

    for weights that begin at b and the sums behind statistics of classes, step sizes of metrics
    and conditioning; not for first instances, largest values of features and probabilities, which
    have discounts of their own. What fades is a scale: a row costs O(k) more, and every 20
    half-lives all that is kept is gone through once.

    Learning row by row, in batches of any size, or all at once gives the same weights bit for bit.
    A row costs O(nnz k) for k classes: about 1 us with 80 non-zeros and 20 classes. Memory is
    4 bytes for each feature and hypothesis, and with a map as many for each feature and class
    (twice for a mean, 28 bytes under "gaussian-ratio"), both rounded up to 16.
    `sample_weight` is a row's aggressiveness, 0 or between 1/1,048,576 and 1,048,576: it multiplies
    C, or the Perceptron's step ("pa" has neither), and the row's share in the statistics of its
    class; a row of weight 0 is left out. Values are kept as float32. The statistics that maps use
    stand still for a class whose weights sum to more than 16,777,216. A step that float32 cannot
    hold is not taken; the error that says so comes after the other rows were learnt.

    References
    ----------
    Fink, Shalev-Shwartz, Singer and Ullman (2006); Amit, Shalev-Shwartz and Singer (2006); Crammer
    and Singer (2003); Crammer, Dekel, Keshet, Shalev-Shwartz and Singer (2006).

    Examples
    --------
    >>> from kesler import OnlineClassifier
    >>> mail = OnlineClassifier(update="perceptron")
    >>> for words, folder in [("win cash", "spam"), ("team lunch", "work"), ("cash prize", "spam")]:
    ...     mail = mail.learn_one(dict.fromkeys(words.split(), 1.0), folder)
    >>> mail.predict_one({"cash": 1.0}), mail.n_trials_, mail.classes_.tolist()
    ('spam', 3, ['spam', 'work'])
    """

    answer: ClassVar[Kind] = "class"
    by_scores: ClassVar[bool] = False

    def __init__(
        self,
        hypotheses: str | Part | list[Part] = "default",
        feature_map: str | FeatureMap = "auto",
        update: str | UpdateRule | list[OnlineClassifier] = "default",
        link: str | Link = "linear",
        averaged: bool = False,
        costs: Mapping[Any, float] | Callable[[Any, Any], float] | None = None,
        intercept: float | str = "default",
        kernel: str | MercerKernel | None = None,
        sigma: float | Literal["auto"] = "auto",
        budget: int | None = None,
        metric: str | Metric = "auto",
        newcomers: Newcomers | str = "default",
        conditioning: str | Conditioning | None = "default",
        half_life: float | None = None,
    ) -> None:
        self.hypotheses = hypotheses
        self.feature_map = feature_map
        self.update = update
        self.link = link
        self.averaged = averaged
        self.costs = costs
        self.intercept = intercept
        self.kernel = kernel
        self.sigma = sigma
        self.budget = budget
        self.metric = metric
        self.newcomers = newcomers
        self.conditioning = conditioning
        self.half_life = half_life

    # ---- predictions ------------------------------------------------------------------------

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the class of highest score of each row, the one met first among equals.

        Parameters
        ----------
        X : rows as in `fit`; features never met have the weights that all begin with.

        Returns
        -------
        Array of shape (n_rows,) of labels.
        """
        machine = self._fitted()
        codes = [machine.predict(rows) for rows in self._rows_to_score(X)]
        labels: npt.NDArray[Any] = machine.classes.by_code[np.concatenate(codes)]
        return labels

    def decision_function(self, X: Any) -> npt.NDArray[np.float32]:
        """Return the score of each class, in the order of `classes_`.

        Returns
        -------
        Array of shape (n_rows, n_classes); for two classes, of shape (n_rows,): the score of
        classes_[1] less that of classes_[0].
        """
        scores = self._scores(X)[:, self._known_classes().order]
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """Return the probability of each class, in the order of `classes_`.

        Softmax over the scores at a temperature that is learnt, as rows are, from each answer
        before it moves anything; see :mod:`kesler.calibration`. A class has none before its first
        row. The class that `predict` returns has the highest; with `averaged` the temperature is
        still that of the last weights.

        Parameters
        ----------
        X : rows as in `predict`.

        Returns
        -------
        Array of shape (n_rows, n_classes), rows summing to 1.
        """
        machine = self._fitted()
        pieces = [machine.probabilities(rows) for rows in self._rows_to_score(X)]
        probabilities: npt.NDArray[np.float64] = np.concatenate(pieces)[:, machine.classes.order]
        return probabilities

    # ---- events -----------------------------------------------------------------------------

    def predict_proba_one(self, x: Any) -> dict[Any, float]:
        """Return the probability of each label for one row, as in `learn_one`."""
        machine = self._fitted()
        with machine.lock:
            event = machine.event
            row = event if self._read(x, machine, learn=False) else self._row(x, learn=False)
            found = machine.probabilities(row)[0].tolist()
        return dict(zip(machine.classes.labels, found, strict=True))

    def _said(self, highest: int, scores: npt.NDArray[np.float32]) -> Label | None:
        return None if highest < 0 else self._machine.classes.labels[highest]

    def _told_one(
        self, y: Label
    ) -> tuple[Sequence[Label], Callable[[npt.NDArray[np.int32]], Answers]]:
        return (y,), Answers.of_classes

    # ---- blocks of rows ---------------------------------------------------------------------

    def run_trials(
        self, X: Any, y: Any, sample_weight: Any = None
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """Learn rows and return, for each, the numbers of the class predicted before and of y.

        Classes are numbered as in `classes_by_code_`; -1 stands for no prediction, since no class
        was known. Rows of weight 0 are left out. `progressive_validate` is the friendlier face.
        """
        trials = self._run_trials(X, y, sample_weight)
        return trials.predictions, trials.codes

    def learn_rows(
        self,
        rows: Rows,
        labels: list[Label],
        weights: npt.NDArray[np.float64] | None = None,
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """Learn rows that are finite, as readers yield them; return as `run_trials` does.

        Raises
        ------
        KeslerError
            If the rows have not the width that the model was made for: that of its first dense
            rows, or of the array or data frame that it learnt from.
        """
        with self._names_forgotten_on_error():
            rated = replace(rows, ratings=self._numbered(rows.ratings, learn=True))
            trials = self._learn(rated, Told.of_classes(labels), weights)
        return trials.predictions, trials.codes

    def score_rows(self, rows: Rows) -> npt.NDArray[np.float32]:
        """Return the score of each class for each row, classes in the order of `classes_by_code_`.

        The class that `predict` returns is the first of highest score.
        """
        machine = self._fitted()
        inputs.require_width(rows, getattr(self, "n_features_in_", None), more=True)
        return machine.scores(replace(rows, ratings=self._numbered(rows.ratings, learn=False)))

    # ---- banks ------------------------------------------------------------------------------

    @property
    def seconds_in_threads_(self) -> float:
        """Processor time spent in threads of its own, which a bank starts for large blocks."""
        return getattr(getattr(self, "_machine", None), "seconds_in_threads", 0.0)

    def _members(self, *, dense: bool = False) -> list[OnlineLearner] | None:
        """Return the learners of the bank that this one is, None if it is none."""
        update = vars(self).get("update")
        if self.answer != "class" or not (isinstance(update, (list, tuple)) or update == "bank"):
            return None
        require_only(self, "update")
        return resolve_members(update, dense=dense)

    def _combination(self) -> dict[str, Any]:
        """Return how a bank combines its members: as it does unless told."""
        return {}

    def _new_machine(self, *, dense: bool) -> AnyMachine:
        members = self._members(dense=dense)
        if members is None:
            return super()._new_machine(dense=dense)
        return bank_of(members, dense=dense, **self._combination())

    @classmethod
    def _of_bank(cls, learners: list[Any], machine: BankMachine) -> OnlineClassifier:
        """Return a face whose parameters are what a bank is made of."""
        return cls(update=learners)

    def _takes_ratings(self) -> bool:
        members = self._members()
        if members is None:
            return super()._takes_ratings()
        return any(member._takes_ratings() for member in members)

    def _takes_sparse_rows(self) -> bool:
        try:
            members = self._members()
        except KeslerError:  # refused when it learns, not when it is asked for its tags
            return True
        if members is None:
            return super()._takes_sparse_rows()
        return all(member._takes_sparse_rows() for member in members)

    def _tell(self, y: Any, classes: Any = None) -> Told:
        return Told.of_classes(inputs.label_list(y))
