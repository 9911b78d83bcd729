"""Estimator and Classifier: scikit-learn's estimator interface, without importing scikit-learn.

Importing scikit-learn takes longer than everything else that a learner needs for its first
prediction. Its interface requires parameters and tags but no base class: the online learners
implement these themselves, and import scikit-learn only when its own objects are requested.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import fields, is_dataclass, replace
from functools import cache, wraps
from inspect import Parameter, getattr_static, signature
from threading import Lock
from typing import Any, TypeVar, cast

from kesler.errors import KeslerError
from kesler.learner.locks import call_lock

Self = TypeVar("Self", bound="Estimator")
Method = TypeVar("Method", bound=Callable[..., Any])

_CREATION = Lock()  # held while the lock of an estimator is created


class Estimator:
    """Base class with scikit-learn's estimator interface; constructor arguments are parameters."""

    __slots__ = ("__dict__", "__weakref__", "_created_lock")  # the lock is no attribute to copy
    __class__: Any  # for type checkers, which treat classes as unhashable
    _created_lock: Any

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return sorted(signature(cls).parameters)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name.

        Parameters
        ----------
        deep : bool, default True
            Whether to include the parameters of nested estimators and of parts, such as the update
            rule, as ``<name>__<parameter>``.
        """
        params = {name: getattr(self, name) for name in _arguments_of(self.__class__)}
        if deep:
            for name in list(params):
                found = self._params_within(name)
                params |= {f"{name}__{inner}": value for inner, value in found.items()}
        return params

    def set_params(self: Self, **params: Any) -> Self:
        """Set parameters by name, those of estimators and parts as ``<name>__<parameter>``.

        The parts themselves are not changed, but replaced.

        Raises
        ------
        ValueError
            If there is no parameter of that name.
        """
        paths = sorted(params, key=lambda path: "__" in path)  # parameters before their own
        for path in paths:
            name, within, inner = path.partition("__")
            self._require_param(name, self._get_param_names())
            if within:
                self._set_within(name, inner, params[path])
            else:
                setattr(self, name, params[path])
        return self

    def _params_within(self, name: str) -> dict[str, Any]:
        """Return the parameters of the estimator or part that is the value of a parameter."""
        value = getattr(self, name)
        if isinstance(value, type):
            return {}
        if is_dataclass(value):
            return {field.name: getattr(value, field.name) for field in fields(value) if field.init}
        return value.get_params() if hasattr(value, "get_params") else {}

    def _set_within(self, name: str, inner: str, value: Any) -> None:
        """Set a parameter of the estimator or part that is the value of a parameter."""
        owner = getattr(self, name)
        if hasattr(owner, "set_params"):
            owner.set_params(**{inner: value})
            return
        self._require_param(f"{name}__{inner}", [f"{name}__{n}" for n in self._params_within(name)])
        setattr(self, name, replace(owner, **{inner: value}))

    def _require_param(self, name: str, names: Sequence[str]) -> None:
        if name not in names:
            raise ValueError(
                f"Invalid parameter {name!r} for estimator {self}. Valid parameters are: "
                f"{list(names)!r}."
            )

    def __repr__(self) -> str:
        arguments = _arguments_of(self.__class__)
        params = ((name, getattr(self, name)) for name in arguments)
        changed = (f"{n}={v!r}" for n, v in params if repr(v) != repr(arguments[n].default))
        return f"{type(self).__name__}({', '.join(changed)})"

    @property
    def _lock(self) -> Any:
        """The lock that is held by a call that changes, saves or copies the estimator."""
        with _CREATION:
            if not hasattr(self, "_created_lock"):
                self._created_lock = call_lock(self)
            return self._created_lock

    def _between_trials(self) -> AbstractContextManager[Any]:
        """Return the context in which the estimator does not learn."""
        return nullcontext()

    def __getstate__(self) -> dict[str, Any]:
        """Return a copy of the attributes between two trials, which pickles and copies contain."""
        with self._lock, self._between_trials():
            return copy.deepcopy(vars(self))

    def __deepcopy__(self: Self, memo: dict[int, Any]) -> Self:
        """Return a copy of the estimator between two trials."""
        copied = memo[id(self)] = object.__new__(type(self))
        with self._lock, self._between_trials():
            vars(copied).update(copy.deepcopy(vars(self), memo))
        return copied

    def __sklearn_tags__(self) -> Any:
        from sklearn.base import BaseEstimator

        return BaseEstimator().__sklearn_tags__()

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of scikit-learn's base class: displays, metadata routing."""
        if "sklearn.base" in sys.modules:
            inheriting, added = _inheriting(self.__class__)
            if name in added:
                bind = getattr(added[name], "__get__", None)
                return added[name] if bind is None else bind(self, inheriting)
        return object.__getattribute__(self, name)  # raises an AttributeError


