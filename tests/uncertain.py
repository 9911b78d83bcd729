"""Learners that estimate their uncertainty, streams with late classes, and what is said of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kesler import (
    NEW,
    Ensemble,
    OnlineClassifier,
    OnlineMultilabelClassifier,
    OnlineOrdinalClassifier,
)
from reference_uncertainty import COVERAGES

N_MOST = 12
Maker = Callable[[], Any]

OF_CLASSES: dict[str, Maker] = {
    "text": OnlineClassifier,
    "default": OnlineClassifier,
    "full": lambda: OnlineClassifier(uncertainty="full"),
    "pa1": lambda: OnlineClassifier("multi", update="pa1", uncertainty=True),
    "full pa1": lambda: OnlineClassifier("multi", update="pa1", uncertainty="full"),
    "averaged": lambda: OnlineClassifier(
        "hybrid", update="softmax", averaged=True, uncertainty=True
    ),
    "inherit": lambda: OnlineClassifier(
        "multi", update="hinge", on_new_class="inherit", uncertainty=True
    ),
    "kernel": lambda: OnlineClassifier(
        "multi", update="pa1", kernel="rbf", sigma=1.0, uncertainty=True
    ),
    "replay": lambda: OnlineClassifier("multi", update="softmax", replay=2, uncertainty="full"),
    "majority": lambda: Ensemble([OnlineClassifier("multi", update="pa1"), SOFTMAX()], "majority"),
    "best": lambda: Ensemble([OnlineClassifier("multi", update="pa1"), SOFTMAX()], "best"),
}
OTHERS: dict[str, Maker] = {
    "ranks": OnlineOrdinalClassifier,
    "labels": OnlineMultilabelClassifier,
}
LEARNERS = OF_CLASSES | OTHERS
WITH_MEMORY = {"full", "full pa1", "replay"}
OFF: dict[str, Maker] = {
    "text": lambda: OnlineClassifier(uncertainty=False),
    "default": lambda: OnlineClassifier(uncertainty=False),
    "ranks": lambda: OnlineOrdinalClassifier(uncertainty=False),
    "labels": lambda: OnlineMultilabelClassifier(uncertainty=False),
}


def SOFTMAX() -> OnlineClassifier:
    return OnlineClassifier("multi", update="softmax")


def stream_of(name: str, seed: int, n_rows: int = 120) -> tuple[Any, list[Any]]:
    """Return rows that the learner reads, and targets of classes that keep coming.

    Some rows are repeated, so that scores and distances have ties.
    """
    rng = np.random.default_rng(seed)
    y = np.minimum(rng.geometric(0.15, size=n_rows), N_MOST)
    centres = rng.normal(size=(N_MOST + 1, 5))
    X = (centres[y] + 0.7 * rng.normal(size=(n_rows, 5))).astype(np.float32).astype(float)
    X[::7] = X[n_rows // 2]
    X[:, 4] = 1.0  # a feature without a deviation
    targets: list[Any] = y.tolist()
    if name == "labels":
        drawn = rng.random(n_rows)
        targets = [
            [] if u < 0.1 else sorted({v, v // 2}) if u < 0.8 else [v]
            for v, u in zip(targets, drawn, strict=True)
        ]
    if name in ("text", "labels"):
        words = rng.integers(9, size=(n_rows, 2))
        return [
            {f"a{v}": 1.0, f"b{i}": 1.0, f"c{(v + j) % 9}": 2.0}
            for v, (i, j) in zip(y, words, strict=True)
        ], targets
    return X, targets


def learn_rows(model: Any, X: Any, y: Any) -> Any:
    """Learn row by row."""
    for x, target in zip(X, y, strict=True):
        model.learn_one(x, target)
    return model


def estimates(model: Any) -> dict[str, Any]:
    """Return what is stored of the estimates of uncertainty: shapes and bytes."""
    arrays = model._learner.arrays().items()
    return {n: (a.shape, a.tobytes()) for n, a in arrays if n.startswith("uncertainty.")}


def all_but_estimates(model: Any) -> dict[str, Any]:
    arrays = model._learner.arrays().items()
    return {n: (a.shape, a.tobytes()) for n, a in arrays if not n.startswith("uncertainty.")}


def everything_said(model: Any, name: str, X: Any) -> dict[str, Any]:
    """Return all that a model says of its uncertainty about rows."""
    said = {f"set {c}": model.predict_set(X, float(c)) for c in [0.85, *COVERAGES, 0.97]}
    said["never empty"] = model.predict_set(X, 0.8, allow_empty=False)
    if name == "labels":
        return said
    said["new"] = model.predict_proba(X, new=True).tolist()
    said["confidence"] = model.confidence(X).tolist()
    said["answered"] = model.predict(X, min_confidence=0.5).tolist()
    if name != "ranks":
        said["by class"] = model.predict_set(X, 0.9, by_class=True)
    return said


def said_of_one(model: Any, name: str, x: Any) -> dict[str, Any]:
    """Return the same of one row, as `everything_said` does of several."""
    said = {f"set {c}": [model.predict_set_one(x, float(c))] for c in [0.85, *COVERAGES, 0.97]}
    said["never empty"] = [model.predict_set_one(x, 0.8, allow_empty=False)]
    if name == "labels":
        return said
    found = model.predict_proba_one(x, new=True)
    said["new"] = [[found[label] for label in [*model.classes_.tolist(), NEW]]]
    said["confidence"] = [model.confidence_one(x)]
    said["answered"] = [model.predict_one(x, min_confidence=0.5)]
    if name != "ranks":
        said["by class"] = [model.predict_set_one(x, 0.9, by_class=True)]
    return said
