"""OnlineLearner: what the faces of the online learners have in common, whatever the answers are."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterator, Sized
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from kesler.answers import Kind
from kesler.bank_machine import BankMachine
from kesler.classes import ClassTable, Label
from kesler.conditioning import Conditioning, resolve_conditioning
from kesler.costs import Costs
from kesler.errors import KeslerError
from kesler.estimators import files, inputs
from kesler.estimators.contract import Estimator
from kesler.estimators.defaults import resolve_open
from kesler.estimators.events import EventLearner
from kesler.estimators.told import Told
from kesler.events import NO_PROBABILITIES, NO_SCORES
from kesler.forgetting import require_half_life
from kesler.geometry import resolve_metric
from kesler.hypotheses import Part, Shared, resolve_hypotheses, takes_ratings
from kesler.kernel_machine import KernelMachine, goes_by_distance, require_budget
from kesler.kernels import MercerKernel, resolve_kernel
from kesler.links import resolve_link
from kesler.machine import Machine
from kesler.maps import FeatureMap, resolve_map
from kesler.rows import Rows, Vocabulary
from kesler.updates import resolve_rule

Self = TypeVar("Self", bound="OnlineLearner")
AnyMachine = Machine | BankMachine

# What `fit` forgets.
_LEARNT = (
    "_machine",
    "_names",
    "_sub_expert_names",
    "n_features_in_",
    "feature_names_in_",
    "notes_",
)


def unchanged_on_error(method: Any) -> Any:
    """Put an estimator's attributes back if the method raises: a refused call leaves no trace."""

    @wraps(method)
    def guarded(self: Any, *arguments: Any, **named: Any) -> Any:
        before = dict(self.__dict__)
        try:
            return method(self, *arguments, **named)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    return guarded


@dataclass(frozen=True, slots=True)
class Trials:
    """What some trials found, classes by number.

    Parameters
    ----------
    predictions : int32 array of shape (n_rows,)
        The class of highest score before the answer was heard, -1 if none was known.
    codes : int32 array
        The classes that the answers named, one answer after the other.
    scores : float32 array of shape (n_rows, n_classes) or (0, 0)
        The score of each class before the answer was heard, NaN for those not known by then; kept
        if asked for.
    probabilities : float64 array of shape (n_rows, 2) or (0, 2)
        Of the class predicted and of the answer, before it was heard; NaN where it was not known;
        kept if asked for.
    """

    predictions: npt.NDArray[np.int32]
    codes: npt.NDArray[np.int32]
    scores: npt.NDArray[np.float32]
    probabilities: npt.NDArray[np.float64]

    @staticmethod
    def concatenate(pieces: list[Trials], n_classes: int) -> Trials:
        """Return runs of trials as one, with a score for each of the classes there are by now."""
        none = np.empty(0, dtype=np.int32)
        rooms = [(0, n_classes - each.scores.shape[1]) for each in pieces]
        scores = [
            np.pad(each.scores, ((0, 0), room), constant_values=np.nan)
            for each, room in zip(pieces, rooms, strict=True)
        ]
        return Trials(
            np.concatenate([none, *(each.predictions for each in pieces)]),
            np.concatenate([none, *(each.codes for each in pieces)]),
            np.concatenate([np.empty((0, n_classes), dtype=np.float32), *scores]),
            np.concatenate([NO_PROBABILITIES, *(each.probabilities for each in pieces)]),
        )


