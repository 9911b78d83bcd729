"""OnlineClassifier: the online learners behind scikit-learn's face."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sized
from contextlib import contextmanager
from functools import wraps
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError

from kesler import model_file
from kesler.classes import ClassTable, Label
from kesler.errors import KeslerError
from kesler.estimators import inputs
from kesler.hypotheses import Part, describe_parts, resolve_hypotheses, restore_parts
from kesler.machine import Machine
from kesler.maps import FeatureMap, resolve_map
from kesler.parts import restore
from kesler.rows import Rows, Vocabulary
from kesler.updates import OURS, UpdateRule, resolve_rule

Self = TypeVar("Self", bound="OnlineClassifier")

# What `fit` forgets.
_LEARNT = ("_machine", "_names", "n_features_in_", "feature_names_in_", "notes_")


def _unchanged_on_error(method: Any) -> Any:
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


class OnlineClassifier(ClassifierMixin, BaseEstimator):
    r"""A classifier that meets its classes as it learns, one row after the other.

    The score of class r is the sum over the hypotheses t that it belongs to,

    .. math:: h(x, r) = \sum_{t \ni r} \langle w^t, \phi^t(x, r) \rangle, \quad
        \hat y = \arg\max_r h(x, r)

    over the classes met so far, and each row moves the hypotheses by the steps of an update rule,
    :math:`w^t \mathrel{+}= \sum_s \alpha_s (\phi^t(x, y) - \phi^t(x, s))`. The first row of a class
    makes it known and moves nothing.

    Parameters
    ----------
    hypotheses : "multi", "single", "hybrid" or list of parts, default "hybrid"
        Which classes share which weights: one vector for each class, one for all over a feature
        map, both (their scores add up), or any list of :class:`~kesler.hypotheses.PerClass`,
        :class:`~kesler.hypotheses.Shared` and :class:`~kesler.hypotheses.Grouped`.
    feature_map : "auto", "product", "product-mean", "frequency", "distance" or map, default "auto"
        The view of an instance that the shared vector has; not used by "multi". "auto" takes
        "frequency" if the first rows are sparse or named, "distance" if they are dense.
    update : "perceptron", "pa", "pa1", "pa2", "simperc", "conproj", "simproj", "mira" or rule, \
