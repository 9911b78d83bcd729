"""OnlineLearner: the base class of the online estimators, whatever their targets are."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterator, Mapping, Sized
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from kesler.costs import Costs
from kesler.data import inputs
from kesler.data.labels import Label
from kesler.data.rows import Rows, Vocabulary
from kesler.errors import KeslerError
from kesler.hypotheses import (
    Part,
    Shared,
    over_tree,
    resolve_hypotheses,
    takes_ratings,
    tree_of,
)
from kesler.interrupts import Postponed, pieces_of
from kesler.kernels import resolve_kernel
from kesler.kernels.mercer import MercerKernel
from kesler.learner.classes import ClassTable
from kesler.learner.combinations import require_epochs, require_half_life
from kesler.learner.ensemble import AnyLearner, EnsembleLearner
from kesler.learner.events import NO_PROBABILITIES, NO_SCORES
from kesler.learner.kernel_learner import KernelLearner, goes_by_distance
from kesler.learner.learner import Learner
from kesler.learner.support_vectors import limit_of
from kesler.learner.targets import Decision, Kind, Targets
from kesler.learner.uncertainty import NO_TRACES
from kesler.links import resolve_link
from kesler.maps import resolve_map
from kesler.maps.feature_map import FeatureMap
from kesler.online.contract import exclusive, exclusive_trials
from kesler.online.defaults import resolve
from kesler.online.events import EventLearner
from kesler.online.named_rule import NamedRule
from kesler.online.trees import TreeOfClasses
from kesler.online.trials import Trials
from kesler.online.uncertain import UncertainLearner
from kesler.parts.constraints import VS_REST
from kesler.preconditioners import resolve_preconditioner
from kesler.preprocessing import Preprocessing, resolve_preprocessing
from kesler.preprocessing.replay import resolve_replay
from kesler.settings.table import OF_ESTIMATOR, given_of

Self = TypeVar("Self", bound="OnlineLearner")

# Attributes that `fit` deletes.
_LEARNT = (
    "_learner",
    "_names",
    "_sub_expert_names",
    "n_features_in_",
    "feature_names_in_",
    "notes_",
    "_table",
    "_declared",
    "_texts",
    "_queries",
)


class OnlineLearner(EventLearner, UncertainLearner, TreeOfClasses, NamedRule):
    """A learner that adds classes as they appear and learns from one row after the other.

    A subclass defines how its targets are encoded (`_encode`) and what it predicts.

    Attributes
    ----------
    n_virtual : number of classes that exist before the first row; they have no label and are never
        returned.
    explores : whether it is told only whether the class that it shows is right.
    answer : the kind of target; see :data:`kesler.learner.targets.Kind`.
    """

    n_virtual: ClassVar[int] = 0
    explores: ClassVar[bool] = False
    answer: ClassVar[Kind] = "levels"

    hypotheses: str | Part | list[Part]
    feature_map: str | FeatureMap

    # ---- batches ----------------------------------------------------------------------------

    @exclusive
    def fit(self: Self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Reset the model, then learn from the rows in order, once or `epochs` times.

        Rows are a set: ensembles learn nothing of which classes follow each other, as they do in
        `partial_fit`. Warns of rows sorted by class, after which the last ones prevail.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_rows, n_features), or list of mappings \
or texts
            Rows; mappings are from feature names to values, and may contain new names at any time.
            If cells are not all numbers, rows are those of a table, whose columns may be of
            different kinds (parameter `columns`). The features of a text are its words, runs of
            letters, digits and apostrophes in lower case, each of value 1. If no update is chosen
            and the texts so far, with this one, have at most 160 characters on average, its pairs
            of words and its runs of 4 characters are features as well.
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
        n_epochs = require_epochs(vars(self).get("epochs", 1))
        for name in _LEARNT:
            self.__dict__.pop(name, None)
        with self._rows_as_set():
            for _ in range(n_epochs):
                trials = self._run_trials(X, y, sample_weight)
        trials.warn_if_sorted(self.answer)
        self._require_given_columns()
        if not self.n_known_:
            weightless = not self._learner.n_trials
            why = "every sample_weight is zero" if weightless else "no target names a label"
            raise KeslerError(f"{why}, so there is no row to learn from")
        return self

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

    def _scores(self, X: Any) -> npt.NDArray[np.float32]:
        """Return the score of each class by number, including virtual classes."""
        learner = self._fitted()
        return np.concatenate([learner.scores(rows) for rows in self._rows_to_score(X)])

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
        return self._encode(y, classes).table(self.classes_.tolist())

    # ---- events -----------------------------------------------------------------------------

    @exclusive_trials
    def _first_trial(
        self, x: Any, y: Any, weights: npt.NDArray[np.float64] | None, *, keep_scores: bool
    ) -> tuple[int, npt.NDArray[np.float32]]:
        targets, table = self._encode([y]), self._table_of_row(x)
        self._known_classes().require_admissible(targets.names)
        with self._between_trials(), self._names_of_learnt_rows():
            n_known = self._n_seen()
            if table is None:
                row = self._row(x, learn=True)
                trials = self._learn(row, targets, weights, keep_scores=keep_scores)
            else:
                blocks = self._table_blocks(table, targets, weights)
                (trials,) = [self._learn(*block, keep_scores=keep_scores) for block in blocks]
        scores = trials.scores[0, :n_known] if keep_scores else trials.scores
        return int(trials.predictions[0]), scores

    # ---- attributes -------------------------------------------------------------------------

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

    @property
    def n_trials_(self) -> int:
        """Number of rows learnt from."""
        return self._fitted().n_trials

    @property
    def n_mistakes_(self) -> int:
        """Number of rows whose target contradicts the scores before it, among known classes."""
        return self._fitted().n_mistakes

    @property
    def feature_map_(self) -> FeatureMap | None:
        """The feature map in use, or None."""
        maps = [part.feature_map for part in self._fitted().parts]
        return next((each for each in maps if isinstance(each, FeatureMap)), None)

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

    @property
    def preprocessing_(self) -> Preprocessing | None:
        """The preprocessing of rows; None if there is none, or if members differ in theirs."""
        learner = self._fitted()
        if not isinstance(learner, EnsembleLearner):
            return learner.preprocessing
        first, *others = (member.preprocessing for member in learner.members)
        return first if all(each == first for each in others) else None

    @property
    def resolved_(self: Self) -> Self:
        """An unfitted estimator in which every default has been replaced by the value in use."""
        own, learner = self.get_params(deep=False), self._fitted()
        of_estimator = {name: own[name] for name in OF_ESTIMATOR if name in own}
        if "uncertainty" in own:
            estimates = learner.uncertainty
            remembers = estimates is not None and estimates.remembers
            of_estimator["uncertainty"] = "full" if remembers else estimates is not None
        return type(self)(**{**self._in_use(learner), **of_estimator})

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

    # ---- files ------------------------------------------------------------------------------

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

    # ---- implementation ---------------------------------------------------------------------

    def _between_trials(self) -> AbstractContextManager[Any]:
        """Return the lock of the learner, if there is one."""
        learner = vars(self).get("_learner")
        return nullcontext() if learner is None else learner.lock

    @exclusive_trials
    def _run_trials(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        classes: Any = None,
        *,
        keep_scores: bool = False,
        keep_probabilities: bool = False,
        keep_traces: bool = False,
    ) -> Trials:
        """Learn from rows and return the results of their trials. Rows of weight 0 are skipped."""
        with self._names_of_learnt_rows():
            pieces = [
                self._learn(
                    *block,
                    keep_scores=keep_scores,
                    keep_probabilities=keep_probabilities,
                    keep_traces=keep_traces,
                )
                for block in self._blocks(X, y, sample_weight, classes)
            ]
            return Trials.concatenate(pieces, len(self._learner.classes))

    def _blocks(
        self, X: Any, y: Any, sample_weight: Any = None, classes: Any = None
    ) -> Iterator[tuple[Rows, Targets, npt.NDArray[np.float64] | None]]:
        """Yield blocks of rows, their encoded targets, and their sample weights or None.

        All checks come before any change of state; new feature names are added last.
        """
        table = self._table_of(X)
        if table is not None:
            told = self._validated_targets(table.n_rows, y, sample_weight, classes)
            yield from self._table_blocks(table, *told)
            return
        X, ratings, texts = self._apart(X)
        named = inputs.holds_names(X)
        data = X if named or texts else self._array_rows(X, learn=True)
        n_rows = inputs.count_rows(data) if named else len(data)
        targets, weights = self._validated_targets(n_rows, y, sample_weight, classes)
        inputs.require_rated(n_rows, ratings)
        with self._between_trials():  # others may add the names of events
            if named:
                data = self._named_rows(X, learn=True)
            elif texts:
                data = self._text_rows(X, weights, learn=True)
            ratings = self._numbered(ratings, learn=True)
        learner = self._prepared(dense=inputs.is_dense(data))
        learner.require_admissible(targets.distinct)
        if classes is not None:
            learner.reserve(len(classes), 0)
        start = 0
        for rows in inputs.blocks(data, ratings):
            part = slice(start, start := start + len(rows))
            yield rows, targets[part], None if weights is None else weights[part]

    def _validated_targets(
        self, n_rows: int, y: Any, sample_weight: Any, classes: Any
    ) -> tuple[Targets, npt.NDArray[np.float64] | None]:
        """Return the encoded targets and the sample weights of this many rows, validated.

        The declared classes are stored, and forgotten if the call fails.
        """
        if classes is not None and not isinstance(classes, Sized):
            raise KeslerError(f"classes={classes!r}: give a sequence of labels, or None")
        targets = self._encode(y, classes)
        inputs.require_lengths(n_rows, targets)
        weights = inputs.row_weights(sample_weight, n_rows)
        declared = self._to_declare(classes)
        self._known_classes().require_admissible([*targets.distinct, *declared])
        if declared:
            self._declared = list(dict.fromkeys(declared))
        return targets, weights

    def _to_declare(self, classes: Any) -> list[Label]:
        """Return the classes that have columns in predictions before their first rows."""
        return []

    @contextmanager
    def _names_of_learnt_rows(self) -> Iterator[None]:
        """Count the texts that are learnt, and remove new names of rows that are not.

        Those are names of features and sub-experts of rows whose learning fails.
        """
        n_names, n_sub_experts = len(self._vocabulary or ()), len(self._sub_experts or ())
        n_before = self._n_learnt()
        try:
            yield
            self._count_texts(n_before)
        except BaseException:
            self._count_texts(n_before)
            learner = vars(self).get("_learner")
            with self._between_trials():
                if self._vocabulary is not None:
                    learnt = 0 if learner is None else learner.n_named_features
                    self._vocabulary.forget_from(max(n_names, learnt))
                if self._sub_experts is not None:
                    learnt = 0 if learner is None else learner.n_sub_experts
                    self._sub_experts.forget_from(max(n_sub_experts, learnt))
            raise

    def _learn(
        self,
        rows: Rows,
        targets: Targets,
        weights: npt.NDArray[np.float64] | None = None,
        *,
        keep_scores: bool = False,
        keep_probabilities: bool = False,
        keep_traces: bool = False,
    ) -> Trials:
        """Learn from rows whose values are finite.

        Raises
        ------
        KeslerError
            If the rows do not have the model's number of features, which its first dense rows, or
            the array or data frame that it learnt from, have determined.
        """
        inputs.require_width(rows, getattr(self, "n_features_in_", None), more=False)
        learner = self._prepared(dense=rows.dense)
        if weights is not None and not weights.all():
            stored = np.flatnonzero(weights > 0)
            targets, rows, weights = targets.take(stored), rows.take(stored), weights[stored]
        n_rows = len(rows)
        if not n_rows:
            return Trials.concatenate([], len(learner.classes))
        scores, names = NO_SCORES, targets.names
        if keep_scores:
            n_classes = learner.classes.count_with(names)
            scores = np.full((n_rows, n_classes), np.nan, dtype=np.float32)
        probabilities = np.empty((n_rows, 2)) if keep_probabilities else NO_PROBABILITIES
        traces = learner.untraced(n_rows) if keep_traces else NO_TRACES
        width = rows.n_features, rows.n_sub_experts
        learner.expect(targets.distinct, *width)
        learnt = []
        for piece in pieces_of(n_rows, learner.most_observed(names)):
            is_whole = piece == slice(0, n_rows)
            block, some = (rows, targets) if is_whole else self._part_of(rows, targets, piece)
            given = None if weights is None else weights[piece]
            with Postponed():
                if rows.dense:
                    self.__dict__.setdefault("n_features_in_", rows.n_features)
                results = scores[piece], probabilities[piece], traces[piece]
                found = some.names, given, some.answers, *results
                learnt.append(learner.learn_observed(block, *found))
        with learner.lock:
            learner.reserve(0, *width)
        if len(learnt) == 1:
            return Trials(*learnt[0], scores, probabilities, traces)
        predictions, codes = map(np.concatenate, zip(*learnt, strict=True))
        return Trials(predictions, codes, scores, probabilities, traces)

    def _part_of(self, rows: Rows, targets: Targets, part: slice) -> tuple[Rows, Targets]:
        """Return consecutive rows, which name no feature that only later rows have."""
        some = rows[part]
        return some if rows.dense else some.without_later(), targets[part]

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
        if self.__sklearn_is_fitted__() and vocabulary is not self._vocabulary:
            known = "position" if self._vocabulary is None else "name"
            raise KeslerError(
                f"this model identifies its features by {known}, but these rows do not: give rows "
                "in the format that the model learnt from"
            )
        self._vocabulary = vocabulary
        return self

    def _n_seen(self) -> int:
        """Return the number of classes seen so far, including virtual classes."""
        learner = getattr(self, "_learner", None)
        return 0 if learner is None else int(learner.n_known)

    def _known_classes(self) -> ClassTable:
        learner = getattr(self, "_learner", None)
        return self._no_classes() if learner is None else learner.classes

    def _no_classes(self) -> ClassTable:
        """Return the table of classes before the first row."""
        return ClassTable(n_virtual=self.n_virtual)

    def _prepared(self, *, dense: bool) -> AnyLearner:
        """Return the learner; create it from the kind of the first rows if there is none."""
        learner: AnyLearner | None = getattr(self, "_learner", None)
        if learner is None:
            learner = self._new_learner(dense=dense)
            learner.uncertainty = self._new_uncertainty(learner, dense=dense)
            learner.is_ordered = "_is_set" not in vars(self)
            self._learner = learner
        return learner

    def _new_learner(self, *, dense: bool) -> AnyLearner:
        chosen = self._chosen(dense=dense)
        kernel, parts = self._kernel(), self._parts(dense=dense)
        budget = limit_of(getattr(self, "budget", None))
        by_distance = goes_by_distance(kernel, parts, budget)
        made_of: dict[str, Any] = {
            "parts": parts,
            "classes": self._known_classes(),
            "constant": inputs.intercept_value(chosen.get("intercept", 0.0)),
            "answer": self.answer,
            "preprocessing": resolve_preprocessing(
                chosen["preprocessing"], dense=dense, by_distance=by_distance
            ),
            "half_life": require_half_life(chosen.get("half_life")),
            "replay": resolve_replay(chosen.get("replay")),
            **self._moves(chosen),
        }
        made_of["decision"] = chosen.get("decision", self._decision(made_of))
        if kernel is None:
            return self._linear_learner(made_of, dense=dense)
        return KernelLearner(**made_of, kernel=kernel, dense=dense, budget=budget)

    def _linear_learner(self, made_of: dict[str, Any], *, dense: bool) -> Learner:
        """Return the learner of these arguments, whose hypotheses are weight vectors."""
        return Learner(**made_of)

    def _decision(self, made_of: Mapping[str, Any]) -> Decision:
        """Return how classes are predicted: by distances where a tree has no effect on margins."""
        rule, costs = made_of["rule"], made_of.get("costs")
        if self.answer != "class" or rule.heeds_margin or rule.gradient is None:
            return "score"
        tree = tree_of(made_of["parts"]) or (costs and costs.tree)
        return "score" if tree is None else "distance"

    def _chosen(self, *, dense: bool) -> dict[str, Any]:
        """Return the parameters, with defaults resolved for the kind of the rows."""
        return resolve(self.get_params(deep=False), dense=dense, answer=self.answer)

    def _moves(self, chosen: dict[str, Any]) -> dict[str, Any]:
        """Return the learner's arguments that define an update: rule, link, preconditioner etc."""
        costs, rule = chosen.get("costs"), self._rule_of(chosen["update"])
        if costs is None and (rule.heeds_margin or rule.constraints in VS_REST):
            costs = self._tree()
        return {
            "rule": rule,
            "preconditioner": resolve_preconditioner(chosen["preconditioner"], rule.preconditioner),
            "on_new_class": chosen["on_new_class"],
            "link": resolve_link(chosen["link"]),
            "averaged": bool(chosen["averaged"]),
            "costs": None if costs is None else Costs(costs),
        }

    def _in_use(self, learner: Any) -> dict[str, Any]:
        """Return the parameters that a learner was made of."""
        found: dict[str, Any] = {
            "hypotheses": learner.parts,
            "update": learner.rule,
            "link": learner.link,
            "averaged": learner.averaged,
            "preconditioner": learner.preconditioner,
            "on_new_class": learner.on_new_class,
            "intercept": learner.constant,
            "order": learner.classes.declared,
            "costs": None if learner.costs is None else learner.costs.given,
            "preprocessing": learner.preprocessing,
            "half_life": learner.half_life,
            "replay": learner.replay or 0,
            "decision": learner.decision,
        }
        if isinstance(learner, KernelLearner):
            found |= {"kernel": learner.kernel, "budget": learner.budget}
        names = self._get_param_names()
        return {name: value for name, value in found.items() if name in names}

    def _kernel(self) -> MercerKernel | None:
        """Return the kernel, or None if hypotheses are weight vectors."""
        given = vars(self)
        kernel, budget = given.get("kernel"), limit_of(given.get("budget"))
        if kernel is not None:
            return resolve_kernel(kernel, given["sigma"])
        if "sigma" in given_of(self.get_params(deep=False)):
            raise KeslerError(
                f"sigma={given['sigma']!r} is the variance of a kernel, and there is none: omit "
                'sigma=, or set kernel="rbf"'
            )
        if budget is not None:
            raise KeslerError(
                f"budget={budget!r} is a number of support vectors, which exist only with a "
                'kernel: omit budget=, or set a kernel such as kernel="rbf"'
            )
        return None

    def _parts(self, *, dense: bool) -> list[Part]:
        chosen, tree = self._chosen(dense=dense), self._tree()
        parts = resolve_hypotheses(chosen["hypotheses"], lambda: self._shared_part(dense=dense))
        # Where each class is learnt against the rest, the classes below a node have contradictory
        # targets: they keep vectors of their own.
        if tree is None or self._rule_of(chosen["update"]).constraints in VS_REST:
            return parts
        return over_tree(parts, tree)

    def _shared_part(self, *, dense: bool) -> Part:
        """Return the part that "single" and "hybrid" use for all classes."""
        with_kernel = vars(self).get("kernel") is not None
        return Shared(resolve_map(self.feature_map, dense=dense, kernel=with_kernel))

    def _takes_ratings(self) -> bool:
        learner: AnyLearner | None = getattr(self, "_learner", None)
        if learner is None:
            return takes_ratings(self._parts(dense=False))
        return learner.takes_ratings

    def _fitted(self) -> AnyLearner:
        learner: AnyLearner | None = getattr(self, "_learner", None)
        if learner is None or not learner.classes.labels:
            from sklearn.exceptions import NotFittedError

            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet: no class is known before "
                "the first row; call fit, partial_fit or learn_one first"
            )
        return learner

    def _single(self) -> Learner:
        """Return the learner; raise if this estimator is an ensemble."""
        learner = self._fitted()
        if isinstance(learner, EnsembleLearner):
            raise KeslerError("an ensemble has no weights: use one of its learners")
        return learner

    def __sklearn_is_fitted__(self) -> bool:
        return self.n_known_ > 0

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._takes_sparse_rows()
        return tags

    def _takes_sparse_rows(self) -> bool:
        try:
            parts, kernel = self._parts(dense=False), self._kernel()
            chosen = self._chosen(dense=False)["preprocessing"]
            preprocessing = resolve_preprocessing(chosen, dense=False)
        except KeslerError:  # raised when learning, not when reading the tags
            return True
        if kernel is not None and kernel.of == "vectors":
            return False
        if preprocessing is not None and not preprocessing.zero_at_zero:
            return False
        return all(part.feature_map is None or part.feature_map.zero_at_zero for part in parts)
