"""Estimators of all libraries under one interface, and what the laws require of them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from inspect import signature
from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.errors import KeslerError

Rows = npt.NDArray[np.float64]
Labels = npt.NDArray[Any]
LABELS = ("ant", "bee", "cat", "dog")
N_FEATURES = 6
# Passes in which each estimator must learn, and the accuracy that a row of a new class must leave:
# less than both would be no better than guessing.
MOST_PASSES, LEAST_ACCURACY, LEAST_KEPT = 100, 0.6, 0.4


class LawBroken(KeslerError, AssertionError):
    """An estimator breaks a law."""


class NotApplicable(Exception):
    """A law does not concern an estimator: the message says why."""


def learns_rows(estimator: Any) -> bool:
    """Return whether an estimator learns rows of arrays, as in scikit-learn."""
    return hasattr(estimator, "partial_fit") and hasattr(estimator, "predict")


def learns_events(estimator: Any) -> bool:
    """Return whether an estimator learns mappings one by one, as in river."""
    return hasattr(estimator, "learn_one") and hasattr(estimator, "predict_one")


def require_stream_estimator(estimator: Any) -> None:
    """Raise unless an estimator is an instance, unfitted, with one of the interfaces."""
    if isinstance(estimator, type) or not (learns_rows(estimator) or learns_events(estimator)):
        name = estimator.__name__ if isinstance(estimator, type) else type(estimator).__name__
        raise KeslerError(
            f"{name} cannot be checked: give an instance with partial_fit and predict, or with "
            "learn_one and predict_one"
        )
    if len(getattr(estimator, "classes_", ())):
        raise KeslerError("the estimator is fitted: give an unfitted one")


class Subject:
    """A copy of an estimator, which learns rows of an array whatever its interface is."""

    def __init__(self, estimator: Any, *, events: bool | None = None) -> None:
        # A deep copy, since `clone` is itself under test.
        self.model = copy.deepcopy(estimator)
        self.events = not learns_rows(estimator) if events is None else events

    @property
    def needs_classes(self) -> bool:
        """Whether the first call must hold all classes: it does not accept them as optional."""
        if self.events or "classes" not in signature(self.model.partial_fit).parameters:
            return False
        try:
            copy.deepcopy(self.model).partial_fit(*stream(8))
        except ValueError as error:
            return "classes" in str(error)
        return False

    def learn(self, X: Rows, y: Labels, classes: Sequence[str] | None = None) -> Subject:
        """Learn rows, all in one call if the interface has one."""
        if self.events:
            for row, label in zip(X, y, strict=True):
                self.model.learn_one(named(row), label)
        elif not len(getattr(self.model, "classes_", ())) and self.needs_classes:
            self.model.partial_fit(X, y, classes=np.array(sorted(classes or LABELS)))
        else:
            self.model.partial_fit(X, y)
        return self

    def predict(self, X: Rows) -> list[Any]:
        """Return a label for each row."""
        if self.events:
            return [self.model.predict_one(named(row)) for row in X]
        return list(np.asarray(self.model.predict(X)).tolist())

    def scores(self, X: Rows) -> Any:
        """Return scores or probabilities of rows, or None without them."""
        for name in ("decision_function", "predict_proba"):
            if not self.events and hasattr(self.model, name):
                return np.asarray(getattr(self.model, name)(X), dtype=np.float64)
        return None


def named(row: Rows) -> dict[str, float]:
    """Return a row as a mapping."""
    return {f"f{i}": float(value) for i, value in enumerate(row)}


def stream(n: int = 80, seed: int = 0) -> tuple[Rows, Labels]:
    """Return rows of four classes, each with one large feature; small values are 0, none below."""
    generator = np.random.default_rng(seed)
    codes = np.r_[np.arange(4), generator.integers(0, 4, n)][:n]
    X = generator.gamma(1.0, 0.5, (n, N_FEATURES))
    X[X < 0.9] = 0.0
    X[np.arange(n), codes] += 2.0
    return X, np.array(LABELS)[codes]


PROBES = stream(60, seed=1)[0]


def learnt(estimator: Any, n: int = 80) -> Subject:
    """Return a copy of an estimator that learnt the first n rows of the stream."""
    return Subject(estimator).learn(*stream(n))


def require(holds: bool, reason: str) -> None:
    """Raise LawBroken with a reason unless a condition holds."""
    if not holds:
        raise LawBroken(reason)


def require_same(one: Subject, other: Subject, reason: str) -> None:
    """Raise unless two subjects predict the same, with nearly the same scores."""
    differing = sum(a != b for a, b in zip(one.predict(PROBES), other.predict(PROBES), strict=True))
    require(not differing, f"{reason}: {differing} of {len(PROBES)} predictions differ")
    scores, others = one.scores(PROBES), other.scores(PROBES)
    if scores is not None:
        same = scores.shape == others.shape and np.allclose(scores, others, 1e-3, 1e-4)
        require(same, f"{reason}: the scores differ")


def require_refusal(action: Callable[[], Any], reason: str) -> None:
    """Raise unless an action raises a ValueError, as a refusal of input should."""
    try:
        action()
    except ValueError:
        return
    raise LawBroken(reason)


def rows_only(estimator: Any) -> None:
    """Raise NotApplicable unless an estimator learns arrays."""
    if not learns_rows(estimator):
        raise NotApplicable("it has no partial_fit")


def events_only(estimator: Any) -> None:
    """Raise NotApplicable unless an estimator learns mappings."""
    if not learns_events(estimator):
        raise NotApplicable("it has no learn_one")


def params_only(estimator: Any) -> None:
    """Raise NotApplicable unless an estimator has parameters."""
    if not (hasattr(estimator, "get_params") and hasattr(estimator, "set_params")):
        raise NotApplicable("it has no get_params and set_params")


def params_of(estimator: Any) -> dict[str, Any]:
    """Return the constructor's parameters, which river's estimators keep elsewhere."""
    if hasattr(estimator, "get_params"):
        return dict(estimator.get_params())
    return dict(getattr(estimator, "_get_params", dict)())


def shuffles(estimator: Any) -> bool:
    """Return whether an estimator shuffles the rows of any call, not only those of `fit`."""
    return params_of(estimator).get("shuffle") is True
