"""What scikit-learn asks of an estimator, kept without importing it.

Importing scikit-learn takes longer than all else that a learner needs for its first answer. What it
asks estimators for are parameters and tags, no base class: online learners bring these themselves,
and import it when a program asks for what is its own.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cache
from inspect import Parameter, getattr_static, signature
from typing import Any, TypeVar

Self = TypeVar("Self", bound="Estimator")


class Estimator:
    """An estimator by scikit-learn's contract: its parameters are the arguments it is made with."""

    __class__: Any  # to type checkers, which hold that classes cannot be hashed

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return sorted(signature(cls).parameters)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name.

        Parameters
        ----------
        deep : bool, default True
            Whether parameters that are estimators add theirs, as ``<name>__<parameter>``.
        """
        params = {name: getattr(self, name) for name in _arguments_of(self.__class__)}
        if deep:
            for name, value in list(params.items()):
                if hasattr(value, "get_params") and not isinstance(value, type):
                    params |= {f"{name}__{inner}": v for inner, v in value.get_params().items()}
        return params

    def set_params(self: Self, **params: Any) -> Self:
        """Set parameters by name, those of estimators within as ``<name>__<parameter>``.

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
        """Return what scikit-learn's base class adds: displays, and requests for metadata."""
        if "sklearn.base" in sys.modules:
            inheriting, added = _inheriting(self.__class__)
            if name in added:
                bind = getattr(added[name], "__get__", None)
                return added[name] if bind is None else bind(self, inheriting)
        return object.__getattribute__(self, name)  # raises, a property in its own words


class Classifier(Estimator):
    """An estimator whose answers are classes."""

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of rows whose prediction is right, as scikit-learn counts it."""
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
    """Return the class with scikit-learn's base class for its last, and what that adds to it."""
    from sklearn.base import BaseEstimator

    own = {"__module__": estimator.__module__}
    inheriting = type(estimator.__name__, (estimator, BaseEstimator), own)
    names = set(dir(inheriting)) - set(dir(estimator))
    added = {name: getattr_static(inheriting, name) for name in names}
    return inheriting, {name: each for name, each in added.items() if not name.startswith("__")}
