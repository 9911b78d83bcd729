"""scikit-learn's estimator interface, and calls that exclude others.

Importing scikit-learn takes longer than everything else that a learner needs for its first
prediction. Its interface requires parameters and tags but no base class: the online learners have
the methods defined here, and import scikit-learn only when its own objects are requested.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass, replace
from functools import cache, wraps
from inspect import Parameter, getattr_static, signature
from threading import Lock
from typing import Any, TypeVar, cast

from kesler.errors import KeslerError, require_present, signed
from kesler.learner.locks import call_lock

Method = TypeVar("Method", bound=Callable[..., Any])
Self = TypeVar("Self")

SLOTS = ("__dict__", "__weakref__", "_created_lock")
"""The slots of an estimator: its lock is no attribute to copy."""

_CREATION = Lock()  # held while the lock of an estimator is created


# ---- parameters ---------------------------------------------------------------------------------


def param_names(estimator: Any) -> list[str]:
    """Return the names of the parameters of a class of estimators."""
    return sorted(signature(estimator).parameters)


def get_params(self: Any, deep: bool = True) -> dict[str, Any]:
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
            found = _params_within(self, name)
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
        _require_param(self, name, param_names(type(self)))
        if within:
            _set_within(self, name, inner, params[path])
        else:
            setattr(self, name, params[path])
    return self


def _params_within(estimator: Any, name: str) -> dict[str, Any]:
    """Return the parameters of the estimator or part that is the value of a parameter."""
    from kesler.online import named_rule

    value = getattr(estimator, name)
    if name == "update" and named_rule.is_name(value):
        return named_rule.parameters(value, get_params(estimator, deep=False))
    if isinstance(value, type):
        return {}
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value) if field.init}
    return value.get_params() if hasattr(value, "get_params") else {}


def _set_within(estimator: Any, name: str, inner: str, value: Any) -> None:
    """Set a parameter of the estimator or part that is the value of a parameter."""
    from kesler.online import named_rule

    owner = getattr(estimator, name)
    if hasattr(owner, "set_params"):
        owner.set_params(**{inner: value})
        return
    within = _params_within(estimator, name)
    _require_param(estimator, f"{name}__{inner}", [f"{name}__{n}" for n in within])
    if name != "update" or not named_rule.is_name(owner):
        setattr(estimator, name, replace(owner, **{inner: value}))
    elif within[inner] != value:  # else it is as it is, whether by the default of the rule or not
        given = get_params(estimator, deep=False)
        for changed, to in named_rule.with_parameter(owner, given, inner, value).items():
            setattr(estimator, changed, to)


def _require_param(estimator: Any, name: str, names: Sequence[str]) -> None:
    if name not in names:
        raise ValueError(
            f"Invalid parameter {name!r} for estimator {estimator}. Valid parameters are: "
            f"{list(names)!r}."
        )


def representation(self: Any) -> str:
    """Return the expression that makes an estimator of these parameters."""
    arguments = _arguments_of(self.__class__)
    params = ((name, getattr(self, name)) for name in arguments)
    changed = (f"{n}={v!r}" for n, v in params if repr(v) != repr(arguments[n].default))
    return f"{type(self).__name__}({', '.join(changed)})"


# ---- copies and tags ----------------------------------------------------------------------------


def lock_of(self: Any) -> Any:
    """Return the lock that is held by a call that changes, saves or copies the estimator."""
    with _CREATION:
        if not hasattr(self, "_created_lock"):
            self._created_lock = call_lock(self)
        return self._created_lock


def state(self: Any) -> dict[str, Any]:
    """Return a copy of the attributes between two trials, which pickles contain."""
    with self._lock, self._between_trials():
        return signed(copy.deepcopy(vars(self)))


def copied(self: Self, memo: dict[int, Any]) -> Self:
    """Return a copy of the estimator between two trials."""
    made = memo[id(self)] = object.__new__(type(self))
    own: Any = self
    with own._lock, own._between_trials():
        vars(made).update(copy.deepcopy(vars(self), memo))
    return made


def tags() -> Any:
    """Return the tags of an estimator of scikit-learn."""
    from sklearn.base import BaseEstimator

    return BaseEstimator().__sklearn_tags__()


def tags_of_classifier(found: Any) -> Any:
    """Return tags as those of a classifier."""
    from sklearn.utils import ClassifierTags

    found.estimator_type, found.classifier_tags = "classifier", ClassifierTags()
    return found


def inherited(self: Any, name: str) -> Any:
    """Return an attribute of scikit-learn's base class: displays, metadata routing."""
    if "sklearn.base" in sys.modules:
        inheriting, added = _inheriting(self.__class__)
        if name in added:
            bind = getattr(added[name], "__get__", None)
            return added[name] if bind is None else bind(self, inheriting)
    require_present(self, name)
    return object.__getattribute__(self, name)  # raises an AttributeError


# ---- implementation -----------------------------------------------------------------------------


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
    """Restore the attributes and those of the reader after an error, unless trials were run."""
    parts = _attributes(estimator)
    before, n_trials = [dict(part) for part in parts], _n_trials(estimator) if keeps_trials else 0
    try:
        yield
    except BaseException as error:
        is_kept = keeps_trials and isinstance(error, KeyboardInterrupt)
        if not (is_kept and _n_trials(estimator) > n_trials):
            for part, earlier in zip(parts, before, strict=True):
                part.clear()
                part.update(earlier)
        raise


def _attributes(estimator: Any) -> list[dict[str, Any]]:
    """Return the attributes of an estimator, and those of its reader."""
    own = vars(estimator)
    reader = own.get("_reader")
    return [own] if reader is None else [own, vars(reader), vars(reader.columns)]


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
    given: Any = get_params(estimator, deep=False)
    return type(estimator)(**given)


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