class Classifier(Estimator):
    """Base class of estimators that predict classes."""

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy, as computed by scikit-learn."""
        from sklearn.base import ClassifierMixin

        return ClassifierMixin.score(self, X, y, sample_weight)

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags

        tags = super().__sklearn_tags__()
        tags.estimator_type, tags.classifier_tags = "classifier", ClassifierTags()
        tags.target_tags.required = True
        return tags


@cache
def _arguments_of(estimator: Any) -> Mapping[str, Parameter]:
    return signature(estimator).parameters


@cache
def _inheriting(estimator: Any) -> tuple[type, dict[str, Any]]:
    """Return a subclass that also inherits BaseEstimator, and the attributes that it adds."""
    from sklearn.base import BaseEstimator

    own = {"__module__": estimator.__module__}
    inheriting = type(estimator.__name__, (estimator, BaseEstimator), own)
    names = set(dir(inheriting)) - set(dir(estimator))
    added = {name: getattr_static(inheriting, name) for name in names}
    return inheriting, {name: each for name, each in added.items() if not name.startswith("__")}


def unchanged_on_error(method: Method) -> Method:
    """Restore the estimator's attributes if the method raises an error."""

    @wraps(method)
    def guarded(self: Any, *arguments: Any, **named: Any) -> Any:
        with _restored(self, keeps_trials=False):
            return method(self, *arguments, **named)

    return cast(Method, guarded)


def exclusive(method: Method) -> Method:
    """Run the method while no other changes or copies the estimator; `unchanged_on_error`."""

    @wraps(method)
    def alone(self: Any, *arguments: Any, **named: Any) -> Any:
        with self._lock, _restored(self, keeps_trials=False):
            return method(self, *arguments, **named)

    return cast(Method, alone)


def exclusive_trials(method: Method) -> Method:
    """Run the method as `exclusive` does, but keep the rows learnt before an interrupt."""

    @wraps(method)
    def alone(self: Any, *arguments: Any, **named: Any) -> Any:
        with self._lock, _restored(self, keeps_trials=True):
            return method(self, *arguments, **named)

    return cast(Method, alone)


@contextmanager
def _restored(estimator: Any, *, keeps_trials: bool) -> Iterator[None]:
    """Restore the attributes after an error, if not after an interrupt of trials."""
    before, n_trials = dict(vars(estimator)), _n_trials(estimator) if keeps_trials else 0
    try:
        yield
    except BaseException as error:
        is_kept = keeps_trials and isinstance(error, KeyboardInterrupt)
        if not (is_kept and _n_trials(estimator) > n_trials):
            vars(estimator).clear()
            vars(estimator).update(before)
        raise


def _n_trials(estimator: Any) -> int:
    learner = vars(estimator).get("_learner")
    if learner is None:
        return 0
    with learner.lock:
        return int(learner.n_trials)


def between_trials(method: Method) -> Method:
    """Run the method while the fitted estimator does not learn."""

    @wraps(method)
    def waiting(self: Any, *arguments: Any, **named: Any) -> Any:
        with self._fitted().lock:
            return method(self, *arguments, **named)

    return cast(Method, waiting)


def unfitted(estimator: Self) -> Self:
    """Return an unfitted estimator with the same parameters, which are shared, not copied."""
    return type(estimator)(**estimator.get_params(deep=False))


def require_usable(estimator: Any) -> None:
    """Raise if an estimator could learn no rows, neither dense nor sparse ones, as it is set.

    Raises
    ------
    KeslerError
        If a setting is unknown, or settings do not fit each other.
    """
    first: KeslerError | None = None
    for dense in (False, True):
        try:
            unfitted(estimator)._new_learner(dense=dense)
        except KeslerError as error:
            first = first or error
        else:
            return
    if first is not None:
        raise first
