"""Estimator and Classifier: scikit-learn's estimator interface, without importing scikit-learn.

Importing scikit-learn takes longer than everything else that a learner needs for its first
prediction. Its interface requires parameters and tags but no base class: the online learners
implement these themselves, and import scikit-learn only when its own objects are requested.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cache, wraps
from inspect import Parameter, getattr_static, signature
from typing import Any, TypeVar

Self = TypeVar("Self", bound="Estimator")


class Estimator:
    """Base class with scikit-learn's estimator interface; constructor arguments are parameters."""

    __class__: Any  # for type checkers, which treat classes as unhashable

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return sorted(signature(cls).parameters)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name.

        Parameters
        ----------
        deep : bool, default True
            Whether to include the parameters of nested estimators, as ``<name>__<parameter>``.
        """
        params = {name: getattr(self, name) for name in _arguments_of(self.__class__)}
        if deep:
            for name, value in list(params.items()):
                if hasattr(value, "get_params") and not isinstance(value, type):
                    params |= {f"{name}__{inner}": v for inner, v in value.get_params().items()}
        return params

    def set_params(self: Self, **params: Any) -> Self:
        """Set parameters by name, those of nested estimators as ``<name>__<parameter>``.

        Raises
        ------
        ValueError
            If there is no parameter of that name.
        """
        names = self._get_param_names()
        for path, value in params.items():
            name, within, inner = path.partition("__")
            if name not in names:
                raise ValueError(
                    f"Invalid parameter {name!r} for estimator {self}. Valid parameters are: "
                    f"{names!r}."
                )
            if within:
                getattr(self, name).set_params(**{inner: value})
            else:
                setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        arguments = _arguments_of(self.__class__)
        params = ((name, getattr(self, name)) for name in arguments)
        changed = (f"{n}={v!r}" for n, v in params if repr(v) != repr(arguments[n].default))
        return f"{type(self).__name__}({', '.join(changed)})"

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


def unchanged_on_error(method: Any) -> Any:
    """Restore the estimator's attributes if the method raises an error."""

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


def unfitted(estimator: Self) -> Self:
    """Return an unfitted estimator with the same parameters, which are shared, not copied."""
    return type(estimator)(**estimator.get_params(deep=False))