default "pa1"
        How far to move. A name stands for the rule of :mod:`kesler.updates` with C = 1; smaller C
        (0.001 to 0.1) bears noise better, on text above all.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels met so far, sorted.
    n_trials_, n_mistakes_ : int
        Rows learnt from, and rows of a known class for which another one was predicted before the
        answer was heard (progressive validation; one pass over data never seen is an honest test).
    feature_map_ : FeatureMap or None
        The map in use, None for "multi".
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
    Learning row by row, in batches of any size, or all at once gives the same weights bit for bit.
    A row costs O(nnz k) for k classes: about 1 us with 80 non-zeros and 20 classes. Memory is
    4 bytes for each feature and hypothesis, and with a map as many for each feature and class.
    `sample_weight` is a row's aggressiveness: it multiplies C (or the step, where a rule has no C);
    a row of weight 0 is left out. Values are kept as float32.

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

    def __init__(
        self,
        hypotheses: str | Part | list[Part] = "hybrid",
        feature_map: str | FeatureMap = "auto",
        update: str | UpdateRule = "pa1",
    ) -> None:
        self.hypotheses = hypotheses
        self.feature_map = feature_map
        self.update = update

    # ---- batches ----------------------------------------------------------------------------

    @_unchanged_on_error
    def fit(self: Self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Forget everything, then learn the rows once, in order.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_rows, n_features), or list of mappings
            Rows; mappings are from feature names to values, and may bring new names at any time.
        y : sequence of n_rows labels
            Numbers, text, tuples or any type that is hashable and can be ordered.
        sample_weight : array of shape (n_rows,) or None, default None
            Aggressiveness of each row, 0 or more.

        Returns
        -------
        The estimator itself.
        """
        for name in _LEARNT:
            self.__dict__.pop(name, None)
        self.run_trials(X, y, sample_weight)
        if not self.n_known_:
            raise KeslerError("every sample_weight is zero, so there is no row to learn from")
        return self

    def partial_fit(
        self: Self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> Self:
        """Learn further rows, in order; new classes and, in mappings, new features are welcome.

        Parameters
        ----------
        X, y, sample_weight : as in `fit`.
        classes : sequence of labels or None, default None
            Never needed. Reserves room; a class is known, and can be predicted, from its first row.

        Returns
        -------
        The estimator itself.
        """
        if classes is not None and not isinstance(classes, Sized):
            raise KeslerError(f"classes={classes!r}: give a sequence of labels, or None")
        self.run_trials(X, y, sample_weight, n_classes=0 if classes is None else len(classes))
        return self

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the class of highest score of each row, the one met first among equals.

        Parameters
        ----------
        X : rows as in `fit`; names never met count for nothing.

        Returns
        -------
        Array of shape (n_rows,) of labels.
        """
        machine = self._fitted()
        codes = [machine.predict(rows) for rows in self._rows_to_score(X)]
        labels: npt.NDArray[Any] = machine.classes.by_code[_joined(codes)]
        return labels

    def decision_function(self, X: Any) -> npt.NDArray[np.float32]:
        """Return the score of each class, in the order of `classes_`.

        Returns
        -------
        Array of shape (n_rows, n_classes); for two classes, of shape (n_rows,): the score of
        classes_[1] less that of classes_[0].
        """
        machine = self._fitted()
        found = [machine.scores(rows) for rows in self._rows_to_score(X)]
        scores = np.concatenate(found)[:, machine.classes.order]
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    # ---- events -----------------------------------------------------------------------------

    def learn_one(self: Self, x: Any, y: Label) -> Self:
        """Learn one row, without scikit-learn's validation.

        Parameters
        ----------
        x : mapping of feature names to values, or array of shape (n_features,).
        y : its label.

        Returns
        -------
        The estimator itself.
        """
        machine = getattr(self, "_machine", None)
        if machine is None:
            return self._learn_first(x, y)
        if y not in machine.classes:
            machine.classes.require_admissible([y])
        with self._names_forgotten_on_error():
            machine.learn(self._row(x, learn=True), [y])
        return self

    def predict_one(self, x: Any) -> Any:
        """Return the label of highest score for one row, as in `learn_one`."""
        machine = self._fitted()
        return machine.classes.labels[machine.predict(self._row(x, learn=False))[0]]

    # ---- what was seen ----------------------------------------------------------------------

    @property
    def classes_(self) -> npt.NDArray[Any]:
        """The labels met so far, sorted."""
        classes = self._fitted().classes
        labels: npt.NDArray[Any] = classes.by_code[classes.order]
        return labels

    @property
    def classes_by_code_(self) -> npt.NDArray[Any]:
        """The labels met so far, in the order in which they were met."""
        return self._fitted().classes.by_code

    @property
    def n_known_(self) -> int:
        """Number of classes met so far, 0 before the first."""
        return len(self._known_classes())

    @property
    def n_trials_(self) -> int:
        """Rows learnt from."""
        return self._fitted().n_trials

    @property
    def n_mistakes_(self) -> int:
        """Rows of a known class for which another class was predicted before learning."""
        return self._fitted().n_mistakes

    @property
    def feature_map_(self) -> FeatureMap | None:
        """The feature map in use, None if there is none."""
        maps = [part.feature_map for part in self._fitted().parts]
        return next((each for each in maps if each is not None), None)

    def join_group(self: Self, label: Label, group: Hashable) -> Self:
        """Let a class take part in one more group of the `Grouped` hypotheses.

        Raises
        ------
        KeslerError
            If the label has not been met, or no hypotheses are grouped.
        """
        self._fitted().join_group(label, group)
        return self

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
        machine = self._fitted()
        _require_plain([*machine.classes.labels, *(g for gs in machine.groups for g in gs)])
        vocabulary = self._vocabulary
        metadata = {
            "estimator": type(self).__name__,
            "parts": describe_parts(machine.parts),
            "rule": machine.rule.describe(),
            "labels": machine.classes.labels,
            "n_features": machine.n_features,
            "names": None if vocabulary is None else vocabulary.names,
            "width": getattr(self, "n_features_in_", None),
            "groups": [list(groups) for groups in machine.groups],
            "memberships": machine.memberships,
            "notes": notes,
        }
        model_file.save(path, machine.arrays(), metadata)

    @classmethod
    def _load(cls: type[Self], path: str | os.PathLike[str], custom: Iterable[Any] = ()) -> Self:
        arrays, metadata = model_file.load(path)
        custom = list(custom)
        parts = restore_parts(metadata["parts"], custom)
        rules = [each for each in custom if isinstance(each, UpdateRule)]
        rule = restore(metadata["rule"], "update rule", OURS, rules)
        model = cls(hypotheses=parts, update=rule)
        machine = Machine(parts, rule, ClassTable(metadata["labels"]))
        groups = [{name: i for i, name in enumerate(names)} for names in metadata["groups"]]
        machine.restore(arrays, metadata["n_features"], groups, metadata["memberships"])
        model._machine = machine
        names, width = metadata["names"], metadata["width"]
        model._vocabulary = None if names is None else Vocabulary.of(names)
        if width is not None:
            model.n_features_in_ = width
            if names is not None:
                model.feature_names_in_ = np.array(names, dtype=object)
        model.notes_ = metadata["notes"]
        return model

    # ---- how it is done ---------------------------------------------------------------------

    @_unchanged_on_error
    def run_trials(
        self, X: Any, y: Any, sample_weight: Any = None, n_classes: int = 0
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """Learn rows and return, for each, the numbers of the class predicted before and of y.

        Classes are numbered as in `classes_by_code_`; -1 stands for no prediction, since no class
        was known. Rows of weight 0 are left out. `progressive_validate` is the friendlier face.
        """
        # What may be refused comes before what is changed: names of features join last.
        named = inputs.holds_names(X)
        data = X if named else self._array_rows(X, learn=True)
        labels = inputs.label_list(y)
        n_rows = inputs.count_rows(data)
        inputs.require_lengths(n_rows, labels)
        weights = inputs.row_weights(sample_weight, n_rows)
        self._known_classes().require_admissible(labels)
        pieces, start = [], 0
        with self._names_forgotten_on_error():
            if named:
                data = self._named_rows(X, learn=True)
            self._prepared(dense=inputs.is_dense(data)).make_room(n_classes, 0)
            for rows in inputs.blocks(data):
                part = slice(start, start := start + len(rows))
                pieces.append(
                    self.learn_rows(rows, labels[part], None if weights is None else weights[part])
                )
        return _joined([p for p, _ in pieces]), _joined([a for _, a in pieces])

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
        inputs.require_width(rows, getattr(self, "n_features_in_", None), more=False)
        machine = self._prepared(dense=rows.dense)
        if weights is not None and not weights.all():
            kept = weights > 0
            labels = [label for label, keep in zip(labels, kept, strict=True) if keep]
            rows, weights = rows.take(np.flatnonzero(kept)), weights[kept]
        learnt = machine.learn(rows, labels, weights)
        if rows.dense:
            self.__dict__.setdefault("n_features_in_", rows.n_features)
        return learnt

    def score_rows(self, rows: Rows) -> npt.NDArray[np.float32]:
        """Return the score of each class for each row, classes in the order of `classes_by_code_`.

        The class that `predict` returns is the first of highest score.
        """
        machine = self._fitted()
        inputs.require_width(rows, getattr(self, "n_features_in_", None), more=True)
        return machine.scores(rows)

    @property
    def vocabulary_(self) -> Vocabulary | None:
        """The names of the features; None if they are known by position."""
        return self._vocabulary

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

    @_unchanged_on_error
    def _learn_first(self: Self, x: Any, y: Label) -> Self:
        self._known_classes().require_admissible([y])
        with self._names_forgotten_on_error():
            self.learn_rows(self._row(x, learn=True), [y])
        return self

    @contextmanager
    def _names_forgotten_on_error(self) -> Iterator[None]:
        """Take back new names of features if their rows were not learnt."""
        n_names = len(self._vocabulary or ())
        try:
            yield
        except BaseException:
            if self._vocabulary is not None:
                machine = getattr(self, "_machine", None)
                learnt = 0 if machine is None else machine.n_features
                self._vocabulary.forget_from(max(n_names, learnt))
            raise

    def _known_classes(self) -> ClassTable:
        machine = getattr(self, "_machine", None)
        return ClassTable() if machine is None else machine.classes

    def _prepared(self, *, dense: bool) -> Machine:
        """Return the machine, made for the kind of the first rows."""
        machine: Machine | None = getattr(self, "_machine", None)
        if machine is None:
            parts = resolve_hypotheses(
                self.hypotheses, lambda: resolve_map(self.feature_map, dense=dense)
            )
            machine = Machine(parts, resolve_rule(self.update), ClassTable())
            self._machine = machine
        return machine

    def _fitted(self) -> Machine:
        machine: Machine | None = getattr(self, "_machine", None)
        if machine is None or machine.n_known == 0:
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet: no class is known before "
                "the first row is learnt, by fit, partial_fit or learn_one"
            )
        return machine

    def _rows_to_score(self, X: Any) -> Iterable[Rows]:
        if inputs.holds_names(X):
            return [self._named_rows(X, learn=False)]
        return inputs.blocks(self._array_rows(X, learn=False))

    def _require_positions(self) -> None:
        if self._vocabulary is not None and not hasattr(self, "n_features_in_"):
            raise KeslerError(
                "this model learns from named features, so it cannot tell what the columns of an "
                "array are: give mappings of names to values, or a model of its own"
            )

    def _array_rows(self, X: Any, *, learn: bool) -> Any:
        self._require_positions()
        first = learn and not hasattr(self, "n_features_in_")
        data = inputs.array_rows(self, X, reset=first)
        if first and hasattr(self, "feature_names_in_"):
            self._vocabulary = Vocabulary.of(self.feature_names_in_)
        return data

    def _named_rows(self, X: Any, *, learn: bool) -> Rows:
        if not hasattr(self, "n_features_in_"):
            if self._vocabulary is None:
                self._vocabulary = Vocabulary()
            return inputs.named_rows(X, self._vocabulary, learn=learn)
        if self._vocabulary is None:
            raise KeslerError(
                "this model learnt from arrays without column names, so it cannot tell what named "
                "features are: give arrays, or learn from a data frame or from mappings"
            )
        return inputs.framed_rows(X, self._vocabulary)

    def _row(self, x: Any, *, learn: bool) -> Rows:
        """Return one row, by names or by position."""
        if isinstance(x, Mapping):
            return self._named_rows(x, learn=learn)
        self._require_positions()
        return inputs.positional_row(x, getattr(self, "n_features_in_", None))

    @property
    def _vocabulary(self) -> Vocabulary | None:
        return self.__dict__.get("_names")

    @_vocabulary.setter
    def _vocabulary(self, vocabulary: Vocabulary | None) -> None:
        self.__dict__["_names"] = vocabulary

    def __sklearn_is_fitted__(self) -> bool:
        machine = getattr(self, "_machine", None)
        return machine is not None and machine.n_known > 0

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._takes_sparse_rows()
        return tags

    def _takes_sparse_rows(self) -> bool:
        try:
            parts = resolve_hypotheses(
                self.hypotheses, lambda: resolve_map(self.feature_map, dense=False)
            )
        except KeslerError:  # refused when it learns, not when it is asked for its tags
            return True
        return all(part.feature_map is None or part.feature_map.zero_at_zero for part in parts)