class OnlineLearner(EventLearner, Estimator):
    """A learner that meets its classes as it learns, one row after the other.

    A face says what its answers look like (`_tell`) and what it predicts.

    Attributes
    ----------
    n_virtual : how many classes there are before the first row, without a label and never shown.
    answer : what an answer is; see :data:`kesler.answers.Kind`.
    """

    n_virtual: ClassVar[int] = 0
    answer: ClassVar[Kind] = "levels"

    hypotheses: str | Part | list[Part]
    feature_map: str | FeatureMap

    # ---- batches ----------------------------------------------------------------------------

    @unchanged_on_error
    def fit(self: Self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Forget everything, then learn the rows once, in order.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_rows, n_features), or list of mappings
            Rows; mappings are from feature names to values, and may bring new names at any time.
            Of learners with sub-experts :class:`~kesler.Ratings`, or mappings {label: ratings}.
        y : answers, one a row
            See the class. Labels are numbers, text, tuples or any type that is hashable and can be
            ordered.
        sample_weight : array of shape (n_rows,) or None, default None
            Aggressiveness of each row, 0 or more.

        Returns
        -------
        The estimator itself.
        """
        for name in _LEARNT:
            self.__dict__.pop(name, None)
        self._run_trials(X, y, sample_weight)
        if not self.n_known_:
            weightless = not self._machine.n_trials
            why = "every sample_weight is zero" if weightless else "no answer names a label"
            raise KeslerError(f"{why}, so there is no row to learn from")
        return self

    def partial_fit(
        self: Self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> Self:
        """Learn further rows, in order; new classes and, in mappings, new features are welcome.

        Parameters
        ----------
        X, y, sample_weight : as in `fit`.
        classes : sequence of labels or None, default None
            Never needed, but to name the columns of answers that come as a table. Reserves room; a
            class is known, and can be predicted, from its first row.

        Returns
        -------
        The estimator itself.
        """
        self._run_trials(X, y, sample_weight, classes)
        return self

    def _scores(self, X: Any) -> npt.NDArray[np.float32]:
        """Return the score of each class, virtual ones included, by number."""
        machine = self._fitted()
        return np.concatenate([machine.scores(rows) for rows in self._rows_to_score(X)])

    def levels_told(self, y: Any, classes: Any = None) -> npt.NDArray[np.int32]:
        """Return the levels of the labels in answers: the lower must outscore the higher.

        Parameters
        ----------
        y, classes : as in `partial_fit`.

        Returns
        -------
        Array of shape (n_rows, n_classes), in the order of `classes_`; -1 for labels that are not
        compared. Labels that the model does not know are left out.
        """
        return self._tell(y, classes).table(self.classes_.tolist())

    # ---- events -----------------------------------------------------------------------------

    @unchanged_on_error
    def _first_trial(
        self, x: Any, y: Any, *, keep_scores: bool
    ) -> tuple[int, npt.NDArray[np.float32]]:
        told, n_known = self._tell([y]), self._n_met()
        self._known_classes().require_admissible(told.names)
        with self._names_forgotten_on_error():
            trials = self._learn(self._row(x, learn=True), told, keep_scores=keep_scores)
        scores = trials.scores[0, :n_known] if keep_scores else trials.scores
        return int(trials.predictions[0]), scores

    # ---- what was seen ----------------------------------------------------------------------

    @property
    def classes_(self) -> npt.NDArray[Any]:
        """The labels met so far, sorted."""
        return self._fitted().classes.in_order

    @property
    def classes_by_code_(self) -> npt.NDArray[Any]:
        """The labels met so far, in the order in which they were met."""
        return self._fitted().classes.by_code

    @property
    def n_known_(self) -> int:
        """Number of classes met so far, 0 before the first."""
        return len(self._known_classes().labels)

    @property
    def n_trials_(self) -> int:
        """Rows learnt from."""
        return self._fitted().n_trials

    @property
    def n_mistakes_(self) -> int:
        """Rows whose answer, as far as its classes were known, the scores before it contradict."""
        return self._fitted().n_mistakes

    @property
    def feature_map_(self) -> FeatureMap | None:
        """The feature map in use, None if there is none."""
        maps = [part.feature_map for part in self._fitted().parts]
        return next((each for each in maps if isinstance(each, FeatureMap)), None)

    def join_group(self: Self, label: Label, group: Hashable) -> Self:
        """Let a class take part in one more group of the `Grouped` hypotheses.

        Raises
        ------
        KeslerError
            If the label has not been met, or no hypotheses are grouped.
        """
        self._fitted().join_group(label, group)
        return self

    @property
    def conditioning_(self) -> Conditioning | None:
        """What is done to rows before their trials; None for nothing, or each member's own."""
        machine = self._fitted()
        return None if isinstance(machine, BankMachine) else machine.conditioning

    @property
    def spelt_out_(self: Self) -> Self:
        """A learner that has learnt nothing, in which no setting is left open."""
        machine = self._fitted()
        if isinstance(machine, BankMachine):
            return type(self)(**self.get_params(deep=False))
        return self._of_machine(machine)

    @property
    def n_support_vectors_(self) -> list[int]:
        """How many support vectors each part of the hypotheses has; empty without a kernel."""
        machine = self._fitted()
        return machine.n_support_vectors if isinstance(machine, KernelMachine) else []

    @property
    def keeps_sparse_rows_(self) -> bool:
        """Whether of each feature only the weights that are not 0 are kept, since those are few.

        That is chosen as the stream runs, and changes no score.
        """
        machine = self._fitted()
        return isinstance(machine, Machine) and machine.sparse is not None

    @property
    def sigma_(self) -> float | None:
        """What sigma="auto" has led to, None if there is no such kernel or no distance yet."""
        machine = self._fitted()
        return machine.sigma if isinstance(machine, KernelMachine) else None

    # ---- files ------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str], **notes: Any) -> None:
        """Write the model to a file, without pickle; loaded, it goes on as if never stopped.

        Parameters
        ----------
        path : where to; a file there is replaced as a whole.
        notes : anything that JSON can hold, given back by :func:`kesler.load` as `notes_`.

        Raises
        ------
        KeslerError
            If the labels are neither numbers nor text, or the file cannot be written.
        """
        files.save(self, self._fitted(), path, notes)

    # ---- how it is done ---------------------------------------------------------------------

    @unchanged_on_error
    def _run_trials(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        classes: Any = None,
        *,
        keep_scores: bool = False,
        keep_probabilities: bool = False,
    ) -> Trials:
        """Learn rows and return what their trials found. Rows of weight 0 are left out."""
        with self._names_forgotten_on_error():
            pieces = [
                self._learn(*block, keep_scores=keep_scores, keep_probabilities=keep_probabilities)
                for block in self._blocks(X, y, sample_weight, classes)
            ]
            return Trials.concatenate(pieces, len(self._machine.classes))

    def _blocks(
        self, X: Any, y: Any, sample_weight: Any = None, classes: Any = None
    ) -> Iterator[tuple[Rows, Told, npt.NDArray[np.float64] | None]]:
        """Yield rows a block at a time, what was told of them, and their weights if they have any.

        What may be refused comes before what is changed: names of features join last.
        """
        if classes is not None and not isinstance(classes, Sized):
            raise KeslerError(f"classes={classes!r}: give a sequence of labels, or None")
        X, ratings = inputs.apart(X, rated=self._takes_ratings())
        named = inputs.holds_names(X)
        data = X if named else self._array_rows(X, learn=True)
        told = self._tell(y, classes)
        n_rows = inputs.count_rows(data)
        inputs.require_lengths(n_rows, told)
        inputs.require_rated(n_rows, ratings)
        weights = inputs.row_weights(sample_weight, n_rows)
        distinct = told.distinct
        self._known_classes().require_admissible(distinct)
        if named:
            data = self._named_rows(X, learn=True)
        ratings = self._numbered(ratings, learn=True)
        machine = self._prepared(dense=inputs.is_dense(data))
        machine.require_admissible(distinct)
        machine.make_room(0 if classes is None else len(classes), 0)
        start = 0
        for rows in inputs.blocks(data, ratings):
            part = slice(start, start := start + len(rows))
            yield rows, told[part], None if weights is None else weights[part]

    @contextmanager
    def _names_forgotten_on_error(self) -> Iterator[None]:
        """Take back new names of features and sub-experts if their rows were not learnt."""
        n_names, n_sub_experts = len(self._vocabulary or ()), len(self._sub_experts or ())
        try:
            yield
        except BaseException:
            machine = getattr(self, "_machine", None)
            if self._vocabulary is not None:
                learnt = 0 if machine is None else machine.n_named_features
                self._vocabulary.forget_from(max(n_names, learnt))
            if self._sub_experts is not None:
                learnt = 0 if machine is None else machine.n_sub_experts
                self._sub_experts.forget_from(max(n_sub_experts, learnt))
            raise

    def _learn(
        self,
        rows: Rows,
        told: Told,
        weights: npt.NDArray[np.float64] | None = None,
        *,
        keep_scores: bool = False,
        keep_probabilities: bool = False,
    ) -> Trials:
        """Learn rows that are finite.

        Raises
        ------
        KeslerError
            If the rows have not the width that the model was made for: that of its first dense
            rows, or of the array or data frame that it learnt from.
        """
        inputs.require_width(rows, getattr(self, "n_features_in_", None), more=False)
        machine = self._prepared(dense=rows.dense)
        if weights is not None and not weights.all():
            kept = np.flatnonzero(weights > 0)
            told, rows, weights = told.take(kept), rows.take(kept), weights[kept]
        if not len(rows):
            return Trials.concatenate([], len(machine.classes))
        scores = NO_SCORES
        names = told.names
        if keep_scores:
            n_classes = machine.classes.count_with(names)
            scores = np.full((len(rows), n_classes), np.nan, dtype=np.float32)
        chances = np.empty((len(rows), 2)) if keep_probabilities else NO_PROBABILITIES
        learnt = machine.learn(rows, names, weights, told.answers, scores, chances)
        if rows.dense:
            self.__dict__.setdefault("n_features_in_", rows.n_features)
        return Trials(*learnt, scores, chances)

    def name_features(self: Self, vocabulary: Vocabulary | None) -> Self:
        """Let the features of the rows to come be known by these names; None: by position.

        Parameters
        ----------
        vocabulary : the one that a reader fills, which is `vocabulary_` itself once the model has
            learnt.

        Raises
        ------
        KeslerError
            If the model knows its features otherwise.
        """
        if self.__sklearn_is_fitted__() and vocabulary is not self._vocabulary:
            known = "position" if self._vocabulary is None else "name"
            raise KeslerError(
                f"this model knows its features by {known}, but those of the rows are not told "
                "that way: give rows in the format that it learnt from"
            )
        self._vocabulary = vocabulary
        return self

    def _n_met(self) -> int:
        """Return how many classes have been met, virtual ones included."""
        machine = getattr(self, "_machine", None)
        return 0 if machine is None else int(machine.n_known)

    def _known_classes(self) -> ClassTable:
        machine = getattr(self, "_machine", None)
        return self._no_classes() if machine is None else machine.classes

    def _no_classes(self) -> ClassTable:
        """Return the table of classes before the first row."""
        return ClassTable(n_virtual=self.n_virtual)

    def _prepared(self, *, dense: bool) -> AnyMachine:
        """Return the machine, made for the kind of the first rows."""
        machine: AnyMachine | None = getattr(self, "_machine", None)
        if machine is None:
            machine = self._machine = self._new_machine(dense=dense)
        return machine

    def _new_machine(self, *, dense: bool) -> AnyMachine:
        chosen = self._chosen(dense=dense)
        kernel, parts = self._kernel(), self._parts(dense=dense)
        made_of: dict[str, Any] = {
            "parts": parts,
            "classes": self._known_classes(),
            "constant": inputs.intercept_value(chosen.get("intercept", 0.0)),
            "answer": self.answer,
            "conditioning": resolve_conditioning(
                chosen["conditioning"], dense=dense, by_distance=goes_by_distance(kernel, parts)
            ),
            "half_life": require_half_life(chosen.get("half_life")),
            **self._moves(chosen),
        }
        budget = getattr(self, "budget", None)
        if kernel is None:
            return Machine(**made_of)
        return KernelMachine(**made_of, kernel=kernel, dense=dense, budget=budget)

    def _chosen(self, *, dense: bool) -> dict[str, Any]:
        """Return the parameters, those that were left open chosen for the kind of the rows."""
        return resolve_open(self.get_params(deep=False), dense=dense)

    def _moves(self, chosen: dict[str, Any]) -> dict[str, Any]:
        """Return what the machine is told of how to move: rule, link and the like."""
        costs, rule = chosen.get("costs"), resolve_rule(chosen["update"])
        return {
            "rule": rule,
            "metric": resolve_metric(chosen["metric"], rule.metric),
            "newcomers": chosen["newcomers"],
            "link": resolve_link(chosen["link"]),
            "averaged": bool(chosen["averaged"]),
            "costs": None if costs is None else Costs(costs),
        }

    @classmethod
    def _of_machine(cls: type[Self], machine: Machine) -> Self:
        """Return a face whose parameters are what a machine is made of."""
        told: dict[str, Any] = {
            "hypotheses": machine.parts,
            "update": machine.rule,
            "link": machine.link,
            "averaged": machine.averaged,
            "metric": machine.metric,
            "newcomers": machine.newcomers,
            "intercept": machine.constant,
            "order": machine.classes.declared,
            "costs": None if machine.costs is None else machine.costs.given,
            "conditioning": machine.conditioning,
            "half_life": machine.half_life,
        }
        if isinstance(machine, KernelMachine):
            told |= {"kernel": machine.kernel, "budget": machine.budget}
        names = cls._get_param_names()
        return cls(**{name: value for name, value in told.items() if name in names})

    def _kernel(self) -> MercerKernel | None:
        """Return the kernel, None for weights."""
        given = vars(self)
        kernel, budget = given.get("kernel"), require_budget(given.get("budget"))
        if kernel is not None:
            return resolve_kernel(kernel, given["sigma"])
        if budget is not None:
            raise KeslerError(
                f"budget={budget!r} is a number of support vectors, of which there are none "
                'without a kernel: leave it out, or give one, kernel="rbf" for instance'
            )
        return None

    def _parts(self, *, dense: bool) -> list[Part]:
        hypotheses = self._chosen(dense=dense)["hypotheses"]
        return resolve_hypotheses(hypotheses, lambda: self._shared_part(dense=dense))

    def _shared_part(self, *, dense: bool) -> Part:
        """Return the part that the names of hypotheses mean by one for all classes."""
        with_kernel = vars(self).get("kernel") is not None
        return Shared(resolve_map(self.feature_map, dense=dense, kernel=with_kernel))

    def _takes_ratings(self) -> bool:
        machine: AnyMachine | None = getattr(self, "_machine", None)
        if machine is None:
            return takes_ratings(self._parts(dense=False))
        return machine.takes_ratings

    def _fitted(self) -> AnyMachine:
        machine: AnyMachine | None = getattr(self, "_machine", None)
        if machine is None or not machine.classes.labels:
            from sklearn.exceptions import NotFittedError

            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet: no class is known before "
                "the first row is learnt, by fit, partial_fit or learn_one"
            )
        return machine

    def _single(self) -> Machine:
        """Return the machine of a learner that is no bank."""
        machine = self._fitted()
        if isinstance(machine, BankMachine):
            raise KeslerError("a bank has no weights of its own: take one of its learners")
        return machine

    def __sklearn_is_fitted__(self) -> bool:
        return self.n_known_ > 0

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._takes_sparse_rows()
        return tags

    def _takes_sparse_rows(self) -> bool:
        try:
            parts, kernel = self._parts(dense=False), self._kernel()
            chosen = self._chosen(dense=False)["conditioning"]
            conditioning = resolve_conditioning(chosen, dense=False)
        except KeslerError:  # refused when it learns, not when it is asked for its tags
            return True
        if kernel is not None and kernel.of == "vectors":
            return False
        if conditioning is not None and not conditioning.zero_at_zero:
            return False
        return all(part.feature_map is None or part.feature_map.zero_at_zero for part in parts)
