"""OnlineLearner: what all online estimators do, whatever their targets are."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from kesler.data.inputs import require_width, row_weights
from kesler.data.labels import Label
from kesler.data.rows import Rows, Vocabulary
from kesler.errors import KeslerError, set_state
from kesler.interrupts import Postponed, pieces_of
from kesler.learner.classes import ClassTable
from kesler.learner.ensemble import AnyLearner, EnsembleLearner
from kesler.learner.events import NO_PLACES, NO_PROBABILITIES, NO_SCORES
from kesler.learner.kernel_learner import KernelLearner
from kesler.learner.learner import Learner
from kesler.learner.targets import Answers, Targets
from kesler.learner.uncertainty import NO_TRACES
from kesler.maps.feature_map import FeatureMap
from kesler.online import contract, training
from kesler.online.answers import ClassAnswer, Scores, predict_top, predict_top_one
from kesler.online.columns import asks_for_table
from kesler.online.contract import between_trials, exclusive, exclusive_trials
from kesler.online.making import Maker
from kesler.online.reader import Reader, n_learnt
from kesler.online.training import Block, Trials
from kesler.online.uncertain import (
    assessed,
    assessed_one,
    confident_one,
    estimating,
    request,
    require_single,
    sets,
)
from kesler.preprocessing import Preprocessing
from kesler.settings.table import OF_ESTIMATOR

if TYPE_CHECKING:
    from kesler.data.schema.schema import Schema
    from kesler.learner.explanations import Explanation
    from kesler.trees.tree import Tree

Self = TypeVar("Self", bound="OnlineLearner")

# Attributes that `fit` deletes.
_LEARNT = ("_learner", "_reader", "_declared", "_queries", "notes_")


class OnlineLearner:
    """A learner that adds classes as they appear and learns from one row after another.

    It has a reader of its input, an answer, which encodes targets and decodes predictions, and a
    learner, which a maker makes of the settings at the first row.

    After the first row, a row that is learnt alone is read into reused buffers, without
    scikit-learn's validation and without a Python step for each feature. Input that cannot be read
    this way is processed as a batch, which raises the detailed errors.

    Attributes
    ----------
    answer : how targets are encoded and predictions decoded.
    explores : whether it is told only whether the class that it shows is right.
    _absent : why it has none of the methods that other estimators have, by their names.
    """

    answer: ClassVar[ClassAnswer]
    explores: ClassVar[bool] = False
    _absent: ClassVar[Mapping[str, str]] = {}
    _maker: ClassVar[Maker]

    # Settings that are read of every estimator, also of those that do not offer them.
    columns: Any = None
    vectors: Any = None
    update: Any = None
    half_life: float | None = None
    epochs: int | str = 1
    shuffle: bool | str = False
    random_state: int = 0
    class_weight: Any = None
    kernel: Any = None
    label_budget: Any = None
    memory_limit: int | str | None = None

    # Further settings, of the estimators whose constructors take them.
    on_mismatch: str
    hypotheses: Any
    feature_map: Any
    link: Any
    averaged: bool
    costs: Any
    intercept: float | str
    sigma: float | str
    budget: Any
    preconditioner: Any
    on_new_class: str
    preprocessing: Any
    replay: Any
    decision: str
    C: float | None
    eta: float | None
    delta: float | None
    r: float | None
    uncertainty: bool | str
    tree: Any

    notes_: dict[str, Any]  # of a loaded model
    _learner: AnyLearner | None = None
    _reader: Reader | None = None
    _declared: Sequence[Label] = ()  # classes that were declared, seen or not
    _queries: Any = None  # the state of the rule of asking
    _balance: Mapping[Label, float] | None = None  # of classes, within `fit`
    _is_ordered: bool = True  # whether rows that are learnt follow each other

    # ---- the interface of scikit-learn -----------------------------------------------------------

    __slots__ = contract.SLOTS
    __class__: Any  # for type checkers, which treat classes as unhashable
    _created_lock: Any

    _get_param_names = classmethod(contract.param_names)
    get_params = contract.get_params
    set_params = contract.set_params
    __repr__ = contract.representation
    __getattr__ = contract.inherited
    __getstate__, __setstate__ = contract.state, set_state
    __deepcopy__ = contract.copied
    _lock = property(contract.lock_of)

    def __sklearn_is_fitted__(self) -> bool:
        learner = self._learner
        # A label set may be empty, and all that were learnt.
        has_learnt = learner is not None and self.answer.kind == "sets" and learner.n_trials > 0
        return has_learnt or self.n_known_ > 0

    def __sklearn_tags__(self) -> Any:
        tags = contract.tags()
        tags.target_tags.required = True
        given, of_table = self.get_params(deep=False), asks_for_table(self)
        tags.input_tags.sparse = not of_table and self._maker.takes_sparse_rows(given)
        tags.input_tags.allow_nan = of_table or self._maker.takes_missing(given)
        return tags

    # ---- batches ---------------------------------------------------------------------------------

    @exclusive
    def fit(self: Self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Reset the model, then learn from all rows, once or several times.

        Rows are a set: ensembles learn nothing of which classes follow each other, as they do in
        `partial_fit`. Estimators with a parameter `shuffle` learn them in a random order unless an
        update rule is named. Where the order is kept, rows sorted by class give a warning, since
        the last classes then prevail.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_rows, n_features), or list of mappings \
or texts
            Rows; mappings are from feature names to values, and may contain new names at any time.
            If cells are not all numbers, rows are those of a table, whose columns may be of
            different kinds (parameter `columns`). The features of a text are its words, runs of
            letters, digits and apostrophes in lower case, with their counts, which the default
            damps (:class:`~kesler.preprocessing.Counts`); with another preprocessing, or none,
            each word has the value 1. If no update is chosen, a text has further features by the
            mean number of characters of the texts so far, with this one: up to 200, its pairs of
            words and its runs of 4 characters, up to 12 those of 1 to 4; above 200, the words of
            its first 250 characters once more, as features of their own, such as "^win".
            Learners with sub-experts take :class:`~kesler.Ratings`, or mappings {label: ratings}.
        y : sequence of targets, one for each row
            See the class. Labels are numbers, text, tuples or any type that is hashable and can be
            ordered.
        sample_weight : array of shape (n_rows,) or None, default None
            Weight of each row, 0 or more. Larger values let a row change the model more.

        Returns
        -------
        The estimator itself.

        Raises
        ------
        KeslerError
            If there is no row to learn from, or for the reasons given in the class.
        """
        from kesler.online import class_weights, passes

        self._forget()
        with self._rows_as_set(), class_weights.of_all_rows(self, y):
            trials = passes.learn(self, passes.Plan.of(self), X, y, sample_weight)
        if trials is not None:
            trials.warn_if_sorted(self.answer.kind)
        self._input.columns.require_given(self)
        self._input.columns.warn_of_kinds()
        if not self.n_known_:
            weightless = not n_learnt(self)
            why = "every sample_weight is zero" if weightless else "no target names a label"
            raise KeslerError(f"{why}, so there is no row to learn from")
        if self._fitted().ranks is not None:
            from kesler.online.backing_off import warn_if_flat

            warn_if_flat(self._fitted())
        return self

    def _forget(self) -> None:
        """Delete what has been learnt."""
        for name in _LEARNT:
            vars(self).pop(name, None)

    def partial_fit(
        self: Self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> Self:
        """Learn from further rows, in order; new classes and new features in mappings are allowed.

        Parameters
        ----------
        X, y, sample_weight : as in `fit`.
        classes : sequence of labels or None, default None
            The labels of the columns of `y` if `y` is a table; otherwise not needed. Capacity is
            allocated for these classes; a class is known, and can be predicted, from its first
            row. Classifiers of one class add them to `classes_` and to the columns of
            `predict_proba` and `decision_function`, where a class has the probability 0 and the
            score -inf before its first row.

        Returns
        -------
        The estimator itself.
        """
        self._run_trials(X, y, sample_weight, classes)
        return self

    def target_levels(self, y: Any, classes: Any = None) -> npt.NDArray[np.int32]:
        """Return the levels of the labels in `y`: a lower level must outscore a higher one.

        Parameters
        ----------
        y, classes : as in `partial_fit`.

        Returns
        -------
        Array of shape (n_rows, n_classes), in the order of `classes_`; -1 for labels that are not
        compared. Labels that the model has not seen are omitted.
        """
        return self.answer.encoded(y, classes, self._known_classes()).table(self.classes_.tolist())

    @exclusive
    def name_features(self: Self, vocabulary: Vocabulary | None) -> Self:
        """Identify the features of further rows by these names, or by position if None.

        Parameters
        ----------
        vocabulary : the vocabulary that a reader fills. Once the model has learnt, this must be
            `vocabulary_` itself.

        Raises
        ------
        KeslerError
            If the model identifies its features in another way.
        """
        if self.__sklearn_is_fitted__() and vocabulary is not self.vocabulary_:
            known = "position" if self.vocabulary_ is None else "name"
            raise KeslerError(
                f"this model identifies its features by {known}, but these rows do not: give rows "
                "in the format that the model learnt from"
            )
        self._input.names = vocabulary
        return self

    # ---- single rows -----------------------------------------------------------------------------

    def learn_one(self: Self, x: Any, y: Any, sample_weight: float | None = None) -> Self:
        """Learn from one row, without scikit-learn's validation.

        Parameters
        ----------
        x : dict of feature names to values, str, array of shape (n_features,), (indices, values) \
or sparse row
            The features of a text are those described in `fit`. A pair of arrays lists the non-zero
            features by position, each once. Learners with sub-experts take a mapping
            {label: ratings} or :class:`~kesler.Ratings` of one row.
        y : the target of the row.
        sample_weight : float, 0 or more, or None, default None
            The weight of the row, as in `partial_fit`; None for 1. With larger values the row
            changes the model more, and with 0 it is not learnt.

        Returns
        -------
        The estimator itself.

        Notes
        -----
        The fastest inputs are a dict of str to Python or NumPy numbers, an array of float64 or
        float32, and a pair of arrays with increasing indices and such values.
        """
        if sample_weight is None:
            self._trial(x, y, keep_scores=False)
            return self
        weights = row_weights([sample_weight], 1)
        if weights is None or weights[0]:
            training.first_trial(self, x, y, weights, keep_scores=False)
        return self

    def predict_one(self, x: Any, min_confidence: float | None = None) -> Any:
        """Return the prediction for one row, given as in `learn_one`.

        Parameters
        ----------
        x : the row.
        min_confidence : as in `predict`; None is returned if the confidence is lower.
        """
        if min_confidence is not None:
            return confident_one(self, x, min_confidence)
        learner = self._fitted()
        with learner.lock:
            row, known = self._input.row_to_score(self, x, learner), learner.classes
            if self.answer.by_scores:
                return self.answer.decoded(known, -1, learner.scores(row)[0])
            return self.answer.decoded(known, int(learner.predict(row)[0]), NO_SCORES)

    def learn_predict_one(self, x: Any, y: Any) -> Any:
        """Learn from one row; return the prediction made before the target was used.

        This runs one trial, which costs less than `predict_one` followed by `learn_one`, with the
        same results.

        Parameters
        ----------
        x, y : as in `learn_one`.

        Returns
        -------
        As `predict_one`; None or no labels for the first row.
        """
        found = self._trial(x, y, keep_scores=self.answer.by_scores)
        return self.answer.decoded(self._known_classes(), *found)

    @exclusive
    def end_sequence(self: Self) -> Self:
        """Say that the next row, to be predicted or learnt, does not follow the last one.

        Ensembles, and so the default for measurements, predict the row after the last one that
        `learn_one` or `partial_fit` has learnt. Call this before predicting other rows.

        Returns
        -------
        The estimator itself.

        Raises
        ------
        NotFittedError
            Before the first row.
        """
        self._fitted().end_sequence()
        return self

    # ---- explanations ----------------------------------------------------------------------------

    def explain_one(
        self,
        x: Any,
        label: Any = None,
        rival: Any = None,
        n: int = 10,
        *,
        features: bool = False,
    ) -> Explanation:
        r"""Explain the score of a class for one row, and its margin over another class.

        The score is a sum of contributions of the features of the row,
        :math:`h(x, r) = c_{0r} + \sum_i c_{ir}`. Those of a word, of a pair of words or of another
        cell of a table are summed, and the largest sums are listed. Nothing is learnt.

        Parameters
        ----------
        x : one row, as in `learn_one`.
        label : label or None, default None
            The class to explain. None stands for the predicted class; of label sets and rankings,
            for the label of the highest score.
        rival : label or None, default None
            The class that it is compared with. None stands for the class of the highest score
            among the others; where no other class is known, there is no rival.
        n : int, 1 or more, default 10
            How many words, pairs and cells to list, those of the largest contributions to the
            margin in absolute value; the others are summed.
        features : bool, default False
            Whether to list single features instead, such as runs of four characters, with the parts
            of each contribution.

        Returns
        -------
        :class:`~kesler.Explanation`, whose sums are the scores of `decision_function`: of label
        sets, above the threshold. What a contribution is depends on the learner, as explained
        there.

        Raises
        ------
        KeslerError
            If `label` or `rival` has not been learnt, both are the same, n is not an integer above
            0, or the row cannot be scored.

        Notes
        -----
        Costs about as much as four predictions where scores are sums over features, else the
        predictions of twice as many rows as the row has columns, or of up to 512 rows if it has
        few.

        Examples
        --------
        >>> from kesler import OnlineClassifier
        >>> mail = OnlineClassifier()
        >>> for words, folder in [("win cash", "spam"), ("team lunch", "work"), ("cash", "spam")]:
        ...     mail = mail.learn_one(dict.fromkeys(words.split(), 1.0), folder)
        >>> why = mail.explain_one({"cash": 1.0, "team": 1.0}, n=1)
        >>> why.label, why.rival, why.contributions[0].feature
        ('spam', 'work', 'cash')
        """
        from kesler.online.explaining import Question, explained_row

        learner, asked = self._fitted(), Question(label, rival, n, features)
        with learner.lock:
            return explained_row(self, learner, x, asked)

    def top_features(self, label: Any, n: int = 10) -> list[tuple[str | int, float]]:
        r"""Return the features that speak most for a class: those of the largest weights.

        The weight of a feature is what a unit of its value adds to the score of the class, minus
        what it adds to the scores of all classes on average,

        .. math:: w_i^r + u_i \phi_i(1, r) - \frac{1}{k} \sum_s (w_i^s + u_i \phi_i(1, s))

        with own weights w and shared weights u over a feature map. Values are those after
        preprocessing, without the scaling of rows to length 1: a word with its weight, a
        measurement in standard deviations.

        Parameters
        ----------
        label : label
            A class that has been learnt.
        n : int, 1 or more, default 10
            The maximum number of features; fewer have weights above 0 where features are few.

        Returns
        -------
        List of pairs of a feature, by its name or position, and its weight, largest first. Of an
        ensemble, weights are means over its members, each in units of log-probability.

        Raises
        ------
        KeslerError
            If the label has not been learnt, n is not an integer above 0, or scores are not sums
            of weights times values: over a kernel, with expansions such as random Fourier features,
            with feature maps that are not zero at zero, or with sub-experts alone.

        Notes
        -----
        O(n k) for n features and k classes.

        Examples
        --------
        >>> from kesler import OnlineClassifier
        >>> mail = OnlineClassifier()
        >>> for words, folder in [("win cash", "spam"), ("team lunch", "work"), ("cash", "spam")]:
        ...     mail = mail.learn_one(dict.fromkeys(words.split(), 1.0), folder)
        >>> [name for name, weight in mail.top_features("work", n=2)]
        ['team', 'lunch']
        """
        from kesler.online.explaining import names_of_model, top_features

        learner = self._fitted()
        with learner.lock:
            return top_features(learner, names_of_model(self._input), label, n)

    predict_top, predict_top_one = predict_top, predict_top_one

    # ---- uncertainty -----------------------------------------------------------------------------

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
        ask = request(self, coverage, by_class=by_class, allow_empty=allow_empty)
        return [each for said in assessed(self, X) for each in sets(self, said, ask)]

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
        ask = request(self, coverage, by_class=by_class, allow_empty=allow_empty, is_next=True)
        with estimating(self).lock:
            return sets(self, assessed_one(self, x), ask)[0]

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
        return np.concatenate([said.confidence for said in assessed(require_single(self), X)])

    def confidence_one(self, x: Any) -> float:
        """Return the probability that the prediction of one row is right; see `confidence`."""
        return float(assessed_one(require_single(self), x).confidence[0])

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
        (99, 42, 43)
        """
        from kesler.online.querying import query_one

        return query_one(self, x)

    @property
    def n_offered_(self) -> int:
        """Number of rows offered to `query_one` since a class is known."""
        return 0 if self._queries is None else int(self._queries.n_offered)

    @property
    def n_asked_(self) -> int:
        """Number of these rows whose label was asked for."""
        return 0 if self._queries is None else int(self._queries.n_asked)

    # ---- classes ---------------------------------------------------------------------------------

    @property
    def classes_(self) -> npt.NDArray[Any]:
        """The labels seen so far, sorted."""
        return self._fitted().classes.in_order

    @property
    def classes_by_code_(self) -> npt.NDArray[Any]:
        """The labels seen so far, in the order in which they were seen."""
        return self._fitted().classes.by_code

    @property
    def n_known_(self) -> int:
        """Number of classes seen so far, 0 before the first."""
        return len(self._known_classes().labels)

    @exclusive
    def join_group(self: Self, label: Label, group: Hashable) -> Self:
        """Add a class to a group of the `Grouped` hypotheses.

        Raises
        ------
        KeslerError
            If the label has not been seen, or no hypotheses are grouped.
        """
        self._fitted().join_group(label, group)
        return self

    @exclusive
    def hang(self: Self, label: Label, under: Hashable = None) -> Self:
        """Place a class that has not been seen in the tree of classes.

        Parameters
        ----------
        label : the class.
        under : label or None, default None
            The node that it hangs from, in the tree or above a class seen; None for the root.

        Raises
        ------
        KeslerError
            If there is no tree, the label has been seen or has a place, or the node is unknown.
        """
        self._fitted().hang(label, under)
        return self

    @property
    def tree_(self) -> Tree | None:
        """The tree of hypotheses, or else of costs, with what `hang` has placed."""
        return self._fitted().tree

    # ---- attributes ------------------------------------------------------------------------------

    @property
    def n_trials_(self) -> int:
        """Number of rows learnt from."""
        return self._fitted().n_trials

    @property
    def n_mistakes_(self) -> int:
        """Number of rows whose target contradicts the scores before it, among known classes.

        The first 50 rows of a table count as they were learnt last, with the kinds of columns that
        all of them give, which predictions on the way could not use.
        """
        return self._fitted().n_mistakes

    @property
    def n_imperfect_(self) -> int:
        """Number of rows before which a class did not outscore one that it should, ties included.

        These are the trials that the theorems on simultaneous projections bound; a tie that the
        order of classes decides rightly is no mistake, but is among them.
        """
        learner = self._fitted()
        if isinstance(learner, EnsembleLearner) or learner.explores:
            raise AttributeError(
                "imperfect trials are those of the scores of one learner that is told the classes "
                "of its rows, and this is an ensemble or a bandit: read n_mistakes_"
            )
        return learner.n_imperfect

    @property
    def n_dropped_(self) -> int:
        """How many features were dropped by `memory_limit`, each as often as it was."""
        memory = self._fitted().memory
        return 0 if memory is None else memory.n_dropped

    @property
    def n_features_in_(self) -> int:
        """Number of features of the rows that have determined it: dense ones, or of a table."""
        if self._reader is None or self._reader.width is None:
            raise AttributeError("no row has determined the number of features")
        return self._reader.width

    @n_features_in_.setter
    def n_features_in_(self, width: int) -> None:
        self._input.width = width

    @property
    def feature_names_in_(self) -> npt.NDArray[Any]:
        """The names of the columns of the data frame that was learnt first."""
        if self._reader is None or self._reader.column_names is None:
            raise AttributeError("no data frame of numbers has been learnt")
        return self._reader.column_names

    @feature_names_in_.setter
    def feature_names_in_(self, names: npt.NDArray[Any]) -> None:
        self._input.column_names = names

    @property
    def vocabulary_(self) -> Vocabulary | None:
        """The names of the features; None if they are identified by position."""
        return None if self._reader is None else self._reader.names

    @property
    def width_(self) -> int | None:
        """The number of features if rows list them all, else 0; None before the first row."""
        if self._reader is None or self._learner is None:
            return None
        return self._reader.width or 0

    @property
    def sub_experts_(self) -> Vocabulary | None:
        """The names of the sub-experts; None if there are none, or they are numbered."""
        return None if self._reader is None else self._reader.sub_experts

    @property
    def schema_(self) -> Schema | None:
        """The kinds of the columns; None if the model does not learn from a table."""
        return None if self._reader is None else self._reader.columns.schema

    @property
    def has_text_lengths_(self) -> bool:
        """Whether texts were learnt whose features depend on the lengths of those before them."""
        return self._reader is not None and self._reader.texts is not None

    @property
    def feature_map_(self) -> FeatureMap | None:
        """The feature map in use, or None."""
        maps = [part.feature_map for part in self._fitted().parts]
        return next((each for each in maps if isinstance(each, FeatureMap)), None)

    @property
    def preprocessing_(self) -> Preprocessing | None:
        """The preprocessing of rows; None if there is none, or if members differ in theirs.

        Trees have none, beside members that have.
        """
        learner = self._fitted()
        if not isinstance(learner, EnsembleLearner):
            return learner.preprocessing
        found = [member.preprocessing for member in learner.members if not member.grows_trees]
        return found[0] if found and all(each == found[0] for each in found) else None

    @property
    def resolved_(self: Self) -> Self:
        """An unfitted estimator in which every default has been replaced by the value in use."""
        own, learner = self.get_params(deep=False), self._fitted()
        found = {name: own[name] for name in OF_ESTIMATOR if name in own}
        if "uncertainty" in own:
            estimates = learner.uncertainty
            remembers = estimates is not None and estimates.remembers
            found["uncertainty"] = "full" if remembers else estimates is not None
        if "shuffle" in own:
            from kesler.online.passes import Plan

            plan = Plan.of(self)
            n_passes = plan.n_passes(self, learner.n_trials)
            found |= {"shuffle": plan.shuffles, "epochs": n_passes}
        found = self._maker.in_use(own, learner) | found
        return type(self)(**{name: value for name, value in found.items() if name in own})

    @property
    def n_support_vectors_(self) -> list[int]:
        """Number of support vectors of each part of the hypotheses; empty without a kernel."""
        learner = self._fitted()
        return learner.n_support_vectors if isinstance(learner, KernelLearner) else []

    @property
    def keeps_sparse_rows_(self) -> bool:
        """Whether only the non-zero weights of each feature are stored.

        The learner chooses this storage while it learns, when non-zero weights are few. Scores do
        not depend on it.
        """
        learner = self._fitted()
        return isinstance(learner, Learner) and learner.sparse is not None

    @property
    def sigma_(self) -> float | None:
        """The current value of sigma="auto"; None without such a kernel or before any distance."""
        learner = self._fitted()
        return learner.sigma if isinstance(learner, KernelLearner) else None

    # ---- files -----------------------------------------------------------------------------------

    @exclusive
    def save(self, path: str | os.PathLike[str], **notes: Any) -> None:
        """Write the model to a file, without pickle; a loaded model continues bit for bit.

        Parameters
        ----------
        path : file to write; an existing file is replaced as a whole.
        notes : values that JSON can hold; :func:`kesler.load` returns them as `notes_`.

        Raises
        ------
        KeslerError
            If the labels are neither numbers nor text, or the file cannot be written.
        """
        from kesler.online.saving import save

        save(self, path, notes)

    # ---- the parts -------------------------------------------------------------------------------

    @property
    def _input(self) -> Reader:
        """The reader of the input."""
        if self._reader is None:
            self._reader = Reader()
        return self._reader

    def _fitted(self) -> AnyLearner:
        learner = self._learner
        if learner is None or not self.__sklearn_is_fitted__():
            from sklearn.exceptions import NotFittedError

            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet: no class is known before "
                "the first row; call fit, partial_fit or learn_one first"
            )
        return learner

    def _known_classes(self) -> ClassTable:
        """Return the table of classes, also before the first row."""
        if self._learner is not None:
            return self._learner.classes
        return self._maker.classes(self.get_params(deep=False), self._declared)

    def _takes_ratings(self) -> bool:
        """Return whether a part of the hypotheses uses ratings of sub-experts."""
        if self._learner is not None:
            return self._learner.takes_ratings
        return self._maker.takes_ratings(self.get_params(deep=False))

    def _new_learner(self, *, dense: bool) -> AnyLearner:
        return self._maker.learner(self.get_params(deep=False), dense=dense)

    def _prepared(self, *, dense: bool) -> AnyLearner:
        """Return the learner; make it for the kind of the first rows if there is none."""
        if self._learner is None:
            given, columns = self.get_params(deep=False), self._input.columns
            if columns.state is None:
                columns.require_texts(self)
            beside = columns.inputs_beside
            learner = self._maker.learner(given, dense=dense, inputs=beside)
            learner.uncertainty = self._maker.uncertainty(
                given, learner, dense=dense, inputs=beside
            )
            learner.ranks, learner.is_ordered = self._maker.ranks(given), self._is_ordered
            self._learner = learner
        return self._learner

    def _between_trials(self) -> AbstractContextManager[Any]:
        """Return the lock of the learner, if there is one."""
        return nullcontext() if self._learner is None else self._learner.lock

    # ---- rows ------------------------------------------------------------------------------------

    def _scores(self, X: Any) -> Scores:
        """Return the score of each class by number, including virtual classes."""
        learner = self._fitted()
        blocks = self._input.few_rows_to_score(self, X)
        return np.concatenate([learner.scores(rows) for rows in blocks])

    @contextmanager
    def _rows_as_set(self) -> Iterator[None]:
        """Learn rows that do not follow each other."""
        self._is_ordered = False
        try:
            yield
        finally:
            del self._is_ordered
            if self._learner is not None:
                self._learner.is_ordered = True

    @contextmanager
    def rows_again(self) -> Iterator[None]:
        """Learn rows that have been learnt before, of which uncertainty learns nothing.

        Their classes are known, and their scores those of rows that were learnt: new rows are less
        certain.
        """
        learner = self._learner
        if learner is not None:
            learner.observes = False
        try:
            yield
        finally:
            if learner is not None:
                del learner.observes

    @exclusive_trials
    def _run_trials(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        classes: Any = None,
        **keep: bool,
    ) -> Trials:
        """Learn from rows and return their trials; `keep` is as for `_learn_rows`.

        Rows of weight 0 are skipped.
        """
        with training.names_of_learnt_rows(self):
            blocks = self._blocks(X, y, sample_weight, classes)
            pieces = [self._learn(rows, y, weights, **keep) for rows, y, weights in blocks]
            return Trials.concatenate(pieces, len(self._known_classes()))

    def _blocks(
        self, X: Any, y: Any, sample_weight: Any = None, classes: Any = None
    ) -> Iterator[Block]:
        """Yield blocks of rows, their encoded targets, and their sample weights or None."""
        return training.blocks(self, X, y, sample_weight, classes)

    def _learn(
        self,
        rows: Rows,
        targets: Targets,
        weights: npt.NDArray[np.float64] | None = None,
        **keep: bool,
    ) -> Trials:
        """Learn from rows whose values are finite; `keep` is as for `_learn_rows`.

        Raises
        ------
        KeslerError
            If the rows do not have the model's number of features, which its first dense rows, or
            the array or data frame that it learnt from, have determined.
        """
        reader = self._input
        require_width(rows, reader.width, more=False)
        learner = self._prepared(dense=rows.dense)
        if self.class_weight is not None:
            from kesler.online.class_weights import weighted

            weights = weighted(self, targets.labels, weights)
        if weights is not None and not weights.all():
            stored = np.flatnonzero(weights > 0)
            targets, rows, weights = targets.take(stored), rows.take(stored), weights[stored]
        with training.compiled_for(len(rows)):
            if learner.memory is not None:
                from kesler.online import limiting

                return limiting.learn(self, rows, targets, weights, **keep)
            return self._learn_rows(rows, targets, weights, **keep)

    def _learn_rows(
        self,
        rows: Rows,
        targets: Targets,
        weights: npt.NDArray[np.float64] | None,
        *,
        keep_scores: bool = False,
        keep_probabilities: bool = False,
        keep_traces: bool = False,
        keep_places: bool = False,
    ) -> Trials:
        """Learn from rows of weights above 0, for which there is a learner."""
        reader, learner, n_rows = self._input, self._prepared(dense=rows.dense), len(rows)
        if not n_rows:
            return Trials.concatenate([], len(learner.classes))
        scores, names = NO_SCORES, targets.names
        if keep_scores:
            n_classes = learner.classes.count_with(names)
            scores = np.full((n_rows, n_classes), np.nan, dtype=np.float32)
        probabilities = np.empty((n_rows, 2)) if keep_probabilities else NO_PROBABILITIES
        traces = learner.untraced(n_rows) if keep_traces else NO_TRACES
        places = np.zeros(n_rows, dtype=np.int32) if keep_places else NO_PLACES
        width = rows.n_features, rows.n_sub_experts
        learner.expect(targets.distinct, *width)
        learnt = []
        most, first = learner.most_observed(names, placed=keep_places), training.first_rows()
        for piece in pieces_of(n_rows, most, first=first):
            is_whole = piece == slice(0, n_rows)
            block, some = (rows, targets) if is_whole else training.part_of(rows, targets, piece)
            given = None if weights is None else weights[piece]
            with Postponed():
                if rows.dense and reader.width is None:
                    reader.width = rows.n_features
                results = scores[piece], probabilities[piece], traces[piece], places[piece]
                found = some.names, given, some.answers, *results
                learnt.append(learner.learn_observed(block, *found))
        with learner.lock:
            learner.count(*width)
        if len(learnt) == 1:
            return Trials(*learnt[0], scores, probabilities, traces, places)
        predictions, codes = map(np.concatenate, zip(*learnt, strict=True))
        return Trials(predictions, codes, scores, probabilities, traces, places)

    def _trial(self, x: Any, y: Any, *, keep_scores: bool) -> tuple[int, npt.NDArray[np.float32]]:
        """Learn from one row; return the code of the best class, and scores if `keep_scores`."""
        learner, reader = self._learner, self._reader
        if learner is not None and reader is not None and self.class_weight is None:
            columns = reader.columns
            # What is known of a table changes with each row, and only one call at a time may do it.
            with nullcontext() if columns.state is None else self._lock, learner.lock:
                names, known = reader.names, columns.state
                n_names = 0 if names is None else len(names.indices)
                n_trials = learner.trials_run[0]
                try:
                    if learner.memory is not None:
                        self._make_room(y)
                        n_names = 0 if names is None else len(names.indices)
                    is_current = self._learner is learner  # no other call has begun again
                    if is_current and reader.read(self, x, learner, learn=True):
                        target = self.answer.encoded_one(y, learner.classes)
                        return _trial_of_event(learner, *target, keep_scores=keep_scores)
                except BaseException:
                    if learner.trials_run[0] == n_trials:  # an interrupt may come after the trial
                        reader.forget_names(n_names)
                        columns.state = known
                        if names is not None and reader.width is None:
                            learner.uncount(n_names)
                    raise
                finally:
                    if learner.trials_run[0] > n_trials:
                        if type(x) is str and reader.texts is not None:
                            reader.texts = reader.texts.and_text(len(x))
                        if learner.memory is not None:
                            learner.memory.count(learner.event.indices)
                reader.forget_names(n_names)
        return training.first_trial(self, x, y, None, keep_scores=keep_scores)

    def _make_room(self, y: Any) -> None:
        """Drop features before a row with this target, if its learner has a limit that asks so."""
        from kesler.online import limiting

        labels, _ = self.answer.encoded_one(y, self._known_classes())
        limiting.make_room(self, labels)


def _trial_of_event(
    learner: AnyLearner,
    labels: Sequence[Any],
    answers: Callable[[npt.NDArray[np.int32]], Answers],
    *,
    keep_scores: bool,
) -> tuple[int, Scores]:
    if keep_scores:
        n_known = learner.n_known
        scores = np.empty((1, learner.classes.count_with(labels)), dtype=np.float32)
        predictions, _ = learner.learn_observed(learner.event, labels, None, answers, scores)
        return int(predictions[0]), scores[0, :n_known]
    predicted = learner.learn_event(labels[0]) if answers is Answers.of_classes else None
    if predicted is None:
        predictions, _ = learner.learn_observed(learner.event, labels, None, answers)
        predicted = int(predictions[0])
    return predicted, NO_SCORES