def _joined(pieces: list[npt.NDArray[np.int32]]) -> npt.NDArray[np.int32]:
    return np.concatenate(pieces) if pieces else np.empty(0, dtype=np.int32)


def _require_plain(names: Iterable[Any]) -> None:
    for name in names:
        if not isinstance(name, (bool, int, float, str)):
            raise KeslerError(
                f"a model file keeps labels and groups that are numbers or text, not {name!r} "
                f"({type(name).__name__}): map them to text before learning"
            )


def load(path: str | os.PathLike[str], custom: Iterable[Any] = ()) -> OnlineClassifier:
    """Return the model that was saved in a file, to go on as if it had never stopped.

    Parameters
    ----------
    path : a file written by :meth:`OnlineClassifier.save`.
    custom : the user's own rules, maps and group functions that the model was made with: the file
        holds no code, only their names.

    Returns
    -------
    The estimator; what was saved as notes is its `notes_`.

    Raises
    ------
    KeslerError
        If the file is missing, cut off, no model, of a newer version, or names a part that is not
        in `custom`.

    Examples
    --------
    >>> import tempfile
    >>> from kesler import OnlineClassifier, load
    >>> path = tempfile.mkdtemp() + "/mail.kesler"
    >>> OnlineClassifier().learn_one({"cash": 1.0}, "spam").save(path, source="inbox")
    >>> model = load(path)
    >>> model.predict_one({"cash": 1.0}), model.notes_
    ('spam', {'source': 'inbox'})
    """
    return OnlineClassifier._load(path, custom)
